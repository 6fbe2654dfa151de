"""One tick in one task: the whole chain in memory, all shards' state as usual.

Levels over Spark exchanges and this executor run the same operators on the same shards, so
their state is the same and a project may change between them from tick to tick.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tailrace.pipelines.incremental.evaluate import project
from tailrace.pipelines.incremental.graph import Edge, Graph, TickContext
from tailrace.pipelines.incremental.rows import consolidate
from tailrace.pipelines.incremental.shards import split
from tailrace.pipelines.state.store import States


def run_tick(
    graph: Graph,
    inputs: Mapping[str, pa.Table],
    states: States,
    tick: TickContext,
    *,
    shards: int = 1,
) -> dict[str, pa.Table]:
    """Apply one tick's inputs (by topic; absent means none) and return every view's changes.

    The answer has the form `ViewPlan` describes: the view's columns and `__deleted`, at most
    one row per key. Only views that changed are in it. State changes are in `states`;
    whoever called decides whether they ever happened.
    """
    outputs: dict[str, dict[int, pa.Table]] = {}
    for node in graph.nodes:
        arrived = [_arrive(edge, outputs, inputs, shards) for edge in node.edges]
        busy = set().union(*arrived)
        if node.operator.wakes:
            busy |= {0} if all(edge.route == () for edge in node.edges) else set(range(shards))
        results: dict[int, pa.Table] = {}
        for shard in sorted(busy):
            tables = [
                rows[shard] if shard in rows else edge_schema(graph, edge).empty_table()
                for rows, edge in zip(arrived, node.edges, strict=True)
            ]
            result = node.operator.apply(states.of(shard, node.id), tables, tick)
            if result.num_rows:
                results[shard] = result
        if results:
            outputs[node.id] = results
    return {
        name: pa.concat_tables(outputs[view.node].values())
        for name, view in graph.views.items()
        if view.node in outputs
    }
