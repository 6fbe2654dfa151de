"""GROUP BY, its ROLLUP, CUBE and GROUPING SETS, and what SELECT may then name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.errors import ViewError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import (
    Call,
    Column,
    Expression,
    Literal,
    rewrite,
    walk,
)
from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder
from tailrace.pipelines.incremental.sql.plan import Field, Group, Plan, Project, SetOperation, ids

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.bind import QueryBinder
    from tailrace.pipelines.incremental.sql.subqueries import Work


@dataclass(slots=True)
class Rewriter:
    """Turns expressions over FROM into expressions over the groups."""

    active: bool
    keys: dict[Expression, Expression] = field(default_factory=dict)
    below: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    binder: QueryBinder | None = None

    @classmethod
    def none(cls) -> Rewriter:
        return cls(False)

    def apply(self, bound: Expression, node: exp.Expr) -> Expression:
        """`bound` over the groups; an error when it names a column that is not grouped."""
        if not self.active:
            return bound
        changed = rewrite(bound, self.keys.get)
        for part in walk(changed):
            if isinstance(part, Column) and part.name in self.below:
                raise self._ungrouped(part.name, node)
        return changed

    def _ungrouped(self, identity: str, node: exp.Expr) -> ViewError:
        name = self.names.get(identity, identity)
        places = [
            column for column in node.find_all(exp.Column) if column.name.lower() == name.lower()
        ]
        assert self.binder is not None
        return self.binder.context.name_error(
            f"column {name!r} is neither grouped nor aggregated",
            places[0] if places else node,
            "add it to GROUP BY or use max(), min(), any_value()",
        )


def bind_group(
    query: QueryBinder,
    node: exp.Select,
    work: Work,
    binder: ExpressionBinder,
    items: list[tuple[str, Expression]],
    aliases: Mapping[str, Expression],
) -> tuple[Plan, Rewriter]:
    """The plan with the GROUP BY on top, and how to rewrite what comes above it."""
    assert binder.collected is not None
    plan = work.plan
    clause = node.args.get("group")
    sets, keys = _sets(query, clause, binder, items, aliases) if clause is not None else (None, [])
    calls = tuple(call for _, call in binder.collected.aggregates)
    made = tuple(made for made, _ in binder.collected.aggregates)
    below = ids(plan)
    names = {f.id: f.name for f in plan.fields}
    fields = [
        Field(query.context.fresh("key"), names.get(getattr(k, "name", ""), f"key{i}"), k.type)
        for i, k in enumerate(keys)
    ]
    mapped: dict[Expression, Expression] = {}
    for at, (key, made_key) in enumerate(zip(keys, fields, strict=True)):
        mapped[key] = made_key.column
        if isinstance(key, Call) and key.function == "window":
            # A window is known by its start; the struct is made when it is shown.
            start = Call("window_start", key.arguments, key.arguments[0].type)
            narrow = Field(made_key.id, made_key.name, start.type)
            keys[at], fields[at] = start, narrow
            mapped[start] = narrow.column
            mapped[key] = Call("make_window", (narrow.column, key.arguments[1]), key.type)
    rewriter = Rewriter(True, mapped, below, names, query)
    if sets is None:
        return Group(plan, tuple(keys), calls, (*fields, *made)), rewriter
    parts: list[Plan] = []
    for number, chosen in enumerate(sets):
        inner = tuple(Field(query.context.fresh(f.name), f.name, f.type) for f in fields)
        out = tuple(Field(query.context.fresh(f.name), f.name, f.type) for f in made)
        group = Group(
            plan,
            tuple(key for i, key in enumerate(keys) if i in chosen),
            calls,
            (*(f for i, f in enumerate(inner) if i in chosen), *out),
        )
        values: list[Expression] = [
            f.column if i in chosen else Literal(None, f.type) for i, f in enumerate(inner)
        ]
        values += [f.column for f in out]
        values.append(Literal(number, types.INT))
        shown = tuple(Field(query.context.fresh("g"), f.name, f.type) for f in (*inner, *out))
        tag = Field(query.context.fresh("grouping"), "grouping", types.INT)
        parts.append(Project(group, (*shown, tag), tuple(values)))
    tag = Field(query.context.fresh("grouping"), "grouping", types.INT)
    union = SetOperation("union all", tuple(parts), (*fields, *made, tag))
    return union, rewriter


def _sets(
    query: QueryBinder,
    clause: exp.Expr,
    binder: ExpressionBinder,
    items: list[tuple[str, Expression]],
    aliases: Mapping[str, Expression],
) -> tuple[list[set[int]] | None, list[Expression]]:
    """The distinct key expressions, and the grouping sets over them (None: just one)."""
    query.context.only(clause, "expressions", "all", "rollup", "cube", "grouping_sets")
    keys: list[Expression] = []

    def number(node: exp.Expr) -> int:
        bound = _key(query, node, binder, items, aliases)
        if bound not in keys:
            keys.append(bound)
        return keys.index(bound)

    def numbers(node: exp.Expr) -> set[int]:
        if isinstance(node, exp.Tuple):
            return {number(part) for part in node.expressions}
        return {number(node.this if isinstance(node, exp.Paren) else node)}

    if clause.args.get("all"):
        for _, bound in items:
            collected = {made.id for made, _ in binder.collected.aggregates}  # type: ignore[union-attr]
            aggregated = any(isinstance(n, Column) and n.name in collected for n in walk(bound))
            if not aggregated and bound not in keys:
                keys.append(bound)
        return None, keys
    products: list[list[set[int]]] = []
    plain: set[int] = set()
    complex_parts = [*(clause.args.get("rollup") or ()), *(clause.args.get("cube") or ()),
                     *(clause.args.get("grouping_sets") or ())]  # fmt: skip
    for part in [*clause.expressions, *complex_parts]:
        match part:
            case exp.Rollup():
                groups = [numbers(e) for e in part.expressions]
                products.append(
                    [set().union(*groups[:size]) for size in range(len(groups), -1, -1)]
                )
            case exp.Cube():
                groups = [numbers(e) for e in part.expressions]
                products.append(
                    [
                        set().union(*chosen)
                        for size in range(len(groups), -1, -1)
                        for chosen in combinations(groups, size)
                    ]
                )
            case exp.GroupingSets():
                products.append([numbers(e) for e in part.expressions])
            case _:
                plain |= numbers(part)
    if not products:
        return None, keys
    sets: list[set[int]] = [set(plain)]
    for options in products:
        sets = [base | option for base in sets for option in options]
    return sets, keys


def _key(
    query: QueryBinder,
    node: exp.Expr,
    binder: ExpressionBinder,
    items: list[tuple[str, Expression]],
    aliases: Mapping[str, Expression],
) -> Expression:
    if isinstance(node, exp.Literal) and node.is_int:
        position = int(node.this)
        if not 0 < position <= len(items):
            raise query.context.name_error(f"there is no column {position} in SELECT", node)
        return items[position - 1][1]
    inner = ExpressionBinder(query.context, binder.scope, binder.subquery)
    known = {f.name.lower() for source in binder.scope.sources for f in source.fields}
    inner.aliases = {name: bound for name, bound in aliases.items() if name not in known}
    return inner.bind(node)
