"""Calls that Spark itself analyses and computes (see `pipelines.catalyst`).

Constants stay in the text, because Spark wants some of them to be constants; whatever else an
argument is, is computed here and is a column there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.catalyst import client
from tailrace.pipelines.catalyst.schema import crosses
from tailrace.pipelines.errors import SqlTypeError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import (
    SPARK,
    Call,
    Expression,
    Literal,
    columns_of,
    walk,
)

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

Rule: TypeAlias = "Callable[[ExpressionBinder, list[Expression], exp.Expr], Expression]"
_CONSTANTS = ("map", SPARK)  # options, and a schema that Spark has read from a text


def by_spark(name: str) -> Rule:
    """The rule of a function that is Spark's."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        texts: list[str] = []
        columns: list[Expression] = []
        for value in given:
            constant = _constant(value)
            if constant is not None:
                texts.append(constant)
                continue
            if not crosses(value.type):
                raise binder.context.not_incremental(
                    f"{name} of a {types.ddl(value.type)}", node, "cast it to STRING"
                )
            texts.append(client.column(len(columns)))
            columns.append(value)
        text = f"{name}({', '.join(texts)})"
        try:
            kind = client.type_of(text, [value.type for value in columns])
        except SqlTypeError as problem:
            raise binder.context.type_error(problem.message, node, problem.hint) from problem
        return Call(SPARK, (Literal(text, types.STRING), *columns), kind)

    return rule


def _constant(value: Expression) -> str | None:
    """The text of a constant; None for what has columns, or must be computed here first."""
    if isinstance(value, Literal):
        if pa.types.is_nested(value.type):
            return None
        # A text must not look like the place of an argument.
        return value.sql.replace("`", "\\u0060") if isinstance(value.value, str) else value.sql
    if not isinstance(value, Call) or columns_of(value):
        return None
    parts = list(walk(value))
    if any(isinstance(part, Call) and part.function not in _CONSTANTS for part in parts):
        return None
    if any(isinstance(part, Literal) and part.type != types.STRING for part in parts):
        return None
    return str(_text_of(value)) if value.function == SPARK else value.sql


def _text_of(call: Call) -> object:
    text = call.arguments[0]
    return text.value if isinstance(text, Literal) else ""


# By family; what is here is nowhere else.
XML = (
    "from_xml", "to_xml", "schema_of_xml", "xpath", "xpath_string", "xpath_boolean",
    "xpath_double", "xpath_number", "xpath_float", "xpath_int", "xpath_long", "xpath_short",
)  # fmt: skip
TEXT = ("sentences",)
BY_SPARK: dict[str, Rule] = {name: by_spark(name) for name in (*XML, *TEXT)}
