"""A worker, its REST interface, and connectors that behave or do not."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from connectors.conftest import Asking, task_processes, until
from tailrace.client.log import Log


def test_a_connector_lives_from_its_creation_to_its_end(ask: Asking, log: Log, tmp_path: Path) -> None:  # fmt: skip
    (tmp_path / "in.txt").write_text("one\ntwo\nno end")
    ask.make("life", "FileStreamSource", topic="life", file=str(tmp_path / "in.txt"))
    ask.wait("life", "RUNNING", "RUNNING")
    until(lambda: ask("GET", "/connectors/life/offsets")[1]["offsets"] != [])
    assert [one.value for one in log.read("life")] == [b'"one"', b'"two"']
    assert ask("GET", "/connectors/life/topics")[1] == {"life": {"topics": ["life"]}}
    assert ask("GET", "/connectors/life/tasks")[1][0]["id"] == {"connector": "life", "task": 0}
    assert ask("PUT", "/connectors/life/pause")[0] == 202
    ask.wait("life", "PAUSED", "PAUSED")
    assert ask("PUT", "/connectors/life/resume")[0] == 202
    ask.wait("life", "RUNNING", "RUNNING")
    assert ask("DELETE", "/connectors/life/offsets")[0] == 400
    assert ask("PUT", "/connectors/life/stop")[0] == 204
    ask.wait("life", "STOPPED")
    position = {"partition": {"filename": str(tmp_path / "in.txt")}, "offset": {"position": 4}}
    until(lambda: ask("PATCH", "/connectors/life/offsets", {"offsets": [position]})[0] == 200)
    assert ask("GET", "/connectors/life/offsets")[1]["offsets"] == [position]
    ask("PUT", "/connectors/life/resume")
    until(lambda: len(list(log.read("life"))) == 3)
    assert ask("DELETE", "/connectors/life")[0] == 204
    assert ask("GET", "/connectors/life/status")[0] == 404
    until(lambda: not task_processes())


@pytest.mark.crash
def test_records_and_offsets_are_one_transaction_through_kills(ask: Asking, log: Log) -> None:
    ask.make("once", "Numbers", topic="once", tasks__max="2", parts="2", end="400")
    ask.wait("once", "RUNNING", "RUNNING", "RUNNING")
    for _ in range(4):
        until(lambda: len(task_processes()) == 2)
        for one in task_processes():
            os.kill(one.pid, signal.SIGKILL)
        until(lambda: ask.states("once") != ["RUNNING", "RUNNING", "RUNNING"], seconds=10)
        ask.wait("once", "RUNNING", "RUNNING", "RUNNING")  # started again by the worker
    rows = lambda: [(one.key, orjson.loads(one.value)["n"]) for one in log.read("once")]  # noqa: E731
    until(lambda: len(rows()) >= 800)
    assert Counter(rows()) == {(key, n): 1 for key in (b"0", b"1") for n in range(1, 401)}
    ask("DELETE", "/connectors/once")


@pytest.mark.parametrize(
    ("where", "how"),
    [
        ("start", "raise"),
        *(
            pytest.param(where, how, marks=pytest.mark.crash)
            for where in ("tasks", "start", "poll")
            for how in ("raise", "exit", "system exit")
            if (where, how) != ("start", "raise")
        ),
    ],
)
def test_a_method_that_fails_is_told_in_four_parts(ask: Asking, where: str, how: str) -> None:
    name = f"bad-{where}-{how.replace(' ', '-')}"
    ask.make(name, "Misbehaves", where=where, how=how)
    trace = ask.trace(name)
    assert trace.startswith("error: ")
    assert "hint: " in trace
    if how == "raise":
        assert f"no {where} today" in trace
    ask("DELETE", f"/connectors/{name}")


@pytest.mark.crash
@pytest.mark.parametrize("where", ["tasks", "start", "poll"])
def test_a_method_that_hangs_is_ended(ask: Asking, where: str) -> None:
    ask.make(f"hang-{where}", "Misbehaves", where=where, how="hang",
             task__start__timeout__ms="1000", task__poll__timeout__ms="1000")  # fmt: skip
    assert "connector-hangs" in ask.trace(f"hang-{where}")
    ask("DELETE", f"/connectors/hang-{where}")
    until(lambda: not task_processes())


@pytest.mark.crash
@pytest.mark.parametrize("where", ["check", "tasks", "start", "poll"])
def test_a_connector_that_forks_leaves_nothing_behind(ask: Asking, where: str) -> None:
    ask.make(f"fork-{where}", "Misbehaves", where=where, how="fork")
    ask.wait(f"fork-{where}", "RUNNING", "RUNNING")
    ask("DELETE", f"/connectors/fork-{where}")
    until(lambda: not task_processes())


@pytest.mark.crash
def test_a_stop_that_hangs_is_not_waited_for(ask: Asking) -> None:
    ask.make("slow-stop", "Misbehaves", where="stop", how="hang")
    ask.wait("slow-stop", "RUNNING", "RUNNING")
    ask("DELETE", "/connectors/slow-stop")
    until(lambda: not task_processes())


def test_secrets_stay_references(ask: Asking, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBERS_PASSWORD", "very-secret-indeed")
    ask.make("hidden", "Numbers", topic="hidden", end="5", password="${env:NUMBERS_PASSWORD}")
    ask.wait("hidden", "RUNNING", "RUNNING")
    for path in ("", "/config", "/tasks", "/status"):
        assert "very-secret-indeed" not in ask.client.get(f"/connectors/hidden{path}").text
    assert all(b"very-secret" not in (one.value or b"") for one in log.read("connect-configs"))
    assert ask("GET", "/connectors/hidden/config")[1]["password"] == "${env:NUMBERS_PASSWORD}"
    ask("DELETE", "/connectors/hidden")
    ask.make("hidden2", "Numbers", topic="hidden", password="${env:NOBODY_SET_THIS}")
    assert "NOBODY_SET_THIS" in ask.trace("hidden2")
    ask("DELETE", "/connectors/hidden2")


@pytest.mark.parametrize(
    ("settings", "status", "told"),
    [
        ({}, 400, "contains no connector type"),
        ({"connector.class": "Nope"}, 400, "which name matches Nope"),
        ({"connector.class": "Numbers"}, 400, 'Missing required configuration "topic"'),
        ({"connector.class": "Numbers", "topic": "t", "parts": "x"}, 400, "Not a number of type INT"),
        ({"connector.class": "Numbers", "topic": "t", "tasks.max": "0"}, 400, "Value must be at least 1"),
        ({"connector.class": "Numbers", "topic": "t", "errors.tolerance": "some"}, 400, "none, all"),
        ({"connector.class": "Numbers", "topic": "t", "value.converter": "x"}, 400, "Class x could not be found"),
        ({"connector.class": "Numbers", "topic": "t", "transforms": "a"}, 400, "module:function"),
        ({"connector.class": "Numbers", "topic": "t", "name": "other"}, 400, "doesn't match"),
        ({"connector.class": "Table", "file": "x"}, 400, "Must configure one of topics"),
        ({"connector.class": "Misbehaves", "where": "check", "how": "raise"}, 500, "no check today"),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(
    ask: Asking, settings: dict[str, Any], status: int, told: str
) -> None:
    found = ask("POST", "/connectors", {"name": "refused", "config": settings})
    assert found[0] == status
    assert told in found[1]["message"]
    assert found[1]["error_code"] == status


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/connectors", b"{bad", 500),
        ("POST", "/connectors", b"[]", 500),
        ("POST", "/connectors", b'{"name": "x", "config": {"a": {}}}', 500),
        ("PUT", "/connectors", b"", 405),
        ("GET", "/nowhere", b"", 404),
        ("GET", "/connectors/none", b"", 404),
        ("PUT", "/connectors/none/pause", b"", 404),
        ("POST", "/connectors/none/tasks", b"[]", 403),
        ("PUT", "/connectors/none/fence", b"", 403),
        ("GET", "/admin/loggers/none.such", b"", 404),
        ("PUT", "/admin/loggers/x", b'{"level": "LOUD"}', 404),
    ],
)
def test_odd_requests_get_an_error_body(ask: Asking, method: str, path: str, content: bytes, status: int) -> None:  # fmt: skip
    answer = ask.client.request(method, path, content=content)
    assert answer.status_code == status
    assert answer.json()["error_code"] == status
    assert answer.json()["message"]


def test_a_broken_plugin_hurts_no_other(ask: Asking) -> None:
    names = [one["class"] for one in ask("GET", "/connector-plugins")[1]]
    assert "sample_connectors.Numbers" in names
    assert "tailrace.connectors.FileTail" in names
    found = ask("POST", "/connectors", {"name": "x", "config": {"connector.class": "Broken"}})
    assert "broken_plugin" in found[1]["message"]
    assert "it lacks something" in found[1]["message"]


def test_a_sink_passes_records_by_that_fail(ask: Asking, log: Log, tmp_path: Path) -> None:
    with log.producer() as producer:
        for value in ('{"a":1}', "{bad", '{"poison":true}', '{"a":2}'):
            producer.send("in", value=value, key="k", headers=[("h", b"x")])
    ask.make("table", "Table", topics="in", file=str(tmp_path / "out"), errors__tolerance="all",
             errors__deadletterqueue__topic__name="letters",
             errors__deadletterqueue__context__headers__enable="true")  # fmt: skip
    until(lambda: (tmp_path / "out").exists() and len((tmp_path / "out").read_text().splitlines()) == 2)  # fmt: skip
    until(lambda: log.topic("letters") is not None and len(list(log.read("letters"))) == 2)
    bad, poison = log.read("letters")
    assert (bad.key, bad.value, bad.header("h")) == (b"k", b"{bad", b"x")
    assert bad.header("__connect.errors.stage") == b"VALUE_CONVERTER"
    assert bad.header("__connect.errors.offset") == b"1"
    assert bad.header("__connect.errors.class.name") == b"org.apache.kafka.connect.json.JsonConverter"  # fmt: skip
    assert poison.header("__connect.errors.stage") == b"TASK_PUT"
    place = {"kafka_partition": 0, "kafka_topic": "in"}
    until(lambda: ask("GET", "/connectors/table/offsets")[1]["offsets"] == [{"partition": place, "offset": {"kafka_offset": 4}}])  # fmt: skip
    ask("DELETE", "/connectors/table")


@pytest.mark.crash
def test_a_sink_without_tolerance_fails(ask: Asking, log: Log, tmp_path: Path) -> None:
    with log.producer() as producer:
        producer.send("bad-in", value="{bad")
    ask.make("strict", "Table", topics="bad-in", file=str(tmp_path / "out"))
    assert "no JSON" in ask.trace("strict")
    ask("DELETE", "/connectors/strict")


def test_transforms_change_drop_and_fail_records(ask: Asking, log: Log, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nskip\nfail\nb\n")
    ask.make("loud", "FileStreamSource", topic="loud", file=str(tmp_path / "in.txt"), transforms="l",
             transforms__l__type="sample_connectors:louder", transforms__l__sign="!",
             transforms__l__drop="skip", errors__tolerance="all", value__converter="string")  # fmt: skip
    until(lambda: log.topic("loud") is not None and len(list(log.read("loud"))) == 2)
    assert [one.value for one in log.read("loud")] == [b"a!", b"b!"]
    ask("DELETE", "/connectors/loud")


def test_validate_lists_every_setting(ask: Asking) -> None:
    path = "/connector-plugins/Numbers/config/validate"
    status, found = ask("PUT", path, {"connector.class": "Numbers", "name": "n", "parts": "x"})
    assert status == 200
    assert found["error_count"] == 2
    errors = {one["value"]["name"]: one["value"]["errors"] for one in found["configs"] if one["value"]["errors"]}  # fmt: skip
    assert errors == {
        "topic": ['Missing required configuration "topic" which has no default value.'],
        "parts": ["Invalid value x for configuration parts: Not a number of type INT"],
    }
    own = next(one["definition"] for one in found["configs"] if one["value"]["name"] == "password")
    assert own["type"] == "PASSWORD"
