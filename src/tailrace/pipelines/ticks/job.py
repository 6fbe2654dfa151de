"""The work of one tick inside Spark, and how its answer comes back.

A small tick is one task: read the ranges, decode them, run the whole chain over all
shards' states, write the deltas, hand the changelog records back. The answer is rows of
(view, key, value); a row without a view carries the outcome of the task itself. Errors of
ours travel as such a row too, so that they reach the user whole and Spark does not retry
what cannot succeed.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import TailraceError
from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.decode import DeadRecord, decode
from tailrace.pipelines.errors import TickError
from tailrace.pipelines.incremental.changelog import to_records
from tailrace.pipelines.incremental.execute import run_tick
from tailrace.pipelines.incremental.graph import Graph, TickContext
from tailrace.pipelines.ranges import kept_ranges
from tailrace.pipelines.reader import Range, Records
from tailrace.pipelines.state.collector import collector_resting
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.state.shard import Attempt, Figures
from tailrace.pipelines.state.store import Version
from tailrace.pipelines.ticks.event_time import Timing, on_time
from tailrace.pipelines.ticks.row import Seeding
from tailrace.pipelines.ticks.shared import Left, own_operators, read_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER = pa.schema([("view", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
ANSWER_DDL = "view STRING, key BINARY, value BINARY"
_ROWS_A_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Adoption:
    """State of operators that another sequence of ticks holds, to be taken over: of a fill by
    its project, or of the project by a fill that begins with it."""

    state: str
    cache: str
    versions: Mapping[int, Version]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a task must know; nothing comes from Spark's own context."""

    bootstrap: str
    graph: Graph
    ranges: tuple[Range, ...]
    context: TickContext
    versions: Mapping[int, Version]
    shards: int
    state: str  # where state files rest
    cache: str  # a directory on the host of the task
    plain: frozenset[str] = frozenset()  # topics whose values are rows, not envelopes
    dropped: tuple[str, ...] = ()
    adoption: Adoption | None = None
    times: Mapping[str, EventTime] = field(default_factory=dict)  # by topic
    cache_limit: int | None = None  # bytes of all caches of a host
    merged: tuple[int, ...] = ()  # stretches of versions to merge, see `state.route`
    seeding: Seeding | None = None  # begin with rows of shared operators, see `shared`
    limit: int = 0  # about how many of those


@dataclass(slots=True)
class Inputs:
    """What a task has read: rows by topic, and what it learnt on the way."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    records: int = 0
    dead: list[DeadRecord] = field(default_factory=list)
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a task has done beside its rows."""

    files: Mapping[int, Version]
    records: int
    dead: tuple[DeadRecord, ...]
    timing: Timing = field(default_factory=Timing)
    figures: Mapping[int, Figures] = field(default_factory=dict)  # by shard
    opened_ms: int = 0  # what it took to bring the caches up to date
    left: tuple[Left, ...] = ()  # of the rows of shared operators

    @classmethod
    def of(
        cls, files: Mapping[int, Version], inputs: Inputs, attempt: Attempt,
        left: tuple[Left, ...] = (),
    ) -> TaskOutcome:  # fmt: skip
        return cls(
            files, inputs.records, tuple(inputs.dead), inputs.timing,
            attempt.figures, attempt.opened_ms, left,
        )  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """What a tick's job has done: changelog records by view, and the new state files."""

    changes: dict[str, tuple[list[bytes], list[bytes | None]]] = field(default_factory=dict)
    files: dict[int, Version] = field(default_factory=dict)
    records: int = 0
    dead: list[DeadRecord] = field(default_factory=list)
    timing: Timing = field(default_factory=Timing)
    figures: dict[int, Figures] = field(default_factory=dict)
    opened_ms: int = 0  # the longest any task took to bring its caches up to date
    tasks: int = 0
    left: tuple[Left, ...] = ()  # of the rows of shared operators

    def add(self, task: TaskOutcome) -> None:
        """Take in what one task has done."""
        for shard, names in task.files.items():
            self.files[shard] = (*self.files.get(shard, ()), *names)
        self.records += task.records
        self.dead += task.dead
        self.timing.add(task.timing)
        for shard, figures in task.figures.items():
            before = self.figures.get(shard)
            written = figures.written_bytes + (before.written_bytes if before else 0)
            self.figures[shard] = replace(figures, written_bytes=written)
        self.opened_ms = max(self.opened_ms, task.opened_ms)
        self.left += task.left
        self.tasks += 1


def _records(work: Work) -> Iterator[Records]:
    """The records of the tick's ranges, in pieces of one partition each."""
    log = kept_ranges(work.bootstrap)
    for wanted in work.ranges:
        for columns in log.read(wanted):
            yield Records(
                wanted.topic,
                wanted.partition,
                columns.offsets.tolist(),
                columns.keys.to_pylist(),
                columns.values.to_pylist(),
                columns.timestamps.tolist(),
                [] if columns.headers is None else list(columns.headers),
            )


def read_inputs(work: Work) -> Inputs:
    """The rows of the tick's ranges by topic, in the order of each partition."""
    with collector_resting():
        return _read_inputs(work)


def _read_inputs(work: Work) -> Inputs:
    inputs = Inputs()
    pieces: dict[str, list[pa.Table]] = {}
    for records in _records(work):
        inputs.records += len(records.offsets)
        table = work.graph.tables[records.topic]
        decoded = decode(table, records, work.shards, envelope=records.topic not in work.plain)
        inputs.dead += decoded.dead
        rows = decoded.rows
        if records.topic in work.times and decoded.indices is not None:
            mark = work.context.watermarks.get(records.topic)
            policy = work.times[records.topic]
            now = work.context.now_ms
            rows = on_time(rows, decoded.indices, records, policy, mark, inputs.timing, now)
        pieces.setdefault(records.topic, []).append(rows)
    inputs.tables = {topic: pa.concat_tables(parts) for topic, parts in pieces.items()}
    return inputs


def run_whole(work: Work) -> Iterator[pa.RecordBatch]:
    """The whole tick in this process; yields the answer."""
    inputs = read_inputs(work)
    with begin(work) as attempt:
        if work.dropped:
            for shard in range(work.shards):
                attempt.shard(shard)
        if work.adoption is not None:
            adopt(work.adoption, attempt, range(work.shards))
        given, only = None, None
        left: tuple[Left, ...] = ()
        if work.seeding is not None:
            each = max(work.limit // work.shards, 1)
            given, left = read_shared(work.graph, attempt, work.seeding, range(work.shards), each)
            only = own_operators(work.graph, work.seeding.shared)
        results = run_tick(
            work.graph, inputs.tables, attempt, work.context,
            shards=work.shards, given=given, only=only,
        )  # fmt: skip
        digest = hashlib.blake2b(digest_size=10)
        answers: list[pa.RecordBatch] = []
        for name in sorted(results):
            keys, values = to_records(work.graph.views[name], results[name])
            for key, value in zip(keys, values, strict=True):
                digest.update(key)
                digest.update(value or b"\0")
            answers += _answer(name, keys, values)
        files = attempt.finish(
            work.context.number,
            output=digest.hexdigest(),
            dropped=work.dropped,
            merged=work.merged,
        )
        outcome = TaskOutcome.of(files, inputs, attempt, left)
    yield from answers
    yield _control(outcome)


def begin(work: Work) -> Attempt:
    """An attempt at this tick's state."""
    return Attempt.begin(
        open_files(work.state), Path(work.cache), work.versions, cache_limit=work.cache_limit
    )


def adopt(adoption: Adoption, attempt: Attempt, shards: Iterable[int]) -> None:
    """Begin with the state of those operators in this attempt."""
    attempt.adopt(
        open_files(adoption.state), Path(adoption.cache), adoption.versions,
        shards, adoption.operators,
    )  # fmt: skip


def guarded(work: Work) -> Iterator[pa.RecordBatch]:
    """`run_whole`, with our own errors as part of the answer."""
    try:
        yield from run_whole(work)
    except TailraceError as problem:
        yield _control(problem)


def run_on_spark(spark: SparkSession, work: Work) -> Outcome:
    """One task on Spark for the whole tick."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from guarded(work)

    frame = spark.range(0, 1, 1, 1).mapInArrow(task, ANSWER_DDL)
    return complete(gather(frame.toArrow()), 1)


def gather(answer: pa.Table) -> Outcome:
    """The outcome of a job from its answer; raises the error a task came back with."""
    outcome = Outcome()
    # Spark cuts the rows into batches anew: expect any mixture.
    control = answer.filter(pc.is_null(answer["view"]))
    for blob in control["value"].to_pylist():
        _take_control(outcome, pickle.loads(blob))
    for name in pc.unique(answer["view"]).to_pylist():
        if name is not None:
            rows = answer.filter(pc.equal(answer["view"], name))
            outcome.changes[name] = (rows["key"].to_pylist(), rows["value"].to_pylist())
    return outcome


def complete(outcome: Outcome, tasks: int) -> Outcome:
    """`outcome`, if every task has told what it did: state files must never go unnamed."""
    if outcome.tasks != tasks:
        raise TickError(
            "a tick's job came back incomplete",
            detail=f"{outcome.tasks} of {tasks} tasks told what they did",
            hint="the tick is tried again; look into spark.log if it stays so",
        )
    return outcome


def _take_control(outcome: Outcome, message: object) -> None:
    if isinstance(message, BaseException):
        raise message
    assert isinstance(message, TaskOutcome)
    outcome.add(message)


def _answer(view: str, keys: list[bytes], values: list[bytes | None]) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(keys), _ROWS_A_BATCH):
        part = keys[first : first + _ROWS_A_BATCH]
        yield pa.record_batch(
            [
                pa.repeat(pa.scalar(view), len(part)),
                pa.array(part, pa.binary()),
                pa.array(values[first : first + _ROWS_A_BATCH], pa.binary()),
            ],
            schema=ANSWER,
        )


def _control(message: TaskOutcome | TailraceError) -> pa.RecordBatch:
    blob = pickle.dumps(message)
    return pa.record_batch(
        [pa.nulls(1, pa.string()), pa.nulls(1, pa.binary()), pa.array([blob], pa.binary())],
        schema=ANSWER,
    )
