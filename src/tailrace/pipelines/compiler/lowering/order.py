"""Windows, first rows and filters against the clock → operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tailrace.pipelines.compiler.expressions.clock_filters import Timed
from tailrace.pipelines.compiler.lowering import expiry_inference
from tailrace.pipelines.compiler.plans.plan import Expand, Field, Top, Window
from tailrace.pipelines.engine.expression import Column, Expression, columns_of
from tailrace.pipelines.engine.operators.clock import Clock
from tailrace.pipelines.engine.operators.expand import Expand as ExpandOperator
from tailrace.pipelines.engine.operators.top import Top as TopOperator
from tailrace.pipelines.engine.operators.window import Window as WindowOperator
from tailrace.pipelines.engine.operators.window import WindowFunction

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.lowering.lower import Flow, Lowering, Port


def _input(
    lowering: Lowering,
    plan: Window | Top | Expand,
    fields: Sequence[Field],
    wanted: list[Expression],
) -> Port:
    """The input that provides the carried fields and the wanted expressions."""
    every = [*wanted, *(f.column for f in fields)]
    used = set().union(*(columns_of(e) for e in every))
    return lowering.port(lowering.flow(plan.input, used), every)


def _names(port: Port, fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(port.name(f.column) for f in fields))


def _columns(port: Port, fields: Sequence[Field]) -> dict[str, Expression]:
    return {f.id: Column(port.name(f.column), f.type) for f in fields}


def lower_window(lowering: Lowering, plan: Window, needed: set[str]) -> Flow:
    from tailrace.pipelines.compiler.lowering.lower import Flow, new_names

    fields = [f for f in plan.input.fields if f.id in needed]
    chosen = [(f, call) for f, call in zip(plan.added, plan.calls, strict=True) if f.id in needed]
    if not chosen:
        return lowering.flow(plan.input, needed)
    wanted: list[Expression] = [*plan.partition, *(e for e, _, _ in plan.order)]
    for _, call in chosen:
        wanted += call.arguments
        if call.condition is not None:
            wanted.append(call.condition)
    port = _input(lowering, plan, fields, wanted)
    partition = tuple(dict.fromkeys(port.name(e) for e in plan.partition))
    functions = tuple(
        WindowFunction(
            function=call.function,
            arguments=tuple(port.name(a) for a in call.arguments),
            argument_types=tuple(a.type for a in call.arguments),
            type=call.type,
            frame=call.frame,
            parameters=call.parameters,
            condition=port.name(call.condition) if call.condition is not None else None,
        )
        for _, call in chosen
    )
    carried = tuple(name for name, _ in port.columns)
    kinds = tuple(bound.type for _, bound in port.columns)
    shown = _names(port, fields)
    names = new_names("w", len(chosen), shown)
    added = [pa.field(name, call.type) for name, (_, call) in zip(names, chosen, strict=True)]
    schema = pa.schema([*port.schema(shown), *added])
    operator = WindowOperator(
        partition,
        tuple((port.name(e), d, n) for e, d, n in plan.order),
        functions,
        carried,
        shown,
        kinds,
        schema,
    )
    spread = partition if set(partition) <= set(shown) else None
    if {call.function for _, call in chosen} <= {"session_start", "session_end"}:
        bound = dict(port.columns)
        ends = {
            name: bound[function.arguments[0]]
            for name, function in zip(names, functions, strict=True)
            if function.function == "session_end"
        }
        flow = port.flow
        expiry = expiry_inference.first(
            ends,
            lambda name: expiry_inference.reach(
                lowering.nodes, flow.source, ends[name], flow.where
            ),
        )
        operator = replace(operator, expiry=expiry)
    identity = lowering.add(operator, [lowering.edge(port, partition)], schema, spread)
    columns = _columns(port, fields)
    columns |= {f.id: Column(names[i], f.type) for i, (f, _) in enumerate(chosen)}
    return Flow(identity, columns)


def lower_top(lowering: Lowering, plan: Top, needed: set[str]) -> Flow:
    from tailrace.pipelines.compiler.lowering.lower import Flow

    fields = [f for f in plan.input.fields if f.id in needed]
    port = _input(lowering, plan, fields, [*plan.partition, *(e for e, _, _ in plan.order)])
    partition = tuple(dict.fromkeys(port.name(e) for e in plan.partition))
    shown = _names(port, fields)
    schema = pa.schema(port.schema(shown))
    order = tuple((port.name(e), d, n) for e, d, n in plan.order)
    operator = TopOperator(partition, order, plan.limit, plan.offset, shown, schema)
    spread = partition if set(partition) <= set(shown) else None
    identity = lowering.add(operator, [lowering.edge(port, partition)], schema, spread)
    return Flow(identity, _columns(port, fields))


def lower_clock(lowering: Lowering, flow: Flow, timed: Timed, fields: Sequence[Field]) -> Flow:
    """The rows of a flow while a condition on the clock holds, with these columns."""
    from tailrace.pipelines.compiler.lowering.lower import Flow

    port = lowering.port(flow, [*timed.values, *(f.column for f in fields)])
    shown = _names(port, fields)
    schema = pa.schema(port.schema(shown))
    values = tuple(port.name(value) for value in timed.values)
    operator = Clock(timed.condition, values, shown, schema, timed.streams)
    identity = lowering.add(operator, [lowering.edge(port, None)], schema, None)
    return Flow(identity, _columns(port, fields))


def lower_expand(lowering: Lowering, plan: Expand, needed: set[str]) -> Flow:
    from tailrace.pipelines.compiler.lowering.lower import Flow, new_names

    fields = [f for f in plan.input.fields if f.id in needed]
    port = _input(lowering, plan, fields, [plan.generator])
    shown = _names(port, fields)
    names = new_names("x", len(plan.added), shown)
    added = [pa.field(name, f.type) for name, f in zip(names, plan.added, strict=True)]
    schema = pa.schema([*port.schema(shown), *added])
    operator = ExpandOperator(
        port.name(plan.generator), shown, plan.structs, plan.position, plan.outer, schema
    )
    identity = lowering.add(operator, [lowering.edge(port, None)], schema, None)
    columns = _columns(port, fields)
    columns |= {f.id: Column(name, f.type) for name, f in zip(names, plan.added, strict=True)}
    return Flow(identity, columns)
