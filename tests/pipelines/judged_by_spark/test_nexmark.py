"""Nexmark's queries as views: whatever the order of arrival, they equal a batch over all rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.values.types import ddl
from tailrace.testing.nexmark import TABLES, events, side_input
from tailrace.testing.recompute import Recompute, as_bag
from tailrace.testing.ticks import MemoryTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = sorted((Path(__file__).parents[2] / "views_sql" / "nexmark").glob("q*.sql"))
QUERIES = {path.stem: path.read_text() for path in FILES}
ONLY_SPARK = {"q05", "q07", "q08", "q11"}  # windows of time, which DuckDB does not know


class House:
    """All queries over the events so far."""

    def __init__(self) -> None:
        self.memory = MemoryTables(
            compile_views([ViewDefinition(n, sql) for n, sql in QUERIES.items()], TABLES), shards=3
        )
        self.rows: dict[str, list[dict[str, Any]]] = {t.topic: [] for t in TABLES}
        for row in side_input():
            self.take("side_input", row)

    def take(self, name: str, row: dict[str, Any]) -> None:
        self.rows[name].append(row)
        self.memory.upsert(name, row)

    def shown(self, query: str) -> Counter[tuple[Any, ...]]:
        plan = self.memory.graph.views[query]
        names = [n for n, _ in plan.columns if not (plan.bag and n == "count")]
        return as_bag([row[n] for n in names] for row in self.memory.rows(query))


def test_views_equal_their_recompute() -> None:
    house = House()
    found = dict.fromkeys(QUERIES, 0)
    with Recompute(TABLES) as recompute:
        for number, event in enumerate(events(3000, seed=4, apart_ms=25), 1):
            house.take(*event)
            if number % 1000:
                if number % 137 == 0:
                    house.memory.tick()
                continue
            house.memory.tick()
            for query in QUERIES.keys() - ONLY_SPARK:
                want = as_bag(recompute.rows(QUERIES[query], house.rows))
                got = house.shown(query)
                assert got == want, (query, number, got - want, want - got)
                found[query] += sum(want.values())
    assert all(found[query] for query in QUERIES.keys() - ONLY_SPARK), found


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2))
def test_views_equal_a_batch_of_spark(spark: SparkSession, seed: int) -> None:
    house = House()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for number, event in enumerate(events(12_000, seed=seed, apart_ms=25), 1):
        house.take(*event)
        if number % 500 == 0:
            house.memory.tick()
        if number % 6000:
            continue
        house.memory.tick()
        for known in TABLES:
            schema = ", ".join(f"{f.name} {ddl(f.type)}" for f in known.schema)
            rows = [tuple(row[f.name] for f in known.schema) for row in house.rows[known.topic]]
            spark.createDataFrame(rows, schema=schema).createOrReplaceTempView(known.topic)
        for query, sql in QUERIES.items():
            want = as_bag(tuple(row) for row in spark.sql(sql).collect())
            got = house.shown(query)
            assert want, query
            assert got == want, (query, number, got - want, want - got)


def test_every_query_that_does_not_look_at_the_clock_is_there() -> None:
    # 10 writes files; 12 groups by the time of processing, which no replay could repeat.
    assert {int(name[1:]) for name in QUERIES} == set(range(23)) - {10, 12}
