"""A small tick on Spark: one task for all of it, or a few where its views are many.

Resident tasks take it (see `resident`); where a session has none to spare it is a job of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tailrace.pipelines.state.collector import settle
from tailrace.pipelines.ticks import resident
from tailrace.pipelines.ticks.cache_warming import catch_up
from tailrace.pipelines.ticks.job import (
    Answer,
    Outcome,
    Work,
    complete,
    gather,
    guarded,
    in_parts,
    name_job,
    numbers,
)
from tailrace.pipelines.ticks.split import Costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tailrace.pipelines.ticks.driver import TickSettings
    from tailrace.pipelines.ticks.tick_row import Tick

_costs = Costs()


def run_on_spark(spark: SparkSession, work: Work) -> Outcome:
    """One task for the whole tick, or several with some of its views each."""
    context = spark.sparkContext
    works = in_parts(work, context.defaultParallelism, _costs)
    answers = resident.of(context).run(works)
    if answers is None:
        answers = _as_a_job(spark, works)
    outcome = complete(gather(answers), len(works))
    _costs.learn(outcome.spent, outcome.records)
    return outcome


def catch_up_on_spark(spark: SparkSession, settings: TickSettings, tick: Tick) -> None:
    """Bring the caches of this host to what `tick` has left, in the process that has them open."""
    asked = resident.CatchUp(settings.state, settings.cache, settings.cache_limit, tick.state)
    if not resident.of(spark.sparkContext).catch_up(asked):
        catch_up(settings, tick)


def _as_a_job(spark: SparkSession, works: list[Work]) -> list[Answer]:
    context = spark.sparkContext
    name_job(context, works[0])

    def task(given: Iterable[int]) -> Iterator[Answer]:
        for number in given:
            yield from guarded(works[number])
        settle()

    found: list[Answer] = numbers(context, len(works)).mapPartitions(task).collect()
    return found
