"""A log that goes away at any commit, inside large transactions, copies and TRUNCATE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from servers.capture import Running
from tailrace.sources import Postgres
from tailrace.sources.postgres.settings import CaptureSettings

SETTINGS = CaptureSettings(
    spill_rows=40, part_rows=80, chunk_rows=60, idle_cut_seconds=0.05, confirm_delay=0.0
)


@pytest.mark.parametrize("succeed", [0, 1, 2, 3])
def test_every_commit_may_be_the_last(
    database: Any, shared: Any, tmp_path: Path, succeed: int
) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text)",
        "CREATE TABLE other (id int PRIMARY KEY, x text)",
        "INSERT INTO orders SELECT i, 'old' FROM generate_series(1, 150) i",
    )

    def start(fail_after: int | None) -> Running:
        database.wait_for_slot()
        source = Postgres("shop", database.dsn, tables=["orders", "other"])
        return Running(source, shared, tmp_path, SETTINGS, fail_after)

    with start(None) as running:
        running.copied()
    work = [
        "BEGIN; INSERT INTO orders SELECT i, 'big' FROM generate_series(1000, 1300) i; "
        "UPDATE orders SET customer = 'u' WHERE id % 3 = 0; "
        "INSERT INTO other SELECT i, 'x' FROM generate_series(1, 120) i; COMMIT",
        "BEGIN; DELETE FROM orders WHERE id < 50; TRUNCATE other; "
        "INSERT INTO other SELECT i, 'y' FROM generate_series(50, 200) i; "
        "INSERT INTO orders SELECT i, 'late' FROM generate_series(2000, 2100) i; COMMIT",
        "UPDATE orders SET id = id + 10000 WHERE id % 2 = 0",
        "SELECT pg_logical_emit_message(true, 'tailrace.snapshot', '{\"table\": \"orders\"}')",
        "TRUNCATE orders, other",
        "INSERT INTO orders SELECT i, 'end' FROM generate_series(1, 30) i",
    ]
    for number, statement in enumerate(work):
        database.run(statement)
        running = start(succeed if number % 2 == 0 else (succeed + number) % 4)
        try:
            running.until(lambda: False, 1.5)
        except (ConnectionError, AssertionError):
            pass
        finally:
            running.stop()
    with start(None) as running:
        running.reach(database.position())
        running.copied()
    for table, column in (("orders", "customer"), ("other", "x")):
        written = {r["id"]: r[column] for r in running.written.table(f"public.{table}")}
        assert written == dict(database.rows(f"SELECT id, {column} FROM {table}"))
    running.written.check()
