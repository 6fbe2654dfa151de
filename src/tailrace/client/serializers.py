"""From a program's values to the bytes of a record.

A serializer is any function from a value to bytes or None, or an object with
`serialize(topic, part, value)` where the bytes depend on the topic (`registry`). The
default takes bytes as they are and text as UTF-8, and refuses everything else rather
than guess. `deserializers` is the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from tailrace.client.errors import SerializationError

Part = Literal["key", "value"]


class TopicSerializer(Protocol):
    """Writes one part of the records of any topic."""

    def serialize(self, topic: str, part: Part, value: Any) -> bytes | None:
        """The bytes of a value. Raises SerializationError, RegistryError."""


Serializer = Callable[[Any], bytes | None] | TopicSerializer
Encode = Callable[[str, Any], bytes | None]


def plain(value: object) -> bytes | None:
    """Bytes as they are, text as UTF-8, None as null."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise SerializationError(
        f"a {type(value).__name__} cannot be sent as it is",
        hint="give bytes or text, or a serializer: log.producer(value_serializer=serializers.json)",
    )


def text(value: object) -> bytes | None:
    """Text as UTF-8."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise SerializationError(f"a {type(value).__name__} is not text")
    return value.encode()


def json(value: object) -> bytes | None:
    """Compact JSON; None becomes null, the tombstone of compacted topics."""
    if value is None:
        return None
    import orjson

    from tailrace.records.json_bytes import json_bytes

    try:
        return json_bytes(value)
    except orjson.JSONEncodeError as error:
        raise SerializationError("the value has no JSON form", detail=str(error)) from error


def encoder(serializer: Serializer, part: Part) -> Encode:
    """A serializer of either kind as a function of topic and value."""
    if serializer is plain:
        return _plain
    if callable(serializer):
        simple: Callable[[Any], bytes | None] = serializer
        return lambda topic, value: simple(value)
    serialize = serializer.serialize
    return lambda topic, value: serialize(topic, part, value)


def _plain(topic: str, value: object) -> bytes | None:
    # bytes are what most programs send: one call fewer for each record
    return value if isinstance(value, bytes) else plain(value)
