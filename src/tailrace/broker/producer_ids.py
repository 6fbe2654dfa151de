"""Producer ids that no producer of this log ever had.

Ids are handed out from blocks. The file `producer-ids` of every data directory holds
the end of the block in use and is synced before the first id of a block is given away;
the largest counts, so one directory that takes it is enough and any other may be away. A crash
loses the rest of a block. An id that is given twice lets one producer's records pass for
repeats of another's, so a broker that cannot tell which ids are free does not start.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from tailrace.broker.errors import DamagedFileError
from tailrace.log.files import FILES, Files

log = logging.getLogger(__name__)

BLOCK = 1000
NAME = "producer-ids"


class ProducerIds:
    """Owns the files `producer-ids` of the data directories."""

    def __init__(self, directories: Sequence[Path], files: Files = FILES) -> None:
        self._paths = [directory / NAME for directory in directories]
        self._files = files
        self._next = _largest(self._paths)
        self._end = self._next

    def next(self) -> int:
        """A new id; raises OSError if every disk refuses."""
        if self._next == self._end:
            end = self._end + BLOCK
            write_to_any(self._paths, f"{end}\n".encode(), self._files)
            self._end = end
        given = self._next
        self._next += 1
        return given


def _largest(paths: Sequence[Path]) -> int:
    """The largest end of a block in these files; 0 if there is none.

    Raises `DamagedFileError` if none of those that are there can be read.
    """
    ends: list[int] = []
    damaged: list[Path] = []
    for path in paths:
        try:
            ends.append(int(path.read_bytes()))
        except FileNotFoundError:
            continue
        except (ValueError, OSError):
            damaged.append(path)
    for path in damaged:
        log.error("a file of producer ids is damaged", extra={"path": str(path)})
    if damaged and not ends:
        raise DamagedFileError(
            f"{damaged[0]} is damaged",
            detail="it says up to which number producer ids were given out",
            hint="write a number into it that is larger than any producer id in use",
        )
    return max(ends, default=0)


def write_to_any(paths: Sequence[Path], data: bytes, files: Files) -> None:
    """Replace all these files, durably; raises OSError only if none could be.

    For what every data directory holds a copy of: a lost disk stops its own partitions and
    nothing else.
    """
    refused: list[OSError] = []
    for path in paths:
        try:
            files.write_whole(path, data)
        except OSError as error:
            refused.append(error)
            log.error("copy not written", extra={"path": str(path), "error": str(error)})
    if paths and len(refused) == len(paths):
        raise refused[0]
