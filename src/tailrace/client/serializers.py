"""From a program's values to the bytes of a record, and back.

A serializer is any function from a value to bytes or None. The default takes bytes as
they are and text as UTF-8, and refuses everything else rather than guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.client.errors import SerializationError

Serializer = Callable[[Any], bytes | None]


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

    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise SerializationError("the value has no JSON form", detail=str(error)) from error
