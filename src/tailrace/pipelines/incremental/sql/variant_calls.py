"""Functions of VARIANT, and `v:path`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.casts import castable
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.sql.typed_calls import constant, wants
from tailrace.pipelines.incremental.variant.convert import becomes_variant
from tailrace.pipelines.incremental.variant.paths import steps_of

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

Rule: TypeAlias = "Callable[[ExpressionBinder, list[Expression], exp.Expr], Expression]"
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


def _of_variant(name: str, result: pa.DataType) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        return Call(name, (exactly(binder, given[0], types.VARIANT, node),), result)

    return rule


def _parsing(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        return Call(name, (exactly(binder, given[0], types.STRING, node),), types.VARIANT)

    return rule


def _is_null(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """NULL is no variant null."""
    inner = _of_variant("variant_is_null", types.BOOLEAN)(binder, given, node)
    return Call("coalesce", (inner, Literal(False, types.BOOLEAN)), types.BOOLEAN)


def _to_object(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    kind = given[0].type
    if not pa.types.is_nested(kind) or not becomes_variant(kind, objects=True):
        raise binder.context.type_error(
            f"to_variant_object takes no {types.ddl(kind)}",
            node,
            "an array, a struct, or a map with keys that are texts",
        )
    return Call("to_variant_object", (given[0],), types.VARIANT)


def _path(
    binder: ExpressionBinder, bound: Expression, node: exp.Expr, *, root: bool = True
) -> Expression:
    """A path; a constant one is read at once."""
    path = exactly(binder, bound, types.STRING, node)
    if isinstance(path, Literal) and path.value is not None:
        try:
            steps = steps_of(str(path.value))
        except ValueError as error:
            raise binder.context.type_error(str(error), node) from error
        if not steps and not root:
            raise binder.context.type_error("the path $ is the whole, which stays", node)
    return path


def _getting(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 3)
        value = exactly(binder, given[0], types.VARIANT, node)
        kind = types.VARIANT
        if len(given) > 2:
            text = str(constant(binder, given[2], node, "the type"))
            try:
                kind = types.parse_type(text)
            except ValueError as error:
                raise binder.context.type_error(str(error), node) from error
        if not castable(types.VARIANT, kind):
            raise binder.context.type_error(f"VARIANT cannot become {types.ddl(kind)}", node)
        return Call(name, (value, _path(binder, given[1], node)), kind)

    return rule


def _changing(name: str, *, root: bool = False, flag: bool = False) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 3, 4 if flag else 3)
        whole = exactly(binder, given[0], types.VARIANT, node)
        path = _path(binder, given[1], node, root=root)
        arguments = [whole, path, binder.coerce(given[2], types.VARIANT, node)]
        if flag:
            arguments.append(_flag(binder, given[3:], node))
        return Call(name, tuple(arguments), types.VARIANT)

    return rule


def _flag(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if not given:
        return Literal(True, types.BOOLEAN)
    constant(binder, given[0], node, "the last argument")
    return exactly(binder, given[0], types.BOOLEAN, node)


def _deleting(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, None)
    whole = exactly(binder, given[0], types.VARIANT, node)
    paths = (_path(binder, path, node, root=False) for path in given[1:])
    return Call("variant_delete", (whole, *paths), types.VARIANT)


def _stripping(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    whole = exactly(binder, given[0], types.VARIANT, node)
    return Call("variant_strip_nulls", (whole, _flag(binder, given[1:], node)), types.VARIANT)


def bind_extract(binder: ExpressionBinder, node: exp.JSONExtract) -> Expression:
    """v:a.b[0]['c d']."""
    whole = exactly(binder, binder.bind(node.this), types.VARIANT, node)
    path = "$"
    for part in node.expression.expressions[1:] if node.expression else ():
        match part:
            case exp.JSONPathKey() if '"' not in str(part.this):
                path += f'["{part.this}"]'
            case exp.JSONPathSubscript() if isinstance(part.this, int) and part.this >= 0:
                path += f"[{part.this}]"
            case _:
                raise binder.context.type_error("this path is not known here", node)
    return Call("variant_get", (whole, Literal(path, types.STRING)), types.VARIANT)


def merged_schema(column: Expression) -> Expression:
    """schema_of_variant_agg from the schemas that occur."""
    return Call("merged_variant_schema", (column,), types.STRING)


VARIANTS: dict[str, Rule] = {
    "parse_json": _parsing("parse_json"), "try_parse_json": _parsing("try_parse_json"),
    "is_valid_variant": _of_variant("is_valid_variant", types.BOOLEAN),
    "is_variant_null": _is_null,
    "schema_of_variant": _of_variant("schema_of_variant", types.STRING),
    "to_variant_object": _to_object,
    "variant_get": _getting("variant_get"), "try_variant_get": _getting("try_variant_get"),
    **{prefix + name: _changing(prefix + name, root=root, flag=flag)
       for prefix in ("", "try_")
       for name, root, flag in (("variant_insert", False, False), ("variant_set", False, True),
                                ("variant_array_append", True, False))},
    "variant_delete": _deleting, "variant_strip_nulls": _stripping,
}  # fmt: skip
