"""Columns of every kind of Postgres type in the views of a running project."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailrace.errors import TailraceError
from tailrace.node.processes import end_with_parent
from tailrace.serving.reader import Views
from tailrace.testing.postgres import PostgresServer

pytestmark = [pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(600)]

PROGRAM = str(Path(sys.executable).with_name("tailrace"))
PIPELINE = """
import tailrace as tr
from tailrace import sources

db = sources.Postgres("db", dsn=tr.env("TYPES_DSN"), tables=["vals"])
everything = tr.view("everything", "SELECT * FROM db.vals", key="id")
moods = tr.view("moods", "SELECT mood, count(*) AS n, min(d) AS low, max(xs) AS high FROM db.vals GROUP BY mood")
same = tr.view("same", "SELECT a.id, b.id AS other FROM db.vals a JOIN db.vals b ON a.u = b.u AND a.c = b.c",
               key=["id", "other"])
inside = tr.view("inside", '''
    SELECT id, from_json(j, 'price DECIMAL(20,3)').price AS price, CAST(t AS TIME) AS t, hex(unbase64(b)) AS b, c.b AS word,
           valid_to > TIMESTAMP '9999-01-01' AS open FROM db.vals''', key="id")
"""
SETTINGS = """[project]
name = "types"
[log]
listen = "127.0.0.1:0"
[console]
listen = "127.0.0.1:0"
[spark]
master = "local[1]"
shards = 2
"""
COLUMNS = {
    "n": "numeric", "p": "numeric(12,3)", "m": "money", "d": "date", "valid_to": "timestamptz",
    "t": "time", "i": "interval", "b": "bytea", "j": "jsonb", "xs": "int[]", "u": "uuid",
    "mood": "mood", "c": "pair", "r": "int4range", "h": "hstore", "f": "double precision",
}  # fmt: skip
UUID = "00000000-0000-0000-0000-000000000001"
GOOD: tuple[str, ...] = (
    "12345678901.5", "-2.125", "92233720368547758.07", "2026-01-02", "infinity", "12:34:56.5",
    "1 mon -2 days", r"\xdead", '{"price": 12345678901234567.890, "a": [1.50, null]}', "{3}", UUID,
    "sad", "(1,x)", "[1,5)", "k=>v", "NaN",
)  # fmt: skip
SHOWN = {
    "n": "12345678901.500000000000000000", "p": "-2.125", "m": "92233720368547758.07",
    "d": "2026-01-02", "valid_to": "9999-12-31T23:59:59.999999Z", "t": "12:34:56.5",
    "i": "P1M-2D", "b": "3q0=", "j": '{"a":[1.50,null],"price":12345678901234567.890}', "xs": [3],
    "u": UUID, "mood": "sad", "c": {"a": 1, "b": "x"}, "r": "[1,5)", "h": '"k"=>"v"', "f": "NaN",
}  # fmt: skip


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    with PostgresServer(start_with=end_with_parent(signal.SIGINT)) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION hstore")
            connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
            connection.execute("CREATE TYPE pair AS (a int, b text)")
            columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            connection.execute(f"CREATE TABLE vals (id int PRIMARY KEY, {columns})")
        yield server


def write(connection: psycopg.Connection[Any], number: int, **other: str | None) -> None:
    values = {**dict(zip(COLUMNS, GOOD, strict=True)), **other}
    holders = ", ".join(f"%s::{kind}" for kind in COLUMNS.values())
    connection.execute(
        f"INSERT INTO vals VALUES (%s, {holders})", [number, *(values[name] for name in COLUMNS)]
    )


def test_views_show_every_type_and_put_aside_what_none_can_hold(
    database: PostgresServer, tmp_path: Path
) -> None:
    (tmp_path / "tailrace.toml").write_text(SETTINGS)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "main.py").write_text(PIPELINE)
    environment = {**os.environ, "TYPES_DSN": database.dsn()}
    with psycopg.connect(database.dsn(), autocommit=True) as connection:
        write(connection, 1)
        write(connection, 2, d="-infinity", xs="{1,2,NULL}")
        connection.execute("INSERT INTO vals (id) VALUES (3)")
        with (tmp_path / "up.txt").open("wb") as output:
            process = subprocess.Popen(
                [PROGRAM, "up", str(tmp_path)], stdout=output, stderr=output, env=environment
            )
        try:
            rows = until(tmp_path, "everything", [1, 2, 3])
            assert rows[1] == {"id": 1, **SHOWN}
            assert rows[2] == {"id": 2, **SHOWN, "d": "0001-01-01", "xs": [1, 2, None]}
            assert rows[3] == {"id": 3, **dict.fromkeys(COLUMNS)}
            write(connection, 4, p="NaN", mood="ok")  # no DECIMAL is one
            write(connection, 5, mood="ok", xs="{}")
            rows = until(tmp_path, "everything", [1, 2, 3, 5])
            told = subprocess.run(
                [PROGRAM, "pipeline", "dead-letters", "everything", "--log", str(tmp_path)],
                capture_output=True, text=True, env=environment, check=True,
            )  # fmt: skip
            assert "column 'after.p': 'NaN' is no number of decimal128(12, 3)" in told.stdout
            connection.execute("UPDATE vals SET p = 0 WHERE id = 4")
            rows = until(tmp_path, "everything", [1, 2, 3, 4, 5])
            assert rows[4]["p"] == "0.000"
            with Views(tmp_path / ".tailrace" / "views") as views:
                moods = {row["mood"]: row for row in views.rows("moods").rows}
                same = {(row["id"], row["other"]) for row in views.rows("same").rows}
                (inside, *_) = sorted(views.rows("inside").rows, key=lambda row: row["id"])
            assert moods["sad"] == {"mood": "sad", "n": 2, "low": "0001-01-01", "high": [3]}
            assert (moods["ok"]["n"], moods["ok"]["high"], moods[None]["n"]) == (2, [3], 1)
            assert same == {(a, b) for a in (1, 2, 4, 5) for b in (1, 2, 4, 5)}
            assert inside == {
                "id": 1, "price": "12345678901234567.890", "t": "12:34:56.5", "b": "DEAD",
                "word": "x", "open": True,
            }  # fmt: skip
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def until(directory: Path, view: str, numbers: list[int]) -> dict[int, dict[str, Any]]:
    """The rows of a view, by number, once it has these."""
    deadline = time.monotonic() + 240
    found: dict[int, dict[str, Any]] = {}
    while time.monotonic() < deadline:
        with contextlib.suppress(TailraceError), Views(directory / ".tailrace" / "views") as views:
            found = {row["id"]: row for row in views.rows(view).rows}
            if sorted(found) == numbers:
                return found
        time.sleep(0.2)
    raise AssertionError(f"{sorted(found)}\n{(directory / 'up.txt').read_text()[-3000:]}")
