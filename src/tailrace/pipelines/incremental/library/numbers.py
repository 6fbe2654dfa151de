"""Numbers: real functions, bits, forms."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import FUNCTIONS, Scalar, _real, made, simple
from tailrace.pipelines.incremental.library.signatures import declare, plain
from tailrace.pipelines.incremental.types import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    ddl,
    is_decimal,
    is_integer,
)


def _ln(value: float) -> float:
    return math.log(value) if value == value else value


_REAL: dict[str, Callable[[float], float]] = {
    "acos": math.acos, "asin": math.asin, "atan": math.atan, "sinh": math.sinh,
    "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh, "acosh": math.acosh,
    "expm1": math.expm1,
}  # fmt: skip
for _name, _function in _REAL.items():
    declare(_name, DOUBLE, DOUBLE)(_real(_function))
declare("atanh", DOUBLE, DOUBLE)(
    lambda x: math.copysign(math.inf, x) if abs(x) == 1 else _real(math.atanh)(x)
)
declare("log1p", DOUBLE, DOUBLE)(_real(math.log1p, lambda x: x > -1))
declare("sec", DOUBLE, DOUBLE)(_real(lambda x: 1 / math.cos(x)))
declare("csc", DOUBLE, DOUBLE)(
    _real(lambda x: 1 / math.sin(x) if x else math.copysign(math.inf, x))
)
declare("cot", DOUBLE, DOUBLE)(
    _real(lambda x: 1 / math.tan(x) if x else math.copysign(math.inf, x))
)
declare("atan2", DOUBLE, DOUBLE, DOUBLE)(lambda y, x: math.atan2(y + 0.0, x + 0.0))
declare("hypot", DOUBLE, DOUBLE, DOUBLE)(math.hypot)
declare("rint", DOUBLE, DOUBLE)(lambda x: math.copysign(round(x), x) if math.isfinite(x) else x)
declare("nanvl", DOUBLE, DOUBLE, DOUBLE, keeps_null=True)(
    lambda a, b: None if a is None else b if a != a else a
)
declare("bin", STRING, BIGINT)(lambda value: format(value % (1 << 64), "b"))
declare("log", DOUBLE, DOUBLE, DOUBLE)(
    lambda base, x: None if base <= 0 or x <= 0 else _ratio(_ln(x), _ln(base))
)


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.nan if a == 0 else math.copysign(math.inf, a)


@declare("factorial", BIGINT, INT)
def _factorial(value: int) -> int | None:
    return math.factorial(value) if 0 <= value <= 20 else None


@declare("width_bucket", BIGINT, DOUBLE, DOUBLE, DOUBLE, BIGINT)
def _width_bucket(value: float, low: float, high: float, buckets: int) -> int | None:
    if buckets <= 0 or low == high or not all(map(math.isfinite, (low, high))) or value != value:
        return None
    lower, upper = min(low, high), max(low, high)
    if low < high:
        if value < lower:
            return 0
        if value >= upper:
            return buckets + 1
        return int(buckets * (value - lower) / (upper - lower)) + 1
    if value > upper:
        return 0
    if value <= lower:
        return buckets + 1
    return int(buckets * (upper - value) / (upper - lower)) + 1


# Bits -------------------------------------------------------------------------------------------


def _wrapped(value: int, kind: pa.DataType) -> int:
    bits = kind.bit_width
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _bits(name: str, operation: Callable[[int, int], int]) -> None:
    @made(name)
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        return lambda a, b: _wrapped(operation(a, b), kind)


_bits("&", lambda a, b: a & b)
_bits("|", lambda a, b: a | b)
_bits("^", lambda a, b: a ^ b)


@made("~")
def _inverted(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value: ~value


@made("shiftleft")
def _shift_left(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value, count: _wrapped(value << (count % kind.bit_width), kind)


@made("shiftright")
def _shift_right(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value, count: value >> (count % kind.bit_width)


@made("shiftrightunsigned")
def _shift_right_unsigned(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    mask = (1 << kind.bit_width) - 1
    return lambda value, count: _wrapped((value & mask) >> (count % kind.bit_width), kind)


@declare("bit_count", INT, BIGINT)
def _bit_count(value: int) -> int:
    return (value & ((1 << 64) - 1)).bit_count()


@made("bit_get")
def _bit_get(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    width = kinds[0].bit_width

    def bit(value: int, position: int) -> int:
        if not 0 <= position < width:
            raise EvaluationError(f"there is no bit {position} in {ddl(kinds[0])}")
        return (value >> position) & 1

    return bit


@made("hex")
def _hex(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if is_integer(kinds[0]):
        return lambda value: format(value % (1 << 64), "X")
    return lambda data: data.hex().upper()


# Forms ------------------------------------------------------------------------------------------


@plain("format_number")
def _format_number(value: Any, digits: int) -> str | None:
    """Digits in groups of three, rounded half to even."""
    if digits < 0:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "∞" if value > 0 else "-∞"
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    from tailrace.pipelines.incremental.functions import _EXACT

    rounded = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN, _EXACT)
    return f"{rounded:,f}"


@plain("format_string", keeps_null=True)
def _format_string(form: str | None, *values: Any) -> str | None:
    if form is None:
        return None
    import re

    out: list[str] = []
    at = taken = 0
    for found in re.finditer(r"%(?:(\d+)\$)?([-#+ 0,(]*)(\d*)(?:\.(\d+))?([a-zA-Z%])", form):
        gap = form[at : found.start()]
        if "%" in gap:
            raise EvaluationError(f"bad format {form!r}")
        out.append(gap)
        at = found.end()
        place, flags, width, precision, kind = found.groups()
        if kind == "%":
            out.append("%".rjust(int(width or 0)))
            continue
        if kind == "n":
            out.append("\n")
            continue
        if place:
            index = int(place) - 1
        else:
            index, taken = taken, taken + 1
        if index >= len(values):
            raise EvaluationError(f"the format {form!r} wants more values")
        out.append(_formatted(values[index], flags, width, precision, kind, form))
    if "%" in form[at:]:
        raise EvaluationError(f"bad format {form!r}")
    return "".join([*out, form[at:]])


def _formatted(
    value: Any, flags: str, width: str, precision: str | None, kind: str, form: str
) -> str:
    wrong = EvaluationError(f"%{kind} in {form!r} does not fit {type(value).__name__}")
    upper = kind.isupper()
    lower = kind.lower()
    if value is None and lower != "b":
        text = "null"[: int(precision)] if precision else "null"
    elif lower == "s":
        text = _shown(value)
        text = text[: int(precision)] if precision else text
    elif lower == "b":
        text = "false" if value is None or value is False else "true"
    elif lower == "c":
        text = value if isinstance(value, str) else chr(value)
    elif lower in "dxo":
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong
        if lower == "d":
            text = f"{abs(value):{',' if ',' in flags else ''}d}"
        else:
            text = format(value % (1 << (32 if -(1 << 31) <= value < 1 << 31 else 64)), lower)
    elif lower in "feg":
        if not isinstance(value, float):  # Spark formats no decimals with %f
            raise wrong
        digits = int(precision) if precision else 6
        text = _real_text(abs(Decimal(repr(value))), digits, lower, "," in flags)
    else:
        raise EvaluationError(f"%{kind} in {form!r} is not known", hint="%s %d %f %e %x %o %c %b")
    if value is not None and lower in "dfeg":
        negative = value < 0
        sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
        if negative and "(" in flags:
            text = f"({text})"
        elif "0" in flags and width:
            text = sign + text.rjust(int(width) - len(sign), "0")
        else:
            text = sign + text
    elif lower in "xo" and "0" in flags and width and value is not None:
        text = text.rjust(int(width), "0")
    if width:
        text = text.ljust(int(width)) if "-" in flags else text.rjust(int(width))
    return text.upper() if upper else text


def _real_text(number: Decimal, digits: int, kind: str, grouped: bool) -> str:
    from decimal import ROUND_HALF_UP

    from tailrace.pipelines.incremental.functions import _EXACT

    if kind == "f":
        rounded = number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)
        return f"{rounded:{',' if grouped else ''}f}"
    if kind == "e":
        exponent = number.adjusted() if number else 0
        mantissa = number.scaleb(-exponent).quantize(
            Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT
        )
        if mantissa >= 10:
            mantissa, exponent = mantissa.scaleb(-1), exponent + 1
            mantissa = mantissa.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)
        return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    raise EvaluationError("%g is not known", hint="use %f or %e")


def _shown(value: Any) -> str:
    from tailrace.pipelines.incremental.casts import format_float

    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


# NULL instead of an error -------------------------------------------------------------------------


_EXACTLY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


def _trying(name: str, sign: str) -> None:
    compute = _EXACTLY[sign]

    @made(name)
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        if is_decimal(kind):
            return _decimal_trying(sign, kinds, kind)
        if not is_integer(kind):
            return compute
        limit = 1 << (kind.bit_width - 1)

        def whole(a: int, b: int) -> int | None:
            result = int(compute(a, b))
            return result if -limit <= result < limit else None

        return whole


def _decimal_trying(sign: str, kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    from tailrace.pipelines.incremental.evaluate import round_half_up

    a_scale, b_scale = kinds[0].scale, kinds[1].scale
    natural = a_scale + b_scale if sign == "*" else max(a_scale, b_scale)
    ups = (1, 1) if sign == "*" else (10 ** (natural - a_scale), 10 ** (natural - b_scale))
    down, limit = 10 ** (natural - kind.scale), 10**kind.precision

    def compute(a: int, b: int) -> int | None:
        a, b = a * ups[0], b * ups[1]
        exact = a * b if sign == "*" else a + b if sign == "+" else a - b
        result = round_half_up(exact, down)
        return result if -limit < result < limit else None

    return compute


_trying("try_add", "+")
_trying("try_subtract", "-")
_trying("try_multiply", "*")


@made("try_mod")
def _try_mod(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    remainder = FUNCTIONS["%"](kinds, kind)
    return lambda a, b: None if b == 0 else remainder(a, b)


@made("try_divide")
def _try_divide(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if not is_decimal(kind):
        return lambda a, b: None if b == 0 else a / b
    from tailrace.pipelines.incremental.evaluate import round_half_up

    shift = kind.scale - kinds[0].scale + kinds[1].scale
    limit = 10**kind.precision

    def quotient(a: int, b: int) -> int | None:
        if b == 0:
            return None
        above = a * 10**shift if shift >= 0 else a
        below = b if shift >= 0 else b * 10**-shift
        sign = -1 if (above < 0) != (below < 0) else 1
        result = sign * round_half_up(abs(above), abs(below))
        return result if -limit < result < limit else None

    return quotient


def _to_digits(up: bool) -> Callable[[list[pa.DataType], pa.DataType], Scalar]:
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        scale = kinds[0].scale

        def rounded(value: int, digits: int) -> int:
            step = 10 ** (scale - digits) if digits < scale else 1
            whole = -(-value // step) if up else value // step
            exact = whole * step
            return exact // 10 ** (scale - kind.scale) if kind.scale < scale else exact

        return rounded

    return maker


FUNCTIONS["ceil_to"] = _to_digits(True)
FUNCTIONS["floor_to"] = _to_digits(False)
simple("positive", lambda value: value)


def float_bits(value: float, single: bool) -> int:
    """The bits of a number; −0.0 is 0.0 and there is one NaN."""
    value = value + 0.0
    form, whole = ("<f", "<I") if single else ("<d", "<Q")
    if value != value:
        return 0x7FC00000 if single else 0x7FF8000000000000
    return int(struct.unpack(whole, struct.pack(form, value))[0])
