"""Rows of views and streams: JSON in the log, Arrow everywhere else.

A column's type is written in Spark's words (`DECIMAL(10,2)`, `ARRAY<BIGINT>`). In JSON
decimals, dates and timestamps are strings, binaries base64; here they become Arrow's
own types. `read_rows` takes the fast way (Arrow's JSON reader on all rows at once) and,
if any row does not fit, the slow way, which names the rows that do not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tailrace.records.json_bytes import json_bytes

Columns = Sequence[tuple[str, str]]
_BRACE, _END = b"{}"
_WIDE = Context(prec=80)  # more than any decimal has; Python's own takes 28 digits

SIMPLE = {
    "STRING": pa.string(), "VARCHAR": pa.string(), "CHAR": pa.string(),
    "TINYINT": pa.int8(), "BYTE": pa.int8(), "SMALLINT": pa.int16(), "SHORT": pa.int16(),
    "INT": pa.int32(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "LONG": pa.int64(),
    "FLOAT": pa.float32(), "REAL": pa.float32(), "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(), "BINARY": pa.binary(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"), "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that does not fit its columns: its index among the rows given, and why."""

    index: int
    reason: str


def arrow_type(ddl: str) -> pa.DataType:
    """The Arrow type of a Spark DDL type; types without a counterpart are text."""
    text = ddl.strip()
    word = text.split("(")[0].split("<")[0].strip().upper()
    inner = text[text.find("<") + 1 : text.rfind(">")] if "<" in text else ""
    if word in ("DECIMAL", "NUMERIC", "DEC"):
        arguments = text[text.find("(") + 1 : text.rfind(")")] if "(" in text else "10,0"
        precision, _, scale = arguments.partition(",")
        return pa.decimal128(int(precision), int(scale or 0))
    if word == "ARRAY":
        return pa.list_(arrow_type(inner))
    if word == "MAP":
        key, value = _split(inner)
        return pa.map_(arrow_type(key), arrow_type(value))
    if word == "STRUCT":
        fields = []
        for part in _split(inner):
            name, _, kind = part.strip().partition(":" if ":" in part.split("<")[0] else " ")
            fields.append((name.strip().strip("`"), arrow_type(kind)))
        return pa.struct(fields)
    return SIMPLE.get(word, pa.string())


def _split(text: str) -> list[str]:
    """Split at commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def arrow_schema(columns: Columns) -> pa.Schema:
    """One nullable field per column."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in columns])


def row_of(value: bytes) -> bytes:
    """The JSON of the row inside a changelog value `{"row":{…}}`."""
    if value.startswith(b'{"row":{') and value.endswith(b"}}"):
        return value[7:-1]
    row = orjson.loads(value)["row"]
    if not isinstance(row, dict):
        raise ValueError("the value has no row")
    return json_bytes(row)


def normal_key(key: bytes | None) -> bytes:
    """A record key as compact JSON, whatever the spacing and escapes it was written with."""
    return b"" if key is None else json_bytes(orjson.loads(key))


def read_rows(rows: Sequence[bytes], columns: Columns) -> tuple[pa.Table, list[Refused]]:
    """An Arrow table of JSON objects, and the rows that do not fit (left out of it)."""
    return read_objects(rows, arrow_schema(columns))


def read_objects(rows: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, list[Refused]]:
    """`read_rows` for whoever has an Arrow schema already."""
    if not rows:
        return schema.empty_table(), []
    try:
        return _read_fast(rows, schema), []
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError):
        return _read_slow(rows, schema)


def read_column(values: pa.BinaryArray, schema: pa.Schema) -> pa.Table | None:
    """`read_objects` of an Arrow column without NULL, all rows at once; None if any row does
    not fit, or a type must be read row by row."""
    if not len(values):
        return schema.empty_table()
    if values.null_count:
        return None
    offsets = np.frombuffer(values.buffers()[1], "<i4")[values.offset :][: len(values) + 1]
    data = np.frombuffer(values.buffers()[2], "u1")
    firsts, lasts = offsets[:-1], offsets[1:] - 1
    if (firsts > lasts).any() or (data[firsts] != _BRACE).any() or (data[lasts] != _END).any():
        return None  # as in `_read_fast`
    lines = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    try:
        text = pc.binary_join(lines, b"\n")[0].as_buffer()
        return _read_lines(text, len(values), schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError):
        return None


def _raw_type(kind: pa.DataType) -> pa.DataType:
    """How a type is spelled in JSON."""
    if pa.types.is_list(kind):
        return pa.list_(_raw_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _raw_type(f.type)) for f in kind])
    if pa.types.is_map(kind) or pa.types.is_binary(kind):
        raise pa.ArrowNotImplementedError("read row by row")
    if pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        return pa.string()
    return kind


def _read_fast(rows: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    # Arrow's reader crashes the process on a bare `null` where it expects an object. And it
    # minds no line ends: only where each row begins and ends with a brace is the place between
    # two of them outside of every object, so that as many objects as rows are one each.
    if any(row[:1] != b"{" or row[-1:] != b"}" for row in rows):
        raise pa.ArrowInvalid("not an object")
    return _read_lines(pa.py_buffer(b"\n".join(rows)), len(rows), schema)


def _read_lines(text: pa.Buffer, count: int, schema: pa.Schema) -> pa.Table:
    raw = pa.schema([(f.name, _raw_type(f.type)) for f in schema])
    table = pyarrow.json.read_json(
        pa.BufferReader(text),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=text.size + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=raw, unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != count:
        raise pa.ArrowInvalid("a row spans lines")
    columns = [_cast(table.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


# In UTC, in microseconds: what Python, and so every reader of ours, has a date for.
_FIRST_MOMENT = -62_135_596_800_000_000
_LAST_MOMENT = 253_402_300_799_999_999


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column as its type; times without a zone are UTC, if none of them has one."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        try:
            moments = column.cast(kind)
        except pa.ArrowInvalid:
            return column.cast(pa.timestamp(kind.unit)).cast(kind)
        bounds = pc.min_max(moments.cast(pa.int64()))
        if bounds["min"].is_valid and not (
            bounds["min"].as_py() >= _FIRST_MOMENT and bounds["max"].as_py() <= _LAST_MOMENT
        ):
            raise pa.ArrowInvalid("a moment of a year without four digits")  # by its offset
        return moments
    if pa.types.is_time(kind):  # Arrow reads times of day as part of a moment only
        moments = pc.binary_join_element_wise("1970-01-01T", column, "")
        return moments.cast(pa.timestamp("us")).cast(kind)
    return column.cast(kind)


def _read_slow(rows: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, list[Refused]]:
    refused: list[Refused] = []
    columns: list[list[Any]] = [[] for _ in schema]
    for index, text in enumerate(rows):
        try:
            try:
                values = _values(orjson.loads(text), schema)
            except (_InexactError, orjson.JSONDecodeError):
                values = _values(exact_json(text), schema)
        except ValueError as reason:
            refused.append(Refused(index, str(reason)))
            continue
        except RecursionError:
            refused.append(Refused(index, "nested too deeply"))
            continue
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema), refused


def _values(row: object, schema: pa.Schema) -> list[Any]:
    if not isinstance(row, dict):
        raise ValueError("not an object")
    return [_convert_field(row.get(field.name), field) for field in schema]


class _Number(str):
    """A number of JSON as it is written."""

    __slots__ = ()


class _InexactError(Exception):
    """A number whose text is wanted was read as a float."""


def exact_json(text: bytes) -> Any:
    """JSON whose numbers are their texts: none is too long or too large."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=refuse)


def _json_text(value: Any) -> str:
    """What `exact_json` gave, as compact JSON."""
    match value:
        case _Number():
            return str(value)
        case dict():
            parts = (f"{orjson.dumps(k).decode()}:{_json_text(v)}" for k, v in value.items())
            return f"{{{','.join(parts)}}}"
        case list():
            return f"[{','.join(map(_json_text, value))}]"
        case float():
            raise _InexactError
        case _:
            return orjson.dumps(value).decode()


# Postgres's infinities, as Spark reads them from Postgres: its types have none.
_DATES = {"infinity": date.max, "-infinity": date.min}
_MOMENTS = {"infinity": datetime.max, "-infinity": datetime.min}


class _Misfit(ValueError):
    """A value that does not fit, and where it stands."""

    def __init__(self, path: str, reason: object) -> None:
        super().__init__(f"column {path!r}: {reason}")
        self.path, self.reason = path, reason


def _convert_field(value: Any, field: pa.Field) -> Any:
    try:
        return _convert(value, field.type)
    except _Misfit as inner:
        raise _Misfit(f"{field.name}.{inner.path}", inner.reason) from inner
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as reason:
        raise _Misfit(field.name, reason) from reason


def _convert(value: Any, kind: pa.DataType) -> Any:
    """A JSON value as the Python value of an Arrow type; ValueError where it does not fit."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return _text(str(value)) if isinstance(value, str) else _json_text(value)
    if isinstance(value, _Number):
        value = str(value) if pa.types.is_decimal(kind) else orjson.loads(value.encode())
    if pa.types.is_boolean(kind):
        if isinstance(value, bool):
            return value
    elif pa.types.is_integer(kind):
        if isinstance(value, int | str) and not isinstance(value, bool):
            return pa.scalar(int(value), kind).as_py()
        if isinstance(value, float) and value.is_integer():
            return pa.scalar(int(value), kind).as_py()
    elif pa.types.is_floating(kind):
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    elif pa.types.is_decimal(kind):
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            try:
                number = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
                return pa.scalar(number, kind).as_py()
            except (InvalidOperation, pa.ArrowInvalid) as reason:
                raise ValueError(f"{value!r} is no number of {kind}") from reason
    elif pa.types.is_time(kind):
        return time.fromisoformat(value)
    elif pa.types.is_date(kind):
        return _DATES.get(value) or date.fromisoformat(value)
    elif pa.types.is_timestamp(kind):
        moment = _MOMENTS.get(value) or datetime.fromisoformat(value)
        if kind.tz is None:
            return moment.replace(tzinfo=None)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    elif pa.types.is_binary(kind):
        return base64.b64decode(value, validate=True)
    elif pa.types.is_list(kind) and isinstance(value, list):
        return [_convert(item, kind.value_type) for item in value]
    elif pa.types.is_struct(kind) and isinstance(value, dict):
        return {f.name: _convert_field(value.get(f.name), f) for f in kind}
    elif pa.types.is_map(kind) and isinstance(value, dict):
        return [(_text(k), _convert(v, kind.item_type)) for k, v in value.items()]
    raise ValueError(f"{value!r} is not {kind}")


def _text(text: str) -> str:
    """A text, or ValueError where it is none: an escape of JSON can be half a character."""
    if not text.isascii():
        text.encode()
    return text


def json_value(value: Any) -> Any:
    """A Python value as it is written in JSON rows: decimals as text, times in ISO 8601."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if value != value:  # NaN
                return "NaN"
            return value if value not in (float("inf"), float("-inf")) else _infinity(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            if value.tzinfo is None:
                return value.isoformat()
            return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
        case date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(k): json_value(v) for k, v in value.items()}
        case list() | tuple():
            return [json_value(item) for item in value]
        case _:
            return str(value)


def _infinity(value: float) -> str:
    return "Infinity" if value > 0 else "-Infinity"


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table with every value as JSON writes it."""
    plain = [
        pa.types.is_integer(f.type) or pa.types.is_boolean(f.type) or pa.types.is_string(f.type)
        for f in table.schema
    ]
    columns = [
        column.to_pylist() if simple else [json_value(v) for v in column.to_pylist()]
        for simple, column in zip(plain, table.columns, strict=True)
    ]
    names = table.column_names
    if not names:  # no column says how many rows there are
        return [{} for _ in range(table.num_rows)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
