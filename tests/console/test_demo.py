"""The demo's buttons against a real database: the proof, a refund, plugs that are pulled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from fastapi.testclient import TestClient

from servers.postgres import PostgresServer, start_postgres
from tailrace.console.app import Served, create_app
from tailrace.console.figures import Figures
from tailrace.project import load, scaffold
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views
from tailrace.telemetry.part import report_path
from tailrace.testing.changelogs import MemoryLog, TickWriter

EVERYTHING = "pg:shop:FFFFFFFFFFFFFFFF"
TABLES = """
DROP TABLE IF EXISTS customers, orders, payments, page_views;
CREATE TABLE customers (id int PRIMARY KEY, name text, country text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount numeric, status text);
CREATE TABLE payments (id int PRIMARY KEY, order_id int, amount numeric);
CREATE TABLE page_views (id int PRIMARY KEY);
INSERT INTO customers VALUES (1, 'Ada', 'NL'), (2, 'Bob', 'DE');
INSERT INTO orders VALUES (1, 1, 10.50, 'open'), (2, 2, 4.25, 'open'), (3, 1, 20, 'paid');
INSERT INTO payments VALUES (1, 3, 20);
INSERT INTO page_views VALUES (1), (2), (3);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from start_postgres()


@dataclass
class Demo:
    client: TestClient
    served: Served
    connection: psycopg.Connection[tuple[object, ...]]

    def part(self, kind: str, pid: int) -> None:
        """A report as a part of that kind would have left it."""
        path = report_path(self.served.project.settings.state_directory, f"{kind}-shop")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"kind": "{kind}", "name": "shop", "state": "running", "pid": {pid}}}')


@pytest.fixture
def demo(
    tmp_path: Path, server: PostgresServer, tailrace_broker: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Demo]:
    monkeypatch.setenv("TAILRACE_DEMO_DSN", server.dsn())
    scaffold.create(tmp_path / "shop")
    log = MemoryLog()
    ticks = TickWriter(log, "shop")
    money = "DECIMAL(10,2)"
    ticks.declare("open_orders", ["country"], [("country", "STRING"), ("orders", "BIGINT"), ("value", money)])  # fmt: skip
    ticks.declare("revenue_per_minute", ["minute"], [("minute", "STRING"), ("revenue", money)])
    ticks.declare("customer_360", ["id"], [("id", "INT")])
    ticks.declare("visits_per_minute", ["minute"], [("minute", "STRING"), ("visits", "BIGINT")])
    views, figures = Views(tmp_path / "views"), Figures(tailrace_broker)
    served = Served(load.load(tmp_path / "shop"), tailrace_broker, views, figures)
    with (
        psycopg.connect(server.dsn(), autocommit=True) as connection,
        Follower(tmp_path / "views", log, "shop") as follower,
        TestClient(create_app(served)) as client,
    ):
        connection.execute(TABLES.encode())
        ticks.tick(
            {
                "open_orders": [
                    ({"country": "NL"}, {"country": "NL", "orders": 1, "value": "10.50"}),
                    ({"country": "DE"}, {"country": "DE", "orders": 1, "value": "4.25"}),
                ],
                "revenue_per_minute": [({"minute": "m"}, {"minute": "m", "revenue": "20.00"})],
                "customer_360": [({"id": 1}, {"id": 1}), ({"id": 2}, {"id": 2})],
                "visits_per_minute": [({"minute": "m"}, {"minute": "m", "visits": 3})],
            },
            positions={"shop": EVERYTHING},
        )
        follower.step(0.1)
        yield Demo(client, served, connection)
    figures.close()
    views.close()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield started
    started.kill()
    started.wait()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(pid: int, states: str) -> None:
    deadline = time.monotonic() + 20
    while state(pid) not in states:
        assert time.monotonic() < deadline, f"it stayed {state(pid)}"
        time.sleep(0.01)


def test_database_and_view_stand_side_by_side(demo: Demo) -> None:
    found = demo.client.get("/api/demo").json()
    assert found["database"] == {"orders": 2, "value": "14.75"}
    assert found["view"] == {"orders": 2, "value": "14.75"}
    assert found["paid"] == [{"order": 3, "amount": "20", "name": "Ada", "country": "NL"}]


def test_the_proof_says_equal_only_where_it_is(demo: Demo) -> None:
    rows = demo.client.post("/api/demo/prove", json={}).json()["rows"]
    assert len(rows) == 5
    assert all(row["equal"] for row in rows), rows
    demo.connection.execute("UPDATE orders SET amount = 10.51 WHERE id = 1")
    wrong = [r for r in demo.client.post("/api/demo/prove", json={}).json()["rows"] if not r["equal"]]  # fmt: skip
    assert [row["what"] for row in wrong] == ["their value"]


def test_sparks_answers_stand_beside_the_views_or_the_reason_why_not(
    demo: Demo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    monkeypatch.setattr("tailrace.console.demo.sys.executable", str(said))

    def say(text: str) -> Any:
        said.write_text(f"#!/bin/sh\n{text}\n")
        said.chmod(0o700)
        return demo.client.post("/api/demo/verify", json={}).json()

    verdict = {"view": "v", "equal": False, "rows": 3, "spark_rows": 4, "differing": 1, "tick": 7}
    refused = {"view": "w", "equal": None, "error": {"error": "it depends on the clock"}}
    found = say(f"echo '{orjson.dumps([verdict, refused]).decode()}'; exit 1")
    assert found["rows"] == [
        {"what": "v", "spark": "4 rows", "view": "3 rows at tick 7, 1 differ", "equal": False},
        {"what": "w", "spark": "not compared", "view": "it depends on the clock", "equal": False},
    ]
    failed = say("echo no broker answers >&2; exit 1")
    assert failed["error"] == "the views were not compared"
    assert failed["detail"] == "no broker answers"


def test_people_go_on_after_the_proof_even_when_its_console_was_killed(
    demo: Demo, process: subprocess.Popen[bytes]
) -> None:
    directory = demo.served.project.settings.state_directory
    directory.mkdir(exist_ok=True)
    (directory / "people.pid").write_text(str(process.pid))
    demo.client.post("/api/demo/prove", json={})
    until(process.pid, "SR")
    os.kill(process.pid, signal.SIGSTOP)
    until(process.pid, "T")
    create_app(demo.served)  # a console that starts knows nobody who should be held
    until(process.pid, "SR")


def test_a_refund_is_made_once(demo: Demo) -> None:
    assert "refunded order 3" in demo.client.post("/api/demo/refund", json={"order": 3}).json()["did"]  # fmt: skip
    assert demo.connection.execute("SELECT status FROM orders WHERE id = 3").fetchone() == ("refunded",)  # fmt: skip
    assert demo.client.post("/api/demo/refund", json={"order": 3}).status_code == 404


def test_the_pipeline_is_stopped_and_goes_on(demo: Demo, process: subprocess.Popen[bytes]) -> None:
    demo.part("pipelines", process.pid)
    assert "for 20 s" in demo.client.post("/api/demo/pause").json()["did"]
    until(process.pid, "T")
    create_app(demo.served)
    until(process.pid, "SR")


def test_a_plug_is_pulled_by_signal_9(demo: Demo, process: subprocess.Popen[bytes]) -> None:
    demo.part("broker", process.pid)
    assert "signal 9" in demo.client.post("/api/demo/kill/broker").json()["did"]
    assert process.wait(20) == -signal.SIGKILL
    assert "down already" in demo.client.post("/api/demo/kill/broker").json()["did"]
    for absent in ("source", "init"):
        assert demo.client.post(f"/api/demo/kill/{absent}").status_code == 404
