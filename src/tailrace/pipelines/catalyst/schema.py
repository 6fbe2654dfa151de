"""Spark's types, as its JSON names them, in Arrow's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailrace.pipelines.incremental.types import has_variant, is_time, parse_type

_NAMES = {"integer": "INT", "long": "BIGINT", "short": "SMALLINT", "byte": "TINYINT"}


def arrow_type(told: Any) -> pa.DataType:
    """The Arrow type of a type of Spark's; ValueError for one that does not cross."""
    if isinstance(told, str):
        kind = parse_type(_NAMES.get(told, told))
        if not crosses(kind):
            raise ValueError(f"values of type {told.upper()} do not come from Spark")
        return kind
    match told["type"]:
        case "array":
            return pa.list_(arrow_type(told["elementType"]))
        case "map":
            return pa.map_(arrow_type(told["keyType"]), arrow_type(told["valueType"]))
        case "struct":
            return pa.struct([(f["name"], arrow_type(f["type"])) for f in told["fields"]])
    raise ValueError(f"values of type {told['type']} do not come from Spark")


def crosses(kind: pa.DataType) -> bool:
    """Whether columns of a type are the same to Arrow and to Spark."""
    if pa.types.is_map(kind):
        return crosses(kind.key_type) and crosses(kind.item_type)
    if pa.types.is_list(kind):
        return crosses(kind.value_type)
    if pa.types.is_struct(kind):
        return all(crosses(field.type) for field in kind)
    large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    return not (large or has_variant(kind) or is_time(kind) or pa.types.is_interval(kind))
