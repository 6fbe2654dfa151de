"""Aggregates of numbers at the limits of their types, while rows come and go."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.errors import EvaluationError
from tailrace.testing.ticks import MemoryTables, Row, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Numbers:
    """One expression over a column x of one type, in groups."""

    def __init__(self, expression: str, kind: str) -> None:
        sql = f"SELECT g, {expression} AS y FROM t GROUP BY g"
        known = table("t", f"id BIGINT, g INT, x {kind}", ["id"])
        self.memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))

    def after(self, came: Iterable[tuple[int, Any]], gone: Iterable[int] = ()) -> Any:
        for id, x in came:
            self.memory.upsert("t", {"id": id, "g": 1, "x": x})
        for id in gone:
            self.memory.delete("t", {"id": id})
        self.memory.tick()
        return self.memory.rows("v")[0]["y"]


@pytest.mark.parametrize("scale", [0, 10, 38])
def test_a_sum_that_overflows_is_null_until_it_fits_again(scale: int) -> None:
    most, least = Decimal(f"{'9' * 38}E-{scale}"), Decimal(f"1E-{scale}")
    numbers = _Numbers("try_sum(x)", f"DECIMAL(38,{scale})")
    assert dict(numbers.memory.graph.views["v"].columns)["y"] == f"DECIMAL(38,{scale})"
    assert numbers.after([(1, most)]) == most
    assert numbers.after([(2, least)]) is None
    assert numbers.after([(3, -least), (4, -least)]) == Decimal(f"{'9' * 37}8E-{scale}")
    assert numbers.after([], [4]) == most
    assert numbers.after([], [3]) is None
    assert numbers.after([], [1]) == least


def test_a_mean_whose_sum_overflows_is_null_until_it_fits_again() -> None:
    numbers = _Numbers("try_avg(x)", "DECIMAL(38,10)")
    most = Decimal(f"{'9' * 38}E-10")
    assert numbers.after([(1, Decimal(1)), (2, Decimal(2))]) == Decimal("1.5")
    assert numbers.after([(3, most)]) is None
    assert numbers.after([(4, most.copy_negate())]) == Decimal("0.75")
    assert numbers.after([], [4]) is None
    assert numbers.after([], [3]) == Decimal("1.5")


def test_only_the_whole_sum_must_fit() -> None:
    sums = _Numbers("sum(x)", "BIGINT")
    large = (1 << 63) - 1
    assert sums.after([(1, large), (2, large), (3, -large)]) == large
    with pytest.raises(EvaluationError, match="sum overflows int64"):
        sums.after([(4, 1)])


@pytest.mark.parametrize("others", [0, 300], ids=["row by row", "in Arrow"])
def test_a_mean_of_wide_integers_is_that_of_the_doubles(others: int) -> None:
    numbers = _Numbers("avg(x)", "BIGINT")
    rows = [(id, 0) for id in range(others)]
    assert numbers.after([*rows, (1000, (1 << 53) + 1), (1001, -(1 << 53))]) == 0.0
    assert numbers.after([(1002, 2 + others)]) == (2 + others) / (3 + others)
    assert numbers.after([], [1000, 1001]) == (2 + others) / (1 + others)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("DECIMAL(38,0)", [10**17 + n for n in (1, 9, 40, 40, 100)]),
        ("DECIMAL(38,18)", [Decimal(10**19 + n).scaleb(-18) for n in (1, 9000, 40, 70)]),
        ("DECIMAL(15,2)", [Decimal(10**14 + n).scaleb(-2) for n in (1, 2, 3, 9)]),
        ("BIGINT", [(1 << 62) + n for n in (1, 600, 4000, -9)]),
        ("DOUBLE", [1e17, 1e17 + 32, 1e17 + 64, 1e-17]),
    ],
)
def test_spread_is_that_of_the_doubles(kind: str, values: list[Any]) -> None:
    doubles = [Fraction(float(value)) for value in values]
    whole = sum((x - sum(doubles) / len(doubles)) ** 2 for x in doubles)
    wanted = float(whole) / len(doubles)
    once = float(statistics.pvariance(set(doubles)))
    rows = list(enumerate(values))
    other = (99, values[0] - 1234)
    for expression, value in (
        ("var_pop(x)", wanted), ("stddev_pop(x)", math.sqrt(wanted)), ("covar_pop(x, x)", wanted),
        ("regr_sxx(1, x)", float(whole)), ("corr(x, x)", 1.0), ("var_pop(DISTINCT x)", once),
    ):  # fmt: skip
        numbers = _Numbers(expression, kind)
        numbers.after([other, *rows])
        found = numbers.after([], [99])
        assert math.isclose(found, value, rel_tol=4e-16), expression


STATISTICS = (
    "stddev", "variance", "stddev_pop", "var_pop", "skewness", "kurtosis",
)  # fmt: skip
PAIRED = ("corr", "covar_pop", "covar_samp", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy")
WIDE = "id BIGINT, g INT, d DECIMAL(38,0), e DECIMAL(38,18), m DECIMAL(18,2), l BIGINT, x DOUBLE"


def _wide_rows() -> list[Row]:
    """Groups of numbers that are one DOUBLE, that are near to each other, and that are not."""
    chosen = random.Random(3)
    rows: list[Row] = []
    for id in range(60):
        number = (10**30, 10**9, 0)[id % 3] + chosen.randrange(200)
        rows.append({
            "id": id, "g": id % 3, "d": Decimal(number),
            "e": Decimal(f"{number}{chosen.randrange(10, 99)}E-18"),
            "m": Decimal(number % 10**12 - chosen.randrange(2, 50)).scaleb(-2),
            "l": min(number, 1 << 62) * (id % 3) + chosen.randrange(500), "x": number + chosen.random(),
        })  # fmt: skip
    return rows


def _alike(mine: float | None, theirs: float | None, group: int) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return math.isclose(mine, theirs, rel_tol=(1e-12, 1e-6, 1e-12)[group], abs_tol=1e-300)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_wide_numbers_spread_as_in_spark(spark: SparkSession) -> None:
    """Ours is rounded at the end; Spark's for every row, by more of the spread the larger the
    mean is beside it."""
    expressions = [f"{name}({one})" for name in STATISTICS for one in "demlx"]
    expressions += [f"{name}({a}, {b})" for name in PAIRED for a, b in ("de", "lm", "dx")]
    listed = ", ".join(f"{e} AS x{n}" for n, e in enumerate(expressions))
    sql = f"SELECT g, {listed} FROM t GROUP BY g"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [table("t", WIDE, ["id"])]))
    rows = _wide_rows()
    for row in rows:
        memory.upsert("t", row)
    memory.tick()
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], schema=WIDE)
    frame.createOrReplaceTempView("t")
    ours = {row["g"]: row for row in memory.rows("v")}
    wrong = []
    for answer in spark.sql(sql).collect():
        for number, expression in enumerate(expressions):
            mine, theirs = ours[answer["g"]][f"x{number}"], answer[f"x{number}"]
            if not _alike(mine, theirs, answer["g"]):
                wrong.append(f"{expression}: group {answer['g']} is {mine!r}, in Spark {theirs!r}")
    assert not wrong, "\n".join(wrong)
