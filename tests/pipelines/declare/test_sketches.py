"""Sketches and approximate aggregates, judged by the exact answers."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailrace as tr
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.errors import SketchError, SqlTypeError
from tailrace.pipelines.values.sketches import Distinct, Frequent, Members, Quantiles, merged
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLICKS = table("clicks", "site STRING, user BIGINT, page STRING, ms DOUBLE", kind="stream")
USERS = table("shop.public.users", "id BIGINT, city STRING, age INT", ["id"])
WORDS = st.lists(st.text(max_size=4), max_size=60)


@given(WORDS, WORDS)
@settings(max_examples=40)
def test_merged_sketches_know_what_both_knew(one: list[str], two: list[str]) -> None:
    distinct = Distinct.of(one) | Distinct.of(two)
    assert distinct.estimate == len({*one, *two})  # few values are counted exactly
    frequent = Frequent.of(one) | Frequent.of(two)
    exact = Counter(one) + Counter(two)
    assert {heavy.item: heavy.estimate for heavy in frequent.top(1000)} == dict(exact)
    members = Members.of(one) | Members.of(two)
    assert all(word in members for word in [*one, *two])
    quantiles = Quantiles.of(map(len, one)) | Quantiles.of(map(len, two))
    lengths = sorted(map(len, [*one, *two]))
    assert quantiles.count == len(lengths)
    if lengths:
        assert quantiles.quantile(0.5) == lengths[(len(lengths) - 1) // 2]


def test_errors_stay_within_what_is_stated() -> None:
    chance = random.Random(7)
    numbers = [chance.gauss(100, 20) for _ in range(30_000)]
    low, high = Distinct.of(range(30_000)).bounds(3)
    assert low <= 30_000 <= high
    quantiles, ordered = Quantiles.of(numbers), sorted(numbers)
    for share in (0.01, 0.5, 0.9, 0.99):
        found = quantiles.quantile(share)
        assert found is not None
        rank = sum(number <= found for number in ordered) / len(ordered)
        assert abs(rank - share) <= 2 * quantiles.error
    words = [f"w{int(chance.paretovariate(1))}" for _ in range(30_000)]
    frequent, exact = Frequent.of(words), Counter(words)
    for heavy in frequent.top(5):
        assert heavy.low <= exact[heavy.item] <= heavy.high
    assert frequent.top(1)[0].item == exact.most_common(1)[0][0]
    members = Members.of(range(5_000), expected=5_000, share=0.01)
    wrong = sum(number in members for number in range(5_000, 25_000))
    assert wrong < 20_000 * 0.02


def test_the_order_of_arrival_does_not_show_in_a_distinct_count() -> None:
    values = [f"v{number}" for number in range(20_000)]
    forward = Distinct.of(values)
    backward = Distinct.of(reversed(values))
    pieces = merged([bytes(Distinct.of(values[n::7])) for n in range(7)], Distinct)
    assert pieces is not None
    assert forward.estimate == backward.estimate == Distinct.from_bytes(pieces).estimate


@pytest.mark.parametrize("kind", [Distinct, Quantiles, Frequent, Members])
@pytest.mark.parametrize("data", [b"", b"\0", b"nonsense" * 9])
def test_bytes_that_are_no_sketch_are_refused(kind: Any, data: bytes) -> None:
    with pytest.raises(SketchError, match="are no"):
        kind.from_bytes(data)
    with pytest.raises(SketchError, match="different size"):
        Members(10) | Members(10_000)


def kept(sql: str, tables: list[Any]) -> MemoryTables:
    return MemoryTables(compile_views([ViewDefinition("v", sql)], tables), shards=2)


def test_a_stream_is_summed_up_in_sketches_tick_by_tick() -> None:
    sql = """SELECT site, approx_count_distinct(user) AS users, approx_percentile(ms, 0.5) AS middle,
        approx_percentile(ms, array(0.1, 0.9)) AS both, approx_top_k(page, 2) AS pages,
        hll_sketch_estimate(hll_sketch_agg(user)) AS same,
        kll_sketch_get_n_double(kll_sketch_agg_double(ms)) AS seen,
        might_contain(bloom_filter_agg(page), 'home') AS home,
        might_contain(bloom_filter_agg(page), 'nowhere') AS nowhere
        FROM clicks GROUP BY site"""
    memory = kept(sql, [CLICKS])
    assert any("as a sketch" in node.operator.describe() for node in memory.graph.nodes)
    chance = random.Random(3)
    rows: list[dict[str, Any]] = []
    for _ in range(4):
        for _ in range(400):
            row = {
                "site": chance.choice(["a", "b"]), "user": chance.randrange(300),
                "page": chance.choice(["home", "home", "cart", "help"]), "ms": chance.random() * 100,
            }  # fmt: skip
            rows.append(row)
            memory.upsert("clicks", row)
        memory.tick()
        for shown in memory.rows("v"):
            mine = [row for row in rows if row["site"] == shown["site"]]
            users = len({row["user"] for row in mine})
            assert abs(shown["users"] - users) <= max(2, 0.06 * users)
            assert shown["same"] == shown["users"]
            assert shown["seen"] == len(mine)
            below = sum(row["ms"] <= shown["middle"] for row in mine) / len(mine)
            assert abs(below - 0.5) < 0.05
            assert shown["both"][0] < shown["middle"] < shown["both"][1]
            pages = Counter(row["page"] for row in mine)
            top = sorted(pages.items(), key=lambda pair: (-pair[1], pair[0]))[:2]
            assert [(page["item"], page["count"]) for page in shown["pages"]] == top
            assert (shown["home"], shown["nowhere"]) == (True, False)


def test_where_rows_leave_the_answer_is_exact() -> None:
    sql = """SELECT city, approx_count_distinct(age) AS ages, approx_percentile(age, 0.5) AS middle,
        approx_top_k(age, 1) AS most, hll_sketch_estimate(hll_sketch_agg(age)) AS sketched
        FROM shop.users GROUP BY city"""
    memory = kept(sql, [USERS])
    assert not any("as a sketch" in node.operator.describe() for node in memory.graph.nodes)
    chance = random.Random(5)
    people: dict[int, dict[str, Any]] = {}
    for _ in range(12):
        for _ in range(30):
            number = chance.randrange(60)
            if chance.random() < 0.3:
                people.pop(number, None)
                memory.delete("shop.public.users", {"id": number})
            else:
                row = {"city": chance.choice("xy"), "age": chance.choice([None, 20, 30, 30, 41])}
                people[number] = row
                memory.upsert("shop.public.users", {"id": number, **row})
        memory.tick()
        expected = {}
        for city in {row["city"] for row in people.values()}:
            ages = sorted(r["age"] for r in people.values() if r["city"] == city and r["age"])
            most = sorted(Counter(ages).items(), key=lambda pair: (-pair[1], str(pair[0])))[:1]
            expected[city] = {
                "city": city, "ages": len(set(ages)), "sketched": len(set(ages)),
                "middle": ages[(len(ages) + 1) // 2 - 1] if ages else None,
                "most": [{"item": item, "count": count} for item, count in most],
            }  # fmt: skip
        assert {row["city"]: row for row in memory.rows("v")} == expected


def test_sketches_of_hours_merge_into_one_of_the_day() -> None:
    hours = ViewDefinition(
        "hours", "SELECT site, page, hll_sketch_agg(user) AS users FROM clicks GROUP BY site, page"
    )
    day = ViewDefinition(
        "day",
        "SELECT site, hll_sketch_estimate(hll_union_agg(users)) AS users FROM hours GROUP BY site",
    )
    memory = MemoryTables(compile_views([hours, day], [CLICKS]))
    for number in range(500):
        memory.upsert(
            "clicks", {"site": "a", "user": number % 90, "page": f"p{number % 7}", "ms": 1.0}
        )
        if number % 100 == 99:
            memory.tick()
    assert memory.rows("day") == [{"site": "a", "users": 90}]


def test_wrong_arguments_point_into_the_sql() -> None:
    for sql, message in (
        ("SELECT approx_percentile(ms, 7) AS p FROM clicks", "between 0 and 1"),
        ("SELECT approx_percentile(ms, ms) AS p FROM clicks", "must be a constant"),
        ("SELECT hll_sketch_agg(ms) AS p FROM clicks", "cast the value"),
        ("SELECT hll_union_agg(page) AS p FROM clicks", "which are BINARY"),
        ("SELECT approx_top_k(page, 0) AS p FROM clicks", "between 1 and"),
    ):
        with pytest.raises(SqlTypeError, match=message):
            compile_views([ViewDefinition("v", sql)], [CLICKS])


@pytest.mark.spark
def test_what_spark_sums_up_and_what_views_keep_merge(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.range(2_000).withColumn("x", F.col("id").cast("double"))
    row = frame.agg(
        F.hll_sketch_agg("id").alias("hll"),
        F.kll_sketch_agg_double("x").alias("kll"),
        tr.sketches.bloom_filter_agg("id", 2_000).alias("bloom"),
    ).collect()[0]
    ours = Distinct.of(range(1_000, 3_000))
    both = Distinct.from_bytes(bytes(row["hll"])) | ours
    assert abs(both.estimate - 3_000) < 150
    quantiles = Quantiles.from_bytes(bytes(row["kll"])) | Quantiles.of(
        map(float, range(2_000, 4_000))
    )
    middle = quantiles.quantile(0.5)
    assert middle is not None
    assert abs(middle - 2_000) < 120
    back = spark.createDataFrame(
        [(bytearray(bytes(both)), bytearray(bytes(quantiles)), bytearray(row["bloom"]))],
        "hll BINARY, kll BINARY, bloom BINARY",
    ).select(
        F.hll_sketch_estimate("hll").alias("users"),
        F.kll_sketch_get_n_double("kll").alias("n"),
        tr.sketches.might_contain("bloom", F.lit(77)).alias("there"),
        tr.sketches.might_contain("bloom", F.lit(-5)).alias("not_there"),
    ).collect()[0]  # fmt: skip
    assert abs(back["users"] - both.estimate) <= 1
    assert back["n"] == 4_000
    assert back["there"] is True
    assert back["not_there"] is False
