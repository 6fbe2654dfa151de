"""Webhooks and records over HTTP: what is signed, what is written, what is answered."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import tailrace as tr
from tailrace import sources
from tailrace.client.errors import RecordTooLargeError
from tailrace.client.log import Log
from tailrace.errors import TailraceError
from tailrace.node.parts import parts_of
from tailrace.plain_http import HttpServer
from tailrace.project import graph
from tailrace.project.check import check
from tailrace.project.load import load
from tailrace.sources.edges import produce, webhook
from tailrace.sources.edges.committer import Committer, Outgoing
from tailrace.sources.edges.figures import Figures
from tailrace.sources.edges.signatures import Unsigned, prove
from tailrace.sources.errors import SourceDeclarationError

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 24).decode()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        yield opened


@contextmanager
def serving(work: Any, refuse: Any) -> Iterator[httpx.Client]:
    server = HttpServer("127.0.0.1", 0, work, refuse=refuse, body_limit_bytes=1 << 20)
    try:
        work.start()
        server.start()
        with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
            yield client
    finally:
        server.close()
        work.close()


@contextmanager
def receiving(log: Log, **settings: Any) -> Iterator[tuple[httpx.Client, Figures]]:
    edge = sources.Webhook("hooks", "127.0.0.1:0", **{"secret": SECRET, "path": "/in", **settings})
    figures = Figures()
    with serving(webhook.Receiver(edge, log, figures), webhook.refuse) as client:
        yield client, figures


@contextmanager
def producing(log: Log, **settings: Any) -> Iterator[httpx.Client]:
    edge = sources.HTTP("in", "127.0.0.1:0", ["clicks", "views"], **settings)
    with serving(produce.Producing(edge, log, Figures()), produce.refuse) as client:
        yield client


def signed(identity: str, body: bytes, *, secret: str = SECRET, at: int | None = None) -> dict[str, str]:  # fmt: skip
    when = int(time.time()) if at is None else at
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{identity}.{when}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": identity,
        "webhook-timestamp": str(when),
        "webhook-signature": f"v1a,xxxx v1,{base64.b64encode(mac).decode()}",
    }


def test_the_example_of_standard_webhooks_is_proven() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    call = prove(
        "standard", [secret], headers, b'{"test": 2432232314}', now=1614265331, tolerance=5
    )
    assert call.id == "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_a_call_is_a_record_and_is_answered_with_its_position(log: Log) -> None:
    body = b'{ "order": 7 }'
    with receiving(log) as (client, figures):
        answer = client.post("/in", content=body, headers=signed("m1", body))
        assert answer.status_code == 200
        position = answer.json()["position"]
        (record,) = log.read("hooks")
        assert position == f"log:hooks/{record.partition}:{record.offset}"
        assert (record.value, dict(record.headers)["webhook-id"]) == (body, b"m1")
        again = client.post("/in", content=body, headers=signed("m1", body))
        assert again.json() == answer.json()
        assert figures.now() == {
            "received": 2, "accepted": 1, "refused": 0, "repeated": 1, "lost": 0,
        }  # fmt: skip
    with receiving(log) as (client, _):
        again = client.post("/in", content=body, headers=signed("m1", body))
        assert again.json() == answer.json(), "also after a restart"
    assert len(list(log.read("hooks"))) == 1


def test_a_call_repeated_at_once_is_written_once(log: Log) -> None:
    body = b"{}"
    with receiving(log) as (client, _), ThreadPoolExecutor(8) as threads:
        gate = threading.Barrier(8)

        def call(_: int) -> str:
            gate.wait()
            return str(client.post("/in", content=body, headers=signed("m1", body)).json())

        answers = set(threads.map(call, range(8)))
    assert len(answers) == 1
    assert len(list(log.read("hooks"))) == 1


def test_keys_are_rotated_by_giving_both(log: Log) -> None:
    with receiving(log, secret=[SECRET, OLD]) as (client, _):
        for number, secret in enumerate((SECRET, OLD)):
            headers = signed(f"m{number}", b"{}", secret=secret)
            assert client.post("/in", content=b"{}", headers=headers).status_code == 200


def test_what_is_forged_old_or_incomplete_is_refused_and_leaves_nothing(log: Log) -> None:
    good = signed("m1", b"{}")
    now = int(time.time())
    with receiving(log) as (client, figures):
        for headers, body, status in (
            (good, b"{ }", 401),
            (signed("m1", b"{}", secret=OLD), b"{}", 401),
            ({**good, "webhook-id": "m2"}, b"{}", 401),
            (signed("m1", b"{}", at=now - 3600), b"{}", 401),
            (signed("m1", b"{}", at=now + 3600), b"{}", 401),
            ({name: value for name, value in good.items() if name != "webhook-id"}, b"{}", 400),
            ({}, b"{}", 400),
            (signed("x" * 300, b"{}"), b"{}", 400),
        ):
            answer = client.post("/in", content=body, headers=headers)
            assert (answer.status_code, "error" in answer.json()) == (status, True)
        assert client.get("/in").status_code == 405
        assert client.post("/elsewhere", content=b"{}").status_code == 404
        large = b"x" * (2 << 20)
        assert client.post("/in", content=large, headers=signed("m1", large)).status_code == 413
        assert figures.now()["refused"] == 8
    assert list(log.read("hooks")) == []


def test_github_and_stripe_sign_in_their_ways() -> None:
    body = b'{"id": "evt_1"}'
    hexadecimal = hmac.new(b"s", body, hashlib.sha256).hexdigest()
    headers = {"x-github-delivery": "d1", "x-hub-signature-256": f"sha256={hexadecimal}"}
    assert prove("github", ["old", "s"], headers, body, now=0, tolerance=1).id == "d1"
    stamped = hmac.new(b"whsec_x", b"100." + body, hashlib.sha256).hexdigest()
    headers = {"stripe-signature": f"t=100,v1=00,v1={stamped},v0=1"}
    assert prove("stripe", ["whsec_x"], headers, body, now=101, tolerance=5).id == "evt_1"
    with pytest.raises(Unsigned, match="too old"):
        prove("stripe", ["whsec_x"], headers, body, now=1000, tolerance=5)
    for scheme in ("github", "stripe", "standard"):
        with pytest.raises(Unsigned):
            prove(scheme, ["s"], {"stripe-signature": "t=,v1="}, b"[" * 10_000, now=0, tolerance=1)


def records(*given: Any) -> dict[str, Any]:
    return {"content": json.dumps({"records": list(given)}), "headers": {"content-type": produce.JSON}}  # fmt: skip


def test_records_are_written_with_keys_headers_and_partitions(log: Log) -> None:
    log.create_topic("clicks", partitions=3)
    with producing(log) as client:
        one = {"key": "u1", "value": {"page": "home"}, "headers": [{"name": "h", "value": "x"}]}
        two = {"value": None, "partition": 2, "timestamp": 1000}
        answer = client.post("/topics/clicks", **records(one, two))
        assert answer.status_code == 200
        offsets = answer.json()["offsets"]
        assert offsets[1] == {"partition": 2, "offset": offsets[1]["offset"], "error_code": None, "error": None}  # fmt: skip
        data = base64.b64encode(b"\xff").decode()
        answer = client.post(
            "/topics/clicks/partitions/1",
            content=json.dumps({"records": [{"value": data, "key": data}]}),
            headers={"content-type": produce.BINARY},
        )
        assert answer.json()["offsets"][0]["partition"] == 1
        assert client.get("/topics").json() == ["clicks", "views"]
    found = {(one.key, one.value): one for one in log.read("clicks")}
    assert set(found) == {(b'"u1"', b'{"page":"home"}'), (None, None), (b"\xff", b"\xff")}
    assert dict(found[b'"u1"', b'{"page":"home"}'].headers) == {"h": b"x"}
    assert found[None, None].timestamp == 1000


BAD: list[tuple[str, Any, int]] = [
    ("/topics/secret", {"records": [{"value": 1}]}, 40401),
    ("/topics/clicks/partitions/99", {"records": [{"value": 1}]}, 40402),
    ("/topics/clicks/partitions/x", {"records": [{"value": 1}]}, 40402),
    ("/topics/clicks", {"records": []}, 422),
    ("/topics/clicks", [], 422),
    ("/topics/clicks", {"records": [1]}, 422),
    ("/topics/clicks", {"records": [{}]}, 422),
    ("/topics/clicks", {"records": [{"value": 1, "colour": 2}]}, 422),
    ("/topics/clicks", {"records": [{"value": 1, "timestamp": "x"}]}, 422),
    ("/topics/clicks", {"records": [{"value": 1, "headers": [1]}]}, 422),
    ("/topics/clicks", {"records": [{"value": 1}] * 10_001}, 413),
    ("/nothing", {}, 404),
]


def test_a_request_that_is_wrong_writes_nothing(log: Log) -> None:
    with producing(log) as client:
        for path, body, code in BAD:
            answer = client.post(path, content=json.dumps(body), headers={"content-type": produce.JSON})  # fmt: skip
            assert (answer.json()["error_code"], answer.status_code) == (code, int(str(code)[:3]))
        half = records({"value": 1}, {"value": 2, "partition": 77})
        assert client.post("/topics/clicks", **half).status_code == 404
        assert client.post("/topics/clicks", content=b"{").status_code == 415
        no_json = client.post(
            "/topics/clicks", content=b"{", headers={"content-type": produce.JSON}
        )
        assert no_json.status_code == 400
        bad = client.post("/topics/clicks", content=b'{"records": [{"value": "%"}]}', headers={"content-type": produce.BINARY})  # fmt: skip
        assert bad.json()["error_code"] == 42205
    assert list(log.read("clicks")) == []


def test_a_record_too_large_fails_its_request_and_the_next_goes_on(log: Log) -> None:
    log.create_topic("clicks", 1, {"max.message.bytes": 1000})
    with producing(log) as client:
        large = client.post("/topics/clicks", **records({"value": 1}, {"value": "x" * 5000}))
        assert large.json()["error_code"] == 42205
        assert client.post("/topics/clicks", **records({"value": 2})).status_code == 200
    assert [one.value for one in log.read("clicks")] == [b"2"]


def test_a_token_is_asked_for(log: Log) -> None:
    with producing(log, token="long-secret") as client:
        assert client.post("/topics/clicks", **records({"value": 1})).status_code == 401
        client.headers["authorization"] = "Bearer long-secret"
        assert client.post("/topics/clicks", **records({"value": 1})).status_code == 200


def test_many_requests_at_once_are_each_written_whole(log: Log) -> None:
    log.create_topic("clicks", partitions=1)
    with producing(log) as client, ThreadPoolExecutor(8) as threads:
        sent = [records(*({"value": [n, m]} for m in range(3))) for n in range(40)]
        answers = list(threads.map(lambda one: client.post("/topics/clicks", **one), sent))
    assert all(answer.status_code == 200 for answer in answers)
    values = [json.loads(one.value or b"") for one in log.read("clicks")]
    assert sorted(values) == [[n, m] for n in range(40) for m in range(3)]
    offsets = [each["offset"] for answer in answers for each in answer.json()["offsets"]]
    assert len(set(offsets)) == 120


def test_a_record_too_large_does_not_fail_requests_beside_it(log: Log) -> None:
    log.create_topic("clicks", 1, {"max.message.bytes": 1000})
    committer = Committer(log, "beside")
    requests = [
        committer.submit([Outgoing("clicks", value)]) for value in (b"1", b"x" * 5000, b"3")
    ]
    committer.start()  # all three wait, so that they are taken together
    try:
        assert len(requests[0].result(60)) == len(requests[2].result(60)) == 1
        with pytest.raises(RecordTooLargeError):
            requests[1].result(60)
    finally:
        committer.close()
    assert [one.value for one in log.read("clicks")] == [b"1", b"3"]


def test_a_writer_that_was_fenced_takes_over_again_and_loses_nothing(log: Log) -> None:
    with receiving(log) as (client, _):
        assert client.post("/in", content=b"1", headers=signed("m1", b"1")).status_code == 200
        other = log.transactional_writer("tailrace.edge.hooks")
        other.init()
        other.close()
        statuses = []
        while 200 not in statuses:
            statuses.append(
                client.post("/in", content=b"2", headers=signed("m2", b"2")).status_code
            )
        assert set(statuses) <= {200, 503}
        assert client.post("/in", content=b"1", headers=signed("m1", b"1")).status_code == 200
    assert sorted(one.value or b"" for one in log.read("hooks")) == [b"1", b"2"]


WRONG: list[tuple[Any, str]] = [
    (lambda: sources.Webhook("h", "127.0.0.1:1", secret=[]), "anybody could call"),
    (lambda: sources.Webhook("h", "127.0.0.1:1", "s", scheme="x"), "unknown scheme"),
    (lambda: sources.Webhook("h", "127.0.0.1:1", "s", path="in"), "slash"),
    (lambda: sources.Webhook("h", "127.0.0.1", "s"), "h"),
    (lambda: sources.Webhook("h", "127.0.0.1:1", "s", tolerance="soon"), "duration"),
    (lambda: sources.Webhook("h h", "127.0.0.1:1", "s"), "no name of a topic"),
    (lambda: sources.HTTP("h", "127.0.0.1:1", []), "no topics"),
    (lambda: sources.HTTP("h", "0.0.0.0:1", ["t"]), "could write"),
    (lambda: sources.HTTP("h", "127.0.0.1:1", ["t"], cert="c.pem"), "go together"),
]


@pytest.mark.parametrize(("declare", "why"), WRONG)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(declare: Any, why: str) -> None:
    with pytest.raises(SourceDeclarationError, match=why):
        declare()


def test_secrets_are_not_shown() -> None:
    assert "hidden-secret" not in repr(sources.Webhook("h", "127.0.0.1:1", "hidden-secret"))
    assert "hidden-secret" not in repr(sources.HTTP("h", "127.0.0.1:1", ["t"], "hidden-secret"))


def test_a_project_runs_its_edges_and_reads_their_topics(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text("")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "edges.py").write_text(
        "import tailrace as tr\nfrom tailrace import sources\n"
        'hooks = sources.Webhook("hooks", "127.0.0.1:9000", tr.env("EDGE_SECRET_NOT_SET"))\n'
        'calls = tr.topic("hooks", schema="order BIGINT")\n'
        'web = sources.HTTP("web", "127.0.0.1:9001", ["clicks"])\n'
        'per_order = tr.view("per_order", "SELECT `order`, count(*) AS n FROM hooks GROUP BY `order`")\n'
    )
    project = load(tmp_path)
    assert [part.name for part in parts_of(project) if part.kind == "edge"] == ["hooks", "web"]
    found = {one.what: one for one in check(project, connections=False)}
    assert found["edge hooks"].found == "webhook on 127.0.0.1:9000"
    assert all(one.error is None for one in found.values())
    here = {one.what: one.error for one in check(project)}["edge hooks"]
    assert here is not None
    assert "EDGE_SECRET_NOT_SET" in here.message
    from tailrace.project.connections import missing_variables

    assert [part for part, _ in missing_variables(project)] == [("edge", "hooks")]
    drawn = graph.build(project)
    assert {("edge:hooks", "hooks"), ("hooks", "per_order"), ("edge:web", "clicks")} <= set(
        drawn.edges
    )
    assert "edge hooks" in drawn.text()
    assert "hooks" in drawn.mermaid()
    (tmp_path / "pipelines" / "clicks.sql").write_text("SELECT 1 AS one")
    with pytest.raises(TailraceError, match="'clicks' is taken"):
        graph.build(load(tmp_path))
    (tmp_path / "pipelines" / "clicks.sql").unlink()
    (tmp_path / "pipelines" / "more.py").write_text(
        'from tailrace import sources\nagain = sources.HTTP("web", "127.0.0.1:9002", ["clicks"])\n'
    )
    with pytest.raises(TailraceError, match="two edges"):
        load(tmp_path)
