"""As-of joins in a running project: rows and versions that come late, from two databases that
know nothing of each other, while parts are killed; judged by a batch over the log."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import orjson
import psycopg
import pytest

from tailrace.errors import TailraceError
from tailrace.node.processes import end_with_parent
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.serving.reader import Views
from tailrace.testing.postgres import PostgresServer

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.timeout(1200)]

PROGRAM = str(Path(sys.executable).with_name("tailrace"))
SINCE_EVER = -(1 << 60)
PIPELINE = """
import tailrace as tr
from tailrace import sources

shop = sources.Postgres("shop", dsn=tr.env("SHOP_DSN"), tables=["orders"])
bank = sources.Postgres("bank", dsn=tr.env("BANK_DSN"), tables=["rates", "quotes"],
                        history={"rates": "forever", "quotes": "3 seconds"})
AS_OF = '''SELECT o.id, o.amount, r.rate, r.__versioned_at AS since FROM shop.orders o
           LEFT JOIN bank.{} FOR SYSTEM_TIME AS OF o.placed_at r ON r.currency = o.currency'''
rated = tr.view("rated", AS_OF.format("rates"), key="id")
quoted = tr.view("quoted", AS_OF.format("quotes"), key="id")
"""
SETTINGS = """[project]
name = "priced"
[log]
listen = "127.0.0.1:0"
[console]
listen = "127.0.0.1:0"
[spark]
master = "local[1]"
shards = 2
"""
SHOWN = tuple[int, int, int | None, int | None]  # order, amount, rate, valid since (milliseconds)


@dataclass(slots=True)
class Live:
    """A project that runs, with the two databases it reads."""

    directory: Path
    process: subprocess.Popen[bytes]
    shop: psycopg.Connection[tuple[Any, ...]]
    bank: psycopg.Connection[tuple[Any, ...]]
    environment: dict[str, str]

    def report(self, part: str) -> dict[str, Any]:
        path = self.directory / ".tailrace" / "run" / f"{part}.json"
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, json.JSONDecodeError):
            return {}
        return found

    def kill(self, part: str) -> None:
        os.kill(self.report(part)["pid"], signal.SIGKILL)

    def call(self, *arguments: str) -> None:
        command = [PROGRAM, *arguments, "--log", str(self.directory)]
        subprocess.run(command, check=True, timeout=60, env=self.environment)

    def order(self, number: int, placed_at: datetime, amount: int = 0) -> None:
        self.shop.execute(
            "INSERT INTO orders VALUES (%s, 'EUR', %s, %s) ON CONFLICT (id) DO UPDATE"
            " SET amount = excluded.amount, placed_at = excluded.placed_at",
            (number, placed_at, amount),
        )

    def rate(self, table: str, rate: int | None) -> None:
        """A new version; None: the row goes."""
        if rate is None:
            self.bank.execute(f"DELETE FROM {table} WHERE currency = 'EUR'")
        else:
            self.bank.execute(
                f"INSERT INTO {table} VALUES ('EUR', %s) ON CONFLICT (currency)"
                " DO UPDATE SET rate = excluded.rate",
                (rate,),
            )

    def versions(self, table: str) -> list[tuple[int, int, int | None]]:
        """Every version in the log: valid since (milliseconds), place in the log, rate."""
        found: list[tuple[int, int, int | None]] = []
        with LogReader(self.report("broker-log")["address"]) as reader:
            for records in read_all(reader, f"bank.public.{table}"):
                for offset, value in zip(records.offsets, records.values, strict=True):
                    event = orjson.loads(value or b"null")
                    if event is None or (event["op"] == "r" and found):
                        continue  # copied again, it says what is known
                    since = SINCE_EVER if event["op"] == "r" else event["source"]["ts_ms"]
                    after = event["after"]
                    found.append((since, offset, after["rate"] if after else None))
        return found

    def ops(self, table: str) -> Counter[str]:
        """How many events of each kind the log holds."""
        with LogReader(self.report("broker-log")["address"]) as reader:
            values = [v for r in read_all(reader, f"bank.public.{table}") for v in r.values]
        return Counter(orjson.loads(value)["op"] for value in values if value is not None)

    def truth(self, versions: list[tuple[int, int, int | None]]) -> list[SHOWN]:
        """What an as-of join must show, in one batch."""
        with duckdb.connect() as database:
            database.execute("CREATE TABLE orders (id BIGINT, amount BIGINT, placed BIGINT)")
            database.execute("CREATE TABLE versions (since BIGINT, place BIGINT, rate BIGINT)")
            rows = self.shop.execute(
                "SELECT id, amount, (extract(epoch FROM placed_at) * 1000000)::bigint FROM orders"
            ).fetchall()
            for table, held in (("orders", rows), ("versions", versions)):
                if held:
                    database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", held)
            return database.execute(
                """SELECT id, amount, v.rate, CASE WHEN v.rate IS NOT NULL THEN v.since END
                   FROM orders LEFT JOIN LATERAL (
                       SELECT since, rate FROM versions WHERE since * 1000 <= orders.placed
                       ORDER BY since DESC, place DESC LIMIT 1) v ON true ORDER BY id"""
            ).fetchall()

    def shown(self, view: str) -> list[SHOWN]:
        try:
            with Views(self.directory / ".tailrace" / "views") as views:
                rows = views.rows(view).rows
        except TailraceError:
            return []
        return sorted((r["id"], r["amount"], r["rate"], _ms(r["since"])) for r in rows)

    def until_shown(self, view: str, rows: list[SHOWN], what: str) -> None:
        """Wait until the view shows these rows."""

        def differences() -> str:
            found = self.shown(view)
            return f"wanted {sorted({*rows} - {*found})}, shown {sorted({*found} - {*rows})}"

        self.until(lambda: self.shown(view) == rows, what, differences)

    def until(self, true: Callable[[], object], what: str, why: Callable[[], str] = str) -> None:
        deadline = time.monotonic() + 300
        words = self.directory / "up.txt"
        while not true():
            assert self.process.poll() is None, words.read_text()[-3000:]
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not {what}: {why()}\n{self.report('pipelines-priced')}"
                    f"\n{words.read_text()[-4000:]}"
                )
            time.sleep(0.1)


def _ms(moment: Any) -> int | None:
    if moment is None:
        return None
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return round(moment.timestamp() * 1000)


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


@contextmanager
def running(directory: Path) -> Iterator[Live]:
    (directory / "tailrace.toml").write_text(SETTINGS)
    (directory / "pipelines").mkdir()
    (directory / "pipelines" / "main.py").write_text(PIPELINE)
    with (
        PostgresServer(start_with=end_with_parent(signal.SIGINT)) as server,
        psycopg.connect(server.dsn(), autocommit=True) as shop,
    ):
        shop.execute("CREATE DATABASE bank")
        bank_dsn = server.dsn("bank")
        shop.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, currency text, placed_at timestamptz,"
            " amount bigint)"
        )
        with psycopg.connect(bank_dsn, autocommit=True) as bank:
            for table in ("rates", "quotes"):
                bank.execute(f"CREATE TABLE {table} (currency text PRIMARY KEY, rate bigint)")
            environment = dict(os.environ, SHOP_DSN=server.dsn(), BANK_DSN=bank_dsn)
            with (directory / "up.txt").open("wb") as output:
                process = subprocess.Popen(
                    [PROGRAM, "up", str(directory)], env=environment, stdout=output, stderr=output
                )
            live = Live(directory, process, shop, bank, environment)
            try:
                words = directory / "up.txt"
                live.until(lambda: b"\nready" in words.read_bytes(), "ready")
                yield live
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    raise


def test_late_rows_and_late_versions_correct_what_was_shown_through_kills(tmp_path: Path) -> None:
    rng = random.Random(7)
    with running(tmp_path) as live:
        written = 0

        def traffic(steps: int, *, rates: bool = True) -> None:
            nonlocal written
            for _ in range(steps):
                number = rng.randrange(40)
                if rng.random() < 0.2:
                    live.shop.execute("DELETE FROM orders WHERE id = %s", (number,))
                else:  # up to ten seconds late, and a few before anything was known
                    late = rng.choice([0, 0, 1, 3, 10, 10_000]) * rng.random()
                    live.order(number, ago(late), rng.randrange(1000))
                if rates and rng.random() < 0.6:
                    written += 1
                    live.rate("rates", written)
                time.sleep(0.03)

        traffic(40)
        live.kill("pipelines-priced")
        traffic(40)
        # Versions late: orders go on, and rates that were valid for them come only afterwards.
        live.call("source", "pause", "bank")
        time.sleep(1)
        traffic(60)
        placed = live.shop.execute("SELECT id, amount FROM orders ORDER BY id").fetchall()
        live.until(lambda: [row[:2] for row in live.shown("rated")] == placed, "joined without")
        seen = live.shown("rated")
        live.call("source", "resume", "bank")
        live.kill("source-bank")
        live.until(lambda: len(live.versions("rates")) >= written, "captured")
        truth = live.truth(live.versions("rates"))
        assert len([row for row in truth if row not in seen]) > 5, "there is nothing to correct"
        live.until_shown("rated", truth, "corrected")
        # Rows late: rates go on, and orders of that time come only afterwards.
        live.call("source", "pause", "shop")
        time.sleep(1)
        traffic(40)
        live.rate("rates", None)
        live.kill("pipelines-priced")
        traffic(20, rates=False)
        live.call("source", "resume", "shop")
        traffic(10)
        live.until(lambda: len(live.versions("rates")) > written, "captured")  # and one that went
        truth = live.truth(live.versions("rates"))
        live.until_shown("rated", truth, "equal to a batch")
        assert len({row[2] for row in truth}) > 5
        assert any(row[2] is None for row in truth)
        # The table is copied again: that says nothing new about the past.
        live.call("source", "snapshot", "bank", "--table", "rates")
        live.until(lambda: live.ops("rates")["r"] > 0, "copied again")
        live.order(41, ago(0), 1)
        live.until_shown("rated", live.truth(live.versions("rates")), "equal after a copy")


def test_versions_leave_with_the_history_and_what_comes_too_late_is_counted(tmp_path: Path) -> None:
    with running(tmp_path) as live:
        moments: list[datetime] = []
        for rate in (1, 2, 3, 4):
            live.rate("quotes", rate)
            time.sleep(0.3)
            moments.append(ago(0.1))  # while that version is valid
            time.sleep(0.2)
        live.order(1, moments[1], 10)  # stands on the second version
        live.order(2, moments[3], 20)
        live.until(lambda: len(live.versions("quotes")) >= 4, "captured")
        versions = live.versions("quotes")
        truth = live.truth(versions)
        live.until_shown("quoted", truth, "equal")
        assert [row[2] for row in truth] == [2, 4]
        live.kill("pipelines-priced")
        time.sleep(4)  # past the history: what no row stands on leaves with the next tick
        live.order(2, moments[3], 21)
        truth = live.truth(versions)
        live.until_shown("quoted", truth, "equal after the kill")
        live.order(3, moments[0], 30)  # too late: its version has left
        live.order(4, moments[2], 40)
        live.order(1, moments[1] + timedelta(milliseconds=1), 11)  # a row that is there: exact
        live.order(5, moments[1], 50)  # and so is one beside it
        truth = live.truth(versions)
        expected = [(i, a, *((None, None) if i in (3, 4) else rest)) for i, a, *rest in truth]
        live.until_shown("quoted", expected, "as the rule says")
        assert [row[2] for row in truth] == [2, 4, 1, 3, 2]
        told = {"bank.public.quotes": 2}
        live.until(lambda: live.report("pipelines-priced").get("forgotten") == told, "counted")
        # The other view keeps its versions for ever and is as a batch says.
        live.until_shown("rated", live.truth([]), "equal")
