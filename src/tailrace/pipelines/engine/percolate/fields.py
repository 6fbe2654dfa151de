"""The columns that stored queries can name, and the values they are compared with."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import pyarrow as pa

from tailrace.analyzers import words_of
from tailrace.pipelines.values import types

Comparable = int | float | str | Fraction
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class ValueFault(ValueError):
    """A text that is no value of a column; says what would be one."""


@dataclass(frozen=True, slots=True)
class Fields:
    """`texts`: columns that are searched word by word, and their languages ("": none).
    `values`: columns that are compared as a whole. `every`: bare words must all be there; else
    any of them."""

    texts: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, pa.DataType], ...]
    every: bool = False

    @property
    def names(self) -> list[str]:
        return [name for name, _ in (*self.texts, *self.values)]

    def groups(self) -> list[tuple[str, tuple[str, ...]]]:
        """The text columns of each language: a bare word has one form in all of them."""
        found: dict[str, list[str]] = {}
        for name, language in self.texts:
            found.setdefault(language, []).append(name)
        return [(language, tuple(names)) for language, names in found.items()]

    def find(self, name: str) -> str | None:
        """The column that a query means by `name`; columns differ by more than case."""
        if name in self.names:
            return name
        near = [known for known in self.names if known.lower() == name.lower()]
        return near[0] if len(near) == 1 else None

    def language(self, name: str) -> str | None:
        """That of a text column; None: its values are compared as a whole."""
        return dict(self.texts).get(name)

    def type(self, name: str) -> pa.DataType:
        return dict(self.values)[name]


def words(language: str, text: str) -> list[str]:
    return words_of(language)(text)


def is_comparable(kind: pa.DataType) -> bool:
    """Whether values of a column of that type can be compared with what a query says."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_float(kind)
        or types.is_decimal(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


def reader(kind: pa.DataType) -> Callable[[str], Comparable]:
    """What reads a value in a query, in the form `physical` values are compared with."""
    if pa.types.is_string(kind):
        return str
    if pa.types.is_boolean(kind):
        return _boolean
    if types.is_decimal(kind):
        scale = kind.scale
        return lambda text: _whole(_number(text) * 10**scale)
    if types.is_integer(kind):
        return lambda text: _whole(_number(text))
    if types.is_float(kind):
        # A FLOAT is compared with the FLOAT that is written, as its column shows it.
        return lambda text: cast(float, pa.scalar(float(_number(text)), kind).as_py())
    if pa.types.is_date32(kind):
        return lambda text: (_moment(text, dates=True) - _EPOCH).days
    return lambda text: (_moment(text) - _EPOCH) // datetime.timedelta(microseconds=1)


def _boolean(text: str) -> int:
    if text.lower() not in ("true", "false"):
        raise ValueFault(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _number(text: str) -> Fraction:
    try:
        number = decimal.Decimal(text)
        if not number.is_finite() or abs(number.adjusted()) > 400:
            raise ValueFault(f"{text!r} is no number that can be compared")
        return Fraction(number)
    except decimal.InvalidOperation:
        raise ValueFault(f"{text!r} is no number") from None


def _whole(number: Fraction) -> Comparable:
    return number.numerator if number.denominator == 1 else number


def _moment(text: str, *, dates: bool = False) -> datetime.datetime:
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueFault(f"{text!r} is no {'date' if dates else 'time'}") from None
    if dates and len(text) > 10:
        raise ValueFault(f"{text!r} is no date")
    return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found


def as_written(value: Comparable, kind: pa.DataType) -> str:
    """A value as a query can have it: the reverse of `reader`."""
    if isinstance(value, str):
        return value
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if types.is_decimal(kind):
        value = Fraction(value) / 10**kind.scale
    if pa.types.is_date32(kind) and isinstance(value, int):
        return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
    if pa.types.is_timestamp(kind) and isinstance(value, int):
        moment = _EPOCH + datetime.timedelta(microseconds=value)
        return moment.isoformat().removesuffix("+00:00")
    if isinstance(value, Fraction):
        exact = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        return f"{exact:f}"
    return str(value)
