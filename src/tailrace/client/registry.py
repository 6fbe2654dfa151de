"""Avro, JSON Schema and Protobuf with a schema registry.

    registry = Registry("http://localhost:8081")
    log.producer(value_serializer=registry.avro(schema))
    log.consumer("mail", ["orders"], value_deserializer=registry.avro())

The bytes are Confluent's wire format: a zero byte, the schema's id in four bytes (big
endian), for Protobuf the path of the message in its file, then the data. Any registry
with Confluent's REST interface will do. The work is done by confluent-kafka's own
serializers, so records agree with those of Java, Go and .NET to the byte.

A schema is registered under its subject when its first record is sent (`register=False`:
looked up, an error if it is not there). Ids and schemas are kept, so a registry is asked
once a topic when writing and once a schema when reading. Needs `tailrace[registry]`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

from tailrace.client.errors import DeserializationError, RegistryError, SerializationError
from tailrace.client.schemas import Schemas
from tailrace.client.schemas import Subject as RegisteredSubject
from tailrace.client.serializers import Part
from tailrace.errors import ComponentMissingError, UsageError

Subject = Literal["topic", "record", "topic-record"]
Schema = str | Mapping[str, Any] | list[Any]

try:
    from confluent_kafka.schema_registry import (
        SchemaRegistryClient,
        SchemaRegistryError,
        record_subject_name_strategy,
        topic_record_subject_name_strategy,
        topic_subject_name_strategy,
    )
    from confluent_kafka.serialization import MessageField, SerializationContext
except ImportError as missing:
    raise ComponentMissingError(
        "schema registries need more packages",
        detail=str(missing),
        hint="pip install 'tailrace[registry]'",
    ) from missing

_SUBJECTS: dict[str, Callable[..., Any]] = {
    "topic": topic_subject_name_strategy,
    "record": record_subject_name_strategy,
    "topic-record": topic_record_subject_name_strategy,
}
_Make = Callable[[], Callable[[Any, Any], Any]]


class Registry:
    """A schema registry at a URL; several, with commas, are tried in turn.

    `settings` are those of confluent-kafka's client, with underscores for dots:
    `ssl_ca_location="ca.pem"`, `max_retries=5`. `mock://NAME` is a registry in this
    process, for tests. Safe from several threads.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str = "",
        password: str = "",
        timeout: float = 10.0,
        **settings: Any,
    ) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        if user:
            given["basic.auth.user.info"] = f"{user}:{password}"
        self.url = url
        self._login = (user, password)
        try:
            self.client: Any = SchemaRegistryClient.new_client(
                {"url": url, "timeout": timeout, **given}
            )
        except (ValueError, TypeError, OSError) as error:
            raise UsageError(f'no schema registry can be at "{url}"', detail=str(error)) from error

    def __getitem__(self, subject: str) -> RegisteredSubject:
        """A subject to name in a declaration: `tr.topic("orders", schema=registry["orders-value"])`.
        It is asked for when it is needed."""
        user, password = self._login
        return Schemas(self.url.partition(",")[0], user=user, password=password)[subject]

    def avro(
        self,
        schema: Schema | None = None,
        *,
        subject: Subject = "topic",
        register: bool = True,
        strict: bool = False,
    ) -> RegistryFormat:
        """Values are dicts (or what the schema says). Reading with a schema resolves the
        writer's to it, with defaults and aliases; without one, the writer's is used.
        `strict` refuses fields the schema does not name."""
        avro = _module("avro")
        text = _text(schema)
        settings = self._settings(subject, register)
        return RegistryFormat(
            self,
            "Avro",
            None
            if text is None
            else lambda: avro.AvroSerializer(
                self.client, text, conf={**settings, "validate.strict": strict}
            ),
            lambda: avro.AvroDeserializer(
                self.client, text, conf={"subject.name.strategy": _SUBJECTS[subject]}
            ),
        )

    def json_schema(
        self,
        schema: Schema | None = None,
        *,
        subject: Subject = "topic",
        register: bool = True,
        validate: bool = True,
    ) -> RegistryFormat:
        """Values are what JSON holds; written and read only if they fit the schema
        (without one when reading: the writer's)."""
        json_schema = _module("json_schema")
        text = _text(schema)
        settings = {**self._settings(subject, register), "validate": validate}
        return RegistryFormat(
            self,
            "JSON Schema",
            None
            if text is None
            else lambda: json_schema.JSONSerializer(text, self.client, conf=settings),
            lambda: json_schema.JSONDeserializer(
                text,
                schema_registry_client=self.client,
                conf={"subject.name.strategy": _SUBJECTS[subject], "validate": validate},
            ),
        )

    def protobuf(
        self, message: type[Any], *, subject: Subject = "topic", register: bool = True
    ) -> RegistryFormat:
        """Values are messages of a generated class."""
        protobuf = _module("protobuf")
        if not hasattr(message, "DESCRIPTOR"):
            raise UsageError(
                "protobuf(…) takes the class of a message",
                hint="registry.protobuf(orders_pb2.Order)",
            )
        settings = self._settings(subject, register)
        reading = {"subject.name.strategy": _SUBJECTS[subject]}
        return RegistryFormat(
            self,
            "Protobuf",
            lambda: protobuf.ProtobufSerializer(message, self.client, conf=settings),
            lambda: protobuf.ProtobufDeserializer(
                message, conf=reading, schema_registry_client=self.client
            ),
        )

    def _settings(self, subject: Subject, register: bool) -> dict[str, Any]:
        if subject not in _SUBJECTS:
            raise UsageError(
                f'subjects cannot be named by "{subject}"', hint=f"one of {', '.join(_SUBJECTS)}"
            )
        return {"auto.register.schemas": register, "subject.name.strategy": _SUBJECTS[subject]}

    def __repr__(self) -> str:
        return f"Registry({self.url!r})"


class RegistryFormat:
    """One format: a serializer and a deserializer for any topic."""

    def __init__(
        self, registry: Registry, name: str, serializer: _Make | None, deserializer: _Make
    ) -> None:
        self._registry = registry
        self._name = name
        self._make_serializer = serializer
        self._make_deserializer = deserializer
        self._lock = threading.Lock()
        # One each a topic: a serializer remembers one id, but an id belongs to a subject.
        self._serializers: dict[tuple[str, Part], tuple[Callable[[Any, Any], Any], Any]] = {}
        self._deserializers: dict[tuple[str, Part], tuple[Callable[[Any, Any], Any], Any]] = {}

    def serialize(self, topic: str, part: Part, value: Any) -> bytes | None:
        if value is None:
            return None
        if self._make_serializer is None:
            raise UsageError(
                f"writing {self._name} needs a schema", hint="registry.avro(schema), for example"
            )
        try:
            serializer, context = self._serializers.get((topic, part)) or self._made(
                self._serializers, self._make_serializer, topic, part
            )
            written: bytes = serializer(value, context)
        except Exception as error:  # the libraries below raise many kinds
            if (refused := self._refused(error, f'the {part} schema of "{topic}"')) is not None:
                raise refused from error
            raise SerializationError(
                f'a {part} for "{topic}" does not fit its {self._name} schema', detail=_told(error)
            ) from error
        return written

    def deserialize(self, topic: str, part: Part, data: bytes | None) -> Any:
        if data is None:
            return None
        if len(data) < 5 or data[0] not in (0, 1):
            raise DeserializationError(
                "the bytes do not begin with the id of a schema",
                detail=f"they begin with {data[:5].hex(' ') or 'nothing'}; another serializer wrote them",
            )
        try:
            deserializer, context = self._deserializers.get((topic, part)) or self._made(
                self._deserializers, self._make_deserializer, topic, part
            )
            return deserializer(data, context)
        except Exception as error:
            number = int.from_bytes(data[1:5], "big")
            refused = self._refused(error, f"schema {number}")
            if refused is not None and refused.status != 404:
                raise refused from error
            if refused is not None:
                raise DeserializationError(
                    f"schema {number} is not in the registry", detail=refused.detail
                ) from error
            raise DeserializationError(
                f"the bytes do not fit the {self._name} schema", detail=_told(error)
            ) from error

    def _made(
        self, into: dict[Any, Any], make: _Make, topic: str, part: Part
    ) -> tuple[Callable[[Any, Any], Any], Any]:
        with self._lock:
            if (topic, part) not in into:
                field = MessageField.KEY if part == "key" else MessageField.VALUE
                into[topic, part] = make(), SerializationContext(topic, field)
            made: tuple[Callable[[Any, Any], Any], Any] = into[topic, part]
            return made

    def _refused(self, error: Exception, what: str) -> RegistryError | None:
        """What the registry had to do with it; None if nothing."""
        if isinstance(error, SchemaRegistryError):
            status = error.http_status_code
            refused = RegistryError(
                f"the schema registry refused {what}",
                detail=f"{self._registry.url} answered {status}: {error.error_message}",
                hint=_HINTS.get(status, ""),
            )
            refused.status = status
            return refused
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2") or isinstance(
            error, OSError
        ):
            return RegistryError(
                f"the schema registry did not answer for {what}",
                detail=f"{self._registry.url}: {_told(error)}",
            )
        return None


_HINTS = {
    401: "give user= and password=",
    403: "this user may not do that",
    404: "register the schema first, or leave register=True",
    409: "a new version must be compatible with the one before it, or the subject's "
    "compatibility level lowered",
    422: "the registry does not take this schema",
}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _module(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"confluent_kafka.schema_registry.{name}")
    except ImportError as error:
        raise ComponentMissingError(
            "this format needs more packages",
            detail=str(error),
            hint="pip install 'tailrace[registry]'",
        ) from error


def _text(schema: Schema | None) -> str | None:
    return schema if schema is None or isinstance(schema, str) else json.dumps(schema)
