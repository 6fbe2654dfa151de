"""How far behind a group is, in records, bytes and time; and what it may lose next."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from tailrace.broker.pressure.rules import Lag
from tailrace.errors import TailraceError
from tailrace.records.header import read_header

if TYPE_CHECKING:
    from tailrace.log.partition import Partition

HEADER_BYTES = 61


def lag_of(partition: Partition, offset: int, now_ms: int) -> Lag:
    """From `offset` to the end."""
    offset = max(offset, partition.log_start_offset)
    records = max(0, partition.high_watermark - offset)
    if not records:
        return Lag()
    return Lag(records, bytes_from(partition, offset), age_of(partition, offset, now_ms))


def bytes_from(partition: Partition, offset: int) -> int:
    """Bytes of the batches from the one that holds `offset` on."""
    place = max(0, bisect_right(partition.bases, offset) - 1)
    following = sum(segment.size for segment in partition.segments[place + 1 :])
    try:
        with partition.read(offset, 1, partition.high_watermark) as part:
            position = part.position
    except TailraceError:
        position = 0
    return following + max(0, partition.segments[place].size - position)


def age_of(partition: Partition, offset: int, now_ms: int) -> int:
    """How old the batch that holds `offset` is; 0 if it cannot be told."""
    try:
        with partition.read(offset, HEADER_BYTES, partition.high_watermark) as part:
            header = read_header(part.read()[:HEADER_BYTES], 0) if part.length else None
    except (TailraceError, ValueError):
        return 0
    return 0 if header is None else max(0, now_ms - header.max_timestamp)


def offset_of_last_bytes(partition: Partition, size: int) -> int:
    """The first offset such that no more than `size` bytes follow it."""
    low, high = partition.log_start_offset, partition.high_watermark
    while low < high:
        middle = (low + high) // 2
        if bytes_from(partition, middle) > size:
            low = middle + 1
        else:
            high = middle
    return low


def retention_used(partition: Partition, offset: int, now_ms: int) -> float:
    """How near the record at `offset` is to being deleted: 0 far, 1 at any moment.

    By the rule that deletes: a segment goes as a whole, when its newest record is too old or
    when the segments after it are enough for `retention.bytes`.
    """
    config = partition.config
    if offset < partition.log_start_offset:
        return 1.0
    if not config.delete or offset >= partition.high_watermark:
        return 0.0
    place = max(0, bisect_right(partition.bases, offset) - 1)
    used = 0.0
    if config.retention_ms > 0:
        newest = partition.segments[place].max_timestamp
        if newest > 0:
            used = max(0, now_ms - newest) / config.retention_ms
    if config.retention_bytes > 0:
        size = sum(segment.size for segment in partition.segments[place:])
        used = max(used, size / config.retention_bytes)
    return min(used, 1.0)
