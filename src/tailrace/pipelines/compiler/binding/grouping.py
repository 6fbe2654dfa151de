"""GROUP BY, its ROLLUP, CUBE and GROUPING SETS, and what SELECT may then name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.binding.generators import is_window, window_keys
from tailrace.pipelines.compiler.binding.stars import written_in
from tailrace.pipelines.compiler.expressions.map_forms import map_form
from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder
from tailrace.pipelines.compiler.plans.plan import (
    AggregateCall,
    Field,
    Filter,
    Group,
    Plan,
    Project,
    SetOperation,
    ids,
)
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal, rewrite, walk
from tailrace.pipelines.errors import ViewError
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.query import QueryBinder
    from tailrace.pipelines.compiler.binding.subqueries import Work


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
        if any(isinstance(p, Call) and p.function.startswith("grouping") for p in walk(changed)):
            assert self.binder is not None
            raise self.binder.context.type_error(
                "grouping() needs a column of ROLLUP, CUBE or GROUPING SETS", node
            )
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


def _parts(key: Expression) -> list[str]:
    """What an expression is made of, in no order."""
    return sorted(part.function if isinstance(part, Call) else repr(part) for part in walk(key))


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
    later: list[tuple[Expression, Field]] = []
    for at, (key, made_key) in enumerate(zip(keys, fields, strict=True)):
        mapped[key] = made_key.column
        if isinstance(key, Call) and is_window(key):
            # A window is known by its start; the struct is made when it is shown.
            start, *rest = window_keys(key)
            narrow = Field(made_key.id, made_key.name, start.type)
            keys[at], fields[at] = start, narrow
            mapped[start] = narrow.column
            made_of: tuple[Expression, ...] = (narrow.column, *key.arguments[1:2])
            for more in rest:  # a session has an end of its own
                end = Field(query.context.fresh("key"), "end", more.type)
                later.append((more, end))
                mapped[more] = end.column
                made_of = (narrow.column, end.column)
            name = "make_session" if rest else "make_window"
            mapped[key] = Call(name, made_of, key.type)
    if sets is not None:
        for one, other in combinations([key for key in keys if isinstance(key, Call)], 2):
            if one != other and _parts(one) == _parts(other):
                raise query.context.not_incremental(
                    "grouping sets over keys that differ in the order of their operands", node,
                    "write such a key the same way everywhere; Spark takes n + 1 and 1 + n for one",
                )  # fmt: skip
    keys = [map_form(key) for key in keys]
    if later and sets is not None:
        raise query.context.not_incremental("session windows in grouping sets", node)
    keys += [key for key, _ in later]
    fields += [made_key for _, made_key in later]
    rewriter = Rewriter(True, mapped, below, names, query)
    if sets is None:
        return Group(plan, tuple(keys), calls, (*fields, *made)), rewriter
    parts: list[Plan] = []
    for number, chosen in enumerate(sets):
        inner = tuple(Field(query.context.fresh(f.name), f.name, f.type) for f in fields)
        out = tuple(Field(query.context.fresh(f.name), f.name, f.type) for f in made)
        rows = Field(query.context.fresh("rows"), "rows", types.BIGINT)
        group: Plan = Group(
            plan,
            tuple(key for i, key in enumerate(keys) if i in chosen),
            (*calls, AggregateCall("count", (), types.BIGINT)),
            (*(f for i, f in enumerate(inner) if i in chosen), *out, rows),
        )
        if not chosen:  # the total of nothing is no row, as in Spark
            some = Call(">", (rows.column, Literal(0, types.BIGINT)), types.BOOLEAN)
            group = Filter(group, some)
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
    _map_grouping(mapped, keys, sets, tag.column, binder, items)
    return union, rewriter


def _map_grouping(
    mapped: dict[Expression, Expression],
    keys: list[Expression],
    sets: list[set[int]],
    tag: Column,
    binder: ExpressionBinder,
    items: list[tuple[str, Expression]],
) -> None:
    """What grouping() and grouping_id() are in each of the sets."""

    def by_set(values: list[int], kind: pa.DataType) -> Expression:
        parts: list[Expression] = []
        for number, value in enumerate(values):
            same = Call("=", (tag, Literal(number, types.INT)), types.BOOLEAN)
            parts += [same, Literal(value, kind)]
        return Call("case", (*parts, Literal(None, kind)), kind)

    def bits(wanted: tuple[Expression, ...], chosen: set[int]) -> int:
        total = 0
        for key in wanted:
            total = 2 * total + (keys.index(key) not in chosen)
        return total

    for key in keys:
        absent = [bits((key,), chosen) for chosen in sets]
        mapped[Call("grouping", (key,), types.TINYINT)] = by_set(absent, types.TINYINT)
    for _, bound in items:
        for part in walk(bound):
            if isinstance(part, Call) and part.function == "grouping_id":
                wanted = part.arguments or tuple(keys)
                if wanted == tuple(keys):  # Spark knows no other order, and no part of them
                    numbers = [bits(wanted, chosen) for chosen in sets]
                    mapped[part] = by_set(numbers, types.BIGINT)


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

    def some(node: exp.Expr) -> set[int]:
        if isinstance(node, exp.Tuple) and not node.expressions:
            raise query.context.name_error("() in ROLLUP or CUBE names no column", clause)
        return numbers(node)

    if clause.args.get("all") is False:
        raise query.context.not_incremental("GROUP BY DISTINCT", clause)
    if clause.args.get("all"):
        if _behind(clause) is not None:
            raise query.context.not_incremental("GROUP BY ALL with grouping sets", clause)
        if binder.has("all") or "all" in aliases:
            raise query.context.name_error(
                "GROUP BY ALL may mean all columns, or the one named 'all'", clause,
                "GROUP BY `all`, or list the columns",
            )  # fmt: skip
        for _, bound in items:
            collected = {made.id for made, _ in binder.collected.aggregates}  # type: ignore[union-attr]
            aggregated = any(isinstance(n, Column) and n.name in collected for n in walk(bound))
            if not aggregated and bound not in keys:
                keys.append(bound)
        return None, keys

    def options(part: exp.Expr) -> list[set[int]] | None:
        """The sets that ROLLUP, CUBE and GROUPING SETS stand for; None for a plain key."""
        match part:
            case exp.Rollup():
                groups = [some(e) for e in part.expressions]
                return [set().union(*groups[:size]) for size in range(len(groups), -1, -1)]
            case exp.Cube():
                groups = [some(e) for e in part.expressions]
                return [
                    set().union(*chosen)
                    for size in range(len(groups), -1, -1)
                    for chosen in combinations(groups, size)
                ]
            case exp.GroupingSets():
                inner = [options(e) or [numbers(e)] for e in part.expressions]
                return [chosen for some in inner for chosen in some]
        return None

    products: list[list[set[int]]] = []
    plain: set[int] = set()
    behind = _behind(clause)
    if behind is not None:  # it stands for all of the keys, which are no groups by themselves
        for part in clause.expressions:
            if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise query.context.not_incremental(f"{behind.key.upper()} twice", clause)
            number(part)
        if not isinstance(behind, exp.GroupingSets):
            behind = type(behind)(expressions=[part.copy() for part in clause.expressions])
            behind.parent = clause
        known = len(keys)
        sets = options(behind)
        if len(keys) > known:
            raise query.context.name_error("GROUPING SETS name a key that is not listed", clause)
        return _sets_or_all(sets), keys
    for part in clause.expressions:
        made = options(part)
        if made is None:
            plain |= numbers(part)
        else:
            products.append(made)
    if not products:
        return None, keys
    sets = [set(plain)]
    for product in products:
        sets = [base | option for base in sets for option in product]
    return _sets_or_all(sets), keys


def _sets_or_all(sets: list[set[int]] | None) -> list[set[int]] | None:
    """GROUPING SETS (()) alone is a total as without GROUP BY: a row also of nothing."""
    return None if sets == [set()] else sets


def _behind(clause: exp.Expr) -> exp.Expr | None:
    """`GROUP BY a, b WITH ROLLUP`, `WITH CUBE` or `GROUPING SETS (…)`: what stands behind."""
    for name in ("rollup", "cube", "grouping_sets"):
        for part in clause.args.get(name) or ():
            return cast("exp.Expr", part)
    return None


def _key(
    query: QueryBinder,
    node: exp.Expr,
    binder: ExpressionBinder,
    items: list[tuple[str, Expression]],
    aliases: Mapping[str, Expression],
) -> Expression:
    if node.is_int and isinstance(node.unnest(), exp.Literal | exp.Neg):
        position = int(node.to_py())
        if written_in(cast("exp.Expr", node.parent_select)):
            raise query.context.name_error(
                "a place in a SELECT with a *", node, "GROUP BY takes names beside it"
            )
        if not 0 < position <= len(items):
            raise query.context.name_error(f"there is no column {position} in SELECT", node)
        query.context.comparable(items[position - 1][1].type, node, maps=True)
        return items[position - 1][1]
    inner = ExpressionBinder(query.context, binder.scope, binder.subquery, windows=binder.windows)
    known = {f.name.lower() for source in binder.scope.sources for f in source.fields}
    inner.aliases = {name: bound for name, bound in aliases.items() if name not in known}
    bound = inner.bind(node)
    query.context.comparable(bound.type, node, maps=True)
    return bound
