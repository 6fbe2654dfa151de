"""Keys and values of records over HTTP, in the formats of a schema registry.

A body names the schema of its values (`value_schema`, a text that is registered, or `value_schema_id`)
and, if its records have keys, that of the keys. Values are JSON: Avro's own JSON, where a value of a
union that is not null stands in an object with the name of its branch; what a JSON Schema allows;
the JSON of Protobuf, for the first message of a file. They are written as Confluent's serializers write
them: a zero byte, the id in four bytes, the data.
"""

from __future__ import annotations

import io
import math
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tailrace.client.errors import RegistryError
from tailrace.client.schemas import Schemas
from tailrace.errors import ComponentMissingError, TailraceError

KEPT = 1_000
_SMALL = {"int": 31, "long": 63}

Encode = Callable[[Any], bytes]
Format = tuple[int, Encode]


class BadValue(Exception):
    """The value does not fit its schema."""


class BadSchema(Exception):
    """The schema is none, or the registry refuses it."""


class Formats:
    """Ids and encoders, kept by schema. Safe from several threads."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str | int], Format] = OrderedDict()

    def find(self, kind: str, subject: str, given: str | int) -> Format:
        """Of a schema by its text, which is registered under the subject, or by its id.

        Raises BadSchema; RegistryError where the registry does not answer.
        """
        about = (f"{kind} {subject}" if isinstance(given, str) else kind), given
        with self._lock:
            if about in self._kept:
                self._kept.move_to_end(about)
                return self._kept[about]
        try:
            found = self._ask(kind, subject, given)
        except RegistryError as error:
            if error.status is not None and error.status < 500:
                raise BadSchema(error.detail) from error
            raise
        with self._lock:
            self._kept[about] = found
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _ask(self, kind: str, subject: str, given: str | int) -> Format:
        if isinstance(given, str):
            return self._schemas.register(subject, given, kind), self._encoder(kind, given, ())
        row = self._schemas.by_id(given)
        if str(row.get("schemaType") or "AVRO") != kind:
            raise BadSchema(f"schema {given} is none of {kind}")
        return given, self._encoder(kind, str(row["schema"]), row.get("references") or ())

    def _encoder(self, kind: str, text: str, references: Any) -> Encode:
        known = self._schemas.followed(references)
        make = {"AVRO": _avro, "JSON": _json, "PROTOBUF": _protobuf}[kind]
        try:
            return make(text, known)
        except (ComponentMissingError, BadSchema):
            raise
        except (TailraceError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise BadSchema(str(error)[:300]) from error


def framed(found: Format, value: Any) -> bytes:
    """The bytes of a value. Raises BadValue."""
    number, encode = found
    try:
        return struct.pack(">bI", 0, number) + encode(value)
    except BadValue:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, struct.error) as error:
        raise BadValue(str(error)[:300] or type(error).__name__) from error


# --- Avro ----------------------------------------------------------------------------------------


def _avro(text: str, references: Mapping[str, str]) -> Encode:
    fastavro = _needed("fastavro")
    named: dict[str, Any] = {}
    for one in references.values():
        fastavro.parse_schema(_read(one), named_schemas=named)
    schema = fastavro.parse_schema(_read(text), named_schemas=named)

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, _as_avro(schema, value, named, "value"))
        return out.getvalue()

    return encode


def _read(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text  # the name of a type


def _as_avro(schema: Any, value: Any, named: Mapping[str, Any], path: str) -> Any:
    """A value of Avro's JSON as fastavro takes it, which is told the branch of each union."""
    if isinstance(schema, list):
        return _in_union(schema, value, named, path)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return _as_avro(kind, value, named, path)
    if kind in named:
        return _as_avro(named[kind], value, named, path)
    match kind:
        case "record" | "error":
            _must(isinstance(value, dict), path, "an object")
            fields = {field["name"]: field for field in schema["fields"]}
            for name in value:
                _must(name in fields, f"{path}.{name}", "a field of the schema")
            for name, field in fields.items():
                _must(name in value or "default" in field, f"{path}.{name}", "there")
            # A field that is left out gets its default from the writer.
            return {
                name: _as_avro(fields[name]["type"], one, named, f"{path}.{name}")
                for name, one in value.items()
            }
        case "array":
            _must(isinstance(value, list), path, "a list")
            items = schema["items"]
            return [_as_avro(items, one, named, f"{path}[{n}]") for n, one in enumerate(value)]
        case "map":
            _must(isinstance(value, dict), path, "an object")
            inner = schema["values"]
            return {n: _as_avro(inner, one, named, f"{path}.{n}") for n, one in value.items()}
        case "enum":
            _must(value in schema["symbols"], path, "a symbol of its enum")
        case "bytes" | "fixed":
            _must(isinstance(value, str) and all(ord(one) < 256 for one in value), path, "bytes as text")  # fmt: skip
            data = value.encode("latin-1")
            _must(kind == "bytes" or len(data) == schema["size"], path, "as long as its type")
            return data
        case "int" | "long":
            whole = isinstance(value, int) and not isinstance(value, bool)
            _must(whole and -(2 ** _SMALL[kind]) <= value < 2 ** _SMALL[kind], path, f"a whole number ({kind})")  # fmt: skip
        case "float" | "double":
            if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
                return float(value.replace("Infinity", "inf"))
            number = isinstance(value, int | float) and not isinstance(value, bool)
            _must(number and math.isfinite(value), path, "a number")
            return float(value)
        case "string":
            _must(isinstance(value, str), path, "a text")
        case "boolean":
            _must(isinstance(value, bool), path, "true or false")
        case "null":
            _must(value is None, path, "null")
        case _:
            raise BadValue(f"{path} has an unknown type")
    return value


def _in_union(schema: list[Any], value: Any, named: Mapping[str, Any], path: str) -> Any:
    if value is None:
        _must("null" in schema, path, "no null")
        return None
    branches = {_branch(one): one for one in schema}
    told = isinstance(value, dict) and len(value) == 1 and next(iter(value)) in branches
    _must(told, path, f'{{"BRANCH": value}}, a union of {", ".join(branches)}')
    name = next(iter(value))
    return name, _as_avro(branches[name], value[name], named, path)


def _branch(schema: Any) -> str:
    if not isinstance(schema, dict):
        return str(schema)
    return str(schema["name"] if schema["type"] in ("record", "enum", "fixed", "error") else schema["type"])  # fmt: skip


def _must(fact: object, path: str, what: str) -> None:
    if not fact:
        raise BadValue(f"{path[:200]} must be {what}")


# --- JSON Schema, Protobuf -----------------------------------------------------------------------


def _json(text: str, references: Mapping[str, str]) -> Encode:
    jsonschema, referencing = _needed("jsonschema"), _needed("referencing")
    schema = orjson.loads(text)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft7Validator)
    kind.check_schema(schema)
    rooms = referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(orjson.loads(one), referencing.jsonschema.DRAFT7))
        for name, one in references.items()
    )
    judge = kind(schema, registry=rooms)

    def encode(value: Any) -> bytes:
        wrong = next(judge.iter_errors(value), None)
        if wrong is not None:
            raise BadValue(f"{wrong.json_path}: {wrong.message}"[:300])
        return orjson.dumps(value)

    return encode


def _protobuf(text: str, references: Mapping[str, str]) -> Encode:
    _needed("google.protobuf")
    from google.protobuf import json_format

    from tailrace.schemas.protobuf_messages import Messages, encode_path

    first = Messages(text, references).at((0,))

    def encode(value: Any) -> bytes:
        _must(isinstance(value, dict), "value", "an object")
        try:
            made = json_format.ParseDict(value, first())
        except (json_format.ParseError, AttributeError) as error:
            raise BadValue(str(error)[:300]) from error
        return encode_path((0,)) + bytes(made.SerializeToString(deterministic=True))

    return encode


def _needed(module: str) -> Any:
    from importlib import import_module

    try:
        found = import_module(module)
        if module in ("jsonschema", "referencing"):
            import_module({"jsonschema": "jsonschema.validators", "referencing": "referencing.jsonschema"}[module])  # fmt: skip
    except ImportError as missing:
        raise ComponentMissingError(
            "formats of a schema registry need more packages",
            detail=str(missing),
            hint="pip install 'tailrace[registry]'",
        ) from missing
    return found
