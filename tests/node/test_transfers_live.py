"""Transfers between accounts in a running project, while its parts are killed: no answer shows half
of one, and all views agree in every answer, with each other and in the end with Postgres."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from tailrace.errors import TailraceError
from tailrace.node.processes import end_with_parent
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.serving.reader import Views
from tailrace.testing.postgres import PostgresServer

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.timeout(1800)]

PROGRAM = str(Path(sys.executable).with_name("tailrace"))
ACCOUNTS, FIRST = 120, 1000
TOTAL = ACCOUNTS * FIRST
PIPELINE = """
import tailrace as tr
from tailrace import sources

bank = sources.Postgres("bank", dsn=tr.env("BANK_DSN"), tables=["accounts", "transfers"])
total = tr.view("total", "SELECT sum(balance) AS total, count(*) AS n FROM bank.accounts")
branches = tr.view("branches", '''
    SELECT branch, sum(balance) AS total, count(*) AS n, min(balance) AS low, max(balance) AS high
    FROM bank.accounts GROUP BY branch''')
over_branches = tr.view("over_branches", "SELECT sum(total) AS total, max(high) AS high FROM branches")
flows = tr.view("flows", '''
    SELECT account, sum(amount) AS net, count(*) AS n FROM (
        SELECT payer AS account, -amount AS amount FROM bank.transfers
        UNION ALL SELECT payee AS account, amount FROM bank.transfers)
    GROUP BY account''')
mismatches = tr.view("mismatches", '''
    SELECT a.id, a.balance, f.net FROM bank.accounts a LEFT JOIN flows f ON f.account = a.id
    WHERE a.balance <> 1000 + coalesce(f.net, 0)''', key="id")
ranked = tr.view("ranked", '''
    SELECT id, branch, balance, row_number() OVER (PARTITION BY branch ORDER BY balance DESC, id) AS place
    FROM bank.accounts''', key="id")
richest = tr.view("richest", "SELECT id, balance FROM bank.accounts ORDER BY balance DESC, id LIMIT 5", key="id")
"""
LATER = """
pairs = tr.view("pairs", '''
    SELECT t.payer, t.payee, count(*) AS n, sum(t.amount) AS amount, max(a.branch) AS branch
    FROM bank.transfers t JOIN bank.accounts a ON a.id = t.payer GROUP BY t.payer, t.payee''')
"""
SETTINGS = """[project]
name = "bank"
[log]
listen = "127.0.0.1:0"
[console]
listen = "127.0.0.1:0"
[spark]
master = "local[1]"
shards = 2
[tick]
limit = 400
"""
# Before the first copy is read the views are there and empty; from then on all of it holds.
AGREEMENT = """
SELECT (SELECT total FROM total) AS total, (SELECT sum(total) FROM branches) AS of_branches,
    (SELECT total FROM over_branches) AS over_branches, (SELECT sum(balance) FROM ranked) AS of_ranked,
    (SELECT count(*) FROM mismatches) AS mismatches, (SELECT sum(net) FROM flows) AS flows,
    (SELECT high FROM over_branches) - (SELECT max(balance) FROM richest) AS top,
    (SELECT count(*) FROM ranked r JOIN richest t USING (id) WHERE r.balance <> t.balance) AS differ,
    (SELECT count(*) FROM (SELECT branch, sum(balance) AS total FROM ranked GROUP BY branch) r
        FULL JOIN branches b USING (branch) WHERE r.total IS DISTINCT FROM b.total) AS branches_differ
"""
AGREED = {"total": TOTAL, "of_branches": TOTAL, "over_branches": TOTAL, "of_ranked": TOTAL,
          "mismatches": 0, "flows": 0, "top": 0, "differ": 0, "branches_differ": 0}  # fmt: skip
BATCH = {
    "branches": "SELECT branch, sum(balance)::bigint, count(*), min(balance), max(balance) FROM accounts GROUP BY 1",
    "flows": """SELECT account, sum(amount)::bigint, count(*) FROM (
        SELECT payer AS account, -amount AS amount FROM transfers
        UNION ALL SELECT payee, amount FROM transfers) x GROUP BY 1""",
    "ranked": """SELECT id, branch, balance,
        row_number() OVER (PARTITION BY branch ORDER BY balance DESC, id) FROM accounts""",
    "richest": "SELECT id, balance FROM accounts ORDER BY balance DESC, id LIMIT 5",
    "pairs": """SELECT payer, payee, count(*), sum(amount)::bigint, max(branch)
        FROM transfers t JOIN accounts a ON a.id = payer GROUP BY 1, 2""",
}  # fmt: skip


@dataclass(slots=True)
class Bank:
    """The database, who writes to it, who asks the views, and the project between them."""

    directory: Path
    dsn: str
    process: subprocess.Popen[bytes] | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    paused: threading.Event = field(default_factory=threading.Event)
    answers: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)

    def start(self) -> None:
        with (self.directory / "up.txt").open("ab") as output:
            self.process = subprocess.Popen(
                [PROGRAM, "up", str(self.directory)], stdout=output, stderr=output,
                env={**os.environ, "BANK_DSN": self.dsn},
            )  # fmt: skip

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(by)
        self.process.wait(60)

    def report(self, part: str) -> dict[str, Any]:
        try:
            found = json.loads((self.directory / ".tailrace" / "run" / f"{part}.json").read_text())
        except (OSError, json.JSONDecodeError):
            return {}
        return dict(found)

    def kill(self, part: str) -> None:
        """A part's process, its Java, or everything at once; all are started again."""
        if part == "java":
            pid = str(self.report("pipelines-bank").get("pid", 0))
            told = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", pid], capture_output=True, text=True)  # fmt: skip
            found = [int(line.split()[0]) for line in told.stdout.splitlines() if "java" in line]
        elif part == "up":
            self.stop(signal.SIGKILL)
            self.start()
            return
        else:
            found = [self.report(part).get("pid", 0)]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, signal.SIGKILL)

    def write(self, seed: int) -> None:
        """Transfers, some taken back, some accounts moved; all in transactions of any size."""
        chance = random.Random(seed)
        with psycopg.connect(self.dsn) as connection:
            while not self.ended.is_set():
                if self.paused.is_set():
                    time.sleep(0.05)
                    continue
                with contextlib.suppress(psycopg.errors.DeadlockDetected):
                    for _ in range(chance.choice([1, 1, 1, 6, 30])):
                        self.transfer(connection, chance)
                    if chance.random() < 0.1:
                        connection.rollback()
                    connection.commit()
                connection.rollback()
                time.sleep(chance.choice([0, 0.01, 0.05]))

    def transfer(self, connection: psycopg.Connection[Any], chance: random.Random) -> None:
        payer, payee = chance.sample(range(1, ACCOUNTS + 1), 2)
        amount = chance.randint(1, 50)
        for account, change in sorted([(payer, -amount), (payee, amount)]):
            connection.execute(
                "UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account)
            )
        connection.execute(
            "INSERT INTO transfers (payer, payee, amount) VALUES (%s, %s, %s)",
            (payer, payee, amount),
        )
        if chance.random() < 0.1:
            connection.execute(
                "UPDATE accounts SET branch = %s WHERE id = %s", (chance.randint(0, 6), payee)
            )

    def ask(self) -> None:
        """Ask again and again; what does not agree is kept."""
        while not self.ended.wait(0.02):
            try:
                with Views(self.directory / ".tailrace" / "views") as views:
                    while not self.ended.wait(0.02):
                        page = views.sql(AGREEMENT)
                        found = {k: None if v is None else int(v) for k, v in page.rows[0].items()}
                        if found["total"] is None:
                            assert all(not value for value in found.values()), found
                            continue
                        self.answers += 1
                        if found != AGREED and len(self.wrong) < 5:
                            self.wrong.append({**found, "position": page.position})
            except TailraceError:
                time.sleep(0.2)  # nothing is served yet

    def differing(self) -> list[str]:
        """Views that differ from what Postgres computes."""
        found = []
        declared = (self.directory / "pipelines" / "main.py").read_text()
        with (
            psycopg.connect(self.dsn) as connection,
            Views(self.directory / ".tailrace" / "views") as views,
        ):
            for name, sql in BATCH.items():
                if f'"{name}"' not in declared:
                    continue
                if name not in views.names:
                    found.append(name)
                    continue
                rows = sorted(
                    tuple(row.values()) for row in views.sql(f'SELECT * FROM "{name}"').rows
                )
                if rows != sorted(connection.execute(sql).fetchall()):
                    found.append(name)
        return found

    def until(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 300
        while True:
            with contextlib.suppress(TailraceError):
                if true():
                    return
            if time.monotonic() > deadline:
                words = (self.directory / "up.txt").read_text()[-4000:]
                raise AssertionError(f"not {what}: {self.report('pipelines-bank')}\n{words}")
            time.sleep(0.1)

    def compare(self, what: str) -> None:
        self.paused.set()
        self.until(lambda: not self.differing(), f"equal {what}")
        self.paused.clear()
        assert self.wrong == []

    def totals(self) -> set[int | None]:
        """Every total that was ever written."""
        with LogReader(self.report("broker-log")["address"]) as reader:
            values = [v for records in read_all(reader, "total") for v in records.values]
        return {orjson.loads(value)["row"]["total"] for value in values if value is not None}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    (tmp_path / "tailrace.toml").write_text(SETTINGS)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "main.py").write_text(PIPELINE)
    with PostgresServer(start_with=end_with_parent(signal.SIGINT)) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE accounts (id int PRIMARY KEY, branch int, balance bigint)"
            )
            connection.execute(
                "CREATE TABLE transfers (id bigserial PRIMARY KEY, payer int, payee int, amount bigint)"
            )
            connection.execute(
                "INSERT INTO accounts SELECT n, n %% 7, %s FROM generate_series(1, %s) n",
                (FIRST, ACCOUNTS),
            )
        bank = Bank(tmp_path, server.dsn())
        threads = [threading.Thread(target=bank.write, args=(seed,)) for seed in (1, 2)]
        threads.append(threading.Thread(target=bank.ask))
        bank.start()
        try:
            for thread in threads:
                thread.start()
            yield bank
        finally:
            bank.ended.set()
            for thread in threads:
                thread.join()
            bank.stop()


def test_no_answer_shows_half_a_transfer_whatever_is_killed(bank: Bank) -> None:
    chance = random.Random(7)
    bank.until(lambda: bank.answers > 0, "filled")
    kinds = ["pipelines-bank", "java", "source-bank", "broker-log", "views-bank", "up"]
    for number in range(2 * len(kinds)):
        bank.kill(kinds[number] if number < len(kinds) else chance.choice(kinds))
        time.sleep(chance.uniform(0.5, 8))
        if number % 4 == 3:
            bank.compare(f"after {number + 1} kills")
    bank.compare("in the end")
    assert bank.totals() <= {TOTAL, None}
    assert bank.answers > 50


def test_a_view_added_later_is_filled_through_kills_and_shown_whole(bank: Bank) -> None:
    bank.until(lambda: bank.answers > 0, "filled")
    with psycopg.connect(bank.dsn, autocommit=True) as connection:
        many = "SELECT count(*) FROM transfers"
        bank.until(lambda: connection.execute(many).fetchone()[0] > 3000, "enough transfers")  # type: ignore[index]
    bank.compare("before")
    bank.stop()
    main = bank.directory / "pipelines" / "main.py"
    main.write_text(main.read_text() + LATER)
    bank.start()
    ticks: list[int] = []
    for part in ("pipelines-bank", "java", "up"):
        least = ticks[-1] if ticks else 1

        def ahead(least: int = least) -> bool:
            report = bank.report("pipelines-bank")
            filling = (report.get("filling") or {}).get("pairs")
            return (filling is None and report.get("state") == "running") or (filling or 0) > least

        bank.until(ahead, "filling further")  # it goes on, it does not begin again
        ticks.append((bank.report("pipelines-bank").get("filling") or {}).get("pairs") or least)
        with Views(bank.directory / ".tailrace" / "views") as views:
            shown = "pairs" in views.names
        if not shown:
            bank.kill(part)
            time.sleep(1)
    assert ticks == sorted(ticks)
    assert ticks[0] > 1
    bank.compare("with the new view")
