"""Mirrors that a project declares: read, checked, run, told, left and come back to."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tailrace import config
from tailrace.broker.embedded import BrokerThread
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.client.log import connect
from tailrace.console.alarms import alarms
from tailrace.console.gauges import publish_parts
from tailrace.errors import ConfigError, TailraceError
from tailrace.mirroring.errors import MirrorDeclarationError
from tailrace.node.parts import parts_of
from tailrace.node.supervisor import Supervisor
from tailrace.project import graph, load
from tailrace.project.check import check
from tailrace.security import security_of
from tailrace.telemetry.metrics import exposition

PROJECT = """
[project]
name = "shop"
[log]
listen = "127.0.0.1:0"
[console]
listen = "127.0.0.1:0"
token = "none"
[topics.orders]
partitions = 2
"""
CLUSTERS = """
[clusters.ams]
bootstrap = "127.0.0.1:1"
[clusters.ber]
bootstrap = "127.0.0.1:2"
"""


def _project(directory: Path, toml: str, declarations: str = "") -> load.Project:
    (directory / "tailrace.toml").write_text(PROJECT + toml)
    if declarations:
        (directory / "pipelines").mkdir()
        (directory / "pipelines" / "mirrors.py").write_text(declarations)
    return load.load(directory)


def test_mirrors_of_the_file_and_of_python_are_the_same(tmp_path: Path) -> None:
    table = """
[mirrors.to-berlin]
from = "ams"
to = "ber"
topics = ["orders", "shop\\\\..*"]
groups = ["billing"]
conflicts = "latest"
pin = { carts = "key-prefix" }
"""
    declared = """
import tailrace as tr

to_berlin = tr.mirror("to-berlin", "ams", "ber", topics=["orders", r"shop\\..*"], groups=["billing"],
                      conflicts="latest", pin={"carts": "key-prefix"})
"""
    for name in ("file", "python"):
        (tmp_path / name).mkdir()
    one = _project(tmp_path / "file", CLUSTERS + table)
    two = _project(tmp_path / "python", CLUSTERS, declared)
    assert one.mirrors == two.mirrors
    plan = one.mirrors["to-berlin"]
    assert (plan.others, plan.topics_pattern) == (("ber",), r"(?:orders)|(?:shop\..*)")
    assert one.places["mirror to-berlin"].startswith("tailrace.toml:")
    assert two.places["mirror to-berlin"] == "pipelines/mirrors.py:4"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('from = "ams"\nto = "bre"\ntopics = ["orders"]', "'bre', which is not known"),
        ('from = "ams"\nto = "ber"', "lacks 'topics'"),
        ('from = "ams"\nto = "ams"\ntopics = ["orders"]', "both ends are one log"),
        ('from = "ams"\nto = "ber"\ntopics = ["("]', "is no regular expression"),
        ('from = "ams"\nto = "ber"\ntopics = ["o"]\ncut = "sources"', "there is no cut"),
        ('from = "ams"\nto = "ber"\ntopics = ["o"]\nconflicts = "site:x"', "'x' win"),
        ('from = "ams"\nto = "ber"\ntopics = ["o"]\nconflicts = "newest"', "no rule 'newest'"),
        ('from = "ams"\nto = "ber"\ntopics = ["o"]\ntopic = "o"', "no setting 'topic'"),
        ('from = "ams"\nto = "ber"\ntopics = 7', "topics of mirror"),
        ('from = "ams"\nto = "ber"\ntopics = ["o"]\nnames = "prefix"\nconflicts = "latest"', "have one writer"),
    ],
)  # fmt: skip
def test_a_mirror_that_cannot_be_is_told_with_its_line(
    tmp_path: Path, table: str, said: str
) -> None:
    try:
        found = check(_project(tmp_path, f"{CLUSTERS}[mirrors.m]\n{table}\n"))
        error = next(each.error for each in found if each.error is not None)
    except TailraceError as refused:
        error = refused
    assert isinstance(error, MirrorDeclarationError)
    assert said in error.message
    line = (PROJECT + CLUSTERS).count("\n") + 1
    assert f"tailrace.toml:{line}" in error.detail


def test_both_directions_settle_conflicts_by_one_rule(tmp_path: Path) -> None:
    pair = """
[mirrors.a]
from = "ams"
to = "ber"
topics = ["orders"]
conflicts = "latest"
[mirrors.b]
from = "ber"
to = "ams"
topics = ["orders"]
"""
    found = [each.error for each in check(_project(tmp_path, CLUSTERS + pair)) if each.error]
    assert [type(each) for each in found] == [MirrorDeclarationError] * 2
    assert "different rules" in found[0].message


def test_the_topology_shows_mirrors_between_clusters(tmp_path: Path) -> None:
    tables = """
[mirrors.there]
from = "log"
to = "ber"
topics = ["clicks"]
[mirrors.back]
from = "ber"
to = "log"
topics = ["clicks"]
"""
    declared = 'import tailrace as tr\n\nclicks = tr.topic("clicks", schema="term STRING")\n'
    topology = graph.build(_project(tmp_path, CLUSTERS + tables, declared))
    assert ("clicks", "mirror:there") in topology.edges
    assert ("mirror:there", "to:ber") in topology.edges
    assert ("from:ber", "mirror:back") in topology.edges
    assert "mirror there" in topology.text()
    assert "mirror" not in topology.mermaid().splitlines()[0]


def test_clusters_have_security_and_hide_it(tmp_path: Path) -> None:
    secret = "cAnArY-of-the-cluster"
    text = f"""
[clusters.ams]
bootstrap = "ams-1:9092,ams-2:9092"
[clusters.ams.security]
mechanism = "SCRAM-SHA-512"
username = "mirror"
password = "{secret}"
"""
    (tmp_path / "tailrace.toml").write_text(text)
    settings = config.load(tmp_path)
    address = settings.clusters["ams"]
    assert address == "ams-1:9092,ams-2:9092"
    security = security_of(address)
    assert security is not None
    assert security.password == secret
    assert secret not in repr(settings)
    (tmp_path / "tailrace.toml").write_text("[clusters.ams]\nbootstrap = 'ams'\n")
    with pytest.raises(ConfigError, match=r"clusters\.ams\.bootstrap"):
        config.load(tmp_path)
    (tmp_path / "tailrace.toml").write_text("[clusters.ams]\nbootstraps = 'ams:1'\n")
    with pytest.raises(ConfigError, match="unknown key"):
        config.load(tmp_path)


def _until(supervisor: Supervisor, true: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        supervisor.run_once(0.05)


def _values(address: str) -> list[bytes | None]:
    with Fetcher(address) as fetcher:
        return [each.value for each in fetcher.read_all("orders")]


def test_a_running_project_mirrors_fails_over_and_back(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    with BrokerThread(tmp_path / "ber", durable=False) as ber:
        tables = f"""
[clusters.ber]
bootstrap = "{ber.address}"
[mirrors.to-berlin]
from = "log"
to = "ber"
topics = ["orders"]
shards = 2
"""
        project = _project(tmp_path / "shop", tables)
        assert [each.id for each in parts_of(project) if each.kind == "mirror"] == ["mirror-to-berlin", "mirror-to-berlin#1"]  # fmt: skip
        assert len(parts_of(project, ["to-berlin"])) == 4
        run = project.settings.state_directory / "run"

        def report(part: str) -> dict[str, Any]:
            return dict(json.loads((run / f"{part}.json").read_text()))

        with Supervisor(project, echo=lambda line: None) as supervisor:
            supervisor.start()
            _until(supervisor, supervisor.ready)
            with connect(supervisor.address) as log, log.producer() as producer:
                producer.send("orders", value=b"one", partition=0)
            _until(supervisor, lambda: report("mirror-to-berlin").get("records") == 1)
            _until(supervisor, lambda: report("mirror-to-berlin#1").get("state") == "running")
            assert _values(ber.address) == [b"one"]
            console = f"http://{report('console-console')['address'].removeprefix('http://')}"

            def ask(path: str, question: object = None) -> dict[str, Any]:
                data = None if question is None else json.dumps(question).encode()
                asked = urllib.request.Request(f"{console}{path}", data, {"content-type": "application/json"})  # fmt: skip
                with urllib.request.urlopen(asked, timeout=30) as answer:
                    return dict(json.load(answer))

            about = ask("/api/mirrors/to-berlin")
            assert ask("/api/mirrors")["mirrors"][0]["name"] == "to-berlin"
            assert (about["state"], about["lag_records"], about["records"]) == ("running", 0, 1)
            assert about["topics"][0]["topic"] == "orders"
            command = CliRunner().invoke(cli, ["mirror", "list", "-C", str(tmp_path / "shop"), "--json"])  # fmt: skip
            assert json.loads(command.output)[0]["records"] == 1
            with pytest.raises(urllib.error.HTTPError) as missing:
                ask("/api/mirrors/nobody")
            assert missing.value.code == 404
            missing.value.close()
            planned = ask("/api/mirrors/to-berlin/fail-over", {})
            assert (planned["executed"], planned["not_mirrored"]) == (False, 0)
            with pytest.raises(urllib.error.HTTPError) as running:
                ask("/api/mirrors/to-berlin/fail-back", {"execute": True})
            assert running.value.code == 400
            running.value.close()
            assert ask("/api/mirrors/to-berlin/fail-over", {"execute": True})["executed"]
            assert ask("/api/mirrors/to-berlin")["state"] == "failed-over"
            with connect(ber.address) as log, log.producer() as producer:
                producer.send("orders", value=b"two", partition=0)
            assert ask("/api/mirrors/to-berlin/fail-back", {"execute": True})["executed"]
            assert _values(supervisor.address) == [b"one", b"two"]
            with connect(supervisor.address) as log, log.producer() as producer:
                producer.send("orders", value=b"three", partition=0)
            _until(supervisor, lambda: _values(ber.address) == [b"one", b"two", b"three"])


def test_stops_and_lag_raise_alarms_and_are_measured(tmp_path: Path) -> None:
    stop = {"error": "orders/0 of the source does not hold offset 7 any more", "detail": "", "hint": "--accept-gap goes on at offset 9", "code": "mirror-records-gone"}  # fmt: skip
    part = {"kind": "mirror", "name": "m", "state": "lagging", "error": stop, "stops": [stop], "behind_seconds": 700, "lag": 12, "records": 5, "conflicts": 2}  # fmt: skip
    found = list(alarms([part], [], tmp_path))
    told = [each for each in found if each["what"] == "mirror m"]
    assert [each["level"] for each in told] == ["critical", "critical"]
    assert told[0]["message"] == stop["error"]
    assert "12 offsets" in told[1]["message"]
    *_, of_shard = alarms([{**part, "name": "m#1"}], [], tmp_path)
    assert of_shard["what"] == "mirror m#1"
    assert "`tailrace mirror status m` " in of_shard["hint"]
    publish_parts([part], told)
    text = exposition().decode()
    for line in ("tailrace_mirror_records{name=\"m\"} 5.0", "tailrace_mirror_conflicts{name=\"m\"} 2.0", "tailrace_mirror_stopped_partitions{name=\"m\"} 1.0"):  # fmt: skip
        assert line in text
    publish_parts([], [])


def test_check_asks_both_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with BrokerThread(tmp_path / "ber", durable=False) as ber:
        (tmp_path / "shop").mkdir()
        tables = f'[clusters.ber]\nbootstrap = "{ber.address}"\n[mirrors.m]\nfrom = "ber"\nto = "ams"\ntopics = ["orders"]\n[clusters.ams]\nbootstrap = "127.0.0.1:1"\n'  # fmt: skip
        project = _project(tmp_path / "shop", tables)
        assert not [each.error for each in check(project) if each.error]
        from tailrace.project import mirrors

        with pytest.raises(TailraceError, match="no broker answers"):
            mirrors.look(project, project.mirrors["m"], connect=True)
        with Admin(ber.address) as admin:
            assert admin.describe_topic("__tailrace_mirrors") is None
