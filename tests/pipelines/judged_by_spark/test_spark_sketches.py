"""Sketches of views and of Spark: the same bytes where they depend on the values alone, the same
answers of either side's functions about either side's sketches, the same answers after deletes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.judged_by_spark.test_spark_functions import plain, same
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.operators.sketches.tuples import Tuples
from tailrace.pipelines.errors import SketchError
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")
DDL = (
    "id BIGINT, g STRING, i INT, n BIGINT, s STRING, y BINARY, d DOUBLE, f FLOAT,"
    " a ARRAY<INT>, b ARRAY<BIGINT>"
)


def _rows() -> list[tuple[Any, ...]]:
    chance = random.Random(11)
    rows: list[tuple[Any, ...]] = [
        (0, "odd", 0, 0, "", b"", 0.0, 0.0, [], []),
        (1, "odd", -1, -(2**63), "ä", b"\0", -0.0, -0.0, [None], [None]),
        (2, "odd", 2**31 - 1, 2**63 - 1, "a" * 16, b"a" * 17, NAN, NAN, [0], [0]),
        (3, "odd", 0, 5, "日本語のテキスト", b"\xff" * 9, INF, INF, [1, 2, 3], [2**40, -1]),
        (4, "odd", None, None, None, None, None, None, None, None),
        (5, "odd", 7, 5, " ", b"\0\0", 1e308, 1e38, [1, 2, 3], [2**40, -1]),
        (6, "odd", 7, 5, " ", b"\0\0", 1.5, 1.5, [7] * 9, [7] * 9),
        (7, "none", None, None, None, None, None, None, None, None),
    ]
    for number in range(8, 620):
        small = chance.randrange(250)
        rows.append(
            (number, f"g{number % 3}", small, small * 10**9, f"text {small}", b"%d" % small,
             small / 8, small / 4, [small, 1], [small, 1]),
        )  # fmt: skip
    return rows


ROWS = _rows()
THETA = [
    *(f"theta_sketch_agg({column})" for column in ("i", "n", "s", "y", "d", "f", "a", "b")),
    "theta_sketch_agg(i, 4)",
    "theta_sketch_agg(n, 2 + 4)",
    "theta_sketch_agg(DISTINCT s, 5)",
    "theta_sketch_agg(i) FILTER (WHERE i % 2 = 0)",
    "theta_sketch_agg(NULL)",
    "theta_union(theta_sketch_agg(i, 4), theta_sketch_agg(n), 5)",
    "theta_union(theta_sketch_agg(i, 4), theta_sketch_agg(i % 999 + 77, 5))",
    "theta_intersection(theta_sketch_agg(i, 4), theta_sketch_agg(i % 999 + 77, 5))",
    "theta_intersection(theta_sketch_agg(i), theta_sketch_agg(i % 999 + 77))",
    "theta_intersection(theta_sketch_agg(i), theta_sketch_agg(i % 999 + 10000))",
    "theta_difference(theta_sketch_agg(i, 4), theta_sketch_agg(i % 999 + 77, 5))",
    "theta_difference(theta_sketch_agg(i), theta_sketch_agg(i % 999 + 77))",
    "theta_difference(theta_sketch_agg(i), theta_sketch_agg(i))",
    "theta_sketch_estimate(theta_sketch_agg(i, 4))",
    "theta_sketch_estimate(theta_union(theta_sketch_agg(i, 4), CAST(NULL AS BINARY)))",
]
MODES = ("sum", "min", "max", "alwaysone")
_D, _E = "tuple_sketch_agg_double(i, d, 9)", "tuple_sketch_agg_double(i % 999 + 77, d * 2)"
_I, _J = "tuple_sketch_agg_integer(n, i, 9)", "tuple_sketch_agg_integer(n, 3, 12, 'max')"
_T = "theta_sketch_agg(i % 999 + 77)"
TUPLES = [
    *(f"tuple_sketch_agg_double({c}, d)" for c in ("i", "n", "s", "y", "d", "f", "a", "b")),
    *(f"tuple_sketch_agg_double(i, d, 8, '{mode}')" for mode in MODES),
    *(f"tuple_sketch_agg_integer(s, i, 8, '{mode}')" for mode in MODES),
    "tuple_sketch_agg_double(g, i)",
    "tuple_sketch_agg_double(g, string(i)) FILTER (WHERE i < 9)",
    "tuple_sketch_agg_integer(g, i / 2)",
    "tuple_sketch_agg_integer(n, 2147483647)",
    "tuple_sketch_agg_integer(DISTINCT g, i % 5)",
    *(f"tuple_union_double({_D}, {_E}, 10, '{mode}')" for mode in MODES),
    *(f"tuple_union_integer({_I}, {_J}, 10, '{mode}')" for mode in MODES),
    *(f"tuple_intersection_double({_D}, {_E}, '{mode}')" for mode in MODES),
    *(f"tuple_intersection_integer({_I}, {_J}, '{mode}')" for mode in MODES),
    *(f"tuple_union_theta_double({_D}, {_T}, 12, '{mode}')" for mode in MODES),
    *(f"tuple_union_theta_integer({_I}, {_T}, 12, '{mode}')" for mode in MODES),
    *(f"tuple_intersection_theta_double({_D}, {_T}, '{mode}')" for mode in MODES),
    *(f"tuple_intersection_theta_integer({_I}, theta_sketch_agg(n), '{mode}')" for mode in MODES),
    f"tuple_union_double({_D}, {_E}, 5)",
    f"tuple_union_theta_double({_D}, theta_sketch_agg(i, 4))",
    f"tuple_intersection_theta_double({_D}, theta_sketch_agg(i, 4))",
    f"tuple_difference_theta_double({_D}, theta_sketch_agg(i % 100, 5))",
    f"tuple_difference_double({_D}, {_E})",
    f"tuple_difference_double({_D}, {_D})",
    f"tuple_difference_integer({_I}, {_J})",
    f"tuple_difference_theta_double({_D}, {_T})",
    f"tuple_difference_theta_integer({_I}, {_T})",
    *(f"tuple_sketch_summary_double({_D}, '{mode}')" for mode in MODES),
    *(f"tuple_sketch_summary_integer({_I}, '{mode}')" for mode in MODES),
    f"tuple_sketch_summary_integer({_I})",
    f"tuple_sketch_estimate_double({_D})",
    f"tuple_sketch_estimate_integer({_I})",
    f"tuple_sketch_theta_double(tuple_union_double({_D}, {_E}, 5))",
    f"tuple_sketch_estimate_double(tuple_union_double({_D}, {_E}, 5))",
    f"tuple_sketch_theta_integer({_I})",
]
_SHARES = "array(0.0D, 0.01D, 0.1D, 0.3D, 0.5D, 0.7D, 0.999D, 1.0D)"
KLL = [
    f"{function}_{kind}(kll_sketch_agg_{kind}({column}, 400){asked})"
    for kind, column, values in (
        ("bigint", "i", "array(-5, 0, 7, 100, 249, 9999999999)"),
        ("float", "f + 0F", "array(-5F, 0F, 7.25F, 60.5F, 1e38F)"),
        ("double", "d + 0D", "array(-5D, 0D, 7.125D, 30.5D, 1e308D)"),
    )
    for function, asked in (
        ("kll_sketch_get_n", ""),
        ("kll_sketch_to_string", ""),
        ("kll_sketch_get_quantile", f", {_SHARES}"),
        ("kll_sketch_get_quantile", ", 0.25"),
        ("kll_sketch_get_rank", f", {values}"),
        ("kll_sketch_get_rank", ", 30"),
    )
] + [
    "kll_sketch_get_n_bigint(kll_sketch_agg_bigint(DISTINCT i))",
    "kll_sketch_get_n_float(kll_sketch_agg_float(f) FILTER (WHERE f > 3))",
    "kll_sketch_get_quantile_double(kll_sketch_agg_double(f, 1000), '0.5')",
    "kll_sketch_get_rank_bigint(kll_sketch_agg_bigint(i, 1000), array(NULL, 5L))",
    "kll_sketch_to_string_bigint(kll_sketch_merge_bigint(kll_sketch_agg_bigint(i, 900),"
    " kll_sketch_agg_bigint(n, 800)))",
    "kll_sketch_get_quantile_float(kll_sketch_merge_float(kll_sketch_agg_float(f, 900),"
    f" kll_sketch_agg_float(f, 800)), {_SHARES})",
]


def by_group(
    spark: SparkSession, calls: list[str], form: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers of a view, after rows were changed and deleted, and those of Spark."""
    known = table("t", DDL, ["id"])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    # In one partition: histograms of several show a value once for each.
    spark.createDataFrame(ROWS, schema=DDL).coalesce(1).createOrReplaceTempView("t")
    listed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))
    sql = form.format(listed=listed)
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]), shards=2)
    named = [dict(zip(known.schema.names, row, strict=True)) for row in ROWS]
    for row in named:  # what comes first is wrong, and some of it is deleted again
        memory.upsert("t", {**row, "i": 5, "s": "wrong", "d": 2.0})
        memory.upsert("t", {**row, "id": row["id"] + 10_000})
    memory.tick()
    for row in named:
        memory.upsert("t", row)
        memory.delete("t", {"id": row["id"] + 10_000})
    memory.tick()
    ours = {row["g"]: row for row in memory.rows("v")}
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        theirs = {row["g"]: row.asDict() for row in spark.sql(sql).collect()}
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")
    assert set(ours) == set(theirs)
    return ours, theirs


def meaning(value: Any) -> Any:
    """A value in a form that both sides share; a tuple sketch without the order it has, frequent
    items that are equally frequent in one order."""
    value = plain(value)
    if isinstance(value, list) and value and isinstance(value[0], dict) and "item" in value[0]:
        return sorted(value, key=lambda one: (-one["count"], str(one["item"])))
    if isinstance(value, dict) and "itemDataTypeDDL" in value:
        return {**value, "sketch": len(value["sketch"])}
    if not isinstance(value, bytes) or value[2] != 9:
        return value
    for whole in (True, False):
        try:
            sketch = Tuples.from_bytes(value, whole)
        except SketchError:
            continue
        entries = {h: (plain(number), mode) for h, (number, mode) in sketch.entries.items()}
        return value[:16], sketch.theta, entries
    raise AssertionError(value)


def wrong_answers(
    spark: SparkSession, calls: list[str], form: str = "SELECT g, {listed} FROM t GROUP BY g"
) -> list[str]:
    ours, theirs = by_group(spark, calls, form)
    return [
        f"{call} of {group}: {mine!r}, in Spark {other!r}"
        for at, call in enumerate(calls)
        for group in theirs
        for mine, other in [(meaning(ours[group][f"x{at}"]), meaning(theirs[group][f"x{at}"]))]
        if not same(mine, other)
    ]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_theta_sketches_have_sparks_bytes(spark: SparkSession) -> None:
    wrong = wrong_answers(spark, THETA)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_tuple_sketches_hold_what_sparks_hold(spark: SparkSession) -> None:
    wrong = wrong_answers(spark, TUPLES)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_quantiles_of_few_values_are_sparks(spark: SparkSession) -> None:
    """Spark has no quantile of an empty sketch, which is an error; a view has NULL."""
    known = {"bigint": "i", "float": "f", "double": "d"}
    guarded = [
        f"CASE WHEN count({known.get(call.split('_')[-1], 'i')}) > 0 THEN {call} END"
        for call in KLL
    ]
    wrong = wrong_answers(spark, guarded)
    assert not wrong, "\n".join(wrong)


_TYPED = (
    "i", "n", "s", "d + 0D", "f + 0F", "i > 100", "CAST(i AS TINYINT)", "CAST(i AS SMALLINT)",
    "CAST(i AS DECIMAL(12, 2))", "CAST(i AS DECIMAL(18, 4))", "CAST(n AS DECIMAL(30, 3))",
    "date_from_unix_date(i % 999)", "timestamp_micros(n % 999)",
    "CAST(timestamp_micros(n % 999) AS TIMESTAMP_NTZ)", "make_time(abs(i % 24), 5, 6.5)",
    "CAST(make_time(abs(i % 24), 5, 6) AS TIME(0))",
)  # fmt: skip
SUMMARIES = [
    *(f"count_min_sketch({c}, 0.1D, 0.9D, 42)" for c in ("i", "n", "s", "y", "i % 3")),
    "count_min_sketch(CAST(i % 99 AS TINYINT), 0.001D, 0.999D, -1)",
    "count_min_sketch(i, 7D, 0.01D, 12345678901)",
    "count_min_sketch(DISTINCT i, 0.5D, 0.5D, 0)",
    "count_min_sketch(column => s, confidence => 0.5D, epsilon => 0.5D, seed => 5)",
    "vector_sum(array(CAST(i % 100 AS FLOAT), f * 2F))",
    "transform(vector_avg(array(CAST(i % 100 AS FLOAT), 1F)), x -> round(x, 3))",
    "vector_sum(DISTINCT array(CAST(i % 100 AS FLOAT)))",
    "vector_sum(CAST(a AS ARRAY<FLOAT>)) FILTER (WHERE size(a) = 2)",
    "histogram_numeric(DISTINCT i % 9, 300)",
    *(f"approx_top_k({c}, 1000)" for c in _TYPED),
    *(f"approx_top_k_accumulate({c})" for c in _TYPED),
    *(f"approx_top_k_estimate(approx_top_k_accumulate({c}, 500), 400)" for c in _TYPED),
    "approx_top_k_estimate(approx_top_k_accumulate(g))",
    "approx_top_k(i % 3)",
]


# In a query of their own: beside a DISTINCT Spark divides the rows, and shows a value that is in
# several parts several times.
HISTOGRAMS = [
    *(
        f"histogram_numeric({c}, 300)"
        for c in ("i", "n", "i % 50 / 4", "CAST(i AS DECIMAL(12, 2))")
    ),
    "histogram_numeric(date_from_unix_date(i % 999), 300)",
    "histogram_numeric(timestamp_micros(n % 999), 1000)",
    "histogram_numeric(string(i), 300)",
    "histogram_numeric(make_time(abs(i % 24), 5, 6.5), 300)",
]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_histograms_of_few_values_are_sparks(spark: SparkSession) -> None:
    wrong = wrong_answers(spark, HISTOGRAMS)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_counts_and_sums_of_vectors_are_sparks(spark: SparkSession) -> None:
    calls = [call.replace("CAST(i AS TINYINT)", "CAST(i % 99 AS TINYINT)") for call in SUMMARIES]
    calls = [call.replace("CAST(i AS SMALLINT)", "CAST(i % 999 AS SMALLINT)") for call in calls]
    wrong = wrong_answers(spark, calls)
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_histogram_is_sparks_of_sorted_rows(spark: SparkSession) -> None:
    calls = [
        f"histogram_numeric({x}, {bins})"
        for x in ("x", "CAST(x AS INT)", "CAST(x AS DECIMAL(9, 3))", "CAST(x AS FLOAT)")
        for bins in (2, 5, 20)
    ]
    chance = random.Random(2)
    rows = [
        (number, chance.gauss(0, 9) if number % 3 else number % 7 * 1.0) for number in range(400)
    ]
    rows.sort(key=lambda row: row[1])
    listed = ", ".join(f"{call} AS x{at}" for at, call in enumerate(calls))
    upward = spark.createDataFrame(rows, "id BIGINT, x DOUBLE").coalesce(1)
    upward.createOrReplaceTempView("upward")
    theirs = spark.sql(f"SELECT {listed} FROM upward").collect()[0].asDict()
    known = table("upward", "id BIGINT, x DOUBLE", ["id"])
    definition = ViewDefinition("v", f"SELECT {listed} FROM upward")
    memory = MemoryTables(compile_views([definition], [known]))
    for number, x in random.Random(3).sample(rows, len(rows)):
        memory.upsert("upward", {"id": number, "x": x})
    memory.tick()
    (ours,) = memory.rows("v")
    assert {name: plain(value) for name, value in ours.items()} == {
        name: plain(value) for name, value in theirs.items()
    }


PARTS = """WITH parts AS (
        SELECT g, i % 4 AS p, theta_sketch_agg(n, 6) AS t, theta_sketch_agg(n % 7) AS r,
            tuple_sketch_agg_double(n, d) AS d, tuple_sketch_agg_double(n % 7, d, 5, 'min') AS m,
            tuple_sketch_agg_integer(n, i) AS i, tuple_sketch_agg_integer(n % 7, i) AS o,
            kll_sketch_agg_bigint(n, 300) AS b, kll_sketch_agg_float(f, 300) AS f,
            kll_sketch_agg_double(d + 0D, 300) AS x, approx_top_k_accumulate(i % 5, 100) AS k,
            approx_top_k_accumulate(s, 500) AS w
        FROM t GROUP BY g, i % 4)
    SELECT g, {listed} FROM parts GROUP BY g"""
MERGES = [
    "approx_top_k_estimate(approx_top_k_combine(k), 100)",
    "approx_top_k_combine(k, 50)",
    "approx_top_k_estimate(approx_top_k_combine(w), 500)",
    "theta_union_agg(t)",
    "theta_union_agg(t, 5)",
    "theta_union_agg(t) FILTER (WHERE p = 2)",
    "theta_intersection_agg(t)",
    "theta_intersection_agg(r)",
    *(f"tuple_union_agg_double(d, 12, '{mode}')" for mode in MODES),
    *(f"tuple_union_agg_integer(i, 12, '{mode}')" for mode in MODES),
    *(f"tuple_intersection_agg_double(m, '{mode}')" for mode in MODES),
    *(f"tuple_intersection_agg_integer(o, '{mode}')" for mode in MODES),
    "tuple_union_agg_double(d, mode => 'max')",
    "tuple_union_agg_integer(i)",
    "tuple_intersection_agg_integer(i)",
    "tuple_sketch_estimate_double(tuple_union_agg_double(d, 5))",
    *(
        f"kll_sketch_to_string_{k}(kll_merge_agg_{k}({c}))"
        for k, c in (("bigint", "b"), ("double", "x"))
    ),
    "kll_sketch_get_n_float(kll_merge_agg_float(f, 1000))",
    "kll_sketch_to_string_bigint(kll_merge_agg_bigint(b, 1000))",
]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_merged_sketches_hold_what_sparks_hold(spark: SparkSession) -> None:
    wrong = wrong_answers(spark, MERGES, PARTS)
    assert not wrong, "\n".join(wrong)


SKETCHES = """SELECT
    theta_sketch_agg(n, 5) AS t, theta_sketch_agg(n + 300) AS u,
    tuple_sketch_agg_double(n, n / 3, 5) AS d, tuple_sketch_agg_integer(n, 2, 6) AS i,
    tuple_sketch_agg_double(n + 300, 1, 5, 'min') AS e,
    kll_sketch_agg_bigint(n * n, 20) AS b, kll_sketch_agg_float(CAST(n AS FLOAT), 9) AS f,
    kll_sketch_agg_double(n / 7, 200) AS x, kll_sketch_agg_bigint(n, 8) AS c,
    approx_top_k_accumulate(CAST(n % 40 AS STRING), 100) AS k,
    approx_top_k_accumulate(CASE WHEN n % 2 = 0 THEN 5 ELSE n END, 20) AS l
    FROM numbers"""
ASKED = [
    "theta_sketch_estimate(t)",
    "theta_sketch_estimate(theta_union(t, u, 6))",
    "theta_sketch_estimate(theta_intersection(t, u))",
    "theta_sketch_estimate(theta_difference(u, t))",
    "theta_union(t, u, 7)",
    "theta_intersection(t, u)",
    "theta_difference(u, t)",
    "tuple_sketch_estimate_double(d)",
    "tuple_sketch_theta_double(d)",
    "tuple_sketch_summary_double(d)",
    "tuple_sketch_summary_double(d, 'max')",
    "tuple_sketch_estimate_integer(i)",
    "tuple_sketch_theta_integer(i)",
    "tuple_sketch_summary_integer(i)",
    "tuple_union_double(d, e, 4, 'max')",
    "tuple_union_double(d, e)",
    "tuple_intersection_double(d, e, 'min')",
    "tuple_difference_double(d, e)",
    "tuple_union_theta_integer(i, t, 5)",
    "tuple_intersection_theta_integer(i, u, 'max')",
    "tuple_difference_theta_integer(i, t)",
    "kll_sketch_get_n_bigint(b)",
    f"kll_sketch_get_quantile_bigint(b, {_SHARES})",
    "kll_sketch_get_rank_bigint(b, array(-1L, 0L, 10000L, 1000000L, 3000000L, 8940000L, 8993999L, 8994001L, 4000000000L))",
    "kll_sketch_to_string_bigint(b)",
    "kll_sketch_get_n_float(f)",
    f"kll_sketch_get_quantile_float(f, {_SHARES})",
    "kll_sketch_get_rank_float(f, array(-1F, 0F, 17.5F, 1000F, 2950F, 2998.5F, 2999F, 1e30F))",
    "kll_sketch_to_string_float(f)",
    "kll_sketch_get_n_double(x)",
    f"kll_sketch_get_quantile_double(x, {_SHARES})",
    "kll_sketch_get_rank_double(x, array(-1D, 0D, 17.5D, 100D, 427D, 428.4D, 1e30D))",
    "kll_sketch_to_string_double(x)",
    "kll_sketch_get_n_bigint(kll_sketch_merge_bigint(b, c))",
    "approx_top_k_estimate(k, 100)",
    "approx_top_k_estimate(l, 20)",
]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_either_side_reads_the_sketches_of_the_other(spark: SparkSession) -> None:
    """Of so many values that the sketches have dropped most."""
    count = 3_000
    spark.range(count).selectExpr("id AS n").createOrReplaceTempView("numbers")
    theirs = spark.sql(SKETCHES).collect()[0].asDict()
    numbers = table("numbers", "n BIGINT", ["n"])
    memory = MemoryTables(compile_views([ViewDefinition("v", SKETCHES)], [numbers]))
    for number in range(count):
        memory.upsert("numbers", {"n": number})
    memory.tick()
    (ours,) = memory.rows("v")
    assert ours["t"] == bytes(theirs["t"])
    kept = {"k": "STRING", "l": "BIGINT"}
    ddl = "side STRING, " + ", ".join(
        f"{name} STRUCT<sketch: BINARY, maxItemsTracked: INT, itemDataType: {kept[name]},"
        " itemDataTypeDDL: STRING>"
        if name in kept
        else f"{name} BINARY"
        for name in theirs
    )
    rows: list[dict[str, Any]] = [
        {"side": side, **{name: plain(value) for name, value in row.items()}}
        for side, row in (("ours", ours), ("theirs", theirs))
    ]
    listed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(ASKED))
    sql = f"SELECT side, {listed} FROM sketches"
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], ddl)
    frame.createOrReplaceTempView("sketches")
    answers = {row["side"]: row.asDict() for row in spark.sql(sql).collect()}
    sketches = table("sketches", ddl, ["side"])
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [sketches]))
    for row in rows:
        memory.upsert("sketches", row)
    memory.tick()
    wrong = [
        f"{call} of {row['side']}: {mine!r}, in Spark {other!r}"
        for row in memory.rows("v")
        for at, call in enumerate(ASKED)
        for mine, other in [(meaning(row[f"x{at}"]), meaning(answers[row["side"]][f"x{at}"]))]
        if not same(mine, other)
    ]
    assert not wrong, "\n".join(wrong)
