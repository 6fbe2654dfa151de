"""Topics whose columns are a registry's to tell.

A declaration names a subject; it is asked for when the project runs, never when a file is imported.
A topic without a declared schema has, for views, the columns of the subject `<topic>-value` of the
project's registry, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import orjson

from tailrace.client.errors import RegistryError
from tailrace.client.schemas import RegisteredSchema, Schemas, Subject
from tailrace.config import RegistrySettings
from tailrace.pipelines.declare import Topic
from tailrace.pipelines.errors import DeclarationError
from tailrace.pipelines.values import avro
from tailrace.telemetry.part import Part

_WAIT_SECONDS = 0.5
_KINDS = {"string": "STRING", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_DEEPEST = 20


def registered(topic: Topic) -> Topic:
    """A topic that names a subject, with the columns and the format of its last version."""
    if topic.subject is None:
        return topic
    found = topic.subject.latest()
    if found is None:
        raise DeclarationError(
            f'the subject "{topic.subject.name}" of topic "{topic.name}" has no schema',
            detail=f"{topic.subject.schemas.url}; declared at {topic.declared_at}",
            hint=f"tailrace schema register {topic.subject.name} FILE",
        )
    return _with_columns(topic, found, topic.subject.schemas)


def for_views(topics: Iterable[Topic], chosen: RegistrySettings) -> list[Topic]:
    """Topics as views read them. Raises RegistryError where the registry does not answer."""
    made = []
    for topic in topics:
        if topic.subject is not None:
            made.append(registered(topic))
        elif chosen.url is not None and _undeclared(topic):
            schemas = Schemas(chosen.url, user=chosen.user, password=chosen.password)
            found = Subject(f"{topic.name}-value", schemas).latest()
            made.append(topic if found is None else _with_columns(topic, found, schemas))
        else:
            made.append(topic)
    return made


def wait_for_views(
    topics: Iterable[Topic],
    chosen: RegistrySettings,
    part: Part,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Topic] | None:
    """`for_views`, once the registry answers; None if told to stop meanwhile. `meanwhile` is
    called again and again as long as it does not."""
    given = list(topics)
    waited = False
    while not part.stopping.is_set():
        try:
            made = for_views(given, chosen)
        except RegistryError as error:
            if error.status in (401, 403):
                raise
            waited = True
            part.report("starting", error=error.as_dict())
            meanwhile()
            part.stopping.wait(_WAIT_SECONDS)
            continue
        if waited:
            part.report("starting", error=None)
        return made
    return None


def look_again(topics: list[Topic], chosen: RegistrySettings) -> list[Topic]:
    """`for_views` for what the registry did not know before; the same if it does not answer."""
    try:
        return for_views(topics, chosen)
    except RegistryError:
        return topics


def asks(topics: Iterable[Topic], chosen: RegistrySettings) -> bool:
    """Whether the columns of some topic are a registry's to tell."""
    return any(
        topic.subject is not None or (chosen.url is not None and _undeclared(topic))
        for topic in topics
    )


def _undeclared(topic: Topic) -> bool:
    return topic.schema is None and topic.format == "json" and topic.pattern is None


def _with_columns(topic: Topic, found: RegisteredSchema, schemas: Schemas) -> Topic:
    try:
        match found.kind:
            case "AVRO":
                columns = avro.columns(found.text)
                made = replace(
                    topic, schema=found.text, format="avro", wire="confluent",
                    registry=schemas.address, subject=None,
                )  # fmt: skip
            case "JSON":
                columns = json_columns(found.text)
                ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns)
                made = replace(topic, schema=ddl, format="json", wire="confluent", subject=None)
            case other:
                raise ValueError(f"{other} cannot be read as rows; Avro and JSON Schema can")
    except (DeclarationError, ValueError) as reason:
        detail = reason.detail if isinstance(reason, DeclarationError) else str(reason)
        raise DeclarationError(
            f'the schema of subject "{found.subject}" gives topic "{topic.name}" no columns',
            detail=f"version {found.version}: {detail}",
            hint=f'declare them: tr.topic("{topic.name}", schema="user STRING, at TIMESTAMP")',
        ) from reason
    names = [name for name, _ in columns]
    time = () if topic.time is None else (topic.time.column,)
    for column in (*topic.key, *time):
        if column not in names:
            raise DeclarationError(
                f'topic "{topic.name}" has no column {column!r}',
                detail=f'its columns, by subject "{found.subject}" version {found.version}, are '
                f"{', '.join(names)}",
                hint=f"declared at {topic.declared_at}",
            )
    return made


def json_columns(text: str) -> list[tuple[str, str]]:
    """The columns of a JSON Schema of an object, with their Spark types. Raises ValueError."""
    try:
        schema = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(str(error)) from error
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not properties:
        raise ValueError("it has no properties")
    return [(name, _spark(one, schema, 0)) for name, one in properties.items()]


def _spark(one: Any, whole: dict[str, Any], depth: int) -> str:
    if depth > _DEEPEST or not isinstance(one, dict):
        raise ValueError("it refers to itself, or a property lets anything through")
    target = one.get("$ref")
    if isinstance(target, str):
        found: Any = whole
        for part in target.removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        if not target.startswith("#/") or found is None:
            raise ValueError(f"$ref {target} is not followed")
        return _spark(found, whole, depth + 1)
    kinds = one.get("type")
    real = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list) else [kinds]
    for several in ("oneOf", "anyOf"):
        if real == [None] and isinstance(one.get(several), list):
            left = [each for each in one[several] if each != {"type": "null"}]
            if len(left) == 1:
                return _spark(left[0], whole, depth + 1)
    if len(real) != 1:
        raise ValueError(f"a property of {len(real)} types has no column type")
    if real[0] == "string" and one.get("format") in ("date-time", "date"):
        return "TIMESTAMP" if one["format"] == "date-time" else "DATE"
    if real[0] in _KINDS:
        return _KINDS[real[0]]
    if real[0] == "array" and isinstance(one.get("items"), dict):
        return f"ARRAY<{_spark(one['items'], whole, depth + 1)}>"
    if real[0] == "object" and one.get("properties"):
        inner = ", ".join(
            f"`{name}`: {_spark(each, whole, depth + 1)}"
            for name, each in one["properties"].items()
        )
        return f"STRUCT<{inner}>"
    if real[0] == "object" and isinstance(one.get("additionalProperties"), dict):
        return f"MAP<STRING, {_spark(one['additionalProperties'], whole, depth + 1)}>"
    raise ValueError(f"a property of type {real[0]!r} has no column type")
