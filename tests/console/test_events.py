"""Event topics by HTTP and on the page: decisions, states, histories, owners."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from playwright.sync_api import Page, expect

from servers.consoles import Console
from servers.sites import CHROMIUM, Site
from tailrace.client.log import connect
from tailrace.console.app import Served, create_app
from tailrace.console.figures import Figures
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Access, Guard
from tailrace.facts.erasures import Erasures
from tailrace.facts.excising import erase_records
from tailrace.facts.metrics import publish_events
from tailrace.facts.process import figures
from tailrace.pipelines.spark.importable import forget_modules
from tailrace.project import load, scaffold
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views
from tailrace.telemetry.metrics import exposition
from tailrace.testing.changelogs import MemoryLog, TickWriter

BANK = """
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
    if amount == 13:
        raise ValueError("unlucky")
    return Deposited(amount)

@accounts.command
def name(state: Account, id: str):
    return Opened(id)
"""


CLOSE = """
@accounts.command
def close(state: Account):
    return None
"""
PEOPLE = """
from dataclasses import dataclass
from typing import Annotated
import tailrace as tr

@dataclass(frozen=True)
class Named:
    person: str
    name: Annotated[str, tr.personal("person")]

@dataclass(frozen=True)
class Person:
    name: str = ""

people = tr.events("people", Named, state=Person, partitions=1)

@people.evolve
def person(state, event):
    match event:
        case Named(_, name):
            return Person(name)
"""


REACTING = """
import tailrace as tr
from pipelines.bank import Account, Opened, accounts, deposit

@tr.reaction("welcome", accounts, key="stream")
def welcome(state, fact):
    match fact.event:
        case Opened():
            yield tr.later("2 days", "look")
            yield tr.send(deposit, fact.stream, amount=5)
"""


@pytest.fixture
def console(tmp_path: Path, tailrace_broker: str) -> Iterator[Console]:
    """A console of a project with an event topic, which nobody owns yet."""
    scaffold.create(tmp_path / "shop")
    (tmp_path / "shop" / "pipelines" / "bank.py").write_text(BANK)
    project = load.load(tmp_path / "shop")
    log = MemoryLog()
    ticks = TickWriter(log, "shop")
    ticks.declare("open_orders", ["country"], [("country", "STRING"), ("orders", "BIGINT")])
    views = Views(tmp_path / "views")
    topics = Figures(tailrace_broker)
    served = Served(project, tailrace_broker, views, topics)
    app = Guard(FastLookups(create_app(served), views), Access("127.0.0.1", None))
    with (
        Follower(tmp_path / "views", log, "shop") as follower,
        TestClient(app, base_url="http://127.0.0.1:8080") as client,
    ):
        yield Console(client, ticks, follower, served)
    topics.close()
    views.close()


@pytest.fixture
def owned(console: Console, tmp_path: Path) -> Iterator[Console]:
    """The same with an owner in this process."""
    declared = console.served.project.events["accounts"]
    with connect(console.served.bootstrap) as log, declared.open(log, index=tmp_path / "i"):
        yield console


def post(console: Console, path: str, body: Any = None, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return console.client.post(f"/api/events/accounts/{path}", content=content, headers=named)


def test_a_decision_by_http(owned: Console) -> None:
    first = post(owned, "a/open_account", {"owner": "ann"}, If_Match='"0"', Tailrace_Actor="ann")
    assert first.status_code == 200
    assert first.headers["etag"] == '"1"'
    told = first.json()
    assert told["events"] == [{"type": "Opened", "owner": "ann"}]
    assert (told["version"], told["state"]) == (1, {"owner": "ann", "balance": 0})
    assert told["position"] == first.headers["tailrace-position"]
    for _ in range(2):
        found = post(owned, "a/deposit", {"amount": 50}, Idempotency_Key="once")
        assert found.json()["version"] == 2
    assert found.json()["repeated"]
    state = owned.client.get("/api/events/accounts/a").json()
    assert (state["version"], state["state"]["balance"]) == (2, 50)
    assert state["position"] == found.json()["position"]
    for question in ("version=1", f"at={told['position']}"):
        then = owned.client.get(f"/api/events/accounts/a?{question}").json()
        assert (then["version"], then["state"]) == (1, {"owner": "ann", "balance": 0})
    history = owned.client.get("/api/events/accounts/a/history").json()
    assert [(e["type"], e["actor"], e["name"]) for e in history["events"]] == [
        ("Opened", "ann", "open_account"),
        ("Deposited", None, "deposit"),
    ]
    page = owned.client.get("/api/events/accounts/a/history?first=2&limit=1").json()
    assert ([e["version"] for e in page["events"]], page["next"]) == ([2], 3)
    odd = post(owned, "north%2F7/deposit", {"amount": 1})
    assert odd.json()["version"] == 1
    assert owned.client.get("/api/events/accounts/north%2F7").json()["version"] == 1


def test_answers_that_say_no(owned: Console) -> None:
    post(owned, "a/deposit", {"amount": 5})
    cases: list[tuple[Response, int, str]] = [
        (post(owned, "a/deposit", {"amount": 0}), 422, "nothing"),
        (post(owned, "a/deposit", {"amount": 1}, If_Match='"7"'), 409, "version-conflict"),
        (post(owned, "a/deposit", {"amount": "many"}), 400, "command-arguments"),
        (post(owned, "a/deposit", {}), 400, "command-arguments"),
        (post(owned, "a/deposit", [1]), 400, "command-arguments"),
        (post(owned, "a/deposit", b"{"), 400, "command-arguments"),
        (post(owned, "a/name", {"id": "x"}), 400, "command-arguments"),
        (post(owned, "a/deposit", {"amount": 1}, If_Match="seven"), 400, "usage"),
        (post(owned, "a/deposit", {"amount": 13}), 500, "command-failed"),
        (post(owned, "a/withdraw", {"amount": 1}), 404, "command-unknown"),
        (owned.client.get("/api/events/nothing/a"), 404, "unknown-name"),
        (owned.client.get("/api/events/accounts/a?at=never"), 400, "usage"),
        (owned.client.get("/api/events/accounts/a?version=-1"), 422, "usage"),
        (owned.client.get("/api/events/accounts/" + "s" * 600), 400, "usage"),
    ]
    for answer, status, code in cases:
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert owned.client.get("/api/events/accounts/a").json()["version"] == 1


def test_nothing_is_made_by_looking(console: Console) -> None:
    answer = console.client.get("/api/events/accounts/a")
    assert (answer.status_code, answer.json()["code"]) == (503, "owner-missing")
    with connect(console.served.bootstrap) as log:
        assert log.topic("accounts") is None
    (told,) = console.client.get("/api/events").json()["topics"]
    assert (told["topic"], told["types"], told["events"]) == ("accounts", ["Opened", "Deposited"], None)  # fmt: skip
    assert told["commands"]["deposit"] == ["amount"]


def test_what_is_declared_otherwise_is_opened_otherwise(owned: Console) -> None:
    assert "close" not in owned.client.get("/api/events/accounts").json()["commands"]
    home = owned.served.project.directory
    (home / "pipelines" / "bank.py").write_text(BANK + CLOSE)
    for compiled in home.rglob("*.pyc"):
        compiled.unlink()
    forget_modules(home)
    owned.served.project = load.load(home)
    assert "close" in owned.client.get("/api/events/accounts").json()["commands"]
    assert owned.client.get("/api/events/accounts/ann").json()["version"] == 0


def test_viewers_do_not_see_personal_fields(console: Console) -> None:
    home = console.served.project.directory
    (home / "pipelines" / "people.py").write_text(PEOPLE)
    console.served.project = load.load(home)
    app = Guard(create_app(console.served), Access("127.0.0.1", "o" * 40, viewer="v" * 40))
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:

        def ask(path: str, token: str) -> tuple[int, str]:
            answer = client.get(path, headers={"authorization": f"Bearer {token * 40}"})
            return answer.status_code, answer.json().get("code", "")

        for path in ("/api/events/people/ann", "/api/events/people/ann/history"):
            assert ask(path, "v") == (403, "console-viewer")
            assert ask(path, "o")[0] == 503  # nobody has made the topic yet
        assert ask("/api/events/accounts/ann", "v")[0] == 503
        assert ask("/api/events", "v")[0] == 200


def test_owners_and_fences(owned: Console) -> None:
    told = owned.client.get("/api/events/accounts").json()
    assert [each["partition"] for each in told["owners"]] == [0, 1]
    assert all(each["owner"].startswith("127.0.0.1:") for each in told["owners"])
    assert all(each["producer_id"] >= 0 and each["epoch"] >= 0 for each in told["owners"])


def test_figures_of_an_owner_become_metrics(console: Console, tmp_path: Path) -> None:
    declared = console.served.project.events["accounts"]
    with (
        connect(console.served.bootstrap) as log,
        declared.open(log, index=tmp_path / "i") as bank,
    ):
        bank.execute("deposit", "a", amount=5)
        publish_events([{"kind": "events", "topics": {"accounts": figures(bank)}}])
    told = exposition().decode()
    for name in ("", "_streams", "_written", "_commands"):
        assert f'tailrace_events{name}{{topic="accounts"}} 1.0' in told
    assert 'tailrace_events_owned_partitions{topic="accounts"} 2.0' in told


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser")
def test_a_stream_through_time_on_the_page(page: Page, site: Site, owned: Console) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\">"
    post(owned, "a/open_account", {"owner": hostile}, Tailrace_Actor="teller")
    for amount in (10, 20, 30):
        post(owned, "a/deposit", {"amount": amount})
    page.goto(f"{site.address}/#/events")
    page.get_by_role("link", name="accounts").click()
    expect(page.get_by_role("table", name="Owners")).to_contain_text("127.0.0.1:")
    page.get_by_label("Stream").fill("a")
    page.get_by_role("button", name="Show its history").click()
    line, state = (
        page.get_by_role("list", name="Time line"),
        page.get_by_role("table", name="State"),
    )
    expect(line.locator("> li")).to_have_count(4)
    expect(state).to_contain_text("60")
    expect(line.locator('[aria-current="step"]')).to_contain_text("30")
    page.get_by_role("slider", name="Version").fill("2")
    expect(page.locator('[data-live="version"]')).to_have_text("2")
    expect(state).to_contain_text("10")
    expect(state).not_to_contain_text("60")
    line.get_by_role("button", name="1", exact=True).click()
    expect(state).to_contain_text("<img src=x")
    assert page.title() == "Tailrace"
    page.get_by_role("button", name="Now").click()
    post(owned, "a/deposit", {"amount": 5})
    expect(state).to_contain_text("65")
    expect(line.locator("> li")).to_have_count(5)


def test_reactions_and_erasures_are_told(owned: Console, page: Page, site: Site) -> None:
    assert owned.client.get("/api/reactions").json() == {"reactions": []}
    assert owned.client.get("/api/erasures").json() == {"erasures": []}
    home = owned.served.project.directory
    (home / "pipelines" / "reacting.py").write_text(REACTING)
    owned.served.project = load.load(home)
    reaction = owned.served.project.reactions["welcome"]
    opened = post(owned, "r/open_account", {"owner": "Ann"}).json()
    with connect(owned.served.bootstrap) as log, reaction.open(log, index=home / "index"):
        until(lambda: open_processes(owned) != [])
        (process,) = open_processes(owned)
        assert (process["process"], process["stuck"]) == ("r", False)
        assert [each["name"] for each in process["timers"]] == ["look"]
        assert "state" not in process
        book = Erasures(log)
        erased = erase_records(log, book, [opened["position"]], "request 4711")
        book.close()
    (told,) = owned.client.get("/api/erasures").json()["erasures"]
    assert (told["id"], told["kind"], told["state"]) == (erased.id, "record", "done")
    assert told["counts"] == {"accounts": 1}
    page.goto(f"{site.address}/#/events")
    expect(page.get_by_role("table", name="Open processes")).to_contain_text("look")
    expect(page.get_by_role("table", name="Erasures")).to_contain_text("request 4711")


def open_processes(console: Console) -> list[dict[str, Any]]:
    (told,) = console.client.get("/api/reactions").json()["reactions"]
    assert (told["reaction"], told["sources"], told["error"]) == ("welcome", ["accounts"], "")
    found: list[dict[str, Any]] = told["processes"]
    return found


def until(told: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.1)
