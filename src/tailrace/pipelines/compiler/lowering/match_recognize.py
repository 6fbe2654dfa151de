"""MATCH_RECOGNIZE → its operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from tailrace.pipelines.compiler.plans.match_recognize import Look, Match
from tailrace.pipelines.engine.expression import Column, Expression, columns_of, substitute
from tailrace.pipelines.engine.operators.aggregates import Aggregate
from tailrace.pipelines.engine.operators.match_recognize import Pattern, sides_of
from tailrace.pipelines.engine.operators.statistics import PAIRED
from tailrace.pipelines.engine.patterns.matcher import Definition, Within
from tailrace.pipelines.engine.patterns.slots import (
    Aggregated,
    Constant,
    Matched,
    MatchNumber,
    Navigation,
    Slot,
)

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.lowering.lower import Flow, Lowering, Port


def lower_match(lowering: Lowering, plan: Match, needed: set[str]) -> Flow:
    from tailrace.pipelines.compiler.lowering.lower import Flow

    made = lowered(lowering, plan, needed)
    operator, port = made.operator, made.port
    partition = operator.partition
    spread = partition if set(partition) <= set(operator.shown) else None
    edges = [lowering.edge(port, partition)]
    identity = lowering.add(operator, edges, operator.schema, spread)
    return Flow(identity, made.columns)


@dataclass(frozen=True, slots=True)
class Lowered:
    """The operator of a clause, what it reads, and the columns of the plan (by id) over it."""

    operator: Pattern
    port: Port
    columns: dict[str, Expression]


def lowered(
    lowering: Lowering,
    plan: Match,
    needed: set[str],
    more: Sequence[Expression] = (),
    unlike: Mapping[int, tuple[int, ...]] = MappingProxyType({}),
) -> Lowered:
    """`more`: what else is read of a row. `unlike`: by variable, those whose rows it may not
    take."""
    from tailrace.pipelines.compiler.lowering.lower import new_names

    shown_fields = [f for f in plan.shown if f.id in needed]
    measured = [f for f in plan.measures if f.id in needed]
    used = {f.id for f in measured}
    for defined in plan.definitions:
        for part in (defined.near, defined.before):
            used |= columns_of(part) if part is not None else set()
    looks = [look for look in plan.looks if look.field.id in used]
    # What conditions ask of a row stands last: the automaton reads it in one piece.
    tests = [defined.row for defined in plan.definitions if defined.row is not None]
    within = [plan.within[0]] if plan.within is not None else []
    every: list[Expression] = [
        *plan.partition, *(e for e, _, _ in plan.order), *within, *more,
        *(f.column for f in shown_fields),
        *(value for look in looks for value in _asked(look)), *tests,
    ]  # fmt: skip
    below = set().union(*map(columns_of, every))
    port = lowering.port(lowering.flow(plan.input, below), every)
    carried = tuple(name for name, _ in port.columns)
    kinds = tuple(bound.type for _, bound in port.columns)
    place = {name: at for at, name in enumerate(carried)}
    # Looks have names of their own; what an argument reads are columns of the port.
    slot_names = dict(
        zip((look.field.id for look in looks), new_names("m", len(looks), carried), strict=True)
    )
    slots: dict[str, Slot] = {slot_names[look.field.id]: _slot(look, port) for look in looks}
    renamed: dict[str, Expression] = {
        look.field.id: Column(slot_names[look.field.id], look.field.type) for look in looks
    }

    def over_slots(part: Expression | None) -> Expression | None:
        return substitute(part, renamed) if part is not None else None

    definitions = tuple(
        Definition(
            place[port.name(defined.row)] if defined.row is not None else None,
            over_slots(defined.near),
            over_slots(defined.before),
            unlike.get(number, ()),
        )
        for number, defined in enumerate(plan.definitions)
    )
    shown = tuple(dict.fromkeys(port.name(f.column) for f in shown_fields))
    measures = tuple(slot_names[f.id] for f in measured)
    added = [pa.field(name, f.type) for name, f in zip(measures, measured, strict=True)]
    schema = pa.schema([*port.schema(shown), *added])
    partition = tuple(dict.fromkeys(port.name(e) for e in plan.partition))
    operator = Pattern(
        partition,
        tuple((port.name(e), d, n) for e, d, n in plan.order),
        plan.program,
        definitions,
        tuple(slots.items()),
        measures,
        plan.rows,
        plan.skip,
        Within(place[port.name(within[0])], plan.within[1]) if plan.within is not None else None,
        sides_of(tuple(slots.values()), plan.program),
        carried,
        kinds,
        shown,
        schema,
        plan.frame,
    )
    columns: dict[str, Expression] = {
        f.id: Column(port.name(f.column), f.type) for f in shown_fields
    }
    columns |= {f.id: Column(slot_names[f.id], f.type) for f in measured}
    return Lowered(operator, port, columns)


def _asked(look: Look) -> list[Expression]:
    """What a look reads of a row, as columns of the input."""
    if look.value is not None:
        return [look.value]
    return [Column(n, k) for part in _parts(look) for n, k in _read(part)]


def _parts(look: Look) -> list[Expression]:
    if look.call is None:
        return []
    call = look.call
    condition = [call.condition] if call.condition is not None else []
    return [*call.arguments, *_order_of(look), *condition]


def _order_of(look: Look) -> list[Expression]:
    return [] if look.call is None or look.as_they_come else [e for e, _, _ in look.call.order]


def _read(part: Expression) -> list[tuple[str, pa.DataType]]:
    from tailrace.pipelines.engine.expression import walk
    from tailrace.pipelines.engine.patterns.slots import CLASSIFIER

    wanted = columns_of(part) - {CLASSIFIER}
    return [(n.name, n.type) for n in walk(part) if isinstance(n, Column) and n.name in wanted]


def _slot(look: Look, port: Port) -> Slot:
    kind = look.field.type
    match look.kind:
        case "number":
            return MatchNumber(kind)
        case "matched":
            return Matched(kind)
        case "constant":
            assert look.value is not None
            return Constant(port.name(look.value), kind)
        case "navigation":
            column = port.name(look.value) if look.value is not None else ""
            return Navigation(
                column, kind, look.variables, look.last, look.running, look.offset, look.shift
            )
    assert look.call is not None
    call = look.call
    own = call.arguments[: 2 if call.function in PAIRED else 1]
    named: dict[str, Expression] = {
        name: Column(port.name(Column(name, of)), of)
        for part in _parts(look)
        for name, of in _read(part)
    }
    order = [] if look.as_they_come else list(call.order)
    arguments = own if call.function != "count" else call.arguments
    aggregate = Aggregate(
        name="",
        function=call.function,
        arguments=tuple(f"a{at}" for at in range(len(arguments))),
        argument_types=tuple(a.type for a in arguments),
        type=call.type,
        distinct=call.distinct,
        parameters=call.parameters,
    )
    return Aggregated(
        aggregate,
        look.variables,
        look.running,
        tuple(substitute(one, named) for one in (*arguments, *(e for e, _, _ in order))),
        substitute(call.condition, named) if call.condition is not None else None,
        tuple((descending, nulls) for _, descending, nulls in order),
    )
