"""When a condition on the clock holds for a row: spans of time, found before they come.

A condition is a tree of comparisons of a row's time with the clock, `value > now - 1 hour`, and
of truths that do not look at the clock. For one row it holds in some stretches of the clock's
time and not in others; `spans` gives them all, so that the row can be told when to come and
when to leave. Times are microseconds since 1970, in UTC.

The clock may be moved by *steps*, from the inside out: by microseconds, by months (31 March
less a month is 28 February, and so is 28 March: time then goes back a little at midnight), or to
the beginning of a unit. Of a step only one thing need be known: for which times it gives less
than a bound.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tailrace.pipelines.engine.functions.times import DAY, UNITS, add_months, truncated

EVER = 1 << 62
Spans: TypeAlias = list[tuple[int, int]]  # from (inclusive) until (exclusive), in order, apart
ALWAYS: Spans = [(-EVER, EVER)]
# What dates can be reckoned with; no clock gets there.
_FIRST = (datetime.date(1, 12, 31).toordinal() - datetime.date(1970, 1, 1).toordinal()) * DAY
_LAST = (datetime.date(9999, 1, 1).toordinal() - datetime.date(1970, 1, 1).toordinal()) * DAY
_MONTHS = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}
TRUNCATIONS = frozenset([*UNITS, "WEEK", *_MONTHS])


@dataclass(frozen=True, slots=True)
class Shift:
    """The clock and so many microseconds."""

    micros: int

    def __str__(self) -> str:
        return f"{self.micros:+} µs"

    def below(self, bound: int) -> Spans:
        """The times for which the step gives less than `bound`."""
        return _until(bound - self.micros)


@dataclass(frozen=True, slots=True)
class Months:
    """The same day and time so many months on, or that month's last day."""

    count: int

    def __str__(self) -> str:
        return f"{self.count:+} months"

    def below(self, bound: int) -> Spans:
        if not _FIRST <= bound <= _LAST:
            return ALWAYS if bound > 0 else []
        days, rest = divmod(bound, DAY)
        first = truncated("MONTH", days)
        begins = add_months(first, -self.count)  # the month that is moved to the bound's
        length = add_months(begins, 1) - begins
        place, last = days - first, add_months(first, 1) - first - 1
        if place >= length:
            return _until((begins + length) * DAY)
        found = _until((begins + place) * DAY + rest)
        if place == last and rest:  # all days behind it become this one, too
            for day in range(begins + place + 1, begins + length):
                found = united(found, [(day * DAY, day * DAY + rest)])
        return found


@dataclass(frozen=True, slots=True)
class Truncation:
    """The beginning of the unit the time is in."""

    unit: str

    def __str__(self) -> str:
        return f"from its {self.unit}"

    def below(self, bound: int) -> Spans:
        if self.unit in UNITS:
            size = UNITS[self.unit]
            return _until(-(-bound // size) * size)
        if not _FIRST <= bound <= _LAST:
            return ALWAYS if bound > 0 else []
        days = -(-bound // DAY)
        begins = truncated(self.unit, days)
        if begins < days:
            begins = begins + 7 if self.unit == "WEEK" else add_months(begins, _MONTHS[self.unit])
        return _until(begins * DAY)


Step: TypeAlias = Shift | Months | Truncation


@dataclass(frozen=True, slots=True)
class Moment:
    """`value OPERATOR clock`: of <, <=, >, >=, =. `value` is the number of a column."""

    value: int
    operator: str
    steps: tuple[Step, ...] = ()

    def shown(self, names: Sequence[str]) -> str:
        return " ".join([names[self.value], self.operator, "clock", *map(str, self.steps)])

    def holds(self, row: Sequence[int | bool | None]) -> Spans:
        value = row[self.value]
        if value is None:
            return []
        match self.operator:
            case ">":
                return self._below(value)
            case ">=":
                return self._below(value + 1)
            case "<":
                return _others(self._below(value + 1))
            case "<=":
                return _others(self._below(value))
        return _common(self._below(value + 1), _others(self._below(value)))

    def _below(self, bound: int) -> Spans:
        """When the moved clock is before `bound`."""
        if not self.steps:
            return _until(bound)
        found = _until(bound)
        for step in reversed(self.steps):
            outer, found = found, []
            for begin, end in outer:
                reached = ALWAYS if end >= EVER else step.below(end)
                passed = [] if begin <= -EVER else step.below(begin)
                found = united(found, _common(reached, _others(passed)))
        return found


@dataclass(frozen=True, slots=True)
class Truth:
    """A column of booleans; NULL is not true."""

    value: int

    def shown(self, names: Sequence[str]) -> str:
        return names[self.value]

    def holds(self, row: Sequence[int | bool | None]) -> Spans:
        return ALWAYS if row[self.value] else []


@dataclass(frozen=True, slots=True)
class Every:
    """All of the parts hold."""

    parts: tuple[Condition, ...]

    def shown(self, names: Sequence[str]) -> str:
        return "(" + " and ".join(part.shown(names) for part in self.parts) + ")"

    def holds(self, row: Sequence[int | bool | None]) -> Spans:
        found = self.parts[0].holds(row)
        for part in self.parts[1:]:
            if not found:
                return found
            found = _common(found, part.holds(row))
        return found


@dataclass(frozen=True, slots=True)
class Some:
    """One of the parts holds, or more."""

    parts: tuple[Condition, ...]

    def shown(self, names: Sequence[str]) -> str:
        return "(" + " or ".join(part.shown(names) for part in self.parts) + ")"

    def holds(self, row: Sequence[int | bool | None]) -> Spans:
        found = self.parts[0].holds(row)
        for part in self.parts[1:]:
            found = united(found, part.holds(row))
        return found


Condition: TypeAlias = Moment | Truth | Every | Some


def ends(condition: Condition) -> bool:
    """Whether it holds for no row for ever: all rows leave again."""
    match condition:
        case Moment():
            return condition.operator in (">", ">=", "=")
        case Every():
            return any(ends(part) for part in condition.parts)
        case Some():
            return all(ends(part) for part in condition.parts)
    return False


def moments(condition: Condition) -> list[Moment]:
    """The comparisons with the clock in a condition."""
    match condition:
        case Moment():
            return [condition]
        case Every() | Some():
            return [moment for part in condition.parts for moment in moments(part)]
    return []


def is_in(spans: Spans, now: int) -> bool:
    """Whether a time lies in one of them."""
    at = bisect_right(spans, (now, EVER + 1))
    return at > 0 and now < spans[at - 1][1]


def united(one: Spans, other: Spans) -> Spans:
    """What lies in one or the other."""
    if not one or not other:
        return one or other
    found: Spans = []
    for begin, end in sorted([*one, *other]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _common(one: Spans, other: Spans) -> Spans:
    found: Spans = []
    for begin, end in one:
        for start, stop in other:
            if max(begin, start) < min(end, stop):
                found.append((max(begin, start), min(end, stop)))
    return found


def _others(spans: Spans) -> Spans:
    """All other times."""
    found: Spans = []
    last = -EVER
    for begin, end in spans:
        if last < begin:
            found.append((last, begin))
        last = end
    if last < EVER:
        found.append((last, EVER))
    return found


def _until(bound: int) -> Spans:
    return [(-EVER, min(bound, EVER))] if bound > -EVER else []
