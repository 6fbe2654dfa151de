"""A bare NULL as an argument: the type that Spark gives it.

NULL has the type VOID. Where a function asks for one type NULL becomes of that type; where it
asks for a number, an array or one of several, Spark has a type of its own for NULL: `TAKEN`. And
where a NULL stands in the place of a constant (a pattern, a unit), or of a value whose type the
function must know, there is nothing to compute: `UNKNOWN` has the type of the NULL that it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Expression, Literal

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

_ARRAY = pa.list_(types.NULL)
_PAIRS = pa.list_(pa.struct([("key", types.NULL), ("value", types.NULL)]))
_OF_TIME = (
    "year", "month", "day", "dayofweek", "dayofyear", "quarter", "weekofyear", "weekday", "hour",
    "minute", "second",
)  # fmt: skip
_OF_ARRAYS = (
    "array_size", "array_compact", "array_distinct", "array_join", "array_max", "array_min",
    "sort_array", "slice", "size", "cardinality",
)  # fmt: skip
# By the function: the type of a NULL in each place, the last one for all places behind it.
TAKEN: dict[str, tuple[pa.DataType, ...]] = {
    **dict.fromkeys(_OF_TIME, (types.TIMESTAMP,)),
    **dict.fromkeys(_OF_ARRAYS, (_ARRAY, types.NULL)),
    "arrays_zip": (_ARRAY,),
    "map_from_arrays": (types.NULL, _ARRAY),
    "bit_get": (types.BIGINT, types.INT),
    "~": (types.INT,),
    "pmod": (types.DOUBLE,),
    "zeroifnull": (types.INT,),
    "time_bucket": (types.NULL, types.TIMESTAMP, types.NULL),
}
# By the function: a place where NULL makes all of it NULL, and of which type.
UNKNOWN: dict[str, tuple[tuple[int, pa.DataType], ...]] = {
    "to_number": ((1, pa.decimal128(10, 0)),),
    "try_to_number": ((1, pa.decimal128(10, 0)),),
    "to_char": ((1, types.STRING),),
    "to_varchar": ((1, types.STRING),),
    "to_binary": ((1, types.BINARY),),
    "try_to_binary": ((1, types.BINARY),),
    "date_trunc": ((0, types.TIMESTAMP),),
    "trunc": ((1, types.DATE),),
    "to_json": ((0, types.STRING),),
    "to_csv": ((0, types.STRING),),
    "map_keys": ((0, _ARRAY),),
    "map_values": ((0, _ARRAY),),
    "map_entries": ((0, _PAIRS),),
    "nullifzero": ((0, types.NULL),),
}
# By the function: the place where Spark takes no bare NULL.
_REFUSED = {
    "array_contains": 1, "array_insert": 1, "map_contains_key": 1, "bitmap_count": 0,
    "vector_norm": 1, "schema_of_csv": 0,
}  # fmt: skip


def is_null(bound: Expression) -> bool:
    """Whether it is the constant NULL, of whatever type."""
    return isinstance(bound, Literal) and bound.value is None


def null_result(name: str, given: list[Expression]) -> Expression | None:
    """The NULL that a call is because of a NULL among its arguments; None if it must be
    computed."""
    for place, kind in UNKNOWN.get(name, ()):
        if place < len(given) and is_null(given[place]):
            return Literal(None, kind)
    return None


def typed_nulls(
    binder: ExpressionBinder, name: str, given: list[Expression], node: exp.Expr
) -> list[Expression]:
    """The arguments with Spark's types for those that are VOID; numbers that are found by
    their sign take the type of the other side."""
    if not any(value.type == types.NULL for value in given):
        return given
    place = _REFUSED.get(name, len(given))
    if place < len(given) and given[place].type == types.NULL:
        raise binder.context.type_error(
            f"{name} takes no bare NULL", node, "CAST(NULL AS …) gives it a type"
        )
    if name in ("&", "|", "^") or (name == "pmod" and len(given) == 2):
        known = [value.type for value in given if value.type != types.NULL]
        kinds: tuple[pa.DataType, ...] = (known[0],) if known else TAKEN.get(name, (types.INT,))
    else:
        kinds = TAKEN.get(name, ())
    return [
        binder.coerce(value, kinds[min(place, len(kinds) - 1)], node)
        if kinds and value.type == types.NULL
        else value
        for place, value in enumerate(given)
    ]
