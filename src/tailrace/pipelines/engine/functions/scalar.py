"""Scalar functions of Spark that are computed here, value by value.

Each takes physical values (see `rows`) that are not NULL and gives one, or None for NULL.
`FUNCTIONS` holds, by Spark's name, what makes the function for given argument types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context
from typing import Any, AnyStr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values import sketches
from tailrace.pipelines.values.casts import cast_array
from tailrace.pipelines.values.keys import encode_part
from tailrace.pipelines.values.rows import physical, to_array
from tailrace.pipelines.values.types import ddl, is_decimal, is_float, is_integer
from tailrace.records.like import compile_like

Scalar = Callable[..., Any]
Maker = Callable[[list[pa.DataType], pa.DataType], Scalar]
FUNCTIONS: dict[str, Maker] = {}
PLAIN: dict[str, Maker] = {}  # of Python's own values instead of physical ones
KEEPS_NULL = {"least", "greatest", "concat_ws", "isnan"}


def map_values(name: str, arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Apply a function row by row; NULL in, NULL out."""
    if name == "try_cast":
        return cast_array(arrays[0], kind, forgiving=True)
    kinds = [array.type for array in arrays]
    if name in ("%", "pmod") and all(map(pa.types.is_integer, (*kinds, kind))):
        whole = _whole_remainders(name, arrays[0], arrays[1], kind)
        if whole is not None:
            return whole
    try:
        if name in PLAIN:
            return _map_plain(PLAIN[name](kinds, kind), arrays, kind, name in KEEPS_NULL)
        return _map_physical(FUNCTIONS[name](kinds, kind), arrays, kind, name in KEEPS_NULL)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise EvaluationError(f"{name} overflows {ddl(kind)}", detail=str(error)) from error
    except (ValueError, ArithmeticError) as error:  # a year past 9999 and its like
        raise EvaluationError(f"{name}: {error}") from error


def _map_physical(
    compute: Scalar, arrays: list[pa.Array], kind: pa.DataType, keeps_null: bool
) -> pa.Array:
    rows = zip(*(physical(array) for array in arrays), strict=True)
    if keeps_null:
        return to_array([compute(*values) for values in rows], kind)
    out = [None if any(value is None for value in values) else compute(*values) for values in rows]
    return to_array(out, kind)


def _whole_remainders(
    name: str, left: pa.Array, right: pa.Array, kind: pa.DataType
) -> pa.Array | None:
    """Remainders of whole numbers all at once; None where one of them needs a closer look (a
    zero, or a divisor so near the ends of the range that a step would overflow)."""
    null = pc.or_(pc.is_null(left), pc.is_null(right)).to_numpy(zero_copy_only=False)
    dividends = pc.fill_null(left, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    divisors = pc.fill_null(right, 1).to_numpy(zero_copy_only=False).astype(np.int64)
    divisors = np.where(null, 1, divisors)
    if not len(divisors) or ((divisors < 1) & ((divisors > -2) | (divisors < -(1 << 62)))).any():
        return None
    found = np.fmod(dividends, divisors)  # the sign of the dividend, as in Java
    if name == "pmod":
        found = np.where(found < 0, np.fmod(found + divisors, divisors), found)
    return pa.array(found, mask=null).cast(kind)


def _map_plain(
    compute: Scalar, arrays: list[pa.Array], kind: pa.DataType, keeps_null: bool
) -> pa.Array:
    """Apply a function of Python's own values row by row."""
    columns = [array.to_pylist() for array in arrays]
    rows = zip(*columns, strict=True)
    if keeps_null:
        return pa.array([compute(*values) for values in rows], kind)
    out = [None if any(v is None for v in values) else compute(*values) for values in rows]
    return pa.array(out, kind)


def made(name: str) -> Callable[[Maker], Maker]:
    """Register a function that looks at its types."""

    def register(maker: Maker) -> Maker:
        FUNCTIONS[name] = maker
        return maker

    return register


def simple(name: str, function: Scalar) -> None:
    """Register a function that needs to know no types."""
    FUNCTIONS[name] = lambda kinds, kind: function


def plain_typed(name: str) -> Callable[[Maker], Maker]:
    """Register what makes a function of Python's own values for argument and result types."""

    def register(maker: Maker) -> Maker:
        PLAIN[name] = maker
        return maker

    return register


def plain(name: str) -> Callable[[Scalar], Scalar]:
    """Register a function of Python's own values."""

    def register(function: Scalar) -> Scalar:
        PLAIN[name] = lambda kinds, kind: function
        return function

    return register


# Text ---------------------------------------------------------------------------------------


def _substring(text: AnyStr, start: int, length: int = 1 << 31) -> AnyStr:
    """Positions count from 1, from the end when negative; 0 means 1."""
    begin = start - 1 if start > 0 else start + len(text) if start < 0 else 0
    end = begin + length
    return text[max(begin, 0) : max(end, 0)] if length > 0 else text[:0]


def _like(text: str, pattern: str) -> bool:
    try:
        return compile_like(pattern)(text)
    except ValueError as error:
        hint = "write \\\\ for a backslash, or name another letter with ESCAPE"
        raise EvaluationError(f"the pattern {pattern!r} is invalid: {error}", hint=hint) from error


def _split_part(text: str, separator: str, number: int) -> str:
    if number == 0:
        raise EvaluationError("split_part counts from 1")
    parts = text.split(separator) if separator else [text]
    index = number - 1 if number > 0 else number + len(parts)
    return parts[index] if 0 <= index < len(parts) else ""


simple("upper", str.upper)
simple("lower", str.lower)
simple("trim", lambda text, letters=" ": text.strip(letters))
simple("ltrim", lambda text, letters=" ": text.lstrip(letters))
simple("rtrim", lambda text, letters=" ": text.rstrip(letters))
simple("length", len)
simple("concat", lambda *parts: "".join(parts))
simple("substring", _substring)
simple("left", lambda text, count: text[: max(count, 0)])
simple("right", lambda text, count: text[-count:] if count > 0 else text[:0])
simple("replace", lambda text, old, new="": text.replace(old, new) if old else text)
simple("split_part", _split_part)
simple("startswith", str.startswith)
simple("endswith", str.endswith)
simple("contains", lambda text, part: part in text)
simple("like", _like)
simple(
    "concat_ws",
    lambda sep, *parts: None if sep is None else sep.join(p for p in parts if p is not None),
)
simple("isnan", lambda value: value is not None and value != value)


# Numbers ------------------------------------------------------------------------------------


_EXACT = Context(prec=700)  # a double has at most 309 digits before its point


def _rounded(value: int, step: int, half_even: bool) -> int:
    """An integer to a multiple of `step`, halves up (away from zero) or to even."""
    quotient, rest = divmod(abs(value), step)
    if 2 * rest > step or (2 * rest == step and (not half_even or quotient % 2)):
        quotient += 1
    return (quotient if value >= 0 else -quotient) * step


def _round(half_even: bool) -> Maker:
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        source = kinds[0]
        if is_float(source):
            from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

            mode = ROUND_HALF_EVEN if half_even else ROUND_HALF_UP

            def round_float(value: float, digits: int) -> float:
                if not math.isfinite(value):
                    return value
                step = Decimal(1).scaleb(-digits)
                return float(Decimal(repr(value)).quantize(step, mode, _EXACT)) + 0.0

            return round_float
        scale = source.scale if is_decimal(source) else 0
        target = kind.scale if is_decimal(kind) else 0

        def round_exact(value: int, digits: int) -> int:
            step = 10 ** max(scale - digits, 0)
            rounded = _rounded(value, step, half_even)
            return int(rounded // 10 ** (scale - target))

        return round_exact

    return maker


FUNCTIONS["round"] = _round(False)


@made("floor")
def _floor(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if is_decimal(kinds[0]):
        return lambda value: value // 10 ** kinds[0].scale
    return lambda value: math.floor(value) if value == value else 0


@made("ceil")
def _ceil(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if is_decimal(kinds[0]):
        return lambda value: -(-value // 10 ** kinds[0].scale)
    return lambda value: math.ceil(value) if value == value else 0


@made("abs")
def _abs(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if not is_integer(kind):
        return abs
    limit = 1 << (kind.bit_width - 1)

    def absolute(value: int) -> int:
        if value == -limit:
            raise EvaluationError(f"abs overflows {kind}")
        return abs(value)

    return absolute


def _no_zero(divisor: object) -> None:
    if divisor == 0:
        raise EvaluationError("division by zero", hint="use try_divide or nullif(divisor, 0)")


@made("%")
def _remainder(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if is_float(kind):

        def float_remainder(a: float, b: float) -> float:
            _no_zero(b)
            return math.nan if math.isinf(a) else math.fmod(a, b)

        return float_remainder
    scales = [k.scale if is_decimal(k) else 0 for k in kinds]
    common = max(scales)
    up = [10 ** (common - scale) for scale in scales]

    def remainder(a: int, b: int) -> int:
        _no_zero(b)
        a, b = a * up[0], b * up[1]
        result = abs(a) % abs(b)
        return result if a >= 0 else -result

    return remainder


@made("div")
def _whole_quotient(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    scales = [k.scale if is_decimal(k) else 0 for k in kinds]
    common = max(scales)
    up = [10 ** (common - scale) for scale in scales]

    def quotient(a: int, b: int) -> int:
        _no_zero(b)
        a, b = a * up[0], b * up[1]
        result = abs(a) // abs(b)
        return result if (a < 0) == (b < 0) else -result

    return quotient


def _extreme(largest: bool) -> Maker:
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        def choose(*values: object) -> object:
            present = [value for value in values if value is not None]
            if not present:
                return None
            return (max if largest else min)(present, key=lambda value: encode_part(value, kind))

        return choose

    return maker


# Sketches ------------------------------------------------------------------------------------

simple("hll_sketch_estimate", lambda data: sketches.Distinct.from_bytes(data).estimate)
simple("hll_union", lambda a, b: sketches.merged((a, b), sketches.Distinct))
simple("might_contain", lambda data, value: value in sketches.Members.from_bytes(data))

FUNCTIONS["least"] = _extreme(False)
FUNCTIONS["greatest"] = _extreme(True)
FUNCTIONS["try_cast"] = lambda kinds, kind: lambda value: value
