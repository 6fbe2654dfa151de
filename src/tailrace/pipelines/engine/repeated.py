"""Functions that are computed row by row, computed once for every value that differs.

A function of one column and constants gives equal answers for equal values: channels, links
and days repeat. Parts of a time that come from its day, hour, minute or second are first cut
to that, so that they repeat too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tailrace.pipelines.engine.expression import Expression, Literal
from tailrace.pipelines.engine.functions.scalar import KEEPS_NULL, map_values
from tailrace.pipelines.values.types import is_decimal

_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_PARTS = {
    "hour": _HOUR, "minute": _MINUTE, "second": _SECOND,
    "year": _DAY, "quarter": _DAY, "month": _DAY, "day": _DAY,
    "dayofweek": _DAY, "dayofyear": _DAY, "weekday": _DAY, "weekofyear": _DAY,
}  # fmt: skip
_FEW_ROWS = 64


def computed(
    name: str, arguments: Sequence[Expression], values: list[pa.Array], kind: pa.DataType
) -> pa.Array:
    """`map_values`, with one call for each value that differs where that pays."""
    varying = [at for at, one in enumerate(arguments) if not isinstance(one, Literal)]
    if len(varying) != 1 or len(values[0]) < _FEW_ROWS or name in KEEPS_NULL:
        return map_values(name, values, kind)
    at = varying[0]
    column = values[at]
    if not _hashed(column.type):
        return map_values(name, values, kind)
    encoded = _cut(name, column).dictionary_encode()
    count = len(encoded.dictionary)
    if 2 * count > len(column):
        return map_values(name, values, kind)
    few = [value.slice(0, count) for value in values]
    few[at] = encoded.dictionary
    return map_values(name, few, kind).take(encoded.indices)


def _hashed(kind: pa.DataType) -> bool:
    """Whether equal values of a type are found by Arrow as they are here."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_temporal(kind)
        or is_decimal(kind)
    )


def _cut(name: str, column: pa.Array) -> pa.Array:
    """Times without what the function does not look at."""
    if not (pa.types.is_timestamp(column.type) and column.type.unit == "us"):
        return column
    unit = _PARTS.get(name)
    if unit is None:
        return column
    micros = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(micros - micros % unit, pa.int64(), mask=mask).cast(column.type)


def window_starts(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The starts of all windows that hold each time, latest first."""
    micros, size, slide, offset = (_whole(value) for value in values)
    missing = np.zeros(len(micros), dtype=bool)
    for value in values:
        if value.null_count:
            missing |= value.is_null().to_numpy(zero_copy_only=False)
    slide = np.where(missing, 1, slide)
    last = micros - (micros - offset) % slide
    counts = np.maximum((last - micros + size + slide - 1) // slide, 0)
    counts[missing] = 0
    ends = np.cumsum(counts)
    places = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    starts = np.repeat(last, counts) - places * np.repeat(slide, counts)
    offsets = np.concatenate([[0], ends]).astype("i4")
    mask = pa.array(missing) if missing.any() else None
    elements = pa.array(starts, pa.int64()).cast(kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), elements, type=kind, mask=mask)


def window_start(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The start of the one window that holds each time."""
    micros, size = (_whole(value) for value in values)
    missing = values[0].is_null() if values[0].null_count else None
    mask = None if missing is None else missing.to_numpy(zero_copy_only=False)
    return pa.array(micros - micros % size, pa.int64(), mask=mask).cast(kind)


def _whole(column: pa.Array) -> np.ndarray:
    numbers: np.ndarray = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers
