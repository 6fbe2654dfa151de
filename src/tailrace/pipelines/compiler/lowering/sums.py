"""GROUP BY over inner joins: what is added up goes below them.

A GROUP BY that only counts and adds up values of one side needs no single rows of that side.
Its joins then keep, and hand on, how many rows there are and their sums (`operators.sumjoin`).
It is done where that side's rows can be equal without those values (its key is not among the
columns that are needed otherwise), for values that are whole numbers in some unit and whose
computation cannot fail, so that no row without a partner is ever computed in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tailrace.pipelines.compiler.expressions.clock_filters import reads_clock
from tailrace.pipelines.compiler.lowering.joins import distinct_names, filtered, take_apart
from tailrace.pipelines.compiler.plans.infer import keys_of
from tailrace.pipelines.compiler.plans.plan import (
    AggregateCall,
    Group,
    Join,
    Plan,
    Project,
    Scan,
    ids,
    inputs_of,
)
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    substitute,
    walk,
)
from tailrace.pipelines.engine.operators.sumjoin import COUNT, TOTAL, SumJoin
from tailrace.pipelines.values import types
from tailrace.pipelines.values.types import is_decimal, is_integer

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.lowering.lower import Flow, Lowering

MOST_DIGITS = 24  # of 38: room for 10^14 rows
_ADDED = frozenset({"count", "sum", "try_sum", "avg", "try_avg"})
# They compute a value or NULL, whatever they are given.
_CERTAIN = frozenset(
    ("=", "<=>", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null", "is not null",
     "case", "coalesce", "in")
)  # fmt: skip
_TRUE = Literal(True, types.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Sums:
    """The rows of joins that add up, as a GROUP BY sees them."""

    flow: Flow
    keys: tuple[Expression, ...]  # of the GROUP BY
    amounts: tuple[tuple[Column, ...], ...]  # of each of its calls
    rows: Column


def lower_sums(lowering: Lowering, plan: Group, calls: Sequence[AggregateCall]) -> Sums | None:
    """The input of a GROUP BY, added up by its joins; None where that cannot be, or is of no use."""
    if lowering.clock or not all(map(_adds_up, calls)):
        return None
    join, through = _below_projections(plan.input)
    if not isinstance(join, Join):
        return None
    keys = tuple(substitute(key, through) for key in plan.keys)
    measured = [_measure(call) for call in calls]
    measures = {m: substitute(m, through) for m in measured if m is not None}
    distinct = list(dict.fromkeys(measures.values()))
    if not distinct or not all(map(_is_certain, distinct)):
        return None
    summed = {
        measures[m]
        for m, call in zip(measured, calls, strict=True)
        if m is not None and call.function != "count"
    }
    needed = set().union(*map(columns_of, keys))
    wanted = [(measure, measure in summed) for measure in distinct]
    flow = _flow(lowering, join, needed, wanted)
    if flow is None:
        return None
    rows, *columns = _amounts([is_summed for _, is_summed in wanted])
    by_measure: dict[Expression, tuple[Column, ...]] = {}
    for measure, is_summed in wanted:
        by_measure[measure] = tuple(columns[: 1 + is_summed])
        columns = columns[1 + is_summed :]
    amounts = []
    for m, call in zip(measured, calls, strict=True):
        found = (rows,) if m is None else by_measure[measures[m]]
        amounts.append(found[:1] if call.function == "count" else found)
    return Sums(flow, keys, tuple(amounts), rows)


def _adds_up(call: AggregateCall) -> bool:
    """Whether an aggregate is made of counts and sums of whole numbers."""
    if call.function not in _ADDED or call.distinct or call.order or len(call.arguments) > 1:
        return False
    if call.function == "count" or not call.arguments:
        return call.function == "count"
    kind = call.arguments[0].type
    if is_decimal(kind):
        return bool(kind.precision <= MOST_DIGITS)
    # The mean of a BIGINT is that of doubles.
    return is_integer(kind) and (kind != types.BIGINT or call.function in ("sum", "try_sum"))


def _measure(call: AggregateCall) -> Expression | None:
    """What an aggregate adds up; None: it counts all rows."""
    value = call.arguments[0] if call.arguments else Literal(True, types.BOOLEAN)
    if call.condition is None:
        return value if call.arguments else None
    return Call("case", (call.condition, value, Literal(None, value.type)), value.type)


def _is_certain(measure: Expression) -> bool:
    """Whether computing it cannot fail."""
    return bool(columns_of(measure)) and all(
        not isinstance(part, Call)
        or part.function in _CERTAIN
        or (part.function == "cast" and _widens(part))
        or _is_product(part)
        for part in walk(measure)
    )


def _widens(cast: Call) -> bool:
    """Whether every value of a whole or decimal type has its place in the other."""
    digits = []
    for kind in (cast.arguments[0].type, cast.type):
        if is_decimal(kind):
            digits.append((kind.precision - kind.scale, kind.scale))
        elif is_integer(kind):
            digits.append((len(str(1 << (kind.bit_width - 1))), 0))
        else:
            return False
    (whole, scale), (room, places) = digits
    if is_decimal(cast.arguments[0].type) and is_integer(cast.type):
        room -= 1  # not every number of as many digits as the largest has its place
    return bool(room >= whole and places >= scale)


def _is_null_of_nulls(measure: Expression) -> bool:
    """Whether it is NULL where its columns are, as in a row without a match."""
    return all(
        not isinstance(part, Call) or part.function in ("+", "-", "*", "cast")
        for part in walk(measure)
    )


def _is_product(call: Call) -> bool:
    """Whether it is arithmetic of decimals whose result has room for every digit."""
    if call.function not in ("+", "-", "*") or not all(
        is_decimal(one.type) for one in (call, *call.arguments)
    ):
        return False
    a, b = (one.type for one in call.arguments)
    if call.function == "*":
        return bool(
            call.type.scale == a.scale + b.scale
            and call.type.precision - call.type.scale
            > a.precision - a.scale + b.precision - b.scale - 1
        )
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return bool(
        call.type.scale == max(a.scale, b.scale) and call.type.precision - call.type.scale > whole
    )


def _below_projections(plan: Plan) -> tuple[Plan, dict[str, Expression]]:
    """The plan under projections, and what their columns are of it."""
    through: dict[str, Expression] = {}
    first = True
    while isinstance(plan, Project):
        given = {f.id: e for f, e in zip(plan.fields, plan.expressions, strict=True)}
        through = given if first else {i: substitute(e, given) for i, e in through.items()}
        plan, first = plan.input, False
    return plan, through


def _amounts(summed: Sequence[bool]) -> list[Column]:
    """The ids of what is added up: how many rows; of each measure a count and perhaps a sum."""
    columns = [Column("sum: rows", COUNT)]  # no id of a plan has a colon
    for number, is_summed in enumerate(summed):
        columns.append(Column(f"sum: count {number}", COUNT))
        if is_summed:
            columns.append(Column(f"sum: total {number}", TOTAL))
    return columns


def _flow(
    lowering: Lowering, plan: Join, needed: set[str], wanted: list[tuple[Expression, bool]]
) -> Flow | None:
    """The rows of a join that adds up measures, with the needed columns and the amounts."""
    from tailrace.pipelines.compiler.lowering.lower import Flow, new_names

    if plan.mode not in ("inner", "left", "right") or _reads_stream(plan):
        return None
    parts = take_apart(plan)
    if parts.rest or not parts.left_keys or reads_clock(plan.condition or _TRUE):
        return None
    measured = set().union(*(columns_of(measure) for measure, _ in wanted))
    left = (plan.left, parts.left_keys, parts.left_only)
    right = (plan.right, parts.right_keys, parts.right_only)
    first, second = (left, right) if measured <= ids(plan.left) else (right, left)
    side, keys, own = first
    other, other_keys, others_own = second
    if not measured <= ids(side):
        return None
    outer = plan.mode != "inner"
    if outer:
        survives = plan.left if plan.mode == "left" else plan.right
        if side is survives or others_own or needed & ids(side):
            return None
        if not all(_is_null_of_nulls(measure) for measure, _ in wanted):
            return None
    side, other = filtered(side, own), filtered(other, others_own)
    looked_up = set().union(*map(columns_of, keys))
    if any(set(key) <= (needed | looked_up) for key in keys_of(side)):
        return None  # no two of its rows are equal
    kept = [f for f in side.fields if f.id in needed]
    shown = [f for f in other.fields if f.id in needed]
    flow, added = _side(lowering, side, needed | looked_up, wanted)
    summed = tuple(is_summed for _, is_summed in wanted)
    values = _amounts(summed) if added else [measure for measure, _ in wanted]
    port = lowering.port(flow, [*keys, *(f.column for f in kept), *values])
    used = set().union(*(columns_of(e) for e in (*other_keys, *(f.column for f in shown))))
    other_port = lowering.port(
        lowering.flow(other, used), [*other_keys, *(f.column for f in shown)]
    )
    kept_names = tuple(dict.fromkeys(port.name(f.column) for f in kept))
    other_names = tuple(dict.fromkeys(other_port.name(f.column) for f in shown))
    out = distinct_names(kept_names, other_names)
    amounts = _amounts(summed)
    names = new_names("sum", len(amounts), (*kept_names, *out.values()))
    schema = pa.schema(
        [
            *port.schema(kept_names),
            *(pa.field(out[f.name], f.type) for f in other_port.schema(other_names)),
            *(pa.field(name, one.type) for name, one in zip(names, amounts, strict=True)),
        ]
    )
    key_names = tuple(port.name(key) for key in keys)
    other_key_names = tuple(other_port.name(key) for key in other_keys)
    operator = SumJoin(
        outer, key_names, other_key_names, tuple(parts.null_safe), kept_names, other_names,
        tuple(port.name(value) for value in values), summed, added, schema,
    )  # fmt: skip
    edges = [lowering.edge(port, key_names), lowering.edge(other_port, other_key_names)]
    spread: tuple[str, ...] | None = None
    if set(key_names) <= set(kept_names):
        spread = key_names
    elif set(other_key_names) <= set(other_names):
        spread = tuple(out[name] for name in other_key_names)
    identity = lowering.add(operator, edges, schema, spread)
    columns: dict[str, Expression] = {f.id: Column(port.name(f.column), f.type) for f in kept}
    columns |= {f.id: Column(out[other_port.name(f.column)], f.type) for f in shown}
    columns |= {one.name: Column(name, one.type) for name, one in zip(names, amounts, strict=True)}
    return Flow(identity, columns)


def _side(
    lowering: Lowering, side: Plan, needed: set[str], wanted: list[tuple[Expression, bool]]
) -> tuple[Flow, bool]:
    """The rows of the side with the measures; whether it adds them up itself."""
    join, through = _below_projections(side)
    if isinstance(join, Join):
        moved = [(substitute(measure, through), is_summed) for measure, is_summed in wanted]
        below = {name: through.get(name) for name in needed}
        used = set().union(*(columns_of(e) if e else {i} for i, e in below.items()))
        if all(_is_certain(measure) for measure, _ in moved):
            found = _flow(lowering, join, used, moved)
            if found is not None:
                columns = {
                    name: found.bind(e)
                    if (e := through.get(name)) is not None
                    else found.columns[name]
                    for name in needed & ids(side)
                }
                amounts = {
                    one.name: found.columns[one.name] for one in _amounts([s for _, s in wanted])
                }
                return replace(found, columns=columns | amounts), True
    used = needed.union(*(columns_of(measure) for measure, _ in wanted))
    return lowering.flow(side, used), False


def _reads_stream(plan: Plan) -> bool:
    """Whether it reads rows that may leave by their time: such joins forget row by row."""
    if isinstance(plan, Scan):
        return plan.table.kind in ("stream", "history")
    return any(map(_reads_stream, inputs_of(plan)))
