"""A whole project's pipelines as one process, against a log."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, recompute, shown, traffic
from tailrace import config
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Stream, Topic, View
from tailrace.pipelines.process import requests
from tailrace.pipelines.process.runner import (
    Declared,
    Reload,
    RunningStreams,
    run_declared,
    run_ticks,
)
from tailrace.pipelines.reading.reader import LogReader, read_all
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
            run_ticks(Declared(views, [], [], settings), running, part, spark)
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

    def run() -> None:
        with contextlib.closing(RunningStreams(streams, part, spark, settings)) as running:
            run_ticks(Declared(views, streams, topics, settings), running, part, spark)

    with working(run, part) as wait:
        yield wait


@contextlib.contextmanager
def working(
    run: Callable[[], None], part: Part
) -> Iterator[Callable[[Callable[[dict[str, Any]], bool]], dict[str, Any]]]:
    """`run` in a thread; gives a function that waits until the part's report is as wished."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run()
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
        # Ticks are tried again and again: in between they have not failed yet.
        wait(lambda r: r["streams"][copied.name]["state"] == "running" and r["state"] == "lagging")
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


@pytest.mark.timeout(500)
def test_changed_declarations_are_taken_over_and_the_rest_goes_on(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"p{uuid.uuid4().hex[:6]}"
    numbers = tr.topic(f"{name}_numbers", schema="id BIGINT, n BIGINT")
    kept = tr.view(f"{name}_kept", f"SELECT id, n FROM {numbers.name}", key="id")
    sums = tr.view(f"{name}_sums", f"SELECT n, count(*) AS c FROM {numbers.name} GROUP BY n")
    other = tr.view(f"{name}_sums", f"SELECT n % 2 AS n, count(*) AS c FROM {numbers.name} GROUP BY n % 2")  # fmt: skip
    fresh = tr.view(f"{name}_fresh", f"SELECT max(n) AS n FROM {numbers.name}")

    def stream(called: str, column: str) -> Stream:
        @tr.stream(numbers, name=f"{name}_{called}", trigger="200 milliseconds")
        def made(frame: DataFrame) -> DataFrame:
            return frame.selectExpr(column)

        return made

    (tmp_path / "tailrace.toml").write_text(
        f'[project]\nname = "p"\n[spark]\ncache = "{tmp_path / "caches"}"\n'
    )
    settings = config.load(tmp_path)
    one, two, gone = stream("one", "id"), stream("two", "id"), stream("gone", "id")
    first = Declared(
        [kept, sums], [one, two, gone], [numbers], settings,
        {one.name: "1", two.name: "1", gone.name: "1"},
    )  # fmt: skip
    later = Declared(
        [kept, other, fresh], [one, stream("two", "n")], [numbers], settings,
        {one.name: "1", two.name: "2"},
    )  # fmt: skip
    streams_only = Declared([], [one], [numbers], settings, {one.name: "1"})
    given = iter([later, streams_only])
    part = Part("p", "pipelines", name, tailrace_broker, tmp_path / ".tailrace")
    send(tailrace_broker, numbers.name, {"id": 1, "n": 5}, {"id": 2, "n": 6}, {"id": 3, "n": 7})
    running = RunningStreams(first.streams, part, spark, settings)
    run = partial(run_declared, first, running, part, spark, Reload(lambda: next(given)))

    def rows(view: View) -> list[Any]:
        with LogReader(tailrace_broker) as reader:
            row = last_row(reader, name)
        topic = None if row is None or view.name not in row.views else row.views[view.name].topic
        values = {} if topic is None else dict(_latest(tailrace_broker, topic))
        return sorted(tuple(v["row"].values()) for v in values.values())

    def lives() -> list[str]:
        return sorted(str(query.runId) for query in spark.streams.active)

    with working(run, part) as wait, contextlib.closing(running):
        wait(lambda _: len(rows(sums)) == 3)
        for streamed in (one, two, gone):
            wait(lambda _, topic=streamed.name: len(written(tailrace_broker, topic)) == 3)
        before = lives()
        requests.ask(part.directory, "apply", "17")
        wait(lambda report: (report.get("applied") or {}).get("number") == "17")
        wait(lambda _: rows(other) == [(0, 1), (1, 2)] and rows(fresh) == [(7,)])
        assert rows(kept) == [(1, 5), (2, 6), (3, 7)]
        wait(lambda _: len(lives()) == 2)
        assert len(set(before) & set(lives())) == 1  # the stream that is as it was
        send(tailrace_broker, numbers.name, {"id": 4, "n": 8})
        wait(lambda _: len(written(tailrace_broker, two.name)) == 4)
        assert {"n": 8} in written(tailrace_broker, two.name)  # it went on, with new code
        wait(lambda _: len(written(tailrace_broker, one.name)) == 4)
        wait(lambda _: rows(fresh) == [(8,)])
        requests.ask(part.directory, "apply", "18")
        report = wait(lambda report: (report.get("applied") or {}).get("number") == "18")
        assert report["views"] == {}
        wait(lambda _: len(lives()) == 1)
    assert len(written(tailrace_broker, gone.name)) == 3


def _latest(bootstrap: str, topic: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The last value of each key of a changelog that has one."""
    found: dict[bytes, bytes | None] = {}
    with LogReader(bootstrap) as reader:
        for records in read_all(reader, topic):
            found |= dict(zip(records.keys, records.values, strict=True))  # type: ignore[arg-type]
    for key, value in found.items():
        if value is not None:
            yield key, orjson.loads(value)
