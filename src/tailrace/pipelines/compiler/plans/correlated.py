"""Any correlated subquery as a join: the subquery for every value of what it is correlated by.

`subqueries.pull` takes correlated conditions out of a subquery, which needs no more state than
the join itself. Where they cannot be taken out (behind an aggregate without GROUP BY, in a
UNION, an outer join, a window, a SELECT list), the subquery is joined with its *domain*: the
distinct values that the query around has in the columns the subquery names. What it then gives
carries those values, and is joined with the query around on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.plans.join_conditions import is_equality
from tailrace.pipelines.compiler.plans.plan import (
    AggregateCall,
    AsOf,
    Constant,
    Distinct,
    Expand,
    Field,
    Filter,
    Group,
    Join,
    Match,
    Plan,
    Project,
    Scan,
    SetOperation,
    Top,
    Window,
    free,
    ids,
    inputs_of,
)
from tailrace.pipelines.compiler.plans.renumber import renumber
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.pipelines.values import types

TRUE = Literal(True, types.BOOLEAN)
Values = dict[str, Expression]  # columns of the query around → columns here


def dependent(context: Context, plan: Plan, around: Plan) -> tuple[Plan, list[Expression]] | None:
    """`plan` for every value of its domain in `around`, and the conditions that join the two.

    None when it names nothing of `around`. What it names of queries further out stays free.
    """
    wanted = free(plan)
    chosen = tuple(field for field in around.fields if field.id in wanted)
    if not chosen:
        return None
    made, values = _Domain(context, around, chosen).push(plan)
    return made, [Call("<=>", (values[field.id], field.column), types.BOOLEAN) for field in chosen]


def missing(context: Context, plan: Plan, around: Plan) -> tuple[Plan, list[Expression]] | None:
    """Where EXISTS asks for rows of a relation without a match that depends on `around`, while
    the relation itself does not (division: no course that the student has not taken): the
    values of the domain that match fewer rows than there are, and the conditions that join
    them. It needs no pair of every value with every row. None for other plans.
    """
    while isinstance(plan, Project | Distinct):
        plan = plan.input
    if isinstance(plan, SetOperation) and plan.mode == "except":
        one, other = plan.inputs
        same = [
            Call("<=>", (a.column, b.column), types.BOOLEAN)
            for a, b in zip(one.fields, other.fields, strict=True)
        ]
        plan = Join("anti", Distinct(one), other, conjunction(list(same)))
    wanted = free(plan)
    chosen = tuple(field for field in around.fields if field.id in wanted)
    if not (isinstance(plan, Join) and plan.mode == "anti" and chosen):
        return None
    domain = _Domain(context, around, chosen)
    return None if domain.is_free(plan.left) else domain.missing(plan)


def totals_of_nothing(plan: Plan) -> bool:
    """Whether an aggregate without GROUP BY stands on correlated rows: it has a row even for
    the values without any."""
    if isinstance(plan, Group) and not plan.keys and free(plan):
        return True
    return any(totals_of_nothing(child) for child in inputs_of(plan))


@dataclass(frozen=True, slots=True)
class _Domain:
    context: Context
    around: Plan
    chosen: tuple[Field, ...]

    def fresh(self) -> tuple[Plan, Values]:
        """The domain as a relation of its own."""
        prefix = self.context.fresh("domain")
        twin = renumber(self.around, prefix, keep=free(self.around))
        fields = tuple(Field(f"{prefix}.{f.id}", f.name, f.type) for f in self.chosen)
        values: Values = {f.id: g.column for f, g in zip(self.chosen, fields, strict=True)}
        return Distinct(Project(twin, fields, tuple(f.column for f in fields))), values

    def named(self, values: Values) -> tuple[Field, ...]:
        """The fields of the domain's columns where they are called `values`."""
        return tuple(Field(_id(values[f.id]), f.name, f.type) for f in self.chosen)

    def columns(self, values: Values) -> tuple[Expression, ...]:
        return tuple(values[f.id] for f in self.chosen)

    def alike(self, one: Values, other: Values) -> list[Expression]:
        return [Call("<=>", (one[f.id], other[f.id]), types.BOOLEAN) for f in self.chosen]

    def is_free(self, plan: Plan) -> bool:
        return bool(free(plan) & {f.id for f in self.chosen})

    def push(self, plan: Plan) -> tuple[Plan, Values]:
        """The plan's rows for every value of the domain, and the columns that tell it."""
        if not self.is_free(plan):
            domain, values = self.fresh()
            return Join("inner", domain, plan, None), values
        match plan:
            case Join():
                return self._join(plan)
            case SetOperation():
                return self._set(plan)
            case Scan() | Constant():
                raise AssertionError("a relation names no columns of others")
            case AsOf():
                left, values = self.push(plan.left)
                condition, time = substitute(plan.condition, values), substitute(plan.time, values)
                return replace(plan, left=left, condition=condition, time=time), values
            case Group():
                return self._group(plan)
        if isinstance(plan, Match):
            raise NotIncrementalError(
                "MATCH_RECOGNIZE over rows that depend on the query around it",
                hint="match in WITH or in a view, and join the result",
            )
        below, values = self.push(plan.input)

        def here(expression: Expression) -> Expression:
            return substitute(expression, values)

        match plan:
            case Filter():
                return Filter(below, here(plan.predicate)), values
            case Project():
                fields = (*plan.fields, *self.named(values))
                shown = (*map(here, plan.expressions), *self.columns(values))
                return Project(below, fields, shown), values
            case Distinct():
                return Distinct(self._only(below, plan.fields, values)), values
            case Window():
                calls = tuple(
                    replace(
                        call,
                        arguments=tuple(map(here, call.arguments)),
                        condition=here(call.condition) if call.condition is not None else None,
                    )
                    for call in plan.calls
                )
                partition = (*map(here, plan.partition), *self.columns(values))
                order = tuple((here(e), d, n) for e, d, n in plan.order)
                return Window(below, partition, order, calls, plan.added), values
            case Top():
                partition = (*map(here, plan.partition), *self.columns(values))
                order = tuple((here(e), d, n) for e, d, n in plan.order)
                return replace(plan, input=below, order=order, partition=partition), values
            case Expand():
                return replace(plan, input=below, generator=here(plan.generator)), values

    def _only(self, plan: Plan, fields: tuple[Field, ...], values: Values) -> Plan:
        """Nothing but `fields` and the domain's columns."""
        shown = (*fields, *self.named(values))
        return Project(plan, shown, tuple(f.column for f in shown))

    def _join(self, plan: Join) -> tuple[Plan, Values]:
        condition = plan.condition
        if plan.mode == "right":
            return self._join(Join("left", plan.right, plan.left, condition))
        if plan.mode == "semi" and not self.is_free(plan.left):
            found = self._semi(plan)
            if found is not None:
                return found
        both = plan.mode == "full" or (self.is_free(plan.left) and self.is_free(plan.right))
        if plan.mode == "inner" and not both and self.is_free(plan.right):
            right, values = self.push(plan.right)
            left = plan.left
        elif both or self.is_free(plan.right):
            left, values = self.push(plan.left)
            right, others = self.push(plan.right)
            parts = self.alike(values, others)
            if condition is not None:
                parts.append(substitute(condition, values))
            joined = Join(plan.mode, left, right, conjunction(parts))
            return (joined, values) if plan.mode != "full" else self._either(joined, values, others)
        else:
            left, values = self.push(plan.left)
            right = plan.right
        if condition is not None:
            condition = substitute(condition, values)
        return Join(plan.mode, left, right, condition), values

    def _semi(self, plan: Join) -> tuple[Plan, Values] | None:
        """A semi join whose left side is tied to the right by equalities alone: the domain is
        met on the right, where the conditions on it stand, and each left row meets the
        distinct values once. None for other conditions."""
        left, right = ids(plan.left), ids(plan.right)
        inner: list[Expression] = []
        pairs: list[tuple[Expression, Expression, str]] = []
        for part in conjuncts(plan.condition):
            if not columns_of(part) & left:
                inner.append(part)
                continue
            if not is_equality(part) or not columns_of(part) <= left | right:
                return None
            assert isinstance(part, Call)
            one, other = part.arguments
            if not columns_of(one) <= left:
                one, other = other, one
            if not (columns_of(one) <= left and columns_of(other) <= right):
                return None
            pairs.append((one, other, part.function))
        if not pairs:
            return None
        predicate = conjunction(inner)
        below = plan.right if predicate is None else Filter(plan.right, predicate)
        met, values = self.push(below)
        made = tuple(Field(self.context.fresh("met"), "met", other.type) for _, other, _ in pairs)
        shown = (*(other for _, other, _ in pairs), *self.columns(values))
        distinct = Distinct(Project(met, (*made, *self.named(values)), shown))
        equal = [
            Call(sign, (one, field.column), types.BOOLEAN)
            for (one, _, sign), field in zip(pairs, made, strict=True)
        ]
        return Join("inner", plan.left, distinct, conjunction(list(equal))), values

    def _pairs(self, plan: Join) -> tuple[Plan, Values]:
        """Each row of the left side, which has no two alike, with the values of the domain for
        which it matches, whatever ties the two sides."""
        left = ids(plan.left)
        parts = conjuncts(plan.condition)
        predicate = conjunction([part for part in parts if not columns_of(part) & left])
        below = plan.right if predicate is None else Filter(plan.right, predicate)
        right, values = self.push(below)
        tied = [substitute(part, values) for part in parts if columns_of(part) & left]
        joined = Join("inner", plan.left, right, conjunction(tied))
        return Distinct(self._only(joined, plan.left.fields, values)), values

    def missing(self, plan: Join) -> tuple[Plan, list[Expression]]:
        """The values for which a row of the left side of an anti join has no match."""
        plan = replace(plan, mode="semi", left=Distinct(plan.left))
        met = self._semi(plan) or self._pairs(plan)
        count = AggregateCall("count", (), types.BIGINT)
        matched, rows = (
            Field(self.context.fresh(name), name, types.BIGINT) for name in ("matched", "rows")
        )
        made = tuple(Field(self.context.fresh(f.name), f.name, f.type) for f in self.chosen)
        told: Values = {f.id: g.column for f, g in zip(self.chosen, made, strict=True)}
        counted = Group(met[0], self.columns(met[1]), (count,), (*made, matched))
        domain, values = self.fresh()
        joined = Join("left", domain, counted, conjunction(self.alike(values, told)))
        total = Group(plan.left, (), (count,), (rows,))
        found = Call("coalesce", (matched.column, Literal(0, types.BIGINT)), types.BIGINT)
        fewer = Call("<", (found, rows.column), types.BOOLEAN)
        conditions = [Call("<=>", (values[f.id], f.column), types.BOOLEAN) for f in self.chosen]
        return Filter(Join("inner", joined, total, None), fewer), list(conditions)

    def _either(self, joined: Join, one: Values, other: Values) -> tuple[Plan, Values]:
        """The domain's columns of whichever side of a full join is there."""
        made = {f.id: Field(self.context.fresh(f.name), f.name, f.type) for f in self.chosen}
        shown = tuple(Call("coalesce", (one[f.id], other[f.id]), f.type) for f in self.chosen)
        fields = (*joined.fields, *made.values())
        expressions: tuple[Expression, ...] = (*(f.column for f in joined.fields), *shown)
        return Project(joined, fields, expressions), {k: f.column for k, f in made.items()}

    def _set(self, plan: SetOperation) -> tuple[Plan, Values]:
        inputs = []
        for child in plan.inputs:
            below, values = self.push(child)
            inputs.append(self._only(below, child.fields, values))
        made = tuple(Field(self.context.fresh(f.name), f.name, f.type) for f in self.chosen)
        union = replace(plan, inputs=tuple(inputs), fields=(*plan.fields, *made))
        return union, {f.id: g.column for f, g in zip(self.chosen, made, strict=True)}

    def _group(self, plan: Group) -> tuple[Plan, Values]:
        below, values = self.push(plan.input)
        keys = tuple(substitute(key, values) for key in plan.keys)
        calls = tuple(_substituted(call, values) for call in plan.calls)
        made = tuple(Field(self.context.fresh(f.name), f.name, f.type) for f in self.chosen)
        told: Values = {f.id: g.column for f, g in zip(self.chosen, made, strict=True)}
        shown, results = plan.fields[: len(keys)], plan.fields[len(keys) :]
        if keys:
            fields = (*shown, *made, *results)
            return Group(below, (*keys, *self.columns(values)), calls, fields), told
        # A row for every value: what the aggregates are over nothing, where nothing was found.
        inner = tuple(Field(self.context.fresh(f.name), f.name, f.type) for f in results)
        group = Group(below, self.columns(values), calls, (*made, *inner))
        found = Field(self.context.fresh("found"), "found", types.BOOLEAN)
        marked = Project(group, (*group.fields, found), (*(f.column for f in group.fields), TRUE))
        domain, all_values = self.fresh()
        joined: Plan = Join("left", domain, marked, conjunction(self.alike(all_values, told)))
        empty = self._over_nothing(below, calls)
        missing = Call("is null", (found.column,), types.BOOLEAN)
        chosen = tuple(
            Call("case", (missing, zero.column, one.column), one.type)
            for zero, one in zip(empty.fields, inner, strict=True)
        )
        joined = Join("inner", joined, empty, None)
        fields = (*results, *self.named(all_values))
        return Project(joined, fields, (*chosen, *self.columns(all_values))), all_values

    def _over_nothing(self, below: Plan, calls: tuple[AggregateCall, ...]) -> Group:
        """The one row of the aggregates over no rows."""
        fields = tuple(Field(self.context.fresh("empty"), "empty", call.type) for call in calls)
        return Group(Constant(below.fields, ()), (), calls, fields)


def _substituted(call: AggregateCall, values: Values) -> AggregateCall:
    return replace(
        call,
        arguments=tuple(substitute(argument, values) for argument in call.arguments),
        condition=substitute(call.condition, values) if call.condition is not None else None,
        order=tuple((substitute(e, values), d, n) for e, d, n in call.order),
    )


def _id(column: Expression) -> str:
    assert isinstance(column, Column)
    return column.name
