"""Operators and everyday functions on odd values, and mixed types, give what Spark gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.incremental.test_spark_functions import DDL, ROWS, plain, same
from tailrace.pipelines.incremental.compile import ViewDefinition, compile_views
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = (Path(__file__).parent / "odd_expressions.txt").read_text().splitlines()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_odd_values_are_what_they_are_in_spark(spark: SparkSession) -> None:
    known = table("t", DDL, ["id"])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.createDataFrame(ROWS, schema=DDL).createOrReplaceTempView("t")
    listed = ", ".join(f"{e} AS x{i}" for i, e in enumerate(EXPRESSIONS))
    sql = f"SELECT id, {listed} FROM t"
    frame = spark.sql(sql)
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))
    for row in ROWS:
        memory.upsert("t", dict(zip(known.schema.names, row, strict=True)))
    memory.tick()
    ours = {row["id"]: row for row in memory.rows("v")}
    types = dict(memory.graph.views["v"].columns)
    wrong = []
    for number, expression in enumerate(EXPRESSIONS):
        name = f"x{number}"
        kind = types[name].replace(", ", ",").replace(": ", ":").lower()
        in_spark = frame.schema[name].dataType.simpleString()
        if kind != in_spark:
            wrong.append(f"{expression}: type {kind}, in Spark {in_spark}")
    for row in frame.collect():
        for number, expression in enumerate(EXPRESSIONS):
            mine, theirs = plain(ours[row["id"]][f"x{number}"]), plain(row[f"x{number}"])
            if not same(mine, theirs):
                wrong.append(f"{expression}: row {row['id']} is {mine!r}, in Spark {theirs!r}")
    assert not wrong, "\n".join(wrong)
