"""What is done with intervals inside an expression: `d1 - d2 < INTERVAL '7' DAY`, and their parts.

A view cannot hold an interval. It is taken apart while it is bound, into months, days and
microseconds (see `interval_calls`), and what is computed of it are numbers and texts.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.sql.interval_calls import (
    CALENDAR,
    DAYS,
    DAYS_TO_SECONDS,
    MIXED,
    YEARS_TO_MONTHS,
    exactly,
    interval,
    parts_of,
    units_of,
)

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

_DAY = 86_400_000_000
_ZERO = Literal(0, types.BIGINT)
_PASSED = ("sequence", "time_bucket", "concat", "string", "bigint", "int", "smallint", "tinyint")
_WITHIN_DAY = {"hour": (_DAY, 3_600_000_000), "minute": (3_600_000_000, 60_000_000)}


def between(
    binder: ExpressionBinder, left: Expression, right: Expression, node: exp.Expr
) -> Expression:
    """left - right of dates and times: days between dates, else microseconds."""
    if {left.type, right.type} <= {types.DATE, types.NULL}:
        days = (binder.coerce(side, types.DATE, node) for side in (left, right))
        return interval(_ZERO, Call("datediff", tuple(days), types.INT), _ZERO, DAYS)
    ends = (binder.coerce(side, types.TIMESTAMP, node) for side in (left, right))
    micros = tuple(Call("unix_micros", (end,), types.BIGINT) for end in ends)
    return interval(_ZERO, _ZERO, Call("-", micros, types.BIGINT), DAYS_TO_SECONDS)


def measured(
    binder: ExpressionBinder, bounds: list[Expression], node: exp.Expr
) -> list[Expression]:
    """Intervals as whole numbers in their order: all of them in months, days or microseconds."""
    if any(b.type not in (types.INTERVAL, types.NULL) for b in bounds):
        raise binder.context.type_error("an interval is compared with intervals alone", node)
    if any(units_of(bound) == CALENDAR for bound in bounds):
        raise binder.context.type_error(
            "what make_interval gives has no order", node, "use make_dt_interval"
        )
    known = [parts_of(binder, bound, node) for bound in bounds if not _is_null(bound)]
    if all(_none(days) and _none(micros) for _, days, micros in known) and not all(
        _none(months) for months, _, _ in known
    ):
        return [_part(binder, bound, 0, node) for bound in bounds]
    if not all(_none(months) for months, _, _ in known):
        raise binder.context.type_error("months and days are not compared", node)
    if all(_none(micros) for _, _, micros in known):
        return [_part(binder, bound, 1, node) for bound in bounds]
    return [_micros(binder, bound, node) for bound in bounds]


def joined(
    binder: ExpressionBinder, name: str, left: Expression, right: Expression, node: exp.Expr
) -> Expression:
    """The sum or difference of two intervals."""
    sides = [parts_of(binder, side, node) for side in (left, right)]
    months, days, micros = (
        _added(name, binder.coerce(a, types.BIGINT, node), binder.coerce(b, types.BIGINT, node))
        for a, b in zip(*sides, strict=True)
    )
    calendar = CALENDAR in (units_of(left), units_of(right))
    if not (calendar or _none(months) or (_none(days) and _none(micros))):
        raise binder.context.type_error("months and days do not add up", node)
    units = {units_of(left), units_of(right)}
    if units == {DAYS, DAYS_TO_SECONDS}:
        units = {DAYS_TO_SECONDS}
    return interval(months, days, micros, units.pop() if len(units) == 1 else MIXED)


def divided(
    binder: ExpressionBinder, bound: Expression, divisor: Expression, node: exp.Expr
) -> Expression:
    """An interval of days and less by a whole number, half up to microseconds."""
    if units_of(bound) not in (DAYS, DAYS_TO_SECONDS):
        raise binder.context.not_incremental("an interval of this kind by a number", node)
    exact = pa.decimal128(19, 0)
    number = binder.coerce(divisor, pa.decimal128(19, 0), node)
    micros = binder.coerce(_micros(binder, bound, node), exact, node)
    quotient = binder.arithmetic("/", micros, number, node)
    rounded = binder.coerce(binder.coerce(quotient, exact, node), types.BIGINT, node)
    return interval(_ZERO, _ZERO, rounded, DAYS_TO_SECONDS)


def negated(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    months, days, micros = parts_of(binder, bound, node)
    return interval(_opposite(months), _opposite(days), _opposite(micros), units_of(bound))


def chosen(
    binder: ExpressionBinder,
    branches: list[tuple[Expression, Expression]],
    otherwise: Expression,
    node: exp.Expr,
) -> Expression:
    """CASE of intervals: a CASE of each part."""
    values = [*(value for _, value in branches), otherwise]
    apart = [parts_of(binder, value, node) for value in values]
    used = [place for place in range(3) if not all(_none(parts[place]) for parts in apart)]
    made: list[Expression] = [_ZERO, _ZERO, _ZERO]
    for place in used or [1]:  # where a NULL shows
        made[place] = binder.choose(
            [(when, parts[place]) for (when, _), parts in zip(branches, apart, strict=False)],
            apart[-1][place],
            node,
        )
    units = {units_of(value) for value in values if not _is_null(value)}
    return interval(made[0], made[1], made[2], units.pop() if len(units) == 1 else MIXED)


def is_null(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    tests: list[Expression] = [
        Literal(part.value is None, types.BOOLEAN)
        if isinstance(part, Literal)
        else Call("is null", (part,), types.BOOLEAN)
        for part in parts_of(binder, bound, node)
    ]
    return reduce(lambda a, b: Call("or", (a, b), types.BOOLEAN), tests)


def as_type(
    binder: ExpressionBinder, bound: Expression, kind: pa.DataType, node: exp.Expr
) -> Expression:
    """An interval as a text, or as a whole number of its smallest unit."""
    units = units_of(bound)
    if kind == types.STRING and units in (DAYS, DAYS_TO_SECONDS, YEARS_TO_MONTHS):
        number = {DAYS: 1, YEARS_TO_MONTHS: 0}.get(units)
        value = (
            _micros(binder, bound, node) if number is None else _part(binder, bound, number, node)
        )
        return Call("interval_text", (value, Literal(units, types.STRING)), types.STRING)
    if types.is_integer(kind) and units == DAYS:
        return binder.coerce(_part(binder, bound, 1, node), kind, node)
    if types.is_integer(kind) and units == DAYS_TO_SECONDS:
        seconds = _divided_by(_micros(binder, bound, node), 1_000_000)
        return binder.coerce(seconds, kind, node)
    if kind == types.INTERVAL:
        return bound
    raise binder.context.type_error(
        f"this interval cannot become {types.ddl(kind)}", node,
        "extract(DAY FROM …) and its like give its parts",
    )  # fmt: skip


def part_of(binder: ExpressionBinder, name: str, bound: Expression, node: exp.Expr) -> Expression:
    """extract(DAY FROM interval) and its like; all parts have its sign."""
    units = units_of(bound)
    if units == YEARS_TO_MONTHS and name in ("year", "month"):
        months = _part(binder, bound, 0, node)
        if name == "year":
            return binder.coerce(_divided_by(months, 12), types.INT, node)
        return binder.coerce(_rest(months, 12), types.TINYINT, node)
    if units == DAYS and name == "day":
        return binder.coerce(_part(binder, bound, 1, node), types.INT, node)
    if units == DAYS_TO_SECONDS and name in ("day", "hour", "minute", "second"):
        micros = _micros(binder, bound, node)
        if name == "day":
            return binder.coerce(_divided_by(micros, _DAY), types.INT, node)
        if name == "second":
            return Call("seconds_of_interval", (micros,), pa.decimal128(8, 6))
        around, unit = _WITHIN_DAY[name]
        return binder.coerce(_divided_by(_rest(micros, around), unit), types.TINYINT, node)
    raise binder.context.type_error(f"this interval has no {name}", node)


def call_of(
    binder: ExpressionBinder, name: str, given: list[Expression], node: exp.Expr
) -> Expression | None:
    """A function with an interval among its arguments; None where its own rule takes one."""
    if name in _PASSED:
        return None
    if len(given) == 1:
        match name:
            case "negative":
                return negated(binder, given[0], node)
            case "positive":
                return given[0]
            case "abs":
                (size,) = measured(binder, given, node)
                less = Call("<", (size, _ZERO), types.BOOLEAN)
                return chosen(binder, [(less, negated(binder, given[0], node))], given[0], node)
            case "sign":
                (size,) = measured(binder, given, node)
                return Call("sign", (binder.coerce(size, types.DOUBLE, node),), types.DOUBLE)
            case "isnull" | "isnotnull":
                missing = is_null(binder, given[0], node)
                return missing if name == "isnull" else Call("not", (missing,), types.BOOLEAN)
            case "typeof" if units_of(given[0]) not in (CALENDAR, MIXED):
                return Literal(f"interval {units_of(given[0])}".lower(), types.STRING)
    if name == "coalesce":
        known = [
            (Call("not", (is_null(binder, value, node),), types.BOOLEAN), value)
            for value in given[:-1]
        ]
        return binder.choose(list(known), given[-1], node)
    raise binder.context.type_error(
        f"{name} of an interval", node, "take its parts, or CAST it to a number or a text, first"
    )


def _is_null(bound: Expression) -> bool:
    return isinstance(bound, Literal) and bound.value is None


def _zero(part: Expression) -> bool:
    return isinstance(part, Literal) and part.value == 0


def _none(part: Expression) -> bool:
    return isinstance(part, Literal) and not part.value


def _part(binder: ExpressionBinder, bound: Expression, place: int, node: exp.Expr) -> Expression:
    if _is_null(bound):
        return Literal(None, types.BIGINT)
    return binder.coerce(parts_of(binder, bound, node)[place], types.BIGINT, node)


def _micros(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """Days and microseconds in one."""
    if _is_null(bound):
        return Literal(None, types.BIGINT)
    _, days, micros = (
        binder.coerce(part, types.BIGINT, node) for part in parts_of(binder, bound, node)
    )
    if _zero(days):
        return micros
    whole = exactly("*", days, Literal(_DAY, types.BIGINT), types.BIGINT, False)
    return whole if _zero(micros) else exactly("+", whole, micros, types.BIGINT, False)


def _added(name: str, left: Expression, right: Expression) -> Expression:
    if _zero(right):
        return left
    if name == "-" and isinstance(right, Literal):
        right, name = _opposite(right), "+"
    if name == "+":
        return right if _zero(left) else exactly("+", left, right, types.BIGINT, False)
    return _opposite(right) if _zero(left) else Call("-", (left, right), types.BIGINT)


def _opposite(part: Expression) -> Expression:
    if isinstance(part, Literal):
        value = cast("int | None", part.value)
        return Literal(None if value is None else -value, part.type)
    return Call("negative", (part,), part.type)


def _divided_by(value: Expression, unit: int) -> Expression:
    """Cut off towards zero."""
    return Call("div", (value, Literal(unit, types.BIGINT)), types.BIGINT)


def _rest(value: Expression, unit: int) -> Expression:
    return Call("%", (value, Literal(unit, types.BIGINT)), types.BIGINT)
