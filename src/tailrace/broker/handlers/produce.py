"""Produce: batches go from the socket's buffer to the log untouched.

The frame is decoded here and not by the generated codec, because nothing may be
copied: a batch is a slice of the receive buffer, checked and patched in place and
written from there. It must therefore be in the log before the handler returns; only
the acknowledgement may wait, for `fdatasync` under `flush.messages=1`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tailrace.broker.authorization.acls import TRANSACTIONAL_ID, WRITE
from tailrace.broker.connection import Hold
from tailrace.broker.guard import write_refusal
from tailrace.broker.inspection import Look
from tailrace.broker.router import TURN_SECONDS, Route
from tailrace.errors import TailraceError
from tailrace.log.admission import (
    INLINE_BYTES,
    INLINE_DECOMPRESSED_BYTES,
    InlineWork,
    is_large,
)
from tailrace.records.errors import OversizedBatchError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import DecodeError, ErrorCode
from tailrace.wire.message import (
    ELEMENTS_LIMIT,
    TOO_MANY_ELEMENTS,
    read_varint,
    skip_tags,
    write_varint,
)

if TYPE_CHECKING:
    from tailrace.broker.authorization.authorizer import Authorizer
    from tailrace.broker.connection import Connection, Slot
    from tailrace.broker.inspection import Verdict
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition
    from tailrace.log.store import Topic

log = logging.getLogger(__name__)

MINIMUM, MAXIMUM = 3, 13
FLEXIBLE = 9
TOPIC_IDS = 13
# Versions from here on let a transactional batch join its transaction by itself (KIP-890).
ABORTABLE_TRANSACTIONS = 11
IMPLICIT_TRANSACTIONS = 12

_ACKS = Struct(">hi")
_COUNT = Struct(">i")
_SHORT = Struct(">h")
_INDEX_SIZE = Struct(">ii")
_RESULT = Struct(">ihqqq")
_RESULT_V3 = Struct(">ihqq")
_ATTRIBUTES = Struct(">h")
_PRODUCER = Struct(">qh")
_FRAME = Struct(">ii")

_TRANSACTIONAL = 0x10
_ATTRIBUTES_AT = 21
_PRODUCER_AT = 43

TURN_MASK = 31
"""The clock is looked at every 32 batches."""

SLOW_GROUP = "a group that this topic waits for is too far behind"

# index, error, base offset, append time, log start offset, why
Result = tuple[int, int, int, int, int, "Refusal | None"]


class Refusal(NamedTuple):
    """Why a batch was not taken; `records` are those of it that are to blame."""

    message: str
    records: Sequence[int] = ()


class TransactionGate(Protocol):
    """What produce asks the transaction coordinator before a transactional append."""

    def check_produce(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        partition: Partition,
        *,
        implicit: bool,
        abortable: bool,
    ) -> int:
        """A Kafka error code; 0 lets the batch in. With `implicit` the partition joins
        the producer's open transaction if it is not in it yet; with `abortable` the client
        may be told to abort."""

    def join(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Partition],
    ) -> None:
        """Let partitions join the producer's open transaction together, or begin one with
        them. Whether they may is told by `check_produce`."""


class Produce:
    """The handler; keeps the counters of what came in."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.gate: TransactionGate | None = None

    def handle(
        self,
        connection: Connection,
        view: memoryview,
        position: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> None:
        transactional_id, acks, timeout_ms, batches = decode_request(view, position, end, version)
        denied: Mapping[bytes, int] = {}
        refused: list[tuple[bytes, list[Result]]] = []
        if self._broker.authorizer is not None:
            # A request that is served in turns keeps the answer of its first.
            denied = (
                connection.look.denied
                if connection.look is not None
                else self._denials(
                    self._broker.authorizer, connection, transactional_id, view, batches, version
                )
            )
            if denied:
                refused = [
                    _denied(key, partitions, denied[key])
                    for key, partitions in batches
                    if key in denied
                ]
                batches = [each for each in batches if each[0] not in denied]
        braked: list[str] = []
        if self._broker.pressure.topics:
            braked = self._braked(batches, version)
            begun = connection.look is not None and connection.look.appended
            if braked and not begun and self._held(connection, braked, timeout_ms if acks else 0):
                connection.look = None
                connection.send_now(
                    encode_response(version, correlation_id, _timed_out(batches) + refused)
                    if acks
                    else b""
                )
                return
        look = self._look(connection, view, position, batches, version, denied)
        looked_at = look.verdicts
        topics = look.appended
        if not topics and transactional_id is not None and version >= IMPLICIT_TRANSACTIONS:
            self._join(connection, transactional_id, view, batches, version)
        until = 0.0
        turn = 0
        for number, (key, partitions) in enumerate(batches):
            if number == len(topics):
                topics.append((key, []))
            results = topics[number][1]
            for index, start, stop in partitions[len(results) :] if results else partitions:
                turn += 1
                if turn & TURN_MASK == 0:
                    now = connection.monotonic()
                    if until == 0.0:
                        until = now + TURN_SECONDS
                    elif now >= until:
                        self._go_on_later(connection, look)
                result, partition = self._append(
                    connection,
                    key,
                    index,
                    view[start:stop],
                    transactional_id,
                    acks,
                    version,
                    looked_at.get(start - position) if looked_at else None,
                )
                results.append(result)
                if result[1]:
                    look.failed = True
                elif partition is not None and partition.needs_sync:
                    look.unsynced.append(partition)
        unsynced = look.unsynced
        topics = refused + topics
        failed = look.failed or bool(refused)
        pause = 0.0
        if self._broker.metering:
            pause = self._broker.quotas.produced(connection, end - position)
        if braked:
            pause = max(pause, self._broker.pressure.after(braked))
        if pause:
            connection.mute(pause)
        if acks == 0:
            self._broker.metrics.unacknowledged_requests += 1
            if failed:
                self._broker.metrics.unacknowledged_failures += 1
                # The only way to tell a producer that does not listen: Kafka does the same.
                connection.close()
        elif unsynced:
            self._answer_when_synced(connection, version, correlation_id, topics, unsynced, pause)
        else:
            connection.send_now(encode_response(version, correlation_id, topics, pause))

    def _denials(
        self,
        authorizer: Authorizer,
        connection: Connection,
        transactional_id: str | None,
        view: memoryview,
        batches: list[tuple[bytes, list[tuple[int, int, int]]]],
        version: int,
    ) -> dict[bytes, int]:
        """The topics of a request that may not be written, each with its error."""
        writable = authorizer.proven(connection, WRITE)
        if transactional_id is None:
            if all(key in writable for key, _ in batches):
                return {}
        elif any(
            _producer_of(view[start:stop]) is not None
            for _, partitions in batches
            for _, start, stop in partitions
        ) and not authorizer.allows(
            connection, WRITE, TRANSACTIONAL_ID, transactional_id, ApiKey.PRODUCE
        ):
            code = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return {key: code for key, _ in batches}
        denied = {}
        for key, _ in batches:
            if key in writable:
                continue
            topic = self._topic(key, version)
            if topic is None and version >= TOPIC_IDS:
                continue  # nobody's: it is answered as unknown
            name = key.decode() if topic is None else topic.name
            if not authorizer.prove(connection, WRITE, name, key, ApiKey.PRODUCE):
                denied[key] = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return denied

    def _topic(self, key: bytes, version: int) -> Topic | None:
        if version >= TOPIC_IDS:
            return self._broker.topic_by_id(key)
        return self._broker.topic_by_name(key)

    def _look(
        self,
        connection: Connection,
        view: memoryview,
        position: int,
        batches: list[tuple[bytes, list[tuple[int, int, int]]]],
        version: int,
        denied: Mapping[bytes, int],
    ) -> Look:
        """Verdicts on batches by their distance from `position`, as far as looking into them
        is work; raises Hold to have it done beside the loop. Nothing is appended before."""
        look = connection.look
        if look is not None:
            if look.verdicts is None:
                raise Hold  # something else woke the connection meanwhile
            connection.look = None
            return look
        found: dict[int, Verdict] | None = None
        large: list[tuple[int, Partition, int, int]] = []
        inline = InlineWork()
        for key, partitions in batches:
            for index, start, stop in partitions:
                batch = view[start:stop]
                compressed, too_much = inline.take(batch)
                if not (compressed or too_much) and stop - start <= INLINE_BYTES:
                    continue
                partition = self._partition(key, index, version)
                if partition is None:
                    continue
                if too_much or is_large(batch, partition.config):
                    large.append((start - position, partition, start, stop))
                elif compressed:
                    if found is None:
                        found = {}
                    try:
                        found[start - position] = partition.admit(
                            batch, limit=INLINE_DECOMPRESSED_BYTES
                        )
                    except OversizedBatchError:
                        large.append((start - position, partition, start, stop))
                    except TailraceError as error:
                        found[start - position] = error
        if not large:
            look = Look(denied)
            look.verdicts = found
            return look
        work = [(at, owner, bytearray(view[start:stop])) for at, owner, start, stop in large]
        # What was found here lies in the receive buffer, which may move while the request waits.
        known = {at: each for at, each in (found or {}).items() if isinstance(each, TailraceError)}

        connection.look = look = Look(denied)

        def done(verdicts: dict[int, Verdict]) -> None:
            look.verdicts = {**known, **verdicts}
            connection.unmute()

        self._broker.inspector.inspect(work, done)
        raise Hold

    def _go_on_later(self, connection: Connection, look: Look) -> None:
        """Let others have their turn; raises Hold. The rest of the batches is appended then."""
        # An inline verdict lies in the receive buffer, which may move: it is found once more.
        look.verdicts = {
            at: each
            for at, each in (look.verdicts or {}).items()
            if isinstance(each, TailraceError) or isinstance(each.batch, bytearray)
        }
        connection.look = look
        self._broker.loop.call_later(0, connection.unmute)
        raise Hold

    def _braked(
        self, batches: list[tuple[bytes, list[tuple[int, int, int]]]], version: int
    ) -> list[str]:
        """Topics of a request that have a rule about slow consumers."""
        names = []
        for key, _ in batches:
            topic = self._topic(key, version)
            if topic is not None and topic.name in self._broker.pressure.topics:
                names.append(topic.name)
        return names

    def _held(self, connection: Connection, names: list[str], timeout_ms: int) -> bool:
        """Whether a request has waited too long; raises Hold to let it wait."""
        waits = self._broker.pressure.before(connection, names, timeout_ms)
        if waits:
            raise Hold
        return waits is not None

    def _join(
        self,
        connection: Connection,
        transactional_id: str,
        view: memoryview,
        batches: list[tuple[bytes, list[tuple[int, int, int]]]],
        version: int,
    ) -> None:
        """Let all partitions of a request join its transaction with one record of its state;
        each by itself would write one that names all before it."""
        if sum(len(ranges) for _, ranges in batches) < 2:
            return
        producers: dict[tuple[int, int], list[Partition]] = {}
        for key, ranges in batches:
            for index, start, stop in ranges:
                partition = self._partition(key, index, version)
                producer = _producer_of(view[start:stop])
                if (
                    partition is not None
                    and producer is not None
                    and write_refusal(partition.topic, project=connection.project) is None
                ):
                    producers.setdefault(producer, []).append(partition)
        for (producer_id, epoch), partitions in producers.items():
            self._loaded_gate().join(transactional_id, producer_id, epoch, partitions)

    def _loaded_gate(self) -> TransactionGate:
        if self.gate is None:
            _ = self._broker.coordination  # loading it sets the gate
        assert self.gate is not None
        return self.gate

    def _partition(self, key: bytes, index: int, version: int) -> Partition | None:
        if version >= TOPIC_IDS:
            return self._broker.partition_by_id(key, index)
        return self._broker.partition_by_name(key, index)

    def _append(
        self,
        connection: Connection,
        key: bytes,
        index: int,
        records: memoryview,
        transactional_id: str | None,
        acks: int,
        version: int,
        looked_at: Verdict | None,
    ) -> tuple[Result, Partition | None]:
        broker = self._broker
        partition = self._partition(key, index, version)
        if partition is None:
            code: int = (
                ErrorCode.UNKNOWN_TOPIC_ID
                if version >= TOPIC_IDS and not broker.knows_id(key)
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            return (index, code, -1, -1, -1, None), None
        if acks not in (0, 1, -1):
            return (index, ErrorCode.INVALID_REQUIRED_ACKS, -1, -1, -1, None), None
        why = write_refusal(partition.topic, project=connection.project)
        if why is not None:
            return (index, ErrorCode.INVALID_TOPIC_EXCEPTION, -1, -1, -1, Refusal(why)), None
        try:
            producer = _producer_of(records)
            if producer is not None:
                if transactional_id is None and broker.authorizer is not None:
                    # Nobody was asked whether this producer may write.
                    code = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                    return (index, code, -1, -1, -1, None), None
                code = self._loaded_gate().check_produce(
                    transactional_id,
                    *producer,
                    partition,
                    implicit=version >= IMPLICIT_TRANSACTIONS,
                    abortable=version >= ABORTABLE_TRANSACTIONS,
                )
                if code:
                    return (index, code, -1, -1, -1, None), None
            if looked_at is None:
                appended = partition.append(records)
            elif isinstance(looked_at, TailraceError):
                raise looked_at
            else:
                appended = partition.append_admitted(looked_at)
        except TailraceError as error:
            code = getattr(error, "kafka_code", int(ErrorCode.UNKNOWN_SERVER_ERROR))
            broker.metrics.traffic(partition.topic).failed += 1
            if code == ErrorCode.KAFKA_STORAGE_ERROR:
                broker.storage_failed(partition, error)
            refusal = Refusal(error.message, getattr(error, "refused", ()))
            return (index, code, -1, -1, partition.log_start_offset, refusal), None
        broker.grew(partition, len(records), appended.last_offset - appended.base_offset + 1)
        return (
            index,
            0,
            appended.base_offset,
            appended.log_append_time,
            partition.log_start_offset,
            None,
        ), partition

    def _answer_when_synced(
        self,
        connection: Connection,
        version: int,
        correlation_id: int,
        topics: list[tuple[bytes, list[Result]]],
        partitions: list[Partition],
        pause: float,
    ) -> None:
        waiting = _SyncedAnswer(
            connection,
            connection.open_slot(),
            version,
            correlation_id,
            topics,
            len(partitions),
            pause,
        )
        for partition in partitions:
            self._broker.when_durable(partition, waiting.synced(partition))


class _SyncedAnswer:
    """An acknowledgement that waits for the last of its partitions to be on the disk."""

    __slots__ = (
        "_connection", "_correlation_id", "_left", "_pause", "_slot", "_topics", "_version",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        slot: Slot,
        version: int,
        correlation_id: int,
        topics: list[tuple[bytes, list[Result]]],
        left: int,
        pause: float,
    ) -> None:
        self._connection = connection
        self._slot = slot
        self._version = version
        self._correlation_id = correlation_id
        self._topics = topics
        self._left = left
        self._pause = pause

    def synced(self, partition: Partition) -> Callable[[Exception | None], None]:
        """The callback for one partition."""

        def done(error: Exception | None) -> None:
            if error is not None:
                code = int(ErrorCode.KAFKA_STORAGE_ERROR)
                for _, results in self._topics:
                    results[:] = [
                        row if row[1] else (row[0], code, -1, -1, -1, Refusal(str(error)))
                        for row in results
                    ]
            self._left -= 1
            if self._left == 0:
                frame = encode_response(
                    self._version, self._correlation_id, self._topics, self._pause
                )
                self._connection.fill(self._slot, frame)

        return done


def _producer_of(records: memoryview) -> tuple[int, int] | None:
    """Id and epoch of the producer of a transactional batch; None for any other."""
    if len(records) <= _PRODUCER_AT + 10:
        return None
    (attributes,) = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)
    if not attributes & _TRANSACTIONAL:
        return None
    producer_id, epoch = _PRODUCER.unpack_from(records, _PRODUCER_AT)
    return producer_id, epoch


def decode_request(
    view: memoryview, position: int, end: int, version: int
) -> tuple[str | None, int, int, list[tuple[bytes, list[tuple[int, int, int]]]]]:
    """Transactional id, acks, time-out, and per topic (name or id) the index and range of
    each batch.

    The whole frame is checked before anything of it is used.
    """
    flexible = version >= FLEXIBLE
    transactional_id, position = _nullable_text(view, position, flexible)
    acks, timeout_ms = _ACKS.unpack_from(view, position)
    count, position = _count(view, position + 6, end, flexible)
    topics: list[tuple[bytes, list[tuple[int, int, int]]]] = []
    named: set[tuple[bytes, int]] = set()
    left = ELEMENTS_LIMIT
    for _ in range(count):
        if version >= TOPIC_IDS:
            size = 16
        elif flexible:
            size, position = read_varint(view, position)
            size -= 1
        else:
            (size,) = _SHORT.unpack_from(view, position)
            position += 2
        if size < 0:
            raise DecodeError("a topic without a name")
        key = bytes(view[position : position + size])
        partition_count, position = _count(view, position + size, end, flexible)
        left -= 1 + partition_count
        if left < 0:
            raise DecodeError(TOO_MANY_ELEMENTS)
        partitions: list[tuple[int, int, int]] = []
        for _ in range(partition_count):
            if flexible:
                (index,) = _COUNT.unpack_from(view, position)
                size, position = read_varint(view, position + 4)
                size -= 1
            else:
                index, size = _INDEX_SIZE.unpack_from(view, position)
                position += 8
            start = position
            position += max(size, 0)
            if position > end:
                raise DecodeError("records past the end")
            partitions.append((index, start, position))
            if (key, index) in named:
                raise DecodeError("a partition is named twice")
            named.add((key, index))
            if flexible:
                position = skip_tags(view, position) if view[position] else position + 1
        topics.append((key, partitions))
        if flexible:
            position = skip_tags(view, position) if view[position] else position + 1
    if position > end:
        raise DecodeError("the request is longer than its frame")
    return transactional_id, acks, timeout_ms, topics


def _denied(
    key: bytes, partitions: list[tuple[int, int, int]], code: int
) -> tuple[bytes, list[Result]]:
    """The answer for a topic that the sender may not write."""
    return key, [(index, code, -1, -1, -1, None) for index, _, _ in partitions]


def _timed_out(
    batches: list[tuple[bytes, list[tuple[int, int, int]]]],
) -> list[tuple[bytes, list[Result]]]:
    """The answer to a request that waited too long for a slow group; nothing was appended."""
    code = int(ErrorCode.REQUEST_TIMED_OUT)
    return [
        (key, [(index, code, -1, -1, -1, Refusal(SLOW_GROUP)) for index, _, _ in partitions])
        for key, partitions in batches
    ]


def _nullable_text(view: memoryview, position: int, flexible: bool) -> tuple[str | None, int]:
    if flexible:
        size, position = read_varint(view, position)
        size -= 1
    else:
        (size,) = _SHORT.unpack_from(view, position)
        position += 2
    if size < 0:
        return None, position
    return str(view[position : position + size], "utf-8"), position + size


def _count(view: memoryview, position: int, end: int, flexible: bool) -> tuple[int, int]:
    """The length of an array; every element takes at least a byte of what is left."""
    if flexible:
        count, position = read_varint(view, position)
        count -= 1
    else:
        (count,) = _COUNT.unpack_from(view, position)
        position += 4
    if count > end - position:
        raise DecodeError("an array is longer than its frame")
    return max(count, 0), position


def encode_response(
    version: int,
    correlation_id: int,
    topics: list[tuple[bytes, list[Result]]],
    pause: float = 0.0,
) -> bytearray:
    """The whole frame of a Produce response; `pause` is the seconds a client is throttled."""
    out = bytearray(_FRAME.pack(0, correlation_id))
    if version >= FLEXIBLE:
        out.append(0)
        write_varint(out, len(topics) + 1)
        for key, results in topics:
            if version < TOPIC_IDS:
                write_varint(out, len(key) + 1)
            out += key
            write_varint(out, len(results) + 1)
            for index, error, base, time, start, refusal in results:
                out += _RESULT.pack(index, error, base, time, start)
                if refusal is None:
                    out += b"\x01\0\0"
                    continue
                write_varint(out, len(refusal.records) + 1)
                for at in refusal.records:
                    out += _COUNT.pack(at) + b"\0\0"
                data = refusal.message.encode()
                write_varint(out, len(data) + 1)
                out += data
                out.append(0)
            out.append(0)
        out += _COUNT.pack(round(pause * 1000))
        out.append(0)
    else:
        out += _COUNT.pack(len(topics))
        for key, results in topics:
            out += _SHORT.pack(len(key))
            out += key
            out += _COUNT.pack(len(results))
            for index, error, base, time, start, refusal in results:
                if version >= 5:
                    out += _RESULT.pack(index, error, base, time, start)
                else:
                    out += _RESULT_V3.pack(index, error, base, time)
                if version >= 8 and refusal is None:
                    out += b"\0\0\0\0\xff\xff"
                elif version >= 8 and refusal is not None:
                    out += _COUNT.pack(len(refusal.records))
                    for at in refusal.records:
                        out += _COUNT.pack(at) + b"\xff\xff"
                    data = refusal.message.encode()[:32000]
                    out += _SHORT.pack(len(data))
                    out += data
        out += _COUNT.pack(round(pause * 1000))
    _COUNT.pack_into(out, 0, len(out) - 4)
    return out


def install(broker: Broker) -> Produce:
    """Route Produce to a new handler."""
    handler = Produce(broker)
    broker.router.add_frames(Route(ApiKey.PRODUCE, MINIMUM, MAXIMUM, _never), handler.handle)
    return handler


def _never(request: object) -> None:
    raise AssertionError("produce is served from its frame")
