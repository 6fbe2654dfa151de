"""xpath and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.sql.typed_calls import constant, wants
from tailrace.pipelines.incremental.sql.variant_calls import exactly
from tailrace.pipelines.incremental.xml.grammar import parse

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

Rule: TypeAlias = "Callable[[ExpressionBinder, list[Expression], exp.Expr], Expression]"


def _xpath(name: str, kind: pa.DataType) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        text = exactly(binder, given[0], types.STRING, node)
        path = exactly(binder, given[1], types.STRING, node)
        written = constant(binder, path, node, "the path")
        if written:
            try:
                parse(str(written))
            except ValueError as error:
                raise binder.context.type_error(f"this is no XPath: {error}", node) from error
        return Call(name, (text, Literal(written, types.STRING)), kind)

    return rule


XML: dict[str, Rule] = {
    "xpath": _xpath("xpath", pa.list_(types.STRING)),
    "xpath_string": _xpath("xpath_string", types.STRING),
    "xpath_boolean": _xpath("xpath_boolean", types.BOOLEAN),
    "xpath_double": _xpath("xpath_double", types.DOUBLE),
    "xpath_number": _xpath("xpath_number", types.DOUBLE),
    "xpath_float": _xpath("xpath_float", types.FLOAT),
    "xpath_int": _xpath("xpath_int", types.INT),
    "xpath_long": _xpath("xpath_long", types.BIGINT),
    "xpath_short": _xpath("xpath_short", types.SMALLINT),
}
