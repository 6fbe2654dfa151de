"""Small ticks in tasks that stay, and what becomes of ticks whose task dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pipelines.shop import recompute, shown, traffic
from pipelines.ticks.test_ticks import Shop
from tailrace.pipelines.state.cache import ShardCache, read_stamp
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.ticks import resident, small_ticks
from tailrace.pipelines.ticks.driver import TickDriver
from tailrace.pipelines.ticks.job import Work
from tailrace.pipelines.ticks.resident import ResidentTask
from tailrace.pipelines.ticks.small_ticks import catch_up_on_spark, run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def workers(spark: SparkSession) -> list[int]:
    return [task.pid for task in resident.of(spark.sparkContext)._free]


def until(there: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not there():
        assert time.monotonic() < limit
        time.sleep(0.02)


def killed_in_ticks(patch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Kill the task in the next so many ticks, when it has them and before it has done any of
    their work; the processes that were killed."""
    killed: list[int] = []
    begin, answers = ResidentTask.begin, ResidentTask.answers

    def begun(task: ResidentTask, work: Work) -> None:
        if len(killed) < times:
            os.kill(task.pid, signal.SIGSTOP)
        begin(task, work)

    def answered(task: ResidentTask) -> Any:
        if len(killed) < times:
            killed.append(task.pid)
            os.kill(killed[-1], signal.SIGKILL)
        return answers(task)

    patch.setattr(ResidentTask, "begin", begun)
    patch.setattr(ResidentTask, "answers", answered)
    return killed


def stamped(cache: ShardCache) -> Any:
    """The version a cache holds."""
    environment = cache._environment()
    with environment.begin() as transaction:
        stamp = read_stamp(environment, transaction)
        return None if stamp is None or stamp.toward else stamp.version


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ticks that were Spark jobs of their own."""
    found: list[int] = []
    before = small_ticks._as_a_job

    def as_a_job(spark: SparkSession, works: list[Work]) -> Any:
        found.append(works[0].context.number)
        return before(spark, works)

    monkeypatch.setattr(small_ticks, "_as_a_job", as_a_job)
    return found


def test_ticks_go_to_one_process_that_stays(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession, jobs: list[int]
) -> None:
    shop = Shop(tailrace_broker, tmp_path)
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_on_spark(spark, work))
    tracker = spark.sparkContext.statusTracker()
    try:
        with shop.feed() as feed:
            driver.start()
            shop.catch_up(driver, feed.transaction(*next(iter(traffic(21, 1)))))
            first = workers(spark)
            assert tracker.getJobIdsForGroup(resident.JOB_GROUP)
            for changes in traffic(22, 4):
                shop.catch_up(driver, feed.transaction(*changes))
                assert shown(shop.bootstrap, shop.view) == recompute(feed)
            assert workers(spark) == first
            assert jobs == []
    finally:
        driver.close()


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.crash)])
def test_a_tick_whose_task_is_killed_runs_again(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession, jobs: list[int], times: int
) -> None:
    """After the second time as a Spark job."""
    resident.of(spark.sparkContext).close()  # other tests may have left tasks that are dead
    shop = Shop(tailrace_broker, tmp_path)
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_on_spark(spark, work))
    try:
        with shop.feed() as feed:
            driver.start()
            for changes in traffic(23, 1):
                with pytest.MonkeyPatch.context() as patch:
                    killed = killed_in_ticks(patch, times)
                    shop.catch_up(driver, feed.transaction(*changes))
                assert len(killed) == times
                assert shown(shop.bootstrap, shop.view) == recompute(feed)
                assert driver.last.number == len(set(jobs)) or times == 1
            shop.catch_up(driver, feed.transaction(*next(iter(traffic(24, 1)))))
            assert shown(shop.bootstrap, shop.view) == recompute(feed)
            assert not set(workers(spark)) & set(killed)
            assert bool(jobs) == (times == 2)
    finally:
        driver.close()


def test_a_task_that_died_between_ticks_is_replaced(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession, jobs: list[int]
) -> None:
    shop = Shop(tailrace_broker, tmp_path)
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_on_spark(spark, work))
    try:
        with shop.feed() as feed:
            driver.start()
            for changes in traffic(25, 3):
                shop.catch_up(driver, feed.transaction(*changes))
                assert shown(shop.bootstrap, shop.view) == recompute(feed)
                for pid in workers(spark):
                    os.kill(pid, signal.SIGKILL)
                    until(lambda pid=pid: not psutil.pid_exists(pid))  # type: ignore[misc]
                catch_up_on_spark(spark, driver.settings, driver.last)  # here then
            assert jobs == []
    finally:
        driver.close()


def test_caches_catch_up_in_the_task_once_a_tick_is_committed(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tailrace_broker, tmp_path)
    settings = shop.settings()
    driver = TickDriver(shop.graph, settings, lambda work: run_on_spark(spark, work))
    monkeypatch.delattr(small_ticks, "catch_up")  # it would do the same in this process
    try:
        with shop.feed() as feed:
            driver.start()
            for changes in traffic(26, 4):
                shop.catch_up(driver, feed.transaction(*changes))
                catch_up_on_spark(spark, settings, driver.last)
                files = open_files(settings.state)
                for shard, version in driver.last.state.items():
                    cache = ShardCache(files, Path(settings.cache), shard)
                    until(lambda c=cache, v=version: stamped(c) == v)  # type: ignore[misc]
    finally:
        driver.close()


def test_without_slots_to_spare_every_tick_is_a_job(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession, jobs: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    none = resident.ResidentTasks(spark.sparkContext, 0)
    monkeypatch.setattr(resident, "of", lambda context: none)
    shop = Shop(tailrace_broker, tmp_path)
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_on_spark(spark, work))
    try:
        with shop.feed() as feed:
            driver.start()
            shop.catch_up(driver, feed.transaction(*next(iter(traffic(27, 1)))))
            assert shown(shop.bootstrap, shop.view) == recompute(feed)
            assert jobs == [driver.last.number]
    finally:
        driver.close()


def test_tasks_end_when_they_are_let_go(
    tailrace_broker: str, tmp_path: Path, spark: SparkSession
) -> None:
    shop = Shop(tailrace_broker, tmp_path)
    driver = TickDriver(shop.graph, shop.settings(), lambda work: run_on_spark(spark, work))
    tracker = spark.sparkContext.statusTracker()

    def running() -> list[int]:
        active = set(tracker.getActiveJobsIds())
        return [job for job in tracker.getJobIdsForGroup(resident.JOB_GROUP) if job in active]

    try:
        with shop.feed() as feed:
            driver.start()
            shop.catch_up(driver, feed.transaction(*next(iter(traffic(28, 1)))))
            assert running()
            resident.close(spark.sparkContext)
            until(lambda: not running())
            shop.catch_up(driver, feed.transaction(*next(iter(traffic(29, 1)))))
            assert shown(shop.bootstrap, shop.view) == recompute(feed)
            assert running()
    finally:
        driver.close()
