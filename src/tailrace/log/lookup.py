"""Finding records by their time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tailrace.records.decode import decode_raw
from tailrace.records.header import CONTROL, LOG_APPEND_TIME, BatchHeader

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.segment import Segment


class TimeOffset(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp: int
    leader_epoch: int


def find_time(partition: Partition, timestamp: int) -> TimeOffset | None:
    """The first record below the high watermark whose timestamp is ≥ `timestamp`."""
    start = partition.log_start_offset
    for segment in partition.segments:
        if not segment.size or segment.max_timestamp < timestamp:
            continue
        relative = segment.times.lookup(timestamp)
        position = segment.index.lookup(relative) if relative else 0
        for place, header in segment.headers(position):
            if header.last_offset < start or header.max_timestamp < timestamp:
                continue
            if header.base_offset >= partition.high_watermark:
                return None
            found = _first_in_batch(segment, place, header, timestamp, start)
            if found is not None:
                return found
    return None


def find_largest_time(partition: Partition) -> TimeOffset | None:
    """The first record that has the largest timestamp of all."""
    best: Segment | None = None
    for segment in partition.segments:
        if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
            best = segment
    if best is None:
        return None
    largest = best.max_timestamp
    position = best.position_of(best.max_timestamp_offset) if best.max_timestamp_offset >= 0 else 0
    for place, header in best.headers(position):
        if header.max_timestamp >= largest and not header.control:
            return _first_in_batch(best, place, header, largest, partition.log_start_offset)
    return None


def _first_in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start: int
) -> TimeOffset | None:
    if header.attributes & CONTROL:
        return None
    if header.attributes & LOG_APPEND_TIME:
        return TimeOffset(max(header.base_offset, start), header.max_timestamp, header.leader_epoch)
    for record in decode_raw(segment.read_batch(position, header.size)):
        if record.timestamp >= timestamp and record.offset >= start:
            return TimeOffset(record.offset, record.timestamp, header.leader_epoch)
    return None
