"""Other people's consumers in groups on our broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import fresh_loop
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.groups import Groups

PARTITIONS = 6
RECORDS = 300


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.min.session.timeout.ms": "1000"}
    with BrokerThread(
        tmp_path_factory.mktemp("broker"), settings=settings, durable=False
    ) as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("t", PARTITIONS)
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(RECORDS):
            producer.produce("t", value=str(number), partition=number % PARTITIONS)
        assert producer.flush(10) == 0
        yield broker.address


@dataclass
class Watched:
    """A librdkafka consumer polled by hand, and what happened to it."""

    consumer: Consumer
    seen: list[int] = field(default_factory=list)
    assigned: set[int] = field(default_factory=set)
    rebalances: int = 0

    @classmethod
    def start(cls, address: str, **given: object) -> Watched:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
                "log_level": 0,
            }
            | {name.replace("_", "."): value for name, value in given.items()}
        )
        watched = cls(consumer)
        consumer.subscribe(
            ["t"], on_assign=watched._assign, on_revoke=watched._revoke, on_lost=watched._revoke
        )
        return watched

    def _assign(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.assigned |= {one.partition for one in places}

    def _revoke(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self.assigned -= {one.partition for one in places}

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is not None and message.error() is None:
            self.seen.append(int(message.value()))


def until(condition: Callable[[], bool], *members: Watched, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, [one.assigned for one in members]
        for one in members:
            one.poll()


def shared_out(*members: Watched) -> Callable[[], bool]:
    """Whether every partition has exactly one reader, and all share fairly."""

    def check() -> bool:
        every = [index for one in members for index in one.assigned]
        return sorted(every) == list(range(PARTITIONS)) and all(
            len(one.assigned) == PARTITIONS // len(members) for one in members
        )

    return check


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_librdkafka_members_share_the_partitions(address: str, strategy: str) -> None:
    one = Watched.start(address, partition_assignment_strategy=strategy)
    until(lambda: len(one.seen) == RECORDS and shared_out(one)(), one)
    one.consumer.commit(asynchronous=False)
    two = Watched.start(address, partition_assignment_strategy=strategy)
    until(shared_out(one, two), one, two)
    three = Watched.start(address, partition_assignment_strategy=strategy)
    until(shared_out(one, two, three), one, two, three)
    two.consumer.close()
    until(shared_out(one, three), one, three)
    assert sorted(one.seen) == list(range(RECORDS))
    assert two.seen == three.seen == []  # everything was committed before they came
    for each in (one, three):
        each.consumer.close()
    with Admin(address) as admin:
        [row] = Groups(admin).every()
        assert (row.name, row.state) == ("g", "Empty")
        assert sum(Groups(admin).offsets("g").values()) == RECORDS


def test_a_member_that_vanishes_is_replaced_after_its_session(address: str) -> None:
    one = Watched.start(address, session_timeout_ms=1500)
    two = Watched.start(address, session_timeout_ms=1500, max_poll_interval_ms=1500)
    until(shared_out(one, two), one, two)
    # Not polled any more, it stops its heartbeats and leaves or is dropped.
    until(shared_out(one), one)
    two.consumer.close()
    one.consumer.close()


def test_a_static_member_comes_back_without_a_rebalance(address: str) -> None:
    one = Watched.start(address, group_instance_id="i1")
    two = Watched.start(address, group_instance_id="i2")
    until(shared_out(one, two), one, two)
    before, share = one.rebalances, set(two.assigned)
    two.consumer.close()
    back = Watched.start(address, group_instance_id="i2")
    until(lambda: back.assigned == share, one, back)
    assert one.rebalances == before
    for each in (one, back):
        each.consumer.close()


def test_kafka_python_reads_and_commits_in_a_group(address: str) -> None:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(
        "t",
        bootstrap_servers=address,
        group_id="python",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=10_000,
    )
    try:
        seen = []
        for message in consumer:
            seen.append(int(message.value))
            if len(seen) == RECORDS:
                break
        assert sorted(seen) == list(range(RECORDS))
        consumer.commit()
    finally:
        consumer.close()
    with Admin(address) as admin:
        assert sum(Groups(admin).offsets("python").values()) == RECORDS


def test_aiokafka_members_share_and_commit(address: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def read() -> list[int]:
        seen: list[int] = []
        consumers = [
            aiokafka.AIOKafkaConsumer(
                "t",
                bootstrap_servers=address,
                group_id="async",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            for _ in range(2)
        ]
        for consumer in consumers:
            await consumer.start()
        try:
            while len(set(seen)) < RECORDS:
                for consumer in consumers:
                    batches = await consumer.getmany(timeout_ms=100)
                    seen += [int(one.value) for rows in batches.values() for one in rows]
            for consumer in consumers:
                await consumer.commit()
        finally:
            for consumer in consumers:
                await consumer.stop()
        return seen

    assert set(fresh_loop.run(read(), 60)) == set(range(RECORDS))
    with Admin(address) as admin:
        assert sum(Groups(admin).offsets("async").values()) == RECORDS


def test_a_thousand_members_of_many_groups_cost_little(address: str) -> None:
    """Heartbeats of many members are answered, and none is dropped meanwhile."""
    from broker.conversations import talking
    from tailrace.wire.apis import ApiKey
    from tailrace.wire.messages import heartbeat

    with talking(address) as [talk]:
        members: list[tuple[str, str]] = []
        for number in range(1000):
            group = f"many-{number}"
            joined = talk.ask(ApiKey.JOIN_GROUP, talk.join(group, session_ms=30_000), 3)
            member = joined.member_id
            talk.ask(ApiKey.SYNC_GROUP, talk.sync(group, member, 1, {member: b"x"}))
            members.append((group, member))
        for group, member in members:
            answer = talk.ask(ApiKey.HEARTBEAT, heartbeat.HeartbeatRequest(group, 1, member))
            assert answer.error_code == 0


@pytest.mark.clients
def test_kafkas_own_tools_see_our_groups(address: str) -> None:
    from servers.kafka import tool

    one = Watched.start(address)
    until(lambda: len(one.seen) == RECORDS, one)
    one.consumer.commit(asynchronous=False)
    polling = threading.Event()

    def keep_polling() -> None:
        while not polling.is_set():
            one.poll()

    thread = threading.Thread(target=keep_polling)
    thread.start()
    command = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    at = ("--bootstrap-server", address, "--group", "g")
    try:
        described = tool(command, *at, "--describe")
        rows = [line.split() for line in described.splitlines() if line.startswith("g ")]
        assert [row[3:6] for row in sorted(rows)] == [["50", "50", "0"]] * PARTITIONS
        members = tool(command, *at, "--describe", "--members", "--verbose")
        assert "range" in members or "t(" in members or "rdkafka" in members
        state = tool(command, *at, "--describe", "--state")
        assert "Stable" in state
    finally:
        polling.set()
        thread.join()
        one.consumer.close()
    tool(command, *at, "--reset-offsets", "--to-offset", "7", "--topic", "t:2", "--execute")
    with Admin(address) as admin:
        assert Groups(admin).offsets("g")["t", 2] == 7
    tool(command, *at, "--delete")
    with Admin(address) as admin:
        assert Groups(admin).every() == []


@pytest.fixture
def lively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that asks members of server-side groups for frequent heartbeats."""
    settings = {"group.consumer.heartbeat.interval.ms": "200"}
    with BrokerThread(
        tmp_path_factory.mktemp("broker"), settings=settings, durable=False
    ) as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("t", PARTITIONS)
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(RECORDS):
            producer.produce("t", value=str(number), partition=number % PARTITIONS)
        assert producer.flush(10) == 0
        yield broker.address


def start_server_side(address: str, *topics: str, **given: object) -> Watched:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        | {name.replace("_", "."): value for name, value in given.items()}
    )
    watched = Watched(consumer)
    consumer.subscribe(
        list(topics) or ["t"],
        on_assign=watched._assign,
        on_revoke=watched._revoke,
        on_lost=watched._revoke,
    )
    return watched


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_librdkafka_members_of_a_server_side_group(lively: str, assignor: str) -> None:
    one = start_server_side(lively, group_remote_assignor=assignor)
    until(lambda: len(one.seen) == RECORDS and shared_out(one)(), one)
    one.consumer.commit(asynchronous=False)
    two = start_server_side(lively, group_remote_assignor=assignor)
    three = start_server_side(lively, "^t$", group_remote_assignor=assignor)
    until(shared_out(one, two, three), one, two, three)
    two.consumer.close()
    until(shared_out(one, three), one, three)
    assert two.seen == three.seen == []
    with Admin(lively) as admin:
        [row] = Groups(admin).every()
        assert (row.state, row.kind) == ("Stable", "consumer")
        described = Groups(admin).describe("g")
        assert described is not None
        assert (described.protocol, len(described.members)) == (assignor, 2)
    for each in (one, three):
        each.consumer.close()


@pytest.mark.clients
def test_java_reads_in_a_server_side_group(lively: str) -> None:
    from servers.kafka import tool

    read = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", lively,
        "--topic", "t", "--group", "j", "--from-beginning", "--max-messages", str(RECORDS),
        "--timeout-ms", "30000", "--command-property", "group.protocol=consumer",
    )  # fmt: skip
    assert sorted(map(int, read.split())) == list(range(RECORDS))
    listed = tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", lively,
        "--list", "--type",
    )  # fmt: skip
    assert "Consumer" in listed
