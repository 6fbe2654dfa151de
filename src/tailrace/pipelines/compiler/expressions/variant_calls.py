"""What the aggregates and generators of VARIANT ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.engine.expression import Call, Expression
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

CHILD = pa.struct([("pos", types.INT), ("key", types.STRING), ("value", types.VARIANT)])


def exactly(
    binder: ExpressionBinder, bound: Expression, kind: pa.DataType, node: exp.Expr
) -> Expression:
    """An argument that must be of a type, or NULL."""
    if bound.type not in (kind, types.NULL):
        raise binder.context.type_error(
            f"{types.ddl(kind)} is needed here, not {types.ddl(bound.type)}", node
        )
    return binder.coerce(bound, kind, node)


def merged_schema(column: Expression) -> Expression:
    """schema_of_variant_agg from the schemas that occur."""
    return Call("merged_variant_schema", (column,), types.STRING)
