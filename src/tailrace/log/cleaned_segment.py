"""A segment being written by the cleaner, under the name `<base>.log.cleaned`."""

from __future__ import annotations

import os

from tailrace.log.files import WRITE, Files
from tailrace.log.index import OffsetIndex, TimeIndex, write_out
from tailrace.records.header import HEADER, BatchHeader

_WRITE_BYTES = 1024 * 1024


class CleanedSegment:
    """A new segment being written, with its indexes."""

    def __init__(self, directory: str, base: int, interval: int, files: Files) -> None:
        self._files = files
        self._stem = f"{directory}/{base:020d}"
        self._interval = interval
        self._base = base
        self._descriptor = self._files.open(f"{self._stem}.log.cleaned", WRITE | os.O_TRUNC)
        self._waiting: list[bytes | bytearray | memoryview] = []
        self._waiting_bytes = 0
        self._written = 0
        self.size = 0
        self._index, self._times = OffsetIndex(), TimeIndex()
        self._since, self._largest, self._largest_at = 0, -1, 0

    def write(self, batch: bytes | bytearray | memoryview) -> None:
        header = BatchHeader._make(HEADER.unpack_from(batch))
        relative = header.last_offset - self._base
        if header.record_count and header.max_timestamp > self._largest:
            self._largest, self._largest_at = header.max_timestamp, relative
        if self._since > self._interval:
            self._index.add(relative, self.size)
            if self._largest >= 0:
                self._times.add(self._largest, self._largest_at)
            self._since = 0
        self._since += len(batch)
        self.size += len(batch)
        # The memory behind a view goes away with its batch.
        self._waiting.append(bytes(batch))
        self._waiting_bytes += len(batch)
        if self._waiting_bytes >= _WRITE_BYTES:
            self._flush()

    def finish(self) -> None:
        """Have the segment and its indexes on disk."""
        self._flush()
        self._files.sync_data(self._descriptor)
        if self.size and self._largest >= 0:
            self._times.add(self._largest, self._largest_at)
        write_out(self._index, f"{self._stem}.index.cleaned", self._files, sync=True)
        write_out(self._times, f"{self._stem}.timeindex.cleaned", self._files, sync=True)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._files.close(self._descriptor)
            self._descriptor = -1

    def drop(self) -> None:
        """Close and remove what was written."""
        self.close()
        self._files.remove(f"{self._stem}.log.cleaned")

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._files.write_all(self._descriptor, data, self._written)
        self._written += len(data)
        self._waiting, self._waiting_bytes = [], 0
