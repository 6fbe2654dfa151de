"""Levels and the one-task executor: the same views, the same state, from tick to tick."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.shop import CUSTOMERS, ORDERS, graph, recompute, shown, traffic
from pipelines.ticks.test_fill import OPEN, PAID, PER_COUNTRY, Project, expected
from pipelines.ticks.test_ticks import Shop, in_process
from tailrace.pipelines.errors import KeyNotUniqueError, TickUnsteadyError
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.inspect import entries
from tailrace.pipelines.ticks.driver import TickDriver
from tailrace.pipelines.ticks.job import Outcome, TaskOutcome, Work
from tailrace.pipelines.ticks.levels import Group, Value, conclude, run_levels, run_levels_here
from tailrace.testing.feed import ChangeFeed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_executors_may_alternate(log_address: str, tmp_path: Path) -> None:
    shop = Shop(log_address, tmp_path)
    chance = random.Random(1)

    def either(work: Work) -> Outcome:
        return chance.choice([in_process, run_levels_here])(work)  # type: ignore[no-any-return]

    driver = TickDriver(shop.graph, shop.settings(), either)
    try:
        with shop.feed() as feed:
            driver.start()
            for changes in traffic(31, 25):
                shop.catch_up(driver, feed.transaction(*changes))
                assert shown(shop.bootstrap, shop.view) == recompute(feed)
    finally:
        driver.close()


def test_both_executors_keep_the_same_state(log_address: str, tmp_path: Path) -> None:
    kept = []
    with ChangeFeed(log_address, "shopx", [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(32, 30)][-1]
        for number, run in enumerate((in_process, run_levels_here)):
            shop = Shop(log_address, tmp_path / str(number))
            shop.graph = graph("shopx", shop.view)
            driver = TickDriver(shop.graph, shop.settings(limit=9), run)
            driver.start()
            while driver.last.positions.get("shopx") != position:
                driver.step(0.5)
            driver.close()
            nodes = [node.id for node in shop.graph.nodes]
            found = entries(LocalFiles(tmp_path / str(number) / "state"), tmp_path / "look", driver.last.state, nodes)  # fmt: skip
            kept.append(sorted(found, key=repr))
            assert shown(log_address, shop.view) == recompute(feed)
    assert kept[0] == kept[1]
    assert kept[0]


def test_fills_and_rebuilds_work_over_levels(log_address: str, tmp_path: Path) -> None:
    project = Project(log_address, tmp_path, run_levels_here)
    with ChangeFeed(log_address, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(33, 20)][-1]
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
        with project.running(limit=10, paid=OPEN, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            ticks.rebuild(f"{project.name}_per_country")
            position = [feed.transaction(*c) for c in traffic(34, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid", "open")
            assert project.rows("per_country") == expected(feed, "per_country")


def test_a_task_with_two_answers_throws_the_tick_away(log_address: str, tmp_path: Path) -> None:
    shop = Shop(log_address, tmp_path)
    work: list[Work] = []

    def keep(given: Work) -> Outcome:
        work.append(given)
        return in_process(given)  # type: ignore[no-any-return]

    driver = TickDriver(shop.graph, shop.settings(), keep)
    try:
        with shop.feed() as feed:
            driver.start()
            shop.catch_up(driver, [feed.transaction(*c) for c in traffic(35, 5)][-1])
    finally:
        driver.close()
    told: list[Value] = []
    for task in range(3):
        told += Group(work[0], 0, task, 3).run([])
    done = [value for value in told if value.kind == "done"]
    assert conclude(done, 3, 0, 3).files
    first = pickle.loads(done[0].value)

    def instead(outcome: TaskOutcome) -> list[Value]:
        value = pickle.dumps(outcome)
        return [Value(v.level, v.shard, v.kind, v.name, v.number, value) if v is done[0] else v for v in done]  # fmt: skip

    # How long it took is no answer; which file it wrote is.
    assert conclude(instead(replace(first, opened_ms=first.opened_ms + 7)), 3, 0, 3).files
    changed = instead(replace(first, files={0: ("another",)}))
    with pytest.raises(TickUnsteadyError, match="more than one answer"):
        conclude(changed, 3, 0, 3)
    with pytest.raises(TickUnsteadyError, match="incomplete"):
        conclude(done, 3, 1, 3)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_an_error_in_one_shard_reaches_the_driver_whole(
    log_address: str, tmp_path: Path, tasks: int
) -> None:
    shop = Shop(log_address, tmp_path)
    result = shop.graph.nodes[-1]
    # The view's key is not unique: its groups are told apart by country, not by count.
    broken = replace(result, operator=replace(result.operator, key=("orders",)))  # type: ignore[type-var]
    shop.graph = replace(shop.graph, nodes=(*shop.graph.nodes[:-1], broken))
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_levels_here(work, tasks))
    order = {"amount": "1.00", "status": "open"}
    countries = ["NL", "DE", "FR", "BE", "LU", "AT", "DK", "SE"]
    customers = [("customers", {"id": n}, {"country": c}) for n, c in enumerate(countries)]
    orders = [("orders", {"id": n}, {"customer_id": n, **order}) for n in range(len(countries))]
    try:
        with shop.feed() as feed:
            driver.start()
            position = feed.transaction(*customers, *orders)
            with pytest.raises(KeyNotUniqueError):
                shop.catch_up(driver, position)
            assert driver.last.number == 0
            assert shown(shop.bootstrap, shop.view) == {}
    finally:
        driver.close()


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_any_number_of_tasks_shows_the_same_view(
    log_address: str, tmp_path: Path, tasks: int
) -> None:
    _follows(Shop(log_address, tmp_path), lambda work: run_levels_here(work, tasks))


@pytest.mark.spark
def test_levels_run_on_spark(log_address: str, tmp_path: Path, spark: SparkSession) -> None:
    _follows(Shop(log_address, tmp_path), lambda work: run_levels(spark, work))


def _follows(shop: Shop, run: Callable[[Work], Outcome]) -> None:
    """After every tick run this way the view is what a recompute says."""
    driver = TickDriver(shop.graph, shop.settings(), run)
    try:
        with shop.feed() as feed:
            driver.start()
            for changes in traffic(36, 6, size=40):
                shop.catch_up(driver, feed.transaction(*changes))
                assert shown(shop.bootstrap, shop.view) == recompute(feed)
    finally:
        driver.close()
