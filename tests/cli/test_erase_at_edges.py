"""`open=` in a project: what check refuses, and what an erasure does to the rows of sinks."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tailrace.broker.embedded import BrokerThread
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.client.log import connect
from tailrace.client.writer import TransactionalWriter
from tailrace.facts.sealing import Keys
from tailrace.project.copies import opened_copy
from tailrace.project.load import load

PEOPLE = """
from dataclasses import dataclass
from typing import Annotated
import tailrace as tr
from tailrace import sinks

@dataclass(frozen=True)
class Registered:
    customer: str
    name: Annotated[str, tr.personal("customer")]

@dataclass(frozen=True)
class Customer:
    name: str = ""

customers = tr.events("customers", Registered, state=Customer, partitions=1)

@customers.evolve
def customer(state, event):
    match event:
        case Registered(_, name):
            return Customer(name)
"""
STREAM = """
@tr.stream(customers, key="id", to=[
    sinks.SQLite("edge.db", table="names", open=["name"]),
    sinks.Webhook("http://127.0.0.1:1/hook", open=["name"]),
])
def names(rows):
    return rows
"""
VIEW = """
counted = tr.view("counted", "SELECT {key} AS customer, max(Registered.name) AS name, count(*) AS n FROM customers GROUP BY {key}",
    to=sinks.SQLite("edge.db", table="counted", open=[{column!r}]))
"""
SECRET = "k" * 40


def project(home: Path, bootstrap: str, more: str, secret: str | None = SECRET) -> None:
    (home / "pipelines").mkdir(parents=True, exist_ok=True)
    (home / "pipelines" / "people.py").write_text(PEOPLE + more)
    text = f'[project]\nname = "shop"\n[log]\nbootstrap = "{bootstrap}"\n'
    text += f'[events]\nkey = "{secret}"\n' if secret else ""
    (home / "tailrace.toml").write_text(text)


def test_check_refuses_what_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def told(column: str, secret: str | None = SECRET) -> str:
        more = VIEW.format(column=column, key="Registered.customer")
        project(tmp_path, "127.0.0.1:1", more, secret)
        answer = CliRunner().invoke(cli, ["check"])
        return answer.output + answer.stderr

    assert "open=" not in told("name")
    assert "no column 'nme' for open= of sink counted.sqlite" in told("nme")
    assert "'n', which is BIGINT" in told("n")
    assert "names the key column 'customer'" in told("customer")
    assert "opens sealed columns, and there is no key" in told("name", None)


def test_an_erasure_counts_rows_at_edges_and_waits_for_their_sinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def ask(*words: str) -> dict[str, Any]:
        answer = runner.invoke(cli, ["erase", *words, "--json"])
        told: dict[str, Any] = json.loads(answer.output)
        return told | {"exit": answer.exit_code}

    def deliver() -> dict[str, str | None]:
        with opened_copy(load(tmp_path), broker.address, "names.sqlite") as opened:
            opened.delivery.step(0)
            opened.delivery.forget_erased()
        with closing(sqlite3.connect(tmp_path / "edge.db")) as connection:
            return dict(connection.execute("SELECT id, name FROM names").fetchall())

    def held() -> bool:
        """Whether the file, or the log beside it, holds the name: in a row, or where one was."""
        return any(b"Wilhelmina" in path.read_bytes() for path in tmp_path.glob("edge.db*"))

    reader = sqlite3.connect(tmp_path / "edge.db")  # the log beside the file stays, with it open
    reader.execute("PRAGMA journal_mode = WAL")

    settings = {"log.cleaner.backoff.ms": "50"}
    with BrokerThread(tmp_path / "log", durable=False, settings=settings) as broker:
        project(tmp_path, broker.address, STREAM)
        with Admin(broker.address) as admin:
            admin.ensure_topic("names", 2)
        writer = TransactionalWriter(broker.address, "names")
        writer.init()
        with connect(broker.address) as log, closing(Keys(log, SECRET)) as keys:
            for id, customer, name in (
                ("a", 17, "Wilhelmina"),
                ("b", 18, "Bob"),
                ("c", 17, "Wilhelmina II"),
            ):
                sealed = keys.seal("customers", "name", f"customer:{customer}", name)
                row = {"id": id, "name": sealed}
                writer.send("names", None, orjson.dumps({"id": id}), orjson.dumps(row))
            writer.commit()
            writer.close()
        assert deliver() == {"a": "Wilhelmina", "b": "Bob", "c": "Wilhelmina II"}
        assert held()
        dry = ask("subject", "customer:17", "--dry-run")
        assert (dry["edges"], dry["counts"]) == ({"names.sqlite": 2}, {"names": 2})
        done = ask("subject", "customer:17", "--reason", "request 4711")
        assert (done["exit"], done["state"], done["edges"]) == (0, "done", {"names.sqlite": 2})
        assert any("names.webhook" in each for each in done["unreachable"])
        assert any("kept for rollback" in each for each in done["unreachable"])
        found = ask("verify", done["id"])
        assert (found["exit"], found["good"], found["waiting"]) == (1, False, ["names.sqlite"])
        assert reader.execute("SELECT count(*) FROM names").fetchone() == (3,)
        assert deliver() == {"a": None, "b": "Bob", "c": None}
        assert not held()
        reader.close()
        found = ask("verify", done["id"])
        assert (found["exit"], found["good"], found["waiting"]) == (0, True, [])
        checked = runner.invoke(cli, ["sink", "verify", "names.sqlite", "--json"])
        assert json.loads(checked.output)["in_step"], checked.output
