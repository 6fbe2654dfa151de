"""The units that Spark's type of an interval names: `DAY`, `HOUR TO SECOND`, `YEAR TO MONTH`.

Intervals of months and intervals of days and less are two kinds that do not mix; what
make_interval gives is of neither (`CALENDAR`).
"""

from __future__ import annotations

from collections.abc import Iterable

MONTHS = ("YEAR", "MONTH")
CLOCK = ("DAY", "HOUR", "MINUTE", "SECOND")
DAYS, DAYS_TO_SECONDS, YEARS_TO_MONTHS, CALENDAR = (
    "DAY",
    "DAY TO SECOND",
    "YEAR TO MONTH",
    "CALENDAR",
)
# In months, or in microseconds.
SIZES = {
    "YEAR": 12, "MONTH": 1, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}  # fmt: skip


def fields_of(units: str) -> tuple[str, ...]:
    """All fields from the first to the last: hours, minutes and seconds of HOUR TO SECOND."""
    if units == CALENDAR:
        return ()
    first, _, last = units.partition(" TO ")
    kind = MONTHS if first in MONTHS else CLOCK
    return kind[kind.index(first) : kind.index(last or first) + 1]


def of_months(units: str) -> bool:
    return units.partition(" TO ")[0] in MONTHS


def widest(units: str) -> str:
    """The units of an interval times a number."""
    if units == CALENDAR:
        return units
    return YEARS_TO_MONTHS if of_months(units) else DAYS_TO_SECONDS


def spanning(units: Iterable[str]) -> str | None:
    """The units of what may be any of several; None if they are of two kinds."""
    several = set(units)
    if len(several) == 1:
        return several.pop()
    found = {field for one in several for field in fields_of(one)}
    kind = next((kind for kind in (MONTHS, CLOCK) if found <= set(kind)), None)
    if kind is None or CALENDAR in several or not found:
        return None
    first, *_, last = sorted(found, key=kind.index)
    return f"{first} TO {last}"


def shown(number: int, units: str) -> str:
    """`INTERVAL '-1 02:03:04.5' DAY TO SECOND`: the number is of months, of days if those are
    its units, else of microseconds."""
    rest, text = abs(number), ""
    fields = fields_of(units)
    if units == DAYS:
        text = str(rest)
    elif of_months(units):
        text = f"{rest // 12}-{rest % 12}" if len(fields) > 1 else str(rest // SIZES[units])
    else:
        for field in fields:
            amount, rest = divmod(rest, SIZES[field])
            between = "" if not text else " " if field == "HOUR" else ":"
            text += between + (str(amount) if field == "DAY" else f"{amount:02d}")
        text += f".{rest:06d}".rstrip("0") if rest else ""
    return f"INTERVAL '{'-' if number < 0 else ''}{text}' {units}"
