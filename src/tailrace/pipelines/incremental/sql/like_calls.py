"""LIKE ANY, LIKE ALL, and LIKE … ESCAPE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression
from tailrace.pipelines.incremental.sql.scope import Context

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder


def is_like_several(node: exp.Expr) -> bool:
    """Whether it is LIKE ANY, LIKE SOME or LIKE ALL of a list of patterns."""
    return (
        isinstance(node, exp.Like | exp.ILike)
        and isinstance(node.expression, exp.Any | exp.All)
        and not isinstance(node.expression.this.unnest(), exp.Query)
    )


def like_several(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """x LIKE ANY (a, b) is x LIKE a OR x LIKE b. NOT LIKE ANY is an OR of NOT LIKEs."""
    quantifier = node.expression
    patterns = quantifier.this.unnest()
    listed = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns]
    joined = "or" if isinstance(quantifier, exp.Any) else "and"
    made: Expression | None = None
    for pattern in listed:
        one = type(node)(this=node.this.copy(), expression=pattern.copy())
        one.parent = node.parent
        condition = binder.condition(one)
        if node.args.get("negate"):
            condition = Call("not", (condition,), types.BOOLEAN)
        made = condition if made is None else Call(joined, (made, condition), types.BOOLEAN)
    if made is None:
        raise binder.context.type_error("LIKE needs a pattern", node)
    return made


def escaped(context: Context, node: exp.Escape) -> exp.Expr:
    """x LIKE y ESCAPE '|' with the usual `\\` instead."""
    like, letter = node.this, node.expression
    inner = like.this if isinstance(like, exp.Not) else like
    pattern = inner.expression
    known = isinstance(pattern, exp.Literal) and isinstance(letter, exp.Literal)
    if not known or not pattern.is_string or len(letter.name) != 1:
        raise context.not_incremental("LIKE … ESCAPE with a pattern that is no constant", node)
    text, parts, at = pattern.name, [], 0
    while at < len(text):
        if text[at] == letter.name and at + 1 < len(text):
            parts.append("\\" + text[at + 1])
            at += 2
            continue
        parts.append("\\\\" if text[at] == "\\" else text[at])
        at += 1
    changed: exp.Expr = like.copy()
    target = changed.this if isinstance(changed, exp.Not) else changed
    target.set("expression", exp.Literal.string("".join(parts)))
    return changed
