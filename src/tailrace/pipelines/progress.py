"""How streams are doing, for status, the console and Prometheus.

The process that runs them puts `StreamProgress.document()` of each into its report; that
and `publish` are all a reader needs, so the gauges are the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tailrace.telemetry.metrics import gauge

_GAUGES = {
    "batch": ("tailrace_stream_batch", "Number of the last complete micro-batch"),
    "rows": ("tailrace_stream_batch_rows", "Rows read in the last micro-batch"),
    "rows_total": ("tailrace_stream_rows", "Rows read since the process started"),
    "rows_per_second": ("tailrace_stream_rows_per_second", "Rows a second, last micro-batch"),
    "milliseconds": ("tailrace_stream_batch_milliseconds", "Time of the last micro-batch"),
    "busy_seconds": ("tailrace_stream_busy_seconds", "How long the micro-batch of now has run"),
    "watermark_ms": ("tailrace_stream_watermark_milliseconds", "Event-time watermark since 1970"),
    "lag": ("tailrace_stream_lag_records", "Records not read yet"),
    "late": ("tailrace_stream_late_rows", "Rows dropped behind the watermark since the start"),
    "state_rows": ("tailrace_stream_state_rows", "Rows Spark keeps as state"),
    "dead": ("tailrace_stream_dead_letters", "Dead letters that wait"),
    "blocked": ("tailrace_stream_blocked_keys", "Keys blocked by a record that failed"),
    "failures": ("tailrace_stream_failures", "Times a query of it failed since the start"),
}


@dataclass(slots=True)
class StreamProgress:
    """One stream; figures of several outputs are those of its own topic's query."""

    state: str = "starting"
    batch: int | None = None
    rows: int | None = None
    rows_total: int = 0
    rows_per_second: float | None = None
    milliseconds: int | None = None
    busy_seconds: int = 0
    watermark_ms: int | None = None
    lag: int | None = None
    late: int = 0
    state_rows: int | None = None
    dead: int = 0
    blocked: int = 0
    failures: int = 0
    error: dict[str, str] | None = None

    def take(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add Spark's progress reports, oldest first; those seen already change nothing."""
        for report in reports:
            number = int(report["batchId"])
            if self.batch is not None and number <= self.batch:
                continue
            self.batch = number
            self.rows = int(report["numInputRows"] or 0)
            self.rows_total += self.rows
            self.rows_per_second = report.get("processedRowsPerSecond")
            self.milliseconds = report["durationMs"].get("triggerExecution")
            mark = (report.get("eventTime") or {}).get("watermark")
            if mark is not None:
                self.watermark_ms = _milliseconds(str(mark))
            operators = report.get("stateOperators") or ()
            self.late += sum(int(one.get("numRowsDroppedByWatermark") or 0) for one in operators)
            if operators:
                self.state_rows = sum(int(one.get("numRowsTotal") or 0) for one in operators)

    def document(self) -> dict[str, Any]:
        return asdict(self)


def _milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def publish(streams: Mapping[str, Mapping[str, Any]]) -> None:
    """Set the gauges of these streams from their documents, by name."""
    for field, (name, text) in _GAUGES.items():
        metric = gauge(name, text, ["stream"])
        for stream, document in streams.items():
            value = document.get(field)
            if value is not None:
                metric.labels(stream).set(value)
    failed = gauge(
        "tailrace_stream_failed", "1 while the stream has stopped on an error", ["stream"]
    )
    for stream, document in streams.items():
        failed.labels(stream).set(1 if document.get("state") == "failed" else 0)


def publish_reports(reports: Iterable[Mapping[str, Any]]) -> None:
    """`publish` what the reports of a project's parts say about streams."""
    for report in reports:
        if report.get("kind") == "pipelines":
            publish(report.get("streams") or {})
