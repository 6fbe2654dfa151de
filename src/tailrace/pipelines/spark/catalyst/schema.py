"""Types and columns on their way to Spark and back.

Spark names types by its JSON. VARIANT is a struct of value and metadata there, large binary here.
TIME does not cross and is a number of microseconds in the text; intervals and geometries stay
inside an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.spark.catalyst.times import in_micros
from tailrace.pipelines.values.types import (
    GEOGRAPHY,
    INTERVAL,
    VARIANT,
    has_variant,
    is_time,
    parse_type,
)
from tailrace.pipelines.values.variant.encoding import metadata

_NAMES = {"integer": "INT", "long": "BIGINT", "short": "SMALLINT", "byte": "TINYINT"}
_IN_SPARK = pa.struct([
    pa.field("value", pa.binary(), nullable=False),
    pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
])  # fmt: skip


def arrow_type(told: Any) -> pa.DataType:
    """The Arrow type of a type of Spark's; ValueError for one that a view does not know."""
    if isinstance(told, str):
        if told.startswith("interval"):
            return INTERVAL
        if told.startswith(("geometry", "geography")):
            return GEOGRAPHY
        if told.startswith("string"):
            return pa.string()  # of whatever collation
        return parse_type(_NAMES.get(told, told))
    match told["type"]:
        case "array":
            return pa.list_(arrow_type(told["elementType"]))
        case "map":
            return pa.map_(arrow_type(told["keyType"]), arrow_type(told["valueType"]))
        case "struct":
            names = [field["name"] for field in told["fields"]]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"a struct with two fields of one name: {twice}")
            return pa.struct([(f["name"], arrow_type(f["type"])) for f in told["fields"]])
    raise ValueError(f"values of type {told['type']} do not come from Spark")


def crosses(kind: pa.DataType) -> bool:
    """Whether columns of a type can be sent to Spark and come back."""
    if pa.types.is_map(kind):
        return crosses(kind.key_type) and crosses(kind.item_type)
    if pa.types.is_list(kind):
        return crosses(kind.value_type)
    if pa.types.is_struct(kind):
        return all(crosses(field.type) for field in kind)
    return not (kind == GEOGRAPHY or pa.types.is_interval(kind))


def sent_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column in a request."""
    if not has_variant(kind):
        return kind
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, sent_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(sent_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, sent_type(field.type)) for field in kind])
    return _IN_SPARK


def sent(column: pa.Array) -> pa.Array:
    """A column as Spark takes it."""
    if not has_variant(column.type):
        return column
    return _rebuilt(column, sent_type(column.type), _variant_sent)


def micros_of(column: pa.Array) -> pa.Array:
    """A column with whole microseconds in the place of times of day."""
    return _rebuilt(column, in_micros(column.type), _micros)


def received(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of an answer in its own type."""
    if column.type == kind:
        try:
            column.validate(full=True)
            return column
        except pa.ArrowInvalid:  # a text with bytes that are no UTF-8
            pass
    return _rebuilt(column, kind, _received)


def _rebuilt(
    column: pa.Array, kind: pa.DataType, change: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Array:
    """A column in another type, part by part; `change` makes the parts that hold no others."""
    if not (pa.types.is_nested(kind) and pa.types.is_nested(column.type)):
        return change(column, kind)
    whole = pa.concat_arrays([column])  # without an offset of its own
    mask = whole.is_null() if whole.null_count else None
    if pa.types.is_struct(kind):
        if not len(kind):
            return whole
        parts = [
            _rebuilt(part, field.type, change)
            for part, field in zip(whole.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        keys = _rebuilt(whole.keys, kind.key_type, change)
        items = _rebuilt(whole.items, kind.item_type, change)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, type=kind, mask=mask)
    values = _rebuilt(whole.values, kind.value_type, change)
    return pa.ListArray.from_arrays(whole.offsets, values, type=kind, mask=mask)


def _micros(part: pa.Array, kind: pa.DataType) -> pa.Array:
    return part.cast(pa.time64("us")).cast(kind) if is_time(part.type) else part


def _variant_sent(part: pa.Array, kind: pa.DataType) -> pa.Array:
    if part.type != VARIANT:
        return part
    made = []
    for data in part.to_pylist():
        at = 0 if data is None else metadata(data)[1]
        made.append(None if data is None else {"value": data[at:], "metadata": data[:at]})
    return pa.array(made, kind)


def _received(part: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == VARIANT:
        found = part.to_pylist()
        return pa.array([None if v is None else v["metadata"] + v["value"] for v in found], kind)
    if is_time(kind):
        return part.cast(pa.time64("us")).cast(kind)
    if pa.types.is_string(kind):  # Spark keeps bytes that are no UTF-8, and shows them so
        texts = part.cast(pa.binary()).to_pylist()
        return pa.array([None if b is None else b.decode(errors="replace") for b in texts], kind)
    return part.cast(kind)
