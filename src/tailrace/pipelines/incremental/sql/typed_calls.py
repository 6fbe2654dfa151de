"""Functions whose types follow from their arguments: numbers, times, JSON, casts by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.library.encodings import BINARY_FORMS
from tailrace.pipelines.incremental.library.json import path_steps
from tailrace.pipelines.incremental.library.patterns import read_pattern
from tailrace.pipelines.incremental.library.patterns_of_numbers import (
    NumberPattern,
    number_pattern,
)
from tailrace.pipelines.incremental.sql.interval_calls import make_interval

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.calls import Rule
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder


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


# Numbers ------------------------------------------------------------------------------------------


def _integers(name: str) -> Rule:
    """Bit operations: both sides in their common integer type."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        alike, kind = binder.alike(given, node)
        if not types.is_integer(kind):
            raise binder.context.type_error(f"{types.ddl(kind)} is not a whole number", node)
        return Call(name, tuple(alike), kind)

    return rule


def _inverted(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    if not types.is_integer(given[0].type):
        raise binder.context.type_error("~ needs a whole number", node)
    return Call("~", (given[0],), given[0].type)


def _shift(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        kind = types.BIGINT if given[0].type == types.BIGINT else types.INT
        value = binder.coerce(given[0], kind, node)
        return Call(name, (value, binder.coerce(given[1], types.INT, node)), kind)

    return rule


def _bit_get(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    return Call("bit_get", (given[0], binder.coerce(given[1], types.INT, node)), types.TINYINT)


def _bit_count(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    return Call("bit_count", (binder.coerce(given[0], types.BIGINT, node),), types.INT)


def _trying(name: str, sign: str) -> Rule:
    """try_add and its like: the type of the operator, NULL where that is an error."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        plain = binder.arithmetic(sign, given[0], given[1], node)
        assert isinstance(plain, Call)
        if plain.function != sign:
            raise binder.context.not_incremental(f"{name} of times", node, f"use {sign}")
        if types.NULL in (given[0].type, given[1].type):
            return Literal(None, plain.type)
        return Call(name, plain.arguments, plain.type)

    return rule


def _operator(sign: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        return binder.arithmetic(sign, given[0], given[1], node)

    return rule


def _pmod(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    alike, kind = binder.alike(given, node)
    return binder.number(Call("pmod", tuple(alike), kind), node)


def _signed(negative: bool) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        value = binder.number(given[0], node, texts=True)
        return Call("negative", (value,), value.type) if negative else value

    return rule


def _log(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    doubles = tuple(binder.coerce(value, types.DOUBLE, node) for value in given)
    return Call("ln" if len(given) == 1 else "log", doubles, types.DOUBLE)


def _hex(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    value = given[0]
    kind = types.BIGINT if types.is_integer(value.type) else types.BINARY
    return Call("hex", (binder.coerce(value, kind, node),), types.STRING)


def _length(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    if given[0].type == types.BINARY:
        return Call("octet_length", (given[0],), types.INT)
    return Call("length", (binder.coerce(given[0], types.STRING, node),), types.INT)


def _hashed(name: str, kind: pa.DataType) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, None)
        if any(pa.types.is_map(value.type) for value in given):
            raise binder.context.type_error("a map has no hash", node)
        for value in given:
            binder.context.comparable(value.type, node)
        return Call(name, tuple(given), kind)

    return rule


def _format_number(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    if given[1].type == types.STRING:
        raise binder.context.not_incremental("format_number with a pattern", node)
    value = binder.number(given[0], node)
    return Call("format_number", (value, binder.coerce(given[1], types.INT, node)), types.STRING)


def _format_string(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, None)
    form = binder.coerce(given[0], types.STRING, node)
    for value in given[1:]:
        if pa.types.is_nested(value.type):  # Spark shows where it lies in memory
            raise binder.context.not_incremental(
                f"format_string of {types.ddl(value.type)}", node, "CAST(… AS STRING) shows it"
            )
    return Call("format_string", (form, *map(_formatted, given[1:])), types.STRING)


def _formatted(value: Expression) -> Expression:
    """An argument of format_string; Spark shows a time of day by its nanoseconds."""
    if not types.is_time(value.type):
        return value
    micros = Call("time_to_micros", (value,), types.BIGINT)
    return Call("*", (micros, Literal(1_000, types.BIGINT)), types.BIGINT)


def _to_digits(name: str) -> Rule:
    """floor and ceil to a number of digits, always a decimal."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        value, digits = given
        if value.type == types.NULL:
            value = binder.coerce(value, pa.decimal128(38, 18), node)
        places = constant(binder, digits, node, "the number of digits")
        if not isinstance(places, int):
            raise binder.context.type_error("the number of digits must be a whole number", node)
        if types.is_float(value.type):
            exact = pa.decimal128(30, 15) if value.type == types.DOUBLE else pa.decimal128(14, 7)
            value = binder.coerce(value, exact, node)
        elif types.is_integer(value.type):
            value = binder.coerce(value, types.as_decimal(value.type), node)
        kind = binder.number(value, node).type
        scale = min(max(places, 0), kind.scale)
        whole = kind.precision - kind.scale + 1
        result = types.bounded_decimal(max(whole, -places + 1) + scale, scale)
        return Call(name, (value, digits), result)

    return rule


# Conditions and casts ---------------------------------------------------------------------------


def _decode(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """decode(bytes, charset), or decode(x, a, 'A', b, 'B', 'other')."""
    wants(binder, given, node, 2, None)
    if len(given) == 2:
        data = binder.coerce(given[0], types.BINARY, node)
        return Call("decode", (data, given[1]), types.STRING)
    subject, rest = given[0], given[1:]
    default = rest.pop() if len(rest) % 2 else None
    branches = [
        (binder.compare("<=>", subject, rest[i], node), rest[i + 1]) for i in range(0, len(rest), 2)
    ]
    chosen = binder.choose(branches, default, node)
    if default is None and chosen.type == types.NULL:
        return Literal(None, types.STRING)
    return chosen


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


def _typeof(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    text = types.ddl(given[0].type).lower().replace(", ", ",").replace(": ", ":")
    return Literal(text, types.STRING)


# Times --------------------------------------------------------------------------------------------


def pattern(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """A date pattern; a constant one is read at once."""
    form = binder.coerce(bound, types.STRING, node)
    if isinstance(form, Literal) and form.value is not None:
        try:
            read_pattern(str(form.value))
        except EvaluationError as error:
            raise binder.context.type_error(error.message, node, error.hint) from error
    return form


def _date_format(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    moment = given[0]
    if types.is_time(moment.type):
        from tailrace.pipelines.incremental.sql.time_calls import formatted_time

        return formatted_time(binder, moment, pattern(binder, given[1], node), node)
    if moment.type != types.TIMESTAMP_NTZ:
        moment = binder.coerce(moment, types.TIMESTAMP, node)
    return Call("date_format", (moment, pattern(binder, given[1], node)), types.STRING)


def _from_unixtime(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    seconds = binder.coerce(given[0], types.BIGINT, node)
    forms = [pattern(binder, form, node) for form in given[1:]]
    return Call("from_unixtime", (seconds, *forms), types.STRING)


def _parsing(kind: pa.DataType, forgiving: bool) -> Rule:
    """to_date, to_timestamp and their like, with and without a pattern."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 2)
        value = given[0]
        if len(given) == 1 or value.type != types.STRING:
            if forgiving and value.type == types.STRING:
                return Call("try_cast", (value,), kind)
            return binder.coerce(value, kind, node)
        name = ("try_parse_" if forgiving else "parse_") + (
            "date" if kind == types.DATE else "timestamp"
        )
        return Call(name, (value, pattern(binder, given[1], node)), kind)

    return rule


def _unix_timestamp(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    if not given:  # of now
        given = [Call("now", (), types.TIMESTAMP)]
    wants(binder, given, node, 1, 2)
    if given[0].type != types.STRING:
        value = binder.coerce(given[0], types.TIMESTAMP, node)
        return Call("unix_timestamp", (value,), types.BIGINT)
    form = given[1] if len(given) > 1 else Literal("yyyy-MM-dd HH:mm:ss", types.STRING)
    return Call("parse_unix", (given[0], pattern(binder, form, node)), types.BIGINT)


def _make_timestamp(kind: pa.DataType, name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 6, 6 if kind == types.TIMESTAMP_NTZ else 7)
        parts = [binder.coerce(part, types.INT, node) for part in given[:5]]
        seconds = binder.coerce(given[5], pa.decimal128(16, 6), node)
        made = Call(name, (*parts, seconds), kind)
        if len(given) == 6:
            return made
        zone = binder.coerce(given[6], types.STRING, node)
        return Call("to_utc_timestamp", (made, zone), kind)

    return rule


def _months_between(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    wants(binder, given, node, 2, 3)
    sides = tuple(binder.coerce(side, types.TIMESTAMP, node) for side in given[:2])
    rounded = constant(binder, given[2], node, "the rounding") if len(given) > 2 else True
    if rounded is None:
        return Literal(None, types.DOUBLE)
    return Call("months_between" if rounded else "months_between_exact", sides, types.DOUBLE)


def _convert_timezone(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    wants(binder, given, node, 2, 3)
    if len(given) == 2:
        given = [Literal("UTC", types.STRING), *given]
    moment = binder.coerce(given[2], types.TIMESTAMP_NTZ, node)
    zones = tuple(binder.coerce(zone, types.STRING, node) for zone in given[:2])
    return Call("convert_timezone", (*zones, moment), types.TIMESTAMP_NTZ)


def _window_time(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """The last moment of a window."""
    from tailrace.pipelines.incremental.sql.expressions import take_field

    wants(binder, given, node, 1, 1)
    end = take_field(binder.context, given[0], "end", node)
    zero = Literal(0, types.INT)
    return Call("add_interval", (end, zero, zero, Literal(-1, types.BIGINT)), end.type)


# JSON ---------------------------------------------------------------------------------------------


def written_type(binder: ExpressionBinder, given: Expression, node: exp.Expr) -> pa.DataType:
    """The type that a constant text names: a DDL type, or the fields of a struct."""
    text = str(constant(binder, given, node, "the schema"))
    if re.search(r"\bTIME\s*\(\s*[0-5]\s*\)", text, re.IGNORECASE):
        raise binder.context.not_incremental(
            "Spark reads more digits into such a TIME than it has", node, "read TIME and cast it"
        )
    try:
        return types.parse_type(text)
    except ValueError:
        try:
            return types.parse_type(f"STRUCT<{text}>")
        except ValueError as error:
            raise binder.context.type_error(str(error), node) from error


def _from_json(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if len(given) == 3:
        raise binder.context.not_incremental("from_json with options", node)
    wants(binder, given, node, 2, 2)
    kind = written_type(binder, given[1], node)
    if not pa.types.is_nested(kind) and kind != types.VARIANT:
        raise binder.context.type_error("from_json gives a struct, an array or a map", node)
    return Call("from_json", (binder.coerce(given[0], types.STRING, node),), kind)


def _to_json(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if len(given) == 2:
        raise binder.context.not_incremental("to_json with options", node)
    wants(binder, given, node, 1, 1)
    if not pa.types.is_nested(given[0].type) and given[0].type != types.VARIANT:
        raise binder.context.type_error("to_json takes a struct, an array or a map", node)
    return Call("to_json", (given[0],), types.STRING)


def _get_json_object(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    wants(binder, given, node, 2, 2)
    path = binder.coerce(given[1], types.STRING, node)
    if isinstance(path, Literal) and "*" in str(path.value) and path_steps(str(path.value)) is None:
        raise binder.context.not_incremental("a JSON path with .*", node, "use [*] or from_json")
    return Call(
        "get_json_object", (binder.coerce(given[0], types.STRING, node), path), types.STRING
    )


# Numbers by a pattern -----------------------------------------------------------------------------


def _number_form(binder: ExpressionBinder, given: Expression, node: exp.Expr) -> NumberPattern:
    try:
        return number_pattern(str(constant(binder, given, node, "the pattern")))
    except ValueError as error:
        raise binder.context.type_error(
            str(error), node, "such as '$9,999.00' or 'S000'"
        ) from error


def _to_number(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        form = _number_form(binder, given[1], node)
        text = binder.coerce(given[0], types.STRING, node)
        return Call(name, (text, given[1]), pa.decimal128(form.precision, form.places))

    return rule


_OF_FLOATS = {types.FLOAT: pa.decimal128(14, 7), types.DOUBLE: pa.decimal128(30, 15)}


def _to_char(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """Of a date or time as `date_format`, of bytes as base64, hex or text, else of a number."""
    wants(binder, given, node, 2, 2)
    value = given[0]
    if pa.types.is_temporal(value.type):
        return _date_format(binder, given, node)
    if value.type == types.BINARY:
        form = str(constant(binder, given[1], node, "the form")).lower()
        match form:
            case "base64" | "hex":
                return Call(form, (value,), types.STRING)
            case "utf-8":
                return Call("decode", (value, Literal("UTF-8", types.STRING)), types.STRING)
        raise binder.context.type_error(f"unknown form {form!r}", node, "hex, utf-8 or base64")
    _number_form(binder, given[1], node)
    kind = _OF_FLOATS.get(value.type, pa.decimal128(38, 18))
    if types.is_decimal(value.type) or types.is_integer(value.type):
        kind = types.as_decimal(value.type)
    return Call("to_char", (binder.coerce(value, kind, node), given[1]), types.STRING)


# Bytes, vectors, intervals ------------------------------------------------------------------------


def _to_binary(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 2)
        form = constant(binder, given[1], node, "the form") if len(given) > 1 else "hex"
        if str(form).lower() not in BINARY_FORMS:
            raise binder.context.type_error(f"unknown form {form!r}", node, "hex, utf-8 or base64")
        text = binder.coerce(given[0], types.STRING, node)
        return Call(name, (text, Literal(str(form).lower(), types.STRING)), types.BINARY)

    return rule


def _vectors(name: str, count: int, result: pa.DataType) -> Rule:
    """Functions of arrays of FLOAT; with one array a degree may follow."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, count, 2)
        for value in given[:count]:
            if value.type != pa.list_(types.FLOAT):
                raise binder.context.type_error(
                    f"{name} takes ARRAY<FLOAT>, not {types.ddl(value.type)}", node
                )
        extra = [binder.coerce(value, types.FLOAT, node) for value in given[count:]]
        return Call(name, (*given[:count], *extra), result)

    return rule


def _interval(name: str) -> Rule:
    return lambda binder, given, node: make_interval(name, binder, given, node)


_CASTS = {
    "bigint": types.BIGINT, "int": types.INT, "smallint": types.SMALLINT, "tinyint": types.TINYINT,
    "string": types.STRING, "double": types.DOUBLE, "float": types.FLOAT, "boolean": types.BOOLEAN,
    "binary": types.BINARY, "date": types.DATE, "timestamp": types.TIMESTAMP,
    "decimal": pa.decimal128(10, 0),
}  # fmt: skip
TYPED: dict[str, Rule] = {
    "&": _integers("&"), "|": _integers("|"), "^": _integers("^"), "~": _inverted,
    "shiftleft": _shift("shiftleft"), "shiftright": _shift("shiftright"),
    "shiftrightunsigned": _shift("shiftrightunsigned"), "bit_get": _bit_get,
    "bit_count": _bit_count,
    "try_add": _trying("try_add", "+"), "try_subtract": _trying("try_subtract", "-"),
    "try_multiply": _trying("try_multiply", "*"), "try_divide": _trying("try_divide", "/"),
    "try_mod": _trying("try_mod", "%"), "%": _operator("%"), "negative": _signed(True),
    "pmod": _pmod, "positive": _signed(False), "log": _log, "hex": _hex, "length": _length,
    "hash": _hashed("hash", types.INT), "xxhash64": _hashed("xxhash64", types.BIGINT),
    "format_number": _format_number, "format_string": _format_string, "decode": _decode,
    "equal_null": _equal_null, "nullifzero": _zero(True), "zeroifnull": _zero(False),
    "typeof": _typeof, "date_format": _date_format, "from_unixtime": _from_unixtime,
    "to_date": _parsing(types.DATE, False), "try_to_date": _parsing(types.DATE, True),
    "to_timestamp": _parsing(types.TIMESTAMP, False),
    "to_timestamp_ltz": _parsing(types.TIMESTAMP, False),
    "to_timestamp_ntz": _parsing(types.TIMESTAMP_NTZ, False),
    "try_to_timestamp": _parsing(types.TIMESTAMP, True),
    "unix_timestamp": _unix_timestamp, "to_unix_timestamp": _unix_timestamp,
    "make_timestamp": _make_timestamp(types.TIMESTAMP, "make_timestamp"),
    "make_timestamp_ltz": _make_timestamp(types.TIMESTAMP, "make_timestamp"),
    "make_timestamp_ntz": _make_timestamp(types.TIMESTAMP_NTZ, "make_timestamp"),
    "try_make_timestamp": _make_timestamp(types.TIMESTAMP, "try_make_timestamp"),
    "try_make_timestamp_ntz": _make_timestamp(types.TIMESTAMP_NTZ, "try_make_timestamp"),
    "months_between": _months_between, "convert_timezone": _convert_timezone,
    "window_time": _window_time, "from_json": _from_json, "to_json": _to_json,
    "get_json_object": _get_json_object, "to_char": _to_char, "to_varchar": _to_char,
    "to_number": _to_number("to_number"), "try_to_number": _to_number("try_to_number"),
    "to_binary": _to_binary("to_binary"), "try_to_binary": _to_binary("try_to_binary"),
    "try_make_timestamp_ltz": _make_timestamp(types.TIMESTAMP, "try_make_timestamp"),
    "vector_inner_product": _vectors("vector_inner_product", 2, types.FLOAT),
    "vector_l2_distance": _vectors("vector_l2_distance", 2, types.FLOAT),
    "vector_cosine_similarity": _vectors("vector_cosine_similarity", 2, types.FLOAT),
    "vector_norm": _vectors("vector_norm", 1, types.FLOAT),
    "vector_normalize": _vectors("vector_normalize", 1, pa.list_(types.FLOAT)),
    "make_interval": _interval("make_interval"),
    "try_make_interval": _interval("try_make_interval"),
    "make_dt_interval": _interval("make_dt_interval"),
    "make_ym_interval": _interval("make_ym_interval"),
    **{name: _cast(kind) for name, kind in _CASTS.items()},
}  # fmt: skip
FLOOR_TO, CEIL_TO = _to_digits("floor_to"), _to_digits("ceil_to")
