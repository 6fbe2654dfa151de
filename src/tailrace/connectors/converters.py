"""Between values and bytes: `key.converter`, `value.converter`, `header.converter`.

The default for keys is `string`, for values `json` without schemas. JSON with schemas is Connect's
envelope of `schema` and `payload`; a record without a schema gets the one of its value if that is
a plain value, else none. `avro`, `json_schema` and `protobuf` are Confluent's wire format with a registry
(`schema.registry.url`): records are written with the schema given as `schema`, or else the newest
one of the subject, which must be there.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol

import orjson

from tailrace.connectors.errors import ConnectorSettingError, ConverterError
from tailrace.connectors.names import long_name, short_name

Schema = Mapping[str, Any]


class Converter(Protocol):
    """A converter of one's own is a class with these methods, named `module:Class`."""

    def configure(self, settings: Mapping[str, str], part: str) -> None:
        """Settings behind `value.converter.`; `part` is "key", "value" or "header"."""

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None: ...

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]: ...


def make(name: str, settings: Mapping[str, str], part: str) -> Converter:
    """The converter of this name, with its settings. Raises ConnectorSettingError."""
    short = short_name(name)
    if short is None:
        module, colon, kind = name.partition(":")
        if not colon:
            raise ConnectorSettingError(
                f"there is no converter {name!r}",
                hint="string, bytes, json, avro, json_schema, protobuf, Kafka's class names, or module:Class",
            )
        made: Converter = getattr(import_module(module), kind)()
    else:
        made = _MAKE[short]()
    made.configure(settings, part)
    return made


class Text:
    """UTF-8. What is no text is written as JSON."""

    def configure(self, settings: Mapping[str, str], part: str) -> None:
        self._encoding = settings.get("converter.encoding", "utf-8")
        if part == "header":
            self._encoding = settings.get("encoding", "utf-8")

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if isinstance(value, str):
            return value.encode(self._encoding)
        if isinstance(value, bytes | bytearray):
            return bytes(value)
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return _TEXT, None
        try:
            return _TEXT, data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise ConverterError("the bytes are no text", detail=str(error)) from error


class Bytes:
    """As they are."""

    def configure(self, settings: Mapping[str, str], part: str) -> None: ...

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise ConverterError(f"a {type(value).__name__} is not bytes")

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return {"type": "bytes", "optional": True}, data


class Number:
    """Big-endian numbers, as Kafka's serializers write them."""

    def __init__(self, form: str, name: str) -> None:
        self._struct = struct.Struct(form)
        self._schema = {"type": name, "optional": True}
        self._whole = form[-1] in "hiq"

    def configure(self, settings: Mapping[str, str], part: str) -> None: ...

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            if isinstance(value, bool) != (self._struct.format == ">?"):
                raise ConverterError(f"a {type(value).__name__} is no {self._schema['type']}")
            return self._struct.pack(value)
        except struct.error as error:
            raise ConverterError(f"{value!r} is no {self._schema['type']}") from error

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return self._schema, None
        try:
            return self._schema, self._struct.unpack(data)[0]
        except struct.error as error:
            raise ConverterError(
                f"{len(data)} bytes are no {self._schema['type']}", detail=str(error)
            ) from error


class Json:
    """JSON; with `schemas.enable` in Connect's envelope."""

    def configure(self, settings: Mapping[str, str], part: str) -> None:
        given = settings.get("schemas.enable", "true").lower()
        if given not in ("true", "false"):
            raise ConnectorSettingError(f"schemas.enable is {given!r}", hint="true or false")
        self._schemas = given == "true"

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None and schema is None:
            return None
        try:
            if not self._schemas:
                return None if value is None else orjson.dumps(value, default=_plain)
            shown = dict(schema) if schema is not None else schema_of(value)
            return orjson.dumps({"schema": shown, "payload": value}, default=_plain)
        except (orjson.JSONEncodeError, TypeError) as error:
            raise ConverterError("the value has no JSON form", detail=str(error)) from error

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ConverterError("the bytes are no JSON", detail=str(error)) from error
        if not self._schemas:
            return None, found
        if not isinstance(found, dict) or set(found) != {"schema", "payload"}:
            raise ConverterError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields",
                hint="for JSON without schemas set schemas.enable=false",
            )
        schema = found["schema"]
        if schema is not None and not isinstance(schema, dict):
            raise ConverterError("a schema is an object")
        return schema, _payload(schema, found["payload"])


_TEXT = {"type": "string", "optional": True}


def schema_of(value: object) -> Schema | None:
    """The schema of a plain value, in Connect's JSON form; None for others."""
    match value:
        case bool():
            return {"type": "boolean", "optional": False}
        case int():
            return {"type": "int64", "optional": False}
        case float():
            return {"type": "double", "optional": False}
        case str():
            return {"type": "string", "optional": False}
        case bytes():
            return {"type": "bytes", "optional": False}
    return None


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _payload(schema: Schema | None, value: Any) -> Any:
    """A payload as its schema means it: bytes are base64."""
    if schema is None or value is None:
        return value
    try:
        match schema.get("type"):
            case "bytes":
                return base64.b64decode(value, validate=True)
            case "struct":
                fields = schema.get("fields") or []
                return {one["field"]: _payload(one, value.get(one["field"])) for one in fields}
            case "array":
                return [_payload(schema.get("items"), one) for one in value]
            case "map" if isinstance(value, dict):
                return {key: _payload(schema.get("values"), one) for key, one in value.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConverterError("the payload does not fit its schema", detail=str(error)) from error
    return value


class Registered:
    """Avro or JSON Schema with a registry of schemas."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._formats: dict[str, Any] = {}

    def configure(self, settings: Mapping[str, str], part: str) -> None:
        from tailrace.client.registry import Registry

        url = settings.get("schema.registry.url")
        if not url:
            raise ConnectorSettingError(
                f"{self._kind} needs a registry of schemas",
                hint=f"{part}.converter.schema.registry.url=http://HOST:8081",
            )
        user, _, password = settings.get("basic.auth.user.info", "").partition(":")
        self._registry = Registry(url, user=user, password=password)
        self._part: Any = part
        self._schema = settings.get("schema")
        self._register = settings.get("auto.register.schemas", "true").lower() == "true"

    def close(self) -> None:
        """Let the registry's connections go."""
        self._registry.client.__exit__(None, None, None)

    def _format(self, topic: str, *, writing: bool) -> Any:
        if not writing:
            return self._formats.setdefault("", self._make(None))
        if topic not in self._formats:
            schema = self._schema
            if schema is None:
                latest = self._registry[f"{topic}-{self._part}"].latest()
                if latest is None:
                    raise ConverterError(
                        f'no schema is registered for "{topic}-{self._part}"',
                        hint=f"register one, or set {self._part}.converter.schema",
                    )
                schema = latest.text
            self._formats[topic] = self._make(schema)
        return self._formats[topic]

    def _make(self, schema: str | None) -> Any:
        if self._kind == "avro":
            return self._registry.avro(schema, register=self._register)
        return self._registry.json_schema(schema, register=self._register)

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        written: bytes | None = self._format(topic, writing=True).serialize(topic, self._part, value)  # fmt: skip
        return written

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return None, self._format(topic, writing=False).deserialize(topic, self._part, data)


class Protobuf:
    """Protobuf with a registry of schemas: messages are dicts of their fields.

    Written are messages called `message`, or the first of the file.
    """

    def configure(self, settings: Mapping[str, str], part: str) -> None:
        from tailrace.client.schemas import Schemas

        url = settings.get("schema.registry.url")
        if not url:
            raise ConnectorSettingError(
                "protobuf needs a registry of schemas",
                hint=f"{part}.converter.schema.registry.url=http://HOST:8081",
            )
        user, _, password = settings.get("basic.auth.user.info", "").partition(":")
        self._schemas = Schemas(url, user=user or None, password=password)
        self._part = part
        self._text = settings.get("schema")
        self._register = settings.get("auto.register.schemas", "true").lower() == "true"
        self._message = settings.get("message")
        self._written: dict[str, tuple[bytes, Any]] = {}
        self._read: dict[int, Any] = {}

    def _format(self, topic: str) -> tuple[bytes, Any]:
        """What stands before each message, and its class."""
        from tailrace.schemas.protobuf_messages import encode_path

        subject = f"{topic}-{self._part}"
        if self._text is not None and self._register:
            number = self._schemas.register(subject, self._text, "PROTOBUF")
        else:
            latest = self._schemas[subject].latest()
            if latest is None:
                raise ConverterError(
                    f'no schema is registered for "{subject}"',
                    hint=f"register one, or set {self._part}.converter.schema",
                )
            number = latest.id
        messages = self._messages(number)
        try:
            path = (0,) if self._message is None else messages.path_of(self._message)
        except ValueError:
            raise ConverterError(f'"{subject}" has no message {self._message}') from None
        return struct.pack(">bI", 0, number) + encode_path(path), messages.at(path)

    def _messages(self, number: int) -> Any:
        from tailrace.schemas.protobuf_messages import Messages

        if number not in self._read:
            found = self._schemas.by_id(number)
            if found.get("schemaType") != "PROTOBUF":
                raise ConverterError(f"schema {number} is none of Protobuf")
            references = self._schemas.followed(found.get("references") or ())
            self._read[number] = Messages(str(found["schema"]), references)
        return self._read[number]

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        from google.protobuf import json_format

        if topic not in self._written:
            self._written[topic] = self._format(topic)
        before, kind = self._written[topic]
        if not isinstance(value, Mapping):
            raise ConverterError(f"a {type(value).__name__} is no message")
        try:
            # As JSON: bytes are base64 there, and None is an absent field.
            given = orjson.loads(orjson.dumps(dict(value), default=_plain))
            made = json_format.ParseDict(given, kind())
        except (json_format.ParseError, orjson.JSONEncodeError, AttributeError) as error:
            raise ConverterError("the value is no such message", detail=str(error)[:300]) from error
        return before + bytes(made.SerializeToString(deterministic=True))

    def from_bytes(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        from google.protobuf.message import DecodeError

        from tailrace.schemas.protobuf_messages import decode_path, plain

        if len(data) < 6 or data[0]:
            raise ConverterError("the bytes are no message of a schema registry")
        messages = self._messages(int.from_bytes(data[1:5], "big"))
        try:
            path, start = decode_path(data[5:])
            return None, plain(messages.at(path).FromString(data[5 + start :]))
        except (DecodeError, ValueError, IndexError) as error:
            raise ConverterError(
                "the bytes are no such message", detail=str(error)[:300]
            ) from error


class Simple(Text):
    """Headers: text as it is, anything else as JSON; read back as text."""


_MAKE: dict[str, Callable[[], Converter]] = {
    "string": Text,
    "simple": Simple,
    "bytes": Bytes,
    "json": Json,
    "boolean": lambda: Number(">?", "boolean"),
    "short": lambda: Number(">h", "int16"),
    "integer": lambda: Number(">i", "int32"),
    "long": lambda: Number(">q", "int64"),
    "float": lambda: Number(">f", "float"),
    "double": lambda: Number(">d", "double"),
    "avro": lambda: Registered("avro"),
    "json_schema": lambda: Registered("json_schema"),
    "protobuf": Protobuf,
}

DEFAULTS = {
    "key.converter": "string",
    "value.converter": "json",
    "value.converter.schemas.enable": "false",
    "header.converter": "simple",
}


def behind(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The settings whose names begin with a prefix, without it."""
    return {name[len(prefix) :]: text for name, text in settings.items() if name.startswith(prefix)}


def chosen(
    settings: Mapping[str, str], own: Mapping[str, str], worker: Mapping[str, str]
) -> dict[str, tuple[str, dict[str, str]]]:
    """Name and settings of the three converters: the connector's, else the worker's, else those
    its class prefers, else the defaults."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for part in ("key", "value", "header"):
        name = f"{part}.converter"
        place = next(one for one in (settings, worker, own, DEFAULTS) if one.get(name))
        # Settings of a converter are only for the place that names it.
        found[part] = (place[name], behind(place, f"{name}."))
    return found


def class_name(name: str) -> str:
    return long_name(name) or name
