"""A project's worker: its settings, its place among the parts, the connectors it declares."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from connectors.conftest import PLUGINS, until
from tailrace import config
from tailrace.client.log import Log
from tailrace.connectors.serve import Settings, run
from tailrace.errors import ConfigValueError, OpenListenerError, UsageError
from tailrace.node.parts import parts_of
from tailrace.project.graph import build
from tailrace.project.load import load
from tailrace.telemetry.part import Part, read_reports

TOML = """
[project]
name = "shop"

[connect]
listen = "127.0.0.1:8083"

[connect.settings]
"session.timeout.ms" = 8000

[connect.connectors.lines]
connector.class = "FileTail"
path = "/var/log/x*"
topic = "lines"

[connect.connectors.out]
"connector.class" = "FileStreamSink"
topics = "lines, others"
"""


def test_a_project_declares_connectors(tmp_path: Path) -> None:
    (tmp_path / config.FILE_NAME).write_text(TOML)
    (tmp_path / "connectors").mkdir()
    chosen = config.load(tmp_path).connect
    assert chosen.settings == {"session.timeout.ms": "8000"}
    assert chosen.connectors["lines"] == {"connector.class": "FileTail", "path": "/var/log/x*", "topic": "lines"}  # fmt: skip
    assert chosen.plugins == tmp_path / "connectors"
    project = load(tmp_path)
    assert "connect" in [part.kind for part in parts_of(project)]
    assert set(build(project).edges) == {
        ("connector:lines", "lines"), ("lines", "connector:out"), ("others", "connector:out"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ['[connect]\nlisten = "127.0.0.1:0"', '[connect.connectors.x]\ntopic = "t"',
     '[connect]\nlisten = "127.0.0.1:1"\nconnectors = {x = 3}'],
)  # fmt: skip
def test_sections_that_cannot_work_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / config.FILE_NAME).write_text(f"{text}\n")
    with pytest.raises(ConfigValueError):
        config.load(tmp_path)


def test_the_part_runs_what_is_declared_and_reports(address: str, log: Log, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    part = Part("connect", "connect", "shop", address, tmp_path)
    declared = {
        "lines": {"connector.class": "FileStreamSource", "topic": "declared", "file": str(tmp_path / "in.txt")},
        "wrong": {"connector.class": "FileStreamSource"},
    }  # fmt: skip
    given = {"config.storage.topic": "project-configs", "group.id": "project"}
    work = threading.Thread(target=run, args=(Settings("127.0.0.1:0", [PLUGINS], given), part, declared))  # fmt: skip
    work.start()
    try:
        until(lambda: log.topic("declared") is not None and len(list(log.read("declared"))) == 1)
        until(lambda: "wrong" in str(read_reports(tmp_path)[0].get("error")))

        def figures() -> tuple[object, ...]:
            [report] = read_reports(tmp_path)
            return report["connectors"], report["tasks"], report["leads"]

        until(lambda: figures() == (1, 1, True))  # a report is of a moment ago
        [report] = read_reports(tmp_path)
        assert 'configuration "topic"' in report["error"]["detail"]
    finally:
        part.stopping.set()
        work.join()


def test_a_worker_says_what_it_does_not_take(address: str, log: Log) -> None:
    from tailrace.connectors.serve import ConnectServer

    with pytest.raises(OpenListenerError):
        ConnectServer(log, address, Settings("0.0.0.0:0"))
    with pytest.raises(UsageError, match=r"session\.timeout") as told:
        ConnectServer(log, address, Settings("127.0.0.1:0", given={"session.timeout": "1"}))
    assert "session.timeout.ms" in told.value.hint
