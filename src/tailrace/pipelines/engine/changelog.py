"""A view's upserts as records of its changelog topic.

The key is the compact JSON object of the key columns in key order, the value `{"row": …}`
or None for a row that is gone. Decimals are strings, timestamps and dates ISO 8601 (with `Z`
where they have a zone), times of day `12:34:56.5`, bytes base64, variants the text of their
JSON; NaN and infinities strings. What a pattern tells has no envelope: the row itself.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import ViewPlan
from tailrace.pipelines.values.casts import format_decimal, format_timestamp
from tailrace.pipelines.values.clock_times import format_time, micros_in, short_time
from tailrace.pipelines.values.columns import DELETED
from tailrace.pipelines.values.json_text import joined, json_texts
from tailrace.pipelines.values.rows import outside_the_calendar, physical
from tailrace.pipelines.values.types import (
    DATE,
    TIMESTAMP,
    VARIANT,
    has_variant,
    is_decimal,
    is_float,
    is_time,
)
from tailrace.pipelines.values.variant.texts import to_json
from tailrace.records.columns import bytes_array, constant

_PIECE_ROWS = 100_000
_PIECE_BYTES = 64 << 20  # of the columns, before they become text


class Piece(NamedTuple):
    """Records of a changelog: the value of a row that is gone is NULL."""

    keys: pa.BinaryArray
    values: pa.BinaryArray
    counts: tuple[int, ...] = ()  # of each partition, in whose order they stand then


def to_records(plan: ViewPlan, upserts: pa.Table) -> Iterator[Piece]:
    """Keys and values of the records, in the table's order, in pieces of bounded size."""
    count = upserts.num_rows
    most = max(1, min(_PIECE_ROWS, _PIECE_BYTES * count // max(upserts.nbytes, 1)))
    for first in range(0, count, most):
        yield _piece(plan, upserts.slice(first, most))


def record_pairs(plan: ViewPlan, upserts: pa.Table) -> list[tuple[bytes, bytes | None]]:
    """`to_records` as Python's bytes, one pair a record."""
    return [
        pair
        for piece in to_records(plan, upserts)
        for pair in zip(piece.keys.to_pylist(), piece.values.to_pylist(), strict=True)
    ]


def json_objects(names: Sequence[str], table: pa.Table) -> pa.BinaryArray:
    """The JSON object of those columns for every row, as the value of a record has it."""
    texts = {name: _texts(table.column(name)) for name in names}
    return _objects(names, texts, table.num_rows, b"{", b"}")


def _piece(plan: ViewPlan, upserts: pa.Table) -> Piece:
    texts = {
        name: upserts.column(name).combine_chunks()
        if name in plan.written
        else _texts(upserts.column(name))
        for name, _ in plan.columns
    }
    keys = _objects(plan.key, texts, upserts.num_rows, b"{", b"}")
    names = [name for name, _ in plan.columns]
    if plan.events:
        return Piece(keys, _objects(names, texts, upserts.num_rows, b"{", b"}"))
    values = _objects(names, texts, upserts.num_rows, b'{"row":{', b"}}")
    deleted = upserts.column(DELETED)
    if pc.any(deleted).as_py():
        values = pc.if_else(deleted.combine_chunks(), pa.scalar(None, pa.binary()), values)
    return Piece(keys, values)


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return json_texts(column.combine_chunks(), lambda part: json_values(pa.chunked_array([part])))


def _objects(
    names: Sequence[str], texts: Mapping[str, pa.Array], count: int, begin: bytes, end: bytes
) -> pa.Array:
    """An object of those columns for every row."""
    parts: list[pa.Array | pa.Scalar] = []
    for name in names:
        parts += [constant(begin + orjson.dumps(name) + b":"), texts[name]]
        begin = b","
    if not parts:
        return bytes_array([begin + end] * count)
    return joined(*parts, constant(end))


def json_values(column: pa.ChunkedArray) -> list[object]:
    """A column in the form it has in JSON."""
    try:
        return _json_values(column)
    except OverflowError as error:
        raise outside_the_calendar(column.type) from error


def _json_values(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if pa.types.is_nested(kind):
        found = column.to_pylist()
        if has_variant(kind):
            found = [_with_texts(value, kind) for value in found]
        return cast("list[object]", [_nested(value) for value in found])
    values = physical(column)
    convert = _converter(kind)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def _converter(kind: pa.DataType) -> Callable[[object], object] | None:
    if is_decimal(kind):
        return lambda value: format_decimal(cast(int, value), kind.scale)
    if kind == DATE:
        return lambda value: _nested(pa.scalar(value, pa.int32()).cast(DATE).as_py())
    if kind == TIMESTAMP:
        return lambda value: format_timestamp(cast(int, value)).replace(" ", "T") + "Z"
    if pa.types.is_timestamp(kind):
        return lambda value: format_timestamp(cast(int, value)).replace(" ", "T")
    if is_time(kind):
        unit = micros_in(kind)
        return lambda value: format_time(cast(int, value) * unit)
    if is_float(kind):
        return lambda value: _number(cast(float, value))
    if kind == VARIANT:
        return lambda value: to_json(cast(bytes, value))
    if kind == pa.binary():
        return lambda value: base64.b64encode(cast(bytes, value)).decode()
    return None


def _with_texts(value: Any, kind: pa.DataType) -> Any:
    """A nested value with the JSON texts of the variants in it."""
    if value is None or not has_variant(kind):
        return value
    if pa.types.is_map(kind):
        return [(key, _with_texts(part, kind.item_type)) for key, part in value]
    if pa.types.is_list(kind):
        return [_with_texts(part, kind.value_type) for part in value]
    if pa.types.is_struct(kind):
        return {field.name: _with_texts(value[field.name], field.type) for field in kind}
    return to_json(value)


def _number(value: float) -> object:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _nested(value: object) -> object:
    import datetime
    import decimal

    match value:
        case dict():
            return {str(name): _nested(part) for name, part in value.items()}
        case list() | tuple():
            return [_nested(part) for part in value]
        case float():
            return _number(value)
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.datetime():
            text = value.isoformat()
            return text.replace("+00:00", "Z")
        case datetime.date():
            return value.isoformat()
        case datetime.time():
            return short_time(value)
        case bytes():
            return base64.b64encode(value).decode()
    return value
