"""What the log says about its tables: the newest version of each in `<source>.schemas`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import orjson
import pyarrow as pa

from tailrace.config import parse_duration
from tailrace.pipelines.declare import Topic
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.errors import UnknownTableError
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.reading.wire import wire_of
from tailrace.pipelines.values import avro
from tailrace.pipelines.values.topic_schema import parse_schema
from tailrace.pipelines.values.types import STRING, parse_type

SCHEMAS = ".schemas"


class CatalogChanged(Exception):
    """A source has described a table anew: what was compiled may no longer fit."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tables by change topic, the version of each, and how far the descriptions were read."""

    tables: dict[str, TableInput]
    versions: dict[str, int]
    ends: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)

    def check(self, reader: LogReader) -> None:
        """Raise CatalogChanged if there are newer descriptions."""
        for topic, bounds in self.ends.items():
            if reader.bounds(topic) != bounds:
                raise CatalogChanged(topic)

    @property
    def sources(self) -> set[str]:
        """The sources that have described at least one table."""
        return {topic.split(".", 1)[0] for topic in self.tables}


def read_catalog(reader: LogReader, sources: Iterable[str] | None = None) -> Catalog:
    """The tables of `sources`, or of every source the log knows."""
    if sources is None:
        sources = [name[: -len(SCHEMAS)] for name in reader.topics() if name.endswith(SCHEMAS)]
    documents: list[dict[str, object]] = []
    ends: dict[str, dict[int, tuple[int, int]]] = {}
    for source in sorted(sources):
        ends[f"{source}{SCHEMAS}"] = reader.bounds(f"{source}{SCHEMAS}")
        for records in read_all(reader, f"{source}{SCHEMAS}"):
            documents += [orjson.loads(value) for value in records.values if value is not None]
    tables, versions = described_tables(documents)
    return Catalog(tables, versions, ends)


def described_tables(
    documents: Iterable[dict[str, object]],
) -> tuple[dict[str, TableInput], dict[str, int]]:
    """The newest version of each table, by topic, and its number."""
    tables: dict[str, TableInput] = {}
    versions: dict[str, int] = {}
    keyless: set[str] = set()
    for document in documents:
        topic, version = str(document["topic"]), int(str(document["version"]))
        if not document["key"]:
            keyless.add(topic)
        if version >= versions.get(topic, 0):
            versions[topic] = version
            tables[topic] = described_table(document)
    for topic in keyless:
        tables[topic] = replace(tables[topic], once_keyless=True)
    return tables, versions


def described_table(document: dict[str, object]) -> TableInput:
    columns, key = document["columns"], document["key"]
    assert isinstance(columns, list)
    assert isinstance(key, list)
    topic = str(document["topic"])
    schema = pa.schema([(c["name"], column_type(c.get("spark"))) for c in columns])
    return TableInput(
        name=topic,
        topic=topic,
        schema=schema,
        key=tuple(str(name) for name in key),
        kind="bag" if not key else "history" if document.get("history") else "table",
        kept_ms=_kept_ms(document.get("history")),
    )


def _kept_ms(history: object) -> int | None:
    """How long every version of a table is kept, from the words of its source."""
    if not history or history == "forever":
        return None
    return int(parse_duration(str(history)).total_seconds() * 1000)


def column_type(words: str | None) -> pa.DataType:
    """The Arrow type of a column; what Spark has no type for is text, as in the JSON."""
    try:
        return parse_type(words or "STRING")
    except ValueError:
        return STRING


def topic_table(topic: Topic) -> TableInput:
    """A declared topic as an input of views: a stream of facts, or with a key a table, the
    last row of each record key."""
    if topic.schema is None:
        raise UnknownTableError(
            f'topic "{topic.name}" has no schema',
            detail="a view must know the columns of what it reads",
            hint=f'tr.topic("{topic.name}", schema="user STRING, at TIMESTAMP")',
        )
    schema = (
        pa.schema([(name, parse_type(kind)) for name, kind in avro.columns(topic.schema)])
        if topic.format == "avro"
        else parse_schema(topic.schema)
    )
    missing = [name for name in topic.key if name not in schema.names]
    if missing:
        raise UnknownTableError(
            f'topic "{topic.name}" has no column {", ".join(missing)} for its key',
            detail=f"its columns are {', '.join(schema.names)}",
            hint=f"declared at {topic.declared_at}",
        )
    kind = "table" if topic.key else "stream"
    time = topic.time.column if topic.time is not None else ""
    return TableInput(
        topic.name, topic.name, schema, topic.key, kind, time=time, wire=wire_of(topic)
    )
