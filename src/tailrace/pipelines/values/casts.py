"""CAST with Spark's meaning (ANSI): what does not fit is an error, never a wrapped value."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.clock_times import time_cast
from tailrace.pipelines.values.rows import physical, to_array
from tailrace.pipelines.values.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    GEOGRAPHY,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ddl,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
    is_temporal,
    is_time,
)

_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(_NUMBER.pattern.replace("[0-9]", r"\d"))  # Java's takes all digits
_NO_NUMBERS = ("nan", "inf", "infinity")
_REAL = re.compile(_NUMBER.pattern + r"[df]?|nan|[+-]?inf(inity)?")
_BITS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


def cast_array(values: pa.Array, kind: pa.DataType, *, forgiving: bool = False) -> pa.Array:
    """`values` as `kind`. `forgiving` (try_cast): NULL instead of an error."""
    source = values.type
    if source == kind:
        return values
    if source == NULL:
        return pa.nulls(len(values), kind)
    if _lossless(source, kind):
        return values.cast(kind)
    if pa.types.is_nested(kind):
        return _cast_nested(values, kind, forgiving)
    if kind == STRING and pa.types.is_nested(source):
        return spelled(values)
    convert = _converter(source, kind)
    out: list[object] = []
    for value in physical(values):
        if value is None:
            out.append(None)
            continue
        try:
            out.append(convert(value))
        except (ValueError, OverflowError) as error:
            if not forgiving:
                shown = f"{value!r}"[:80]
                raise EvaluationError(
                    f"{shown} cannot be cast to {ddl(kind)}", hint="use try_cast to get NULL"
                ) from error
            out.append(None)
    return to_array(out, kind)


def castable(
    source: pa.DataType, kind: pa.DataType, *, written: bool = False, forgiving: bool = False
) -> bool:
    """Whether `cast_array` knows a way. `written`: by a CAST in the query, which makes a text of
    anything; no function takes an array for a text by itself. `forgiving`: by a try_cast, which
    could make NULLs of the keys of a map."""
    if source != kind and any(map(_is_sparks_own, (source, kind))):
        return False
    how = {"written": written, "forgiving": forgiving}
    if kind == STRING and pa.types.is_nested(source):
        return written
    if NULL in (source, kind) or source == kind or _lossless(source, kind):
        return True
    if pa.types.is_map(kind) and pa.types.is_map(source):
        keys, wanted = source.key_type, kind.key_type
        if forgiving and not (keys == wanted or wanted == STRING or _lossless(keys, wanted)):
            return False
        return castable(keys, wanted, **how) and castable(source.item_type, kind.item_type, **how)
    if pa.types.is_list(kind) and pa.types.is_list(source) and not pa.types.is_map(source):
        return castable(source.value_type, kind.value_type, **how)
    if pa.types.is_struct(kind) and pa.types.is_struct(source):
        return len(source) == len(kind) and all(
            castable(a.type, b.type, **how) for a, b in zip(source, kind, strict=True)
        )
    if pa.types.is_nested(source) or pa.types.is_nested(kind):
        return False
    if source == BINARY:
        return bool(kind == STRING)
    try:
        _converter(source, kind)
    except EvaluationError:
        return False
    return True


def _is_sparks_own(kind: pa.DataType) -> bool:
    """Whether only Spark casts values of a type."""
    return bool(kind in (VARIANT, GEOGRAPHY) or pa.types.is_interval(kind))


def spelled(values: pa.Array) -> pa.Array:
    """Arrays, maps and structs as texts: `[1, null]`, `{k -> v}`, `{a, 1}`."""
    whole = pa.concat_arrays([values])  # without an offset of its own
    valid = whole.is_valid().to_pylist()
    if pa.types.is_struct(whole.type):
        fields = [_texts(field) for field in whole.flatten()]
        rows = zip(*fields, strict=True) if fields else [()] * len(whole)
        out = [f"{{{', '.join(row)}}}" if known else None
               for known, row in zip(valid, rows, strict=True)]  # fmt: skip
        return pa.array(out, STRING)
    if pa.types.is_map(whole.type):
        pairs = zip(_texts(whole.keys), _texts(whole.items), strict=True)
        parts, form = [f"{key} -> {item}" for key, item in pairs], "{{{}}}"
    else:
        parts, form = _texts(whole.values), "[{}]"
    ends = whole.offsets.to_pylist()
    out = [form.format(", ".join(parts[start:end])) if known else None
           for known, start, end in zip(valid, ends, ends[1:], strict=False)]  # fmt: skip
    return pa.array(out, STRING)


def _texts(values: pa.Array) -> list[str]:
    """Each value inside a nested one as a text."""
    return ["null" if text is None else text for text in cast_array(values, STRING).to_pylist()]


def _cast_nested(values: pa.Array, kind: pa.DataType, forgiving: bool) -> pa.Array:
    """Part by part."""
    if pa.types.is_map(kind):
        whole = pa.concat_arrays([values])  # without an offset of its own
        keys = cast_array(whole.keys, kind.key_type, forgiving=forgiving)
        items = cast_array(whole.items, kind.item_type, forgiving=forgiving)
        entries = pa.MapArray.from_arrays(whole.offsets, keys, items)
        if not whole.null_count:
            return entries
        # A place of -1 is NULL: there is no choosing between maps by a mask.
        places = np.where(
            whole.is_valid().to_numpy(zero_copy_only=False), np.arange(len(whole)), -1
        )
        return entries.take(pa.array(places, mask=places < 0))
    if pa.types.is_list(kind):
        whole = pa.concat_arrays([values])
        parts = cast_array(whole.values, kind.value_type, forgiving=forgiving)
        made = pa.ListArray.from_arrays(whole.offsets, parts)
        if not whole.null_count:
            return made
        return pc.if_else(whole.is_valid(), made, pa.scalar(None, made.type))
    fields = [
        cast_array(part, field.type, forgiving=forgiving)
        for part, field in zip(values.flatten(), kind, strict=True)
    ]
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)


def _lossless(source: pa.DataType, kind: pa.DataType) -> bool:
    if is_integer(source):
        if is_integer(kind):
            return bool(kind.bit_width >= source.bit_width)
        if is_float(kind):
            return bool(source.bit_width <= 32 and kind == pa.float64())
        if is_decimal(kind):
            digits = {8: 3, 16: 5, 32: 10, 64: 19}[source.bit_width]
            return bool(kind.precision - kind.scale >= digits)
        return bool(kind == STRING)
    if is_decimal(source) and is_decimal(kind):
        return bool(
            kind.scale >= source.scale
            and kind.precision - kind.scale >= source.precision - source.scale
        )
    if source == pa.float32() and kind == pa.float64():
        return True
    if source == DATE and kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return True
    return {source, kind} == {TIMESTAMP, TIMESTAMP_NTZ} or (
        source == STRING and kind == pa.binary()
    )


def _converter(source: pa.DataType, kind: pa.DataType) -> Callable[[object], object]:
    if is_time(source) or is_time(kind):
        return time_cast(source, kind)
    if is_numeric(kind) and source in (DATE, TIMESTAMP_NTZ):
        raise EvaluationError(f"cannot cast {ddl(source)} to {ddl(kind)}")
    if is_integer(kind):
        return _to_integer(source, kind)
    if is_decimal(kind):
        return _to_decimal(source, kind)
    if is_float(kind):
        return _to_float(source, kind)
    if kind == BOOLEAN and not is_temporal(source):
        return _to_boolean if source == STRING else bool
    if kind == STRING:
        return _to_string(source)
    if kind == DATE:
        return _to_date(source)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ) and source == STRING:
        local = kind == TIMESTAMP_NTZ
        return lambda value: parse_timestamp(str(value), local=local)
    if kind == TIMESTAMP and is_numeric(source):
        return _to_moment(source)
    raise EvaluationError(f"cannot cast {ddl(source)} to {ddl(kind)}")


def _to_moment(source: pa.DataType) -> Callable[[object], object]:
    """Seconds since 1970 as microseconds, cut off towards zero."""
    unit = 10**source.scale if is_decimal(source) else 1

    def convert(value: object) -> int:
        if isinstance(value, float):
            micros = int(value * 1_000_000)
        else:
            whole = abs(cast(int, value)) * 1_000_000 // unit
            micros = whole if cast(int, value) >= 0 else -whole
        if not -(1 << 63) <= micros < 1 << 63:
            raise OverflowError(value)
        return micros

    return convert


def _to_integer(source: pa.DataType, kind: pa.DataType) -> Callable[[object], object]:
    bound = 1 << _BITS[kind]
    unit = 10**source.scale if is_decimal(source) else 1

    def convert(value: object) -> int:
        if isinstance(value, str):
            text = value.strip()
            if not re.fullmatch(r"[+-]?[0-9]+", text):
                raise ValueError(text)
            number = int(text)
        elif isinstance(value, float):
            number = int(value)
        elif source == TIMESTAMP:
            number = value // 1_000_000  # type: ignore[operator]
        else:
            number = abs(value) // unit * (-1 if value < 0 else 1)  # type: ignore[operator,arg-type]
        if not -bound <= number < bound:
            raise OverflowError(number)
        return number

    return convert


def _to_decimal(source: pa.DataType, kind: pa.DataType) -> Callable[[object], object]:
    from decimal import ROUND_HALF_UP, Context, Decimal

    context = Context(prec=80, rounding=ROUND_HALF_UP)
    limit = 10**kind.precision
    step = Decimal(1).scaleb(-kind.scale)
    places = source.scale if is_decimal(source) else 6 if source == TIMESTAMP else 0

    def convert(value: object) -> int:
        if isinstance(value, float):
            number = Decimal(repr(value))
        elif isinstance(value, str):
            text = value.strip()
            if not _DECIMAL.fullmatch(text):
                raise ValueError(text)
            number = Decimal(text)
        else:
            number = Decimal(value).scaleb(-places, context)  # type: ignore[arg-type]
        if not number.is_finite():
            raise ValueError(value)
        if number and number.adjusted() > 40:
            raise OverflowError(value)
        unscaled = int(number.quantize(step, context=context).scaleb(kind.scale, context))
        if not -limit < unscaled < limit:
            raise OverflowError(value)
        return unscaled

    return convert


def _to_float(source: pa.DataType, kind: pa.DataType) -> Callable[[object], object]:
    import struct
    from fractions import Fraction

    unit = 10**source.scale if is_decimal(source) else 1_000_000 if source == TIMESTAMP else 1

    def convert(value: object) -> float:
        if isinstance(value, str):
            text = value.strip().lower()
            if not _REAL.fullmatch(text):
                raise ValueError(text)
            number = float(text if text.lstrip("+-") in _NO_NUMBERS else text.rstrip("df"))
        elif isinstance(value, bool | float):
            number = float(value)
        else:
            number = float(Fraction(cast(int, value), unit))
        if kind == pa.float32() and number == number and abs(number) != float("inf"):
            try:
                number = struct.unpack("f", struct.pack("f", number))[0]
            except OverflowError:
                number = float("inf") if number > 0 else float("-inf")
        return number

    return convert


def _to_boolean(value: object) -> bool:
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(value)


def _to_string(source: pa.DataType) -> Callable[[object], object]:
    if source == BOOLEAN:
        return lambda value: "true" if value else "false"
    if is_decimal(source):
        return lambda value: format_decimal(value, source.scale)  # type: ignore[arg-type]
    if source == DATE:
        return lambda value: (_EPOCH_DAY + datetime.timedelta(days=value)).isoformat()  # type: ignore[arg-type]
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return lambda value: format_timestamp(value)  # type: ignore[arg-type]
    if source == FLOAT:
        return lambda value: format_single(value)  # type: ignore[arg-type]
    if is_float(source):
        return lambda value: format_float(value)  # type: ignore[arg-type]
    if source == pa.binary():
        return lambda value: value.decode("utf-8", "replace")  # type: ignore[attr-defined]
    return str


_EPOCH_DAY = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)


def format_decimal(unscaled: int, scale: int) -> str:
    """A decimal in plain digits with all of its scale."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = digits if not scale else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{text}" if unscaled < 0 else text


def format_float(value: float) -> str:
    """A double as Java prints it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" in text:
            from decimal import Decimal

            text = format(Decimal(text), "f")
        return text if "." in text else text + ".0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        from decimal import Decimal

        sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
        shown = "".join(map(str, digits))
        number = f"{shown[0]}.{shown[1:] or '0'}E{len(shown) - 1 + int(power)}"
        return f"-{number}" if sign else number
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def format_single(value: float) -> str:
    """A float of 32 bits as Java prints it: with the digits that tell it from the next."""
    return format_float(float(str(np.float32(value))))


def format_timestamp(micros: int) -> str:
    moment = _EPOCH + datetime.timedelta(microseconds=micros)
    text = moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    return text + (f".{micros % 1_000_000:06d}".rstrip("0") if micros % 1_000_000 else "")


_DAY = r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_DATE_TEXT = re.compile(_DAY + r"(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP_TEXT = re.compile(
    _DAY + r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(.*))?)?)?)?)?",
    re.DOTALL,
)


def parse_date(text: str) -> int:
    """Days since 1970 of `yyyy[-[m]m[-[d]d]]`, what follows a space or T left out, as Spark
    reads it; ValueError when it is none."""
    found = _DATE_TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    year, month, day = (int(part or 1) for part in found.groups())
    return (datetime.date(year, month, day) - _EPOCH_DAY).days


def parse_timestamp(text: str, *, local: bool = False) -> int:
    """Microseconds since 1970 of a date with or without a time, as Spark reads it; UTC unless
    it says. `local`: the zone it says is left out. A time without a date would be of today,
    another one each time: it is none here."""
    found = _TIMESTAMP_TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    *numbers, fraction, zone = found.groups()
    year, month, day = (int(part or 1) for part in numbers[:3])
    hour, minute, second = (int(part or 0) for part in numbers[3:])
    moment = datetime.datetime(year, month, day, hour, minute, second)
    micros = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    micros += int((fraction or "").ljust(6, "0")[:6])
    if zone and zone.strip():
        shifted = moment.replace(tzinfo=time_zone(zone.strip()))
        micros -= 0 if local else (shifted.utcoffset() or _NO_TIME) // _MICROSECOND
    return micros


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_NO_TIME, _MICROSECOND = datetime.timedelta(0), datetime.timedelta(microseconds=1)


@lru_cache(1024)
def time_zone(name: str) -> datetime.tzinfo:
    """A zone by its name or offset; ValueError when there is none."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return datetime.UTC
    if found := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        if hours > 18 or minutes > 59 or seconds > 59:
            raise ValueError(name)
        delta = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-delta if found[1] == "-" else delta)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(name) from error


def _to_date(source: pa.DataType) -> Callable[[object], object]:
    if source == STRING:
        return lambda value: parse_date(str(value))
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return lambda value: value // 86_400_000_000  # type: ignore[operator]
    raise EvaluationError(f"cannot cast {ddl(source)} to DATE")
