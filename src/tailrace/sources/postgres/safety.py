"""The source's own safety: heartbeats, and how much WAL our slot makes the server keep."""

from __future__ import annotations

import logging
from typing import Any

from tailrace.clock import Clock
from tailrace.config import parse_duration, parse_size
from tailrace.sources.declare import Postgres
from tailrace.sources.postgres import catalog
from tailrace.telemetry import metrics

log = logging.getLogger(__name__)

HEARTBEAT_PREFIX = "tailrace.heartbeat"


class Safety:
    """Watches the slot every `heartbeat`; each watch also moves the WAL on.

    A database where nothing happens confirms nothing by itself, while others on the same
    server fill the WAL: the heartbeat is a logical message, and needs no table.
    """

    def __init__(self, source: Postgres, connection: catalog.Connection, clock: Clock) -> None:
        self._source = source
        self._connection = connection
        self._clock = clock
        self._every = parse_duration(source.heartbeat).total_seconds()
        self._warning = parse_size(source.wal_warning)
        self._critical = parse_size(source.wal_critical)
        self._watched_at = -1e9
        self.facts: dict[str, Any] = {}

    def watch(self) -> dict[str, Any]:
        """What to report about the slot; asks the server when it is time."""
        now = self._clock.monotonic()
        if self._every <= 0 or now - self._watched_at < self._every:
            return self.facts
        self._watched_at = now
        self._connection.execute(
            "SELECT pg_logical_emit_message(false, %s, %s)",
            [HEARTBEAT_PREFIX, str(self._clock.wall_ms())],
        )
        slot = catalog.read_slot(self._connection, self._source.slot_name)
        if slot is None:
            return self.facts
        level = "ok"
        if slot.retained_bytes >= self._critical:
            level = "critical"
        elif slot.retained_bytes >= self._warning:
            level = "warning"
        if level != "ok" and self.facts.get("wal_state") != level:
            log.warning(
                "the slot keeps much WAL",
                extra={"source": self._source.name, "bytes": slot.retained_bytes, "level": level},
            )
        labels = {"source": self._source.name}
        metrics.gauge(
            "tailrace_source_retained_wal_bytes", "WAL the server keeps for our slot", ["source"]
        ).labels(**labels).set(slot.retained_bytes)
        self.facts = {"wal_retained_bytes": slot.retained_bytes, "wal_state": level}
        return self.facts

    def beat(self, content: bytes) -> None:
        """A heartbeat came back: how long the way through the WAL took."""
        seconds = (self._clock.wall_ms() - int(content or b"0")) / 1000
        metrics.histogram(
            "tailrace_source_heartbeat_seconds", "From heartbeat to its arrival", ["source"]
        ).labels(source=self._source.name).observe(max(seconds, 0.0))
