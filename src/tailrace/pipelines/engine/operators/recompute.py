"""A part of a view that is computed again, whole, whenever something it reads changes.

    "i" + number + hash(row) -> marshal (weight, row)     the rows of input `number`
    "o" + hash(row)          -> marshal (weight, row)     the rows it gave last

Only what differs from last time is emitted, so that what stands behind it stays incremental.
The part is a graph of its own, run on nothing but its inputs; `now` in it is the tick's time.
"""

from __future__ import annotations

import datetime
import hashlib
import marshal
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from tailrace.pipelines.engine.expression import Call, Expression, Literal, rewrite
from tailrace.pipelines.engine.graph import Graph, Node, Projection, TickContext
from tailrace.pipelines.engine.identity import not_identity
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    decode_row,
    dumps,
    encode_row,
    encode_rows,
    to_rows,
    weights,
)
from tailrace.pipelines.values.types import TIMESTAMP

OUT = "out"


@dataclass(frozen=True, slots=True)
class Recompute:
    """`graph` reads the streams `given-0`, `given-1` … and has one view, `out`, whose node
    gives the rows. `clock`: it must run in every tick."""

    graph: Graph
    reason: str = field(metadata=not_identity("a text for people"))
    clock: bool
    schema: pa.Schema
    kind: ClassVar[str] = "recompute"

    @property
    def wakes(self) -> bool:
        return True  # in its first tick it may say something about no rows at all

    @property
    def timed(self) -> bool:
        return self.clock

    def describe(self) -> str:
        return f"recompute ({self.reason}) → {', '.join(self.schema.names)}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        first = state.get(b"done") is None
        changed = any(table.num_rows for table in inputs)
        if not (changed or first or self.clock):
            return changes([], [], self.schema)
        for number, table in enumerate(inputs):
            self._remember(state, b"i%c" % number, to_rows(table), weights(table))
        given = {
            topic: self._input(state, number) for number, topic in enumerate(self.graph.tables)
        }
        new = self._run(given, tick)
        old = {row: weight for weight, row in map(marshal.loads, (v for _, v in state.scan(b"o")))}
        rows: list[Row] = []
        counts: list[int] = []
        for data in sorted(new.keys() | old.keys()):
            change = new.get(data, 0) - old.get(data, 0)
            if change:
                rows.append(decode_row(data))
                counts.append(change)
        self._remember(state, b"o", rows, counts)
        if first:
            state.put_many([(b"done", b"1")])
        return changes(rows, counts, self.schema)

    def _remember(
        self, state: OperatorState, prefix: bytes, rows: Sequence[Row], counts: Sequence[int]
    ) -> None:
        delta: dict[bytes, int] = {}
        for data, weight in zip(encode_rows(rows), counts, strict=True):
            delta[data] = delta.get(data, 0) + weight
        keys = {
            prefix + hashlib.blake2b(d, digest_size=16).digest(): d for d, w in delta.items() if w
        }
        ordered = sorted(keys)
        puts: list[tuple[bytes, bytes | None]] = []
        for key, value in zip(ordered, state.get_many(ordered), strict=True):
            known = marshal.loads(value)[0] if value is not None else 0
            total = known + delta[keys[key]]
            puts.append((key, dumps((total, keys[key])) if total else None))
        state.put_many(puts)

    def _input(self, state: OperatorState, number: int) -> pa.Table:
        schema = list(self.graph.tables.values())[number].schema
        rows: list[Row] = []
        for _, value in state.scan(b"i%c" % number):
            weight, data = marshal.loads(value)
            rows += [decode_row(data)] * weight
        table = changes(rows, [1] * len(rows), schema)
        return table.select(schema.names)

    def _run(self, given: dict[str, pa.Table], tick: TickContext) -> dict[bytes, int]:
        from tailrace.pipelines.engine.execute import run_tick

        graph = at_time(self.graph, tick.now_ms) if self.clock else self.graph
        emitted = run_tick(graph, given, Scratch(), tick).get(OUT)
        totals: dict[bytes, int] = {}
        if emitted is not None:
            for row, weight in zip(to_rows(emitted), weights(emitted), strict=True):
                data = encode_row(row)
                totals[data] = totals.get(data, 0) + weight
        return {data: weight for data, weight in totals.items() if weight}


def at_time(graph: Graph, now_ms: int) -> Graph:
    """The graph with its clock stopped at that time."""
    moment = datetime.datetime.fromtimestamp(now_ms // 1000, datetime.UTC).replace(
        microsecond=now_ms % 1000 * 1000
    )
    now = Literal(moment, TIMESTAMP)

    def stopped(bound: Expression) -> Expression:
        return rewrite(
            bound, lambda n: now if isinstance(n, Call) and n.function == "now" else None
        )

    def changed(node: Node) -> Node:
        edges = []
        for edge in node.edges:
            projection = edge.projection
            if projection is not None:
                projection = Projection(
                    tuple((name, stopped(bound)) for name, bound in projection.columns),
                    stopped(projection.where) if projection.where is not None else None,
                )
            edges.append(replace(edge, projection=projection))
        return replace(node, edges=tuple(edges))

    return replace(graph, nodes=tuple(changed(node) for node in graph.nodes))


class Scratch:
    """State that lasts one computation."""

    def __init__(self) -> None:
        self._operators: dict[str, ScratchState] = {}

    def of(self, shard: int, operator: str) -> ScratchState:
        return self._operators.setdefault(operator, ScratchState())


class ScratchState:
    """An `OperatorState` in memory."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._values.get(key) for key in keys]

    def put_many(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        added: list[bytes] = []
        for key, value in items:
            if value is None:
                if self._values.pop(key, None) is not None:
                    del self._keys[bisect_left(self._keys, key)]
            else:
                if key not in self._values:
                    added.append(key)
                self._values[key] = value
        if len(added) > 8:
            self._keys = sorted([*self._keys, *added])
        else:
            for key in added:
                insort(self._keys, key)

    def scan(self, prefix: bytes = b"", after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        first = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        for at in range(first, len(self._keys)):
            key = self._keys[at]
            if not key.startswith(prefix):
                return
            yield key, self._values[key]
