"""A changed project is taken over while it runs: what differs, and nothing else."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tailrace.client.log import connect
from tailrace.client.schemas import Schemas
from tailrace.errors import TailraceError
from tailrace.node.changes import changes
from tailrace.node.plan import plan
from tailrace.node.supervisor import Supervisor
from tailrace.node.takeover import TakeOver, ask, read_answer
from tailrace.pipelines.spark.importable import VARIABLE, Freshness, forget_modules, mark_changed
from tailrace.project.load import load
from tailrace.project.marking import marks_of
from tailrace.project.marks import Marks
from tailrace.registry.serve import RegistryServer, Settings

HEAD = """
import tailrace as tr
from tailrace import sinks, sources
from pipelines import words

shop = sources.SQLite("shop", "shop.db", tables=["items"], history={"items": "forever"})
numbers = tr.topic("numbers", schema="id BIGINT")
"""
STREAMS = """
@tr.stream(numbers)
def small(frame):
    return frame.where(words.limit())

@tr.stream(numbers, key="id", to=sinks.SQLite("copy.db", table="large"))
def large(frame):
    # a comment
    return frame
"""
VIEW = 'totals = tr.view("totals", "SELECT id, count(*) AS c FROM numbers GROUP BY id", key="id")\n'


def write(home: Path, code: str, words: str = "'id < 5'", settings: str = "") -> None:
    (home / "pipelines").mkdir(exist_ok=True)
    (home / "tailrace.toml").write_text(
        '[project]\nname = "p"\n[log]\nlisten = "127.0.0.1:0"\n'
        '[console]\nlisten = "127.0.0.1:0"\n' + settings
    )
    (home / "pipelines" / "main.py").write_text(code)
    (home / "pipelines" / "words.py").write_text(f"def limit():\n    return {words}\n")


def marks(home: Path, code: str, words: str = "'id < 5'") -> Marks:
    """The marks of a project that is read for the first time."""
    write(home, code, words)
    for compiled in home.rglob("*.pyc"):
        compiled.unlink()  # it would be taken for the newest within the same second
    forget_modules(home)
    return marks_of(load(home))


@pytest.mark.parametrize(
    ("code", "words", "differing"),
    [
        (HEAD + VIEW + STREAMS.replace("# a comment", "# another\n"), "'id < 5'", set()),
        (HEAD + STREAMS + VIEW.replace("count(*)", "sum(id)"), "'id < 5'", {"views"}),
        (HEAD + STREAMS.replace("return frame\n", "return frame.limit(1)\n") + VIEW, "'id < 5'", {"large"}),
        (HEAD + STREAMS + VIEW, "'id < 6'", {"small", "large"}),  # both are in a file that imports it
        (HEAD + STREAMS.replace('table="large"', 'table="big"') + VIEW, "'id < 5'", {"sinks"}),
        (HEAD.replace('"forever"', '"9 days"') + STREAMS + VIEW, "'id < 5'", {"sources"}),
        (HEAD.replace("id BIGINT", "id INT") + STREAMS + VIEW, "'id < 5'", {"small", "large", "topics"}),
    ],
)  # fmt: skip
def test_a_mark_changes_with_its_declaration_and_the_code_it_uses(
    tmp_path: Path, code: str, words: str, differing: set[str]
) -> None:
    before, now = marks(tmp_path, HEAD + STREAMS + VIEW), marks(tmp_path, code, words)
    kinds = ("views", "sources", "sinks", "topics", "events", "sections")
    found = {kind for kind in kinds if getattr(before, kind) != getattr(now, kind)}
    found |= {name for name in now.streams if before.streams[name] != now.streams[name]}
    assert found == differing


def test_a_worker_imports_files_again_once_they_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks(tmp_path, HEAD + STREAMS + VIEW)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    worker = Freshness()
    worker.renew()
    assert sys.modules["pipelines.words"].limit() == "id < 5"
    mark_changed(tmp_path)
    worker.renew()
    assert "pipelines.words" not in sys.modules
    load(tmp_path)
    worker.renew()  # once, and not before every task
    assert "pipelines.words" in sys.modules


UNDESCRIBED = """
from dataclasses import dataclass
import tailrace as tr

@dataclass(frozen=True)
class Paid:
    amount: int

@dataclass(frozen=True)
class Account:
    paid: int = 0

accounts = tr.events("accounts", Paid, state=Account, partitions=1, publish=True)

@accounts.evolve
def evolve(state: Account, event: Paid) -> Account:
    match event:
        case Paid(amount):
            return Account(state.paid + amount)

clicks = tr.topic("clicks")
payments = tr.topic("payments", schema="card BIGINT, amount BIGINT, at TIMESTAMP")
theft = tr.pattern("theft", payments, key="card", order_by="at", within="5 minutes",
    match="probe theft", define={"probe": "amount < 2", "theft": "amount > 500"},
    select={"stolen": "last(theft.amount)"})
"""
VIEWS = """
paid = tr.view("paid", "SELECT stream, version, amount FROM accounts.paid")
states = tr.view("states", "SELECT stream, paid FROM accounts.state", key="stream")
thefts = tr.view("thefts", "SELECT card, sum(stolen) AS stolen FROM theft GROUP BY card", key="card")
users = tr.view("users", "SELECT user, count(*) AS n FROM clicks GROUP BY user", key="user")
"""


def test_views_of_what_no_source_describes_are_compared_too(
    tailrace_broker: str, tmp_path: Path
) -> None:
    clicks = {"type": "object", "properties": {"user": {"type": "string"}}}
    with connect(tailrace_broker) as log, RegistryServer(log, Settings("127.0.0.1:0")) as registry:
        registry.start()
        url = f"http://{registry.address}"
        Schemas(url).register("clicks-value", json.dumps(clicks), kind="JSON")
        settings = f'[registry]\nurl = "{url}"\n'
        write(tmp_path, UNDESCRIBED, settings=settings)
        before = marks_of(load(tmp_path))
        write(tmp_path, UNDESCRIBED + VIEWS, settings=settings)
        for compiled in tmp_path.rglob("*.pyc"):
            compiled.unlink()
        forget_modules(tmp_path)
        project = load(tmp_path)
        found = changes(before, project, marks_of(project), tailrace_broker)
    views = {(one.name, one.change) for one in found if one.kind == "view"}
    assert views == {(name, "new") for name in ("paid", "states", "thefts", "users")}


CLICKS = """
import tailrace as tr
clicks = tr.topic("clicks", schema="id BIGINT, at TIMESTAMP", time="at", late="drop", lateness="5 seconds")
seen = tr.view("seen", "SELECT id, at FROM clicks", key="id", indexes=["at"])
"""


@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [
        (CLICKS.replace("5 seconds", "9 seconds"), "topic", "clicks"),
        (CLICKS.replace('["at"]', '["id"]'), "settings", "indexes of views"),
    ],
)
def test_what_no_operator_shows_is_a_change_too(
    tailrace_broker: str, tmp_path: Path, code: str, kind: str, name: str
) -> None:
    before, now = marks(tmp_path, CLICKS), marks(tmp_path, code)
    found = changes(before, load(tmp_path), now, tailrace_broker)
    assert [(one.kind, one.name, one.change) for one in found] == [(kind, name, "take over")]


SOURCE = """
from tailrace import sources
shop = sources.SQLite("shop", "shop.db", tables=["items"])
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("CREATE TABLE more (id INTEGER PRIMARY KEY)")
        connection.commit()
    write(tmp_path, SOURCE)
    return tmp_path


class Running:
    """A project of a log, a console and a source: quick to start."""

    def __init__(self, home: Path, supervisor: Supervisor) -> None:
        self.home = home
        self.supervisor = supervisor
        self.said: list[str] = []
        self.changes = TakeOver(supervisor, self.said.append)

    def until(self, true: Callable[[], object], *, step: bool = True) -> None:
        for _ in range(2400):
            if true():
                return
            self.supervisor.run_once(0.05)
            if step:
                self.changes.step()
        raise AssertionError("it did not come true")

    def apply(self, *, dry_run: bool = False) -> dict[str, object]:
        answer = ask(self.supervisor.directory, dry_run=dry_run)
        asked = answer.with_suffix(".ask")
        self.until(lambda: not asked.exists())
        found = read_answer(answer)
        assert found is not None
        return found

    def pids(self) -> dict[str, int]:
        run = self.supervisor.directory / "run"
        return {
            path.stem: json.loads(path.read_text()).get("pid", 0) for path in run.glob("*.json")
        }


@pytest.fixture
def running(home: Path) -> Iterator[Running]:
    with Supervisor(plan(home), echo=lambda line: None) as supervisor:
        supervisor.start()
        running = Running(home, supervisor)
        running.until(supervisor.ready)
        yield running
        running.changes.close()


def changed(answer: dict[str, object]) -> list[tuple[str, str, str]]:
    listed = answer["changes"]
    assert isinstance(listed, list)
    return [(one["change"], one["kind"], one["name"]) for one in listed]


def test_sources_come_change_and_go_while_the_rest_runs(running: Running) -> None:
    first = running.pids()
    crm = 'crm = sources.SQLite("crm", "shop.db", tables=["more"])\n'
    write(running.home, SOURCE + crm)

    shown = running.apply(dry_run=True)
    assert (shown["state"], changed(shown)) == ("prepared", [("new", "source", "crm")])
    assert running.pids() == first  # nothing was done

    assert changed(running.apply()) == [("new", "source", "crm")]
    running.until(running.supervisor.ready)
    both = running.pids()
    assert {name: pid for name, pid in both.items() if name != "source-crm"} == first

    write(running.home, SOURCE.replace('["items"]', '["items", "more"]'))
    found = running.apply()
    assert changed(found) == [("restart", "source", "shop"), ("remove", "source", "crm")]
    running.until(running.supervisor.ready)
    after = running.pids()
    assert after.keys() == first.keys()
    assert [name for name in first if after[name] != first[name]] == ["source-shop"]
    with pytest.raises(ProcessLookupError):
        os.kill(both["source-crm"], 0)


def test_files_that_are_wrong_change_nothing(running: Running) -> None:
    first = running.pids()
    write(running.home, SOURCE + "sources.SQLITE()\n")
    found = running.apply()
    assert (found["state"], found["error"]["code"]) == ("failed", "user-file")  # type: ignore[index]
    write(running.home, SOURCE, settings="[spark]\nshards = 7\n")
    found = running.apply()
    assert (found["state"], found["error"]["code"]) == ("failed", "needs-restart")  # type: ignore[index]
    write(running.home, SOURCE)
    assert running.apply()["state"] == "nothing"
    assert running.pids() == first
    assert running.supervisor.ready()


def test_a_watched_project_is_taken_over_when_a_file_changes(running: Running) -> None:
    running.changes.watch = True
    crm = 'crm = sources.SQLite("crm", "shop.db", tables=["more"])\n'
    write(running.home, SOURCE + crm)
    running.until(lambda: "taken over" in running.said)
    assert running.said == ["the project changed:", "  new source crm", "taken over"]
    running.until(lambda: "source-crm" in running.pids())
    write(running.home, SOURCE + "nonsense\n")
    running.until(lambda: len(running.said) == 5)
    assert "NameError" in running.said[-1]


def test_apply_outside_of_a_running_project_says_so(home: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("tailrace")), "apply", str(home)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "this project does not run" in done.stderr


def test_the_error_of_another_process_is_the_same_error() -> None:
    from tailrace.errors import reported
    from tailrace.node.errors import NeedsRestartError

    error = NeedsRestartError("no", detail="why", hint="how")
    again = reported(error.as_dict())
    assert (type(again), again.render()) == (NeedsRestartError, error.render())
    assert type(reported({"error": "x", "code": "of a later version"})) is TailraceError
