"""From an offset to bytes of a file, for `Partition.read`."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from tailrace.log.errors import CorruptSegmentError, NotFetchedError, OffsetOutOfRangeError
from tailrace.log.slices import Slice
from tailrace.log.verification import find_damage, settle

_LOOK_BYTES = 1024 * 1024

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.segment import Segment


def read_slice(
    partition: Partition,
    offset: int,
    max_bytes: int,
    limit_offset: int | None,
    minimum_one_batch: bool,
) -> Slice:
    """See `Partition.read`, which is this."""
    try:
        return _find(partition, offset, max_bytes, limit_offset, minimum_one_batch)
    except NotFetchedError:
        return Slice(None, 0, 0)  # the partition's `on_moved` tells when it is here
    except CorruptSegmentError:
        if not _mark_damage(partition, offset):
            raise
        return _find(partition, offset, max_bytes, limit_offset, minimum_one_batch)


def _mark_damage(partition: Partition, offset: int) -> bool:
    """A header on the way to `offset` is broken: find where that begins and ends. Whether
    anything was found that was not known."""
    place = max(0, bisect_right(partition.bases, offset) - 1)
    segment = partition.segments[place]
    known = len(segment.damaged)
    start = segment.index.lookup(offset - segment.base_offset)
    length = min(segment.size - start, _LOOK_BYTES)
    with Slice(segment.acquire(), start, length, segment) as part:
        settle(partition, part, find_damage(part))
    return len(segment.damaged) > known


def read_checked(partition: Partition, offset: int, max_bytes: int, limit_offset: int) -> bytes:
    """The bytes of a read, checked here and now; raises `CorruptSegmentError` (56)."""
    with partition.read(offset, max_bytes, limit_offset) as part:
        broken = find_damage(part) if part.unchecked else []
        if part.unchecked:
            settle(partition, part, broken)
        if not broken:
            return part.read()
    with partition.read(offset, max_bytes, limit_offset) as part:
        return part.read()


def _find(
    partition: Partition,
    offset: int,
    max_bytes: int,
    limit_offset: int | None,
    minimum_one_batch: bool,
) -> Slice:
    limit = partition.high_watermark if limit_offset is None else limit_offset
    if offset < partition.log_start_offset or offset > partition.end_offset:
        raise OffsetOutOfRangeError(
            f"offset {offset} of {partition.topic}-{partition.index} is not there",
            detail=f"the log holds {partition.log_start_offset} to {partition.end_offset}",
        )
    if offset >= limit or max_bytes <= 0:
        return Slice(None, 0, 0)
    if partition.failure is not None:
        raise partition.failure
    segment = partition.active
    place = len(partition.segments) - 1
    if offset < segment.base_offset:
        place = bisect_right(partition.bases, offset) - 1
        if place < 0:
            place = 0
        segment = partition.segments[place]
    position = segment.position_of(offset)
    while position >= segment.size:
        # Compaction took what was here; read on in the next segment.
        place += 1
        if place >= len(partition.segments) or partition.bases[place] >= limit:
            return Slice(None, 0, 0)
        segment, position = partition.segments[place], 0
    end = segment.size
    following = (
        partition.bases[place + 1] if place + 1 < len(partition.bases) else partition.end_offset
    )
    if limit < following:
        end = segment.position_of(limit)
    if segment.damaged:
        end = _before_damage(segment, position, end)
    length = end - position
    if length > max_bytes:
        length = max_bytes
        if minimum_one_batch:
            for _, header in segment.headers(position):
                length = max(length, header[1] + 12)
                break
    if length <= 0:
        return Slice(None, 0, 0)
    return Slice(segment.acquire(), position, length, segment)


def _before_damage(segment: Segment, position: int, end: int) -> int:
    """Where a read that begins at `position` must stop; raises if it begins in damage."""
    for damage in segment.damaged:
        if damage.position <= position < damage.end_position:
            raise damage.error()
        if position < damage.position < end:
            end = damage.position
    return end
