"""Sparse indexes of one segment, in Kafka's file formats.

Offset index: 8 bytes an entry, big-endian: last offset of a batch relative to the
segment's base, then the file position where that batch begins.
Time index: 12 bytes an entry: the largest timestamp so far, then the relative last
offset of the batch that holds it. Timestamps only grow.

Neither is checksummed: after a crash, or when missing or implausible, an index is built
again from its segment. Entries are kept in memory while a segment is in use and written
out by `write_out`.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right

from tailrace.log.files import WRITE, Files

_SWAP = sys.byteorder == "little"
_TIME_ENTRY = struct.Struct(">qI")


class OffsetIndex:
    """Where batches lie in a segment, roughly every `index.interval.bytes`."""

    __slots__ = ("offsets", "positions", "written")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.written = 0

    def add(self, relative_offset: int, position: int) -> None:
        """Note that the batch ending at `relative_offset` begins at `position`."""
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def lookup(self, relative_offset: int) -> int:
        """File position at or before the batch holding the offset; 0 if there is no entry."""
        place = bisect_right(self.offsets, relative_offset) - 1
        return self.positions[place] if place >= 0 else 0

    def cut(self, position: int) -> None:
        """Forget entries of batches that begin at `position` or later."""
        place = bisect_left(self.positions, position)
        del self.offsets[place:]
        del self.positions[place:]
        self.written = min(self.written, place)

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry `start` on."""
        both = array("I", bytes(8 * (len(self.offsets) - start)))
        both[0::2] = self.offsets[start:]
        both[1::2] = self.positions[start:]
        if _SWAP:
            both.byteswap()
        return both.tobytes()

    @classmethod
    def decode(cls, data: bytes, segment_size: int) -> OffsetIndex | None:
        """The index in `data`; None if it cannot belong to a segment of that size."""
        if len(data) % 8:
            return None
        both = array("I", data)
        if _SWAP:
            both.byteswap()
        index = cls()
        index.offsets, index.positions = both[0::2], both[1::2]
        index.written = len(index.offsets)
        if index.positions:
            if index.positions[-1] >= segment_size:
                return None
            # Kafka pads indexes of active segments with zeros; ours never are.
            if any(a >= b for a, b in zip(index.positions, index.positions[1:], strict=False)):
                return None
            if any(a >= b for a, b in zip(index.offsets, index.offsets[1:], strict=False)):
                return None
        return index


class TimeIndex:
    """The largest timestamp up to some offsets of a segment."""

    __slots__ = ("offsets", "timestamps", "written")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("I")
        self.written = 0

    def add(self, timestamp: int, relative_offset: int) -> None:
        """Note a new largest timestamp; smaller or equal ones are not noted."""
        if self.timestamps and timestamp <= self.timestamps[-1]:
            return
        self.timestamps.append(timestamp)
        self.offsets.append(relative_offset)

    def lookup(self, timestamp: int) -> int:
        """A relative offset before which every record is older than `timestamp`."""
        place = bisect_left(self.timestamps, timestamp) - 1
        return self.offsets[place] if place >= 0 else 0

    def cut(self, relative_offset: int) -> None:
        """Forget entries at `relative_offset` or later."""
        place = bisect_left(self.offsets, relative_offset)
        del self.offsets[place:]
        del self.timestamps[place:]
        self.written = min(self.written, place)

    def encode(self, start: int = 0) -> bytes:
        pack = _TIME_ENTRY.pack
        return b"".join(
            pack(timestamp, offset)
            for timestamp, offset in zip(self.timestamps[start:], self.offsets[start:], strict=True)
        )

    @classmethod
    def decode(cls, data: bytes) -> TimeIndex | None:
        """The index in `data`; None if it cannot be one."""
        if len(data) % 12:
            return None
        index = cls()
        for timestamp, offset in _TIME_ENTRY.iter_unpack(data):
            if index.timestamps and (
                timestamp <= index.timestamps[-1] or offset < index.offsets[-1]
            ):
                return None
            index.timestamps.append(timestamp)
            index.offsets.append(offset)
        index.written = len(index.offsets)
        return index


def write_out(index: OffsetIndex | TimeIndex, path: str, files: Files, *, sync: bool) -> None:
    """Bring the file of `index` up to date; only new entries are written."""
    width = 8 if isinstance(index, OffsetIndex) else 12
    total = len(index.offsets)
    descriptor = files.open(path, WRITE)
    try:
        data = index.encode(index.written)
        if data:
            files.write_all(descriptor, data, index.written * width)
        files.truncate(descriptor, total * width)
        if sync:
            files.sync_data(descriptor)
    finally:
        files.close(descriptor)
    index.written = total
