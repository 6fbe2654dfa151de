"""Numbers by a pattern: `to_number('$1,234.50', '$9,999.99')` and `to_char`.

    [MI | S] [$] digits [, digits]… [. digits] [S | MI | PR]      G for ",", D for "."

A run of digits in the pattern that begins with 9 stands for at most so many, one that begins
with 0 for exactly so many; behind the point all are at most. Written, what is missing is a
blank before the point of a run with 9 and else a zero; a sign or bracket moves up to the first
digit, and a number with more digits than places is all #.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import Scalar
from tailrace.pipelines.incremental.library.signatures import plain, plain_typed

_FORM = re.compile(
    r"(?P<before>MI|S)?(?P<dollar>\$)?(?P<whole>[09]+(?:[,G][09]+)*)?"
    r"(?P<point>[.D](?P<part>[09]*))?(?P<behind>MI|S|PR)?"
)
_SIGNS = "+-<"
_BLANKS = "".join(map(chr, range(33)))


@dataclass(frozen=True, slots=True)
class NumberPattern:
    """A pattern taken apart: the runs of digits before the point, how many come behind it."""

    before: str
    dollar: bool
    runs: tuple[str, ...]
    point: bool
    places: int
    behind: str

    @property
    def precision(self) -> int:
        return sum(map(len, self.runs)) + self.places


@lru_cache(256)
def number_pattern(text: str) -> NumberPattern:
    """Read a pattern; ValueError says what is wrong with it."""
    if not text:
        raise ValueError("the pattern is empty")
    found = _FORM.fullmatch(text.upper())
    if found is None:
        raise ValueError(f"{text!r} is no pattern of a number")
    if found["before"] == found["behind"] == "S" or found["before"] == found["behind"] == "MI":
        raise ValueError(f"{text!r} has two signs")
    runs = tuple(re.split("[,G]", found["whole"])) if found["whole"] else ()
    made = NumberPattern(
        found["before"] or "", bool(found["dollar"]), runs,
        bool(found["point"]), len(found["part"] or ""), found["behind"] or "",
    )  # fmt: skip
    if not 0 < made.precision <= 38:
        raise ValueError(f"{text!r} has {made.precision} digits, not 1 to 38")
    return made


def parse_number(text: str, form: NumberPattern) -> Decimal | None:
    """The number a text says; None if it does not have that form."""
    rest, negative = text.strip(_BLANKS), False
    if form.behind == "PR" and rest.startswith("<"):
        if not rest.endswith(">"):
            return None
        rest, negative = rest[1:-1], True
    rest, minus = _take_sign(rest, form.before, 0)
    negative ^= minus
    rest, minus = _take_sign(rest, form.behind if form.behind != "PR" else "", -1)
    negative ^= minus
    if form.dollar:
        if not rest.startswith("$"):
            return None
        rest = rest[1:]
    whole, point, part = rest.partition(".")
    if (point and not form.point) or len(part) > form.places or not _digits(part):
        return None
    runs = form.runs
    if not runs and not point:  # ".9" of a text without a point: its digits come before it
        runs = ("9" * form.places,)
    digits = _whole(whole, runs)
    if digits is None or not digits + part:
        return None
    value = Decimal(f"{digits or 0}.{part or 0}")
    return -value if negative else value


def _digits(text: str) -> bool:
    return not text or text.isdecimal()


def _take_sign(text: str, sign: str, at: int) -> tuple[str, bool]:
    """The text without the sign that may stand at its beginning (0) or end (-1)."""
    if not sign or not text:
        return text, False
    found = text[at]
    if found == "-" or (found == "+" and sign == "S"):
        return (text[1:] if at == 0 else text[:-1]), found == "-"
    return text, False


def _whole(text: str, runs: tuple[str, ...]) -> str | None:
    """The digits before the point; the last run of the text belongs to the last of the form."""
    given = text.split(",") if text else []
    if len(given) > len(runs) or not all(map(_digits, given)):
        return None
    padded = [""] * (len(runs) - len(given)) + given
    for part, run in zip(padded, runs, strict=True):
        if len(part) > len(run) or (run[0] == "0" and len(part) != len(run)):
            return None
    return "".join(padded)


def write_number(value: Decimal, form: NumberPattern) -> str:
    """A number in the form of the pattern."""
    negative = value < 0
    whole, _, part = format(abs(value), "f").partition(".")
    whole, part = whole.lstrip("0"), part.rstrip("0")
    places = sum(map(len, form.runs))
    fits = len(whole) <= places and len(part) <= form.places
    out: list[str] = []
    if form.behind == "PR" and negative:
        out.append("<")
    if form.before:
        out.append("-" if negative else "+" if form.before == "S" else " ")
    if form.dollar:
        out.append("$")
    if fits:
        _write_whole(out, whole.rjust(places), form.runs)
    else:
        out += " ".join("#" * len(run) for run in form.runs)
    if form.point:
        if out and out[-1] == " ":
            out[-1] = "0"
        if form.places:
            out.append(".")
            out += part.ljust(form.places, "0") if fits else "#" * form.places
        else:
            out.append(" ")
    _write_behind(out, form.behind, negative)
    return "".join(out)


def _write_whole(out: list[str], digits: str, runs: tuple[str, ...]) -> None:
    at = 0
    for number, run in enumerate(runs):
        if number:
            if out and out[-1].isdigit():
                out.append(",")
            else:
                _blank(out)
        for digit in digits[at : at + len(run)]:
            if digit != " ":
                out.append(digit)
            elif run[0] == "0":
                out.append("0")
            else:
                _blank(out)
        at += len(run)


def _blank(out: list[str]) -> None:
    """A place without a digit; a sign before it moves up."""
    at = len(out)
    while at and out[at - 1] in _SIGNS:
        at -= 1
    out.insert(at, " ")


def _write_behind(out: list[str], behind: str, negative: bool) -> None:
    match behind:
        case "S":
            mark = "-" if negative else "+"
        case "MI":
            mark = "-" if negative else " "
        case "PR":
            mark = ">" if negative else "  "
        case _:
            return
    if mark.isspace():
        out.append(mark)
        return
    at = len(out)
    while at and out[at - 1] == " ":
        at -= 1
    out.insert(at, mark)


@plain_typed("to_number")
def _to_number(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return _parser(kind, strict=True)


@plain_typed("try_to_number")
def _try_to_number(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return _parser(kind, strict=False)


def _parser(kind: pa.DataType, *, strict: bool) -> Scalar:
    unit = Decimal(1).scaleb(-kind.scale)

    def compute(text: str, pattern: str) -> Decimal | None:
        value = parse_number(text, number_pattern(pattern))
        if value is None:
            if strict:
                raise EvaluationError(
                    f"{text!r} does not match the number pattern {pattern!r}",
                    hint="try_to_number gives NULL instead",
                )
            return None
        if value and value.adjusted() >= kind.precision - kind.scale:
            raise EvaluationError(f"{value} does not fit DECIMAL({kind.precision},{kind.scale})")
        return value.quantize(unit)

    return compute


@plain("to_char")
def _to_char(value: Decimal, pattern: str) -> str:
    return write_number(value, number_pattern(pattern))
