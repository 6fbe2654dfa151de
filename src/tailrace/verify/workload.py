"""The load: producers of three kinds, a group that rebalances, two readers without a group.

    plain-P         acks=all, no retries: one per partition
    idempotent-P    acks=all, retried with the same numbers: one per partition
    transactional-N transactions over several partitions, some aborted
    member-N        a group, one of whose members leaves and comes back (librdkafka)
    reader-wire     reads every partition from its start (our own wire)
    reader-rdkafka  the same (librdkafka)

Each has a thread and writes what it sees into a `Recorder`. The load goes on through every
fault: an error of the log is an outcome that is recorded, never an end.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tailrace.client.consumer import Consumer
from tailrace.client.errors import ClientError, OffsetOutOfRangeError
from tailrace.client.fetcher import Fetcher
from tailrace.client.log import RemoteLog
from tailrace.client.record import Place
from tailrace.client.writer import TransactionalWriter
from tailrace.verify.history import PAYLOAD_BYTES, Status, decode_payload, encode_payloads
from tailrace.verify.recorder import Recorder
from tailrace.verify.sending import PartitionSender

ROUNDS_A_SECOND = 20
AT_ONCE = 500  # records of a batch without a rate
ABORTED_OF_TEN = 2
SLICE = 0.2
AFTER_ERROR = 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """How much, and with which settings."""

    rate: int = 2_000  # records a second by all producers together; 0: as many as can be
    record_bytes: int = 100
    transactional: int = 2
    members: int = 3
    stay_seconds: float = 8.0  # between the departures of a member
    session_seconds: float = 10.0
    request_seconds: float = 30.0
    delivery_seconds: float = 120.0

    @property
    def settings(self) -> dict[str, object]:
        return {
            "rate": self.rate,
            "record.bytes": max(self.record_bytes, PAYLOAD_BYTES),
            "acks": "all",
            "request.timeout.ms": int(self.request_seconds * 1000),
            "delivery.timeout.ms": int(self.delivery_seconds * 1000),
            "session.timeout.ms": int(self.session_seconds * 1000),
        }


class Workload:
    """Threads on one topic, from `start` until `stop_writing` and `stop`."""

    def __init__(
        self,
        address: str,
        topic: str,
        partitions: int,
        recorder: Recorder,
        load: Load,
        probe: Callable[[int, int], None] = lambda partition, offset: None,
    ) -> None:
        self.group = f"{topic}-group"
        self._address = address
        self._topic = topic
        self._partitions = partitions
        self._recorder = recorder
        self._load = load
        self._probe = probe
        self._size = max(load.record_bytes, PAYLOAD_BYTES)
        self._written = threading.Event()  # producers end
        self._ended = threading.Event()  # everything ends
        self._calm = threading.Event()  # no more departures
        self.departures = 0
        self._reached = {name: [-1] * partitions for name in (self.group, "wire", "rdkafka")}
        self._producing: list[threading.Thread] = []
        self._consuming: list[threading.Thread] = []
        # Connections that are lost are what this is about; nobody needs a line for each.
        self._log = RemoteLog(address, {"log_level": 0})

    def start(self) -> None:
        each_rate = self._load.rate / (2 * self._partitions + self._load.transactional)
        for partition in range(self._partitions):
            for kind in ("plain", "idempotent"):
                self._thread(self._producing, self._produce, kind, partition, each_rate)
        for number in range(self._load.transactional):
            self._thread(self._producing, self._transact, number, each_rate)
        for number in range(self._load.members):
            self._thread(self._consuming, self._belong, number)
        self._thread(self._consuming, self._follow_by_wire)
        self._thread(self._consuming, self._follow_by_rdkafka)

    def stop_writing(self) -> bool:
        """Ask all producers to end; True once they have."""
        self._written.set()
        self._calm.set()
        return not any(each.is_alive() for each in self._producing)

    def caught_up(self, ends: Sequence[int]) -> list[str]:
        """Who has not been given the last record of every partition (`ends`: its offset, −1
        if it has none)."""
        return [
            f"{name}: partition {partition} at {at[partition]}, its last record is {end}"
            for name, at in self._reached.items()
            for partition, end in enumerate(ends)
            if at[partition] < end
        ]

    def read_so_far(self) -> int:
        return len(self._recorder.polls)

    def stop(self, seconds: float = 60.0) -> bool:
        """Ask everything to end; whether it did within the time."""
        self._written.set()
        self._calm.set()
        self._ended.set()
        until = self._recorder.clock.monotonic() + seconds
        for thread in [*self._producing, *self._consuming]:
            thread.join(max(0.0, until - self._recorder.clock.monotonic()))
        self._log.close()
        return not any(each.is_alive() for each in [*self._producing, *self._consuming])

    def _thread(
        self, among: list[threading.Thread], work: Callable[..., None], *arguments: object
    ) -> None:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self._recorder.failed(error)

        thread = threading.Thread(target=run, name=f"verify {work.__name__}", daemon=True)
        among.append(thread)
        thread.start()

    # Producers -----------------------------------------------------------------

    def _pace(self, rate: float, wait: threading.Event) -> Callable[[int], None]:
        """Waits so that `rate` records a second are sent, without catching up what was lost."""
        clock = self._recorder.clock
        due = [clock.monotonic()]

        def pause(count: int) -> None:
            if rate <= 0:
                return
            now = clock.monotonic()
            due[0] = max(due[0] + count / rate, now - 1.0)
            if due[0] > now:
                wait.wait(due[0] - now)

        return pause

    def _batch(self, rate: float) -> int:
        return AT_ONCE if rate <= 0 else max(1, round(rate / ROUNDS_A_SECOND))

    def _produce(self, kind: str, partition: int, rate: float) -> None:
        recorder, idempotent = self._recorder, kind == "idempotent"
        sender = PartitionSender(
            self._address,
            self._topic,
            partition,
            idempotent=idempotent,
            retry_seconds=self._load.delivery_seconds if idempotent else 0.0,
            request_seconds=self._load.request_seconds,
            stopping=self._ended.is_set,
            clock=recorder.clock,
        )
        pause, count = self._pace(rate, self._written), self._batch(rate)
        producer, first = -1, 0
        try:
            while not self._written.is_set():
                if producer < 0:
                    try:
                        sender.begin()
                    except ClientError:
                        self._written.wait(AFTER_ERROR)
                        continue
                    producer, first = recorder.producer(f"{kind}-{partition}", kind), 0
                values = encode_payloads(recorder.run, producer, first, count, self._size)
                sent_at = recorder.now()
                outcome = sender.send(values)
                recorder.sent(
                    producer, first, count, partition, outcome.offset, outcome.status, sent_at
                )
                first += count
                if outcome.status is not Status.ACKNOWLEDGED:
                    producer = -1
                    self._written.wait(AFTER_ERROR)
                    continue
                if idempotent and outcome.offset >= 0:
                    self._probe(partition, outcome.offset + count - 1)
                pause(count)
        finally:
            sender.close()

    def _transact(self, number: int, rate: float) -> None:
        recorder = self._recorder
        chance = random.Random(number)
        pause = self._pace(rate, self._written)
        writer: TransactionalWriter | None = None
        producer, first = -1, 0
        try:
            while not self._written.is_set():
                try:
                    if writer is None:
                        writer = self._writer(number)
                        writer.init()
                        producer, first = (
                            recorder.producer(f"transactional-{number}", "transactional"),
                            0,
                        )
                    sent = self._one_transaction(writer, producer, first, rate, chance)
                except ClientError:
                    _abandon(writer)
                    writer = None
                    self._written.wait(AFTER_ERROR)
                    continue
                first += sent
                pause(sent)
        finally:
            _abandon(writer)

    def transactional_ids(self) -> list[str]:
        return [f"{self._topic}-{each}" for each in range(self._load.transactional)]

    def _writer(self, number: int) -> TransactionalWriter:
        return TransactionalWriter(
            self._address,
            self.transactional_ids()[number],
            timeout=timedelta(seconds=self._load.delivery_seconds),
            transaction_timeout=timedelta(seconds=30),
            create_topics=False,
            clock=self._recorder.clock,
        )

    def _one_transaction(
        self,
        writer: TransactionalWriter,
        producer: int,
        first: int,
        rate: float,
        chance: random.Random,
    ) -> int:
        """Write one, commit or abort it, and record what became of it; raises after that."""
        recorder = self._recorder
        parts = chance.sample(range(self._partitions), chance.randint(1, self._partitions))
        count = max(1, self._batch(rate) // len(parts))
        transaction = recorder.transaction()
        commit = chance.randrange(10) >= ABORTED_OF_TEN
        status = Status.ABORTED
        offsets: dict[int, list[tuple[int, int]]] = {}

        def written(place: Place, offset: int, records: int) -> None:
            offsets.setdefault(place[1], []).append((offset, records))

        writer.on_written = written
        asked_at = sent_at = recorder.now()
        try:
            sequence = first
            for partition in parts:
                values = encode_payloads(recorder.run, producer, sequence, count, self._size)
                writer.send_columns(self._topic, partition, None, values)
                sequence += count
            writer.flush()
            if not commit:
                writer.abort()
                return sequence - first
            asked_at = recorder.now()
            status = Status.UNKNOWN
            writer.commit()
            status = Status.ACKNOWLEDGED
            return sequence - first
        finally:
            writer.on_written = None
            sequence = first
            for partition in parts:
                told = offsets.get(partition, [])
                whole = len(told) == 1 and told[0][1] == count
                recorder.sent(
                    producer, sequence, count, partition, told[0][0] if whole else -1, status,
                    sent_at, transaction=transaction,
                )  # fmt: skip
                sequence += count
            recorder.transactions.extend(
                transaction=[transaction], asked_at=[asked_at], answered_at=[recorder.now()]
            )

    # Consumers -----------------------------------------------------------------

    def _belong(self, number: int) -> None:
        """A member of the group; the last one leaves now and then and comes back."""
        client = f"member-{number}"
        leaves = number == self._load.members - 1
        clock = self._recorder.clock
        while not self._ended.is_set():
            listener = _Sessions()
            try:
                with self._log.consumer(
                    self.group,
                    [self._topic],
                    listener=listener,
                    auto_commit_interval_ms=500,
                    session_timeout_ms=int(self._load.session_seconds * 1000),
                    heartbeat_interval_ms=max(100, int(self._load.session_seconds * 250)),
                    max_poll_records=2_000,
                    partition_assignment_strategy="range",
                ) as consumer:
                    until = clock.monotonic() + self._load.stay_seconds
                    while not self._ended.is_set():
                        if leaves and not self._calm.is_set() and clock.monotonic() > until:
                            self.departures += 1
                            break
                        self._poll(consumer, client, self.group, listener)
            except ClientError:
                pass
            self._ended.wait(AFTER_ERROR)

    def _follow_by_rdkafka(self) -> None:
        everything = list(range(self._partitions))
        while not self._ended.is_set():
            sessions = _Sessions()
            sessions.consumer = self._recorder.consumer("reader-rdkafka", None, everything)
            try:
                with self._log.consumer(
                    partitions={(self._topic, each): 0 for each in everything},
                    enable_auto_commit=False,
                    auto_offset_reset="none",
                    max_poll_records=2_000,
                ) as consumer:
                    while not self._ended.is_set():
                        self._poll(consumer, "reader-rdkafka", "rdkafka", sessions)
            except OffsetOutOfRangeError:
                # The log lost what we have read: from its start again, under another number.
                self._reached["rdkafka"] = [-1] * self._partitions
                continue
            self._recorder.read_to_end(sessions.consumer, everything)

    def _poll(self, consumer: Consumer, client: str, lane: str, sessions: _Sessions) -> None:
        recorder = self._recorder
        try:
            records = consumer.poll(SLICE)
        except OffsetOutOfRangeError:
            raise
        except ClientError:
            self._ended.wait(AFTER_ERROR)
            return
        if not records:
            return
        if sessions.consumer < 0:
            sessions.consumer = recorder.consumer(client, lane)
        names = [decode_payload(recorder.run, each.value) for each in records]
        recorder.polls.extend(
            consumer=[sessions.consumer] * len(records),
            partition=[each.partition for each in records],
            offset=[each.offset for each in records],
            producer=[name[0] for name in names],
            sequence=[name[1] for name in names],
            polled_at=[recorder.now()] * len(records),
        )
        reached = self._reached[lane]
        for each in records:
            if each.offset > reached[each.partition]:
                reached[each.partition] = each.offset

    def _follow_by_wire(self) -> None:
        recorder, everything = self._recorder, range(self._partitions)
        with Fetcher(self._address, timeout=5.0, clock=recorder.clock) as fetcher:
            while not self._ended.is_set():
                number = recorder.consumer("reader-wire", None, everything)
                positions = [0] * self._partitions
                try:
                    while not self._ended.is_set():
                        if not self._look(fetcher, number, positions):
                            self._ended.wait(0.01)
                except OffsetOutOfRangeError:
                    self._reached["wire"] = [-1] * self._partitions  # as above
                    continue
                recorder.read_to_end(number, everything)

    def _look(self, fetcher: Fetcher, number: int, positions: list[int]) -> bool:
        """One fetch of every partition; whether there was something."""
        moved = False
        for partition in range(self._partitions):
            try:
                found = fetcher.fetch(self._topic, partition, positions[partition])
            except OffsetOutOfRangeError:
                raise
            except ClientError:
                continue
            positions[partition] = found.following
            if not found.records:
                continue
            moved = True
            names = [decode_payload(self._recorder.run, each.value) for each in found.records]
            count = len(names)
            self._recorder.polls.extend(
                consumer=[number] * count,
                partition=[partition] * count,
                offset=[each.offset for each in found.records],
                producer=[name[0] for name in names],
                sequence=[name[1] for name in names],
                polled_at=[self._recorder.now()] * count,
            )
            self._reached["wire"][partition] = found.records[-1].offset
        return moved


class _Sessions:
    """The number a consumer reads under; a rebalance ends it."""

    def __init__(self) -> None:
        self.consumer = -1

    def on_assigned(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.consumer = -1

    def on_revoked(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.consumer = -1

    def on_lost(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.consumer = -1


def _abandon(writer: TransactionalWriter | None) -> None:
    """Let go without ending the transaction: the next writer of the id does that."""
    if writer is not None:
        writer.cluster.close()
