"""Aggregates of rows that only come keep one value and show what keeping all would show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators import group
from tailrace.pipelines.engine.operators.aggregates import Aggregate
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.values.rows import changes, to_rows, weights
from tailrace.testing.state import MemoryState
from tailrace.testing.ticks import MemoryTables, table

SCHEMA = pa.schema(
    [
        ("k", pa.float64()), ("n", pa.int64()), ("d", pa.decimal128(30, 2)), ("f", pa.float64()),
        ("s", pa.string()), ("t", pa.timestamp("us", tz="UTC")), ("b", pa.bool_()),
    ]
)  # fmt: skip
NUMBERS = st.none() | st.integers(-5, 5)
ROWS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 0.0, -0.0, float("nan"), None]),
        NUMBERS,
        st.none() | st.integers(-(10**25), 10**25) | st.integers(-3, 3),
        st.none() | st.sampled_from([float("nan"), 1.5, -2.0, float("inf")]),
        st.none() | st.text(max_size=3) | st.sampled_from(["z" * 500, "z" * 501]),
        NUMBERS,
        st.none() | st.booleans(),
        st.sampled_from([1, 1, 1, 3]),
    ),
    max_size=12,
)  # fmt: skip
KINDS = {field.name: field.type for field in SCHEMA}


def aggregates(names: str, *, extremes: bool) -> list[Aggregate]:
    """min and max of columns; else also the others that show one value."""
    made = []
    for name in names:
        for condition in (None, "b"):
            common = ((name,), (KINDS[name],), KINDS[name])
            for function, down in (("min", False), ("max", True)):
                order = ((name, down, False),)
                made.append(Aggregate("", function, *common, condition=condition, order=order))
            if not extremes:
                ordered = (("n", False, True), (name, False, True))
                made += [
                    Aggregate("", function, *common, condition=condition, order=ordered)
                    for function in ("min_by", "first")
                ]
    made += [
        Aggregate("", "count", (), (), pa.int64()),
        Aggregate("", "sum", ("n",), (KINDS["n"],), pa.int64()),
    ]
    return [replace(one, name=f"a{number}") for number, one in enumerate(made)]


def grouping(chosen: list[Aggregate], keys: tuple[str, ...], *, grows: bool) -> Group:
    kept = tuple(replace(a, grows=grows and a.function not in ("count", "sum")) for a in chosen)
    fields = [SCHEMA.field(name) for name in keys] + [pa.field(a.name, a.type) for a in kept]
    return Group(keys, kept, pa.schema(fields))


@given(
    st.lists(ROWS, min_size=1, max_size=4),
    st.sampled_from([("k",), ()]),
    st.sampled_from([("nt", True), ("d", True), ("n", False), ("fs", False)]),
)
def test_one_value_shows_what_all_values_show(batches, keys, chosen) -> None:
    wanted = aggregates(chosen[0], extremes=chosen[1])
    operators = [grouping(wanted, keys, grows=False), *[grouping(wanted, keys, grows=True)] * 2]
    states = [MemoryState() for _ in operators]
    for number, rows in enumerate(batches):
        came = changes([row[:7] for row in rows], [row[7] for row in rows], SCHEMA)
        results = []
        limits = (10**9, 10**9, 0 if rows else 1)
        for operator, state, limit in zip(operators, states, limits, strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(group, "SUM_ROWS", limit)
                out = operator.apply(state, [came], TickContext(number, 0))
            results.append(sorted(map(repr, zip(to_rows(out), weights(out), strict=True))))
        assert results[1] == results[0]
        assert results[2] == results[0]
        assert states[1].rows == states[2].rows


@pytest.mark.parametrize(
    ("sql", "entries"),
    [
        ("SELECT k, min(n) a, max(n) b FROM s GROUP BY k", 1),
        ("SELECT k, max_by(n, at) a FROM s GROUP BY k", 2),
        ("SELECT k, max(n) a FROM (SELECT k, n FROM s UNION ALL SELECT k, at FROM s) GROUP BY k", 1),
        ("SELECT k, max(n) a FROM s GROUP BY k HAVING count(*) > 1", 1),
    ],
)  # fmt: skip
def test_a_group_of_a_stream_keeps_one_value(sql: str, entries: int) -> None:
    stream = table("s", "k INT, n INT, at INT", (), "stream")
    memory = MemoryTables(compile_views([ViewDefinition("v", sql, ("k",))], [stream]))
    for number in range(50):
        memory.upsert("s", {"k": 1, "n": number * 7 % 50, "at": number})
        memory.tick()
    held = {
        node.operator.kind: len(list(memory.states.of(0, node.id).scan()))
        for node in memory.graph.nodes
    }
    assert held["group"] == entries
    [row] = memory.rows("v")
    assert (row.get("b"), row["a"]) in ((49, 0), (None, 49), (None, 49 * 7 % 50))


DAY = datetime(2026, 1, 1)
VALUES: dict[str, Callable[[int], Any]] = {
    "BOOLEAN": lambda n: n % 2 == 0,
    "TINYINT": lambda n: n % 200 - 100,
    "DATE": lambda n: (DAY + timedelta(days=n)).date(),
    "TIMESTAMP_NTZ": lambda n: DAY + timedelta(milliseconds=n),
    "TIME(6)": lambda n: (DAY + timedelta(milliseconds=n)).time(),
    "BINARY": lambda n: b"%d" % n,
    "FLOAT": lambda n: n / 2,
    "DECIMAL(38,10)": lambda n: Decimal(n) - 150,
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_that_has_an_order_has_a_first_value(kind: str) -> None:
    """Many rows in one tick: the way through Arrow, where the type has one."""
    stream = table("s", f"k INT, n {kind}", (), "stream")
    sql = "SELECT k, min(n) a, max(n) b, count(*) c FROM s GROUP BY k"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql, ("k",))], [stream]))
    given: dict[int, list[Any]] = {k: [] for k in range(3)}
    for first in (300, 0, 600):
        for number in range(first, first + 300):
            given[number % 3].append(VALUES[kind](number))
            memory.upsert("s", {"k": number % 3, "n": given[number % 3][-1]})
            memory.upsert("s", {"k": number % 3, "n": None})
        memory.tick()
        assert sorted((row["k"], row["a"], row["b"], row["c"]) for row in memory.rows("v")) == [
            (k, min(values), max(values), 2 * len(values)) for k, values in given.items()
        ]


def test_what_can_go_again_keeps_all_values() -> None:
    changing = table("shop.public.t", "id INT, k INT, n INT", ["id"])
    memory = MemoryTables(
        compile_views([ViewDefinition("v", "SELECT k, max(n) a FROM shop.t GROUP BY k")], [changing])
    )  # fmt: skip
    for number in range(3):
        memory.upsert("shop.public.t", {"id": number, "k": 1, "n": number})
    memory.tick()
    memory.delete("shop.public.t", {"id": 2})
    memory.tick()
    assert [row["a"] for row in memory.rows("v")] == [1]


def test_a_row_of_a_keyless_view_is_kept_once() -> None:
    """As the key of its count; a row too long for a key is its value."""
    stream = table("s", "k INT, t STRING", (), "stream")
    memory = MemoryTables(compile_views([ViewDefinition("v", "SELECT k, t FROM s")], [stream]))
    long = "z" * 2_000
    for text in ("short", "short", long, long, long):
        memory.upsert("s", {"k": 1, "t": text})
        memory.tick()
    assert {row["t"]: row["count"] for row in memory.views["v"].values()} == {"short": 2, long: 3}
    [result] = [node.id for node in memory.graph.nodes if node.operator.kind == "result"]
    held = dict(memory.states.of(0, result).scan())
    assert sorted(len(value) for value in held.values())[0] < 12
    assert sum(b"short" in key + value for key, value in held.items()) == 1
    assert all((b"short" in key) + (b"short" in value) < 2 for key, value in held.items())
