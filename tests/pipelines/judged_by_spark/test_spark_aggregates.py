"""Aggregates computed here give Spark's values and types, grouped, over windows, and after
rows have left again."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.ticks import MemoryTables, Row, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = (
    "id BIGINT, g INT, i INT, l BIGINT, x DOUBLE, y DOUBLE, f FLOAT, d DECIMAL(12,3), b TINYINT,"
    " xs ARRAY<INT>, m BINARY"
)
PAIRS = [("x", "y"), ("y", "i"), ("d", "x"), ("i", "l"), ("f", "x")]
PAIRED = (
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept",
    "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip
EXPRESSIONS = [
    *(f"{name}({a}, {b})" for name in PAIRED for a, b in PAIRS),
    *(f"{name}({a})" for name in ("skewness", "kurtosis") for a in "xyidf"),
    *(f"{name}({a})" for name in ("bit_and", "bit_or", "bit_xor") for a in "ilb"),
    *(f"try_sum({a})" for a in "ilxd"),
    *(f"try_avg({a})" for a in "ilxd"),
    "try_sum(4611686018427387904 + abs(i))",
    "corr(x, y) FILTER (WHERE i > 0)",
    "bit_xor(DISTINCT i)",
    "array_sort(collect_union(xs))",
    "bitmap_construct_agg(bitmap_bit_position(g))",
    "bitmap_count(bitmap_construct_agg(bitmap_bit_position(abs(i) + 1)))",
    "bitmap_or_agg(m)",
    "bitmap_and_agg(m)",
    "hex(bitmap_or_agg(CAST(NULL AS BINARY)))",
]
OVER = [
    "corr(x, y) OVER (PARTITION BY g ORDER BY id)",
    "bit_or(i) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "skewness(x) OVER (PARTITION BY g)",
    "regr_slope(y, x) OVER (PARTITION BY g ORDER BY id)",
    "try_sum(i) OVER (PARTITION BY g ORDER BY id)",
]


def rows() -> list[Row]:
    chosen = random.Random(7)

    def maybe(value: Any) -> Any:
        return None if chosen.random() < 0.15 else value

    made = [
        {
            "id": number,
            "g": number % 7,
            "i": maybe(chosen.randrange(-50, 50)),
            "l": maybe(chosen.randrange(-(1 << 40), 1 << 40)),
            "x": maybe(chosen.uniform(-10, 10)),
            "y": maybe(round(chosen.gauss(5, 3), 2)),
            "f": maybe(float(chosen.randrange(-8, 8)) / 4),
            "d": maybe(Decimal(chosen.randrange(-99999, 99999)).scaleb(-3)),
            "b": maybe(chosen.randrange(-128, 128)),
            "xs": maybe([chosen.randrange(9) for _ in range(chosen.randrange(4))]),
            "m": maybe(bytes(chosen.randrange(256) for _ in range(3))),
        }
        for number in range(60)
    ]
    lonely = {"id": 100, "g": 100, "i": 3, "l": 4, "x": 1.5, "y": 2.5, "f": 0.5,
              "d": Decimal("1.5"), "b": 1, "xs": [1], "m": b"a"}  # fmt: skip
    level = [{**lonely, "id": 200 + n, "g": 200, "y": float(n)} for n in range(3)]
    nothing: Row = {**dict.fromkeys(lonely), "id": 300, "g": 300}
    return [*made, lonely, *level, nothing]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        # Ours is rounded once, Spark's after every row.
        return (math.isnan(ours) and math.isnan(theirs)) or math.isclose(
            ours, theirs, rel_tol=1e-9, abs_tol=1e-9
        )
    if isinstance(theirs, bytearray):
        return bool(ours == bytes(theirs))
    return bool(ours == theirs)


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("key", "expressions", "tail"), [("g", EXPRESSIONS, "GROUP BY g"), ("id", OVER, "")]
)
def test_aggregates_have_sparks_values_and_types(
    spark: SparkSession, key: str, expressions: list[str], tail: str
) -> None:
    known = table("t", DDL, ["id"])
    listed = ", ".join(f"{e} AS x{n}" for n, e in enumerate(expressions))
    sql = f"SELECT {key}, {listed} FROM t {tail}"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))
    given = rows()
    for row in given:
        memory.upsert("t", row)
    # What comes and goes again leaves no trace.
    for row in given:
        memory.upsert("t", {**row, "id": row["id"] + 1000, "x": 1e300, "y": -0.1})
    memory.tick()
    for row in given:
        memory.delete("t", {"id": row["id"] + 1000})
    memory.tick()
    ours = {row[key]: row for row in memory.rows("v")}
    frame = spark.createDataFrame([tuple(row.values()) for row in given], schema=DDL)
    frame.createOrReplaceTempView("t")
    answer = spark.sql(sql)
    wrong = []
    for row in answer.collect():
        for number, expression in enumerate(expressions):
            mine, theirs = ours[row[key]][f"x{number}"], row[f"x{number}"]
            if not same(mine, theirs):
                wrong.append(f"{expression}: group {row[key]} is {mine!r}, in Spark {theirs!r}")
    types = dict(memory.graph.views["v"].columns)
    for number, expression in enumerate(expressions):
        kind = types[f"x{number}"].replace(", ", ",").upper()
        in_spark = answer.schema[f"x{number}"].dataType.simpleString().upper()
        if kind != in_spark:
            wrong.append(f"{expression}: type {kind}, in Spark {in_spark}")
    assert not wrong, "\n".join(wrong)
    assert len(ours) == answer.count()
