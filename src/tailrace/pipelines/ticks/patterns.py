"""The ticks of one pattern, or percolation: a sequence of its own, under the key `<project>~<pattern>`.

So a pattern has its own place in what it reads, and one that fails stops no other. What it tells
is written in the transaction of the tick that found it: once, whatever dies when. A tick is due
when there is something to read, and when the watermark has moved since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tailrace.client.admin import Admin
from tailrace.clock import SYSTEM, Clock
from tailrace.pipelines.compiler.declared_patterns import Compiled
from tailrace.pipelines.declare import Percolation
from tailrace.pipelines.engine.graph import ViewPlan
from tailrace.pipelines.ticks.driver import Runner, TickDriver, TickSettings
from tailrace.pipelines.ticks.event_time import watermarks
from tailrace.pipelines.ticks.planner import Plan
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.records.tick import ViewInfo
from tailrace.records.tick import pattern_key as key_of

__all__ = ["PatternTicks", "key_of"]

MATCHES_CONFIG = {"cleanup.policy": "delete"}


class PatternTicks(TickDriver):
    """`beginning`: offsets of its input to begin with, by partition; others from their first."""

    def __init__(
        self,
        compiled: Compiled,
        settings: TickSettings,
        run: Runner,
        *,
        beginning: Mapping[int, int],
        check: Callable[[], None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.compiled = compiled
        self._beginning = beginning
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

    def begin(self) -> Tick:
        """Start, and where nothing was read yet, from the beginning that was written down."""
        tick = self.start()
        topic = self.compiled.topic
        if topic not in tick.inputs and self._beginning:
            inputs = {**tick.inputs, topic: dict(self._beginning)}
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
        """The topic that what it tells always goes to."""
        wished = dict((self.settings.topics or {}).get(view.name, {}))
        partitions = int(wished.pop("partitions", self.settings.changelog_partitions))
        admin.ensure_topic(view.name, partitions, {**MATCHES_CONFIG, **wished})
        return ViewInfo(view.name, view.name, generation, tuple(view.key), view.columns)

    def _tick(self, *how: object, **more: object) -> Tick:
        marks = dict(self.last.watermarks)
        tick = TickDriver._tick(self, *how, **more)  # type: ignore[arg-type]
        self._seen = marks
        return tick
