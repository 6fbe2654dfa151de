"""Cluster status, elections and moves on three brokers of Apache Kafka, beside librdkafka's view."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from servers.kafka import Kafka, KafkaUnavailable
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.client.errors import RequestError
from tailrace.client.log import connect
from tailrace.client.moves import PlannedMove, begin, throttled, throttles_of
from tailrace.client.operations import Operations
from tailrace.console.cluster_watch import ClusterWatch, cluster_alarms
from tailrace.errors import TailraceError

pytestmark = pytest.mark.cluster
PATIENCE = 120.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    try:
        cluster = Kafka(tmp_path_factory.mktemp("three"), 3)
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield cluster
    cluster.stop()


def _cluster(kafka: Kafka, *arguments: str) -> tuple[int, Any]:
    result = CliRunner().invoke(
        cli, ["cluster", *arguments, "--bootstrap", kafka.bootstrap, "--json"]
    )
    if isinstance(result.exception, TailraceError):
        raise result.exception
    return result.exit_code, json.loads(result.output)


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)


def _make(kafka: Kafka, name: str, partitions: int, copies: int) -> None:
    with Admin(kafka.bootstrap) as admin:
        admin.create_topic(name, partitions, replication_factor=copies)
    _until(lambda: _cluster(kafka, "status")[0] == 0)


def _partitions(kafka: Kafka, topic: str) -> list[dict[str, Any]]:
    _, document = _cluster(kafka, "status")
    (found,) = [each for each in document["topics"] if each["name"] == topic]
    partitions: list[dict[str, Any]] = found["partitions"]
    return partitions


def test_status_is_what_librdkafka_is_told(kafka: Kafka) -> None:
    _make(kafka, "orders", 6, 3)
    status, document = _cluster(kafka, "status")
    assert status == 0
    assert document["controller"]["id"] in (1, 2, 3)
    assert document["controller"]["voters"] == [1, 2, 3]
    assert [(each["id"], each["state"]) for each in document["brokers"]] == [
        (1, "up"), (2, "up"), (3, "up"),
    ]  # fmt: skip
    told = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics("orders", timeout=30)
    for each in _partitions(kafka, "orders"):
        other = told.topics["orders"].partitions[each["partition"]]
        assert (each["leader"], set(each["replicas"]), set(each["in_sync"])) == (
            other.leader, set(other.replicas), set(other.isrs),
        )  # fmt: skip


def test_a_broker_that_is_gone_is_told_and_preferred_leaders_are_elected_again(kafka: Kafka) -> None:  # fmt: skip
    _make(kafka, "payments", 6, 3)
    kafka.kill(2)
    _until(lambda: _cluster(kafka, "status")[1]["suspects"][:1] != [])
    _until(lambda: all(3 not in each["in_sync"] for each in _partitions(kafka, "payments")))
    status, document = _cluster(kafka, "status")
    assert status == 1
    assert document["suspects"][0]["broker"] == 3
    assert document["offline"] == []
    kafka.restart(2)
    _until(lambda: _cluster(kafka, "status")[0] == 0)
    _, planned = _cluster(kafka, "elect", "payments")
    assert planned["executed"] is False
    assert planned["elections"]
    assert all(each["preferred"] == 3 for each in planned["elections"])
    _, held = _cluster(kafka, "elect", "payments", "--execute")
    assert held["executed"] is True
    _until(
        lambda: all(each["leader"] == each["preferred"] for each in _partitions(kafka, "payments"))
    )
    assert _cluster(kafka, "elect", "payments")[1]["elections"] == []


def test_partitions_are_moved_and_no_throttle_is_left(kafka: Kafka) -> None:
    _make(kafka, "carts", 4, 2)
    _, planned = _cluster(kafka, "move", "carts", "--to", "1,2")
    assert planned["executed"] is False
    before = {each["partition"]: each["replicas"] for each in _partitions(kafka, "carts")}
    assert any(3 in replicas for replicas in before.values())
    _, moved = _cluster(
        kafka, "move", "carts", "--to", "1,2", "--throttle", "50MB", "--execute", "--wait"
    )
    assert moved["executed"] is True
    after = {each["partition"]: each["replicas"] for each in _partitions(kafka, "carts")}
    assert all(set(replicas) == {1, 2} for replicas in after.values())
    for each in moved["moves"]:
        assert before[each["partition"]] == each["from"]
        assert after[each["partition"]] == each["to"]
    _, document = _cluster(kafka, "status")
    assert document["throttles"] == []
    assert document["moves"] == []


def test_a_refused_move_leaves_nothing_half_done(kafka: Kafka) -> None:
    _make(kafka, "whole", 2, 1)
    before = _partitions(kafka, "whole")
    with Admin(kafka.bootstrap) as admin:
        good, bad = (
            PlannedMove("whole", 0, tuple(before[0]["replicas"]), (1, 2)),
            PlannedMove("whole", 1, tuple(before[1]["replicas"]), (77,)),
        )
        with pytest.raises(RequestError):
            begin(admin, [good, bad])
        _until(lambda: not Operations(admin).moves())
    assert _partitions(kafka, "whole")[1]["replicas"] == before[1]["replicas"]


def test_a_move_is_cancelled_and_its_throttle_taken_away(kafka: Kafka) -> None:
    """At one byte a second it cannot end by itself."""
    _make(kafka, "slow", 1, 1)
    with connect(kafka.bootstrap) as log, log.producer() as producer:
        for _ in range(20):
            producer.send("slow", value=bytes(500_000))
    (home,) = _partitions(kafka, "slow")[0]["replicas"]
    target = next(id for id in (1, 2, 3) if id != home)
    move = PlannedMove("slow", 0, (home,), (target,))
    with Admin(kafka.bootstrap) as admin, throttled(admin, throttles_of([move], 1)):
        begin(admin, [move])
        _, document = _cluster(kafka, "status")
        assert [each["topic"] for each in document["moves"]] == ["slow"]
        assert document["throttles"]
        assert not document["left_throttles"]
        _, planned = _cluster(kafka, "move", "--cancel")
        assert (planned["executed"], len(planned["moves"])) == (False, 1)
        assert _cluster(kafka, "move", "--cancel", "--execute")[1]["executed"] is True
        _until(lambda: not Operations(admin).moves())
        assert _cluster(kafka, "status")[1]["throttles"] == []
    assert _partitions(kafka, "slow")[0]["replicas"] == [home]


def _fill(kafka: Kafka, topic: str, megabytes: int) -> None:
    with connect(kafka.bootstrap) as log, log.producer() as producer:
        for _ in range(2 * megabytes):
            producer.send(topic, value=bytes(500_000))


def test_a_killed_move_goes_on_and_leaves_no_throttle(kafka: Kafka) -> None:
    _make(kafka, "killed", 1, 1)
    _fill(kafka, "killed", 10)
    (home,) = _partitions(kafka, "killed")[0]["replicas"]
    target = next(id for id in (1, 2, 3) if id != home)
    command = [sys.executable, "-P", "-m", "tailrace", "cluster", "move", "killed", "--to", str(target), "--throttle", "1MB", "--execute", "--wait", "--bootstrap", kafka.bootstrap]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _until(lambda: bool(_cluster(kafka, "status")[1]["moves"]))
        process.kill()
    assert _cluster(kafka, "status")[1]["throttles"]
    _until(lambda: _partitions(kafka, "killed")[0]["replicas"] == [target])
    _until(lambda: not _cluster(kafka, "status")[1]["throttles"])


def test_two_moves_at_once_are_both_done(kafka: Kafka) -> None:
    for topic in ("one", "two"):
        _make(kafka, topic, 2, 1)
        _fill(kafka, topic, 2)
    commands = [
        [
            sys.executable,
            "-P",
            "-m",
            "tailrace",
            "cluster",
            "move",
            topic,
            "--to",
            to,
            "--throttle",
            "20MB",
            "--execute",
            "--wait",
            "--bootstrap",
            kafka.bootstrap,
        ]
        for topic, to in (("one", "1"), ("two", "2"))
    ]
    processes = [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in commands]
    assert [each.wait(PATIENCE) for each in processes] == [0, 0]
    for topic, to in (("one", 1), ("two", 2)):
        assert all(each["replicas"] == [to] for each in _partitions(kafka, topic))
    _until(lambda: not _cluster(kafka, "status")[1]["throttles"])


def test_a_broker_that_is_gone_is_no_place_to_move_to_and_nothing_is_elected_without_a_candidate(
    kafka: Kafka,
) -> None:
    _make(kafka, "lonely", 1, 1)
    (home,) = _partitions(kafka, "lonely")[0]["replicas"]
    kafka.kill(home - 1)
    _until(lambda: _partitions(kafka, "lonely")[0]["leader"] == -1)
    with pytest.raises(TailraceError, match=f"broker {home} is not there"):
        _cluster(kafka, "move", "lonely", "--to", f"{home}")
    status, document = _cluster(kafka, "status")
    assert status == 1
    assert ["lonely", 0] in [[each["topic"], each["partition"]] for each in document["offline"]]
    with pytest.raises(TailraceError) as refused:
        _cluster(kafka, "elect", "lonely", "--unclean", "--accept-loss", "--execute")
    assert "lonely" in str(refused.value)
    assert _partitions(kafka, "lonely")[0]["leader"] == -1
    kafka.restart(home - 1)
    _until(lambda: _cluster(kafka, "status")[0] == 0)
    assert _partitions(kafka, "lonely")[0]["leader"] == home


def test_alarms_follow_a_killed_broker_and_end_when_it_is_back(kafka: Kafka) -> None:
    _make(kafka, "watched", 6, 3)
    watch = ClusterWatch(kafka.bootstrap).start()

    def said() -> str:
        return " ".join(each["message"] for each in cluster_alarms(watch.document))

    try:
        _until(lambda: watch.document is not None)
        kafka.kill(1)
        _until(lambda: "does not see broker 2" in said() and "; broker 2 is missing in" in said())
        _until(lambda: all(each["leader"] != 2 for each in _partitions(kafka, "watched")))
        kafka.restart(1)
        _until(lambda: "does not see" not in said() and "under-replicated" not in said())
        assert watch.document is not None
        told = [each["text"] for each in watch.document["events"] if each["topic"] == "watched"]
        assert any(each.startswith("leader 2 → ") for each in told)
        assert "broker 2 is no longer in sync" in told
        assert "broker 2 is in sync again" in told
    finally:
        watch.close()
