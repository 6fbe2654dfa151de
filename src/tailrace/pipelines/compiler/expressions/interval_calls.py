"""Intervals that are computed: make_interval and its like, and an interval times a number.

An interval is three numbers: months, days, microseconds, and the units that Spark's type of it
names. It can be added to a time and taken from one; a view cannot hold one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.expressions.spark_calls import by_spark, raw_type
from tailrace.pipelines.engine.expression import Call, Expression, Literal
from tailrace.pipelines.values import types
from tailrace.pipelines.values.interval_units import (
    CALENDAR,
    DAYS,
    DAYS_TO_SECONDS,
    YEARS_TO_MONTHS,
    of_months,
    widest,
)

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

Parts = tuple[Expression, Expression, Expression]
_SECONDS = pa.decimal128(18, 6)
_FIELDS = {
    "make_interval": ("years", "months", "weeks", "days", "hours", "mins", "secs"),
    "make_dt_interval": ("days", "hours", "mins", "secs"),
    "make_ym_interval": ("years", "months"),
}
_UNITS = {"make_dt_interval": DAYS_TO_SECONDS, "make_ym_interval": YEARS_TO_MONTHS}
_MICROS = {"hours": 3_600_000_000, "mins": 60_000_000}


def make_interval(name: str, binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:  # fmt: skip
    """The interval of a call; NULL where any part is. Months and days are INTs: what does not
    fit is an error."""
    fields = _FIELDS[name]
    if len(given) > len(fields):
        raise binder.context.type_error("wrong number of arguments", node)
    months: list[Expression] = []
    days: list[Expression] = []
    micros: list[Expression] = []
    for field, value in zip(fields, given, strict=False):
        if field == "secs":
            seconds = binder.coerce(value, _SECONDS, node)
            exact = binder.arithmetic("*", seconds, Literal(1_000_000, types.INT), node)
            micros.append(binder.coerce(exact, types.BIGINT, node))
            continue
        number = binder.coerce(value, types.INT, node)
        match field:
            case "years" | "weeks":
                factor = Literal(12 if field == "years" else 7, types.INT)
                product = exactly("*", factor, number, types.INT)
                (months if field == "years" else days).append(product)
            case "months":
                months.append(number)
            case "days":
                days.append(number)
            case _:
                number = binder.coerce(number, types.BIGINT, node)
                factor = Literal(_MICROS[field], types.BIGINT)
                micros.append(exactly("*", factor, number, types.BIGINT))
    return interval(
        _sum(months, types.INT),
        _sum(days, types.INT),
        _sum(micros, types.BIGINT),
        _UNITS.get(name, CALENDAR),
    )


def interval(months: Expression, days: Expression, micros: Expression, units: str) -> Expression:
    named = Literal(units, types.STRING)
    return Call("interval", (months, days, micros, named), types.INTERVAL)


def constant_interval(months: int, days: int, micros: int, units: str) -> Expression:
    parts = [Literal(part, types.BIGINT) for part in (months, days, micros)]
    return interval(parts[0], parts[1], parts[2], units)


def is_known(bound: Expression) -> bool:
    """Whether it is an interval whose parts are known here."""
    return isinstance(bound, Call) and bound.function == "interval"


def units_of(bound: Expression) -> str:
    """The units of Spark's type of an interval; a bare NULL is of days."""
    if isinstance(bound, Call) and bound.function == "interval":
        return str(cast(Literal, bound.arguments[3]).value)
    return DAYS


def constant_parts(bound: Expression) -> tuple[int, int, int] | None:
    """Months, days and microseconds of a constant interval; None for anything else."""
    if not (isinstance(bound, Call) and bound.function == "interval"):
        return None
    values = [part.value for part in bound.arguments[:3] if isinstance(part, Literal)]
    if len(values) < 3 or None in values:
        return None
    months, days, micros = cast("list[int]", values)
    return months, days, micros


def parts_of(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Parts:
    """Months, days and microseconds of an interval, constant or computed."""
    if isinstance(bound, Literal) and bound.value is None:
        nothing = Literal(None, types.BIGINT)
        return nothing, nothing, nothing
    if isinstance(bound, Call) and bound.function == "interval":
        return cast(Parts, bound.arguments[:3])
    raise binder.context.not_incremental(
        "this interval is computed in a way that is not known", node, "use make_interval"
    )


def scaled(
    binder: ExpressionBinder, bound: Expression, factor: Expression, node: exp.Expr
) -> Expression:
    """An interval times a whole number."""
    number = binder.coerce(factor, types.BIGINT, node)
    months, days, micros = (_multiplied(p, number) for p in parts_of(binder, bound, node))
    return interval(months, days, micros, widest(units_of(bound)))


def signed(sign: int, part: Expression, kind: pa.DataType) -> Expression:
    """A part of an interval as an argument of `add_interval`."""
    if isinstance(part, Literal):
        value = cast("int | None", part.value)
        return Literal(None if value is None else sign * value, kind)
    return part if sign > 0 else Call("negative", (part,), part.type)


def negated(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """An interval the other way."""
    if not is_known(bound):
        return by_spark(binder, "(- {0})", [bound], node)
    months, days, micros = parts_of(binder, bound, node)
    kinds = (part.type for part in (months, days, micros))
    parts = [
        signed(-1, part, kind) for part, kind in zip((months, days, micros), kinds, strict=True)
    ]
    return interval(parts[0], parts[1], parts[2], units_of(bound))


def has_clock(bound: Expression, micros: Expression) -> bool:
    """Whether a date and this interval are a timestamp; by the type, but for make_interval."""
    if units_of(bound) == CALENDAR:
        return not (isinstance(micros, Literal) and not micros.value)
    return not of_months(units_of(bound)) and units_of(bound) != DAYS


def in_order(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """A number that has the order of an interval: of months, or of microseconds."""
    units = str(raw_type(binder, bound, node))
    if units == "interval":
        raise binder.context.type_error(
            "what make_interval gives has no order", node, "use make_dt_interval"
        )
    unit = "MONTH" if of_months(units.removeprefix("interval ").upper()) else "MICROSECOND"
    begin = "TIMESTAMP_NTZ '1970-01-01'"
    return by_spark(binder, f"timestampdiff({unit}, {begin}, {begin} + {{0}})", [bound], node)


def _multiplied(left: Expression, right: Expression) -> Expression:
    return exactly("*", left, right, types.BIGINT)


def exactly(sign: str, left: Expression, right: Expression, kind: pa.DataType) -> Expression:
    """A sum or product, at once where both are constants and it fits."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        if left.value is None or right.value is None:
            return Literal(None, kind)
        a, b = cast(int, left.value), cast(int, right.value)
        result, limit = a * b if sign == "*" else a + b, 1 << (kind.bit_width - 1)
        if -limit <= result < limit:
            return Literal(result, kind)
    return Call(sign, (left, right), kind)


def _sum(parts: list[Expression], kind: pa.DataType) -> Expression:
    total: Expression = Literal(0, kind)
    for part in parts:
        zero = isinstance(total, Literal) and total.value == 0
        total = part if zero else exactly("+", total, part, kind)
    return total
