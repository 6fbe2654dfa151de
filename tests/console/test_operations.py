"""What an operator does from the page: resets, comparisons, letters, a look into the past."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from servers.consoles import Console, LogTicks
from tailrace.console import figures
from tailrace.console.alarms import alarms
from tailrace.console.history import History
from tailrace.console.schemas import differences
from tailrace.console.unread import Unread, kept_ms
from tailrace.project.copies import opened_copy
from tailrace.sinks.dead_letters import DeadLetter


def produce(bootstrap: str, topic: str, *records: tuple[bytes | None, bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(10) == 0


def read_all(bootstrap: str, group: str, topic: str, count: int) -> None:
    """Read and commit `count` records as a member of a group, then leave."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})  # fmt: skip
    consumer.subscribe([topic])
    assert len(consumer.consume(count, 20)) == count
    consumer.commit(asynchronous=False)
    consumer.close()


def test_a_group_is_moved_only_when_told_to(console: Console) -> None:
    bootstrap = console.served.bootstrap
    produce(bootstrap, "clicks", *[(b"k", b"v")] * 5)
    read_all(bootstrap, "readers", "clicks", 5)
    asked = console.client.post("/api/groups/readers/reset", json={"to": "2"}).json()
    assert asked["executed"] is False
    assert asked["partitions"] == [{"topic": "clicks", "partition": 0, "from": 5, "to": 2}]
    assert console.client.get("/api/groups/readers").json()["partitions"][0]["committed"] == 5
    done = console.client.post(
        "/api/groups/readers/reset", json={"to": "earliest", "execute": True}
    )
    assert done.json()["executed"] is True
    assert console.client.get("/api/groups/readers").json()["partitions"][0]["lag"] == 5
    assert console.client.post("/api/groups/nobody/reset", json={"to": "latest"}).status_code == 404
    assert console.client.post("/api/groups/readers/reset", json={"to": "soon"}).status_code == 400


def test_a_broker_shows_its_settings_and_which_are_changed(console: Console) -> None:
    about = console.client.get("/api/brokers/1").json()
    assert (about["id"], about["state"], about["controller"]) == (1, "up", True)
    assert about["config"]["num.partitions"] == "1"
    assert set(about["changed"]) < set(about["config"])
    assert "num.partitions" not in about["changed"]
    assert console.client.get("/api/brokers/2").status_code == 404
    assert console.client.get("/api/brokers/x").status_code == 422


def test_a_topic_tells_how_long_it_keeps_records_and_how_far_groups_are_behind(
    console: Console,
) -> None:
    bootstrap = console.served.bootstrap
    produce(bootstrap, "clicks", *[(b"k", b"v")] * 5)
    read_all(bootstrap, "near", "clicks", 4)
    read_all(bootstrap, "far", "clicks", 1)
    kept = figures.Figures(bootstrap)

    def about() -> dict[str, Any]:
        return next((topic for topic in kept.topics if topic["name"] == "clicks"), {})

    deadline = time.monotonic() + 60
    while about().get("groups") != 2 or about().get("cleanup") is None:
        assert time.monotonic() < deadline, about()
        time.sleep(0.05)
    kept.close()
    found = about()
    assert (found["kept"], found["groups"], found["lag"]) == (5, 2, 4)
    assert (found["cleanup"], found["retention_ms"]) == ("delete", "604800000")


def test_the_cluster_is_shown_and_nothing_is_moved_without_a_plan_that_can_be(console: Console) -> None:  # fmt: skip
    produce(console.served.bootstrap, "clicks", (b"k", b"v"))
    shown = console.client.get("/api/cluster").json()
    assert shown["controller"]["id"] == shown["brokers"][0]["id"] == 1
    assert "clicks" in [topic["name"] for topic in shown["topics"]]
    assert shown["under_replicated"] == shown["offline"] == []
    elect, move = "/api/cluster/elect", "/api/cluster/move"
    held = console.client.post(elect, json={"topics": ["clicks/0"], "execute": True})
    assert held.json() == {"executed": True, "elections": []}
    planned = console.client.post(move, json={"topics": ["clicks"], "to": [1]})
    assert planned.json() == {"executed": False, "moves": []}
    for path, wrong in (
        (elect, {"unclean": True}),
        (elect, {"topics": ["nothing"]}),
        (move, {}),
        (move, {"from": 1, "execute": True}),  # nobody else could hold the copies
        (move, {"topics": ["clicks"], "to": [9]}),
        (move, {"cancel": True, "from": 1}),
    ):
        assert console.client.post(path, json=wrong).status_code == 400


def test_a_view_is_shown_as_it_was(console: Console) -> None:
    assert console.client.get("/api/past/open_orders").json() == {"span": None, "rows": None}
    ticks = LogTicks(console.served.bootstrap)
    ticks.tick(1_000, NL=1, DE=1)
    ticks.tick(2_000, NL=2)
    ticks.tick(3_000, DE=None)

    def past(**asked: Any) -> Any:
        return console.client.get("/api/past/open_orders", params=asked).json()

    assert [moment["tick"] for moment in past()["span"]] == [1, 3]
    assert [(r["country"], r["orders"]) for r in past(tick=1)["rows"]] == [("DE", 1), ("NL", 1)]
    assert [(r["country"], r["orders"]) for r in past(at=2_500)["rows"]] == [("DE", 1), ("NL", 2)]
    assert past(position="lite:shop:0000000000000003")["tick"] == 3
    assert console.client.get("/api/past/open_orders?at=5").status_code == 410
    assert console.client.get("/api/past/nothing").status_code == 404


def test_a_copy_is_compared_and_mended(console: Console, tmp_path: Path) -> None:
    served = console.served
    LogTicks(served.bootstrap).tick(1_000, NL=1, DE=2)
    assert console.client.get("/api/sinks").json()["sinks"][0]["name"] == "open_orders.sqlite"
    with opened_copy(served.project, served.bootstrap, "open_orders.sqlite") as opened:
        opened.delivery.step(timeout=60.0)
    path = "/api/sinks/open_orders.sqlite/verify"
    assert console.client.post(path, json={}).json()["in_step"] is True
    with sqlite3.connect(served.project.directory / "copies.db") as database:
        database.execute("UPDATE open_orders SET orders = 99 WHERE country = 'NL'")
    database.close()
    found = console.client.post(path, json={}).json()
    assert found["in_step"] is False
    assert found["differences"][0]["key"] == {"country": "NL"}
    assert console.client.post(path, json={"repair": True}).json()["repaired"] == 1
    assert console.client.post(path, json={}).json()["in_step"] is True
    assert console.client.post("/api/sinks/none/verify", json={}).status_code == 404


def test_dead_letters_are_listed_and_a_tables_are_not_written_again(console: Console) -> None:
    letter = DeadLetter("open_orders.sqlite", "open_orders", 0, 7, {"country": "NL"}, {"error": "no"})  # fmt: skip
    produce(console.served.bootstrap, "open_orders.sqlite.dead", (b"k", letter.encode()))
    found = console.client.get("/api/dead-letters/open_orders.sqlite").json()
    assert found["letters"] == [
        {"record": "open_orders/0:7", "reason": "no", "content": {"country": "NL"}}
    ]
    assert console.client.get("/api/dead-letters/open_orders").json()["letters"] == []
    refused = console.client.post("/api/dead-letters/open_orders/retry")
    assert refused.status_code == 400
    assert "pipeline reset" in refused.json()["hint"]
    assert console.client.get("/api/dead-letters/nothing").status_code == 404


def test_schemas_say_what_changed(console: Console) -> None:
    def version(number: int, *columns: tuple[str, str]) -> bytes:
        listed = [{"name": n, "type": t, "spark": "STRING", "nullable": True} for n, t in columns]
        document = {"source": "shop", "table": "main.orders", "topic": "shop.main.orders", "version": number, "position": "lite:shop:1", "columns": listed, "key": ["id"]}  # fmt: skip
        return json.dumps(document).encode()

    produce(
        console.served.bootstrap,
        "shop.schemas",
        (b"1", version(1, ("id", "integer"), ("note", "text"))),
        (b"2", version(2, ("id", "bigint"), ("paid", "boolean"))),
    )
    [table] = console.client.get("/api/schemas").json()["tables"]
    assert table["table"] == "shop.main.orders"
    assert table["versions"][1]["changes"] == ["+ paid boolean", "− note text", "~ id: integer → bigint"]  # fmt: skip
    assert differences({"columns": [], "key": []}, {"columns": [], "key": []}) == []


def test_pipelines_say_what_is_declared_before_anything_runs(console: Console) -> None:
    found = console.client.get("/api/pipelines").json()
    assert [view["name"] for view in found["views"]] == ["open_orders"]
    assert found["state"] == "stopped"
    assert console.client.get("/api/plans/nothing").status_code == 404
    assert console.client.get("/api/state/nothing").status_code == 404


def test_a_lagging_group_is_warned_before_retention_takes_its_records(console: Console) -> None:
    bootstrap = console.served.bootstrap
    from tailrace.client.admin import Admin

    with Admin(bootstrap) as admin:
        admin.create_topic("short", 1, {"retention.ms": "1000000"})
    producer = Producer({"bootstrap.servers": bootstrap})
    import time

    for age in (900_000, 10):
        producer.produce("short", value=b"v", timestamp=int(time.time() * 1000) - age)
    assert producer.flush(10) == 0
    looking = Unread(bootstrap)
    try:
        unread = {"topic": "short", "partition": 0, "committed": 0, "end": 2, "lag": 2}
        used = looking.estimate([unread])
        assert 0.8 < used["retention_used"] < 1
        read = {**unread, "committed": 2, "lag": 0}
        assert looking.estimate([read]) == {"lost": 0, "retention_used": 0.0}
        counted = looking.look("nobody", [read])  # the embedded broker's own figures
        assert counted == {"lost": 0, "retention_used": 0.0, "holds_back": []}
    finally:
        looking.close()
    found = list(alarms([], [{"name": "g", "lag": 2, **used}], console.served.project.directory))
    assert [(a["level"], a["what"]) for a in found] == [("critical", "group g")]


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "5"}, 5),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, None),
        ({"cleanup.policy": "compact", "retention.ms": "5", "delete.retention.ms": "7"}, 7),
        ({"cleanup.policy": "compact,delete", "retention.ms": "5", "delete.retention.ms": "7"}, 5),
    ],
)
def test_how_long_a_reader_may_stay_away(config: dict[str, str], kept: int | None) -> None:
    assert kept_ms(config) == kept


def test_alarms_name_wal_dead_letters_late_rows_and_restarts(tmp_path: Path) -> None:
    parts = [
        {"kind": "source", "name": "shop", "state": "running", "wal_state": "critical", "wal_retained_bytes": 3_000_000_000},
        {"kind": "sink", "name": "s", "state": "running", "dead_letters": 2},
        {"kind": "pipelines", "name": "p", "state": "running", "dead": 1, "late": {"t": 50}, "restarts": 4},
        {"kind": "views", "name": "p", "state": "failed", "error": {"error": "no disk", "hint": "free some"}},
    ]  # fmt: skip
    found = {(a["what"], a["level"]) for a in alarms(parts, [], tmp_path, [{"name": "t", "records": 100}])}  # fmt: skip
    assert found >= {
        ("source shop", "critical"), ("sink s", "warning"), ("pipelines p", "warning"),
        ("topic t", "warning"), ("views p", "critical"),
    }  # fmt: skip
    held = [{"name": "g", "lag": 1, "holds_back": ["clicks"]}]
    assert "producers of clicks" in next(alarms([], held, tmp_path))["message"]
    failed = {"kind": "pipelines", "name": "p", "state": "running", "streams": {"s": {"state": "failed", "error": {"error": "boom", "hint": "mend"}}}}  # fmt: skip
    assert next(alarms([failed], [], tmp_path))["what"] == "stream s"
    stale = {"kind": "sink", "name": "s", "state": "running", "behind_ms": 900, "delete_retention_ms": 1000}  # fmt: skip
    assert next(alarms([stale], [], tmp_path))["level"] == "critical"
    told = [{"kind": "pipelines", "name": "p", "state": "running", "late_alarms": {"t": 0.2}}]
    assert "20%" in next(alarms(told, [], tmp_path))["message"]
    told = [{"kind": "pipelines", "name": "p", "state": "running", "forgotten": {"t": 1200}}]
    assert "1,200 rows or versions" in next(alarms(told, [], tmp_path))["message"]
    few = [{"kind": "pipelines", "name": "p", "state": "running", "late": {"t": 50}}]
    assert not list(alarms(few, [], tmp_path, [{"name": "t", "records": 100_000}]))


def test_history_forgets_what_is_old_and_keeps_what_is_told() -> None:
    history = History()
    for number in range(400):
        state = {"at": number * 5000, "topics": [], "groups": [{"name": "g", "lag": number}], "parts": []}  # fmt: skip
        history.take(state)
    kept = history.series("group:g")
    assert len(kept["at"]) == 360
    assert kept["values"][-1] == 399
    assert history.series("group:none") == {"at": [], "values": []}
    history.take({"at": 10**9, "topics": [{"name": "t", "rate": 1.5}], "groups": [], "parts": []})
    assert history.series("group:g") == {"at": [], "values": []}


def test_topics_are_made_altered_written_to_and_deleted(console: Console) -> None:
    client = console.client

    def post(path: str, **body: Any) -> Any:
        return client.post(path, json=body)

    assert post("/api/topics", name="jobs", partitions=2, config={"retention.ms": "60000"}).json() == {"created": "jobs"}  # fmt: skip
    assert post("/api/topics", name="jobs").status_code == 400
    assert post("/api/topics", name="x", config={"retention.sm": "1"}).status_code == 400
    assert client.get("/api/topics/jobs").json()["changed"] == ["retention.ms"]
    assert post("/api/topics/jobs/config", config={"retention.ms": None}).status_code == 200
    assert client.get("/api/topics/jobs").json()["changed"] == []
    written = post("/api/topics/jobs/write", key="k", value="v", headers={"h": "1"}, partition=1)
    assert written.json() == {"partition": 1, "offset": 0}
    (record,) = client.get("/api/topics/jobs/latest").json()["records"]
    assert (record["key"], record["value"], record["headers"]) == ("k", "v", {"h": "1"})
    assert post("/api/topics/jobs/write", value="v", partition=2).status_code == 400
    assert post("/api/topics/jobs/delete").json() == {"deleted": "jobs"}
    assert post("/api/topics/jobs/delete").status_code == 404
    assert post("/api/topics/jobs/write", value="v").status_code == 404


@pytest.mark.parametrize(
    "topic", ["__tailrace_ticks", "shop.main.orders", "open_orders", "open_orders.2", "terms"]
)
def test_what_the_project_keeps_is_left_alone(console: Console, topic: str) -> None:
    for path, body in (("", {"name": topic}), (f"/{topic}/write", {"value": "x"}), (f"/{topic}/delete", {})):  # fmt: skip
        refused = console.client.post(f"/api/topics{path}", json=body)
        assert refused.status_code == 400, path
        assert "is kept by" in refused.json()["error"]


def test_a_group_nobody_is_in_is_deleted(console: Console) -> None:
    bootstrap = console.served.bootstrap
    produce(bootstrap, "clicks", (b"k", b"v"))
    read_all(bootstrap, "readers", "clicks", 1)
    assert console.client.post("/api/groups/readers/delete").json() == {"deleted": "readers"}
    assert console.client.get("/api/groups/readers").json()["partitions"] == []
