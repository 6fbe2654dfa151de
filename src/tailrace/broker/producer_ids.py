"""Producer ids that no producer of this log ever had.

Ids are handed out from blocks; the file holds the end of the block in use and is
synced before the first id of a block is given away. A crash loses the rest of a block.
"""

from __future__ import annotations

import os
from pathlib import Path

BLOCK = 1000


class ProducerIds:
    """Owns the file `producer-ids` of a data directory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._next = int(path.read_text())
        except FileNotFoundError:
            self._next = 0
        self._end = self._next

    def next(self) -> int:
        """A new id; raises OSError if the disk refuses."""
        if self._next == self._end:
            self._reserve(self._end + BLOCK)
        given = self._next
        self._next += 1
        return given

    def _reserve(self, end: int) -> None:
        draft = self._path.with_suffix(".tmp")
        with draft.open("w") as file:
            file.write(f"{end}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        # The rename must survive too, or the next start gives the same ids again.
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._end = end
