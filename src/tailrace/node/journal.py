"""`.tailrace/up.log`: what every part said, with its name before each line.

Bounded: beyond `LARGEST` the file becomes `up.log.1` and a new one begins. A disk that is
full must not end a supervisor: lines are counted then, and the count is written once
there is room again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import IO

from tailrace.modes import open_private

LARGEST = 16 << 20


class Journal:
    """The lines of one project. Owns its file."""

    def __init__(self, path: Path, *, largest: int = LARGEST) -> None:
        self._path = path
        self._largest = largest
        self._file: IO[bytes] | None = None
        self._size = 0
        self.lost = 0

    def write(self, line: str) -> None:
        """Add a line, if there is room for it."""
        data = line.encode(errors="replace") + b"\n"
        try:
            if self._file is None or self._size + len(data) > self._largest:
                self._begin()
            assert self._file is not None
            if self.lost:
                self._file.write(b"%d lines were lost: the disk was full\n" % self.lost)
                self.lost = 0
            self._file.write(data)
            self._size += len(data)
        except OSError:
            self.lost += 1

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _begin(self) -> None:
        self.close()
        size = self._path.stat().st_size if self._path.exists() else 0
        if size >= self._largest // 2:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            size = 0
        self._file = open(self._path, "ab", buffering=0, opener=open_private)  # noqa: SIM115 - held for long
        self._size = size
