"""Capture of MySQL and MariaDB into our own broker, killed at any moment."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pymysql
import pytest

from servers.binlog import MySQLCase
from tailrace.client.errors import UnknownTopicError
from tailrace.client.fetcher import Fetcher
from tailrace.sources.base import LogRecord
from tailrace.testing.source_contract import (
    check_cuts,
    check_events,
    check_tombstones,
    check_transactions_are_whole,
    rebuild,
)

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]
Make = Callable[..., MySQLCase]
ORDERS = "CREATE TABLE orders (id INT PRIMARY KEY, customer TEXT, amount DECIMAL(10,2))"
NOTES = "CREATE TABLE notes (a INT, b VARCHAR(60), body TEXT, PRIMARY KEY (a, b))"


def records(address: str, topic: str) -> list[LogRecord]:
    with Fetcher(address) as fetcher:
        return [LogRecord(r.offset, r.key, r.value) for r in fetcher.read_all(topic)]


def last_cut(address: str) -> dict[str, Any]:
    with Fetcher(address) as fetcher:
        try:
            last = fetcher.read_last("shop.transactions")
        except UnknownTopicError:
            last = None
    if last is None or last.value is None:
        return {"status": "", "position": "", "copying": ["?"]}
    document: dict[str, Any] = orjson.loads(last.value)
    return document


def start(address: str, directory: Path, dsn: str) -> subprocess.Popen[bytes]:
    script = Path(__file__).parent / "capture_process.py"
    command = [sys.executable, str(script), "mysql", address, str(directory), dsn, "orders", "notes"]  # fmt: skip
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def reach(process: subprocess.Popen[bytes], address: str, position: str) -> None:
    deadline = time.monotonic() + 240
    while True:
        cut = last_cut(address)
        if cut["status"] == "CUT" and cut["position"] >= position and not cut["copying"]:
            return
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1].decode())
        assert time.monotonic() < deadline, f"at {cut}, not {position}"
        time.sleep(0.05)


def check(address: str, case: MySQLCase) -> None:
    names = [f"shop.{case.schema}.orders", f"shop.{case.schema}.notes"]
    topics = {name: records(address, name) for name in names}
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
        for i, c, a in case.rows("SELECT id, customer, amount FROM orders")
    }
    notes = {
        orjson.dumps({"a": a, "b": b}): {"a": a, "b": b, "body": body}
        for a, b, body in case.rows("SELECT a, b, body FROM notes")
    }
    assert rebuild(topics[names[0]]) == orders
    assert rebuild(topics[names[1]]) == notes


def churn(case: MySQLCase, seed: int, stop: threading.Event) -> None:
    """Random transactions, some large, until told to stop."""
    choose = random.Random(seed)
    with case.beside() as mine:
        while not stop.is_set():
            try:
                mine.execute("BEGIN")
                for _ in range(choose.choice([1, 1, 2, 5, 40])):
                    i = choose.randrange(4000)
                    mine.execute(
                        choose.choice(
                            [
                                f"REPLACE INTO orders VALUES ({i}, 'c{i}', {i})",
                                f"UPDATE orders SET customer = 'u{i}' WHERE id = {i}",
                                f"UPDATE orders SET amount = amount + 1 WHERE id % 50 = {i % 50}",
                                f"DELETE FROM orders WHERE id = {i}",
                                f"INSERT IGNORE INTO notes VALUES ({i % 50}, '{i}', 'text')",
                                f"UPDATE IGNORE notes SET b = CONCAT('m', b) WHERE a = {i % 50} AND b = '{i}'",
                                f"DELETE FROM notes WHERE a = {i % 50} AND b LIKE 'm%'",
                            ]
                        )
                    )
                mine.execute("ROLLBACK" if choose.random() < 0.05 else "COMMIT")
            except pymysql.OperationalError:
                mine.execute("ROLLBACK")  # a deadlock
            time.sleep(0.002)


def fill(case: MySQLCase, first: int, last: int) -> str:
    rows = ", ".join(f"({i}, 'old', {i})" for i in range(first, last + 1))
    return f"INSERT INTO orders VALUES {rows}"


def test_a_killed_capture_loses_and_repeats_nothing(
    binlog_case: Make, tailrace_broker: str, tmp_path: Path
) -> None:
    case = binlog_case("orders", "notes")
    case.execute(ORDERS, NOTES, fill(case, 1, 8000))
    stop = threading.Event()
    writers = [threading.Thread(target=churn, args=(case, seed, stop)) for seed in range(2)]
    for writer in writers:
        writer.start()
    choose = random.Random(7)
    try:
        for _ in range(8):
            process = start(tailrace_broker, tmp_path, case.address)
            time.sleep(1.0 + 2 * choose.random())
            kill(process)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    process = start(tailrace_broker, tmp_path, case.address)
    try:
        reach(process, tailrace_broker, case.position())
    finally:
        kill(process)
    check(tailrace_broker, case)


def test_a_killed_capture_goes_on_inside_a_large_transaction(
    binlog_case: Make, tailrace_broker: str, tmp_path: Path
) -> None:
    case = binlog_case("orders", "notes")
    case.execute(ORDERS, NOTES)
    process = start(tailrace_broker, tmp_path, case.address)
    reach(process, tailrace_broker, case.position())
    case.execute("BEGIN", *(fill(case, n, n + 4999) for n in range(1, 40_000, 5000)), "COMMIT")
    for _ in range(3):
        deadline = time.monotonic() + 120
        while last_cut(tailrace_broker)["status"] != "PART" and time.monotonic() < deadline:
            if last_cut(tailrace_broker)["position"] >= case.position():
                break
            time.sleep(0.01)
        kill(process)
        process = start(tailrace_broker, tmp_path, case.address)
        time.sleep(0.5)
    try:
        reach(process, tailrace_broker, case.position())
    finally:
        kill(process)
    parts = [r for r in records(tailrace_broker, "shop.transactions") if b'"PART"' in (r.value or b"")]  # fmt: skip
    assert parts
    check(tailrace_broker, case)
