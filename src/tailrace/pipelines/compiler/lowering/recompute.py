"""Which part of a plan is computed again whole, under the policy of its view.

`strict`: none, what would have to be is refused. `auto`: what depends on the clock in a way
that no row can be told when to leave, and all that stands above it. `full`: everything above
the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from tailrace.pipelines.compiler.expressions import clock_filters
from tailrace.pipelines.compiler.lowering.lower import Flow, Lowering, Port
from tailrace.pipelines.compiler.plans.plan import (
    AsOf,
    Constant,
    Field,
    Filter,
    Join,
    Plan,
    Scan,
    SetOperation,
    expressions_of,
    inputs_of,
)
from tailrace.pipelines.engine.expression import Call, Column, Expression, columns_of, walk
from tailrace.pipelines.engine.graph import Edge, Graph, Node, Operator, TableInput, ViewPlan
from tailrace.pipelines.engine.operators.aggregates import linear
from tailrace.pipelines.engine.operators.append_only_extremes import FIRST_ONLY
from tailrace.pipelines.engine.operators.counts import UnionAll
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join as JoinOperator
from tailrace.pipelines.engine.operators.recompute import OUT, Recompute
from tailrace.pipelines.engine.operators.window import Window
from tailrace.pipelines.errors import NotIncrementalError


def needs_clock(plan: Plan) -> bool:
    """Whether it depends on the clock in a way that no row can be told when to leave."""
    return any(clock_filters.reads_clock(bound) for bound in _untimed(plan))


def needs_watermark(plan: Plan, *, whole: bool) -> bool:
    """Whether a part that is recomputed looks at a watermark; `whole`: all of it is."""
    if not whole and not needs_clock(plan):
        return False
    given: list[Plan] = []
    return any(
        isinstance(part, Call) and part.function == clock_filters.WATERMARK
        for bound in _expressions(_cut(plan, given, whole=whole))
        for part in walk(bound)
    )


def _untimed(plan: Plan) -> Iterator[Expression]:
    """The expressions but for conditions whose rows can be told when to leave."""
    match plan:
        case Filter():
            yield from clock_filters.split(plan.predicate)[2]
        case Join():
            yield from clock_filters.split(plan.condition)[2]
        case _:
            yield from expressions_of(plan)
    for child in inputs_of(plan):
        yield from _untimed(child)


def _expressions(plan: Plan) -> Iterator[Expression]:
    yield from expressions_of(plan)
    for child in inputs_of(plan):
        yield from _expressions(child)


def _looks_at_clock(plan: Plan) -> bool:
    return any(clock_filters.reads_clock(bound) for bound in _expressions(plan))


def recomputed(lowering: Lowering, plan: Plan, policy: str) -> Plan:
    """The plan with the part that is recomputed behind one operator; the plan as it is when
    there is none."""
    if policy != "full" and not needs_clock(plan):
        return plan
    given: list[Plan] = []
    inner = _cut(plan, given, whole=policy == "full")
    if not given:
        return plan
    reason = "policy full" if policy == "full" else "it depends on the clock"
    return _behind_one(lowering, plan, inner, given, reason, _looks_at_clock(inner))


def _cut(plan: Plan, given: list[Plan], *, whole: bool) -> Plan:
    """The plan with what stays incremental replaced by streams that are given to it."""
    stays = isinstance(plan, Scan) if whole else not needs_clock(plan)
    if stays and not (isinstance(plan, Scan) and plan.table.kind == "history"):
        schema = pa.schema([(f"g{i}", f.type) for i, f in enumerate(plan.fields)])
        name = f"given-{len(given)}"
        given.append(plan)
        table = TableInput(name, name, schema, kind="stream")
        return Scan(table, plan.fields, tuple(schema.names))
    match plan:
        case Scan() | Constant():
            return plan
        case AsOf():
            raise mixed()
        case Join():
            left = _cut(plan.left, given, whole=whole)
            return replace(plan, left=left, right=_cut(plan.right, given, whole=whole))
        case SetOperation():
            cut = tuple(_cut(child, given, whole=whole) for child in plan.inputs)
            return replace(plan, inputs=cut)
        case _:
            return replace(plan, input=_cut(plan.input, given, whole=whole))


def mixed() -> NotIncrementalError:
    return NotIncrementalError(
        "a part that keeps its own time cannot be recomputed",
        detail="FOR SYSTEM_TIME AS OF looks into a history, not at a moment.",
        hint="leave policy= out, or take now() out of SELECT",
    )


def _behind_one(
    lowering: Lowering, plan: Plan, inner: Plan, given: list[Plan], reason: str, clock: bool
) -> Plan:
    inside = Lowering()
    inside.clock = True
    inside.places = lowering.places
    flow = inside.flow(inner, {f.id for f in plan.fields})
    schema = pa.schema([(f"c{i}", f.type) for i, f in enumerate(plan.fields)])
    columns = tuple((f"c{i}", flow.columns[f.id]) for i, f in enumerate(plan.fields))
    last = inside.add(UnionAll(schema), [inside.edge(Port(flow, columns, {}), None)], schema, None)
    view = ViewPlan(OUT, last, (), (), "")
    names = [f"given-{number}" for number in range(len(given))]
    for name, child in zip(names, given, strict=True):
        if name not in inside.tables:  # nothing of it is needed
            kinds = pa.schema([(f"g{i}", f.type) for i, f in enumerate(child.fields)])
            inside.tables[name] = TableInput(name, name, kinds, kind="stream")
    graph = Graph(
        {name: inside.tables[name] for name in names}, tuple(inside.nodes.values()), {OUT: view}
    )
    edges: list[Edge] = []
    for child in given:
        outer = lowering.flow(child, {f.id for f in child.fields})
        shown = tuple((f"g{i}", outer.columns[f.id]) for i, f in enumerate(child.fields))
        edges.append(lowering.edge(Port(outer, shown, {}), ()))
    operator: Operator = Recompute(graph, reason, clock, schema)
    identity = lowering.add(operator, edges, schema, None)
    table = TableInput(identity, identity, schema, kind="stream")
    lowering.made[identity] = Flow(
        identity, {f.id: Column(f"c{i}", f.type) for i, f in enumerate(plan.fields)}
    )
    fields = tuple(Field(f.id, f.name, f.type) for f in plan.fields)
    return Scan(table, fields, tuple(schema.names))


def whole_input(node: Node) -> str:
    """Why a change of one row makes an operator go through all of its input; else empty."""
    operator = node.operator
    match operator:
        case Recompute():
            return f"computed again whole: {operator.reason}"
        case Window() if not operator.partition:
            return "a window without PARTITION BY is computed again whole"
        case Group() if not operator.keys and _whole(operator):
            return "an aggregate of all values without GROUP BY is computed again whole"
        case JoinOperator() if len(node.edges) == 2 and not _ties(node, operator):
            return "a join without an equality compares each change with all rows"
    return ""


def _ties(node: Node, operator: JoinOperator) -> bool:
    """Whether a key of both sides is more than the constant that a condition on one has."""
    return any(
        all(
            edge.projection is None or columns_of(dict(edge.projection.columns)[name])
            for edge, name in zip(node.edges, pair, strict=True)
        )
        for pair in zip(operator.left_keys, operator.right_keys, strict=True)
    )


def part_of_input(node: Node) -> str:
    """The same for one key's part of the input."""
    operator = node.operator
    match operator:
        case Window() if operator.partition:
            return f"the partition of ({', '.join(operator.partition)}) that changed"
        case Group() if operator.keys and _whole(operator):
            return f"the group of ({', '.join(operator.keys)}) that changed"
    return ""


def _whole(operator: Group) -> bool:
    return any(
        linear(aggregate) is None and aggregate.function not in FIRST_ONLY
        for aggregate in operator.aggregates
    )
