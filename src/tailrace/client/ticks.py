"""The newest tick of a project, for readers that only need that one."""

from __future__ import annotations

from tailrace.client.ranges import Range, RangeReader
from tailrace.records.tick import TICKS_TOPIC, TickRow, parse_tick


def last_row(reader: RangeReader, key: str) -> TickRow | None:
    """The newest row under `key`, found from the end backwards; None if there is none."""
    first, end = reader.bounds(TICKS_TOPIC).get(0, (0, 0))
    window = 200
    while end > first:
        start = max(first, end - window)
        found: TickRow | None = None
        for chunk in reader.read([Range(TICKS_TOPIC, 0, start, end)]):
            for name, value in zip(chunk.keys, chunk.values, strict=True):
                if name == key.encode() and value is not None:
                    found = parse_tick(name, value)
        if found is not None or start == first:
            return found
        window *= 8
    return None


class TickTail:
    """Keeps up with one key of `__tailrace_ticks`, skipping to the newest row."""

    def __init__(self, reader: RangeReader, key: str) -> None:
        self._reader = reader
        self._key = key
        self._next: int | None = None
        self.row: TickRow | None = None

    def wait(self, timeout: float) -> TickRow | None:
        """The newest row; waits up to `timeout` seconds for a newer one than last time."""
        if self._next is None:
            _, end = self._reader.bounds(TICKS_TOPIC).get(0, (0, 0))
            self.row = last_row(self._reader, self._key)
            self._next = end
            return self.row
        chunk = self._reader.follow(TICKS_TOPIC, 0, self._next, timeout)
        self._next = max(self._next, chunk.following)
        for name, value in zip(chunk.keys, chunk.values, strict=True):
            if name == self._key.encode() and value is not None:
                self.row = parse_tick(name, value)
        return self.row
