"""Declared percolations: what each reads, and the graph it becomes (see `operators.percolate`)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from tailrace.extras import require
from tailrace.pipelines.compiler.lowering.lower import Lowering
from tailrace.pipelines.declare import EventTime, Percolation, Topic
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal
from tailrace.pipelines.engine.graph import Edge, Graph, Node, Projection, TableInput, ViewPlan
from tailrace.pipelines.engine.operators.event_patterns import Told
from tailrace.pipelines.engine.operators.keyed import Facts, Keyed
from tailrace.pipelines.engine.operators.percolate import (
    EVENT,
    HOURLY,
    ID,
    ONCE,
    TO,
    VERSION,
    Everywhere,
    Limited,
    Percolate,
    Queries,
    Readable,
)
from tailrace.pipelines.engine.percolate.fields import Fields, is_comparable
from tailrace.pipelines.errors import (
    DeclarationError,
    SqlNameError,
    SqlTypeError,
    UnknownTableError,
)
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.values import types
from tailrace.pipelines.values.columns import OFFSET, PARTITION, PLACED
from tailrace.pipelines.values.types import ddl, is_integer, parse_type

_PLACE = pa.schema([(PARTITION, pa.int64()), (OFFSET, pa.int64())])


@dataclass(frozen=True, slots=True)
class CompiledPercolation:
    """A percolation and its graph. `plain_topics` have no envelopes."""

    pattern: Percolation
    graph: Graph
    topic: str  # of the events
    plain_topics: frozenset[str]

    @property
    def times(self) -> dict[str, EventTime]:
        """Events count as they come, whatever their time."""
        return {}

    @property
    def percolate(self) -> Node:
        """The node that holds the queries."""
        return next(one for one in self.graph.nodes if isinstance(one.operator, Percolate))

    @property
    def operator(self) -> Percolate:
        return cast(Percolate, self.percolate.operator)


def compile_percolation(
    declared: Percolation,
    stream: TableInput,
    plain: bool,
    tables: Mapping[str, TableInput],
) -> CompiledPercolation:
    """Compile one percolation over the rows of `stream`, whose records are `plain` rows or
    envelopes. `tables` are captured ones by topic."""
    require("tantivy")
    queries = _queries_table(declared, tables)
    fields = _fields(declared, stream)
    about, projection = _about(declared, queries, fields)
    lowering = Lowering()
    query_table = replace(queries, schema=pa.schema([*queries.schema, *_PLACE]), placed=True)
    events = replace(
        stream, kind="stream", key=(), time="", schema=pa.schema([*stream.schema, *PLACED]),
        order=Literal(0, types.TIMESTAMP),
    )  # fmt: skip
    if query_table.topic == events.topic:
        raise _wrong(declared, "the queries and the stream are one topic", "give two")
    lowering.tables |= {query_table.topic: query_table, events.topic: events}
    keyed = lowering.add(
        Keyed(query_table.schema, query_table.topic), [Edge(f"table:{query_table.topic}")],
        query_table.schema, None,
    )  # fmt: skip
    readable = lowering.add(Readable(about), [Edge(keyed, projection)], about.kept, None)
    everywhere_schema = pa.schema([pa.field(TO, pa.int64()), *about.kept])
    everywhere = lowering.add(Everywhere(about.kept), [Edge(readable)], everywhere_schema, None)
    facts = lowering.add(
        Facts(events.schema, events.topic), [Edge(f"table:{events.topic}")], events.schema, None
    )
    hidden = [about.schema.field(name) for name in (ONCE, HOURLY) if name in about.schema.names]
    told = pa.schema(
        [
            ("op", pa.string()), (ID, about.schema.field(0).type), (VERSION, pa.int64()),
            *((name, about.schema.field(name).type) for name in about.carried),
            (EVENT, pa.binary()),
        ]
    )  # fmt: skip
    pairs = pa.schema([*told, *hidden, *_PLACE])
    shown = tuple(stream.schema.names)
    last = lowering.add(
        Percolate(declared.name, about, shown, pairs),
        [Edge(everywhere, None, (TO,)), Edge(facts)],
        pairs,
        None,
    )
    if hidden:
        ids = Projection(((ID, Column(about.schema.names[0], about.schema.field(0).type)),))
        last = lowering.add(
            Limited(pairs), [Edge(last, None, (ID,)), Edge(readable, ids, (ID,))], pairs, (ID,)
        )
    node = lowering.add(Told(declared.name, told), [Edge(last)], told, None)
    event = pa.struct(list(stream.schema))
    columns = [(field.name, ddl(event if field.name == EVENT else field.type)) for field in told]
    plan = ViewPlan(
        declared.name, node, (ID,), tuple(columns), "", events=True, written=(EVENT,)
    )  # fmt: skip
    try:
        parse_type(columns[-1][1])
    except ValueError as reason:
        raise _wrong(
            declared, f"the columns of {stream.topic} cannot be nested: {reason}",
            "rename what has spaces or colons in its name",
        ) from None  # fmt: skip
    plain_topics = {query_table.topic} if isinstance(declared.queries, Topic) else set()
    if plain:
        plain_topics.add(events.topic)
    graph = Graph(lowering.tables, tuple(lowering.nodes.values()), {declared.name: plan})
    return CompiledPercolation(declared, graph, events.topic, frozenset(plain_topics))


def _queries_table(declared: Percolation, tables: Mapping[str, TableInput]) -> TableInput:
    given = declared.queries
    if isinstance(given, Topic):
        found = topic_table(given)
    else:
        known = tables.get(given.topic)
        if known is None:
            raise UnknownTableError(
                f"percolation {declared.name!r} reads queries of {given.topic}, which no source "
                "has described",
                detail=f"declared at {declared.declared_at}",
                hint="is the source running, and does it capture the table?",
            )
        found = known
    names = [declared.id, declared.query, *declared.carry]
    names += [name for name in (declared.once, declared.per_hour) if name is not None]
    for name in names:
        _known_column(declared, "the queries", name, found)
    if found.key != (declared.id,):
        key = f"its key is ({', '.join(found.key)})" if found.key else "it has no key"
        raise _wrong(
            declared,
            f"id={declared.id!r} does not name one query of {found.topic}: {key}",
            "name the column that is the key" if len(found.key) == 1 else "give it one key column",
        )
    _refuse_hidden(declared, found)
    return found


def _fields(declared: Percolation, stream: TableInput) -> Fields:
    for name in (*(name for name, _ in declared.text), *declared.fields):
        _known_column(declared, "the stream", name, stream)
    _refuse_hidden(declared, stream)
    for name, _ in declared.text:
        kind = stream.schema.field(name).type
        if kind != types.STRING:
            raise _wrong_type(
                declared, f"text= names {name!r}, which is {ddl(kind)}",
                "only STRING is searched word by word: name it in fields=",
            )  # fmt: skip
    values: list[tuple[str, pa.DataType]] = []
    for name in declared.fields:
        kind = stream.schema.field(name).type
        if not is_comparable(kind):
            raise _wrong_type(
                declared, f"fields= names {name!r}, which is {ddl(kind)}",
                "texts, numbers, booleans, dates and timestamps are compared",
            )  # fmt: skip
        values.append((name, kind))
    return Fields(declared.text, tuple(values), declared.every)


def _about(declared: Percolation, table: TableInput, fields: Fields) -> tuple[Queries, Projection]:
    """The columns of the queries, and the projection that gives them."""
    schema = table.schema
    if schema.field(declared.query).type != types.STRING:
        raise _wrong_type(
            declared, f"query={declared.query!r} is {ddl(schema.field(declared.query).type)}",
            "the text of a query is a STRING",
        )  # fmt: skip
    named = [(name, name) for name in dict.fromkeys((declared.id, declared.query))]
    # A carried column may be the id or the text itself, so it has a name of its own there.
    taken = {declared.id, declared.query}
    columns: list[tuple[str, Expression]] = [
        (name, Column(name, schema.field(name).type)) for name, _ in named
    ]
    for name in declared.carry:
        if name in taken:
            raise _wrong(
                declared, f"carry= names {name!r}, which stands elsewhere already",
                "the id is query_id in every match; the text is in the table",
            )  # fmt: skip
        columns.append((name, Column(name, schema.field(name).type)))
    if declared.once is not None:
        kind = schema.field(declared.once).type
        if kind != types.BOOLEAN and not is_integer(kind):
            raise _wrong_type(declared, f"once={declared.once!r} is {ddl(kind)}", "a BOOLEAN")
        once = Column(declared.once, kind)
        zero = Call("<>", (once, Literal(0, kind)), types.BOOLEAN)
        columns.append((ONCE, once if kind == types.BOOLEAN else zero))
    if declared.per_hour is not None:
        kind = schema.field(declared.per_hour).type
        if not is_integer(kind):
            raise _wrong_type(
                declared, f"per_hour={declared.per_hour!r} is {ddl(kind)}", "a whole number"
            )
        columns.append((HOURLY, Column(declared.per_hour, kind)))
    made = pa.schema([*((name, bound.type) for name, bound in columns), *_PLACE])
    columns += [(field.name, Column(field.name, field.type)) for field in _PLACE]
    return Queries(table.topic, made, fields), Projection(tuple(columns))


def _known_column(declared: Percolation, whose: str, name: str, table: TableInput) -> None:
    names = list(table.schema.names)
    if name in names:
        return
    near = difflib.get_close_matches(name, names, 1)
    raise SqlNameError(
        f"percolation {declared.name!r}: {table.topic} ({whose}) has no column {name!r}",
        detail=f"declared at {declared.declared_at}",
        hint=f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(names)}",
    )


def _refuse_hidden(declared: Percolation, table: TableInput) -> None:
    taken = [name for name in table.schema.names if name.lower().startswith("__")]
    if taken:
        raise SqlNameError(
            f"percolation {declared.name!r}: {table.topic} has a column {taken[0]!r}; names that "
            "begin with two underscores are taken",
            detail=f"declared at {declared.declared_at}",
            hint="rename it",
        )


def _wrong(declared: Percolation, what: str, hint: str) -> DeclarationError:
    return DeclarationError(
        f"percolation {declared.name!r}: {what}",
        detail=f"declared at {declared.declared_at}",
        hint=hint,
    )


def _wrong_type(declared: Percolation, what: str, hint: str) -> SqlTypeError:
    return SqlTypeError(
        f"percolation {declared.name!r}: {what}",
        detail=f"declared at {declared.declared_at}",
        hint=hint,
    )
