"""The streams of a project while they run: started, watched, restarted one by one.

A stream that fails does not stop the others. Passing trouble (a broker or worker that is
gone, a full disk) is met by starting it again, with a pause that doubles; a record the
function fails on is found and put aside (`isolate`), also one that ends its Python worker
again and again; any other error stops that stream until the pipelines are restarted, and its
status says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from tailrace import config
from tailrace.client.errors import ClientError
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.errors import (
    DiskFullError,
    PipelineError,
    StreamInterruptedError,
    StreamStuckError,
    UnknownTableError,
    UserFunctionError,
)
from tailrace.pipelines.process.running_patterns import RunningPatterns
from tailrace.pipelines.reading.catalog import Catalog, read_catalog
from tailrace.pipelines.reading.ranges import LogRanges, TopicBounds
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.streams import beginnings
from tailrace.pipelines.streams.checkpoint import Letter
from tailrace.pipelines.streams.dead_letters import attempts, letters, retry_letters
from tailrace.pipelines.streams.failures import crashed, described, of_the_code, user_place
from tailrace.pipelines.streams.inputs import ViewColumns
from tailrace.pipelines.streams.isolate import Isolation, deliver, hold, release
from tailrace.pipelines.streams.left_out import Blocker, position_of
from tailrace.pipelines.streams.progress import StreamProgress, publish
from tailrace.pipelines.streams.queries import AVAILABLE_NOW, RunningStream, Streams, StreamSettings
from tailrace.pipelines.streams.source import Position, register_log
from tailrace.telemetry.part import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
PASSING = (StreamInterruptedError, StreamStuckError, DiskFullError)
LOOK_SECONDS = 2.0
CRASHES = 3  # of one batch; after so many a record is suspected to end the worker


@dataclass(slots=True)
class _Life:
    """One stream's changing fortunes."""

    stream: Stream
    running: RunningStream | None = None
    start_at: float | None = 0.0  # None: not again by itself
    pause: float = FIRST_PAUSE
    progress: StreamProgress = field(default_factory=StreamProgress)
    blocked_at: dict[bytes, float] = field(default_factory=dict)
    letters_at: dict[str, TopicBounds] | None = None  # of the dead letters when last counted
    crashes: tuple[int | None, int] = (None, 0)  # of Python workers, since which batch


class RunningStreams:
    """Starts the streams when what they read is known, and looks after them."""

    def __init__(
        self,
        streams: Sequence[Stream],
        part: Part,
        spark: SparkSession,
        settings: config.Settings,
        views: Callable[[], Mapping[str, ViewColumns]] = dict,
        patterns: RunningPatterns | None = None,
    ) -> None:
        if streams:
            register_log(spark)
        self._lives = {stream.name: _Life(stream) for stream in streams}
        self._part = part
        self._spark = spark
        self._settings = settings
        self._views = views
        self._patterns = patterns
        self.tables: Sequence[TableInput] = ()
        """Inputs that no source describes: event topics."""
        self._looked_at = 0.0
        self._log: LogRanges | None = None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._lives)

    def look_after(self) -> None:
        """Start what can be started, deal with what failed or hangs. Raises only when Spark
        itself is gone, or ticks of patterns cannot go on."""
        if self._patterns is not None:
            self._patterns.look_after()
        now = self._part.clock.monotonic()
        due = [
            life
            for life in self._lives.values()
            if life.running is None and life.start_at is not None and now >= life.start_at
        ]
        if due:
            self._start(due)
        for life in self._lives.values():
            if life.running is not None:
                self._alone(life, partial(self._watch, life, life.running))
        if now - self._looked_at > LOOK_SECONDS:
            self._looked_at = now
            for life in self._lives.values():
                self._alone(life, partial(self._look, life))
            publish(self.progress())

    def _alone(self, life: _Life, work: Callable[[], None]) -> None:
        """Do something for one stream; whatever goes wrong is that stream's trouble."""
        try:
            work()
        except Exception as problem:
            if self.spark_is_gone():
                raise
            if isinstance(problem, ClientError) and life.running is not None:
                # The log is away for a moment: the query finds out by itself, if it matters.
                log.warning(
                    "stream not looked at", extra={"stream": life.stream.name, "why": str(problem)}
                )
                return
            self._fail(life, described(life.stream, problem), problem, again=True)

    def reset(self, name: str) -> bool:
        """Stop a stream, forget how far it came and start it again; False for no such one.
        One that reads from now on begins where the log stands at this moment."""
        life = self._lives.get(name)
        if life is None:
            return False
        self._stop(life)
        self._builder(Catalog({}, {})).reset(life.stream)
        part = self._part
        beginnings.record(
            part.directory, part.bootstrap, [beginnings.beginning_of(life.stream)], part.clock
        )
        self._lives[name] = _Life(life.stream)
        return True

    def replace(
        self, streams: Sequence[Stream], different: Collection[str], settings: config.Settings
    ) -> None:
        """Run these streams from now on: those in `different` go on from their checkpoints with
        their new code, the others are not touched, and whatever is not named stops."""
        self._settings = settings
        if self._patterns is not None:
            self._patterns.change(settings)
        wanted = {stream.name: stream for stream in streams}
        for name in [name for name in self._lives if name not in wanted or name in different]:
            self._stop(self._lives.pop(name))
        new = [stream for name, stream in wanted.items() if name not in self._lives]
        part = self._part
        if new:
            found = [beginnings.beginning_of(stream) for stream in new]
            beginnings.record(part.directory, part.bootstrap, found, part.clock)
            register_log(self._spark)
        self._lives |= {stream.name: _Life(stream) for stream in new}

    def progress(self) -> dict[str, dict[str, object]]:
        """Every stream, for status and metrics."""
        return {name: life.progress.document() for name, life in self._lives.items()}

    def error(self) -> dict[str, str] | None:
        """The error of a stream or pattern that has stopped, if there is one."""
        failed = [life.progress.error for life in self._lives.values()]
        if self._patterns is not None:
            failed += self._patterns.errors()
        return next((error for error in failed if error is not None), None)

    def close(self) -> None:
        for life in self._lives.values():
            self._stop(life)
        if self._log is not None:
            self._log.close()

    # Starting and stopping -----------------------------------------------------

    def _start(self, due: Sequence[_Life]) -> None:
        part = self._part
        with LogReader(part.bootstrap, clock=part.clock) as reader:
            catalog = read_catalog(reader)
        builder = self._builder(catalog)
        for life in due:
            stream = life.stream
            try:
                deliver(part.bootstrap, stream.name, builder.files(stream).held())
                life.running = builder.start(stream)
                life.progress.state = "running"
                life.progress.error = None
            except UnknownTableError as problem:
                life.progress.error = problem.as_dict()  # its source has not described it yet
                life.start_at = part.clock.monotonic() + FIRST_PAUSE
            except StreamStuckError as stuck:
                # Nothing but this function ran meanwhile: not again by itself.
                self._fail(life, stuck, stuck, again=False)
            except Exception as problem:
                self._fail(life, described(stream, problem), problem)

    def _stop(self, life: _Life) -> None:
        if life.running is not None:
            for output in life.running.outputs:
                stop_between_batches(output.query, self._part)
            life.running = None

    def _builder(self, catalog: Catalog) -> Streams:
        part = self._part
        directory = part.directory.resolve() / beginnings.DIRECTORY
        settings = StreamSettings(
            part.bootstrap,
            directory,
            topics=self._settings.topics,
            views=self._views(),
            events={table.topic: table for table in self.tables},
        )
        return Streams(self._spark, catalog, settings)

    # What can go wrong -----------------------------------------------------------

    def _watch(self, life: _Life, running: RunningStream) -> None:
        for output in running.outputs:
            since = output.sink.busy_since
            limit = life.stream.timeout_ms
            if limit is not None and since is not None:
                taken = self._part.clock.monotonic() - since
                if taken * 1000 > limit:
                    output.query.stop()
                    stuck = StreamStuckError(
                        f'a batch of stream "{life.stream.name}" took longer than {limit / 1000:g} s',
                        detail=f"its function is at {life.stream.declared_at}",
                        hint="does a function in it loop? else raise timeout= or lower limit=",
                    )
                    self._fail(life, stuck, stuck)
                    return
        if running.active:
            return
        life.progress.take(running.query.recentProgress)
        found = running.failed()
        if found is None:
            if life.stream.trigger == AVAILABLE_NOW:
                life.progress.state = "finished"
            return
        output, problem = found
        error = described(life.stream, problem)
        self._stop(life)
        if crashed(problem):
            since, count = life.crashes
            count = count + 1 if since == life.progress.batch else 1
            life.crashes = life.progress.batch, count
            if count % CRASHES == 0 and life.stream.on_error != "stop":
                log.warning("a batch ends its workers", extra={"stream": life.stream.name})
                if self._isolate(life, output.topic):
                    return
        if isinstance(error, UserFunctionError):
            suspect = life.stream.on_error != "stop" and not of_the_code(problem)
            if suspect and self._isolate(life, output.topic):
                return
            # nothing in it points at the user: it may be Spark's own trouble, and pass
            self._fail(life, error, problem, again=user_place(problem) is None)
            return
        self._fail(life, error, problem)

    def _isolate(self, life: _Life, topic: str) -> bool:
        """Put aside the records the function fails on; False if there are none such."""
        stream, part = life.stream, self._part
        with LogReader(part.bootstrap, clock=part.clock) as reader:
            builder = self._builder(read_catalog(reader))
        found = Isolation(self._spark, builder, stream, topic).find()
        if not found:
            return False
        hold(builder.files(stream), stream, found, part.bootstrap)
        for poison in found:
            log.warning(
                "record became a dead letter",
                extra={
                    "stream": stream.name,
                    "position": poison.location,
                    "why": poison.record.reason,
                },
            )
        life.progress.failures += 1
        life.start_at = part.clock.monotonic()
        return True

    def _fail(
        self,
        life: _Life,
        error: PipelineError,
        problem: BaseException,
        *,
        again: bool | None = None,
    ) -> None:
        """Start a stream again after a pause, or leave it stopped; by the kind of the error,
        if `again` does not say."""
        self._stop(life)
        life.progress.failures += 1
        life.progress.state = "failed"
        life.progress.error = error.as_dict()
        log.error("stream failed", extra={"stream": life.stream.name, **error.as_dict()})
        if self.spark_is_gone():
            raise error from problem
        if isinstance(error, PASSING) if again is None else again:
            life.start_at = self._part.clock.monotonic() + life.pause
            life.pause = min(LONGEST_PAUSE, life.pause * 2)
        else:
            life.start_at = None

    def spark_is_gone(self) -> bool:
        """Whether there is no Spark to run anything on."""
        context: Any = self._spark.sparkContext
        try:
            return context._jsc is None or bool(context._jsc.sc().isStopped())
        except Exception:  # not even the question reaches it
            return True

    # Looking into the log ----------------------------------------------------------

    def _look(self, life: _Life) -> None:
        """Lag, dead letters, and keys that need not wait any longer."""
        part, stream = self._part, life.stream
        if self._log is None:
            self._log = LogRanges(part.bootstrap)
        if life.running is not None:
            life.progress.take(life.running.query.recentProgress)
            life.progress.pass_time(part.clock.wall_ms())
            life.pause = FIRST_PAUSE if life.progress.state == "running" else life.pause
            life.progress.lag = self._lag(life.running)
            life.progress.busy_seconds = self._busy(life.running)
        topic = f"{stream.name}.dead"
        bounds = self._log.bounds(self._log.named([topic]))
        if bounds == life.letters_at and not life.progress.blocked:
            return
        life.letters_at = bounds
        waiting = {str(letter["position"]): letter for letter in letters(part.bootstrap, topic)}
        life.progress.dead = len(waiting)
        files = self._builder(Catalog({}, {})).files(stream)
        blocked = files.held().held.blocked
        life.progress.blocked = len(blocked)
        if not blocked:
            return
        self._retry_blocked(life, blocked, waiting)
        freed = release(files, waiting)
        if freed:
            rest = [p for p, letter in waiting.items() if letter.get("blocked_by") in freed]
            self._stop(life)
            retry_letters(part.bootstrap, topic, rest)
            life.start_at = part.clock.monotonic()

    def _retry_blocked(
        self, life: _Life, blocked: Mapping[bytes, Blocker], waiting: dict[str, Letter]
    ) -> None:
        """Try what blocks a key again after the stream's pause, while attempts are left."""
        now, stream = self._part.clock.monotonic(), life.stream
        for key, blocker in blocked.items():
            position = position_of(blocker.origin)
            since = life.blocked_at.setdefault(key, now)
            letter = waiting.get(position)
            if letter is None or attempts(letter) >= stream.retries:
                continue
            if (now - since) * 1000 >= stream.pause_ms:
                group = [p for p, one in waiting.items() if one.get("blocked_by") == position]
                retry_letters(self._part.bootstrap, f"{stream.name}.dead", [position, *group])
                for one in (position, *group):
                    waiting.pop(one)
                del life.blocked_at[key]

    def _busy(self, running: RunningStream) -> int:
        """For how many seconds the longest of its batches that run now has run."""
        begun = [output.sink.busy_since for output in running.outputs]
        now = self._part.clock.monotonic()
        return round(max((now - since for since in begun if since is not None), default=0.0))

    def _lag(self, running: RunningStream) -> int | None:
        """Records of the inputs behind what the last batch has read."""
        last: Any = running.query.lastProgress
        if last is None or self._log is None:
            return None
        behind = 0
        for source in last["sources"]:
            if not isinstance(source.get("endOffset"), str | dict):
                continue
            end = source["endOffset"]
            read = Position.of(end if isinstance(end, dict) else _parsed(end))
            bounds = self._log.bounds(self._log.named(list(read.offsets)))
            for topic, by in bounds.items():
                for partition, (first, stable) in by.partitions.items():
                    behind += max(
                        0, stable - max(first, read.offsets[topic].get(str(partition), 0))
                    )
        return behind


def _parsed(text: str) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(text)
    return document


def stop_between_batches(query: StreamingQuery, part: Part) -> None:
    """Stop a query when it is not in a batch, if that is soon: stopping inside a batch
    function makes Spark print a stack overflow."""
    for _ in range(100):
        if not query.isActive or not query.status["isTriggerActive"]:
            break
        part.clock.sleep(0.05)
    query.stop()
