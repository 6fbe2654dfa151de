"""Reading exact ranges of the log, committed records only.

A range is finished when the position reaches its end, never by counting: transaction
markers, aborted and compacted records leave gaps. Records that retention removed before
they were read are an error (`DataLostError`), never fewer rows, and so is a batch that cannot
be read (`UnreadableBatchError`, with its place).
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from tailrace.client.errors import ClientError, DamagedBatchError, UnreadableBatchError
from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.errors import DataLostError, PipelineError
from tailrace.security import librdkafka_settings

BATCH_RECORDS = 50_000
# Without progress for so long, a range is looked at on our own wire: librdkafka passes over
# some broken batches without a word.
LOOK_SECONDS = 5.0
PATIENCE_SECONDS = 20.0
# librdkafka's codes for bytes it cannot make sense of: bad message, bad compression, not
# implemented, and the broker's corrupt message.
BROKEN = frozenset({-199, -198, -170, 2})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets `start` up to, not including, `end` of one partition; of the topic with this
    id, where it matters that it is no other one of the same name."""

    topic: str
    partition: int
    start: int
    end: int
    id: str | None = None


@dataclass(slots=True)
class Records:
    """Records of one partition, in order, column by column."""

    topic: str
    partition: int
    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    headers: list[Sequence[tuple[str, bytes | None]] | None] = field(default_factory=list)


class LogReader:
    """Reads ranges through librdkafka; joins no group. Owns a connection: close it."""

    def __init__(self, bootstrap: str, *, clock: Clock = SYSTEM) -> None:
        from confluent_kafka import Consumer

        self._clock = clock
        self._bootstrap = bootstrap
        self._consumer: Any = Consumer(
            {
                **librdkafka_settings(bootstrap),
                "group.id": "tailrace-reader",  # librdkafka wants one; it is never joined
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "check.crcs": True,
                "queued.min.messages": 200_000,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 5,
                "fetch.queue.backoff.ms": 2,
                "topic.metadata.refresh.fast.interval.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 1000,
                "allow.auto.create.topics": False,
                "log_level": 0,
            }
        )

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic; none if it does not exist."""
        found = self._patiently(partial(self._consumer.list_topics, topic, timeout=10))
        known = found.topics.get(topic)
        return [] if known is None or known.error is not None else sorted(known.partitions)

    def topics(self) -> dict[str, list[int]]:
        """Every topic and its partitions."""
        listing = self._patiently(partial(self._consumer.list_topics, timeout=10)).topics
        return {name: sorted(topic.partitions) for name, topic in listing.items()}

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """First offset and stable end of every partition; empty for an unknown topic."""
        return {
            partition: self._patiently(partial(self._watermarks, topic, partition))
            for partition in self.partitions(topic)
        }

    def written_ends(self, topic: str) -> dict[int, int]:
        """The end of every partition, with what is not committed yet."""
        from tailrace.client.admin import Admin

        partitions = self.partitions(topic)
        if not partitions:
            return {}
        with Admin(self._bootstrap) as admin:
            found = admin.end_offsets([(topic, each) for each in partitions], "read_uncommitted")
        return {partition: found[topic, partition] for partition in partitions}

    def _watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        from confluent_kafka import TopicPartition

        first, end = self._consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=10
        )
        return int(first), int(end)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask again while a topic just made has no leader, or a broker is gone."""
        from confluent_kafka import KafkaError, KafkaException

        passing = (
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.LEADER_NOT_AVAILABLE,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC,  # metadata of a broker that has just started
            KafkaError._UNKNOWN_PARTITION,
            KafkaError._TRANSPORT,
            KafkaError._TIMED_OUT,
            KafkaError._ALL_BROKERS_DOWN,
            getattr(KafkaError, "_DESTROY_BROKER", -137),  # its broker has left the cluster
        )
        until = self._clock.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return ask()
            except KafkaException as problem:
                if problem.args[0].code() not in passing or self._clock.monotonic() > until:
                    raise
                self._clock.sleep(0.05)

    def offsets_at(self, topic: str, wall_ms: int) -> dict[int, int]:
        """The first offset at or after a time, per partition; the end where there is none."""
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(topic, p, wall_ms) for p in self.partitions(topic)]
        ask = partial(self._consumer.offsets_for_times, asked, timeout=10)
        found = {t.partition: t.offset for t in self._patiently(ask)}
        ends = self.bounds(topic)
        return {p: offset if offset >= 0 else ends[p][1] for p, offset in found.items()}

    def read(self, ranges: Iterable[Range], *, timeout: float = 60.0) -> Generator[Records]:
        """All committed records of the ranges, in pieces; order is kept per partition.

        A range may end where nothing is committed yet: it is waited for, `timeout`
        seconds without any progress at most.
        """
        from confluent_kafka import KafkaError, TopicPartition

        waiting = {(r.topic, r.partition): r for r in ranges if r.end > r.start}
        if not waiting:
            return
        self._consumer.assign(
            [TopicPartition(r.topic, r.partition, r.start) for r in waiting.values()]
        )
        progress_at = looked_at = self._clock.monotonic()
        reached = {where: wanted.start for where, wanted in waiting.items()}
        try:
            while waiting:
                messages = self._consumer.consume(BATCH_RECORDS, timeout=0.02)
                if messages:
                    progress_at = looked_at = self._clock.monotonic()
                elif self._clock.monotonic() - progress_at > timeout:
                    raise _stuck(waiting.values(), timeout)
                elif self._clock.monotonic() - looked_at > LOOK_SECONDS:
                    looked_at = self._clock.monotonic()
                    for where in waiting:
                        self._look(*where, reached[where])
                pieces: dict[tuple[str, int], Records] = {}
                for message in messages:
                    where = (message.topic(), message.partition())
                    wanted = waiting.get(where)
                    if wanted is None:
                        continue
                    error = message.error()
                    if error is not None:
                        code = error.code()
                        if code == KafkaError._PARTITION_EOF:
                            if message.offset() >= wanted.end:
                                del waiting[where]
                        elif code in (
                            KafkaError._AUTO_OFFSET_RESET,
                            KafkaError.OFFSET_OUT_OF_RANGE,
                            KafkaError.UNKNOWN_TOPIC_OR_PART,
                            KafkaError._UNKNOWN_TOPIC,
                            KafkaError._UNKNOWN_PARTITION,
                        ):
                            raise _lost(wanted, error.str())
                        elif code in BROKEN:
                            self._look(*where, reached[where])
                        continue
                    offset = message.offset()
                    if offset >= wanted.end:
                        del waiting[where]
                        continue
                    piece = pieces.get(where)
                    if piece is None:
                        piece = pieces[where] = Records(*where)
                    reached[where] = offset + 1
                    piece.offsets.append(offset)
                    piece.keys.append(message.key())
                    piece.values.append(message.value())
                    piece.timestamps.append(message.timestamp()[1])
                    piece.headers.append(message.headers())
                    if offset + 1 >= wanted.end:
                        del waiting[where]
                yield from pieces.values()
        finally:
            self._consumer.unassign()

    def _look(self, topic: str, partition: int, offset: int) -> None:
        """Raise UnreadableBatchError or DamagedBatchError if what lies at `offset` is either."""
        from tailrace.client.fetcher import Fetcher

        try:
            with Fetcher(self._bootstrap, timeout=LOOK_SECONDS) as fetcher:
                fetcher.fetch(topic, partition, offset)
        except (UnreadableBatchError, DamagedBatchError):
            raise
        except ClientError:
            pass  # the log is away, or has nothing there: that is waited for elsewhere

    def last_value(self, topic: str, partition: int, key: bytes) -> bytes | None:
        """The newest committed value under `key`, searched from the end backwards; None if
        there is none, or if it was deleted."""
        bounds = self.bounds(topic).get(partition)
        if bounds is None:
            return None
        first, end = bounds
        length, until = 64, end
        while until > first:
            start = max(first, end - length)
            found: list[bytes | None] = []
            for records in self.read([Range(topic, partition, start, until)]):
                for name, value in zip(records.keys, records.values, strict=True):
                    if name == key:
                        found = [value]
            if found:
                return found[0]
            until, length = start, length * 8
        return None


def _lost(wanted: Range, reason: str) -> DataLostError:
    return DataLostError(
        f"records of {wanted.topic}/{wanted.partition} from offset {wanted.start} are gone",
        detail=reason,
        hint="rebuild what reads it, or `tailrace pipeline reset NAME` to where the topic begins",
    )


def _stuck(waiting: Iterable[Range], seconds: float) -> PipelineError:
    places = ", ".join(f"{r.topic}/{r.partition} up to {r.end}" for r in waiting)
    return PipelineError(
        f"the log gave no records for {seconds:g} s",
        detail=f"still waiting for {places}",
        hint="is a transaction left open, or the broker overloaded? `tailrace topic describe`",
    )


# A Python worker serves many tasks: keep its connection. Only speed depends on it.
_kept: dict[tuple[int, str], LogReader] = {}


def kept_reader(bootstrap: str) -> LogReader:
    """This process's reader for an address, opened once."""
    where = (os.getpid(), bootstrap)
    if where not in _kept:
        _kept[where] = LogReader(bootstrap)
    return _kept[where]


@atexit.register
def _close_kept() -> None:
    for (pid, _), reader in _kept.items():
        if pid == os.getpid():
            reader.close()
    _kept.clear()


def read_all(
    reader: LogReader, topic: str, starts: Mapping[int, int] | None = None
) -> Iterator[Records]:
    """A whole topic up to its stable end, from `starts` where given."""
    starts = starts or {}
    return reader.read(
        Range(topic, partition, max(first, starts.get(partition, first)), end)
        for partition, (first, end) in reader.bounds(topic).items()
    )
