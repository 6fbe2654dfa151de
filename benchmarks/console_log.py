"""A log that is computed, not kept: two changelogs and their ticks, without a broker.

View `v` has `ROWS` rows that change in turn; view `small` has one row that carries the
number of its change and the time it was made.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from tailrace.client.ranges import Chunk, Range
from tailrace.records.tick import TICKS_TOPIC, TickRow, ViewInfo

ROWS = 100_000
COLUMNS = (("id", "BIGINT"), ("n", "BIGINT"), ("at", "BIGINT"))


class SyntheticLog:
    """A `RangeReader` whose records follow from their offsets."""

    def __init__(self) -> None:
        self._ends = {"v": ROWS, "small": 1}
        self._ticks: list[bytes] = []
        self._forgotten = 0
        self.rows = ROWS
        self.tick({})

    def offset(self, topic: str) -> int:
        """The number of a topic's last change."""
        return self._ends[topic] - 1

    def tick(self, changes: Mapping[str, int]) -> None:
        """Commit so many changes of each view."""
        for topic, count in changes.items():
            self._ends[topic] += count
        number = self._forgotten + len(self._ticks) + 1
        row = TickRow(
            key="shop",
            project="shop",
            tick=number,
            ends={topic: {0: end} for topic, end in self._ends.items()},
            views={t: ViewInfo(t, t, 1, ("id",), COLUMNS) for t in self._ends},
            positions={},
            ts_ms=time.time_ns() // 1_000_000,
        )
        self._ticks.append(row.encode())

    def bounds(self, topic: str) -> Mapping[int, tuple[int, int]]:
        if topic == TICKS_TOPIC:
            return {0: (self._forgotten, self._forgotten + len(self._ticks))}
        return {0: (0, self._ends[topic])}

    def read(self, ranges: Sequence[Range]) -> Iterator[Chunk]:
        for wanted in ranges:
            if wanted.topic == TICKS_TOPIC:
                yield self.follow(wanted.topic, 0, wanted.start, 0)
                continue
            for start in range(wanted.start, wanted.end, 10_000):
                stop = min(start + 10_000, wanted.end)
                chunk = Chunk(wanted.topic, 0)
                chunk.offsets += range(start, stop)
                rows = ROWS if wanted.topic == "v" else 1
                at = time.monotonic_ns()
                chunk.keys += [b'{"id":%d}' % (n % rows) for n in chunk.offsets]
                chunk.values += [
                    b'{"row":{"id":%d,"n":%d,"at":%d}}' % (n % rows, n, at) for n in chunk.offsets
                ]
                chunk.timestamps += [0] * len(chunk.offsets)
                chunk.headers += [()] * len(chunk.offsets)
                chunk.following = stop
                yield chunk

    def follow(self, topic: str, partition: int, start: int, timeout: float) -> Chunk:
        chunk = Chunk(topic, partition, following=start)
        for index, value in enumerate(self._ticks):
            offset = self._forgotten + index
            if offset >= start:
                chunk.offsets.append(offset)
                chunk.keys.append(b"shop")
                chunk.values.append(value)
                chunk.timestamps.append(0)
                chunk.headers.append(())
                chunk.following = offset + 1
        if start > self._forgotten:  # nobody asks for what was applied
            del self._ticks[: start - self._forgotten]
            self._forgotten = start
        return chunk

    def close(self) -> None:
        """Nothing is held."""
