"""Records of many batches as columns: Arrow for keys and values, numpy for numbers.

Only the chain of record lengths is walked, one by one or, where sizes repeat, by runs; every
field behind it is read for all records at once. For whoever reads much; `decode.decode_records` is the naive twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailrace.records.decode import Headers, decode_headers, read_varint, records_block
from tailrace.records.errors import InvalidRecordError
from tailrace.records.header import LENGTH_OVERHEAD, LOG_APPEND_TIME, BatchHeader, Buffer

Numbers = NDArray[np.int64]
Octets = NDArray[np.uint8]
_NONE = np.zeros(0, np.int64)
SMALLEST = 6  # attributes, two deltas, two lengths and the count of headers
LONG_RUN = 16  # shorter runs of equal sizes are not worth looking for


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in order, column by column; `headers` None if no record has any."""

    offsets: Numbers
    timestamps: Numbers
    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: list[Headers] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, start: int, end: int | None) -> RecordColumns:
        """Those with start ≤ offset < end."""
        first = int(np.searchsorted(self.offsets, start))
        until = len(self) if end is None else int(np.searchsorted(self.offsets, end))
        return self if until - first == len(self) else self.slice(first, max(0, until - first))

    def slice(self, first: int, count: int) -> RecordColumns:
        """`count` records from the one at `first` on."""
        until = first + count
        return RecordColumns(
            self.offsets[first:until],
            self.timestamps[first:until],
            self.keys.slice(first, count),
            self.values.slice(first, count),
            None if self.headers is None else self.headers[first:until],
        )


# Not made by `pyarrow.array`, which imports pandas where that is installed.
EMPTY = RecordColumns(_NONE, _NONE, pa.nulls(0, pa.binary()), pa.nulls(0, pa.binary()))


@dataclass(frozen=True, slots=True)
class RawColumns:
    """Records in order, their headers as bytes: those of each lie from `headers_at` to `ends`
    of `data`, of which `octets` is a view."""

    offsets: Numbers
    timestamps: Numbers
    keys: pa.BinaryArray
    values: pa.BinaryArray
    data: bytes
    octets: Octets
    headers_at: Numbers
    ends: Numbers


def decode_columns(buffer: Buffer, batches: Iterable[tuple[int, BatchHeader]]) -> RecordColumns:
    """The records of these batches of `buffer` (position and header of each), in order.

    Raises `InvalidRecordError` where records do not fit their batch, as `decode_records`.
    """
    raw = decode_raw(buffer, batches)
    if raw is None:
        return EMPTY
    headers: list[Headers] | None = None
    data, at = raw.data, raw.headers_at
    if raw.octets[at].any():
        headers = [
            () if data[begin] == 0 else decode_headers(data[begin:until])
            for begin, until in zip(at.tolist(), raw.ends.tolist(), strict=True)
        ]
    return RecordColumns(raw.offsets, raw.timestamps, raw.keys, raw.values, headers)


def decode_raw(buffer: Buffer, batches: Iterable[tuple[int, BatchHeader]]) -> RawColumns | None:
    """`decode_columns` that leaves the headers as they are; None if there are no records."""
    blocks: list[bytes] = []
    counts: list[int] = []
    bases: list[tuple[int, int, int]] = []
    view = memoryview(buffer)
    for position, header in batches:
        whole = view[position : position + header.length + LENGTH_OVERHEAD]
        blocks.append(records_block(whole, header))
        counts.append(header.record_count)
        appended = header.max_timestamp if header.attributes & LOG_APPEND_TIME else -1
        bases.append((header.base_offset, header.base_timestamp, appended))
    if not any(counts):
        return None
    data = blocks[0] if len(blocks) == 1 else b"".join(blocks)
    try:
        octets = np.frombuffer(data, np.uint8)
        sizes, starts = _varints(octets, _walk(data, octets, blocks, counts))
        if bool((sizes < SMALLEST).any()):
            raise InvalidRecordError("a record claims fewer bytes than it needs")
        return _columns(data, octets, starts, starts + sizes, counts, bases)
    except IndexError:
        raise InvalidRecordError("a record is cut") from None


def _walk(data: bytes, octets: Octets, blocks: Sequence[bytes], counts: Sequence[int]) -> Numbers:
    """Where each record begins: with its length. Raises where a block is overrun."""
    found: list[Numbers] = []
    limit = 0
    for block, count in zip(blocks, counts, strict=True):
        position = limit
        limit += len(block)
        while count:
            run = _run(octets, position, limit, count)
            if len(run):
                found.append(run)
                count -= len(run)
                position = _behind(data, int(run[-1]))
                if len(run) >= LONG_RUN:
                    continue
            places: list[int] = []
            append = places.append
            for _ in range(count):
                append(position)
                length = data[position]
                if length < 128:
                    position += 1 + (length >> 1)
                else:
                    following = data[position + 1]
                    if following >= 128:
                        position = _behind(data, position)
                    else:
                        position += 2 + (((length & 127) | (following << 7)) >> 1)
            found.append(np.array(places, np.int64))
            break
        if position > limit:
            raise InvalidRecordError("a record claims more bytes than its batch has")
    return found[0] if len(found) == 1 else np.concatenate(found)


def _behind(data: bytes, position: int) -> int:
    """Where the record at `position` ends."""
    length, position = read_varint(data, position)
    if length < SMALLEST:
        raise InvalidRecordError("a record claims fewer bytes than it needs")
    return position + length


def _run(octets: Octets, position: int, limit: int, count: int) -> Numbers:
    """The places of records of one size from here on: where the same length stands again and
    again at that distance, each of them begins where the one before it ends."""
    head = octets[position : position + 2].tolist()
    if len(head) < 2 or (head[0] >= 128 and head[1] >= 128) or head[0] & 1:
        return _NONE
    size = 1 if head[0] < 128 else 2
    stride = size + ((head[0] & 127 | (head[1] << 7 if size == 2 else 0)) >> 1)
    most = min(count, (limit - position) // stride)
    if most < LONG_RUN:
        return _NONE
    places = position + stride * np.arange(most, dtype=np.int64)
    same = octets[places] == head[0]
    if size == 2:
        same &= octets[places + 1] == head[1]
    other = np.flatnonzero(~same)
    whole: Numbers = places[: int(other[0])] if len(other) else places
    return whole


def _columns(
    data: bytes,
    octets: Octets,
    starts: Numbers,
    ends: Numbers,
    counts: Sequence[int],
    bases: Sequence[tuple[int, int, int]],
) -> RawColumns:
    each = np.repeat(np.array(bases, np.int64), counts, axis=0)
    deltas, at = _varints(octets, starts + 1)
    offsets, at = _varints(octets, at)
    keys, at = read_strings(data, octets, at, ends)
    values, at = read_strings(data, octets, at, ends)
    if bool((at >= ends).any()):
        raise InvalidRecordError("a record is longer than it claims")
    appended = each[:, 2]
    return RawColumns(
        each[:, 0] + offsets,
        np.where(appended >= 0, appended, each[:, 1] + deltas),
        keys,
        values,
        data,
        octets,
        at,
        ends,
    )


def _varints(octets: Octets, at: Numbers) -> tuple[Numbers, Numbers]:
    """(numbers, positions after them) of the zigzag varints at these positions."""
    first = octets[at]
    number = (first & 127).astype(np.int64)
    at = at + 1
    longer = np.flatnonzero(first >= 128)
    shift = 7
    while len(longer):
        if shift > 63:
            raise InvalidRecordError("a varint is longer than ten bytes")
        byte = octets[at[longer]]
        number[longer] |= (byte & 127).astype(np.int64) << shift
        at[longer] += 1
        longer = longer[byte >= 128]
        shift += 7
    return ((number >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(number & 1), at


def read_strings(
    data: bytes, octets: Octets, at: Numbers, ends: Numbers
) -> tuple[pa.BinaryArray, Numbers]:
    """The length-prefixed byte strings at these positions; a length below 0 is null."""
    lengths, begin = _varints(octets, at)
    null = lengths < 0
    if null.all():
        return pa.nulls(len(at), pa.binary()), begin
    until = begin + np.maximum(lengths, 0)
    if bool((until > ends).any()):
        raise InvalidRecordError("a record is longer than it claims")
    # Arrow's strings lie end to end: take every second of "string, gap, string, gap …".
    edges = np.empty(2 * len(at), np.int32)
    edges[0::2], edges[1::2] = begin, until
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * len(at) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    wanted = pa.array(np.arange(0, 2 * len(at) - 1, 2), mask=null if null.any() else None)
    return pieces.take(wanted), until
