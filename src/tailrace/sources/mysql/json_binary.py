"""MySQL's binary JSON, as values that `orjson` writes."""

from __future__ import annotations

import struct
from typing import Any

import orjson

from tailrace.sources.errors import ReplicationProtocolError
from tailrace.sources.mysql import values

DEEPEST = 110  # the server allows 100
_LITERALS = {0: None, 1: True, 2: False}
_INLINE = {4, 5, 6}


def read_json(data: bytes) -> Any:
    """One document; an empty one is what the server stores for NULL in a NOT NULL column."""
    if not data:
        return None
    try:
        return _value(data, data[0], 1, 0, [len(data) + 8])
    except (IndexError, struct.error, UnicodeDecodeError, KeyError) as error:
        raise ReplicationProtocolError("a JSON value cannot be read", detail=str(error)) from error


def _value(data: bytes, kind: int, at: int, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > DEEPEST or budget[0] < 0:  # entries may point at each other: never more than bytes
        raise ReplicationProtocolError("a JSON value is nested without end")
    match kind:
        case 0 | 1 | 2 | 3:
            return _container(data, at, depth, budget, large=bool(kind & 1), is_object=kind < 2)
        case 4:
            return _LITERALS[data[at]]
        case 5:
            return struct.unpack_from("<h", data, at)[0]
        case 6:
            return struct.unpack_from("<H", data, at)[0]
        case 7:
            return struct.unpack_from("<i", data, at)[0]
        case 8:
            return struct.unpack_from("<I", data, at)[0]
        case 9:
            return struct.unpack_from("<q", data, at)[0]
        case 10:
            return struct.unpack_from("<Q", data, at)[0]
        case 11:
            return struct.unpack_from("<d", data, at)[0]
        case 12:
            length, at = _length(data, at)
            return data[at : at + length].decode()
        case 15:
            length, at_value = _length(data, at + 1)
            return _opaque(data[at], data[at_value : at_value + length])
    raise ReplicationProtocolError("a JSON value has an unknown type", detail=f"Type {kind}.")


def _length(data: bytes, at: int) -> tuple[int, int]:
    length = 0
    for number in range(5):
        byte = data[at + number]
        length |= (byte & 0x7F) << 7 * number
        if not byte & 0x80:
            return length, at + number + 1
    raise ReplicationProtocolError("a JSON value has a length without end")


def _container(
    data: bytes, start: int, depth: int, budget: list[int], *, large: bool, is_object: bool
) -> Any:
    size, code = (4, "<I") if large else (2, "<H")
    (count,) = struct.unpack_from(code, data, start)
    at = start + 2 * size
    if count * (1 + size) > len(data):
        raise ReplicationProtocolError("a JSON value has more entries than bytes")
    names = []
    if is_object:
        for _ in range(count):
            (offset,) = struct.unpack_from(code, data, at)
            (length,) = struct.unpack_from("<H", data, at + size)
            names.append(data[start + offset : start + offset + length].decode())
            at += size + 2
    found = []
    for _ in range(count):
        kind = data[at]
        if kind in _INLINE or (large and kind in (7, 8)):
            where = at + 1
        else:
            (offset,) = struct.unpack_from(code, data, at + 1)
            where = start + offset
        found.append(_value(data, kind, where, depth + 1, budget))
        at += 1 + size
    return dict(zip(names, found, strict=True)) if is_object else found


def _opaque(kind: int, raw: bytes) -> Any:
    """Values of MySQL's types inside JSON, as `SELECT` shows them."""
    if kind == 246:
        return orjson.Fragment(values.decimal(raw[2:], raw[0], raw[1]))
    if kind in (7, 10, 12, 11):
        packed = int.from_bytes(raw, "little", signed=True)
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        micros, whole = packed & 0xFFFFFF, packed >> 24
        if kind == 11:
            clock = f"{whole >> 12 & 0x3FF:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
            return f"{sign}{clock}.{micros:06d}"
        months, day = whole >> 22, whole >> 17 & 31
        text = f"{months // 13:04d}-{months % 13:02d}-{day:02d}"
        if kind == 10:
            return text
        return f"{text} {whole >> 12 & 31:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}.{micros:06d}"
    return f"base64:type{kind}:{values.base64_text(raw)}"
