"""What a project's own tests get: streams, histories and time as the project declares them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tailrace.project import load
from tailrace.testing.project import ProjectUnderTest

PIPELINE = """
import tailrace as tr
from tailrace import sources

shop = sources.SQLite("shop", path="shop.db", tables=["orders", "rates"], history={"rates": "forever"})
seen = tr.topic("seen", schema="id BIGINT, at TIMESTAMP", time="at", watermark="5 seconds")
counted = tr.view("counted", "SELECT id, count(*) AS n FROM seen GROUP BY id", key="id")
closed = tr.view("closed", "SELECT DISTINCT id FROM seen WHERE at < watermark('seen')")
recent = tr.view("recent", "SELECT DISTINCT id FROM seen WHERE at > now() - INTERVAL '1' HOUR")
priced = tr.view("priced", '''SELECT o.id, o.amount * r.rate AS value FROM shop.orders o
    JOIN shop.rates FOR SYSTEM_TIME AS OF o.at r ON r.currency = o.currency''', key="id")
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


def project(directory: Path) -> ProjectUnderTest:
    (directory / "tailrace.toml").write_text('[project]\nname = "timed"\n')
    (directory / "pipelines").mkdir()
    (directory / "pipelines" / "main.py").write_text(PIPELINE)
    return ProjectUnderTest(load.load(directory))


def test_a_declared_topic_is_a_stream_with_its_time(tmp_path: Path) -> None:
    web = project(tmp_path).tables({})
    for seconds in (0, 4, 9):
        web.upsert("seen", {"id": seconds, "at": START + timedelta(seconds=seconds)})
    web.upsert("seen", {"id": 0, "at": START})
    assert web.tick(now=START)["counted"] == 3
    assert {row["id"]: row["n"] for row in web.rows("counted")} == {0: 2, 4: 1, 9: 1}
    assert web.rows("closed") == []  # what rows say of time counts from the next tick on
    web.tick(now=START + timedelta(minutes=59))
    assert {row["id"] for row in web.rows("closed")} == {0}  # 9 seconds less 5
    assert {row["id"] for row in web.rows("recent")} == {0, 4, 9}
    web.tick(now=START + timedelta(hours=1, seconds=4))
    assert {row["id"] for row in web.rows("recent")} == {9}


def test_a_table_with_history_has_versions(tmp_path: Path) -> None:
    shop = project(tmp_path).tables(
        {
            "shop.orders": "id BIGINT, currency STRING, amount BIGINT, at TIMESTAMP",
            "shop.rates": "currency STRING, rate BIGINT",
        }
    )
    shop.tick(now=START)
    shop.upsert("shop.rates", {"currency": "EUR", "rate": 2})
    shop.upsert(
        "shop.rates", {"currency": "EUR", "rate": 3, "__versioned_at": START + timedelta(1)}
    )
    for number in (1, 2):
        at = START + timedelta(days=number - 0.5)
        shop.upsert("shop.orders", {"id": number, "currency": "EUR", "amount": 10, "at": at})
    shop.tick()
    assert {row["id"]: row["value"] for row in shop.rows("priced")} == {1: 20, 2: 30}


EVENTS = """
from dataclasses import dataclass
import tailrace as tr

@dataclass(frozen=True)
class Opened:
    owner: str

@dataclass(frozen=True)
class Deposited:
    amount: int

@dataclass(frozen=True)
class Account:
    owner: str = ""
    balance: int = 0

accounts = tr.events("accounts", Opened | Deposited, state=Account, publish=True)

@accounts.evolve
def account(state, event):
    match event:
        case Opened(owner):
            return Account(owner, state.balance)
        case Deposited(amount):
            return Account(state.owner, state.balance + amount)

paid_in = tr.view("paid_in", "SELECT stream, sum(amount) AS total FROM accounts.deposited GROUP BY stream")
openings = tr.view("openings", "SELECT stream, version, actor, Opened.owner FROM accounts WHERE type = 'Opened'")
rich = tr.view("rich", "SELECT stream, owner FROM accounts.state WHERE balance > 100")
other = tr.view("other", "SELECT id FROM seen")
seen = tr.topic("seen", schema="id BIGINT")
"""


def test_events_feed_views_as_the_log_would(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "bank"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "bank.py").write_text(EVENTS)
    loaded = load.load(tmp_path)
    opened, deposited = (each.cls for each in loaded.events["accounts"].types)
    bank = ProjectUnderTest(loaded).tables({})
    bank.append("accounts", "a", opened("ann"), deposited(80), actor="teller")
    bank.append("accounts", "b", deposited(500))
    bank.tick(now=START)
    assert {row["stream"]: row["total"] for row in bank.rows("paid_in")} == {"a": 80, "b": 500}
    assert bank.rows("openings") == [
        {"stream": "a", "version": 1, "actor": "teller", "owner": "ann"}
    ]
    assert bank.rows("rich") == [{"stream": "b", "owner": ""}]
    bank.append("accounts", "a", deposited(30))
    bank.tick()
    assert {row["stream"] for row in bank.rows("rich")} == {"a", "b"}
