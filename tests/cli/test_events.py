"""`tailrace events` against a running part of a project."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tailrace.broker.embedded import BrokerThread
from tailrace.cli.main import cli
from tailrace.client.log import connect
from tailrace.errors import UsageError
from tailrace.facts.erased_records import ErasedRecords
from tailrace.facts.process import run
from tailrace.node.parts import parts_of
from tailrace.project.load import Project, load
from tailrace.telemetry.part import Part, read_reports

PROJECT = """
from dataclasses import dataclass
from datetime import datetime
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

accounts = tr.events("accounts", Opened | Deposited, state=Account, partitions=2)

@accounts.evolve
def account(state, event):
    match event:
        case Opened(owner):
            return Account(owner, state.balance)
        case Deposited(amount):
            return Account(state.owner, state.balance + amount)

@accounts.command
def open_account(state: Account, owner: str):
    return Opened(owner)

@accounts.command
def deposit(state: Account, amount: int):
    if amount <= 0:
        raise tr.Rejected("nothing to deposit", code="nothing")
    return Deposited(amount)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose event topics have an owner in this process."""
    home = tmp_path / "bank"
    (home / "pipelines").mkdir(parents=True)
    (home / "pipelines" / "bank.py").write_text(PROJECT)
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        text = f'[project]\nname = "bank"\n[log]\nbootstrap = "{broker.address}"\n'
        (home / "tailrace.toml").write_text(text)
        monkeypatch.chdir(home)
        loaded = load(home)
        part = Part("bank", "events", "bank", broker.address, loaded.settings.state_directory)
        thread = threading.Thread(target=run, args=(loaded.events.values(), part))
        thread.start()
        try:
            deadline = time.monotonic() + 60
            while not any(each["state"] == "running" for each in read_reports(part.directory)):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield loaded
        finally:
            part.stopping.set()
            thread.join()


def told(*words: str, status: int = 0) -> object:
    found = CliRunner().invoke(cli, ["events", *words, "--json"], catch_exceptions=True)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == status, found.output
    return json.loads(found.output)


def test_the_commands_of_a_person_at_a_terminal(project: Project) -> None:
    assert [part.kind for part in parts_of(project)] == ["events", "console"]
    opened = told("execute", "accounts", "open_account", "a", "owner=ann", "--expected", "0")
    assert opened["events"] == [{"type": "Opened", "owner": "ann"}]  # type: ignore[index]
    for _ in range(2):
        done = told(
            "execute", "accounts", "deposit", "a", "amount=50", "--id", "d1", "--actor", "x"
        )
    assert (done["version"], done["repeated"]) == (2, True)  # type: ignore[index]
    state = told("show", "accounts", "a")
    assert state["state"] == {"owner": "ann", "balance": 50}  # type: ignore[index]
    before = told("show", "accounts", "a", "--version", "1")
    assert before["state"]["balance"] == 0  # type: ignore[index]
    assert told("show", "accounts", "a", "--at", state["position"]) == state  # type: ignore[index]
    assert told("show", "accounts", "a", "--diff", "1", "2") == {"balance": {"then": 0, "now": 50}}
    history = told("show", "accounts", "a", "--history")
    assert [(e["type"], e["actor"]) for e in history] == [("Opened", None), ("Deposited", "x")]  # type: ignore[attr-defined]
    owners = told("owners", "accounts")
    assert len({each["owner"] for each in owners}) == 1  # type: ignore[attr-defined]
    rebuilt = told("rebuild", "accounts")
    assert (rebuilt["events"], rebuilt["streams"]) == (2, 1)  # type: ignore[index]
    assert rebuilt["seconds"] >= 0  # type: ignore[index]
    deadline = time.monotonic() + 30
    while (row := told("list")[0])["events"] != 2:  # type: ignore[index]
        assert time.monotonic() < deadline, row
        time.sleep(0.1)
    assert (row["streams"], row["partitions"]) == (1, 2)
    assert (row["rebuild_events"], row["rebuild_seconds"]) == (2, rebuilt["seconds"])  # type: ignore[index]
    assert told("verify", "accounts")["differences"] == {}  # type: ignore[index]


def test_verify_finds_what_does_not_fold(project: Project) -> None:
    told("execute", "accounts", "deposit", "a", "amount=50")
    with connect(project.settings.log.bootstrap or "") as log, log.producer() as producer:
        headers = {
            "tailrace.event": b"Deposited",
            "tailrace.version": b"7",
            "tailrace.meta": orjson.dumps({"id": "x/0", "command": "x"}),
        }
        producer.send("accounts", key=b"b", value=b'{"amount":1}', headers=headers).result(60)
    found = told("verify", "accounts", status=1)
    assert "version 7" in found["differences"]["b"]  # type: ignore[index]


def test_errors_of_the_command_line(project: Project) -> None:
    runner = CliRunner()
    for words, text in (
        (["execute", "accounts", "deposit", "a", "amount=0"], "nothing to deposit"),
        (["execute", "accounts", "deposit", "a", "amount"], "no argument"),
        (["execute", "accounts", "deposit", "a", "amount=many"], "do not fit"),
        (["show", "acounts", "a"], "no event topic"),
        (["show", "accounts", "a", "--at", "never"], "no time"),
        (["show", "accounts", "a", "--at", "2026-01-01", "--version", "1"], "exclude"),
    ):
        found = runner.invoke(cli, ["events", *words])
        assert found.exit_code != 0
        assert text in str(found.exception) + found.output, words


REACTIONS = """
import tailrace as tr
from pipelines.bank import Deposited, accounts

names = tr.reservations("names", hold="1 hour", partitions=1)

@tr.reaction("welcome", accounts, partitions=1)
def welcome(state, fact):
    match fact.event:
        case Deposited(13):
            yield tr.send("claim", fact.stream, on=names, holder="bank", hold="for ever")
        case Deposited():
            yield tr.send("claim", fact.stream, on=names, holder="bank")
            yield tr.later("1 day", "remind")
"""


def test_reactions_of_a_project_are_checked_run_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "shop"
    (home / "pipelines").mkdir(parents=True)
    (home / "pipelines" / "bank.py").write_text(PROJECT)
    (home / "pipelines" / "welcome.py").write_text(REACTIONS)
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        text = f'[project]\nname = "shop"\n[log]\nbootstrap = "{broker.address}"\n'
        (home / "tailrace.toml").write_text(text)
        monkeypatch.chdir(home)
        loaded = load(home)
        assert list(loaded.reactions) == ["welcome"]
        assert list(loaded.events) == ["accounts", "names"]
        runner = CliRunner()
        checked = runner.invoke(cli, ["check"])
        assert "reaction welcome" in checked.output, checked.output
        part = Part("shop", "events", "shop", broker.address, loaded.settings.state_directory)
        declared = [loaded.reservations.get(name, each) for name, each in loaded.events.items()]
        thread = threading.Thread(target=run, args=(declared, part, loaded.reactions.values()))
        thread.start()
        try:
            deadline = time.monotonic() + 60
            while not any(each["state"] == "running" for each in read_reports(part.directory)):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            for stream, amount in (("ann", 5), ("bob", 13)):
                done = runner.invoke(
                    cli, ["events", "execute", "accounts", "deposit", stream, f"amount={amount}"]
                )
                assert done.exit_code == 0, done.output
            rows: list[dict[str, object]] = []
            while not (len(rows) == 2 and not any(row["command"] for row in rows)):
                assert time.monotonic() < deadline, rows
                shown = runner.invoke(cli, ["events", "reactions", "--json"])
                rows = json.loads(shown.output)
            stuck, waits = rows
            # The step itself fails: its fact stops the partition it stands in, by name.
            assert stuck["stuck"]
            assert str(stuck["process"]).startswith("accounts/")
            assert "do not fit the command claim" in str(stuck["error"])
            assert waits["process"] == "ann"
            (timer,) = waits["timers"]  # type: ignore[misc]
            assert timer["name"] == "remind"
            kept = runner.invoke(cli, ["events", "show", "names", "ann", "--json"])
            assert orjson.loads(kept.output)["state"]["held"][0]["holder"] == "bank"
            wrong = runner.invoke(cli, ["events", "reactions", "welcom"])
            assert isinstance(wrong.exception, UsageError)
            assert "welcome" in wrong.exception.hint
        finally:
            part.stopping.set()
            thread.join()


PERSONAL = """
from dataclasses import dataclass
from typing import Annotated
import tailrace as tr

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

@customers.command
def register(state: Customer, customer: str, name: str):
    return Registered(customer, name)

counted = tr.view("counted", "SELECT count(*) AS n FROM customers")
"""


def test_a_subject_is_erased_at_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "shop"
    (home / "pipelines").mkdir(parents=True)
    (home / "pipelines" / "people.py").write_text(PERSONAL)
    monkeypatch.chdir(home)
    runner = CliRunner()

    def ask(*words: str) -> dict[str, Any]:
        answer = runner.invoke(cli, ["erase", *words, "--json"])
        told: dict[str, Any] = json.loads(answer.output)
        return told | {"exit": answer.exit_code}

    with BrokerThread(
        home / ".tailrace" / "log", durable=False, settings={"log.cleaner.backoff.ms": "50"}
    ) as broker:
        text = f'[project]\nname = "shop"\n[log]\nbootstrap = "{broker.address}"\n'
        (home / "tailrace.toml").write_text(text)
        checked = runner.invoke(cli, ["check"])
        assert "events-key" in checked.output + checked.stderr
        (home / "tailrace.toml").write_text(text + f'[events]\nkey = "{"k" * 40}"\n')
        checked = runner.invoke(cli, ["check"])
        assert "events-key" not in checked.output + checked.stderr
        assert "k" * 40 not in checked.output
        loaded = load(home)
        with (
            connect(broker.address) as log,
            loaded.events["customers"].open(log, index=home / ".tailrace" / "events") as shop,
        ):
            shop.execute("register", "c1", customer="17", name="Wilhelmina Zonderling")
            shop.execute("register", "c2", customer="18", name="Bob")
            dry = ask("subject", "customer:17", "--dry-run")
            assert (dry["counts"], len(dry["keys"]), dry["erased"]) == ({"customers": 1}, 1, False)
            assert any("backups" in each for each in dry["unreachable"])
            assert json.loads(runner.invoke(cli, ["erase", "list", "--json"]).output) == []
            done = ask("subject", "customer:17", "--reason", "request 4711")
            assert (done["exit"], done["state"], done["counts"]) == (0, "done", {"customers": 1})
            (listed,) = json.loads(runner.invoke(cli, ["erase", "list", "--json"]).output)
            assert (listed["id"], listed["reason"]) == (done["id"], "request 4711")
            found = ask("verify", done["id"], "--needle", "Wilhelmina Zonderling")
            assert (found["exit"], found["good"], found["needles"]) == (0, True, [])
            there = ask("verify", done["id"], "--needle", "request 4711")
            assert there["exit"] == 1  # a text that is there is found
            assert any(each.startswith("log:__tailrace_erased") for each in there["needles"])
            position = shop.history("c2")[0].position
            dry = ask("record", position, "--dry-run")
            assert (dry["counts"], dry["exit"]) == ({"customers": 1}, 0)
            assert not any("counted" in each for each in dry["unreachable"])
            done = ask("record", position, "--reason", "request 4712")
            assert (done["exit"], done["state"], done["kind"]) == (0, "done", "record")
            assert done["places"] == {"views of shop": "waiting"}
            found = ask("verify", done["id"])  # the project does not run: nobody cleared its views
            assert (found["good"], found["waiting"], found["exit"]) == (False, ["views of shop"], 1)
            with closing(ErasedRecords(broker.address, "views of shop")) as waiting:
                assert list(waiting.waiting()) == [done["id"]]
                waiting.cleared([done["id"]])
            found = ask("verify", done["id"])
            assert (found["good"], found["places"]) == (True, {"views of shop": "done"})
            done = ask("key", "customers", "c2", "--reason", "request 4712")
            assert (done["exit"], done["state"], done["counts"]) == (0, "done", {"customers": 1})
            kinds = [
                row["kind"]
                for row in json.loads(runner.invoke(cli, ["erase", "list", "--json"]).output)
            ]
            assert kinds == ["subject", "record", "key"]
        for words in (
            ("subject", "customer:18"),
            ("verify", "e-none"),
            ("record", "customers/0:0"),
            ("record", "customers/0:999", "--reason", "x"),
            ("key", "customers", "nobody", "--reason", "x"),
        ):
            assert runner.invoke(cli, ["erase", *words]).exit_code != 0
