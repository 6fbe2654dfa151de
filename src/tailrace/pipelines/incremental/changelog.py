"""A view's upserts as records of its changelog topic.

The key is the compact JSON object of the key columns in key order, the value `{"row": …}`
or None for a row that is gone. Decimals are strings, timestamps and dates ISO 8601 (with `Z`
where they have a zone), bytes base64; NaN and infinities strings.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import cast

import pyarrow as pa

from tailrace.pipelines.incremental.casts import format_decimal, format_timestamp
from tailrace.pipelines.incremental.graph import DELETED, ViewPlan
from tailrace.pipelines.incremental.rows import physical
from tailrace.pipelines.incremental.types import DATE, TIMESTAMP, is_decimal, is_float
from tailrace.records.rows import json_bytes


def to_records(plan: ViewPlan, upserts: pa.Table) -> tuple[list[bytes], list[bytes | None]]:
    """Keys and values of the records, in the table's order."""
    columns = [json_values(upserts.column(name)) for name, _ in plan.columns]
    names = [name for name, _ in plan.columns]
    places = [names.index(name) for name in plan.key]
    keys: list[bytes] = []
    values: list[bytes | None] = []
    deleted = upserts.column(DELETED).to_pylist()
    rows = zip(*columns, strict=True) if columns else iter([()] * len(deleted))
    for row, gone in zip(rows, deleted, strict=True):
        keys.append(json_bytes({names[i]: row[i] for i in places}))
        values.append(None if gone else json_bytes({"row": dict(zip(names, row, strict=True))}))
    return keys, values


def json_values(column: pa.ChunkedArray) -> list[object]:
    """A column in the form it has in JSON."""
    kind = column.type
    if pa.types.is_nested(kind):
        return cast("list[object]", [_nested(value) for value in column.to_pylist()])
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
    if is_float(kind):
        return lambda value: _number(cast(float, value))
    if kind == pa.binary():
        return lambda value: base64.b64encode(cast(bytes, value)).decode()
    return None


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
        case bytes():
            return base64.b64encode(value).decode()
    return value
