"""Views that were made of records which the log has erased.

Their operators' state, the changelogs, caches and pages of their rows hold what was made of the
records. So each view that reads one of the topics is filled again, from topics that hold them no
more; then its earlier changelogs are deleted, the state of the project is written again without
what was deleted in it, and every older file of it is removed. The tick row says so (`purged`):
whoever keeps pages of the views elsewhere writes those again, too.

Nothing is kept of how far this has come. Whoever dies in between finds the erasure waiting still,
and begins again: what fills have read until then may be from before it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.ticks.project import ProjectTicks

log = logging.getLogger(__name__)
LOOK_SECONDS = 2.0


class Erasures(Protocol):
    """What was erased from the log."""

    def waiting(self) -> Mapping[str, Collection[str]]:
        """Erasures that the views have not been cleared of: the topics of each."""

    def cleared(self, ids: Collection[str]) -> None:
        """The views hold nothing any more of these, as `waiting` last told of them; durable on
        return."""


class Clearing:
    """Clears the views of one project of what is erased; see the module."""

    def __init__(self, project: ProjectTicks, erasures: Erasures, clock: Clock = SYSTEM) -> None:
        self._project = project
        self._erasures = erasures
        self._clock = clock
        self._looked_at: float | None = None
        self._ids: tuple[str, ...] = ()
        self._views: list[str] = []

    def step(self) -> None:
        """Look for erasures, or go on with those that were found."""
        if not self._ids:
            self._look()
        elif not any(name in self._project.waiting for name in self._views):
            self._project.clear(self._views)
            self._erasures.cleared(self._ids)
            log.info("views cleared", extra={"views": self._views, "erasures": self._ids})
            self._ids = ()

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        waiting = self._erasures.waiting()
        if not waiting:
            return
        topics = {topic for each in waiting.values() for topic in each}
        views = self._project.views_of(topics)
        if not views:
            self._erasures.cleared(tuple(waiting))
            return
        log.info("views to clear", extra={"views": views, "erasures": tuple(waiting)})
        self._ids, self._views = tuple(waiting), views
        self._project.refill(views)
