"""The same ticks as one Spark job each."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.shop import recompute, shown, traffic
from pipelines.ticks.test_ticks import Shop
from tailrace.pipelines.errors import KeyNotUniqueError
from tailrace.pipelines.ticks.driver import TickDriver
from tailrace.pipelines.ticks.small_ticks import run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_view_ticks_on_spark(log_address: str, tmp_path: Path, spark: SparkSession) -> None:
    shop = Shop(log_address, tmp_path)
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_on_spark(spark, work))
    seconds = []
    try:
        with shop.feed() as feed:
            driver.start()
            for changes in traffic(11, 12):
                position = feed.transaction(*changes)
                began = time.perf_counter()
                shop.catch_up(driver, position)
                seconds.append(time.perf_counter() - began)
                assert shown(shop.bootstrap, shop.view) == recompute(feed)
    finally:
        driver.close()
    print(f"commit to commit, p50 {statistics.median(seconds) * 1000:.0f} ms")


def test_an_error_in_a_task_reaches_the_driver_whole(
    log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    from dataclasses import replace

    shop = Shop(log_address, tmp_path)
    result = shop.graph.nodes[-1]
    # The view's key is not unique: its groups are told apart by country, not by count.
    broken = replace(result, operator=replace(result.operator, key=("orders",)))  # type: ignore[type-var]
    shop.graph = replace(shop.graph, nodes=(*shop.graph.nodes[:-1], broken))
    driver = TickDriver(shop.graph, shop.settings(shards=1), lambda work: run_on_spark(spark, work))
    order = {"amount": "1.00", "status": "open"}
    try:
        with shop.feed() as feed:
            driver.start()
            position = feed.transaction(
                ("customers", {"id": 1}, {"country": "NL"}),
                ("customers", {"id": 2}, {"country": "DE"}),
                ("orders", {"id": 1}, {"customer_id": 1, **order}),
                ("orders", {"id": 2}, {"customer_id": 2, **order}),
            )
            with pytest.raises(KeyNotUniqueError):
                shop.catch_up(driver, position)
            assert driver.last.number == 0
            assert shown(shop.bootstrap, shop.view) == {}
    finally:
        driver.close()
