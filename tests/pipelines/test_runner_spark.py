"""A whole project's pipelines as one process, against a log."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, recompute, shown, traffic
from tailrace import config
from tailrace.pipelines.reader import LogReader
from tailrace.pipelines.runner import RunningStreams, run_ticks
from tailrace.pipelines.ticks.driver import last_row
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
