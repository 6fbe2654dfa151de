"""Everything the page shows that moves, computed once a second for all who watch."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.console.alarms import alarms
from tailrace.console.cluster_watch import ClusterWatch, cluster_alarms
from tailrace.console.demo import is_demo
from tailrace.console.figures import Figures
from tailrace.console.history import EVERY_SECONDS, History
from tailrace.node.health import status_of
from tailrace.project.load import Project

FRESH_SECONDS = 0.9


class Live:
    """The live state of one project. Safe to use from several threads."""

    def __init__(
        self,
        project: Project,
        figures: Figures,
        cluster: ClusterWatch | None = None,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._cluster = cluster
        self._project = project
        self._figures = figures
        self._clock = clock
        self._guard = threading.Lock()
        self._taken_at = -1e9
        self._remembered_at = -1e9
        self._state: dict[str, Any] = {}
        self._encoded = b""
        self.history = History()

    def state(self) -> Mapping[str, Any]:
        """At most a second old."""
        self._look()
        return self._state

    def encoded(self) -> bytes:
        """The same as JSON: every subscriber gets the same bytes."""
        self._look()
        return self._encoded

    def _look(self) -> None:
        with self._guard:
            now = self._clock.monotonic()
            if now - self._taken_at < FRESH_SECONDS:
                return
            self._taken_at = now
            status = status_of(self._project.settings)
            figures = self._figures
            self._state = {
                "at": self._clock.wall_ms(),
                "project": status["project"],
                "ready": status["ready"],
                "demo": is_demo(),
                "parts": status["parts"],
                "topics": figures.topics,
                "groups": figures.groups,
                "alarms": [
                    *cluster_alarms(self._cluster.document if self._cluster else None),
                    *alarms(
                        status["parts"], figures.groups, self._project.directory, figures.topics
                    ),
                ],
            }
            self._encoded = orjson.dumps(self._state, default=str)
            if now - self._remembered_at >= EVERY_SECONDS - 0.5:
                self._remembered_at = now
                self.history.take(self._state)
