"""Produce by hand: record bytes stay where they were received, or where they were built.

Everything but the records is small, so both directions walk it once with as few
objects as possible. Topics are text up to version 12 and 16-byte ids from 13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import DecodeError, UnsupportedVersionError
from tailrace.wire.frames import begin_request, begin_response, end_frame
from tailrace.wire.message import (
    fail,
    read_varint,
    skip_tags,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
    write_varint,
)

API = APIS[ApiKey.PRODUCE]
FIRST_FLEXIBLE = API.first_flexible
FIRST_WITH_IDS = 13

_int32 = struct.Struct(">i")
_acks = struct.Struct(">hi")
_index_and_size = struct.Struct(">ii")
_result = struct.Struct(">ihqq")
_result_with_start = struct.Struct(">ihqqq")

Row = TypeVar("Row", bound="tuple[object, ...]")


class ProducePartition(NamedTuple):
    """What a request brings for one partition. `records` is a slice of the frame."""

    topic: str | bytes
    partition: int
    records: memoryview | None


class ProduceBody(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducePartition]


class ProduceResult(NamedTuple):
    """What is answered for one partition."""

    topic: str | bytes
    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None


def decode_produce_request(version: int, frame: memoryview, position: int) -> ProduceBody:
    """The request whose body starts at `position`. Raises DecodeError."""
    if not API.min_version <= version <= API.max_version:
        raise UnsupportedVersionError(f"produce has no version {version}")
    try:
        if version >= FIRST_FLEXIBLE:
            return _decode_flexible(version, frame, position)
        return _decode_plain(frame, position)
    except (struct.error, IndexError, ValueError) as error:
        raise DecodeError(f"malformed produce in version {version}: {error}") from error


def _decode_flexible(version: int, frame: memoryview, position: int) -> ProduceBody:
    end = len(frame)
    size, position = read_varint(frame, position)
    transactional_id = None
    if size:
        stop = position + size - 1
        if stop > end:
            raise fail("transactional id past the end")
        transactional_id = str(frame[position:stop], "utf-8")
        position = stop
    acks, timeout_ms = _acks.unpack_from(frame, position)
    topics, position = read_varint(frame, position + 6)
    if topics - 1 > end - position or topics == 0:
        raise fail("topic_data has more elements than bytes")
    found: list[ProducePartition] = []
    for _ in range(topics - 1):
        topic: str | bytes
        if version >= FIRST_WITH_IDS:
            stop = position + 16
            if stop > end:
                raise fail("topic id past the end")
            topic = bytes(frame[position:stop])
        else:
            size, position = read_varint(frame, position)
            stop = position + size - 1
            if size == 0 or stop > end:
                raise fail("topic name past the end")
            topic = str(frame[position:stop], "utf-8")
        partitions, position = read_varint(frame, stop)
        if partitions - 1 > end - position or partitions == 0:
            raise fail("partition_data has more elements than bytes")
        for _ in range(partitions - 1):
            (index,) = _int32.unpack_from(frame, position)
            size, position = read_varint(frame, position + 4)
            records = None
            if size:
                stop = position + size - 1
                if stop > end:
                    raise fail("records past the end")
                records = frame[position:stop]
                position = stop
            position = skip_tags(frame, position) if frame[position] else position + 1
            found.append(ProducePartition(topic, index, records))
        position = skip_tags(frame, position) if frame[position] else position + 1
    skip_tags(frame, position)
    return ProduceBody(transactional_id, acks, timeout_ms, found)


def _decode_plain(frame: memoryview, position: int) -> ProduceBody:
    end = len(frame)
    size = int.from_bytes(frame[position : position + 2], "big", signed=True)
    position += 2
    transactional_id = None
    if size >= 0:
        stop = position + size
        if stop > end:
            raise fail("transactional id past the end")
        transactional_id = str(frame[position:stop], "utf-8")
        position = stop
    acks, timeout_ms = _acks.unpack_from(frame, position)
    (topics,) = _int32.unpack_from(frame, position + 6)
    position += 10
    if topics < 0 or topics * 6 > end - position:
        raise fail("topic_data has more elements than bytes")
    found: list[ProducePartition] = []
    for _ in range(topics):
        size = int.from_bytes(frame[position : position + 2], "big", signed=True)
        position += 2
        stop = position + size
        if size < 0 or stop > end:
            raise fail("topic name past the end")
        topic = str(frame[position:stop], "utf-8")
        (partitions,) = _int32.unpack_from(frame, stop)
        position = stop + 4
        if partitions < 0 or partitions * 8 > end - position:
            raise fail("partition_data has more elements than bytes")
        for _ in range(partitions):
            index, size = _index_and_size.unpack_from(frame, position)
            position += 8
            records = None
            if size >= 0:
                stop = position + size
                if stop > end:
                    raise fail("records past the end")
                records = frame[position:stop]
                position = stop
            found.append(ProducePartition(topic, index, records))
    return ProduceBody(transactional_id, acks, timeout_ms, found)


def encode_produce_response(
    version: int,
    correlation_id: int,
    results: Sequence[ProduceResult],
    throttle_time_ms: int = 0,
) -> bytearray:
    """A whole frame. Results of one topic must stand together."""
    out = begin_response(API, version, correlation_id)
    flexible = version >= FIRST_FLEXIBLE
    groups = _by_topic(results)
    if flexible:
        write_varint(out, len(groups) + 1)
    else:
        out += _int32.pack(len(groups))
    for topic, group in groups:
        _write_topic(out, topic, len(group), flexible=flexible)
        for result in group:
            if version >= 5:
                out += _result_with_start.pack(*result[1:6])
            else:
                out += _result.pack(*result[1:5])
            if flexible:
                out.append(1)  # no record errors
                write_compact_nullable_string(out, result.error_message)
                out.append(0)
            elif version >= 8:
                out += b"\x00\x00\x00\x00"
                write_nullable_string(out, result.error_message)
        if flexible:
            out.append(0)
    out += _int32.pack(throttle_time_ms)
    if flexible:
        out.append(0)
    return end_frame(out)


def encode_produce_request(
    version: int,
    correlation_id: int,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
    partitions: Sequence[tuple[str | bytes, int, bytes | bytearray | memoryview]],
    client_id: bytes = b"tailrace",
) -> list[bytes | bytearray | memoryview]:
    """A whole frame as pieces for one `sendmsg`; the records are not copied.

    Partitions of one topic must stand together.
    """
    out = begin_request(API, version, correlation_id, client_id)
    flexible = version >= FIRST_FLEXIBLE
    if flexible:
        write_compact_nullable_string(out, transactional_id)
    else:
        write_nullable_string(out, transactional_id)
    out += _acks.pack(acks, timeout_ms)
    groups = _by_topic(partitions)
    if flexible:
        write_varint(out, len(groups) + 1)
    else:
        out += _int32.pack(len(groups))
    head = out
    pieces: list[bytes | bytearray | memoryview] = [head]
    following = 0
    for topic, group in groups:
        _write_topic(out, topic, len(group), flexible=flexible)
        for _, index, records in group:
            out += _int32.pack(index)
            if flexible:
                write_varint(out, len(records) + 1)
            else:
                out += _int32.pack(len(records))
            out = bytearray()
            following += len(records)
            pieces += (records, out)
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    following += sum(len(piece) for piece in pieces[2::2])
    end_frame(head, following)
    return [piece for piece in pieces if len(piece)]


def _by_topic(rows: Iterable[Row]) -> list[tuple[str | bytes, list[Row]]]:
    groups: list[tuple[str | bytes, list[Row]]] = []
    last: object = None
    for row in rows:
        if row[0] != last:
            last = row[0]
            groups.append((row[0], []))  # type: ignore[arg-type]
        groups[-1][1].append(row)
    return groups


def _write_topic(out: bytearray, topic: str | bytes, count: int, *, flexible: bool) -> None:
    if isinstance(topic, bytes):
        out += topic
    elif flexible:
        write_compact_string(out, topic)
    else:
        write_string(out, topic)
    if flexible:
        write_varint(out, count + 1)
    else:
        out += _int32.pack(count)
