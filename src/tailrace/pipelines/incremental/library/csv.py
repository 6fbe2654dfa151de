"""CSV: a line of text from and to a struct, and what types a line seems to have.

A line is read as Spark's parser reads it: `"` quotes, `\\` escapes a quote or itself inside
quotes; a quoted value that goes on behind its closing quote is taken as it stands.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.casts import (
    cast_array,
    format_float,
    format_single,
    parse_timestamp,
)
from tailrace.pipelines.incremental.clock_times import short_time
from tailrace.pipelines.incremental.functions import Scalar
from tailrace.pipelines.incremental.library.patterns import read_time, write_time
from tailrace.pipelines.incremental.library.signatures import plain_typed
from tailrace.pipelines.incremental.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_decimal,
    is_float,
    is_integer,
    is_time,
)

OPTIONS = ("sep", "delimiter", "nullvalue", "dateformat", "timestampformat", "timestampntzformat")
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.date()
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Form:
    """The options of a call that are known here; names in lower case."""

    separator: str = ","
    null: str = ""
    date: str | None = None
    timestamp: str | None = None
    timestamp_ntz: str | None = None


@lru_cache(64)
def read_form(options: str) -> Form:
    """The options of a call, a JSON object; ValueError names one that is not known."""
    known = {name.lower(): value for name, value in json.loads(options).items()}
    for name in known:
        if name not in OPTIONS:
            raise ValueError(f"option {name!r} is not known here")
    separator = known.get("sep", known.get("delimiter", ","))
    if len(separator) != 1:
        raise ValueError("the separator is one character")
    return Form(
        separator,
        known.get("nullvalue", ""),
        known.get("dateformat"),
        known.get("timestampformat"),
        known.get("timestampntzformat"),
    )


def split_line(text: str, separator: str) -> list[str]:
    """The values of a line."""
    values: list[str] = []
    at = 0
    while True:
        if text[at : at + 1] == '"':
            value, at = _quoted(text, at, separator)
        else:
            end = text.find(separator, at)
            end = len(text) if end < 0 else end
            value, at = text[at:end], end
        values.append(value)
        if at >= len(text):
            return values
        at += 1


def _quoted(text: str, start: int, separator: str) -> tuple[str, int]:
    """The value that begins with a quote, and where it ends."""
    parts: list[str] = []
    at = start + 1
    while at < len(text):
        letter = text[at]
        if letter == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
            parts.append(text[at + 1])
            at += 2
            continue
        if letter == '"':
            end = at + 1
            while text[end : end + 1] in (" ", "\t"):
                end += 1
            if end >= len(text) or text[end] == separator:
                return "".join(parts), end
            # More follows: the value is no quoted one.
            end = text.find(separator, at)
            end = len(text) if end < 0 else end
            return text[start:end], end
        parts.append(letter)
        at += 1
    return "".join(parts), at


# from_csv -----------------------------------------------------------------------------------------


@plain_typed("from_csv")
def _from_csv(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    def compute(text: str, options: str) -> Any:
        form = read_form(options)
        made = _readers(kind, form)
        values = split_line(text, form.separator)
        out: dict[str, Any] = {}
        for at, (field, read) in enumerate(zip(kind, made, strict=True)):
            value = values[at] if at < len(values) else form.null
            try:
                out[field.name] = None if value == form.null else read(value)
            except (ValueError, OverflowError, EvaluationError):
                out[field.name] = None
        return out

    return compute


@lru_cache(64)
def _readers(kind: pa.DataType, form: Form) -> list[Callable[[str], Any]]:
    return [reader(field.type, form) for field in kind]


def reader(kind: pa.DataType, form: Form) -> Callable[[str], Any]:
    """What reads a value of a type; EvaluationError when a line has no such values."""
    if kind == STRING:
        return str
    if kind == BINARY:
        return str.encode
    if kind == BOOLEAN:
        return _boolean
    if kind == DATE:
        if form.date is not None:
            pattern = form.date
            return lambda text: _EPOCH_DAY + datetime.timedelta(_moment(text, pattern) // _DAY)
        return lambda text: _cast(text, kind)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        pattern_of = form.timestamp if kind == TIMESTAMP else form.timestamp_ntz
        zone = datetime.UTC if kind == TIMESTAMP else None

        def moment(text: str) -> datetime.datetime:
            if pattern_of is not None:
                micros = _moment(text, pattern_of)
            else:
                micros = parse_timestamp(text)
                if zone is None and micros != parse_timestamp(text, local=True):
                    raise ValueError(text)
            return (_EPOCH + datetime.timedelta(microseconds=micros)).replace(tzinfo=zone)

        return moment
    if is_time(kind):
        return lambda text: _cast(text, kind)
    if is_integer(kind):
        return lambda text: _cast(text, kind) if text == text.strip() else _no(text)
    if is_float(kind):
        return lambda text: _cast(text, kind)
    if is_decimal(kind):
        return lambda text: _cast(text.replace(",", ""), kind)
    raise EvaluationError(f"from_csv gives no {kind}")


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _no(text: str) -> Any:
    raise ValueError(text)


def _moment(text: str, pattern: str) -> int:
    return int(read_time(text, pattern))


def _cast(text: str, kind: pa.DataType) -> Any:
    return cast_array(pa.array([text], STRING), kind)[0].as_py()


# to_csv -------------------------------------------------------------------------------------------


@plain_typed("to_csv")
def _to_csv(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    def compute(row: dict[str, Any], options: str) -> str | None:
        form = read_form(options)
        values = [
            form.null if row[field.name] is None else shown(row[field.name], field.type, form)
            for field in kinds[0]
        ]
        if len(values) == 1 and row[kinds[0][0].name] is None and not form.null:
            return None
        return form.separator.join(
            value if row[field.name] is None else _written(value, at == 0, form.separator)
            for at, (value, field) in enumerate(zip(values, kinds[0], strict=True))
        )

    return compute


def _written(value: str, first: bool, separator: str) -> str:
    """A value with quotes where they are needed; space around it goes."""
    if not value:
        return '""'
    trimmed = value.strip(" \t\r\n")
    needed = separator in value or any(letter in value for letter in '"\n\r')
    if not needed and not (first and trimmed.startswith("#")):
        return trimmed
    return '"' + trimmed.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shown(value: Any, kind: pa.DataType, form: Form) -> str:
    """A value as text, without quotes."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return format_single(value) if kind == pa.float32() else format_float(value)
        case Decimal():
            return f"{value:f}"
        case datetime.datetime():
            zoned = value.tzinfo is not None
            pattern = form.timestamp if zoned else form.timestamp_ntz
            if pattern is not None:
                micros = (value.replace(tzinfo=None) - _EPOCH) // datetime.timedelta(microseconds=1)
                return str(write_time(micros, pattern))
            text = value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}"
            return text + ("Z" if zoned else "")
        case datetime.date():
            if form.date is not None:
                return str(write_time((value - _EPOCH_DAY).days * _DAY, form.date))
            return value.isoformat()
        case datetime.time():
            return short_time(value)
        case bytes():
            return "[" + " ".join(f"{byte:02X}" for byte in value) + "]"
    return str(value)


# schema_of_csv ------------------------------------------------------------------------------------


def schema_of_csv(text: str, form: Form) -> str:
    """The types a line seems to have, as Spark guesses them."""
    values = split_line(text, form.separator)
    parts = [f"_c{at}: {_guessed(value, form)}" for at, value in enumerate(values)]
    return f"STRUCT<{', '.join(parts)}>"


def _guessed(value: str, form: Form) -> str:
    if value == form.null:
        return "STRING"
    if re.fullmatch(r"[+-]?[0-9]+", value):
        number = int(value)
        for name, bits in (("INT", 31), ("BIGINT", 63)):
            if -(1 << bits) <= number < 1 << bits:
                return name
        digits = len(str(abs(number)))
        return f"DECIMAL({digits},0)" if digits <= 38 else "DOUBLE"
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})?", value):
        return "TIMESTAMP"  # of today, says Spark
    for name, kind in (("DOUBLE", pa.float64()), ("DATE", DATE), ("TIMESTAMP", TIMESTAMP)):
        if name == "DATE" and not re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", value):
            continue
        try:
            _cast(value, kind)
        except EvaluationError:
            continue
        return name
    return "BOOLEAN" if value.lower() in ("true", "false") else "STRING"
