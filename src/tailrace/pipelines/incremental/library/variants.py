"""Functions of VARIANT: reading, asking, changing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import KEEPS_NULL, Scalar, made, simple
from tailrace.pipelines.incremental.library.signatures import plain
from tailrace.pipelines.incremental.rows import physical
from tailrace.pipelines.incremental.types import VARIANT, has_variant
from tailrace.pipelines.incremental.variant import paths, schemas, texts
from tailrace.pipelines.incremental.variant.convert import nodes_of, typed
from tailrace.pipelines.incremental.variant.encoding import (
    VARIANT_NULL,
    Node,
    children,
    decode,
    encode,
    metadata,
)


def _parse_json(text: str) -> bytes:
    try:
        return texts.parse(text)
    except ValueError as error:
        raise EvaluationError(
            f"{text[:80]!r} is no JSON", detail=str(error), hint="use try_parse_json to get NULL"
        ) from error


def _try_parse_json(text: str) -> bytes | None:
    try:
        return texts.parse(text)
    except ValueError:
        return None


def _is_valid(data: bytes) -> bool:
    try:
        decode(data)
    except (ValueError, IndexError):
        return False
    return True


simple("parse_json", _parse_json)
simple("try_parse_json", _try_parse_json)
simple("is_valid_variant", _is_valid)
simple("variant_is_null", lambda data: data[metadata(data)[1] :] == VARIANT_NULL)
simple("schema_of_variant", lambda data: schemas.words(schemas.schema_of(decode(data))))
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


def to_objects(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """to_variant_object: structs and maps become objects."""
    missing = values[0].is_null().to_pylist()
    pairs = zip(nodes_of(values[0]), missing, strict=True)
    return pa.array([None if null else encode(node) for node, null in pairs], VARIANT)


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


def getter(forgiving: bool) -> Callable[[list[pa.Array], pa.DataType], pa.Array]:
    """variant_get: what a path finds, in a type."""

    def compute(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
        nodes: list[Node] = []
        missing: list[bool] = []
        for data, path in zip(values[0].to_pylist(), physical(values[1]), strict=True):
            found, node = False, None
            if data is not None and path is not None:
                found, node = paths.get(decode(data), _steps(str(path)))
            nodes.append(node)
            missing.append(not found)
        return typed(nodes, missing, kind, forgiving)

    return compute


def _steps(path: str, *, root: bool = True) -> paths.Steps:
    try:
        steps = paths.steps_of(path)
    except ValueError as error:
        raise EvaluationError(str(error)) from error
    if not steps and not root:
        raise EvaluationError("the path $ is the whole: nothing to change at its end")
    return steps


# Changes ------------------------------------------------------------------------------------------


def _changing(name: str, change: Callable[..., Node], *, root: bool = False) -> None:
    """variant_set and its like, and the form that gives NULL where nothing fits."""

    def compute(data: bytes, path: str, value: bytes, *more: object) -> bytes:
        steps = _steps(path, root=root)
        try:
            return encode(change(decode(data), steps, decode(value), *more))
        except paths.PathMismatch as error:
            raise EvaluationError(
                f"{name}: the path {path} does not fit the variant",
                detail=texts.to_json(data)[:200],
                hint=f"use try_{name} to get NULL",
            ) from error
        except ValueError as error:
            raise EvaluationError(
                f"{name}: {error}", detail=f"at {path}", hint=f"use try_{name} to get NULL"
            ) from error

    def forgiving(data: bytes, path: str, value: bytes, *more: object) -> bytes | None:
        steps = _steps(path, root=root)
        try:
            return encode(change(decode(data), steps, decode(value), *more))
        except ValueError:
            return None

    simple(name, compute)
    simple(f"try_{name}", forgiving)


_changing("variant_insert", paths.insert)
_changing("variant_set", paths.put)
_changing("variant_array_append", paths.append, root=True)
simple(
    "variant_strip_nulls",
    lambda data, arrays: encode(paths.without_nulls(decode(data), arrays)),
)


@made("variant_delete")
def _variant_delete(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    def compute(data: bytes | None, *given: str | None) -> bytes | None:
        known = [path for path in given if path is not None]
        if data is None or not known:
            return data
        node = decode(data)
        for path in known:
            node = paths.delete(node, _steps(path, root=False))
        return encode(node)

    return compute


KEEPS_NULL.add("variant_delete")
