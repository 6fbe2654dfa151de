"""Reads a segment file forwards and tells whole batches from damaged ones.

Used by recovery on what a crash may have torn, and by the broker on what it has not read
since it started (`verification`).
"""

from __future__ import annotations

import os

from tailrace.records.checksum import crc32c
from tailrace.records.header import HEADER, HEADER_BYTES, BatchHeader

BLOCK_BYTES = 1024 * 1024


class WholeBatches:
    """One file, in blocks: small batches cost no system call each. For one thread."""

    __slots__ = ("_buffer", "_filled", "_number", "_start", "_view", "size")

    def __init__(self, number: int, size: int) -> None:
        self._number = number
        self.size = size
        self._buffer = bytearray(BLOCK_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._start = 0

    def _place_of(self, position: int, length: int) -> int:
        """Where the bytes from `position` lie in the buffer; −1 if the file ends before."""
        place = position - self._start
        if place < 0 or place + length > self._filled:
            if length > len(self._buffer):
                self._buffer = bytearray(length)
                self._view = memoryview(self._buffer)
            self._filled = 0
            while self._filled < length:
                count = os.preadv(
                    self._number, [self._view[self._filled :]], position + self._filled
                )
                if not count:
                    return -1
                self._filled += count
            self._start, place = position, 0
        return place

    def at(self, position: int, expected: int) -> BatchHeader | None:
        """The header of the batch at `position` if all of it is right, else None."""
        if self.size - position < HEADER_BYTES:
            return None
        place = self._place_of(position, HEADER_BYTES)
        if place < 0:
            return None
        header = BatchHeader._make(HEADER.unpack_from(self._view, place))
        size = header[1] + 12
        if (
            header[3] != 2
            or size < HEADER_BYTES
            or position + size > self.size
            or header[0] < expected
            or header[6] < 0
        ):
            return None
        place = self._place_of(position, size)
        if place < 0 or crc32c(self._view[place + 21 : place + size]) != header[4]:
            return None
        return header


def next_whole(
    number: int, position: int, size: int, expected: int
) -> tuple[int, BatchHeader] | None:
    """The first whole batch that begins at `position` or later: damage has an end."""
    batches = WholeBatches(number, size)
    while position < size:
        block = os.pread(number, BLOCK_BYTES, position)
        if len(block) < HEADER_BYTES:
            return None
        place = 0
        while True:
            # The magic stands at byte 16, behind the high bytes of offset and length.
            place = block.find(b"\x02", place)
            if place < 0:
                break
            start = place - 16
            place += 1
            if start < 0 or start + HEADER_BYTES > len(block):
                continue
            header = BatchHeader._make(HEADER.unpack_from(block, start))
            if not expected < header.base_offset < expected + 2**31:
                continue
            whole = batches.at(position + start, expected)
            if whole is not None:
                return position + start, whole
        if position + len(block) >= size:
            return None
        position += len(block) - HEADER_BYTES
    return None
