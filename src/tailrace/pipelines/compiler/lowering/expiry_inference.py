"""How long rows matter: what proves that a row of a stream's view cannot change any more.

A stream that is declared with `keep` takes no row whose event time lies before a *horizon*.
An operator may forget a row when nothing that can still be taken changes it. That needs a
proof from the plan, never a guess: `reach` finds it for a column of a node or says None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal, conjuncts
from tailrace.pipelines.engine.graph import Edge, Node
from tailrace.pipelines.engine.operators.clock import Clock
from tailrace.pipelines.engine.operators.expand import Expand
from tailrace.pipelines.engine.operators.expiry import Expiry
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.join_distance import Between
from tailrace.pipelines.engine.operators.keyed import Facts
from tailrace.pipelines.engine.operators.spans import moments
from tailrace.pipelines.engine.operators.window import Window
from tailrace.pipelines.values import types

Nodes = Mapping[str, Node]
_DAY = 86_400_000_000
_LONGEST = {
    "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000, "DAY": _DAY,
    "WEEK": 7 * _DAY, "MONTH": 31 * _DAY, "QUARTER": 92 * _DAY, "YEAR": 366 * _DAY,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reach:
    """A row with the value v comes, changes or goes only because of rows of these streams
    (topic, column of their event time) whose event time is before v + `adds` microseconds, or
    because their watermark reaches that time."""

    adds: int
    times: frozenset[tuple[str, str]]

    def later(self, micros: int) -> Reach:
        return Reach(self.adds + micros, self.times)

    def __or__(self, other: Reach) -> Reach:
        return Reach(max(self.adds, other.adds), self.times | other.times)

    def expiry(self, column: str) -> Expiry:
        return Expiry(column, self.adds, tuple(sorted(self.times)))


def reach(nodes: Nodes, source: str, value: Expression, where: Expression | None) -> Reach | None:
    """How far rows of node `source` that pass `where` can be reached, by this value of them."""
    if value.type not in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        return None
    match value:
        case Column(name):
            return _column(nodes, nodes[source], name, where)
        case Call("cast", (inner,)):
            return reach(nodes, source, inner, where)
        case Call("window_start", (inner, Literal(int(size)))):
            return _later(reach(nodes, source, inner, where), size - 1)
        case Call("date_trunc", (Literal(str(unit)), inner)) if unit.upper() in _LONGEST:
            return _later(reach(nodes, source, inner, where), _LONGEST[unit.upper()] - 1)
        case Call("case", (Call("<", (inner, shown)), taken, Literal(None))) if shown == taken:
            # The value is there only where it is after `inner`.
            return _later(reach(nodes, source, inner, where), -1)
        case Call("add_interval", (inner, *_)) if (shift := _shift(value)) is not None:
            return _later(reach(nodes, source, inner, where), -shift)
        case Call("coalesce", parts):  # it is one of them
            return _all([reach(nodes, source, part, where) for part in parts])
    return None


def _later(found: Reach | None, micros: int) -> Reach | None:
    return None if found is None else found.later(micros)


def _shift(value: Call) -> int | None:
    """The microseconds an `add_interval` adds; None where months make it vary."""
    match value.arguments[1:]:
        case (Literal(0), Literal(int(days)), Literal(int(micros))):
            return days * _DAY + micros
    return None


def _column(nodes: Nodes, node: Node, name: str, where: Expression | None) -> Reach | None:
    operator = node.operator
    match operator:
        case Facts():
            return Reach(1, frozenset([(operator.table, name)]))
        case Group() if name in operator.keys:
            return _through(nodes, node.edges[0], name)
        case Expand() if name in operator.columns:
            return _through(nodes, node.edges[0], name)
        case Expand(fields=False, position=False, outer=False):
            return _window_starts(nodes, node.edges[0], operator)
        case Window():
            at = node.schema.names.index(name) - len(operator.columns)
            if at >= 0 and operator.functions[at].function == "session_end":
                moment = operator.functions[at].arguments[0]
                return _through(nodes, node.edges[0], moment)
        case Join():
            return joined(nodes, operator, node.edges, name, where)
        case Clock():
            return _behind_watermark(nodes, node.edges[0], operator, name)
    if operator.kind == "union":
        # Where it is always NULL there is no row with such a value.
        there = [edge for edge in node.edges if not _is_null(_projected(nodes, edge, name))]
        return _all([_through(nodes, edge, name) for edge in there])
    return None


def _is_null(value: Expression | None) -> bool:
    return isinstance(value, Literal) and value.value is None


def _all(found: Sequence[Reach | None]) -> Reach | None:
    """The reach of what is one of several; None where one has none."""
    whole: Reach | None = None
    for one in found:
        if one is None:
            return None
        whole = one if whole is None else whole | one
    return whole


def _behind_watermark(nodes: Nodes, edge: Edge, clock: Clock, name: str) -> Reach | None:
    """Rows that wait until a watermark has passed their time, and stay. The clock of the wall
    proves nothing: it lets rows come and leave long after their streams have moved on."""
    found = _through(nodes, edge, name) if clock.streams and name in clock.columns else None
    if found is None:
        return None
    own, shift = _base(_projected(nodes, edge, name))
    last = found.adds
    for moment in moments(clock.condition):
        value, later = _base(_projected(nodes, edge, clock.values[moment.value]))
        if moment.operator not in ("<", "<=") or moment.steps or value is None or value != own:
            return None
        last = max(last, later - shift + 1)
    return Reach(last, found.times | set(clock.streams))


def _base(value: Expression | None) -> tuple[Expression | None, int]:
    """What a time is reckoned from, and the microseconds added to it."""
    match value:
        case Call("add_interval", (inner, *_)) if (shift := _shift(value)) is not None:
            base, before = _base(inner)
            return base, before + shift
        case Call("case", (_, inner, Literal(None))):
            return _base(inner)
    return value, 0


def _projected(nodes: Nodes, edge: Edge, name: str) -> Expression | None:
    """What a column that comes over an edge is of the node before."""
    if edge.projection is not None:
        return dict(edge.projection.columns).get(name)
    source = nodes.get(edge.source)
    if source is None or name not in source.schema.names:
        return None
    return Column(name, source.schema.field(name).type)


def _through(nodes: Nodes, edge: Edge, value: Expression | str) -> Reach | None:
    """The reach of a column, or of an expression of the node before, over an edge."""
    if edge.source not in nodes:
        return None
    known = _projected(nodes, edge, value) if isinstance(value, str) else value
    where = edge.projection.where if edge.projection is not None else None
    return None if known is None else reach(nodes, edge.source, known, where)


def _window_starts(nodes: Nodes, edge: Edge, operator: Expand) -> Reach | None:
    """The windows a time falls into: none of them ends before it."""
    match _projected(nodes, edge, operator.source):
        case Call("window_starts", (moment, Literal(int(size)), *_)):
            return _later(_through(nodes, edge, moment), size - 1)
    return None


# Joins ---------------------------------------------------------------------------------------


def joined(
    nodes: Nodes, join: Join, edges: Sequence[Edge], name: str, where: Expression | None
) -> Reach | None:
    """The reach of a column of a join: rows of the other side count as well, as far as the
    condition lets them be a partner. What stands behind the join is its condition too if it
    is an inner one; for the others only its keys are."""
    left = {own: own for own in join.left}
    right = dict(zip(join.schema.names[len(join.left) :], join.right, strict=False))
    on_left = name in left
    own, other = (left, right) if on_left else (right, left)
    own_edge, other_edge = edges if on_left else (edges[1], edges[0])
    mine = _through(nodes, own_edge, own[name])
    if mine is None:
        return None
    best: Reach | None = None
    within = _partners(name, where if join.mode == "inner" else None)
    ends = [(other[shown], most) for shown, most in within if shown in other]
    for one, theirs in zip(join.left_keys, join.right_keys, strict=True):
        mine_key, their_key = (one, theirs) if on_left else (theirs, one)
        if mine_key == own[name]:
            ends.append((their_key, 0))
    for partner, most in ends:
        reached = _through(nodes, other_edge, partner)
        if reached is not None and (best is None or reached.adds + most < best.adds):
            best = reached.later(most)
    return None if best is None else mine | best


def _partners(name: str, where: Expression | None) -> Iterator[tuple[str, int]]:
    """Columns c and the microseconds m for which c ≤ `name` + m in every row."""
    for part in conjuncts(where):
        match part:
            case Call("<" | "<=" | "=", (small, large)):
                pairs = [(small, large)]
            case Call(">" | ">=", (large, small)):
                pairs = [(small, large)]
            case _:
                continue
        assert isinstance(part, Call)
        if part.function == "=":
            pairs.append((pairs[0][1], pairs[0][0]))
        strict = 1 if part.function in ("<", ">") else 0
        for low, high in pairs:
            lower, higher = _plain(low), _plain(high)
            if lower is not None and higher is not None and higher[0] == name:
                yield lower[0], higher[1] - lower[1] - strict


def between(
    nodes: Nodes, join: Join, edges: Sequence[Edge], where: Expression | None
) -> Between | None:
    """How far apart the times of partners are, where the condition compares times of streams."""
    for shown, own in zip(join.schema.names[len(join.left) :], join.right, strict=False):
        theirs = _through(nodes, edges[1], own)
        if theirs is None:
            continue
        for name in join.left:
            most = [m for column, m in _partners(name, where) if column == shown]
            least = [m for column, m in _partners(shown, where) if column == name]
            mine = _through(nodes, edges[0], name) if most or least else None
            if mine is not None:
                return Between(
                    name, shown, _said(mine), _said(theirs),
                    -min(least) if least else None, min(most) if most else None,
                )  # fmt: skip
    return None


def _said(found: Reach) -> str:
    return " and ".join(f"{topic}.{column}" for topic, column in sorted(found.times))


def _plain(value: Expression) -> tuple[str, int] | None:
    """A timestamp column and the microseconds added to it."""
    if value.type not in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        return None
    match value:
        case Column(name):
            return name, 0
        case Call("add_interval", (inner, *_)) if (shift := _shift(value)) is not None:
            found = _plain(inner)
            return None if found is None else (found[0], found[1] + shift)
        case Call("cast", (inner,)):
            return _plain(inner)
    return None


def first(names: Iterable[str], found: Callable[[str], Reach | None]) -> Expiry | None:
    """The expiry by the first of these columns for which there is a proof."""
    for name in names:
        proof = found(name)
        if proof is not None:
            return proof.expiry(name)
    return None
