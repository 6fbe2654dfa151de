"""How streams are doing, for status, the console and Prometheus.

The process that runs them puts `StreamProgress.document()` of each into its report; that
and `publish` are all a reader needs, so the gauges are the same in every process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from tailrace.telemetry.metrics import gauge

RATE_MS = 60_000

_GAUGES = {
    "batch": ("tailrace_stream_batch", "Number of the last complete micro-batch"),
    "rows": ("tailrace_stream_batch_rows", "Rows read in the last micro-batch"),
    "rows_total": ("tailrace_stream_rows", "Rows read since the process started"),
    "rows_per_second": ("tailrace_stream_rows_per_second", "Rows a second over the last minute"),
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
    _begun: deque[tuple[int, int]] = field(default_factory=deque, init=False)  # when, rows
    _first_ms: int | None = field(default=None, init=False)

    def take(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add Spark's progress reports, oldest first; those seen already change nothing."""
        for report in reports:
            number = int(report["batchId"])
            if self.batch is not None and number <= self.batch:
                continue
            self.batch = number
            self.rows = int(report["numInputRows"] or 0)
            self.rows_total += self.rows
            self._begun.append((_milliseconds(str(report["timestamp"])), self.rows))
            self.milliseconds = report["durationMs"].get("triggerExecution")
            mark = (report.get("eventTime") or {}).get("watermark")
            if mark is not None:
                self.watermark_ms = _milliseconds(str(mark))
            operators = report.get("stateOperators") or ()
            self.late += sum(int(one.get("numRowsDroppedByWatermark") or 0) for one in operators)
            if operators:
                self.state_rows = sum(int(one.get("numRowsTotal") or 0) for one in operators)

    def pass_time(self, wall_ms: int) -> None:
        """Work out the rate over the last minute, or the time since the first batch."""
        self._first_ms = min(self._first_ms or wall_ms, *(at for at, _ in self._begun), wall_ms)
        while self._begun and self._begun[0][0] < wall_ms - RATE_MS:
            self._begun.popleft()
        seconds = max(1.0, min(RATE_MS, wall_ms - self._first_ms) / 1000)
        self.rows_per_second = round(sum(rows for _, rows in self._begun) / seconds, 3)

    def document(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}


def _milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def publish(streams: Mapping[str, Mapping[str, Any]]) -> None:
    """Set the gauges of these streams from their documents, by name."""
    for fact, (name, text) in _GAUGES.items():
        metric = gauge(name, text, ["stream"])
        for stream, document in streams.items():
            value = document.get(fact)
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
