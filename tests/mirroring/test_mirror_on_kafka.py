"""A mirror between Apache Kafka and the embedded broker, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirroring.test_mirror import (
    Logs,
    _assert_equal,
    _content,
    _make,
    _mirror,
    _read,
    _run_and_die,
    _write,
)
from servers.kafka import Kafka, KafkaUnavailable
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.groups import Groups
from tailrace.client.operations import Operations
from tailrace.mirroring.fail_over import fail_back, fail_over
from tailrace.mirroring.relay import Mirror

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    try:
        cluster = Kafka(tmp_path_factory.mktemp("mirrored"), 3, {"min.insync.replicas": "1"})
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield cluster
    cluster.stop()


@pytest.fixture(params=["from-kafka", "to-kafka"])
def logs(request: pytest.FixtureRequest, kafka: Kafka, tmp_path: Path) -> Iterator[Logs]:
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        pair = (kafka.bootstrap, broker.address)
        yield Logs(*(pair if request.param == "from-kafka" else reversed(pair)))
    with Admin(kafka.bootstrap) as admin:
        for name in ("orders", "orders.conflicts", "orders.unmirrored", "__tailrace_mirrors"):
            if admin.describe_topic(name) is not None:
                admin.delete_topic(name)


def test_both_sides_are_equal_after_kills_at_every_step(logs: Logs) -> None:
    _make(logs)
    at = 1
    while True:
        _write(logs.source, "orders", 40, seed=at)
        if not _run_and_die(logs, at):
            break
        at += 1
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
    _assert_equal(logs)


def test_groups_go_on_at_the_other_side(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    here = _read(logs.source, "orders", 1)
    with Admin(logs.source) as admin:
        Groups(admin).commit("billing", {("orders", 1): here[4].offset})
    with _mirror(logs, groups="billing") as mirror:
        mirror.run_until_caught_up()
    there = _read(logs.target, "orders", 1)
    with Admin(logs.target) as admin:
        assert Groups(admin).offsets("billing") == {("orders", 1): there[4].offset}
        Groups(admin).delete(["billing"])
    with Admin(logs.source) as admin:
        Groups(admin).delete(["billing"])


def test_a_leader_that_is_killed_is_waited_for(logs: Logs, kafka: Kafka) -> None:
    with Admin(logs.source) as admin:
        copies = 3 if logs.source == kafka.bootstrap else 1
        admin.create_topic("orders", 2, {"retention.ms": "-1"}, replication_factor=copies)
    with Admin(logs.target) as admin:
        copies = 3 if logs.target == kafka.bootstrap else 1
        # The records are older than a week, which a target would not keep by default.
        admin.create_topic("orders", 2, {"retention.ms": "-1"}, replication_factor=copies)
        admin.create_topic("__tailrace_mirrors", 1, {"cleanup.policy": "compact"}, replication_factor=copies)  # fmt: skip
    _write(logs.source, "orders", 80)
    with _mirror(logs) as mirror:
        mirror.run_until_caught_up()
        with Admin(kafka.bootstrap) as admin:
            state = Operations(admin).status()
        leader = next(each for each in state.topics if each.name == "orders").partitions[0].leader
        kafka.kill(leader - 1)
        try:
            _write(logs.source, "orders", 80, seed=1)
            mirror.run_until_caught_up()
        finally:
            kafka.restart(leader - 1)
    _assert_equal(logs)


def test_sites_that_write_the_same_topic_end_equal(logs: Logs) -> None:
    _make(logs)
    with Admin(logs.target) as admin:
        admin.create_topic("orders", 2, {"retention.ms": "-1"})
    ends = {"topics": "orders", "conflicts": "latest"}
    with (
        Mirror("there", logs.source, logs.target, site="ams", others=["ber"], **ends) as there,  # type: ignore[arg-type]
        Mirror("back", logs.target, logs.source, site="ber", others=["ams"], **ends) as back,  # type: ignore[arg-type]
    ):  # fmt: skip
        for number in range(6):
            _write(logs.source, "orders", 40, seed=number)
            _write(logs.target, "orders", 40, seed=100 + number)
            there.run_until_caught_up()
            back.run_until_caught_up()
        for _ in range(3):
            there.run_until_caught_up()
            back.run_until_caught_up()
    for partition in range(2):
        sides = []
        for address in logs:
            last: dict[bytes | None, tuple[bytes | None, int]] = {}
            for record in _read(address, "orders", partition):
                last[record.key] = (record.value, record.timestamp)
            sides.append(last)
        assert sides[0] == sides[1]
        assert len(sides[0]) == 9


def test_a_site_is_left_and_comes_back(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    settings = {"topics": "orders", "site": "ams", "others": ["ber"]}
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    fail_over("m", logs.target)
    _write(logs.target, "orders", 40, seed=1)
    fail_back("m", logs.source, logs.target)
    for partition in range(2):
        here, away = (_content(_read(address, "orders", partition)) for address in logs)
        assert here == away
    _write(logs.source, "orders", 40, seed=2)
    with Mirror("m", logs.source, logs.target, **settings) as mirror:  # type: ignore[arg-type]
        mirror.run_until_caught_up()
    for partition in range(2):
        here, away = (_content(_read(address, "orders", partition)) for address in logs)
        assert here == away
