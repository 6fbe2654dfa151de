"""Views that a tick fails on are put aside, so that the others go on.

An expression that fails on a row, or two rows under one key, is a matter of one view. The
failed tick is then tried for each view alone, without committing anything; those that fail
are left out of the project's ticks, shown as they last were, and filled again beside it
(see `project`). The fill stops at the place that fails and tries again after a pause, so
a view comes back by itself when its rows have been put right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace

from tailrace.clock import Clock
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.errors import ViewError
from tailrace.pipelines.ticks.job import Outcome, Work

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
TABLE = "table:"


def subgraph(graph: Graph, names: Iterable[str]) -> Graph:
    """The views called `names` and what they need."""
    views = {name: graph.views[name] for name in names}
    edges = {node.id: [edge.source for edge in node.edges] for node in graph.nodes}
    needed: set[str] = set()
    waiting = [view.node for view in views.values()]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += edges.get(name, [])
    return Graph(
        {topic: t for topic, t in graph.tables.items() if f"{TABLE}{topic}" in needed},
        tuple(node for node in graph.nodes if node.id in needed),
        views,
    )


def at_fault(work: Work, run: Callable[[Work], Outcome]) -> dict[str, ViewError]:
    """The views that a tick's work fails on, each with its error.

    State files that the trials write are named by no tick row and are swept.
    """
    found: dict[str, ViewError] = {}
    for name in work.graph.views:
        graph = subgraph(work.graph, [name])
        ranges = tuple(one for one in work.ranges if one.topic in graph.tables)
        try:
            run(replace(work, graph=graph, ranges=ranges, dropped=(), adoption=None))
        except ViewError as problem:
            found[name] = named(name, problem)
    return found


def named(view: str, problem: ViewError) -> ViewError:
    """The error with the name of the view, if it does not say it."""
    if view in problem.message or view in problem.detail:
        return problem
    detail = f'in view "{view}"' + (f": {problem.detail}" if problem.detail else "")
    told = copy(problem)
    told.detail = detail
    told.__cause__ = problem
    return told


@dataclass(slots=True)
class _Failure:
    problem: ViewError
    pause: float
    again_at: float


@dataclass(slots=True)
class Aside:
    """The views that are put aside, and when each is tried again."""

    clock: Clock
    _failures: dict[str, _Failure] = field(default_factory=dict)
    _healed: dict[str, _Failure] = field(default_factory=dict)  # views that work again
    _untried: set[str] = field(default_factory=set)  # no fill has stepped since they failed

    def put(self, name: str, problem: ViewError) -> None:
        """Put a view aside, or tell that it has failed again."""
        known = self._failures.get(name) or self._healed.pop(name, None)
        if known is not None and self.clock.monotonic() > known.again_at + LONGEST_PAUSE:
            known = None
        pause = FIRST_PAUSE if known is None else min(LONGEST_PAUSE, known.pause * 2)
        again_at = self.clock.monotonic() + pause
        self._failures[name] = _Failure(named(name, problem), pause, again_at)
        self._untried.add(name)

    def untried(self, name: str) -> bool:
        """Whether a view's fill has done nothing since the view failed."""
        return name in self._untried

    def passed(self, name: str) -> None:
        """A step of a view's fill did not fail."""
        self._untried.discard(name)

    def waits(self, name: str) -> bool:
        """Whether it is not yet time to try a view again."""
        failure = self._failures.get(name)
        return failure is not None and self.clock.monotonic() < failure.again_at

    def hurry(self, name: str) -> None:
        """Try a view again at once."""
        if name in self._failures:
            self._failures[name].again_at = self.clock.monotonic()

    def forget(self, name: str) -> None:
        """A view works again. If it soon fails once more, its pauses go on growing."""
        self._untried.discard(name)
        failure = self._failures.pop(name, None)
        if failure is not None:
            self._healed[name] = failure

    def errors(self) -> Mapping[str, dict[str, str]]:
        """By view, its error in four parts."""
        return {name: one.problem.as_dict() for name, one in self._failures.items()}
