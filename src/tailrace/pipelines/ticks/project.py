"""All views of a project, those that run and those that are being filled.

A view is *ready* when the last tick row holds the state of its operators. Any other view
(new, or declared anew with other SQL) is filled first, beside the project, in a sequence
of ticks of its own (key `<project>/<view>` in `__tailrace_ticks`), of bounded size, into a
topic no project row names. It begins with the rows that operators of the running project
hold, where it shares them (see `shared`), and else from the start of its topics; a rebuild
always does. It never reads past the project's own cut; when it has reached that cut, one
tick of the project takes over its operators' state and names its topic. Until then the
project goes on ticking, and a view that was declared anew is shown as it last was. A fill
that dies goes on where it stood.
A fill may be *held*: it is then kept up to date beside the project until `switch`.
A view that a tick fails on is put aside (see `aside`) and filled again in the same way. One
whose records were lost is stopped (see `stale`): it waits for a rebuild, whoever starts anew.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tailrace.client.admin import Admin
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import TailraceError
from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.errors import ContentsError, DataLostError, ViewError
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.state.files import remove_below
from tailrace.pipelines.ticks.carried import as_carried, was_ended_by
from tailrace.pipelines.ticks.driver import Runner, TickDriver, TickSettings, last_row, states_of
from tailrace.pipelines.ticks.failed_views import Aside, at_fault, subgraph
from tailrace.pipelines.ticks.lost_inputs import hindrances, remembered
from tailrace.pipelines.ticks.planner import cursor
from tailrace.pipelines.ticks.seed_from_state import share_read
from tailrace.pipelines.ticks.tick_row import Stopped, Tick
from tailrace.pipelines.ticks.tick_size import NO_LIMIT

log = logging.getLogger(__name__)


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
        self._settings = replace(settings, declared=settings.declared | graph.views.keys())
        self._run = run
        self._plain = plain
        self._clock = clock
        self._fills: dict[str, TickDriver] = {}
        self.waiting: list[str] = []
        self._rebuilt: set[str] = set()  # of those, the ones to be filled from their topics
        self.held: set[str] = set()  # of those, the ones that wait for `switch`
        self.asked: set[Path] = set()  # wishes that have been begun
        self.aside = Aside(clock)
        self._stopped: dict[str, TailraceError] = {}  # views that wait for an asked rebuild
        self._anew: set[str] = set()  # views whose last fill is given up
        self._clean: set[str] = set()  # views whose fill must have read no topic before
        self.main = self._driver(graph, self._settings)

    def start(self, rebuilding: Collection[str] = ()) -> Tick:
        """Find out what is ready; the tick to go on from.

        A view that cannot go on (see `stale`) is stopped, unless it is among `rebuilding`:
        then it is filled anew. When all are stopped it is an error; when all are filled anew,
        whatever state there is is given up.
        """
        settings = self._settings
        with LogReader(settings.bootstrap, clock=self._clock) as reader:
            row = last_row(reader, settings.project)
            compiled, self._graph = self._graph, as_carried(self._graph, row)
            stale = {} if row is None else hindrances(row, self._graph, reader, settings.bootstrap)
        before = {} if row is None else row.stopped
        stale |= {
            name: remembered(why)
            for name, why in before.items()
            if row and name in compiled.views and was_ended_by(compiled, row, name, why.node)
        }
        self._anew = before.keys() & set(rebuilding)
        self._stop({name: why for name, why in stale.items() if name not in rebuilding})
        self._rebuilt = set(rebuilding)
        forget = bool(self._graph.views) and self._graph.views.keys() <= set(rebuilding)
        ready = [
            name
            for name in self._graph.views
            if row is None or (self._keeps(row, name) and name not in stale and not forget)
        ]
        kept = {*ready, *self._stopped}
        self.waiting = [name for name in self._graph.views if name not in kept]
        if self.waiting or self._stopped or self._graph is not compiled:
            self.main.close()
            self.main = self._driver(subgraph(self._graph, ready), self._settings)
            self.main.stopped = self._stopped_rows()
        self.main.start(forget=forget)
        if not self.main.last.number:
            self.main.first_tick()  # so that readers find the views, empty as they are
        if self.waiting:
            log.info("views to fill", extra={"views": self.waiting})
        return self.main.last

    def _keeps(self, row: Tick, name: str) -> bool:
        """Whether the state of a view, all of it, is in a row."""
        needed = {node.id for node in subgraph(self._graph, [name]).nodes}
        return row.keeps(name, self._graph.views[name].node) and needed <= set(row.operators)

    def step(self, timeout: float) -> Tick | None:
        """One tick of the project, or one of a fill, or None if there was nothing."""
        name = self.catching_up
        tick = self._step_main(timeout if name is None else 0.0)
        for other in self.held & self._fills.keys() - {name}:
            if not self.aside.waits(other):
                self._step_fill(other, self._fills[other], 0.0)
        if name is None:
            return tick
        fill = self._fills.get(name) or self._begin_fill(name)
        if name not in self._fills:
            return tick  # it failed, and was put aside
        if not self._reached(fill) or self.aside.untried(name):
            filled = self._step_fill(name, fill, 0.0 if tick is not None else timeout)
            # What nobody else reads has no end to reach: taken over unread, the view would
            # fail in the project's next tick, and be filled again, without end.
            if self.aside.untried(name) or (filled is not None and not self._reached(fill)):
                return tick
        fill = self._fills.get(name, fill)
        if self._reached(fill) and name not in self.held:
            names = dict.fromkeys([*self.main.graph.views, *fill.graph.views])
            try:
                tick = self.main.take_over(subgraph(self._graph, names), fill)
            except ViewError as problem:
                log.error("view cannot be taken over", extra={"view": name, **problem.as_dict()})
                self.aside.put(name, problem)
                self._go_on_without([name])
                return tick
            log.info("view filled", extra={"view": name})
            self._end_fill(name)
        return tick

    def _step_main(self, timeout: float) -> Tick | None:
        """A tick of the project; views that it fails on are put aside. When all of them
        fail there is nothing to go on with, and the error is raised."""
        try:
            return self.main.step(timeout)
        except DataLostError:
            with LogReader(self._settings.bootstrap, clock=self._clock) as reader:
                row, graph = self.main.last, self.main.graph
                lost = hindrances(row, graph, reader, self._settings.bootstrap)
            if not lost:
                raise
            self._stop(lost)
            self._go_on_without(lost)
            return None
        except ViewError as problem:
            work = self.main.attempted
            found = {} if work is None else at_fault(work, self._run)
            if found.keys() == self.main.graph.views.keys():
                raise next(iter(found.values())) from problem
            if not found:
                raise
        for name, fault in found.items():
            log.error("view suspended", extra={"view": name, **fault.as_dict()})
            self.aside.put(name, fault)
            if name not in self.waiting:
                self.waiting.append(name)
        self._go_on_without(found)
        return None

    def _go_on_without(self, names: Collection[str]) -> None:
        """Begin the project's ticks again with its other views."""
        rest = [name for name in self.main.graph.views if name not in names]
        before = self.main
        before.close()
        self.main = self._driver(subgraph(self._graph, rest), self._settings)
        self.main.count_on(before)
        self.main.stopped = self._stopped_rows()
        self.main.start()

    def _stop(self, problems: Mapping[str, TailraceError]) -> None:
        """Leave views as they are until somebody asks for their rebuild. Nothing is left to go
        on with when these are all of them: then the error is raised."""
        if problems and {*problems, *self._stopped} >= self._graph.views.keys():
            raise next(iter(problems.values()))
        for name, problem in problems.items():
            log.error("view stopped", extra={"view": name, **problem.as_dict()})
            self._stopped[name] = problem
            self._give_up_fill(name)

    def _give_up_fill(self, name: str) -> None:
        if name in self._fills:
            self._fills.pop(name).close()
        if name in self.waiting:
            self.waiting.remove(name)
        self._rebuilt.discard(name)
        self.held.discard(name)
        self.aside.forget(name)

    def _stopped_rows(self) -> dict[str, Stopped]:
        return {
            name: Stopped(self._end(name), problem.as_dict())
            for name, problem in self._stopped.items()
        }

    def _end(self, name: str) -> str:
        """What the operator is that ends a view, whatever its state is called."""
        node = self._graph.views[name].node
        return next((n.identity for n in self._graph.nodes if n.id == node), "") or node

    @property
    def failed(self) -> dict[str, dict[str, str]]:
        """By view that does not go on, its error in four parts."""
        stopped = {name: problem.as_dict() for name, problem in self._stopped.items()}
        return {**self.aside.errors(), **stopped}

    def _step_fill(self, name: str, fill: TickDriver, timeout: float) -> Tick | None:
        """A tick of a fill; one that fails is tried again after a pause."""
        try:
            tick = fill.step(timeout, ceiling=self.main.last)
            self.aside.passed(name)
            return tick
        except DataLostError as problem:
            if name not in self.main.graph.views:
                self._stop({name: problem})
                self.main.stopped = self._stopped_rows()
                return None
            log.error("view cannot be filled", extra={"view": name, **problem.as_dict()})
            self._give_up_fill(name)
            return None
        except (ViewError, ContentsError) as problem:
            if fill.last.seeding is not None:
                self._fill_from_topics(name, problem)
                return None
            if not isinstance(problem, ViewError):
                raise
            log.error("view cannot be filled", extra={"view": name, **problem.as_dict()})
            self.aside.put(name, problem)
            return None

    @property
    def catching_up(self) -> str | None:
        """The view whose fill has work to do; None if there is none."""
        for name in self.waiting:
            if self.aside.waits(name):
                continue
            fill = self._fills.get(name)
            if name not in self.held or fill is None or not self._reached(fill):
                return name
        return None

    def rebuild(self, name: str, *, hold: bool = False) -> bool:
        """Fill a view again from its inputs, beside its present generation, which is kept
        up to date and shown until the new one takes its place: at once, or with `hold`
        when `switch` says so. False for no such view."""
        if name not in self._graph.views:
            return False
        if name not in self.waiting:
            self.waiting.append(name)
        if self._stopped.pop(name, None) is not None:
            self._anew.add(name)
            self.main.stopped = self._stopped_rows()
        self._rebuilt.add(name)
        self.aside.hurry(name)
        if hold and name in self.main.graph.views:
            self.held.add(name)
        return True

    def refill(self, names: Iterable[str]) -> None:
        """Rebuild views from nothing but their topics, as those are now: what fills of them
        have read before is given up, and what is held for `switch` too."""
        for name in names:
            if name in self.held:
                self.drop(name)
            fill = self._fills.get(name)
            if not self.rebuild(name):
                continue
            self._clean.add(name)
            if fill is not None:
                self._fill_from_topics(name, "its topics were cleared")

    def clear(self, names: Iterable[str]) -> None:
        """Delete everything that was kept of these views before their last rebuild."""
        for name in names:
            self.drop(name)
        self.main.compact(f"{self.main.last.number + 1}")

    def views_of(self, topics: Collection[str]) -> list[str]:
        """The views that are made of one of these topics."""
        views = self._graph.views
        return [
            name for name in views if not {*topics}.isdisjoint(subgraph(self._graph, [name]).tables)
        ]

    def switch(self, name: str) -> bool:
        """Let a held generation take its place, or undo `roll_back`; False for neither."""
        if name in self.held:
            self.held.discard(name)
            return True
        return self.main.show_newest(name)

    def roll_back(self, name: str, generation: int | None = None) -> bool:
        """Show the generation before again; False if none is kept, or if `generation` is
        given and no longer the one shown."""
        shown = self.main.last.views.get(name)
        if generation is not None and (shown is None or shown.generation != generation):
            return False
        return self.main.roll_back(name)

    def drop(self, name: str) -> list[str]:
        """Delete what is kept of a view beside what is shown, a held fill too: its topics."""
        beside: list[str] = []
        if name in self.held:
            fill = self._fills.get(name) or self._begin_fill(name)
            beside = fill.topics
            self.held.discard(name)
            self._end_fill(name)
        if name not in self._graph.views:
            remove_below(self._filling_directory, f"{name}-")
        return self.main.drop(name, beside)

    @property
    def filling(self) -> dict[str, int]:
        """The last tick of each view that is being filled; 0 before the first."""
        return {
            name: self._fills[name].last.number if name in self._fills else 0
            for name in self.waiting
        }

    @property
    def filled_shares(self) -> dict[str, float]:
        """How much of what the project has read each fill has read, from 0 to 1."""
        shares: dict[str, float] = {}
        for name in self.waiting:
            fill = self._fills.get(name)
            if fill is not None and fill.last.seeding is not None:
                shares[name] = round(
                    share_read(fill.last.seeding, fill.last.shards, fill.last.inputs), 3
                )
                continue
            done, wanted = self.fills.get(name, (0, 0))
            shares[name] = round(done / wanted, 3) if wanted else 0.0
        return shares

    @property
    def fills(self) -> dict[str, tuple[int, int]]:
        """Of each fill that reads topics, the records it has read and those the project has;
        a fill that begins with rows of running operators has only a share."""
        goal = self.main.last.inputs
        found: dict[str, tuple[int, int]] = {}
        for name, fill in self._fills.items():
            if fill.last.seeding is not None:
                continue
            done = wanted = 0
            for topic in fill.graph.tables:
                ends, read = goal.get(topic, {}), fill.last.inputs.get(topic, {})
                wanted += sum(ends.values())
                done += sum(min(read.get(partition, 0), end) for partition, end in ends.items())
            found[name] = (done, wanted)
        return found

    def close(self) -> None:
        for fill in self._fills.values():
            fill.close()
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

    @property
    def _filling_directory(self) -> str:
        return f"{self._settings.state}-filling"

    def _directory(self, name: str) -> str:
        # The operators are in the path: a fill of other SQL never meets this one's state.
        node = self._graph.views[name].node
        mark = hashlib.blake2b(node.encode(), digest_size=6).hexdigest()
        return f"{self._filling_directory}/{name}-{mark}"

    def _begin_fill(self, name: str) -> TickDriver:
        graph = subgraph(self._graph, [name])
        fill = self._fills[name] = self._fill_driver(name, graph)
        fill.start(self.main.last, anew=name in self._anew)
        self._anew.discard(name)
        if fill.last.nodes and set(fill.last.operators) != {node.id for node in graph.nodes}:
            # The last fill of this view was of other SQL, or of other names: begin from nothing.
            fill.begin_anew()
        if name in self._clean and fill.last.number:
            return self._fill_from_topics(name, "its topics were cleared")
        if not fill.last.number:
            try:
                self._begin_with_rows(name, fill)
            except (ViewError, ContentsError) as problem:
                return self._fill_from_topics(name, problem)
        return fill

    def _begin_with_rows(self, name: str, fill: TickDriver) -> None:
        """Begin a fill with rows of running operators; a rebuild only with those of tables
        whose topics no longer hold all of them."""
        rebuilt = name in self._rebuilt
        if rebuilt and not fill.lost_beginning:
            return
        if fill.begin_with(self.main, tables_only=rebuilt) is not None:
            log.info("view begins with rows of running operators", extra={"view": name})

    def _fill_driver(self, name: str, graph: Graph) -> TickDriver:
        settings = replace(
            self._settings,
            project=f"{self._settings.project}/{name}",
            state=f"{self._directory(name)}/state",
            cache=f"{self._settings.cache}-filling/{Path(self._directory(name)).name}",
        )
        return self._driver(graph, settings)

    def _fill_from_topics(self, name: str, problem: TailraceError | str) -> TickDriver:
        """Give up what a fill began with, and its changelog; begin at the start of its topics.

        Where those do not hold all rows any more, begin with the rows of running operators
        once more, all in one tick: there is no part of them to fail on then. Whoever dies in
        between finds the fill as it was, and comes here again."""
        log.warning("view is filled anew", extra={"view": name, "why": str(problem)})
        self._clean.discard(name)
        given_up = self._fills.pop(name)
        given_up.close()
        fill = self._fills[name] = self._fill_driver(name, given_up.graph)
        fill.start(self.main.last, anew=True)
        if fill.lost_beginning:
            fill.settings = replace(fill.settings, limit=NO_LIMIT)
            try:
                fill.begin_with(self.main, tables_only=True)
            except ViewError as fault:
                self._fills.pop(name).close()
                self.aside.put(name, fault)
                return fill
        with Admin(self._settings.bootstrap) as admin:
            for topic in set(given_up.topics) - set(fill.topics):
                admin.delete_topic(topic)
        return fill

    def _reached(self, fill: TickDriver) -> bool:
        """Has the fill read exactly what the project has, where both read the same?"""
        ours, theirs = self.main.last, fill.last
        if not fill.begun or theirs.seeding is not None:
            return False
        for source in fill.sources:
            if f"{source}.transactions" in ours.inputs:
                if cursor(ours, source) != cursor(theirs, source):
                    return False
            elif fill.lag:
                return False
        return all(
            ours.inputs[topic] == theirs.inputs.get(topic)
            for topic in (self._plain & fill.graph.tables.keys())
            | set(states_of(fill.graph).values())
            if topic in ours.inputs
        )

    def _end_fill(self, name: str) -> None:
        if name in self._fills:
            self._fills.pop(name).close()
        self._rebuilt.discard(name)
        self._clean.discard(name)
        directory = self._directory(name)
        remove_below(self._filling_directory, directory.rpartition("/")[2])
        shutil.rmtree(f"{self._settings.cache}-filling/{Path(directory).name}", ignore_errors=True)
        self.waiting.remove(name)
        self.aside.forget(name)
