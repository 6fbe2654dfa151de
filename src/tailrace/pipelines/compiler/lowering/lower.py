"""Plans → operators. Filters and projections become part of the edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tailrace.pipelines.compiler.expressions.clock_filters import Timed, reads_clock, split
from tailrace.pipelines.compiler.lowering import expiry_inference, joins, match_recognize, order
from tailrace.pipelines.compiler.lowering import sums as lower_sums
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
)
from tailrace.pipelines.engine.evaluate import in_arrow
from tailrace.pipelines.engine.expression import (
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from tailrace.pipelines.engine.graph import Edge, Node, Operator, Projection, TableInput
from tailrace.pipelines.engine.identity import identify
from tailrace.pipelines.engine.operators.aggregates import Aggregate
from tailrace.pipelines.engine.operators.append_only_extremes import FIRST_ONLY
from tailrace.pipelines.engine.operators.counts import Constants, Counts, UnionAll
from tailrace.pipelines.engine.operators.expiry import Expiry
from tailrace.pipelines.engine.operators.group import Group as GroupOperator
from tailrace.pipelines.engine.operators.join import Join as JoinOperator
from tailrace.pipelines.engine.operators.keyed import Facts, Keyed, KeylessTable
from tailrace.pipelines.engine.operators.result import BagResult, Result
from tailrace.pipelines.engine.operators.sketches.approximate import SKETCHED
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.pipelines.values import types
from tailrace.pipelines.values.keys import form_of


@dataclass(frozen=True, slots=True)
class Flow:
    """The rows of a plan: those of node `source` that pass `where`, with the plan's columns
    (by id) as expressions over the node's columns."""

    source: str
    columns: dict[str, Expression]
    where: Expression | None = None

    def bind(self, bound: Expression) -> Expression:
        return substitute(bound, self.columns)


@dataclass(frozen=True, slots=True)
class Port:
    """An input of an operator being made: the projection, and the name of each expression."""

    flow: Flow
    columns: tuple[tuple[str, Expression], ...]
    names: dict[Expression, str]

    def name(self, bound: Expression) -> str:
        return self.names[bound]

    def schema(self, wanted: Iterable[str]) -> list[pa.Field]:
        kinds = {name: bound.type for name, bound in self.columns}
        return [pa.field(name, kinds[name]) for name in wanted]


def new_names(prefix: str, count: int, used: Iterable[str]) -> list[str]:
    """`count` names that begin with `prefix` and are not used."""
    taken = set(used)
    numbered = (f"{prefix}{number}" for number in range(count + len(taken)))
    return [name for name in numbered if name not in taken][:count]


def state_forms(operator: Operator, inputs: Sequence[dict[str, pa.DataType]]) -> tuple[int, int]:
    """What else names a node: the forms of its state and of the keys in it. State of another
    form is then that of another node, which nobody reads, and the view is filled."""
    match operator:
        case JoinOperator():
            keys = (operator.left_keys, operator.right_keys)
            kinds = [of[key] for of, names in zip(inputs, keys, strict=True) for key in names]
        case Result():
            kinds = [inputs[0][key] for key in operator.key]
        case _:  # they look up by any of their columns
            kinds = [kind for one in inputs for kind in one.values()]
    return getattr(operator, "form", 1), max(map(form_of, kinds), default=1)


class Lowering:
    """Collects the nodes of a graph; equal sub-plans of all views become one node."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.tables: dict[str, TableInput] = {}
        self.made: dict[str, Flow] = {}  # of parts that are recomputed
        self.clock = False  # may expressions read the time? (in such a part)
        self.places: dict[str, str] = {}  # where the relation of a column stands in the SQL
        self._spread: dict[str, tuple[str, ...] | None] = {}

    # Nodes --------------------------------------------------------------------------------

    def port(self, flow: Flow, wanted: Sequence[Expression]) -> Port:
        """The input that provides `wanted` (expressions over the plan's ids)."""
        names: dict[Expression, str] = {}
        columns: dict[Expression, str] = {}
        used: set[str] = set()
        for bound in wanted:
            over = flow.bind(bound)
            if over not in columns:
                base = over.name if isinstance(over, Column) else f"e{len(columns)}"
                name, number = base, 2
                while name in used:
                    name, number = f"{base}_{number}", number + 1
                used.add(name)
                columns[over] = name
            names[bound] = columns[over]
        return Port(flow, tuple((name, over) for over, name in columns.items()), names)

    def edge(self, port: Port, route: Sequence[str] | None) -> Edge:
        """The edge into a port; no route when the rows are where they must be already."""
        projection = Projection(port.columns, port.flow.where)
        exact = dict(port.columns)
        if route is not None:
            # What Spark and we would hash differently stays out: equal rows meet all the same.
            route = [name for name in route if not pa.types.is_nested(exact[name].type)]
            over = [exact[name] for name in route]
            spread = self._spread.get(port.flow.source)
            if (
                spread  # () is shard 0, and must stay so: what wakes does it there alone
                and spread == tuple(e.name for e in over if isinstance(e, Column))
                and len(spread) == len(over)
            ):
                route = None
        source_schema = self.nodes[port.flow.source].schema
        known = set(source_schema.names)
        for bound in [*exact.values(), *conjuncts(port.flow.where)]:
            if not columns_of(bound) <= known:
                raise NotIncrementalError(
                    "a subquery stands where it cannot be taken apart",
                    hint="inside an aggregate or ON clause: join its table instead",
                )
        same = projection.where is None and [
            (field.name, Column(field.name, field.type)) for field in source_schema
        ] == list(port.columns)
        return Edge(
            port.flow.source,
            None if same else projection,
            tuple(route) if route is not None else None,
        )

    def add(
        self,
        operator: Operator,
        edges: Sequence[Edge],
        schema: pa.Schema,
        spread: tuple[str, ...] | None,
    ) -> str:
        """Add a node, or find the equal one. `spread`: the output columns it is sharded by."""
        level = 0
        for edge in edges:
            if edge.projection is not None:
                self._check(edge.projection)
            if edge.source in self.nodes:
                step = 0 if edge.route is None else 1
                level = max(level, self.nodes[edge.source].level + step)
        forms = state_forms(operator, [self._types(edge) for edge in edges])
        digest = identify(operator.kind, operator, tuple(edges), schema, forms)
        identity = f"{operator.kind}-{digest}"
        self.nodes.setdefault(identity, Node(identity, operator, tuple(edges), schema, level))
        self._spread.setdefault(identity, spread)
        return identity

    def _types(self, edge: Edge) -> dict[str, pa.DataType]:
        """What comes over an edge; of a table's own rows nothing."""
        if edge.projection is not None:
            return {name: bound.type for name, bound in edge.projection.columns}
        known = self.nodes.get(edge.source)
        return {field.name: field.type for field in known.schema} if known is not None else {}

    def _check(self, projection: Projection) -> None:
        for bound in [*(e for _, e in projection.columns), projection.where]:
            if bound is not None and not in_arrow(bound, clock=self.clock):
                raise NotIncrementalError(
                    f"{bound.sql} can only be computed by Spark",
                    hint="this version computes it nowhere between operators",
                )

    # Plans --------------------------------------------------------------------------------

    def flow(self, plan: Plan, needed: set[str]) -> Flow:
        """The rows of a plan with (at least) the needed columns."""
        match plan:
            case Scan():
                return self.made.get(plan.table.topic) or self._scan(plan)
            case Constant():
                return self._constant(plan)
            case Filter():
                return self._filter(plan, needed)
            case Project():
                wanted = {
                    f.id: e
                    for f, e in zip(plan.fields, plan.expressions, strict=True)
                    if f.id in needed
                }
                used = set().union(*(columns_of(e) for e in wanted.values()))
                below = self.flow(plan.input, used)
                return replace(below, columns={k: below.bind(e) for k, e in wanted.items()})
            case Join():
                return joins.lower_join(self, plan, needed)
            case AsOf():
                return joins.lower_as_of(self, plan, needed)
            case Group():
                return self._group(plan, needed)
            case Distinct():
                return self._counts("distinct", (plan.input,), plan.fields)
            case SetOperation(mode="union all"):
                return self._union(plan, needed)
            case SetOperation():
                return self._counts(plan.mode, plan.inputs, plan.fields)
            case Window():
                return order.lower_window(self, plan, needed)
            case Top():
                return order.lower_top(self, plan, needed)
            case Expand():
                return order.lower_expand(self, plan, needed)
            case Match():
                return match_recognize.lower_match(self, plan, needed)

    def _scan(self, plan: Scan) -> Flow:
        table = plan.table
        self.tables[table.topic] = table
        operator: Operator
        match table.kind:
            case "bag":
                operator = KeylessTable(table.schema, table.topic)
            case "stream":
                operator = Facts(table.schema, table.topic, table.upcasts)
            case _:
                operator = Keyed(table.schema, table.topic)
        identity = self.add(operator, [Edge(f"table:{table.topic}")], table.schema, None)
        return Flow(
            identity,
            {f.id: Column(name, f.type) for f, name in zip(plan.fields, plan.columns, strict=True)},
        )

    def _filter(self, plan: Filter, needed: set[str]) -> Flow:
        """Conditions become part of the edge; those on the clock are operators."""
        below = self.flow(plan.input, needed | columns_of(plan.predicate))
        if self.clock or not reads_clock(plan.predicate):
            plain, timed = [plan.predicate], list[Timed]()
        else:
            before, timed, others = split(plan.predicate)
            plain = before + others
        where = conjunction([*conjuncts(below.where), *map(below.bind, plain)])
        flow = replace(below, where=where)
        for at, one in enumerate(timed):
            later = (value for other in timed[at + 1 :] for value in other.values)
            carried = needed.union(*map(columns_of, later))
            fields = [field for field in plan.fields if field.id in carried]
            flow = order.lower_clock(self, flow, one, fields)
        return flow

    def _constant(self, plan: Constant) -> Flow:
        schema = pa.schema([(f"c{i}", f.type) for i, f in enumerate(plan.fields)])
        identity = self.add(Constants(plan.rows, schema), [], schema, None)
        return Flow(identity, {f.id: Column(f"c{i}", f.type) for i, f in enumerate(plan.fields)})

    def _group(self, plan: Group, needed: set[str]) -> Flow:
        keys = plan.keys
        key_fields, call_fields = plan.fields[: len(keys)], plan.fields[len(keys) :]
        chosen = [
            (f, call) for f, call in zip(call_fields, plan.calls, strict=True) if f.id in needed
        ]
        sums = lower_sums.lower_sums(self, plan, [call for _, call in chosen])
        if sums is not None:
            return self._group_of_sums(sums, key_fields, chosen)
        wanted: list[Expression] = list(keys)
        for _, call in chosen:
            wanted += [*call.arguments, *(e for e, _, _ in call.order)]
            if call.condition is not None:
                wanted.append(call.condition)
        used = set().union(*(columns_of(e) for e in wanted))
        port = self.port(self.flow(plan.input, used), wanted)
        key_names = tuple(dict.fromkeys(port.name(key) for key in keys))
        names = new_names("a", len(chosen), key_names)
        aggregates = tuple(
            Aggregate(
                name=names[i],
                function=call.function,
                arguments=tuple(port.name(a) for a in call.arguments),
                argument_types=tuple(a.type for a in call.arguments),
                type=call.type,
                distinct=call.distinct,
                condition=port.name(call.condition) if call.condition is not None else None,
                order=tuple((port.name(e), d, n) for e, d, n in call.order),
                parameters=call.parameters,
                grows=call.function in (*SKETCHED, *FIRST_ONLY)
                and not (call.distinct and call.function in SKETCHED)
                and self._grows(port.flow.source),
            )
            for i, (_, call) in enumerate(chosen)
        )
        schema = pa.schema(
            [*port.schema(key_names), *(pa.field(a.name, a.type) for a in aggregates)]
        )
        expiry = self._expiry(port, key_names)
        operator = GroupOperator(key_names, aggregates, schema, expiry)
        identity = self.add(operator, [self.edge(port, key_names)], schema, key_names)
        columns: dict[str, Expression] = {
            f.id: Column(port.name(key), f.type) for f, key in zip(key_fields, keys, strict=True)
        }
        columns |= {f.id: Column(names[i], f.type) for i, (f, _) in enumerate(chosen)}
        return Flow(identity, columns)

    def _group_of_sums(
        self,
        sums: lower_sums.Sums,
        key_fields: Sequence[Field],
        chosen: Sequence[tuple[Field, AggregateCall]],
    ) -> Flow:
        """A GROUP BY of what joins have added up."""
        every = [sums.rows, *(column for columns in sums.amounts for column in columns)]
        port = self.port(sums.flow, [*sums.keys, *every])
        key_names = tuple(dict.fromkeys(map(port.name, sums.keys)))
        names = new_names("a", len(chosen), key_names)
        aggregates = tuple(
            Aggregate(
                name=name,
                function=call.function,
                arguments=tuple(map(port.name, columns)),
                argument_types=tuple(a.type for a in call.arguments),
                type=call.type,
            )
            for name, (_, call), columns in zip(names, chosen, sums.amounts, strict=True)
        )
        schema = pa.schema(
            [*port.schema(key_names), *(pa.field(a.name, a.type) for a in aggregates)]
        )
        operator = GroupOperator(key_names, aggregates, schema, rows=port.name(sums.rows))
        identity = self.add(operator, [self.edge(port, key_names)], schema, key_names)
        columns: dict[str, Expression] = {
            f.id: Column(port.name(key), f.type)
            for f, key in zip(key_fields, sums.keys, strict=True)
        }
        columns |= {f.id: Column(names[i], f.type) for i, (f, _) in enumerate(chosen)}
        return Flow(identity, columns)

    def _expiry(self, port: Port, names: Iterable[str]) -> Expiry | None:
        """When rows of an input are over, by the first of these columns that tells."""
        flow, bound = port.flow, dict(port.columns)
        return expiry_inference.first(
            names,
            lambda name: expiry_inference.reach(self.nodes, flow.source, bound[name], flow.where),
        )

    def _grows(self, source: str) -> bool:
        """Whether rows of a node only come and never leave again."""
        node = self.nodes[source]
        match node.operator.kind:
            case "stream" | "constants":
                return True
            case "union" | "expand":
                return all(self._grows(edge.source) for edge in node.edges)
            case "join":
                inner = getattr(node.operator, "mode", "") == "inner"
                return inner and all(self._grows(edge.source) for edge in node.edges)
        return False

    def _counts(self, mode: str, inputs: Sequence[Plan], fields: Sequence[object]) -> Flow:
        plan_fields = inputs[0].fields
        schema = pa.schema([(f"c{i}", f.type) for i, f in enumerate(plan_fields)])
        edges = []
        for child in inputs:
            flow = self.flow(child, {f.id for f in child.fields})
            columns = tuple((f"c{i}", flow.columns[f.id]) for i, f in enumerate(child.fields))
            edges.append(self.edge(Port(flow, columns, {}), schema.names))
        identity = self.add(Counts(mode, schema), edges, schema, tuple(schema.names))
        return Flow(
            identity,
            {f.id: Column(f"c{i}", f.type) for i, f in enumerate(fields)},  # type: ignore[attr-defined]
        )

    def _union(self, plan: SetOperation, needed: set[str]) -> Flow:
        kept = [i for i, f in enumerate(plan.fields) if f.id in needed]
        schema = pa.schema([(f"c{i}", plan.fields[i].type) for i in kept])
        edges = []
        for child in plan.inputs:
            flow = self.flow(child, {child.fields[i].id for i in kept})
            columns = tuple((f"c{i}", flow.columns[child.fields[i].id]) for i in kept)
            edges.append(self.edge(Port(flow, columns, {}), None))
        identity = self.add(UnionAll(schema), edges, schema, None)
        return Flow(
            identity, {plan.fields[i].id: Column(f"c{i}", plan.fields[i].type) for i in kept}
        )

    def result(self, view: str, plan: Plan, key: Sequence[str] | None) -> str:
        """The last operator of a view, under its own column names. `key` holds column names;
        None makes it a bag."""
        flow = self.flow(plan, {f.id for f in plan.fields})
        columns = tuple((f.name, flow.columns[f.id]) for f in plan.fields)
        port = Port(flow, columns, {})
        schema = pa.schema([(f.name, f.type) for f in plan.fields])
        expiry = self._expiry(port, schema.names)
        if key is None:
            counted = schema.append(pa.field("count", types.BIGINT))
            bag = BagResult(view, counted, expiry)
            return self.add(bag, [self.edge(port, schema.names)], counted, None)
        operator = Result(view, schema, tuple(key), self._unique(flow, columns, key), expiry)
        return self.add(operator, [self.edge(port, tuple(key))], schema, None)

    def _unique(
        self, flow: Flow, columns: Sequence[tuple[str, Expression]], key: Sequence[str]
    ) -> bool:
        """Whether the rows are groups whose keys are all part of the view's key."""
        group = self.nodes[flow.source].operator
        plain = {bound.name for name, bound in columns if name in key and isinstance(bound, Column)}
        return isinstance(group, GroupOperator) and {*group.keys} <= plain
