"""Records out of a batch.

A record is: length, attributes (one byte, 0), timestamp delta, offset delta, key length
and key, value length and value, header count, then name and value of each header. All
numbers are zigzag varints; a length of −1 means null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tailrace.records.compression import DECOMPRESSED_LIMIT_BYTES, decompress
from tailrace.records.errors import InvalidRecordError
from tailrace.records.header import (
    CODEC_MASK,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    BatchHeader,
    Buffer,
    read_header,
)

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record as readers see it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RawRecord(NamedTuple):
    """One record with its headers still encoded, for tools that copy records."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    raw_headers: bytes


def records_block(
    batch: Buffer, header: BatchHeader, limit: int = DECOMPRESSED_LIMIT_BYTES
) -> bytes:
    """The records of `batch` as plain bytes, decompressed if they were compressed."""
    block = memoryview(batch)[HEADER_BYTES : header.length + LENGTH_OVERHEAD]
    return decompress(header.attributes & CODEC_MASK, block, limit)


def decode_records(batch: Buffer, position: int = 0) -> Iterator[Record]:
    """The records of the one batch at `position`, in order.

    Raises `InvalidRecordError` where the records do not fit the batch; the checksum is
    not looked at again (`check_batch` does that).
    """
    for raw in decode_raw(batch, position):
        offset, timestamp, key, value, raw_headers = raw
        yield Record(
            offset,
            timestamp,
            key,
            value,
            () if raw_headers == b"\x00" else decode_headers(raw_headers),
        )


def decode_raw(batch: Buffer, position: int = 0) -> Iterator[RawRecord]:
    """As `decode_records`, leaving the headers as they are encoded."""
    header = read_header(batch, position)
    view = memoryview(batch)[position : position + header.length + LENGTH_OVERHEAD]
    data = records_block(view, header)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    position, size = 0, len(data)
    try:
        for _ in range(header.record_count):
            length = data[position]
            if length < 128:
                position += 1
                length = (length >> 1) ^ -(length & 1)
            else:
                length, position = read_varint(data, position)
            end = position + length
            if length < 6 or end > size:
                raise InvalidRecordError(f"a record claims {length} bytes")
            position += 1
            delta = data[position]
            if delta < 128:
                position += 1
                delta = (delta >> 1) ^ -(delta & 1)
            else:
                delta, position = read_varint(data, position)
            offset = data[position]
            if offset < 128:
                position += 1
                offset = (offset >> 1) ^ -(offset & 1)
            else:
                offset, position = read_varint(data, position)
            length = data[position]
            if length < 128:
                position += 1
                length = (length >> 1) ^ -(length & 1)
            else:
                length, position = read_varint(data, position)
            key: bytes | None = None
            if length >= 0:
                key = data[position : position + length]
                position += length
            length = data[position]
            if length < 128:
                position += 1
                length = (length >> 1) ^ -(length & 1)
            else:
                length, position = read_varint(data, position)
            value: bytes | None = None
            if length >= 0:
                value = data[position : position + length]
                position += length
            if position >= end:
                raise InvalidRecordError("a record is longer than it claims")
            yield RawRecord(
                base_offset + offset,
                base_timestamp + delta if append_time is None else append_time,
                key,
                value,
                data[position:end],
            )
            position = end
    except IndexError:
        raise InvalidRecordError("a record is cut") from None


def shown_name(name: str) -> str:
    """A header's name as text that JSON and Arrow can hold.

    Names are kept as they were sent, bytes that are no UTF-8 as lone surrogates; here they are
    replaced, as Kafka's own clients do.
    """
    return (
        name
        if name.isascii()
        else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


def decode_headers(raw: bytes) -> Headers:
    """The headers of one record from their encoded form."""
    try:
        count, position = read_varint(raw, 0)
        if count < 0 or count > len(raw):
            raise InvalidRecordError(f"a record claims {count} headers")
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            length, position = read_varint(raw, position)
            if length < 0 or position + length > len(raw):
                raise InvalidRecordError("a header's name is cut")
            name = raw[position : position + length].decode("utf-8", "surrogateescape")
            position += length
            length, position = read_varint(raw, position)
            value: bytes | None = None
            if length >= 0:
                if position + length > len(raw):
                    raise InvalidRecordError("a header's value is cut")
                value = raw[position : position + length]
                position += length
            headers.append((name, value))
    except IndexError:
        raise InvalidRecordError("a record's headers are cut") from None
    if position != len(raw):
        raise InvalidRecordError("a record is longer than its parts")
    return tuple(headers)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """(number, position after it) of the zigzag varint at `position`."""
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > 63:
            raise InvalidRecordError("a varint is longer than ten bytes")
