"""The patterns and percolations of a project while they run: each with ticks of its own, one after the other.

They tick in a thread of their own, beside those of the views. A pattern that fails does not stop
the others: it is tried again after a pause that doubles, and its status says why. Patterns are
compiled again when a source describes its tables anew.

One that is declared anew goes on as it was, while what is declared now is built beside it (see
`ticks.pattern_builds`); it takes its place when it has read as much, or when `switch` says so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.declared_patterns import Compiled, Events, compile_patterns
from tailrace.pipelines.engine.unforeseen import is_foreseen, unforeseen
from tailrace.pipelines.errors import TickFencedError, UnknownTableError, ViewError
from tailrace.pipelines.process import requests
from tailrace.pipelines.process.requests import Request
from tailrace.pipelines.reading.catalog import Catalog, CatalogChanged, read_catalog
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.state.files import remove_below
from tailrace.pipelines.streams import beginnings
from tailrace.pipelines.streams.checkpoint import StreamFiles
from tailrace.pipelines.ticks.driver import Runner, TickSettings, last_row
from tailrace.pipelines.ticks.pattern_builds import (
    Builds,
    beginning_from,
    caught_up,
    holds,
    read_builds,
    restored,
    written,
)
from tailrace.pipelines.ticks.patterns import FILLING, HELD, KEPT, PatternTicks, key_of
from tailrace.pipelines.ticks.sharding import number_of_shards
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
_WAIT_SECONDS = 0.1
_REPORT_SECONDS = 1.0
_LONGEST_REST = 1.0  # after a tick that left nothing


@dataclass(slots=True)
class _Life:
    """One pattern's changing fortunes."""

    pattern: Events
    ticks: PatternTicks | None = None  # of the build that is shown; None: it cannot go on
    beside: PatternTicks | None = None
    builds: Builds | None = None  # what the log told when they started
    wish: Request | None = None  # to build anew
    switching: Request | None = None
    hurried: Path | None = None  # the last request for which the build beside did not wait
    withdrawn: bool = False  # what is beside is no longer declared: it waits for `switch`
    beside_error: dict[str, str] | None = None
    beside_at: float = 0.0
    start_at: float = 0.0
    pause: float = FIRST_PAUSE
    error: dict[str, str] | None = None
    told: dict[str, int] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """For status and the console."""
        state = "failed" if self.error else "running" if self.ticks else "starting"
        ticks = self.ticks
        return {
            "kind": type(self.pattern).__name__.lower(),
            "state": state,
            "tick": ticks.last.number if ticks else 0,
            "lag": ticks.lag if ticks else None,
            "freshness_ms": ticks.freshness_ms if ticks else None,
            "watermarks": dict(ticks.last.watermarks) if ticks else {},
            "dead": ticks.dead if ticks else 0,
            "late": sum(ticks.late.values()) if ticks else 0,
            "error": self.error,
            "beside": self._beside(),
        }

    def _beside(self) -> dict[str, object] | None:
        beside = self.beside
        if beside is None:
            return {"error": self.beside_error} if self.beside_error else None
        return {
            "generation": max((i.generation for i in beside.last.views.values()), default=0),
            "waits_for": KEPT if self.withdrawn else beside.build.get("mode", KEPT),
            "tick": beside.last.number,
            "lag": beside.lag,
            "error": self.beside_error,
        }


class RunningPatterns:
    """Starts the patterns when what they read is known, and looks after them until `close`."""

    def __init__(
        self, patterns: Sequence[Events], part: Part, settings: config.Settings, run: Runner
    ) -> None:
        self._lives = {pattern.name: _Life(pattern) for pattern in patterns}
        self._part, self._settings, self._run = part, settings, run
        self._stopping = threading.Event()
        self._changed = threading.Event()
        self._catalog: Catalog | None = None
        self._compiled: dict[str, Compiled] = {}
        self._wrong: dict[str, TailraceError] = {}
        self._thread: threading.Thread | None = None
        self.fatal: BaseException | None = None  # for the whole process

    def start(self) -> None:
        if self._lives:
            self._thread = threading.Thread(target=self._work, name="patterns", daemon=True)
            self._thread.start()

    def change(self, settings: config.Settings) -> None:
        """Tick by these settings from the next tick on."""
        if (settings.tick, settings.topics) != (self._settings.tick, self._settings.topics):
            self._settings = settings
            self._changed.set()

    def look_after(self) -> None:
        """Raise what ends the whole process."""
        if self.fatal is not None:
            raise self.fatal

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        reported_at = -_REPORT_SECONDS
        clock = self._part.clock
        try:
            with LogReader(self._part.bootstrap, clock=clock) as reader:
                while not self._stopping.is_set() and not self._part.stopping.is_set():
                    busy = self.step(reader)
                    if clock.monotonic() - reported_at >= _REPORT_SECONDS:
                        reported_at = clock.monotonic()
                        self._part.report(patterns=self.progress())
                    if not busy:
                        self._stopping.wait(_WAIT_SECONDS)
        except BaseException as problem:
            self.fatal = problem
        finally:
            for life in self._lives.values():
                self._stop(life)

    def progress(self) -> dict[str, dict[str, object]]:
        """Every pattern, for status."""
        return {name: life.document() for name, life in self._lives.items()}

    def errors(self) -> list[dict[str, str]]:
        """Those of the patterns that do not go on."""
        return [life.error for life in self._lives.values() if life.error is not None]

    def step(self, reader: LogReader) -> bool:
        """One tick of each pattern that has something to do; whether any had."""
        now, busy = self._part.clock.monotonic(), False
        if self._changed.is_set():
            self._changed.clear()
            for life in self._lives.values():
                self._stop(life)
        self._carry_out()
        for life in self._lives.values():
            if now < life.start_at:
                continue
            try:
                if life.builds is None:
                    self._start(life, reader)
                    self._carry_out()  # what waited for it, before a tick of it fails again
                    if life.builds is None:
                        continue
                busy = self._step_beside(life) or busy
                if life.ticks is not None and life.ticks.step(0.0) is not None:
                    busy, life.error, life.pause = True, None, FIRST_PAUSE
                    if not life.ticks.lag:  # else others on this machine would wait
                        life.start_at = now + min(life.ticks.worked_seconds, _LONGEST_REST)
            except CatalogChanged:
                self._catalog = None
                self._stop(life)
            except TickFencedError:
                raise
            except Exception as problem:
                self._fail(life, problem)
        return busy

    def _start(self, life: _Life, reader: LogReader) -> None:
        name = life.pattern.name
        if self._catalog is None:
            self._catalog = read_catalog(reader)
            patterns = [one.pattern for one in self._lives.values()]
            self._compiled, self._wrong = compile_patterns(patterns, self._catalog.tables)
        if name in self._wrong:
            self._catalog = None  # it may be described by now
            raise self._wrong[name]
        part, compiled = self._part, self._compiled[name]
        builds = read_builds(reader, part.project, name)
        row, other = builds.shown_row, builds.beside_row
        running: Compiled | None = compiled
        if row is not None and row.number and not holds(row, compiled):
            running = restored(row, life.pattern, self._catalog.tables)
        try:
            if running is not None:
                life.ticks = self._ticks(
                    running, builds.shown, self._beginning(life.pattern), reader
                )
                life.ticks.begin()
                build = life.ticks.build
                if running is compiled:
                    first = [{"topic": name, "from": {}}]
                    build = {
                        "mode": KEPT,
                        "told": first,
                        **build,
                        "declared": written(life.pattern),
                    }
                life.ticks.build = build
        except BaseException:
            self._stop(life)
            raise
        wish, life.wish = life.wish, None
        before, life.beside_error = life.beside_error, None
        try:
            self._start_beside(life, wish, builds, reader, compiled, other, running)
        except (CatalogChanged, TickFencedError):
            self._stop(life)
            raise
        except TailraceError as problem:
            if not is_foreseen(problem):
                self._stop(life)
                raise
            if life.beside is not None:
                life.beside.close()
                life.beside = None
            if wish is not None:
                wish.done()
            life.beside_error = problem.as_dict()
            log.error("build fails", extra={"pattern": name, **problem.as_dict()})
        if life.beside is not None and self._part.clock.monotonic() < life.beside_at:
            life.beside_error = before  # it waits still
        life.builds, life.error = builds, None

    def _start_beside(
        self, life: _Life, wish: Request | None, builds: Builds, reader: LogReader,
        compiled: Compiled, other: Tick | None, running: Compiled | None,
    ) -> None:  # fmt: skip
        """Go on with the build beside the shown one, or begin one."""
        assert self._catalog is not None
        begun = builds.shown_row is not None and builds.shown_row.number > 0
        known: Compiled | None = None
        if other is not None and other.number and wish is None:
            known = compiled if holds(other, compiled) else None
            if known is None and running is compiled:
                known = restored(other, life.pattern, self._catalog.tables)
        anew = begun and known is None and (wish is not None or running is not compiled)
        if wish is not None and not begun:
            wish.done()
        if not anew and known is None:
            return
        begin = self._beginning(life.pattern)
        if wish is not None and wish.begin:
            begin = beginning_from(wish.begin, reader, compiled.topic)
        life.beside = self._ticks(known or compiled, builds.beside, begin, reader, beside=True)
        life.beside.begin(builds.shown_row, anew=anew)
        if not anew:
            life.withdrawn = running is compiled and known is not compiled
            return
        topic = next(iter(life.beside.topics))
        life.beside.build = {
            "mode": HELD if wish is not None and wish.action == "build" else FILLING,
            "told": [{"topic": topic, "from": {}}],
            "declared": written(life.pattern),
        }
        life.beside.first_tick()  # what is to become of it is in the log from here on
        log.info("pattern is built beside the shown one", extra={"pattern": life.pattern.name})
        if wish is not None:
            wish.done()

    def _ticks(
        self,
        compiled: Compiled,
        slot: str,
        begin: Mapping[int, int],
        reader: LogReader,
        *,
        beside: bool = False,
    ) -> PatternTicks:
        assert self._catalog is not None
        catalog, part, name = self._catalog, self._part, compiled.pattern.name
        directory, own = part.directory.resolve(), self._settings.spark.cache
        state = self._settings.spark.state or str(directory / "state")
        key = key_of(part.project, name + slot)
        row = last_row(reader, key)
        return PatternTicks(
            compiled,
            TickSettings(
                project=key,
                bootstrap=part.bootstrap,
                state=f"{state}-patterns/{name}{slot}",
                cache=str(directory / "cache" if own is None else own) + f"-patterns/{name}{slot}",
                shards=number_of_shards(self._settings.spark, row),
                limit=self._settings.tick.limit,
                topics=self._settings.topics,
                cache_limit=self._settings.spark.cache_limit,
                declared=frozenset(compiled.graph.views),
                dead=f"{name}.dead",
            ),
            self._run,
            beginning=begin,
            beside=beside,
            check=lambda: catalog.check(reader),
            clock=part.clock,
        )

    def _step_beside(self, life: _Life) -> bool:
        """One tick of the build beside the shown one, never further than that; the switch, when
        it is time. What goes wrong does not stop the shown one."""
        beside, now = life.beside, self._part.clock.monotonic()
        if beside is None or now < life.beside_at:
            return False
        assert life.builds is not None
        shown = life.ticks.last if life.ticks is not None else life.builds.shown_row
        assert shown is not None
        try:
            tick = beside.step(0.0, ceiling=shown)
            life.beside_error = None
            wished = not life.withdrawn or life.switching is not None
            if wished and beside.build.get("mode") == FILLING and caught_up(shown, beside):
                self._switch(life, beside)
            return tick is not None
        except (CatalogChanged, TickFencedError):
            raise
        except Exception as problem:
            if not isinstance(problem, TailraceError) or not is_foreseen(problem):
                raise
            life.beside_error, life.beside_at = problem.as_dict(), now + LONGEST_PAUSE
            log.error("build fails", extra={"pattern": life.pattern.name, **problem.as_dict()})
            if not isinstance(problem, ViewError):
                self._stop(life)  # a commit may be in doubt: the log is asked
            return False

    def _switch(self, life: _Life, beside: PatternTicks) -> None:
        assert life.builds is not None
        row = life.builds.shown_row
        if life.ticks is not None:
            beside.align(life.ticks)
            row = life.ticks.last
            if not caught_up(row, beside):
                return
        elif not beside.settled:
            beside.first_tick()
        assert row is not None
        name = life.pattern.name
        beside.swap(row, key_of(self._part.project, name + life.builds.shown))
        log.info("pattern switched", extra={"pattern": name})
        if life.switching is not None:
            life.switching.done()
            life.switching = None
        self._stop(life)

    def _carry_out(self) -> None:
        """What an operator has asked for; a file goes when it has been done."""
        for request in requests.waiting(self._part.directory / "patterns"):
            life = self._lives.get(request.name)
            if life is None:
                request.done()
            elif request.action in ("rebuild", "build"):
                if life.wish is None or life.wish.path != request.path:
                    self._stop(life)
                    life.wish, life.start_at = request, 0.0
            elif life.builds is None:
                continue
            elif request.action == "drop":
                self._drop(life)
                request.done()
            elif request.generation not in (None, _generation(life)) or life.beside is None:
                request.done()  # done before, or there is nothing to switch to
            elif life.switching is None or life.switching.path != request.path:
                life.switching = request
                if life.hurried != request.path:
                    life.hurried, life.beside_at = request.path, 0.0
                life.beside.build = {**life.beside.build, "mode": FILLING}

    def _drop(self, life: _Life) -> None:
        beside, builds = life.beside, life.builds
        if beside is None or builds is None:
            return
        shown = life.ticks.build if life.ticks is not None else {}
        old = [one["topic"] for one in shown.get("told", ()) if "to" in one]
        topics = beside.give_up([*old, *(one["topic"] for one in beside.build.get("told", ()))])
        beside.close()
        life.beside = None
        remove_below(str(Path(beside.settings.state).parent), Path(beside.settings.state).name)
        log.info("build dropped", extra={"pattern": life.pattern.name, "topics": topics})

    def _beginning(self, pattern: Events) -> Mapping[int, int]:
        """Where the log stood when `up` first ran the declaration."""
        if getattr(pattern.input, "kind", None) != "inserts" or pattern.copied:
            return {}
        root = self._part.directory.resolve() / beginnings.DIRECTORY
        starts = StreamFiles(root, pattern.name).starts()
        known = starts[0].offsets if starts and starts[0] is not None else {}
        return {int(p): offset for p, offset in known.get(pattern.input.topic, {}).items()}

    def _stop(self, life: _Life) -> None:
        for ticks in (life.ticks, life.beside):
            if ticks is not None:
                ticks.close()
        life.ticks = life.beside = life.builds = None
        life.switching, life.withdrawn = None, False  # a request's file is found again

    def _fail(self, life: _Life, problem: Exception) -> None:
        self._stop(life)
        error = problem if is_foreseen(problem) else unforeseen(problem, "between ticks")
        if not isinstance(error, TailraceError):
            raise error  # trouble of the machine, or of Spark: the whole process begins again
        told = error.as_dict()
        now = self._part.clock.monotonic()
        if isinstance(problem, UnknownTableError):  # its source has not described it yet
            life.start_at = now + FIRST_PAUSE
        else:
            life.start_at = now + life.pause
            life.pause = min(LONGEST_PAUSE, 2 * life.pause)
        if told != life.error:
            log.error("pattern suspended", extra={"pattern": life.pattern.name, **told})
        life.error = told


def _generation(life: _Life) -> int | None:
    """The generation that is shown."""
    row = life.ticks.last if life.ticks is not None else None
    if row is None and life.builds is not None:
        row = life.builds.shown_row
    found = None if row is None else row.views.get(life.pattern.name)
    return None if found is None else found.generation
