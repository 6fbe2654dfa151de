"""Reading exact ranges of partitions, committed records only.

Followers and sinks do not subscribe: they are told by a tick row or a stored position
how far to read, and read exactly to there. `RangeReader` is that seam; `KafkaRanges`
stands on any Kafka-protocol broker, `tailrace.testing.changelogs.MemoryLog` on lists.

A range is finished when the *position* reaches its end, never by counting: transaction
markers, aborted and compacted records leave gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.clock import SYSTEM, Clock

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets `start` (included) to `end` (excluded) of one partition."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(slots=True)
class Chunk:
    """Some consecutive records of one partition, by column.

    `following` is where to go on reading: at least the last offset + 1, more when the
    records after it are known to be markers, aborted or compacted away.
    """

    topic: str
    partition: int
    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    following: int = 0


class RangeReader(Protocol):
    """Committed records of a log, by ranges of offsets."""

    def bounds(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """First offset and stable end of every partition; empty for an unknown topic."""

    def read(self, ranges: Sequence[Range]) -> Iterator[Chunk]:
        """All records of the ranges; order is kept within a partition.

        The last chunk of a range has `following` ≥ its end. A range that reaches past
        the stable end is waited for.
        """

    def follow(self, topic: str, partition: int, start: int, timeout: float) -> Chunk:
        """Records from `start` on, as soon as there are any; an empty chunk on time-out."""

    def close(self) -> None: ...


class KafkaRanges:
    """Ranges of a Kafka-protocol broker, read with librdkafka.

    Two consumers: one stays on the partition that is followed (long polls, so a new
    record arrives at once), one is moved from range to range. Neither joins a group.
    """

    def __init__(self, bootstrap: str, *, clock: Clock = SYSTEM) -> None:
        from confluent_kafka import Consumer

        self._clock = clock
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "tailrace-ranges",  # required by librdkafka, never joined
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 5,
            "fetch.queue.backoff.ms": 5,
            "topic.metadata.refresh.fast.interval.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 1000,
            "log_level": 0,
        }
        self._ranges: Any = Consumer(settings)
        self._tail: Any = Consumer(settings)
        self._tail_at: tuple[str, int, int] | None = None

    def bounds(self, topic: str) -> Mapping[int, tuple[int, int]]:
        from confluent_kafka import TopicPartition

        known = self._ranges.list_topics(topic, timeout=10).topics.get(topic)
        if known is None or known.error is not None:
            return {}
        return {
            partition: self._ranges.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=10
            )
            for partition in known.partitions
        }

    def read(self, ranges: Sequence[Range]) -> Iterator[Chunk]:
        from confluent_kafka import KafkaException, TopicPartition

        ends = {(r.topic, r.partition): r.end for r in ranges if r.end > r.start}
        if not ends:
            return
        self._ranges.assign(
            [TopicPartition(r.topic, r.partition, r.start) for r in ranges if r.end > r.start]
        )
        try:
            while ends:
                chunks: dict[tuple[str, int], Chunk] = {}
                for message in self._ranges.consume(20_000, timeout=0.02):
                    where = (message.topic(), message.partition())
                    error = message.error()
                    if error is not None and error.code() != error._PARTITION_EOF:
                        if error.retriable() or not error.fatal():
                            continue
                        raise KafkaException(error)
                    end = ends.get(where)
                    if end is None:
                        continue
                    chunk = chunks.get(where)
                    if chunk is None:
                        chunk = chunks[where] = Chunk(*where)
                    offset = message.offset()
                    if error is not None:
                        chunk.following = max(chunk.following, offset)
                        continue
                    if offset < end:
                        _append(chunk, message)
                    chunk.following = max(chunk.following, offset + 1)
                for where, chunk in chunks.items():
                    if where in ends and chunk.following >= ends[where]:
                        del ends[where]
                    yield chunk
        finally:
            self._ranges.unassign()

    def follow(self, topic: str, partition: int, start: int, timeout: float) -> Chunk:
        from confluent_kafka import TopicPartition

        if self._tail_at != (topic, partition, start):
            self._tail.assign([TopicPartition(topic, partition, start)])
            self._tail_at = (topic, partition, start)
        chunk = Chunk(topic, partition, following=start)
        until = self._clock.monotonic() + timeout
        while not chunk.offsets:
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            message = self._tail.poll(left)
            while message is not None:
                if message.error() is None:
                    _append(chunk, message)
                    chunk.following = message.offset() + 1
                if len(chunk.offsets) >= 10_000:
                    break
                message = self._tail.poll(0)
        self._tail_at = (topic, partition, chunk.following)
        return chunk

    def close(self) -> None:
        self._ranges.close()
        self._tail.close()


def _append(chunk: Chunk, message: Any) -> None:
    chunk.offsets.append(message.offset())
    chunk.keys.append(message.key())
    chunk.values.append(message.value())
    chunk.timestamps.append(message.timestamp()[1])
    chunk.headers.append(message.headers() or ())
