"""All views of a project, those that run and those that are being filled.

A view is *ready* when the last tick row holds the state of its operators. Any other view
(new, or declared anew with other SQL) is filled first, beside the project, in a sequence
of ticks of its own (key `<project>/<view>` in `__tailrace_ticks`), of bounded size, from
the start of its topics, into a topic no project row names. It never reads past the
project's own cut; when it has reached that cut, one tick of the project takes over its
operators' state and names its topic. Until then the project goes on ticking, and a view
that was declared anew is shown as it last was. A fill that dies goes on where it stood.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.incremental.graph import Graph
from tailrace.pipelines.reader import LogReader
from tailrace.pipelines.ticks.driver import Runner, TickDriver, TickSettings, last_row
from tailrace.pipelines.ticks.planner import cursor
from tailrace.pipelines.ticks.row import Tick

log = logging.getLogger(__name__)

_TABLE = "table:"


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
        {topic: t for topic, t in graph.tables.items() if f"{_TABLE}{topic}" in needed},
        tuple(node for node in graph.nodes if node.id in needed),
        views,
    )


class ProjectTicks:
    """Ticks of a whole project. Owns its drivers: close it."""

    def __init__(
        self, graph: Graph, settings: TickSettings, run: Runner, *,
        plain: frozenset[str] = frozenset(), times: Mapping[str, EventTime] | None = None,
        check: Callable[[], None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:  # fmt: skip
        self._graph = graph
        self._times = times
        self._check = check
        self._settings = replace(settings, declared=frozenset(graph.views))
        self._run = run
        self._plain = plain
        self._clock = clock
        self._fill: TickDriver | None = None
        self._fill_directory = Path(settings.state)
        self.waiting: list[str] = []
        self.rebuilt: set[str] = set()  # views filled since the start
        self.main = self._driver(graph, self._settings)

    def start(self) -> Tick:
        """Find out what is ready; the tick to go on from."""
        with LogReader(self._settings.bootstrap, clock=self._clock) as reader:
            row = last_row(reader, self._settings.project)
        ready = [
            name
            for name, view in self._graph.views.items()
            if row is None or row.nodes.get(name) == view.node
        ]
        self.waiting = [name for name in self._graph.views if name not in ready]
        if self.waiting:
            self.main.close()
            self.main = self._driver(subgraph(self._graph, ready), self._settings)
        self.main.start()
        if not self.main.last.number:
            self.main.first_tick()  # so that readers find the views, empty as they are
        if self.waiting:
            log.info("views to fill", extra={"views": self.waiting})
        return self.main.last

    def step(self, timeout: float) -> Tick | None:
        """One tick of the project, or one of a fill, or None if there was nothing."""
        tick = self.main.step(0.0 if self.waiting else timeout)
        if not self.waiting:
            return tick
        fill = self._fill or self._begin_fill(self.waiting[0])
        if not self._reached(fill):
            filled = fill.step(0.0 if tick is not None else timeout, ceiling=self.main.last)
            if filled is not None and not self._reached(fill):
                return tick
        if self._reached(fill):
            names = dict.fromkeys([*self.main.graph.views, *fill.graph.views])
            tick = self.main.take_over(subgraph(self._graph, names), fill)
            log.info("view filled", extra={"view": self.waiting[0], "ticks": fill.last.number})
            self._end_fill()
        return tick

    def rebuild(self, name: str) -> bool:
        """Fill a view again from its inputs, beside its present generation, which is kept
        up to date and shown until the new one takes its place. False for no such view."""
        if name not in self._graph.views:
            return False
        if name not in self.waiting:
            self.waiting.append(name)
        return True

    @property
    def filling(self) -> dict[str, int]:
        """How many ticks each view that is being filled has behind it."""
        done = 0 if self._fill is None else self._fill.last.number
        return {name: done if number == 0 else 0 for number, name in enumerate(self.waiting)}

    def close(self) -> None:
        if self._fill is not None:
            self._fill.close()
        self.main.close()

    def _driver(self, graph: Graph, settings: TickSettings) -> TickDriver:
        return TickDriver(
            graph,
            settings,
            self._run,
            plain=self._plain,
            times=self._times,
            check=self._check,
            clock=self._clock,
        )

    def _begin_fill(self, name: str) -> TickDriver:
        graph = subgraph(self._graph, [name])
        # The operators are in the path: a fill of other SQL never meets this one's state.
        mark = hashlib.blake2b(graph.views[name].node.encode(), digest_size=6).hexdigest()
        self._fill_directory = Path(f"{self._settings.state}-filling") / f"{name}-{mark}"
        settings = replace(
            self._settings,
            project=f"{self._settings.project}/{name}",
            state=str(self._fill_directory / "state"),
            cache=str(self._fill_directory / "cache"),
        )
        self._fill = self._driver(graph, settings)
        self._fill.start(self.main.last.views)
        if self._fill.last.nodes and self._fill.last.nodes.get(name) != graph.views[name].node:
            # The last fill of this view was of other SQL: begin from nothing.
            self._fill.begin_anew()
        return self._fill

    def _reached(self, fill: TickDriver) -> bool:
        """Has the fill read exactly what the project has, where both read the same?"""
        ours, theirs = self.main.last, fill.last
        if not fill.begun:
            return False
        for source in fill.sources:
            if f"{source}.transactions" in ours.inputs:
                if cursor(ours, source) != cursor(theirs, source):
                    return False
            elif fill.lag:
                return False
        return all(
            ours.inputs[topic] == theirs.inputs.get(topic)
            for topic in self._plain & fill.graph.tables.keys()
            if topic in ours.inputs
        )

    def _end_fill(self) -> None:
        assert self._fill is not None
        self._fill.close()
        self._fill = None
        shutil.rmtree(self._fill_directory, ignore_errors=True)
        self.rebuilt.add(self.waiting.pop(0))
