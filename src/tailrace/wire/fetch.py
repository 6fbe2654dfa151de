"""Fetch by hand: a request read into tuples, a response built around bytes not seen here.

The record bytes of a response are sent from files, so `encode_fetch_response` gives
pieces: the bytes before the first partition's records, those between the first and
the second, and so on, and those after the last. A frame is the pieces with the
records in between; its length counts them all.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import DecodeError, UnsupportedVersionError
from tailrace.wire.frames import begin_response, end_frame
from tailrace.wire.message import (
    fail,
    read_varint,
    skip_tags,
    write_compact_string,
    write_string,
    write_varint,
)

API = APIS[ApiKey.FETCH]
FIRST_FLEXIBLE = API.first_flexible
FIRST_WITH_IDS = 13

_int32 = struct.Struct(">i")
_partition_4 = struct.Struct(">iqi")
_partition_5 = struct.Struct(">iqqi")
_partition_9 = struct.Struct(">iiqqi")
_partition_12 = struct.Struct(">iiqiqi")
_start_old = struct.Struct(">iiii")
_start = struct.Struct(">iii")
_session = struct.Struct(">ii")
_answer_4 = struct.Struct(">ihqq")
_answer_5 = struct.Struct(">ihqqq")
_aborted = struct.Struct(">qq")
_head_7 = struct.Struct(">ihi")


class FetchPartition(NamedTuple):
    topic: str | bytes
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class FetchBody(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    partitions: list[FetchPartition]
    forgotten: list[tuple[str | bytes, int]]
    rack_id: str
    replica_id: int


class FetchAnswer(NamedTuple):
    """What is answered for one partition; `records_bytes` bytes of records follow it.

    `aborted` is None for readers of uncommitted records.
    """

    topic: str | bytes
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records_bytes: int = 0
    aborted: Sequence[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None


def decode_fetch_request(version: int, frame: memoryview, position: int) -> FetchBody:
    """The request whose body starts at `position`. Raises DecodeError."""
    if not API.min_version <= version <= API.max_version:
        raise UnsupportedVersionError(f"fetch has no version {version}")
    try:
        return _decode(version, frame, position)
    except (struct.error, IndexError, ValueError) as error:
        raise DecodeError(f"malformed fetch in version {version}: {error}") from error


def _decode(version: int, frame: memoryview, position: int) -> FetchBody:
    flexible = version >= FIRST_FLEXIBLE
    replica_id = -1
    if version < 15:
        replica_id, max_wait_ms, min_bytes, max_bytes = _start_old.unpack_from(frame, position)
        position += 16
    else:
        max_wait_ms, min_bytes, max_bytes = _start.unpack_from(frame, position)
        position += 12
    isolation_level = frame[position]
    position += 1
    session_id, session_epoch = 0, -1
    if version >= 7:
        session_id, session_epoch = _session.unpack_from(frame, position)
        position += 8
    count, position = _count(frame, position, flexible=flexible)
    if version >= 12:
        unpack, width = _partition_12.unpack_from, 32
    elif version >= 9:
        unpack, width = _partition_9.unpack_from, 28
    elif version >= 5:
        unpack, width = _partition_5.unpack_from, 24
    else:
        unpack, width = _partition_4.unpack_from, 16
    partitions: list[FetchPartition] = []
    for _ in range(count):
        topic, position = _topic(version, frame, position)
        inner, position = _count(frame, position, flexible=flexible)
        for _ in range(inner):
            row = unpack(frame, position)
            position += width
            if version >= 12:
                index, epoch, offset, fetched_epoch, start, size = row
                position = skip_tags(frame, position) if frame[position] else position + 1
                partitions.append(
                    FetchPartition(topic, index, offset, size, epoch, fetched_epoch, start)
                )
            elif version >= 9:
                index, epoch, offset, start, size = row
                partitions.append(FetchPartition(topic, index, offset, size, epoch, -1, start))
            else:
                partitions.append(FetchPartition(topic, row[0], row[1], row[-1]))
        if flexible:
            position = skip_tags(frame, position) if frame[position] else position + 1
    forgotten: list[tuple[str | bytes, int]] = []
    if version >= 7:
        count, position = _count(frame, position, flexible=flexible)
        for _ in range(count):
            topic, position = _topic(version, frame, position)
            inner, position = _count(frame, position, flexible=flexible)
            indexes = struct.unpack_from(f">{inner}i", frame, position)
            forgotten.extend((topic, index) for index in indexes)
            position += 4 * inner
            if flexible:
                position = skip_tags(frame, position)
    rack_id = ""
    if version >= 11:
        rack_id, position = _text(frame, position, flexible=flexible)
    if flexible:
        if version >= 15:
            replica_id = _replica_id(frame, position)
        else:
            skip_tags(frame, position)
    return FetchBody(
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch,
        partitions, forgotten, rack_id, replica_id,
    )  # fmt: skip


def _replica_id(frame: memoryview, position: int) -> int:
    """From version 15 the replica's id travels in a tagged struct; −1 for a client."""
    found = -1
    count, position = read_varint(frame, position)
    for _ in range(count):
        tag, position = read_varint(frame, position)
        size, position = read_varint(frame, position)
        if position + size > len(frame):
            raise fail("tagged field past the end")
        if tag == 1:
            (found,) = _int32.unpack_from(frame, position)
        position += size
    return int(found)


def _count(frame: memoryview, position: int, *, flexible: bool) -> tuple[int, int]:
    if flexible:
        count, position = read_varint(frame, position)
        count -= 1
    else:
        (count,) = _int32.unpack_from(frame, position)
        position += 4
    if count < 0 or count > len(frame) - position:
        raise fail("more elements than bytes")
    return count, position


def _text(frame: memoryview, position: int, *, flexible: bool) -> tuple[str, int]:
    if flexible:
        size, position = read_varint(frame, position)
        size -= 1
    else:
        size = int.from_bytes(frame[position : position + 2], "big", signed=True)
        position += 2
    stop = position + size
    if size < 0 or stop > len(frame):
        raise fail("text past the end")
    return str(frame[position:stop], "utf-8"), stop


def _topic(version: int, frame: memoryview, position: int) -> tuple[str | bytes, int]:
    if version < FIRST_WITH_IDS:
        return _text(frame, position, flexible=version >= FIRST_FLEXIBLE)
    stop = position + 16
    if stop > len(frame):
        raise fail("topic id past the end")
    return bytes(frame[position:stop]), stop


def encode_fetch_response(
    version: int,
    correlation_id: int,
    answers: Sequence[FetchAnswer],
    *,
    error_code: int = 0,
    session_id: int = 0,
    throttle_time_ms: int = 0,
) -> list[bytearray]:
    """Pieces of one frame, one more than there are answers; see above.

    Answers of one topic must stand together. An answer without records has none
    between its pieces, which may then be sent as one.
    """
    flexible = version >= FIRST_FLEXIBLE
    out = begin_response(API, version, correlation_id)
    if version >= 7:
        out += _head_7.pack(throttle_time_ms, error_code, session_id)
    else:
        out += _int32.pack(throttle_time_ms)
    groups: list[tuple[str | bytes, list[FetchAnswer]]] = []
    last: object = None
    for answer in answers:
        if answer.topic != last:
            last = answer.topic
            groups.append((answer.topic, []))
        groups[-1][1].append(answer)
    if flexible:
        write_varint(out, len(groups) + 1)
    else:
        out += _int32.pack(len(groups))
    pieces = [out]
    following = 0
    for topic, group in groups:
        if isinstance(topic, bytes):
            out += topic
        elif flexible:
            write_compact_string(out, topic)
        else:
            write_string(out, topic)
        if flexible:
            write_varint(out, len(group) + 1)
        else:
            out += _int32.pack(len(group))
        for answer in group:
            _write_answer(version, out, answer)
            following += answer.records_bytes
            out = bytearray()
            pieces.append(out)
            if flexible:
                _write_answer_tags(out, answer)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    end_frame(pieces[0], following + sum(len(piece) for piece in pieces[1:]))
    return pieces


def _write_answer(version: int, out: bytearray, answer: FetchAnswer) -> None:
    flexible = version >= FIRST_FLEXIBLE
    if version >= 5:
        out += _answer_5.pack(*answer[1:6])
    else:
        out += _answer_4.pack(*answer[1:5])
    aborted = answer.aborted
    if flexible:
        write_varint(out, 0 if aborted is None else len(aborted) + 1)
    else:
        out += _int32.pack(-1 if aborted is None else len(aborted))
    for producer_id, first_offset in aborted or ():
        out += _aborted.pack(producer_id, first_offset)
        if flexible:
            out.append(0)
    if version >= 11:
        out += b"\xff\xff\xff\xff"  # no preferred read replica
    if flexible:
        write_varint(out, answer.records_bytes + 1)
    else:
        out += _int32.pack(answer.records_bytes)


def _write_answer_tags(out: bytearray, answer: FetchAnswer) -> None:
    if answer.diverging_epoch is None:
        out.append(0)
        return
    epoch, end_offset = answer.diverging_epoch
    out += b"\x01\x00\x0d"  # one tag, number 0, 13 bytes
    out += struct.pack(">iqb", epoch, end_offset, 0)
