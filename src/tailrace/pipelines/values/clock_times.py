"""Times of day: how they are read and written, and their casts.

A value is the count of its type's units (seconds, milliseconds, microseconds) since midnight.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import cast

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.types import (
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ddl,
    digits_of,
    is_decimal,
    is_integer,
    is_time,
)

DAY = 86_400_000_000
_TEXT = re.compile(
    r"T?([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?(?:[\x00-\x20]*([AaPp][Mm]))?"
)
_BITS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


def micros_in(kind: pa.DataType) -> int:
    """The microseconds of a unit of a type."""
    return int(10 ** (6 - digits_of(kind)))


def parse_time(text: str) -> int:
    """Microseconds since midnight of `[T]h:m[:s[.fraction]][ AM|PM]`, as Spark reads it; what is
    less than a microsecond is cut off. ValueError when it is none."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    half = (found[5] or "").upper()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + (12 if half == "PM" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    whole = (hour * 60 + minute) * 60 + second
    return whole * 1_000_000 + int((found[4] or "").ljust(6, "0")[:6])


def format_time(micros: int) -> str:
    """`12:34:56.5`, without the zeros at the end."""
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return text + (f".{fraction:06d}".rstrip("0") if fraction else "")


def short_time(value: datetime.time) -> str:
    """`format_time` of Python's own."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return format_time(seconds * 1_000_000 + value.microsecond)


def time_of(micros: int, kind: pa.DataType) -> datetime.time:
    """Python's own of microseconds since midnight, as exact as a type is."""
    seconds, fraction = divmod(micros - micros % micros_in(kind), 1_000_000)
    minutes, second = divmod(seconds, 60)
    return datetime.time(minutes // 60, minutes % 60, second, fraction)


def time_cast(source: pa.DataType, kind: pa.DataType) -> Callable[[object], object]:
    """A cast from or to a time of day. One to a timestamp would be of today, another each
    time: there is none."""
    if is_time(kind):
        unit = micros_in(kind)
        if source == STRING:
            return lambda value: parse_time(str(value)) // unit
        if source in (TIMESTAMP, TIMESTAMP_NTZ):
            return lambda value: cast(int, value) % DAY // unit
        if is_time(source):
            given = micros_in(source)
            return lambda value: cast(int, value) * given // unit
    else:
        given = micros_in(source)
        if kind == STRING:
            return lambda value: format_time(cast(int, value) * given)
        if is_integer(kind):
            return lambda value: _fitting(cast(int, value) * given // 1_000_000, kind)
        if is_decimal(kind):
            return lambda value: _fitting_decimal(cast(int, value) * given, kind)
    raise EvaluationError(f"cannot cast {ddl(source)} to {ddl(kind)}")


def _fitting(number: int, kind: pa.DataType) -> int:
    if number >> _BITS[kind]:
        raise OverflowError(number)
    return number


def _fitting_decimal(micros: int, kind: pa.DataType) -> int:
    """Seconds as a decimal, halves up."""
    scaled = 2 * micros * 10**kind.scale
    unscaled = int((scaled + 1_000_000) // 2_000_000)
    if unscaled >= 10**kind.precision:
        raise OverflowError(micros)
    return unscaled
