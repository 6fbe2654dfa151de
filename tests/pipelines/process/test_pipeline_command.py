"""`tailrace pipeline …` on a project that has ticked."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_ticks import in_process
from tailrace.cli.pipeline import pipeline
from tailrace.client.writer import TransactionalWriter
from tailrace.errors import UsageError
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.process import requests
from tailrace.pipelines.reading.catalog import read_catalog
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams.beginnings import Beginning, InputStart, record
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.project.load import load
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed

DECLARED = """
import tailrace as tr
paid = tr.view("{s}_paid", "SELECT id, amount FROM {s}.orders WHERE status = 'paid'", key="id")

@tr.stream(tr.topic("{s}_clicks", schema="user STRING"), name="{s}_users")
def users(frame):
    return frame
"""


class Ticked:
    """A project directory whose views have ticked once."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.name = f"shop{uuid.uuid4().hex[:6]}"
        self.bootstrap = bootstrap
        self.directory = directory
        (directory / "pipelines").mkdir(parents=True)
        (directory / "tailrace.toml").write_text(
            f'[project]\nname = "{self.name}"\n[log]\nbootstrap = "{bootstrap}"\n'
        )
        (directory / "pipelines" / "shop.py").write_text(DECLARED.format(s=self.name))
        state = directory / ".tailrace"
        with (
            ChangeFeed(bootstrap, self.name, [ORDERS, CUSTOMERS]) as feed,
            LogReader(bootstrap) as reader,
        ):
            self.feed = feed
            with TransactionalWriter(bootstrap, "bad") as bad:
                bad.init()
                bad.send(feed.topic("orders"), 0, b'{"id":9999}', b"{not json")
                bad.commit()
            position = [feed.transaction(*c) for c in traffic(3, 20)][-1]
            project = load(directory)
            ticks = ProjectTicks(
                compile_views(project.views.values(), read_catalog(reader).tables.values()),
                TickSettings(self.name, bootstrap, str(state / "state"), str(state / "cache")),
                in_process,
            )
            ticks.start()
            for _ in range(100):
                if ticks.main.last.positions.get(self.name) == position:
                    break
                ticks.step(0.5)
            part = Part(self.name, "pipelines", self.name, bootstrap, state)
            main = ticks.main
            dead = {name: main.dead_of(name) for name in main.graph.views}
            part.report("running", tick=main.last.number, lag=0, dead=main.dead, dead_by_view=dead)
            ticks.close()

    def call(self, *arguments: str) -> Any:
        result = CliRunner().invoke(
            pipeline, [*arguments, "--log", str(self.directory)], catch_exceptions=False
        )
        assert result.exit_code == 0, result.output
        return result.output


@pytest.fixture
def ticked(tailrace_broker: str, tmp_path: Path) -> Ticked:
    return Ticked(tailrace_broker, tmp_path / "project")


def test_the_command_shows_pipelines_state_and_dead_letters(ticked: Ticked) -> None:
    listed = orjson.loads(ticked.call("list", "--json"))
    assert [(row["name"], row["kind"]) for row in listed] == [
        (f"{ticked.name}_paid", "view"),
        (f"{ticked.name}_users", "stream"),
    ]
    status = orjson.loads(ticked.call("status", f"{ticked.name}_paid", "--json"))
    assert status["state"] == "running"
    assert status["dead"] == 1
    state = orjson.loads(ticked.call("state", f"{ticked.name}_paid", "--json"))
    orders = len(ticked.feed.rows["orders"])
    paid = sum(row["status"] == "paid" for row in ticked.feed.rows["orders"].values())
    assert sorted(row["rows"] for row in state) == sorted([orders, paid])
    some = next(iter(ticked.feed.rows["orders"].values()))
    entries = orjson.loads(ticked.call("state", f"{ticked.name}_paid", "--key", f'"id":{some["id"]}}}', "--json"))  # fmt: skip
    assert entries
    (letter,) = orjson.loads(ticked.call("dead-letters", f"{ticked.name}_paid", "--json"))
    assert letter["position"].startswith(f"log:{ticked.feed.topic('orders')}/0:")
    with pytest.raises(UsageError, match="behind newer ones"):
        ticked.call("dead-letters", f"{ticked.name}_paid", "--retry")
    with pytest.raises(UsageError, match="no pipeline"):
        ticked.call("status", "nonsense")


def test_where_a_stream_begins_is_shown(ticked: Ticked) -> None:
    users = f"{ticked.name}_users"
    assert orjson.loads(ticked.call("status", users, "--json"))["begins"] is None
    orders = ticked.feed.topic("orders")
    wanted = Beginning(users, (InputStart((orders, "absent"), "latest"), None))
    record(ticked.directory / ".tailrace", ticked.bootstrap, [wanted])
    begins = orjson.loads(ticked.call("status", users, "--json"))["begins"]
    assert begins["inputs"][0]["offsets"][orders]["0"] > 0
    assert begins["inputs"][1] == {"topics": None, "offsets": None}
    assert begins["written_at"].endswith("+00:00")
    shown = ticked.call("status", users)
    assert f"{orders}/0@{begins['inputs'][0]['offsets'][orders]['0']}" in shown
    assert "absent: its first record" in shown
    assert "a view: its first record" in shown


def test_a_traceback_is_shown_to_who_asks_for_it(ticked: Ticked) -> None:
    paid = f"{ticked.name}_paid"
    part = Part(ticked.name, "pipelines", ticked.name, ticked.bootstrap, ticked.directory / ".tailrace")  # fmt: skip
    trace = "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'att'"
    part.report("lagging", failed={paid: {"error": trace, "code": "bug"}})
    assert "KeyError: 'att'" in ticked.call("status", paid)
    assert "Traceback" not in ticked.call("status", paid)
    assert "Traceback" in ticked.call("status", paid, "--verbose")


def test_a_view_that_was_put_aside_is_told_with_its_error(ticked: Ticked) -> None:
    paid, users = f"{ticked.name}_paid", f"{ticked.name}_users"
    part = Part(ticked.name, "pipelines", ticked.name, ticked.bootstrap, ticked.directory / ".tailrace")  # fmt: skip
    error = {
        "error": "division by zero",
        "detail": paid,
        "hint": "try_divide",
        "code": "evaluation",
    }
    progress = {users: {"state": "running", "batch": 3, "busy_seconds": 95}}
    part.report("lagging", failed={paid: error}, error=error, streams=progress, tick=7)
    listed = orjson.loads(ticked.call("list", "--json"))
    assert [(row["name"], row["state"]) for row in listed] == [
        (paid, "failed"),
        (users, "running, 95 s in a batch"),
    ]
    assert orjson.loads(ticked.call("status", paid, "--json"))["error"] == error
    assert "evaluation]\n  " in ticked.call("status", paid)
    assert "batch           3\n" in ticked.call("status", users)
    assert orjson.loads(ticked.call("status", users, "--json"))["error"] is None
    part.report("lagging", failed={"another": error}, error=error, forgotten={"rates": 3})
    told = orjson.loads(ticked.call("status", paid, "--json"))
    assert (told["error"], told["state"], told["forgotten"]) == (None, "running", {"rates": 3})
    part.report("running", failed={}, error=error)  # of another part of the process
    assert orjson.loads(ticked.call("status", paid, "--json"))["error"] is None


def test_restart_and_reset_leave_wishes_that_are_taken_once(ticked: Ticked) -> None:
    directory = ticked.directory / ".tailrace"
    ticked.call("restart", f"{ticked.name}_paid")
    ticked.call("reset", f"{ticked.name}_users")
    first, second = requests.waiting(directory)
    assert (first.action, second.action) == ("restart", "reset")
    first.done()
    assert [r.action for r in requests.waiting(directory)] == ["reset"]


def test_dead_letters_of_a_stream_are_read_again_by_it_alone(tailrace_broker: str) -> None:
    from tailrace.pipelines.engine.dead_record import DeadRecord
    from tailrace.pipelines.reading.decode import dead_key, dead_letter
    from tailrace.pipelines.streams.dead_letters import (
        attempts,
        letters,
        retry_headers,
        retry_letters,
    )

    records = [
        DeadRecord("clicks", 0, offset, "bad", b"k", b"v%d" % offset, (("trace", b"t"),), 99, "a stack")
        for offset in (11, 7)
    ]  # fmt: skip
    with TransactionalWriter(tailrace_broker, "w") as writer:
        writer.init()
        writer.send("clicks", 0, b"x", b"y")
        for record in records:
            writer.send("users.dead", 0, dead_key(record), dead_letter(record))
        writer.commit()
    first, second = letters(tailrace_broker, "users.dead")
    assert (first["reason"], first["stack"], attempts(first)) == ("bad", "a stack", 0)
    assert retry_letters(tailrace_broker, "users.dead", ["log:clicks/0:8"]) == 0
    assert retry_letters(tailrace_broker, "users.dead", [second["position"]]) == 1
    assert retry_letters(tailrace_broker, "users.dead") == 1
    assert letters(tailrace_broker, "users.dead") == []
    with LogReader(tailrace_broker) as reader:
        assert [v for found in read_all(reader, "clicks") for v in found.values] == [b"y"]
        (again,) = read_all(reader, "users.retry")
    assert (again.keys, again.values) == ([b"k", b"k"], [b"v7", b"v11"])
    assert tuple(again.headers[0] or ()) == retry_headers(second)
    assert ("tailrace.attempt", b"1") in (again.headers[0] or ())
