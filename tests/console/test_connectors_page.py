"""The page of connectors: what it asks the worker for, and what a browser shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import tailrace as tr
from servers.consoles import Console
from servers.sites import CHROMIUM, Site
from tailrace.config import ConnectSettings
from tailrace.connectors import configured
from tailrace.connectors.serve import ConnectServer, Settings

GIVEN = {"offset.storage.partitions": "1", "status.storage.partitions": "1"}


@pytest.fixture
def worker(console: Console, tmp_path: Path) -> Iterator[ConnectServer]:
    """A worker with log-ins, which the project of the console names."""
    served, users = console.served, tmp_path / "users"
    users.write_text("eve: other, read\nann: word\n")
    given = {**GIVEN, "state.directory": str(tmp_path / "state")}
    with (
        tr.connect(served.bootstrap) as log,
        ConnectServer(log, served.bootstrap, Settings("127.0.0.1:0", (), given, users=users)) as server,
    ):  # fmt: skip
        server.start()
        settings = replace(
            served.project.settings, connect=ConnectSettings(server.address, users=users)
        )
        served.project = replace(served.project, settings=settings)
        yield server


def make(worker: ConnectServer, name: str, connector: str, **settings: str) -> None:
    given = {key.replace("__", "."): text for key, text in settings.items()}
    given |= {"name": name, "connector.class": connector}
    worker.worker.write([configured.write_connector(name, given)])


def until(found: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + 60
    while (there := found()) != wanted:
        assert time.monotonic() < deadline, there
        time.sleep(0.05)


def test_connectors_are_listed_told_and_operated(console: Console, worker: ConnectServer, tmp_path: Path) -> None:  # fmt: skip
    ask, post = console.client.get, console.client.post
    assert ask("/api/connectors").json() == {"worker": worker.address, "connectors": []}
    assert "connectors" in ask("/api/graph").json()["pages"]
    (tmp_path / "in.txt").write_text("one\n")
    make(worker, "a/b", "FileStreamSource", topic="lines", file=str(tmp_path / "in.txt"))
    make(worker, "odd", "FileStreamSink", topics="lines", file=str(tmp_path / "no" / "such"))
    rows = lambda: [(one["name"], one["state"], one["running"], one["failed"]) for one in ask("/api/connectors").json()["connectors"]]  # noqa: E731  # fmt: skip
    until(rows, [("a/b", "RUNNING", 1, 0), ("odd", "RUNNING", 0, 1)])
    about = lambda: ask("/api/connectors/a%2Fb").json()  # noqa: E731
    until(lambda: [one["offset"] for one in about()["offsets"]], [{"position": 4}])
    assert about()["config"]["topic"] == "lines"
    assert "such" in ask("/api/connectors/odd").json()["trace"]
    assert post("/api/connectors/a%2Fb/pause", json={}).status_code == 200
    until(lambda: about()["state"], "PAUSED")
    assert post("/api/connectors/a%2Fb/resume", json={}).status_code == 200
    (tmp_path / "no").mkdir()
    assert post("/api/connectors/odd/tasks/0/restart", json={}).status_code == 200
    until(rows, [("a/b", "RUNNING", 1, 0), ("odd", "RUNNING", 1, 0)])
    gone = ask("/api/connectors/gone")
    assert (gone.status_code, gone.json()["error"]) == (404, "Connector gone not found")
    assert post("/api/connectors/odd/tasks/7/restart", json={}).status_code == 404
    make(
        worker, "hidden", "WebhookSource", listen="127.0.0.1:0", secret="whsec_c2VjcmV0c2VjcmV0",
        value__converter__basic__auth__user__info="ann:s3cret", key__converter__token="${env:T}",
        producer__override__ssl__key__password="s3cret",
    )  # fmt: skip
    until(lambda: ask("/api/connectors/hidden").status_code, 200)
    shown = ask("/api/connectors/hidden").json()["config"]
    assert shown["secret"] == shown["value.converter.basic.auth.user.info"] == "[hidden]"
    assert shown["producer.override.ssl.key.password"] == "[hidden]"
    assert (shown["key.converter.token"], shown["listen"]) == ("${env:T}", "127.0.0.1:0")


def test_a_worker_that_is_away_is_said(console: Console) -> None:
    served = console.served
    assert console.client.get("/api/connectors").json()["worker"] is None
    assert console.client.get("/api/connectors/x").status_code == 404
    settings = replace(served.project.settings, connect=ConnectSettings("127.0.0.1:1"))
    served.project = replace(served.project, settings=settings)
    answer = console.client.get("/api/connectors")
    assert (answer.status_code, answer.json()["error"]) == (409, "the worker for connectors does not answer")  # fmt: skip


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser")
def test_a_browser_sees_a_failed_task_and_restarts_it(page: Page, site: Site, worker: ConnectServer, tmp_path: Path) -> None:  # fmt: skip
    make(worker, "odd", "FileStreamSink", topics="lines", file=str(tmp_path / "no" / "such"))
    page.goto(f"{site.address}/#/connectors")
    expect(page.get_by_role("table", name="Connectors")).to_contain_text("failed", timeout=60_000)
    page.get_by_role("link", name="odd").click()
    expect(page.get_by_role("alert")).to_contain_text("Couldn't find or create file")
    (tmp_path / "no").mkdir()
    page.get_by_role("button", name="Restart what failed").click()
    expect(page.get_by_role("table", name="Tasks")).to_contain_text("running", timeout=60_000)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", name="odd paused")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Yes, stop").click()
    expect(page.get_by_text("It has no tasks now.")).to_be_visible(timeout=60_000)
