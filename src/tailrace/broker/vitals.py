"""How the broker has been doing for the last minute, for its report to the supervisor.

produce_requests       Produce requests of the last minute
produce_error_share    of these, the share with a batch that was refused
loop_idle_share        of the loop's time; near 0 it is the limit
disk_free_share        of the fullest data directory
damaged_ranges         kept out of service because they do not match their checksum
failed_partitions      that answer with a storage error
sync_failures          since the start: what the disk refused to keep
"""

from __future__ import annotations

import shutil
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tailrace.wire.apis import ApiKey

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

SAMPLES = 60  # one a second
LOOK_AT_PARTITIONS_EVERY = 30


class _Sample(NamedTuple):
    idle: float
    busy: float
    requests: int
    failed: int


class Vitals:
    """Asked once a second, on the loop's thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES + 1)
        self._looks = 0
        self._damaged = self._failed = 0

    def look(self) -> dict[str, float | int]:
        """The figures of the module's docstring."""
        broker = self._broker
        now = _Sample(
            broker.loop.idle_seconds,
            broker.loop.busy_seconds,
            broker.router.requests.get(ApiKey.PRODUCE, 0),
            sum(traffic.failed for traffic in broker.metrics.topics.values()),
        )
        self._samples.append(now)
        then = self._samples[0]
        span = (now.idle - then.idle) + (now.busy - then.busy)
        requests = now.requests - then.requests
        failed = min(now.failed - then.failed, requests)
        if self._looks % LOOK_AT_PARTITIONS_EVERY == 0 or self._broker.store.sync_failures:
            self._look_at_partitions()
        self._looks += 1
        return {
            "produce_requests": requests,
            "produce_error_share": round(failed / requests, 4) if requests > 0 else 0.0,
            "loop_idle_share": round((now.idle - then.idle) / span, 4) if span > 0 else 1.0,
            "disk_free_share": round(self._free(), 4),
            "damaged_ranges": self._damaged,
            "failed_partitions": self._failed,
            "sync_failures": self._broker.store.sync_failures,
        }

    def _look_at_partitions(self) -> None:
        partitions = list(self._broker.store.partitions())
        self._damaged = sum(
            len(segment.damaged) for partition in partitions for segment in partition.segments
        )
        self._failed = sum(partition.failure is not None for partition in partitions)

    def _free(self) -> float:
        shares = [1.0]
        for directory in self._broker.store.directories:
            try:
                usage = shutil.disk_usage(directory.path)
            except OSError:
                continue
            shares.append(usage.free / usage.total)
        return min(shares)
