"""Positions of targets that cannot keep one themselves, in a file of the project.

The file is replaced whole and durably, after the target has taken the batch. A kill between the two
repeats the batch: these sinks deliver at least once, with keys by which a receiver can
drop repeats.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from tailrace.files import FILES
from tailrace.sinks.base import SinkPosition, decode_position
from tailrace.sinks.errors import SinkError, SinkFencedError


class LocalPosition:
    """`<directory>/sinks/<name>.position`: the epoch of its writer, the position, and, for
    targets that get several changes as one, how far the one on its way reaches."""

    def __init__(self, directory: Path, name: str) -> None:
        self._name = name
        self._path = directory / "sinks" / f"{name}.position"
        self.epoch = 0

    def claim(self) -> None:
        """Become the writer; others are fenced from now on."""
        epoch, position, intent = self._read()
        self.epoch = epoch + 1
        self._write(position, intent)

    def outdo(self, other: LocalPosition) -> None:
        """Raise our epoch above that of another file, whose place ours is to take."""
        epoch, position, intent = self._read()
        self.epoch = max(epoch, other._read()[0]) + 1
        self._write(position, intent)

    def check(self) -> None:
        """Raise `SinkFencedError` if somebody else has become the writer."""
        epoch = self._read()[0]
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

    def intended(self) -> SinkPosition | None:
        """What `intend` was told last, if nothing has been stored since."""
        return decode_position(self._read()[2])

    def intend(self, position: SinkPosition) -> None:
        """Remember, before it is sent, that everything up to `position` goes together."""
        self._write(self._read()[1], position.encode())

    def _read(self) -> tuple[int, str | None, str | None]:
        try:
            document = orjson.loads(self._path.read_bytes())
            return int(document["epoch"]), document["position"], document.get("intent")
        except FileNotFoundError:
            return 0, None, None
        except (ValueError, KeyError, TypeError) as damaged:
            raise SinkError(
                f'"{self._path}" is damaged',
                detail=f"It says how far sink {self._name!r} has delivered: {damaged}",
                hint="put a good copy back, or remove it: everything is delivered once more then",
            ) from damaged

    def _write(self, position: str | None, intent: str | None = None) -> None:
        FILES.make_directories(self._path.parent)
        document = {"epoch": self.epoch, "position": position, "intent": intent}
        FILES.write_whole(self._path, orjson.dumps(document))
