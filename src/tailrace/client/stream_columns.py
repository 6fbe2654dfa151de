"""The columns a stream says its rows have, for readers of its topic."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.client.ranges import Range, RangeReader
from tailrace.records.stream_columns import COLUMNS_TOPIC, decode_versions, merged


class DescribedColumns:
    """Keeps up with one key of `__tailrace_columns`."""

    def __init__(self, reader: RangeReader, topic: str) -> None:
        self._reader = reader
        self._key = topic.encode()
        self._next = 0
        self._columns: Mapping[str, str] = {}

    def now(self) -> Mapping[str, str]:
        """Types by column, as the stream describes them now; empty if it does not."""
        first, end = self._reader.bounds(COLUMNS_TOPIC).get(0, (0, 0))
        start = max(first, self._next)
        if start < end:
            for chunk in self._reader.read([Range(COLUMNS_TOPIC, 0, start, end)]):
                for key, value in zip(chunk.keys, chunk.values, strict=True):
                    if key == self._key:
                        self._columns = merged(decode_versions(value))
            self._next = end
        return self._columns
