"""Date and time patterns of Java (`yyyy-MM-dd HH:mm:ss`), to write and to read.

Letters that Spark knows and this does not are refused when the pattern is read, never
ignored. Times are microseconds since 1970, in UTC.
"""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass
from functools import lru_cache

from tailrace.pipelines.errors import EvaluationError

_EPOCH = datetime.datetime(1970, 1, 1)
_MONTHS = list(calendar.month_name)[1:]
_SHORT_MONTHS = [name[:3] for name in _MONTHS]
_DAYS = list(calendar.day_name)
_SHORT_DAYS = [name[:3] for name in _DAYS]
_LETTERS = "yMLdDEaHhKkmsSQqzZXxOV"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of one letter, or (`letter` "") literal text; `optional` inside [ ]."""

    letter: str
    text: str
    optional: int = 0


@lru_cache(256)
def read_pattern(pattern: str) -> tuple[Part, ...]:
    """The parts of a pattern; EvaluationError for what is not known."""
    parts: list[Part] = []
    at, section, sections = 0, 0, 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            end = pattern.find("'", at + 1)
            if end < 0:
                raise EvaluationError(f"the pattern {pattern!r} has an open quote")
            parts.append(Part("", pattern[at + 1 : end] or "'", section))
            at = end + 1
        elif letter == "[":
            sections += 1
            section, at = sections, at + 1
        elif letter == "]":
            section, at = 0, at + 1
        elif letter.isascii() and letter.isalpha():
            run = re.match(rf"{letter}+", pattern[at:])
            assert run is not None
            if letter not in _LETTERS:
                raise EvaluationError(
                    f"the letter {letter!r} of the pattern {pattern!r} is not known",
                    hint=f"known are {', '.join(_LETTERS)}",
                )
            parts.append(Part(letter, run[0], section))
            at += len(run[0])
        else:
            parts.append(Part("", letter, section))
            at += 1
    return tuple(parts)


def write_time(micros: int, pattern: str) -> str:
    """A time in the form of a pattern."""
    moment = _EPOCH + datetime.timedelta(microseconds=micros)
    return "".join(
        part.text if not part.letter else _written(moment, part.letter, len(part.text))
        for part in read_pattern(pattern)
    )


def _written(moment: datetime.datetime, letter: str, count: int) -> str:
    match letter:
        case "y":
            return f"{moment.year % 100:02d}" if count == 2 else f"{moment.year:0{count}d}"
        case "M" | "L":
            if count > 2:
                return (_SHORT_MONTHS if count == 3 else _MONTHS)[moment.month - 1]
            return f"{moment.month:0{count}d}"
        case "d":
            return f"{moment.day:0{count}d}"
        case "D":
            return f"{moment.timetuple().tm_yday:0{count}d}"
        case "E":
            return (_SHORT_DAYS if count < 4 else _DAYS)[moment.weekday()]
        case "a":
            return "AM" if moment.hour < 12 else "PM"
        case "H":
            return f"{moment.hour:0{count}d}"
        case "k":
            return f"{moment.hour or 24:0{count}d}"
        case "K":
            return f"{moment.hour % 12:0{count}d}"
        case "h":
            return f"{(moment.hour - 1) % 12 + 1:0{count}d}"
        case "m":
            return f"{moment.minute:0{count}d}"
        case "s":
            return f"{moment.second:0{count}d}"
        case "S":
            return f"{moment.microsecond:06d}000"[:count]
        case "Q" | "q":
            quarter = (moment.month + 2) // 3
            if count > 2:
                return f"Q{quarter}" if count == 3 else f"{_ordinal(quarter)} quarter"
            return f"{quarter:0{count}d}"
        case "z":
            return "UTC" if count < 4 else "Coordinated Universal Time"
        case "V":
            return "UTC"
        case "X":
            return "Z"
        case "x":
            return {1: "+00", 2: "+0000", 3: "+00:00", 4: "+0000", 5: "+00:00"}[count]
        case "Z":
            return {4: "GMT", 5: "Z"}.get(count, "+0000")
    return "GMT"


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


@lru_cache(256)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[tuple[str, int], ...]]:
    out: list[str] = []
    groups: list[tuple[str, int]] = []
    section = 0
    parts = read_pattern(pattern)
    for at, part in enumerate(parts):
        if part.optional != section:
            out.append(")?" if section else "")
            out.append("(?:" if part.optional else "")
            section = part.optional
        if not part.letter:
            out.append(re.escape(part.text))
            continue
        follows = at + 1 < len(parts) and bool(parts[at + 1].letter)
        out.append(f"({_readable(part.letter, len(part.text), follows, pattern)})")
        groups.append((part.letter, len(part.text)))
    out.append(")?" if section else "")
    return re.compile("".join(out)), tuple(groups)


def _readable(letter: str, count: int, follows: bool, pattern: str) -> str:
    match letter:
        case "y":
            return rf"\d{{{count}}}" if follows or count == 2 else r"[+-]?\d{4,9}" if (
                count == 4
            ) else r"[+-]?\d{1,9}"  # fmt: skip
        case "M" | "L" if count > 2:
            return "|".join(_SHORT_MONTHS if count == 3 else _MONTHS)
        case "M" | "L" | "d" | "D" | "H" | "k" | "K" | "h" | "m" | "s" | "Q" | "q":
            most = 3 if letter == "D" else 2
            return rf"\d{{{count}}}" if count > 1 or follows else rf"\d{{1,{most}}}"
        case "S":
            return rf"\d{{1,{count}}}"
        case "E":
            return "|".join(_SHORT_DAYS if count < 4 else _DAYS)
        case "a":
            return "AM|PM"
        case "X":
            return r"Z|[+-]\d{2}(?::?\d{2})?"
        case "x" | "Z":
            return r"[+-]\d{2}(?::?\d{2})?"
        case "z" | "V":
            return r"UTC|GMT|Z|[+-]\d{2}:?\d{2}"
    raise EvaluationError(f"the letter {letter!r} of {pattern!r} can be written, not read")


def read_time(text: str, pattern: str) -> int:
    """The time a text gives in the form of a pattern; ValueError when it does not fit."""
    form, groups = _reader(pattern)
    found = form.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not of the form {pattern!r}")
    year, month, day, hour, minute, second, micros, offset = 1970, 1, 1, 0, 0, 0, 0, 0
    half: bool | None = None
    of_year = 0
    for (letter, count), value in zip(groups, found.groups(), strict=True):
        if value is None:
            continue
        match letter:
            case "y":
                year = int(value) + (2000 if count == 2 else 0)
            case "M" | "L":
                names = _SHORT_MONTHS if count == 3 else _MONTHS
                month = names.index(value) + 1 if count > 2 else int(value)
            case "d":
                day = int(value)
            case "D":
                of_year = int(value)
            case "a":
                half = value == "PM"
            case "H" | "k":
                hour = int(value) % 24 if letter == "k" else int(value)
            case "h" | "K":
                hour = int(value) % 12
            case "m":
                minute = int(value)
            case "s":
                second = int(value)
            case "S":
                micros = int(value.ljust(9, "0")[:6])
            case "X" | "x" | "Z" | "z" | "V":
                offset = _offset(value)
    if half:
        hour += 12
    moment = datetime.datetime(year, month, day, hour, minute, second, micros)
    if of_year:
        moment += datetime.timedelta(days=of_year - 1)
        if moment.year != year:
            raise ValueError(text)
    moment -= datetime.timedelta(minutes=offset)
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def _offset(text: str) -> int:
    if text[:1] not in "+-":
        return 0
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:4] or 0)
    return -minutes if text[0] == "-" else minutes
