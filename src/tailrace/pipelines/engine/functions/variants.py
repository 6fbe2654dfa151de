"""The contents of VARIANT, as views and generators need them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailrace.pipelines.engine.functions.scalar import plain, simple
from tailrace.pipelines.values.types import has_variant
from tailrace.pipelines.values.variant import schemas, texts
from tailrace.pipelines.values.variant.encoding import children, decode

simple("variant_schema", lambda data: schemas.dumped(schemas.schema_of(decode(data))))
simple(
    "merged_variant_schema",
    lambda found: schemas.words(schemas.merged(map(schemas.loaded, found))),
)


@plain("variant_children")
def _variant_children(data: bytes) -> list[dict[str, object]] | None:
    """What variant_explode makes rows of."""
    found = children(data)
    if found is None:
        return None
    return [{"pos": place, "key": key, "value": value} for place, (key, value) in enumerate(found)]


def normal(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The variants made anew of their JSON: equal texts, equal bytes."""
    return pa.array([_normal(value, kind) for value in values[0].to_pylist()], kind)


def _normal(value: Any, kind: pa.DataType) -> Any:
    if value is None or not has_variant(kind):
        return value
    if pa.types.is_map(kind):
        return [(key, _normal(part, kind.item_type)) for key, part in value]
    if pa.types.is_list(kind):
        return [_normal(part, kind.value_type) for part in value]
    if pa.types.is_struct(kind):
        return {field.name: _normal(value[field.name], field.type) for field in kind}
    return texts.parse(texts.to_json(value))
