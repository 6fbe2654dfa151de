"""Theta, tuple and KLL sketches without Spark: over streams, after deletes, with bad bytes and
bad arguments, and the accuracy that is stated."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.operators.sketches import theta, tuples
from tailrace.pipelines.engine.operators.sketches.frequent import Frequent
from tailrace.pipelines.engine.operators.sketches.kll import Kll, merged
from tailrace.pipelines.engine.operators.sketches.theta import Theta
from tailrace.pipelines.engine.operators.sketches.tuples import Tuples
from tailrace.pipelines.errors import EvaluationError, SketchError, SqlTypeError, ViewError
from tailrace.testing.ticks import MemoryTables, table

CLICKS = table("clicks", "site STRING, user BIGINT, ms DOUBLE", kind="stream")
ORDERS = table("orders", "id BIGINT, site STRING, user BIGINT, ms DOUBLE", ["id"])
SQL = """SELECT site, theta_sketch_agg(user, 5) AS t, tuple_sketch_agg_double(user, ms, 5) AS d,
    tuple_sketch_agg_integer(user, 1, 6, 'max') AS m, kll_sketch_agg_bigint(user, 8) AS k,
    theta_sketch_estimate(theta_sketch_agg(user)) AS users FROM {} GROUP BY site"""
NUMBERS = st.lists(st.integers(0, 120), max_size=120)


@given(NUMBERS, NUMBERS, st.sampled_from([4, 5, 12]))
@settings(max_examples=60, deadline=None)
def test_set_operations_keep_what_sets_would(one: list[int], two: list[int], log_size: int) -> None:
    left, right = Theta.of(one, log_size), Theta.of(two, log_size)
    for sketch in (left, right):
        again = Theta.from_bytes(bytes(sketch))
        assert (again.theta, again.empty) == (sketch.theta, sketch.empty)
        assert again.hashes.tolist() == sketch.hashes.tolist()
    hashes = [set(theta.hashes_of(numbers).tolist()) for numbers in (one, two)]
    for made, exact in (
        (theta.union((left, right), log_size), hashes[0] | hashes[1]),
        (theta.intersection((left, right)), hashes[0] & hashes[1]),
        (theta.difference(left, right), hashes[0] - hashes[1]),
    ):
        assert made.hashes.tolist() == sorted(h for h in exact if h < made.theta)
        assert len(made.hashes) <= 1 << log_size
    both = theta.union((left, right), log_size)
    assert bytes(both) == bytes(Theta.of(one + two, log_size))  # however the values are split


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(-9, 9)), max_size=150))
@settings(max_examples=60, deadline=None)
def test_numbers_of_a_tuple_sketch_are_those_of_its_values(pairs: list[tuple[int, int]]) -> None:
    for mode in tuples.MODES:
        keys, numbers = [key for key, _ in pairs], [number for _, number in pairs]
        made = Tuples.of(keys, numbers, mode, True).settled(5)
        assert len(made.entries) <= 60
        by_key: dict[int, list[int]] = {}
        for key, number in pairs:
            by_key.setdefault(key, []).append(number)
        fold = {"sum": sum, "min": min, "max": max, "alwaysone": lambda _: 1}[mode]
        exact = {int(theta.hashes_of([key])[0]): fold(all_) for key, all_ in by_key.items()}
        shown = {hashed: number for hashed, (number, _) in made.entries.items()}
        assert shown == {h: number for h, number in exact.items() if h < made.theta}
        assert Tuples.from_bytes(bytes(made), True) == made


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=400), st.integers(8, 40))
@settings(max_examples=60, deadline=None)
def test_a_kll_sketch_is_read_as_it_was_written(values: list[int], k: int) -> None:
    sketch = Kll("<i8", k)
    sketch.update(values)
    assert (sketch.count, sketch.least, sketch.most) == (len(values), min(values), max(values))
    again = Kll.from_bytes(bytes(sketch), "<i8")
    assert bytes(again) == bytes(sketch)
    ordered = sorted(values)
    if len(values) <= k:  # nothing was dropped
        assert sketch.quantiles([0.0, 1.0]) == [ordered[0], ordered[-1]]
        assert sketch.quantiles([0.5]) == [ordered[(len(values) - 1) // 2]]
        assert sketch.ranks([ordered[0]]) == [ordered.count(ordered[0]) / len(values)]


def test_ranks_stay_within_what_is_stated() -> None:
    chance = random.Random(4)
    values = [chance.gauss(100, 20) for _ in range(50_000)]
    whole, parts = Kll("<f8"), []
    whole.update(values)
    for start in range(0, len(values), 5_000):
        part = Kll("<f8")
        part.update(values[start : start + 5_000])
        parts.append(part)
    ordered = sorted(values)
    for sketch in (whole, merged(parts, "<f8")):
        assert sketch.count == len(values)
        assert len(bytes(sketch)) < 6_000
        for share in (0.01, 0.1, 0.5, 0.9, 0.99):
            exact = ordered[int(share * len(values))]
            (rank,) = sketch.ranks([exact])
            assert abs(rank - share) < 0.0133 * 2
            (found,) = sketch.quantiles([share])
            below = sum(value <= found for value in values) / len(values)
            assert abs(below - share) < 0.0133 * 2


def fill(memory: MemoryTables, topic: str, rows: list[dict[str, Any]], ticks: int) -> None:
    for number in range(ticks):
        for row in rows[number::ticks]:
            memory.upsert(topic, row)
        memory.tick()


def test_a_stream_and_a_table_show_the_same_sketches_however_rows_come() -> None:
    chance = random.Random(8)
    rows = [
        {"id": number, "site": chance.choice("ab"), "user": chance.randrange(400),
         "ms": float(chance.randrange(64))}
        for number in range(900)
    ]  # fmt: skip
    shown = []
    for source, ticks in ((CLICKS, 1), (CLICKS, 6), (ORDERS, 1), (ORDERS, 4)):
        definition = ViewDefinition("v", SQL.format(source.name))
        memory = MemoryTables(compile_views([definition], [source]), shards=2)
        keyed = source is ORDERS
        fed = [row if keyed else {k: v for k, v in row.items() if k != "id"} for row in rows]
        fill(memory, source.name, fed, ticks)
        described = " ".join(node.operator.describe() for node in memory.graph.nodes)
        assert ("as a sketch" in described) == (source is CLICKS)
        if keyed:  # what comes and goes leaves nothing behind
            for number in range(1_000, 1_400):
                memory.upsert("orders", {"id": number, "site": "a", "user": number, "ms": 1.0})
            memory.tick()
            for number in range(1_000, 1_400):
                memory.delete("orders", {"id": number})
            memory.tick()
        shown.append({row["site"]: row for row in memory.rows("v")})
    for other in shown[1:]:
        for site, row in shown[0].items():
            for name in ("t", "d", "m", "users"):
                assert other[site][name] == row[name]
            assert Kll.from_bytes(other[site]["k"], "<i8").count == sum(
                r["site"] == site for r in rows
            )
    assert shown[2] == shown[3]  # of a table even the quantiles follow from the rows alone


def test_an_empty_table_has_empty_sketches() -> None:
    sql = """SELECT theta_sketch_estimate(theta_sketch_agg(user)) AS t,
        tuple_sketch_summary_double(tuple_sketch_agg_double(user, ms), 'min') AS s,
        kll_sketch_get_n_double(kll_sketch_agg_double(ms)) AS n,
        kll_sketch_get_quantile_double(kll_sketch_agg_double(ms), 0.5) AS q,
        kll_sketch_get_rank_double(kll_sketch_agg_double(ms), array(1, 2)) AS r,
        hll_sketch_estimate(hll_sketch_agg(user)) AS h FROM orders"""
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [ORDERS]))
    memory.tick()
    empty = {"t": 0, "s": 0.0, "n": 0, "q": None, "r": None, "h": 0}
    assert memory.rows("v") == [empty]
    memory.upsert("orders", {"id": 1, "site": "a", "user": 5, "ms": 2.0})
    memory.tick()
    assert memory.rows("v") == [{"t": 1, "s": 2.0, "n": 1, "q": 2.0, "r": [0.0, 1.0], "h": 1}]
    memory.delete("orders", {"id": 1})
    memory.tick()
    assert memory.rows("v") == [empty]


@pytest.mark.parametrize("data", [b"", b"\0", b"\1\2\3", b"nonsense" * 9, b"\1" * 8])
def test_bytes_that_are_no_sketch_are_refused(data: bytes) -> None:
    for read in (
        Theta.from_bytes,
        lambda data: Tuples.from_bytes(data, True),
        lambda data: Tuples.from_bytes(data, False),
        lambda data: Kll.from_bytes(data, "<i8"),
    ):
        with pytest.raises(SketchError, match="are no"):
            read(data)


def test_sketches_cut_short_and_of_another_kind_are_refused() -> None:
    many = list(range(500))
    of_theta, of_tuples = Theta.of(many, 6), Tuples.of(many, many, "sum", True).settled(6)
    of_kll = Kll("<i8", 20)
    of_kll.update(many)
    for end in range(len(bytes(of_theta))):
        with pytest.raises(SketchError):
            Theta.from_bytes(bytes(of_theta)[:end])
    for end in range(len(bytes(of_tuples))):
        with pytest.raises(SketchError):
            Tuples.from_bytes(bytes(of_tuples)[:end], True)
    for end in range(len(bytes(of_kll))):
        with pytest.raises(SketchError):
            Kll.from_bytes(bytes(of_kll)[:end], "<i8")
    with pytest.raises(SketchError, match="no tuple sketch"):
        Tuples.from_bytes(bytes(of_theta), True)
    with pytest.raises(SketchError, match="no tuple sketch"):
        Tuples.from_bytes(bytes(of_tuples), False)
    with pytest.raises(SketchError, match="no theta sketch"):
        Theta.from_bytes(bytes(of_tuples))
    with pytest.raises(SketchError, match="no KLL sketch"):
        Kll.from_bytes(bytes(of_kll), "<f4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("theta_sketch_agg(user, 3)", "between 4 and 26"),
        ("theta_sketch_agg(user, 27)", "between 4 and 26"),
        ("theta_sketch_agg(user, user)", "is an INT"),
        ("theta_sketch_agg(user, CAST(user AS INT))", "must be a constant"),
        ("theta_sketch_agg(user, '5')", "is an INT"),
        ("theta_sketch_agg(user > 5)", "not BOOLEAN"),
        ("theta_sketch_agg(CAST(user AS SMALLINT))", "not SMALLINT"),
        ("theta_sketch_agg(array(site))", "not ARRAY<STRING>"),
        ("theta_union_agg(user)", "a sketch is BINARY"),
        ("theta_sketch_estimate(site)", "BINARY"),
        ("theta_intersection_agg(X'00', 5)", "wrong number"),
        ("theta_union(X'00')", "WRONG_NUM_ARGS"),
        ("tuple_sketch_agg_double(user)", "wrong number"),
        ("tuple_sketch_agg_double(user, ms, 5, 'avg')", "no mode 'avg'"),
        ("tuple_sketch_agg_double(user, ms, 5, NULL)", "no mode"),
        ("tuple_sketch_agg_double(user, ms, NULL)", "between 4 and 26"),
        ("tuple_union_double(X'00', X'00', 5, site)", "NON_FOLDABLE"),
        ("tuple_union_double(X'00', X'00', CAST(user AS INT))", "NON_FOLDABLE"),
        ("kll_sketch_agg_bigint(ms)", "takes whole numbers"),
        ("kll_sketch_agg_float(ms)", "takes FLOAT"),
        ("kll_sketch_agg_bigint(user, 7)", "between 8 and 65535"),
        ("kll_sketch_get_quantile_bigint(X'00', ms)", "NON_FOLDABLE"),
        ("kll_merge_agg_bigint(site)", "a sketch is BINARY"),
    ],
)
def test_wrong_arguments_point_into_the_sql(call: str, message: str) -> None:
    with pytest.raises(SqlTypeError, match=message) as caught:
        compile_views([ViewDefinition("v", f"SELECT {call} AS x FROM orders")], [ORDERS])
    assert call.split("(")[0] in str(caught.value.detail)


def test_arguments_by_name_are_those_spark_knows() -> None:
    sql = "SELECT tuple_sketch_agg_double(user, ms, mode => 'max') AS x FROM orders"
    named = compile_views([ViewDefinition("v", sql)], [ORDERS])
    sql = "SELECT tuple_sketch_agg_double(user, ms, 12, 'max') AS x FROM orders"
    placed = compile_views([ViewDefinition("v", sql)], [ORDERS])
    assert [n.operator.describe() for n in named.nodes] == [
        n.operator.describe() for n in placed.nodes
    ]
    for call in ("theta_sketch_agg(user, lg => 5)", "tuple_sketch_agg_double(user, ms, key => 5)"):
        with pytest.raises(ViewError):
            compile_views([ViewDefinition("v", f"SELECT {call} AS x FROM orders")], [ORDERS])


def test_an_array_in_an_aggregate_has_the_type_of_all_its_parts() -> None:
    sql = (
        "SELECT max(array(1, ms)) AS x, approx_percentile(ms, array(0, 0.5D, 1.0)) AS p FROM orders"
    )
    graph = compile_views([ViewDefinition("v", sql)], [ORDERS])
    assert dict(graph.views["v"].columns)["x"] == "ARRAY<DOUBLE>"
    memory = MemoryTables(graph)
    memory.upsert("orders", {"id": 1, "site": "a", "user": 5, "ms": 2.5})
    memory.tick()
    assert memory.rows("v") == [{"x": [1.0, 2.5], "p": [2.5, 2.5, 2.5]}]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("approx_top_k(user, 3, 2)", "the top 3 of 2"),
        ("approx_top_k(user, NULL)", "k lies between"),
        ("approx_top_k(user, user)", "must be a constant"),
        ("approx_top_k(user, 5, 1000001)", "between 1 and 1000000"),
        ("approx_top_k(X'00')", "BINARY are not counted"),
        ("approx_top_k_accumulate(array(user))", "are not counted"),
        ("approx_top_k_combine(user)", "is not what approx_top_k_accumulate gives"),
        ("approx_top_k_estimate(user)", "STRUCT"),
        ("count_min_sketch(user, 0.5D, 0.5D)", "wrong number"),
        ("count_min_sketch(user, 0.5, 0.5D, 1)", "is a DOUBLE"),
        ("count_min_sketch(user, 0D, 0.5D, 1)", "above 0"),
        ("count_min_sketch(user, 0.5D, 1D, 1)", "below 1"),
        ("count_min_sketch(user, 0.5D, NULL, 1)", "below 1"),
        ("count_min_sketch(user, 0.5D, 0.5D, user)", "constant whole number"),
        ("count_min_sketch(ms, 0.5D, 0.5D, 1)", "not DOUBLE"),
        ("vector_sum(array(ms))", "takes ARRAY<FLOAT>, not ARRAY<DOUBLE>"),
        ("vector_avg(array(1))", "takes ARRAY<FLOAT>, not ARRAY<INT>"),
        ("histogram_numeric(user, 1)", "between 2 and"),
        ("histogram_numeric(user > 5, 5)", "no histogram of BOOLEAN"),
        ("histogram_numeric(user)", "wrong number"),
    ],
)
def test_wrong_arguments_of_summaries_point_into_the_sql(call: str, message: str) -> None:
    with pytest.raises(SqlTypeError, match=message) as caught:
        compile_views([ViewDefinition("v", f"SELECT {call} AS x FROM orders")], [ORDERS])
    assert call.split("(")[0] in str(caught.value.detail)


def test_frequent_items_of_a_stream_stay_small_and_right() -> None:
    chance = random.Random(5)
    sketch = Frequent(pa.string(), 30)
    exact: Counter[str | None] = Counter()
    for _ in range(40):
        some = Counter(f"w{int(chance.paretovariate(0.9))}" for _ in range(200))
        some[None] += 3  # type: ignore[index]
        sketch.update(some.items())
        sketch = Frequent.from_bytes(bytes(sketch), pa.string())
        exact.update(some)
    assert len(sketch.counts) <= sketch.room
    assert sketch.nulls == 120
    for item, estimate in sketch.top(4):
        assert abs(estimate - exact[item]) <= sketch.offset
    assert [item for item, _ in sketch.top(2)] == [item for item, _ in exact.most_common(2)]


def test_sums_of_vectors_come_back_to_what_they_were() -> None:
    vectors = table("v", "id BIGINT, x ARRAY<FLOAT>", ["id"])
    sql = "SELECT vector_sum(x) AS s, vector_avg(x) AS a FROM v"
    memory = MemoryTables(compile_views([ViewDefinition("out", sql)], [vectors]))
    memory.tick()
    assert memory.rows("out") == [{"s": None, "a": None}]
    memory.upsert("v", {"id": 1, "x": [0.1, 2.0]})
    memory.tick()
    before = memory.rows("out")
    for number, x in enumerate([[3e38, 1e-30], [3e38, float("inf")], [None, 1.0]], 2):
        memory.upsert("v", {"id": number, "x": x})
    memory.tick()
    (row,) = memory.rows("out")
    assert row["s"] == [float("inf"), float("inf")]
    for number in (2, 3, 4):
        memory.delete("v", {"id": number})
    memory.tick()
    assert memory.rows("out") == before
    memory.upsert("v", {"id": 2, "x": [1.0]})
    with pytest.raises(EvaluationError, match="dimensions"):
        memory.tick()
