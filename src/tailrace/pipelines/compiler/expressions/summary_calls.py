"""The types of aggregates that sum up a group in one value: frequent items, count-min sketches,
histograms, sums of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.expressions.sketch_calls import constant, whole
from tailrace.pipelines.compiler.expressions.typed_calls import wants
from tailrace.pipelines.compiler.plans.plan import AggregateCall
from tailrace.pipelines.engine.expression import Call, Expression, Literal, columns_of
from tailrace.pipelines.engine.operators.sketches import frequent
from tailrace.pipelines.engine.operators.sketches.histograms import histogram_type
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

SUMMARIES = frozenset({
    "approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine", "count_min_sketch",
    "vector_sum", "vector_avg", "histogram_numeric",
})  # fmt: skip
_MOST = (1 << 31) - 1
_STATE = "what approx_top_k_accumulate gives"


def summary_call(
    binder: ExpressionBinder,
    name: str,
    bound: list[Expression],
    distinct: bool,
    condition: Expression | None,
    node: exp.Expr,
) -> AggregateCall:
    """One of SUMMARIES."""
    value = bound[0]
    parameters: tuple[object, ...]
    match name:
        case "approx_top_k":
            wants(binder, bound, node, 1, 3)
            shown = whole(binder, bound[1], node, "k", 1, _MOST) if len(bound) > 1 else 5
            items = _items(binder, bound[2], node) if len(bound) > 2 else frequent.ITEMS
            if shown > items:
                raise binder.context.type_error(f"the top {shown} of {items} items", node)
            parameters, result = (shown, items), frequent.top_type(value.type)
            value = _item(binder, value, node)
        case "approx_top_k_accumulate":
            wants(binder, bound, node, 1, 2)
            items = _items(binder, bound[1], node) if len(bound) > 1 else frequent.ITEMS
            parameters, result = (None, items), frequent.state_type(value.type)
            value = _item(binder, value, node)
        case "approx_top_k_combine":
            wants(binder, bound, node, 1, 2)
            kind = state_item(binder, value, node)
            parameters = (_items(binder, bound[1], node) if len(bound) > 1 else None,)
            result = frequent.state_type(kind)
        case "count_min_sketch":
            wants(binder, bound, node, 4, 4)
            result, parameters = types.BINARY, _counted(binder, bound, node)
        case "histogram_numeric":
            wants(binder, bound, node, 2, 2)
            if value.type in (types.STRING, types.NULL):
                value = binder.coerce(value, types.DOUBLE, node)
            kind = value.type
            if not (types.is_numeric(kind) or types.is_temporal(kind) or types.is_time(kind)):
                raise binder.context.type_error(
                    f"no histogram of {types.ddl(kind)}", node, "of numbers, dates and times"
                )
            result = histogram_type(value.type)
            parameters = (whole(binder, bound[1], node, "the number of bins", 2, _MOST),)
        case _:
            wants(binder, bound, node, 1, 1)
            result = pa.list_(types.FLOAT)
            if value.type not in (result, types.NULL):
                raise binder.context.type_error(
                    f"{name} takes ARRAY<FLOAT>, not {types.ddl(value.type)}", node
                )
            value = binder.coerce(value, result, node)
            parameters = (name == "vector_avg",)
    order = ((value, False, True),)
    return AggregateCall(name, (value,), result, distinct, condition, order, parameters)


def _items(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> int:
    return whole(binder, bound, node, "maxItemsTracked", 1, frequent.MOST_ITEMS)


def _item(binder: ExpressionBinder, value: Expression, node: exp.Expr) -> Expression:
    """A value in a struct of its own, which is there even where the value is NULL."""
    if not frequent.countable(value.type):
        raise binder.context.type_error(
            f"items of {types.ddl(value.type)} are not counted", node, "cast the value to STRING"
        )
    kind = pa.struct([("item", value.type)])
    return Call("named_struct", (Literal("item", types.STRING), value), kind)


def state_item(binder: ExpressionBinder, value: Expression, node: exp.Expr) -> pa.DataType:
    """The type of the items whose sketch this is."""
    kind = value.type
    parts = (
        [kind.field(at).type for at in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    )
    expected = (types.BINARY, types.INT, None, types.STRING)
    fits = len(parts) == 4 and all(e in (None, p) for e, p in zip(expected, parts, strict=True))
    if not fits or not frequent.countable(parts[2]):
        raise binder.context.type_error(f"{types.ddl(kind)} is not {_STATE}", node)
    return parts[2]


def _counted(
    binder: ExpressionBinder, bound: list[Expression], node: exp.Expr
) -> tuple[float, float, int]:
    """Error, confidence and seed of a count-min sketch."""
    kind = bound[0].type
    if not (types.is_integer(kind) or kind in (types.STRING, types.BINARY)):
        raise binder.context.type_error(
            f"count_min_sketch counts whole numbers, texts and bytes, not {types.ddl(kind)}", node
        )
    shares = []
    for at, what in ((1, "the error"), (2, "the confidence")):
        if bound[at].type not in (types.DOUBLE, types.NULL):
            raise binder.context.type_error(
                f"{what} is a DOUBLE, as 0.01D, not {types.ddl(bound[at].type)}", node
            )
        share = cast("float | None", constant(binder, bound[at], types.DOUBLE, node, what))
        if share is None or not 0 < share < (math.inf if at == 1 else 1):
            raise binder.context.type_error(
                f"{what} is above 0{' and below 1' if at == 2 else ''}, not {share}", node
            )
        shares.append(share)
    if bound[3].type not in (types.INT, types.BIGINT) or columns_of(bound[3]):
        raise binder.context.type_error("the seed is a constant whole number", node)
    seed = cast(int, constant(binder, bound[3], types.BIGINT, node, "the seed"))
    return shares[0], shares[1], (seed + (1 << 31)) % (1 << 32) - (1 << 31)
