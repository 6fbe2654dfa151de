"""Aggregate and window functions in a SELECT list."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import refuse
from tailrace.pipelines.compiler.binding.stars import is_bare, is_table_star, spread
from tailrace.pipelines.compiler.expressions.approximate_calls import checked_share, sketched_call
from tailrace.pipelines.compiler.expressions.calls import name_and_arguments
from tailrace.pipelines.compiler.expressions.collations import key_of
from tailrace.pipelines.compiler.expressions.interval_calls import constant_parts, in_order
from tailrace.pipelines.compiler.expressions.map_forms import map_form
from tailrace.pipelines.compiler.expressions.spark_calls import by_spark
from tailrace.pipelines.compiler.expressions.summary_calls import SUMMARIES, summary_call
from tailrace.pipelines.compiler.expressions.variant_calls import exactly, merged_schema
from tailrace.pipelines.compiler.plans.plan import AggregateCall, Field, WindowCall
from tailrace.pipelines.engine.expression import Call, Expression, Literal, conjunction
from tailrace.pipelines.engine.operators.aggregates import MOMENTS
from tailrace.pipelines.engine.operators.sketches.approximate import SKETCHED
from tailrace.pipelines.engine.operators.statistics import BITS, PAIRED, SHAPES
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

PERCENTILES = ("percentile", "percentile_disc")
BITMAPS = ("bitmap_construct_agg", "bitmap_or_agg", "bitmap_and_agg")
Frame = tuple[str, int | float | None, int | float | None]
Order = tuple[tuple[Expression, bool, bool], ...]
NAMES = {
    "logical_and": "bool_and", "logical_or": "bool_or", "array_agg": "collect_list",
    "array_unique_agg": "collect_set", "group_concat": "listagg", "string_agg": "listagg",
    "quantile": "percentile", "percentile_cont": "percentile", "arg_max": "max_by",
    "arg_min": "min_by", "first_value": "first", "last_value": "last", "variance_pop": "var_pop",
    "variance": "var_samp", "stddev": "stddev_samp", "std": "stddev_samp", "mean": "avg",
    "every": "bool_and", "some": "bool_or", "any": "bool_or", "max_by": "max_by",
    "approx_distinct": "approx_count_distinct", "count_if": "count_if", "any_value": "any_value",
    "approx_quantile": "approx_percentile", "percentile_approx": "approx_percentile",
    "bitwise_and_agg": "bit_and", "bitwise_or_agg": "bit_or", "bitwise_xor_agg": "bit_xor",
}  # fmt: skip
KNOWN = {
    "count", "sum", "avg", "min", "max", "bool_and", "bool_or", "collect_list", "collect_set",
    "listagg", "percentile", "percentile_disc", "median", "max_by", "min_by", "first", "last",
    "count_if", "any_value", "mode", "try_sum", "try_avg", "collect_union", "regr_avgx", "regr_avgy",
    "schema_of_variant_agg", *BITMAPS, *BITS, *SHAPES, *PAIRED,
    *MOMENTS, *SKETCHED, *SUMMARIES,
}  # fmt: skip
_MOST_ARGUMENTS = {
    "listagg": 2, "mode": 2, "max_by": 2, "min_by": 2, "regr_avgx": 2, "regr_avgy": 2,
}  # fmt: skip
_OF_NULL = {
    **dict.fromkeys(("bool_and", "bool_or", "count_if"), types.BOOLEAN),
    **dict.fromkeys(BITS, types.INT),
}
# Where the clauses of a call have a meaning. Spark has no ORDER BY among the arguments; here it says
# in which order values are gathered.
_WITHIN_GROUP = ("percentile", "percentile_disc", "mode", "listagg")
_ORDERED = ("collect_list", "listagg", "first", "last", "any_value")
_IGNORE_NULLS = ("first", "last", "any_value", "collect_list", "collect_set")
_WITHOUT_NULLS = ("collect_list", "collect_set")
_DISTINCT_SKETCHES = {
    "approx_count_distinct", "hll_sketch_agg", "theta_sketch_agg", "count_min_sketch",
    "histogram_numeric", "vector_sum", "vector_avg", "tuple_sketch_agg_double",
    "tuple_sketch_agg_integer", "kll_sketch_agg_bigint", "kll_sketch_agg_double",
    "kll_sketch_agg_float",
}  # fmt: skip
_NOT_DISTINCT = {
    *PERCENTILES, "median", "mode", "regr_avgx", "regr_avgy",
    *{*SUMMARIES, *SKETCHED} - _DISTINCT_SKETCHES,
}  # fmt: skip
# Names of the parser's nodes that are no functions of Spark's.
_OF_PARSER = {
    "logical_and", "logical_or", "array_unique_agg", "group_concat", "quantile", "arg_max",
    "arg_min", "variance_pop", "approx_distinct", "approx_quantile", "bitwise_and_agg",
    "bitwise_or_agg", "bitwise_xor_agg",
}  # fmt: skip
RANKING = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
           "first_value", "last_value", "nth_value", "counter_diff"}  # fmt: skip


def is_aggregate(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    if isinstance(inner, exp.WithinGroup | exp.Filter):
        return is_aggregate(inner)
    if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
        inner = inner.this
    if isinstance(inner, exp.AggFunc):
        return True
    if isinstance(inner, exp.Any):
        return inner.this is not None and not isinstance(inner.this.unnest(), exp.Query)
    return isinstance(inner, exp.Anonymous) and function_name(inner) in KNOWN


def function_name(node: exp.Expr) -> str:
    name, _ = name_and_arguments(node)
    if isinstance(node, exp.Anonymous) and name in _OF_PARSER:
        return name
    return NAMES.get(name, name)


def bind_aggregate(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """An aggregate becomes a column of the GROUP BY around it."""
    if binder.collected is None:
        raise binder.context.type_error("an aggregate is not allowed here", node)
    several = _several_shares(node)
    if several:
        return _percentiles(binder, several)
    call = aggregate_call(binder, node)
    wrapped = call.function
    if wrapped in ("collect_union", "schema_of_variant_agg"):
        call = replace(call, function="collect_set")
    column = _collected(binder, call)
    if wrapped == "schema_of_variant_agg":
        return merged_schema(column)
    if wrapped != "collect_union":
        return column
    # the sets of all rows, made one
    return by_spark(binder, "array_sort(array_distinct(flatten({0})))", [column], node)


def _several_shares(node: exp.Expr) -> list[exp.Expr]:
    """percentile(x, array(0.1, 0.9)) as one call for each share; [] for anything else."""

    def shares_of(whole: exp.Expr) -> exp.Expr | None:
        inner = whole
        while isinstance(inner, exp.Filter | exp.WithinGroup):
            inner = inner.this
        if not isinstance(inner, exp.Func) or function_name(inner) not in PERCENTILES:
            return None
        return next((v for v in inner.iter_expressions() if isinstance(v, exp.Array)), None)

    shares = shares_of(node)
    made = []
    for share in shares.expressions if shares is not None else ():
        copy = node.copy()
        cast("exp.Expr", shares_of(copy)).replace(share.copy())
        made.append(copy)
    return made


def _percentiles(binder: ExpressionBinder, nodes: list[exp.Expr]) -> Expression:
    columns = [bind_aggregate(binder, node) for node in nodes]
    whole = Call("array", tuple(columns), pa.list_(types.DOUBLE))
    missing = Call("is null", (columns[0],), types.BOOLEAN)
    return Call("case", (missing, Literal(None, whole.type), whole), whole.type)


def _collected(binder: ExpressionBinder, call: AggregateCall) -> Expression:
    assert binder.collected is not None
    for known, other in binder.collected.aggregates:
        if other == call:
            return known.column
    made = Field(binder.context.fresh(call.function), call.function, call.type)
    binder.collected.aggregates.append((made, call))
    return made.column


def aggregate_call(binder: ExpressionBinder, node: exp.Expr) -> AggregateCall:
    """The function, its arguments and its order from any of the ways to write it."""
    condition: Expression | None = None
    order: Order = ()
    outer, saved, subquery = node, binder.collected, binder.subquery
    binder.collected = None  # no aggregates inside aggregates
    binder.subquery = binder.inner_subquery or refuse(binder.context)
    try:
        if isinstance(node, exp.Filter):
            condition = binder.condition(node.expression.this)
            node = node.this
        if isinstance(node, exp.WithinGroup):
            order = bind_order(binder, node.expression.expressions)
            within, node = True, node.this
        else:
            within = False
        ignores, respects = (isinstance(node, k) for k in (exp.IgnoreNulls, exp.RespectNulls))
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            node = node.this
        name = function_name(node)
        _, raw = name_and_arguments(node)
        distinct, ordered = False, False
        arguments: list[exp.Expr] = []
        for argument in raw:
            if isinstance(argument, exp.Distinct):
                distinct = True
                arguments.extend(_counted(binder, name, argument.expressions, distinct=True))
            elif isinstance(argument, exp.Order):
                order, ordered = bind_order(binder, argument.expressions), True
                whole = argument.this
                distinct |= isinstance(whole, exp.Distinct)
                arguments.extend(whole.expressions if isinstance(whole, exp.Distinct) else [whole])
            else:
                alone = len(raw) == 1
                arguments += _counted(binder, name, raw) if alone else spread(binder, argument)
        clauses = {
            "WITHIN GROUP": within and name not in _WITHIN_GROUP,
            "ORDER BY": ordered and name not in _ORDERED,
            "IGNORE NULLS": ignores and name not in _IGNORE_NULLS,
            "RESPECT NULLS": respects and name in _WITHOUT_NULLS,
            "DISTINCT": distinct and name in _NOT_DISTINCT,
        }
        for clause, refused in clauses.items():
            if refused:
                raise binder.context.not_incremental(f"{clause} in a call of {name}", outer)
        bound = [binder.bind(argument) for argument in arguments]
        _check_order(binder, node, bound, order, within, distinct)
        passing = condition
        if ignores and bound:
            known: Expression = Call("is not null", (bound[0],), types.BOOLEAN)
            condition = known if condition is None else conjunction([condition, known])
    finally:
        binder.collected, binder.subquery = saved, subquery
    if name not in KNOWN:
        raise binder.context.not_incremental(f"aggregate {name!r} is not kept incrementally", outer)
    _no_intervals(binder, bound, outer)
    call = _typed(binder, name, bound, distinct, condition, order, within, outer)
    return call if passing is None else _only_where(passing, call)


def _check_order(
    binder: ExpressionBinder,
    node: exp.Expr,
    bound: list[Expression],
    order: Order,
    within: bool,
    distinct: bool,
) -> None:
    """How many arguments and how many orders a call has that knows WITHIN GROUP."""
    name, context = function_name(node), binder.context
    by_order = isinstance(node, exp.PercentileCont | exp.PercentileDisc)
    if by_order and not within:
        raise context.type_error(f"{name} needs WITHIN GROUP (ORDER BY …)", node)
    if within and name != "listagg" and (len(order) != 1 or len(bound) != int(by_order)):
        raise context.type_error(f"{name} WITHIN GROUP takes one column in its order", node)
    if distinct and any(key != bound[0] for key, _, _ in order):
        raise context.not_incremental(f"{name}(DISTINCT …) in the order of something else", node)
    if isinstance(node, exp.Count) and not (node.this or node.expressions):
        raise context.type_error("count needs an argument; count(*) counts rows", node)


def _no_intervals(binder: ExpressionBinder, bound: list[Expression], node: exp.Expr) -> None:
    for value in bound:
        binder.context.held(value.type, node)


def _counted(
    binder: ExpressionBinder, name: str, raw: list[exp.Expr], *, distinct: bool = False
) -> list[exp.Expr]:
    """All arguments, with columns in the place of each star. count(*) has none, and Spark
    knows no count(t.*)."""
    if name == "count" and len(raw) == 1 and is_bare(raw[0]) and not distinct:
        return []
    if name == "count" and len(raw) == 1 and is_table_star(binder, raw[0]):
        raise binder.context.name_error(
            "count(t.*) is not of Spark's SQL", raw[0], "count(*) counts rows; or name the columns"
        )
    return [one for part in raw for one in spread(binder, part)]


def _only_where(passing: Expression, call: AggregateCall) -> AggregateCall:
    """The aggregate with arguments that are computed only for rows that pass its FILTER, so that
    `sum(1 / x) FILTER (WHERE x <> 0)` never divides by zero."""

    def guarded(value: Expression) -> Expression:
        if not isinstance(value, Call):
            return value
        return Call("case", (passing, value, Literal(None, value.type)), value.type)

    return replace(
        call,
        arguments=tuple(map(guarded, call.arguments)),
        order=tuple((guarded(value), down, first) for value, down, first in call.order),
    )


def _typed(
    binder: ExpressionBinder,
    name: str,
    bound: list[Expression],
    distinct: bool,
    condition: Expression | None,
    order: Order,
    within: bool,
    node: exp.Expr,
) -> AggregateCall:
    context = binder.context
    parameters: tuple[object, ...] = ()
    if within:  # percentile_cont(0.5) WITHIN GROUP (ORDER BY x), mode() …, listagg(x, ',') …
        if name in ("percentile", "percentile_disc"):
            parameters = (_share(binder, bound[0], node),)
        if name in ("percentile", "percentile_disc", "mode"):
            bound = [order[0][0]]
    elif name == "percentile" and len(bound) == 1:
        raise context.type_error("percentile needs its share, percentile(x, 0.5)", node)
    elif name == "percentile" and len(bound) == 2:
        parameters = (_share(binder, bound[1], node),)
        bound = bound[:1]
    most = _MOST_ARGUMENTS.get(name, 2 if name in PAIRED else 1)
    if len(bound) > most and name not in (*SUMMARIES, *SKETCHED, "count"):
        raise context.type_error(
            f"{name} takes no {'frequency' if name == 'percentile' else 'further argument'} here",
            node,
        )
    if name == "listagg":
        if types.BINARY in (one.type for one in bound):
            raise context.not_incremental(
                "listagg of BINARY", node, "hex(…) or base64(…) are texts"
            )
        between = _constant(binder, bound[1], node) if len(bound) > 1 else None
        parameters = () if between is None else (between,)
        bound = [binder.coerce(bound[0], types.STRING, node)]
    if any(types.has_map(one.type) for one in bound):
        if distinct and name == "count":
            bound = [map_form(one) for one in bound]
        elif distinct or name in ("collect_set", "mode"):
            context.comparable(bound[0].type, node)
    if name == "count":
        return AggregateCall("count", tuple(bound), types.BIGINT, distinct, condition)
    if not bound:
        raise context.type_error(f"{name} needs an argument", node)
    if name in SUMMARIES:
        return summary_call(binder, name, bound, distinct, condition, node)
    if name in SKETCHED:
        return sketched_call(binder, name, bound, distinct, condition, node)
    if name in ("regr_avgx", "regr_avgy") and len(bound) == 2:
        value, other = (bound[1], bound[0]) if name == "regr_avgx" else (bound[0], bound[1])
        both: Expression = Call("is not null", (other,), types.BOOLEAN)
        condition = both if condition is None else conjunction([condition, both])
        name, bound = "avg", [value]
    value = bound[0]
    if value.type == types.NULL and name in _OF_NULL:
        value = binder.coerce(value, _OF_NULL[name], node)
    kind = value.type
    match name:
        case "collect_union":
            if not pa.types.is_list(kind):
                raise context.type_error("collect_union needs an array", node)
            result = pa.list_(kind)
        case "schema_of_variant_agg":
            value = Call(
                "variant_schema", (exactly(binder, value, types.VARIANT, node),), types.STRING
            )
            result = pa.list_(types.STRING)
        case "bit_and" | "bit_or" | "bit_xor":
            if not types.is_integer(kind):
                raise context.type_error(f"{name} needs whole numbers", node)
            result = kind
        case "bitmap_construct_agg":
            if kind == types.BOOLEAN:
                raise context.type_error(f"{name} needs a whole number", node)
            value, result = binder.coerce(value, types.BIGINT, node), types.BINARY
        case "bitmap_or_agg" | "bitmap_and_agg":
            if kind not in (types.BINARY, types.NULL):
                raise context.type_error(f"{name} needs BINARY", node)
            value, result = binder.coerce(value, types.BINARY, node), types.BINARY
        case _ if name in PAIRED or name in SHAPES:
            wanted = 2 if name in PAIRED else 1
            if len(bound) != wanted:
                raise context.type_error(f"{name} takes {wanted} numbers", node)
            bound = [_numeric(binder, one, node, distinct) for one in bound]
            value = bound[0]
            result = types.BIGINT if name == "regr_count" else types.DOUBLE
        case (
            "sum"
            | "try_sum"
            | "avg"
            | "try_avg"
            | "percentile"
            | "percentile_disc"
            | "median"
            | "stddev_samp"
            | "stddev_pop"
            | "var_samp"
            | "var_pop"
        ):
            value = _numeric(binder, value, node, distinct and name in MOMENTS)
            if name == "percentile_disc":
                value = binder.coerce(value, types.DOUBLE, node)
            kind = value.type
            result = types.DOUBLE
            if name in ("sum", "try_sum"):
                result = _sum_type(kind)
            elif name in ("avg", "try_avg") and types.is_decimal(kind):
                result = types.bounded_decimal(kind.precision + 4, kind.scale + 4)
            if name == "try_avg" and not types.is_decimal(kind):
                name = "avg"  # a double never overflows
        case "bool_and" | "bool_or" | "count_if":
            if kind != types.BOOLEAN:
                raise context.type_error(f"{name} needs a truth value", node)
            result = types.BIGINT if name == "count_if" else types.BOOLEAN
        case "collect_list" | "collect_set":
            result = pa.list_(kind)
        case "listagg":
            result = types.STRING
        case _:
            result = kind
    arguments: tuple[Expression, ...] = tuple(bound) if name in PAIRED else (value,)
    match name:
        case "min" | "max":
            context.comparable(kind, node)
            order, distinct = ((value, name == "max", True),), False
        case "min_by" | "max_by":
            context.comparable(bound[1].type, node)
            order = ((bound[1], name == "max_by", True), (value, False, True))
        case "first" | "any_value":
            order = (*order, (value, False, True))
        case "last":
            order = (*((e, not d, not n) for e, d, n in order), (value, False, True))
            name = "first"
        case "median" | "collect_set" | "schema_of_variant_agg":
            order = ((value, False, True),)
        case "percentile" | "percentile_disc" | "mode":  # of values as frequent the first
            order = ((value, bool(order) and order[0][1], True),)
        case "collect_union" | "bitmap_construct_agg" | "bitmap_or_agg" | "bitmap_and_agg":
            order = ((value, False, True),)
        case "collect_list" | "listagg":
            order = (*order, (value, False, True))
            if distinct and name == "collect_list":
                name, distinct = "collect_set", False
    return AggregateCall(name, arguments, result, distinct, condition, order, parameters)


def _numeric(
    binder: ExpressionBinder, value: Expression, node: exp.Expr, double: bool = False
) -> Expression:
    """A number; a `double` where numbers that are the same DOUBLE must count once."""
    if double:
        value = binder.coerce(value, types.DOUBLE, node)
    return binder.number(value, node, texts=True)


def _sum_type(kind: pa.DataType) -> pa.DataType:
    if types.is_decimal(kind):
        return types.bounded_decimal(kind.precision + 10, kind.scale)
    return types.BIGINT if types.is_integer(kind) else types.DOUBLE


def _constant(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> object:
    if not isinstance(bound, Literal):
        raise binder.context.type_error("this argument must be a constant", node)
    return bound.value


def _share(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> object:
    """The constant that a percentile is asked for, which Spark would take."""
    share = _constant(binder, bound, node)
    checked_share(binder, share, node)
    return share


def bind_order(binder: ExpressionBinder, items: list[exp.Expr]) -> Order:
    """(expression, descending, nulls first) of each ORDER BY item; NULLs first ascending."""
    order = []
    for item in items:
        inner = item.this if isinstance(item, exp.Ordered) else item
        descending = bool(item.args.get("desc"))
        first = item.args.get("nulls_first")
        bound = key_in_order(binder, binder.bind(inner), item)
        binder.context.comparable(bound.type, item)
        order.append((bound, descending, not descending if first is None else bool(first)))
    return tuple(order)


def key_in_order(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """What tells values apart and has their order; of an interval how long it is."""
    return in_order(binder, bound, node) if bound.type == types.INTERVAL else key_of(bound)


def bind_window(binder: ExpressionBinder, node: exp.Window) -> Expression:
    """A window function becomes a column of a window plan."""
    from tailrace.pipelines.compiler.binding.match_windows import bind_framed
    from tailrace.pipelines.compiler.expressions.scalar import WindowUse

    if node.args.get("framed") is not None:
        return bind_framed(binder, node)
    collected = binder.collected
    if collected is None:
        raise binder.context.type_error("a window function is not allowed here", node)
    binder.context.only(node, "this", "partition_by", "order", "spec", "over")
    parts = node.args.get("partition_by") or ()
    partition = tuple(key_in_order(binder, binder.bind(part), part) for part in parts)
    for part in partition:
        binder.context.comparable(part.type, node)
    order_node = node.args.get("order")
    order = bind_order(binder, order_node.expressions) if order_node is not None else ()
    frame = _frame(binder, node, order)
    inner = node.this
    if isinstance(inner, exp.Column):
        raise binder.context.name_error(
            f"{inner.name} OVER a window without a PATTERN", node,
            "MEASURES of a window with a PATTERN are columns over it",
        )  # fmt: skip
    ignores = isinstance(inner, exp.IgnoreNulls)
    bare = inner.this if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls) else inner
    name, arguments = name_and_arguments(bare)
    if name in RANKING or name in _PLACES:
        name = _PLACES.get(name, name)
        _check_ranking(binder, name, ignores, isinstance(inner, exp.RespectNulls), frame, node)
        call = _ranking(binder, name, [binder.bind(a) for a in arguments], frame, ignores, node)
    else:
        if not is_aggregate(inner):
            raise binder.context.not_incremental(f"window function {name!r} is not known", node)
        # Aggregates of a GROUP BY may stand inside: sum(sum(x)) OVER ().
        aggregate = _over_aggregate(binder, inner)
        if aggregate.distinct or any(bare.find_all(exp.Distinct)):
            raise binder.context.not_incremental("DISTINCT in a window function", node)
        framed = bool(order) or node.args.get("spec") is not None
        if framed and aggregate.function in ("median", *PERCENTILES):
            raise binder.context.type_error(
                f"{aggregate.function} over an ORDER BY or a frame",
                node,
                "OVER (PARTITION BY …)",
            )
        if aggregate.function in ("collect_list", "listagg") and len(aggregate.order) == 1:
            # In the order of the window; values that it does not tell apart in their own.
            aggregate = replace(aggregate, order=(*order, *aggregate.order))
        if aggregate.function == "collect_union":
            raise binder.context.not_incremental(
                "collect_union in a window function",
                node,
                "array_distinct(flatten(collect_list(…)))",
            )
        call = WindowCall(
            aggregate.function, aggregate.arguments, aggregate.type, frame,
            (aggregate.parameters, tuple((d, n) for _, d, n in aggregate.order)),
            aggregate.condition,
        )  # fmt: skip
        extra = tuple(e for e, _, _ in aggregate.order)
        function = "collect_set" if name == "schema_of_variant_agg" else call.function
        call = WindowCall(
            function, (*call.arguments, *extra), call.type, frame, call.parameters,
            call.condition,
        )  # fmt: skip
    made = Field(binder.context.fresh(name), name, call.type)
    collected.windows.append(WindowUse(made, call, partition, order))
    return merged_schema(made.column) if name == "schema_of_variant_agg" else made.column


_PLACES = {"first": "first_value", "last": "last_value", "any_value": "first_value"}
_BY_NULLS = ("lag", "lead", "first_value", "last_value", "nth_value", "counter_diff")
_FRAMES: dict[str, Frame] = {
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank", "ntile", "percent_rank"), ("rows", None, 0)
    ),
    "cume_dist": ("range", None, 0),
}


def _check_ranking(
    binder: ExpressionBinder,
    name: str,
    ignores: bool,
    respects: bool,
    frame: Frame,
    node: exp.Window,
) -> None:
    """The clauses beside a function that looks at the order of rows, as Spark takes them."""
    context, framed = binder.context, node.args.get("spec") is not None
    if (ignores or respects) and name not in _BY_NULLS:
        raise context.not_incremental(f"IGNORE NULLS or RESPECT NULLS of {name}", node)
    if (name in _FRAMES or name in ("lag", "lead")) and node.args.get("order") is None:
        raise context.type_error(f"{name} needs an ORDER BY in its window", node)
    if framed and (name in ("lag", "lead") or _FRAMES.get(name, frame) != frame):
        raise context.type_error(f"{name} has a frame of its own", node, "leave the frame out")


def _over_aggregate(binder: ExpressionBinder, node: exp.Expr) -> AggregateCall:
    bare = node.this if isinstance(node, exp.Filter) else node
    within = isinstance(bare, exp.WithinGroup | exp.IgnoreNulls)
    children = [child for child in node.walk() if child is not node and child is not bare]
    if within or not any(map(is_aggregate, children)):
        return aggregate_call(binder, node)
    condition: Expression | None = None
    if isinstance(node, exp.Filter):
        condition = binder.condition(node.expression.this)
    _, raw = name_and_arguments(bare)
    bound = [binder.bind(argument) for argument in raw]
    call = _typed(binder, function_name(bare), bound, False, condition, (), False, node)
    return call if condition is None else _only_where(condition, call)


def _ranking(
    binder: ExpressionBinder,
    name: str,
    bound: list[Expression],
    frame: Frame,
    ignores: bool,
    node: exp.Expr,
) -> WindowCall:
    _no_intervals(binder, bound, node)
    match name:
        case "row_number" | "rank" | "dense_rank":
            return WindowCall(name, (), types.INT, frame, ())
        case "ntile":
            parts = _constant(binder, bound[0], node) if bound else 1
            if type(parts) is not int or parts < 1:
                raise binder.context.type_error("ntile needs a whole number of 1 or more", node)
            return WindowCall(name, (), types.INT, frame, (parts,))
        case "percent_rank" | "cume_dist":
            return WindowCall(name, (), types.DOUBLE, frame)
        case "lag" | "lead":
            steps = _constant(binder, bound[1], node) if len(bound) > 1 else 1
            if type(steps) is not int:
                raise binder.context.type_error(f"the offset of {name} is a whole number", node)
            default = bound[2] if len(bound) > 2 else Literal(None, types.NULL)
            kinds = {default.type, bound[0].type}
            if types.BOOLEAN in kinds and len(kinds - {types.NULL}) == 2:
                raise binder.context.type_error(
                    f"the default of {name} is {types.ddl(bound[0].type)}", node
                )
            default = binder.coerce(default, bound[0].type, node)
            return WindowCall(name, (bound[0], default), bound[0].type, frame, (steps, ignores))
        case "counter_diff":
            return _counter_diff(binder, bound, ignores, node)
        case _:
            offset: object = 1
            if name == "nth_value":
                offset = _constant(binder, bound[1], node) if len(bound) == 2 else None
                if type(offset) is not int or offset < 1:
                    raise binder.context.type_error(
                        "nth_value(value, n) needs a whole number of 1 or more", node
                    )
            elif len(bound) != 1:
                raise binder.context.not_incremental(
                    f"{name} with a second argument", node, f"{name}(…) IGNORE NULLS OVER (…)"
                )
            return WindowCall(name, (bound[0],), bound[0].type, frame, (offset, ignores))


def _counter_diff(
    binder: ExpressionBinder, bound: list[Expression], ignores: bool, node: exp.Expr
) -> WindowCall:
    """counter_diff(value[, started]): what a counter grew by since the row before."""
    context = binder.context
    if not 1 <= len(bound) <= 2:
        raise context.type_error("counter_diff(value[, start_time])", node)
    if ignores:
        raise context.type_error("counter_diff has no IGNORE NULLS", node)
    value = bound[0]
    if value.type == types.NULL:
        value = binder.coerce(value, types.DOUBLE, node)
    times = (types.TIMESTAMP, types.TIMESTAMP_NTZ)
    if len(bound) == 2 and bound[1].type not in times:
        raise context.type_error(
            f"the start of a counter is a TIMESTAMP, not {types.ddl(bound[1].type)}", node
        )
    if node.args.get("order") is None:
        raise context.type_error("counter_diff needs an ORDER BY", node)
    frame: Frame = ("rows", None, 0)
    if node.args.get("spec") is not None and _frame(binder, node, ()) != frame:  # type: ignore[arg-type]
        raise context.type_error("counter_diff looks at all rows before the current one", node)
    value = binder.number(value, node)
    return WindowCall("counter_diff", (value, *bound[1:]), value.type, frame)


def _frame(binder: ExpressionBinder, node: exp.Window, order: Order) -> Frame:
    spec = node.args.get("spec")
    if spec is None:
        return ("range", None, 0) if order else ("range", None, None)
    binder.context.only(spec, "kind", "start", "start_side", "end", "end_side")
    kind = str(spec.args.get("kind") or "RANGE").lower()
    if kind not in ("rows", "range"):
        raise binder.context.not_incremental(f"a frame of {kind}", node)

    units: set[str] = set()

    def bound(side: str) -> int | float | None:
        value = spec.args.get(side)
        toward = str(spec.args.get(f"{side}_side") or "PRECEDING").upper()
        if value is None and side == "end":
            return 0  # ROWS 1 PRECEDING ends with the current row
        if isinstance(value, str):
            if value.upper() != "UNBOUNDED":
                return 0
            if toward != ("PRECEDING" if side == "start" else "FOLLOWING"):
                raise binder.context.type_error(
                    f"a frame does not {side} with UNBOUNDED {toward}", node
                )
            return None
        constant = binder.bind(value)
        if kind == "range":
            distance, unit = _distance(binder, constant, order, node)
            units.add(unit)
        elif isinstance(constant, Literal) and isinstance(constant.value, int):
            distance = constant.value
        else:
            raise binder.context.not_incremental("a frame needs constant whole numbers", node)
        return -distance if toward == "PRECEDING" else distance

    start, end = bound("start"), bound("end")
    if len(units) > 1:
        raise binder.context.type_error("a frame of months on one side alone", node)
    if start is not None and end is not None and start > end and start and end:
        raise binder.context.type_error("a frame that ends before it starts", node)
    if kind == "range" and any(side not in (None, 0) for side in (start, end)):
        kind = units.pop()
    return (kind, start, end)


def _distance(
    binder: ExpressionBinder, bound: Expression, order: Order, node: exp.Expr
) -> tuple[int | float, str]:
    """The offset of a RANGE frame: in the physical units of the one thing it is ordered by
    ("distance"), or in months."""
    if len(order) != 1:
        raise binder.context.type_error("RANGE with an offset needs one ORDER BY column", node)
    kind = order[0][0].type
    span = constant_parts(bound)
    if span is not None and types.is_temporal(kind):
        months, days, micros = span
        if months and not (days or micros):
            return months, "months"
        if months or (kind == types.DATE and micros):
            raise binder.context.type_error(
                f"this interval is no distance of {types.ddl(kind)}", node
            )
        return (days if kind == types.DATE else days * 86_400_000_000 + micros), "distance"
    if not isinstance(bound, Literal) or bound.value is None:
        raise binder.context.not_incremental("a frame needs constants", node)
    if not types.is_numeric(bound.type):
        raise binder.context.type_error(f"{bound.sql} is no distance of {types.ddl(kind)}", node)
    if kind == types.DATE and isinstance(bound.value, int):
        return bound.value, "distance"
    if types.is_float(kind):
        return float(cast(float, bound.value)), "distance"
    if types.is_decimal(kind):
        return int(Decimal(str(bound.value)).scaleb(kind.scale)), "distance"
    if types.is_integer(kind) and isinstance(bound.value, int):
        return bound.value, "distance"
    raise binder.context.type_error(f"{bound.sql} is no distance of {types.ddl(kind)}", node)
