"""A bare NULL as an argument: the type that Spark gives it.

NULL has the type VOID. Where a function asks for one type NULL becomes of that type; where it
asks for a number or one of several, Spark has a type of its own for NULL: `TAKEN`. And
where a NULL stands in the place of a constant (a pattern, a unit), or of a value whose type the
function must know, there is nothing to compute: `UNKNOWN` has the type of the NULL that it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.engine.expression import Expression, Literal
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

_OF_TIME = (
    "year", "month", "day", "dayofweek", "dayofyear", "quarter", "weekofyear", "weekday", "hour",
    "minute", "second",
)  # fmt: skip
# By the function: the type of a NULL.
TAKEN: dict[str, pa.DataType] = {
    **dict.fromkeys(_OF_TIME, types.TIMESTAMP),
    "zeroifnull": types.INT,
}
# By the function: a place where NULL makes all of it NULL, and of which type.
UNKNOWN: dict[str, tuple[int, pa.DataType]] = {
    "date_trunc": (0, types.TIMESTAMP),
    "trunc": (1, types.DATE),
    "nullifzero": (0, types.NULL),
}


def is_null(bound: Expression) -> bool:
    """Whether it is the constant NULL, of whatever type."""
    return isinstance(bound, Literal) and bound.value is None


def null_result(name: str, given: list[Expression]) -> Expression | None:
    """The NULL that a call is because of a NULL among its arguments; None if it must be
    computed."""
    place, kind = UNKNOWN.get(name, (len(given), types.NULL))
    return Literal(None, kind) if place < len(given) and is_null(given[place]) else None


def typed_nulls(
    binder: ExpressionBinder, name: str, given: list[Expression], node: exp.Expr
) -> list[Expression]:
    """The arguments with Spark's types for those that are VOID."""
    kind = TAKEN.get(name)
    if kind is None:
        return given
    return [
        binder.coerce(value, kind, node) if value.type == types.NULL else value for value in given
    ]
