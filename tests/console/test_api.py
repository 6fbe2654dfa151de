"""The HTTP API: views, positions, SQL, topics, errors, and who may call."""

from __future__ import annotations

import io
import time

import fastavro
import orjson
import pytest
from confluent_kafka import Producer
from fastapi.testclient import TestClient

import tailrace as tr
from servers.consoles import Console
from tailrace.console.app import create_app


def test_rows_one_row_and_sql_are_at_one_position(console: Console) -> None:
    answer = console.client.get("/api/views/open_orders")
    assert answer.json() == {
        "rows": [{"country": "DE", "orders": 1}, {"country": "NL", "orders": 2}],
        "next": None,
        "position": "tick:shop:1",
    }
    assert answer.headers["tailrace-position"] == "tick:shop:1"
    assert console.client.get("/api/views/open_orders/NL").json() == {
        "row": {"country": "NL", "orders": 2}
    }
    assert console.client.get("/api/views/open_orders", params={"key": ["DE"]}).json() == {
        "row": {"country": "DE", "orders": 1}
    }
    asked = console.client.post("/api/sql", json={"sql": "SELECT sum(orders) n FROM open_orders"})
    assert asked.json()["rows"] == [{"n": 3}] or asked.json()["rows"] == [{"n": "3"}]


def test_pages_go_on_after_each_other(console: Console) -> None:
    first = console.client.get("/api/views/open_orders", params={"limit": 1}).json()
    rest = console.client.get(
        "/api/views/open_orders", params={"limit": 1, "after": first["next"]}
    ).json()
    assert [first["rows"][0]["country"], rest["rows"][0]["country"]] == ["DE", "NL"]
    assert rest["next"] is None
    chosen = console.client.get("/api/views/open_orders", params={"where": "orders > 1"}).json()
    assert [row["country"] for row in chosen["rows"]] == ["NL"]


def test_what_is_missing_is_404_and_what_is_wrong_is_400(console: Console) -> None:
    client = console.client
    assert client.get("/api/views/open_orders/XX").status_code == 404
    assert client.get("/api/views/nothing").status_code == 404
    assert client.get("/api/views/nothing/changes").status_code == 404
    assert client.get("/api/topics/nothing").status_code == 404
    assert client.get("/nowhere").json()["code"] == "http"
    for sql in ("SELECT nope FROM open_orders", "DROP TABLE open_orders", "SELECT * FROM read_csv('/etc/passwd')"):  # fmt: skip
        wrong = client.post("/api/sql", json={"sql": sql})
        assert wrong.status_code == 400, sql
        assert set(wrong.json()) == {"error", "detail", "hint", "code"}
    assert client.post("/api/sql", json={"query": 1}).status_code == 422
    assert client.get("/api/views/open_orders", params={"limit": 0}).status_code == 422


def test_a_wait_for_a_position_ends_when_it_is_reached_or_in_504(console: Console) -> None:
    reached = console.client.get(
        "/api/views/open_orders/NL", params={"at_least": "pg:shop:00000000000000FF"}
    )
    assert reached.status_code == 200
    late = console.client.get(
        "/api/views/open_orders/NL", params={"at_least": "tick:shop:99", "timeout": "50ms"}
    )
    assert late.status_code == 504
    assert console.client.get("/api/views/open_orders", params={"at_least": "x"}).status_code == 400


def test_topics_and_records_are_shown_as_text(console: Console) -> None:
    producer = Producer({"bootstrap.servers": console.served.bootstrap})
    producer.produce(
        "clicks", key=b"u1", value=b"<script>alert(1)</script>", headers={"h": b"\xff"}
    )
    producer.flush(10)
    records = console.client.get("/api/topics/clicks/latest").json()["records"]
    assert [(r["key"], r["value"]) for r in records] == [("u1", "<script>alert(1)</script>")]
    assert records[0]["headers"] == {"h": "base64:/w=="}
    about = console.client.get("/api/topics/clicks").json()
    [partition] = about["partitions"]
    assert (partition["partition"], partition["first"], partition["end"]) == (0, 0, 1)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        names = [topic["name"] for topic in console.client.get("/api/topics").json()["topics"]]
        if "clicks" in names:
            break
        time.sleep(0.1)
    assert "clicks" in names


def test_values_are_shown_in_the_format_the_project_declares(console: Console) -> None:
    schema = '{"type":"record","name":"R","fields":[{"name":"n","type":"long"},{"name":"raw","type":"bytes"}]}'
    declared = tr.topic("readings", schema=schema, format="avro", wire="confluent")
    console.served.project.topics["readings"] = declared
    written = io.BytesIO()
    fastavro.schemaless_writer(written, orjson.loads(schema), {"n": 7, "raw": b"\xff"})
    producer = Producer({"bootstrap.servers": console.served.bootstrap})
    producer.produce("readings", value=b"\0\0\0\0\x01" + written.getvalue())
    producer.produce("readings", value=b"\xfe not Avro")
    producer.produce("readings", value=None, key=b"k")
    assert producer.flush(10) == 0
    records = console.client.get("/api/topics/readings/latest?from=earliest").json()["records"]
    assert orjson.loads(records[0]["value"]) == {"n": 7, "raw": "base64:/w=="}
    assert records[1]["value"].startswith("base64:")
    assert records[2]["value"] is None


def test_the_page_loads_nothing_from_elsewhere(console: Console) -> None:
    page = console.client.get("/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for reference in ("./assets/index.js", "./assets/index.css"):
        assert reference in page.text
        assert console.client.get(reference[1:]).status_code == 200
    assert "://" not in page.text


def test_other_sites_and_other_hosts_are_refused(console: Console) -> None:
    client = console.client
    evil = client.post("/api/sql", json={"sql": "SELECT 1"}, headers={"origin": "http://evil"})
    assert evil.status_code == 403
    assert client.get("/api/status", headers={"host": "evil.example"}).status_code == 403
    same = client.get("/api/status", headers={"origin": "http://127.0.0.1:8080"})
    assert same.status_code == 200


def test_status_graph_metrics_and_docs_answer(console: Console) -> None:
    status = console.client.get("/api/status").json()
    assert status == {"project": "shop", "ready": False, "filling": {}, "parts": []}
    nodes = console.client.get("/api/graph").json()["nodes"]
    assert "open_orders" in {node["name"] for node in nodes}
    assert b"process_cpu_seconds_total" in console.client.get("/metrics").content
    assert "/api/sql" in console.client.get("/api/docs").text


@pytest.mark.parametrize(
    "asked",
    ["/NL", "/XX", "/N%4C", "/a%2Fb", "/%00", "/ü", "/", "/NL/more", "?key=NL", "?key=XX",
     "?key=", "?key=N%4C", "?key=%C3%BC", "?key=NL&key=DE", "?key=NL&limit=1", "/NL?x=1",
     "/NL?at_least=tick:shop:1", "?key=NL&at_least=tick:shop:1"],
)  # fmt: skip
def test_a_look_up_answers_as_the_app_itself_does(console: Console, asked: str) -> None:
    plain = TestClient(create_app(console.served), base_url="http://127.0.0.1:8080")
    mine = console.client.get(f"/api/views/open_orders{asked}")
    theirs = plain.get(f"/api/views/open_orders{asked}")
    assert (mine.status_code, mine.json()) == (theirs.status_code, theirs.json())
    assert mine.headers.get("tailrace-position") == theirs.headers.get("tailrace-position")


def test_the_page_is_sent_packed_and_once(console: Console) -> None:
    first = console.client.get("/", headers={"accept-encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    assert 'src="./assets/index.js"' in first.text
    assert first.headers["content-type"].startswith("text/html")
    again = console.client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    script = console.client.get("/assets/index.js", headers={"accept-encoding": "identity"})
    assert script.headers["content-type"].startswith("text/javascript")
    assert "content-encoding" not in script.headers
    for absent in ("/assets/nothing.js", "/assets/..%2f..%2fapp.py", "/assets/%2e%2e/index.html"):
        assert console.client.get(absent).status_code == 404
