"""Constants of a query: numbers, texts and intervals, with Spark's types for them."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.engine.expression import Literal
from tailrace.pipelines.errors import ViewError
from tailrace.pipelines.values import types
from tailrace.pipelines.values.interval_units import CLOCK, MONTHS, SIZES, fields_of, spanning

# Spark's unit of each word, and how many of it one is.
_UNITS = {
    "MICROSECOND": ("SECOND", Decimal("0.000001")), "MILLISECOND": ("SECOND", Decimal("0.001")),
    **{unit: (unit, Decimal(1)) for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR")},
    "WEEK": ("DAY", Decimal(7)),
}  # fmt: skip
_AMOUNT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s+([A-Za-z]+)")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", re.ASCII)
_BETWEEN = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}  # before a field
_MOST = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}  # of a field behind another


def bind_literal(context: Context, node: exp.Expr, *, negative: bool = False) -> Literal:
    """A constant with Spark's type for it; -2147483648 is one, and an INT."""
    if isinstance(node, exp.Null):
        return Literal(None, types.NULL)
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this), types.BOOLEAN)
    text = str(node.this)
    if node.is_string:
        return Literal(text, types.STRING)
    if text.isdigit():
        number = -int(text) if negative and not node.is_string else int(text)
        for kind, bits in ((types.INT, 31), (types.BIGINT, 63)):
            if -(1 << bits) <= number < 1 << bits:
                return Literal(number, kind)
    if "e" in text.lower():
        return Literal(float(text), types.DOUBLE)
    value = Decimal(f"-{text}" if negative else text)
    exponent = value.as_tuple().exponent
    scale = max(0, -int(exponent))
    precision = max(len(value.as_tuple().digits), scale)
    if precision > 38:
        raise context.type_error("a DECIMAL has at most 38 digits", node)
    return Literal(value, pa.decimal128(max(precision, 1), scale))


def interval_parts(context: Context, node: exp.Interval) -> tuple[int, int, int, str]:
    """Months, days and microseconds of an interval literal, and the units of its type."""
    unit = node.args.get("unit")
    amount = node.this
    if isinstance(amount, exp.Literal) and isinstance(unit, exp.IntervalSpan):
        units = f"{unit.name} TO {unit.expression.name}".upper()
        return span_parts(context, str(amount.this), units, node)
    if isinstance(amount, exp.Literal) and unit is None:
        return _parts_in_words(context, str(amount.this), node)
    if unit is None or not isinstance(amount, exp.Literal | exp.Neg):
        raise _not_understood(context, node)
    sign = "-" if isinstance(amount, exp.Neg) else ""
    number = amount.this if isinstance(amount, exp.Neg) else amount
    if not isinstance(number, exp.Literal):
        raise _not_understood(context, node)
    written = str(number.this).strip()
    if sign and written[:1] in "+-":
        sign, written = ("" if written[0] == "-" else "-"), written[1:]
    if not _NUMBER.fullmatch(written):
        raise _not_understood(context, node)
    return _added(context, [(sign + written, unit.name)], node)


def span_parts(
    context: Context, text: str, units: str, node: exp.Expr
) -> tuple[int, int, int, str]:
    """The parts of a text such as `1 02:03:04` of units such as DAY TO SECOND."""
    words = units.split(" TO ")
    kind = MONTHS if words[0] in MONTHS else CLOCK
    if not set(words) <= set(kind) or kind.index(words[0]) > kind.index(words[-1]):
        raise _not_understood(context, node)
    fields = fields_of(units)
    pattern = "".join(
        (_BETWEEN[field] if place else "")
        + (r"(\d+(?:\.\d{1,9})?)" if field == "SECOND" else r"(\d+)")
        for place, field in enumerate(fields)
    )
    matched = re.fullmatch(f"([+-]?){pattern}", text.strip())
    if matched is None:
        raise _not_understood(context, node)
    sign, *amounts = matched.groups()
    for field, amount in list(zip(fields, amounts, strict=True))[1:]:
        if int(Decimal(amount)) > _MOST[field]:
            raise context.type_error(f"{amount} is more than a {field.lower()} holds", node)
    months, days, micros, _ = _added(
        context, [(sign + a, field) for a, field in zip(amounts, fields, strict=True)], node
    )
    return months, days, micros, units


def _parts_in_words(context: Context, text: str, node: exp.Expr) -> tuple[int, int, int, str]:
    """`'1 day 2 hours'`."""
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(text) and (found := _AMOUNT.match(text, at)):
        pairs.append((found[1], found[2]))
        at = found.end()
    if at != len(text.rstrip()) or not pairs:
        raise _not_understood(context, node)
    return _added(context, pairs, node)


def _added(
    context: Context, pairs: list[tuple[str, str]], node: exp.Expr
) -> tuple[int, int, int, str]:
    """The sum of amounts of units; only seconds have fractions."""
    months, days, micros = 0, 0, 0
    fields = []
    for amount, word in pairs:
        name = word.upper().removesuffix("S")
        if name not in _UNITS:
            raise context.type_error(f"unknown unit {word!r}", node)
        if not _NUMBER.fullmatch(amount):
            raise _not_understood(context, node)
        if "." in amount and name != "SECOND":
            raise context.type_error(f"{amount} {word}: only seconds have fractions", node)
        field, factor = _UNITS[name]
        fields.append(field)
        number = Decimal(amount) * factor
        if field == "DAY":
            days += int(number)
        elif field in MONTHS:
            months += int(number * SIZES[field])
        else:
            micros += int(number * SIZES[field])
    units = spanning(fields)
    if max(abs(months), abs(days)) >= 1 << 31 or abs(micros) >= 1 << 63:
        raise context.type_error("this interval is too long", node)
    if units is None:
        raise context.type_error("an interval of months and of days", node, "add them in turn")
    return months, days, micros, units


def _not_understood(context: Context, node: exp.Expr) -> ViewError:
    return context.type_error("this interval is not understood", node, "write INTERVAL '1' HOUR")
