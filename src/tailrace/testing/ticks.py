"""Views driven without Spark: tables in memory, one tick after another.

    shop = MemoryTables(graph)
    shop.upsert("shop.public.orders", {"id": 1, "amount": Decimal("9.99")})
    shop.tick()
    shop.rows("open_orders")

`run_ticks` is the short form: a list of changes per tick, the views after each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.expressions.functions import FunctionLike
from tailrace.pipelines.engine.execute import input_schema, run_tick
from tailrace.pipelines.engine.graph import Graph, TableInput, TickContext
from tailrace.pipelines.values.columns import DELETED, KEY, SHARD, WEIGHT
from tailrace.pipelines.values.types import parse_type
from tailrace.testing.state import MemoryStates

Row = dict[str, Any]
Change = tuple[str, str, Row]


def table(name: str, columns: str, key: Sequence[str] = (), kind: str | None = None) -> TableInput:
    """A table by its Spark DDL: `table("shop.public.orders", "id BIGINT, at TIMESTAMP", ["id"])`."""
    fields = []
    depth, start = 0, 0
    for position, letter in enumerate(columns + ","):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            column, _, type_name = columns[start:position].strip().partition(" ")
            fields.append((column, parse_type(type_name)))
            start = position + 1
    chosen = kind or ("table" if key else "bag")
    return TableInput(name, name, pa.schema(fields), tuple(key), chosen)


class MemoryTables:
    """A graph with its state in memory, and every view as a dict by key."""

    def __init__(self, graph: Graph, *, shards: int = 1) -> None:
        self.graph, self.shards = graph, shards
        self.states = MemoryStates()
        self.number = 0
        self.now_ms = 0
        self.watermarks: dict[str, int] = {}
        self.forgotten: dict[str, int] = {}  # what came too late for a history, by topic
        self.views: dict[str, dict[str, Row]] = {name: {} for name in graph.views}
        self._events: dict[str, list[Row]] = {}

    def upsert(self, topic: str, row: Row) -> None:
        self._event(topic, row, False)

    def delete(self, topic: str, row: Row) -> None:
        """Remove the row with the key of `row` (of a bag: the whole row, once)."""
        self._event(topic, row, True)

    def take(self, topic: str, rows: list[Row]) -> None:
        """Rows as they come from the records of a topic, see `TableInput`."""
        if topic in self.graph.tables and rows:
            self._events.setdefault(topic, []).extend(rows)

    def truncate(self, topic: str) -> None:
        self._events.setdefault(topic, []).append({WEIGHT: 0, DELETED: True})

    def _event(self, topic: str, row: Row, deleted: bool) -> None:
        known = self.graph.tables.get(topic)
        if known is None:
            return
        event = dict(row)
        if known.kind == "bag":
            event |= {WEIGHT: -1 if deleted else 1, DELETED: False}
        elif known.kind != "stream":
            key = {name: row.get(name) for name in known.key}
            event |= {KEY: orjson.dumps(key, default=str), DELETED: deleted}
            if "__versioned_at" in known.schema.names:
                event.setdefault("__versioned_at", row.get("__versioned_at"))
            event[SHARD] = sum(event[KEY]) % self.shards
        self._events.setdefault(topic, []).append(event)

    def inputs(self) -> dict[str, pa.Table]:
        """What has happened since the last tick, as a tick reads it."""
        tables = {}
        for topic, events in self._events.items():
            schema = input_schema(self.graph.tables[topic])
            if SHARD in events[0]:
                schema = schema.append(pa.field(SHARD, pa.int32()))
            tables[topic] = pa.Table.from_pylist(events, schema=schema)
        return tables

    def tick(self) -> dict[str, pa.Table]:
        """Run one tick and apply what it emits to `views`."""
        self.number += 1
        marks = dict(self.watermarks)
        context = TickContext(self.number, self.now_ms, marks, forgotten=self.forgotten)
        emitted = run_tick(self.graph, self.inputs(), self.states, context, shards=self.shards)
        self.apply({name: changes.to_pylist() for name, changes in emitted.items()})
        return emitted

    def apply(self, emitted: Mapping[str, list[Row]]) -> None:
        """Take in what a tick of all events so far has emitted."""
        self._events.clear()
        for name, changes in emitted.items():
            plan = self.graph.views[name]
            view = self.views[name]
            for row in changes:
                deleted = row.pop(DELETED)
                key = repr([row[part] for part in plan.key])  # JSON takes NaN for null
                if deleted:
                    del view[key]
                else:
                    view[key] = row

    def attempt(self) -> dict[str, pa.Table]:
        """Run a tick on a copy of the state and throw it away."""
        context = TickContext(self.number + 1, self.now_ms, dict(self.watermarks))
        return run_tick(self.graph, self.inputs(), self.states.copy(), context, shards=self.shards)

    def rows(self, view: str) -> list[Row]:
        """The rows of a view; a bag's rows as often as they count, without the count."""
        plan = self.graph.views[view]
        if not plan.bag:
            return list(self.views[view].values())
        return [
            {name: value for name, value in row.items() if name != "count"}
            for row in self.views[view].values()
            for _ in range(row["count"])
        ]


def run_ticks(
    views: Mapping[str, str] | str,
    tables: Iterable[TableInput],
    ticks: Iterable[Iterable[Change]],
    *,
    keys: Mapping[str, Sequence[str]] | None = None,
    shards: int = 1,
    functions: Iterable[FunctionLike] = (),
) -> list[dict[str, list[Row]]]:
    """The rows of every view after each tick.

    A change is ("upsert" | "delete", topic, row); a string as `views` is one view "v".
    """
    named = {"v": views} if isinstance(views, str) else views
    wanted = keys or {}
    definitions = [
        ViewDefinition(name, sql, tuple(wanted[name]) if name in wanted else None)
        for name, sql in named.items()
    ]
    memory = MemoryTables(compile_views(definitions, tables, functions), shards=shards)
    seen = []
    for changes in ticks:
        for kind, topic, row in changes:
            (memory.upsert if kind == "upsert" else memory.delete)(topic, row)
        memory.tick()
        seen.append({name: memory.rows(name) for name in memory.graph.views})
    return seen
