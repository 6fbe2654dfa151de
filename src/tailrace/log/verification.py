"""Checks batches that come from the disk before they are served.

What this process appended it has checked; what it found when it started it has not. The
first read of such a range, and every read of a range that is not in memory any more, is
checked beside the loop (`find_damage`, on any thread). What is broken is taken out of
service and told (`settle`, on the loop's thread), and the read is done again around it.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from tailrace.log.damage import Damage, write_damage
from tailrace.log.whole_batches import WholeBatches, next_whole

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.segment import Segment
    from tailrace.log.slices import Slice

log = logging.getLogger(__name__)

# A thread that walks small batches holds the interpreter; now and then the loop may go first.
_BATCHES_BETWEEN_TURNS = 32


class Broken(NamedTuple):
    """Bytes [position, end_position) that hold no whole batch; `expected` is the offset
    behind the batch before them, `following` the base offset of the batch behind them,
    −1 if there is none."""

    position: int
    end_position: int
    expected: int
    following: int


def find_damage(part: Slice) -> list[Broken]:
    """Read every batch that begins in the slice; what is broken. Brings it into memory."""
    if part.segment is None:
        return []
    end = part.position + part.length
    size = max(part.file_bytes, end)
    return broken_between(part.descriptor, part.position, end, size, part.segment.base_offset)


def broken_between(number: int, position: int, end: int, size: int, expected: int) -> list[Broken]:
    """What is broken of the batches of a file of `size` bytes that begin in [position, end);
    none of them holds an offset below `expected`."""
    batches = WholeBatches(number, size)
    broken: list[Broken] = []
    turns = _BATCHES_BETWEEN_TURNS
    while position < end:
        header = batches.at(position, expected)
        if header is None:
            found = next_whole(number, position + 1, size, expected)
            if found is None:
                broken.append(Broken(position, size, expected, -1))
                break
            broken.append(Broken(position, found[0], expected, found[1].base_offset))
            position, expected = found[0], found[1].base_offset
            continue
        position += header[1] + 12
        expected = header[0] + header[6] + 1
        turns -= 1
        if not turns:
            turns = _BATCHES_BETWEEN_TURNS
            os.sched_yield()
    return broken


def settle(partition: Partition, part: Slice, broken: list[Broken]) -> None:
    """Take note of a checked slice: trust it from now on, but for what is broken in it."""
    segment = part.segment
    if segment is None or segment not in partition.segments:
        return  # deleted, compacted or archived meanwhile
    known = {damage.position for damage in segment.damaged}
    for each in broken:
        if each.position in known:
            continue
        damage = Damage(
            segment.path,
            each.position,
            each.end_position,
            _first_offset(segment, each.position),
            (each.following if each.following >= 0 else _end_offset(partition, segment)) - 1,
        )
        segment.damaged.append(damage)
        log.error(
            "damaged batches are kept out of service",
            extra={
                "path": damage.path,
                "position": damage.position,
                "base_offset": damage.base_offset,
                "last_offset": damage.last_offset,
                "hint": damage.error().hint,
            },
        )
    if broken:
        segment.damaged.sort(key=lambda damage: damage.position)
        segment.starts.clear()
        try:
            write_damage(partition.directory, partition.damaged, partition.shelf.files)
        except OSError as error:
            log.warning("damage not written down", extra={"error": str(error)})
    segment.trust(part.position, part.position + part.length)


def _first_offset(segment: Segment, position: int) -> int:
    """The offset behind the last batch before `position`, found from the index."""
    index = segment.index
    place = bisect_right(index.positions, position) - 1
    start = index.positions[place] if place >= 0 else 0
    expected = segment.base_offset
    if start >= position:
        start = index.positions[place - 1] if place >= 1 else 0
    for at, header in segment.headers(start, position):
        if at >= position:
            break
        expected = header.last_offset + 1
    return expected


def _end_offset(partition: Partition, segment: Segment) -> int:
    place = partition.segments.index(segment) + 1
    return partition.bases[place] if place < len(partition.bases) else partition.end_offset
