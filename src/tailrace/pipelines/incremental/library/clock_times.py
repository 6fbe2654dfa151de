"""Functions of times of day."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.clock_times import DAY, format_time, micros_in
from tailrace.pipelines.incremental.functions import Scalar, made, simple
from tailrace.pipelines.incremental.library.patterns import read_pattern, read_time, write_time
from tailrace.pipelines.incremental.types import is_decimal, is_float

UNITS = {
    "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}  # fmt: skip
_WRITTEN = set("HhKkmsSa")


def unit_of(name: str) -> int:
    """The microseconds of a unit; EvaluationError for one that there is not."""
    found = UNITS.get(name.upper())
    if found is None:
        raise EvaluationError(f"unknown unit {name!r}", hint=", ".join(UNITS))
    return found


def check_written(pattern: str) -> None:
    """EvaluationError for a pattern with letters that a time of day has not."""
    for part in read_pattern(pattern):
        if part.letter and part.letter not in _WRITTEN:
            raise EvaluationError(f"a time of day has no {part.text!r}")


def _within_a_day(micros: int) -> int:
    if not 0 <= micros < DAY:
        raise EvaluationError("a time of day is from 00:00:00 to 23:59:59.999999")
    return micros


def _make_time(hour: int, minute: int, micros: int) -> int:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= micros < 60_000_000):
        raise EvaluationError(f"there is no time {hour}:{minute}:{micros / 1_000_000}")
    return (hour * 60 + minute) * 60_000_000 + micros


simple("make_time", _make_time)
simple("time_from_millis", lambda millis: _within_a_day(millis * 1_000))
simple("time_from_micros", _within_a_day)


@made("time_from_seconds")
def _time_from_seconds(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if is_float(kinds[0]):

        def of_float(seconds: float) -> int:
            if not math.isfinite(seconds):
                raise EvaluationError(f"{seconds} is no time of day")
            # Cut towards zero at nanoseconds first: a little less than nothing is midnight.
            nanos = int(seconds * 1_000_000_000)
            return _within_a_day(nanos // 1_000)

        return of_float
    if is_decimal(kinds[0]):
        scale = kinds[0].scale

        def of_decimal(unscaled: int) -> int:
            if scale > 9 and unscaled % 10 ** (scale - 9):
                raise EvaluationError("a time of day has at most nine digits of a second")
            return _within_a_day(unscaled * 1_000_000 // 10**scale)

        return of_decimal
    return lambda seconds: _within_a_day(seconds * 1_000_000)


def _of_micros(name: str, compute: Callable[..., object]) -> None:
    """A function of the microseconds of one time of day."""

    @made(name)
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        unit = micros_in(kinds[0])
        return lambda value, *rest: compute(value * unit, *rest)


def _formatted(micros: int, pattern: str) -> str:
    check_written(pattern)
    return str(write_time(micros, pattern))


_of_micros("time_to_seconds", lambda micros: micros)  # a DECIMAL(14,6)
_of_micros("time_to_millis", lambda micros: micros // 1_000)
_of_micros("time_to_micros", lambda micros: micros)
_of_micros("hour_of_time", lambda micros: micros // 3_600_000_000)
_of_micros("minute_of_time", lambda micros: micros // 60_000_000 % 60)
_of_micros("second_of_time", lambda micros: micros // 1_000_000 % 60)
_of_micros("format_of_time", _formatted)
_of_micros("moment_of_time", lambda micros, days: days * DAY + micros)


@made("seconds_of_time")
def _seconds_of_time(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    """Seconds with their digits, as the decimal that has as many."""
    unit = micros_in(kinds[0])
    return lambda value: value % (60_000_000 // unit)


@made("time_trunc")
def _time_trunc(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    unit = micros_in(kind)

    def truncated(name: str, value: int) -> int:
        step = max(unit_of(name) // unit, 1)
        return value // step * step

    return truncated


def _time_diff(name: str, start: int, end: int) -> int:
    size = unit_of(name)
    return abs(end - start) // size * (1 if end >= start else -1)


simple("time_diff", _time_diff)


@made("add_to_time")
def _add_to_time(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    given, unit = micros_in(kinds[0]), micros_in(kind)

    def add(value: int, days: int, micros: int) -> int:
        result = value * given + days * DAY + micros
        if not 0 <= result < DAY:
            raise EvaluationError(
                f"{format_time(value * given)} would leave its day",
                hint="add it to a timestamp",
            )
        return int(result // unit)

    return add


def _parsing(forgiving: bool) -> Scalar:
    def parse(text: str, pattern: str) -> int | None:
        try:
            return int(read_time(text, pattern)) % DAY
        except (ValueError, EvaluationError) as error:
            if forgiving:
                return None
            raise EvaluationError(
                f"{text[:80]!r} is not of the form {pattern!r}", hint="use try_to_time to get NULL"
            ) from error

    return parse


simple("parse_time", _parsing(False))
simple("try_parse_time", _parsing(True))
