"""How fast copies are kept, against the plain driver writing the same rows.

    make bench-sinks        or: python -m benchmarks.sinks [--rows 200000] [--only postgres …]

Every sink gets the same Arrow batches of upserts (half of the keys new, half known) and
keeps its promises: guard and position in the same transaction. The plain driver writes
the same rows with the statement its documentation recommends and nothing else. Both run
in this process, one after the other, on the same server. CPU time is this process's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from tailrace.sinks import Delta, DuckDB, MySQL, Postgres, Redis, Search, SQLite
from tailrace.sinks.base import (
    AT,
    DELETED,
    OFFSET,
    PARTITION,
    VERSION,
    Batch,
    Resting,
    Shape,
    SinkPosition,
)
from tailrace.sinks.registry import Copy, Surroundings, make_sink

SHAPE = Shape(
    (
        ("id", "BIGINT"),
        ("country", "STRING"),
        ("orders", "INT"),
        ("value", "DECIMAL(12,2)"),
        ("changed_at", "TIMESTAMP"),
    ),
    ("id",),
)
WORDS = [
    "rain",
    "shoes",
    "red",
    "blue",
    "run",
    "walk",
    "sun",
    "hat",
    "city",
    "river",
    "stone",
    "glass",
    "paper",
    "light",
    "dark",
]


def batches(rows: int, size: int) -> list[Batch]:
    """Rows in batches; every second batch updates the keys of the one before."""
    made = []
    for number, start in enumerate(range(0, rows, size)):
        first = (number // 2) * size
        ids = range(first, first + size)
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "country": pa.array([f"C{i % 200}" for i in ids]),
                "orders": pa.array([i % 1000 + number for i in ids], pa.int32()),
                "value": pa.array([f"{i % 10_000}.50" for i in ids]).cast(pa.decimal128(12, 2)),
                "changed_at": pa.array(
                    [1_770_000_000_000_000 + i for i in ids], pa.timestamp("us", "UTC")
                ),
            }
        )
        made.append(_batch(SHAPE, table, start))
    return made


def documents(rows: int, size: int) -> tuple[Shape, list[Batch]]:
    shape = Shape((("id", "BIGINT"), ("body", "STRING")), ("id",))
    made = []
    for start in range(0, rows, size):
        ids = range(start, start + size)
        bodies = [" ".join(WORDS[(i * 7 + n * n) % len(WORDS)] for n in range(30)) for i in ids]
        table = pa.table({"id": pa.array(ids, pa.int64()), "body": pa.array(bodies)})
        made.append(_batch(shape, table, start))
    return shape, made


def _batch(shape: Shape, table: pa.Table, start: int) -> Batch:
    count = table.num_rows
    for name, values in (
        (DELETED, pa.array([False] * count)),
        (PARTITION, pa.array([0] * count, pa.int32())),
        (OFFSET, pa.array(range(start, start + count), pa.int64())),
        (VERSION, pa.array(range(start, start + count), pa.int64())),
        (AT, pa.array([0] * count, pa.int64())),
    ):
        table = table.append_column(name, values)
    return Batch(shape, table, SinkPosition("bench", 1, 1, {0: start + count}))


class NotInstalledError(Exception):
    """A server that this machine does not have (`make setup-servers`)."""


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds of wall and CPU time."""
    wall, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime
    return time.perf_counter() - wall, spent


def deliver(
    declaration: Any, directory: Path, shape: Shape, made: list[Batch]
) -> Callable[[], None]:
    def work() -> None:
        copy = Copy("bench", "bench", "bench", "view", (), declaration)
        sink = make_sink(copy, Surroundings(directory))
        sink.open(shape)
        for batch in made:
            sink.apply(batch)
        if isinstance(sink, Resting):
            sink.rest()
        sink.close()

    return work


def plain_rows(batch: Batch) -> list[tuple[Any, ...]]:
    table = batch.changes.select(list(SHAPE.names))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


UPSERT = (
    "INSERT INTO plain VALUES ({0}, {0}, {0}, {0}, {0}) ON CONFLICT (id) DO UPDATE SET "
    "country = excluded.country, orders = excluded.orders, value = excluded.value, "
    "changed_at = excluded.changed_at"
)


def bench_sqlite(directory: Path, made: list[Batch]) -> tuple[Any, Any]:
    import sqlite3

    def plain() -> None:
        connection = sqlite3.connect(directory / "plain.db")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE plain (id BIGINT PRIMARY KEY, country, orders, value, changed_at)"
        )
        for batch in made:
            rows = [(a, b, c, str(d), e.isoformat()) for a, b, c, d, e in plain_rows(batch)]
            connection.executemany(UPSERT.format("?"), rows)
            connection.commit()
        connection.close()

    sink = deliver(SQLite(directory / "sink.db", table="t"), directory, SHAPE, made)
    return timed(sink), timed(plain)


def bench_postgres(directory: Path, made: list[Batch]) -> tuple[Any, Any]:
    import psycopg

    from tailrace.testing.postgres import PostgresServer

    with contextlib.closing(PostgresServer(durable=True)) as server:

        def plain() -> None:
            with psycopg.connect(server.dsn()) as connection:
                connection.execute(
                    "CREATE TABLE plain (id bigint PRIMARY KEY, country text, orders int, "
                    "value numeric(12,2), changed_at timestamptz)"
                )
                with connection.cursor() as cursor:
                    for batch in made:
                        cursor.executemany(UPSERT.format("%s"), plain_rows(batch))
                        connection.commit()

        sink = deliver(Postgres(server.dsn(), table="t"), directory, SHAPE, made)
        return timed(sink), timed(plain)


def bench_mysql(directory: Path, made: list[Batch]) -> tuple[Any, Any]:
    import pymysql

    from servers.mariadb import MariaDBServer

    program = shutil.which("mariadbd") or shutil.which("mysqld", path="/usr/sbin:/usr/bin")
    if program is None:
        raise NotInstalledError("mariadb-server")
    server = MariaDBServer(directory, program)
    try:
        dsn = server.create_database("bench")

        def plain() -> None:
            connection = pymysql.connect(
                host="127.0.0.1", port=server.port, user="root", database="bench"
            )
            with connection, connection.cursor() as cursor:
                cursor.execute(
                    "CREATE TABLE plain (id BIGINT PRIMARY KEY, country TEXT, orders INT, "
                    "value DECIMAL(12,2), changed_at DATETIME(6))"
                )
                for batch in made:
                    cursor.executemany(
                        "INSERT INTO plain VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE "
                        "country = VALUES(country), orders = VALUES(orders), "
                        "value = VALUES(value), changed_at = VALUES(changed_at)",
                        plain_rows(batch),
                    )
                    connection.commit()

        sink = deliver(MySQL(dsn, table="t"), directory, SHAPE, made)
        return timed(sink), timed(plain)
    finally:
        server.stop()


def bench_duckdb(directory: Path, made: list[Batch]) -> tuple[Any, Any]:
    import duckdb

    def plain() -> None:
        with duckdb.connect(str(directory / "plain.duckdb")) as connection:
            connection.execute(
                "CREATE TABLE plain (id BIGINT PRIMARY KEY, country VARCHAR, orders INT, "
                "value DECIMAL(12,2), changed_at TIMESTAMPTZ)"
            )
            for batch in made:
                rows = batch.changes.select(list(SHAPE.names))
                connection.register("batch", rows)
                connection.execute("INSERT OR REPLACE INTO plain SELECT * FROM batch")
                connection.unregister("batch")

    sink = deliver(DuckDB(directory / "sink.duckdb", table="t"), directory, SHAPE, made)
    return timed(sink), timed(plain)


def bench_redis(directory: Path, made: list[Batch]) -> tuple[Any, Any]:
    import redis

    from servers.redis import RedisServer

    server = RedisServer(directory)
    client = redis.Redis.from_url(server.url)

    def plain() -> None:
        for batch in made:
            pipeline = client.pipeline(transaction=False)
            for a, b, c, d, e in plain_rows(batch):
                pipeline.hset(
                    f"plain:{a}",
                    mapping={"id": a, "country": b, "orders": c, "value": str(d),
                             "changed_at": e.isoformat()},
                )  # fmt: skip
            pipeline.execute()

    try:
        sink = deliver(Redis(server.url, prefix="t"), directory, SHAPE, made)
        return timed(sink), timed(plain)
    finally:
        client.close()
        server.stop()


def bench_delta(directory: Path, made: list[Batch]) -> tuple[Any, Any]:
    from deltalake import write_deltalake

    def plain() -> None:
        for batch in made:
            write_deltalake(
                directory / "plain", batch.changes.select(list(SHAPE.names)), mode="append"
            )

    sink = deliver(Delta(directory / "sink"), directory, SHAPE, made)
    return timed(sink), timed(plain)


def bench_search(directory: Path, rows: int) -> tuple[Any, Any]:
    import tantivy

    shape, made = documents(rows, 20_000)

    def plain() -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", stored=True, indexed=True)
        builder.add_text_field("body", stored=True)
        (directory / "plain").mkdir()
        index = tantivy.Index(builder.build(), path=str(directory / "plain"))
        writer = index.writer(64 << 20, 1)
        for batch in made:
            for row in batch.changes.select(["id", "body"]).to_pylist():
                writer.add_document(tantivy.Document(id=row["id"], body=row["body"]))
            writer.commit()
        writer.wait_merging_threads()

    sink = deliver(Search(directory / "sink", fields={"body": "text"}), directory, shape, made)
    return timed(sink), timed(plain)


def bench_views(directory: Path, rows: int) -> dict[str, float]:
    """Look-ups by key in Python, while nothing else runs."""
    from tailrace.serving.follower import Follower
    from tailrace.serving.reader import Views
    from tailrace.testing.changelogs import MemoryLog, TickWriter

    writer = TickWriter(MemoryLog())
    writer.log.chunk_records = 10_000
    writer.declare("v", ["id"], SHAPE.columns)
    count = min(rows, 100_000)
    writer.tick(
        {
            "v": [
                (
                    {"id": i},
                    {"id": i, "country": "NL", "orders": i, "value": "1.50", "changed_at": None},
                )
                for i in range(count)
            ]
        }
    )
    with Follower(directory / "views", writer.log, "shop") as follower:
        wall, _ = timed(lambda: follower.step(0) and None)
        with Views(directory / "views") as views:
            view = views["v"]
            asked = 200_000

            def look() -> None:
                for i in range(asked):
                    view.get(i % count)

            def look_in_one_tick() -> None:
                with views.snapshot() as snapshot:
                    for i in range(asked):
                        snapshot.get("v", i % count)

            each, _ = timed(look)
            together, _ = timed(look_in_one_tick)
    return {
        "applied_rows_per_s": count / wall,
        "lookups_per_s": asked / each,
        "lookups_in_one_snapshot_per_s": asked / together,
    }


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as name:
        yield Path(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3, help="take the best of so many")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = options.rows
    benches: dict[str, tuple[int, Callable[[Path], tuple[Any, Any]], float, int]] = {
        # rows, work, goal as a share of the plain driver, goal in rows a second
        "sqlite": (rows, lambda d: bench_sqlite(d, batches(rows, 20_000)), 0.7, 0),
        "postgres": (rows, lambda d: bench_postgres(d, batches(rows, 20_000)), 0.7, 0),
        "mysql": (rows, lambda d: bench_mysql(d, batches(rows, 20_000)), 0, 0),
        "duckdb": (rows, lambda d: bench_duckdb(d, batches(rows, 20_000)), 0.7, 0),
        "redis": (rows, lambda d: bench_redis(d, batches(rows, 2_000)), 0.7, 0),
        "delta": (rows, lambda d: bench_delta(d, batches(rows, 100_000)), 0, 200_000),
        "search": (min(rows, 100_000), lambda d: bench_search(d, min(rows, 100_000)), 0, 20_000),
    }
    print(f"{'':30} {'a second':>10} {'plain':>10} {'ratio':>6} {'µs CPU':>7} {'plain':>7}  goal")
    results: dict[str, Any] = {}
    for name in options.only or [*benches, "views"]:
        if name == "views":
            results[name] = _best_views(rows, options.repeat)
            continue
        count, work, share, least = benches[name]
        try:
            ours, plain = _best(work, options.repeat)
        except NotInstalledError as missing:
            print(f"{name:30} not measured: {missing} is not installed")
            continue
        ratio, rate = plain[0] / ours[0], count / ours[0]
        results[name] = {"rows_per_s": rate, "ratio": ratio}
        goal = f"≥ {share:g}×" if share else f"≥ {least:,}/s" if least else ""
        met = ratio >= share and rate >= least
        _line(
            f"{name}, {'documents' if name == 'search' else 'rows'}",
            rate,
            goal,
            met,
            f"{count / plain[0]:>10,.0f} {ratio:>6.2f} {ours[1] / count * 1e6:>7.1f} "
            f"{plain[1] / count * 1e6:>7.1f}",
        )
    if options.json:
        print(json.dumps(results))


def _best(work: Callable[[Path], tuple[Any, Any]], repeat: int) -> tuple[Any, Any]:
    """The shortest of several runs, of ours and of the plain driver's."""
    runs = []
    for _ in range(repeat):
        with scratch() as directory:
            runs.append(work(directory))
    return min(run[0] for run in runs), min(run[1] for run in runs)


def _best_views(rows: int, repeat: int) -> dict[str, float]:
    runs = []
    for _ in range(repeat):
        with scratch() as directory:
            runs.append(bench_views(directory, rows))
    best = {name: max(run[name] for run in runs) for name in runs[0]}
    rate = best["lookups_per_s"]
    _line("look-ups by key in Python", rate, "≥ 200,000/s", rate >= 200_000)
    _line("look-ups in one snapshot", best["lookups_in_one_snapshot_per_s"])
    _line("rows applied by the follower", best["applied_rows_per_s"])
    return best


def _line(name: str, rate: float, goal: str = "", met: bool = True, more: str = " " * 33) -> None:
    verdict = "" if not goal else f"{goal}  {'met' if met else 'MISSED'}"
    print(f"{name:30} {rate:>10,.0f} {more}  {verdict}", flush=True)


if __name__ == "__main__":
    main()
