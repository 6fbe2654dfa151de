"""Frequent items: the values that come most often, with how often.

A sketch counts up to `room` different values exactly. When there are more, it forgets the rarest
and takes from every count what those had at most: `offset`, the error of all counts from
then on. What is kept does not depend on the order of values that come together. NULLs are counted
beside. The bytes are those that Spark's `approx_top_k_accumulate` keeps (Frequent Items of
Apache DataSketches), little-endian but for the last:

    preamble longs u8, version u8 = 1, family u8 = 10, log of the largest size u8, log of the
    size u8, flags u8 (5: empty), 0 u16; unless empty: items u32, 0 u32, all values i64,
    offset i64, counts i64 …, items; then NULLs i64, big-endian
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.engine.operators.sketches.theta import unreadable
from tailrace.pipelines.values.types import ddl, is_decimal, is_integer, is_time, nanos

ITEMS = 10_000
MOST_ITEMS = 1_000_000
_HEAD = struct.Struct("<BBBBBBH")
_BODY = struct.Struct("<IIqq")
_EPOCH = datetime.date(1970, 1, 1)
_START = datetime.datetime(1970, 1, 1)
_EXACT = decimal.Context(prec=76)
# Java's serializer of numbers writes one of these marks before each.
_MARKED = {pa.int8(): (2, "b"), pa.int16(): (3, "h"), pa.int32(): (9, "i"), pa.float32(): (6, "f")}


class Frequent:
    """Items are physical values (see `rows`) of type `kind`."""

    def __init__(self, kind: pa.DataType, items: int = ITEMS) -> None:
        self.kind = kind
        self.log_size = max(3, math.ceil(math.log2(items / 0.75)))
        self.counts: dict[Any, int] = {}
        self.total = self.offset = self.nulls = 0

    @property
    def room(self) -> int:
        return 3 << (self.log_size - 2)

    def update(self, pairs: Iterable[tuple[Any, int]]) -> None:
        """Take in values with their counts."""
        for item, count in pairs:
            if item is None:
                self.nulls += count
            else:
                item = _one_nan(item)
                self.counts[item] = self.counts.get(item, 0) + count
                self.total += count
        self._forget()

    def merge(self, other: Frequent) -> None:
        self.offset += other.offset
        self.nulls += other.nulls
        self.total += other.total
        for item, count in other.counts.items():
            self.counts[item] = self.counts.get(item, 0) + count
        self._forget()

    def _forget(self) -> None:
        if len(self.counts) > self.room:
            rarest = sorted(self.counts.values(), reverse=True)[self.room]
            self.offset += rarest
            self.counts = {i: count - rarest for i, count in self.counts.items() if count > rarest}

    def top(self, count: int) -> list[tuple[Any, int]]:
        """The most frequent values as Python's own, those that might be rarer than the error
        left out; equal counts in the order of the values, NULL last."""
        found = [
            (item, weight + self.offset)
            for item, weight in self.counts.items()
            if weight > self.offset
        ]
        found.sort(key=lambda pair: (-pair[1], pair[0] != pair[0], pair[0]))
        if self.nulls:
            found.append((None, self.nulls))
            found.sort(key=lambda pair: -pair[1])
        back = _back(self.kind)
        return [(None if item is None else back(item), often) for item, often in found[:count]]

    def __bytes__(self) -> bytes:
        nulls = struct.pack(">q", self.nulls)
        if not self.counts and not self.total:
            return _HEAD.pack(1, 1, 10, self.log_size, 3, 5, 0) + nulls
        now = max(3, math.ceil(math.log2(max(len(self.counts), 1) / 0.75)))
        ranked = sorted(self.counts.items(), key=lambda p: (-p[1], p[0] != p[0], p[0]))
        head = _HEAD.pack(4, 1, 10, self.log_size, now, 0, 0)
        body = _BODY.pack(len(ranked), 0, self.total, self.offset)
        weights = struct.pack(f"<{len(ranked)}q", *(weight for _, weight in ranked))
        items = _write(self.kind, [item for item, _ in ranked])
        return head + body + weights + items + nulls

    @classmethod
    def from_bytes(cls, data: bytes, kind: pa.DataType) -> Frequent:
        made = cls(kind)
        if len(data) < _HEAD.size + 8:
            raise unreadable("frequent items", f"{len(data)} bytes")
        _, version, family, made.log_size, _, flags, _ = _HEAD.unpack_from(data)
        if version != 1 or family != 10:
            raise unreadable("frequent items", f"version {version}, family {family}")
        (made.nulls,) = struct.unpack(">q", data[-8:])
        if flags & 5:
            return made
        try:
            count, _, made.total, made.offset = _BODY.unpack_from(data, _HEAD.size)
            at = _HEAD.size + _BODY.size
            weights = struct.unpack_from(f"<{count}q", data, at)
            items = _read(kind, data[at + 8 * count : -8], count)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise unreadable("frequent items", str(error)) from error
        made.counts = dict(zip(map(_one_nan, items), weights, strict=True))
        return made


def _one_nan(item: Any) -> Any:
    return math.nan if item != item else item


def _form(kind: pa.DataType) -> tuple[bytes, str] | None:
    """The mark before each item and its form, for items of one size."""
    if kind == pa.date32() or (is_decimal(kind) and kind.precision <= 9):
        kind = pa.int32()
    if kind in _MARKED:
        mark, form = _MARKED[kind]
        return bytes([mark]), form
    if kind == pa.float64():
        return b"", "d"
    if kind == pa.int64() or is_time(kind) or pa.types.is_timestamp(kind) or is_decimal(kind):
        return (b"", "q") if not is_decimal(kind) or kind.precision <= 18 else None
    return None


def _write(kind: pa.DataType, items: list[Any]) -> bytes:
    if kind == pa.bool_():
        bits = sum(1 << at for at, item in enumerate(items) if item)
        return bits.to_bytes((len(items) + 7) // 8, "little")
    form = _form(kind)
    if is_time(kind):
        items = [item * nanos(kind) for item in items]
    if form is not None:
        return b"".join(form[0] + struct.pack(f"<{form[1]}", item) for item in items)
    texts = [
        item.encode() if isinstance(item, str) else item.to_bytes(_width(item), signed=True)
        for item in items
    ]
    return b"".join(struct.pack("<i", len(text)) + text for text in texts)


def _width(value: int) -> int:
    """Bytes of Java's BigInteger."""
    return (value if value >= 0 else ~value).bit_length() // 8 + 1


def _read(kind: pa.DataType, data: bytes, count: int) -> list[Any]:
    if kind == pa.bool_():
        return [bool(data[at // 8] >> at % 8 & 1) for at in range(count)]
    form = _form(kind)
    if form is not None:
        size = len(form[0]) + struct.calcsize(f"<{form[1]}")
        if len(data) != count * size:
            raise unreadable("frequent items", f"{len(data)} bytes for {count} items of {size}")
        found = [
            struct.unpack_from(f"<{form[1]}", data, at * size + len(form[0]))[0]
            for at in range(count)
        ]
        return [item // nanos(kind) for item in found] if is_time(kind) else found
    items, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from("<i", data, at)
        part = data[at + 4 : at + 4 + length]
        if length < 0 or len(part) < length:
            raise unreadable("frequent items", "an item is cut short")
        items.append(part.decode() if kind == pa.string() else int.from_bytes(part, signed=True))
        at += 4 + length
    return items


def _back(kind: pa.DataType) -> Callable[[Any], Any]:
    if is_decimal(kind):
        return lambda raw: decimal.Decimal(raw).scaleb(-kind.scale, _EXACT)
    if kind == pa.date32():
        return lambda raw: _EPOCH + datetime.timedelta(days=raw)
    if is_time(kind):
        micros = nanos(kind) // 1000
        return lambda raw: (_START + datetime.timedelta(microseconds=raw * micros)).time()
    if pa.types.is_timestamp(kind):
        zone = datetime.UTC if kind.tz else None
        return lambda raw: (_START + datetime.timedelta(microseconds=raw)).replace(tzinfo=zone)
    return lambda raw: raw


def countable(kind: pa.DataType) -> bool:
    """Whether the values of a type can be counted this way."""
    return bool(
        is_integer(kind)
        or is_decimal(kind)
        or kind in (pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.date32())
        or pa.types.is_timestamp(kind)
        or is_time(kind)
    )


def state_type(kind: pa.DataType) -> pa.DataType:
    """What `approx_top_k_accumulate` gives for values of a type."""
    return pa.struct(
        [("sketch", pa.binary()), ("maxItemsTracked", pa.int32()), ("itemDataType", kind),
         ("itemDataTypeDDL", pa.string())]
    )  # fmt: skip


def state_of(sketch: Frequent, items: int) -> tuple[object, ...]:
    """That, as a physical value."""
    shown = ddl(sketch.kind).replace(", ", ",")
    text = "item string not null" if shown == "STRING" else f"item {shown} NOT NULL"
    return (
        "d", ("sketch", bytes(sketch)), ("maxItemsTracked", items), ("itemDataType", None),
        ("itemDataTypeDDL", text),
    )  # fmt: skip


def top_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("item", kind), ("count", pa.int64())]))
