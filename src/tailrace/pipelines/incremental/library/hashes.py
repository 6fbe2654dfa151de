"""Hashes of Spark: `hash` (Murmur3), `xxhash64`, checksums and digests.

A NULL leaves the hash as it is; nested values are hashed part by part. Integers of 32 bits
and less are hashed as 4 bytes, larger ones as 8.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.incremental.clock_times import micros_in
from tailrace.pipelines.incremental.functions import KEEPS_NULL, Scalar, made
from tailrace.pipelines.incremental.library.numbers import float_bits
from tailrace.pipelines.incremental.library.signatures import declare
from tailrace.pipelines.incremental.rows import thaw_part
from tailrace.pipelines.incremental.shards import _big_integer, hash_bytes
from tailrace.pipelines.incremental.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    is_decimal,
    is_float,
    is_integer,
    is_time,
)

_MASK = (1 << 32) - 1

declare("sha1", STRING, BINARY)(lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest())
declare("crc32", BIGINT, BINARY)(zlib.crc32)


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _mix(seed: int, word: int) -> int:
    word = _rotate(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate(seed ^ word, 13) * 5 + 0xE6546B64) & _MASK


def _finish(value: int, length: int) -> int:
    value ^= length
    value = (value ^ (value >> 16)) * 0x85EBCA6B & _MASK
    value = (value ^ (value >> 13)) * 0xC2B2AE35 & _MASK
    return value ^ (value >> 16)


def murmur(data: bytes, seed: int) -> int:
    """Murmur3 as Spark computes it: words of 4 bytes, then the rest byte by byte."""
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        seed = _mix(seed, int.from_bytes(data[at : at + 4], "little"))
    for byte in data[whole:]:
        seed = _mix(seed, (byte - 256 if byte > 127 else byte) & _MASK)
    return _finish(seed, len(data))


def _encoder(kind: pa.DataType) -> Callable[[Any], bytes]:
    if kind == BIGINT or pa.types.is_timestamp(kind):
        return struct.Struct("<q").pack
    if is_time(kind):
        nanos = 1_000 * micros_in(kind)
        return lambda value: struct.pack("<q", value * nanos)
    if is_integer(kind) or kind == DATE:
        return struct.Struct("<i").pack
    if kind == BOOLEAN:
        return lambda value: struct.pack("<i", int(value))
    if is_float(kind):
        single = kind == FLOAT
        form = struct.Struct("<I" if single else "<Q")
        return lambda value: form.pack(float_bits(value, single))
    if is_decimal(kind):
        return struct.Struct("<q").pack if kind.precision <= 18 else _big_integer
    if kind == STRING:
        return lambda value: value.encode()
    return bytes


def _hash(value: Any, kind: pa.DataType, seed: int, base: Callable[[bytes, int], int]) -> int:
    if value is None:
        return seed
    if pa.types.is_list(kind):
        for part in value:
            inner = thaw_part(part, kind.value_type)
            seed = _hash(inner, kind.value_type, seed, base)
        return seed
    if pa.types.is_struct(kind):
        for (_, part), field in zip(value[1:], kind, strict=True):
            seed = _hash(thaw_part(part, field.type), field.type, seed, base)
        return seed
    return base(_encoder(kind)(value), seed)


def _hasher(base: Callable[[bytes, int], int], bits: int) -> Callable[..., Scalar]:
    def maker(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
        def compute(*values: Any) -> int:
            seed = 42
            for value, of in zip(values, kinds, strict=True):
                seed = _hash(value, of, seed, base)
            return seed - (1 << bits) if seed >> (bits - 1) else seed

        return compute

    return maker


made("hash")(_hasher(murmur, 32))
made("xxhash64")(_hasher(hash_bytes, 64))
KEEPS_NULL |= {"hash", "xxhash64"}
