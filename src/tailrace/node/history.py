"""What happened to a project's parts: starts, ends, take-overs, one line of JSON each.

    <state>/history.jsonl       {"at": ms, "what", "part", "text", …}, oldest first

Bounded as the journal is: beyond a megabyte the file becomes `history.jsonl.1`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tailrace.clock import Clock
from tailrace.masking import mask
from tailrace.node.journal import Journal

FILE = "history.jsonl"
LARGEST = 1 << 20
WHATS = ("up", "down", "ended", "started", "changed", "refused")


class History:
    """Writes what happens. Owns its file."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._journal = Journal(directory / FILE, largest=LARGEST)
        self._clock = clock

    def add(self, what: str, part: str, text: str, **facts: object) -> None:
        """One thing that happened; `what` is one of WHATS."""
        assert what in WHATS
        document = {"at": self._clock.wall_ms(), "what": what, "part": part, "text": text, **facts}
        self._journal.write(mask(orjson.dumps(document).decode()))

    def close(self) -> None:
        self._journal.close()


def read_history(directory: Path, limit: int = 200) -> list[dict[str, Any]]:
    """The last things that happened, the newest first. What cannot be read is left out."""
    found: list[dict[str, Any]] = []
    for name in (FILE, f"{FILE}.1"):
        try:
            lines = (directory / name).read_bytes().splitlines()
        except OSError:
            continue
        for line in reversed(lines):
            if len(found) == limit:
                return found
            try:
                document = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(document, dict) and "at" in document:
                found.append(document)
    return found
