"""COLLATE: comparisons and orders of texts by what a collation takes for equal.

A collated text is compared, ordered and partitioned by its key; nothing else may take it, since
groups of texts that differ have no text of their own (Spark shows any of them). Collations are
Spark's of UTF-8; those of ICU are refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.compiler.expressions.typed_calls import wants
from tailrace.pipelines.engine.evaluate import folded
from tailrace.pipelines.engine.expression import Call, Expression, Literal
from tailrace.pipelines.engine.functions.collated import KEYS
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.calls import Rule
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

_COMPARES = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between,
    exp.Is, exp.Ordered,
)  # fmt: skip


def collation_name(node: exp.Expr) -> str:
    """The name behind COLLATE, `UTF8_LCASE` or `system.builtin.UTF8_LCASE`."""
    if isinstance(node, exp.Column):
        return ".".join(part.name for part in node.parts)
    return node.name


def _collate(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    if isinstance(node, exp.Collate) and isinstance(node.expression, exp.Literal):
        raise binder.context.type_error("the name behind COLLATE has no quotes", node)
    text, named = given[0], folded(given[1])
    if text.type not in (types.STRING, types.NULL):
        raise binder.context.type_error(f"{types.ddl(text.type)} has no collation", node)
    if not isinstance(named, Literal) or not isinstance(named.value, str):
        raise binder.context.type_error("the name of a collation is a constant text", node)
    name = named.value.upper().removeprefix("SYSTEM.BUILTIN.")
    if name not in KEYS:
        raise binder.context.not_incremental(
            f"the collation {named.value} is not known", node, f"known are {', '.join(KEYS)}"
        )
    _is_compared(binder, node)
    text = binder.coerce(text, types.STRING, node)
    return Call("collate", (text, Literal(name, types.STRING)), types.STRING)


def _is_compared(binder: ExpressionBinder, node: exp.Expr) -> None:
    child, parent = node, node.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    asked = isinstance(parent, exp.Anonymous) and parent.name.lower() == "collation"
    listed = isinstance(parent, exp.In) and not parent.args.get("query")
    subject = isinstance(parent, exp.Case) and child is parent.this
    parted = isinstance(parent, exp.Window) and child in (parent.args.get("partition_by") or ())
    if not (isinstance(parent, _COMPARES) or asked or listed or subject or parted):
        raise binder.context.not_incremental(
            "a collated text may be compared, ordered and partitioned by, no more", node,
            "group by lower(x), or compare with COLLATE where it counts",
        )  # fmt: skip


def _collation(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    if given[0].type not in (types.STRING, types.NULL):
        raise binder.context.type_error(f"{types.ddl(given[0].type)} has no collation", node)
    return Literal(f"SYSTEM.BUILTIN.{_name_of(given[0]) or 'UTF8_BINARY'}", types.STRING)


def _name_of(bound: Expression) -> str | None:
    if isinstance(bound, Call) and bound.function == "collate":
        name = bound.arguments[1]
        assert isinstance(name, Literal)
        return str(name.value)
    return None


def key_of(bound: Expression) -> Expression:
    """What a text is ordered and partitioned by."""
    name = _name_of(bound)
    return bound if name is None else _keyed(bound, name)


def _keyed(bound: Expression, name: str) -> Expression:
    text = _plain(bound)
    if name == "UTF8_BINARY" or text.type != types.STRING:
        return text
    return Call("collation_key", (text, Literal(name, types.STRING)), types.STRING)


def _plain(bound: Expression) -> Expression:
    return bound.arguments[0] if isinstance(bound, Call) and _name_of(bound) else bound


def compared(
    binder: ExpressionBinder, bounds: list[Expression], node: exp.Expr
) -> list[Expression]:
    """Values to be compared, by the one collation that is named among them."""
    names = dict.fromkeys(name for name in map(_name_of, bounds) if name is not None)
    if not names:
        return bounds
    if len(names) > 1:
        raise binder.context.type_error(f"two collations: {' and '.join(names)}", node)
    if any(bound.type not in (types.STRING, types.NULL) for bound in bounds):
        return [_plain(bound) for bound in bounds]  # compared as numbers, dates …
    (name,) = names
    return [_keyed(bound, name) for bound in bounds]


COLLATIONS: dict[str, Rule] = {"collate": _collate, "collation": _collation}
