"""What an append answers, and what a read hands out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tailrace.log.files import Descriptor

if TYPE_CHECKING:
    from tailrace.log.segment import Segment


class Appended(NamedTuple):
    """What became of a batch."""

    base_offset: int
    last_offset: int
    log_append_time: int
    """−1 under create time."""
    log_start_offset: int
    duplicate: bool


class Slice:
    """Bytes of one segment file, ready to be sent. Release it when they are.

    `unchecked` ones were never read since this process began: `verification` comes first.
    """

    __slots__ = ("_held", "descriptor", "file_bytes", "length", "position", "segment", "unchecked")

    def __init__(
        self, held: Descriptor | None, position: int, length: int, segment: Segment | None = None
    ) -> None:
        self._held = held
        self.descriptor = held.number if held is not None else -1
        self.position = position
        self.length = length
        self.segment = segment
        self.file_bytes = 0 if segment is None else segment.size
        self.unchecked = segment is not None and not segment.trusts(position, position + length)

    def read(self) -> bytes:
        """The bytes themselves, for small answers and readers in this process."""
        if self._held is None:
            return b""
        return os.pread(self.descriptor, self.length, self.position)

    def release(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None

    def __enter__(self) -> Slice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()
