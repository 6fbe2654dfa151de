"""Event topics in Prometheus: gauges set from the reports of those who own them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.telemetry.metrics import gauge

_GAUGES = {
    "events": ("tailrace_events", "Events in the partitions owned by this project"),
    "bytes": ("tailrace_events_bytes", "Bytes of those events"),
    "streams": ("tailrace_events_streams", "Streams of those events"),
    "foreign": ("tailrace_events_foreign_records", "Records in an event topic that are no events"),
    "commands": ("tailrace_events_commands", "Commands answered since the owner began"),
    "rejected": ("tailrace_events_rejected", "Commands refused since the owner began"),
    "written": ("tailrace_events_written", "Events written since the owner began"),
    "waiting": ("tailrace_events_waiting_commands", "Commands that are not decided yet"),
    "longest_decision_ms": (
        "tailrace_events_longest_decision_milliseconds",
        "The longest that one batch of decisions has kept a partition waiting",
    ),
    "rebuilt_seconds": (
        "tailrace_events_rebuild_seconds",
        "What reading the whole of the owned partitions took when it was last done",
    ),
}


def publish_events(reports: Iterable[Mapping[str, Any]]) -> None:
    """Set the gauges of every event topic that a report tells of."""
    for report in reports:
        if report.get("kind") != "events":
            continue
        for topic, told in (report.get("topics") or {}).items():
            for field, (name, text) in _GAUGES.items():
                if isinstance(told.get(field), int | float):
                    gauge(name, text, ["topic"]).labels(topic).set(told[field])
            owned = gauge("tailrace_events_owned_partitions", "Partitions owned here", ["topic"])
            owned.labels(topic).set(len(told.get("partitions") or ()))
