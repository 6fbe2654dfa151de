"""Functions of dates and timestamps; all in UTC.

Dates are days and timestamps microseconds since 1970-01-01.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable

import pyarrow as pa

from tailrace.pipelines.engine.functions.scalar import Scalar, made, simple
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.types import DATE

_EPOCH = datetime.date(1970, 1, 1)
_ORDINAL = _EPOCH.toordinal()
DAY = 86_400_000_000
UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000, "DAY": DAY, "DD": DAY,
}  # fmt: skip


def _date(days: int) -> datetime.date:
    return datetime.date.fromordinal(days + _ORDINAL)


def _days(date: datetime.date) -> int:
    return date.toordinal() - _ORDINAL


def add_months(days: int, months: int) -> int:
    """The same day of another month, or that month's last."""
    date = _date(days)
    index = date.year * 12 + date.month - 1 + months
    year, month = divmod(index, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return _days(datetime.date(year, month + 1, min(date.day, last)))


def last_day(days: int) -> int:
    """The last day of the month."""
    date = _date(days)
    return days - date.day + calendar.monthrange(date.year, date.month)[1]


def truncated(unit: str, days: int) -> int:
    """The first day of the week, month, quarter or year."""
    date = _date(days)
    match unit:
        case "WEEK":
            return days - date.weekday()
        case "MONTH" | "MON" | "MM":
            return _days(date.replace(day=1))
        case "QUARTER":
            return _days(date.replace(month=(date.month - 1) // 3 * 3 + 1, day=1))
        case "YEAR" | "YYYY" | "YY":
            return _days(date.replace(month=1, day=1))
    raise EvaluationError(f"unknown unit {unit!r}")


def date_trunc(unit: str, micros: int) -> int:
    if unit in UNITS:
        return micros // UNITS[unit] * UNITS[unit]
    return truncated(unit, micros // DAY) * DAY


def _part(name: str) -> None:
    parts: dict[str, Callable[[datetime.date], int]] = {
        "year": lambda date: date.year,
        "month": lambda date: date.month,
        "day": lambda date: date.day,
        "dayofweek": lambda date: date.isoweekday() % 7 + 1,
        "dayofyear": lambda date: date.timetuple().tm_yday,
        "quarter": lambda date: (date.month + 2) // 3,
        "weekday": lambda date: date.weekday(),
        "weekofyear": lambda date: date.isocalendar()[1],
        "yearofweek": lambda date: date.isocalendar()[0],
        "dayofweek_iso": lambda date: date.isoweekday(),
    }

    @made(name)
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        take = parts[name]
        if kinds[0] == DATE:
            return lambda days: take(_date(days))
        return lambda micros: take(_date(micros // DAY))


for _name in ("year", "month", "day", "dayofweek", "dayofyear", "quarter", "weekofyear", "weekday",
              "yearofweek", "dayofweek_iso"):  # fmt: skip
    _part(_name)


def _time_part(name: str, unit: int, modulus: int) -> None:
    @made(name)
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        if kinds[0] == DATE:
            return lambda days: 0
        return lambda micros: micros // unit % modulus


_time_part("hour", 3_600_000_000, 24)
_time_part("minute", 60_000_000, 60)
_time_part("second", 1_000_000, 60)
_time_part("second_and_parts", 1, 60_000_000)


def _difference(unit: str, start: int, end: int) -> int:
    """Whole units from start to end."""
    name = unit.upper()
    if name in ("MONTH", "QUARTER", "YEAR"):
        a, b = _date(start // DAY), _date(end // DAY)
        months = (b.year - a.year) * 12 + b.month - a.month
        rest = (b.day, end % DAY) < (a.day, start % DAY), (b.day, end % DAY) > (a.day, start % DAY)
        if months > 0 and rest[0]:
            months -= 1
        elif months < 0 and rest[1]:
            months += 1
        size = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[name]
    else:
        months, size = end - start, {**UNITS, "WEEK": 7 * DAY}.get(name, 0)
        if not size:
            raise EvaluationError(f"unknown unit {unit!r}")
    return abs(months) // size * (1 if months >= 0 else -1)


simple("timestampdiff", _difference)
simple("date_trunc", date_trunc)
simple("trunc", lambda days, unit: truncated(unit, days))
simple("date_add", lambda days, count: days + count)
simple("date_sub", lambda days, count: days - count)
simple("datediff", lambda end, start: end - start)
simple("add_months", add_months)
simple(
    "unix_timestamp", lambda micros: -(-micros // 1_000_000) if micros < 0 else micros // 1_000_000
)
simple("last_day", last_day)


@made("add_interval")
def _add_interval(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    if kind == DATE:
        return lambda day, months, days, micros: (add_months(day, months) if months else day) + days

    def add(moment: int, months: int, days: int, micros: int) -> int:
        if months:
            moment = add_months(moment // DAY, months) * DAY + moment % DAY
        return int(moment + days * DAY + micros)

    return add


@made("timestampadd")
def _timestampadd(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    spans = {**UNITS, "WEEK": 7 * DAY, "DAYOFYEAR": DAY}
    months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}

    def add(unit: str, count: int, micros: int) -> int:
        if unit in spans:
            return micros + count * spans[unit]
        return add_months(micros // DAY, count * months[unit]) * DAY + micros % DAY

    return add
