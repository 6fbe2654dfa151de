"""Scalar functions of Spark that are computed here, value by value.

Each takes physical values (see `rows`) that are not NULL and gives one, or None for NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.incremental.rows import physical, to_array

Scalar = Callable[..., object]
FUNCTIONS: dict[str, Callable[[list[pa.DataType], pa.DataType], Scalar]] = {}


def map_values(name: str, arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Apply a function row by row; NULL in, NULL out."""
    compute = FUNCTIONS[name]([array.type for array in arrays], kind)
    columns = [physical(array) for array in arrays]
    out = [
        None if any(value is None for value in values) else compute(*values)
        for values in zip(*columns, strict=True)
    ]
    return to_array(out, kind)


def simple(name: str, function: Callable[..., Any]) -> None:
    """Register a function that needs to know no types."""
    FUNCTIONS[name] = lambda kinds, kind: function


simple("upper", str.upper)
simple("lower", str.lower)
