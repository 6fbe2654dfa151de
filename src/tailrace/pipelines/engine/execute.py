"""One tick in one task: the whole chain in memory, all shards' state as usual.

Levels over Spark exchanges and this executor run the same operators on the same shards, so
their state is the same and a project may change between them from tick to tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial

import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.pipelines.engine.evaluate import project
from tailrace.pipelines.engine.expression import Column
from tailrace.pipelines.engine.graph import Edge, Graph, Node, Projection, TableInput, TickContext
from tailrace.pipelines.engine.unforeseen import at_operator, located
from tailrace.pipelines.state.store import States
from tailrace.pipelines.values.columns import COPIED, DELETED, KEY, SHARD, VERSIONED_AT, WEIGHT
from tailrace.pipelines.values.rows import combined, weighted
from tailrace.pipelines.values.shards import Division, shards_of, split

TABLE = "table:"
Shards = dict[int, pa.Table]


def run_tick(
    graph: Graph,
    inputs: Mapping[str, pa.Table],
    states: States,
    tick: TickContext,
    *,
    shards: int = 1,
    given: Mapping[str, Shards] | None = None,
    only: Collection[str] | None = None,
    spent: dict[str, float] | None = None,
) -> dict[str, pa.Table]:
    """Apply one tick's inputs (by topic; absent means none) and return every view's changes.

    The answer has the form `ViewPlan` describes: the view's columns and `__deleted`, at most
    one row per key. Only views that changed are in it. State changes are in `states`;
    whoever called decides whether they ever happened. `given` are outputs, by shard, of
    operators that do not run themselves; `only`: the ones that run. `spent` is told the
    seconds each took, with what came to it.
    """
    arrivals = _Arrivals(graph, inputs, given)
    outputs = arrivals.outputs
    schemas = {node.id: node.schema for node in graph.nodes}
    for node in graph.nodes:
        if only is not None and node.id not in only:
            continue
        began = SYSTEM.monotonic()
        # An operator without state does not care for shards.
        apart = 1 if getattr(node.operator, "stateless", False) else shards
        results: Shards = {}
        with located(partial(at_operator, node)):
            arrived = [arrivals.over(edge, apart) for edge in node.edges]
            busy: set[int] = set().union(*arrived)
            if node.operator.wakes:
                busy |= woken(node, shards)
            for shard in sorted(busy):
                tables = [
                    rows[shard]
                    if shard in rows
                    else edge_schema(graph, schemas, edge).empty_table()
                    for rows, edge in zip(arrived, node.edges, strict=True)
                ]
                result = node.operator.apply(states.of(shard, node.id), tables, tick)
                if result.num_rows:
                    results[shard] = result
        if results:
            outputs[node.id] = results
        if spent is not None and busy:
            spent[node.id] = SYSTEM.monotonic() - began
    return {
        name: pa.concat_tables(outputs[view.node].values())
        for name, view in graph.views.items()
        if view.node in outputs
    }


def woken(node: Node, shards: int) -> set[int]:
    """The shards in which an operator that wakes must run."""
    everywhere = any(edge.route != () for edge in node.edges)
    return set(range(shards)) if everywhere else {0}


def edge_schema(graph: Graph, schemas: Mapping[str, pa.Schema], edge: Edge) -> pa.Schema:
    """The schema of what arrives over an edge, with `__weight` (or a table's columns)."""
    if edge.source.startswith(TABLE):
        return input_schema(graph.tables[edge.source.removeprefix(TABLE)])
    if edge.projection is None:
        return weighted(schemas[edge.source])
    return weighted(pa.schema([(name, e.type) for name, e in edge.projection.columns]))


def input_schema(table: TableInput) -> pa.Schema:
    """The columns of a table's input (see `TableInput`), without `__shard`."""
    schema = table.schema
    if table.kind in ("table", "history"):
        schema = schema.append(pa.field(KEY, pa.binary()))
    if table.kind == "history":
        schema = schema.append(pa.field(VERSIONED_AT, pa.timestamp("us", tz="UTC")))
        schema = schema.append(pa.field(COPIED, pa.bool_()))
    if table.kind == "bag":
        schema = schema.append(pa.field(WEIGHT, pa.int64()))
    if table.kind != "stream":
        schema = schema.append(pa.field(DELETED, pa.bool_()))
    return schema


class _Arrivals:
    """What comes over the edges of a tick. What edges from one operator have in common is done
    once: its rows of all shards in one table, and their division by the same columns."""

    def __init__(
        self, graph: Graph, inputs: Mapping[str, pa.Table], given: Mapping[str, Shards] | None
    ) -> None:
        self.outputs: dict[str, Shards] = dict(given or {})
        self._inputs = inputs
        self._edges = Counter(edge.source for node in graph.nodes for edge in node.edges)
        self._together: dict[str, pa.Table] = {}
        self._divisions: dict[tuple[str, ...], Division] = {}

    def over(self, edge: Edge, shards: int) -> Shards:
        if edge.source.startswith(TABLE):
            table = self._inputs.get(edge.source.removeprefix(TABLE))
            if table is None or not table.num_rows:
                return {}
            if SHARD in table.column_names and shards > 1:
                return split(table, table.column(SHARD).to_numpy())
            return {0: table}
        sent = self.outputs.get(edge.source)
        if sent is None:
            return {}
        if edge.route is None and shards > 1:
            tables = {shard: _projected(table, edge) for shard, table in sent.items()}
            return {shard: table for shard, table in tables.items() if table.num_rows}
        whole = self._whole(edge.source, sent)
        table = combined(_projected(whole, edge))
        if not table.num_rows:
            return {}
        if shards == 1:
            return {0: table}
        return self._division(edge, table, whole, shards).of(table)

    def _whole(self, source: str, sent: Shards) -> pa.Table:
        """What an operator sent; kept where others want it, too."""
        if source in self._together:
            return self._together[source]
        whole = pa.concat_tables(sent.values()).combine_chunks()
        if self._edges[source] > 1:
            self._together[source] = whole
        return whole

    def _division(self, edge: Edge, table: pa.Table, whole: pa.Table, shards: int) -> Division:
        """How a table that came of the rows `whole` is divided."""
        route = edge.route or ()
        columns = _columns_of(route, edge.projection)
        pairs = zip(route, columns or (), strict=False)
        if not columns or not all(_is_same(table.column(a), whole.column(b)) for a, b in pairs):
            return Division.by(shards_of(table, route, shards))
        asked = (edge.source, *columns)
        if asked not in self._divisions:
            self._divisions[asked] = Division.by(shards_of(table, route, shards))
        return self._divisions[asked]


def _columns_of(route: tuple[str, ...], projection: Projection | None) -> tuple[str, ...] | None:
    """The columns of the sender that a route is made of; None if it is computed."""
    if projection is None:
        return route
    known = {name: e.name for name, e in projection.columns if isinstance(e, Column)}
    return tuple(known[name] for name in route) if known.keys() >= set(route) else None


def _is_same(column: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether two columns are one: the same rows in the same order, and the same bytes."""
    if column.num_chunks != 1 or other.num_chunks != 1 or len(column) != len(other):
        return False
    ours, theirs = column.chunk(0), other.chunk(0)
    return ours.offset == theirs.offset and _addresses(ours) == _addresses(theirs)


def _addresses(column: pa.Array) -> list[int | None]:
    return [None if buffer is None else buffer.address for buffer in column.buffers()]


def _projected(table: pa.Table, edge: Edge) -> pa.Table:
    return table if edge.projection is None else project(table, edge.projection)
