"""A whole project under kill -9: every part dies once while the database goes on changing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner

from tailrace.cli.view import view
from tailrace.node.processes import end_with_parent
from tailrace.project import verify
from tailrace.serving.reader import Views
from tailrace.testing.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
import tailrace as tr
from tailrace import sinks, sources

shop = sources.Postgres("shop", dsn=tr.env("SHOP_DSN"), tables=["customers", "orders"])
open_orders = tr.view(
    "open_orders",
    '''SELECT c.country, count(*) AS orders, sum(o.amount) AS value
       FROM shop.orders o JOIN shop.customers c ON c.id = o.customer_id
       WHERE o.status = 'open' GROUP BY c.country''',
    key="country",
    to=sinks.SQLite("copies.db", table="open_orders"),
)
"""
TRUTH = """SELECT c.country, count(*), sum(o.amount)::text FROM orders o
           JOIN customers c ON c.id = o.customer_id WHERE o.status = 'open' GROUP BY 1 ORDER BY 1"""
PARTS = ("source-shop", "pipelines-killed", "views-killed", "sink-open_orders.sqlite", "broker-log")


def write(dsn: str, stop: threading.Event, failures: list[BaseException]) -> None:
    """Insert, update and delete until told to stop."""
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            number = 0
            while not stop.is_set():
                number += 1
                with connection.transaction():
                    connection.execute(
                        "INSERT INTO orders (customer_id, amount, status) VALUES (%s, %s, 'open')",
                        (number % 5 + 1, number % 90 + 0.25),
                    )
                    if number % 3 == 0:
                        connection.execute("UPDATE orders SET status = 'paid' WHERE id = %s", (number - 2,))  # fmt: skip
                    if number % 7 == 0:
                        connection.execute("DELETE FROM orders WHERE id = %s", (number - 4,))
                    if number % 11 == 0:
                        connection.execute("UPDATE customers SET country = CASE country WHEN 'NL' THEN 'BE' ELSE 'NL' END WHERE id = %s", (number % 5 + 1,))  # fmt: skip
                time.sleep(0.01)
    except BaseException as error:
        failures.append(error)


def reports(directory: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for path in (directory / ".tailrace" / "run").glob("*.json"):
        try:
            found[path.stem] = json.loads(path.read_text())
        except (OSError, json.JSONDecodeError):
            continue
    return found


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_views_and_copies_equal_the_database_after_every_part_was_killed(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tailrace.toml").write_text(
        '[project]\nname = "killed"\n[log]\nlisten = "127.0.0.1:0"\n'
        '[console]\nlisten = "127.0.0.1:0"\n[spark]\nmaster = "local[1]"\nshards = 2\n'
    )
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "main.py").write_text(PIPELINE)
    program = str(Path(sys.executable).with_name("tailrace"))
    with PostgresServer(start_with=end_with_parent(signal.SIGINT)) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE customers (id bigserial PRIMARY KEY, country text);"
                "CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id bigint,"
                " amount numeric(10,2), status text);"
                "INSERT INTO customers (country) SELECT 'NL' FROM generate_series(1, 5)"
            )
        environment = dict(os.environ, SHOP_DSN=server.dsn())
        output = (tmp_path / "up.txt").open("wb")
        process = subprocess.Popen(
            [program, "up", str(tmp_path)], env=environment, stdout=output, stderr=output
        )
        stop, failures = threading.Event(), []
        writer = threading.Thread(target=write, args=(server.dsn(), stop, failures), daemon=True)
        try:
            wait_until(lambda: b"\nready" in (tmp_path / "up.txt").read_bytes(), process, tmp_path)
            writer.start()
            for part in PARTS:
                time.sleep(1.5)
                os.kill(reports(tmp_path)[part]["pid"], signal.SIGKILL)
            time.sleep(2)
            stop.set()
            writer.join(20)
            assert not failures
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                truth = [(c, n, v) for c, n, v in connection.execute(TRUTH).fetchall()]
                lsn = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
            assert lsn is not None
            position = f"pg:shop:{int(lsn[0]):016X}"
            wait_until(lambda: reached(tmp_path, position), process, tmp_path)
            with Views(tmp_path / ".tailrace" / "views") as views:
                rows = views.rows("open_orders").rows
            assert [(r["country"], r["orders"], r["value"]) for r in rows] == truth
            wait_until(lambda: copied(tmp_path) == truth, process, tmp_path)
            # The Spark that runs, instead of one of the question's own.
            monkeypatch.setattr(verify, "_spark", lambda _: nullcontext((spark, tmp_path)))
            monkeypatch.setenv("SHOP_DSN", server.dsn())
            judged = CliRunner().invoke(view, ["verify", "--project", str(tmp_path)])
            assert judged.exit_code == 0, judged.output
            assert "open_orders: equal to Spark's answer at tick" in judged.output
        finally:
            stop.set()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            finally:
                output.close()


def reached(directory: Path, position: str) -> bool:
    from tailrace.errors import TailraceError

    try:
        with Views(directory / ".tailrace" / "views") as views:
            views.wait(position, 0.5)
    except TailraceError:
        return False
    return True


def copied(directory: Path) -> list[tuple[str, int, str]]:
    database = sqlite3.connect(directory / "copies.db")
    try:
        found = database.execute("SELECT country, orders, value FROM open_orders ORDER BY 1")
        return [(country, orders, f"{float(value):.2f}") for country, orders, value in found]
    except sqlite3.OperationalError:
        return []
    finally:
        database.close()


def wait_until(true: Any, process: subprocess.Popen[bytes], directory: Path) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert process.poll() is None, (directory / "up.txt").read_text()[-3000:]
        if time.monotonic() > deadline:
            raise AssertionError(
                f"{reports(directory)}\n{(directory / 'up.txt').read_text()[-4000:]}"
            )
        time.sleep(0.2)
