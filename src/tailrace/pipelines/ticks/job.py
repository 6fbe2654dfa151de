"""The work of one tick inside Spark, and how its answer comes back.

A small tick is one task: read the ranges, decode them, run the whole chain over all
shards' states, write the deltas, hand the changelog records back. The answer is the outcome
of the task and, per view, keys and values. Errors of ours travel in the answer too, so that
they reach the user whole and Spark does not retry what cannot succeed.

Ticks are jobs on plain RDDs. A tick moves a few large values whose inside Spark need not
know: planning a query, generating code and passing Arrow batches through the JVM would cost
twice the processor time of everything else Spark does for a small tick.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from tailrace.errors import TailraceError
from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.engine.changelog import Piece, to_records
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import Graph, TickContext
from tailrace.pipelines.engine.unforeseen import located
from tailrace.pipelines.errors import TickError
from tailrace.pipelines.reading.decode import decode, decode_whole, placed, with_places
from tailrace.pipelines.reading.ranges import kept_ranges
from tailrace.pipelines.reading.reader import Range, Records
from tailrace.pipelines.state.collector import collector_resting
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.state.shard import SNAPSHOT_EVERY, Attempt, Figures
from tailrace.pipelines.state.store import Version
from tailrace.pipelines.ticks.changes import FEW_CHANGES, arranged
from tailrace.pipelines.ticks.event_time import Timing, on_time
from tailrace.pipelines.ticks.seed_from_state import Left, own_operators, read_shared
from tailrace.pipelines.ticks.split import WHOLE_EVERY, Costs, Part, parts
from tailrace.pipelines.ticks.tick_row import Seeding
from tailrace.records.columns import lengths_of
from tailrace.records.decode_columns import RecordColumns

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

_reading = threading.Lock()  # a process has one connection to the log

# A view's name with records of its changelog; or what a task did; or why it failed.
Answer: TypeAlias = "tuple[str, Piece] | TaskOutcome | TailraceError"

JOB_GROUP = "tailrace ticks"
_NAMED_VIEWS = 5


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
    part: Part | None = None  # of the views; None: all
    partitions: Mapping[str, int] = field(default_factory=dict)  # of changelogs, by view


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
    spent: Mapping[str, float] = field(default_factory=dict)  # seconds by operator
    forgotten: Mapping[str, int] = field(default_factory=dict)  # see `TickContext`

    @classmethod
    def of(
        cls, files: Mapping[int, Version], inputs: Inputs, attempt: Attempt, context: TickContext,
        left: tuple[Left, ...] = (), spent: Mapping[str, float] | None = None,
    ) -> TaskOutcome:  # fmt: skip
        return cls(
            files, inputs.records, (*inputs.dead, *context.dead), inputs.timing,
            attempt.figures, attempt.opened_ms, left, spent or {}, context.forgotten,
        )  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """What a tick's job has done: changelog records by view, and the new state files."""

    changes: dict[str, list[Piece]] = field(default_factory=dict)
    files: dict[int, Version] = field(default_factory=dict)
    records: int = 0
    dead: list[DeadRecord] = field(default_factory=list)
    timing: Timing = field(default_factory=Timing)
    figures: dict[int, Figures] = field(default_factory=dict)
    opened_ms: int = 0  # the longest any task took to bring its caches up to date
    tasks: int = 0
    left: tuple[Left, ...] = ()  # of the rows of shared operators
    spent: dict[str, float] = field(default_factory=dict)  # seconds by operator
    forgotten: dict[str, int] = field(default_factory=dict)  # see `TickContext`

    def change(self, view: str, piece: Piece) -> None:
        """Take in changelog records of a view."""
        self.changes.setdefault(view, []).append(piece)

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
        self.spent.update(task.spent)
        for topic, count in task.forgotten.items():
            self.forgotten[topic] = self.forgotten.get(topic, 0) + count
        self.tasks += 1


def records_of(wanted: Range, columns: RecordColumns) -> Records:
    """Records as Python values."""
    return Records(
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
    with _reading, collector_resting():
        return _read_inputs(work)


def _read_inputs(work: Work) -> Inputs:
    inputs = Inputs()
    pieces: dict[str, list[pa.Table]] = {}
    log = kept_ranges(work.bootstrap)
    for wanted in work.ranges:
        for columns in log.read(wanted, unreadable=inputs.dead.append):
            with located(lambda: f"reading {_culprit(work, wanted, columns)}"):  # noqa: B023
                rows = _decode(work, wanted, columns, inputs)
            pieces.setdefault(wanted.topic, []).append(rows)
    inputs.tables = {topic: pa.concat_tables(parts) for topic, parts in pieces.items()}
    return inputs


def _decode(work: Work, wanted: Range, columns: RecordColumns, inputs: Inputs) -> pa.Table:
    """The rows of some records of one partition; what else they tell goes to `inputs`."""
    topic = wanted.topic
    table, envelope = work.graph.tables[topic], topic not in work.plain
    inputs.records += len(columns)
    bare = table.order is None and not table.placed
    plain = table if bare else replace(table, schema=table.recorded, order=None, placed=False)
    decoded = decode_whole(plain, columns, wanted.partition % work.shards, envelope=envelope)
    if decoded is None:
        decoded = decode(plain, records_of(wanted, columns), work.shards, envelope=envelope)
    if table.order is not None:
        decoded = placed(table, decoded, wanted, columns)
    elif table.placed:
        decoded = with_places(table, decoded, wanted, columns)
    inputs.dead += decoded.dead
    if topic not in work.times or decoded.indices is None or table.kind != "stream":
        return decoded.rows
    mark = work.context.watermarks.get(topic)
    return on_time(
        decoded.rows, decoded.indices, records_of(wanted, columns), work.times[topic], mark,
        inputs.timing, work.context.now_ms,
    )  # fmt: skip


def _culprit(work: Work, wanted: Range, columns: RecordColumns) -> str:
    """The place of a record that decoding alone stumbles over; of all, if it is none alone."""

    def fails(first: int, end: int) -> bool:
        try:
            _decode(work, wanted, columns.slice(first, end - first), Inputs())
        except Exception:
            return True
        return False

    first, end = 0, len(columns)
    while end - first > 1:
        middle = (first + end) // 2
        if fails(first, middle):
            end = middle
        elif fails(middle, end):
            first = middle
        else:
            break
    place = f"{wanted.topic}/{wanted.partition}@{int(columns.offsets[first])}"
    return place if end - first == 1 else f"{place} to {int(columns.offsets[end - 1])}"


def run_whole(work: Work) -> Iterator[Answer]:
    """The whole tick in this process; yields the answer."""
    inputs = read_inputs(work)
    context = replace(work.context, forgotten={}, dead=[])
    part = work.part
    number = 0 if part is None else part.number
    with begin(work) as attempt:
        if work.dropped or part is not None:
            # Tasks begin with different shards: each is brought up to date once, by one of them.
            begins = 0 if part is None else part.number * work.shards // part.count
            for shard in range(begins, begins + work.shards):
                attempt.shard(shard % work.shards)
        if work.adoption is not None:
            adopt(work.adoption, attempt, range(work.shards))
        given, only = None, None if part is None else part.nodes
        left: tuple[Left, ...] = ()
        spent: dict[str, float] = {}
        if work.seeding is not None:
            each = max(work.limit // work.shards, 1)
            given, left = read_shared(work.graph, attempt, work.seeding, range(work.shards), each)
            only = frozenset(own_operators(work.graph, work.seeding.shared))
        results = run_tick(
            work.graph, inputs.tables, attempt, context,
            shards=work.shards, given=given, only=only, spent=spent,
        )  # fmt: skip
        digest = hashlib.blake2b(digest_size=10)
        answers: list[Answer] = []
        for name in sorted(results):
            for piece in to_records(work.graph.views[name], results[name]):
                if name in work.partitions and len(piece.keys) >= FEW_CHANGES:
                    piece = arranged(piece, work.partitions[name])
                for column in (piece.keys, piece.values):
                    lengths = lengths_of(column)
                    digest.update(lengths.tobytes())
                    content = memoryview(column.buffers()[2] or b"")
                    digest.update(content[: int(lengths.clip(0).sum())])
                answers.append((name, piece))
        files = attempt.finish(
            work.context.number,
            number,
            output=digest.hexdigest(),
            dropped=work.dropped if number == 0 else (),
            snapshot_every=SNAPSHOT_EVERY if part is None else None,
            merged=work.merged if number == 0 else (),
            only=None if part is None else part.owned,
        )
        # What was read is told once.
        told = inputs if number == 0 else Inputs()
        outcome = TaskOutcome.of(files, told, attempt, context, left, spent)
    yield from answers
    yield outcome


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


def guarded(work: Work) -> Iterator[Answer]:
    """`run_whole`, with our own errors, and those nobody foresaw, as part of the answer."""
    try:
        with located(lambda: f"in tick {work.context.number}"):
            yield from run_whole(work)
    except TailraceError as problem:
        yield problem


def name_job(context: SparkContext, work: Work) -> None:
    """Say in Spark's pages what the next job of this thread is."""
    names = sorted(work.graph.views)
    shown = ", ".join(names[:_NAMED_VIEWS]) + (", …" if len(names) > _NAMED_VIEWS else "")
    context.setJobGroup(JOB_GROUP, f"tick {work.context.number}: {shown}")


def in_parts(work: Work, cores: int, costs: Costs) -> list[Work]:
    """A small tick as the work of one task or of several, whichever is sooner done."""
    records = sum(r.end - r.start for r in work.ranges)
    special = work.dropped or work.adoption is not None or work.seeding is not None
    if special or work.merged or work.context.number % WHOLE_EVERY == 0:
        return [work]
    return [replace(work, part=p) for p in parts(work.graph, cores, records, costs)] or [work]


@lru_cache(maxsize=8)
def numbers(context: SparkContext, count: int) -> RDD[int]:
    """0, 1, … in one partition each: what a job begins with, made once."""
    return context.parallelize(range(count), count)


def gather(answers: Iterable[Answer]) -> Outcome:
    """The outcome of a job from its answers; raises the error a task came back with."""
    outcome = Outcome()
    for answer in answers:
        if isinstance(answer, TailraceError):
            raise answer
        if isinstance(answer, TaskOutcome):
            outcome.add(answer)
        else:
            outcome.change(*answer)
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
