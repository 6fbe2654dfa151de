"""Patterns while they run: by command and over HTTP, one that fails, inserts from now on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from fastapi import FastAPI
from fastapi.testclient import TestClient

from servers.patterns import Running, write
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.console.app import Json, Served
from tailrace.console.operate import _add_patterns
from tailrace.project import load, patterns

DECLARED = """
import tailrace as tr

payments = tr.topic("payments", schema="card INT, amount INT, at TIMESTAMP", time="at", late="drop")
tested = tr.pattern(
    "tested", payments, key="card", order_by="at", within="1 minute", match="probe{2,} -> theft",
    define={"probe": "amount < 2", "theft": "amount > 500"}, select={"probes": "count(probe)"},
)
broken = tr.pattern(
    "broken", payments, key="card", order_by="at", within="1 minute", match="a b",
    define={"b": "1 / a.amount > 0"},
)
"""


@pytest.fixture
def running(tmp_path: Path, tailrace_broker: str) -> Iterator[Running]:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "fraud.py").write_text(DECLARED)
    (tmp_path / "tailrace.toml").write_text(
        f'[project]\nname = "bank"\n[log]\nbootstrap = "{tailrace_broker}"\n'
    )
    with Admin(tailrace_broker) as admin:
        admin.ensure_topic("payments", 1, {})
    made = Running(load.load(tmp_path), tailrace_broker)
    yield made
    made.close()


def test_what_waits_in_a_pattern_is_seen_and_one_that_fails_stops_no_other(
    running: Running,
) -> None:
    write(
        running.bootstrap,
        (7, 1, 0), (7, 1, 1), (7, 900, 2), (8, 0, 3), (8, 1, 4), (8, 5, 5), (9, 1, 6),
    )  # fmt: skip
    running.until(lambda: running.show()["matches"] == 1)
    found = running.show(["8"])
    assert [(one["id"], one["open"]) for one in found["steps"]] == [("probe", 2), ("theft", 0)]
    assert found["edges"] == [["probe", "probe"], ["probe", "theft"]]
    assert found["oldest_open"] == "2026-01-01T00:00:03Z"
    first = found["partials"][0]
    assert [(row["variable"], row["row"]["amount"]) for row in first["rows"]] == [
        ("probe", 0), ("probe", 1),
    ]  # fmt: skip
    running.until(lambda: running.patterns.progress()["broken"]["state"] == "failed")
    error = running.patterns.progress()["broken"]["error"]
    assert isinstance(error, dict)
    assert "card = 8" in error["detail"]
    assert running.patterns.progress()["tested"]["state"] == "running"

    place = ["--project", str(running.project.directory)]
    runner = CliRunner()
    shown = runner.invoke(cli, ["pattern", "show", "tested", "--key", "8", *place])
    assert "probe     2" in shown.output
    assert "1 matches, 0 timed out, 0 taken back" in shown.output
    listed = runner.invoke(cli, ["pattern", "list", "--json", *place])
    assert [(one["name"], one["state"]) for one in orjson.loads(listed.output)] == [
        ("tested", "running"), ("broken", "failed"),
    ]  # fmt: skip
    explained = runner.invoke(cli, ["pattern", "explain", "tested", *place])
    assert "are counted and dropped" in explained.output
    assert "an automaton" in explained.output

    app = FastAPI(default_response_class=Json)
    served = Served(running.project, running.bootstrap, None, None)  # type: ignore[arg-type]
    _add_patterns(app, served, Json)
    with TestClient(app) as client:
        answer = client.get("/api/patterns/tested", params={"key": "8"}).json()
        assert answer == found
        names = [one["name"] for one in client.get("/api/patterns").json()["patterns"]]
        assert names == ["tested", "broken"]


def test_a_changed_pattern_is_compared_switched_and_dropped_by_command(
    running: Running,
) -> None:
    place = ["--project", str(running.project.directory)]
    runner = CliRunner()

    def said(*words: str) -> str:
        result = runner.invoke(cli, ["pattern", *words, *place])
        wrong = result.exception
        return result.output if wrong is None or isinstance(wrong, SystemExit) else str(wrong)

    write(running.bootstrap, (7, 1, 0), (7, 1, 1), (7, 900, 2), (8, 1, 3), (8, 1, 4), (8, 300, 5))
    running.until(lambda: running.show()["matches"] == 1)
    assert "nothing is built beside 'tested'" in said("switch", "tested")
    assert "is no place to begin" in said("rebuild", "tested", "--from", "yesterday")
    assert "there is no pattern 'testing'" in said("rebuild", "testing")
    running.close()
    assert "asked" in said("rebuild", "tested", "--hold")

    file = running.project.directory / "pipelines" / "fraud.py"
    file.write_text(DECLARED.replace("amount > 500", "amount > 200"))
    changed = Running(load.load(running.project.directory), running.bootstrap)
    try:

        def builds() -> list[tuple[int, bool]]:
            shown = orjson.loads(said("builds", "tested", "--json"))
            return [(one["generation"], one["shown"]) for one in shown]

        changed.until(lambda: builds() == [(1, True), (2, False)])
        changed.until(lambda: changed.show()["matches"] == 2)
        assert [one["tick"] > 0 for one in changed.show()["builds"]] == [True, True]
        found = orjson.loads(said("diff", "tested", "--json"))
        assert found["shown"] == []
        assert [one["card"] for one in found["beside"]] == [8]
        assert "is newer than the shown one" in said("rollback", "tested")
        assert "asked" in said("switch", "tested")
        changed.until(lambda: builds() == [(2, True), (1, False)])
        assert "only the one beside: 0" in said("diff", "tested")
        assert "is older than the shown one" in said("switch", "tested")
        assert "asked" in said("drop", "tested", "--yes")
        changed.until(lambda: builds() == [(2, True)])
    finally:
        changed.close()


def test_a_step_that_is_written_twice_is_two_steps(tmp_path: Path) -> None:
    from tailrace.pipelines.compiler.declared_patterns import compile_pattern
    from tailrace.pipelines.declare import pattern, topic

    events = topic("events", schema="k INT, x INT, at TIMESTAMP")
    declared = pattern(
        "p", events, key="k", order_by="at", match="up (down | flat)+ -> up", within="1 hour",
        define={"up": "x > 0", "down": "x < 0"},
    )  # fmt: skip
    drawing = patterns.drawing_of(compile_pattern(declared, {}, {}))
    assert drawing.steps == (("up", "up"), ("down", "down"), ("flat", "flat"), ("up_2", "up"))
    assert set(drawing.edges) == {
        ("up", "down"), ("up", "flat"), ("down", "down"), ("down", "flat"), ("flat", "down"),
        ("flat", "flat"), ("down", "up_2"), ("flat", "up_2"),
    }  # fmt: skip
