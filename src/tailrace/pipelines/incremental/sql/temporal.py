"""Time in queries: filters against the clock, joins with the version valid at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.sql.plan import AsOf, Plan, Scan, Temporal

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.bind import QueryBinder
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder
    from tailrace.pipelines.incremental.sql.scope import Scope

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def is_clock(node: exp.Expr) -> bool:
    return isinstance(node, exp.CurrentTimestamp) or (
        isinstance(node, exp.Anonymous) and node.name.lower() == "now"
    )


def _reads_clock(node: exp.Expr) -> bool:
    return any(is_clock(p) or isinstance(p, exp.CurrentDate) for p in node.walk())


def bind_clock_filter(binder: ExpressionBinder, node: exp.Expr, plan: Plan) -> Plan | None:
    """`x > now() - interval …` and its like: rows come and leave by themselves.

    None when the clock does not stand in the node. The clock must stand alone on one side,
    plus or minus constant intervals.
    """
    if not _reads_clock(node):
        return None
    from tailrace.pipelines.incremental.sql.expressions import INFIX

    operator = INFIX.get(type(node))
    if operator not in _FLIPPED:
        raise binder.context.not_incremental(
            "the clock may only stand in a comparison such as `t > now() - interval '1 hour'`", node
        )
    left, right = node.this, node.expression
    if any(is_clock(part) for part in left.walk()):
        left, right, operator = right, left, _FLIPPED[operator]
    if any(is_clock(part) for part in left.walk()):
        raise binder.context.not_incremental("the clock stands on both sides", node)
    value = binder.coerce(binder.bind(left), types.TIMESTAMP, left)
    micros = _offset(binder, right)
    # value OP now + micros  ⇔  now OP' value - micros
    bound: Expression = value
    if micros:
        zero = Literal(0, types.INT)
        bound = Call(
            "add_interval", (value, zero, zero, Literal(-micros, types.BIGINT)), types.TIMESTAMP
        )
    if operator in (">", ">="):  # now < bound: the row leaves when now reaches it
        return Temporal(plan, None, bound, high_inclusive=operator == ">=")
    return Temporal(plan, bound, None, low_inclusive=operator == "<=")


def _offset(binder: ExpressionBinder, node: exp.Expr) -> int:
    """The microseconds added to now() in `now() ± interval …`."""
    from tailrace.pipelines.incremental.sql.expressions import interval_delta, interval_parts

    if isinstance(node, exp.Paren):
        return _offset(binder, node.this)
    if is_clock(node):
        return 0
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        delta = interval_delta(interval_parts(binder.context, node.expression))
        if delta is not None:
            micros = delta.days * 86_400_000_000 + delta.seconds * 1_000_000 + delta.microseconds
            return _offset(binder, node.this) + (micros if isinstance(node, exp.Add) else -micros)
    raise binder.context.not_incremental(
        "the clock may only be moved by intervals of days or less", node
    )


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
    from tailrace.pipelines.incremental.sql import subqueries
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

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
    expressions = ExpressionBinder(context, scope, subqueries.refuse(context))
    time = expressions.coerce(expressions.bind(version.expression), types.TIMESTAMP, version)
    return AsOf(left, right, condition, time, mode == "left")
