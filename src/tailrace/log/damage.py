"""Batches in the middle of a segment that do not match their checksum.

They are found by recovery, when they are read from the disk (`verification`), by the cleaner
and by `tailrace broker inspect --check`, told with file and offsets, and never served. `damaged-ranges` in the partition's directory keeps the
first offset of each, so that every start looks there again and a restored file is back in
service.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tailrace.log.errors import CorruptSegmentError
from tailrace.log.files import Files

_NAME = "damaged-ranges"


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


def read_damage(directory: Path) -> list[int]:
    """First offsets of the ranges known to be damaged."""
    try:
        lines = (directory / _NAME).read_text("ascii").splitlines()
    except FileNotFoundError:
        return []
    return [int(line.split(" ")[0]) for line in lines if line[:1].isdigit()]


def write_damage(directory: Path, ranges: Sequence[Damage], files: Files) -> None:
    """Replace what is known to be damaged."""
    if not ranges:
        (directory / _NAME).unlink(missing_ok=True)
        return
    lines = [f"{each.base_offset} {each.last_offset} {Path(each.path).name}" for each in ranges]
    files.write_whole(directory / _NAME, ("\n".join(lines) + "\n").encode("ascii"))
