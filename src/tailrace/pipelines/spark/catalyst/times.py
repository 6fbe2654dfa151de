"""Times of day on their way to Spark and back: TIME does not cross in Arrow, microseconds do."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tailrace.pipelines.values.types import ddl, is_time


def has_time(kind: pa.DataType) -> bool:
    """Whether values of a type are times of day or hold some."""
    if pa.types.is_map(kind):
        return has_time(kind.key_type) or has_time(kind.item_type)
    if pa.types.is_list(kind):
        return has_time(kind.value_type)
    if pa.types.is_struct(kind):
        return any(has_time(field.type) for field in kind)
    return is_time(kind)


def in_micros(kind: pa.DataType) -> pa.DataType:
    """The type with whole microseconds in the place of times of day."""
    if pa.types.is_map(kind):
        return pa.map_(in_micros(kind.key_type), in_micros(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(in_micros(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, in_micros(field.type)) for field in kind])
    return pa.int64() if is_time(kind) else kind


def to_times(text: str, kind: pa.DataType) -> str:
    """The text of a value of `kind` whose times are given as microseconds."""
    return _through(text, kind, lambda one, time: f"CAST(time_from_micros({one}) AS {ddl(time)})")


def to_micros(text: str, kind: pa.DataType) -> str:
    """The text of a value of `kind` with its times as microseconds."""
    return _through(text, kind, lambda one, _: f"time_to_micros({one})")


def _through(
    text: str, kind: pa.DataType, change: Callable[[str, pa.DataType], str], depth: int = 0
) -> str:
    if not has_time(kind):
        return text
    one, other = f"`τ{depth}`", f"`υ{depth}`"

    def inside(of: str, part: pa.DataType) -> str:
        return _through(of, part, change, depth + 1)

    if pa.types.is_map(kind):
        keys = f"transform_keys({text}, ({one}, {other}) -> {inside(one, kind.key_type)})"
        item = inside(other, kind.item_type)
        return f"transform_values({keys}, ({one}, {other}) -> {item})"
    if pa.types.is_list(kind):
        return f"transform({text}, {one} -> {inside(one, kind.value_type)})"
    if pa.types.is_struct(kind):
        parts = ", ".join(
            f"'{_escaped(field.name)}', {inside(f'({text}).`{field.name}`', field.type)}"
            for field in kind
        )
        return f"CASE WHEN ({text}) IS NOT NULL THEN named_struct({parts}) END"
    return change(text, kind)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
