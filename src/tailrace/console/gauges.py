"""How a project's parts are, for Prometheus: what they report, under names that last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.telemetry.metrics import gauge

_OF_PART = ["kind", "name"]


def publish_parts(parts: Iterable[Mapping[str, Any]], alarms: Iterable[Mapping[str, Any]]) -> None:
    """Set the gauges from reports of parts (`node.health`) and alarms; a part that is gone
    takes its figures with it."""
    running = gauge("tailrace_part_running", "1 while the part runs, 0 else", _OF_PART)
    latency = gauge("tailrace_part_latency_seconds", "Source: commit to log; view: to tick; sink: to target", _OF_PART)  # fmt: skip
    lag = gauge("tailrace_part_lag", "Records (Postgres: bytes of WAL) that wait", _OF_PART)
    restarts = gauge("tailrace_part_restarts", "Starts since it last ran well", _OF_PART)
    dead = gauge("tailrace_part_dead_letters", "Records or rows set aside", _OF_PART)
    tick = gauge("tailrace_tick_last_seconds", "Plan to commit of the last tick", ["name"])
    failed = gauge("tailrace_views_failed", "Views that do not go on", ["name"])
    filling = gauge("tailrace_views_filling", "Views that are being filled", ["name"])
    raised = gauge("tailrace_alarms", "Alarms now", ["level"])
    for metric in (running, latency, lag, restarts, dead, tick, failed, filling, raised):
        metric.clear()
    for part in parts:
        labels = (str(part["kind"]), str(part["name"]))
        running.labels(*labels).set(part.get("state") in ("running", "lagging"))
        restarts.labels(*labels).set(part.get("restarts") or 0)
        if isinstance(part.get("freshness_ms"), int | float):
            latency.labels(*labels).set(part["freshness_ms"] / 1000)
        if isinstance(part.get("lag"), int | float):
            lag.labels(*labels).set(part["lag"])
        letters = part.get("dead_letters") if part["kind"] == "sink" else part.get("dead")
        if isinstance(letters, int):
            dead.labels(*labels).set(letters)
        if part["kind"] == "pipelines":
            failed.labels(labels[1]).set(len(part.get("failed") or ()))
            filling.labels(labels[1]).set(len(part.get("filling") or ()))
            if isinstance(part.get("tick_ms"), int | float):
                tick.labels(labels[1]).set(part["tick_ms"] / 1000)
    for level in ("warning", "critical"):
        raised.labels(level).set(0)
    for alarm in alarms:
        raised.labels(str(alarm["level"])).inc()
