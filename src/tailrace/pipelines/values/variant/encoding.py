"""The Variant encoding: a dictionary of keys, then the value, as in Parquet and in Spark.

A variant is kept as one run of bytes, metadata first (it says itself where it ends):

    metadata   header: version 1, width of offsets; number of keys; offsets; the keys' UTF-8
    value      header: basic type (2 bits) and type info (6 bits); content
      scalar       0: null, truth, numbers, dates, times, bytes, long texts
      short text   1: type info is its length
      object       2: size, ids of its keys in the order of the keys, offsets, values
      array        3: size, offsets, values

Keys have ids in the order in which they are met, and are ordered by UTF-16 as in Java. Out of
this module a variant is a *node*: a dict, a list, or a scalar. Scalars that are read are the
bytes they are written in; None, truth values and texts may stand for theirs.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import TypeAlias, TypeVar

import pyarrow as pa

from tailrace.pipelines.values.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)

Node: TypeAlias = "bool | str | bytes | list[Node] | dict[str, Node] | None"
Result = TypeVar("Result")

DEPTH_LIMIT = 1000
_FRAMES = 6 * DEPTH_LIMIT
_SCALAR, _SHORT, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE = 0, 1, 2
_INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}  # type -> bytes
_DOUBLE, _DATE, _TIMESTAMP, _TIMESTAMP_NTZ, _FLOAT, _BINARY, _LONG = 7, 11, 12, 13, 14, 15, 16
_DECIMALS = {8: 4, 9: 8, 10: 16}
_FIXED = {_NULL: 0, _TRUE: 0, _FALSE: 0, _DOUBLE: 8, _DATE: 4, _TIMESTAMP: 8, _TIMESTAMP_NTZ: 8,
          _FLOAT: 4, **_INTEGERS, **{kind: 1 + size for kind, size in _DECIMALS.items()}}  # fmt: skip
VARIANT_NULL = bytes((_NULL,))


def deep(function: Callable[..., Result]) -> Callable[..., Result]:
    """A function that goes down a document: with more room if there is not enough."""

    @functools.wraps(function)
    def called(*arguments: object) -> Result:
        try:
            return function(*arguments)
        except RecursionError:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + _FRAMES)
            try:
                return function(*arguments)
            except RecursionError as error:
                raise ValueError(f"nested deeper than {DEPTH_LIMIT}") from error
            finally:
                sys.setrecursionlimit(limit)

    return called


# Writing ------------------------------------------------------------------------------------------


def _scalar(kind: int, content: bytes = b"") -> bytes:
    return bytes((kind << 2 | _SCALAR,)) + content


def of_integer(value: int) -> bytes:
    """A whole number that fits a BIGINT, in as few bytes as it needs."""
    for kind, size in _INTEGERS.items():
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
            return _scalar(kind, value.to_bytes(size, "little", signed=True))
    raise OverflowError(value)


def of_decimal(unscaled: int, scale: int) -> bytes:
    digits = max(len(str(abs(unscaled))), scale)
    for (kind, size), most in zip(_DECIMALS.items(), (9, 18, 38), strict=True):
        if digits <= most:
            content = unscaled.to_bytes(size, "little", signed=True)
            return _scalar(kind, bytes((scale,)) + content)
    raise OverflowError(unscaled)


def of_double(value: float) -> bytes:
    return _scalar(_DOUBLE, struct.pack("<d", value))


def of_float(value: float) -> bytes:
    return _scalar(_FLOAT, struct.pack("<f", value))


def of_boolean(value: bool) -> bytes:
    return _scalar(_TRUE if value else _FALSE)


def of_text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 64:
        return bytes((len(data) << 2 | _SHORT,)) + data
    return _scalar(_LONG, len(data).to_bytes(4, "little") + data)


def of_bytes(data: bytes) -> bytes:
    return _scalar(_BINARY, len(data).to_bytes(4, "little") + data)


def of_date(days: int) -> bytes:
    return _scalar(_DATE, days.to_bytes(4, "little", signed=True))


def of_timestamp(micros: int) -> bytes:
    return _scalar(_TIMESTAMP, micros.to_bytes(8, "little", signed=True))


def of_timestamp_ntz(micros: int) -> bytes:
    return _scalar(_TIMESTAMP_NTZ, micros.to_bytes(8, "little", signed=True))


def utf16(key: str) -> bytes:
    """What orders keys: their UTF-16, as Java compares texts."""
    return key.encode("utf-16-be", "surrogatepass")


@deep
def encode(node: Node) -> bytes:
    """The variant of a node; ValueError when it is nested too deeply."""
    ids: dict[str, int] = {}
    value = _value(node, ids, 0)
    keys = [key.encode() for key in ids]
    width = _width(max(sum(map(len, keys)), len(keys)))
    parts = [bytes((1 | width - 1 << 6,)), len(keys).to_bytes(width, "little")]
    parts.append(_offsets(keys, width))
    return b"".join((*parts, *keys, value))


def _value(node: Node, ids: dict[str, int], depth: int) -> bytes:
    match node:
        case bytes():
            return node
        case str():
            return of_text(node)
        case None:
            return VARIANT_NULL
        case bool():
            return of_boolean(node)
    if depth >= DEPTH_LIMIT:
        raise ValueError(f"nested deeper than {DEPTH_LIMIT}")
    large = len(node) > 255
    size = len(node).to_bytes(4 if large else 1, "little")
    if isinstance(node, list):
        values = [_value(part, ids, depth + 1) for part in node]
        width = _width(sum(map(len, values)))
        header = bytes((large << 4 | width - 1 << 2 | _ARRAY,))
        return b"".join((header, size, _offsets(values, width), *values))
    fields: list[tuple[bytes, int, int]] = []
    values, at = [], 0
    for key, part in node.items():
        number = ids.setdefault(key, len(ids))
        values.append(_value(part, ids, depth + 1))
        fields.append((utf16(key), number, at))
        at += len(values[-1])
    fields.sort()
    width = _width(at)
    id_width = _width(max((number for _, number, _ in fields), default=0))
    header = bytes((large << 6 | id_width - 1 << 4 | width - 1 << 2 | _OBJECT,))
    numbers = [number.to_bytes(id_width, "little") for _, number, _ in fields]
    places = [place.to_bytes(width, "little") for *_, place in (*fields, (b"", 0, at))]
    return b"".join((header, size, *numbers, *places, *values))


def _width(most: int) -> int:
    return 1 if most < 1 << 8 else 2 if most < 1 << 16 else 3


def _offsets(parts: list[bytes], width: int) -> bytes:
    places, at = [bytes(width)], 0
    for part in parts:
        at += len(part)
        places.append(at.to_bytes(width, "little"))
    return b"".join(places)


# Reading ------------------------------------------------------------------------------------------


def _numbers(data: bytes, at: int, width: int, count: int) -> list[int]:
    if at + width * count > len(data):
        raise ValueError("the variant is cut short")
    return [
        int.from_bytes(data[place : place + width], "little")
        for place in range(at, at + width * count, width)
    ]


def metadata(data: bytes) -> tuple[list[str], int]:
    """The keys of a variant, and where its value begins."""
    if not data or data[0] & 15 != 1:
        raise ValueError("not a variant of version 1")
    width = (data[0] >> 6) + 1
    count = _numbers(data, 1, width, 1)[0]
    places = _numbers(data, 1 + width, width, count + 1)
    first = 1 + width * (count + 2)
    end = first + places[-1]
    if places != sorted(places) or end > len(data):
        raise ValueError("the keys of the variant are cut short")
    keys = [data[first + a : first + b].decode() for a, b in pairwise(places)]
    return keys, end


@deep
def decode(data: bytes) -> Node:
    """The node of a variant; ValueError when it is malformed."""
    keys, at = metadata(data)
    node, end = _read(data, at, keys)
    if end != len(data):
        raise ValueError("something follows the value of the variant")
    return node


def _container(
    data: bytes, at: int, keys: list[str]
) -> tuple[list[str] | None, list[int], int] | None:
    """Names (of an object), places of the values, and the end; None for a scalar."""
    basic, info = data[at] & 3, data[at] >> 2
    if basic not in (_OBJECT, _ARRAY):
        return None
    is_object = basic == _OBJECT
    large = info >> 4 & 1 if is_object else info >> 2 & 1
    width, id_width = (info & 3) + 1, (info >> 2 & 3) + 1
    size_width = 4 if large else 1
    count = _numbers(data, at + 1, size_width, 1)[0]
    at += 1 + size_width
    names = None
    if is_object:
        names = [keys[number] for number in _numbers(data, at, id_width, count)]
        at += id_width * count
    places = _numbers(data, at, width, count + 1)
    at += width * (count + 1)
    return names, [at + place for place in places[:-1]], at + places[-1]


def _read(data: bytes, at: int, keys: list[str]) -> tuple[Node, int]:
    if at >= len(data):
        raise ValueError("the variant is cut short")
    found = _container(data, at, keys)
    if found is None:
        end = _scalar_end(data, at)
        return data[at:end], end
    names, places, end = found
    if end > len(data):
        raise ValueError("the variant is cut short")
    values = [_read(data, place, keys)[0] for place in places]
    if names is None:
        return values, end
    if len(set(names)) != len(names) or names != sorted(names, key=utf16):
        raise ValueError("the keys of an object are out of order")
    return dict(zip(names, values, strict=True)), end


def _scalar_end(data: bytes, at: int) -> int:
    basic, info = data[at] & 3, data[at] >> 2
    if basic == _SHORT:
        end = at + 1 + info
    elif info in (_BINARY, _LONG):
        end = at + 5 + _numbers(data, at + 1, 4, 1)[0]
    elif info in _FIXED:
        end = at + 1 + _FIXED[info]
    else:
        raise ValueError(f"type {info} of a variant is not known")
    if end > len(data):
        raise ValueError("the variant is cut short")
    return end


def children(data: bytes) -> list[tuple[str | None, bytes]] | None:
    """Keys (None in an array) and values of a container, each with all the keys that the
    whole has, as Spark leaves them; None for a scalar."""
    keys, at = metadata(data)
    found = _container(data, at, keys)
    if found is None:
        return None
    names, places, _ = found
    head = data[:at]
    ends = [_read(data, place, keys)[1] for place in places]
    values = [head + data[a:b] for a, b in zip(places, ends, strict=True)]
    shown: list[str | None] = [None] * len(values) if names is None else [*names]
    return list(zip(shown, values, strict=True))


def scalar(node: Node) -> tuple[pa.DataType, object]:
    """A scalar's type and its physical value; decimals without zeros at their end."""
    match node:
        case None:
            return NULL, None
        case bool():
            return BOOLEAN, node
        case str():
            return STRING, node
        case list() | dict():
            raise TypeError("not a scalar")
    basic, kind = node[0] & 3, node[0] >> 2
    content = node[1:]
    if basic == _SHORT:
        return STRING, content.decode()
    if kind in _INTEGERS:
        return BIGINT, int.from_bytes(content, "little", signed=True)
    if kind in _DECIMALS:
        return _decimal(int.from_bytes(content[1:], "little", signed=True), content[0])
    match kind:
        case 0:
            return NULL, None
        case 1 | 2:
            return BOOLEAN, kind == _TRUE
        case 7:
            return DOUBLE, struct.unpack("<d", content)[0]
        case 14:
            return FLOAT, struct.unpack("<f", content)[0]
        case 11:
            return DATE, int.from_bytes(content, "little", signed=True)
        case 12 | 13:
            micros = int.from_bytes(content, "little", signed=True)
            return (TIMESTAMP if kind == _TIMESTAMP else TIMESTAMP_NTZ), micros
        case 15:
            return BINARY, content[4:]
    return STRING, content[4:].decode()


def _decimal(unscaled: int, scale: int) -> tuple[pa.DataType, int]:
    while scale and unscaled % 10 == 0:
        unscaled //= 10
        scale -= 1
    return pa.decimal128(max(len(str(abs(unscaled))), scale), scale), unscaled


def decimal_of(text: str) -> bytes | None:
    """The decimal of a number written without exponent, if 38 digits hold it."""
    sign, digits, exponent = Decimal(text).as_tuple()
    scale = -int(exponent)
    unscaled = int("".join(map(str, digits)))
    if scale < 0 or scale > 38 or len(str(unscaled)) > 38:
        return None
    return of_decimal(-unscaled if sign else unscaled, scale)
