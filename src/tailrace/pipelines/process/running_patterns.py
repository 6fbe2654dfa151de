"""The patterns and percolations of a project while they run: each with ticks of its own, one after the other.

They tick in a thread of their own, beside those of the views. A pattern that fails does not stop
the others: it is tried again after a pause that doubles, and its status says why. Patterns are
compiled again when a source describes its tables anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.declared_patterns import Compiled, Events, compile_patterns
from tailrace.pipelines.engine.unforeseen import is_foreseen, unforeseen
from tailrace.pipelines.errors import TickFencedError, UnknownTableError
from tailrace.pipelines.reading.catalog import Catalog, CatalogChanged, read_catalog
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.streams import beginnings
from tailrace.pipelines.streams.checkpoint import StreamFiles
from tailrace.pipelines.ticks.driver import Runner, TickSettings, last_row
from tailrace.pipelines.ticks.patterns import PatternTicks, key_of
from tailrace.pipelines.ticks.sharding import number_of_shards
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
    ticks: PatternTicks | None = None
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
        for life in self._lives.values():
            if now < life.start_at:
                continue
            try:
                if life.ticks is None:
                    self._start(life, reader)
                assert life.ticks is not None
                if life.ticks.step(0.0) is not None:
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
        catalog, part = self._catalog, self._part
        directory, compiled = part.directory.resolve(), self._compiled[name]
        own = self._settings.spark.cache
        state = self._settings.spark.state or str(directory / "state")
        key = key_of(part.project, name)
        ticks = PatternTicks(
            compiled,
            TickSettings(
                project=key,
                bootstrap=part.bootstrap,
                state=f"{state}-patterns/{name}",
                cache=str(directory / "cache" if own is None else own) + f"-patterns/{name}",
                shards=number_of_shards(self._settings.spark, last_row(reader, key)),
                limit=self._settings.tick.limit,
                topics=self._settings.topics,
                cache_limit=self._settings.spark.cache_limit,
                declared=frozenset(compiled.graph.views),
                dead=f"{name}.dead",
            ),
            self._run,
            beginning=self._beginning(life.pattern),
            check=lambda: catalog.check(reader),
            clock=part.clock,
        )
        try:
            ticks.begin()
        except BaseException:
            ticks.close()
            raise
        life.ticks, life.error = ticks, None

    def _beginning(self, pattern: Events) -> Mapping[int, int]:
        """Where the log stood when `up` first ran the declaration."""
        if getattr(pattern.input, "kind", None) != "inserts" or pattern.copied:
            return {}
        root = self._part.directory.resolve() / beginnings.DIRECTORY
        starts = StreamFiles(root, pattern.name).starts()
        known = starts[0].offsets if starts and starts[0] is not None else {}
        return {int(p): offset for p, offset in known.get(pattern.input.topic, {}).items()}

    def _stop(self, life: _Life) -> None:
        if life.ticks is not None:
            life.ticks.close()
            life.ticks = None

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
