"""xpath and its kin, from_xml, to_xml, schema_of_xml."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.sql.format_calls import read_options
from tailrace.pipelines.incremental.sql.typed_calls import constant, wants, written_type
from tailrace.pipelines.incremental.sql.variant_calls import exactly
from tailrace.pipelines.incremental.xml.grammar import parse
from tailrace.pipelines.incremental.xml.rows import read_form, readable, schema_of, unwritable

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


def _from_xml(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 3)
    kind = written_type(binder, given[1], node)
    options, _ = read_options(binder, given[2:], node, read_form)
    if not pa.types.is_struct(kind):
        raise binder.context.type_error("from_xml gives a struct", node)
    if any(field.name == "_corrupt_record" for field in kind):
        raise binder.context.not_incremental("_corrupt_record of from_xml", node)
    why = readable(kind)
    if why:
        raise binder.context.not_incremental(why, node)
    return Call("from_xml", (exactly(binder, given[0], types.STRING, node), options), kind)


def _to_xml(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    options, form = read_options(binder, given[1:], node, read_form)
    if not pa.types.is_struct(given[0].type):
        raise binder.context.type_error("to_xml takes a struct", node)
    why = unwritable(given[0].type, form, name=form.row)
    if why:
        raise binder.context.type_error(why, node)
    return Call("to_xml", (given[0], options), types.STRING)


def _schema_of_xml(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    _, form = read_options(binder, given[1:], node, read_form)
    text = str(constant(binder, given[0], node, "the document"))
    return Literal(schema_of(text, form), types.STRING)


XML: dict[str, Rule] = {
    "from_xml": _from_xml,
    "to_xml": _to_xml,
    "schema_of_xml": _schema_of_xml,
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
