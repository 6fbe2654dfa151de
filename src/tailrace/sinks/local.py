"""Positions of targets that cannot keep one themselves, in a file of the project.

The file is replaced whole, after the target has taken the batch. A kill between the two
repeats the batch: these sinks deliver at least once, with keys by which a receiver can
drop repeats.
"""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from tailrace.sinks.base import SinkPosition, decode_position
from tailrace.sinks.errors import SinkFencedError


class LocalPosition:
    """`<directory>/sinks/<name>.position`: the epoch of its writer and the position."""

    def __init__(self, directory: Path, name: str) -> None:
        self._name = name
        self._path = directory / "sinks" / f"{name}.position"
        self.epoch = 0

    def claim(self) -> None:
        """Become the writer; others are fenced from now on."""
        epoch, position = self._read()
        self.epoch = epoch + 1
        self._write(position)

    def check(self) -> None:
        """Raise `SinkFencedError` if somebody else has become the writer."""
        epoch, _ = self._read()
        if epoch != self.epoch:
            raise SinkFencedError(
                f"another writer took sink {self._name!r} over",
                detail=f"Ours is epoch {self.epoch}, the file has {epoch}.",
                hint="run a project only once",
            )

    def load(self) -> SinkPosition | None:
        return decode_position(self._read()[1])

    def store(self, position: SinkPosition) -> None:
        self._write(position.encode())

    def _read(self) -> tuple[int, str | None]:
        try:
            document = orjson.loads(self._path.read_bytes())
        except FileNotFoundError:
            return 0, None
        return int(document["epoch"]), document["position"]

    def _write(self, position: str | None) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".tmp")
        with draft.open("wb") as file:
            file.write(orjson.dumps({"epoch": self.epoch, "position": position}))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
