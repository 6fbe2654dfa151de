"""The relational plan between SQL and operators.

Every column has an `id` that is unique in the whole plan; expressions name columns by id.
A plan with columns of an enclosing query in it is *correlated*: `free` tells which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from tailrace.pipelines.compiler.plans.match_recognize import Match as Match
from tailrace.pipelines.engine.expression import Column, Expression, columns_of
from tailrace.pipelines.engine.graph import TableInput


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a plan: its id, and the name the query sees."""

    id: str
    name: str
    type: pa.DataType

    @property
    def column(self) -> Column:
        return Column(self.id, self.type)


@dataclass(frozen=True, slots=True)
class Scan:
    """A table; `columns` are the table's names of `fields`."""

    table: TableInput
    fields: tuple[Field, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """Rows written in the query (VALUES, SELECT without FROM)."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    input: Plan
    predicate: Expression

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Project:
    input: Plan
    fields: tuple[Field, ...]
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """`mode`: inner, left, right, full, semi, anti. `condition` None: every pair.

    `asked`: the query gave it a condition, which stands in a filter of one of its sides now."""

    mode: str
    left: Plan
    right: Plan
    condition: Expression | None
    asked: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        if self.mode in ("semi", "anti"):
            return self.left.fields
        return self.left.fields + self.right.fields


@dataclass(frozen=True, slots=True)
class AsOf:
    """The version of `right` that was valid at `time` of each left row."""

    left: Plan
    right: Scan
    condition: Expression
    time: Expression
    outer: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields + self.right.fields


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate; arguments, condition and order are expressions over the input."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType
    distinct: bool = False
    condition: Expression | None = None
    order: tuple[tuple[Expression, bool, bool], ...] = ()
    parameters: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """GROUP BY: `fields` are the keys, then the calls."""

    input: Plan
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Plan

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class SetOperation:
    """`mode`: union all, intersect, intersect all, except, except all."""

    mode: str
    inputs: tuple[Plan, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over a window; `frame` is (kind, start, end) with None for unbounded and
    offsets from the current row otherwise: rows (kind rows) or units of the order (distance)."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType
    frame: tuple[str, int | float | None, int | float | None]
    parameters: tuple[object, ...] = ()
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The input's columns, then one per call."""

    input: Plan
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    calls: tuple[WindowCall, ...]
    added: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields + self.added


@dataclass(frozen=True, slots=True)
class Top:
    """ORDER BY … LIMIT; `partition` for the first rows of each partition."""

    input: Plan
    order: tuple[tuple[Expression, bool, bool], ...]
    limit: int
    offset: int = 0
    partition: tuple[Expression, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Expand:
    """One row for each element of an array: the input's columns, then `added` (see
    `operators.expand`)."""

    input: Plan
    generator: Expression
    added: tuple[Field, ...]
    structs: bool
    position: bool
    outer: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields + self.added


Plan: TypeAlias = (
    Scan | Constant | Filter | Project | Join | AsOf | Group | Distinct | SetOperation | Window
    | Top | Expand | Match
)  # fmt: skip


def inputs_of(plan: Plan) -> tuple[Plan, ...]:
    match plan:
        case Scan() | Constant():
            return ()
        case Join() | AsOf():
            return (plan.left, plan.right)
        case SetOperation():
            return plan.inputs
        case _:
            return (plan.input,)


def expressions_of(plan: Plan) -> Iterator[Expression]:
    """The expressions of this node alone."""
    match plan:
        case Filter():
            yield plan.predicate
        case Project():
            yield from plan.expressions
        case Join():
            if plan.condition is not None:
                yield plan.condition
        case AsOf():
            yield from (plan.condition, plan.time)
        case Group():
            yield from plan.keys
            for call in plan.calls:
                yield from call.arguments
                yield from (expression for expression, _, _ in call.order)
                if call.condition is not None:
                    yield call.condition
        case Window():
            yield from plan.partition
            yield from (expression for expression, _, _ in plan.order)
            for window in plan.calls:
                yield from window.arguments
                if window.condition is not None:
                    yield window.condition
        case Top():
            yield from plan.partition
            yield from (expression for expression, _, _ in plan.order)
        case Expand():
            yield plan.generator
        case Match():
            yield from plan.expressions()


def ids(plan: Plan) -> set[str]:
    return {field.id for field in plan.fields}


def free(plan: Plan) -> set[str]:
    """Ids that the plan uses and does not produce: columns of an enclosing query."""
    used: set[str] = set()
    made: set[str] = set()
    below: set[str] = set()
    for child in inputs_of(plan):
        below |= free(child)
        made |= ids(child)
    for expression in expressions_of(plan):
        used |= columns_of(expression)
    return below | (used - made)
