"""The pipelines of a project as one process: ticks for views, queries for streams.

`run` works until its part is told to stop. What goes wrong is raised, and the supervisor
starts the process again; ticks and streams go on from what they last committed.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import compile_views, problems
from tailrace.pipelines.compiler.declared_patterns import Events, tables_told
from tailrace.pipelines.compiler.expressions.functions import reference_of
from tailrace.pipelines.declare import EventTime, Stream, Topic, View, mark_of
from tailrace.pipelines.declare.functions import Function, JavaClass
from tailrace.pipelines.engine.graph import Graph, TableInput
from tailrace.pipelines.engine.unforeseen import is_foreseen, unforeseen
from tailrace.pipelines.errors import (
    DeclarationError,
    PipelineError,
    SparkLostError,
    SparkUnavailableError,
    SqlTableError,
    TickFencedError,
)
from tailrace.pipelines.process import requests
from tailrace.pipelines.process.running_patterns import RunningPatterns
from tailrace.pipelines.process.running_streams import RunningStreams
from tailrace.pipelines.reading.catalog import Catalog, CatalogChanged, read_catalog, topic_table
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.reading.registered import for_views, look_again, wait_for_views
from tailrace.pipelines.spark import session
from tailrace.pipelines.spark.importable import mark_changed
from tailrace.pipelines.spark.jvm import JvmWatch
from tailrace.pipelines.spark.shipping import ship
from tailrace.pipelines.state.cache import sweep_other_boots
from tailrace.pipelines.streams import beginnings
from tailrace.pipelines.streams.dead_letters import letters
from tailrace.pipelines.streams.inputs import ViewColumns
from tailrace.pipelines.ticks import resident
from tailrace.pipelines.ticks.clearing import Clearing, Erasures
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings, last_row
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.levels import run_tick_on_spark
from tailrace.pipelines.ticks.pace import Pace
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.pipelines.ticks.session_functions import jars_of
from tailrace.pipelines.ticks.sharding import number_of_shards
from tailrace.pipelines.ticks.small_ticks import catch_up_on_spark
from tailrace.pipelines.values.function_references import JavaFunction, PythonFunction
from tailrace.telemetry.part import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Reference: TypeAlias = PythonFunction | JavaFunction

log = logging.getLogger(__name__)

_DESCRIBING_SECONDS = 10.0
_WAIT_SECONDS = 0.5
_REPORT_SECONDS = 1.0
_IDLE_STEPS = 3  # without anything to read, before views are known to have caught up
LARGE_TICK = 20_000  # records
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # before ticks that failed are tried again
_NOTICE_SECONDS = 1.0  # a socket to a dead process may close before the process is counted as ended


@dataclass(frozen=True, slots=True)
class Declared:
    """What a project declares for its pipelines. `marks`: of each stream, see `project.marks`."""

    views: Sequence[View]
    streams: Sequence[Stream]
    topics: Sequence[Topic]
    settings: config.Settings
    marks: Mapping[str, str] = field(default_factory=dict)
    patterns: Sequence[Events] = ()
    tables: Sequence[TableInput] = ()  # inputs that no source describes: event topics
    erasures: Erasures | None = None  # of records that views may be made of
    functions: Sequence[Function | JavaClass] = ()  # that the SQL of views may call
    references: Mapping[str, Reference | None] = field(default_factory=dict)  # of these, as read


def references_of(functions: Iterable[Function | JavaClass]) -> dict[str, Reference | None]:
    """Which functions these are now, by name; None for one whose jar cannot be read."""
    found: dict[str, Reference | None] = {}
    for one in functions:
        found[one.name] = None
        with contextlib.suppress(DeclarationError):
            found[one.name] = reference_of(one)
    return found


@dataclass(slots=True)
class Reload:
    """How the project's files are read again, and the take-over that waits for its tables."""

    read: Callable[[], Declared]
    waiting: tuple[Path, Declared, float] | None = None
    number: str | None = None  # of the last take-over, for the report

    def tell(self, part: Part) -> None:
        """Say that what was taken over runs."""
        if self.number is not None:
            part.report(applied={"number": self.number, "error": None})


class DeclarationsChanged(Exception):
    """What runs is no longer what is to run; `number` is the take-over's."""

    def __init__(self, declared: Declared, number: str) -> None:
        super().__init__(number)
        self.declared = declared
        self.number = number


def run(
    declared: Declared, part: Part, *, read_again: Callable[[], Declared] | None = None
) -> None:
    """Run all views, streams and patterns of a project until `part.stopping` is set. `read_again`
    gives what the project's files declare when they have changed; Spark goes on running then."""
    streams, patterns, settings = declared.streams, declared.patterns, declared.settings
    reload = None if read_again is None else Reload(read_again)
    part.report("starting", freshness_ms=None, lag=None)
    # Before Spark starts, which takes long and may be killed: a stream begins here.
    readers: list[Stream | Events] = [*streams, *patterns]
    begun = [beginnings.beginning_of(one) for one in readers]
    beginnings.record(part.directory, part.bootstrap, begun, part.clock)
    try:
        jars = jars_of(declared.functions)
        with _spark(part, settings, queries=bool(streams), jars=jars) as spark:
            events = RunningPatterns(
                patterns, part, settings, lambda work: run_tick_on_spark(spark, work)
            )
            running = RunningStreams(
                streams, part, spark, settings, lambda: view_columns(part), events
            )
            running.tables = declared.tables
            with contextlib.closing(running), contextlib.closing(events):
                events.start()
                run_declared(declared, running, part, spark, reload)
    except SparkUnavailableError:
        if not part.stopping.is_set():  # else whoever stops us has stopped its start too
            raise
    part.report("stopped")


def run_declared(
    declared: Declared,
    running: RunningStreams,
    part: Part,
    spark: SparkSession,
    reload: Reload | None,
) -> None:
    """Run until the part stops; what changes meanwhile is taken over when `requests` say so."""
    while True:
        try:
            _run_unchanged(declared, running, part, spark, reload)
            return
        except DeclarationsChanged as changed:
            declared = _take_over(declared, changed, running, part)
            if reload is not None:
                reload.number = changed.number


def _run_unchanged(
    declared: Declared,
    running: RunningStreams,
    part: Part,
    spark: SparkSession,
    reload: Reload | None,
) -> None:
    """Run until the part stops; raises DeclarationsChanged."""
    if declared.views:
        topics = wait_for_views(
            declared.topics,
            declared.settings.registry,
            part,
            lambda: _look_after_streams(running, part, reload),
        )
        if topics is not None:
            run_ticks(replace(declared, topics=topics), running, part, spark, reload)
        return
    told = False
    while not part.stopping.wait(_WAIT_SECONDS):
        running.look_after()
        part.report(
            "running", streams=running.progress(), error=running.error(), views={}, filling={},
            filled={}, fills={}, held=[], failed={}, caught_up=True,
        )  # fmt: skip
        if reload is not None and not told:
            told = True
            reload.tell(part)
        if not carry_out(part, running, None, reload):
            break


def _take_over(
    before: Declared, changed: DeclarationsChanged, running: RunningStreams, part: Part
) -> Declared:
    """Begin with what the project's files declare now; streams that are the same go on."""
    now = changed.declared
    different = {
        stream.name
        for stream in now.streams
        if before.marks.get(stream.name) != now.marks.get(stream.name)
    }
    functions = before.references != now.references
    if different or functions:
        mark_changed(part.directory.resolve().parent)
    log.info("project taken over", extra={"number": changed.number, "streams": sorted(different)})
    if (different or functions) and not now.settings.spark.master.startswith("local"):
        # Executors got the project's files when the session began: begin another.
        part.report(applied={"number": changed.number, "error": None})
        part.stopping.set()
        return now
    running.tables = now.tables
    running.replace(now.streams, different, now.settings)
    return now


def _read_again(request: requests.Request, part: Part, reload: Reload | None) -> None:
    """Read the project's files and raise DeclarationsChanged. While a table that a view reads
    is not described yet, the request waits, and what runs goes on."""
    if reload is None:
        request.done()
        return
    if reload.waiting is None or reload.waiting[0] != request.path:
        try:
            found = reload.read()
            if found.views:
                found = replace(found, topics=for_views(found.topics, found.settings.registry))
        except TailraceError as problem:
            log.error("project not taken over", extra=problem.as_dict())
            part.report(applied={"number": request.name, "error": problem.as_dict()})
            request.done()
            return
        reload.waiting = (request.path, found, part.clock.monotonic())
    _, declared, since = reload.waiting
    if part.clock.monotonic() - since < _DESCRIBING_SECONDS and _tables_are_missing(declared, part):
        return
    reload.waiting = None
    request.done()
    raise DeclarationsChanged(declared, request.name)


def _tables_are_missing(declared: Declared, part: Part) -> bool:
    with LogReader(part.bootstrap, clock=part.clock) as reader:
        captured = read_catalog(reader).tables
    tables = [*captured.values(), *_undescribed(declared, declared.topics, captured)]
    wrong = problems(declared.views, tables, declared.functions).values()
    return any(isinstance(problem, SqlTableError) for problem in wrong)


def _undescribed(
    declared: Declared, topics: Iterable[Topic], captured: Mapping[str, TableInput]
) -> list[TableInput]:
    """What views read and no source describes: topics, events, and what patterns tell."""
    given = [topic_table(topic) for topic in topics if topic.tabular]
    return [*given, *declared.tables, *tables_told(declared.patterns, captured).values()]


def view_columns(part: Part) -> dict[str, ViewColumns]:
    """The views of the project as their last tick describes them, for streams that read one."""
    with LogReader(part.bootstrap, clock=part.clock) as reader:
        tick = last_row(reader, part.project)
    if tick is None:
        return {}
    return {
        name: ViewColumns(info.topic, tuple(info.key), tuple(info.columns))
        for name, info in tick.views.items()
    }


def carry_out(
    part: Part, running: RunningStreams, project: ProjectTicks | None, reload: Reload | None = None
) -> bool:
    """Carry out what an operator has asked for; False if the process shall start again.
    Raises DeclarationsChanged when the project's files are to be taken over."""
    for request in requests.waiting(part.directory):
        match request.action:
            case "restart":
                request.done()
                return False
            case "apply":
                _read_again(request, part, reload)
            case "reset" if running.reset(request.name):
                request.done()
            case "reset" | "rebuild" | "build" if project is not None:
                _rebuild(request, project)
            case "switch" if project is not None:
                _switch(request, project)
            case "rollback" if project is not None:
                if not project.roll_back(request.name, request.generation):
                    log.warning("not rolled back", extra={"view": request.name})
                request.done()
            case "drop" if project is not None:
                topics = project.drop(request.name)
                log.info("generations dropped", extra={"view": request.name, "topics": topics})
                request.done()
            case _:
                request.done()
    return True


def _rebuild(request: requests.Request, project: ProjectTicks) -> None:
    """Begin a rebuild; its file stays until the new generation is shown."""
    if request.path not in project.asked:
        project.asked.add(request.path)
        if project.rebuild(request.name, hold=request.action == "build"):
            return
    if request.name not in project.waiting:
        request.done()


def _switch(request: requests.Request, project: ProjectTicks) -> None:
    """Release a held generation; the file stays until it is shown, as its rebuild's does."""
    if request.path not in project.asked:
        project.asked.add(request.path)
        if not project.switch(request.name):
            log.warning("there is nothing to switch to", extra={"view": request.name})
    if request.name not in project.waiting:
        request.done()


def run_ticks(
    declared: Declared,
    running: RunningStreams,
    part: Part,
    spark: SparkSession,
    reload: Reload | None = None,
) -> None:
    """Tick until the part stops; compile again when a table has changed its columns.

    Ticks that cannot go on, because every view fails or for a reason nobody foresaw, are
    tried again after a pause: the streams go on meanwhile, and Spark keeps running. Only
    trouble of the log, the machine or Spark itself is raised.
    """
    pause = _FIRST_PAUSE
    while not part.stopping.is_set():
        compiled = wait_for_tables(declared, part, running, reload)
        if compiled is None:
            return
        began = part.clock.monotonic()
        with LogReader(part.bootstrap, clock=part.clock) as reader:
            try:
                _tick(compiled, running, part, spark, declared, reader, reload)
            except CatalogChanged as changed:
                log.info("tables were described anew", extra={"topic": str(changed)})
            except (TickFencedError, DeclarationsChanged):
                raise
            except Exception as raised:
                if not isinstance(raised, PipelineError) and is_foreseen(raised):
                    raise
                if running.spark_is_gone():
                    raise
                problem = raised if is_foreseen(raised) else unforeseen(raised, "between ticks")
                assert isinstance(problem, PipelineError)
                log.error("ticks failed", extra=problem.as_dict())
                if part.clock.monotonic() - began > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE
                failed = {view.name: problem.as_dict() for view in declared.views}
                part.report("lagging", error=problem.as_dict(), failed=failed, working=None)
                _streams_alone(running, part, pause, reload)
                pause = min(_LONGEST_PAUSE, pause * 2)


def _streams_alone(
    running: RunningStreams, part: Part, seconds: float, reload: Reload | None
) -> None:
    """Look after the streams for a while, or until an operator asks something of a view."""
    until = part.clock.monotonic() + seconds
    asked = {request.path for request in requests.waiting(part.directory)}
    while part.clock.monotonic() < until and not part.stopping.wait(_WAIT_SECONDS):
        if not _look_after_streams(running, part, reload) <= asked:
            return


def _look_after_streams(
    running: RunningStreams, part: Part, reload: Reload | None = None
) -> set[Path]:
    """Look after the streams while there are no ticks; what is asked of views remains."""
    running.look_after()
    part.report(streams=running.progress())
    left: set[Path] = set()
    for request in requests.waiting(part.directory):
        if request.action == "restart":
            part.stopping.set()
            request.done()
        elif request.action == "apply":
            _read_again(request, part, reload)
        elif request.action == "reset" and running.reset(request.name):
            request.done()
        else:
            left.add(request.path)
    return left


def _tick(
    compiled: Compiled,
    running: RunningStreams,
    part: Part,
    spark: SparkSession,
    declared: Declared,
    reader: LogReader,
    reload: Reload | None = None,
) -> None:
    settings = declared.settings
    directory = part.directory.resolve()
    # Hosts of a cluster have disks of their own; there two projects may share the directory.
    own = settings.spark.cache
    cache = directory / "cache" if own is None else Path(own).absolute() / part.project
    sweep_other_boots(cache)
    project = ProjectTicks(
        compiled.graph,
        TickSettings(
            project=part.project,
            bootstrap=part.bootstrap,
            state=settings.spark.state or str(directory / "state"),
            cache=str(cache),
            shards=number_of_shards(settings.spark, last_row(reader, part.project)),
            limit=settings.tick.limit,
            freshness_ms=int(settings.tick.freshness.total_seconds() * 1000),
            topics=settings.topics,
            cache_limit=settings.spark.cache_limit,
            declared=frozenset(compiled.failed),
        ),
        lambda work: _run_tick(part, spark, work),
        plain=compiled.plain,
        times=compiled.times,
        check=lambda: compiled.catalog.check(reader),
        clock=part.clock,
    )
    clearing = _clearing(declared, compiled, project, part)
    pace = Pace(settings.tick.freshness.total_seconds())
    local = settings.spark.master.startswith("local")
    with contextlib.closing(project):
        wishes = [r for r in requests.waiting(part.directory) if r.action in ("rebuild", "reset")]
        project.start([wish.name for wish in wishes])
        project.asked |= {wish.path for wish in wishes if wish.name in project.waiting}
        project.main.dead_topics.update(_dead_before(part))
        part.report(
            "running",
            tick=project.main.last.number,
            views={
                **dict.fromkeys(compiled.failed, ""),
                **{n: mark_of(v.sql, v.policy) for n, v in compiled.graph.views.items()},
            },
            filling=project.filling,
            filled=project.filled_shares,
            fills=project.fills,
            held=sorted(project.held),
            caught_up=False,
            ticking_since=part.clock.wall_ms(),
        )
        if reload is not None:
            reload.tell(part)
        if compiled.failed:  # else what failed before stands until a tick has passed
            part.report(failed=compiled.failed, error=_error(compiled.failed, running))
        reported_at = asked_at = part.clock.monotonic()
        began_at, idle, caught_up = project.main.last.inputs, 0, False
        while not part.stopping.is_set():
            tick = project.step(_WAIT_SECONDS)
            main = project.main
            if not caught_up:
                idle = idle + 1 if tick is None else 0
                read = tick is not None and tick.inputs != began_at
                if idle >= _IDLE_STEPS or (read and not main.lag):
                    caught_up = True  # with what there was when it started
                    part.report(caught_up=True, caught_up_at=main.last.number, lag=main.lag)
            running.look_after()
            if part.clock.monotonic() - asked_at > _REPORT_SECONDS:
                asked_at = part.clock.monotonic()
                if not carry_out(part, running, project, reload):
                    part.stopping.set()
                elif clearing is not None:
                    clearing.step()
            if tick is not None:
                part.report(
                    _state(compiled, project),
                    tick=tick.number,
                    freshness_ms=main.freshness_ms,
                    position=f"tick:{part.project}:{tick.number}",
                    tick_ms=round(main.worked_seconds * 1000),
                    lag=main.lag,
                    late=main.late,
                    forgotten=main.forgotten,
                    late_alarms=main.late_alarms,
                    state_bytes=main.state_bytes,
                    catch_up_ms=main.catch_up_ms,
                    **_standing(compiled, project, running),
                )
                reported_at = part.clock.monotonic()
                if project.catching_up is None:
                    pause = pace.pause(main.worked_seconds, main.lag > 0)
                    _rest(part, pause, main, spark, local=local)
            elif part.clock.monotonic() - reported_at > _REPORT_SECONDS:
                part.report(
                    _state(compiled, project),
                    freshness_ms=0,
                    lag=main.lag,
                    **_standing(compiled, project, running),
                )
                reported_at = part.clock.monotonic()


def _clearing(
    declared: Declared, compiled: Compiled, project: ProjectTicks, part: Part
) -> Clearing | None:
    """What clears the views of erased records. Not while one is left out: it may be made of them,
    and the erasure waits until it can be filled again."""
    if declared.erasures is None or compiled.failed:
        return None
    return Clearing(project, declared.erasures, part.clock)


def _dead_before(part: Part) -> Counter[str]:
    """By topic, the records that earlier runs could not read."""
    found = letters(part.bootstrap, f"{part.project}.dead")
    places = (str(letter["position"]) for letter in found)
    return Counter(place.removeprefix("log:").rpartition("/")[0] for place in places)


def _run_tick(part: Part, spark: SparkSession, work: Work) -> Outcome:
    """A tick on Spark. One that will take long is told first: nothing else is until it ends."""
    records = sum(one.end - one.start for one in work.ranges)
    if records >= LARGE_TICK:
        part.report(working={"records": records, "began_ms": part.clock.wall_ms()})
    return run_tick_on_spark(spark, work)


def _rest(
    part: Part, seconds: float, main: TickDriver, spark: SparkSession, *, local: bool
) -> None:
    """The pause after a tick; where tasks run here, part of it is used for the next one."""
    ends_at = part.clock.monotonic() + seconds
    if local and seconds > 0:
        catch_up_on_spark(spark, main.settings, main.last)
    part.stopping.wait(max(0.0, ends_at - part.clock.monotonic()))


def _state(compiled: Compiled, project: ProjectTicks) -> str:
    """`lagging` while a view is behind the others because it failed."""
    return "lagging" if compiled.failed or project.failed else "running"


def _standing(compiled: Compiled, project: ProjectTicks, running: RunningStreams) -> dict[str, Any]:
    """What every report tells of views and streams, whether there was a tick or not."""
    failed = {**compiled.failed, **project.failed}
    return {
        "filling": project.filling,
        "filled": project.filled_shares,
        "fills": project.fills,
        "held": sorted(project.held),
        "failed": failed,
        "dead": project.main.dead,
        "dead_by_view": {n: project.main.dead_of(n) for n in project.main.graph.views},
        "streams": running.progress(),
        "error": _error(failed, running),
        "working": None,
    }


def _error(failed: Mapping[str, dict[str, str]], running: RunningStreams) -> dict[str, str] | None:
    """The error of a view that was left out or put aside, or of a stream that has stopped."""
    return next(iter(failed.values()), None) or running.error()


@dataclass(frozen=True, slots=True)
class Compiled:
    """All views as one graph, what it was compiled against, and topics without envelopes."""

    graph: Graph
    catalog: Catalog
    plain: frozenset[str]
    times: Mapping[str, EventTime]
    failed: Mapping[str, dict[str, str]] = field(default_factory=dict)  # views left out, and why


def wait_for_tables(
    declared: Declared,
    part: Part,
    running: RunningStreams | None = None,
    reload: Reload | None = None,
) -> Compiled | None:
    """Compile the views, waiting for sources to describe their tables; streams run meanwhile.

    A view whose SQL does not fit its tables (a column was dropped), or whose table has not
    been described for a while, is left out: it is shown as it last was, and compiled again
    when tables are described anew. Columns that a registry did not tell before are looked for.
    None if told to stop meanwhile.
    """
    views, known = declared.views, list(declared.topics)
    waited = False
    until = part.clock.monotonic() + _DESCRIBING_SECONDS
    with LogReader(part.bootstrap, clock=part.clock) as reader:
        while not part.stopping.is_set():
            catalog = read_catalog(reader)
            known = look_again(known, declared.settings.registry)
            undescribed = _undescribed(declared, known, catalog.tables)
            tables = [*catalog.tables.values(), *undescribed]
            wrong = problems(views, tables, declared.functions)
            late = any(isinstance(problem, SqlTableError) for problem in wrong.values())
            if len(wrong) == len(views) or (late and part.clock.monotonic() < until):
                waited = True
                part.report("starting", error=next(iter(wrong.values())).as_dict())
                if running is not None:
                    _look_after_streams(running, part, reload)
                part.stopping.wait(_WAIT_SECONDS)
                continue
            if waited:
                part.report("starting", error=None)
            for name, problem in wrong.items():
                log.error("view left out", extra={"view": name, **problem.as_dict()})
            right = [view for view in views if view.name not in wrong]
            graph = compile_views(right, tables, declared.functions)
            plain = frozenset(table.topic for table in undescribed if table.topic in graph.tables)
            times = {t.name: t.time for t in known if t.time is not None and t.name in plain}
            failed = {name: problem.as_dict() for name, problem in wrong.items()}
            return Compiled(graph, catalog, plain, times, failed)
    return None


@contextlib.contextmanager
def _spark(
    part: Part, settings: config.Settings, *, queries: bool, jars: Sequence[Path] = ()
) -> Iterator[SparkSession]:
    spark = session.start(
        f"tailrace {part.project}",
        Path(part.directory) / "spark",
        master=settings.spark.master,
        conf=settings.spark.conf,
        queries=queries,
    )

    def lost(error: SparkLostError) -> None:
        if not part.stopping.is_set():  # else whoever stops us has stopped it too
            part.report("failed", error=error.as_dict())

    with JvmWatch(spark, lost) as jvm:
        try:
            archive = Path(part.directory) / "spark" / "project.zip"
            ship(spark, settings.directory, archive, jars)
            yield spark
        except Exception as problem:
            if jvm.gone(within_seconds=_NOTICE_SECONDS):
                if part.stopping.is_set():
                    return
                raise jvm.error() from problem
            if isinstance(problem, TailraceError):
                part.report("failed", error=problem.as_dict())
            raise
        finally:
            _stop(spark, jvm)


def _stop(spark: SparkSession, jvm: JvmWatch) -> None:
    if jvm.gone():
        return  # there is nothing left to stop, and asking would raise
    try:
        resident.close(spark.sparkContext)
        spark.stop()
    except Exception:
        if not jvm.gone(within_seconds=_NOTICE_SECONDS):
            raise
