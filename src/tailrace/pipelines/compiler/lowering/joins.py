"""Joins of any condition, built from joins on equality.

- Conditions on one side become filters of that side, or, where its rows must survive
  without a match, part of the key: a key that is NULL matches nothing.
- What is left beyond equality is a filter behind an inner join. Outer, semi and anti joins
  with such a rest are built from it: L ⟕ R = (L ⋈ R) ∪ (L ▷ (L ⋈ R)) × NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from tailrace.pipelines.compiler.expressions.clock_filters import reads_clock
from tailrace.pipelines.compiler.lowering import expiry_inference
from tailrace.pipelines.compiler.plans.infer import MOST_ROWS, few
from tailrace.pipelines.compiler.plans.join_conditions import is_true
from tailrace.pipelines.compiler.plans.outer_joins import around_inner
from tailrace.pipelines.compiler.plans.plan import AsOf, Filter, Join, Plan, Project, Scan, ids
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from tailrace.pipelines.engine.graph import Edge, TableInput
from tailrace.pipelines.engine.operators.as_of import AsOf as AsOfOperator
from tailrace.pipelines.engine.operators.as_of import History, history_schema
from tailrace.pipelines.engine.operators.join import Join as JoinOperator
from tailrace.pipelines.engine.operators.keyed import Facts
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.lowering.lower import Flow, Lowering

TRUE = Literal(True, types.BOOLEAN)


@dataclass(slots=True)
class Condition:
    """A join condition taken apart."""

    left_keys: list[Expression]
    right_keys: list[Expression]
    null_safe: list[bool]
    left_only: list[Expression]
    right_only: list[Expression]
    rest: list[Expression]


def take_apart(plan: Join) -> Condition:
    left, right = ids(plan.left), ids(plan.right)
    parts = Condition([], [], [], [], [], [])
    for part in conjuncts(plan.condition):
        used = columns_of(part)
        if is_true(part):
            continue
        if used <= left:
            parts.left_only.append(part)
        elif used <= right:
            parts.right_only.append(part)
        elif not _equality(part, left, right, parts):
            parts.rest.append(part)
    return parts


def _equality(part: Expression, left: set[str], right: set[str], parts: Condition) -> bool:
    if not (isinstance(part, Call) and part.function in ("=", "<=>")):
        return False
    a, b = part.arguments
    if columns_of(a) <= right and columns_of(b) <= left:
        a, b = b, a
    if not (columns_of(a) <= left and columns_of(b) <= right):
        return False
    parts.left_keys.append(a)
    parts.right_keys.append(b)
    parts.null_safe.append(part.function == "<=>")
    return True


def lower_join(lowering: Lowering, plan: Join, needed: set[str]) -> Flow:
    """The operator of a join, with its conditions in their places."""
    if not lowering.clock and reads_clock(plan.condition or TRUE):
        return lowering.flow(_clock_outside(lowering, plan, needed), needed)
    parts = take_apart(plan)
    mode = plan.mode
    if parts.rest and mode != "inner":
        return lowering.flow(_from_inner(lowering, plan, needed), needed)
    left, right = plan.left, plan.right
    if mode in ("inner", "right", "semi"):
        left = filtered(left, parts.left_only)
    elif parts.left_only:
        _as_key(parts, parts.left_only, on_left=True)
    if mode in ("inner", "left", "semi", "anti"):
        right = filtered(right, parts.right_only)
    elif parts.right_only:
        _as_key(parts, parts.right_only, on_left=False)
    said = plan.asked or parts.left_only or parts.right_only
    unbounded = not (said or parts.left_keys or parts.rest) and mode not in ("semi", "anti")
    if unbounded and not (few(left) or few(right)):
        between = f"between ({_shown(left)}) and ({_shown(right)})"
        raise NotIncrementalError(
            "a join without a condition pairs every row with every row",
            detail=f"{between}\n{_where(lowering, right, left)}".strip(),
            hint="tie them in ON or WHERE (a.x = b.y), say in ON which rows of one side are"
            f" meant, or let a side have {MOST_ROWS:,} rows at most (a total, LIMIT, keys by name)",
        )
    return _equi_join(lowering, mode, left, right, parts, needed)


def _clock_outside(lowering: Lowering, plan: Join, needed: set[str]) -> Plan:
    """A join with conditions on the clock: they become filters of a side, or behind it."""
    clock = [part for part in conjuncts(plan.condition) if reads_clock(part)]
    rest = conjunction([part for part in conjuncts(plan.condition) if part not in clock])
    if plan.mode == "inner":
        return filtered(replace(plan, condition=rest), clock)
    # A row of a side that need not survive may as well be absent.
    used = set().union(*map(columns_of, clock))
    if plan.mode in ("left", "semi", "anti") and used <= ids(plan.right):
        return replace(plan, right=filtered(plan.right, clock), condition=rest or TRUE)
    if plan.mode == "right" and used <= ids(plan.left):
        return replace(plan, left=filtered(plan.left, clock), condition=rest or TRUE)
    return _from_inner(lowering, plan, needed)


def _where(lowering: Lowering, *plans: Plan) -> str:
    """The place in the SQL of the first of these that has one."""
    found = (lowering.places.get(field.id, "") for plan in plans for field in plan.fields)
    return next(filter(None, found), "")


def _shown(plan: Plan) -> str:
    names = [field.name for field in plan.fields]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def filtered(plan: Plan, parts: list[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _as_key(parts: Condition, conditions: list[Expression], *, on_left: bool) -> None:
    """`CASE WHEN condition THEN TRUE END = TRUE`: rows that fail it match nothing."""
    condition = conjunction(conditions) or TRUE
    key = Call("case", (condition, TRUE, Literal(None, types.BOOLEAN)), types.BOOLEAN)
    parts.left_keys.append(key if on_left else TRUE)
    parts.right_keys.append(TRUE if on_left else key)
    parts.null_safe.append(False)


def _equi_join(
    lowering: Lowering,
    mode: str,
    left: Plan,
    right: Plan,
    parts: Condition,
    needed: set[str],
) -> Flow:
    from tailrace.pipelines.compiler.lowering.lower import Flow

    carried = needed | set().union(*(columns_of(part) for part in parts.rest))
    left_fields = [f for f in left.fields if f.id in carried]
    pairs = mode not in ("semi", "anti")
    right_fields = [f for f in right.fields if f.id in carried] if pairs else []
    ports = []
    for side, fields, keys in (
        (left, left_fields, parts.left_keys),
        (right, right_fields, parts.right_keys),
    ):
        wanted = [*keys, *(f.column for f in fields)]
        used = set().union(*(columns_of(e) for e in wanted))
        ports.append(lowering.port(lowering.flow(side, used), wanted))
    left_names = tuple(dict.fromkeys(ports[0].name(f.column) for f in left_fields))
    right_names = tuple(dict.fromkeys(ports[1].name(f.column) for f in right_fields))
    out_right = distinct_names(left_names, right_names)
    schema = pa.schema(
        [
            *ports[0].schema(left_names),
            *(
                pa.field(out_right[field.name], field.type)
                for field in ports[1].schema(right_names)
            ),
        ]
    )
    left_keys = tuple(ports[0].name(key) for key in parts.left_keys)
    right_keys = tuple(ports[1].name(key) for key in parts.right_keys)
    operator = JoinOperator(
        mode, left_keys, right_keys, tuple(parts.null_safe), left_names, right_names, schema
    )
    spread = left_keys if mode in ("inner", "left", "semi", "anti") else None
    if spread is not None and not set(spread) <= set(left_names):
        spread = None
    columns: dict[str, Expression] = {
        f.id: Column(ports[0].name(f.column), f.type) for f in left_fields
    }
    columns |= {f.id: Column(out_right[ports[1].name(f.column)], f.type) for f in right_fields}
    rest = conjunction([substitute(part, columns) for part in parts.rest])
    edges = [lowering.edge(ports[0], left_keys), lowering.edge(ports[1], right_keys)]
    operator = _lasting(lowering, operator, edges, rest)
    if mode == "inner" and rest is not None:
        apart = expiry_inference.between(lowering.nodes, operator, edges, rest)
        operator = replace(operator, between=apart)
    identity = lowering.add(operator, edges, schema, spread)
    return Flow(identity, columns, rest)


def _lasting(
    lowering: Lowering, join: JoinOperator, edges: list[Edge], rest: Expression | None
) -> JoinOperator:
    """The join, with when rows of each side are over where the condition tells."""

    def found(name: str) -> expiry_inference.Reach | None:
        return expiry_inference.joined(lowering.nodes, join, edges, name, rest)

    left = expiry_inference.first(join.left, found)
    if left is not None and join.mode in ("semi", "anti"):
        # A row of the right side has the same time, or it would be no partner.
        place = join.left_keys.index(left.column)
        own = join.right_keys[place]
        return replace(join, right=(own,), expiry=(left, replace(left, column=own)))
    right = expiry_inference.first(join.schema.names[len(join.left) :], found)
    if left is None or right is None:
        return join
    place = join.schema.names.index(right.column) - len(join.left)
    return replace(join, expiry=(left, replace(right, column=join.right[place])))


def distinct_names(left: tuple[str, ...], right: tuple[str, ...]) -> dict[str, str]:
    used = set(left)
    out: dict[str, str] = {}
    for name in right:
        chosen, number = name, 2
        while chosen in used:
            chosen, number = f"{name}_{number}", number + 1
        used.add(chosen)
        out[name] = chosen
    return out


def _from_inner(lowering: Lowering, plan: Join, needed: set[str]) -> Plan:
    """A join of another kind with a condition beyond equality, from an inner one."""
    used = needed | columns_of(plan.condition or TRUE)
    left, right = _only(plan.left, used), _only(plan.right, used)
    inner = Join("inner", left, right, plan.condition)
    if plan.mode in ("semi", "anti"):
        return around_inner(plan.mode, left, right, inner)
    # It is read two or three times, for other columns each: one operator has them all.
    wanted = needed & ids(inner)
    wanted |= ids(left) if plan.mode in ("left", "full") else set()
    wanted |= ids(right) if plan.mode in ("right", "full") else set()
    name = f"inner/{len(lowering.made)}"  # no topic is called so
    lowering.made[name] = lowering.flow(inner, wanted)
    table = TableInput(name, name, pa.schema([]), kind="stream")
    columns = tuple(field.name for field in inner.fields)
    return around_inner(plan.mode, left, right, Scan(table, inner.fields, columns))


def _only(plan: Plan, used: set[str]) -> Plan:
    fields = tuple(f for f in plan.fields if f.id in used)
    return Project(plan, fields, tuple(f.column for f in fields))


def _are_facts(lowering: Lowering, source: str) -> bool:
    """Whether a node gives the rows of a stream, which are never taken back."""
    node = lowering.nodes.get(source)
    if node is None or not isinstance(node.operator, Facts):
        return False
    table = lowering.tables.get(node.operator.table)
    return table is not None and table.kind == "stream" and table.topic not in lowering.made


def lower_as_of(lowering: Lowering, plan: AsOf, needed: set[str]) -> Flow:
    """The join with the version valid at a time: equalities on the table's key (see
    `temporal`)."""
    from tailrace.pipelines.compiler.lowering.lower import Flow

    table = plan.right.table
    names = dict(zip((f.id for f in plan.right.fields), plan.right.columns, strict=True))
    equal = [part for part in conjuncts(plan.condition) if isinstance(part, Call)]
    ours = [part.arguments[0] for part in equal]
    keys = [names[cast(Column, part.arguments[1]).name] for part in equal]
    safe = tuple(part.function == "<=>" for part in equal)
    lowering.tables[table.topic] = table
    versions = history_schema(table.schema)
    history = lowering.add(
        History(versions, table.topic), [Edge(f"table:{table.topic}")], versions, None
    )
    left_fields = [f for f in plan.left.fields if f.id in needed]
    right_fields = [f for f in plan.right.fields if f.id in needed]
    wanted = [*ours, plan.time, *(f.column for f in left_fields)]
    used = set().union(*(columns_of(e) for e in wanted))
    port = lowering.port(lowering.flow(plan.left, used), wanted)
    left_names = tuple(dict.fromkeys(port.name(f.column) for f in left_fields))
    right_names = tuple(names[f.id] for f in right_fields)
    out_right = distinct_names(left_names, right_names)
    schema = pa.schema(
        [
            *port.schema(left_names),
            *(pa.field(out_right[names[f.id]], f.type) for f in right_fields),
        ]
    )
    left_keys = tuple(port.name(key) for key in ours)
    operator = AsOfOperator(
        left_keys, tuple(keys), port.name(plan.time), left_names, right_names, plan.outer, schema,
        table.kept_ms, _are_facts(lowering, port.flow.source), table.topic, safe,
    )  # fmt: skip
    edges = [lowering.edge(port, left_keys), Edge(history, None, tuple(keys))]
    identity = lowering.add(operator, edges, schema, None)
    columns: dict[str, Expression] = {
        f.id: Column(port.name(f.column), f.type) for f in left_fields
    }
    columns |= {f.id: Column(out_right[names[f.id]], f.type) for f in right_fields}
    return Flow(identity, columns)
