"""Subqueries taken apart into joins.

A correlated predicate is pulled out of the subquery and becomes the condition of a join with
the query around it: EXISTS and IN are semi joins, NOT EXISTS an anti join, NOT IN follows
SQL's rules for NULL, a scalar subquery is a left join with at most one row per outer row.
Under an OR the first four become a *mark*: a left join with the distinct keys of the subquery
whose marker column tells whether there was a match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context, refuse
from tailrace.pipelines.compiler.plans.correlated import dependent, missing, totals_of_nothing
from tailrace.pipelines.compiler.plans.plan import (
    AggregateCall,
    Distinct,
    Field,
    Filter,
    Group,
    Join,
    Plan,
    Project,
    Top,
    expressions_of,
    free,
    ids,
)
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    rewrite,
    substitute,
)
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.query import Common, QueryBinder
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

TRUE = Literal(True, types.BOOLEAN)
__all__ = ["Work", "bind_lateral", "bind_top_level", "pull", "refuse"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A join that a subquery asks for, once the groups are known."""

    mode: str
    plan: Plan
    condition: Expression | None
    marker: Field | None = None  # whether a row of `plan` meets the condition, at `node`
    node: exp.Expr | None = None


@dataclass(slots=True)
class Work:
    """The plan of a SELECT while it is built, and the joins its subqueries ask for.

    While `deferred`, joins wait until the groups are known: a subquery in SELECT is joined
    above the GROUP BY. One inside an aggregate is joined below it (`bind_below`)."""

    query: QueryBinder
    common: Common
    plan: Plan
    deferred: bool = False
    waiting: list[Waiting] = field(default_factory=list)

    def bind(self, node: exp.Expr, binder: ExpressionBinder) -> Expression:
        """A subquery inside an expression: a column of a join."""
        match node:
            case exp.Subquery():
                return _scalar(self, node, binder)
            case exp.Exists():
                return _mark(self, node.this, None, binder, node)
            case exp.In():
                return _in_value(self, node, binder)
            case exp.Not():
                return Call("not", (_in_value(self, node.this, binder),), types.BOOLEAN)
        raise self.query.context.not_incremental("this subquery is not known", node)

    def bind_below(self, node: exp.Expr, binder: ExpressionBinder) -> Expression:
        """A subquery about the rows of FROM, whatever is grouped above them."""
        before, self.deferred = self.deferred, False
        try:
            return self.bind(node, binder)
        finally:
            self.deferred = before

    def join(self, mode: str, plan: Plan, condition: Expression | None) -> None:
        if self.deferred:
            self.waiting.append(Waiting(mode, plan, condition))
        else:
            self.plan = Join(mode, self.plan, plan, condition)

    def mark(self, plan: Plan, parts: list[Expression], node: exp.Expr) -> Expression:
        """Whether `plan` has a row for which the conditions hold: a column of a join."""
        marker = Field(self.query.context.fresh("found"), "found", types.BOOLEAN)
        if self.deferred:
            self.waiting.append(Waiting("left", plan, conjunction(parts), marker, node))
        else:
            self._join_marked(plan, parts, marker, node)
        return Call("is not null", (marker.column,), types.BOOLEAN)

    def _join_marked(
        self, plan: Plan, parts: list[Expression], marker: Field, node: exp.Expr
    ) -> None:
        plan, keys, fields, changed = _by_correlation(
            self.query.context, plan, parts, node, self.plan
        )
        distinct = Distinct(Project(plan, tuple(fields), tuple(keys)))
        marked = Project(distinct, (*fields, marker), (*(f.column for f in fields), TRUE))
        self.plan = Join("left", self.plan, marked, conjunction(changed))

    def rewrite_conditions(self, change: Callable[[Expression], Expression]) -> None:
        def careful(condition: Expression) -> Expression:
            return conjunction([change(part) for part in conjuncts(condition)]) or TRUE

        self.waiting = [
            one if one.condition is None else replace(one, condition=careful(one.condition))
            for one in self.waiting
        ]

    def attach(self) -> None:
        for one in self.waiting:
            if one.marker is not None and one.node is not None:
                self._join_marked(one.plan, conjuncts(one.condition), one.marker, one.node)
            else:
                self.plan = Join(one.mode, self.plan, one.plan, one.condition)
        self.waiting.clear()


def bind_top_level(work: Work, node: exp.Expr, binder: ExpressionBinder) -> bool:
    """A conjunct of WHERE that is EXISTS or IN, negated or not: a semi or anti join."""
    negated = False
    inner = node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner, exp.Exists):
        plan, parts = _bind_correlated(work, inner.this, binder)
        condition = conjunction(parts) or TRUE
        work.plan = Join("anti" if negated else "semi", work.plan, plan, condition)
        return True
    if isinstance(inner, exp.In) and inner.args.get("query") is not None and not negated:
        plan, parts = _bind_correlated(work, inner.args["query"], binder)
        parts = [*_equalities(work, inner, plan, binder), *parts]
        work.plan = Join("semi", work.plan, plan, conjunction(parts))
        return True
    return False


def _bind_correlated(
    work: Work, node: exp.Expr, binder: ExpressionBinder
) -> tuple[Plan, list[Expression]]:
    """The subquery's plan without its correlated predicates, and those."""
    inner = node.this if isinstance(node, exp.Subquery) else node
    plan = work.query.query(inner, work.common, binder.scope)
    around = node.parent
    if isinstance(around, exp.Exists):
        found = missing(work.query.context, plan, work.plan)
        if found is not None:
            return found
    if isinstance(around, exp.In):
        wanted = len(around.this.expressions) if isinstance(around.this, exp.Tuple) else 1
        if len(plan.fields) != wanted:
            raise work.query.context.type_error(
                f"IN compares {wanted} and the subquery has {len(plan.fields)} columns", node
            )
    return decorrelate(work.query.context, plan, node, work.plan)


def decorrelate(
    context: Context, plan: Plan, node: exp.Expr, around: Plan
) -> tuple[Plan, list[Expression]]:
    """A plan that names nothing of `around` (further out it may), and the conditions that
    join the two: taken out of the plan where they can be, else those of its domain."""
    if not free(plan):
        return plan, []
    if not totals_of_nothing(plan):
        try:
            return pull(context, plan, node, around)
        except NotIncrementalError:
            made = dependent(context, plan, around)
            if made is None:
                raise
            return made
    return dependent(context, plan, around) or (plan, [])


def _equalities(work: Work, node: exp.In, plan: Plan, binder: ExpressionBinder) -> list[Expression]:
    left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    return [
        binder.compare("=", binder.bind(value), column.column, node)
        for value, column in zip(left, plan.fields, strict=False)
    ]


def pull(
    context: Context, plan: Plan, node: exp.Expr, around: Plan | None = None
) -> tuple[Plan, list[Expression]]:
    """Take the conjuncts that name columns of the query around out of `plan`.

    The plan that remains has, added behind its own fields, every column the conjuncts need.
    `around`: the plan of the query around, for what is correlated by more than equality.
    """
    if not free(plan):
        return plan, []
    match plan:
        case Filter():
            below, parts = pull(context, plan.input, node, around)
            own = ids(below)
            kept: list[Expression] = []
            for part in conjuncts(plan.predicate):
                (kept if columns_of(part) <= own else parts).append(part)
            predicate = conjunction(kept)
            return (below if predicate is None else Filter(below, predicate)), parts
        case Project():
            below, parts = pull(context, plan.input, node, around)
            own = ids(below)
            for bound in plan.expressions:
                if not columns_of(bound) <= own:
                    raise context.not_incremental(
                        "a column of the outer query in the subquery's SELECT", node
                    )
            needed = _needed(parts, below) - {f.id for f in plan.fields}
            extra = tuple(f for f in below.fields if f.id in needed)
            made = Project(
                below,
                (*plan.fields, *extra),
                (*plan.expressions, *(f.column for f in extra)),
            )
            return made, parts
        case Group():
            below, parts = pull(context, plan.input, node, around)
            if not all(columns_of(bound) <= ids(below) for bound in expressions_of(plan)):
                raise context.not_incremental("a column of the outer query in an aggregate", node)
            return _pull_group(context, plan, below, parts, node, around)
        case Distinct():
            below, parts = pull(context, plan.input, node, around)
            # Distinct for each row of the query around, not for each row that it is tied by.
            below, keys, added, parts = _by_correlation(context, below, parts, node, around)
            shown = plan.input.fields
            values = (*(f.column for f in shown), *keys)
            return Distinct(Project(below, (*shown, *added), values)), parts
        case Join(mode="inner"):
            left, from_left = pull(context, plan.left, node, around)
            right, from_right = pull(context, plan.right, node, around)
            own = ids(left) | ids(right)
            kept, parts = [], [*from_left, *from_right]
            for part in conjuncts(plan.condition):
                (kept if columns_of(part) <= own else parts).append(part)
            return Join("inner", left, right, conjunction(kept)), parts
        case Join() if not free(plan.right) and plan.mode in ("left", "semi", "anti"):
            left, parts = pull(context, plan.left, node, around)
            if not columns_of(plan.condition or TRUE) <= ids(left) | ids(plan.right):
                raise context.not_incremental("a correlated condition in an outer join", node)
            return replace(plan, left=left), parts
        case Top():
            below, parts = pull(context, plan.input, node, around)
            return _pull_top(context, plan, below, parts, node)
    raise context.not_incremental("this correlated subquery cannot be taken apart", node)


def _needed(parts: list[Expression], plan: Plan) -> set[str]:
    own = ids(plan)
    return {name for part in parts for name in columns_of(part) if name in own}


def _pull_group(
    context: Context,
    plan: Group,
    below: Plan,
    parts: list[Expression],
    node: exp.Expr,
    around: Plan | None,
) -> tuple[Plan, list[Expression]]:
    """Group by what each row of the query around is correlated by as well."""
    below, inner, made, pulled = _by_correlation(context, below, parts, node, around)
    keys = (*plan.keys, *inner)
    fields = (*plan.fields[: len(plan.keys)], *made, *plan.fields[len(plan.keys) :])
    return Group(below, keys, plan.calls, fields), pulled


def _by_correlation(
    context: Context, plan: Plan, parts: list[Expression], node: exp.Expr, around: Plan | None
) -> tuple[Plan, list[Expression], list[Field], list[Expression]]:
    """The plan, what tells apart the rows that belong to different rows of the query around,
    fresh fields for that, and the condition that joins them with it.

    Correlated by equality alone it is the inner side of each equality. Else the plan is
    joined with the distinct values that the query around has, and these tell.
    """
    own = ids(plan)
    equalities = [_equality_sides(part, own) for part in parts]
    keys: list[Expression] = []
    fields: list[Field] = []
    changed: list[Expression] = []
    if all(side is not None for side in equalities):
        for inner, outer, operator in filter(None, equalities):
            made = Field(context.fresh("correlated"), "correlated", inner.type)
            keys.append(inner)
            fields.append(made)
            changed.append(Call(operator, (made.column, outer), types.BOOLEAN))
        return plan, keys, fields, changed
    wanted = {name for part in parts for name in columns_of(part) if name not in own}
    known = {f.id: f for f in around.fields} if around is not None else {}
    if around is None or not wanted <= known.keys() or free(around):
        raise context.not_incremental(
            "a subquery correlated by more than equality here", node,
            "join the tables and aggregate",
        )  # fmt: skip
    from tailrace.pipelines.compiler.plans.renumber import renumber

    prefix = context.fresh("around")
    twin = renumber(around, prefix)
    chosen = [known[name] for name in sorted(wanted)]
    twins = [Field(f"{prefix}.{f.id}", f.name, f.type) for f in chosen]
    values = Distinct(Project(twin, tuple(twins), tuple(f.column for f in twins)))
    renamed: dict[str, Expression] = {f.id: t.column for f, t in zip(chosen, twins, strict=True)}
    condition = conjunction([substitute(part, renamed) for part in parts])
    joined = Join("inner", values, plan, condition)
    for f, t in zip(chosen, twins, strict=True):
        made = Field(context.fresh("correlated"), "correlated", f.type)
        keys.append(t.column)
        fields.append(made)
        changed.append(Call("<=>", (made.column, f.column), types.BOOLEAN))
    return joined, keys, fields, changed


def _pull_top(
    context: Context, plan: Top, below: Plan, parts: list[Expression], node: exp.Expr
) -> tuple[Plan, list[Expression]]:
    """The first rows of each value of the correlated columns."""
    own = ids(below)
    partition = tuple(_correlated_equality(context, part, own, node)[0] for part in parts)
    return replace(plan, input=below, partition=(*plan.partition, *partition)), parts


def _equality_sides(part: Expression, own: set[str]) -> tuple[Expression, Expression, str] | None:
    """The inner and the outer side of an equality between them, and its sign."""
    if isinstance(part, Call) and part.function in ("=", "<=>"):
        left, right = part.arguments
        if columns_of(left) <= own and not columns_of(right) & own:
            return left, right, part.function
        if columns_of(right) <= own and not columns_of(left) & own:
            return right, left, part.function
    return None


def _correlated_equality(
    context: Context, part: Expression, own: set[str], node: exp.Expr
) -> tuple[Expression, Expression, str]:
    sides = _equality_sides(part, own)
    if sides is None:
        raise context.not_incremental(
            "LIMIT in a subquery that is correlated by more than equality", node,
            "join the tables and take the first rows with row_number()",
        )  # fmt: skip
    return sides


def _scalar(work: Work, node: exp.Subquery, binder: ExpressionBinder) -> Expression:
    """A scalar subquery: a left join with one row for each value of the correlation."""
    context = work.query.context
    original = work.query.query(node.this, work.common, binder.scope)
    if len(original.fields) != 1:
        raise context.type_error("a scalar subquery has one column", node)
    default = _value_when_empty(original)
    plan, parts = _pull_total(context, original, node, work.plan)
    value = original.fields[0]
    counted: Field | None = None
    if not _single_row(original, parts):
        plan, keys, fields, changed = _by_correlation(context, plan, parts, node, work.plan)
        order = ((value.column, False, True),)
        shown = Field(context.fresh("value"), value.name, value.type)
        if changed:  # two rows matter only where a row of the query around meets them
            counted = Field(context.fresh("rows"), "rows", types.BIGINT)
            call = AggregateCall("any_value", (value.column,), value.type, order=order)
            calls = (call, AggregateCall("count", (), types.BIGINT))
            plan = Group(plan, tuple(keys), calls, (*fields, shown, counted))
        else:
            call = AggregateCall("single_value", (value.column,), value.type, order=order)
            plan = Group(plan, (), (call,), (shown,))
        parts, value = changed, shown
    if not parts:
        work.join("left", plan, TRUE)
        return value.column
    marker = Field(context.fresh("found"), "found", types.BOOLEAN)
    marked = Project(plan, (*plan.fields, marker), (*(f.column for f in plan.fields), TRUE))
    work.join("left", marked, conjunction(parts))
    if counted is not None:
        return Call("one_row", (counted.column, value.column), value.type)
    if default is None:
        return value.column
    missing = Call("is null", (marker.column,), types.BOOLEAN)
    return Call("case", (missing, default, value.column), value.type)


def _pull_total(
    context: Context, plan: Plan, node: exp.Expr, around: Plan
) -> tuple[Plan, list[Expression]]:
    """As `decorrelate`; a bare SELECT of aggregates needs no domain, for what it is over
    nothing is known (`_value_when_empty`)."""
    if free(plan) and _bare_total(plan):
        try:
            return pull(context, plan, node, around)
        except NotIncrementalError:
            pass
    return decorrelate(context, plan, node, around)


def _bare_total(plan: Plan) -> bool:
    """Whether it is a SELECT of aggregates that are 0 or NULL over nothing, on rows that no
    other such aggregate gives."""
    if not isinstance(plan, Project) or not isinstance(plan.input, Group) or plan.input.keys:
        return False
    known = all(call.function in _KNOWN_OVER_NOTHING for call in plan.input.calls)
    return known and not totals_of_nothing(plan.input.input)


_ZERO_OVER_NOTHING = ("count", "count_if")
_KNOWN_OVER_NOTHING = (*_ZERO_OVER_NOTHING, "sum", "avg", "min", "max", "any_value", "bool_and",
                       "bool_or", "single_value", "stddev_samp", "var_samp")  # fmt: skip


def _single_row(plan: Plan, parts: list[Expression]) -> bool:
    """Whether the subquery gives one row for each value of its correlation."""
    match plan:
        case Project() | Filter():
            return _single_row(plan.input, parts)
        case Group():
            return not plan.keys
    return False


def _value_when_empty(plan: Plan, number: int = 0) -> Expression | None:
    """What column `number` of an aggregate without rows is, when not NULL: count() is 0."""
    if not isinstance(plan, Project) or not isinstance(plan.input, Group) or plan.input.keys:
        return None
    group = plan.input
    empty: dict[str, Expression] = {
        made.id: Literal(0 if call.function in _ZERO_OVER_NOTHING else None, made.type)
        for made, call in zip(group.fields, group.calls, strict=True)
    }
    if all(value.value is None for value in empty.values()):  # type: ignore[union-attr]
        simple = not any(isinstance(n, Call) for n in plan.expressions)
        if simple:
            return None
    return rewrite(
        plan.expressions[number], lambda n: empty.get(n.name) if isinstance(n, Column) else None
    )


def _mark(
    work: Work,
    query: exp.Expr,
    tested: exp.In | None,
    binder: ExpressionBinder,
    node: exp.Expr,
) -> Expression:
    """Whether a row of the subquery matches: a marker that is NULL when none does."""
    plan, parts = _bind_correlated(work, query, binder)
    if tested is not None:
        parts = [*_equalities(work, tested, plan, binder), *parts]
    return _marked(work, plan, parts, node)


def _marked(work: Work, plan: Plan, parts: list[Expression], node: exp.Expr) -> Expression:
    """Whether `plan` has a row for which the conditions hold."""
    own = [part for part in parts if columns_of(part) <= ids(plan)]
    if own:  # a constant IN (SELECT …)
        plan, parts = Filter(plan, conjunction(own) or TRUE), [p for p in parts if p not in own]
    if not parts:
        return _exists_at_all(work, plan)
    return work.mark(plan, parts, node)


def _exists_at_all(work: Work, plan: Plan) -> Expression:
    context = work.query.context
    counted = Field(context.fresh("rows"), "rows", types.BIGINT)
    work.join(
        "left", Group(plan, (), (AggregateCall("count", (), types.BIGINT),), (counted,)), TRUE
    )
    return Call(">", (counted.column, Literal(0, types.BIGINT)), types.BOOLEAN)


def _in_value(work: Work, node: exp.In, binder: ExpressionBinder) -> Expression:
    """x IN (SELECT y …) as a value of three: TRUE when it matches; else NULL when the
    subquery has rows and x is NULL or one of its y is; else FALSE."""
    context = work.query.context
    if isinstance(node.this, exp.Tuple):
        return _tuple_in(work, node, binder)
    matched = _mark(work, node.args["query"], node, binder, node)
    plan, parts = _bind_correlated(work, node.args["query"], binder)
    value = plan.fields[0].column
    plan, keys, fields, changed = _by_correlation(context, plan, parts, node, work.plan)
    rows = Field(context.fresh("rows"), "rows", types.BIGINT)
    known = Field(context.fresh("known"), "known", types.BIGINT)
    calls = (
        AggregateCall("count", (), types.BIGINT),
        AggregateCall("count", (value,), types.BIGINT),
    )
    work.join(
        "left",
        Group(plan, tuple(keys), calls, (*fields, rows, known)),
        conjunction(changed) or TRUE,
    )
    zero = Literal(0, types.BIGINT)
    tested = binder.bind(node.this)
    total: Expression = Call("coalesce", (rows.column, zero), types.BIGINT)
    empty = Call("=", (total, zero), types.BOOLEAN)
    unknown = Call(
        "or",
        (
            Call("is null", (tested,), types.BOOLEAN),
            Call("<", (Call("coalesce", (known.column, zero), types.BIGINT), total), types.BOOLEAN),
        ),
        types.BOOLEAN,
    )
    false, null = Literal(False, types.BOOLEAN), Literal(None, types.BOOLEAN)
    return Call("case", (matched, TRUE, empty, false, unknown, null, false), types.BOOLEAN)


def _tuple_in(work: Work, node: exp.In, binder: ExpressionBinder) -> Expression:
    """(a, b) IN (SELECT c, d …): TRUE when a row is equal in all columns; else NULL when one
    is different in none; else FALSE."""
    matched = _mark(work, node.args["query"], node, binder, node)
    plan, parts = _bind_correlated(work, node.args["query"], binder)
    perhaps: list[Expression] = []
    for equal in _equalities(work, node, plan, binder):
        unknown = Call("is null", (equal,), types.BOOLEAN)
        perhaps.append(Call("or", (equal, unknown), types.BOOLEAN))
    possible = _marked(work, plan, [*perhaps, *parts], node)
    false, null = Literal(False, types.BOOLEAN), Literal(None, types.BOOLEAN)
    return Call("case", (matched, TRUE, possible, null, false), types.BOOLEAN)


def bind_lateral(
    query: QueryBinder,
    node: exp.Join,
    left: Plan,
    right: Plan,
    condition: Expression | None,
    mode: str,
) -> Plan:
    """LATERAL (SELECT …): a join on what the subquery is correlated by."""
    if mode not in ("inner", "left"):
        raise query.context.not_incremental(f"LATERAL in a {mode} join", node)
    if condition not in (None, TRUE) or not _bare_total(right):
        plan, parts = decorrelate(query.context, right, node, left)
        return Join(mode, left, plan, conjunction([*parts, *conjuncts(condition)]) or TRUE)
    # An aggregate without GROUP BY has a row for every row of the left side.
    plan, parts = _pull_total(query.context, right, node, left)
    marker = Field(query.context.fresh("found"), "found", types.BOOLEAN)
    marked = Project(plan, (*plan.fields, marker), (*(f.column for f in plan.fields), TRUE))
    joined = Join("left", left, marked, conjunction(parts) or TRUE)
    missing = Call("is null", (marker.column,), types.BOOLEAN)
    values: list[Expression] = []
    for number, shown in enumerate(right.fields):
        default = _value_when_empty(right, number)
        value: Expression = shown.column
        if default is not None:
            value = Call("case", (missing, default, value), shown.type)
        values.append(value)
    return Project(
        joined, (*left.fields, *right.fields), (*(f.column for f in left.fields), *values)
    )
