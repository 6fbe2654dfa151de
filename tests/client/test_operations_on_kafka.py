"""Cluster status, elections and moves on three brokers of Apache Kafka, beside librdkafka's view."""

from __future__ import annotations

import json
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
from tailrace.client.moves import PlannedMove, begin
from tailrace.client.operations import Operations
from tailrace.errors import TailraceError

pytestmark = pytest.mark.cluster
PATIENCE = 120.0


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    try:
        kafka = Kafka(tmp_path_factory.mktemp("three"), 3)
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield kafka
    kafka.stop()


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


def test_status_is_what_librdkafka_is_told(three: Kafka) -> None:
    _make(three, "orders", 6, 3)
    status, document = _cluster(three, "status")
    assert status == 0
    assert document["controller"]["id"] in (1, 2, 3)
    assert document["controller"]["voters"] == [1, 2, 3]
    assert [(each["id"], each["state"]) for each in document["brokers"]] == [
        (1, "up"), (2, "up"), (3, "up"),
    ]  # fmt: skip
    told = AdminClient({"bootstrap.servers": three.bootstrap}).list_topics("orders", timeout=30)
    for each in _partitions(three, "orders"):
        other = told.topics["orders"].partitions[each["partition"]]
        assert (each["leader"], set(each["replicas"]), set(each["in_sync"])) == (
            other.leader, set(other.replicas), set(other.isrs),
        )  # fmt: skip


def test_a_broker_that_is_gone_is_told_and_preferred_leaders_are_elected_again(three: Kafka) -> None:  # fmt: skip
    _make(three, "payments", 6, 3)
    three.kill(2)
    _until(lambda: _cluster(three, "status")[1]["suspects"][:1] != [])
    _until(lambda: all(3 not in each["in_sync"] for each in _partitions(three, "payments")))
    status, document = _cluster(three, "status")
    assert status == 1
    assert document["suspects"][0]["broker"] == 3
    assert document["offline"] == []
    three.restart(2)
    _until(lambda: _cluster(three, "status")[0] == 0)
    _, planned = _cluster(three, "elect", "payments")
    assert planned["executed"] is False
    assert planned["elections"]
    assert all(each["preferred"] == 3 for each in planned["elections"])
    _, held = _cluster(three, "elect", "payments", "--execute")
    assert held["executed"] is True
    _until(
        lambda: all(each["leader"] == each["preferred"] for each in _partitions(three, "payments"))
    )
    assert _cluster(three, "elect", "payments")[1]["elections"] == []


def test_partitions_are_moved_and_no_throttle_is_left(three: Kafka) -> None:
    _make(three, "carts", 4, 2)
    _, planned = _cluster(three, "move", "carts", "--to", "1,2")
    assert planned["executed"] is False
    before = {each["partition"]: each["replicas"] for each in _partitions(three, "carts")}
    assert any(3 in replicas for replicas in before.values())
    _, moved = _cluster(
        three, "move", "carts", "--to", "1,2", "--throttle", "50MB", "--execute", "--wait"
    )
    assert moved["executed"] is True
    after = {each["partition"]: each["replicas"] for each in _partitions(three, "carts")}
    assert all(set(replicas) == {1, 2} for replicas in after.values())
    for each in moved["moves"]:
        assert before[each["partition"]] == each["from"]
        assert after[each["partition"]] == each["to"]
    _, document = _cluster(three, "status")
    assert document["throttles"] == []
    assert document["moves"] == []


def test_a_refused_move_leaves_nothing_half_done(three: Kafka) -> None:
    _make(three, "whole", 2, 1)
    before = _partitions(three, "whole")
    with Admin(three.bootstrap) as admin:
        good, bad = (
            PlannedMove("whole", 0, tuple(before[0]["replicas"]), (1, 2)),
            PlannedMove("whole", 1, tuple(before[1]["replicas"]), (77,)),
        )
        with pytest.raises(RequestError):
            begin(admin, [good, bad])
        _until(lambda: not Operations(admin).moves())
    assert _partitions(three, "whole")[1]["replicas"] == before[1]["replicas"]
