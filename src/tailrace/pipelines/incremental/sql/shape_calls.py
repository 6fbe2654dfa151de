"""st_geomfromwkb and its kin. A geometry lives inside an expression: a view holds its WKB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.evaluate import folded
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.library import shapes
from tailrace.pipelines.incremental.sql.typed_calls import wants

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.calls import Rule
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

_SHAPES = (types.GEOMETRY, types.GEOGRAPHY)
_TAKES = ("st_asbinary", "st_srid", "st_setsrid")
_CHOOSES = ("coalesce", "nvl", "ifnull")


def _stays_inside(binder: ExpressionBinder, node: exp.Expr) -> None:
    """Refuse a geometry that something else than a function of geometries takes."""
    child, parent = node, node.parent
    while parent is not None:
        name = parent.name.lower() if isinstance(parent, exp.Anonymous) else ""
        if name in _TAKES or (isinstance(parent, exp.Is) and child is parent.this):
            return
        chosen = isinstance(parent, exp.Case | exp.If) and child is not parent.this
        if not (isinstance(parent, exp.Paren) or chosen or name in _CHOOSES):
            break
        child, parent = parent, parent.parent
    raise binder.context.type_error(
        "a geometry can be taken by st_asbinary, st_srid, st_setsrid and IS NULL alone", node,
        "st_asbinary gives what a view can hold",
    )  # fmt: skip


def _srid(binder: ExpressionBinder, given: Expression, known: set[int], node: exp.Expr) -> Literal:
    number = folded(binder.coerce(given, types.INT, node))
    if not isinstance(number, Literal):
        raise binder.context.not_incremental("an SRID must be a constant", node)
    if number.value is not None and number.value not in known:
        raise binder.context.type_error(
            f"the SRID {number.value} is not known", node,
            "known are 0, 3857, 4326, UTM (32601–32660, 32701–32760) and some of Europe and America",
        )  # fmt: skip
    return number


def _shape(kind: object) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        geography = kind == types.GEOGRAPHY
        wants(binder, given, node, 1, 1 if geography else 2)
        if given[0].type not in (types.BINARY, types.STRING, types.NULL):
            raise binder.context.type_error(f"{types.ddl(given[0].type)} is no WKB", node)
        _stays_inside(binder, node)
        wkb = binder.coerce(given[0], types.BINARY, node)
        srid = Literal(shapes.WORLD if geography else 0, types.INT)
        if len(given) > 1:
            srid = _srid(binder, given[1], shapes.SRIDS, node)
        return Call("shape_of_wkb", (wkb, srid), kind)

    return rule


def _of_shape(binder: ExpressionBinder, given: Expression, node: exp.Expr) -> Expression:
    if given.type == types.NULL:
        return Literal(None, types.GEOGRAPHY)
    if given.type not in _SHAPES:
        raise binder.context.type_error(f"{types.ddl(given.type)} is no geometry", node)
    return given


def _st_setsrid(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    _stays_inside(binder, node)
    value = _of_shape(binder, given[0], node)
    known = shapes.SRIDS if value.type == types.GEOMETRY else shapes.GEOGRAPHIC
    return Call("st_setsrid", (value, _srid(binder, given[1], known, node)), value.type)


def _st_srid(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    return Call("st_srid", (_of_shape(binder, given[0], node),), types.INT)


def _st_asbinary(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    value = _of_shape(binder, given[0], node)
    order = given[1] if len(given) > 1 else Literal("NDR", types.STRING)
    order = binder.coerce(order, types.STRING, node)
    if isinstance(order, Literal) and order.value is not None:
        try:
            shapes.order_of(str(order.value))
        except EvaluationError as error:
            raise binder.context.type_error(error.message, node) from error
    return Call("st_asbinary", (value, order), types.BINARY)


SHAPES: dict[str, Rule] = {
    "st_geomfromwkb": _shape(types.GEOMETRY), "st_geogfromwkb": _shape(types.GEOGRAPHY),
    "st_setsrid": _st_setsrid, "st_srid": _st_srid, "st_asbinary": _st_asbinary,
}  # fmt: skip
