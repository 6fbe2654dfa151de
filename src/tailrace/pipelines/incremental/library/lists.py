"""Arrays and maps, as Python lists and lists of pairs.

Equality and order are Spark's: NULL below everything, NaN equal to itself and above all
numbers, −0.0 equal to 0.0, structs and arrays part by part.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import Scalar
from tailrace.pipelines.incremental.library.signatures import plain, plain_typed

List = list[Any]
Pairs = list[tuple[Any, Any]]


@functools.total_ordering
class _Ordered:
    """A value in Spark's order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and self.key == other.key

    def __lt__(self, other: _Ordered) -> bool:
        return bool(self.key < other.key)


def identity(value: Any) -> Any:
    """Equal for equal values, hashable."""
    if isinstance(value, float):
        return ("nan",) if value != value else value + 0.0
    if isinstance(value, dict):
        return ("struct", *(identity(part) for part in value.values()))
    if isinstance(value, list | tuple):
        return tuple(identity(part) for part in value)
    return value


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


def _distinct(values: Iterable[Any]) -> List:
    seen: set[Any] = set()
    out: List = []
    for value in values:
        key = identity(value)
        if key not in seen:
            seen.add(key)
            out.append(value)
    return out


plain("array", keeps_null=True)(lambda *values: list(values))
plain("array_append", keeps_null=True)(lambda a, v: None if a is None else [*a, v])
plain("array_prepend", keeps_null=True)(lambda a, v: None if a is None else [v, *a])
plain("array_compact")(lambda a: [value for value in a if value is not None])
plain("array_distinct")(_distinct)
plain("array_union")(lambda a, b: _distinct([*a, *b]))
plain("array_size")(len)
plain("size")(len)
plain("flatten")(lambda a: None if None in a else [value for part in a for value in part])
plain("reverse_list")(lambda a: a[::-1])
plain("concat_lists")(lambda *parts: [value for part in parts for value in part])
plain("map_keys")(lambda m: [key for key, _ in m])
plain("map_values")(lambda m: [value for _, value in m])


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


plain("map_entries")(lambda m: [{"key": key, "value": value} for key, value in m])


@plain("array_contains")
def _array_contains(values: List, wanted: Any) -> bool | None:
    key = identity(wanted)
    if any(value is not None and identity(value) == key for value in values):
        return True
    return None if None in values else False


@plain("array_position")
def _array_position(values: List, wanted: Any) -> int:
    key = identity(wanted)
    for at, value in enumerate(values, 1):
        if value is not None and identity(value) == key:
            return at
    return 0


@plain("array_remove")
def _array_remove(values: List, unwanted: Any) -> List:
    key = identity(unwanted)
    return [value for value in values if value is None or identity(value) != key]


@plain("array_except")
def _array_except(a: List, b: List) -> List:
    gone = {identity(value) for value in b}
    return [value for value in _distinct(a) if identity(value) not in gone]


@plain("array_intersect")
def _array_intersect(a: List, b: List) -> List:
    kept = {identity(value) for value in b}
    return [value for value in _distinct(a) if identity(value) in kept]


@plain("arrays_overlap")
def _arrays_overlap(a: List, b: List) -> bool | None:
    first = {identity(value) for value in a if value is not None}
    if any(identity(value) in first for value in b if value is not None):
        return True
    return None if a and b and (None in a or None in b) else False


@plain("array_insert", keeps_null=True)
def _array_insert(values: List | None, position: int | None, value: Any) -> List | None:
    if values is None or position is None:
        return None
    if position == 0:
        raise EvaluationError("array_insert counts positions from 1")
    if position > 0:
        padded = [*values, *([None] * (position - 1 - len(values)))]
        return [*padded[: position - 1], value, *padded[position - 1 :]]
    place = len(values) + position + 1
    if place >= 0:
        return [*values[:place], value, *values[place:]]
    return [value, *([None] * -place), *values]


@plain("array_join", keeps_null=True)
def _array_join(values: List | None, separator: str | None, *null: str | None) -> str | None:
    if values is None or separator is None or null == (None,):
        return None
    filler = [text for text in null if text is not None]
    return separator.join(part for v in values for part in (filler if v is None else [v]))


@plain("array_max")
def _array_max(values: List) -> Any:
    known = [value for value in values if value is not None]
    return max(known, key=order) if known else None


@plain("array_min")
def _array_min(values: List) -> Any:
    known = [value for value in values if value is not None]
    return min(known, key=order) if known else None


@plain("array_sort")
def _array_sort(values: List) -> List:
    """Ascending, NULLs at the end."""
    known = sorted((value for value in values if value is not None), key=order)
    return [*known, *([None] * (len(values) - len(known)))]


@plain("sort_array")
def _sort_array(values: List, ascending: bool = True) -> List:
    """NULLs first ascending, last descending."""
    return sorted(values, key=lambda value: _Ordered(order(value)), reverse=not ascending)


@plain("array_repeat", keeps_null=True)
def _array_repeat(value: Any, count: int | None) -> List | None:
    return None if count is None else [value] * max(count, 0)


@plain_typed("arrays_zip")
def _arrays_zip(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    names = [field.name for field in kind.value_type]

    def compute(*lists: List) -> List:
        longest = max(map(len, lists), default=0)
        return [
            {name: part[at] if at < len(part) else None for name, part in zip(names, lists, strict=True)}
            for at in range(longest)
        ]  # fmt: skip

    return compute


@plain("slice")
def _slice(values: List, start: int, length: int) -> List:
    if start == 0:
        raise EvaluationError("slice counts positions from 1")
    if length < 0:
        raise EvaluationError("slice needs a length of 0 or more")
    first = start - 1 if start > 0 else len(values) + start
    return values[first : first + length] if first >= 0 else []


def _at(values: List, index: int) -> Any:
    if index == 0:
        raise EvaluationError("arrays are counted from 1 here")
    place = index - 1 if index > 0 else len(values) + index
    if not 0 <= place < len(values):
        raise IndexError(index)
    return values[place]


@plain("element_at")
def _element_at(values: List, index: int) -> Any:
    try:
        return _at(values, index)
    except IndexError:
        raise EvaluationError(
            f"the array has {len(values)} elements, not {abs(index)}", hint="use try_element_at"
        ) from None


@plain("try_element_at")
def _try_element_at(values: List, index: int) -> Any:
    try:
        return _at(values, index)
    except IndexError:
        return None


@plain("get")
def _get(values: List, index: int) -> Any:
    return values[index] if 0 <= index < len(values) else None


@plain("array_at")
def _array_at(values: List, index: int) -> Any:
    if not 0 <= index < len(values):
        raise EvaluationError(
            f"the array has {len(values)} elements, there is no [{index}]", hint="use get()"
        )
    return values[index]


@plain("sequence")
def _sequence(start: int, stop: int, step: int | None = None) -> List:
    step = (1 if start <= stop else -1) if step is None else step
    if step == 0 or (stop - start) * step < 0:
        if start == stop:
            return [start]
        raise EvaluationError(f"sequence never gets from {start} to {stop} by {step}")
    if abs(stop - start) // abs(step) > 10_000_000:
        raise EvaluationError("sequence gives more than 10,000,000 elements")
    return list(range(start, stop + (1 if step > 0 else -1), step))


@plain("sequence_times")
def _sequence_times(start: Any, stop: Any, months: int, days: int, micros: int) -> List:
    from tailrace.pipelines.incremental.times import add_months

    epoch = datetime.date(1970, 1, 1)
    if not (months or days or micros):
        raise EvaluationError("sequence needs a step that is not zero")
    out: List = []
    count = 0
    forwards = months > 0 or days > 0 or micros > 0
    while True:
        current = start
        if months:
            whole = isinstance(start, datetime.datetime)
            day = start.date() if whole else start
            moved = epoch + datetime.timedelta(days=add_months((day - epoch).days, months * count))
            current = (
                datetime.datetime.combine(moved, start.timetz()) if whole else moved
            )  # fmt: skip
        current += datetime.timedelta(days=days * count, microseconds=micros * count)
        if (current > stop) if forwards else (current < stop):
            break
        out.append(current)
        count += 1
        if count > 10_000_000:
            raise EvaluationError("sequence gives more than 10,000,000 elements")
    return out


# Maps -------------------------------------------------------------------------------------------


def _checked(pairs: Pairs) -> Pairs:
    seen: set[Any] = set()
    for key, _ in pairs:
        if key is None:
            raise EvaluationError("a map has no NULL key")
        known = identity(key)
        if known in seen:
            raise EvaluationError(f"a map with the key {key!r} twice")
        seen.add(known)
    return pairs


@plain("map", keeps_null=True)
def _map(*parts: Any) -> Pairs:
    return _checked(list(zip(parts[::2], parts[1::2], strict=True)))


@plain("map_from_arrays")
def _map_from_arrays(keys: List, values: List) -> Pairs:
    if len(keys) != len(values):
        raise EvaluationError("map_from_arrays needs as many values as keys")
    return _checked(list(zip(keys, values, strict=True)))


@plain("map_from_entries")
def _map_from_entries(entries: List) -> Pairs | None:
    if None in entries:
        return None
    return _checked([tuple(entry.values()) for entry in entries])


@plain("map_concat")
def _map_concat(*maps: Pairs) -> Pairs:
    return _checked([pair for part in maps for pair in part])


@plain("map_contains_key")
def _map_contains_key(pairs: Pairs, key: Any) -> bool:
    wanted = identity(key)
    return any(identity(known) == wanted for known, _ in pairs)


@plain("map_at")
def _map_at(pairs: Pairs, key: Any) -> Any:
    wanted = identity(key)
    return next((value for known, value in pairs if identity(known) == wanted), None)


@plain("str_to_map")
def _str_to_map(text: str, between: str = ",", inside: str = ":") -> Pairs:
    from tailrace.pipelines.incremental.library.regular import compiled

    pairs: Pairs = []
    for entry in compiled(between).split(text):
        parts = compiled(inside).split(entry, maxsplit=1)
        pairs.append((parts[0], parts[1] if len(parts) > 1 else None))
    return _checked(pairs)
