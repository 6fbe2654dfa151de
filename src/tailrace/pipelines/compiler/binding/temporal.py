"""Joins with the version of a table that was valid at a time.

What the operator does is one thing: the version of a key at a time. The rest is made of it:

- A condition on the rows alone is a filter before an inner join; of an outer one it takes the
  time away: a row without a time has no version.
- A condition on the version is a filter behind an inner join; an outer one is built from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.compiler.expressions.clock_filters import reads_clock
from tailrace.pipelines.compiler.lowering.joins import Condition, take_apart
from tailrace.pipelines.compiler.plans.outer_joins import around_inner
from tailrace.pipelines.compiler.plans.plan import AsOf, Filter, Join, Plan, Scan
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
)
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.query import QueryBinder
    from tailrace.pipelines.compiler.binding.scope import Context, Scope

_TIMES = (types.TIMESTAMP, types.TIMESTAMP_NTZ, types.DATE, types.STRING, types.NULL)


def bind_as_of(
    binder: QueryBinder,
    node: exp.Join,
    left: Plan,
    right: Plan,
    condition: Expression | None,
    version: exp.Expr,
    scope: Scope,
    mode: str,
) -> Plan:
    """JOIN t FOR SYSTEM_TIME AS OF x: the version of t that was valid at x."""
    context = binder.context
    if not isinstance(right, Scan) or mode not in ("inner", "left") or condition is None:
        raise context.not_incremental(
            "FOR SYSTEM_TIME AS OF is for an inner or left join with a table, with ON", node
        )
    if right.table.kind != "history":
        raise context.not_incremental(
            f"table {right.table.name!r} has no history to look into", node,
            f'declare history={{"{right.table.name.split(".")[-1]}": "90 days"}} on its source',
        )  # fmt: skip
    time = _time(context, scope, version)
    parts = take_apart(Join("inner", left, right, condition))
    keys, rest = _keys(context, right, parts, node)
    if not parts.left_only and not rest:
        return AsOf(left, right, keys, time, mode == "left")
    if mode == "inner":
        here = conjunction(parts.left_only)
        joined: Plan = AsOf(left if here is None else Filter(left, here), right, keys, time, False)
        return _filtered(joined, rest)
    for part in parts.left_only:
        time = Call("case", (part, time, Literal(None, time.type)), time.type)
    if not rest:
        return AsOf(left, right, keys, time, True)
    inner = _filtered(AsOf(left, right, keys, time, False), rest)
    return around_inner("left", left, right, inner)


def _filtered(plan: Plan, parts: list[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _time(context: Context, scope: Scope, version: exp.Expr) -> Expression:
    from tailrace.pipelines.compiler.binding import subqueries
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

    if str(version.this).upper() != "TIMESTAMP" or version.args.get("kind") != "AS OF":
        raise context.not_incremental(
            f"{version.sql('spark')} is no moment", version, "FOR SYSTEM_TIME AS OF o.placed_at"
        )
    expressions = ExpressionBinder(context, scope, subqueries.refuse(context))
    bound = expressions.bind(version.expression)
    if bound.type not in _TIMES:
        raise context.type_error(f"{types.ddl(bound.type)} is no time", version.expression)
    if reads_clock(bound):
        raise context.not_incremental(
            "AS OF the clock is no time of a row", version.expression,
            "join the table itself: that is how it is now",
        )  # fmt: skip
    return expressions.coerce(bound, types.TIMESTAMP, version)


def _keys(
    context: Context, right: Scan, parts: Condition, node: exp.Join
) -> tuple[Expression, list[Expression]]:
    """The equalities with the table's key, and the conditions on the version beside them."""
    names = dict(zip((f.id for f in right.fields), right.columns, strict=True))
    found: list[Expression] = []
    used: set[str] = set()
    rest = list(parts.rest)
    for ours, theirs, safe in zip(parts.left_keys, parts.right_keys, parts.null_safe, strict=True):
        column = _column(theirs)
        sign = "<=>" if safe else "="
        if column is None or names[column.name] not in right.table.key:
            rest.append(Call(sign, (ours, theirs), types.BOOLEAN))
            continue
        found.append(Call(sign, (ours, column), types.BOOLEAN))
        used.add(names[column.name])
    for part in parts.right_only:
        pinned = _constant_key(part, names, right.table.key)
        if pinned is None:
            rest.append(part)
            continue
        column, sign, value = pinned
        found.append(Call(sign, (value, column), types.BOOLEAN))
        used.add(names[column.name])
    condition = conjunction(found)
    if condition is None or used != set(right.table.key):
        key = ", ".join(right.table.key)
        raise context.not_incremental(
            f"an as-of join needs the whole key of {right.table.name!r} in its condition", node,
            f"an equality for each of ({key})",
        )  # fmt: skip
    return condition, rest


def _column(bound: Expression) -> Column | None:
    """A column, also behind a cast to a wider integer: keys are the same numbers."""
    match bound:
        case Column():
            return bound
        case Call("cast", (Column() as inner,)):
            return inner if types.is_integer(inner.type) and types.is_integer(bound.type) else None
    return None


def _constant_key(
    part: Expression, names: dict[str, str], key: tuple[str, ...]
) -> tuple[Column, str, Expression] | None:
    """`r.kind = 'retail'`, where it is a part of the key."""
    match part:
        case Call("=" | "<=>" as sign, (one, other)):
            for side, value in ((one, other), (other, one)):
                column = _column(side)
                if column is not None and names[column.name] in key and not columns_of(value):
                    return column, sign, value
    return None
