"""LIKE ANY, LIKE ALL, and LIKE … ESCAPE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.engine.expression import Call, Expression
from tailrace.pipelines.values import types
from tailrace.records.like import compile_like

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder


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
    text = pattern.name.lower() if isinstance(inner, exp.ILike) else pattern.name
    try:
        compile_like(text, letter.name)
    except ValueError as error:
        raise context.type_error(str(error), node) from error
    parts, letters = [], iter(text)
    for one in letters:
        meant = next(letters) if one == letter.name else None
        plain = one if meant is None else meant
        bare = meant is None and plain in "%_"
        parts.append(plain if bare or plain not in "%_\\" else "\\" + plain)
    changed: exp.Expr = like.copy()
    target = changed.this if isinstance(changed, exp.Not) else changed
    target.set("expression", exp.Literal.string("".join(parts)))
    return changed
