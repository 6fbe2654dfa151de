"""Kafka Connect itself beside a worker of ours, over one Apache Kafka: equal answers to equal requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import tailrace as tr
from connectors.conftest import Asking, until
from servers.kafka import Kafka, KafkaUnavailable
from servers.kafka_connect import KafkaConnect
from tailrace.connectors.serve import ConnectServer, Settings

pytestmark = pytest.mark.clients

SOURCE, SINK = "FileStreamSource", "FileStreamSink"
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON, "value.converter": JSON}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        found = Kafka(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    yield found.bootstrap
    found.stop()


@pytest.fixture(scope="module")
def theirs(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnect]:
    found = KafkaConnect(tmp_path_factory.mktemp("connect"), bootstrap)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def ours(bootstrap: str) -> Iterator[ConnectServer]:
    given = {
        **CONVERTERS,
        **{f"{one}.storage.topic": f"our-{one}" for one in ("config", "offset", "status")},
        "offset.storage.partitions": "3",
    }
    with (
        tr.connect(bootstrap) as log,
        ConnectServer(log, bootstrap, Settings("127.0.0.1:0", [], given)) as server,
    ):
        server.start()
        yield server


class Pair:
    """The same request to both; what must be equal of the answers is compared."""

    def __init__(self, theirs: str, ours: str, directory: Path) -> None:
        self.asks = [Asking(theirs), Asking(ours)]
        self.files = [directory / "theirs", directory / "ours"]
        self.topics = ["theirs", "ours"]

    def _own(self, text: str, side: int) -> str:
        """`FILE` and `TOPIC` stand for a file and a topic of each side, `SNK` for a sink: both
        would else be in one group."""
        topic = self.topics[side]
        return text.replace("FILE", str(self.files[side])).replace("TOPIC", topic).replace("SNK", f"snk-{topic}")  # fmt: skip

    def answer(self, side: int, method: str, path: str, body: Any = None, content: bytes | None = None) -> tuple[Any, ...]:  # fmt: skip
        more: dict[str, Any] = {}
        if content is not None:
            more = {"content": content, "headers": {"Content-Type": "application/json"}}
        elif body is not None:
            more = {"json": json.loads(self._own(json.dumps(body), side))}
        answer = self.asks[side].client.request(method, self._own(path, side), **more)
        location = answer.headers.get("location", "").partition("/connectors")[2]
        location = location.replace(f"snk-{self.topics[side]}", "SNK")
        return answer.status_code, self._plain(answer, side), location

    def _plain(self, answer: httpx.Response, side: int) -> Any:
        text = answer.text.replace(str(self.files[side]), "FILE").replace(
            f"snk-{self.topics[side]}", "SNK"
        )
        text = text.replace(f'"{self.topics[side]}"', '"TOPIC"')
        return _without(json.loads(text)) if text else None

    def same(self, method: str, path: str, body: Any = None, content: bytes | None = None) -> Any:
        found = [self.answer(side, method, path, body, content) for side in (0, 1)]
        assert found[0] == found[1], f"{method} {path} {body}"
        return found[0]

    def wait(self, name: str, *states: str) -> None:
        for side, ask in enumerate(self.asks):
            ask.wait(self._own(name, side), *states)


def _without(found: Any) -> Any:
    """An answer without what names a product: versions, workers, words of documentation."""
    if isinstance(found, dict):
        left = {
            key: _without(value)
            for key, value in found.items()
            if key not in ("trace", "documentation", "version", "worker_id", "commit", "kafka_cluster_id")
        }  # fmt: skip
        if str(left.get("name", "")).endswith("plugin.version"):
            left = {k: v for k, v in left.items() if k not in ("default_value", "value", "recommended_values")}  # fmt: skip
        return left
    return [_without(one) for one in found] if isinstance(found, list) else found


@pytest.fixture
def both(theirs: KafkaConnect, ours: ConnectServer, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(theirs.address, ours.address, tmp_path)
    for path in pair.files:
        path.write_text("one\ntwo\nthree\n")
    until(lambda: all(ask("DELETE", "/connectors/none")[0] == 404 for ask in pair.asks))
    yield pair
    for ask in pair.asks:
        for name in ask("GET", "/connectors")[1]:
            ask("DELETE", f"/connectors/{name}")
        ask.client.close()


def settings(**more: str) -> dict[str, str]:
    given = {key.replace("__", "."): value for key, value in more.items()}
    return {"connector.class": SOURCE, "tasks.max": "1", "topic": "TOPIC", "file": "FILE", **given}


def test_a_connectors_life(both: Pair) -> None:
    same = both.same
    assert same("POST", "/connectors", {"name": "src", "config": settings()})[0] == 201
    assert same("POST", "/connectors", {"name": "src", "config": settings()})[0] == 409
    stopped = {"name": "st", "config": settings(), "initial_state": "STOPPED"}
    assert same("POST", "/connectors", stopped)[0] == 201
    paused = {"name": "pa", "config": settings(), "initial_state": "PAUSED"}
    assert same("POST", "/connectors", paused)[0] == 201
    both.wait("src", "RUNNING", "RUNNING")
    both.wait("st", "STOPPED")
    both.wait("pa", "PAUSED")
    until(lambda: all(ask("GET", "/connectors/src/offsets")[1]["offsets"] for ask in both.asks))
    until(lambda: all(ask("GET", "/connectors/src/topics")[1]["src"]["topics"] for ask in both.asks))  # fmt: skip
    for name in ("src", "st", "pa", "none"):
        for path in ("", "/config", "/status", "/tasks", "/topics", "/offsets", "/tasks/0/status",
                     "/tasks/7/status", "/tasks/x/status", "/tasks-config"):  # fmt: skip
            same("GET", f"/connectors/{name}{path}")
    for query in ("expand=status&expand=info", "expand=status", "expand=info", "expand=else"):
        same("GET", f"/connectors?{query}")
    same("PUT", "/connectors/src/config", settings(batch__size="100"))
    same("PUT", "/connectors/new/config", settings())
    same("PUT", "/connectors/src/config", settings(name="other"))
    same("PATCH", "/connectors/src/config", {"batch.size": None})
    same("PATCH", "/connectors/none/config", {"batch.size": None})
    same("PUT", "/connectors/src/pause")
    both.wait("src", "PAUSED", "PAUSED")
    same("GET", "/connectors/src/status")
    same("PUT", "/connectors/src/resume")
    both.wait("src", "RUNNING", "RUNNING")
    for query in ("", "?includeTasks=true&onlyFailed=true", "?includeTasks=true&onlyFailed=false"):
        same("POST", f"/connectors/src/restart{query}")
        both.wait("src", "RUNNING", "RUNNING")
    same("POST", "/connectors/src/tasks/0/restart")
    same("POST", "/connectors/src/tasks/9/restart")
    for path in ("restart", "restart?includeTasks=true", "tasks/0/restart"):
        same("POST", f"/connectors/none/{path}")
    for path in ("pause", "resume", "stop", "topics/reset"):
        same("PUT", f"/connectors/none/{path}")
    both.wait("src", "RUNNING", "RUNNING")
    for name in ("src", "st", "pa", "new"):
        assert same("DELETE", f"/connectors/{name}")[0] == 204
        same("DELETE", f"/connectors/{name}")
    same("GET", "/connectors")


def test_offsets(both: Pair) -> None:
    same = both.same
    same("POST", "/connectors", {"name": "off", "config": settings()})
    until(lambda: all(ask("GET", "/connectors/off/offsets")[1]["offsets"] for ask in both.asks))
    same("GET", "/connectors/off/offsets")
    same("DELETE", "/connectors/off/offsets")
    same("PATCH", "/connectors/off/offsets", {"offsets": [{"partition": {"a": 1}, "offset": None}]})
    same("PUT", "/connectors/off/stop")
    both.wait("off", "STOPPED")
    same("GET", "/connectors/off")
    here = {"filename": "FILE"}
    for offsets in (
        [],
        [{"partition": here, "offset": {"position": 4}}],
        [{"partition": here, "offset": {"position": "x"}}],
        [{"partition": None, "offset": {"position": 1}}],
        [{"partition": {"zz": 1}, "offset": {"position": 1}}],
        [{"partition": here, "offset": None}],
    ):
        same("PATCH", "/connectors/off/offsets", {"offsets": offsets})
        same("GET", "/connectors/off/offsets")
    same("PATCH", "/connectors/off/offsets", {})
    same("DELETE", "/connectors/off/offsets")
    same("GET", "/connectors/off/offsets")
    for method in ("DELETE", "GET"):
        same(method, "/connectors/none/offsets")


def test_sinks(both: Pair) -> None:
    same = both.same
    given = {"connector.class": SINK, "file": "FILE.out"}
    same("POST", "/connectors", {"name": "SNK", "config": given})
    same("POST", "/connectors", {"name": "SNK", "config": {**given, "topics": "TOPIC", "topics.regex": "x"}})  # fmt: skip
    for ask, topic in zip(both.asks, both.topics, strict=True):
        ask.make(f"filler-{topic}", SOURCE, topic=topic, file=str(both.files[both.topics.index(topic)]))  # fmt: skip
    same("POST", "/connectors", {"name": "SNK", "config": {**given, "topics": "TOPIC", "tasks.max": "2"}})  # fmt: skip
    both.wait("SNK", "RUNNING", "RUNNING", "RUNNING")
    outs = [Path(f"{path}.out") for path in both.files]
    until(lambda: all(out.exists() and out.read_text() for out in outs))
    for path in ("", "/status", "/tasks"):
        same("GET", f"/connectors/SNK{path}")
    same("PUT", "/connectors/SNK/stop")
    both.wait("SNK", "STOPPED")
    place = {"kafka_topic": "TOPIC", "kafka_partition": 0}
    for offsets in (
        [{"partition": place, "offset": {"kafka_offset": 1}}],
        [{"partition": {"kafka_topic": "TOPIC"}, "offset": {"kafka_offset": 1}}],
        [{"partition": place, "offset": {"kafka_offset": "x"}}],
    ):
        same("PATCH", "/connectors/SNK/offsets", {"offsets": offsets})
        same("GET", "/connectors/SNK/offsets")
    same("DELETE", "/connectors/SNK/offsets")
    same("GET", "/connectors/SNK/offsets")


def test_settings_that_are_wrong(both: Pair) -> None:
    same = both.same
    for config in (
        {}, {"connector.class": SOURCE}, settings(name="y"), settings(tasks__max="x"),
        settings(tasks__max="0"), settings(errors__tolerance="most"), settings(value__converter="Nope"),
        settings(batch__size="many"), settings(errors__log__enable="perhaps"),
    ):  # fmt: skip
        assert same("POST", "/connectors", {"name": "x", "config": config})[0] == 400
    same("POST", "/connectors", {"name": "", "config": settings()})
    for given in (
        settings(), {"connector.class": SOURCE, "topic": "x", "tasks.max": "abc"},
        {"connector.class": SINK, "topic": "x"},
    ):  # fmt: skip
        same("PUT", f"/connector-plugins/{SOURCE}/config/validate", given)
    same("PUT", f"/connector-plugins/{SINK}/config/validate", {"connector.class": SINK})
    for name in (SOURCE, SINK, "Nope"):
        same("GET", f"/connector-plugins/{name}/config")


def test_odd_requests(both: Pair) -> None:
    # Loggers are left out: their answers depend on the logging library that Connect is started with.
    for method, path in (
        ("GET", "/nothing"), ("PUT", "/connectors"), ("GET", "/connectors/none"), ("GET", "/health"),
    ):  # fmt: skip
        both.same(method, path)
    # The status alone: the words are those of Java's reader of JSON.
    for content in (b"{bad", b"[]", b"{}", b'{"name":"x","foo":1,"config":{}}'):
        found = [both.answer(side, "POST", "/connectors", content=content)[0] for side in (0, 1)]
        assert found == [500, 500]


def test_what_kafka_connect_left_is_taken_over(theirs: KafkaConnect, bootstrap: str, tmp_path: Path) -> None:  # fmt: skip
    """Last: it stops Kafka Connect, and goes on with its topics from its offsets."""
    path = tmp_path / "left.txt"
    path.write_text("one\ntwo\n")
    ask = Asking(theirs.address)
    ask.make("left", SOURCE, topic="left", file=str(path))
    until(lambda: ask("GET", "/connectors/left/offsets")[1]["offsets"] != [])
    ask.client.close()
    theirs.stop()
    with path.open("a") as file:
        file.write("three\n")
    given = {**CONVERTERS, "group.id": "after-kafka"}
    with (
        tr.connect(bootstrap) as log,
        ConnectServer(log, bootstrap, Settings("127.0.0.1:0", [], given)) as server,
    ):
        server.start()
        after = Asking(server.address)
        after.wait("left", "RUNNING", "RUNNING")
        until(lambda: len(list(log.read("left"))) == 3)
        values = [json.loads(one.value)["payload"] for one in log.read("left")]
        assert values == ["one", "two", "three"]
        assert after("DELETE", "/connectors/left")[0] == 204
        after.client.close()
