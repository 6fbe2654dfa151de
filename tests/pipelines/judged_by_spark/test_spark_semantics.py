"""Expressions computed here give Spark's values and Spark's types."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.values.shards import shard_sql, shards_of
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = (
    "id BIGINT, i INT, n BIGINT, d DECIMAL(10,2), e DECIMAL(6,3), w DECIMAL(30,10), f DOUBLE,"
    " s STRING, b BOOLEAN, t TIMESTAMP_NTZ, z TIMESTAMP, y DATE"
)
U = datetime.UTC
ROWS = [
    (1, 7, 10**12, Decimal("12.50"), Decimal("-1.255"), Decimal("12345678901234567890.5"), 2.5,
     "Hello World", True, datetime.datetime(2026, 1, 31, 23, 59, 59, 999999),
     datetime.datetime(2026, 3, 1, 12, tzinfo=U), datetime.date(2024, 2, 29)),
    (2, -7, -3, Decimal("-0.05"), Decimal("0.005"), Decimal("-0.0000000001"), -0.0, "", False,
     datetime.datetime(1969, 12, 31, 1, 2, 3), datetime.datetime(1970, 1, 1, tzinfo=U),
     datetime.date(1969, 7, 20)),
    (3, 0, 0, Decimal("0.00"), Decimal("999.999"), Decimal("0"), 1e300, " x_y% ", None,
     datetime.datetime(2025, 12, 29, 0, 0), datetime.datetime(2025, 12, 29, 5, tzinfo=U),
     datetime.date(2025, 12, 29)),
    (4, 2147483646, 5, Decimal("99999999.99"), Decimal("1.000"), Decimal("1"), 0.1, "42", True,
     datetime.datetime(2000, 2, 29, 6, 7, 8, 90), datetime.datetime(2000, 2, 29, tzinfo=U),
     datetime.date(2000, 12, 31)),
    (5, *([None] * 11)),
]  # fmt: skip
EXPRESSIONS = [
    "i + 1", "i - n", "(i div 4) * 2", "n * 3", "d + e", "d - e", "d * e", "d / e", "d / 3", "i / 2",
    "d + i", "d * 2", "d * 1.5", "d * 0.1 - 1", "w * e", "w + d", "w / 7", "w * 1.23456789", "f + i", "f * d",
    "d % 5", "n % 4", "i % -3", "-d", "-i", "i div 2", "d > e", "d = 12.5", "i >= n", "f = -0.0",
    "f < 1", "s > 'A'", "b AND i > 0", "b OR i > 0", "NOT b", "b IS NULL", "i IS NOT NULL",
    "i <=> 7", "s IN ('42', '')", "i NOT IN (7, 8)", "i BETWEEN 0 AND 7", "coalesce(i, 5)",
    "coalesce(d, 0)", "nullif(i, 7)", "CASE WHEN i > 0 THEN d WHEN i < 0 THEN e ELSE 1 END",
    "if(b, i, n)", "upper(s)", "lower(s)", "length(s)", "trim(s)", "ltrim(s)", "rtrim(s)",
    "substring(s, 2, 3)", "substring(s, -3, 2)", "substring(s, 0, 2)", "concat(s, '-', i)",
    "s || 'x'", "replace(s, 'l', 'LL')", "s LIKE '%o%'", "s LIKE ' x\\\\_y\\\\% '", "s NOT LIKE 'H%'",
    "s RLIKE 'o+'", "regexp_replace(s, '([lo])', '<$1>')", "regexp_extract(s, '(l+)', 1)",
    "lpad(s, 5, 'ab')", "rpad(s, 5, 'ab')", "initcap(s)", "reverse(s)", "left(s, 2)", "right(s, 2)",
    "repeat(s, 2)", "instr(s, 'l')", "translate(s, 'lo', 'L')", "concat_ws('-', s, CAST(i AS STRING))",
    "split_part(s, ' ', 2)", "md5(s)", "sha2(s, 256)", "ascii(s)", "startswith(s, 'H')",
    "contains(s, 'o W')", "abs(d)", "abs(i)", "round(d, 1)", "round(e, 2)", "round(f, 1)",
    "round(i div 2, -1)", "bround(e, 2)", "floor(d)", "ceil(d)", "floor(e)", "ceil(e)", "sign(d)",
    "sqrt(abs(i))", "pow(i, 2)", "least(i, 3)", "greatest(i, n)", "greatest(d, e)",
    "CAST(d AS INT)", "CAST(d AS BIGINT)", "CAST(d AS STRING)", "CAST(e AS DECIMAL(5,1))",
    "CAST(f AS STRING)", "CAST(i AS STRING)", "CAST(i AS DECIMAL(12,2))", "CAST(d AS DOUBLE)",
    "CAST(b AS STRING)", "CAST(b AS INT)", "CAST(t AS STRING)", "CAST(y AS STRING)",
    "CAST(t AS DATE)", "CAST(y AS TIMESTAMP_NTZ)", "CAST(n AS DOUBLE)", "CAST(i AS BOOLEAN)",
    "try_cast(s AS INT)", "try_cast(s AS DOUBLE)", "try_cast(s AS DATE)", "year(t)", "month(y)",
    "day(t)", "hour(t)", "minute(t)", "second(t)", "quarter(y)", "dayofweek(y)", "dayofyear(y)",
    "weekofyear(y)", "weekday(y)", "date_trunc('HOUR', t)", "date_trunc('WEEK', t)",
    "date_trunc('MONTH', t)", "date_trunc('QUARTER', t)", "trunc(y, 'YEAR')", "y + 3", "date_add(y, 30)",
    "date_sub(y, 1)", "datediff(y, DATE '2020-01-01')", "add_months(y, 1)", "last_day(y)",
    "t + INTERVAL '1' MONTH", "t - INTERVAL '90' MINUTE", "y + INTERVAL '1' DAY",
    "timestampdiff(HOUR, t, TIMESTAMP_NTZ '2026-01-01 00:00:00')",
    "t > TIMESTAMP_NTZ '2000-01-01 00:00:00'", "y = DATE '2024-02-29'", "make_date(2024, 2, 29)",
]  # fmt: skip


def plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(U).replace(tzinfo=None)
    return value


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_expressions_have_sparks_values_and_types(spark: SparkSession) -> None:
    known = table("t", DDL, ["id"])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = pa.table(
        {f.name: pa.array([row[i] for row in ROWS], f.type) for i, f in enumerate(known.schema)}
    )
    spark.createDataFrame(rows, schema=DDL).createOrReplaceTempView("t")
    listed = ", ".join(f"{e} AS x{i}" for i, e in enumerate(EXPRESSIONS))
    sql = f"SELECT id, {listed} FROM t"
    frame = spark.sql(sql)
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))
    for row in ROWS:
        memory.upsert("t", dict(zip(known.schema.names, row, strict=True)))
    memory.tick()
    ours = {row["id"]: row for row in memory.rows("v")}
    types = dict(memory.graph.views["v"].columns)
    expected = {row["id"]: row.asDict() for row in frame.collect()}
    wrong = []
    for number, expression in enumerate(EXPRESSIONS):
        name = f"x{number}"
        spark_type = frame.schema[name].dataType.simpleString().upper()
        if types[name].replace(" ", "") != spark_type:
            wrong.append(f"{expression}: type {types[name]}, in Spark {spark_type}")
        for key, row in expected.items():
            mine, theirs = plain(ours[key][name]), plain(row[name])
            if mine != theirs:
                wrong.append(f"{expression}: row {key} is {mine!r}, in Spark {theirs!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_shards_are_those_of_spark(spark: SparkSession) -> None:
    known = table("t", DDL, ["id"])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = pa.table(
        {f.name: pa.array([row[i] for row in ROWS], f.type) for i, f in enumerate(known.schema)}
    )
    frame = spark.createDataFrame(rows, schema=DDL)
    routes = [[name] for name in known.schema.names] + [["s", "i"], ["w", "y", "b"], ["f", "t"]]
    asked = [shard_sql([(n, known.schema.field(n).type) for n in route], 97) for route in routes]
    collected = frame.selectExpr("id", *[f"{sql} AS r{i}" for i, sql in enumerate(asked)]).collect()
    expected = {row["id"]: list(row)[1:] for row in collected}
    for number, route in enumerate(routes):
        found = dict(
            zip(rows.column("id").to_pylist(), shards_of(rows, route, 97).tolist(), strict=True)
        )
        assert found == {key: row[number] for key, row in expected.items()}, route
