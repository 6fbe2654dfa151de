"""Lines of a part's output that say nothing to anybody: kept in the journal, not shown.

Java announces the modules that Spark asks for, and a Python worker of Spark's that is idle when
its other end goes prints a stack of three lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ANNOUNCEMENTS = ("WARNING: Using incubator modules:",)
TRACEBACK = "Traceback (most recent call last):"


@dataclass(slots=True)
class Quiet:
    """Takes the lines of one process and gives those that are worth showing, in order."""

    _held: list[str] = field(default_factory=list)  # a stack that has not ended yet

    def take(self, line: str) -> list[str]:
        """The lines to show now that this one has come."""
        if self._held:
            self._held.append(line)
            if line.startswith(" ") and len(self._held) < 500:
                return []
            stack, self._held = self._held, []
            return [] if _is_of_an_idle_worker(stack) else stack
        if line == TRACEBACK:
            self._held = [line]
            return []
        return [] if line.startswith(ANNOUNCEMENTS) else [line]

    def rest(self) -> list[str]:
        """What is left when the process has ended."""
        left, self._held = self._held, []
        return left


def _is_of_an_idle_worker(stack: list[str]) -> bool:
    frames = [line for line in stack if line.startswith("  File ")]
    ours = all("/pyspark/daemon.py" in frame for frame in frames)
    return bool(frames) and ours and stack[-1].startswith("BrokenPipeError")
