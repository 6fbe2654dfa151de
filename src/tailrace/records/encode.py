"""Batches out of records: one encoder for single records, one for whole columns.

Both write what a Java producer would write. The column encoder does about one join per
record and is what capture and ticks write with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tailrace.records.checksum import crc32c
from tailrace.records.compression import codec_number, compress
from tailrace.records.decode import Headers, Record
from tailrace.records.errors import InvalidRecordError
from tailrace.records.header import (
    CONTROL,
    CRC_POSITION,
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    Buffer,
)


class Column(Protocol):
    """A column of byte strings that is not a list, such as an Arrow array."""

    def to_pylist(self) -> list[bytes | None]: ...


def varint(number: int) -> bytes:
    """`number` as a zigzag varint."""
    zigzag = (number << 1) ^ (number >> 63)
    if zigzag < 128:
        return bytes((zigzag,))
    out = bytearray()
    while zigzag >= 128:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_SMALL: list[bytes] = [varint(number) for number in range(2048)]


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """One batch holding `records`.

    Offsets are given by place (`base_offset`, +1, …); the offsets inside the records are
    not looked at. Raises `InvalidRecordError` if there are none.
    """
    whole = list(records)
    return encode_columns(
        [record.key for record in whole],
        [record.value for record in whole],
        [record.timestamp for record in whole],
        [record.headers for record in whole],
        base_offset=base_offset,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        partition_leader_epoch=partition_leader_epoch,
    )


def encode_columns(
    keys: Sequence[bytes | None] | Column | None,
    values: Sequence[bytes | None] | Column,
    timestamps: Sequence[int] | int,
    headers: Sequence[Headers] | Headers | None = None,
    *,
    base_offset: int = 0,
    compression: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """One batch from columns of equal length.

    `keys` None means no record has a key; `timestamps` may be one number for all;
    `headers` may be one tuple of (name, value) pairs for all, or one such tuple per
    record. Columns may be lists of bytes or Arrow binary arrays.
    """
    value_list = values if isinstance(values, Sequence) else values.to_pylist()
    count = len(value_list)
    if count == 0:
        raise InvalidRecordError("a record batch needs at least one record")
    if keys is None:
        key_list: Sequence[bytes | None] = [None] * count
    else:
        key_list = keys if isinstance(keys, Sequence) else keys.to_pylist()
    if isinstance(timestamps, int):
        base_timestamp = max_timestamp = timestamps
        deltas: Sequence[int] | None = None
    else:
        base_timestamp, max_timestamp = timestamps[0], max(timestamps)
        deltas = [timestamp - base_timestamp for timestamp in timestamps]
        if len(deltas) != count:
            raise InvalidRecordError(f"{count} values but {len(deltas)} timestamps")
    if len(key_list) != count:
        raise InvalidRecordError(f"{count} values but {len(key_list)} keys")
    tails = _header_tails(headers, count)

    small = _SMALL
    parts: list[bytes] = []
    append = parts.append
    no_tail = b"\x00"
    for number in range(count):
        key, value = key_list[number], value_list[number]
        delta = deltas[number] if deltas is not None else 0
        pieces = (
            b"\x00",
            small[delta] if 0 <= delta < 2048 else varint(delta),
            small[number] if number < 2048 else varint(number),
            b"\x01" if key is None else (small[len(key)] if len(key) < 2048 else varint(len(key))),
            key or b"",
            b"\x01"
            if value is None
            else (small[len(value)] if len(value) < 2048 else varint(len(value))),
            value or b"",
            no_tail if tails is None else (tails if isinstance(tails, bytes) else tails[number]),
        )
        body = b"".join(pieces)
        length = len(body)
        append(small[length] if length < 2048 else varint(length))
        append(body)
    codec = codec_number(compression)
    block = b"".join(parts)
    if codec:
        block = compress(codec, block)
    attributes = codec
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    return assemble(
        block,
        count=count,
        last_offset_delta=count - 1,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
    )


def assemble(
    block: bytes | memoryview,
    *,
    count: int,
    last_offset_delta: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """A batch around an already encoded (and compressed) block of records."""
    batch = bytearray(HEADER_BYTES + len(block))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_OVERHEAD,
        partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    batch[HEADER_BYTES:] = block
    _seal(batch)
    return batch


def encode_raw(offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, raw_headers: bytes) -> bytes:  # fmt: skip
    """One record with its length in front, from parts; the cleaner copies records with it."""
    body = b"".join(
        (
            b"\x00",
            varint(timestamp_delta),
            varint(offset_delta),
            b"\x01" if key is None else varint(len(key)),
            key or b"",
            b"\x01" if value is None else varint(len(value)),
            value or b"",
            raw_headers,
        )
    )
    return varint(len(body)) + body


def encode_headers(headers: Headers | Mapping[str, bytes | None]) -> bytes:
    """The encoded form of one record's headers, count first."""
    pairs = tuple(headers.items()) if isinstance(headers, Mapping) else headers
    out = bytearray(varint(len(pairs)))
    for name, value in pairs:
        encoded = name.encode("utf-8", "surrogateescape")
        out += varint(len(encoded))
        out += encoded
        if value is None:
            out += b"\x01"
        else:
            out += varint(len(value))
            out += value
    return bytes(out)


def _header_tails(
    headers: Sequence[Headers] | Headers | None, count: int
) -> bytes | list[bytes] | None:
    if not headers:
        return None
    first = headers[0]
    if len(first) == 2 and isinstance(first[0], str):
        return encode_headers(headers)  # type: ignore[arg-type]
    if len(headers) != count:
        raise InvalidRecordError(f"{count} values but {len(headers)} sets of headers")
    return [b"\x00" if not each else encode_headers(each) for each in headers]  # type: ignore[arg-type]


def set_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Make log-append time this batch's time: patches attributes, max timestamp and CRC."""
    attributes = int.from_bytes(batch[21:23], "big") | LOG_APPEND_TIME
    batch[21:23] = attributes.to_bytes(2, "big")
    batch[35:43] = now_ms.to_bytes(8, "big", signed=True)
    _seal(batch)


def set_max_timestamp(batch: bytearray | memoryview, timestamp: int) -> None:
    """Correct what the header says of the records' largest timestamp, and the CRC."""
    batch[35:43] = timestamp.to_bytes(8, "big", signed=True)
    _seal(batch)


def _seal(batch: bytearray | memoryview) -> None:
    checksum = crc32c(memoryview(batch)[CRC_START:])
    batch[CRC_POSITION:CRC_START] = checksum.to_bytes(4, "big")


__all__ = [
    "Buffer",
    "Column",
    "assemble",
    "encode_batch",
    "encode_columns",
    "encode_headers",
    "encode_raw",
    "set_append_time",
    "set_max_timestamp",
    "varint",
]
