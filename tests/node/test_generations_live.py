"""Generations of a view in a running project, on Spark, by the commands a person types."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import TailraceError
from tailrace.pipelines.reading.reader import LogReader
from tailrace.serving.reader import Views

PIPELINE = """
import tailrace as tr
from tailrace import sources

shop = sources.SQLite("shop", path="shop.db", tables=["orders"])
totals = tr.view("totals", "SELECT status, count(*) AS n, sum(amount) AS value FROM shop.orders GROUP BY status")
large = tr.view("large", "SELECT id, amount FROM shop.orders WHERE amount > {least}")
"""
PROGRAM = str(Path(sys.executable).with_name("tailrace"))
ROWS, CUTS = 250, 20  # rows of a transaction, transactions


@dataclass(slots=True)
class Live:
    """A project that runs."""

    directory: Path
    process: subprocess.Popen[bytes]

    def write(self, sql: str) -> None:
        with sqlite3.connect(self.directory / "shop.db", timeout=20) as database:
            database.execute(sql)
        database.close()

    def insert(self, numbers: range) -> None:
        with sqlite3.connect(self.directory / "shop.db", timeout=20) as database:
            database.executemany(
                "INSERT INTO orders VALUES (?, ?, ?)",
                [(n, ("open", "paid", "sent")[n % 3], n % 100) for n in numbers],
            )
        database.close()

    def names(self) -> list[str]:
        try:
            with Views(self.directory / ".tailrace" / "views") as views:
                return list(views.names)
        except TailraceError:
            return []

    def truth(self, least: int = 50) -> dict[str, list[tuple[Any, ...]]]:
        with sqlite3.connect(self.directory / "shop.db", timeout=20) as database:
            found = {
                "totals": database.execute(
                    "SELECT status, count(*), sum(amount) FROM orders GROUP BY status ORDER BY 1"
                ).fetchall(),
                "large": database.execute(
                    "SELECT id, amount FROM orders WHERE amount > ? ORDER BY 1", (least,)
                ).fetchall(),
            }
        database.close()
        return found

    def shown(self, name: str) -> list[tuple[Any, ...]]:
        try:
            with Views(self.directory / ".tailrace" / "views") as views:
                rows = views.sql(f'SELECT * FROM "{name}" ORDER BY 1').rows
        except TailraceError:
            return []
        return [tuple(row.values()) for row in rows]

    def equal(self, least: int = 50) -> bool:
        truth = self.truth(least)
        return all(self.shown(name) == rows for name, rows in truth.items())

    def call(self, *arguments: str, status: int = 0) -> str:
        run = subprocess.run(
            [PROGRAM, "view", *arguments, "--log", str(self.directory)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert run.returncode == status, (arguments, run.stdout, run.stderr)
        return run.stdout

    def generations(self, name: str) -> list[tuple[int, bool, bool]]:
        rows = json.loads(self.call("generations", name, "--json"))
        return [(row["generation"], row["shown"], row["kept up to date"]) for row in rows]

    def report(self) -> dict[str, Any]:
        path = self.directory / ".tailrace" / "run" / "pipelines-live.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def cuts(self) -> int:
        """Where the log of the source's cuts ends."""
        path = self.directory / ".tailrace" / "run" / "broker-log.json"
        with LogReader(json.loads(path.read_text())["address"]) as reader:
            return sum(end for _, end in reader.bounds("shop.transactions").values())

    def until(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 150
        while not true():
            words = self.directory / "up.txt"
            assert self.process.poll() is None, words.read_text()[-3000:]
            if time.monotonic() > deadline:
                raise AssertionError(f"not {what}: {self.report()}\n{words.read_text()[-4000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def start(directory: Path, least: int = 50) -> Live:
    (directory / "pipelines" / "main.py").write_text(PIPELINE.format(least=least))
    with (directory / "up.txt").open("wb") as output:
        process = subprocess.Popen([PROGRAM, "up", str(directory)], stdout=output, stderr=output)
    return Live(directory, process)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    (tmp_path / "tailrace.toml").write_text(
        '[project]\nname = "live"\n[log]\nlisten = "127.0.0.1:0"\n[tick]\nlimit = 250\n'
        '[console]\nlisten = "127.0.0.1:0"\n[spark]\nmaster = "local[1]"\nshards = 2\n'
    )
    (tmp_path / "pipelines").mkdir()
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, amount INTEGER)"
        )
    database.close()
    running = start(tmp_path)
    try:
        running.until(lambda: "totals" in running.names(), "there")
        for number in range(CUTS):  # each a cut of its own, so that a fill takes many ticks
            before = running.cuts()
            running.insert(range(number * ROWS, number * ROWS + ROWS))
            running.until(lambda: running.cuts() > before, "captured")  # noqa: B023
        running.until(running.equal, "filled")
        yield running
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGTERM)
            try:
                running.process.wait(60)
            except subprocess.TimeoutExpired:
                running.process.kill()
                running.process.wait()
                raise


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_generations_are_built_compared_shown_taken_back_and_dropped(live: Live) -> None:
    assert live.generations("totals") == [(1, True, True)]
    live.call("rebuild", "--hold", "totals")
    live.until(lambda: live.shown("totals@2") == live.truth()["totals"], "built beside")
    live.write("UPDATE orders SET amount = amount + 1, status = 'lost' WHERE id % 17 = 0")
    live.until(lambda: live.shown("totals@2") == live.truth()["totals"], "kept up to date beside")
    live.until(live.equal, "equal")
    assert "0 rows only in totals\n" in live.call("diff", "totals")
    live.call("switch", "totals")
    live.until(lambda: live.generations("totals") == [(1, False, False), (2, True, True)], "shown")
    live.write("DELETE FROM orders WHERE id % 13 = 0")
    live.until(live.equal, "equal after the switch")
    live.call("rollback", "totals")
    live.until(lambda: [g[1:] for g in live.generations("totals")] == [(False, True), (True, False)], "taken back")  # fmt: skip
    assert live.shown("totals") != live.truth()["totals"]  # as it was when it was replaced
    live.call("switch", "totals")
    live.until(live.equal, "equal after the second switch")
    live.call("drop", "totals", "--yes")
    live.until(lambda: len(live.generations("totals")) == 1, "dropped")
    live.write("INSERT INTO orders VALUES (100001, 'open', 99)")
    live.until(live.equal, "equal at the end")


def filled_to(live: Live, ticks: int) -> None:
    live.until(lambda: max([0, *live.report().get("filling", {}).values()]) >= ticks, "filling")


def started_after(live: Live, pid: int) -> None:
    live.until(lambda: live.report().get("pid") != pid, "started again")


@pytest.mark.crash
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_rebuild_goes_on_where_it_was_killed(live: Live) -> None:
    live.call("rebuild", "totals", "large")
    for ticks in (1, 4):  # killed once near its beginning, once further on
        filled_to(live, ticks)
        pid = live.report()["pid"]
        os.kill(pid, signal.SIGKILL)
        live.write(f"UPDATE orders SET amount = amount + 7 WHERE id % {10 + ticks} = 0")
        started_after(live, pid)
    live.until(lambda: [g[0] for g in live.generations("totals")] == [1, 2], "rebuilt")
    live.until(lambda: [g[0] for g in live.generations("large")] == [1, 2], "rebuilt")
    live.until(live.equal, "equal")


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_other_sql_is_filled_beside_what_is_shown(live: Live) -> None:
    live.stop()
    live.process = start(live.directory, least=90).process
    live.until(lambda: live.equal(least=90), "filled with the new query")
    assert [g[1] for g in live.generations("large")] == [False, True]
    assert live.generations("totals") == [(1, True, True)]  # untouched
    live.call("rollback", "large")
    live.until(lambda: live.shown("large") == live.truth(50)["large"], "the old answer")
