"""One schema, read in its language: its one text, and what another makes of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from tailrace.schemas import (
    avro,
    avro_compatibility,
    json_compatibility,
    json_schema,
    protobuf,
    protobuf_compatibility,
)
from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.model import AVRO, JSON, PROTOBUF, TYPES, Difference, Find, Schema, Texts
from tailrace.schemas.reading import write_json


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A schema that was read. `text` is its one spelling, `normal` the one that also sorts what
    has no order of its own."""

    kind: str
    text: str
    normal: str
    value: avro.Type | json_schema.JsonSchema | protobuf.Types

    def differences(self, writer: Parsed, find: Find, *, lenient: bool = False) -> list[Difference]:
        """What stops this schema as a reader of the other's data."""
        match self.value, writer.value:
            case avro.Type() as one, avro.Type() as other:
                return avro_compatibility.differences(one, other)
            case json_schema.JsonSchema() as one, json_schema.JsonSchema() as other:
                allowed = json_compatibility.LENIENT if lenient else json_compatibility.COMPATIBLE
                return json_compatibility.differences(one, other, find, allowed)
            case protobuf.Types() as one, protobuf.Types() as other:
                return protobuf_compatibility.differences(one, other)
        return [
            Difference(
                "SCHEMA_TYPE_CHANGED",
                "/",
                f"Incompatible because of different schema type: {self.kind} and {writer.kind}",
                "register it under another subject",
            )
        ]


def parse(schema: Schema, references: Texts, *, new: bool = True) -> Parsed:
    """Read a schema. `new` False: one that was registered before, whose defaults may be wrong.

    Raises InvalidSchemaError.
    """
    if not schema.text.strip():
        raise InvalidSchemaError("the schema is empty")
    try:
        match schema.kind:
            case "AVRO":
                found = avro.parse(schema.text, references, check_defaults=new)
                return Parsed(
                    AVRO,
                    avro.canonical(found, references),
                    avro.canonical(found, references, normal=True),
                    found,
                )
            case "JSON":
                read = json_schema.JsonSchema(schema.text, references)
                json_schema.check_all(read)
                return Parsed(JSON, write_json(read.value), write_json(read.value, sort=True), read)
            case "PROTOBUF":
                file = _protobuf_file(schema.text)
                types = protobuf.Types(
                    file,
                    {
                        name: protobuf.canonical(_protobuf_file(text))
                        for name, text in references.items()
                    },
                )
                return Parsed(
                    PROTOBUF,
                    protobuf.canonical(file),
                    protobuf.normal(types),
                    types,
                )
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply") from None
    raise InvalidSchemaError(
        f"there is no schema type {schema.kind[:100]!r}", hint=f"one of {', '.join(TYPES)}"
    )


def _protobuf_file(text: str) -> protobuf.File:
    """A Protobuf file from its text, or from its descriptor in base64 as some clients send it."""
    from tailrace.schemas import protobuf_descriptors

    stripped = text.strip()
    if protobuf_descriptors.looks_encoded(stripped):
        return protobuf_descriptors.from_base64(stripped)
    return protobuf.parse_file(text)


def guid(schema: Schema) -> str:
    """A name that a schema has in every registry."""
    digest = hashlib.md5(schema.text.encode(), usedforsecurity=False)
    if schema.kind != AVRO or schema.references or schema.metadata or schema.rules:
        rest = [schema.kind, [[r.name, r.subject, r.version] for r in schema.references],
                schema.metadata, schema.rules]  # fmt: skip
        digest.update(write_json(rest).encode())
    return str(UUID(bytes=digest.digest()))
