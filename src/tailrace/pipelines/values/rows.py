"""Rows as Python tuples and as bytes, and back to Arrow.

A *physical* row is a tuple of plain values: decimals as unscaled integers, timestamps as
microseconds, dates as days, times of day as units of their type, nested values as tuples. Its bytes are `marshal` format 2, which
is deterministic, so equal bytes mean equal rows (two rows that differ only in the sign of a
zero are different rows; keys do not distinguish them, see `keys`).
"""

from __future__ import annotations

import datetime
import decimal
import marshal
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.types import ddl, is_decimal

Row: TypeAlias = tuple[object, ...]

_MASK = (1 << 64) - 1
_NAN = float("nan")
_EXACT = decimal.Context(prec=76)
_COMBINED_ROWS = 10_000
_SAMPLE_ROWS = 2_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


def dumps(value: object) -> bytes:
    """Plain values as bytes; equal values give equal bytes."""
    return marshal.dumps(value, 2)  # type: ignore[arg-type]


encode_row: Callable[[Row], bytes] = dumps


def encode_rows(rows: Sequence[Row]) -> list[bytes]:
    """`encode_row` of each, without a Python call per row."""
    return list(map(marshal.dumps, rows, repeat(2)))  # type: ignore[arg-type]


def decode_rows(data: Iterable[bytes]) -> list[Row]:
    return list(map(marshal.loads, data))


def decode_row(data: bytes) -> Row:
    return cast(Row, marshal.loads(data))


def physical(column: pa.ChunkedArray | pa.Array) -> list[object]:
    """A column's values in physical form."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    kind = column.type
    if is_decimal(kind):
        values = _decimal_integers(column)
    elif pa.types.is_timestamp(kind):
        values = _numbers(column.cast(pa.int64()))
    elif pa.types.is_time(kind):
        values = _numbers(column.cast(pa.int64() if kind.bit_width == 64 else pa.int32()))
    elif pa.types.is_date32(kind):
        values = _numbers(column.cast(pa.int32()))
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        return cast("list[object]", column.to_numpy(zero_copy_only=False).tolist())
    elif pa.types.is_floating(kind):
        values = _numbers(column)
        if any(value != value for value in values):
            values = [_NAN if value != value else value for value in values]
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = _numbers(column)
    elif pa.types.is_null(kind):
        return [None] * len(column)
    else:
        try:
            return [_freeze(value) for value in column.to_pylist()]
        except OverflowError as error:
            raise outside_the_calendar(kind) from error
    if column.null_count:
        for position in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[position] = None
    return values


def outside_the_calendar(kind: pa.DataType) -> EvaluationError:
    """The error for a date or a time that no reader of a view could take."""
    return EvaluationError(
        f"a value of type {ddl(kind)} lies outside the years 1 to 9999",
        detail="Spark computes with such dates; the readers of a view have none.",
        hint="leave such rows out, or make the dates NULL",
    )


def _numbers(column: pa.Array) -> list[object]:
    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return cast("list[object]", column.to_numpy(zero_copy_only=False).tolist())


def whole_numbers(column: pa.ChunkedArray) -> np.ndarray | None:
    """A column of integers, or of decimals that fit, as int64 (0 for NULL); else None."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_integer(array.type):
        filled = array.fill_null(0) if array.null_count else array
        numbers: np.ndarray = filled.to_numpy(zero_copy_only=False)
        return numbers.astype("i8", copy=False)
    if is_decimal(array.type) and array.type.precision <= 18:
        if array.null_count:
            array = array.fill_null(0)
        words = np.frombuffer(array.buffers()[1], dtype="<i8")
        return words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    return None


def _decimal_integers(column: pa.Array) -> list[object]:
    words = np.frombuffer(column.buffers()[1], dtype="<i8") if len(column) else np.empty(0, "<i8")
    start, end = 2 * column.offset, 2 * (column.offset + len(column))
    low = words[start:end:2]
    if column.type.precision <= 18:
        return cast("list[object]", low.tolist())
    high = words[start + 1 : end : 2].tolist()
    return [(h << 64) | (w & _MASK) for h, w in zip(high, low.tolist(), strict=True)]


def _freeze(value: object) -> object:
    if isinstance(value, dict):
        return ("d", *((name, _freeze(part)) for name, part in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_freeze(part) for part in value)
    if value != value:
        return _NAN
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    return ("o", str(type(value).__name__), str(value))


def _thaw(value: object, kind: pa.DataType) -> object:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        fields = {field.name: field.type for field in kind}
        parts = cast("tuple[tuple[str, object], ...]", value)[1:]
        return {name: _thaw(part, fields[name]) for name, part in parts}
    if pa.types.is_map(kind):
        pairs = cast("tuple[tuple[object, object]]", value)
        return [(_thaw(k, kind.key_type), _thaw(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_list(kind):
        return [_thaw(part, kind.value_type) for part in cast("tuple[object]", value)]
    if is_decimal(kind) and isinstance(value, int):  # a list made of physical values
        return decimal.Decimal(value).scaleb(-kind.scale, _EXACT)
    if isinstance(value, tuple):
        _, name, text = cast("tuple[str, str, str]", value)
        return _parse(name, text)
    return value


def thaw_part(value: object, kind: pa.DataType) -> object:
    """The physical value of a field as it stands inside a nested physical value."""
    if not isinstance(value, tuple) or pa.types.is_nested(kind):
        return value
    scalar = pa.scalar(_thaw(value, kind), kind)
    return physical(pa.array([scalar.as_py()], kind))[0]


def _parse(name: str, text: str) -> object:
    match name:
        case "Decimal":
            return decimal.Decimal(text)
        case "time":
            return datetime.time.fromisoformat(text)
        case "date":
            return datetime.date.fromisoformat(text)
        case "datetime":
            return datetime.datetime.fromisoformat(text)
    raise ValueError(f"cannot read a nested {name}")


def to_array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """The Arrow array of physical values."""
    if is_decimal(kind):
        return _decimal_array(values, kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_time64(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_nested(kind):
        return pa.array([_thaw(value, kind) for value in values], kind)
    return pa.array(values, kind)


def _decimal_array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    count = len(values)
    words = np.empty(2 * count, dtype="<i8")
    nulls = None
    if None in values:
        present = np.fromiter((value is not None for value in values), bool, count)
        nulls = pa.array(present).buffers()[1]
        values = [value or 0 for value in values]
    integers = cast("Sequence[int]", values)
    if kind.precision <= 18:
        low = np.array(integers, dtype="<i8") if count else np.empty(0, "<i8")
        words[0::2] = low
        words[1::2] = low >> 63
    else:
        words[0::2] = np.array([v & _MASK for v in integers], dtype="<u8").view("<i8")
        words[1::2] = np.array([v >> 64 for v in integers], dtype="<i8")
    return pa.Array.from_buffers(kind, count, [nulls, pa.py_buffer(words)])


def to_rows(table: pa.Table, names: Iterable[str] | None = None) -> list[Row]:
    """The physical rows of a table's columns (all but `__weight` when not named)."""
    chosen = [n for n in table.column_names if n != WEIGHT] if names is None else list(names)
    if not chosen:
        return [()] * table.num_rows
    return list(zip(*(physical(table.column(name)) for name in chosen), strict=True))


def weights(table: pa.Table) -> list[int]:
    return cast("list[int]", table.column(WEIGHT).to_numpy().tolist())


def changes(rows: Sequence[Row], counts: Sequence[int], schema: pa.Schema) -> pa.Table:
    """The table of changes with `schema` and `__weight` from physical rows."""
    columns = zip(*rows, strict=True) if rows and len(schema) else repeat((), len(schema))
    arrays = [to_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    arrays.append(pa.array(counts, pa.int64()))
    return pa.Table.from_arrays(arrays, schema=weighted(schema))


def weighted(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(WEIGHT, pa.int64(), nullable=False))


def combined(table: pa.Table) -> pa.Table:
    """Equal rows added up, if so many seem equal that it pays: for rows about to travel.

    How many differ is judged from how often two of a sample are equal.
    """
    count = table.num_rows
    names = [name for name in table.column_names if name != WEIGHT]
    kinds = [table.schema.field(name).type for name in names]
    if count < _COMBINED_ROWS or not names or any(map(_unhashed, kinds)):
        return table
    sample = table.take(np.arange(0, count, count // _SAMPLE_ROWS)).select(names)
    size = sample.num_rows
    equal = size - sample.group_by(names, use_threads=False).aggregate([]).num_rows
    if 2 * size * size > equal * count:  # more than a quarter differ
        return table
    grouped = table.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    grouped = grouped.rename_columns([*names, WEIGHT]).select(table.column_names)
    return grouped.filter(pc.not_equal(grouped.column(WEIGHT), 0)).cast(table.schema)


def _unhashed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_null(kind))


def consolidate(table: pa.Table) -> pa.Table:
    """Equal rows added up, zeros dropped. Rows that only came are left as they are."""
    if not table.num_rows:
        return table
    counts = table.column(WEIGHT).to_numpy()
    if counts.min() > 0:
        return table
    names = [name for name in table.column_names if name != WEIGHT]
    if counts.all() and _all_differ([table.column(name) for name in names]):
        return table
    if any(pa.types.is_nested(table.schema.field(name).type) for name in names) or not names:
        totals: dict[bytes, int] = {}
        for row, weight in zip(to_rows(table), weights(table), strict=True):
            key = encode_row(row)
            totals[key] = totals.get(key, 0) + weight
        left = [(decode_row(key), total) for key, total in totals.items() if total]
        schema = table.schema.remove(table.schema.get_field_index(WEIGHT))
        return changes([row for row, _ in left], [total for _, total in left], schema)
    grouped = table.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    grouped = grouped.rename_columns([*names, WEIGHT]).select(table.column_names)
    return grouped.filter(pc.not_equal(grouped.column(WEIGHT), 0)).cast(table.schema)


def _all_differ(columns: Sequence[pa.ChunkedArray]) -> bool:
    """Whether no two rows are equal, if numbers made of the rows tell; False may mean either.

    Mostly no two are, and adding them up costs several times this look.
    """
    mixed: np.ndarray | None = None
    for column in columns:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            column = pa.chunked_array([column.combine_chunks().dictionary_encode().indices])
        elif pa.types.is_timestamp(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_date32(kind):
            column = column.cast(pa.int32())
        numbers = whole_numbers(column)
        if numbers is None:
            return False
        # Equal rows give equal numbers: arithmetic modulo 2**64 is exact.
        mixed = numbers.view("u8") if mixed is None else mixed * _MIX ^ numbers.view("u8")
    if mixed is None:
        return False
    ordered = np.sort(mixed)
    return not bool((ordered[1:] == ordered[:-1]).any())
