"""A first start that is killed loses nothing, and `ready` means that views answer."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

TAILRACE = str(Path(sys.executable).with_name("tailrace"))
PROJECT = """
import tailrace as tr
from tailrace import sinks, sources

shop = sources.SQLite("shop", "shop.db", tables=["items"], history={"items": "forever"})

@tr.stream(shop.table("items").inserts(), key="id", to=sinks.SQLite("copy.db", table="bought"))
def bought(items):
    return items.selectExpr("CAST(id AS INT) AS id", "n")

totals = tr.view("totals", "SELECT n % 10 AS d, count(*) AS c FROM shop.items GROUP BY n % 10", key="d")
"""


class Shop:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "pipelines").mkdir(parents=True)
        (home / "pipelines" / "main.py").write_text(PROJECT)
        (home / "tailrace.toml").write_text(
            '[project]\nname = "p"\n[log]\nlisten = "127.0.0.1:0"\n'
            '[console]\nlisten = "127.0.0.1:0"\n'
        )
        with closing(sqlite3.connect(home / "shop.db")) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER)")
        self.rows = 0

    def insert(self, count: int) -> None:
        with closing(sqlite3.connect(self.home / "shop.db", timeout=60)) as connection:
            values = [(n,) for n in range(count)]
            connection.executemany("INSERT INTO items (n) VALUES (?)", values)
            connection.commit()
        self.rows += count

    @contextmanager
    def up(self, until: str) -> Iterator[subprocess.Popen[str]]:
        """The project, once it has printed a line that begins with `until`."""
        with subprocess.Popen(
            [TAILRACE, "up", str(self.home), "--quiet"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert any(line.startswith(until) for line in process.stdout)
            try:
                yield process
            finally:
                process.terminate()
                process.wait(60)

    def wait_for_copy(self) -> None:
        """Until what is inserted is no longer part of the first copy."""
        report = self.home / ".tailrace" / "run" / "source-shop.json"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            found = json.loads(report.read_bytes()) if report.exists() else {}
            if found.get("copied") and not found.get("copying"):
                return
            time.sleep(0.05)
        raise AssertionError("the first copy did not end")

    def bought(self) -> list[int]:
        try:
            with closing(sqlite3.connect(self.home / "copy.db")) as connection:
                return [n for (n,) in connection.execute("SELECT id FROM bought ORDER BY id")]
        except sqlite3.OperationalError:
            return []

    def sql(self, query: str) -> str:
        command = [TAILRACE, "sql", query, "--json", "--log", str(self.home)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_what_comes_while_spark_starts_for_the_first_time_reaches_the_stream(
    tmp_path: Path,
) -> None:
    shop = Shop(tmp_path / "p")
    shop.insert(100)  # of the first copy: no inserts
    with shop.up("console") as first:
        shop.wait_for_copy()  # Spark is starting
        shop.insert(500)
        shop.insert(500)
        os.killpg(first.pid, signal.SIGKILL)
    shop.insert(700)
    with shop.up("ready"):
        assert f'"c":{shop.rows}' in shop.sql("SELECT sum(c)::BIGINT AS c FROM totals")
        shop.insert(50)
        deadline = time.monotonic() + 120
        while len(shop.bought()) < 1750 and time.monotonic() < deadline:
            time.sleep(0.2)
    assert shop.bought()[-1750:] == list(range(101, 1851))
    more = "-- key: n\nSELECT n, count(*) AS c FROM shop.items GROUP BY n\n"
    (shop.home / "pipelines" / "more.sql").write_text(more)
    with shop.up("ready"):
        assert f'"c":{shop.rows}' in shop.sql("SELECT sum(c)::BIGINT AS c FROM more")
