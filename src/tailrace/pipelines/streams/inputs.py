"""What a stream reads, as options of the data source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import orjson

from tailrace.pipelines.declare import EVENTS, Pattern, Percolation, Stream, Topic, View
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.errors import DeclarationError, UnknownTableError
from tailrace.pipelines.reading.catalog import Catalog
from tailrace.pipelines.reading.forms import packed
from tailrace.pipelines.reading.registered import registered
from tailrace.pipelines.streams.beginnings import wish_of
from tailrace.pipelines.values import avro
from tailrace.pipelines.values.types import ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Options = dict[str, str]


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """A view as its last tick row describes it."""

    topic: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that is known of what streams can read."""

    catalog: Catalog
    schema_of: Callable[[Stream], StructType]
    views: Mapping[str, ViewColumns] = field(default_factory=dict)
    events: Mapping[str, TableInput] = field(default_factory=dict)
    """Event topics by name."""

    def options(self, stream: Stream, given: object) -> Options:
        """Topics, form, columns and start of one input.

        Raises UnknownTableError for a table or view that nobody has described yet.
        """
        match given:
            case Topic():
                return _topic(given)
            case Stream():
                schema = self.schema_of(given)
                columns = [[f.name, f.dataType.simpleString()] for f in schema]
                return _form(given.name, "json", columns, "earliest")
            case View():
                return self._view(stream, given)
            case Pattern() | Percolation():
                return self._pattern(given)
        kind = getattr(given, "kind", None)
        if kind in ("inserts", "changes"):
            return self._table(stream, given, str(kind))
        if kind == EVENTS:
            return self._events(stream, str(getattr(given, "topic")))  # noqa: B009
        raise DeclarationError(
            f'stream "{stream.name}" cannot read {given!r}',
            detail=f"declared at {stream.declared_at}",
            hint="a table's .inserts() or .changes(), tr.topic(…), tr.events(…), a view or another stream",
        )

    def _events(self, stream: Stream, topic: str) -> Options:
        table = self.events.get(topic)
        if table is None:
            raise UnknownTableError(
                f'stream "{stream.name}" reads the event topic {topic}, which the project lacks',
                hint="declare it in a file of the project: tr.events(…)",
            )
        columns = [[each.name, ddl(each.type)] for each in table.schema]
        return _form(topic, "events", columns, "earliest") | {"reading": packed(table)}

    def _pattern(self, given: Pattern | Percolation) -> Options:
        from tailrace.pipelines.compiler.declared_patterns import compile_patterns

        read: list[Pattern | Percolation] = [given]
        while isinstance(below := read[-1].input, Pattern | Percolation):
            read.append(below)
        compiled, wrong = compile_patterns(read, self.catalog.tables)
        if given.name in wrong:
            raise wrong[given.name]
        columns = compiled[given.name].graph.views[given.name].columns
        return _form(
            given.name, "json", [[name, stream_type(kind)] for name, kind in columns], "earliest"
        )

    def _table(self, stream: Stream, given: object, kind: str) -> Options:
        topic = str(getattr(given, "topic"))  # noqa: B009
        table = self.catalog.tables.get(topic)
        if table is None:
            raise UnknownTableError(
                f'stream "{stream.name}" reads {topic}, which no source has described',
                hint="is the source running, and does it capture the table?",
            )
        columns = [[field.name, ddl(field.type)] for field in table.schema]
        options = _form(topic, kind, columns, wish_of(stream, given))
        return options | {"snapshot": "true"} if getattr(given, "snapshot", False) else options

    def _view(self, stream: Stream, given: View) -> Options:
        known = self.views.get(given.name)
        if known is None:
            raise UnknownTableError(
                f'stream "{stream.name}" reads view "{given.name}", which has not ticked yet',
                hint="it starts by itself once the view has its first tick",
            )
        columns = [[name, stream_type(kind)] for name, kind in known.columns]
        options = _form(known.topic, "view", columns, "earliest")
        return options | {"key": orjson.dumps(known.key).decode()}


def stream_type(kind: str) -> str:
    """The type in which a stream gets a view's column. Spark hides TIME unless it is asked for:
    times of day come as the text they are in the log."""
    return re.sub(r"\bTIME\(\d\)", "STRING", kind)


def _topic(topic: Topic) -> Options:
    if topic.subject is not None:
        topic = registered(topic)
    options = {"start": "earliest"}
    if topic.pattern is None:
        options["topics"] = topic.name
    else:
        options["pattern"] = topic.pattern
    if topic.metadata is not None:
        options["metadata"] = topic.metadata
    if topic.schema is None or topic.format == "raw":
        return options | {"form": "raw"}
    if topic.format == "avro":
        columns: list[list[str]] = [list(pair) for pair in avro.columns(topic.schema)]
        options |= topic.avro
    else:
        columns = _columns(topic)
        if topic.wire == "confluent":
            options["wire"] = topic.wire
    return options | {"form": topic.format, "columns": orjson.dumps(columns).decode()}


def _columns(topic: Topic) -> list[list[str]]:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        parsed = cast(StructType, StructType.fromDDL(topic.schema or ""))
    except PySparkException as problem:
        raise DeclarationError(
            f'the schema of topic "{topic.name}" cannot be read',
            detail=f"{topic.schema!r}, declared at {topic.declared_at}",
            hint='columns with their Spark types: schema="user STRING, at TIMESTAMP"',
        ) from problem
    return [[field.name, field.dataType.simpleString()] for field in parsed]


def _form(topic: str, form: str, columns: Iterable[object], start: str) -> Options:
    named = orjson.dumps(list(columns)).decode()
    return {"topics": topic, "form": form, "columns": named, "start": start}
