"""A view that begins with the rows of running operators equals its recompute."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines.compiler.test_random_queries import Columns, queries
from pipelines.harness import TABLES, Shop
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import Graph, TickContext
from tailrace.pipelines.errors import ViewError
from tailrace.pipelines.ticks.project import subgraph
from tailrace.pipelines.ticks.seed_from_state import (
    begun,
    own_operators,
    read_shared,
    shared_operators,
    sources_of,
)
from tailrace.pipelines.ticks.tick_row import Seeding, Tick, parse
from tailrace.testing.recompute import Recompute
from tailrace.testing.ticks import MemoryTables

# So that every table is known to a running operator.
BASES = {name: f"SELECT * FROM shop.{name}" for name in ("a", "b", "c")}
OVER = (
    "SELECT q.*, 1 AS one FROM ({}) q",
    "SELECT count(*) AS c FROM ({}) q",
    "SELECT q.* FROM ({}) q WHERE EXISTS (SELECT 1 FROM shop.a WHERE a.k = 1)",
)


def begin_with(running: MemoryTables, graph: Graph, limit: int) -> tuple[MemoryTables, set[str]]:
    """A fill of `graph` in memory, as `ticks.shared` does it, and what it shares."""
    held = {node.id for node in running.graph.nodes}
    shared = shared_operators(graph, held)
    fill = MemoryTables(graph, shards=running.shards)
    fill.number = running.number
    states = running.states.copy()
    for name in sources_of(graph, shared) & held:
        for shard in range(running.shards):
            fill.states.of(shard, name).rows = states.of(shard, name).rows
    row = begun(Tick("fill", shards=running.shards), graph, shared, Tick("shop"), ())
    own = own_operators(graph, shared)
    while True:
        row = parse(row.encode())
        assert row.seeding is not None
        given_rows, left = read_shared(
            graph, fill.states, row.seeding, range(running.shards), limit
        )  # fmt: skip
        fill.number += 1
        emitted = run_tick(
            graph, {}, fill.states, TickContext(fill.number, 0),
            shards=running.shards, given=given_rows, only=own,
        )  # fmt: skip
        fill.apply({name: changes.to_pylist() for name, changes in emitted.items()})
        if not left:
            return fill, shared
        row = Tick("fill", shards=running.shards, seeding=Seeding(tuple(shared), left))


def check_shared(running_sql: str, sql: str, seed: int, shards: int, limit: int) -> set[str]:
    """Random ticks of views, then a new one that begins with their rows; what it shares."""
    views = {**BASES, "before": running_sql, "v": sql}
    graph = compile_views([ViewDefinition(n, q) for n, q in views.items()], TABLES)
    shop = Shop(sql, seed, shards)
    running = shop.memory = MemoryTables(subgraph(graph, [*BASES, "before"]), shards=shards)
    for _ in range(4):
        shop.change()
        running.tick()
    try:
        shop.memory, shared = begin_with(running, subgraph(graph, ["v"]), limit)
    except ViewError:  # a part of the rows can make it fail: it is then filled from its topics
        return set()
    if not shared:
        return set()
    with Recompute(TABLES) as recompute:
        shop.check(recompute)
        for _ in range(3):
            shop.change()
            shop.memory.tick()
            shop.check(recompute)
    return shared


@given(
    queries(1), queries(1), st.sampled_from(["", *OVER]),
    st.integers(0, 1000), st.sampled_from([1, 3]), st.sampled_from([1, 2, 5, 1000]),
)  # fmt: skip
def test_a_view_begun_with_running_operators_equals_its_recompute(
    running: tuple[str, Columns], other: tuple[str, Columns], over: str,
    seed: int, shards: int, limit: int,
) -> None:  # fmt: skip
    assume(check_shared(running[0], over.format(running[0]) or other[0], seed, shards, limit))


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@settings(max_examples=1000)
@given(
    queries(2), queries(2), st.sampled_from(["", *OVER]),
    st.integers(0, 100_000), st.sampled_from([1, 2, 5]), st.sampled_from([1, 3, 7, 1000]),
)  # fmt: skip
def test_a_deep_view_begun_with_running_operators_equals_its_recompute(
    running: tuple[str, Columns], other: tuple[str, Columns], over: str,
    seed: int, shards: int, limit: int,
) -> None:  # fmt: skip
    assume(check_shared(running[0], over.format(running[0]) or other[0], seed, shards, limit))


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT a.s, b.n FROM shop.a JOIN shop.b ON a.k = b.k", {"join"}),
        ("SELECT a.s, a.k FROM shop.a WHERE a.k IN (SELECT k FROM shop.c)", {"join"}),
        ("SELECT a.s, sum(b.n) AS n FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY a.s", {"group"}),
        ("SELECT s, d, count(*) AS c, max(n) AS m FROM shop.b GROUP BY s, d", {"group"}),
        ("SELECT sum(n) AS c FROM shop.b", {"group"}),
        ("SELECT DISTINCT s, k FROM shop.a", {"counts"}),
        ("SELECT s FROM shop.a EXCEPT ALL SELECT s FROM shop.b", {"counts"}),
        ("SELECT * FROM shop.c", {"bag"}),
        ("SELECT a.s, b.n FROM shop.a LEFT JOIN shop.b ON a.k = b.k", {"keyed"}),
        ("SELECT s, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM shop.a", {"keyed"}),
    ],
)
@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_what_is_shared_goes_as_far_up_as_states_tell(
    sql: str, kinds: set[str], limit: int
) -> None:
    shared = check_shared(sql, f"SELECT q.*, 2 AS two FROM ({sql}) q", 7, 3, limit)
    assert {name.partition("-")[0] for name in shared} == kinds


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize("other", ["a.s", "b.s"])
def test_another_group_begins_with_the_sums_of_a_running_join(other: str, limit: int) -> None:
    joined = "FROM shop.a JOIN shop.b ON a.k = b.k GROUP BY"
    one = f"SELECT {other}, sum(b.n) AS n {joined} {other}"
    same = f"SELECT {other}, sum(b.n) + 1 AS n, count(*) AS c, count(b.n) AS m {joined} {other}"
    shared = check_shared(one, same, 11, 3, limit)
    assert {name.partition("-")[0] for name in shared} == {"join"}
