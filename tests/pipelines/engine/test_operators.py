"""Short ways through operators give what the long ways give."""

from __future__ import annotations

import marshal
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.harness import check_view
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators import arrivals, bags, group, ordered
from tailrace.pipelines.engine.operators.aggregates import Aggregate, fixed, to_float
from tailrace.pipelines.engine.operators.expiry import Expiry
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.values.rows import changes, dumps, to_rows, weights
from tailrace.testing.state import MemoryState
from tailrace.testing.ticks import MemoryTables, table

SCHEMA = pa.schema(
    [("k", pa.string()), ("n", pa.int64()), ("d", pa.decimal128(10, 2)), ("b", pa.bool_())]
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", None]),
        st.none() | st.integers(-5, 5) | st.sampled_from([2**62, -(2**62)]),
        st.none() | st.integers(-1000, 1000),
        st.none() | st.booleans(),
        st.sampled_from([1, 1, 2, -1]),
    ),
    max_size=30,
)  # fmt: skip


def grouping(keys: tuple[str, ...], mixed: bool = False) -> Group:
    """Aggregates that Arrow can add up; `mixed`: beside some that it cannot."""
    kinds = {field.name: field.type for field in SCHEMA}

    def aggregate(name: str, function: str, of: str, kind: pa.DataType) -> Aggregate:
        return Aggregate(name, function, (of,), (kinds[of],), kind)

    aggregates = (
        Aggregate("c", "count", (), (), pa.int64()),
        aggregate("cn", "count", "n", pa.int64()),
        aggregate("s", "sum", "d", pa.decimal128(20, 2)),
        aggregate("a", "avg", "d", pa.decimal128(14, 6)),
        aggregate("m", "avg", "n", pa.float64()),
        Aggregate("f", "sum", ("d",), (kinds["d"],), pa.decimal128(20, 2), condition="b"),
    )
    if mixed:
        first, *rest = aggregates
        aggregates = (
            Aggregate("x", "max", ("n",), (kinds["n"],), pa.int64(), order=(("n", True, False),)),
            first,
            Aggregate("e", "count", ("n",), (kinds["n"],), pa.int64(), distinct=True),
            *rest,
            Aggregate("g", "count", ("d",), (kinds["d"],), pa.int64(), True, condition="b"),
        )
    fields = [SCHEMA.field(name) for name in keys] + [pa.field(a.name, a.type) for a in aggregates]
    return Group(keys, aggregates, pa.schema(fields))


@given(st.lists(ROWS, min_size=1, max_size=3), st.sampled_from([("k",), ()]), st.booleans())
def test_sums_in_arrow_equal_sums_row_by_row(batches, keys, mixed) -> None:
    operator = grouping(keys, mixed)
    states = MemoryState(), MemoryState()
    for number, rows in enumerate(batches):
        given_rows = changes([row[:4] for row in rows], [row[4] for row in rows], SCHEMA)
        results = []
        for state, limit in zip(states, (0 if rows else 1, 10**9), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(group, "SUM_ROWS", limit)
                out = operator.apply(state, [given_rows], TickContext(number, 0))
                results.append(sorted(map(repr, zip(to_rows(out), weights(out), strict=True))))
        assert results[0] == results[1]
        assert states[0].rows == states[1].rows


SIDE = pa.schema(
    [("k", pa.string()), ("j", pa.int32()), ("d", pa.decimal128(20, 2)), ("f", pa.float64())]
)
SIDE_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["x", "x\0", "", "y", "z" * 500, "z" * 501, None]),
        st.none() | st.integers(0, 1),
        st.none() | st.integers(-(10**19), 10**19) | st.integers(0, 2),
        st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
        st.sampled_from([1, 1, 1, 2, -1]),
    ),
    max_size=8,
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), SIDE_ROWS), min_size=1, max_size=5),
    st.sampled_from([(False, False), (True, False), (True, True)]),
    st.sampled_from([2, 48]),
    st.none() | st.lists(st.sampled_from([None, -1, 0, 1000]), min_size=5, max_size=5),
)
def test_joins_in_columns_equal_joins_row_by_row(batches, null_safe, spill, horizons) -> None:
    """Also the bytes of their state, for any mixture of the two ways, while rows are forgotten."""
    names = tuple(SIDE.names)
    right = tuple(f"r{name}" for name in names)
    both = pa.schema([*SIDE, *(field.with_name(f"r{field.name}") for field in SIDE)])
    ends = tuple(Expiry(name, 0, (("t", "at"),)) for name in ("j", "rj"))
    operator = Join(
        "inner", ("k", "j"), ("rk", "rj"), null_safe, names, right, both, horizons and ends
    )  # fmt: skip
    states = MemoryState(), MemoryState()
    nothing = changes([], [], SIDE)
    for number, (side, rows) in enumerate(batches):
        came = changes([row[:4] for row in rows], [row[4] for row in rows], SIDE)
        inputs = [came if side != 1 else nothing, came if side != 0 else nothing]
        inputs[1] = inputs[1].rename_columns([*right, "__weight"])
        results = []
        for state, limit in zip(states, (1, 10**9), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(arrivals, "ARRIVAL_ROWS", limit)
                patch.setattr(arrivals, "_COMING", 0)
                patch.setattr(bags, "SPILL_ROWS", spill)
                horizon = horizons[number] if horizons else None
                known = {} if horizon is None else {"t": ("at", horizon)}
                out = operator.apply(state, inputs, TickContext(number, 0, {}, known))
            totals: dict[str, int] = {}
            for row, weight in zip(to_rows(out), weights(out), strict=True):
                totals[repr(row)] = totals.get(repr(row), 0) + weight
            results.append({row: total for row, total in totals.items() if total})
        assert results[0] == results[1]
        assert states[0].rows == states[1].rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id, b.id x FROM shop.a JOIN shop.b ON a.k = b.k",
        "SELECT a.id, b.id x FROM shop.a FULL JOIN shop.b ON a.k = b.k",
        "SELECT id FROM shop.a WHERE NOT EXISTS (SELECT 1 FROM shop.b WHERE b.k = a.k)",
        "SELECT id, sum(d) OVER (PARTITION BY k ORDER BY id) s FROM shop.a",
    ],
)
def test_large_bags_behave_as_small_ones(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "SPILL_ROWS", 1)
    for seed in range(3):
        check_view(sql, seed, ticks=15)


ORDERED = """
    SELECT k, min(d) AS low, max(s) AS high, median(id) AS middle, count(*) AS n,
           collect_list(id ORDER BY id DESC) AS ids, max(d) FILTER (WHERE id % 2 = 0) AS even
    FROM shop.a GROUP BY k"""


@pytest.mark.parametrize("spill", [0, 1, 2])
def test_large_groups_behave_as_small_ones(spill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "SPILL_VALUES", spill)
    for seed in range(3):
        check_view(ORDERED, seed, ticks=15)


@given(
    st.lists(ROWS, min_size=2, max_size=6),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_groups_of_an_earlier_version_go_on(batches, since: int, chance: random.Random) -> None:
    """Earlier versions gave every value of an ordered aggregate an entry."""
    operator = grouping(("k",), mixed=True)
    states = MemoryState(), MemoryState()
    there: list[tuple[object, ...]] = []
    for number, came in enumerate(batches):
        gone = [row for row in there if chance.random() < 0.5]
        rows = [row[:-1] for row in came]
        for row in gone:
            there.remove(row)
        there += rows
        given_rows = changes([*gone, *rows], [-1] * len(gone) + [1] * len(rows), SCHEMA)
        results = []
        for state, early in zip(states, (number < since, False), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                if early:
                    patch.setattr(ordered, "SPILL_VALUES", -1)
                out = operator.apply(state, [given_rows], TickContext(number, 0))
            if early:
                for key, value in list(state.rows.items()):
                    if key[:1] == b"g":
                        state.rows[key] = dumps(marshal.loads(value)[:3])
            results.append(sorted(zip(map(repr, to_rows(out)), weights(out), strict=True)))
        assert results[0] == results[1]


@given(ROWS, st.randoms(use_true_random=False))
def test_the_state_of_a_group_does_not_depend_on_the_order_of_its_rows(rows, shuffle) -> None:
    operator, states = grouping(("k",), mixed=True), (MemoryState(), MemoryState())
    for state in states:
        given_rows = changes([row[:-1] for row in rows], [row[-1] for row in rows], SCHEMA)
        operator.apply(state, [given_rows], TickContext(1, 0))
        shuffle.shuffle(rows)
    assert states[0].rows == states[1].rows


def test_long_strings_keep_their_order_in_min_and_limit() -> None:
    texts = [f"{'x' * 300}{number:03}" for number in range(20)]
    random.Random(1).shuffle(texts)
    tables = [table("t", "id BIGINT, s STRING", ["id"])]
    from tailrace.pipelines.compiler import ViewDefinition, compile_views

    memory = MemoryTables(
        compile_views(
            [
                ViewDefinition("low", "SELECT min(s) AS s, max(s) AS z FROM t"),
                ViewDefinition("top", "SELECT id, s FROM t ORDER BY s LIMIT 3"),
            ],
            tables,
        )
    )
    for number, text in enumerate(texts):
        memory.upsert("t", {"id": number, "s": text})
    memory.tick()
    assert memory.rows("low") == [{"s": min(texts), "z": max(texts)}]
    assert sorted(row["s"] for row in memory.rows("top")) == sorted(texts)[:3]
    first = texts.index(min(texts))
    memory.delete("t", {"id": first})
    memory.tick()
    assert memory.rows("low") == [{"s": sorted(texts)[1], "z": max(texts)}]
    assert sorted(row["s"] for row in memory.rows("top")) == sorted(texts)[1:4]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_what_was_added_to_a_float_sum_can_be_taken_away(values: list[float]) -> None:
    total = sum(fixed(value) for value in values)
    for value in values[1:]:
        total -= fixed(value)
    from fractions import Fraction

    assert to_float(Fraction(total, 1 << 1074)) == values[0]


def test_float_sum_returns_to_what_it_was() -> None:
    from tailrace.pipelines.compiler import ViewDefinition, compile_views

    tables = [table("t", "id BIGINT, f DOUBLE", ["id"])]
    memory = MemoryTables(compile_views([ViewDefinition("v", "SELECT sum(f) AS s FROM t")], tables))
    memory.upsert("t", {"id": 1, "f": 0.1})
    memory.tick()
    memory.upsert("t", {"id": 2, "f": 1e300})
    memory.tick()
    memory.delete("t", {"id": 2})
    memory.tick()
    assert memory.rows("v") == [{"s": 0.1}]


def test_decimals_wider_than_64_bits_are_exact() -> None:
    from tailrace.pipelines.compiler import ViewDefinition, compile_views

    tables = [table("t", "id BIGINT, d DECIMAL(38,4)", ["id"])]
    sql = "SELECT sum(d) AS s, max(d) AS m FROM t"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], tables))
    big = Decimal("12345678901234567890123456789.1234")
    for number in range(3):
        memory.upsert("t", {"id": number, "d": big + number})
    memory.tick()
    assert memory.rows("v") == [{"s": big * 3 + 3, "m": big + 2}]
