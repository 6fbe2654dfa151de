"""A join of any kind from the inner one: its rows, and those of a side that are not among them.

Rows of a side that are equal in every column match the same rows of the other. So a row is
without match when no row of the inner join has its values, and that needs no key.
"""

from __future__ import annotations

from tailrace.pipelines.compiler.plans.plan import Field, Join, Plan, Project, SetOperation
from tailrace.pipelines.engine.expression import Call, Expression, Literal, conjunction
from tailrace.pipelines.values import types

TRUE = Literal(True, types.BOOLEAN)


def around_inner(mode: str, left: Plan, right: Plan, inner: Plan) -> Plan:
    """The join of `mode` whose matching pairs are `inner`, which has the columns of both."""
    if mode in ("semi", "anti"):
        return _matched(mode, left, inner, "m")
    parts: list[Plan] = [_shown_as(inner, left, right, True, True)]
    if mode in ("left", "full"):
        parts.append(_shown_as(_matched("anti", left, inner, "l"), left, right, True, False))
    if mode in ("right", "full"):
        parts.append(_shown_as(_matched("anti", right, inner, "r"), left, right, False, True))
    return SetOperation("union all", tuple(parts), (*left.fields, *right.fields))


def _matched(mode: str, side: Plan, inner: Plan, tag: str) -> Plan:
    """The rows of `side` that are (not) among those of the inner join."""
    twins = tuple(Field(f"{f.id}~{tag}", f.name, f.type) for f in side.fields)
    found = Project(inner, twins, tuple(f.column for f in side.fields))
    same = [
        Call("<=>", (f.column, twin.column), types.BOOLEAN)
        for f, twin in zip(side.fields, twins, strict=True)
    ]
    return Join(mode, side, found, conjunction(list(same)) or TRUE)


def _shown_as(plan: Plan, left: Plan, right: Plan, has_left: bool, has_right: bool) -> Plan:
    """`plan` with fresh ids for the columns of both sides, NULL for an absent one."""
    fields: list[Field] = []
    bounds: list[Expression] = []
    for side, present in ((left, has_left), (right, has_right)):
        for f in side.fields:
            fields.append(Field(f"{f.id}^", f.name, f.type))
            bounds.append(f.column if present else Literal(None, f.type))
    return Project(plan, tuple(fields), tuple(bounds))
