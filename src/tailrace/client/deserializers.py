"""From the bytes of a record to a program's values.

A deserializer is any function from bytes or None to a value, or an object with
`deserialize(topic, part, data)` where the topic matters (`registry`). Null stays None.
A record that cannot be read raises DeserializationError, which says where it stands; the
consumer does not move past it by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tailrace.client.errors import ClientError, DeserializationError
from tailrace.client.record import LogRecord
from tailrace.client.serializers import Part


class TopicDeserializer(Protocol):
    """Reads one part of the records of any topic."""

    def deserialize(self, topic: str, part: Part, data: bytes | None) -> Any:
        """The value in the bytes. Raises DeserializationError, RegistryError."""


Deserializer = Callable[[bytes | None], Any] | TopicDeserializer
Decode = Callable[[str, bytes | None], Any]
DecodeRecord = Callable[[LogRecord], LogRecord]


def text(data: bytes | None) -> str | None:
    """UTF-8 as text."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DeserializationError("the bytes are not UTF-8", detail=str(error)) from error


def json(data: bytes | None) -> Any:
    """JSON as Python's values."""
    if data is None:
        return None
    import orjson

    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DeserializationError("the bytes are not JSON", detail=str(error)) from error


def record_decoder(key: Deserializer | None, value: Deserializer | None) -> DecodeRecord | None:
    """A function that puts values in place of a record's bytes; None if there is nothing
    to do. What it raises says which record it was."""
    if key is None and value is None:
        return None
    decode_key = None if key is None else _decoder(key, "key")
    decode_value = None if value is None else _decoder(value, "value")

    def decode(record: LogRecord) -> LogRecord:
        part = "key"
        try:
            new_key = record.key if decode_key is None else decode_key(record.topic, record.key)
            part = "value"
            new_value = (
                record.value if decode_value is None else decode_value(record.topic, record.value)
            )
        except DeserializationError as error:
            raise _placed(record, part, error) from error
        except ClientError:
            raise  # the registry, not the record: trying again may help
        except Exception as error:  # a program's own function may raise anything
            raise _placed(record, part, error) from error
        return record._replace(key=new_key, value=new_value)

    return decode


def _decoder(deserializer: Deserializer, part: Part) -> Decode:
    if callable(deserializer):
        simple: Callable[[bytes | None], Any] = deserializer
        return lambda topic, data: simple(data)
    deserialize = deserializer.deserialize
    return lambda topic, data: deserialize(topic, part, data)


def _placed(record: LogRecord, part: str, cause: Exception) -> DeserializationError:
    what = str(cause) or type(cause).__name__
    if isinstance(cause, DeserializationError):
        what = f"{cause.message}; {cause.detail}" if cause.detail else cause.message
    error = DeserializationError(
        f"the {part} of {record.topic}/{record.partition} at offset {record.offset} cannot be read",
        detail=what,
        hint=f'consumer.seek("{record.topic}", {record.partition}, {record.offset + 1}) '
        "goes on behind it",
    )
    error.record = record
    return error
