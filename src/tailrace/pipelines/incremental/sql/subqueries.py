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

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    rewrite,
)
from tailrace.pipelines.incremental.sql.plan import (
    AggregateCall,
    Distinct,
    Field,
    Filter,
    Group,
    Join,
    Plan,
    Project,
    Top,
    free,
    ids,
)
from tailrace.pipelines.incremental.sql.scope import Context

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.bind import Common, QueryBinder
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

TRUE = Literal(True, types.BOOLEAN)


def refuse(context: Context) -> Callable[[exp.Expr, ExpressionBinder], Expression]:
    """For clauses in which a subquery has no place."""

    def bind(node: exp.Expr, binder: ExpressionBinder) -> Expression:
        raise context.not_incremental("a subquery is not kept incrementally here", node)

    return bind


@dataclass(slots=True)
class Work:
    """The plan of a SELECT while it is built, and the joins its subqueries ask for.

    While `deferred`, joins wait until the groups are known: a subquery in SELECT is joined
    above the GROUP BY. (One inside an aggregate would have to stand below: it is refused.)"""

    query: QueryBinder
    common: Common
    plan: Plan
    deferred: bool = False
    waiting: list[tuple[str, Plan, Expression | None]] = field(default_factory=list)

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

    def join(self, mode: str, plan: Plan, condition: Expression | None) -> None:
        if self.deferred:
            self.waiting.append((mode, plan, condition))
        else:
            self.plan = Join(mode, self.plan, plan, condition)

    def rewrite_conditions(self, change: Callable[[Expression], Expression]) -> None:
        def careful(condition: Expression) -> Expression:
            return conjunction([change(part) for part in conjuncts(condition)]) or TRUE

        self.waiting = [
            (mode, plan, careful(condition) if condition is not None else None)
            for mode, plan, condition in self.waiting
        ]

    def attach(self) -> None:
        for mode, plan, condition in self.waiting:
            self.plan = Join(mode, self.plan, plan, condition)
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
    return pull(work.query.context, plan, node)


def _equalities(work: Work, node: exp.In, plan: Plan, binder: ExpressionBinder) -> list[Expression]:
    left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    if len(left) > len(plan.fields):
        raise work.query.context.type_error("the subquery has too few columns", node)
    return [
        binder.compare("=", binder.bind(value), column.column, node)
        for value, column in zip(left, plan.fields, strict=False)
    ]


def pull(context: Context, plan: Plan, node: exp.Expr) -> tuple[Plan, list[Expression]]:
    """Take the conjuncts that name columns of the query around out of `plan`.

    The plan that remains has, added behind its own fields, every column the conjuncts need.
    """
    if not free(plan):
        return plan, []
    match plan:
        case Filter():
            below, parts = pull(context, plan.input, node)
            own = ids(below)
            kept: list[Expression] = []
            for part in conjuncts(plan.predicate):
                (kept if columns_of(part) <= own else parts).append(part)
            predicate = conjunction(kept)
            return (below if predicate is None else Filter(below, predicate)), parts
        case Project():
            below, parts = pull(context, plan.input, node)
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
            below, parts = pull(context, plan.input, node)
            return _pull_group(context, plan, below, parts, node)
        case Distinct():
            below, parts = pull(context, plan.input, node)
            return Distinct(below), parts
        case Join(mode="inner"):
            left, from_left = pull(context, plan.left, node)
            right, from_right = pull(context, plan.right, node)
            own = ids(left) | ids(right)
            kept, parts = [], [*from_left, *from_right]
            for part in conjuncts(plan.condition):
                (kept if columns_of(part) <= own else parts).append(part)
            return Join("inner", left, right, conjunction(kept)), parts
        case Join() if not free(plan.right) and plan.mode in ("left", "semi", "anti"):
            left, parts = pull(context, plan.left, node)
            if not columns_of(plan.condition or TRUE) <= ids(left) | ids(plan.right):
                raise context.not_incremental("a correlated condition in an outer join", node)
            return replace(plan, left=left), parts
        case Top():
            below, parts = pull(context, plan.input, node)
            return _pull_top(context, plan, below, parts, node)
    raise context.not_incremental("this correlated subquery cannot be taken apart", node)


def _needed(parts: list[Expression], plan: Plan) -> set[str]:
    own = ids(plan)
    return {name for part in parts for name in columns_of(part) if name in own}


def _pull_group(
    context: Context, plan: Group, below: Plan, parts: list[Expression], node: exp.Expr
) -> tuple[Plan, list[Expression]]:
    """Group by the inner side of each correlated equality as well."""
    own = ids(below)
    keys, fields = list(plan.keys), list(plan.fields[: len(plan.keys)])
    pulled: list[Expression] = []
    for part in parts:
        inner, outer, operator = _correlated_equality(context, part, own, node)
        made = Field(context.fresh("correlated"), "correlated", inner.type)
        keys.append(inner)
        fields.append(made)
        pulled.append(Call(operator, (made.column, outer), types.BOOLEAN))
    grouped = Group(below, tuple(keys), plan.calls, (*fields, *plan.fields[len(plan.keys) :]))
    return grouped, pulled


def _pull_top(
    context: Context, plan: Top, below: Plan, parts: list[Expression], node: exp.Expr
) -> tuple[Plan, list[Expression]]:
    """The first rows of each value of the correlated columns."""
    own = ids(below)
    partition = tuple(_correlated_equality(context, part, own, node)[0] for part in parts)
    return replace(plan, input=below, partition=(*plan.partition, *partition)), parts


def _correlated_equality(
    context: Context, part: Expression, own: set[str], node: exp.Expr
) -> tuple[Expression, Expression, str]:
    if isinstance(part, Call) and part.function in ("=", "<=>"):
        left, right = part.arguments
        if columns_of(left) <= own and not columns_of(right) & own:
            return left, right, part.function
        if columns_of(right) <= own and not columns_of(left) & own:
            return right, left, part.function
    raise context.not_incremental(
        "an aggregate in a subquery that is correlated by more than equality", node,
        "join the tables and aggregate",
    )  # fmt: skip


def _scalar(work: Work, node: exp.Subquery, binder: ExpressionBinder) -> Expression:
    """A scalar subquery: a left join with one row for each value of the correlation."""
    context = work.query.context
    original = work.query.query(node.this, work.common, binder.scope)
    if len(original.fields) != 1:
        raise context.type_error("a scalar subquery has one column", node)
    default = _value_when_empty(original)
    plan, parts = pull(context, original, node)
    value = original.fields[0]
    if not _single_row(original, parts):
        keys: list[Expression] = []
        fields: list[Field] = []
        changed: list[Expression] = []
        for part in parts:
            inner, outer, operator = _correlated_equality(context, part, ids(plan), node)
            made = Field(context.fresh("correlated"), "correlated", inner.type)
            keys.append(inner)
            fields.append(made)
            changed.append(Call(operator, (made.column, outer), types.BOOLEAN))
        call = AggregateCall(
            "single_value", (value.column,), value.type, order=((value.column, False, True),)
        )
        shown = Field(context.fresh("value"), value.name, value.type)
        plan, parts, value = Group(plan, tuple(keys), (call,), (*fields, shown)), changed, shown
    if not parts:
        work.join("left", plan, TRUE)
        return value.column
    marker = Field(context.fresh("found"), "found", types.BOOLEAN)
    marked = Project(plan, (*plan.fields, marker), (*(f.column for f in plan.fields), TRUE))
    work.join("left", marked, conjunction(parts))
    if default is None:
        return value.column
    missing = Call("is null", (marker.column,), types.BOOLEAN)
    return Call("case", (missing, default, value.column), value.type)


def _single_row(plan: Plan, parts: list[Expression]) -> bool:
    """Whether the subquery gives one row for each value of its correlation."""
    match plan:
        case Project() | Filter():
            return _single_row(plan.input, parts)
        case Group():
            return not plan.keys
    return False


def _value_when_empty(plan: Plan) -> Expression | None:
    """What an aggregate without rows is, when not NULL: count() is 0."""
    if not isinstance(plan, Project) or not isinstance(plan.input, Group) or plan.input.keys:
        return None
    group = plan.input
    empty: dict[str, Expression] = {
        made.id: Literal(0 if call.function in ("count", "count_if") else None, made.type)
        for made, call in zip(group.fields, group.calls, strict=True)
    }
    if all(value.value is None for value in empty.values()):  # type: ignore[union-attr]
        simple = not any(isinstance(n, Call) for n in plan.expressions)
        if simple:
            return None
    return rewrite(
        plan.expressions[0], lambda n: empty.get(n.name) if isinstance(n, Column) else None
    )


def _mark(
    work: Work,
    query: exp.Expr,
    tested: exp.In | None,
    binder: ExpressionBinder,
    node: exp.Expr,
) -> Expression:
    """Whether a row of the subquery matches: a marker that is NULL when none does."""
    context = work.query.context
    plan, parts = _bind_correlated(work, query, binder)
    if tested is not None:
        parts = [*_equalities(work, tested, plan, binder), *parts]
    if not parts:
        return _exists_at_all(work, plan)
    keys: list[Expression] = []
    fields: list[Field] = []
    changed: list[Expression] = []
    for part in parts:
        inner, outer, operator = _correlated_equality(context, part, ids(plan), node)
        made = Field(context.fresh("mark"), "mark", inner.type)
        keys.append(inner)
        fields.append(made)
        changed.append(Call(operator, (made.column, outer), types.BOOLEAN))
    marker = Field(context.fresh("found"), "found", types.BOOLEAN)
    distinct = Distinct(Project(plan, tuple(fields), tuple(keys)))
    marked = Project(distinct, (*fields, marker), (*(f.column for f in fields), TRUE))
    work.join("left", marked, conjunction(changed))
    return Call("is not null", (marker.column,), types.BOOLEAN)


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
        raise context.not_incremental("this IN with several columns", node, "use EXISTS")
    matched = _mark(work, node.args["query"], node, binder, node)
    plan, parts = _bind_correlated(work, node.args["query"], binder)
    keys: list[Expression] = []
    fields: list[Field] = []
    changed: list[Expression] = []
    for part in parts:
        inner, outer, operator = _correlated_equality(context, part, ids(plan), node)
        made = Field(context.fresh("mark"), "mark", inner.type)
        keys.append(inner)
        fields.append(made)
        changed.append(Call(operator, (made.column, outer), types.BOOLEAN))
    value = plan.fields[0].column
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
    keyless_group = _has_keyless_group(right)
    plan, parts = pull(query.context, right, node)
    if keyless_group:
        raise query.context.not_incremental(
            "LATERAL with an aggregate that has no GROUP BY", node, "use a scalar subquery"
        )
    every = [*parts, *conjuncts(condition)]
    return Join(mode, left, plan, conjunction(every) or TRUE)


def _has_keyless_group(plan: Plan) -> bool:
    match plan:
        case Project() | Filter():
            return _has_keyless_group(plan.input)
        case Group():
            return not plan.keys
    return False
