"""Wishes of an operator to the running pipelines: small files, taken up within a second.

    <directory>/requests/<number>.json      {"action": one of ACTIONS, "name", "generation"}

Those to patterns lie below `<directory>/patterns`; their `begin` says where a build begins.
`generation` is the one that was shown when a rollback was asked for, so that a wish
carried out twice goes back once. `apply` takes over the project's files as they are now; its
name is a number that the report answers with. `build` is a rebuild that waits for `switch` before it is shown. A file appears whole (by rename) and is removed once it has been carried out, so a wish
survives a crash of either side.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.files import FILES

ACTIONS = ("restart", "reset", "rebuild", "build", "switch", "rollback", "drop", "apply")

_numbers = itertools.count()  # two wishes of one millisecond are two files


@dataclass(frozen=True, slots=True)
class Request:
    """One wish; `path` is its file."""

    action: str
    name: str
    path: Path
    generation: int | None = None
    begin: str = ""

    def done(self) -> None:
        """It has been carried out, or makes no sense."""
        self.path.unlink(missing_ok=True)


def ask(
    directory: Path,
    action: str,
    name: str,
    *,
    generation: int | None = None,
    begin: str = "",
    clock: Clock = SYSTEM,
) -> None:
    """Leave a wish for the project whose files are in `directory`."""
    if action not in ACTIONS:
        raise ValueError(f"unknown action {action!r}")
    folder = directory / "requests"
    FILES.make_directories(folder)
    path = folder / f"{clock.wall_ms()}-{os.getpid()}-{next(_numbers):06}.json"
    document = {"action": action, "name": name, "generation": generation, "begin": begin}
    FILES.write_whole(path, orjson.dumps(document))


def waiting(directory: Path) -> list[Request]:
    """Wishes not carried out yet, oldest first."""
    found: list[Request] = []
    for path in sorted((directory / "requests").glob("*.json")):
        try:
            document = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            continue
        action, name = str(document["action"]), str(document["name"])
        begin = str(document.get("begin") or "")
        found.append(Request(action, name, path, document.get("generation"), begin))
    return found
