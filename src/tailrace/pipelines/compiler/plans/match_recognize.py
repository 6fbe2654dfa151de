"""MATCH_RECOGNIZE in a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.pipelines.engine.expression import Expression
from tailrace.pipelines.engine.operators.match_recognize import Frame, Skip
from tailrace.pipelines.engine.patterns.program import Program

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.plans.plan import AggregateCall, Field, Plan


@dataclass(frozen=True, slots=True)
class Look:
    """What a condition or a measure looks at, as the column `field` of it (see `patterns.slots`).

    `kind`: navigation (`value` None: of the row's variable), number, constant, matched, or
    aggregate (`call`; `as_they_come`: without an order of its own).
    """

    kind: str
    field: Field
    variables: tuple[int, ...] | None = None
    last: bool = True
    running: bool = True
    offset: int = 0
    shift: int = 0
    value: Expression | None = None
    call: AggregateCall | None = None
    as_they_come: bool = False


@dataclass(frozen=True, slots=True)
class Defined:
    """The condition of a variable in three parts: over the row's own columns, over columns of
    its neighbours, too (by looks), and over what was matched before (by looks)."""

    row: Expression | None = None
    near: Expression | None = None
    before: Expression | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The columns `shown` of the input, then the looks that `measures` name."""

    input: Plan
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool, bool], ...]
    program: Program
    definitions: tuple[Defined, ...]
    looks: tuple[Look, ...]
    measures: tuple[Field, ...]
    rows: str
    skip: Skip
    within: tuple[Expression, int] | None
    shown: tuple[Field, ...]
    frame: Frame | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.shown + self.measures

    def expressions(self) -> Iterator[Expression]:
        """Those over the input."""
        yield from self.partition
        yield from (expression for expression, _, _ in self.order)
        if self.within is not None:
            yield self.within[0]
        for defined in self.definitions:
            if defined.row is not None:
                yield defined.row
        for look in self.looks:
            if look.value is not None:
                yield look.value
            if look.call is not None:
                yield from look.call.arguments
                yield from (expression for expression, _, _ in look.call.order)
                if look.call.condition is not None:
                    yield look.call.condition
