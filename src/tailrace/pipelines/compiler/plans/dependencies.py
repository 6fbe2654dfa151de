"""Which columns of a plan's rows follow from which: a table's key tells all its columns.

Used to judge a declared key, never to choose one: a view's key is part of what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.pipelines.compiler.plans.infer import keys_of
from tailrace.pipelines.compiler.plans.plan import (
    AsOf,
    Distinct,
    Field,
    Filter,
    Group,
    Join,
    Plan,
    Project,
    Scan,
    Top,
    Window,
)
from tailrace.pipelines.engine.expression import Column, Expression

Dependency = tuple[frozenset[str], frozenset[str]]
"""Rows that are equal in the first columns are equal in the second."""


def is_unique(plan: Plan, columns: Iterable[str]) -> bool:
    """Whether no two rows of the plan are equal in these columns (by id)."""
    known = set(columns)
    found = dependencies(plan)
    grown = True
    while grown:
        grown = False
        for given, followed in found:
            if given <= known and not followed <= known:
                known |= followed
                grown = True
    return any(set(key) <= known for key in keys_of(plan, numbered=True))


def dependencies(plan: Plan) -> list[Dependency]:
    """What follows from what in the rows of a plan; an outer join's rows without a partner are
    NULL in all columns of a side, and so in its key."""
    match plan:
        case Scan():
            if plan.table.kind not in ("table", "history") or not plan.table.key:
                return []
            names = dict(zip(plan.columns, plan.fields, strict=True))
            if not all(name in names for name in plan.table.key):
                return []
            key = frozenset(names[name].id for name in plan.table.key)
            return [(key, frozenset(field.id for field in plan.fields))]
        case Filter() | Window() | Top() | Distinct():
            return dependencies(plan.input)
        case Join():
            left = dependencies(plan.left)
            return left if plan.mode in ("semi", "anti") else [*left, *dependencies(plan.right)]
        case AsOf():
            return dependencies(plan.left)
        case Project():
            return _shown(dependencies(plan.input), plan.fields, plan.expressions)
        case Group():
            keys = plan.fields[: len(plan.keys)]
            whole = (frozenset(f.id for f in keys), frozenset(f.id for f in plan.fields))
            return [whole, *_shown(dependencies(plan.input), keys, plan.keys)]
    return []


def _shown(
    found: Iterable[Dependency], fields: Sequence[Field], expressions: Sequence[Expression]
) -> list[Dependency]:
    """The dependencies between columns that are shown as they are, under their new ids."""
    shown: dict[str, set[str]] = {}
    for field, expression in zip(fields, expressions, strict=True):
        if isinstance(expression, Column):
            shown.setdefault(expression.name, set()).add(field.id)
    return [
        (
            frozenset(min(shown[column]) for column in given),
            frozenset(id for column in followed for id in shown.get(column, ())),
        )
        for given, followed in found
        if all(column in shown for column in given)
    ]
