"""One tick in one task: the whole chain in memory, all shards' state as usual.

Levels over Spark exchanges and this executor run the same operators on the same shards, so
their state is the same and a project may change between them from tick to tick.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.pipelines.incremental.evaluate import project
from tailrace.pipelines.incremental.graph import (
    COPIED,
    DELETED,
    KEY,
    SHARD,
    VERSIONED_AT,
    WEIGHT,
    Edge,
    Graph,
    Node,
    TableInput,
    TickContext,
)
from tailrace.pipelines.incremental.rows import combined, weighted
from tailrace.pipelines.incremental.shards import shards_of, split
from tailrace.pipelines.state.store import States

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
    outputs: dict[str, Shards] = dict(given or {})
    schemas = {node.id: node.schema for node in graph.nodes}
    for node in graph.nodes:
        if only is not None and node.id not in only:
            continue
        began = SYSTEM.monotonic()
        # An operator without state does not care for shards.
        apart = 1 if getattr(node.operator, "stateless", False) else shards
        arrived = [_arrive(edge, outputs, inputs, apart) for edge in node.edges]
        busy: set[int] = set().union(*arrived)
        if node.operator.wakes:
            busy |= woken(node, shards)
        results: Shards = {}
        for shard in sorted(busy):
            tables = [
                rows[shard] if shard in rows else edge_schema(graph, schemas, edge).empty_table()
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


def _arrive(
    edge: Edge, outputs: Mapping[str, Shards], inputs: Mapping[str, pa.Table], shards: int
) -> Shards:
    if edge.source.startswith(TABLE):
        table = inputs.get(edge.source.removeprefix(TABLE))
        if table is None or not table.num_rows:
            return {}
        if SHARD in table.column_names and shards > 1:
            return split(table, table.column(SHARD).to_numpy())
        return {0: table}
    sent = outputs.get(edge.source)
    if sent is None:
        return {}
    if edge.route is None and shards > 1:
        tables = {shard: _projected(table, edge) for shard, table in sent.items()}
        return {shard: table for shard, table in tables.items() if table.num_rows}
    table = combined(_projected(pa.concat_tables(sent.values()), edge))
    if not table.num_rows:
        return {}
    if shards == 1:
        return {0: table}
    return split(table, shards_of(table, edge.route or (), shards))


def _projected(table: pa.Table, edge: Edge) -> pa.Table:
    return table if edge.projection is None else project(table, edge.projection)
