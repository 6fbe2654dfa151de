"""Keys as bytes whose order is the order of the values.

Every part begins with a marker: 0 for NULL (which sorts first), 1 for a value. All integers
take 8 bytes, so that a widened column keeps its state; -0.0 is 0.0 and there is one NaN,
above all numbers; strings end with 00 00 and escape 00 as 00 FF; each element of a list
follows a 01, and a 00 ends it. No key is a prefix of another. Descending parts are the complement of their bytes.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from tailrace.pipelines.values.rows import encode_row, physical, thaw_part, whole_numbers
from tailrace.pipelines.values.types import is_decimal

_U64 = struct.Struct(">Q").pack
_F64 = struct.Struct(">d").pack
_SIGN = 1 << 63
_WIDE_SIGN = 1 << 127
_FLIP = bytes(255 - byte for byte in range(256))
_NAN_KEY = b"\x01\xff\xff\xff\xff\xff\xff\xff\xff"
KEY_LIMIT = 400
NESTED_FORM = 2  # of arrays, and of floats inside of structs; before: a row's bytes, two zeros
_MANY = 17  # values; fewer are faster one by one


def encode_part(value: object, kind: pa.DataType) -> bytes:
    """One physical value as key bytes."""
    return b"\x00" if value is None else _encoder(kind)(value)


def encode_column(values: Sequence[object], kind: pa.DataType) -> list[bytes]:
    if _are_integers(values, kind):
        return _encode_integers(np.array(values, "i8"))
    encode = _encoder(kind)
    return [b"\x00" if value is None else encode(value) for value in values]


def _are_integers(values: Sequence[object], kind: pa.DataType) -> bool:
    """Whether values can be encoded all at once, and it pays."""
    return len(values) >= _MANY and _encoder(kind) is _encode_integer and None not in values


def _encoder(kind: pa.DataType) -> Callable[[object], bytes]:
    if pa.types.is_string(kind):
        return cast("Callable[[object], bytes]", _encode_string)
    if pa.types.is_floating(kind):
        return cast("Callable[[object], bytes]", _encode_float)
    if pa.types.is_boolean(kind):
        return lambda value: b"\x01\x01" if value else b"\x01\x00"
    if is_decimal(kind) and kind.precision > 18:
        return cast("Callable[[object], bytes]", _encode_wide)
    if is_decimal(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return cast("Callable[[object], bytes]", _encode_integer)
    if pa.types.is_binary(kind):
        return cast("Callable[[object], bytes]", _encode_bytes)
    if pa.types.is_struct(kind):
        return _struct_encoder(kind)
    if pa.types.is_list(kind):
        return _list_encoder(kind.value_type)
    return lambda value: _encode_bytes(encode_row((value,)))


def _struct_encoder(kind: pa.DataType) -> Callable[[object], bytes]:
    """Field by field, as Spark compares structs."""
    kinds = [field.type for field in kind]

    def encode(value: object) -> bytes:
        parts = cast("tuple[tuple[str, object], ...]", value)[1:]
        return b"\x01" + b"".join(
            encode_part(thaw_part(part, kind), kind)
            for (_, part), kind in zip(parts, kinds, strict=True)
        )

    return encode


def _list_encoder(kind: pa.DataType) -> Callable[[object], bytes]:
    """Element by element, a shorter list before those it begins, as Spark compares arrays."""

    def encode(value: object) -> bytes:
        parts = cast("tuple[object, ...]", value)
        elements = [b"\x01" + encode_part(thaw_part(part, kind), kind) for part in parts]
        return b"\x01" + b"".join(elements) + b"\x00"

    return encode


def _encode_integer(value: int) -> bytes:
    return b"\x01" + _U64(value + _SIGN)


def _encode_integers(*columns: np.ndarray, descending: Sequence[bool] = (False,)) -> list[bytes]:
    """`_encode_integer` of each, those of a row joined; the complement where `descending`."""
    width = 9 * len(columns)
    data = np.empty((len(columns[0]), width), dtype="u1")
    for at, numbers, flipped in zip(range(0, width, 9), columns, descending, strict=True):
        part = data[:, at : at + 9]
        part[:, 0] = 1
        ordered = (numbers ^ np.int64(-(1 << 63))).astype(">i8")
        part[:, 1:] = ordered.view("u1").reshape(-1, 8)
        if flipped:
            part ^= 255
    joined = data.tobytes()
    return [joined[at : at + width] for at in range(0, len(joined), width)]


def _encode_wide(value: int) -> bytes:
    return b"\x01" + (value + _WIDE_SIGN).to_bytes(16, "big")


def _encode_string(value: str) -> bytes:
    return _encode_bytes(value.encode())


def _encode_bytes(value: bytes) -> bytes:
    if b"\x00" in value:
        value = value.replace(b"\x00", b"\x00\xff")
    return b"\x01" + value + b"\x00\x00"


def _encode_float(value: float) -> bytes:
    if value != value:
        return _NAN_KEY
    packed = _F64(value + 0.0)  # -0.0 + 0.0 is 0.0
    if packed[0] & 0x80:
        return b"\x01" + packed.translate(_FLIP)
    return b"\x01" + bytes((packed[0] | 0x80,)) + packed[1:]


def key_values(column: pa.ChunkedArray) -> list[object]:
    """The physical values of a column as a key shows them: they have one zero."""
    values = physical(column)
    if pa.types.is_floating(column.type):
        return [None if value is None else cast(float, value) + 0.0 for value in values]
    return [one_zero(value) for value in values] if pa.types.is_nested(column.type) else values


def one_zero(value: object) -> object:
    """A physical value with 0.0 for every -0.0 in it."""
    if isinstance(value, float):
        return value + 0.0
    return tuple(map(one_zero, value)) if isinstance(value, tuple) else value


def zero_signs(value: object) -> bytes:
    """A byte for every floating zero in a physical value, those of negative ones first in order.
    Behind the bytes of a key they tell values apart that are equal but for signs."""
    if isinstance(value, float):
        return b"" if value else b"\x00" if math.copysign(1, value) < 0 else b"\x01"
    return b"".join(map(zero_signs, value)) if isinstance(value, tuple) else b""


def holds_float(kind: pa.DataType) -> bool:
    """Whether values of a type are floats or hold some."""
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return bool(pa.types.is_floating(kind)) or any(map(holds_float, inner))


def form_of(kind: pa.DataType) -> int:
    """The form of a type's key bytes; 1 where it never changed."""
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    changed = pa.types.is_list(kind) or any(map(pa.types.is_floating, inner))
    return NESTED_FORM if changed or any(form_of(one) > 1 for one in inner) else 1


def encode_keys(table: pa.Table, names: Sequence[str]) -> list[bytes]:
    """The key bytes of every row."""
    parts = [_encode_table_column(table.column(name)) for name in names]
    if not parts:
        return [b"\x02"] * table.num_rows
    if len(parts) == 1:
        return [key if len(key) <= KEY_LIMIT else bounded(key) for key in parts[0]]
    return [
        key if len(key) <= KEY_LIMIT else bounded(key)
        for key in map(b"".join, zip(*parts))  # noqa: B905
    ]


def _encode_table_column(column: pa.ChunkedArray) -> list[bytes]:
    """Key bytes of a column; numbers and times without NULL all at once, texts that repeat
    once each."""
    kind = column.type
    if pa.types.is_string(kind) and len(column) >= _MANY:
        encoded = column.combine_chunks().dictionary_encode()
        if not column.null_count and 2 * len(encoded.dictionary) <= len(column):
            texts = encode_column(encoded.dictionary.to_pylist(), kind)
            return [texts[index] for index in encoded.indices.to_numpy().tolist()]
    if not column.null_count and len(column) >= _MANY:
        numbers = whole_numbers(column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column)
        if numbers is not None:
            return _encode_integers(numbers)
    return encode_column(physical(column), column.type)


def decodable(kinds: Iterable[pa.DataType]) -> bool:
    """Whether `decode_key` can read keys of such parts."""
    return all(
        pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind) or is_decimal(kind) or pa.types.is_integer(kind)
        or pa.types.is_date32(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind)
        for kind in kinds
    )  # fmt: skip


def decode_key(key: bytes, kinds: Iterable[pa.DataType]) -> tuple[object, ...] | None:
    """The physical values of a key that `encode_keys` has made; None if it was cut short."""
    if len(key) >= KEY_LIMIT:
        return None  # perhaps: a whole one of just that length looks the same
    values: list[object] = []
    at = 0
    for kind in kinds:
        at += 1
        if key[at - 1] == 0:
            values.append(None)
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            end = at
            while key[end : end + 2] != b"\x00\x00":
                end += 2 if key[end] == 0 else 1
            data = key[at:end].replace(b"\x00\xff", b"\x00")
            values.append(data.decode() if pa.types.is_string(kind) else data)
            at = end + 2
        elif pa.types.is_boolean(kind):
            values.append(key[at] == 1)
            at += 1
        elif is_decimal(kind) and kind.precision > 18:
            values.append(int.from_bytes(key[at : at + 16], "big") - _WIDE_SIGN)
            at += 16
        elif pa.types.is_floating(kind):
            values.append(_decode_float(key[at : at + 8]))
            at += 8
        else:
            values.append(int.from_bytes(key[at : at + 8], "big") - _SIGN)
            at += 8
    return tuple(values)


def _decode_float(part: bytes) -> float:
    if part == _NAN_KEY[1:]:
        return float("nan")
    if part[0] & 0x80:
        part = bytes((part[0] & 0x7F,)) + part[1:]
    else:
        part = part.translate(_FLIP)
    return cast(float, struct.unpack(">d", part)[0])


def encode_order(
    columns: Sequence[Sequence[object]],
    kinds: Sequence[pa.DataType],
    order: Sequence[tuple[bool, bool]],
) -> list[bytes]:
    """Sort keys of rows given by columns; `order` is (descending, nulls first) per part."""
    if columns and all(map(_are_integers, columns, kinds)):
        numbers = [np.array(values, "i8") for values in columns]
        return _encode_integers(*numbers, descending=[descending for descending, _ in order])
    parts = []
    for values, kind, (descending, nulls_first) in zip(columns, kinds, order, strict=True):
        encoded = encode_column(values, kind)
        if descending:
            encoded = [key.translate(_FLIP) for key in encoded]
        # A NULL is one byte: 00, or FF when flipped; put it where the query wants it.
        null, wanted = (b"\xff", b"\x00") if descending else (b"\x00", b"\xff")
        if nulls_first == descending and None in values:
            encoded = [wanted if key == null else key for key in encoded]
        parts.append(encoded)
    return [b"".join(key) for key in zip(*parts, strict=True)] if parts else []


def bounded(key: bytes, limit: int = KEY_LIMIT) -> bytes:
    """A key that the store can hold: a long one is cut and ends with its hash, an empty one
    has a stand-in that no other can be.

    Keys that agree in the first `limit - 16` bytes then lose their order, not their identity.
    """
    if not key:
        return b"\0" * (limit + 1)
    if len(key) <= limit:
        return key
    return key[: limit - 16] + hashlib.blake2b(key, digest_size=16).digest()
