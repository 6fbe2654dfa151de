"""Bodies of requests and answers, as Confluent's registry writes and reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from tailrace.registry.errors import Refusal, too_large
from tailrace.schemas.model import AVRO, Reference, Schema
from tailrace.schemas.parsed import guid
from tailrace.schemas.reading import write_json
from tailrace.schemas.subjects import Version

_SCHEMA_FIELDS = frozenset(
    (
        "subject",
        "version",
        "id",
        "guid",
        "schemaType",
        "references",
        "metadata",
        "ruleSet",
        "schema",
    )
)
REFERENCES_LIMIT = 1000
SCHEMA_LIMIT = 900_000


@dataclass(frozen=True, slots=True)
class Given:
    """A schema as a request names it. `version` 0: the next one; `id` −1: any."""

    schema: Schema
    version: int = 0
    id: int = -1


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object a body is."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Refusal(400, "the body is no JSON object")
    return found


def read_schema(body: bytes) -> Given:
    found = read_object(body)
    only(found, _SCHEMA_FIELDS)
    text = _typed(found, "schema", str, "")
    if len(text) > SCHEMA_LIMIT:
        # Told before it is read, which would take long.
        raise too_large()
    kind = (_typed(found, "schemaType", str, "") or AVRO).upper()
    references = _typed(found, "references", list, [])
    if len(references) > REFERENCES_LIMIT:
        raise Refusal(42201, f"Invalid schema: more than {REFERENCES_LIMIT} references")
    return Given(
        Schema(
            text,
            kind,
            tuple(_reference(one) for one in references),
            _object_text(found, "metadata"),
            _object_text(found, "ruleSet"),
        ),
        _typed(found, "version", int, 0),
        _typed(found, "id", int, -1),
    )


def only(found: dict[str, Any], known: frozenset[str]) -> None:
    for name in found:
        if name not in known:
            raise Refusal(422, f"Unrecognized field: {name[:100]}")


def _reference(one: Any) -> Reference:
    if not isinstance(one, dict):
        raise Refusal(400, "a reference is an object of name, subject and version")
    only(one, frozenset(("name", "subject", "version")))
    name, subject = _typed(one, "name", str, ""), _typed(one, "subject", str, "")
    version = _typed(one, "version", int, 0)
    if not name or not subject or not (version > 0 or version == -1):
        raise Refusal(42201, "Invalid schema: a reference needs its name, subject and version")
    return Reference(name, subject, version)


def _typed(found: dict[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    value = found.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Refusal(400, f'"{name}" has the wrong type')
    if kind is int and not -1 <= value < 2**31:
        raise Refusal(400, f'"{name}" is out of range')
    return value


def _object_text(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise Refusal(400, f'"{name}" has the wrong type')
    return write_json(value, sort=True)


def level_of(found: dict[str, Any]) -> str | None:
    value = found.get("compatibility", found.get("compatibilityLevel"))
    if value is None:
        return None
    if not isinstance(value, str):
        raise Refusal(400, '"compatibility" has the wrong type')
    return value.upper()


# Answers -----------------------------------------------------------------------------


def schema_fields(schema: Schema, text: str | None = None) -> dict[str, Any]:
    """What every answer says of a schema; fields that say nothing are left out."""
    made: dict[str, Any] = {}
    if schema.kind != AVRO:
        made["schemaType"] = schema.kind
    if schema.references:
        made["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version}
            for one in schema.references
        ]
    if schema.metadata:
        made["metadata"] = json.loads(schema.metadata)
    if schema.rules:
        made["ruleSet"] = json.loads(schema.rules)
    made["schema"] = schema.text if text is None else text
    return made


def version_fields(one: Version, text: str | None = None, *, more: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"subject": one.subject, "version": one.version, "id": one.id}
    if more:
        made["guid"] = guid(one.schema)
    made |= schema_fields(one.schema, text)
    if one.deleted and more:
        made["deleted"] = True
    return made


def registered_fields(one: Version, *, more: bool = False) -> dict[str, Any]:
    if not more:
        return {"id": one.id}
    # Not the text: some clients would take it for the form in which they sent it.
    return {"id": one.id, "version": one.version, "guid": guid(one.schema)}


def config_fields(config: dict[str, Any]) -> dict[str, Any]:
    names = ("normalize", "compatibilityLevel", "compatibilityPolicy")
    return {name: config[name] for name in names if config.get(name) is not None}


def problem(refusal: Refusal) -> bytes:
    """The body of a refusal; `hint` is ours, clients of others pass over it."""
    made: dict[str, Any] = {"error_code": refusal.code, "message": refusal.message}
    if refusal.details:
        made["details"] = list(refusal.details)
    if refusal.hint:
        made["hint"] = refusal.hint
    return orjson.dumps(made)
