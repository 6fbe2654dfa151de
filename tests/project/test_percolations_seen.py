"""Stored queries while they run: by command and over HTTP; what `check` says of wrong ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from fastapi import FastAPI
from fastapi.testclient import TestClient

from servers.patterns import Running
from tailrace.cli.main import cli, main
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.console.app import Json, Served
from tailrace.console.operate import _add_percolations
from tailrace.errors import UsageError
from tailrace.project import load

DECLARED = """
import tailrace as tr

listings = tr.topic("listings", schema="id INT, title STRING, price DECIMAL(9,2)")
searches = tr.topic("searches", schema="id INT, query STRING, owner STRING", key="id")
alerts = tr.percolate(
    "alerts", listings, queries=searches, id="id", query="query", text={"title": "text:en"},
    fields=["price"], carry=["owner"],
)
prices = tr.view("prices", "SELECT query_id, count(*) AS n, max(event.price) AS most FROM alerts GROUP BY query_id")
"""


def project(directory: Path, bootstrap: str, declared: str = DECLARED) -> load.Project:
    (directory / "pipelines").mkdir(exist_ok=True)
    (directory / "pipelines" / "alerts.py").write_text(declared)
    (directory / "tailrace.toml").write_text(
        f'[project]\nname = "shop"\n[log]\nbootstrap = "{bootstrap}"\n'
    )
    return load.load(directory)


@pytest.fixture
def running(tmp_path: Path, tailrace_broker: str) -> Iterator[Running]:
    with Admin(tailrace_broker) as admin:
        for topic in ("listings", "searches"):
            admin.ensure_topic(topic, 1, {})
    with contextlib.closing(Running(project(tmp_path, tailrace_broker), tailrace_broker)) as made:
        yield made


def write(bootstrap: str, topic: str, *rows: dict[str, Any]) -> None:
    with TransactionalWriter(bootstrap, "people") as writer:
        writer.init()
        for row in rows:
            key = orjson.dumps({"id": row["id"]}) if topic == "searches" else None
            writer.send(topic, 0, key, orjson.dumps(row))
        writer.commit()


def test_stored_queries_are_seen_with_what_they_cost_and_tried_against_an_event(
    running: Running,
) -> None:
    write(
        running.bootstrap, "searches",
        {"id": 1, "query": "boats AND price:<100", "owner": "ada"},
        {"id": 2, "query": "price:>10", "owner": "bob"},
        {"id": 3, "query": "(", "owner": "eve"},
        {"id": 4, "query": "submarine", "owner": "eve"},
    )  # fmt: skip
    write(
        running.bootstrap, "listings",
        {"id": 1, "title": "a boat", "price": "90.00"}, {"id": 2, "title": "a boat", "price": "900"},
        {"id": 3, "title": "a house", "price": "9"},
    )  # fmt: skip
    about = running.patterns.progress
    running.until(lambda: about()["alerts"]["tick"] == 1 and about()["alerts"]["dead"] == 1)

    place = ["--project", str(running.project.directory)]
    runner = CliRunner()
    answer = runner.invoke(cli, ["percolate", "list", "--json", *place])
    listed = orjson.loads(answer.output)[0]
    assert (listed["name"], listed["state"], listed["count"], listed["documents"]) == (
        "alerts", "running", 3, 3,
    )  # fmt: skip
    figures = {one["query_id"]: (one["candidates"], one["matches"]) for one in listed["queries"]}
    assert figures == {1: (2, 1), 2: (3, 2), 4: (0, 0)}
    costs = [one["micros"] for one in listed["queries"]]
    assert costs == sorted(costs, reverse=True)
    assert listed["queries"][-1]["query_id"] == 4
    shown = runner.invoke(cli, ["percolate", "list", "alerts", *place]).output
    assert "alerts: running, 3 queries of searches over listings, tick 1, 1 dead letter" in shown
    assert "tried against the last 3 events:" in shown

    event = '{"id": 9, "title": "Boats for you", "price": 50}'
    tried = runner.invoke(cli, ["percolate", "test", "alerts", "--event", event, "--json", *place])
    found = orjson.loads(tried.output)
    assert [(one["query_id"], one["owner"], one["because"]) for one in found["matches"]] == [
        (1, "ada", ["title:boat", "price:<100"]), (2, "bob", ["price:>10"]),
    ]  # fmt: skip
    why = runner.invoke(
        cli, ["percolate", "test", "alerts", "--event", event, "--query", "4", *place]
    )
    assert "query 4 does not match\n  has: nothing\n  lacks: title:submarin" in why.output
    for wrong, words in (
        ("{", "--event is no JSON"), ("[1]", "an event is a JSON object"),
        ('{"titel": 1}', "listings has no column 'titel'"),
        ('{"price": "x"}', "this is no row of listings"),
    ):  # fmt: skip
        refused = runner.invoke(cli, ["percolate", "test", "alerts", "--event", wrong, *place])
        assert isinstance(refused.exception, UsageError)
        assert words in refused.exception.message
    explained = runner.invoke(cli, ["percolate", "explain", "alerts", *place]).output
    assert (
        "1 looked at for every event: no word or value that they need\n    2: price:>10"
        in explained
    )
    unknown = runner.invoke(cli, ["percolate", "explain", "nope", *place])
    assert "no percolation 'nope' is declared" in str(unknown.exception)

    app = FastAPI(default_response_class=Json)
    served = Served(running.project, running.bootstrap, None, None)  # type: ignore[arg-type]
    _add_percolations(app, served, Json)
    with TestClient(app) as client:
        names = [one["name"] for one in client.get("/api/percolations").json()["percolations"]]
        assert names == ["alerts"]
        assert client.get("/api/percolations/alerts").json()["count"] == 3
        posted = client.post("/api/percolations/alerts/test", json={"event": orjson.loads(event)})
        assert posted.json() == found

    graph = runner.invoke(cli, ["graph", *place]).output
    assert "topic searches\n  └ percolation alerts\n    └ view prices" in graph
    status = runner.invoke(cli, ["pipeline", "list", "--json", *place])
    kinds = {one["name"]: one["kind"] for one in orjson.loads(status.output)}
    assert kinds["alerts"] == "percolation"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"query", text', '"querry", text', "has no column 'querry'"),
        ('"title": "text:en"', '"titel": "text:en"', "has no column 'titel'"),
        ('fields=["price"]', 'fields=["prices"]', "has no column 'prices'"),
        ('{"title": "text:en"}', '{"id": "text"}', "text= names 'id', which is INT"),
        ('{"title": "text:en"}', '{"title": "text:xx"}', "cannot be 'text:xx'"),
        ('id="id"', 'id="owner"', "does not name one query of searches: its key is (id)"),
        ('carry=["owner"]', 'carry=["event"]', "carry= of percolation \"alerts\" has 'event'"),
        ("queries=searches", "queries=listings", 'topic "listings" has no key'),
        ("queries=searches", "queries=7", 'queries= of percolation "alerts" is 7'),
        ('carry=["owner"]', 'once="owner"', "once='owner' is STRING"),
        ('carry=["owner"]', 'per_hour="owner"', "per_hour='owner' is STRING"),
    ],
)  # fmt: skip
def test_check_names_what_is_wrong_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, words: str
) -> None:
    assert before in DECLARED
    declared = DECLARED.partition("prices =")[0].replace(before, after)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "alerts.py").write_text(declared)
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    with pytest.raises(SystemExit) as leaving:
        main(["check", str(tmp_path)])
    assert leaving.value.code
    shown = capsys.readouterr()
    told = " ".join((shown.out + shown.err).split())
    assert words in told
    assert "alerts.py:6" in told
