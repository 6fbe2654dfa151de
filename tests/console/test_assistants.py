"""What an assistant is answered: by the tools, and over the protocol itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servers.sites import Site
from tailrace.cli import assistants
from tailrace.cli.assistants import Answers
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.console_token import FILE
from tailrace.errors import UsageError
from tailrace.node.errors import NotRunningError
from tailrace.serving.errors import QueryError
from tailrace.telemetry.part import Part

TAILRACE = str(Path(sys.executable).with_name("tailrace"))


def test_views_topics_and_records_are_answered_and_bounded(
    site: Site, tailrace_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Answers(site.address)
    (view,) = answers.views()["views"]
    assert (view["name"], view["key"]) == ("open_orders", ["country"])
    found = answers.sql("SELECT country, orders FROM open_orders ORDER BY country")
    assert found["rows"] == [{"country": "DE", "orders": 1}, {"country": "NL", "orders": 2}]
    assert found["more"] is False
    assert answers.sql("SELECT 1", at_least=found["position"])["position"] == found["position"]
    assert answers.sql("SELECT * FROM range(1000)", limit=5)["more"] is True
    assert len(answers.sql("SELECT * FROM range(1000)", limit=10_000)["rows"]) == 200
    with pytest.raises(QueryError):
        answers.sql("CREATE TABLE x (a INT)")

    with Admin(tailrace_broker) as admin:
        admin.ensure_topic("clicks", 1, {})
    with TransactionalWriter(tailrace_broker, "test.clicks") as writer:
        writer.init()
        for number in range(300):
            writer.send("clicks", 0, b"k", b"%d" % number)
        writer.commit()
    newest = answers.tail("clicks", count=2)["records"]
    assert [record["value"] for record in newest] == ["299", "298"]
    assert len(answers.tail("clicks", count=10_000, start="earliest")["records"]) == 100

    monkeypatch.setattr(assistants, "MOST_CHARACTERS", 2_000)
    cut = answers.sql("SELECT range AS n, repeat('x', 50) AS t FROM range(200)", limit=200)
    assert len(json.dumps(cut)) < 2_500
    assert cut["left_out"] == f"{200 - len(cut['rows'])} of 200: ask for less"


def test_codes_are_explained_and_files_are_checked_without_a_running_project(
    tmp_path: Path,
) -> None:
    answers = Answers(str(tmp_path))
    assert "tailrace up" in answers.errors("already-running")["meaning"]
    assert "already-running" in answers.errors()["codes"]
    with pytest.raises(UsageError):
        answers.errors("no-such-code")
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    assert answers.check()["good"] is True
    with pytest.raises(NotRunningError):
        answers.status()
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "a.sql").write_text("SELECT")
    wrong = answers.check()
    assert wrong["good"] is False
    assert "pipelines/a.sql" in wrong["errors"][0]["detail"]


def test_the_viewers_token_is_shown_where_there_is_one(tmp_path: Path) -> None:
    settings = '[project]\nname = "p"\n[console]\ntoken = "a token for operators"\n'
    (tmp_path / "tailrace.toml").write_text(settings)
    part = Part("console", "console", "p", "127.0.0.1:1", tmp_path / ".tailrace")
    part.report("running", address="http://127.0.0.1:1")
    (tmp_path / ".tailrace" / FILE).write_text("a token for operators\n")
    answers = Answers(str(tmp_path))
    assert answers._console() == ("http://127.0.0.1:1", "a token for operators")
    (tmp_path / "tailrace.toml").write_text(settings + 'viewer_token = "a token for viewers"\n')
    assert answers._console() == ("http://127.0.0.1:1", "a token for viewers")


def test_an_assistant_speaks_the_protocol_with_the_command(site: Site) -> None:
    with subprocess.Popen(
        [TAILRACE, "mcp", "--bootstrap", site.address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        lines = process.stdout

        def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
            question = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            print(json.dumps(question), file=process.stdin, flush=True)
            for line in lines:
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == number:
                    return dict(answer["result"])
            raise AssertionError("it ended")

        about = {"name": "test", "version": "1"}
        begun = ask(
            1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about
        )
        assert begun["serverInfo"]["name"] == "tailrace"
        print('{"jsonrpc": "2.0", "method": "notifications/initialized"}', file=process.stdin, flush=True)  # fmt: skip
        tools = {tool["name"]: tool for tool in ask(2, "tools/list")["tools"]}
        assert tools.keys() == {"status", "sources", "topics", "views", "sql", "tail", "errors"}
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
        assert set(tools["sql"]["inputSchema"]["properties"]) == {"query", "at_least", "limit"}
        query = {"query": "SELECT sum(orders)::BIGINT AS n FROM open_orders"}
        answer = ask(3, "tools/call", name="sql", arguments=query)
        assert json.loads(answer["content"][0]["text"])["rows"] == [{"n": 3}]
        status = ask(4, "tools/call", name="status", arguments={})
        assert json.loads(status["content"][0]["text"])["project"] == "shop"
        wrong = ask(5, "tools/call", name="sql", arguments={"query": "SELEC 1"})
        assert wrong["isError"] is True
        assert "[view-query]" in wrong["content"][0]["text"]
        process.stdin.close()
        assert process.wait(30) == 0
