"""A whole project's pipelines as one process, against a log."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, recompute, shown, traffic
from tailrace import config
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines import requests
from tailrace.pipelines.declare import Stream, Topic, View
from tailrace.pipelines.reader import LogReader, read_all
from tailrace.pipelines.runner import RunningStreams, run_ticks
from tailrace.pipelines.ticks.driver import last_row
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_sql_views_follow_their_tables(
    log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    name = f"{source}_open_orders"
    views = [
        tr.view(
            name,
            f"""SELECT c.country, count(*) AS orders, sum(o.amount) AS value
                FROM {source}.orders o JOIN {source}.customers c ON c.id = o.customer_id
                WHERE o.status = 'open' GROUP BY c.country""",
            key="country",
        ),
        tr.view(f"{source}_paid", f"SELECT id, amount FROM {source}.orders WHERE status = 'paid'"),
    ]
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    part = Part("p", "pipelines", source, log_address, tmp_path / ".tailrace")
    settings = config.load(tmp_path)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            running = RunningStreams([], part, spark, settings)
            run_ticks(views, running, part, spark, settings)
        except BaseException as problem:
            failed.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with ChangeFeed(log_address, source, [ORDERS, CUSTOMERS]) as feed:
            for changes in traffic(21, 15):
                position = feed.transaction(*changes)
            with LogReader(log_address) as reader:
                for _ in range(300):
                    row = last_row(reader, source)
                    if row is not None and row.positions.get(source) == position:
                        break
                    assert not failed, failed
                    threading.Event().wait(0.1)
                else:
                    raise AssertionError(f"never reached {position}: {row}")
            assert shown(log_address, name) == recompute(feed)
            assert row is not None
            assert row.views[f"{source}_paid"].key == ("id",)
            report = orjson.loads(part.report_path.read_bytes())
            assert report["state"] == "running"
    finally:
        part.stopping.set()
        thread.join(30)
    assert not failed, failed


@contextlib.contextmanager
def ticking(
    part: Part,
    spark: SparkSession,
    views: Sequence[View],
    streams: Sequence[Stream],
    topics: Sequence[Topic] = (),
) -> Iterator[Callable[[Callable[[dict[str, Any]], bool]], dict[str, Any]]]:
    """Pipelines in a thread; gives a function that waits until their report is as wished."""
    directory = part.directory.parent
    (directory / "tailrace.toml").write_text(
        f'[project]\nname = "p"\n[spark]\ncache = "{directory / "caches"}"\n'
    )
    settings = config.load(directory)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with contextlib.closing(RunningStreams(streams, part, spark, settings)) as running:
                run_ticks(views, running, part, spark, settings, topics)
        except BaseException as problem:
            failed.append(problem)

    def wait(wished: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        until = time.monotonic() + 200
        while time.monotonic() < until:
            assert not failed, failed
            report = (
                orjson.loads(part.report_path.read_bytes()) if part.report_path.exists() else {}
            )
            if wished(report):
                return dict(report)
            time.sleep(0.1)
        raise AssertionError(f"in vain: {report}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield wait
    finally:
        part.stopping.set()
        thread.join(60)
    assert not failed, failed


def send(bootstrap: str, topic: str, *rows: dict[str, Any]) -> None:
    with TransactionalWriter(bootstrap, f"test.{topic}") as writer:
        writer.init()
        for row in rows:
            writer.send(topic, None, None, orjson.dumps(row))
        writer.commit()


def written(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    with LogReader(bootstrap) as reader:
        values = [v for records in read_all(reader, topic) for v in records.values]
    return [orjson.loads(value or b"null") for value in values]


@pytest.mark.timeout(500)
def test_ticks_that_fail_do_not_stop_the_streams(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"p{uuid.uuid4().hex[:6]}"
    numbers = tr.topic(f"{name}_numbers", schema="id BIGINT, n BIGINT")
    shares = tr.view(f"{name}_shares", f"SELECT id, 100 DIV n AS share FROM {numbers.name}")

    @tr.stream(numbers, name=f"{name}_copied", trigger="200 milliseconds")
    def copied(frame: DataFrame) -> DataFrame:
        return frame

    send(tailrace_broker, numbers.name, {"id": 1, "n": 5})
    part = Part("p", "pipelines", name, tailrace_broker, tmp_path / ".tailrace")
    with ticking(part, spark, [shares], [copied], [numbers]) as wait:
        wait(lambda _: len(written(tailrace_broker, copied.name)) == 1)
        send(tailrace_broker, numbers.name, {"id": 2, "n": 0})
        assert list((tmp_path / "caches" / name).iterdir())
        report = wait(lambda report: bool(report.get("failed")))
        assert report["error"]["code"] == "evaluation"
        assert report["failed"][shares.name]["error"] == "division by zero"
        send(tailrace_broker, numbers.name, {"id": 3, "n": 4})
        wait(lambda _: len(written(tailrace_broker, copied.name)) == 3)
        report = wait(lambda report: report["streams"][copied.name]["state"] == "running")
        assert report["state"] == "lagging"
        # what an operator asks of a view is kept for the ticks, not thrown away
        requests.ask(part.directory, "rebuild", shares.name)
        time.sleep(2)
        assert requests.waiting(part.directory)


@pytest.mark.timeout(500)
def test_streams_run_while_views_wait_for_their_tables(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"p{uuid.uuid4().hex[:6]}"
    numbers = tr.topic(f"{name}_numbers", schema="id BIGINT")

    @tr.stream(numbers, name=f"{name}_copied", trigger="200 milliseconds")
    def copied(frame: DataFrame) -> DataFrame:
        return frame

    send(tailrace_broker, numbers.name, {"id": 1})
    part = Part("p", "pipelines", name, tailrace_broker, tmp_path / ".tailrace")
    lacking = tr.view(f"{name}_lacking", f"SELECT id FROM {name}.orders")
    with ticking(part, spark, [lacking], [copied]) as wait:
        wait(lambda _: written(tailrace_broker, copied.name) == [{"id": 1}])
        report = wait(lambda report: bool(report.get("error")))
        assert report["state"] == "starting"
