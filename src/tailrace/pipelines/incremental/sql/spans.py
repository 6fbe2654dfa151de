"""What is done with intervals inside an expression: `d1 - d2 < INTERVAL '7' DAY`, and their parts.

A view cannot hold an interval. It is taken apart while it is bound, into months, days and
microseconds (see `interval_calls`), and what is computed of it are numbers and texts.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.interval_units import (
    CALENDAR,
    DAYS,
    DAYS_TO_SECONDS,
    SIZES,
    fields_of,
    of_months,
    spanning,
    widest,
)
from tailrace.pipelines.incremental.sql.interval_calls import (
    constant_interval,
    exactly,
    interval,
    parts_of,
    units_of,
)
from tailrace.pipelines.incremental.sql.literals import span_parts
from tailrace.pipelines.incremental.sql.voids import is_null as is_nothing

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

_DAY = 86_400_000_000
_ZERO = Literal(0, types.BIGINT)
_PASSED = ("sequence", "time_bucket", "concat", "string", "bigint", "int", "smallint", "tinyint")
_AROUND = {"MONTH": "YEAR", "HOUR": "DAY", "MINUTE": "HOUR"}
_MICROSECOND = Literal(Decimal("0.000001"), pa.decimal128(6, 6))


def between(
    binder: ExpressionBinder, left: Expression, right: Expression, node: exp.Expr
) -> Expression:
    """left - right of dates and times: days between dates, else microseconds. A text is of the
    type of the other side."""
    if {left.type, right.type} <= {types.DATE, types.NULL, types.STRING}:
        days = (binder.coerce(side, types.DATE, node) for side in (left, right))
        return interval(_ZERO, Call("datediff", tuple(days), types.INT), _ZERO, DAYS)
    own = types.TIMESTAMP_NTZ if types.TIMESTAMP_NTZ in (left.type, right.type) else types.TIMESTAMP
    sides = (binder.coerce(s, own, node) if s.type == types.STRING else s for s in (left, right))
    ends = (binder.coerce(side, types.TIMESTAMP, node) for side in sides)
    micros = tuple(Call("unix_micros", (end,), types.BIGINT) for end in ends)
    return interval(_ZERO, _ZERO, Call("-", micros, types.BIGINT), DAYS_TO_SECONDS)


def moved(
    binder: ExpressionBinder, name: str, text: Expression, by: Expression, node: exp.Expr
) -> Expression:
    """A text ± an interval: the text of a timestamp. Spark adds no months to one."""
    if of_months(units_of(by)):
        raise binder.context.type_error(
            f"STRING {name} INTERVAL {units_of(by)} has no meaning", node, "cast the text to a DATE"
        )
    moment = binder.coerce(text, types.TIMESTAMP, node)
    return binder.coerce(binder.arithmetic(name, moment, by, node), types.STRING, node)


def measured(
    binder: ExpressionBinder, bounds: list[Expression], node: exp.Expr
) -> list[Expression]:
    """Intervals as whole numbers in their order: all of them in months, days or microseconds."""
    if any(b.type not in (types.INTERVAL, types.NULL) for b in bounds):
        raise binder.context.type_error("an interval is compared with intervals alone", node)
    units = _alike(binder, bounds, node, "months and days are not compared")
    if units == CALENDAR:
        raise binder.context.type_error(
            "what make_interval gives has no order", node, "use make_dt_interval"
        )
    return [_number(binder, bound, units, node) for bound in bounds]


def joined(
    binder: ExpressionBinder, name: str, left: Expression, right: Expression, node: exp.Expr
) -> Expression:
    """The sum or difference of two intervals."""
    sides = [parts_of(binder, side, node) for side in (left, right)]
    months, days, micros = (
        _added(name, binder.coerce(a, types.BIGINT, node), binder.coerce(b, types.BIGINT, node))
        for a, b in zip(*sides, strict=True)
    )
    units = _alike(binder, [left, right], node, "months and days do not add up")
    return interval(months, days, micros, units)


def divided(
    binder: ExpressionBinder, bound: Expression, divisor: Expression, node: exp.Expr
) -> Expression:
    """An interval by a whole number, half up to months or microseconds."""
    units = widest(units_of(bound))
    if units == CALENDAR:
        raise binder.context.not_incremental("an interval of this kind by a number", node)
    number = _exact(binder, divisor, node)
    whole = _exact(binder, _number(binder, bound, units, node), node)
    quotient = _exact(binder, binder.arithmetic("/", whole, number, node), node)
    return _made(binder.coerce(quotient, types.BIGINT, node), units)


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
    units = _alike(binder, values, node, "months and days do not fit together")
    for place in used or [0 if of_months(units) else 1]:  # where a NULL shows
        made[place] = binder.choose(
            [(when, parts[place]) for (when, _), parts in zip(branches, apart, strict=False)],
            apart[-1][place],
            node,
        )
    return interval(made[0], made[1], made[2], units)


def is_null(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    tests: list[Expression] = [
        Literal(part.value is None, types.BOOLEAN)
        if isinstance(part, Literal)
        else Call("is null", (part,), types.BOOLEAN)
        for part in parts_of(binder, bound, node)
    ]
    return reduce(lambda a, b: Call("or", (a, b), types.BOOLEAN), tests)


def as_type(
    binder: ExpressionBinder,
    bound: Expression,
    kind: pa.DataType,
    node: exp.Expr,
    *,
    trying: bool = False,
) -> Expression:
    """An interval as a text, or as a number of its smallest unit. `trying`: NULL where that
    does not fit."""
    units = units_of(bound)
    if kind == types.INTERVAL:
        return bound
    if kind == types.STRING and units != CALENDAR:
        number = _number(binder, bound, units, node)
        return Call("interval_text", (number, Literal(units, types.STRING)), types.STRING)
    if not (types.is_integer(kind) or types.is_decimal(kind)) or units == CALENDAR:
        raise binder.context.type_error(
            f"this interval cannot become {types.ddl(kind)}", node,
            "extract(DAY FROM …) and its like give its parts",
        )  # fmt: skip
    last = fields_of(units)[-1]
    number = _number(binder, bound, units, node)
    if types.is_decimal(kind) and last == "SECOND":
        number = binder.arithmetic("*", _exact(binder, number, node), _MICROSECOND, node)
    elif units != DAYS and SIZES[last] > 1:
        number = _divided_by(number, SIZES[last])
    return Call("try_cast", (number,), kind) if trying else binder.coerce(number, kind, node)


def has_clock(bound: Expression, micros: Expression) -> bool:
    """Whether a date and this interval are a timestamp; by the type, but for make_interval."""
    if units_of(bound) == CALENDAR:
        return not _none(micros)
    return not of_months(units_of(bound)) and units_of(bound) != DAYS


def from_type(
    binder: ExpressionBinder, bound: Expression, units: str, node: exp.Expr
) -> Expression:
    """CAST(… AS INTERVAL DAY) and its like: of an interval without its smaller units, a whole
    number of the last unit, or a constant text."""
    if bound.type == types.INTERVAL:
        if CALENDAR in (units, units_of(bound)) or of_months(units) != of_months(units_of(bound)):
            raise binder.context.type_error("an interval of another kind", node)
        size = SIZES[fields_of(units)[-1]]
        number = _number(binder, bound, widest(units), node)
        return _made(_times(_divided_by(number, size), size), units)
    if types.is_integer(bound.type) or bound.type == types.NULL:
        whole = binder.coerce(bound, types.BIGINT, node)
        number = _times(whole, SIZES[fields_of(units)[-1]])
        return _made(binder.coerce(number, types.INT, node) if of_months(units) else number, units)
    if isinstance(bound, Literal) and bound.type == types.STRING:
        months, days, micros, _ = span_parts(binder.context, str(bound.value), units, node)
        return constant_interval(months, days, micros, units)
    raise binder.context.not_incremental(
        f"{types.ddl(bound.type)} as INTERVAL {units}", node, "cast a whole number, or a constant"
    )


def part_of(binder: ExpressionBinder, name: str, bound: Expression, node: exp.Expr) -> Expression:
    """extract(DAY FROM interval) and its like; all parts have its sign."""
    units, field = units_of(bound), name.upper()
    if field not in fields_of(units):
        raise binder.context.type_error(f"this interval has no {name}", node)
    if units == DAYS:
        return binder.coerce(_part(binder, bound, 1, node), types.INT, node)
    number = _number(binder, bound, widest(units), node)
    if name == "second":
        return Call("seconds_of_interval", (number,), pa.decimal128(8, 6))
    if name in ("year", "day"):
        return binder.coerce(_divided_by(number, SIZES[field]), types.INT, node)
    rest = _rest(number, SIZES[_AROUND[field]])
    return binder.coerce(_divided_by(rest, SIZES[field]), types.TINYINT, node)


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
            case "typeof" if units_of(given[0]) != CALENDAR:
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


def _alike(binder: ExpressionBinder, bounds: list[Expression], node: exp.Expr, said: str) -> str:
    """The units of what is any of some intervals; an error that says `said` for two kinds."""
    units = spanning(units_of(bound) for bound in bounds if not is_nothing(bound)) or ""
    if not units and not all(map(is_nothing, bounds)):
        raise binder.context.type_error(said, node)
    return units or DAYS


def _zero(part: Expression) -> bool:
    return isinstance(part, Literal) and part.value == 0


def _none(part: Expression) -> bool:
    return isinstance(part, Literal) and not part.value


def _part(binder: ExpressionBinder, bound: Expression, place: int, node: exp.Expr) -> Expression:
    if is_nothing(bound):
        return Literal(None, types.BIGINT)
    return binder.coerce(parts_of(binder, bound, node)[place], types.BIGINT, node)


def _number(binder: ExpressionBinder, bound: Expression, units: str, node: exp.Expr) -> Expression:
    """An interval as a number of months, of days if those are the units, else of microseconds."""
    if of_months(units):
        return _part(binder, bound, 0, node)
    return _part(binder, bound, 1, node) if units == DAYS else _micros(binder, bound, node)


def _made(number: Expression, units: str) -> Expression:
    """The interval of so many months or microseconds."""
    if of_months(units):
        return interval(number, _ZERO, _ZERO, units)
    if units == DAYS:
        return interval(_ZERO, _divided_by(number, _DAY), _ZERO, units)
    return interval(_ZERO, _ZERO, number, units)


def _micros(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """Days and microseconds in one."""
    if is_nothing(bound):
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


def _exact(binder: ExpressionBinder, number: Expression, node: exp.Expr) -> Expression:
    return binder.coerce(number, pa.decimal128(19, 0), node)


def _times(number: Expression, unit: int) -> Expression:
    return exactly("*", number, Literal(unit, types.BIGINT), types.BIGINT, False)


def _divided_by(value: Expression, unit: int) -> Expression:
    """Cut off towards zero."""
    if isinstance(value, Literal) and isinstance(value.value, int):
        whole = abs(value.value) // unit
        return Literal(whole if value.value >= 0 else -whole, types.BIGINT)
    return Call("div", (value, Literal(unit, types.BIGINT)), types.BIGINT)


def _rest(value: Expression, unit: int) -> Expression:
    return Call("%", (value, Literal(unit, types.BIGINT)), types.BIGINT)
