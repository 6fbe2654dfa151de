"""What a topic's settings say about slow consumers.

buffer   the log keeps what its retention says; nobody is disturbed (the default)
drop     no more than the limits is kept; groups that were slower lose the rest
slow     while the named group is behind by more, producers are made to pause
block    while it is, their requests wait; one that waited too long is refused
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

POLICY = "tailrace.slow.consumer.policy"
GROUP = "tailrace.slow.consumer.group"
MAX_RECORDS = "tailrace.slow.consumer.max.records"
MAX_BYTES = "tailrace.slow.consumer.max.bytes"
MAX_MS = "tailrace.slow.consumer.max.ms"

BUFFER, DROP, SLOW, BLOCK = "buffer", "drop", "slow", "block"

LEAST_PAUSE, MOST_PAUSE = 0.01, 5.0


class Lag(NamedTuple):
    """How far a group is behind in a topic: sums over its partitions, the oldest's age."""

    records: int = 0
    bytes: int = 0
    ms: int = 0


class Rule(NamedTuple):
    """One topic's settings; a limit of −1 is none."""

    policy: str = BUFFER
    group: str = ""
    max_records: int = -1
    max_bytes: int = -1
    max_ms: int = -1

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Rule:
        """From a topic's settings, which have been checked."""
        return cls(
            values[POLICY],
            values[GROUP],
            int(values[MAX_RECORDS]),
            int(values[MAX_BYTES]),
            int(values[MAX_MS]),
        )

    def excess(self, lag: Lag) -> float:
        """The lag as a multiple of the limit it is farthest over; up to 1 is within."""
        limits = (
            (lag.records, self.max_records),
            (lag.bytes, self.max_bytes),
            (lag.ms, self.max_ms),
        )
        return max((have / max(limit, 1) if limit >= 0 else 0.0 for have, limit in limits))

    def over(self, lag: Lag) -> bool:
        """Whether the group is farther behind than the topic allows."""
        return (
            (0 <= self.max_records < lag.records)
            or (0 <= self.max_bytes < lag.bytes)
            or (0 <= self.max_ms < lag.ms)
        )

    def pause(self, lag: Lag) -> float:
        """Seconds a producer rests after a request: the longer the farther over."""
        if self.policy != SLOW or not self.over(lag):
            return 0.0
        return min(MOST_PAUSE, max(LEAST_PAUSE, self.excess(lag) - 1.0))
