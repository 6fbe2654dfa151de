"""Producer ids that no producer of this log ever had.

Ids are handed out from blocks. The file `producer-ids` of every data directory holds
the end of the block in use and is synced before the first id of a block is given away;
the largest counts, so any directory may be away. A crash loses the rest of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tailrace.log.files import FILES, Files

BLOCK = 1000
NAME = "producer-ids"


class ProducerIds:
    """Owns the files `producer-ids` of the data directories."""

    def __init__(self, directories: Sequence[Path], files: Files = FILES) -> None:
        self._paths = [directory / NAME for directory in directories]
        self._files = files
        self._next = max((int(p.read_text()) for p in self._paths if p.exists()), default=0)
        self._end = self._next

    def next(self) -> int:
        """A new id; raises OSError if the disk refuses."""
        if self._next == self._end:
            end = self._end + BLOCK
            for path in self._paths:
                self._files.write_whole(path, f"{end}\n".encode())
            self._end = end
        given = self._next
        self._next += 1
        return given
