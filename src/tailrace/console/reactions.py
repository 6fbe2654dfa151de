"""Reactions and erasures by HTTP: what is open, due or stuck, and what was erased.

    GET /api/reactions     every reaction with its open processes: command, attempts, timers, error
    GET /api/erasures      every erasure: kind, state, reason, counts by topic

Nothing personal is told: no state of a process and no argument of a command.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI, Response

from tailrace.clock import SYSTEM
from tailrace.console.events import Answer, EventDoors
from tailrace.errors import TailraceError

if TYPE_CHECKING:
    from tailrace.console.app import Served
    from tailrace.facts.erasures import Erasures
    from tailrace.project.load import Project

MOST_PROCESSES = 200
KEPT_SECONDS = 3.0
"""A journal is read whole for an answer: who asks again at once is told the same."""
_TOLD = ("process", "stuck", "command", "attempts", "timers", "error")


class Books:
    """What the log says of reactions and erasures, read when somebody asks."""

    def __init__(self, served: Served, doors: EventDoors) -> None:
        self._served = served
        self._doors = doors
        self._lock = threading.Lock()
        self._erasures: Erasures | None = None
        self._told: list[dict[str, Any]] = []
        self._project: Project | None = None
        self._told_at = 0.0

    def reactions(self) -> list[dict[str, Any]]:
        """Blocks: for a thread, not for the loop."""
        with self._lock:
            project = self._served.project
            if project is not self._project or SYSTEM.monotonic() - self._told_at > KEPT_SECONDS:
                self._told = [self._about(name) for name in project.reactions]
                self._project, self._told_at = project, SYSTEM.monotonic()
            return self._told

    def _about(self, name: str) -> dict[str, Any]:
        from tailrace.facts.open_processes import look

        declared = self._served.project.reactions[name]
        about: dict[str, Any] = {"reaction": name, "sources": sorted(declared.sources)}
        try:
            found = look(self._doors.log(), declared)
            rows = [each.as_dict() for each in itertools.islice(found, MOST_PROCESSES + 1)]
        except TailraceError as error:
            return {**about, "error": error.message, "processes": [], "more": False}
        return {
            **about,
            "error": "",
            "processes": [{each: row[each] for each in _TOLD} for row in rows[:MOST_PROCESSES]],
            "more": len(rows) > MOST_PROCESSES,
        }

    def erasures(self) -> list[dict[str, Any]]:
        """Blocks, as `reactions`."""
        from tailrace.facts.erasures import Erasures

        with self._lock:
            if self._erasures is None:
                self._erasures = Erasures(self._doors.log())
            self._erasures.refresh()
            found = list(self._erasures.found.values())
        names = ("id", "at", "kind", "topic", "state", "reason", "counts", "unreachable")
        told = [msgspec.to_builtins(each) for each in found]
        told.sort(key=lambda each: str(each["at"]), reverse=True)
        return [{name: each[name] for name in names} for each in told]

    def close(self) -> None:
        with self._lock:
            if self._erasures is not None:
                self._erasures.close()
                self._erasures = None


def add_reactions(app: FastAPI, served: Served, doors: EventDoors, answer: Answer) -> Books:
    """Both routes."""
    books = Books(served, doors)

    @app.get("/api/reactions")
    def reactions() -> Response:
        """Every reaction with its open processes: commands, attempts, timers, what is stuck."""
        return answer({"reactions": books.reactions()})

    @app.get("/api/erasures")
    def erasures() -> Response:
        """Every erasure: what, when, why, whether it is done, and what it does not reach."""
        return answer({"erasures": books.erasures()})

    return books
