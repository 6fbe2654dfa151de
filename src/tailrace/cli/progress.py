"""What `tailrace up` says while parts start and stop: a line for each, and on a terminal one
line below that turns and counts seconds."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from tailrace.clock import SYSTEM, Clock

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
DRAW_SECONDS = 0.1
AT_WORK = ("running", "lagging")
WIDEST = 100


def words_of(kind: str, name: str) -> str:
    """A part as people call it."""
    return {
        "broker": "the log",
        "source": f"source {name}",
        "pipelines": "Spark",
        "views": "views",
        "sink": f"sink {name}",
        "events": "events",
        "console": "console",
    }.get(kind, f"{kind} {name}")


@dataclass(slots=True)
class Progress:
    """Lines on stderr, and a last line that is drawn again; a terminal that is gone is no
    reason to end. `quiet`: nothing but what is given to `say`."""

    out: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Clock = SYSTEM
    quiet: bool = False
    _waiting: dict[str, float] = field(default_factory=dict)  # part → when it was first seen
    _words: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, str] = field(default_factory=dict)  # part → its state
    _drawn: bool = False
    _drawn_at: float = float("-inf")
    _frames: Any = field(default_factory=lambda: itertools.cycle(FRAMES))
    _began: float | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()

    @property
    def _turns(self) -> bool:
        return not self.quiet and self.out.isatty()

    def say(self, line: str) -> None:
        """A line that stays."""
        with contextlib.suppress(OSError, ValueError):
            self._clear()
            print(line, file=self.out, flush=True)

    def look(self, reports: Iterable[Mapping[str, Any]], present: float | None = None) -> None:
        """Tell of parts that have begun to work since the last time; draw those that have not."""
        if self.quiet or self.ended:
            return
        now = self.clock.monotonic() if present is None else present
        for report in reports:
            part = f"{report['kind']}-{report['name']}"
            self._words[part] = words_of(report["kind"], report["name"])
            began = self._waiting.setdefault(part, self._began or now)
            state = str(report.get("state"))
            if state in AT_WORK and self._seen.get(part) not in AT_WORK:
                self.say(f"{self._words[part]:<24} started, {now - began:.1f} s")
            self._seen[part] = state
        left = [part for part in self._words if self._seen[part] not in AT_WORK]
        self._draw("starting", left, now)

    def leave(self, left: Iterable[tuple[str, str]], present: float | None = None) -> None:
        """Draw the parts that have not stopped yet: kind and name."""
        if self.quiet:
            return
        now = self.clock.monotonic() if present is None else present
        self.ended = True
        found = {f"{kind}-{name}": words_of(kind, name) for kind, name in left}
        for part in [part for part in self._words if part not in found]:
            if part in self._waiting:
                self.say(f"{self._words[part]:<24} stopped")
                del self._waiting[part]
        self._words |= found
        for part in found:
            self._waiting.setdefault(part, now)
        self._draw("stopping", list(found), now)

    def done(self, *, again: bool = False) -> None:
        """Take the last line away, for good unless it is drawn `again`."""
        with contextlib.suppress(OSError, ValueError):
            self._clear()
            self.out.flush()
        self.ended = not again

    def _draw(self, what: str, parts: list[str], now: float) -> None:
        if not self._turns or now - self._drawn_at < DRAW_SECONDS:
            return
        self._drawn_at = now
        with contextlib.suppress(OSError, ValueError):
            if not parts:
                self._clear()
                return
            seconds = max(now - self._waiting[part] for part in parts)
            names = ", ".join(self._words[part] for part in parts)
            line = f"{next(self._frames)} {what} {names} … {seconds:.0f} s"
            self.out.write(f"\r\x1b[2K{line[:WIDEST]}")
            self.out.flush()
            self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            self.out.write("\r\x1b[2K")
            self._drawn = False
