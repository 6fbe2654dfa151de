"""The pipelines of a project as one process: ticks for views, queries for streams.

`run` works until its part is told to stop. What goes wrong is raised, and the supervisor
starts the process again; ticks and streams go on from what they last committed.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.pipelines import session
from tailrace.pipelines.declare import Stream, Topic, View
from tailrace.pipelines.errors import SqlNameError, UnknownTableError
from tailrace.pipelines.incremental import compile_views
from tailrace.pipelines.incremental.graph import Graph
from tailrace.pipelines.reader import LogReader
from tailrace.pipelines.state.cache import sweep_other_boots
from tailrace.pipelines.ticks.catalog import read_catalog, topic_table
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings
from tailrace.pipelines.ticks.job import run_on_spark
from tailrace.pipelines.ticks.pace import Pace
from tailrace.telemetry.part import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_WAIT_SECONDS = 0.5
_REPORT_SECONDS = 1.0


def run(
    views: Sequence[View],
    streams: Sequence[Stream],
    part: Part,
    *,
    topics: Iterable[Topic] = (),
    settings: config.Settings | None = None,
) -> None:
    """Run all views and streams of a project until `part.stopping` is set."""
    settings = settings or config.load(part.directory.parent)
    part.report("starting", freshness_ms=None, lag=None)
    with _spark(part, settings) as spark:
        if views:
            run_ticks(views, part, spark, settings, topics)
        else:
            part.report("running")
            part.stopping.wait()
    part.report("stopped")


def run_ticks(
    views: Sequence[View],
    part: Part,
    spark: SparkSession,
    settings: config.Settings,
    topics: Iterable[Topic] = (),
) -> None:
    """Tick until the part stops."""
    compiled = wait_for_tables(views, part, topics)
    if compiled is None:
        return
    graph, plain = compiled
    directory = part.directory.resolve()
    cache = directory / "cache"
    sweep_other_boots(cache)
    driver = TickDriver(
        graph,
        TickSettings(
            project=part.project,
            bootstrap=part.bootstrap,
            state=str(directory / "state"),
            cache=str(cache),
            shards=settings.spark.shards,
            limit=settings.tick.limit,
            topics=settings.topics,
        ),
        lambda work: run_on_spark(spark, work),
        plain=plain,
        clock=part.clock,
    )
    pace = Pace(settings.tick.freshness.total_seconds())
    with contextlib.closing(driver):
        driver.start()
        part.report("running", tick=driver.last.number)
        reported_at = part.clock.monotonic()
        while not part.stopping.is_set():
            began = part.clock.monotonic()
            tick = driver.step(_WAIT_SECONDS)
            took = part.clock.monotonic() - began
            if tick is not None:
                part.report(
                    "running",
                    tick=tick.number,
                    freshness_ms=driver.freshness_ms,
                    position=f"tick:{part.project}:{tick.number}",
                    tick_ms=round(took * 1000),
                    lag=driver.lag,
                    dead=driver.dead,
                    error=None,
                )
                reported_at = part.clock.monotonic()
                part.stopping.wait(pace.pause(driver.worked_seconds, driver.lag > 0))
            elif part.clock.monotonic() - reported_at > _REPORT_SECONDS:
                part.report("running", freshness_ms=0, lag=driver.lag)
                reported_at = part.clock.monotonic()


def wait_for_tables(
    views: Sequence[View], part: Part, topics: Iterable[Topic] = ()
) -> tuple[Graph, frozenset[str]] | None:
    """Compile the views, waiting for sources to describe their tables.

    The graph and the topics whose values are rows; None if told to stop meanwhile.
    """
    declared = [topic_table(topic) for topic in topics]
    with LogReader(part.bootstrap, clock=part.clock) as reader:
        while not part.stopping.is_set():
            catalog = read_catalog(reader)
            try:
                graph = compile_views(views, [*catalog.tables.values(), *declared])
            except (SqlNameError, UnknownTableError) as problem:
                part.report("starting", error=problem.as_dict())
                part.stopping.wait(_WAIT_SECONDS)
                continue
            part.report("starting", error=None)
            plain = frozenset(table.topic for table in declared if table.topic in graph.tables)
            return graph, plain
    return None


@contextlib.contextmanager
def _spark(part: Part, settings: config.Settings) -> Iterator[SparkSession]:
    spark = session.start(
        f"tailrace {part.project}",
        Path(part.directory) / "spark",
        master=settings.spark.master,
        conf=settings.spark.conf,
    )
    try:
        yield spark
    except TailraceError as problem:
        part.report("failed", error=problem.as_dict())
        raise
    finally:
        spark.stop()
