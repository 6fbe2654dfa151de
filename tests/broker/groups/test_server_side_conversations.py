"""The server-side protocol answers as Apache Kafka does: one script, two brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from broker.conversations import Heard, Talk, differences, talking, unique
from broker.groups.test_conversations import deleted, described, find
from tailrace.broker.embedded import BrokerThread
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    list_groups,
)

PARTITIONS = 4


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as broker:
        yield broker.address


class Members:
    """Sends heartbeats of one group."""

    def __init__(self, talk: Talk, group: str, topic: str, topic_id: bytes) -> None:
        self.talk, self.group, self.topic, self.topic_id = talk, group, topic, topic_id

    def beat(self, member: str, epoch: int, **given: Any) -> Any:
        return self.talk.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=member, member_epoch=epoch, **given
            ),
        )

    def first(self, member: str, **given: Any) -> Any:
        wish: dict[str, Any] = {"rebalance_timeout_ms": 30_000, "topic_partitions": []}
        return self.beat(member, 0, **wish | {"subscribed_topic_names": [self.topic]} | given)

    def has(self, *indexes: int) -> dict[str, Any]:
        rows = consumer_group_heartbeat.RequestTopicPartitions(self.topic_id, list(indexes))
        return {"topic_partitions": [rows] if indexes else []}

    def described(self) -> tuple[object, ...]:
        [found] = self.talk.ask(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[self.group]),
        ).groups
        return (
            found.error_code,
            found.group_state,
            found.group_epoch,
            found.assignment_epoch,
            found.assignor_name,
            sorted((one.member_id, one.member_epoch, one.member_type) for one in found.members),
        )


@dataclass
class Reader:
    """A member that does what it is told. Epochs and the number of heartbeats to get
    somewhere are the broker's own affair: Kafka 4.3 lets assignments wait and gathers."""

    name: str
    instance: str | None = None
    epoch: int = 0
    owned: tuple[int, ...] = ()


def settle(one: Members, *readers: Reader) -> list[int]:
    """Heartbeats until every partition has one reader; how many each has."""
    for _ in range(100):
        for reader in readers:
            answer = one.beat(
                reader.name, reader.epoch, instance_id=reader.instance, **one.has(*reader.owned)
            )
            assert answer.error_code == 0, answer
            reader.epoch = answer.member_epoch
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                reader.owned = tuple(sorted(index for row in rows for index in row.partitions))
            every = [index for each in readers for index in each.owned]
            assert len(every) == len(set(every)), "two read the same"
        if len(every) == PARTITIONS and one.described()[1] == "Stable":
            return [len(each.owned) for each in readers]
        time.sleep(0.1)
    raise AssertionError(f"not settled: {readers}, {one.described()}")


def join(one: Members, name: str, instance: str | None = None) -> Reader:
    answer = one.first(name, instance_id=instance)
    assert answer.error_code == 0, answer
    reader = Reader(name, instance, answer.member_epoch)
    if answer.assignment is not None:
        rows = answer.assignment.topic_partitions
        reader.owned = tuple(sorted(index for row in rows for index in row.partitions))
    return reader


def script_of_refusals(address: str) -> Heard:
    with talking(address) as [talk]:
        group, topic = unique("group"), unique("topic")
        one = Members(talk, group, topic, talk.create_topic(topic, 4))
        find(talk, group)
        note = talk.note
        note("feature", talk.connection.features.get("group.version"))
        note("unknown", one.described()[0])
        note("no such group", one.beat("m1", 5).error_code)
        note("leave no such group", one.beat("m1", -1).error_code)
        note("no name", one.beat("", 0).error_code)
        note("first without a time-out", one.first("m1", rebalance_timeout_ms=-1).error_code)
        note("first without topics", one.first("m1", subscribed_topic_names=None).error_code)
        note("first with partitions", one.first("m1", **one.has(0)).error_code)
        note("first without partitions", one.first("m1", topic_partitions=None).error_code)
        note("unknown assignor", one.first("m1", server_assignor="magic").error_code)
        note("bad pattern", one.first("m1", subscribed_topic_regex="(").error_code)
        note("not static", one.beat("m1", -2).error_code)
        return talk.heard


def script_of_a_handover(address: str) -> Heard:
    with talking(address) as [talk]:
        group, topic = unique("group"), unique("topic")
        one = Members(talk, group, topic, talk.create_topic(topic, PARTITIONS))
        find(talk, group)
        note = talk.note
        first = join(one, "m1")
        note("alone", settle(one, first))
        note("described", [*one.described()[:2], one.described()[4]])
        note("quiet beat", one.beat("m1", first.epoch).error_code)
        note("future", one.beat("m1", first.epoch + 1).error_code)
        note("stranger", one.beat("m9", 1).error_code)
        note("commit", talk.commit(group, topic, 3, member="m1", generation=first.epoch))
        note("commit, stale", talk.commit(group, topic, 4, member="m1", generation=77))
        note("commit, stranger", talk.commit(group, topic, 4, member="m9", generation=1))
        note("commit, admin", talk.commit(group, topic, 4))
        old = talk.commit(group, topic, 4, member="m1", generation=first.epoch, version=8)
        note("commit, old version", old)
        note("committed", talk.committed(group, topic))
        note("classic description", described(talk, group))
        second = join(one, "m2")
        note("shared", settle(one, first, second))
        third = join(one, "m3")
        note("shared by three", sorted(settle(one, first, second, third)))
        note("delete living", deleted(talk, group))
        listed = talk.ask(ApiKey.LIST_GROUPS, list_groups.ListGroupsRequest())
        [row] = [each for each in listed.groups if each.group_id == group]
        note("listed", (row.protocol_type, row.group_state, row.group_type))
        gone = one.beat("m2", -1)
        note("leave", (gone.error_code, gone.member_epoch))
        note("leave again", one.beat("m2", -1).error_code)
        note("shared again", settle(one, first, third))
        note("types", [each[2] for each in one.described()[5]])  # type: ignore[attr-defined]
        for name in ("m1", "m3"):
            note(f"{name} leaves", one.beat(name, -1).error_code)
        note("empty", one.described()[1])
        note("committed still", talk.committed(group, topic))
        note("delete empty", deleted(talk, group))
        return talk.heard


def script_of_static_members(address: str) -> Heard:
    with talking(address) as [talk]:
        group, topic = unique("group"), unique("topic")
        one = Members(talk, group, topic, talk.create_topic(topic, PARTITIONS))
        find(talk, group)
        note = talk.note
        static, other = join(one, "s1", "i"), join(one, "m1")
        note("shared", settle(one, static, other))
        kept = static.owned
        note("twin", one.first("s2", instance_id="i").error_code)
        note("other instance", one.beat("s1", static.epoch, instance_id="j").error_code)
        away = one.beat("s1", -2, instance_id="i")
        note("leaves for a while", (away.error_code, away.member_epoch))
        back = join(one, "s2", "i")
        note("returns", settle(one, back, other))
        note("to the same partitions", back.owned == kept)
        note("old one", one.beat("s1", static.epoch, instance_id="i").error_code)
        note("old one leaves", one.beat("s1", -1, instance_id="i").error_code)
        for name, instance in (("s2", "i"), ("m1", None)):
            note(f"{name} leaves", one.beat(name, -1, instance_id=instance).error_code)
        note("empty", one.described()[1])
        note("classic may join", talk.ask(ApiKey.JOIN_GROUP, talk.join(group), 3).error_code)
        return talk.heard


SCRIPTS = [script_of_refusals, script_of_a_handover, script_of_static_members]


@pytest.mark.clients
@pytest.mark.parametrize("script", SCRIPTS)
def test_server_side_groups_answer_as_kafka_does(script: object, ours: str, kafka: str) -> None:
    assert callable(script)
    found = differences(script(ours), script(kafka))
    assert not found, found


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run_without_a_kafka(script: object, ours: str) -> None:
    assert callable(script)
    assert len(script(ours)) > 5
