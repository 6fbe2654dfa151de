"""Whether what a project writes still fits the schemas under which others read it.

Event types have subjects of their own: see `facts.subjects`.

The topic of a view, that of a `sinks.Topic` and the declared outputs of a stream hold JSON. Where the
registry has a subject `<topic>-value`, its last version must be able to read every row: a column that
it lacks and does not let through, one of another type, or one that it requires and that is gone, is
refused. Whether a column is NULL is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from tailrace.client.errors import RegistryError
from tailrace.client.schemas import Schemas, Subject
from tailrace.errors import TailraceError
from tailrace.facts.subjects import incompatible, verdicts
from tailrace.pipelines.values.topic_schema import parse_schema
from tailrace.pipelines.values.types import parse_type
from tailrace.project.checked import Checked
from tailrace.registry.patterns import find
from tailrace.schemas.errors import IncompatibleSchemaError, InvalidSchemaError
from tailrace.schemas.json_compatibility import differences
from tailrace.schemas.json_schema import JsonSchema
from tailrace.sinks.declare import Topic as TopicSink

if TYPE_CHECKING:
    from tailrace.pipelines.engine.graph import Graph
    from tailrace.project.load import Project

Output = tuple[str, str, dict[str, Any]]
"""What writes, the topic, and the JSON Schema of its values."""


def look(project: Project, compiled: Graph | None) -> Iterator[Checked]:
    """Every output that a subject is about. A registry that is away is told once."""
    chosen = project.settings.registry
    if chosen.url is None:
        return
    schemas = Schemas(chosen.url, user=chosen.user, password=chosen.password)
    for what, topic, schema in outputs(project, compiled):
        try:
            found = _judge(what, Subject(f"{topic}-value", schemas), schema)
        except RegistryError as error:
            yield Checked("subjects", f"not looked at: {error.message}")
            return
        except TailraceError as error:
            yield Checked(f"subject {topic}-value", error=error)
            continue
        if found is not None:
            yield Checked(f"subject {topic}-value", found)
    yield from _events(project, schemas)


def _events(project: Project, schemas: Schemas) -> Iterator[Checked]:
    """Every event type; what fits is registered when its owner starts."""
    for name, declared in project.events.items():
        if name in project.reservations:
            continue
        try:
            for subject, fit in verdicts(schemas, declared):
                if not fit.fits:
                    yield Checked(f"subject {subject}", error=incompatible(subject, fit))
        except RegistryError as error:
            yield Checked("subjects", f"not looked at: {error.message}")
            return


def outputs(project: Project, compiled: Graph | None) -> Iterator[Output]:
    for name, judged in () if compiled is None else compiled.views.items():
        row = row_schema((column, parse_type(str(kind))) for column, kind in judged.columns)
        yield f'view "{name}"', name, {"type": "object", "properties": {"row": row}}
        for sink in project.sinks.values():
            if sink.subject == name and isinstance(sink.declaration, TopicSink):
                yield f'sink "{sink.name}"', sink.declaration.topic, row
    for stream in project.streams.values():
        for topic in stream.outputs:
            if topic.schema is not None and topic.format == "json":
                columns = parse_schema(topic.schema)
                row = row_schema((field.name, field.type) for field in columns)
                yield f'stream "{stream.name}"', topic.name, row


def _judge(what: str, subject: Subject, schema: dict[str, Any]) -> str | None:
    found = subject.latest()
    if found is None:
        return None
    if found.kind != "JSON":
        raise IncompatibleSchemaError(
            f'{what} breaks its subject "{subject.name}"',
            detail=f"it writes JSON, and version {found.version} is of type {found.kind}",
            hint="write to another topic, or register a JSON Schema under another subject",
        )
    references = {
        str(one["name"]): subject.schemas.version(str(one["subject"]), str(one["version"])).text
        for one in found.references
    }
    try:
        reader = JsonSchema(found.text, references)
        broken = differences(reader, JsonSchema(orjson.dumps(schema).decode()), find)
    except InvalidSchemaError as error:
        return f"not looked at: {error.message}"
    if broken:
        lines = [one.tell("registered", "written") for one in broken]
        raise IncompatibleSchemaError(
            f'{what} breaks its subject "{subject.name}"',
            detail="\n".join([f"Version {found.version} cannot read what is written:", *lines]),
            hint=f"keep the columns, or register what they are now: tailrace schema register {subject.name} FILE",
        )
    return f"version {found.version} reads what is written"


def row_schema(columns: Iterable[tuple[str, pa.DataType]]) -> dict[str, Any]:
    """The JSON Schema of rows with these columns and no others."""
    properties = {name: _json_type(kind) for name, kind in columns}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _json_type(kind: pa.DataType) -> dict[str, Any]:
    """What a value of a type is in our JSON; decimals, times and bytes are text."""
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    if pa.types.is_floating(kind):
        return {"type": "number"}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _json_type(kind.item_type)}
    if pa.types.is_struct(kind):
        return row_schema((field.name, field.type) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _json_type(kind.value_type)}
    return {"type": "string"}
