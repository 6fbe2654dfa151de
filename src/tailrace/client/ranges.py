"""Reading exact ranges of partitions, committed records only.

Followers and sinks do not subscribe: they are told by a tick row or a stored position
how far to read, and read exactly to there. `RangeReader` is that seam; `KafkaRanges`
stands on any Kafka-protocol broker, `tailrace.testing.changelogs.MemoryLog` on lists.

A range is finished when the *position* reaches its end, never by counting: transaction
markers, aborted and compacted records leave gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tailrace.clock import SYSTEM, Clock

if TYPE_CHECKING:
    from tailrace.client.errors import UnreadableBatchError
    from tailrace.records.batch import Record

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
    """Ranges of a Kafka-protocol broker, read on our own wire: no group, no threads, and
    the first record is there one request after it was asked for."""

    def __init__(self, bootstrap: str, *, timeout: float = 10.0, clock: Clock = SYSTEM) -> None:
        from tailrace.client.admin import Admin
        from tailrace.client.fetcher import Fetcher

        self._fetcher = Fetcher(bootstrap, timeout=timeout, clock=clock)
        self._admin = Admin.over(self._fetcher.cluster)
        self._clock = clock

    def bounds(self, topic: str) -> Mapping[int, tuple[int, int]]:
        known = self._admin.describe_topic(topic)
        if known is None:
            return {}
        places = [(topic, partition) for partition in range(len(known.leaders))]
        starts = self._admin.start_offsets(places)
        ends = self._admin.end_offsets(places)
        return {place[1]: (starts[place], ends[place]) for place in places}

    def read(
        self,
        ranges: Sequence[Range],
        *,
        unreadable: Callable[[UnreadableBatchError], None] | None = None,
    ) -> Iterator[Chunk]:
        """See `RangeReader`. Batches that cannot be read are told to `unreadable` and passed
        over; without it they are an error."""
        from tailrace.client.errors import UnreadableBatchError

        for wanted in ranges:
            position = wanted.start
            while position < wanted.end:
                try:
                    fetched = self._fetcher.fetch(
                        wanted.topic, wanted.partition, position, wait=0.5, end=wanted.end
                    )
                except UnreadableBatchError as error:
                    if unreadable is None:
                        raise
                    unreadable(error)
                    position = error.last_offset + 1
                    continue
                position = fetched.following
                yield _chunk(wanted.topic, wanted.partition, fetched.records, position)

    def follow(self, topic: str, partition: int, start: int, timeout: float) -> Chunk:
        from tailrace.client.errors import UnknownTopicError

        until = self._clock.monotonic() + timeout
        position = start
        while True:
            left = max(0.0, until - self._clock.monotonic())
            try:
                fetched = self._fetcher.fetch(topic, partition, position, wait=left)
            except UnknownTopicError:
                # Not made yet; there is nothing to follow until somebody writes to it.
                self._clock.sleep(min(left, 0.1))
                return Chunk(topic, partition, following=start)
            position = fetched.following
            if fetched.records or self._clock.monotonic() >= until:
                return _chunk(topic, partition, fetched.records, position)

    def close(self) -> None:
        self._fetcher.close()


def _chunk(topic: str, partition: int, records: Sequence[Record], following: int) -> Chunk:
    return Chunk(
        topic,
        partition,
        offsets=[record.offset for record in records],
        keys=[record.key for record in records],
        values=[record.value for record in records],
        timestamps=[record.timestamp for record in records],
        headers=[record.headers for record in records],
        following=following,
    )
