"""The bytes of a Fetch answer: headers from here, records from files.

Small ranges are read and go out with the headers in one send; larger ones stay file
ranges for `sendfile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from tailrace.wire.message import write_varint

if TYPE_CHECKING:
    from tailrace.broker.connection import FileRange
    from tailrace.broker.fetch_sessions import Wanted
    from tailrace.log.partition import Slice
    from tailrace.log.transactions import AbortedTransaction

FLEXIBLE = 12
TOPIC_IDS = 13
INLINE_BYTES = 32 * 1024

_FRAME = Struct(">ii")
_COUNT = Struct(">i")
_SHORT = Struct(">h")
_HEAD_V7 = Struct(">ihi")
_PARTITION_V4 = Struct(">ihqq")
_PARTITION_V5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_DIVERGING = Struct(">iqb")


class Outcome(NamedTuple):
    """What a fetch found in one partition."""

    wanted: Wanted
    error: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[AbortedTransaction] | None = None
    records: Slice | None = None
    diverging: tuple[int, int] | None = None


def encode(
    version: int,
    correlation_id: int,
    error: int,
    session_id: int,
    outcomes: Sequence[Outcome],
    pause: float = 0.0,
) -> list[bytes | bytearray | memoryview | FileRange]:
    """The parts of the whole frame; small ranges are read and released here. `pause` is the
    seconds a client is throttled."""
    flexible = version >= FLEXIBLE
    out = bytearray(_FRAME.pack(0, correlation_id))
    parts: list[bytes | bytearray | memoryview | FileRange] = [out]
    following = 0
    if flexible:
        out.append(0)
    throttle_ms = round(pause * 1000)
    if version >= 7:
        out += _HEAD_V7.pack(throttle_ms, error, session_id)
    else:
        out += _COUNT.pack(throttle_ms)
    topics = _by_topic(outcomes)
    _write_count(out, len(topics), flexible)
    for topic in topics:
        key = topic[0].wanted.topic
        if version >= TOPIC_IDS:
            assert isinstance(key, bytes)
            out += key
        else:
            assert isinstance(key, str)
            data = key.encode()
            if flexible:
                write_varint(out, len(data) + 1)
            else:
                out += _SHORT.pack(len(data))
            out += data
        _write_count(out, len(topic), flexible)
        for outcome in topic:
            _write_partition(out, version, outcome)
            records = outcome.records
            size = records.length if records is not None else 0
            if flexible:
                write_varint(out, size + 1)
            else:
                out += _COUNT.pack(size)
            if records is not None:
                if size <= INLINE_BYTES:
                    out += records.read()
                    records.release()
                else:
                    parts.append(records)
                    following += size
                    out = bytearray()
                    parts.append(out)
            if flexible:
                _write_tags(out, outcome.diverging)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    if not out:
        parts.pop()
    first = parts[0]
    assert isinstance(first, bytearray)
    size = following - 4
    for part in parts:
        if isinstance(part, bytearray):
            size += len(part)
    _COUNT.pack_into(first, 0, size)
    return parts


def _write_partition(out: bytearray, version: int, outcome: Outcome) -> None:
    flexible = version >= FLEXIBLE
    if version >= 5:
        out += _PARTITION_V5.pack(
            outcome.wanted.index,
            outcome.error,
            outcome.high_watermark,
            outcome.last_stable_offset,
            outcome.log_start_offset,
        )
    else:
        out += _PARTITION_V4.pack(
            outcome.wanted.index, outcome.error, outcome.high_watermark, outcome.last_stable_offset
        )
    aborted = outcome.aborted
    if aborted is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        _write_count(out, len(aborted), flexible)
        for one in aborted:
            out += _ABORTED.pack(one.producer_id, one.first_offset)
            if flexible:
                out.append(0)
    if version >= 11:
        out += b"\xff\xff\xff\xff"  # no other replica to read from


def _write_tags(out: bytearray, diverging: tuple[int, int] | None) -> None:
    if diverging is None:
        out.append(0)
    else:
        out += b"\x01\x00\x0d"  # one tag, number 0, 13 bytes
        out += _DIVERGING.pack(diverging[0], diverging[1], 0)


def _write_count(out: bytearray, count: int, flexible: bool) -> None:
    if flexible:
        write_varint(out, count + 1)
    else:
        out += _COUNT.pack(count)


def _by_topic(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Runs of the same topic, in the order they were served."""
    topics: list[list[Outcome]] = []
    last: str | bytes | None = None
    for outcome in outcomes:
        if outcome.wanted.topic == last:
            topics[-1].append(outcome)
        else:
            last = outcome.wanted.topic
            topics.append([outcome])
    return topics
