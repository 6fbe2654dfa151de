"""What a view does, said in words: its operators, their state, what is recomputed and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailrace.pipelines.compiler.lowering.recompute import part_of_input, whole_input
from tailrace.pipelines.compiler.wording import Wording
from tailrace.pipelines.engine.expression import PYTHON, SPARK, Call, walk
from tailrace.pipelines.engine.graph import Graph, Node, Projection
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.join_distance import told


@dataclass(frozen=True, slots=True)
class Size:
    """How much an operator keeps."""

    rows: int
    bytes: int


def explain(
    graph: Graph,
    view: str,
    sizes: Mapping[str, Size] | None = None,
    apart: Mapping[str, Mapping[int, int]] | None = None,
) -> str:
    """The chain of a view from its result down to the tables.

    `sizes` (by operator id) adds what each keeps, `apart` how long partners of joins of streams
    are apart (see `operators.join_distance`). Operators that other views use too say so.
    """
    plan = graph.views[view]
    nodes = {node.id: node for node in graph.nodes}
    users = _users(graph, nodes)
    key = f"key ({', '.join(plan.key)})" if not plan.bag else "a bag: rows carry a count"
    if not plan.proven:
        key += ", not unique by the query alone: looked at in every tick"
    lines = [f"view {view}: {key}, policy {plan.policy}"]
    seen: set[str] = set()
    words = Wording(graph)
    _tell(plan.node, 0, nodes, users, view, sizes or {}, lines, seen, words)
    depth = max(nodes[name].level for name in seen if name in nodes)
    lines += _cost([nodes[name] for name in seen if name in nodes], words)
    lines.append(f"{depth} exchange{'s' if depth != 1 else ''} deep")
    lines.append("runs in one task when a tick is small, as levels otherwise")
    for identity in sorted(seen & (apart or {}).keys()):
        operator = nodes[identity].operator
        if apart is not None and isinstance(operator, Join) and operator.between is not None:
            lines += told(operator.between, apart[identity])
    return "\n".join(lines)


def _cost(nodes: list[Node], words: Wording) -> list[str]:
    """What is incremental, and what is computed again and why."""
    again = {words.of(node): whole_input(node) for node in nodes}
    partly = {words.of(node): part_of_input(node) for node in nodes}
    lines = []
    if not any(again.values()) and not any(partly.values()):
        lines.append("incremental: every operator; a change costs what it touches")
    for said, why in sorted(again.items()):
        if why:
            lines.append(f"not incremental: {said}: {why}")
    for said, what in sorted(partly.items()):
        if what:
            lines.append(f"incremental by key: {said}: computes {what} again")
    return lines


def _tell(
    identity: str,
    depth: int,
    nodes: Mapping[str, Node],
    users: Mapping[str, set[str]],
    view: str,
    sizes: Mapping[str, Size],
    lines: list[str],
    seen: set[str],
    words: Wording,
) -> None:
    node = nodes[identity]
    pad = "  " * depth
    extra = []
    if identity in sizes:
        extra.append(f"{sizes[identity].rows:,} rows, {_amount(sizes[identity].bytes)}")
    others = users[identity] - {view}
    if others:
        extra.append(f"shared with {', '.join(sorted(others))}")
    tail = f"  [{'; '.join(extra)}]" if extra else ""
    again = " (see above)" if identity in seen else ""
    lines.append(f"{pad}└ {words.of(node)}{tail}{again}")
    if again:
        return
    seen.add(identity)
    for edge in node.edges:
        if (condition := words.where(edge)) is not None:
            lines.append(f"{pad}  where {condition}")
        if edge.projection is not None:
            lines += (f"{pad}  {line}" for line in _evaluated(edge.projection))
        if edge.source in nodes:
            _tell(edge.source, depth + 1, nodes, users, view, sizes, lines, seen, words)
        else:
            lines.append(f"{pad}  └ topic {edge.source.removeprefix('table:')}")


def _evaluated(projection: Projection) -> Iterator[str]:
    """Who computes the expressions between two operators, if there are any."""
    bounds = [bound for _, bound in projection.columns]
    if projection.where is not None:
        bounds.append(projection.where)
    parts = [part for bound in bounds for part in walk(bound) if isinstance(part, Call)]
    theirs = dict.fromkeys(part.sql for part in parts if part.function == SPARK)
    if theirs:
        yield f"evaluated by spark: {', '.join(theirs)}"
    users = dict.fromkeys(part.sql for part in parts if part.function == PYTHON)
    if users:
        yield f"evaluated by python: {', '.join(users)}"
    if any(part.function not in (SPARK, PYTHON) for part in parts):
        yield "evaluated by arrow" + (": the rest" if theirs or users else "")


def _amount(count: int) -> str:
    """Bytes as people read them."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= 10 * size or (unit == "KB" and count >= size):
            return f"{count / size:,.0f} {unit}"
    return f"{count} bytes"


def _users(graph: Graph, nodes: Mapping[str, Node]) -> dict[str, set[str]]:
    users: dict[str, set[str]] = {identity: set() for identity in nodes}

    def mark(identity: str, view: str) -> None:
        if identity not in nodes or view in users[identity]:
            return
        users[identity].add(view)
        for edge in nodes[identity].edges:
            mark(edge.source, view)

    for name, plan in graph.views.items():
        mark(plan.node, name)
    return users
