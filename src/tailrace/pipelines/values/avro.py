"""Avro records: plain, or in Confluent's wire format (a zero byte, the schema's id, data).

The declared schema says which columns there are. A plain record was written with it. In
the wire format the id names the writer's schema: asked for once at `registry` (its HTTP
address, `GET /schemas/ids/ID`) and resolved against the declared one by Avro's rules;
without a registry the declared schema is taken for the writer's.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import orjson

from tailrace.client.schemas import Schemas
from tailrace.errors import ComponentMissingError
from tailrace.pipelines.errors import DeclarationError

_PRIMITIVE = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "string": "STRING", "bytes": "BINARY", "fixed": "BINARY", "enum": "STRING",
}  # fmt: skip
_LOGICAL = {
    "date": "DATE", "timestamp-millis": "TIMESTAMP", "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ", "local-timestamp-micros": "TIMESTAMP_NTZ",
    "uuid": "STRING",
}  # fmt: skip
_MAGIC = b"\0"
_ID_BYTES = 4


def columns(schema: str) -> list[tuple[str, str]]:
    """The columns of an Avro record schema, with their Spark types."""
    try:
        parsed = orjson.loads(schema)
        if parsed.get("type") != "record":
            raise ValueError("it is not a record")
        return [(field["name"], _spark(field["type"])) for field in parsed["fields"]]
    except (ValueError, KeyError, AttributeError, TypeError) as reason:
        raise DeclarationError(
            "the Avro schema cannot be read",
            detail=f"{type(reason).__name__}: {reason}",
            hint='schema=\'{"type": "record", "name": …, "fields": […]}\'',
        ) from reason


def _spark(kind: Any) -> str:
    if isinstance(kind, list):
        real = [one for one in kind if one != "null"]
        if len(real) != 1:
            raise ValueError(f"a union of {len(real)} types has no column type")
        return _spark(real[0])
    if isinstance(kind, str):
        if kind not in _PRIMITIVE:
            raise ValueError(f"unknown type {kind!r}")
        return _PRIMITIVE[kind]
    logical = kind.get("logicalType")
    if logical == "decimal":
        return f"DECIMAL({kind['precision']},{kind.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match kind["type"]:
        case "record":
            inner = ", ".join(f"`{f['name']}`: {_spark(f['type'])}" for f in kind["fields"])
            return f"STRUCT<{inner}>"
        case "array":
            return f"ARRAY<{_spark(kind['items'])}>"
        case "map":
            return f"MAP<STRING, {_spark(kind['values'])}>"
        case other:
            return _spark(other)


def decoder(options: Mapping[str, str]) -> Callable[[bytes], dict[str, Any]]:
    """A function from a record's value to its row; it raises where the value does not fit.

    `avro` is the schema, `wire` is plain or confluent, `registry` an address.
    """
    try:
        import fastavro
    except ImportError as missing:
        raise ComponentMissingError(
            "fastavro is not installed", hint="pip install 'tailrace[avro]'"
        ) from missing
    reader = _parsed(options["avro"])
    confluent = options.get("wire", "plain") == "confluent"
    registry = options.get("registry")

    def read(value: bytes) -> dict[str, Any]:
        source = io.BytesIO(value)
        writer = reader
        if confluent:
            if source.read(1) != _MAGIC:
                raise ValueError("the value does not begin with Confluent's magic byte")
            number = int.from_bytes(source.read(_ID_BYTES), "big")
            if registry is not None:
                writer = _registered(registry, number)
        found = fastavro.schemaless_reader(source, writer, reader)
        if source.read(1):
            raise ValueError("bytes are left behind the record: another schema wrote it")
        if not isinstance(found, dict):
            raise ValueError("the value is not a record")
        return found

    return read


@cache
def _parsed(schema: str) -> Any:
    import fastavro

    return fastavro.parse_schema(_plain(orjson.loads(schema)))


def _plain(schema: Any) -> Any:
    """A schema whose ids stay text, as the column has them."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if isinstance(schema, dict):
        return {k: _plain(v) for k, v in schema.items() if (k, v) != ("logicalType", "uuid")}
    return schema


@cache
def _registered(registry: str, number: int) -> Any:
    """The schema a registry knows by this id, with the types it refers to."""
    import fastavro

    schemas = Schemas.at(registry)
    found = schemas.by_id(number)
    if found.get("schemaType", "AVRO") != "AVRO":
        raise ValueError(f"schema {number} is no Avro")
    names: dict[str, Any] = {}
    seen: set[tuple[str, int]] = set()
    # What is referred to stands behind what refers to it, and is read from the end.
    texts: list[str] = []
    waiting = list(found.get("references") or ())
    while waiting:
        one = waiting.pop()
        place = (str(one["subject"]), int(one["version"]))
        if place not in seen:
            seen.add(place)
            used = schemas.version(place[0], str(place[1]))
            texts.append(used.text)
            waiting.extend(used.references)
    for text in reversed(texts):
        fastavro.parse_schema(_plain(orjson.loads(text)), named_schemas=names)
    return fastavro.parse_schema(_plain(orjson.loads(found["schema"])), named_schemas=names)
