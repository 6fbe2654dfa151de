"""Views of a project beside Spark's own batch answers: a Spark of its own, at one tick."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.errors import TailraceError, UsageError
from tailrace.pipelines.reading.ranges import LogRanges
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.spark import session
from tailrace.pipelines.ticks.carried import as_carried
from tailrace.pipelines.ticks.driver import last_row
from tailrace.pipelines.ticks.session_functions import jars_of, register
from tailrace.pipelines.ticks.verification import Question, Verdict, verify
from tailrace.project.explain import compiled, known_tables
from tailrace.project.graph import tables_of
from tailrace.project.load import Project
from tailrace.project.undescribed import undescribed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {
    "spark.sql.join.asofJoin.enabled": "true",
    "spark.sql.timeType.enabled": "true",
}


def verify_views(
    project: Project, bootstrap: str, names: Sequence[str], *, most: int = 20
) -> Iterator[tuple[str, Verdict | TailraceError]]:
    """Each view's verdict, or why there can be none, all at the last tick there is now."""
    with LogReader(bootstrap) as reader:
        tick = last_row(reader, project.name)
    if tick is None:
        raise UsageError(
            f"project {project.name!r} has not ticked yet",
            detail="Its views have no contents.",
            hint="start it: `tailrace up`",
        )
    graph = as_carried(compiled(project, bootstrap), tick)
    times = {name: topic.time for name, topic in project.topics.items() if topic.time is not None}
    reads = _reads(project)
    texts = {name: view.sql for name, view in project.views.items()}
    rows = undescribed(project, known_tables(project, bootstrap))
    plain = frozenset([*project.topics, *(table.topic for table in rows)])
    log = LogRanges(bootstrap)
    try:
        with _spark(project) as (spark, directory):
            register(spark, project.functions.values(), project.directory)
            for name in names:
                question = Question(graph, tick, name, texts, reads, times, plain)
                try:
                    yield name, verify(spark, log, question, directory, most=most)
                except TailraceError as problem:
                    yield name, problem
    finally:
        log.close()


def _reads(project: Project) -> Mapping[str, Sequence[str]]:
    """By view, the other views in its text."""
    known = {name.casefold(): name for name in project.views}
    return {
        name: [
            known[parts[0].casefold()]
            for parts in tables_of(view)
            if len(parts) == 1 and parts[0].casefold() in known
        ]
        for name, view in project.views.items()
    }


@contextmanager
def _spark(project: Project) -> Iterator[tuple[SparkSession, Path]]:
    """A Spark on this machine, apart from the one of the project's pipelines."""
    memory = {
        key: value
        for key, value in project.settings.spark.conf.items()
        if key.startswith("spark.driver.")
    }
    jars = ",".join(map(str, jars_of(project.functions.values())))
    own = {"spark.jars": jars} if jars else {}
    with tempfile.TemporaryDirectory(prefix="tailrace-verify-") as scratch:
        directory = Path(scratch)
        running = session.start(
            f"{project.name} verify", directory, conf={**memory, **CONF, **own}, queries=False
        )
        try:
            yield running, directory
        finally:
            running.stop()
