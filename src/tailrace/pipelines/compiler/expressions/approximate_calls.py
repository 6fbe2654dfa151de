"""The types and parameters of approximate aggregates (see `sketches.approximate`)."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.expressions.sketch_calls import sketch_aggregate
from tailrace.pipelines.compiler.plans.plan import AggregateCall
from tailrace.pipelines.engine.expression import Call, Expression, Literal
from tailrace.pipelines.values import sketches, types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder


def sketched_call(
    binder: ExpressionBinder,
    name: str,
    bound: list[Expression],
    distinct: bool,
    condition: Expression | None,
    node: exp.Expr,
) -> AggregateCall:
    """An approximate aggregate: its value, its result type, and its constants."""
    if name.startswith(("theta", "tuple", "kll")):
        return sketch_aggregate(binder, name, bound, distinct, condition, node)
    value = bound[0]
    given = [_constant(binder, argument, node) for argument in bound[1:]]
    result: pa.DataType = types.BINARY
    parameters: tuple[object, ...] = ()
    match name:
        case "approx_count_distinct":
            result = types.BIGINT
            wanted = None if not given else checked_share(binder, given[0], node)
            parameters = (sketches.PRECISION if wanted is None else _precision(wanted),)
        case "approx_percentile":
            if value.type == types.STRING:
                value = binder.coerce(value, types.DOUBLE, node)
            if not types.is_temporal(value.type):
                value = binder.number(value, node)
            if not given:
                raise binder.context.type_error("approx_percentile needs a share, as 0.95", node)
            shares, result = _shares(binder, given[0], value.type, node)
            # Spark's accuracy a means a rank within 1/a; KLL needs about 3 a values for it.
            accuracy = _whole(binder, given[1], node) if len(given) > 1 else 0
            parameters = (shares, min(max(3 * accuracy, sketches.SIZE), 65_000))
        case "hll_sketch_agg":
            if value.type != types.STRING and not types.is_integer(value.type):
                raise binder.context.type_error(
                    "hll_sketch_agg takes whole numbers and texts: cast the value to STRING", node
                )
            precision = _whole(binder, given[0], node) if given else sketches.PRECISION
            if not 4 <= precision <= 21:
                raise binder.context.type_error("the precision is from 4 to 21", node)
            parameters = (precision,)
        case "bloom_filter_agg":
            expected = _whole(binder, given[0], node) if given else 10_000
            wrong = checked_share(binder, given[1], node) if len(given) > 1 else 0.01
            parameters = (expected, wrong)
        case _:
            if value.type != types.BINARY:
                raise binder.context.type_error(f"{name} merges sketches, which are BINARY", node)
    order = ((value, False, True),)
    return AggregateCall(name, (value,), result, distinct, condition, order, parameters)


def _constant(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> object:
    if isinstance(bound, Literal):
        return bound.value if not types.is_decimal(bound.type) else _decimal(bound)
    if isinstance(bound, Call) and bound.function == "array":
        return tuple(_constant(binder, part, node) for part in bound.arguments)
    raise binder.context.type_error("this argument must be a constant", node)


def _decimal(bound: Literal) -> float:
    value = bound.value
    return float(value) if not isinstance(value, int) else value / 10**bound.type.scale  # type: ignore[arg-type]


def _shares(
    binder: ExpressionBinder, given: object, kind: pa.DataType, node: exp.Expr
) -> tuple[object, pa.DataType]:
    listed = given if isinstance(given, tuple) else (given,)
    shares = tuple(checked_share(binder, share, node) for share in listed)
    return (shares, pa.list_(kind)) if isinstance(given, tuple) else (shares[0], kind)


def checked_share(binder: ExpressionBinder, share: object, node: exp.Expr) -> float:
    """A constant part of a whole, as Spark takes it: a number from 0 to 1."""
    if isinstance(share, bool) or not isinstance(share, int | float | Decimal):
        raise binder.context.type_error("this argument must be a number", node)
    if not 0 <= share <= 1:
        raise binder.context.type_error("this argument lies between 0 and 1", node)
    return float(share)


def _whole(binder: ExpressionBinder, given: object, node: exp.Expr) -> int:
    if not isinstance(given, int) or given < 1:
        raise binder.context.type_error("this argument must be a whole number above 0", node)
    return given


def _precision(deviation: float) -> int:
    """The registers (as a power of two) for a relative standard deviation."""
    return min(max(math.ceil(2 * math.log2(1.04 / max(deviation, 1e-6))), 4), 21)
