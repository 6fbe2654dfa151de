"""Joins that keep sums in place of rows give what joins of rows give."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.durable import DurableTables, shown
from pipelines.harness import TABLES, Shop
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.lowering import sums as lower_sums
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.engine.operators import sumjoin
from tailrace.pipelines.engine.operators.sumjoin import SumJoin
from tailrace.pipelines.errors import EvaluationError
from tailrace.testing.recompute import Recompute
from tailrace.testing.ticks import MemoryTables, table

QUERIES = [
    "SELECT b.s, count(*) AS n, sum(a.d) AS d FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT a.b, avg(a.d) AS d, count(a.s) AS s FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY a.b",
    "SELECT b.s, sum(b.n) AS n, avg(b.d) AS d FROM shop.a JOIN shop.b ON a.s = b.s GROUP BY b.s",
    "SELECT sum(a.d) AS d, avg(a.k) AS k FROM shop.a JOIN shop.c ON a.k = c.k",
    "SELECT c.s, b.s AS t, sum(a.d) AS d, count(*) AS n FROM shop.a JOIN shop.b ON a.k = b.k"
    " JOIN shop.c ON c.s = b.s GROUP BY c.s, b.s",
    "SELECT c.s, sum(c.n) AS n FROM shop.a JOIN shop.b ON a.k = b.k JOIN shop.c ON c.k = a.k"
    " GROUP BY c.s",
    "SELECT x.k, sum(x.d) AS d FROM shop.a x JOIN shop.a y ON x.s <=> y.s GROUP BY x.k",
    "SELECT upper(b.s) AS s, sum(a.d) AS d FROM shop.a JOIN shop.b ON a.k = b.k AND a.s = 'x'"
    " AND b.n > 0 GROUP BY upper(b.s) HAVING count(*) > 1",
    "SELECT b.s, sum(CASE WHEN a.b THEN a.d ELSE 0 END) AS d, count(*) FILTER (WHERE a.k > 1) AS n,"
    " sum(a.k) FILTER (WHERE a.s = 'x' OR a.b) AS x FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, sum(a.d * a.d) AS p, sum(a.d + a.d) AS q FROM shop.a JOIN shop.b ON a.k = b.k"
    " GROUP BY b.s",
    "SELECT b.k, count(a.id) AS n, sum(a.d) AS d, count(*) AS r FROM shop.b LEFT JOIN shop.a"
    " ON a.k = b.k GROUP BY b.k",
    "SELECT b.id, count(a.s) AS n, sum(a.d) AS d FROM shop.b LEFT JOIN shop.a ON a.k = b.k"
    " AND a.b GROUP BY b.id",
    "SELECT b.s, avg(a.d) AS d FROM shop.a RIGHT JOIN shop.b ON a.k <=> b.k GROUP BY b.s",
    "SELECT c.s, count(a.d) AS n, count(*) AS r FROM shop.c LEFT JOIN (SELECT x.k, x.d FROM shop.a x"
    " JOIN shop.b ON x.s = b.s) a ON a.k = c.k GROUP BY c.s",
    "SELECT c.n, sum(t.d) AS d, count(*) AS r FROM (SELECT b.k, a.d FROM shop.b LEFT JOIN shop.a"
    " ON a.s = b.s) t JOIN shop.c ON c.k = t.k GROUP BY c.n",
    "SELECT count(*) AS n, sum(a.d) AS d FROM shop.b LEFT JOIN shop.a ON a.k = b.k",
]
# Their rows differ anyway, or what is added up depends on the match, or may fail without one.
OF_ROWS = [
    "SELECT a.id, sum(a.d) AS d FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY a.id",
    "SELECT b.s, count(*) AS n FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, max(a.d) AS d FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, sum(DISTINCT a.d) AS d FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, sum(a.f) AS f FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, sum(a.k + b.n) AS d FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, sum(a.k / a.d) AS d FROM shop.a JOIN shop.b ON a.s = b.s GROUP BY b.s",
    "SELECT b.s, sum(a.k * a.k) AS d FROM shop.a JOIN shop.b ON a.s = b.s GROUP BY b.s",
    "SELECT b.s, avg(b.n) AS d FROM shop.a JOIN shop.b ON a.s = b.s GROUP BY b.s",
    "SELECT b.s, sum(a.d) AS d FROM shop.a JOIN shop.b ON a.k = b.k AND a.d > b.n GROUP BY b.s",
    "SELECT b.s, sum(coalesce(a.d, 1)) AS d FROM shop.b LEFT JOIN shop.a ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, a.s AS t, sum(a.d) AS d FROM shop.b LEFT JOIN shop.a ON a.k = b.k GROUP BY b.s, a.s",
    "SELECT b.s, sum(b.n) AS d FROM shop.b LEFT JOIN shop.a ON a.k = b.k GROUP BY b.s",
    "SELECT b.s, sum(a.d) AS d FROM shop.b FULL JOIN shop.a ON a.k = b.k GROUP BY b.s",
]  # fmt: skip


def graph_of(sql: str, tables: list[Any] | None = None) -> Graph:
    return compile_views([ViewDefinition("v", sql)], tables or TABLES)


def sums_in(graph: Graph) -> list[SumJoin]:
    return [node.operator for node in graph.nodes if isinstance(node.operator, SumJoin)]


def rows_of(memory: MemoryTables) -> list[str]:
    return sorted(map(repr, memory.views["v"].values()))


@pytest.fixture
def of_rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compiles a query without joins of sums: the naive twin."""

    def compiled(sql: str, tables: list[Any] | None = None) -> Graph:
        with monkeypatch.context() as patched:
            patched.setattr(lower_sums, "lower_sums", lambda *_: None)
            graph = graph_of(sql, tables)
        assert not sums_in(graph)
        return graph

    return compiled


def check(sql: str, seed: int, shards: int, twin: Graph, ticks: int = 8) -> None:
    """Random ticks: the view is what the joins of rows give, and what DuckDB does but for the
    digits of its means."""
    shop, rows = Shop(sql, seed, shards), MemoryTables(twin, shards=shards)
    with Recompute(TABLES) as recompute:
        for _ in range(ticks):
            shop.change()
            rows._events = {topic: list(events) for topic, events in shop.memory._events.items()}
            shop.memory.tick()
            rows.tick()
            assert rows_of(shop.memory) == rows_of(rows)
            if "avg" not in sql:
                shop.check(recompute)


@pytest.mark.parametrize("sql", QUERIES)
def test_sums_of_joined_rows_equal_their_recompute(sql: str, of_rows: Any) -> None:
    assert sums_in(graph_of(sql))
    twin = of_rows(sql)
    for seed in range(3):
        check(sql, seed, 1 + seed, twin)


@pytest.mark.parametrize("sql", OF_ROWS)
def test_what_needs_single_rows_keeps_them(sql: str) -> None:
    assert not sums_in(graph_of(sql))


@pytest.mark.thorough
@pytest.mark.parametrize("sql", QUERIES)
def test_many_changes_of_sums_equal_their_recompute(sql: str, of_rows: Any) -> None:
    twin = of_rows(sql)
    for seed in range(100, 160):
        check(sql, seed, 1 + seed % 5, twin, ticks=12)


@pytest.mark.parametrize("sql", QUERIES)
def test_a_state_of_sums_outlives_caches_and_attempts(sql: str, tmp_path: Path) -> None:
    shop = Shop(sql, len(sql), shards=3)
    kept = DurableTables(graph_of(sql), tmp_path, len(sql))
    for _ in range(6):
        shop.change()
        kept._events = {topic: list(events) for topic, events in shop.memory._events.items()}
        assert shown(shop.memory.tick()) == shown(kept.tick())


WIDE = [
    table("s.public.o", "id BIGINT, c BIGINT, n BIGINT, d DECIMAL(24,4), t STRING", ["id"]),
    table("s.public.c", "id BIGINT, g STRING", ["id"]),
]


@pytest.mark.parametrize("longest", [200, 5])
def test_sums_beyond_64_bits_and_long_rows(
    longest: int, of_rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sumjoin, "LONGEST_ROW", longest)
    sql = (
        "SELECT o.t, c.g, try_sum(o.n) AS n, sum(o.d) AS d, avg(o.d) AS a, count(*) AS r"
        " FROM s.o JOIN s.c ON c.id = o.c GROUP BY o.t, c.g"
    )
    rng = random.Random(longest)
    sums, rows = MemoryTables(graph_of(sql, WIDE)), MemoryTables(of_rows(sql, WIDE))
    assert sums_in(sums.graph)
    for _ in range(60):
        for _ in range(rng.randrange(6)):
            order = {
                "id": rng.randrange(20), "c": rng.choice([1, 2, None]),
                "n": rng.choice([2**63 - 1, -(2**63), 5, None]),
                "d": Decimal(rng.choice([10**24 - 1, -(10**24) + 1, 7])).scaleb(-4),
                "t": rng.choice(["a", "b" * 300, "b" * 299 + "c", None]),
            }  # fmt: skip
            customer = {"id": rng.randrange(4), "g": rng.choice(["x", "y" * 500])}
            gone = rng.random() < 0.3
            for memory in (sums, rows):
                (memory.delete if gone else memory.upsert)("s.public.o", order)
                memory.upsert("s.public.c", customer)
        sums.tick()
        rows.tick()
        assert rows_of(sums) == rows_of(rows)


def test_a_sum_that_overflows_is_an_error_of_its_view() -> None:
    memory = MemoryTables(
        graph_of("SELECT c.g, sum(o.n) AS n FROM s.o JOIN s.c ON c.id = o.c GROUP BY c.g", WIDE)
    )
    memory.upsert("s.public.c", {"id": 1, "g": "x"})
    for number in range(2):
        memory.upsert("s.public.o", {"id": number, "c": 1, "n": 2**63 - 1})
    with pytest.raises(EvaluationError, match="sum overflows"):
        memory.tick()


def test_pairs_that_never_stood_together_are_not_computed() -> None:
    sql = (
        "SELECT 10 div (o.c + c.id) AS k, sum(o.n) AS n FROM s.o JOIN s.c ON c.g = o.t"
        " GROUP BY 10 div (o.c + c.id)"
    )
    memory = MemoryTables(graph_of(sql, WIDE))
    assert sums_in(memory.graph)
    memory.upsert("s.public.o", {"id": 1, "c": 1, "n": 5, "t": "x"})
    memory.upsert("s.public.c", {"id": 1, "g": "x"})
    memory.tick()
    memory.upsert("s.public.o", {"id": 1, "c": -2, "n": 5, "t": "x"})
    memory.upsert("s.public.c", {"id": 1, "g": "y"})
    memory.upsert("s.public.c", {"id": 2, "g": "z"})
    memory.tick()
    memory.upsert("s.public.c", {"id": 2, "g": "y"})
    memory.tick()
    assert memory.views["v"] == {}
    # New order and old customer would be 10 div 0.
    memory.upsert("s.public.c", {"id": 3, "g": "w"})
    memory.upsert("s.public.o", {"id": 2, "c": 1, "n": 7, "t": "w"})
    memory.tick()
    memory.upsert("s.public.c", {"id": 3, "g": "v"})
    memory.upsert("s.public.o", {"id": 2, "c": -3, "n": 7, "t": "w"})
    memory.tick()
    assert memory.views["v"] == {}


@pytest.mark.parametrize(
    ("kind", "digits", "sums"), [("INT", 9, True), ("INT", 10, False), ("BIGINT", 19, False)]
)
def test_a_row_without_a_partner_is_not_cast(kind: str, digits: int, sums: bool) -> None:
    orders = table("s.public.o", f"id BIGINT, c BIGINT, d DECIMAL({digits},0)", ["id"])
    sql = f"SELECT c.g, sum(CAST(o.d AS {kind})) AS n FROM s.o JOIN s.c ON c.id = o.c GROUP BY c.g"
    memory = MemoryTables(graph_of(sql, [orders, WIDE[1]]))
    assert bool(sums_in(memory.graph)) == sums
    memory.upsert("s.public.o", {"id": 1, "c": 1, "d": Decimal(10**digits - 1)})
    memory.upsert("s.public.o", {"id": 2, "c": 2, "d": Decimal(3)})
    memory.upsert("s.public.c", {"id": 2, "g": "x"})
    memory.tick()
    assert [row["n"] for row in memory.rows("v")] == [3]


@pytest.mark.parametrize("value", [10**18 - 1, -(10**18) + 1])
def test_sums_cross_the_limit_of_64_bits_row_by_row_and_come_back(value: int) -> None:
    """Every single number fits; only what a state holds with one more does not."""
    orders = table("s.public.o", "id BIGINT, c BIGINT, d DECIMAL(18,0)", ["id"])
    sql = "SELECT c.g, sum(o.d) AS d FROM s.o JOIN s.c ON c.id = o.c GROUP BY c.g"
    memory = MemoryTables(graph_of(sql, [orders, WIDE[1]]))
    assert sums_in(memory.graph)
    memory.upsert("s.public.c", {"id": 1, "g": "x"})
    for number in range(1, 15):
        memory.upsert("s.public.o", {"id": number, "c": 1, "d": Decimal(value)})
        memory.tick()
        assert [row["d"] for row in memory.rows("v")] == [number * value]
    memory.upsert("s.public.c", {"id": 1, "g": "y"})
    memory.tick()
    assert [(row["g"], row["d"]) for row in memory.rows("v")] == [("y", 14 * value)]
    for number in range(13, 0, -1):
        memory.delete("s.public.o", {"id": number + 1})
        memory.tick()
        assert [row["d"] for row in memory.rows("v")] == [number * value]


def test_rows_that_are_equal_otherwise_are_one_entry() -> None:
    sql = "SELECT c.g, sum(o.n) AS n FROM s.o JOIN s.c ON c.id = o.c GROUP BY c.g"
    memory = MemoryTables(graph_of(sql, WIDE))
    memory.upsert("s.public.c", {"id": 1, "g": "x"})
    for number in range(500):
        memory.upsert("s.public.o", {"id": number, "c": number % 2, "n": number})
    memory.tick()
    join = next(node for node in memory.graph.nodes if isinstance(node.operator, SumJoin))
    assert len(memory.states.of(0, join.id).rows) == 3  # two customers' orders, one customer
    for number in range(500):
        memory.delete("s.public.o", {"id": number})
    memory.tick()
    assert len(memory.states.of(0, join.id).rows) == 1


def test_explain_says_what_is_kept() -> None:
    from tailrace.pipelines.compiler.explain import explain

    text = explain(graph_of(QUERIES[0]), "v")
    assert "join on a.k = b.k, adding up d" in text
    assert "incremental: every operator" in text
