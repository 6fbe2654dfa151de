"""How a project's parts are, for Prometheus: what they report, under names that last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tailrace.telemetry.metrics import gauge, registry

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily

_OF_PART = ["kind", "name"]
# What an edge counts from its start: its kind ("" for every edge), its figure, the metric, the help.
_OF_EDGE = (
    ("", "received", "tailrace_edge_received", "What came to an edge"),
    ("", "accepted", "tailrace_edge_accepted", "Of that, what it took"),
    ("", "refused", "tailrace_edge_refused", "Of that, what it refused"),
    ("", "lost", "tailrace_edge_lost", "What was sent to an edge and is lost, as far as that is known"),
    ("webhook", "repeated", "tailrace_webhook_repeated", "Calls that had come before"),
    ("statsd", "datagrams", "tailrace_statsd_datagrams", "Datagrams received"),
    ("statsd", "lost_datagrams", "tailrace_statsd_lost_datagrams", "Datagrams that the kernel dropped for want of room"),
    ("statsd", "bad_lines", "tailrace_statsd_bad_lines", "Lines that mean nothing"),
    ("multicast", "lost", "tailrace_multicast_lost", "Datagrams that nobody has any more"),
    ("multicast", "repaired", "tailrace_multicast_repaired", "Datagrams that were missed and asked for again"),
    ("multicast", "repeated", "tailrace_multicast_repeated", "Datagrams that had come before"),
)  # fmt: skip


class _Edges:
    """Counters of other processes: they have their last report's values."""

    def __init__(self) -> None:
        self.reports: list[Mapping[str, Any]] = []

    def collect(self) -> Iterator[CounterMetricFamily]:
        from prometheus_client.core import CounterMetricFamily

        for kind, figure, name, text in _OF_EDGE:
            family = CounterMetricFamily(name, text, labels=["name"] if kind else _OF_PART)
            for report in self.reports:
                value = report.get(figure)
                if isinstance(value, int) and kind in ("", report["edge"]):
                    who = [str(report["name"])]
                    family.add_metric(who if kind else [str(report["edge"]), *who], value)
            yield family


@cache
def _edges() -> _Edges:
    made = _Edges()
    registry().register(made)
    return made


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
    mirrored = gauge("tailrace_mirror_records", "Records that the mirror has brought", ["name"])
    behind = gauge("tailrace_mirror_behind_seconds", "Since the mirror was last level with its source", ["name"])  # fmt: skip
    conflicts = gauge("tailrace_mirror_conflicts", "Records that lost a conflict", ["name"])
    stops = gauge("tailrace_mirror_stopped_partitions", "Partitions that do not go on", ["name"])
    raised = gauge("tailrace_alarms", "Alarms now", ["level"])
    for metric in (
        running,
        latency,
        lag,
        restarts,
        dead,
        tick,
        failed,
        filling,
        mirrored,
        behind,
        conflicts,
        stops,
        raised,
    ):
        metric.clear()
    parts = list(parts)
    _edges().reports = [part for part in parts if part["kind"] == "edge" and "edge" in part]
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
        if part["kind"] == "mirror":
            mirrored.labels(labels[1]).set(part.get("records") or 0)
            behind.labels(labels[1]).set(part.get("behind_seconds") or 0)
            conflicts.labels(labels[1]).set(part.get("conflicts") or 0)
            stops.labels(labels[1]).set(len(part.get("stops") or ()))
        if part["kind"] == "pipelines":
            failed.labels(labels[1]).set(len(part.get("failed") or ()))
            filling.labels(labels[1]).set(len(part.get("filling") or ()))
            if isinstance(part.get("tick_ms"), int | float):
                tick.labels(labels[1]).set(part["tick_ms"] / 1000)
    for level in ("warning", "critical"):
        raised.labels(level).set(0)
    for alarm in alarms:
        raised.labels(str(alarm["level"])).inc()
