"""The rows of a table without a key, rebuilt from its topic in three ways.

`rebuild_bag` is the plain consumer: it reads the records of one table's topic and nothing
else. `BagViews` runs the operators of views over the same records, a tick per cut, without
Spark, and hands every tick's changelog to a sink. All must give the rows of the table, as
often as each is there; no count is ever negative, after no tick and no record.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from tailrace.client.ranges import Chunk
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.reading.catalog import described_tables
from tailrace.pipelines.reading.decode import decode
from tailrace.pipelines.reading.reader import Records
from tailrace.pipelines.ticks.planner import parse_cuts
from tailrace.sinks import SQLite
from tailrace.sinks.base import Shape, SinkPosition
from tailrace.sinks.changes import Collector
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sqlite import SQLiteSink
from tailrace.sources.base import LogRecord
from tailrace.testing.source_log import SharedLog
from tailrace.testing.state import MemoryStates

Bag = Counter[bytes]


def canonical(row: Mapping[str, Any]) -> bytes:
    """A row as bytes that equal rows share; a column that is NULL says nothing."""
    known = {name: value for name, value in row.items() if value is not None}
    return orjson.dumps(known, option=orjson.OPT_SORT_KEYS)


def bag_of(rows: Iterable[Mapping[str, Any]]) -> Bag:
    return Counter(canonical(row) for row in rows)


def rebuild_bag(records: Iterable[LogRecord | None]) -> Bag:
    """The rows without a key that one partition says are there, by the records alone.

    A `t` empties what came before it. Records with a key are of a time when the table had one.
    None stands where a log transaction ends: there no row may have left that was not there.
    """
    bag: Bag = Counter()
    for record in records:
        if record is None:
            missing = -bag
            assert not missing, f"rows left that were not there: {missing}"
            continue
        if record.key is not None or record.value is None:
            continue
        event = orjson.loads(record.value)
        if event["op"] == "t":
            bag.clear()
            continue
        if event["before"] is not None:
            bag[canonical(event["before"])] -= 1
        if event["after"] is not None:
            bag[canonical(event["after"])] += 1
    assert not -bag, f"rows left that were not there: {-bag}"
    return +bag


class BagViews:
    """Two views over one table and their copies in a sink, from the log's first cut on.

    The view `rows` is the table, `total` its number of rows.
    """

    def __init__(self, shared: SharedLog, topic: str, directory: Path, *, shards: int = 2) -> None:
        self._shared, self._topic, self._shards = shared, topic, shards
        told = [
            orjson.loads(value)
            for value in shared.values(f"{topic.split('.')[0]}.schemas")
            if value is not None
        ]
        self.table = described_tables(told)[0][topic]
        columns = ", ".join(f"`{name}`" for name in self.table.schema.names)
        self.graph = compile_views(
            [
                ViewDefinition("rows", f"SELECT {columns} FROM {topic}"),
                ViewDefinition(
                    "total", f"SELECT 'all' AS what, count(*) AS n FROM {topic}", ("what",)
                ),
            ],
            [self.table],
        )
        self._states = MemoryStates()
        self._sinks = {name: self._sink(name, directory) for name in self.graph.views}
        self._path = directory / "sink.db"
        self._ends = dict.fromkeys(self.graph.views, 0)
        self.dead: list[str] = []
        self.ticks = 0

    def _sink(self, name: str, directory: Path) -> SQLiteSink:
        directory.mkdir(parents=True, exist_ok=True)
        plan = self.graph.views[name]
        made = SQLiteSink(
            Copy(name, name, name, "view", plan.key, SQLite(directory / "sink.db", table=name)),
            Surroundings(directory),
        )
        made.open(Shape(plan.columns, plan.key))
        return made

    def read(self) -> None:
        """Run a tick for every cut; fails where one shows fewer rows than none."""
        source = self._topic.split(".")[0]
        transactions = self._shared.records(f"{source}.transactions")
        told = Records(
            f"{source}.transactions", 0, [r.offset for r in transactions],
            values=[r.value for r in transactions],
        )  # fmt: skip
        reached: dict[int, int] = {}
        ends: dict[int, int] = {}
        for cut in parse_cuts(told):
            ends |= cut.offsets.get(self._topic, {})
            if not cut.whole or self._topic in cut.copying:
                continue
            self._tick({p: (reached.get(p, 0), end) for p, end in ends.items()})
            reached |= ends
        for sink in self._sinks.values():
            sink.close()

    def _tick(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        pieces = []
        for partition, (start, end) in sorted(ranges.items()):
            with self._shared.guard:
                held = self._shared.topics[self._topic][partition][start:end]
            records = [record for record in held if record is not None]
            decoded = decode(
                self.table,
                Records(
                    self._topic, partition, [r.offset for r in records],
                    [r.key for r in records], [r.value for r in records],
                    [0] * len(records),
                ),
                self._shards,
            )  # fmt: skip
            self.dead += [one.reason for one in decoded.dead]
            pieces.append(decoded.rows)
        rows = pa.concat_tables(pieces) if pieces else None
        self.ticks += 1
        inputs = {} if rows is None else {self._topic: rows}
        emitted = run_tick(
            self.graph, inputs, self._states, TickContext(self.ticks, 0), shards=self._shards
        )
        for name, changes in emitted.items():
            pairs = record_pairs(self.graph.views[name], changes)
            for _, value in pairs:
                row = orjson.loads(value or b'{"row":{}}')["row"]
                count = row.get("n" if name == "total" else "count", 0)
                assert count >= 0, f"tick {self.ticks} shows {row} in {name}"
            self._deliver(name, pairs)

    def _deliver(self, name: str, pairs: list[tuple[bytes, bytes | None]]) -> None:
        plan, start = self.graph.views[name], self._ends[name]
        end = self._ends[name] = start + len(pairs)
        collector = Collector(Shape(plan.columns, plan.key), wrapped=True, latest=True)
        chunk = Chunk(
            name, 0, list(range(start, end)), [key for key, _ in pairs],
            [value for _, value in pairs], [0] * len(pairs), [()] * len(pairs), end,
        )  # fmt: skip
        collector.add(chunk, end)
        batch, bad = collector.make(SinkPosition(name, 1, self.ticks, {0: end}))
        assert not bad
        self._sinks[name].apply(batch)

    def rows(self) -> Bag:
        """The rows of the sink's copy."""
        connection = sqlite3.connect(self._path)
        try:
            cursor = connection.execute('SELECT * FROM "rows"')
            names = [column[0] for column in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor]
        finally:
            connection.close()
        bag: Bag = Counter()
        for row in found:
            bag[canonical({n: v for n, v in row.items() if n != "count"})] += row.get("count", 1)
        return bag

    def total(self) -> int:
        connection = sqlite3.connect(self._path)
        try:
            row = connection.execute('SELECT n FROM "total"').fetchone()
        finally:
            connection.close()
        return 0 if row is None else int(row[0])
