"""The shard of a row: the same number here and in Spark.

`shard = pmod(xxhash64(normalised route columns), shards)`: integers, booleans and dates as
BIGINT, floats as DOUBLE with one zero, so that a widened column keeps its shard. `shard_sql`
is the expression for Spark; `shards_of` computes it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.pipelines.values.clock_times import micros_in
from tailrace.pipelines.values.rows import physical, whole_numbers
from tailrace.pipelines.values.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    is_decimal,
    is_float,
    is_integer,
    is_time,
)
from tailrace.records.columns import decimal_words, lengths_of, words_of

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = (1 << 64) - 1
_SEED = 42
_FEW_TEXTS = 8  # of one length: fewer are hashed one by one


def shard_sql(columns: Sequence[tuple[str, pa.DataType]], shards: int) -> str:
    """Spark's expression for the shard of a row with these route columns."""
    if not columns:
        return "0"
    parts = ", ".join(_normalised(f"`{name}`", kind) for name, kind in columns)
    return f"CAST(pmod(xxhash64({parts}), CAST({shards} AS BIGINT)) AS INT)"


def _normalised(text: str, kind: pa.DataType) -> str:
    if is_integer(kind) or kind == BOOLEAN:
        return f"CAST({text} AS BIGINT)"
    if kind == DATE:
        return f"CAST(unix_date({text}) AS BIGINT)"
    if is_float(kind):
        return f"CAST({text} AS DOUBLE)"
    if pa.types.is_nested(kind):
        return f"to_json(struct({text}))"
    return text


def shards_of(table: pa.Table, route: Sequence[str], shards: int) -> np.ndarray:
    """The shard of every row."""
    count = table.num_rows
    if shards == 1 or not route:
        return np.zeros(count, dtype="i8")
    hashes = np.full(count, _SEED, dtype="u8")
    with np.errstate(over="ignore"):
        for name in route:
            hashes = _hash_column(table.column(name), hashes)
    return (hashes.view("i8") % shards).astype("i8")


def _hash_column(column: pa.ChunkedArray, seeds: np.ndarray) -> np.ndarray:
    kind = column.type
    if kind == VARIANT:
        column, kind = column.cast(BINARY), BINARY
    if kind in (STRING, BINARY):
        hashes = _hash_texts(column, seeds)
    elif is_float(kind):
        doubles = _filled(column, 0.0, pa.float64()) + 0.0
        doubles[np.isnan(doubles)] = np.nan
        hashes = _hash_longs(doubles.view("u8"), seeds)
    elif is_decimal(kind) and kind.precision > 18:
        hashes = _hash_wide(column, seeds)
    else:
        hashes = _hash_longs(_longs(column).view("u8"), seeds)
    if not column.null_count:
        return hashes
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), hashes, seeds)


def _hash_wide(column: pa.ChunkedArray, seeds: np.ndarray) -> np.ndarray:
    """The hash of decimals that need not fit a BIGINT, by their bytes; anything for NULL."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    low, fits = decimal_words(array)
    if not fits:
        pairs = zip(physical(column), seeds.tolist(), strict=True)
        hashed = (0 if v is None else hash_bytes(_big_integer(v), seed) for v, seed in pairs)  # type: ignore[arg-type]
        return np.fromiter(hashed, dtype="u8", count=len(array))
    lengths = np.ones(len(low), dtype="i8")
    for bits in range(7, 63, 8):
        lengths += (low >= 1 << bits) | (low < -(1 << bits))
    found = np.zeros(len(low), dtype="u8")
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        numbers = low[places].astype(">i8").view("u1").reshape(-1, 8)
        raw = np.ascontiguousarray(numbers[:, 8 - length :]).reshape(-1)
        begins = np.arange(len(places)) * length
        found[places] = _hash_equally_long(raw, begins, length, seeds[places])
    return found


def _longs(column: pa.ChunkedArray) -> np.ndarray:
    """A column that is hashed as BIGINT; 0 for NULL."""
    kind = column.type
    if is_integer(kind) or kind == BOOLEAN:
        return _filled(column, False if kind == BOOLEAN else 0, pa.int64())
    if kind == DATE:
        return _filled(column.cast(pa.int32()), 0, pa.int64())
    if is_time(kind):  # by nanoseconds, as Spark
        units = column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
        return _filled(units, 0, pa.int64()) * (1_000 * micros_in(kind))
    if kind == TIMESTAMP_NTZ or pa.types.is_timestamp(kind):
        return _filled(column.cast(pa.int64()), 0, pa.int64())
    numbers = whole_numbers(column)
    if numbers is None:
        raise TypeError(f"cannot shard by {kind}")
    return np.ascontiguousarray(numbers)


def _filled(column: pa.ChunkedArray, value: float, kind: pa.DataType) -> np.ndarray:
    if column.null_count:
        column = column.fill_null(pa.scalar(value, column.type))
    found: np.ndarray = column.cast(kind).to_numpy()
    return found


def _hash_texts(column: pa.ChunkedArray, seeds: np.ndarray) -> np.ndarray:
    """The hash of every text or binary; anything for NULL."""
    found = np.empty(len(column), dtype="u8")
    first = 0
    for chunk in column.chunks:
        if not len(chunk):
            continue
        lengths = np.maximum(lengths_of(chunk), 0)
        begins = np.frombuffer(chunk.buffers()[1], "<i4")[chunk.offset :][: len(chunk)]
        content = chunk.buffers()[2]
        raw = np.frombuffer(b"" if content is None else content, "u1")
        for length in np.unique(lengths).tolist():
            places = np.flatnonzero(lengths == length)
            at, own = begins[places].astype("i8"), seeds[first + places]
            if len(places) < _FEW_TEXTS:
                pairs = zip(at.tolist(), own.tolist(), strict=True)
                hashed = [hash_bytes(raw[b : b + length].tobytes(), seed) for b, seed in pairs]
                found[first + places] = np.array(hashed, dtype="u8")
            else:
                found[first + places] = _hash_equally_long(raw, at, length, own)
        first += len(chunk)
    return found


def _hash_equally_long(
    raw: np.ndarray, begins: np.ndarray, length: int, seeds: np.ndarray
) -> np.ndarray:
    """`hash_bytes` of all values of one length, which begin there."""
    words = words_of(raw, "<u8")
    at = 0
    if length >= 32:
        p1, p2 = np.uint64(_P1), np.uint64(_P2)
        lanes = [seeds + p1 + p2, seeds + p2, seeds, seeds - p1]
        while at <= length - 32:
            for lane in range(4):
                word = words[begins + (at + 8 * lane)]
                lanes[lane] = _rotate(lanes[lane] + word * p2, 31) * p1
            at += 32
        hashes = _rotate(lanes[0], 1) + _rotate(lanes[1], 7)
        hashes += _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
        for values in lanes:
            hashes = (hashes ^ (_rotate(values * p2, 31) * p1)) * p1 + np.uint64(_P4)
    else:
        hashes = seeds + np.uint64(_P5)
    hashes = hashes + np.uint64(length)
    while at <= length - 8:
        mixed = _rotate(words[begins + at] * np.uint64(_P2), 31) * np.uint64(_P1)
        hashes = _rotate(hashes ^ mixed, 27) * np.uint64(_P1) + np.uint64(_P4)
        at += 8
    if at <= length - 4:
        word = words_of(raw, "<u4")[begins + at].astype("u8")
        hashes = _rotate(hashes ^ (word * np.uint64(_P1)), 23) * np.uint64(_P2) + np.uint64(_P3)
        at += 4
    while at < length:
        hashes = hashes ^ (raw[begins + at].astype("u8") * np.uint64(_P5))
        hashes = _rotate(hashes, 11) * np.uint64(_P1)
        at += 1
    return _mixed(hashes)


def _big_integer(value: int) -> bytes:
    """Java's BigInteger.toByteArray."""
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)


def _rotate(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _hash_longs(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    hashes = seeds + np.uint64((_P5 + 8) & _MASK)
    hashes = hashes ^ (_rotate(values * np.uint64(_P2), 31) * np.uint64(_P1))
    return _mixed(_rotate(hashes, 27) * np.uint64(_P1) + np.uint64(_P4))


def _mixed(hashes: np.ndarray) -> np.ndarray:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(_P2)
    hashes = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(_P3)
    mixed: np.ndarray = hashes ^ (hashes >> np.uint64(32))
    return mixed


def _rotl(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def hash_bytes(data: bytes, seed: int) -> int:
    """XXH64."""
    length = len(data)
    at = 0
    if length >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at <= length - 32:
            for lane in range(4):
                word = int.from_bytes(data[at + 8 * lane : at + 8 * lane + 8], "little")
                lanes[lane] = _rotl((lanes[lane] + word * _P2) & _MASK, 31) * _P1 & _MASK
            at += 32
        result = sum(_rotl(lanes[i] & _MASK, (1, 7, 12, 18)[i]) for i in range(4)) & _MASK
        for lane in lanes:
            result ^= _rotl(lane * _P2 & _MASK, 31) * _P1 & _MASK
            result = (result * _P1 + _P4) & _MASK
    else:
        result = (seed + _P5) & _MASK
    result = (result + length) & _MASK
    while at <= length - 8:
        word = int.from_bytes(data[at : at + 8], "little")
        result ^= _rotl(word * _P2 & _MASK, 31) * _P1 & _MASK
        result = (_rotl(result, 27) * _P1 + _P4) & _MASK
        at += 8
    if at <= length - 4:
        result ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        result = (_rotl(result, 23) * _P2 + _P3) & _MASK
        at += 4
    while at < length:
        result ^= data[at] * _P5 & _MASK
        result = _rotl(result, 11) * _P1 & _MASK
        at += 1
    result = (result ^ (result >> 33)) * _P2 & _MASK
    result = (result ^ (result >> 29)) * _P3 & _MASK
    return result ^ (result >> 32)


@dataclass(frozen=True, slots=True)
class Division:
    """Which rows of a table go to which shard."""

    order: pa.Array | None  # rows by shard, those of each in their order; None: all go to one
    bounds: tuple[tuple[int, int, int], ...]  # shard, its first row in that order, how many

    @classmethod
    def by(cls, numbers: np.ndarray) -> Division:
        """By the shard of every row."""
        counts = np.bincount(numbers)
        ends = np.cumsum(counts)
        bounds = tuple(
            (shard, int(ends[shard] - counts[shard]), int(counts[shard]))
            for shard in np.flatnonzero(counts).tolist()
        )
        order = None if len(bounds) == 1 else pa.array(np.argsort(numbers, kind="stable"))
        return cls(order, bounds)

    def of(self, table: pa.Table) -> dict[int, pa.Table]:
        """The rows of every shard, in their order."""
        ordered = table if self.order is None else table.take(self.order)
        return {shard: ordered.slice(first, count) for shard, first, count in self.bounds}


def split(table: pa.Table, numbers: np.ndarray) -> dict[int, pa.Table]:
    """The rows of every shard, in their order."""
    return Division.by(numbers).of(table)
