"""Times of day in SQL: make_time, to_time, time_diff … and their arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.evaluate import folded
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.interval_units import CALENDAR, fields_of, of_months
from tailrace.pipelines.incremental.library import clock_times
from tailrace.pipelines.incremental.sql.interval_calls import interval, parts_of, signed, units_of
from tailrace.pipelines.incremental.sql.typed_calls import TYPED, pattern, wants

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.calls import Rule
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

_ZERO = Literal(0, types.INT)
PARTS = {"hour": types.INT, "minute": types.INT, "second": types.INT}
CLOCK_COLUMNS = ("current_time", "localtime")


def _time(binder: ExpressionBinder, value: Expression, node: exp.Expr) -> Expression:
    """A value that must be a time of day; a text or a timestamp becomes one."""
    if types.is_time(value.type):
        return value
    if value.type not in (types.STRING, types.TIMESTAMP, types.TIMESTAMP_NTZ, types.NULL):
        raise binder.context.type_error(f"{types.ddl(value.type)} is no time of day", node)
    return binder.coerce(value, types.TIME, node)


def _own_time(binder: ExpressionBinder, value: Expression, node: exp.Expr) -> Expression:
    if value.type != types.NULL and not types.is_time(value.type):
        raise binder.context.type_error(
            f"{types.ddl(value.type)} is no time of day", node, "cast it to TIME"
        )
    return _time(binder, value, node)


def _make_time(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 3, 3)
    parts = [binder.coerce(part, types.INT, node) for part in given[:2]]
    seconds = binder.coerce(given[2], pa.decimal128(16, 6), node)
    return Call("make_time", (*parts, seconds), types.TIME)


def _to_time(forgiving: bool) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 2)
        if any(part.type not in (types.STRING, types.NULL) for part in given):
            raise binder.context.type_error("to_time reads texts", node, "use CAST(… AS TIME)")
        text = binder.coerce(given[0], types.STRING, node)
        if len(given) == 1:
            if forgiving:
                return Call("try_cast", (text,), types.TIME)
            return binder.coerce(text, types.TIME, node)
        form = given[1] if forgiving else pattern(binder, given[1], node)
        form = binder.coerce(form, types.STRING, node)
        name = "try_parse_time" if forgiving else "parse_time"
        return Call(name, (text, form), types.TIME)

    return rule


def _unit(binder: ExpressionBinder, given: Expression, node: exp.Expr) -> Expression:
    unit = binder.coerce(given, types.STRING, node)
    if isinstance(unit, Literal) and unit.value is not None:
        try:
            clock_times.unit_of(str(unit.value))
        except EvaluationError as error:
            raise binder.context.type_error(error.message, node, error.hint) from error
    return unit


def _time_diff(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 3, 3)
    sides = (binder.coerce(_time(binder, side, node), types.TIME, node) for side in given[1:])
    return Call("time_diff", (_unit(binder, given[0], node), *sides), types.BIGINT)


def _time_trunc(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    value = _time(binder, given[1], node)
    return Call("time_trunc", (_unit(binder, given[0], node), value), value.type)


def _time_to(name: str, kind: pa.DataType) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        return Call(name, (_own_time(binder, given[0], node),), kind)

    return rule


def _time_from(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        value = given[0]
        if value.type == types.NULL:
            return Literal(None, types.TIME)
        if name != "time_from_seconds" and not types.is_integer(value.type):
            raise binder.context.type_error(
                f"{name} takes whole numbers, not {types.ddl(value.type)}", node
            )
        value = binder.number(value, node)
        if types.is_integer(value.type):
            value = binder.coerce(value, types.BIGINT, node)
        return Call(name, (value,), types.TIME)

    return rule


def _cast(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    return binder.coerce(given[0], types.TIME, node)


def _timestamp_of(name: str) -> Rule:
    """make_timestamp(date, time[, zone]) beside the form with six numbers."""
    plain = TYPED[name]
    kind = types.TIMESTAMP_NTZ if name.endswith("_ntz") else types.TIMESTAMP
    least = 1 if name in ("make_timestamp", "try_make_timestamp") else 2

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        most = 2 if kind == types.TIMESTAMP_NTZ else 3
        if not least <= len(given) <= most:
            return plain(binder, given, node)
        if given[0].type not in (types.DATE, types.NULL):
            raise binder.context.type_error(f"{name} takes a DATE and a TIME, or six numbers", node)
        day = binder.coerce(given[0], types.DATE, node)
        midnight = Literal(None, types.TIME) if given[1:] else binder.coerce(
            Literal("00:00", types.STRING), types.TIME, node
        )  # fmt: skip
        moment = _own_time(binder, given[1], node) if given[1:] else midnight
        days = Call("unix_date", (day,), types.INT)
        made = Call("moment_of_time", (moment, days), kind)
        if len(given) < 3:
            return made
        zone = binder.coerce(given[2], types.STRING, node)
        return Call("to_utc_timestamp", (made, zone), kind)

    return rule


# What the rest of the binder asks ----------------------------------------------------------------


def part_of_time(
    binder: ExpressionBinder, name: str, value: Expression, node: exp.Expr, *, exact: bool = False
) -> Expression:
    """hour, minute or second of a time of day; `exact`: seconds with their digits."""
    if name not in PARTS:
        raise binder.context.type_error(f"{types.ddl(value.type)} has no {name}", node)
    if exact and name == "second":
        digits = types.digits_of(value.type)
        return Call("seconds_of_time", (value,), pa.decimal128(2 + digits, digits))
    return Call(f"{name}_of_time", (value,), types.INT)


def formatted_time(
    binder: ExpressionBinder, value: Expression, form: Expression, node: exp.Expr
) -> Expression:
    if isinstance(form, Literal) and form.value is not None:
        try:
            clock_times.check_written(str(form.value))
        except EvaluationError as error:
            raise binder.context.type_error(error.message, node, error.hint) from error
    return Call("format_of_time", (value, form), types.STRING)


def time_arithmetic(
    binder: ExpressionBinder, name: str, left: Expression, right: Expression, node: exp.Expr
) -> Expression:
    """A time of day ± an interval of days and less, or the interval between two."""
    if name == "-" and types.INTERVAL not in (left.type, right.type):
        sides = (binder.coerce(_time(binder, s, node), types.TIME, node) for s in (right, left))
        unit = Literal("MICROSECOND", types.STRING)
        return interval(
            _ZERO, _ZERO, Call("time_diff", (unit, *sides), types.BIGINT), "HOUR TO SECOND"
        )
    if name == "+" and not types.is_time(left.type):
        left, right = right, left
    if right.type == types.NULL and name == "+":
        return Literal(None, left.type)
    if name not in ("+", "-") or right.type != types.INTERVAL or not types.is_time(left.type):
        raise binder.context.type_error(
            f"{types.ddl(left.type)} {name} {types.ddl(right.type)} has no meaning", node
        )
    _, days, micros = parts_of(binder, right, node)
    units = units_of(right)
    if units == CALENDAR or of_months(units):
        raise binder.context.type_error(
            "a time of day takes intervals of days and less", node, "use make_dt_interval"
        )
    sign = 1 if name == "+" else -1
    digits = max(types.digits_of(left.type), 6 if "SECOND" in fields_of(units) else 0)
    parts = (signed(sign, days, types.INT), signed(sign, micros, types.BIGINT))
    return Call("add_to_time", (left, *parts), types.TIMES[digits])


def clock_time(binder: ExpressionBinder, now: Expression, node: exp.Expr) -> Expression:
    """current_time([digits]), localtime([digits])."""
    given = node.this if isinstance(node, exp.Func) else None
    digits = folded(binder.bind(given)) if isinstance(given, exp.Expr) else Literal(6, types.INT)
    kind = types.TIMES.get(digits.value) if isinstance(digits, Literal) else None  # type: ignore[call-overload]
    if kind is None:
        raise binder.context.type_error("a time of day has 0, 3 or 6 digits of a second", node)
    return Call("cast", (now,), kind)


CLOCK_TIMES: dict[str, Rule] = {
    "make_time": _make_time, "to_time": _to_time(False), "try_to_time": _to_time(True),
    "time": _cast, "time_diff": _time_diff, "time_trunc": _time_trunc,
    "time_to_seconds": _time_to("time_to_seconds", pa.decimal128(14, 6)),
    "time_to_millis": _time_to("time_to_millis", types.BIGINT),
    "time_to_micros": _time_to("time_to_micros", types.BIGINT),
    **{name: _time_from(name) for name in ("time_from_seconds", "time_from_millis", "time_from_micros")},
    **{
        prefix + name: _timestamp_of(prefix + name)
        for prefix in ("", "try_")
        for name in ("make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz")
    },
}  # fmt: skip
