"""Random changes to three tables, and the comparison of a view with its recompute."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.recompute import Recompute, as_bag
from tailrace.testing.ticks import MemoryTables, table

TABLES = [
    table(
        "shop.public.a",
        "id BIGINT, k INT, s STRING, d DECIMAL(10,2), f DOUBLE, b BOOLEAN, t TIMESTAMP_NTZ",
        ["id"],
    ),
    table("shop.public.b", "id BIGINT, k INT, s STRING, d DECIMAL(8,3), n BIGINT", ["id"]),
    table("shop.public.c", "k INT, s STRING, n INT"),
]


def random_row(rng: random.Random, columns: list[str]) -> dict[str, Any]:
    """Few distinct values, so that keys meet, and NULLs everywhere."""
    makers: dict[str, Any] = {
        "k": lambda: rng.randrange(4),
        "s": lambda: rng.choice(["x", "y", "", "zz", "a\x00b"]),
        "d": lambda: Decimal(rng.randrange(-500, 500)) / 100,
        "f": lambda: rng.choice([0.5, -1.25, 3.0, 0.1, 1e10, 0.0]),
        "b": lambda: rng.random() < 0.5,
        "n": lambda: rng.randrange(-3, 6),
        "t": lambda: datetime.datetime(2026, 1, 1 + rng.randrange(3), rng.randrange(24)),
    }
    row: dict[str, Any] = {}
    for name in columns:
        if name == "id":
            row[name] = rng.randrange(12)
        else:
            row[name] = None if rng.random() < 0.2 else makers[name]()
    return row


class Shop:
    """Three tables that change at random, and one view over them."""

    def __init__(self, sql: str, seed: int, shards: int = 1, judge: str | None = None) -> None:
        self.sql, self.judge = sql, judge or sql
        self.rng = random.Random(seed)
        self.memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES), shards=shards)
        self.keyed: dict[str, dict[int, dict[str, Any]]] = {t.topic: {} for t in TABLES if t.key}
        self.bags: dict[str, list[dict[str, Any]]] = {t.topic: [] for t in TABLES if not t.key}

    def change(self) -> None:
        """Up to ten changes of any kind."""
        rng = self.rng
        for _ in range(rng.randrange(10)):
            chosen = rng.choice(TABLES)
            topic = chosen.topic
            row = random_row(rng, chosen.schema.names)
            if chosen.key:
                rows = self.keyed[topic]
                if row["id"] in rows and rng.random() < 0.4:
                    self.memory.delete(topic, rows.pop(row["id"]))
                else:
                    self.memory.upsert(topic, row)
                    rows[row["id"]] = row
            elif self.bags[topic] and rng.random() < 0.4:
                position = rng.randrange(len(self.bags[topic]))
                self.memory.delete(topic, self.bags[topic].pop(position))
            else:
                self.memory.upsert(topic, row)
                self.bags[topic].append(row)

    def contents(self) -> dict[str, list[dict[str, Any]]]:
        return {
            **{topic: list(rows.values()) for topic, rows in self.keyed.items()},
            **self.bags,
        }

    def check(self, recompute: Recompute) -> None:
        """The view is what its query gives over the tables as they are now."""
        plan = self.memory.graph.views["v"]
        names = [name for name, _ in plan.columns if not (plan.bag and name == "count")]
        got = as_bag([row[name] for name in names] for row in self.memory.rows("v"))
        want = as_bag(recompute.rows(self.judge, self.contents()))
        assert got == want, f"{self.sql}\nextra {got - want}\nmissing {want - got}"


def check_view(
    sql: str, seed: int, *, ticks: int = 8, shards: int = 1, judge: str | None = None
) -> None:
    """Random ticks, some attempts thrown away before they count; exact after each.

    `judge` is the query to recompute where DuckDB's words for it differ."""
    shop = Shop(sql, seed, shards, judge)
    with Recompute(TABLES) as recompute:
        for _ in range(ticks):
            shop.change()
            if shop.rng.random() < 0.3:
                shop.memory.attempt()
            shop.memory.tick()
            shop.check(recompute)
