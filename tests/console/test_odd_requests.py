"""Keys, conditions and pages as nobody should write them, over HTTP."""

from __future__ import annotations

import http.client
import threading
import time
from base64 import urlsafe_b64encode
from urllib.parse import quote

import orjson
import pytest
from confluent_kafka import Producer

from servers.consoles import Console
from servers.running_console import running
from tailrace.console.conditions import compile_condition
from tailrace.serving.remote import RemoteViews

ODD = [
    "né ü 漢字 😀", "a/b/c", "/", "a?b=c&d#e", "%2F", "..", "../..", "", " ", "\\", "\\N", "\\\\x",
    "changes", "explain", "null", "NULL", "a\nb\tc\x00d", '"quoted"', "{}", "x" * 3_000, None,
]  # fmt: skip


@pytest.fixture
def odd(console: Console) -> Console:
    console.ticks.declare("odd", ["a", "b"], [("a", "STRING"), ("b", "BIGINT"), ("n", "INT")])
    console.ticks.declare("words", ["a"], [("a", "STRING"), ("n", "INT")])
    console.ticks.tick(
        {
            "odd": [
                ({"a": a, "b": b}, {"a": a, "b": b, "n": n})
                for n, a in enumerate(ODD)
                for b in (None, -5, 1 << 60)
            ],
            "words": [({"a": a}, {"a": a, "n": n}) for n, a in enumerate(ODD)],
        }
    )
    console.follower.step(0)
    return console


def test_every_key_is_found_over_http_and_from_python(odd: Console) -> None:
    with running(odd) as port, RemoteViews(f"127.0.0.1:{port}") as remote:
        for n, a in enumerate(ODD):
            assert odd.served.views.get("words", a) == {"a": a, "n": n}
            assert remote["words"].get(a) == {"a": a, "n": n}, a
            assert remote["words"].get(a, at_least="tick:shop:1") == {"a": a, "n": n}
            for b in (None, -5, 1 << 60):
                assert odd.served.views.get("odd", (a, b)) == {"a": a, "b": b, "n": n}
                assert remote["odd"].get(a, b) == {"a": a, "b": b, "n": n}, (a, b)
            assert remote["odd"].get(a, 0) is None


def test_a_key_in_the_path_may_have_any_letter(odd: Console) -> None:
    with running(odd) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for key in ("a/b/c", "né ü 漢字 😀", "%2F", "a?b=c&d#e", "\\N", "x" * 3_000):
            written = "\\" + key if key.startswith("\\") else key
            for more in ("", "?at_least=tick:shop:1"):
                connection.request("GET", f"/api/views/words/{quote(written, safe='')}{more}")
                answer = connection.getresponse()
                assert orjson.loads(answer.read())["row"]["a"] == key
        connection.close()


@pytest.mark.parametrize(
    "parameters",
    [
        {"where": "true) UNION ALL SELECT 99999 WHERE (true"},
        {"where": "orders > 1; DROP TABLE x"},
        {"where": "country = (SELECT content FROM read_text('/etc/passwd'))"},
        {"where": "nothing = 1"},
        {"where": "'"},
        {"where": "(" * 9_000},
        {"after": "!!!"},
        {"after": "é"},
        {"after": urlsafe_b64encode(b"x" * 5_000).decode()},
        {"key": ["NL", "DE"]},
        {"at_least": "nonsense"},
        {"at_least": "tick:shop:-1"},
        {"at_least": "tick:shop:1", "timeout": "soon"},
        {"at_least": "log:clicks/x:1"},
    ],
)
def test_what_cannot_be_asked_is_400_in_four_parts(console: Console, parameters: dict) -> None:
    answer = console.client.get("/api/views/open_orders", params=parameters)
    assert answer.status_code == 400, (answer.status_code, answer.text)
    assert set(answer.json()) == {"error", "detail", "hint", "code"}
    assert console.client.get("/api/views/open_orders/NL").status_code == 200


@pytest.mark.parametrize(
    "where",
    [
        "orders > 1e9999999999999999999",
        "orders > -1e9999999999999999999",
        "orders IN (1, 1e9999999999999999999)",
        "orders > 1e99999" + "9" * 5_000,
        "(" * 9_000,
        "'",
    ],
)
@pytest.mark.parametrize("path", ["/api/views/open_orders/changes", "/api/topics/t/records"])
def test_a_condition_that_cannot_be_read_is_400(console: Console, path: str, where: str) -> None:
    answer = console.client.get(path, params={"where": where})
    assert answer.status_code == 400, (answer.status_code, answer.text)
    assert answer.json()["code"] == "usage"


def test_numbers_beyond_all_bounds_compare_as_unknown() -> None:
    for where in ("n * 1e999999999 * 1e999999999 > 1", "t > 1", "n > 1e999999999 + n", "-n * t > 1"):  # fmt: skip
        assert compile_condition(where)({"n": 10**18, "t": "1e9999999999999999999"}) is False


@pytest.mark.parametrize("start", ["-", "--5m", "5m", "-5 moons", "1" * 40, "²", "now"])
def test_a_start_that_is_no_time_is_400(console: Console, start: str) -> None:
    producer = Producer({"bootstrap.servers": console.served.bootstrap})
    producer.produce("t", value=b"x")
    assert producer.flush(30) == 0
    answer = console.client.get("/api/topics/t/latest", params={"from": start})
    assert answer.status_code == 400, (answer.status_code, answer.text)
    for right in ("-5m", "-1 h", "0", "earliest"):
        found = console.client.get("/api/topics/t/latest", params={"from": right}).json()
        assert [record["value"] for record in found["records"]] == ["x"], right


@pytest.mark.parametrize(
    "parameters", [{"limit": -1}, {"limit": 10**9}, {"limit": "x"}, {"where": "x" * 20_000}]
)
def test_what_is_out_of_bounds_is_422(console: Console, parameters: dict) -> None:
    assert console.client.get("/api/views/open_orders", params=parameters).status_code == 422


def test_a_wait_that_runs_out_is_504_whatever_is_asked(console: Console) -> None:
    waiting = {"at_least": "tick:shop:99", "timeout": "50ms"}
    client = console.client
    for answer in (
        client.get("/api/views/open_orders", params=waiting),
        client.get("/api/views/open_orders/NL", params=waiting),
        client.get("/api/views/open_orders", params={"key": "NL", **waiting}),
        client.post("/api/sql", params=waiting, json={"sql": "SELECT 1"}),
    ):
        assert answer.status_code == 504
        assert answer.json()["code"] == "position-timeout"


def test_many_who_wait_hold_up_nobody_and_are_answered_by_the_tick(console: Console) -> None:
    found: list[int] = []
    with running(console) as port:

        def wait() -> None:
            with RemoteViews(f"127.0.0.1:{port}") as remote:
                row = remote["open_orders"].get("NL", at_least="tick:shop:2", timeout=60)
                assert row is not None
                found.append(row["orders"])

        waiting = [threading.Thread(target=wait) for _ in range(120)]
        for thread in waiting:
            thread.start()
        time.sleep(0.5)
        with RemoteViews(f"127.0.0.1:{port}") as remote:
            assert remote.sql("SELECT 1 AS one").rows == [{"one": 1}]  # needs a thread there
            assert not found
        console.tick(NL=77)
        for thread in waiting:
            thread.join(60)
    assert found == [77] * 120
