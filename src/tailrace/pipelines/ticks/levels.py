"""A large tick over Spark's exchanges: read → level 1 → … → level D → driver.

A level is one exchange for all operators of all views at that depth. A task owns the shards
`task, task + tasks, …` (more than one where there are fewer cores than shards), runs the
operators of its level on each and writes one delta for each. Between levels rows
travel as Arrow tables packed into single values, one per (operator input, shard): the
expressions on an edge are evaluated where the rows come from, so the exchange moves a few
large values instead of many small rows. One chain, no branches: Spark would run shared
work twice.

    level, shard    where a value is going; level END goes on to the driver
    kind            edge, answer, done or error
    name, number    the operator and input of an edge; a view; the level and shard of a story

Every shard's story, what was done and written, is told to every task of the next level. If
Spark runs a stage again and gets another answer, tasks behind it have heard two file names
for one shard: the driver notices and throws the tick away.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.pipelines.engine.changelog import Piece, to_records
from tailrace.pipelines.engine.evaluate import project
from tailrace.pipelines.engine.execute import TABLE, edge_schema, woken
from tailrace.pipelines.engine.graph import Node, TickContext
from tailrace.pipelines.engine.unforeseen import at_operator, located
from tailrace.pipelines.errors import TickUnsteadyError
from tailrace.pipelines.state.collector import settle
from tailrace.pipelines.state.memory import give_back
from tailrace.pipelines.state.route import TIERS
from tailrace.pipelines.state.shard import SNAPSHOT_EVERY, Attempt
from tailrace.pipelines.ticks.job import (
    Inputs,
    Outcome,
    TaskOutcome,
    Work,
    adopt,
    begin,
    name_job,
    numbers,
    read_inputs,
)
from tailrace.pipelines.ticks.seed_from_state import Left, own_operators, read_shared
from tailrace.pipelines.ticks.small_ticks import run_on_spark
from tailrace.pipelines.ticks.ways import Ways
from tailrace.pipelines.values.columns import SHARD
from tailrace.pipelines.values.rows import combined
from tailrace.pipelines.values.shards import shards_of, split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END = 1 << 20
SMALL_TICK = 20_000  # records; levels would not pay anywhere
_ROWS_A_VALUE = 100_000
_RECORDS = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_MUCH_BYTES = 1 << 20  # of packed rows, or
_MUCH_RECORDS = 20_000  # of topics: a task's shards take turns


class Value(NamedTuple):
    """One value of an exchange."""

    level: int
    shard: int
    kind: str
    name: str
    number: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Group:
    """The shards of one task at one level of one tick."""

    work: Work
    level: int
    task: int
    tasks: int

    def run(self, arrived: Sequence[Value]) -> Iterator[Value]:
        """Do this level's part; what is for later levels passes through."""
        failed = False
        inputs: dict[int, list[Value]] = {}
        for value in arrived:
            failed = failed or value.kind == "error"
            if value.level > self.level:
                yield value
            else:
                inputs.setdefault(value.shard, []).append(value)
        shards = range(self.task, self.work.shards, self.tasks)
        if failed:
            for shard in shards:
                yield from self._tell(shard, TaskOutcome({}, 0, ()))
            return

        def one(shard: int) -> list[Value]:
            return list(self._shard(shard, inputs.get(shard, [])))

        if self._is_much(inputs):
            # One after another: a row takes about a kilobyte while operators work on it.
            for shard in shards:
                yield from self._shard(shard, inputs.pop(shard, []))
                give_back()
            return
        # Side by side, for the sake of the disk: a shard's delta is flushed before it is told.
        with ThreadPoolExecutor(len(shards)) as pool:
            for values in pool.map(one, shards):
                yield from values

    def _is_much(self, inputs: Mapping[int, Sequence[Value]]) -> bool:
        """Whether the work of this level is so much that its shards should share memory."""
        arrived = sum(len(value.value) for values in inputs.values() for value in values)
        records = sum(r.end - r.start for r in self.work.ranges) if self.level == 0 else 0
        if self.work.seeding is not None:  # rows of shared operators, at any level
            records += self.work.limit
        return arrived > _MUCH_BYTES or records > _MUCH_RECORDS * self.tasks

    def _shard(self, shard: int, arrived: Sequence[Value]) -> Iterator[Value]:
        task = LevelTask(self.work, self.level, shard)
        try:
            with located(lambda: f"in tick {self.work.context.number}, shard {shard}"):
                outcome = task.run(arrived)
        except TailraceError as problem:
            yield Value(END, shard, "error", "", 0, pickle.dumps(problem))
            yield from self._tell(shard, TaskOutcome({}, 0, ()))
            return
        yield from task.out
        yield from self._tell(shard, outcome)

    def _tell(self, shard: int, outcome: TaskOutcome) -> Iterator[Value]:
        story = pickle.dumps(outcome)
        for task in range(self.tasks):
            yield Value(END, task, "done", str(self.level), shard, story)


@dataclass(slots=True)
class LevelTask:
    """One shard at one level of one tick; `out` is what it sends."""

    work: Work
    level: int
    shard: int
    out: list[Value] = field(default_factory=list)

    def _nodes(self) -> list[Node]:
        """The operators that run: all, or those behind shared ones whose rows are read."""
        graph, seeding = self.work.graph, self.work.seeding
        if seeding is None:
            return list(graph.nodes)
        own = own_operators(graph, seeding.shared)
        return [node for node in graph.nodes if node.id in own]

    def run(self, arrived: Sequence[Value]) -> TaskOutcome:
        """Run this level's operators on what arrived for the shard, and write its delta."""
        work = self.work
        context = replace(work.context, forgotten={}, dead=[])
        running = self._nodes()
        nodes = [node for node in running if node.level == self.level]
        inputs: dict[tuple[str, int], list[pa.Table]] = {}
        for value in arrived:
            inputs.setdefault((value.name, value.number), []).append(unpack(value.value))
        read = Inputs()
        if self.level == 0:
            ranges = tuple(r for r in work.ranges if r.partition % work.shards == self.shard)
            read = read_inputs(replace(work, ranges=ranges))
        with begin(work) as attempt:
            first = self.level == 0
            if first and work.dropped:
                attempt.shard(self.shard)
            if work.adoption is not None:
                ours = {node.id for node in work.graph.nodes if node.level == self.level}
                wanted = tuple(name for name in work.adoption.operators if name in ours)
                adopt(replace(work.adoption, operators=wanted), attempt, [self.shard])
            given, left = self._read_shared(attempt)
            results = self._run_nodes(nodes, inputs, read.tables, attempt, given, context)
            digest = hashlib.blake2b(digest_size=10)
            for node in work.graph.nodes:
                if node.id in results:
                    with located(partial(at_operator, node)):
                        self._send(node, results[node.id], running)
            for view in work.graph.views.values():
                if view.node in results:
                    for piece in to_records(view, results[view.node]):
                        packed = pack(pa.table(piece[:2], schema=_RECORDS))
                        self.out.append(Value(END, self.shard, "answer", view.name, 0, packed))
            for value in self.out:
                digest.update(value.value)
            names = attempt.shard(self.shard).finish(
                work.context.number,
                self.level,
                output=digest.hexdigest(),
                dropped=work.dropped if first else (),
                snapshot_every=SNAPSHOT_EVERY if first else None,
                merged=work.merged if first else (),
            )
            files = {self.shard: names} if names else {}
            return TaskOutcome.of(files, read, attempt, context, left)

    def _read_shared(self, attempt: Attempt) -> tuple[dict[str, pa.Table], tuple[Left, ...]]:
        """The rows of shared operators of this level, and what is left of them."""
        work = self.work
        if work.seeding is None:
            return {}, ()
        each = max(work.limit // work.shards, 1)
        found, left = read_shared(
            work.graph, attempt, work.seeding, [self.shard], each, self.level
        )  # fmt: skip
        return {name: parts[self.shard] for name, parts in found.items()}, left

    def _run_nodes(
        self,
        nodes: Iterable[Node],
        inputs: Mapping[tuple[str, int], list[pa.Table]],
        tables: Mapping[str, pa.Table],
        attempt: Attempt,
        shared: Mapping[str, pa.Table],
        context: TickContext,
    ) -> dict[str, pa.Table]:
        results: dict[str, pa.Table] = dict(shared)
        for node in nodes:
            with located(partial(at_operator, node)):
                given = [
                    self._given(node, number, inputs, tables, results)
                    for number in range(len(node.edges))
                ]
                result = self._apply(node, given, attempt, context)
            if result is not None and result.num_rows:
                results[node.id] = result
        return results

    def _given(
        self,
        node: Node,
        number: int,
        inputs: Mapping[tuple[str, int], list[pa.Table]],
        tables: Mapping[str, pa.Table],
        results: Mapping[str, pa.Table],
    ) -> pa.Table | None:
        """What arrives over an edge; None for no rows."""
        edge = node.edges[number]
        table: pa.Table | None = None
        if edge.source.startswith(TABLE):
            table = tables.get(edge.source.removeprefix(TABLE))
            if table is not None and SHARD in table.column_names:
                table = table.drop_columns([SHARD])
        elif (node.id, number) in inputs:
            table = pa.concat_tables(inputs[node.id, number])
        elif edge.source in results:
            table = results[edge.source]
            if edge.projection is not None:
                table = project(table, edge.projection)
        return table if table is not None and table.num_rows else None

    def _apply(
        self,
        node: Node,
        given: Sequence[pa.Table | None],
        attempt: Attempt,
        context: TickContext,
    ) -> pa.Table | None:
        work = self.work
        wakes = node.operator.wakes and self.shard in woken(node, work.shards)
        if not wakes and all(table is None for table in given):
            return None
        schemas = {node.id: node.schema for node in work.graph.nodes}
        full = [
            edge_schema(work.graph, schemas, edge).empty_table() if table is None else table
            for table, edge in zip(given, node.edges, strict=True)
        ]
        return node.operator.apply(attempt.of(self.shard, node.id), full, context)

    def _send(self, source: Node, table: pa.Table, running: Sequence[Node]) -> None:
        """Send an operator's output over every edge that leads to a later level."""
        for node in running:
            if node.level == self.level:
                continue  # same shard, same task
            for number, edge in enumerate(node.edges):
                if edge.source != source.id:
                    continue
                rows = table if edge.projection is None else project(table, edge.projection)
                if edge.route is None:
                    parts = {self.shard: rows}
                else:
                    rows = combined(rows)
                    parts = split(rows, shards_of(rows, edge.route, self.work.shards))
                for shard, part in parts.items():
                    for first in range(0, part.num_rows, _ROWS_A_VALUE):
                        packed = pack(part.slice(first, _ROWS_A_VALUE))
                        value = Value(node.level, int(shard), "edge", node.id, number, packed)
                        self.out.append(value)


def run_tick_on_spark(spark: SparkSession, work: Work) -> Outcome:
    """A small tick on this machine as one task, a large one whichever way is sooner done."""
    context = spark.sparkContext
    if not (context.master or "").startswith("local"):
        # On one host the cache is one tick behind; on a cluster it may be any number.
        return run_levels(spark, replace(work, merged=TIERS))
    records = sum(r.end - r.start for r in work.ranges)
    if work.seeding is not None:  # rows of shared operators, as many as a tick may hold
        records = max(records, work.limit)
    if records <= SMALL_TICK:
        return run_on_spark(spark, work)
    ways = ways_of(context.defaultParallelism)
    levels = ways.over_levels(work.graph.views, work.shards)
    began = SYSTEM.monotonic()
    outcome = run_levels(spark, work) if levels else run_on_spark(spark, work)
    ways.learn(work.graph.views, levels, records, SYSTEM.monotonic() - began)
    return outcome


@cache
def ways_of(cores: int) -> Ways:
    """What this process has learnt about large ticks."""
    return Ways(cores)


def run_levels(spark: SparkSession, work: Work) -> Outcome:
    """One tick as a chain of levels."""
    context = spark.sparkContext
    name_job(context, work)
    tasks = max(1, min(work.shards, context.defaultParallelism))
    depth = max((node.level for node in work.graph.nodes), default=0)
    values = numbers(context, tasks).mapPartitions(_first(work, tasks))
    for level in range(1, depth + 1):
        values = values.partitionBy(tasks, _as_it_is).mapPartitions(_later(work, level, tasks))
    return conclude((value for _, value in values.collect()), work.shards, depth, tasks)


Sent: TypeAlias = "tuple[int, Value]"  # the task a value goes to


def _as_it_is(task: int) -> int:
    return task


def _first(work: Work, tasks: int) -> Callable[[Iterable[int]], Iterator[Sent]]:
    def stage(given: Iterable[int]) -> Iterator[Sent]:
        for task in given:
            yield from _sent(Group(work, 0, task, tasks).run([]), tasks)
        settle()

    return stage


def _later(work: Work, level: int, tasks: int) -> Callable[[Iterable[Sent]], Iterator[Sent]]:
    def stage(given: Iterable[Sent]) -> Iterator[Sent]:
        arrived = list(given)
        if arrived:  # every task before told every task what it did
            group = Group(work, level, arrived[0][0], tasks)
            yield from _sent(group.run([value for _, value in arrived]), tasks)
        settle()

    return stage


def _sent(values: Iterable[Value], tasks: int) -> Iterator[Sent]:
    for value in values:
        yield value.shard % tasks, value


def run_levels_here(work: Work, tasks: int = 2) -> Outcome:
    """The same chain in this process, without Spark; for tests."""
    depth = max((node.level for node in work.graph.nodes), default=0)
    values: list[Value] = []
    for level in range(depth + 1):
        sent: list[Value] = []
        for task in range(tasks):
            arrived = [value for value in values if value.shard % tasks == task]
            sent += Group(work, level, task, tasks).run(arrived)
        values = sent
    return conclude(values, work.shards, depth, tasks)


def conclude(values: Iterable[Value], shards: int, depth: int, tasks: int) -> Outcome:
    """The outcome of the chain, if every shard has one story at every level."""
    outcome = Outcome()
    stories: dict[tuple[str, int], list[bytes]] = {}
    for value in values:
        match value.kind:
            case "error":
                raise pickle.loads(value.value)
            case "done":
                stories.setdefault((value.name, value.number), []).append(value.value)
            case _:
                keys, values = (c.combine_chunks() for c in unpack(value.value).columns)
                outcome.change(value.name, Piece(keys, values))
    for (level, shard), told in sorted(stories.items()):
        outcomes = [pickle.loads(story) for story in told]
        answers = {pickle.dumps(replace(one, figures={}, opened_ms=0)) for one in outcomes}
        if len(answers) != 1 or len(told) != tasks:
            raise TickUnsteadyError(
                f"level {level} of shard {shard} gave more than one answer",
                detail=f"{len(answers)} answers reached {len(told)} of {tasks} tasks behind it",
                hint="the tick is tried again",
            )
        outcome.add(outcomes[0])
    if len(stories) != shards * (depth + 1):
        raise TickUnsteadyError(
            "a tick's job came back incomplete",
            detail=f"{len(stories)} of {shards * (depth + 1)} stories were told",
            hint="the tick is tried again",
        )
    return outcome


def pack(table: pa.Table) -> bytes:
    """A table as one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def unpack(value: bytes) -> pa.Table:
    """The reverse of `pack`."""
    with pa.ipc.open_stream(value) as reader:
        return reader.read_all()
