"""The driver of a project's ticks: plan, run, commit, one after the other.

It keeps one transactional writer for its whole life (`tailrace.<project>.ticks`).
Starting, it first takes the transactional id, which fences an older driver and ends what
that left open, and only then reads the last tick row. A tick's changelog records and its
row are one log transaction: the commit moves input, state and output together, and
whatever is not named in a committed row never happened. So a driver that dies at any
point leaves the last complete tick, and an attempt need not repeat its predecessor.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tailrace.client.admin import Admin
from tailrace.client.errors import ProducerFencedError
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.engine.graph import Graph, TickContext, ViewPlan
from tailrace.pipelines.errors import ShardsChangedError, TickFencedError, TickUnsteadyError
from tailrace.pipelines.reading.decode import dead_key, dead_letter
from tailrace.pipelines.reading.event_rows import StateRows
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.state.shard import Attempt, Figures
from tailrace.pipelines.state.sweep import sweep
from tailrace.pipelines.ticks import seed_from_state as beginning
from tailrace.pipelines.ticks.carried import carried_names
from tailrace.pipelines.ticks.changes import send_changes
from tailrace.pipelines.ticks.event_time import LateShare, horizons, renewed, watermarks
from tailrace.pipelines.ticks.failed_views import subgraph
from tailrace.pipelines.ticks.job import Adoption, Outcome, Work
from tailrace.pipelines.ticks.lost_inputs import TopicWatch, check_beginnings, formats
from tailrace.pipelines.ticks.planner import CutFollower, Plan, Planner
from tailrace.pipelines.ticks.tick_row import Generation, Seeding, Stopped, Tick, parse
from tailrace.pipelines.ticks.tick_size import TickSize
from tailrace.records.tick import TICKS_TOPIC, ViewInfo
from tailrace.telemetry.metrics import counter, gauge, histogram

log = logging.getLogger(__name__)

STEADY_ATTEMPTS = 3
SWEEP_EVERY_SECONDS = 600.0
UNNAMED_FILES_LIVE_SECONDS = 3600.0
TICKS_CONFIG = {"cleanup.policy": "compact", "min.compaction.lag.ms": "604800000"}
CHANGELOG_CONFIG = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "604800000",
    "delete.retention.ms": "604800000",
}

Runner = Callable[[Work], Outcome]


@dataclass(frozen=True, slots=True)
class TickSettings:
    """How a project's ticks run."""

    project: str
    bootstrap: str
    state: str
    cache: str
    shards: int = 4
    limit: int = 200_000
    most_changes: int = 1_000_000  # of a tick, about; see `size`
    changelog_partitions: int = 2
    freshness_ms: int = 1_000
    topics: Mapping[str, Mapping[str, str]] | None = None
    cache_limit: int | None = None  # bytes that the caches of a host may take
    dead: str = ""  # the topic of records that cannot be read, if it has a name of its own
    declared: frozenset[str] = frozenset()  # all views of the project, running or being filled


class TickDriver:
    """Runs ticks of one graph, under one key of `__tailrace_ticks` (`settings.project`).

    `run` does the work of a tick: on Spark, or in process. `check` is called before each
    tick and may raise to have the graph compiled anew.
    """

    def __init__(
        self, graph: Graph, settings: TickSettings, run: Runner, *,
        plain: frozenset[str] = frozenset(), times: Mapping[str, EventTime] | None = None,
        check: Callable[[], None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:  # fmt: skip
        self.graph = graph
        self._times = dict(times or {})
        self._check = check
        self.settings = settings
        self._run = run
        self._plain = plain
        self._clock = clock
        self._reader = LogReader(settings.bootstrap, clock=clock)
        self._writer = TransactionalWriter(settings.bootstrap, f"tailrace.{settings.project}.ticks")
        self._topics = TopicWatch(settings.bootstrap, clock)
        self._cuts: CutFollower | None = None
        self._planner = planner_for(graph, plain)
        self._size = TickSize(settings.most_changes)
        self._swept_at = clock.monotonic()
        self._dropped: tuple[str, ...] = ()
        self._infos: dict[str, ViewInfo] = {}
        self._pinned: dict[str, ViewInfo] = {}  # shown instead of what is written
        self.stopped: dict[str, Stopped] = {}  # views that wait for a rebuild, for the row
        self.build: Mapping[str, Any] = {}  # for the row
        self.last = Tick(settings.project)
        self.purged = ""  # of the last `compact`
        self.attempted: Work | None = None  # by the tick that ran last
        self.dead_topics: Counter[str] = Counter()  # records that could not be read, by topic
        self.late: dict[str, int] = {}  # late rows by topic, since the start
        self.forgotten: dict[str, int] = {}  # rows and versions too late, by topic of a history
        self.late_share: dict[str, float] = {}  # of the last minutes' rows
        self._shares = {topic: LateShare() for topic in self._times}
        self.begun = False  # has it looked for cuts?
        self.lag = 0  # records of known cuts that the last tick left
        self.worked_seconds = 0.0
        self.freshness_ms = 0
        self._ticks = counter("tailrace_ticks_total", "Committed ticks", ["project"])
        self._changes = counter("tailrace_tick_changes_total", "Changelog records", ["project"])
        self._late = counter("tailrace_late_rows_total", "Rows behind the watermark", ["topic"])
        self._forgotten = counter("tailrace_forgotten_rows_total", "Rows and versions that came when the history they need had left", ["topic"])  # fmt: skip
        self._ahead = counter("tailrace_ahead_rows_total", "Rows too far in the future", ["topic"])
        self._share = gauge("tailrace_late_share", "Late rows among the last minutes'", ["topic"])
        self._mark = gauge("tailrace_watermark_ms", "Event time that is complete", ["topic"])
        by = ["project"]
        self._state_bytes = gauge("tailrace_state_bytes", "State of the views, as cached", by)
        self._state_chain = gauge("tailrace_state_chain_versions", "Versions since a snapshot", by)
        self._state_written = counter("tailrace_state_written_bytes_total", "State files", by)
        self._state_changed = gauge("tailrace_state_changed_timestamp_seconds", "When state last changed", by)  # fmt: skip
        self._catch_up = gauge("tailrace_state_catch_up_seconds", "Bringing caches up to date, last tick", by)  # fmt: skip
        self._figures: dict[int, Figures] = {}
        self.catch_up_ms = 0
        self._seconds = histogram("tailrace_tick_seconds", "Plan to commit", ["project"])

    def start(self, known: Tick | None = None, *, forget: bool = False, anew: bool = False) -> Tick:
        """Fence older drivers, then read the last row; the tick to go on from.

        `known` knows earlier generations of views that begin now. `forget`: the state of
        the last row is given up, because every view is filled anew. `anew`: the row itself
        is, and the changelogs with it.
        """
        settings = self.settings
        open_files(settings.state).claim(settings.project)
        with Admin(settings.bootstrap) as admin:
            admin.ensure_topic(TICKS_TOPIC, 1, TICKS_CONFIG)
            self._writer.init()
            row = last_row(self._reader, settings.project)
            if row is None or anew:
                row = Tick(settings.project, shards=settings.shards)
            elif row.shards != settings.shards:
                raise ShardsChangedError(
                    f"the project keeps its state in {row.shards} shards, not {settings.shards}",
                    hint=f"set spark.shards = {row.shards}, or rebuild the views",
                )
            if forget:
                row = replace(row, state={}, operators=(), inputs={}, newest={}, watermarks={})
            self.purged = row.purged
            self._topics.take({t: i for t, i in row.topics.items() if t in self.graph.tables})
            ends = {topic: dict(by) for topic, by in row.ends.items()}
            for view in self.graph.views.values():
                info = row.written(view.name)
                if info is None or row.nodes.get(view.name) != view.node:
                    highest = max(row.highest(view.name), known.highest(view.name) if known else 0)
                    info = self._new_changelog(admin, view, highest + 1)
                    bounds = self._reader.bounds(info.topic)
                    ends[info.topic] = {partition: end for partition, (_, end) in bounds.items()}
                self._infos[view.name] = info
        # Where a topic without cuts was read to means nothing to views that do not read it.
        idle = self._plain - self.graph.tables.keys()
        inputs = {topic: by for topic, by in row.inputs.items() if topic not in idle}
        self.last = replace(row, ends=ends, inputs=inputs)
        self.build = row.build
        self._pinned = {n: row.views[n] for n in row.live if n in self._infos and n in row.views}
        self._dropped = tuple(sorted(set(row.operators) - {node.id for node in self.graph.nodes}))
        self._follow()
        return self.last

    def step(self, timeout: float, *, ceiling: Tick | None = None) -> Tick | None:
        """Wait up to `timeout` seconds for something new and run one tick; None if there
        was nothing. `ceiling`: read no further than that tick has."""
        if self.last.seeding is not None:
            return self._tick(beginning.go_on(self.last, self._reader, self.settings.limit))
        plan = self._plan(0.0, ceiling)
        if plan is None and self._dropped:
            plan = self._unread()
        if plan is None and timeout > 0:
            plan = self._plan(timeout, ceiling)
        if plan is None and self._timed() and self._due():
            plan = self._unread()
        if plan is None:
            self._sweep()
            return None
        return self._tick(plan)

    def first_tick(self) -> Tick:
        """A tick that reads nothing: at the beginning of everything the views exist with it."""
        return self._tick(self._unread())

    def _unread(self, seeding: Seeding | None = None) -> Plan:
        """A tick that reads no topic."""
        return Plan((), self.last.inputs, self.last.positions, None, seeding=seeding)

    def begin_with(self, running: TickDriver, *, tables_only: bool = False) -> Tick | None:
        """The first tick of a fill that begins with rows of the project's operators, at the
        project's cut (see `shared`); None if it can begin with none."""
        held = {node.id for node in running.graph.nodes} & set(running.last.operators)
        offered = {n for n in held if not tables_only or n.startswith(("keyed-", "bag-"))}
        shared = beginning.shared_operators(self.graph, offered)
        apart = beginning.unread(self.graph, shared, running.last, self._plain)
        if not shared or not beginning.is_copied(apart, running.last, self._reader):
            return None
        before = self.last
        self.last = beginning.begun(self.last, self.graph, shared, running.last, self._plain)
        self._topics.take({t: i for t, i in running.last.topics.items() if t in self.graph.tables})
        self._follow()
        copied = beginning.sources_of(self.graph, shared) & held
        settings = running.settings
        adoption = Adoption(
            settings.state, settings.cache, running.last.state, tuple(sorted(copied))
        )
        try:
            return self._tick(self._unread(self.last.seeding), adoption)
        except BaseException:
            self.last = before  # nothing was copied: the rows must not be looked for here
            raise

    @property
    def lost_beginning(self) -> bool:
        """Whether retention has removed records of a table: rows that have not changed since
        are then no longer in its topic."""
        tables = self.graph.tables.keys() - self._plain
        return any(low for topic in tables for low, _ in self._reader.bounds(topic).values())

    def take_over(self, graph: Graph, fill: TickDriver) -> Tick:
        """One tick after which the views of `fill` are this driver's own.

        `graph` holds the views of both. Both have read to one cut, so the state of
        operators that only the fill has is simply added; for a view that this driver has
        already (a rebuild) the fill's state replaces its own.
        """
        running = {node.id for node in self.graph.nodes}
        rebuilt = fill.graph.views.keys() & self.graph.views.keys()
        wanted = {node.id for node in fill.graph.nodes if rebuilt or node.id not in running}
        adoption = Adoption(
            fill.settings.state, fill.settings.cache, fill.last.state, tuple(sorted(wanted))
        )
        # A topic that only the fill reads may be another one than was once read by that name.
        apart = fill.graph.tables.keys() - self.graph.tables.keys()
        new = {topic: by for topic, by in fill.last.inputs.items() if topic in apart}
        self.graph = graph
        for name, info in fill._infos.items():
            number = max(info.generation, self.last.highest(name) + 1)
            self._infos[name] = replace(info, generation=number)
            self._pinned.pop(name, None)
        self.last = replace(
            self.last,
            ends={**self.last.ends, **fill.last.ends},
            # Versions of a table are told apart by the ticks that read them.
            number=max(self.last.number, fill.last.number),
            inputs={**fill.last.inputs, **self.last.inputs, **new},
            positions={**fill.last.positions, **self.last.positions},
        )
        self._planner = planner_for(graph, self._plain)
        self._follow()
        return self._tick(self._unread(), adoption, fill.settings.project)

    def roll_back(self, name: str) -> bool:
        """One tick after which the generation before is shown again, as it last was.

        The present one is written on, unseen, until `show_newest` or a rebuild. False if
        no earlier generation is kept.
        """
        previous = self.last.previous(name)
        if name not in self.graph.views or previous is None:
            return False
        # A number of its own: copies elsewhere take a smaller one for an old message.
        number = self.last.highest(name) + 1
        self._pinned[name] = replace(previous.info, generation=number)
        self.last = replace(self.last, ends={**self.last.ends, previous.info.topic: previous.ends})
        self.first_tick()
        return True

    def show_newest(self, name: str) -> bool:
        """Undo `roll_back`; False if the view was not rolled back."""
        if self._pinned.pop(name, None) is None:
            return False
        number = self.last.highest(name) + 1
        self._infos[name] = replace(self._infos[name], generation=number)
        self.first_tick()
        return True

    @property
    def topics(self) -> list[str]:
        """The changelogs it writes."""
        return [info.topic for info in self._infos.values()]

    def drop(self, name: str, beside: Sequence[str] = ()) -> list[str]:
        """Delete the topics of a view that are neither shown nor written, and those of a
        fill that was given up (`beside`); their names.

        The topics go first: whoever dies in between finds them still in the row.
        """
        topics = [*self.last.droppable(name), *beside]
        with Admin(self.settings.bootstrap) as admin:
            held = {topic.name for topic in admin.list_topics()}
            for topic in topics:
                if topic in held:
                    admin.delete_topic(topic)
        left = tuple(g for g in self.last.others.get(name, ()) if g.info.topic not in topics)
        self.last = replace(self.last, others={**self.last.others, name: left})
        ended = beside or name not in self.settings.declared
        gone = f"{self.settings.project}/{name}" if ended else ""
        self._tick(self._unread(), filled=gone)
        return topics

    def compact(self, mark: str) -> None:
        """Write the state of every shard again, without what operators have deleted, and remove
        all that was written before; the row says `mark` from then on, for who keeps pages of it.
        Only the newest tick can be gone on from afterwards."""
        settings = self.settings
        files, cache = open_files(settings.state), Path(settings.cache)
        with Attempt.begin(files, cache, self.last.state, cache_limit=settings.cache_limit) as old:
            kept = [shard for shard, version in sorted(self.last.state.items()) if version]
            whole = {shard: old.shard(shard).whole(self.last.number + 1) for shard in kept}
        self.purged = mark
        plan = self._unread()
        self.last = self._commit(plan, self.last.number + 1, Outcome(files=whole), "")
        with Attempt.begin(files, cache, self.last.state, cache_limit=settings.cache_limit) as new:
            for shard in kept:
                new.shard(shard)  # restores the cache: its free pages held what was deleted
        removed = sweep(files, self.last.state, older_than=math.inf)
        log.info("state compacted", extra={"removed": removed})

    def _timed(self) -> bool:
        """Whether time alone may make a tick due."""
        return self.graph.timed

    def _idle(self) -> bool:
        """Whether a tick that reads nothing can change nothing."""
        return not self.graph.timed

    def _due(self) -> bool:
        """Has so much time passed that views which look at the clock must be told?"""
        return self._clock.wall_ms() - self.last.ts_ms >= self.settings.freshness_ms

    def _tick(self, plan: Plan, adoption: Adoption | None = None, filled: str = "") -> Tick:
        if self._check is not None:
            self._check()
        began = self._clock.monotonic()
        number = self.last.number + 1
        outcome = self._work(plan, number, adoption)
        self._topics.check({one.topic for one in plan.ranges}, self.last, self._reader)
        tick = self._commit(plan, number, outcome, filled)
        self.last = tick
        self._size.learn(plan.records, outcome.changes)
        self._dropped = ()
        self.dead_topics.update(record.topic for record in outcome.dead)
        self._tell_time(outcome)
        self._tell_state(outcome)
        self.lag = self._planner.lag(tick)
        self.worked_seconds = self._clock.monotonic() - began
        if plan.committed_ms is not None:
            self.freshness_ms = max(0, self._clock.wall_ms() - plan.committed_ms)
        self._seconds.labels(self.settings.project).observe(self.worked_seconds)
        self._ticks.labels(self.settings.project).inc()
        self._sweep()
        return tick

    def _tell_time(self, outcome: Outcome) -> None:
        """Late rows, their share, and watermarks, for whoever watches."""
        timing = outcome.timing
        for topic, count in timing.late_rows.items():
            self.late[topic] = self.late.get(topic, 0) + count
            self._late.labels(topic).inc(count)
        for topic, count in timing.ahead.items():
            self._ahead.labels(topic).inc(count)
            log.warning("rows lie too far in the future", extra={"topic": topic, "rows": count})
        for topic, count in outcome.forgotten.items():
            self.forgotten[topic] = self.forgotten.get(topic, 0) + count
            self._forgotten.labels(topic).inc(count)
        for topic, share in self._shares.items():
            rows, late = timing.rows.get(topic, 0), timing.late_rows.get(topic, 0)
            self.late_share[topic] = share.add(self._clock.monotonic(), rows, late)
            self._share.labels(topic).set(self.late_share[topic])
        for topic, mark in self.last.watermarks.items():
            self._mark.labels(topic).set(mark)

    def _tell_state(self, outcome: Outcome) -> None:
        """Size and age of the state."""
        if not outcome.figures:
            return
        project = self.settings.project
        self._figures.update(outcome.figures)
        self.catch_up_ms = outcome.opened_ms
        self._catch_up.labels(project).set(outcome.opened_ms / 1000)
        self._state_bytes.labels(project).set(self.state_bytes)
        self._state_chain.labels(project).set(max(f.depth for f in self._figures.values()))
        written = sum(figures.written_bytes for figures in outcome.figures.values())
        if written:
            self._state_written.labels(project).inc(written)
            self._state_changed.labels(project).set(self._clock.wall_ms() / 1000)

    @property
    def dead(self) -> int:
        """Records of the views' topics that could not be read."""
        return self.dead_topics.total()

    def dead_of(self, view: str) -> int:
        """Those of the topics that a view reads."""
        return sum(self.dead_topics[topic] for topic in subgraph(self.graph, [view]).tables)

    @property
    def state_bytes(self) -> int:
        """What the state takes on disk, as cached; 0 before the first tick."""
        return sum(figures.cache_bytes for figures in self._figures.values())

    @property
    def late_alarms(self) -> dict[str, float]:
        """Streams of which more rows come too late than they were declared to bear."""
        return {
            topic: share
            for topic, share in self.late_share.items()
            if share > self._times[topic].alarm
        }

    @property
    def sources(self) -> frozenset[str]:
        """The sources whose cuts it follows."""
        return frozenset(self._planner.topics)

    def count_on(self, before: TickDriver) -> None:
        """Go on counting where the driver of the same project before this one stopped."""
        self.dead_topics, self.late = before.dead_topics, before.late
        self.forgotten = before.forgotten

    def begin_anew(self) -> None:
        """Forget the last row: the next tick begins from the start of the topics."""
        self.last = Tick(self.settings.project, shards=self.settings.shards, ends=self.last.ends)
        self._dropped = ()
        self._follow()

    def close(self) -> None:
        if self._cuts is not None:
            self._cuts.close()
        self._reader.close()
        self._topics.close()
        self._writer.close()

    def _plan(self, timeout: float, ceiling: Tick | None) -> Plan | None:
        assert self._cuts is not None
        self._topics.look(self.graph.tables, self.last, self._reader)
        self._planner.add(self._cuts.poll(timeout))
        self.begun = True
        limit = self._size.records(self.settings.limit)
        plan = self._planner.plan(self.last, self._reader, limit, ceiling)
        if plan is not None:
            check_beginnings(self.graph, self.last, plan.ranges, self._reader)
        return plan

    def _work(self, plan: Plan, number: int, adoption: Adoption | None) -> Outcome:
        # In its first tick an operator may have something to say about no rows at all.
        first = number == 1 and any(node.operator.wakes for node in self.graph.nodes)
        busy = plan.ranges or self._dropped or adoption is not None or plan.seeding is not None
        if not busy and not first and self._idle():
            return Outcome()  # only positions moved: no view can change
        settings, marks = self.settings, self.last.watermarks
        work = Work(
            settings.bootstrap,
            self.graph,
            plan.ranges,
            TickContext(
                number,
                self._clock.wall_ms(),
                dict(marks),
                horizons(self._times, marks),
                shards=settings.shards,
            ),
            self.last.state,
            settings.shards,
            settings.state,
            settings.cache,
            self._plain,
            self._dropped,
            adoption,
            self._times,
            settings.cache_limit,
            seeding=plan.seeding,
            limit=settings.limit,
            partitions={
                view: self._writer.partitions_of(self._infos[view].topic)
                for view in self.graph.views
            },
        )
        return self._steadily(work)

    def _steadily(self, work: Work) -> Outcome:
        """Run the job; an attempt whose tasks gave two answers is thrown away and repeated."""
        self.attempted = work
        for left in reversed(range(STEADY_ATTEMPTS)):
            try:
                return self._run(work)
            except TickUnsteadyError as problem:
                if not left:
                    raise
                log.warning("tick thrown away", extra={"reason": problem.detail})
        raise AssertionError("unreachable")

    def _commit(self, plan: Plan, number: int, outcome: Outcome, filled: str) -> Tick:
        project = self.settings.project
        writer = self._writer
        headers = (
            ("tailrace.tick", str(number).encode()),
            ("tailrace.position", f"tick:{project}:{number}".encode()),
        )
        try:
            kept = [g for generations in self.last.others.values() for g in generations]
            ends = {
                **{generation.info.topic: dict(generation.ends) for generation in kept},
                **{topic: dict(by) for topic, by in self.last.ends.items()},
            }
            for view, pieces in outcome.changes.items():
                count = send_changes(writer, self._infos[view].topic, pieces, headers)
                self._changes.labels(project).inc(count)
            for record in outcome.dead:
                # A fill's are the project's own.
                name = self.settings.dead or f"{project.partition('/')[0]}.dead"
                writer.send(name, None, dead_key(record), dead_letter(record), headers)
            for record in outcome.timing.late:
                name = f"{record.topic}.late"
                writer.send(name, None, dead_key(record), dead_letter(record), headers)
            for (topic, partition), end in writer.flush().items():
                if topic in ends:
                    ends[topic][partition] = end
            now = self._clock.wall_ms()
            newest = renewed(self.last.newest, outcome.timing.newest, self._times, now)
            tick = Tick(
                project=project,
                number=number,
                cut=plan.positions,
                inputs=plan.inputs,
                positions=plan.positions,
                watermarks=watermarks(self._times, newest, self.last.watermarks, now),
                newest=newest,
                state={**self.last.state, **outcome.files},
                purged=self.purged,
                ends={info.topic: ends[info.topic] for info in self._shown().values()},
                views=self._shown(),
                nodes={
                    **{name: self.last.nodes.get(name, "") for name in self._shown()},
                    **{view.name: view.node for view in self.graph.views.values()},
                },
                operators=tuple(sorted(node.id for node in self.graph.nodes)),
                others=self._others(ends),
                live={n: self._infos[n].topic for n in self._pinned if n in self.graph.views},
                fingerprint=self.graph.fingerprint,
                carried=carried_names(self.graph),
                formats=formats(self.graph),
                topics=self._topics.of(self.graph.tables),
                shards=self.settings.shards,
                ts_ms=now,
                seeding=beginning.rest(plan.seeding, outcome.left, plan.inputs),
                build=self.build,
                stopped={n: s for n, s in self.stopped.items() if n in self.settings.declared},
            )
            # The row goes last, after everything it vouches for is acknowledged.
            writer.send(TICKS_TOPIC, 0, project.encode(), tick.encode(), headers)
            if filled:  # the row of the fill has done its work
                writer.send(TICKS_TOPIC, 0, filled.encode(), None, headers)
            writer.commit()
        except ProducerFencedError as fenced:
            raise TickFencedError(
                f'another driver of project "{project}" has taken over',
                detail=f"tick {number} was not committed by this one",
                hint="run one `tailrace up` per project",
            ) from fenced
        return tick

    def _shown(self) -> dict[str, ViewInfo]:
        """The views a row names: ours, and those whose next generation is being filled."""
        kept = {
            name: info
            for name, info in self.last.views.items()
            if name in self.settings.declared and name not in self.graph.views
        }
        ours = {name: self._pinned.get(name, self._infos[name]) for name in self.graph.views}
        return {**kept, **ours}

    def _others(self, ends: Mapping[str, Mapping[int, int]]) -> dict[str, tuple[Generation, ...]]:
        """The generations that are kept: once shown, or written while another is shown."""
        shown = self._shown()
        found: dict[str, tuple[Generation, ...]] = {}
        for name in {*self.last.others, *self.last.views, *self._infos}:
            records = {g.info.topic: g.info for g in self.last.others.get(name, ())}
            for info in (self.last.views.get(name), self._infos.get(name)):
                if info is not None:
                    records.setdefault(info.topic, info)
            if name in shown and name not in self._pinned:
                records.pop(shown[name].topic, None)
            if records:
                kept = sorted(records.values(), key=lambda info: info.generation)
                found[name] = tuple(Generation(info, ends[info.topic]) for info in kept)
        return found

    def _new_changelog(self, admin: Admin, view: ViewPlan, generation: int) -> ViewInfo:
        """An empty topic for a view that begins: of this generation, or a later one."""
        while True:
            topic = view.name if generation == 1 else f"{view.name}.{generation}"
            admin.ensure_topic(
                topic, self.settings.changelog_partitions, self._topic_config(view.name)
            )
            if not any(end for _, end in self._reader.bounds(topic).values()):
                return ViewInfo(view.name, topic, generation, tuple(view.key), view.columns)
            generation += 1

    def _follow(self) -> None:
        if self._cuts is not None:
            self._cuts.close()
        starts = {
            source: self.last.inputs.get(f"{source}.transactions", {}).get(0, 0)
            for source in self._planner.topics
        }
        self._cuts = CutFollower(self.settings.bootstrap, starts, clock=self._clock)

    def _topic_config(self, name: str) -> dict[str, str]:
        wished = dict((self.settings.topics or {}).get(name, {}))
        wished.pop("partitions", None)
        return {**CHANGELOG_CONFIG, **wished}

    def _sweep(self) -> None:
        if self._clock.monotonic() - self._swept_at < SWEEP_EVERY_SECONDS:
            return
        self._swept_at = self._clock.monotonic()
        limit = self._clock.wall_ms() / 1000 - UNNAMED_FILES_LIVE_SECONDS
        removed = sweep(open_files(self.settings.state), self.last.state, older_than=limit)
        if removed:
            log.info("state files swept", extra={"removed": removed})


def last_row(reader: LogReader, key: str) -> Tick | None:
    """The last committed tick row under `key`."""
    value = reader.last_value(TICKS_TOPIC, 0, key.encode())
    return None if value is None else parse(value)


def planner_for(graph: Graph, plain: frozenset[str]) -> Planner:
    """A planner for what the views of `graph` read; `plain` are topics without cuts."""
    by_source: dict[str, set[str]] = {}
    for topic in graph.tables:
        if topic not in plain:
            by_source.setdefault(topic.split(".", 1)[0], set()).add(topic)
    used = plain & graph.tables.keys()
    sources = {source: frozenset(topics) for source, topics in by_source.items()}
    return Planner(sources, used, states_of(graph))


def states_of(graph: Graph) -> dict[str, str]:
    """The tables of published states that are read, and the event topic of each."""
    return {
        topic: table.reading.events
        for topic, table in graph.tables.items()
        if isinstance(table.reading, StateRows)
    }
