"""Constants of a query: numbers, texts and intervals, with Spark's types for them."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Literal
from tailrace.pipelines.incremental.sql.scope import Context

_UNITS = {
    "MICROSECOND": (0, 0, 1_000), "MILLISECOND": (0, 0, 1_000_000), "SECOND": (0, 0, 10**9),
    "MINUTE": (0, 0, 60 * 10**9), "HOUR": (0, 0, 3600 * 10**9), "DAY": (0, 1, 0),
    "WEEK": (0, 7, 0), "MONTH": (1, 0, 0), "QUARTER": (3, 0, 0), "YEAR": (12, 0, 0),
}  # fmt: skip
_AMOUNT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s+([A-Za-z]+)")
_SPANS = {
    ("YEAR", "MONTH"): (r"(\d+)-(\d+)", ("YEAR", "MONTH")),
    ("DAY", "HOUR"): (r"(\d+) (\d+)", ("DAY", "HOUR")),
    ("DAY", "MINUTE"): (r"(\d+) (\d+):(\d+)", ("DAY", "HOUR", "MINUTE")),
    ("DAY", "SECOND"): (r"(\d+) (\d+):(\d+):(\d+(?:\.\d+)?)", ("DAY", "HOUR", "MINUTE", "SECOND")),
    ("HOUR", "MINUTE"): (r"(\d+):(\d+)", ("HOUR", "MINUTE")),
    ("HOUR", "SECOND"): (r"(\d+):(\d+):(\d+(?:\.\d+)?)", ("HOUR", "MINUTE", "SECOND")),
    ("MINUTE", "SECOND"): (r"(\d+):(\d+(?:\.\d+)?)", ("MINUTE", "SECOND")),
}  # fmt: skip


def bind_literal(context: Context, node: exp.Expr) -> Literal:
    """A constant with Spark's type for it."""
    if isinstance(node, exp.Null):
        return Literal(None, types.NULL)
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this), types.BOOLEAN)
    text = str(node.this)
    if node.is_string:
        return Literal(text, types.STRING)
    if text.isdigit():
        number = int(text)
        if number < 1 << 63:
            return Literal(number, types.INT if number < 1 << 31 else types.BIGINT)
    if "e" in text.lower():
        return Literal(float(text), types.DOUBLE)
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    scale = max(0, -int(exponent))
    precision = max(len(value.as_tuple().digits), scale)
    return Literal(value, pa.decimal128(max(precision, 1), scale))


def interval_parts(context: Context, node: exp.Interval) -> tuple[int, int, int]:
    """Months, days and nanoseconds of an interval literal."""
    unit = node.args.get("unit")
    amount = node.this
    if isinstance(amount, exp.Literal) and (unit is None or isinstance(unit, exp.IntervalSpan)):
        return _interval_text(context, node, str(amount.this), unit)
    if unit is None or not isinstance(amount, exp.Literal | exp.Neg):
        raise context.type_error("this interval is not understood", node, "write INTERVAL '1' HOUR")
    text = amount.sql().strip("'")
    name = unit.name.upper().removesuffix("S")
    if name not in _UNITS:
        raise context.type_error(f"unknown unit {unit.name!r}", node)
    number = Decimal(text.strip("'"))
    months, days, nanos = (int(number * part) for part in _UNITS[name])
    return months, days, nanos


def _interval_text(
    context: Context, node: exp.Interval, text: str, span: exp.IntervalSpan | None
) -> tuple[int, int, int]:
    """`'1 day 2 hours'`, or `'1 02:03:04'` with DAY TO SECOND and its like."""
    pairs: list[tuple[Decimal, str]] = []
    if span is None:
        at = 0
        while at < len(text) and (found := _AMOUNT.match(text, at)):
            pairs.append((Decimal(found[1]), found[2].upper().removesuffix("S")))
            at = found.end()
        known = at == len(text.rstrip()) and bool(pairs)
    else:
        pattern, units = _SPANS.get((span.name.upper(), span.expression.name.upper()), ("", ()))
        sign = -1 if text.strip().startswith("-") else 1
        matched = re.fullmatch(pattern, text.strip().lstrip("+-")) if pattern else None
        known = matched is not None
        if matched is not None:
            pairs = [(sign * Decimal(a), u) for a, u in zip(matched.groups(), units, strict=True)]
    if not known or any(unit not in _UNITS for _, unit in pairs):
        raise context.type_error("this interval is not understood", node, "write INTERVAL '1' HOUR")
    sums = [sum(int(amount * _UNITS[unit][i]) for amount, unit in pairs) for i in range(3)]
    return sums[0], sums[1], sums[2]
