"""What Prometheus is told about a project's parts, and the dashboard that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tailrace.console.gauges import publish_parts
from tailrace.pipelines.streams.progress import publish_reports
from tailrace.telemetry.metrics import exposition

PARTS: list[dict[str, Any]] = [
    {"kind": "source", "name": "shop", "state": "lagging", "freshness_ms": 1500, "lag": 7, "restarts": 2},
    {"kind": "pipelines", "name": "p", "state": "running", "tick_ms": 250, "failed": {"v": {}}, "dead": 3,
     "filling": {}, "streams": {"s": {"rows_per_second": 2.5, "milliseconds": 40, "state": "running"}}},
    {"kind": "sink", "name": "v.sqlite", "state": "failed", "freshness_ms": None, "dead_letters": 4},
    {"kind": "edge", "edge": "statsd", "name": "m", "state": "running", "received": 9, "accepted": 8, "refused": 1,
     "lost": 3, "datagrams": 5, "lost_datagrams": 2, "bad_lines": 1},
    {"kind": "edge", "edge": "multicast", "name": "q", "state": "running", "received": 7, "lost": 4, "repaired": 6},
]  # fmt: skip


def published() -> str:
    publish_parts(PARTS, [{"level": "critical"}, {"level": "critical"}])
    publish_reports(PARTS)
    return exposition().decode()


def test_every_part_has_its_figures_and_takes_them_with_it() -> None:
    text = published()
    for line in (
        'tailrace_part_running{kind="source",name="shop"} 1.0',
        'tailrace_part_running{kind="sink",name="v.sqlite"} 0.0',
        'tailrace_part_latency_seconds{kind="source",name="shop"} 1.5',
        'tailrace_part_lag{kind="source",name="shop"} 7.0',
        'tailrace_part_restarts{kind="source",name="shop"} 2.0',
        'tailrace_part_dead_letters{kind="sink",name="v.sqlite"} 4.0',
        'tailrace_part_dead_letters{kind="pipelines",name="p"} 3.0',
        'tailrace_views_failed{name="p"} 1.0',
        'tailrace_tick_last_seconds{name="p"} 0.25',
        'tailrace_alarms{level="critical"} 2.0',
        'tailrace_edge_received_total{kind="statsd",name="m"} 9.0',
        'tailrace_edge_lost_total{kind="multicast",name="q"} 4.0',
        'tailrace_statsd_datagrams_total{name="m"} 5.0',
        'tailrace_statsd_lost_datagrams_total{name="m"} 2.0',
        'tailrace_statsd_bad_lines_total{name="m"} 1.0',
        'tailrace_multicast_lost_total{name="q"} 4.0',
        'tailrace_multicast_repaired_total{name="q"} 6.0',
        "# TYPE tailrace_edge_lost_total counter",
        'tailrace_alarms{level="warning"} 0.0',
    ):
        assert line in text
    assert 'latency_seconds{kind="sink"' not in text  # it has none yet
    publish_parts(PARTS[1:], [])
    text = exposition().decode()
    assert 'name="shop"' not in text
    assert 'tailrace_alarms{level="critical"} 0.0' in text


def test_the_dashboard_asks_for_metrics_that_there_are(checkout: Path) -> None:
    board = json.loads((checkout / "docs" / "how-to" / "tailrace.grafana.json").read_text())
    known = {
        line.split("{")[0].split(" ")[0] for line in published().splitlines() if line[0] != "#"
    }
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [variable["query"] for variable in board["templating"]["list"]]
    words = {word for text in asked for word in _words(text) if word.startswith("tailrace_")}
    assert len(words) > 8
    assert words <= known
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    page = (checkout / "docs" / "how-to" / "deploy.md").read_text()
    assert {word for word in _words(page) if word.startswith("tailrace_")} <= known


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
