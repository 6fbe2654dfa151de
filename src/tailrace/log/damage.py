"""Batches in the middle of a segment that do not match their checksum.

They are found by recovery, by the cleaner and by `tailrace broker inspect`, told with
file and offsets, and never served.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.errors import CorruptSegmentError


class Damage(NamedTuple):
    """Bytes [position, end_position) of a file that hold offsets base to last."""

    path: str
    position: int
    end_position: int
    base_offset: int
    last_offset: int

    def error(self) -> CorruptSegmentError:
        return CorruptSegmentError(
            f"records {self.base_offset} to {self.last_offset} are damaged",
            detail=f"{self.path}, bytes {self.position} to {self.end_position}",
            hint="restore the file from a copy, or read on behind the range",
        )
