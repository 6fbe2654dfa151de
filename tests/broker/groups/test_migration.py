"""A group changes its protocol while it works: the coordinator alone, and beside Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from broker.conversations import Heard, Talk, differences, subscription, talking, unique
from broker.groups.test_conversations import find
from broker.groups.test_server_side_conversations import Members, Reader, join
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.groups.embedded_protocol import read_assignment, write_assignment
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import heartbeat, leave_group, list_groups
from tailrace.wire.messages import join_group as join_wire
from tailrace.wire.messages import sync_group as sync_wire

PARTITIONS = 4
UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCE, REQUIRED = 25, 22, 27, 79


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as broker:
        yield broker.address


@dataclass
class Classic:
    """A consumer of the classic protocol with an eager assignor, on a connection of its own."""

    talk: Talk
    group: str
    topic: str
    member: str = ""
    generation: int = -1
    owned: tuple[int, ...] = ()
    instance: str | None = None
    waiting: str = ""

    def begin_join(self) -> None:
        self.talk.begin(
            ApiKey.JOIN_GROUP,
            join_wire.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=30_000,
                member_id=self.member,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocols=[join_wire.JoinGroupRequestProtocol("range", subscription(self.topic))],
            ),
            9,
        )

    def end_join(self) -> Any:
        answer = self.talk.end()
        if answer.error_code == REQUIRED:
            self.member = answer.member_id
            self.begin_join()
            return self.end_join()
        if answer.error_code == 0:
            self.member, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, shares: dict[str, tuple[int, ...]] | None = None) -> int:
        answer = self.talk.ask(
            ApiKey.SYNC_GROUP,
            sync_wire.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    sync_wire.SyncGroupRequestAssignment(
                        member, write_assignment([(self.topic, one) for one in indexes], b"\0\0")
                    )
                    for member, indexes in (shares or {}).items()
                ],
            ),
            5,
        )
        if answer.error_code == 0:
            found = read_assignment(bytes(answer.assignment))
            self.owned = tuple(sorted(index for _, index in found))
        return int(answer.error_code)

    def beat(self, generation: int | None = None) -> int:
        answer = self.talk.ask(
            ApiKey.HEARTBEAT,
            heartbeat.HeartbeatRequest(
                group_id=self.group,
                generation_id=self.generation if generation is None else generation,
                member_id=self.member,
                group_instance_id=self.instance,
            ),
            4,
        )
        return int(answer.error_code)

    def leave(self) -> int:
        wire = leave_group
        answer = self.talk.ask(
            ApiKey.LEAVE_GROUP,
            wire.LeaveGroupRequest(
                self.group, "", [wire.MemberIdentity(self.member, self.instance)]
            ),
            4,
        )
        return int(answer.error_code or answer.members[0].error_code)

    def rejoin(self) -> None:
        """Join and sync until there is an assignment of the present epoch."""
        for _ in range(100):
            self.begin_join()
            answer = self.end_join()
            assert answer.error_code in (0, REBALANCE), answer
            if answer.error_code == 0 and self.sync() == 0:
                return
            time.sleep(0.05)
        raise AssertionError("it never got an assignment")


def settle(one: Members, readers: list[Reader], classics: list[Classic]) -> list[int]:
    """Everybody does as told until every partition has one reader; how many each has."""
    for _ in range(200):
        for reader in readers:
            answer = one.beat(reader.name, reader.epoch, **one.has(*reader.owned))
            assert answer.error_code == 0, answer
            reader.epoch = answer.member_epoch
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                reader.owned = tuple(sorted(i for row in rows for i in row.partitions))
        for classic in classics:
            code = classic.beat()
            if code == REBALANCE:
                classic.owned = ()  # eager: it stops reading, then joins again
                classic.rejoin()
            else:
                assert code == 0, code
            every = [i for each in (*readers, *classics) for i in each.owned]
            assert len(every) == len(set(every)), "two read the same"
        if len(every) == PARTITIONS and one.described()[1] == "Stable":
            return sorted(len(each.owned) for each in (*readers, *classics))
        time.sleep(0.05)
    raise AssertionError(f"not settled: {readers}, {classics}, {one.described()}")


def kind_of(talk: Talk, group: str) -> tuple[str, str]:
    listed = talk.ask(ApiKey.LIST_GROUPS, list_groups.ListGroupsRequest())
    [row] = [each for each in listed.groups if each.group_id == group]
    return row.group_type, row.protocol_type


def begin_classic(talks: list[Talk], group: str, topic: str) -> list[Classic]:
    """A classic group of two, stable."""
    first = Classic(talks[1], group, topic)
    first.begin_join()
    assert first.end_join().error_code == 0
    assert first.sync({first.member: (0, 1, 2, 3)}) == 0
    second = Classic(talks[2], group, topic)
    second.begin_join()
    second.member = second.talk.end().member_id
    second.begin_join()
    for _ in range(100):
        if first.beat() == REBALANCE:
            break
        time.sleep(0.05)
    first.begin_join()
    assert first.end_join().error_code == 0
    assert second.end_join().error_code == 0
    assert first.sync({first.member: (0, 1), second.member: (2, 3)}) == 0
    assert second.sync() == 0
    return [first, second]


def script_up_and_down(address: str) -> Heard:
    with talking(address, 3) as talks:
        talk, group, topic = talks[0], unique("group"), unique("topic")
        one = Members(talk, group, topic, talk.create_topic(topic, PARTITIONS))
        find(talk, group)
        note = talk.note
        classics = begin_classic(talks, group, topic)
        note("classic", (kind_of(talk, group), [each.owned for each in classics]))
        note("described as the other", one.described()[0])
        note("epoch of nobody", one.beat("n1", 5).error_code)
        note("unknown assignor", one.first("n1", server_assignor="magic").error_code)
        note("still classic", (kind_of(talk, group), classics[0].beat()))
        old = classics[0].generation
        new = join(one, "n1")
        note("upgraded", (kind_of(talk, group), new.epoch > old))
        note("told to join again", classics[0].beat())
        note("old generation", classics[0].beat(old - 1))
        note("shared by three", settle(one, [new], classics))
        note("kinds", sorted(each[2] for each in one.described()[5]))
        mine = {"member": classics[0].member, "generation": classics[0].generation}
        note("commit, classic", talk.commit(group, topic, 3, **mine))
        note("commit, old version", talk.commit(group, topic, 4, **mine, version=8))
        stale = {**mine, "generation": 1}
        note("commit, stale", talk.commit(group, topic, 4, **stale))
        note("stranger beats", Classic(talk, group, topic, "nobody", 1).beat())
        note("new one as classic", Classic(talk, group, topic, "n1", new.epoch).beat())
        note("second leaves", classics[1].leave())
        note("shared by two", settle(one, [new], classics[:1]))
        again = Classic(talks[2], group, topic)
        again.rejoin()
        note("another classic", settle(one, [new], [classics[0], again]))
        note("new one is removed", Classic(talk, group, topic, "n1", new.epoch).leave())
        note("downgraded", kind_of(talk, group))
        note("told to join again, classic", [each.beat() for each in (classics[0], again)])
        note("committed still", talk.committed(group, topic))
        return talk.heard  # fmt: skip


def script_of_static_members(address: str) -> Heard:
    with talking(address, 3) as talks:
        talk, group, topic = talks[0], unique("group"), unique("topic")
        one = Members(talk, group, topic, talk.create_topic(topic, PARTITIONS))
        find(talk, group)
        note = talk.note
        static = Classic(talks[1], group, topic, instance="i")
        static.begin_join()
        assert static.end_join().error_code == 0
        assert static.sync({static.member: (0, 1, 2, 3)}) == 0
        reader = join(one, "s1", "i")
        note("replaced", kind_of(talk, group))
        note("old one", static.beat())
        for _ in range(100):
            answer = one.beat("s1", reader.epoch, instance_id="i", **one.has(*reader.owned))
            assert answer.error_code == 0
            reader.epoch = answer.member_epoch
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                reader.owned = tuple(sorted(i for row in rows for i in row.partitions))
            if len(reader.owned) == PARTITIONS:
                break
            time.sleep(0.05)
        note("has all", reader.owned)
        note("members", [each[2] for each in one.described()[5]])
        late = Classic(talks[2], group, topic)
        late.rejoin()
        note("classic beside it", sorted(each[2] for each in one.described()[5]))
        note("goes over by itself", one.beat(late.member, late.generation).error_code)
        note("and cannot go back", late.beat())
        note("both new", [each[2] for each in one.described()[5]])
        return talk.heard


SCRIPTS = [script_up_and_down, script_of_static_members]


@pytest.mark.clients
@pytest.mark.parametrize("script", SCRIPTS)
def test_groups_change_their_protocol_as_kafkas_do(script: object, ours: str, kafka: str) -> None:
    assert callable(script)
    found = differences(script(ours), script(kafka))
    assert not found, found


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_run_without_a_kafka(script: object, ours: str) -> None:
    assert callable(script)
    heard = dict(script(ours))
    assert len(heard) > 3


def test_a_group_of_both_kinds_survives_a_restart(tmp_path: Path) -> None:
    group, topic = "g", "t"
    with BrokerThread(tmp_path) as broker, talking(broker.address, 3) as talks:
        one = Members(talks[0], group, topic, talks[0].create_topic(topic, PARTITIONS))
        classics = begin_classic(talks, group, topic)
        new = join(one, "n1")
        before = settle(one, [new], classics)
        port = broker.broker.address[1]
    with BrokerThread(tmp_path, port=port) as broker, talking(broker.address, 3) as talks:
        one = Members(talks[0], group, topic, one.topic_id)
        for classic, talk in zip(classics, talks[1:], strict=True):
            classic.talk = talk
            assert classic.beat() == 0
        assert sorted(each[2] for each in one.described()[5]) == [0, 0, 1]
        assert settle(one, [new], classics) == before
        assert one.beat("n1", -1).error_code == 0
        assert kind_of(talks[0], group)[0] == "classic"
    with BrokerThread(tmp_path, port=port) as broker, talking(broker.address, 3) as talks:
        assert kind_of(talks[0], group) == ("classic", "consumer")
        assert Classic(talks[1], group, topic, classics[0].member, 99).beat() == ILLEGAL_GENERATION
        assert Classic(talks[1], group, topic, "nobody", 99).beat() == UNKNOWN_MEMBER


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_online_upgrades_can_be_off(tmp_path: Path, policy: str) -> None:
    settings = {"group.consumer.migration.policy": policy}
    with (
        BrokerThread(tmp_path, settings=settings, durable=False) as broker,
        talking(broker.address, 3) as talks,
    ):
        one = Members(talks[0], "g", "t", talks[0].create_topic("t", PARTITIONS))
        classics = begin_classic(talks, "g", "t")
        group_id_not_found = 69
        assert one.first("n1").error_code == group_id_not_found
        assert classics[0].beat() == 0


def test_without_downgrades_a_group_stays_server_side(tmp_path: Path) -> None:
    settings = {"group.consumer.migration.policy": "upgrade"}
    with (
        BrokerThread(tmp_path, settings=settings, durable=False) as broker,
        talking(broker.address, 3) as talks,
    ):
        one = Members(talks[0], "g", "t", talks[0].create_topic("t", PARTITIONS))
        classics = begin_classic(talks, "g", "t")
        new = join(one, "n1")
        settle(one, [new], classics)
        assert one.beat("n1", -1).error_code == 0
        assert settle(one, [], classics) == [2, 2]
        assert kind_of(talks[0], "g")[0] == "consumer"


@pytest.mark.clients
def test_librdkafka_consumers_are_exchanged_one_by_one(ours: str) -> None:
    """A rolling change of protocol: somebody always reads, and every record is read once
    by the committed offsets."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

    with talking(ours) as [talk]:
        talk.create_topic("t", PARTITIONS)
    producer = Producer({"bootstrap.servers": ours})
    seen: list[bytes] = []
    refused: set[bytes] = set()

    def consumer(protocol: str) -> Consumer:
        given: dict[str, object] = {
            "bootstrap.servers": ours,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
        if protocol == "classic":
            given["partition.assignment.strategy"] = "cooperative-sticky"
        made = Consumer(given)
        made.subscribe(["t"])
        return made

    def feed(number: int) -> None:
        for partition in range(PARTITIONS):
            producer.produce("t", f"{number}/{partition}".encode(), partition=partition)
        producer.flush(30)

    def commit(one: Consumer, message: Message) -> None:
        try:
            one.commit(message=message, asynchronous=False)
        except KafkaException as problem:
            # Of a member that has not learnt its generation yet: the record may come again.
            if problem.args[0].code() != KafkaError.ILLEGAL_GENERATION:
                raise
            refused.add(message.value())

    def read(*consumers: Consumer, until: int) -> None:
        for _ in range(600):
            for one in consumers:
                message = one.poll(0.05)
                if message is not None and message.error() is None:
                    seen.append(message.value())
                    commit(one, message)
            if len(set(seen)) >= until:
                return
        raise AssertionError(f"{len(seen)} of {until} were read")

    first, second = consumer("classic"), consumer("classic")
    feed(1)
    read(first, second, until=4)
    third = consumer("consumer")  # upgrade
    feed(2)
    read(first, second, third, until=8)
    first.close()
    feed(3)
    read(second, third, until=12)
    third.close()  # downgrade
    feed(4)
    read(second, until=16)
    second.close()
    assert len(set(seen)) == 16
    assert {value for value in seen if seen.count(value) > 1} <= refused
