"""What an operator is, as bytes: the name of its state for as long as the state lives.

The encoding follows the structure, never a text made for people: descriptions, SQL and `repr`
may change at will. Every part is a tag and, where its length is not fixed, its length, so two
structures have the same bytes only if they are equal.

    N  None                            i  int: length, big-endian two's complement
    T F  bool                          f  float: 8 bytes; every NaN is one, -0.0 is not 0.0
    s  str: length, UTF-8              d  decimal: sign, exponent, digits
    b  bytes: length, bytes            t  tuple: count, parts (l: list, m: mapping, in its order)
    D  dataclass: its name, count, then name and value of each field that differs from its default
    y  Arrow type: its name and what makes it one (unit, zone, precision …); a struct as a schema
    S  Arrow schema: count, then name, type and nullability of each column; no metadata
    a e u z I  date, moment, time of day, duration, interval: see `_PLAIN`

A dataclass needs no code here: all its fields count, so that none can be forgotten. One that is
deliberately no part of the identity says so and why, `field(metadata=not_identity("…"))`. A field
that is added later with a default that means "as before" leaves the names that exist as they
are; a default must never change (`identity_fields.txt` of the tests holds them). What the bytes
cannot show is counted by hand: the form of an operator's state (`Operator`), and `meaning`, a
number that goes up when a function gives other answers than before.

A value without a canonical form is a TypeError when a view is compiled, never a guess.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import hashlib
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from tailrace.pipelines.values.left_out import LEFT_OUT
from tailrace.pipelines.values.left_out import not_identity as not_identity

VERSION = 1  # of the encoding; another one names every operator anew
_DIGEST_BYTES = 16
_NAN = b"\x7f\xf8\0\0\0\0\0\0"

_SIMPLE: dict[pa.DataType, str] = {
    pa.null(): "null", pa.bool_(): "bool", pa.int8(): "int8", pa.int16(): "int16",
    pa.int32(): "int32", pa.int64(): "int64", pa.uint8(): "uint8", pa.uint16(): "uint16",
    pa.uint32(): "uint32", pa.uint64(): "uint64", pa.float16(): "float16",
    pa.float32(): "float32", pa.float64(): "float64", pa.string(): "string",
    pa.large_string(): "large_string", pa.binary(): "binary", pa.large_binary(): "large_binary",
    pa.date32(): "date32", pa.date64(): "date64",
    pa.month_day_nano_interval(): "month_day_nano_interval",
}  # fmt: skip


def identify(*parts: object) -> str:
    """The name of what these parts make up, in hexadecimal."""
    return hashlib.blake2b(encode((VERSION, *parts)), digest_size=_DIGEST_BYTES).hexdigest()


def encode(value: object) -> bytes:
    """The canonical bytes of a structure; TypeError for what has none."""
    out = bytearray()
    _write(out, value)
    return bytes(out)


def _write(out: bytearray, value: object) -> None:
    kind = type(value)
    plain = _PLAIN.get(kind)
    if plain is not None:
        plain(out, value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _write_dataclass(out, value)
    elif isinstance(value, pa.DataType):
        _write_type(out, value)
    elif isinstance(value, pa.Schema):
        _write_count(out, b"S", len(value))
        for column in value:
            _write_field(out, column)
    elif isinstance(value, Mapping):
        _write_count(out, b"m", len(value))
        for key, item in value.items():
            _write(out, key)
            _write(out, item)
    else:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} has no canonical form")


def _write_dataclass(out: bytearray, value: Any) -> None:
    parts: list[tuple[str, bytes]] = []
    for name, default in identity_fields(value.__class__):
        written = encode(getattr(value, name))
        if written != default:
            parts.append((name, written))
    meaning = getattr(value, "meaning", 1)
    if meaning != 1:
        parts.append(("meaning()", encode(meaning)))
    _write_bytes(out, b"D", type(value).__name__.encode())
    out += struct.pack(">I", len(parts))
    for name, written in parts:
        _write_bytes(out, b"s", name.encode())
        out += written


@cache
def identity_fields(kind: type) -> tuple[tuple[str, bytes | None], ...]:
    """The fields of a dataclass that are part of its identity, by name, each with the bytes of
    its default (None: it has none)."""
    found: list[tuple[str, bytes | None]] = []
    for one in sorted(dataclasses.fields(kind), key=lambda one: one.name):
        if LEFT_OUT in one.metadata:
            continue
        default = None
        if one.default is not dataclasses.MISSING:
            default = encode(one.default)
        elif one.default_factory is not dataclasses.MISSING:
            default = encode(one.default_factory())
        found.append((one.name, default))
    return tuple(found)


def _write_type(out: bytearray, kind: pa.DataType) -> None:
    match kind:
        case _ if kind in _SIMPLE:
            parts: tuple[object, ...] = (_SIMPLE[kind],)
        case _ if pa.types.is_decimal(kind):
            parts = ("decimal", kind.bit_width, kind.precision, kind.scale)
        case _ if pa.types.is_timestamp(kind):
            parts = ("timestamp", kind.unit, kind.tz)
        case _ if pa.types.is_time(kind):
            parts = ("time", kind.unit)
        case _ if pa.types.is_duration(kind):
            parts = ("duration", kind.unit)
        case _ if pa.types.is_map(kind):
            parts = ("map", kind.key_type, kind.item_type, kind.item_field.nullable)
        case _ if pa.types.is_list(kind):
            # What Arrow calls the elements depends on who made the type; nothing shows it.
            parts = ("list", kind.value_type, kind.value_field.nullable)
        case _ if pa.types.is_struct(kind):
            out += b"y"
            _write_count(out, b"S", len(kind.fields))
            for part in kind.fields:
                _write_field(out, part)
            return
        case _:
            raise TypeError(f"the type {kind} has no canonical form")
    out += b"y"
    _write(out, parts)


def _write_field(out: bytearray, column: pa.Field) -> None:
    _write(out, column.name)
    _write_type(out, column.type)
    _write(out, column.nullable)


def _write_count(out: bytearray, tag: bytes, count: int) -> None:
    out += tag + struct.pack(">I", count)


def _write_bytes(out: bytearray, tag: bytes, data: bytes) -> None:
    out += tag + struct.pack(">I", len(data))
    out += data


def _write_int(out: bytearray, value: int) -> None:
    _write_bytes(out, b"i", value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _write_float(out: bytearray, value: float) -> None:
    out += b"f" + (struct.pack(">d", value) if value == value else _NAN)


def _write_decimal(out: bytearray, value: decimal.Decimal) -> None:
    sign, digits, exponent = value.as_tuple()  # the exponent of infinity and NaN is a letter
    out += b"d"
    _write(out, (sign, exponent, "".join(map(str, digits))))


def _write_parts(tag: bytes) -> Callable[[bytearray, Any], None]:
    def write(out: bytearray, value: Any) -> None:
        _write_count(out, tag, len(value))
        for part in value:
            _write(out, part)

    return write


def _write_moment(out: bytearray, value: datetime.datetime) -> None:
    offset = value.utcoffset()
    naive = value.replace(tzinfo=None, fold=0)
    out += b"e"
    _write(out, (naive.toordinal(), naive.hour, naive.minute, naive.second, naive.microsecond))
    _write(out, None if offset is None else offset)


def _write_time(out: bytearray, value: datetime.time) -> None:
    if value.tzinfo is not None:
        raise TypeError("a time of day with a zone has no canonical form")
    out += b"u"
    _write(out, (value.hour, value.minute, value.second, value.microsecond))


def _tagged(tag: bytes, parts: Callable[[Any], tuple[object, ...]]) -> Callable[..., None]:
    def write(out: bytearray, value: Any) -> None:
        out += tag
        _write(out, parts(value))

    return write


_PLAIN: dict[type, Callable[[bytearray, Any], None]] = {
    type(None): lambda out, value: out.extend(b"N"),
    bool: lambda out, value: out.extend(b"T" if value else b"F"),
    int: _write_int,
    float: _write_float,
    str: lambda out, value: _write_bytes(out, b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda out, value: _write_bytes(out, b"b", value),
    decimal.Decimal: _write_decimal,
    tuple: _write_parts(b"t"),
    list: _write_parts(b"l"),
    datetime.date: _tagged(b"a", lambda value: (value.toordinal(),)),
    datetime.datetime: _write_moment,
    datetime.time: _write_time,
    datetime.timedelta: _tagged(b"z", lambda v: (v.days, v.seconds, v.microseconds)),
    pa.MonthDayNano: _tagged(b"I", lambda value: tuple(value)),
}
