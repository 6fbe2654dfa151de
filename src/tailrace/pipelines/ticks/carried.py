"""Operators under the names that their state has.

A state that was written when operators were named by other rules keeps its name for as long as
it lives: the graph is given that name, and every tick row says which operators are so named
(`carried`: what the operator is → the name of its state). So an upgrade fills no view again, and
nothing is looked up by a text any more once the first row is written by the new rules.

A name of the rules before (`legacy_names`) that two operators of the project share
is given to neither; their views are filled again, and shown as they were meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.engine.identity import VERSION
from tailrace.pipelines.ticks.failed_views import TABLE
from tailrace.pipelines.ticks.legacy_names import legacy_names
from tailrace.pipelines.ticks.tick_row import Tick


def carried_names(graph: Graph) -> dict[str, str]:
    """The operators whose state has a name of earlier rules: what each is → that name."""
    return {node.identity: node.id for node in graph.nodes if node.identity}


def as_carried(graph: Graph, row: Tick | None) -> Graph:
    """A graph as compiled, its operators under the names that their state has in `row`."""
    if row is None:
        return graph
    known, held = _earlier_names(graph, row), set(row.operators)
    names: dict[str, str] = {}
    for node in graph.nodes:
        # What stands on an operator that begins again begins again.
        whole = all(e.source in names or e.source.startswith(TABLE) for e in node.edges)
        if whole and known.get(node.id) in held:
            names[node.id] = known[node.id]
    return _renamed(graph, names)


def was_ended_by(graph: Graph, row: Tick, view: str, name: str) -> bool:
    """Whether `name` is what `row` calls the operator that ends a view of a graph as compiled."""
    node = graph.views[view].node
    return name in (node, _earlier_names(graph, row).get(node))


def _earlier_names(graph: Graph, row: Tick) -> Mapping[str, str]:
    """By what operators are, the names of earlier rules that `row` may have for them."""
    match row.naming:
        case 0:
            names = legacy_names(graph.nodes)
            shared = Counter(names.values())
            return {node: name for node, name in names.items() if shared[name] == 1}
        case current if current == VERSION:
            return row.carried
    return {}  # of a later version: nothing is known about it


def _renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    if not any(node.id in names for node in graph.nodes):
        return graph
    nodes = tuple(
        replace(
            node,
            id=names.get(node.id, node.id),
            identity=node.id if node.id in names else "",
            edges=tuple(
                replace(edge, source=names.get(edge.source, edge.source)) for edge in node.edges
            ),
        )
        for node in graph.nodes
    )
    views = {
        name: replace(view, node=names.get(view.node, view.node))
        for name, view in graph.views.items()
    }
    return Graph(graph.tables, nodes, views)
