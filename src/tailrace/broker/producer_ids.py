"""Producer ids that no producer of this log ever had.

Ids are handed out from blocks; the file holds the end of the block in use and is
synced before the first id of a block is given away. A crash loses the rest of a block.
"""

from __future__ import annotations

from pathlib import Path

from tailrace.log.files import FILES, Files

BLOCK = 1000


class ProducerIds:
    """Owns the file `producer-ids` of a data directory."""

    def __init__(self, path: Path, files: Files = FILES) -> None:
        self._path = path
        self._files = files
        try:
            self._next = int(path.read_text())
        except FileNotFoundError:
            self._next = 0
        self._end = self._next

    def next(self) -> int:
        """A new id; raises OSError if the disk refuses."""
        if self._next == self._end:
            end = self._end + BLOCK
            self._files.write_whole(self._path, f"{end}\n".encode())
            self._end = end
        given = self._next
        self._next += 1
        return given
