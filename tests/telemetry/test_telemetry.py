"""Logs with data beside a fixed message, one registry of metrics, reports that survive."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.telemetry import logs, metrics, traces
from tailrace.telemetry.part import Part, read_reports


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    written = io.StringIO()
    root = logging.getLogger("tailrace")
    before = (root.handlers[:], root.level, root.propagate)
    yield written
    root.handlers[:], root.propagate = before[0], before[2]
    root.setLevel(before[1])


def test_a_line_for_people_has_the_data_behind_the_message(stream: io.StringIO) -> None:
    logs.configure("info", "human", stream)
    logging.getLogger("tailrace.log.partition").info(
        "segment rolled", extra={"topic": "clicks", "base_offset": 4096}
    )
    line = stream.getvalue().strip()
    assert line.endswith("INFO    log.partition  segment rolled  topic=clicks base_offset=4096")


def test_a_line_for_machines_is_one_json_object(stream: io.StringIO) -> None:
    logs.configure("info", "json", stream)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("tailrace.x").exception("it failed", extra={"n": 1})
    document = json.loads(stream.getvalue())
    assert (document["message"], document["n"], document["level"]) == ("it failed", 1, "error")
    assert "ValueError: odd" in document["exception"]


@pytest.mark.parametrize("form", ["human", "json"])
def test_no_secret_reaches_the_log(stream: io.StringIO, form: str) -> None:
    logs.configure("info", form, stream)
    logging.getLogger("tailrace.x").info(
        "connecting to postgres://shop:hush1@db/shop",
        extra={"dsn": "host=db password='hush2' user=shop", "api_key": "hush3", "token": "hush4"},
    )
    assert "hush" not in stream.getvalue()
    assert "postgres://shop:***@db/shop" in stream.getvalue()


def test_the_level_is_honoured_and_configuring_again_replaces(stream: io.StringIO) -> None:
    logs.configure("warning", "human", stream)
    logs.configure("warning", "human", stream)
    logging.getLogger("tailrace.x").info("quiet")
    logging.getLogger("tailrace.x").warning("loud")
    assert stream.getvalue().count("\n") == 1


def test_a_warning_that_repeats_is_counted_and_others_are_shown() -> None:
    now = 0.0
    filtered = logs.Repeats(lambda: now)

    def shown(level: int, error: str) -> logging.LogRecord | None:
        record = logging.LogRecord("broker", level, "file", 7, "not written", None, None)
        record.error = error
        return record if filtered.filter(record) else None

    assert sum(shown(logging.WARNING, "full") is not None for _ in range(450)) == 10
    assert shown(logging.WARNING, "gone") is not None
    assert all(shown(logging.INFO, "full") for _ in range(20))
    now = 10.0
    first, second = shown(logging.WARNING, "full"), shown(logging.WARNING, "full")
    assert first is not None
    assert vars(first)["repeated"] == 440
    assert second is not None
    assert "repeated" not in vars(second)


def test_what_is_remembered_of_warnings_is_bounded() -> None:
    filtered = logs.Repeats()
    for number in range(5000):
        record = logging.LogRecord("broker", logging.ERROR, "file", 7, f"{number}", None, None)
        assert filtered.filter(record)
    assert len(filtered._seen) <= logs.Repeats.REMEMBERED


def test_a_metric_declared_twice_is_the_same() -> None:
    first = metrics.counter("tailrace_test_things_total", "Things", ["kind"])
    second = metrics.counter("tailrace_test_things_total", "Things", ["kind"])
    assert first is second
    first.labels("a").inc(3)
    metrics.gauge("tailrace_test_level", "Level").set(2)
    metrics.histogram("tailrace_test_seconds", "Seconds").observe(0.01)
    text = metrics.exposition().decode()
    assert 'tailrace_test_things_total{kind="a"} 3.0' in text
    assert "tailrace_test_level 2.0" in text
    assert "tailrace_test_seconds_bucket" in text


def test_a_span_costs_nothing_where_tracing_is_absent() -> None:
    with traces.span("tick", number=7):
        pass
    assert traces.span("again") is not None


def test_a_report_is_whole_or_absent_and_merges(tmp_path: Path) -> None:
    part = Part("shop", "source", "p", "127.0.0.1:1", tmp_path)
    part.report("starting", lag=3)
    part.report("running", freshness_ms=20)
    (tmp_path / "run" / "broken.json").write_text("{")
    reports = read_reports(tmp_path)
    assert len(reports) == 1
    assert (reports[0]["state"], reports[0]["lag"], reports[0]["freshness_ms"]) == (
        "running",
        3,
        20,
    )
    with pytest.raises(ValueError, match="unknown state"):
        part.report("dancing")


def test_a_parts_name_cannot_leave_its_directory(tmp_path: Path) -> None:
    Part("../../evil", "sink", "p", "", tmp_path).report("running")
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "run"]
