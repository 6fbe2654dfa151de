"""Capture into our own broker over Kafka's protocol, also when it is killed."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import psycopg

from tailrace.sources.base import LogRecord
from tailrace.testing.source_contract import (
    check_cuts,
    check_events,
    check_tombstones,
    check_transactions_are_whole,
    rebuild,
)

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"
NOTES = "CREATE TABLE notes (a int, b text, body text, PRIMARY KEY (a, b))"


def records(address: str, topic: str) -> list[LogRecord]:
    from tailrace.client.fetcher import Fetcher

    with Fetcher(address) as fetcher:
        return [LogRecord(r.offset, r.key, r.value) for r in fetcher.read_all(topic)]


def last_cut(address: str) -> dict[str, Any]:
    from tailrace.client.errors import UnknownTopicError
    from tailrace.client.fetcher import Fetcher

    with Fetcher(address) as fetcher:
        try:
            last = fetcher.read_last("shop.transactions")
        except UnknownTopicError:
            return {"position": "", "copying": []}
    if last is None or last.value is None:
        return {"position": "", "copying": []}
    document: dict[str, Any] = orjson.loads(last.value)
    return document


class Process:
    def __init__(self, address: str, directory: Path, dsn: str, kind: str = "postgres") -> None:
        script = Path(__file__).parent / "capture_process.py"
        self.process = subprocess.Popen(
            [
                sys.executable,
                str(script),
                kind,
                address,
                str(directory),
                dsn,
                "orders",
                "notes",
            ],
            stderr=subprocess.PIPE,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def reach(self, address: str, position: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while True:
            cut = last_cut(address)
            done = cut["position"] >= position and not cut.get("copying", ["?"])
            if done and cut["status"] == "CUT":
                return
            if self.process.poll() is not None:
                raise AssertionError((self.process.communicate()[1] or b"").decode())
            assert time.monotonic() < deadline, f"at {cut}, not {position}"
            time.sleep(0.05)


def check(address: str, database: Any) -> None:
    topics = {t: records(address, t) for t in ("shop.public.orders", "shop.public.notes")}
    for found in topics.values():
        check_events(found)
        check_tombstones(found)
    transactions = records(address, "shop.transactions")
    check_cuts(
        transactions,
        {t: {0: r[-1].offset + 1} for t, r in topics.items() if r}
        | {t: {0: 1 << 60} for t in ("shop.schemas", "__tailrace_sources")},
    )
    check_transactions_are_whole(transactions, topics)
    orders = {
        orjson.dumps({"id": i}): {"id": i, "customer": c, "amount": str(a)}
        for i, c, a in database.rows("SELECT id, customer, amount FROM orders")
    }
    notes = {
        orjson.dumps({"a": a, "b": b}): {"a": a, "b": b, "body": body}
        for a, b, body in database.rows("SELECT a, b, body FROM notes")
    }
    assert rebuild(topics["shop.public.orders"]) == orders
    assert rebuild(topics["shop.public.notes"]) == notes


def churn(dsn: str, seed: int, stop: threading.Event) -> None:
    """Random transactions, some large, until told to stop."""
    choose = random.Random(seed)
    with psycopg.connect(dsn) as connection:
        while not stop.is_set():
            for _ in range(choose.choice([1, 1, 2, 5, 40])):
                i = choose.randrange(4000)
                statement = choose.choice(
                    [
                        f"INSERT INTO orders VALUES ({i}, 'c{i}', {i}) ON CONFLICT (id) "
                        f"DO UPDATE SET amount = orders.amount + 1",
                        f"UPDATE orders SET customer = 'u{i}' WHERE id = {i}",
                        f"DELETE FROM orders WHERE id = {i}",
                        f"INSERT INTO notes VALUES ({i % 50}, '{i}', 'text\t\\\\\"{i}') "
                        "ON CONFLICT DO NOTHING",
                        f"UPDATE notes SET b = 'm' || b WHERE a = {i % 50} AND b = '{i}'",
                        f"DELETE FROM notes WHERE a = {i % 50} AND b LIKE 'm%'",
                    ]
                )
                try:
                    connection.execute(statement.encode())
                except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                    connection.rollback()
            if choose.random() < 0.05:
                connection.rollback()
            else:
                connection.commit()
            time.sleep(0.001)


def test_a_killed_capture_loses_and_repeats_nothing(
    database: Any, tailrace_broker: str, tmp_path: Path
) -> None:
    database.run(
        ORDERS, NOTES,
        "INSERT INTO orders SELECT i, 'old', i FROM generate_series(1, 10000) i",
        "INSERT INTO notes SELECT i % 50, 'n' || i, 'old' FROM generate_series(1, 5000) i",
        "ANALYZE orders, notes",  # how many there are is known from here on
    )  # fmt: skip
    stop = threading.Event()
    writers = [
        threading.Thread(target=churn, args=(database.dsn, seed, stop), daemon=True)
        for seed in range(2)
    ]
    for writer in writers:
        writer.start()
    choose = random.Random(7)
    try:
        for _ in range(6):
            process = Process(tailrace_broker, tmp_path, database.dsn)
            time.sleep(0.4 + choose.random())
            process.kill()
    finally:
        stop.set()
        for writer in writers:
            writer.join(20)
    process = Process(tailrace_broker, tmp_path, database.dsn)
    try:
        process.reach(tailrace_broker, database.position())
    finally:
        process.kill()
    check(tailrace_broker, database)
    states = [
        orjson.loads(r.value or b"{}") for r in records(tailrace_broker, "__tailrace_sources")
    ]
    # The larger table was read in ranges, and no run began again with what was written.
    assert max(len(state.get("ranges", ())) for state in states) > 3
    rows = [state["rows"] for state in states if state.get("state") in ("copying", "done")]
    assert max(rows) <= 12_000


def test_a_killed_capture_goes_on_inside_a_large_transaction(
    database: Any, tailrace_broker: str, tmp_path: Path
) -> None:
    database.run(ORDERS, NOTES)
    process = Process(tailrace_broker, tmp_path, database.dsn)
    process.reach(tailrace_broker, database.position())
    database.run("INSERT INTO orders SELECT i, 'big', 1 FROM generate_series(1, 40000) i")
    deadline = time.monotonic() + 60
    while last_cut(tailrace_broker)["status"] != "PART" and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    assert last_cut(tailrace_broker)["status"] == "PART"
    process = Process(tailrace_broker, tmp_path, database.dsn)
    try:
        process.reach(tailrace_broker, database.position())
    finally:
        process.kill()
    check(tailrace_broker, database)


def test_rows_of_many_megabytes_reach_the_log(
    database: Any, tailrace_broker: str, tmp_path: Path
) -> None:
    database.run(ORDERS, NOTES, "INSERT INTO orders VALUES (1, repeat('x', 3000000), 1)")
    process = Process(tailrace_broker, tmp_path, database.dsn)
    try:
        process.reach(tailrace_broker, database.position())
        database.run("INSERT INTO orders VALUES (2, repeat('y', 20000000), 2)")
        process.reach(tailrace_broker, database.position())
    finally:
        process.kill()
    check(tailrace_broker, database)


def test_a_killed_sqlite_capture_loses_and_repeats_nothing(
    tailrace_broker: str, tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    file = sqlite3.connect(path, isolation_level=None, timeout=30)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = OFF")
    file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT)")
    file.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
    file.executemany("INSERT INTO orders VALUES (?, 'old')", [(i,) for i in range(3000)])
    choose = random.Random(3)
    for _ in range(3):
        process = Process(tailrace_broker, tmp_path, str(path), "sqlite")
        while last_cut(tailrace_broker)["position"] == "":
            time.sleep(0.05)  # its triggers are there with its first cut
        until = time.monotonic() + 0.5 + choose.random()
        while time.monotonic() < until:
            i = choose.randrange(4000)
            file.execute("BEGIN IMMEDIATE")
            file.execute("INSERT OR REPLACE INTO orders VALUES (?, ?)", [i, str(until)])
            file.execute("DELETE FROM orders WHERE id = ?", [choose.randrange(4000)])
            file.execute("INSERT INTO notes (body) VALUES (?)", [str(i)])
            file.execute("COMMIT")
        process.kill()
    process = Process(tailrace_broker, tmp_path, str(path), "sqlite")
    try:
        (newest,) = file.execute(
            "SELECT seq FROM sqlite_sequence WHERE name LIKE '_tailrace%'"
        ).fetchone()
        process.reach(tailrace_broker, f"sqlite:shop:{newest:016X}")
    finally:
        process.kill()
    for table in ("orders", "notes"):
        found = records(tailrace_broker, f"shop.main.{table}")
        check_events(found)
        check_tombstones(found)
        there = dict(file.execute(f"SELECT * FROM {table}").fetchall())
        assert {r["id"]: r.get("customer", r.get("body")) for r in rebuild(found).values()} == there
    file.close()
