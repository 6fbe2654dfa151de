"""Maps in the order of their keys, so that equal maps are equal values.

The order is Spark's: NULL below everything, NaN equal to itself and above all numbers, −0.0 equal
to 0.0, structs and arrays part by part.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailrace.pipelines.engine.functions.scalar import Scalar, plain_typed


def order(value: Any) -> Any:
    """A sort key; NULL first."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if value != value else (1, value + 0.0)
    if isinstance(value, dict):
        return (1, *(order(part) for part in value.values()))
    if isinstance(value, list | tuple):
        return (1, *(order(part) for part in value))
    return (1, value)


@plain_typed("map_form")
def _map_form(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    """Maps with their entries in the order of the keys, also inside of other values."""

    def form(value: Any, kind: pa.DataType) -> Any:
        if value is None:
            return None
        if pa.types.is_map(kind):
            pairs = [(form(k, kind.key_type), form(v, kind.item_type)) for k, v in value]
            return sorted(pairs, key=lambda pair: order(pair[0]))
        if pa.types.is_list(kind):
            return [form(part, kind.value_type) for part in value]
        if pa.types.is_struct(kind):
            return {part.name: form(value[part.name], part.type) for part in kind}
        return value

    return lambda value: form(value, kind)
