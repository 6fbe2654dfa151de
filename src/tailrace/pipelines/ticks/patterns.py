"""The ticks of one pattern, or percolation: a sequence of its own, under the key `<project>~<pattern>`.

So a pattern has its own place in what it reads, and one that fails stops no other. What it tells
is written in the transaction of the tick that found it: once, whatever dies when. A tick is due
when there is something to read, and when the watermark has moved since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from tailrace.client.admin import Admin
from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.compiler.declared_patterns import Compiled
from tailrace.pipelines.declare import Percolation
from tailrace.pipelines.engine.graph import ViewPlan
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.driver import Runner, TickDriver, TickSettings
from tailrace.pipelines.ticks.event_time import watermarks
from tailrace.pipelines.ticks.job import Outcome
from tailrace.pipelines.ticks.planner import Plan
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.records.tick import TICKS_TOPIC, ViewInfo
from tailrace.records.tick import pattern_key as key_of

__all__ = ["PatternTicks", "key_of"]

FILLING, HELD, KEPT = "filling", "held", "kept"
"""What a build beside the shown one waits for: to have read as far; `switch`; either again."""

MATCHES_CONFIG = {"cleanup.policy": "delete"}


def beside_topic(name: str, generation: int) -> str:
    """Where a build that is not shown tells what it finds."""
    return f"{name}.{generation}"


def shown_as(tick: Tick, topics: Mapping[str, str], reader: LogReader, now: int) -> Tick:
    """The next row of a build, whose views go to other topics from now on."""
    views = {n: replace(info, topic=topics[n]) for n, info in tick.views.items()}
    ends = {
        topic: {partition: end for partition, (_, end) in reader.bounds(topic).items()}
        for topic in {*topics.values(), *(info.topic for info in tick.views.values())}
    }
    told = [dict(one) for one in tick.build.get("told", ())]
    for one in told:
        if "to" not in one and one["topic"] in ends:
            one["to"] = _texts(ends[one["topic"]])
    first = next(iter(views.values()))
    told.append({"topic": first.topic, "from": _texts(ends[first.topic])})
    build = {**tick.build, "told": told, "mode": KEPT}
    kept = {info.topic: ends[info.topic] for info in views.values()}
    return replace(tick, number=tick.number + 1, views=views, ends=kept, build=build, ts_ms=now)


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


class PatternTicks(TickDriver):
    """`beginning`: offsets of its input to begin with, by partition; others from their first.
    `beside`: it is built beside the one that is shown, and tells topics of its own."""

    def __init__(
        self,
        compiled: Compiled,
        settings: TickSettings,
        run: Runner,
        *,
        beginning: Mapping[int, int],
        beside: bool = False,
        check: Callable[[], None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.compiled = compiled
        self._beginning = beginning
        self._beside = beside
        self._seen: Mapping[str, int] | None = None  # watermarks that operators know
        TickDriver.__init__(
            self,
            compiled.graph,
            settings,
            run,
            plain=compiled.plain_topics,
            times=compiled.times,
            check=check,
            clock=clock,
        )

    def begin(self, known: Tick | None = None, *, anew: bool = False) -> Tick:
        """Start, and where nothing was read yet, from the beginning that was written down.
        `known` has earlier generations; `anew`: what the last row tells is given up."""
        tick = self.start(known, anew=anew)
        topic = self.compiled.topic
        if topic not in tick.inputs and self._beginning:
            begins = dict(self._beginning)
            if self._beside:  # what is gone by now was read by the one that is shown
                for partition, (first, _) in self._reader.bounds(topic).items():
                    begins[partition] = max(first, begins.get(partition, first))
            inputs = {**tick.inputs, topic: begins}
            self.last = tick = replace(tick, inputs=inputs)
        return tick

    def _plan(self, timeout: float, ceiling: Tick | None) -> Plan | None:
        plan = TickDriver._plan(self, timeout, ceiling)
        declared = self.compiled.pattern
        if plan is None or not isinstance(declared, Percolation):
            return plan
        # Events wait until the first copy of the queries is whole: they would miss them.
        topic = declared.queries.topic
        copied = topic in self._plain or f"{topic.split('.', 1)[0]}.transactions" in plan.inputs
        return plan if copied else None

    def _moved(self) -> bool:
        """Whether operators have not seen the present watermarks."""
        return bool(self.last.watermarks) and self.last.watermarks != self._seen

    def _due(self) -> bool:
        if self._moved():
            return True
        now = self._clock.wall_ms()  # a partition that fell silent holds the others up no more
        marks = watermarks(self._times, self.last.newest, self.last.watermarks, now)
        return marks != self.last.watermarks

    def _timed(self) -> bool:
        return True

    def _idle(self) -> bool:
        return not self._moved()

    def _new_changelog(self, admin: Admin, view: ViewPlan, generation: int) -> ViewInfo:
        """The topic that what it tells goes to: of the pattern's name, where it is shown."""
        topic = view.name if not self._beside else beside_topic(view.name, generation)
        self.ensure(admin, view.name, topic)
        return ViewInfo(view.name, topic, generation, tuple(view.key), view.columns)

    def ensure(self, admin: Admin, name: str, topic: str) -> None:
        """Have a topic for what a pattern tells."""
        wished = dict((self.settings.topics or {}).get(name, {}))
        partitions = int(wished.pop("partitions", self.settings.changelog_partitions))
        admin.ensure_topic(topic, partitions, {**MATCHES_CONFIG, **wished})

    def align(self, other: PatternTicks) -> None:
        """Both have read the same: let both know the later watermark, and tell what it ends."""
        marks, newest = dict(self.last.watermarks), dict(self.last.newest)
        for topic, mark in other.last.watermarks.items():
            marks[topic] = max(mark, marks.get(topic, mark))
        for topic, seen in other.last.newest.items():
            newest[topic] = max(seen, newest.get(topic, seen))
        for one in (self, other):
            one.last = replace(one.last, watermarks=marks, newest=newest)
            one.first_tick()

    def swap(self, shown: Tick, shown_key: str) -> None:
        """One transaction after which this build is shown, and what was is beside it."""
        names = tuple(self.last.views)
        with Admin(self.settings.bootstrap) as admin:
            for name, info in shown.views.items():
                self.ensure(admin, name, beside_topic(name, info.generation))
        now = self._clock.wall_ms()
        mine = shown_as(self.last, {name: name for name in names}, self._reader, now)
        theirs = shown_as(
            shown,
            {name: beside_topic(name, info.generation) for name, info in shown.views.items()},
            self._reader,
            now,
        )
        for key, tick in ((self.settings.project, mine), (shown_key, theirs)):
            self._writer.send(TICKS_TOPIC, 0, key.encode(), tick.encode(), ())
        self._writer.commit()

    def give_up(self, more: Collection[str] = ()) -> list[str]:
        """Forget this build: its row first, then its topics and `more`; their names."""
        self._writer.send(TICKS_TOPIC, 0, self.settings.project.encode(), None, ())
        self._writer.commit()
        names = self.last.views.keys()
        topics = {info.topic for info in self.last.views.values()} | {*more}
        gone = sorted(topics - names)
        with Admin(self.settings.bootstrap) as admin:
            held = {topic.name for topic in admin.list_topics()}
            for topic in gone:
                if topic in held:
                    admin.delete_topic(topic)
        return gone

    def _commit(self, plan: Plan, number: int, outcome: Outcome, filled: str) -> Tick:
        if self._beside:  # late rows and dead letters are written by the shown one, once
            outcome = replace(outcome, dead=[], timing=replace(outcome.timing, late=[]))
        return TickDriver._commit(self, plan, number, outcome, filled)

    @property
    def settled(self) -> bool:
        """Whether operators have seen the present watermarks."""
        return not self._moved()

    def _tick(self, *how: object, **more: object) -> Tick:
        marks = dict(self.last.watermarks)
        tick = TickDriver._tick(self, *how, **more)  # type: ignore[arg-type]
        self._seen = marks
        return tick
