"""`*` and `t.*`: the columns they stand for, in SELECT and among the arguments of a function."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.engine.expression import Expression
from tailrace.pipelines.values import types
from tailrace.pipelines.values.columns import VERSIONED_AT

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.scope import Scope, Source
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

BOUND = "bound"  # in the meta of a column that a star became: what it means


def star_of(node: exp.Expr) -> exp.Star | None:
    """The star that `*` or `t.*` is; None for anything else."""
    inner = node.this if isinstance(node, exp.Column) else node
    return inner if isinstance(inner, exp.Star) else None


def is_table_star(binder: ExpressionBinder, node: exp.Expr) -> bool:
    """Whether it is `t.*` of a table, without EXCEPT."""
    star = star_of(node)
    if star is None or star is node or star.args.get("except_"):
        return False
    return _named(binder, _path(node)) is not None


def is_bare(node: exp.Expr) -> bool:
    """Whether it is `*` and nothing more."""
    return isinstance(node, exp.Star) and not node.args.get("except_")


def written_in(select: exp.Expr) -> bool:
    """Whether the items of a SELECT have a star other than that of count(*)."""
    return any(
        star.parent_select is select and not (is_bare(star) and isinstance(star.parent, exp.Count))
        for item in select.expressions
        for star in item.find_all(exp.Star)
    )


def columns_of(binder: ExpressionBinder, node: exp.Expr) -> list[tuple[str, Expression]]:
    """What a star stands for: names and columns, without those behind EXCEPT."""
    star = star_of(node)
    assert star is not None
    binder.context.only(star, "except_")
    found = _all_of(binder, node)
    for unwanted in star.args.get("except_") or ():
        found.pop(_place(binder, unwanted, found))
    return [(name, bound) for _, name, bound in found]


def written_out(binder: ExpressionBinder, node: exp.Expr) -> exp.Expr:
    """A call with columns in the place of each star among its arguments."""
    if not any(map(star_of, node.iter_expressions())):
        return node
    call = node.copy()
    call.parent = node.parent  # what stands around it is asked for
    for star in [child for child in call.iter_expressions() if star_of(child)]:
        columns = spread(binder, star)
        if isinstance(call.args[star.arg_key or ""], list):
            star.replace(columns)
        elif len(columns) == 1:
            star.replace(columns[0])
        else:
            raise binder.context.name_error("* is not allowed here", star, "name the columns")
    return call


def spread(binder: ExpressionBinder, node: exp.Expr) -> list[exp.Expr]:
    """The columns of a star as arguments; anything else as it is."""
    if star_of(node) is None:
        return [node]
    _refuse_in_clauses(binder, node)
    return [_column(name, bound, node) for name, bound in columns_of(binder, node)]


def _column(name: str, bound: Expression, star: exp.Expr) -> exp.Column:
    column = exp.column(name, quoted=True)
    inner = star_of(star)
    column.meta.update({**(inner.meta if inner is not None else {}), **star.meta, BOUND: bound})
    return column


def _all_of(binder: ExpressionBinder, node: exp.Expr) -> list[tuple[str, str, Expression]]:
    """Table, name and meaning of all columns of a star."""
    if isinstance(node, exp.Star):
        return [part for source in binder.scope.sources for part in _shown(source, hidden=False)]
    source = _named(binder, _path(node))
    if source is not None:
        return _shown(source, hidden=True)
    column = exp.column(*(part.copy() for part in reversed(_path(node))))
    whole = replace(binder, aliases={}).bind(column)
    if not pa.types.is_struct(whole.type):
        raise binder.context.type_error(f"{types.ddl(whole.type)} has no fields for *", node)
    from tailrace.pipelines.compiler.expressions.scalar import take_field

    return [
        ("", field.name, take_field(binder.context, whole, field.name, node))
        for field in whole.type
    ]


def _shown(source: Source, *, hidden: bool) -> list[tuple[str, str, Expression]]:
    return [
        (source.alias.lower(), field.name, field.column)
        for field in source.fields
        if (hidden or field.id not in source.hidden) and field.name != VERSIONED_AT
    ]


def _path(node: exp.Expr) -> list[exp.Identifier]:
    """What stands before the star of `t.*`."""
    return [part for part in cast(exp.Column, node).parts if isinstance(part, exp.Identifier)]


def _named(binder: ExpressionBinder, path: list[exp.Identifier]) -> Source | None:
    """The table that `t` or `source.t` names, here or in a query around; a struct in a column
    comes before a table with others before its name."""
    if len(path) > 1 and binder.has(path[0].name.lower(), path[1].name.lower()):
        return None
    around: Scope | None = binder.scope
    while around is not None:
        for source in around.sources:
            if source.is_named(*(part.name.lower() for part in path)):
                return source
        around = around.parent
    return None


def _place(
    binder: ExpressionBinder, unwanted: exp.Expr, found: list[tuple[str, str, Expression]]
) -> int:
    """Which of the columns EXCEPT names."""
    table, name = unwanted.text("table").lower(), unwanted.name.lower()
    if unwanted.args.get("db"):
        raise binder.context.not_incremental(
            "a name of more than two parts behind EXCEPT", unwanted
        )
    places = [
        place
        for place, (owner, shown, _) in enumerate(found)
        if shown.lower() == name and table in ("", owner)
    ]
    if len(places) == 1:
        return places[0]
    if places:
        raise binder.context.name_error(f"column {unwanted.sql()!r} is ambiguous", unwanted)
    if any(shown.lower() == table for _, shown, _ in found):
        raise binder.context.not_incremental("a field of a struct behind EXCEPT", unwanted)
    names = ", ".join(shown for _, shown, _ in found)
    raise binder.context.name_error(
        f"column {unwanted.sql()!r} does not exist", unwanted, f"columns here: {names}"
    )


def _refuse_in_clauses(binder: ExpressionBinder, node: exp.Expr) -> None:
    """Spark knows no star in GROUP BY, ORDER BY, ON and LATERAL VIEW."""
    around = node.parent
    while around is not None and not isinstance(around, exp.Query):
        ordered = isinstance(around, exp.Order) and isinstance(around.parent, exp.Query)
        if ordered or isinstance(around, exp.Group | exp.Join | exp.Lateral):
            raise binder.context.name_error("* is not allowed here", node, "name the columns")
        around = around.parent
