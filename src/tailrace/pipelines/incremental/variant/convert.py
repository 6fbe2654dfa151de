"""CAST to and from VARIANT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.casts import cast_array, castable
from tailrace.pipelines.incremental.rows import physical, to_array
from tailrace.pipelines.incremental.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ddl,
    is_decimal,
    is_integer,
)
from tailrace.pipelines.incremental.variant import encoding, texts
from tailrace.pipelines.incremental.variant.encoding import Node, decode, encode

_MAKERS: dict[pa.DataType, Callable[[Any], Node]] = {
    BOOLEAN: encoding.of_boolean, FLOAT: encoding.of_float, DOUBLE: encoding.of_double,
    STRING: encoding.of_text, BINARY: encoding.of_bytes, DATE: encoding.of_date,
    TIMESTAMP: encoding.of_timestamp, TIMESTAMP_NTZ: encoding.of_timestamp_ntz, VARIANT: decode,
}  # fmt: skip


def becomes_variant(kind: pa.DataType, *, objects: bool = False) -> bool:
    """Whether values of a type can be cast to VARIANT; `objects`: structs and maps too, as
    to_variant_object takes them."""
    if pa.types.is_map(kind):
        return objects and kind.key_type == STRING and becomes_variant(kind.item_type, objects=True)
    if pa.types.is_list(kind):
        return becomes_variant(kind.value_type, objects=objects)
    if pa.types.is_struct(kind):
        return objects and all(becomes_variant(field.type, objects=True) for field in kind)
    return kind in _MAKERS or is_integer(kind) or is_decimal(kind)


def leaves_variant(kind: pa.DataType) -> bool:
    """Whether VARIANT can be cast to a type."""
    if pa.types.is_map(kind):
        return bool(kind.key_type == STRING) and leaves_variant(kind.item_type)
    if pa.types.is_list(kind):
        return leaves_variant(kind.value_type)
    if pa.types.is_struct(kind):
        return all(leaves_variant(field.type) for field in kind)
    return kind in _MAKERS or is_integer(kind) or is_decimal(kind)


def to_variants(values: pa.Array) -> pa.Array:
    """A column as VARIANT; NULL stays NULL."""
    missing = values.is_null().to_pylist()
    made = zip(nodes_of(values), missing, strict=True)
    return pa.array([None if null else encode(node) for node, null in made], VARIANT)


def nodes_of(values: pa.Array) -> list[Node]:
    """The node of every value; null for NULL."""
    kind = values.type
    valid = values.is_valid().to_pylist()
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        offsets = values.offsets.to_pylist()
        spans = list(zip(offsets, offsets[1:], valid, strict=False))
        if pa.types.is_list(kind):
            parts = nodes_of(values.values)
            return [parts[a:b] if ok else None for a, b, ok in spans]
        keys, items = values.keys.to_pylist(), nodes_of(values.items)
        return [dict(zip(keys[a:b], items[a:b], strict=True)) if ok else None for a, b, ok in spans]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(nodes_of, values.flatten()), strict=True)
        return [
            dict(zip(names, row, strict=True)) if ok else None
            for row, ok in zip(rows, valid, strict=True)
        ]
    make = _maker(kind)
    return [None if value is None else make(value) for value in physical(values)]


def _maker(kind: pa.DataType) -> Callable[[Any], Node]:
    if is_integer(kind):
        return encoding.of_integer
    if is_decimal(kind):
        return lambda value: encoding.of_decimal(value, kind.scale)
    return _MAKERS[kind]


def from_variants(values: pa.Array, kind: pa.DataType, forgiving: bool) -> pa.Array:
    """A column of VARIANT as another type; what does not fit is an error, or NULL."""
    found = values.to_pylist()
    nodes: list[Node] = [None if data is None else decode(data) for data in found]
    missing = [data is None for data in found]
    return typed(nodes, missing, kind, forgiving)


def typed(
    nodes: Sequence[Node], missing: Sequence[bool], kind: pa.DataType, forgiving: bool
) -> pa.Array:
    """Nodes in a type; `missing`: those that are NULL. A variant null is NULL, too, in all
    types but VARIANT."""
    if kind == VARIANT:
        pairs = zip(nodes, missing, strict=True)
        return pa.array([None if null else encode(node) for node, null in pairs], VARIANT)
    if pa.types.is_struct(kind):
        held = [_of_type(node, dict, kind, forgiving) for node in nodes]
        parts = []
        for field in kind:
            inner = [None if one is None else one.get(field.name) for one in held]
            absent = [one is None or field.name not in one for one in held]
            parts.append(typed(inner, absent, field.type, forgiving))
        mask = pa.array([one is None for one in held], pa.bool_())
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        held = [_of_type(node, dict, kind, forgiving) for node in nodes]
        keys = [key for one in held if one is not None for key in one]
        values = [part for one in held if one is not None for part in one.values()]
        items = typed(values, [False] * len(values), kind.item_type, forgiving)
        made = pa.MapArray.from_arrays(_offsets(held), pa.array(keys, STRING), items)
        return made.cast(kind)
    if pa.types.is_list(kind):
        listed = [_of_type(node, list, kind, forgiving) for node in nodes]
        flat = [part for one in listed if one is not None for part in one]
        inner_values = typed(flat, [False] * len(flat), kind.value_type, forgiving)
        return pa.ListArray.from_arrays(_offsets(listed), inner_values).cast(kind)
    return _scalars(nodes, kind, forgiving)


def _offsets(held: Sequence[Any]) -> pa.Array:
    """Where each value begins; NULL for one that is NULL."""
    places, at = [], 0
    for one in held:
        places.append(None if one is None else at)
        at += 0 if one is None else len(one)
    return pa.array([*places, at], pa.int32())


def _of_type(node: Node, wanted: type, kind: pa.DataType, forgiving: bool) -> Any:
    """The node if it is of that type; None for a null, or where it is not."""
    if isinstance(node, wanted):
        return node
    return None if _is_null(node) else _unfit(node, kind, forgiving)


def _is_null(node: Node) -> bool:
    return node is None or node == encoding.VARIANT_NULL


def _unfit(node: Node, kind: pa.DataType, forgiving: bool) -> None:
    if not forgiving:
        raise EvaluationError(
            f"the variant {texts.node_json(node)[:80]} cannot be cast to {ddl(kind)}",
            hint="use try_variant_get or try_cast to get NULL",
        )


def _scalars(nodes: Sequence[Node], kind: pa.DataType, forgiving: bool) -> pa.Array:
    """Scalars by CAST from their own type, all of one type at once."""
    groups: dict[pa.DataType, tuple[list[int], list[object]]] = {}
    for place, node in enumerate(nodes):
        if isinstance(node, dict | list):
            if kind != STRING:
                _unfit(node, kind, forgiving)
                continue
            source, value = STRING, cast(object, texts.node_json(node))
        else:
            source, value = encoding.scalar(node)
        if source == NULL:
            continue
        if not _fits(source, kind):
            _unfit(node, kind, forgiving)
            continue
        places, values = groups.setdefault(source, ([], []))
        places.append(place)
        values.append(value)
    index = np.full(len(nodes), -1, dtype="i8")
    pieces, at = [], 0
    for source, (places, values) in groups.items():
        pieces.append(cast_array(to_array(values, source), kind, forgiving=forgiving))
        index[places] = np.arange(at, at + len(places))
        at += len(places)
    if not pieces:
        return pa.nulls(len(nodes), kind)
    return pa.concat_arrays(pieces).take(pa.array(index, mask=index < 0))


def _fits(source: pa.DataType, kind: pa.DataType) -> bool:
    if source == BINARY or kind == BINARY:
        return source in (BINARY, STRING) and kind in (BINARY, STRING)
    return castable(source, kind)
