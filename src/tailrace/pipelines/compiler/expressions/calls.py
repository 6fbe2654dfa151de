"""Scalar functions that Arrow computes: names, argument types, result types, as in Spark.

What is not listed here is analysed and computed by Spark (see `spark_calls`); `explain` says so.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.binding.stars import written_out
from tailrace.pipelines.compiler.expressions.collations import COLLATIONS, collation_name
from tailrace.pipelines.compiler.expressions.functions import bind_own, own_function
from tailrace.pipelines.compiler.expressions.sketch_calls import in_place
from tailrace.pipelines.compiler.expressions.spark_calls import (
    bind_spark_call,
    by_spark,
    call_by_spark,
)
from tailrace.pipelines.compiler.expressions.typed_calls import TYPED, constant
from tailrace.pipelines.compiler.expressions.voids import is_null, null_result, typed_nulls
from tailrace.pipelines.compiler.syntax.arities import takes
from tailrace.pipelines.compiler.syntax.parse import is_unsigned
from tailrace.pipelines.compiler.syntax.refused import REFUSED
from tailrace.pipelines.engine.expression import Call, Expression, Literal
from tailrace.pipelines.errors import ViewError
from tailrace.pipelines.spark.catalyst.client import functions
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

Rule: TypeAlias = "Callable[[ExpressionBinder, list[Expression], exp.Expr], Expression]"


def bind_call(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """The call of a scalar function."""
    if isinstance(node, exp.Any | exp.All):
        raise unknown_function(binder.context, node.key, node)
    if (own := own_function(binder.context, node)) is not None:
        return bind_own(binder, own, node)
    node = written_out(binder, node)
    binder.context.only(
        node, *(name for name, value in node.args.items() if _understood(type(node), name, value))
    )
    name, arguments = name_and_arguments(node)
    if name in REFUSED or name == "identifier":
        raise unknown_function(binder.context, name, node)
    if name in UNITS_FIRST:
        return UNITS_FIRST[name](binder, arguments, node)
    rule = RULES.get(name)
    if rule is None:
        return bind_spark_call(binder, name, arguments, node)
    written = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if not takes(written, len(arguments)):
        raise binder.context.type_error(f"wrong number of arguments for {written}", node)
    given = typed_nulls(binder, name, [binder.bind(a) for a in arguments], node)
    if any(value.type in _SPARKS_OWN or types.is_time(value.type) for value in given):
        return call_by_spark(binder, name, given, node)
    return null_result(name, given) or rule(binder, given, node)


# Types that Arrow's functions do not take.
_SPARKS_OWN = (types.INTERVAL, types.GEOGRAPHY, types.VARIANT)


def unknown_function(context: Context, name: str, node: exp.Expr) -> ViewError:
    """The error for a function that a view does not compute."""
    if name in REFUSED:
        return context.not_incremental(f"{name} is not computed in views", node, REFUSED[name])
    if name in ("any", "all"):
        return context.not_incremental(
            f"{name.upper()} (SELECT …) is not of Spark's SQL",
            node,
            "use EXISTS, or max() or min()",
        )
    known = [*functions(), *known_functions(), *context.functions]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return context.name_error(
        f"unknown function {name!r}", node, f"{hint}docs/reference/view-sql.md says what works"
    )


def known_functions() -> list[str]:
    """The names of the functions that Arrow computes; all others are Spark's."""
    inner = {"parse_unix", "months_between_exact", "tumble", "week", "week_of_year",
             "day_of_month", "day_of_week", "day_of_year"}  # fmt: skip
    own = {*RULES, *UNITS_FIRST}
    names = {*own, *(name for name, meant in ALIASES.items() if meant in own)} - inner
    return sorted(name for name in names if name[0].isalpha())


# Marks of the parser that change nothing here.
_HARMLESS = {
    "safe", "coalesce", "big_int", "flatten", "null_if_pos_overflow", "nulls_excluded", "charset",
    "unit", "is_left", "ignore_nulls",
}  # fmt: skip
_FORMATTED: dict[type[exp.Expr], str] = {exp.TsOrDsToDate: "format", exp.Date: "expressions"}


def _understood(kind: type[exp.Expr], name: str, value: object) -> bool:
    """Whether an argument of a function is one that the rules read."""
    if _FORMATTED.get(kind) == name:
        return False
    if isinstance(value, list):
        return all(isinstance(part, exp.Expr) for part in value)
    if isinstance(value, exp.Expr):
        return True
    return (
        name in _HARMLESS
        or (kind is exp.Anonymous and name == "this")
        or (kind is exp.Trim and name == "position")
    )


def name_and_arguments(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """Spark's name of a function node, and its arguments in Spark's order."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        given = list(node.expressions)
        if name in ("ltrim", "rtrim") and len(given) == 2:
            given.reverse()  # ltrim(letters, text)
        if any(isinstance(argument, exp.Kwarg) for argument in given):
            given = in_place(name, given)
        return ALIASES.get(name, name), given
    special = SPECIAL.get(type(node))
    if special is not None:
        return special(node)
    name = node.sql_name().lower() if isinstance(node, exp.Func) else node.key
    arguments: list[exp.Expr] = []
    for key in node.arg_types:
        value = node.args.get(key)
        if isinstance(value, list):
            arguments.extend(part for part in value if isinstance(part, exp.Expr))
        elif isinstance(value, exp.Expr):
            arguments.append(value)
    name = RENAMED.get(name, name)
    return ALIASES.get(name, name), arguments


def _unwrapped(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _part(name: str) -> Callable[[exp.Expr], tuple[str, list[exp.Expr]]]:
    return lambda node: (name, [_unwrapped(node.this)])


def _string(text: str) -> exp.Expr:
    return exp.Literal.string(text)


def _named(node: exp.Expr) -> list[exp.Expr]:
    """Names and values of a struct in turn; a value without a name is `col` and its place."""
    parts: list[exp.Expr] = []
    for place, part in enumerate(node.expressions, 1):
        if isinstance(part, exp.PropertyEQ):
            parts += [_string(part.this.name), part.expression]
        elif isinstance(part, exp.Alias):
            parts += [_string(part.alias), part.this]
        else:
            named = part.name if isinstance(part, exp.Column | exp.Dot) else ""
            parts += [_string(named or f"col{place}"), part]
    return parts


def _row(node: exp.Expr) -> list[exp.Expr]:
    """`(a, b)`, a struct; where it is only compared its names do not count, and two may be
    alike."""
    if not isinstance(node.parent, exp.Predicate):
        return _named(node)
    parts: list[exp.Expr] = []
    for place, part in enumerate(node.expressions, 1):
        parts += [_string(f"col{place}"), part]
    return parts


SPECIAL: dict[type, Callable[[exp.Expr], tuple[str, list[exp.Expr]]]] = {
    exp.Year: _part("year"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfWeek: _part("dayofweek"),
    exp.DayOfYear: _part("dayofyear"),
    exp.Quarter: _part("quarter"),
    exp.Week: _part("weekofyear"),
    exp.WeekOfYear: _part("weekofyear"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.Extract: lambda node: ("date_part", [node.this, node.expression]),
    exp.TimestampDiff: lambda node: (
        "timestampdiff",
        [exp.var(node.args["unit"].name), node.expression, node.this],
    ),
    exp.Struct: lambda node: ("named_struct", _named(node)),
    exp.Tuple: lambda node: ("named_struct", _row(node)),
    exp.Collate: lambda node: ("collate", [node.this, _string(collation_name(node.expression))]),
    exp.DPipe: lambda node: ("concat", [node.this, node.expression]),
    exp.Concat: lambda node: ("concat", list(node.expressions)),
    exp.Like: lambda node: ("like", [node.this, node.expression]),
    exp.ILike: lambda node: ("ilike", [node.this, node.expression]),
    exp.RegexpLike: lambda node: ("rlike", [node.this, node.expression]),
    exp.Trim: lambda node: (
        {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim"),
        [part for part in (node.this, node.expression) if part],
    ),
    exp.Pad: lambda node: (
        "lpad" if node.args.get("is_left") else "rpad",
        [part for part in (node.this, node.expression, node.args.get("fill_pattern")) if part],
    ),
    exp.Initcap: lambda node: ("initcap", [node.this]),
    exp.StrPosition: lambda node: (
        "locate",
        [part for part in (node.args["substr"], node.this, node.args.get("position")) if part],
    ),
    exp.BitwiseAnd: lambda node: ("&", [node.this, node.expression]),
    exp.BitwiseOr: lambda node: ("|", [node.this, node.expression]),
    exp.BitwiseXor: lambda node: ("^", [node.this, node.expression]),
    exp.BitwiseNot: lambda node: ("~", [node.this]),
    exp.BitwiseLeftShift: lambda node: ("shiftleft", [node.this, node.expression]),
    exp.BitwiseRightShift: lambda node: (
        "shiftrightunsigned" if is_unsigned(node) else "shiftright",
        [node.this, node.expression],
    ),
    exp.Overlay: lambda node: (
        "overlay",
        [node.args[p] for p in ("this", "expression", "from_", "for_") if node.args.get(p)],
    ),
}
RENAMED = {"str_position": "locate", "contains": "contains", "string": "string"}
ALIASES = {
    "tumble": "window", "ceiling": "ceil", "char_length": "length", "character_length": "length",
    "len": "length", "power": "pow", "ifnull": "coalesce", "nvl": "coalesce",
    "substr": "substring", "ucase": "upper", "lcase": "lower", "char": "chr", "sha": "sha1",
    "printf": "format_string", "position": "locate", "signum": "sign",
    "regexp": "rlike", "getbit": "bit_get", "mod": "%", "dayofmonth": "day",
    "day_of_month": "day", "day_of_week": "dayofweek", "day_of_year": "dayofyear",
    "week_of_year": "weekofyear", "week": "weekofyear", "datepart": "date_part",
    "date_diff": "datediff", "dateadd": "date_add",
}  # fmt: skip


def _fixed(kind: pa.DataType, *arguments: pa.DataType, optional: int = 0) -> Rule:
    """A function of these argument types with this result."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        if not len(arguments) - optional <= len(given) <= len(arguments):
            raise binder.context.type_error("wrong number of arguments", node)
        coerced = [
            binder.coerce(value, wanted, node)
            for value, wanted in zip(given, arguments, strict=False)
        ]
        name, _ = name_and_arguments(node)
        return Call(name, tuple(coerced), kind)

    return rule


def _of_text_or_bytes(*arguments: pa.DataType | None, optional: int = 0) -> Rule:
    """A function of a text, or of bytes, that gives the like. None: an argument of that type,
    bytes 00 where it is missing."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        kind = types.BINARY if given and given[0].type == types.BINARY else types.STRING
        wanted = (kind, *(kind if argument is None else argument for argument in arguments))
        if kind == types.BINARY and None in arguments and len(given) == len(wanted) - 1:
            given = [*given, Literal(b"\0", types.BINARY)]
        return _fixed(kind, *wanted, optional=optional)(binder, given, node)

    return rule


def _of_text(*arguments: pa.DataType) -> Rule:
    """A function of a text; of bytes it is Spark's, and a text too."""
    plain = _fixed(types.STRING, types.STRING, *arguments)

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        if given and given[0].type == types.BINARY:
            return call_by_spark(binder, name_and_arguments(node)[0], given, node)
        return plain(binder, given, node)

    return rule


def _any_second(kind: pa.DataType, first: pa.DataType) -> Rule:
    """A function of a value of type `first` and one of any type."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        if len(given) != 2:
            raise binder.context.type_error("wrong number of arguments", node)
        name, _ = name_and_arguments(node)
        return Call(name, (binder.coerce(given[0], first, node), given[1]), kind)

    return rule


def _same_type(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    given, kind = binder.alike(given, node)
    binder.context.comparable(kind, node)
    return Call(name_and_arguments(node)[0], tuple(given), kind)


def _coalesce(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    given, kind = binder.alike(given, node)
    return given[0] if len(given) == 1 else Call("coalesce", tuple(given), kind)


def _nullif(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    equal = binder.compare("=", given[0], given[1], node)
    return binder.choose([(equal, Literal(None, given[0].type))], given[0], node)


def _nvl2(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    known = Call("is not null", (given[0],), types.BOOLEAN)
    return binder.choose([(known, given[1])], given[2], node)


def _abs(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    value = binder.number(given[0], node, texts=True)
    return Call("abs", (value,), value.type)


def _round(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    value = binder.number(given[0], node, texts=True)
    digits = given[1] if len(given) > 1 else Literal(0, types.INT)
    places = 0 if is_null(digits) else constant(binder, digits, node, "the number of digits")
    if not isinstance(places, int):
        raise binder.context.type_error("the number of digits must be a whole number", node)
    kind = value.type
    if types.is_decimal(kind):
        scale = min(max(places, 0), kind.scale)
        kind = types.bounded_decimal(kind.precision - kind.scale + scale + 1, scale)
    if is_null(digits):
        return Literal(None, kind)
    return Call(name_and_arguments(node)[0], (value, digits), kind)


def _floor(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if len(given) == 2:
        return call_by_spark(binder, name_and_arguments(node)[0], given, node)
    value = binder.number(given[0], node, texts=True)
    kind = types.BIGINT
    if types.is_decimal(value.type):
        kind = types.bounded_decimal(value.type.precision - value.type.scale + 1, 0)
    return Call(name_and_arguments(node)[0], (value,), kind)


def _null_test(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        return Call(name, (given[0],), types.BOOLEAN)

    return rule


def _part_of_time(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    name, _ = name_and_arguments(node)
    value = given[0]
    if value.type == types.STRING:
        value = binder.coerce(value, types.TIMESTAMP, node)
    if not types.is_temporal(value.type):
        raise binder.context.type_error(f"{types.ddl(value.type)} has no {name}", node)
    return Call(name, (value,), types.INT)


def _date_trunc(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    unit = _unit(binder, given[0], node)
    value = binder.coerce(given[1], types.TIMESTAMP, node)
    return Call("date_trunc", (unit, value), types.TIMESTAMP)


_TRUNCATED = (
    "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DD", "WEEK", "MONTH", "MON",
    "MM", "QUARTER", "YEAR", "YYYY", "YY",
)  # fmt: skip


def _unit(binder: ExpressionBinder, given: Expression, node: exp.Expr) -> Literal:
    """The unit of a truncation, which must be a known constant."""
    if not isinstance(given, Literal):
        raise binder.context.type_error("the unit must be a constant", node)
    name = str(given.value).upper()
    if name not in _TRUNCATED:
        raise binder.context.type_error(f"unknown unit {name!r}", node)
    return Literal(name, types.STRING)


def _trunc(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    unit = _unit(binder, given[1], node)
    return Call("trunc", (binder.coerce(given[0], types.DATE, node), unit), types.DATE)


_TIME_PARTS = (
    "year", "month", "day", "dayofweek", "dayofyear", "quarter", "weekofyear", "hour", "minute",
    "second",
)  # fmt: skip


def _window(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """window(time, '10 minutes'): the tumbling window a row falls into. (A GROUP BY gives the
    others their meaning before they get here.)"""
    if len(given) != 2 or not isinstance(given[1], Literal):
        raise binder.context.not_incremental(
            "windows that overlap belong into GROUP BY", node, "GROUP BY window(t, size, slide)"
        )
    value = given[0]
    if value.type not in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        value = binder.coerce(value, types.TIMESTAMP, node)
    micros = duration(str(given[1].value))
    if micros is None:
        raise binder.context.type_error(f"{given[1].value!r} is no duration", node)
    kind = pa.struct([("start", value.type), ("end", value.type)])
    return Call("window", (value, Literal(micros, types.BIGINT)), kind)


def _named_struct(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """struct(a, b AS c), named_struct('a', a, 'c', b): one value with named fields."""
    constants = [name.value for name in given[::2] if isinstance(name, Literal)]
    names = [name for name in constants if isinstance(name, str)]
    if not given or len(given) % 2 or len(names) * 2 != len(given):
        raise binder.context.type_error("a struct needs constant names, each with a value", node)
    if len({name.lower() for name in names}) < len(names):
        raise binder.context.type_error(
            f"a struct with two fields of one name: {', '.join(names)}", node
        )
    kind = pa.struct([(name, value.type) for name, value in zip(names, given[1::2], strict=True)])
    return Call("named_struct", tuple(given), kind)


Raw: TypeAlias = "Callable[[ExpressionBinder, list[exp.Expr], exp.Expr], Expression]"


def _named_unit(binder: ExpressionBinder, raw: exp.Expr, node: exp.Expr) -> str:
    """The unit of timestampdiff(HOUR, …), a word or a text."""
    name = raw.name.upper().removesuffix("S") if raw.name else ""
    name = {"DD": "DAY", "DAYOFYEAR": "DAY", "MM": "MONTH", "YYYY": "YEAR"}.get(name, name)
    if name not in (*(span.upper() for span in _SPANS), "MONTH", "QUARTER", "YEAR"):
        raise binder.context.type_error(f"unknown unit {raw.sql('spark')}", node)
    return name


def _timestampdiff(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    """timestampdiff(unit, start, end); datediff(end, start) counts days."""
    if len(raw) == 2:
        end, start = (binder.coerce(binder.bind(side), types.DATE, node) for side in raw)
        return Call("datediff", (end, start), types.INT)
    if len(raw) != 3:
        raise binder.context.type_error("wrong number of arguments", node)
    unit = Literal(_named_unit(binder, raw[0], node), types.STRING)
    sides = (binder.coerce(binder.bind(side), types.TIMESTAMP, node) for side in raw[1:])
    return Call("timestampdiff", (unit, *sides), types.BIGINT)


def _timestampadd(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    """timestampadd(unit, count, time); date_add(date, days)."""
    if len(raw) == 2:
        day, count = binder.coerce(binder.bind(raw[0]), types.DATE, node), binder.bind(raw[1])
        if count.type == types.INTERVAL:
            raise binder.context.type_error("date_add counts days", node, "d + INTERVAL '1' DAY")
        return Call("date_add", (day, binder.coerce(count, types.INT, node)), types.DATE)
    if len(raw) != 3:
        raise binder.context.type_error("wrong number of arguments", node)
    unit = Literal(_named_unit(binder, raw[0], node), types.STRING)
    count = binder.coerce(binder.bind(raw[1]), types.INT, node)
    moment = binder.bind(raw[2])
    if moment.type != types.TIMESTAMP_NTZ:
        moment = binder.coerce(moment, types.TIMESTAMP, node)
    return Call("timestampadd", (unit, count, moment), moment.type)


def _date_part(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    """date_part('year', t), extract(year FROM t)."""
    if len(raw) != 2:
        raise binder.context.type_error("wrong number of arguments", node)
    if isinstance(raw[0], exp.Null):
        return Literal(None, types.DOUBLE)
    name = raw[0].name.lower()
    words = {"years": "year", "yr": "year", "y": "year", "mon": "month", "months": "month",
             "days": "day", "d": "day", "dow": "dayofweek", "dow_iso": "dayofweek_iso",
             "s": "second", "sec": "second", "seconds": "second", "secs": "second",
             "doy": "dayofyear", "qtr": "quarter", "w": "weekofyear", "weeks": "weekofyear",
             "week": "weekofyear", "hours": "hour", "h": "hour", "hr": "hour", "hrs": "hour", "minutes": "minute",
             "min": "minute", "m": "minute", "mins": "minute"}  # fmt: skip
    name = words.get(name, name)
    if name not in (*_TIME_PARTS, "yearofweek", "dayofweek_iso"):
        raise binder.context.not_incremental(f"the part {raw[0].name!r} of a time", node)
    value = binder.bind(raw[1])
    if value.type == types.STRING:
        value = binder.coerce(value, types.TIMESTAMP, node)
    if value.type == types.INTERVAL or types.is_time(value.type):
        return by_spark(binder, f"date_part('{name}', {{0}})", [value], node)
    if name == "second":
        return Call("second_and_parts", (value,), pa.decimal128(8, 6))
    return Call(name, (value,), types.INT)


UNITS_FIRST: dict[str, Raw] = {
    "timestampdiff": _timestampdiff, "datediff": _timestampdiff, "date_add": _timestampadd,
    "timestampadd": _timestampadd, "date_part": _date_part, "extract": _date_part,
}  # fmt: skip
_SPANS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip


def duration(text: str) -> int | None:
    """Microseconds of `10 minutes`, `1 hour 30 minutes`, with or without `interval`."""
    words = text.lower().removeprefix("interval").split()
    if not words or len(words) % 2:
        return None
    total = 0
    for amount, unit in zip(words[::2], words[1::2], strict=True):
        span = _SPANS.get(unit.removesuffix("s"))
        if span is None or not amount.isdigit():
            return None
        total += int(amount) * span
    return total or None


_TESTS = ("startswith", "endswith", "contains", "like")
# What Arrow computes. Everything else is Spark's.
RULES: dict[str, Rule] = {
    "coalesce": _coalesce,
    "nullif": _nullif,
    "nvl2": _nvl2,
    **dict.fromkeys(("least", "greatest"), _same_type),
    "abs": _abs,
    "round": _round,
    "floor": _floor,
    "ceil": _floor,
    "isnull": _null_test("is null"),
    "isnotnull": _null_test("is not null"),
    "isnan": _fixed(types.BOOLEAN, types.DOUBLE),
    **{name: _fixed(types.STRING, types.STRING) for name in ("upper", "lower")},
    **{
        name: _fixed(types.STRING, types.STRING, types.STRING, optional=1)
        for name in ("trim", "ltrim", "rtrim")
    },
    "substring": _of_text_or_bytes(types.INT, types.INT, optional=1),
    "left": _of_text_or_bytes(types.INT),
    "right": _of_text(types.INT),
    "replace": _fixed(types.STRING, types.STRING, types.STRING, types.STRING, optional=1),
    "split_part": _fixed(types.STRING, types.STRING, types.STRING, types.INT),
    **{name: _fixed(types.BOOLEAN, types.STRING, types.STRING) for name in _TESTS},
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    **dict.fromkeys(("date_sub", "add_months"), _fixed(types.DATE, types.DATE, types.INT)),
    "last_day": _fixed(types.DATE, types.DATE),
    "window": _window,
    "named_struct": _named_struct,
    "weekday": _part_of_time,
    **dict.fromkeys(_TIME_PARTS, _part_of_time),
    "pi": lambda binder, given, node: Literal(math.pi, types.DOUBLE),
    "e": lambda binder, given, node: Literal(math.e, types.DOUBLE),
    **TYPED,
    **COLLATIONS,
    "hll_sketch_estimate": _fixed(types.BIGINT, types.BINARY),
    "hll_union": _fixed(types.BINARY, types.BINARY, types.BINARY),
    "might_contain": _any_second(types.BOOLEAN, types.BINARY),
}
