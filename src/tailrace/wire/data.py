"""Messages that are no requests: group subscriptions, and what coordinators keep in topics.

Their modules (`messages.consumer_protocol`, `messages.group_records`,
`messages.transaction_records`) hold one pair of tables per message; these functions
read and write through such a table. In `__consumer_offsets`, `__transaction_state`
and subscriptions the bytes start with the version (in a record's key: the kind of the
record) as a 16-bit number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tailrace.wire.errors import DecodeError, UnsupportedVersionError
from tailrace.wire.message import Message

M = TypeVar("M", bound=Message)


def decode_data(
    table: Mapping[int, Callable[[memoryview, int], M]],
    version: int,
    data: bytes | bytearray | memoryview,
    position: int = 0,
) -> M:
    """The message at `position`. Raises DecodeError, UnsupportedVersionError."""
    decode = table.get(version)
    if decode is None:
        raise UnsupportedVersionError(f"no such message in version {version}")
    try:
        return decode(memoryview(data), position)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise DecodeError(f"malformed data in version {version}: {error}") from error


def decode_versioned(
    table: Mapping[int, Callable[[memoryview, int], M]], data: bytes | bytearray | memoryview
) -> tuple[int, M]:
    """The leading version, and the message behind it."""
    version = leading_version(data)
    return version, decode_data(table, version, data, 2)


def leading_version(data: bytes | bytearray | memoryview) -> int:
    """The 16-bit number in front: a version, or in a key the kind of record."""
    if len(data) < 2:
        raise DecodeError("malformed data: no version")
    return int.from_bytes(data[:2], "big", signed=True)


def encode_data(
    table: Mapping[int, Callable[[Any, bytearray], None]], version: int, message: Message
) -> bytes:
    """The message alone."""
    out = bytearray()
    table[version](message, out)
    return bytes(out)


def encode_versioned(
    table: Mapping[int, Callable[[Any, bytearray], None]],
    version: int,
    message: Message,
    leading: int | None = None,
) -> bytes:
    """The message behind its version, or behind the number `leading` (the kind of a key)."""
    out = bytearray((version if leading is None else leading).to_bytes(2, "big", signed=True))
    table[version](message, out)
    return bytes(out)
