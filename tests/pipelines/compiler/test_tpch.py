"""TPC-H's 22 queries as views, under inserts, updates and deletes of all its tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pipelines.compiler.tpch import REFRESHED, SIZES, TABLES, Key, random_key, random_row
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.recompute import Recompute, as_bag
from tailrace.testing.ticks import MemoryTables

FILES = sorted((Path(__file__).parents[2] / "views_sql" / "tpch").glob("q*.sql"))
QUERIES = {path.stem: path.read_text() for path in FILES}


def run(ticks: int, seed: int) -> None:
    rng = random.Random(seed)
    graph = compile_views([ViewDefinition(n, sql) for n, sql in QUERIES.items()], TABLES)
    memory = MemoryTables(graph)
    contents: dict[str, dict[Key, dict[str, Any]]] = {name: {} for name in SIZES}

    def put(name: str, key: Key) -> None:
        contents[name][key] = random_row(rng, name, key)
        memory.upsert(f"tpch.main.{name}", contents[name][key])

    for name in SIZES:
        for _ in range(300):
            put(name, random_key(rng, name))
    found = dict.fromkeys(QUERIES, 0)
    with Recompute(TABLES) as recompute:
        for tick in range(ticks):
            for _ in range(rng.randrange(1, 30) if tick else 0):
                name = rng.choice(REFRESHED)
                key = random_key(rng, name)
                if key in contents[name] and rng.random() < 0.35:
                    memory.delete(f"tpch.main.{name}", contents[name].pop(key))
                else:
                    put(name, key)
            memory.tick()
            rows = {f"tpch.main.{name}": list(c.values()) for name, c in contents.items()}
            for query, sql in QUERIES.items():
                plan = graph.views[query]
                names = [n for n, _ in plan.columns if not (plan.bag and n == "count")]
                got = as_bag([row[n] for n in names] for row in memory.rows(query))
                want = as_bag(recompute.rows(sql, rows))
                assert got == want, (query, tick, got - want, want - got)
                found[query] += sum(want.values())
    assert sum(count > 0 for count in found.values()) >= 20, found


def test_there_are_22_queries() -> None:
    assert len(QUERIES) == 22


def test_tpch_views_equal_their_recompute() -> None:
    run(ticks=3, seed=1)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(5))
def test_tpch_views_equal_their_recompute_under_refresh(seed: int) -> None:
    run(ticks=40, seed=seed)
