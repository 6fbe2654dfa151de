"""What every generated message shares, and the primitives its codec calls.

A message is a plain class with `__slots__`, made by the generator rather than by
`dataclass`: building a dataclass executes code at import, half a millisecond each,
and a broker must answer 40 ms after it was started. Equality and representation are
those of a dataclass.

Text is UTF-8. A uuid is its 16 bytes (`ZERO_UUID`: none); `uuid_text` gives Kafka's
form. `records` are slices of the frame, never copies.
"""

from __future__ import annotations

import base64
from typing import Any, ClassVar

from tailrace.wire.errors import DecodeError

ZERO_UUID = bytes(16)

ELEMENTS_LIMIT = 100_000
"""Most elements of all arrays of one request: a megabyte of empty ones is a second of work."""
TOO_MANY_ELEMENTS = f"more than {ELEMENTS_LIMIT} elements"
TAGS_LIMIT = 1000

# The default of arguments whose real default is a new list or a new struct.
NEW: Any = type("New", (), {"__repr__": lambda self: "NEW", "__slots__": ()})()


class Message:
    """A request, a response or a struct inside one."""

    __slots__: ClassVar[tuple[str, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


def uuid_text(uuid: bytes) -> str:
    """Kafka's text form: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def fail(what: str) -> DecodeError:
    return DecodeError(f"malformed frame: {what}")


def read_long_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of several bytes that starts at `position`, and where it ends."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise fail("varint longer than five bytes")
    if value > 0xFFFFFFFF:
        raise fail("varint larger than 32 bits")
    return value, position


def read_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends."""
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    return read_long_varint(buffer, position)


def skip_tags(buffer: memoryview, position: int) -> int:
    """Where a section of tagged fields ends, none of them known."""
    count, position = read_varint(buffer, position)
    end = len(buffer)
    if count * 2 > end - position:
        raise fail("more tagged fields than bytes")
    if count > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(count):
        _, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        position += size
        if position > end:
            raise fail("tagged field past the end")
    return position


def write_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_compact_string(out: bytearray, text: str) -> None:
    data = text.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        write_varint(out, size)
    out += data


def write_compact_nullable_string(out: bytearray, text: str | None) -> None:
    if text is None:
        out.append(0)
    else:
        write_compact_string(out, text)


def write_string(out: bytearray, text: str) -> None:
    data = text.encode()
    out += len(data).to_bytes(2, "big", signed=True)
    out += data


def write_nullable_string(out: bytearray, text: str | None) -> None:
    if text is None:
        out += b"\xff\xff"
    else:
        write_string(out, text)


def write_compact_bytes(out: bytearray, data: bytes | memoryview | None) -> None:
    """Also for null."""
    if data is None:
        out.append(0)
    else:
        write_varint(out, len(data) + 1)
        out += data


def write_bytes(out: bytearray, data: bytes | memoryview | None) -> None:
    """Also for null."""
    if data is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += len(data).to_bytes(4, "big", signed=True)
        out += data
