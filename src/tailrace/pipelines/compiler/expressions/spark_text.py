"""Expressions as texts that Spark reads with the same meaning.

Everything that has such a text stands in it, so that Spark decides what is computed at all (a
CASE, a lambda) and sees constants as constants. What stays here becomes an argument: columns, the
clock, and the few functions that are Tailrace's own (windows of time). Arguments are columns named
`a0`, `a1`, …; a text has nothing else that looks like one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pyarrow as pa

from tailrace.pipelines.engine.expression import (
    SPARK,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    walk,
)
from tailrace.pipelines.spark.catalyst.client import column
from tailrace.pipelines.spark.catalyst.schema import crosses
from tailrace.pipelines.spark.catalyst.times import has_time, in_micros, to_micros, to_times
from tailrace.pipelines.values import types
from tailrace.pipelines.values.function_references import JavaFunction

ARGUMENT = re.compile("`a([0-9]+)`")
_INFIX = {"+", "-", "*", "/", "%", "=", "<", "<=", ">", ">=", "<>", "<=>", "and", "or", "div",
          "like"}  # fmt: skip
_BEHIND = {"is null", "is not null", "is true", "is false"}
# The functions of Arrow that Spark calls by the same name, with the same arguments.
_ALIKE = {
    "abs", "add_months", "ascii", "array", "coalesce", "concat", "concat_ws", "contains",
    "date_add", "date_format", "date_sub", "date_trunc", "datediff", "day", "dayofweek",
    "dayofyear", "endswith", "floor", "ceil", "greatest", "hour", "initcap", "instr", "isnan",
    "last_day", "least", "left", "length", "ln", "lower", "lpad", "ltrim", "make_date", "map",
    "md5", "minute", "month", "named_struct", "octet_length", "pmod", "pow", "quarter", "repeat",
    "replace", "right", "round", "rpad", "rtrim", "second", "sha2", "size", "split_part", "sqrt",
    "startswith", "substring", "timestamp_millis", "timestamp_seconds", "translate", "trim",
    "trunc", "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "upper", "weekday",
    "weekofyear", "year", "regexp_extract", "rlike",
}  # fmt: skip
_SUFFIXES = {types.TINYINT: "Y", types.SMALLINT: "S", types.INT: "", types.BIGINT: "L"}
_MICROSECOND = "0.000001BD"


class NoText(Exception):
    """A part of a lambda that Spark has no text for."""


@dataclass(slots=True)
class Rendering:
    """The arguments of a text that is being written."""

    columns: list[Expression] = field(default_factory=list)
    parameters: frozenset[str] = frozenset()  # of the lambdas around

    def text(self, bound: Expression) -> str:
        """The text of an expression."""
        match bound:
            case Column(name, _) if name in self.parameters:
                return quoted(name)
            case Column():
                return self.argument(bound)
            case Literal():
                found = literal(bound)
                return self.argument(bound) if found is None else found
        if bound.function == SPARK:
            text, *arguments = bound.arguments
            assert isinstance(text, Literal)
            return ARGUMENT.sub(lambda found: self.text(arguments[int(found[1])]), str(text.value))
        if bound.function == "lambda":
            return self._lambda(bound)
        if not _has_text(bound):
            return self.argument(bound)
        if bound.function == "micros_of_day" and not self._is_inside(bound):
            return self._place(bound)
        return self._call(bound)

    def argument(self, bound: Expression) -> str:
        """A column of the request; types that do not cross as they are cross as others."""
        if self._is_inside(bound):
            raise NoText(bound.sql)
        kind = bound.type
        if has_time(kind):
            whole = Call("micros_of_day", (bound,), in_micros(kind))
            return to_times(self._place(whole), kind)
        if not crosses(kind):
            raise NoText(types.ddl(kind))
        return self._place(bound)

    def _is_inside(self, bound: Expression) -> bool:
        """Whether a parameter of a lambda is in it."""
        return any(isinstance(p, Column) and p.name in self.parameters for p in walk(bound))

    def _place(self, bound: Expression) -> str:
        if bound not in self.columns:
            self.columns.append(bound)
        return column(self.columns.index(bound))

    def _lambda(self, bound: Call) -> str:
        body, *parameters = bound.arguments
        names = [one.name for one in parameters if isinstance(one, Column)]
        around, self.parameters = self.parameters, self.parameters | set(names)
        try:
            listed = ", ".join(map(quoted, names))
            return f"{listed if len(names) == 1 else f'({listed})'} -> {self.text(body)}"
        finally:
            self.parameters = around

    def _call(self, bound: Call) -> str:
        name = bound.function
        if name == "interval":
            return self._interval(bound)
        if name == "add_interval":
            return self._moved(bound)
        texts = [self.text(argument) for argument in bound.arguments]
        if name in _INFIX:
            return f"({texts[0]} {name.upper()} {texts[1]})"
        if name in _BEHIND:
            return f"({texts[0]} {name.upper()})"
        if name in ("trim", "ltrim", "rtrim") and len(texts) == 2:
            where = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[name]
            return f"trim({where} {texts[1]} FROM {texts[0]})"
        if name in _ALIKE:
            return f"{name}({', '.join(texts)})"
        match name:
            case "cast" | "try_cast":
                return f"{name.upper()}({texts[0]} AS {type_text(bound.type)})"
            case "not":
                return f"(NOT {texts[0]})"
            case "negative":
                return f"(- {texts[0]})"
            case "case":
                pairs = zip(texts[0:-1:2], texts[1:-1:2], strict=True)
                body = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
                return f"(CASE {body} ELSE {texts[-1]} END)"
            case "in":
                return f"({texts[0]} IN ({', '.join(texts[1:])}))"
            case "get_field":
                return f"({texts[0]}).{quoted(str(_constant(bound.arguments[1])))}"
            case "array_at" | "map_at":
                return f"({texts[0]})[{texts[1]}]"
            case "micros_of_day":
                return to_micros(texts[0], bound.arguments[0].type)
            case "second_and_parts":
                return f"date_part('SECOND', {texts[0]})"
            case "timestampdiff" | "timestampadd":
                unit = str(_constant(bound.arguments[0]))
                return f"{name}({unit}, {texts[1]}, {texts[2]})"
            case "yearofweek" | "dayofweek_iso":
                return f"date_part('{name.upper()}', {texts[0]})"
        raise AssertionError(name)

    def _interval(self, bound: Call) -> str:
        months, days, micros, units = bound.arguments
        named = str(_constant(units))
        if named == "CALENDAR":
            parts = f"0, {self.text(months)}, 0, {self.text(days)}, 0, 0"
            return f"make_interval({parts}, {self._seconds(micros)})"
        if named.partition(" ")[0] in ("YEAR", "MONTH"):
            whole = f"make_ym_interval(0, CAST({self.text(months)} AS INT))"
        else:
            whole = (
                f"make_dt_interval(CAST({self.text(days)} AS INT), 0, 0, {self._seconds(micros)})"
            )
        return f"CAST({whole} AS INTERVAL {named})"

    def _seconds(self, micros: Expression) -> str:
        return f"(CAST({self.text(micros)} AS DECIMAL(18,0)) * {_MICROSECOND})"

    def _moved(self, bound: Call) -> str:
        start, months, days, micros = bound.arguments
        if bound.type == types.DATE:
            moved = self.text(start)
            if _constant(months) != 0:
                moved = f"add_months({moved}, {self.text(months)})"
            return f"date_add({moved}, {self.text(days)})"
        parts = f"0, {self.text(months)}, 0, {self.text(days)}, 0, 0"
        return f"({self.text(start)} + make_interval({parts}, {self._seconds(micros)}))"


def _has_text(bound: Call) -> bool:
    name = bound.function
    if name == "cast" and bound.type in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        # A time without a date is of today to Spark, another one each day, and none here.
        source = bound.arguments[0]
        return source.type != types.STRING or not columns_of(source)
    return name in _ALIKE or name in _INFIX or name in _BEHIND or name in _WRITTEN


_WRITTEN = {
    "cast", "try_cast", "not", "negative", "case", "in", "get_field", "array_at", "map_at",
    "second_and_parts", "timestampdiff", "timestampadd", "yearofweek", "dayofweek_iso", "interval",
    "add_interval", "micros_of_day",
}  # fmt: skip


def _constant(bound: Expression) -> object:
    return bound.value if isinstance(bound, Literal) else None


def literal(bound: Literal) -> str | None:
    """A constant as Spark's of the same type; None where it has no text."""
    value, kind = bound.value, bound.type
    if isinstance(value, JavaFunction):
        return None
    if kind == pa.list_(types.NULL) and value == ():
        return "array()"
    if value is None:
        return "NULL" if kind == types.NULL else f"CAST(NULL AS {type_text(kind)})"
    if isinstance(value, str):
        # What a text says must not look like the place of an argument.
        shown = value.replace("\\", "\\\\").replace("'", "\\'").replace("`", "\\u0060")
        return f"'{shown}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind == types.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind in _SUFFIXES:
        return f"{value}{_SUFFIXES[kind]}" if value != -(1 << 63) else f"({value})"
    if types.is_decimal(kind):
        text = f"{value:f}"
        digits, _, rest = text.lstrip("-").partition(".")
        plain = len(rest) == kind.scale and len(digits.lstrip("0")) + len(rest) == kind.precision
        return f"{text}BD" if plain and kind.scale else f"CAST('{text}' AS {types.ddl(kind)})"
    if pa.types.is_nested(kind):
        return None
    return f"CAST('{value}' AS {types.ddl(kind)})"


def quoted(name: str) -> str:
    """A name in a text; one that looks like an argument's needs no quotes and has none."""
    return name if re.fullmatch("a[0-9]+", name) else "`" + name.replace("`", "``") + "`"


def type_text(kind: pa.DataType) -> str:
    """Spark's words for a type, whatever the names of fields."""
    if pa.types.is_map(kind):
        return f"MAP<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_text(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{quoted(f.name)}: {type_text(f.type)}' for f in kind)}>"
    return types.ddl(kind)
