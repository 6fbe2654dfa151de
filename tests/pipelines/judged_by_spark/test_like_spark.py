"""Lines of `like_spark/*.txt` give in a view what they give in Spark.

A line is an expression over the rows of `test_spark_functions`, or a query. One behind `! ` is
an error in both: in Spark's words there, at `compile_views` or in the tick here.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.judged_by_spark.test_spark_functions import DDL, ROWS, differences, plain
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = sorted((Path(__file__).parent / "like_spark").glob("*.txt"))


def _rows_of_view(sql: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    known = table("t", DDL, ["id"])
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))
    for row in ROWS:
        memory.upsert("t", dict(zip(known.schema.names, row, strict=True)))
    memory.tick()
    plan = memory.graph.views["v"]
    columns = plan.columns[:-1] if plan.bag else plan.columns  # without the rows' count
    return memory.rows("v"), dict(columns)


@pytest.fixture(scope="module")
def with_times(spark: SparkSession) -> Any:
    """A session that knows the type TIME, which Spark hides unless it is asked for."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.timeType.enabled", "true")
    spark.createDataFrame(ROWS, schema=DDL).createOrReplaceTempView("t")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_view_gives_what_spark_gives(file: Path, with_times: SparkSession) -> None:
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("--")]
    expressions = [line for line in lines if not line.startswith(("!", "SELECT "))]
    wrong = differences(with_times, expressions) if expressions else []
    for sql in (line for line in lines if line.startswith("SELECT ")):
        found, kinds = _rows_of_view(sql)
        names = list(kinds)
        mine = sorted(repr([plain(row[name]) for name in names]) for row in found)
        answer = with_times.sql(sql)
        theirs = sorted(repr([plain(row[name]) for name in names]) for row in answer.collect())
        if mine != theirs:
            wrong.append(f"{sql}: {mine}, in Spark {theirs}")
        types = [field.dataType.simpleString().upper() for field in answer.schema]
        if [kind.replace(", ", ",").replace(": ", ":").upper() for kind in kinds.values()] != types:
            wrong.append(f"{sql}: types {kinds}, in Spark {types}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_what_fails_in_spark_fails_in_a_view(file: Path, with_times: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    accepted = []
    for line in file.read_text().splitlines():
        if not line.startswith("! "):
            continue
        asked = line.removeprefix("! ")
        sql = asked if asked.startswith("SELECT ") else f"SELECT id, {asked} AS x FROM t"
        with suppress(PySparkException, Py4JJavaError):
            with_times.sql(sql).collect()
            accepted.append(f"Spark: {sql}")
        with suppress(TailraceError):
            _rows_of_view(sql)
            accepted.append(f"a view: {sql}")
    assert not accepted, "\n".join(accepted)
