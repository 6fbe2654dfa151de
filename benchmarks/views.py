"""What a tick of views costs: it follows the change, not the tables.

    make bench-views        or: python -m benchmarks.views [--rows 100000,5000000] [--changes 1000]

Runs the operators in this process on the state of a running project (delta files and LMDB
caches in a temporary directory, flushed), without Spark and without a log: what is measured
is the work that a tick adds to both. Every figure is the median of `--ticks` ticks after
some to warm up (each brings the caches to the tick before it, which is part of its cost);
results are checked against a recompute by DuckDB before they count.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import Graph, TickContext
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.values.columns import DELETED, KEY
from tailrace.testing.ticks import table

TABLES = [
    table(
        "shop.public.orders",
        "id BIGINT, customer_id BIGINT, product_id BIGINT, amount DECIMAL(10,2)",
        ["id"],
    ),
    table("shop.public.customers", "id BIGINT, country STRING", ["id"]),
    table("shop.public.products", "id BIGINT, category STRING", ["id"]),
]
ONE_JOIN = """
    SELECT c.country, count(*) AS orders, sum(o.amount) AS value
    FROM shop.orders o JOIN shop.customers c ON c.id = o.customer_id
    GROUP BY c.country"""
TWO_JOINS = """
    SELECT c.country, p.category, count(*) AS orders, sum(o.amount) AS value
    FROM shop.orders o
    JOIN shop.customers c ON c.id = o.customer_id
    JOIN shop.products p ON p.id = o.product_id
    GROUP BY c.country, p.category"""
MANY = [
    ONE_JOIN,
    TWO_JOINS,
    "SELECT customer_id, max(amount) AS most FROM shop.orders GROUP BY customer_id",
    "SELECT id, amount FROM shop.orders WHERE amount > 90",
    "SELECT product_id, count(*) AS n FROM shop.orders GROUP BY product_id",
    "SELECT count(*) AS n, sum(amount) AS total FROM shop.orders",
    "SELECT id, amount FROM shop.orders ORDER BY amount DESC, id LIMIT 10",
    "SELECT DISTINCT product_id FROM shop.orders WHERE amount < 1",
    "SELECT c.id, count(o.id) AS n FROM shop.customers c"
    " LEFT JOIN shop.orders o ON o.customer_id = c.id GROUP BY c.id",
    "SELECT id FROM shop.products p WHERE NOT EXISTS"
    " (SELECT 1 FROM shop.orders o WHERE o.product_id = p.id AND o.amount > 99)",
]
BATCH = 200_000  # what a tick of a running project reads at most
WARM = 5


class Bench:
    """One project's state on disk, and the tables as they are."""

    def __init__(self, views: list[str], rows: int, directory: Path) -> None:
        definitions = [ViewDefinition(f"v{i}", sql) for i, sql in enumerate(views)]
        self.graph: Graph = compile_views(definitions, TABLES)
        self.rows, self.customers, self.products = rows, max(rows // 10, 100), 1000
        self.files, self.cache = LocalFiles(directory / "state"), directory / "cache"
        self.versions: dict[int, Any] = {}
        self.number = 0
        self.random = np.random.default_rng(1)
        self.shown: list[dict[bytes, Any]] = [{} for _ in views]
        self.orders: list[pa.Table] = []

    def tick(self, inputs: dict[str, pa.Table]) -> tuple[float, float]:
        """Seconds of CPU, seconds on the clock."""
        self.number += 1
        cpu, clock = time.process_time(), time.perf_counter()
        with Attempt.begin(self.files, self.cache, self.versions) as attempt:
            emitted = run_tick(self.graph, inputs, attempt, TickContext(self.number, 0))
            self.versions = {**self.versions, **attempt.finish(self.number)}
        spent = time.process_time() - cpu, time.perf_counter() - clock
        for name, changes in emitted.items():
            key = self.graph.views[name].key
            view = self.shown[int(name[1:])]
            for row in changes.to_pylist():
                if row.pop(DELETED):
                    view.pop(tuple(row[k] for k in key))
                else:
                    view[tuple(row[k] for k in key)] = tuple(row.values())
        return spent

    def fill(self) -> tuple[int, float]:
        """First fill in ticks of bounded size: rows read, seconds of CPU."""
        first = {
            "shop.public.customers": _upserts(
                id=np.arange(self.customers),
                country=pa.array([f"C{i % 50}" for i in range(self.customers)]),
            ),
            "shop.public.products": _upserts(
                id=np.arange(self.products),
                category=pa.array([f"K{i % 20}" for i in range(self.products)]),
            ),
        }
        spent = self.tick(first)[0]
        for start in range(0, self.rows, BATCH):
            batch = self._orders(np.arange(start, min(start + BATCH, self.rows)))
            self.orders.append(batch)
            spent += self.tick({"shop.public.orders": batch})[0]
        return self.rows + self.customers + self.products, spent

    def change(self, count: int) -> tuple[float, float]:
        """A tick of `count` updates of random orders."""
        ids = self.random.choice(self.rows, size=count, replace=False)
        batch = self._orders(ids)
        self.orders.append(batch)
        return self.tick({"shop.public.orders": batch})

    def _orders(self, ids: np.ndarray) -> pa.Table:
        count = len(ids)
        cents = self.random.integers(0, 10_000, count)
        return _upserts(
            id=ids,
            customer_id=self.random.integers(0, self.customers, count),
            product_id=self.random.integers(0, self.products, count),
            amount=pa.array([Decimal(int(c)).scaleb(-2) for c in cents], pa.decimal128(10, 2)),
        )

    def check(self, sql: str) -> None:
        """The first view equals its recompute."""
        database = duckdb.connect()
        database.execute("CREATE SCHEMA shop")
        every = pa.concat_tables(self.orders).append_column(
            "arrived", pa.array(np.arange(sum(t.num_rows for t in self.orders)))
        )
        database.register("every", every)
        database.execute(
            "CREATE TABLE shop.orders AS SELECT * FROM every"
            " QUALIFY row_number() OVER (PARTITION BY id ORDER BY arrived DESC) = 1"
        )
        database.execute(
            "CREATE TABLE shop.customers AS SELECT range AS id, 'C' || (range % 50) AS country"
            f" FROM range({self.customers})"
        )
        database.execute(
            "CREATE TABLE shop.products AS SELECT range AS id, 'K' || (range % 20) AS category"
            f" FROM range({self.products})"
        )
        expected = sorted(database.execute(sql).fetchall())
        if sorted(self.shown[0].values()) != expected:
            raise SystemExit("the view does not equal its recompute")
        database.close()


def _upserts(**columns: Any) -> pa.Table:
    made = pa.table(columns)
    keys = [b'{"id":%d}' % number for number in made.column("id").to_pylist()]
    return made.append_column(KEY, pa.array(keys, pa.binary())).append_column(
        DELETED, pa.array(np.zeros(made.num_rows, bool))
    )


def measure(views: list[str], rows: int, changes: int, ticks: int) -> tuple[float, float, float]:
    """Rows a second of the first fill; CPU and clock seconds of a tick."""
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(views, rows, Path(directory))
        read, spent = bench.fill()
        for _ in range(WARM):
            bench.change(changes)
        taken = [bench.change(changes) for _ in range(ticks)]
        bench.check(views[0])
        cpu, clock = zip(*taken, strict=True)
        return read / spent, statistics.median(cpu), statistics.median(clock)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="100000,5000000")
    parser.add_argument("--fill", type=int, default=1_000_000, help="orders of the first fill")
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=25)
    options = parser.parse_args()
    sizes = [int(size) for size in options.rows.split(",")]
    changes, ticks = options.changes, options.ticks
    print(f"{changes} changed orders a tick; operators and their state, without Spark and log")
    lines: list[tuple[str, str, str, bool | None]] = []  # None: the goal is of something else
    rate, _, _ = measure([ONE_JOIN], options.fill, changes, 3)
    lines.append(
        (f"first fill, {options.fill:,} x {options.fill // 10:,} join with GROUP BY",
         f"{rate:,.0f} rows/s of CPU", "≥ 100,000 rows/s", rate >= 100_000)
    )  # fmt: skip
    costs: dict[int, tuple[float, float]] = {}
    for rows in sizes:
        _, cpu, clock = measure([TWO_JOINS], rows, changes, ticks)
        costs[rows] = cpu, clock
        lines.append(
            (f"two joins, GROUP BY, {rows:,} orders: a tick",
             f"{clock * 1000:.0f} ms, {cpu * 1000:.0f} ms CPU", "≤ 200 ms, ≤ 300 ms CPU",
             clock <= 0.2 and cpu <= 0.3)
        )  # fmt: skip
    small, large = costs[sizes[0]], costs[sizes[-1]]
    ratio, slower = large[0] / small[0], large[1] / small[1]
    lines.append(
        (f"{sizes[-1]:,} against {sizes[0]:,} orders (operators alone)",
         f"{ratio:.2f}x CPU, {slower:.2f}x time", "≤ 1.2x of a whole tick: views_live", None)
    )  # fmt: skip
    _, cpu, _ = measure(MANY, sizes[0], changes, ticks)
    lines.append(
        ("ten views against the two-join one (operators alone)", f"{cpu / small[0]:.2f}x CPU",
         "≤ 1.5x of a whole tick: views_live", None)
    )  # fmt: skip
    for what, found, goal, good in lines:
        print(
            f"{'·' if good is None else '✓' if good else '✗'} {what:<56}{found:>26}   goal {goal}"
        )


if __name__ == "__main__":
    main()
