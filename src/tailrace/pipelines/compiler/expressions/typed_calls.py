"""Functions whose types follow from their arguments: numbers, times, casts by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.expressions.interval_calls import make_interval
from tailrace.pipelines.compiler.expressions.spark_calls import call_by_spark
from tailrace.pipelines.engine.expression import Call, Expression, Literal
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.calls import Rule
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder


def wants(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr, low: int, high: int | None
) -> None:
    """Refuse another number of arguments."""
    if len(given) < low or (high is not None and len(given) > high):
        raise binder.context.type_error("wrong number of arguments", node)


def constant(binder: ExpressionBinder, bound: Expression, node: exp.Expr, what: str) -> object:
    if not isinstance(bound, Literal):
        raise binder.context.not_incremental(f"{what} must be a constant", node)
    return bound.value


def _operator(sign: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        return binder.arithmetic(sign, given[0], given[1], node)

    return rule


def _signed(negative: bool) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        value = binder.number(given[0], node, texts=True)
        return Call("negative", (value,), value.type) if negative else value

    return rule


def _length(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    if given[0].type == types.BINARY:
        return Call("octet_length", (given[0],), types.INT)
    return Call("length", (binder.coerce(given[0], types.STRING, node),), types.INT)


def _equal_null(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    return binder.compare("<=>", given[0], given[1], node)


def _zero(to_null: bool) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        value = binder.number(given[0], node)
        if not to_null:
            (value, nought), kind = binder.alike([value, Literal(0, types.INT)], node)
            return Call("coalesce", (value, nought), kind)
        zero = binder.coerce(Literal(0, types.INT), value.type, node)
        equal = binder.compare("=", value, zero, node)
        return binder.choose([(equal, Literal(None, value.type))], value, node)

    return rule


def _cast(kind: pa.DataType) -> Rule:
    """bigint(x), string(x) …"""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        return binder.coerce(given[0], kind, node, written=True)

    return rule


def _parsing(name: str, kind: pa.DataType) -> Rule:
    """to_date, to_timestamp and their like; with a pattern they are Spark's."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        value = given[0]
        if len(given) == 1 and name.startswith("try_") and value.type == types.STRING:
            return Call("try_cast", (value,), kind)
        if len(given) == 1 or value.type in (types.DATE, types.TIMESTAMP, types.TIMESTAMP_NTZ):
            return binder.coerce(value, kind, node)
        return call_by_spark(binder, name, given, node)

    return rule


def _unix_timestamp(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    """Of times, and of now; of a text it is Spark's."""
    moment = given[0] if given else Call("now", (), types.TIMESTAMP)
    if moment.type == types.STRING or (moment.type == types.NULL and len(given) > 1):
        return call_by_spark(binder, "to_unix_timestamp", given, node)
    return Call("unix_timestamp", (binder.coerce(moment, types.TIMESTAMP, node),), types.BIGINT)


def _window_time(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """The last moment of a window."""
    from tailrace.pipelines.compiler.expressions.scalar import take_field

    wants(binder, given, node, 1, 1)
    end = take_field(binder.context, given[0], "end", node)
    zero = Literal(0, types.INT)
    return Call("add_interval", (end, zero, zero, Literal(-1, types.BIGINT)), end.type)


def _interval(name: str) -> Rule:
    return lambda binder, given, node: make_interval(name, binder, given, node)


def _nested(name: str, rule: Rule) -> Rule:
    """Of texts as `rule` says; arrays and bytes are Spark's."""

    def chosen(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        if any(pa.types.is_nested(v.type) or v.type == types.BINARY for v in given):
            return call_by_spark(binder, name, given, node)
        return rule(binder, given, node)

    return chosen


def _concat(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if not given:
        return Literal("", types.STRING)
    texts = tuple(binder.coerce(value, types.STRING, node) for value in given)
    return Call("concat", texts, types.STRING)


def _concat_ws(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, None)
    texts = tuple(binder.coerce(value, types.STRING, node) for value in given)
    return Call("concat_ws", texts, types.STRING)


def _array(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if not given:
        return Literal((), pa.list_(types.NULL))
    if any(pa.types.is_nested(value.type) for value in given):
        return call_by_spark(binder, "array", given, node)
    alike, kind = binder.alike(given, node)
    return Call("array", tuple(alike), pa.list_(kind))


def _unix(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        return Call(name, (binder.coerce(given[0], types.TIMESTAMP, node),), types.BIGINT)

    return rule


_CASTS = {
    "bigint": types.BIGINT, "int": types.INT, "smallint": types.SMALLINT, "tinyint": types.TINYINT,
    "string": types.STRING, "double": types.DOUBLE, "float": types.FLOAT, "boolean": types.BOOLEAN,
    "binary": types.BINARY, "date": types.DATE, "timestamp": types.TIMESTAMP,
    "decimal": pa.decimal128(10, 0),
}  # fmt: skip
TYPED: dict[str, Rule] = {
    "%": _operator("%"), "negative": _signed(True), "positive": _signed(False),
    "length": _length, "concat": _nested("concat", _concat),
    "concat_ws": _nested("concat_ws", _concat_ws), "array": _array,
    "equal_null": _equal_null, "nullifzero": _zero(True), "zeroifnull": _zero(False),
    **{
        prefix + name: _parsing(prefix + name, kind)
        for prefix in ("", "try_")
        for name, kind in (("to_date", types.DATE), ("to_timestamp", types.TIMESTAMP))
    },
    "to_timestamp_ltz": _parsing("to_timestamp_ltz", types.TIMESTAMP),
    "to_timestamp_ntz": _parsing("to_timestamp_ntz", types.TIMESTAMP_NTZ),
    "unix_timestamp": _unix_timestamp, "to_unix_timestamp": _unix_timestamp,
    **{name: _unix(name) for name in ("unix_seconds", "unix_millis", "unix_micros")},
    "window_time": _window_time,
    "make_interval": _interval("make_interval"),
    "make_dt_interval": _interval("make_dt_interval"),
    "make_ym_interval": _interval("make_ym_interval"),
    **{name: _cast(kind) for name, kind in _CASTS.items()},
}  # fmt: skip
