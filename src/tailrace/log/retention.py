"""Which old segments go: by age, by size, or because the log's start has passed them.

Age is that of the newest record in a segment, so nothing goes before its segment is
closed; the active segment never goes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.log.partition import Partition

log = logging.getLogger(__name__)


def expired_segments(partition: Partition, now_ms: int, *, by_time: bool = True) -> int:
    """How many of the oldest segments are past retention; by size only without `by_time`."""
    config = partition.config
    sealed = partition.segments[:-1]
    stable = partition.last_stable_offset
    count = 0
    for place, segment in enumerate(sealed):
        if partition.bases[place + 1] > min(partition.log_start_offset, stable):
            break
        count = place + 1
        del segment
    if not config.delete:
        return count
    excess = partition.size_bytes - config.retention_bytes if config.retention_bytes >= 0 else 0
    for place, segment in enumerate(sealed):
        if place >= count:
            if partition.bases[place + 1] > stable:
                break
            old = by_time and 0 <= config.retention_ms < now_ms - segment.max_timestamp
            if not old and (excess <= 0 or excess < segment.size):
                break
            count = place + 1
        excess -= segment.size
    return count


def apply_retention(partition: Partition, now_ms: int, *, by_time: bool = True) -> int:
    """Delete what is past retention and can be spared (`Partition.drop_segments`); the number
    of segments deleted."""
    count = partition.drop_segments(expired_segments(partition, now_ms, by_time=by_time))
    if count:
        log.info(
            "segments deleted",
            extra={
                "topic": partition.topic,
                "partition": partition.index,
                "segments": count,
                "log_start_offset": partition.log_start_offset,
            },
        )
    return count
