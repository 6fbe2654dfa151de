"""A synchronous transactional writer, for our broker and for Apache Kafka.

    with TransactionalWriter("127.0.0.1:9092", "tailrace.shop.ticks") as writer:
        writer.init()                                # fences and ends what came before
        writer.send("orders", None, b"1", b"…")      # kept here
        writer.flush()                               # written: {("orders", 0): next offset}
        writer.send_offsets("group", {("in", 0): 7})
        writer.commit()                              # or abort()

A transaction begins with the first record or offset and ends with `commit` or `abort`.
Everything that can be tried again is tried again here, until `timeout`; what comes out
is final. After any error but ProducerFencedError the transaction can only be aborted.

Two flows: with `transaction.version` 2 (KIP-890) a write adds its partition to the
transaction by itself and every end gives a new epoch; before it, partitions and groups
are announced first. The log says which it speaks. A log may still be ending the last
transaction when the next one begins (CONCURRENT_TRANSACTIONS): tried again after 1 ms.

Not for use from several threads. A crash leaves an open transaction, which the next
`init()` with the same id, or the time-out, aborts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Protocol

from tailrace.client.batches import Pending
from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, TRANSACTION, Cluster, TryAgain
from tailrace.client.connection import Opener, open_socket
from tailrace.client.errors import (
    BrokerUnavailableError,
    ClientError,
    ProducerFencedError,
    RequestError,
    TransactionStateError,
)
from tailrace.client.sender import (
    BUSY,
    BUSY_PAUSE,
    FENCED,
    BatchSender,
    OnWritten,
    Place,
    is_retriable,
)
from tailrace.clock import SYSTEM, Clock
from tailrace.records.batch import Buffer, Headers
from tailrace.records.partitioner import partition_for
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from tailrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from tailrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

INIT_PRODUCER_ID = APIS[ApiKey.INIT_PRODUCER_ID]
ADD_PARTITIONS = APIS[ApiKey.ADD_PARTITIONS_TO_TXN]
ADD_OFFSETS = APIS[ApiKey.ADD_OFFSETS_TO_TXN]
TXN_OFFSET_COMMIT = APIS[ApiKey.TXN_OFFSET_COMMIT]
END_TXN = APIS[ApiKey.END_TXN]


class Columns(Protocol):
    """An Arrow array of bytes."""

    def __len__(self) -> int: ...

    def to_pylist(self) -> list[bytes | None]: ...


class TransactionalWriter:
    """See the module. `batch_bytes` must stay below the topics' `max.message.bytes`;
    a batch the log finds too large is cut in two and tried again.
    `transaction_version=1` keeps to the older flow whatever the log offers."""

    def __init__(
        self,
        bootstrap: str,
        transactional_id: str,
        *,
        transaction_timeout: timedelta = timedelta(seconds=60),
        timeout: timedelta = timedelta(seconds=60),
        compression: str = "none",
        batch_bytes: int = 900_000,
        buffer_bytes: int = 8 * 1024 * 1024,
        create_topics: bool = True,
        transaction_version: int = 2,
        opener: Opener = open_socket,
        clock: Clock = SYSTEM,
    ) -> None:
        self.transactional_id = transactional_id
        self.cluster = Cluster(
            bootstrap,
            client_id=transactional_id,
            timeout=timeout.total_seconds(),
            opener=opener,
            clock=clock,
        )
        self._clock = clock
        self._transaction_timeout_ms = int(transaction_timeout.total_seconds() * 1000)
        self._sender = BatchSender(
            self.cluster,
            transactional_id,
            compression=compression,
            batch_bytes=batch_bytes,
            create_topics=create_topics,
            on_written=self._record_written,
            fenced=self._fenced,
        )
        self.on_written: OnWritten | None = None
        self._buffer_bytes = buffer_bytes
        self._create_topics = create_topics
        self._newest_version = transaction_version
        self._second_version = False
        self._pending: dict[Place, Pending] = {}
        self._pending_bytes = 0
        self._written: dict[Place, int] = {}
        self._added: set[Place] = set()
        self._groups: set[str] = set()
        self._begun = False
        self._sticky: dict[str, int] = {}
        self._failure: ClientError | None = None

    # The life of a writer ------------------------------------------------------

    def init(self) -> None:
        """Take over the transactional id: any earlier writer is fenced, and what it left
        open is aborted. May be called again after an error; buffered records are dropped."""
        self._drop()
        self._sender.become(-1, -1)
        self._initialise(-1, -1)
        self._failure = None

    @property
    def producer_id(self) -> int:
        """−1 before `init`."""
        return self._sender.producer_id

    @property
    def producer_epoch(self) -> int:
        return self._sender.producer_epoch

    def __enter__(self) -> TransactionalWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; an open transaction is aborted if that can be done."""
        if self.cluster.closed:
            return
        try:
            if self._begun and not isinstance(self._failure, ProducerFencedError):
                self.abort()
        except ClientError:
            pass  # the log will abort it after its time-out
        finally:
            self._drop()
            self.cluster.close()

    # Records -------------------------------------------------------------------

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | Mapping[str, bytes | None] = (),
        timestamp: int | None = None,
    ) -> None:
        """Keep a record for `flush`, which also happens when the buffer is full.

        Without a partition the key decides (murmur2, as Java's producer); without
        either, one partition per transaction is taken in turn.
        """
        self._check()
        if partition is None:
            partition = self.partition_of(topic, key)
        if headers and isinstance(headers, Mapping):
            headers = tuple(headers.items())
        place = (topic, partition)
        pending = self._pending.get(place)
        if pending is None:
            pending = self._pending[place] = Pending()
        before = pending.size_bytes
        if timestamp is None:
            timestamp = self._clock.wall_ms()
        pending.add(key, value, timestamp, headers)  # type: ignore[arg-type]
        self._pending_bytes += pending.size_bytes - before
        if self._pending_bytes > self._buffer_bytes:
            self.flush()

    def send_columns(
        self,
        topic: str,
        partition: int | None,
        keys: Sequence[bytes | None] | Columns | None,
        values: Sequence[bytes | None] | Columns,
        timestamps: Sequence[int] | int | None = None,
        headers: Sequence[Headers] | None = None,
        *,
        same_headers: Headers = (),
    ) -> None:
        """Keep many records: lists of bytes or Arrow binary arrays of equal length.

        `headers` are those of each record, or `same_headers` those of all. Arrow arrays for
        one partition, with one timestamp and without headers of each, stay Arrow: they
        become batches without a loop over records.
        """
        self._check()
        if (
            partition is not None
            and headers is None
            and not isinstance(values, Sequence)
            and not isinstance(keys, Sequence)
            and (timestamps is None or isinstance(timestamps, int))
        ):
            self._extend_columns((topic, partition), keys, values, timestamps, same_headers)
            return
        value_list = values if isinstance(values, Sequence) else values.to_pylist()
        count = len(value_list)
        if keys is None:
            key_list: Sequence[bytes | None] = [None] * count
        else:
            key_list = keys if isinstance(keys, Sequence) else keys.to_pylist()
        if timestamps is None:
            timestamps = self._clock.wall_ms()
        time_list = [timestamps] * count if isinstance(timestamps, int) else timestamps
        header_list: Sequence[Headers] = [same_headers] * count if headers is None else headers
        if not count == len(key_list) == len(time_list) == len(header_list):
            raise ValueError("columns differ in length")
        if partition is not None:
            self._extend((topic, partition), key_list, value_list, time_list, header_list)
        else:
            chosen: dict[int, list[int]] = {}
            for number, key in enumerate(key_list):
                chosen.setdefault(self.partition_of(topic, key), []).append(number)
            for index, numbers in chosen.items():
                self._extend(
                    (topic, index),
                    [key_list[number] for number in numbers],
                    [value_list[number] for number in numbers],
                    [time_list[number] for number in numbers],
                    [header_list[number] for number in numbers],
                )
        if self._pending_bytes > self._buffer_bytes:
            self.flush()

    def send_batch(self, topic: str, partition: int, batch: Buffer) -> None:
        """Keep a batch of another log, whose records are written as they are: without gaps, and
        with times of its producer. `client.batches.Whole` says what becomes of it."""
        self._check()
        pending = self._pending.setdefault((topic, partition), Pending())
        before = pending.size_bytes
        pending.add_batch(batch)
        self._pending_bytes += pending.size_bytes - before
        if self._pending_bytes > self._buffer_bytes:
            self.flush()

    def flush(self) -> dict[Place, int]:
        """Write everything kept, and wait until all of it is acknowledged.

        For every partition this transaction has written: the offset behind the last
        record, not counting the marker that will end the transaction.
        """
        self._check()
        try:
            self._flush()
        except ClientError as error:
            self._failure = error
            raise
        return dict(self._written)

    def send_offsets(
        self,
        group: str,
        offsets: Mapping[Place, int],
        *,
        generation: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        """Store a group's offsets with this transaction: they count when it commits."""
        self._check()
        if not offsets:
            return
        try:
            if not self._second_version and group not in self._groups:
                self._ask_coordinator(
                    ADD_OFFSETS,
                    AddOffsetsToTxnRequest(
                        self.transactional_id, self.producer_id, self.producer_epoch, group
                    ),
                    None,
                )
                self._groups.add(group)
            self._begun = True
            self._commit_offsets(group, offsets, generation, member_id, group_instance_id)
        except ClientError as error:
            self._failure = error
            raise

    # The end of a transaction --------------------------------------------------

    def commit(self) -> dict[Place, int]:
        """Write what is kept and make the transaction visible as a whole; what `flush`
        returned last. Without records and offsets this does nothing."""
        written = self.flush()
        if self._begun:
            try:
                self._end(commit=True)
            except ClientError as error:
                self._failure = error
                raise
        self._drop()
        return written

    def abort(self) -> None:
        """Give the transaction up. Also the way on after an error."""
        if isinstance(self._failure, ProducerFencedError):
            raise self._failure
        failed = self._failure is not None
        begun = self._begun
        self._drop()
        if begun:
            try:
                self._end(commit=False)
            except ClientError as error:
                self._failure = error
                raise
        if failed and not (begun and self._second_version):
            # Some batch may or may not have been written, so the next sequence number
            # is not known: a new epoch starts them all at 0.
            self._initialise(self.producer_id, self.producer_epoch)
        self._failure = None

    # Inside --------------------------------------------------------------------

    def _check(self) -> None:
        if self.producer_id < 0:
            raise TransactionStateError("the writer is not initialised", hint="call init() first")
        if self._failure is not None:
            if isinstance(self._failure, ProducerFencedError):
                raise self._failure
            raise TransactionStateError(
                "an earlier error ended this transaction",
                detail=str(self._failure),
                hint="call abort(), then begin again",
            ) from self._failure

    def _drop(self) -> None:
        self._pending.clear()
        self._pending_bytes = 0
        self._written.clear()
        self._added.clear()
        self._groups.clear()
        self._sticky.clear()
        self._begun = False

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has; it is made if it is missing and may be."""
        return len(self.cluster.topic(topic, create=self._create_topics).leaders)

    def partition_of(self, topic: str, key: bytes | None) -> int:
        """Where `send` puts a record without a partition."""
        count = self.partitions_of(topic)
        if key is not None:
            return partition_for(key, count)
        if topic not in self._sticky:
            self._sticky[topic] = self._clock.wall_ms() % count
        return self._sticky[topic]

    def _extend(
        self,
        place: Place,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers],
    ) -> None:
        if not values:
            return
        pending = self._pending.setdefault(place, Pending())
        before = pending.size_bytes
        pending.extend(keys, values, timestamps, headers)
        self._pending_bytes += pending.size_bytes - before

    def _extend_columns(
        self,
        place: Place,
        keys: Columns | None,
        values: Columns,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        from tailrace.records.columns import RecordColumns

        if keys is not None and len(keys) != len(values):
            raise ValueError("columns differ in length")
        if not len(values):
            return
        moment = self._clock.wall_ms() if timestamp is None else timestamp
        pending = self._pending.setdefault(place, Pending())
        before = pending.size_bytes
        pending.extend_columns(RecordColumns(keys, values, moment, headers))
        self._pending_bytes += pending.size_bytes - before
        if self._pending_bytes > self._buffer_bytes:
            self.flush()

    def _initialise(self, producer_id: int, producer_epoch: int) -> None:
        response = self._ask_coordinator(
            INIT_PRODUCER_ID,
            InitProducerIdRequest(
                self.transactional_id, self._transaction_timeout_ms, producer_id, producer_epoch
            ),
            5,
        )
        assert isinstance(response, InitProducerIdResponse)
        self._sender.become(response.producer_id, response.producer_epoch)
        features = self.cluster.coordinator(self.transactional_id, TRANSACTION).features
        offered = features.get("transaction.version", 0)
        self._second_version = min(offered, self._newest_version) >= 2

    def _ask_coordinator(self, api: Api, request: Message, highest: int | None) -> Message:
        """A request to the transaction coordinator, tried again while that makes sense."""

        def ask() -> Message:
            try:
                connection = self.cluster.coordinator(self.transactional_id, TRANSACTION)
                response = connection.request(api, request, highest)
            except BrokerUnavailableError:
                self.cluster.forget_coordinator(self.transactional_id, TRANSACTION)
                raise
            self._judge(_worst(response), api.module)
            return response

        return self.cluster.retry(ask, f"{api.module} of {self.transactional_id}")

    def _judge(self, error_code: int, action: str) -> None:
        """Nothing for 0; TryAgain or the final error for anything else."""
        if error_code == ErrorCode.NONE:
            return
        if error_code in BUSY:
            raise TryAgain(error_code, BUSY_PAUSE)
        if error_code in COORDINATOR_MOVED:
            self.cluster.forget_coordinator(self.transactional_id, TRANSACTION)
            raise TryAgain(error_code)
        if error_code in FENCED:
            raise self._fenced(error_code)
        if is_retriable(error_code):
            raise TryAgain(error_code)
        raise RequestError.of(error_code, f"{action} of {self.transactional_id}")

    def _fenced(self, error_code: int) -> RequestError:
        return RequestError.of(
            error_code,
            f'writer "{self.transactional_id}" was fenced',
            detail="a newer writer has this transactional id, "
            "or the transaction took longer than its time-out",
            hint="stop this writer; if it is the only one, begin again with init()",
        )

    def _flush(self) -> None:
        waiting = {place: pending for place, pending in self._pending.items() if len(pending)}
        if waiting:
            if not self._second_version:
                self._announce(waiting)
            self._begun = True
            self._sender.write(waiting, 12 if self._second_version else 11)
        self._pending.clear()
        self._pending_bytes = 0

    def _record_written(self, place: Place, base_offset: int, count: int) -> None:
        self._written[place] = base_offset + count
        if self.on_written is not None:
            self.on_written(place, base_offset, count)

    def _announce(self, places: Iterable[Place]) -> None:
        """Before version 2: add partitions to the transaction before writing to them."""
        new: dict[str, list[int]] = {}
        for topic, partition in places:
            if (topic, partition) not in self._added:
                new.setdefault(topic, []).append(partition)
        if not new:
            return
        self._begun = True
        self._ask_coordinator(
            ADD_PARTITIONS,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(topic, partitions) for topic, partitions in new.items()
                ],
            ),
            3,
        )
        self._added.update((topic, partition) for topic in new for partition in new[topic])

    def _commit_offsets(
        self,
        group: str,
        offsets: Mapping[Place, int],
        generation: int,
        member_id: str,
        group_instance_id: str | None,
    ) -> None:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(partition, offset, -1, "")
            )
        request = TxnOffsetCommitRequest(
            self.transactional_id,
            group,
            self.producer_id,
            self.producer_epoch,
            generation,
            member_id,
            group_instance_id,
            [
                TxnOffsetCommitRequestTopic(name=name, partitions=each)
                for name, each in topics.items()
            ],
        )

        def ask() -> None:
            try:
                connection = self.cluster.coordinator(group, GROUP)
                response = connection.request(
                    TXN_OFFSET_COMMIT, request, 5 if self._second_version else 4
                )
            except BrokerUnavailableError:
                self.cluster.forget_coordinator(group, GROUP)
                raise
            worst = _worst(response)
            if worst in COORDINATOR_MOVED:
                self.cluster.forget_coordinator(group, GROUP)
            self._judge(worst, f'offsets of group "{group}"')

        self.cluster.retry(ask, f'offsets of group "{group}"')

    def _end(self, *, commit: bool) -> None:
        response = self._ask_coordinator(
            END_TXN,
            EndTxnRequest(self.transactional_id, self.producer_id, self.producer_epoch, commit),
            5 if self._second_version else 4,
        )
        assert isinstance(response, EndTxnResponse)
        if self._second_version and response.producer_id >= 0:
            self._sender.become(response.producer_id, response.producer_epoch)


def _worst(response: Message) -> int:
    """The error code of a response, looking at its parts where it has none itself."""
    match response:
        case InitProducerIdResponse() | AddOffsetsToTxnResponse() | EndTxnResponse():
            return response.error_code
        case AddPartitionsToTxnResponse():
            parts = [
                each.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ]
        case TxnOffsetCommitResponse():
            parts = [each.error_code for topic in response.topics for each in topic.partitions]
        case _:
            raise TypeError(type(response).__name__)
    found = [code for code in parts if code != ErrorCode.NONE]
    # OPERATION_NOT_ATTEMPTED only tells that another partition failed.
    return next((code for code in found if code != ErrorCode.OPERATION_NOT_ATTEMPTED), 0) or (
        found[0] if found else 0
    )
