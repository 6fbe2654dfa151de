"""TAB completes what the project has."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.telemetry.part import Part


def completed(*typed: str) -> list[str]:
    *before, begun = typed
    found = BashComplete(cli, {}, "tailrace", "_X").get_completions(before, begun)
    return [item.value for item in found]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "shop"
    home.mkdir()
    (home / "tailrace.toml").write_text('[project]\nname = "p"\n')
    part = Part("p", "pipelines", "p", "x", home / ".tailrace")
    part.report(
        "running",
        views={"open_orders": "", "old": ""},
        streams={"alerts": {}},
        patterns={"theft": {}},
    )
    events = Part("events", "events", "p", "x", home / ".tailrace")
    events.report("running", topics={"accounts": {}})
    for kind, name in (("sink", "open_orders.sqlite"), ("source", "shop")):
        Part(name, kind, "p", "x", home / ".tailrace").report("running")
    monkeypatch.chdir(home)
    return home


def test_names_of_the_project_are_completed(project: Path) -> None:
    assert completed("view", "get", "o") == ["old", "open_orders"]
    assert completed("view", "get", "op") == ["open_orders"]
    assert completed("view", "rebuild", "old", "o") == ["open_orders"]
    assert completed("pipeline", "status", "") == ["alerts", "old", "open_orders"]
    assert completed("sink", "verify", "") == ["open_orders.sqlite"]
    assert completed("source", "doctor", "s") == ["shop"]
    assert completed("pattern", "show", "t") == ["theft"]
    assert completed("events", "show", "a") == ["accounts"]


def test_another_project_is_named_by_its_option(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert completed("view", "get", "o") == []
    assert completed("view", "get", "--project", str(project), "o") == ["old", "open_orders"]


def test_topics_are_asked_of_a_log_that_answers(project: Path, tailrace_broker: str) -> None:
    assert completed("topic", "read", "cl") == []  # nothing listens at the project's address
    with Admin(tailrace_broker) as admin:
        admin.ensure_topic("clicks", 1, {})
    settings = f'[project]\nname = "p"\n[log]\nlisten = "{tailrace_broker}"\n'
    (project / "tailrace.toml").write_text(settings)
    assert completed("topic", "read", "cl") == ["clicks"]
