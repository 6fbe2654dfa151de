"""Dates and times beyond `times`: patterns, epochs, zones."""

from __future__ import annotations

import datetime

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.casts import time_zone
from tailrace.pipelines.incremental.functions import Scalar, made, simple
from tailrace.pipelines.incremental.library.patterns import read_time, write_time
from tailrace.pipelines.incremental.library.signatures import declare
from tailrace.pipelines.incremental.times import (
    DAY,
    _months_between,
    add_months,
)
from tailrace.pipelines.incremental.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)

_EPOCH = datetime.datetime(1970, 1, 1)
_MICRO = datetime.timedelta(microseconds=1)

declare("date_format", STRING, TIMESTAMP, STRING)(write_time)
declare("date_from_unix_date", DATE, INT)(lambda days: days)
declare("unix_date", INT, DATE)(lambda days: days)
declare("unix_seconds", BIGINT, TIMESTAMP)(lambda micros: micros // 1_000_000)
declare("unix_millis", BIGINT, TIMESTAMP)(lambda micros: micros // 1_000)
declare("unix_micros", BIGINT, TIMESTAMP)(lambda micros: micros)
declare("timestamp_millis", TIMESTAMP, BIGINT)(lambda millis: millis * 1_000)
declare("timestamp_micros", TIMESTAMP, BIGINT)(lambda micros: micros)
declare("from_unixtime", STRING, BIGINT, STRING, optional=1)(
    lambda seconds, pattern="yyyy-MM-dd HH:mm:ss": write_time(seconds * 1_000_000, pattern)
)
declare("dayname", STRING, DATE)(lambda days: write_time(days * DAY, "EEE"))
declare("monthname", STRING, DATE)(lambda days: write_time(days * DAY, "MMM"))
declare("months_between_exact", DOUBLE, TIMESTAMP, TIMESTAMP)(
    lambda end, start: _months_between(end, start, exact=True)
)


def _parsing(unit: int, forgiving: bool) -> Scalar:
    def parse(text: str, pattern: str) -> int | None:
        try:
            return read_time(text, pattern) // unit
        except ValueError as error:
            if forgiving:
                return None
            raise EvaluationError(
                f"{text[:80]!r} is not of the form {pattern!r}",
                detail=str(error),
                hint="use try_to_timestamp or try_to_date to get NULL",
            ) from error

    return parse


simple("parse_timestamp", _parsing(1, False))
simple("try_parse_timestamp", _parsing(1, True))
simple("parse_date", _parsing(DAY, False))
simple("try_parse_date", _parsing(DAY, True))
declare("parse_unix", BIGINT, STRING, STRING)(_parsing(1_000_000, False))


@declare("next_day", DATE, DATE, STRING)
def _next_day(days: int, name: str) -> int:
    names = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
    full = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
    given = name.upper()
    for wanted, (short, long) in enumerate(zip(names, full, strict=True)):
        if given in (short, long, long[:3]):
            weekday = (days + 3) % 7  # 1970-01-01 was a Thursday
            return days + ((wanted - weekday - 1) % 7) + 1
    raise EvaluationError(f"{name!r} is no day of the week")


def _moment(forgiving: bool) -> Scalar:
    def make(year: int, month: int, day: int, hour: int, minute: int, micros: int) -> int | None:
        """`micros`: the seconds, as a DECIMAL(16,6)."""
        try:
            carry = 60_000_000 if micros == 60_000_000 else 0
            moment = datetime.datetime(year, month, day, hour, minute)
            if not 0 <= micros <= 60_000_000:
                raise ValueError("second out of range")
            return (moment - _EPOCH) // _MICRO + (carry or micros)
        except (ValueError, OverflowError) as error:
            if forgiving:
                return None
            raise EvaluationError(
                "no such time", detail=str(error), hint="use try_make_timestamp to get NULL"
            ) from error

    return make


simple("make_timestamp", _moment(False))
simple("try_make_timestamp", _moment(True))


def _zone(name: str) -> datetime.tzinfo:
    try:
        return time_zone(name)
    except ValueError as error:
        raise EvaluationError(f"unknown time zone {name!r}") from error


def to_local(micros: int, zone: str) -> int:
    """A moment (UTC) as the clock on the wall of that zone showed it."""
    moment = (_EPOCH + datetime.timedelta(microseconds=micros)).replace(tzinfo=datetime.UTC)
    local = moment.astimezone(_zone(zone)).replace(tzinfo=None)
    return (local - _EPOCH) // _MICRO


def to_utc(micros: int, zone: str) -> int:
    """The moment at which the clock of that zone shows `micros`; a time that a change of
    clocks skips moves on by the gap."""
    local = (_EPOCH + datetime.timedelta(microseconds=micros)).replace(tzinfo=_zone(zone))
    return (local.astimezone(datetime.UTC).replace(tzinfo=None) - _EPOCH) // _MICRO


declare("from_utc_timestamp", TIMESTAMP, TIMESTAMP, STRING)(to_local)
declare("to_utc_timestamp", TIMESTAMP, TIMESTAMP, STRING)(to_utc)
declare("convert_timezone", TIMESTAMP_NTZ, STRING, STRING, TIMESTAMP_NTZ)(
    lambda source, target, micros: to_local(to_utc(micros, source), target)
)


@made("timestampadd")
def _timestampadd(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    spans = {
        "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000,
        "HOUR": 3_600_000_000, "DAY": DAY, "WEEK": 7 * DAY, "DAYOFYEAR": DAY,
    }  # fmt: skip
    months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}

    def add(unit: str, count: int, micros: int) -> int:
        if unit in spans:
            return micros + count * spans[unit]
        return add_months(micros // DAY, count * months[unit]) * DAY + micros % DAY

    return add


def _time_bucket(micros: int, origin: int, months: int, size: int) -> int:
    """The start of the bucket of `months` or `size` microseconds, counted from an origin."""
    if not months:
        return origin + (micros - origin) // size * size
    first, now = (_EPOCH + datetime.timedelta(microseconds=m) for m in (origin, micros))
    between = (now.year - first.year) * 12 + now.month - first.month
    count = between // months * months

    def start(count: int) -> int:
        return add_months(origin // DAY, count) * DAY + origin % DAY

    return start(count) if start(count) <= micros else start(count - months)


simple("time_bucket", _time_bucket)
