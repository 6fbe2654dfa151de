"""confluent-kafka, which stands on librdkafka."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tailrace.clock import SYSTEM

PATIENCE = 20


@pytest.fixture
def admin(address: str) -> Iterator[AdminClient]:
    client = AdminClient({"bootstrap.servers": address})
    yield client
    client.poll(0)


@pytest.fixture
def make_topic(admin: AdminClient, topic: str) -> Callable[..., str]:
    def make(partitions: int = 1, **config: str) -> str:
        given = {name.replace("_", "."): value for name, value in config.items()}
        admin.create_topics([NewTopic(topic, partitions, 1, config=given)])[topic].result(PATIENCE)
        return topic

    return make


def produce(address: str, topic: str, values: list[bytes], **config: Any) -> list[Message]:
    partition = config.pop("partition", -1)
    sent: list[Message] = []
    problems: list[object] = []

    def delivered(error: object, message: Message) -> None:
        (problems if error else sent).append(error or message)

    producer = Producer({"bootstrap.servers": address, **config})
    for number, value in enumerate(values):
        producer.produce(
            topic, value, b"k%d" % (number % 7), partition=partition, on_delivery=delivered
        )
        producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    assert not problems, problems[:3]
    return sent


def read(address: str, topic: str, count: int, group: str = "g", **config: Any) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **config,
        }
    )
    try:
        consumer.subscribe([topic])
        return collect(consumer, count)
    finally:
        consumer.close()


def collect(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    deadline = SYSTEM.monotonic() + PATIENCE
    while len(found) < count and SYSTEM.monotonic() < deadline:
        for message in consumer.consume(count - len(found), 0.2):
            assert message.error() is None, message.error()
            found.append(message)
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_in_order_with_every_codec(
    address: str, make_topic: Callable[..., str], codec: str
) -> None:
    name = make_topic(1)
    values = [b"value %d" % number * 20 for number in range(2000)]
    produce(address, name, values, **{"compression.type": codec, "linger.ms": 5})
    found = read(address, name, 2000, group=name)
    assert [message.value() for message in found] == values
    assert [message.offset() for message in found] == list(range(2000))


def test_keys_headers_and_timestamps_survive(address: str, make_topic: Callable[..., str]) -> None:
    name = make_topic(1)
    producer = Producer({"bootstrap.servers": address})
    producer.produce(
        name, b"v", b"k", headers=[("a", b"1"), ("a", None)], timestamp=1_600_000_000_123
    )
    producer.produce(name, None, b"k")
    assert producer.flush(PATIENCE) == 0
    first, second = read(address, name, 2, group=name)
    assert (first.key(), first.value()) == (b"k", b"v")
    assert first.headers() == [("a", b"1"), ("a", None)]
    assert first.timestamp() == (1, 1_600_000_000_123)
    assert second.value() is None


def test_log_append_time_is_the_brokers(address: str, make_topic: Callable[..., str]) -> None:
    name = make_topic(1, message_timestamp_type="LogAppendTime")
    before = SYSTEM.wall_ms()
    producer = Producer({"bootstrap.servers": address})
    producer.produce(name, b"v", timestamp=5)
    assert producer.flush(PATIENCE) == 0
    kind, at = read(address, name, 1, group=name)[0].timestamp()
    assert kind == 2
    assert before <= at <= SYSTEM.wall_ms()


@pytest.mark.parametrize(
    ("acks", "idempotent"), [("0", False), ("1", False), ("all", False), ("all", True)]
)
def test_every_promise_of_acknowledgement_works(
    address: str, make_topic: Callable[..., str], acks: str, idempotent: bool
) -> None:
    name = make_topic(3)
    values = [b"%d" % number for number in range(500)]
    # What is sent without acknowledgement to a topic whose leaders are not ready is lost.
    for partition in range(3):
        produce(address, name, values[partition : partition + 1], partition=partition)
    produce(address, name, values[3:], acks=acks, **{"enable.idempotence": idempotent})
    found = read(address, name, 500, group=name)
    assert sorted(message.value() for message in found) == sorted(values)


def test_a_topic_is_created_on_first_use(address: str, topic: str) -> None:
    produce(address, topic, [b"first"])
    assert [message.value() for message in read(address, topic, 1, group=topic)] == [b"first"]


def test_a_message_that_is_too_large_is_refused(
    address: str, make_topic: Callable[..., str]
) -> None:
    name = make_topic(1, max_message_bytes="1000")
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": address})
    producer.produce(name, bytes(5000), on_delivery=lambda error, _: errors.append(error))
    producer.flush(PATIENCE)
    assert errors[0].name() == "MSG_SIZE_TOO_LARGE"


def test_a_group_shares_partitions_and_goes_on_where_it_stopped(
    address: str, make_topic: Callable[..., str]
) -> None:
    name = make_topic(4)
    produce(address, name, [b"%d" % number for number in range(200)])
    seen: list[bytes] = []
    guard = threading.Lock()
    stop = threading.Event()

    def work() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
            }
        )
        consumer.subscribe([name])
        while not stop.is_set():
            for message in consumer.consume(10, 0.1):
                assert message.error() is None
                with guard:
                    seen.append(message.value())
        consumer.close()

    members = [threading.Thread(target=work) for _ in range(2)]
    for one in members:
        one.start()
    deadline = SYSTEM.monotonic() + PATIENCE
    while len(seen) < 200 and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(0.05)
    stop.set()
    for one in members:
        one.join()
    assert sorted(seen) == sorted(b"%d" % number for number in range(200))
    produce(address, name, [b"later"])
    assert [m.value() for m in read(address, name, 1, group=name)] == [b"later"]


def test_seeking_by_time_finds_the_record(address: str, make_topic: Callable[..., str]) -> None:
    name = make_topic(1)
    producer = Producer({"bootstrap.servers": address})
    for number in range(100):
        producer.produce(name, b"%d" % number, timestamp=1_600_000_000_000 + number * 1000)
    assert producer.flush(PATIENCE) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": name})
    try:
        (found,) = consumer.offsets_for_times(
            [TopicPartition(name, 0, 1_600_000_042_500)], PATIENCE
        )
        assert found.offset == 43
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), PATIENCE) == (0, 100)
    finally:
        consumer.close()


def test_committed_transactions_are_read_whole_and_aborted_ones_not_at_all(
    address: str, make_topic: Callable[..., str]
) -> None:
    name = make_topic(2)
    producer = Producer({"bootstrap.servers": address, "transactional.id": name})
    producer.init_transactions(PATIENCE)
    for number in range(6):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(name, b"%d" % number, partition=partition)
        if number % 2:
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)
    found = read(address, name, 6, group=name, **{"isolation.level": "read_committed"})
    assert sorted(message.value() for message in found) == sorted([b"0", b"2", b"4"] * 2)


def test_offsets_sent_in_a_transaction_move_with_it(
    address: str, make_topic: Callable[..., str]
) -> None:
    name = make_topic(1)
    produce(address, name, [b"1", b"2", b"3"])
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": address, "transactional.id": name})
    try:
        consumer.subscribe([name])
        assert len(collect(consumer, 3)) == 3
        producer.init_transactions(PATIENCE)
        for commit, expected in ((False, -1001), (True, 3)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(
                [TopicPartition(name, 0, 3)], consumer.consumer_group_metadata(), PATIENCE
            )
            if commit:
                producer.commit_transaction(PATIENCE)
            else:
                producer.abort_transaction(PATIENCE)
            (committed,) = consumer.committed([TopicPartition(name, 0)], PATIENCE)
            assert committed.offset == expected
    finally:
        consumer.close()


def test_topics_grow_change_and_go(
    address: str, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    name = make_topic(1)
    admin.create_partitions([NewPartitions(name, 3)])[name].result(PATIENCE)
    described = admin.describe_topics(_names([name]))[name].result(PATIENCE)
    assert len(described.partitions) == 3
    resource = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[
            ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    next(iter(admin.incremental_alter_configs([resource]).values())).result(PATIENCE)
    asked = ConfigResource(ResourceType.TOPIC, name)
    found = next(iter(admin.describe_configs([asked]).values())).result(PATIENCE)
    assert found["retention.ms"].value == "12345"
    admin.delete_topics([name])[name].result(PATIENCE)
    assert name not in admin.list_topics(timeout=PATIENCE).topics


def _names(names: list[str]) -> Any:
    from confluent_kafka import TopicCollection

    return TopicCollection(names)


def test_what_one_node_cannot_promise_is_refused(admin: AdminClient, topic: str) -> None:
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(PATIENCE)
    assert refused.value.args[0].name() == "INVALID_REPLICATION_FACTOR"
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(topic, 1, 1, config={"no.such": "1"})])[topic].result(
            PATIENCE
        )
    assert refused.value.args[0].name() == "INVALID_CONFIG"


def test_records_are_deleted_up_to_an_offset(
    address: str, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    name = make_topic(1)
    produce(address, name, [b"%d" % number for number in range(10)])
    partition = TopicPartition(name, 0, 6)
    result = next(iter(admin.delete_records([partition]).values())).result(PATIENCE)
    assert result.low_watermark == 6
    assert [m.value() for m in read(address, name, 4, group=name)] == [b"6", b"7", b"8", b"9"]


def test_groups_are_described_reset_and_deleted(
    address: str, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    name = make_topic(1)
    produce(address, name, [b"%d" % number for number in range(10)])
    read(address, name, 10, group=name)
    described = admin.describe_consumer_groups([name])[name].result(PATIENCE)
    assert described.state.name == "EMPTY"
    asked = ConsumerGroupTopicPartitions(name, [TopicPartition(name, 0, 4)])
    admin.alter_consumer_group_offsets([asked])[name].result(PATIENCE)
    assert next(m.value() for m in read(address, name, 6, group=name)) == b"4"
    admin.delete_consumer_groups([name])[name].result(PATIENCE)
    listed = admin.list_consumer_groups().result(PATIENCE)
    assert name not in [group.group_id for group in listed.valid]


def test_offsets_are_listed_by_kind(
    address: str, admin: AdminClient, make_topic: Callable[..., str]
) -> None:
    name = make_topic(1)
    producer = Producer({"bootstrap.servers": address})
    for at in (5000, 9000, 7000):
        producer.produce(name, b"x", timestamp=at)
        producer.flush(PATIENCE)
    partition = TopicPartition(name, 0)
    expected = [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 3),
        (OffsetSpec.max_timestamp(), 1),
        (OffsetSpec.for_timestamp(6000), 1),
    ]
    for kind, offset in expected:
        asked = admin.list_offsets(
            {partition: kind}, isolation_level=IsolationLevel.READ_UNCOMMITTED
        )
        assert asked[partition].result(PATIENCE).offset == offset


def test_assignment_without_a_group_starts_where_it_is_told(
    address: str, make_topic: Callable[..., str]
) -> None:
    name = make_topic(2)
    produce(address, name, [b"%d" % number for number in range(20)], partition=1)
    consumer = Consumer({"bootstrap.servers": address, "group.id": name})
    try:
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING), TopicPartition(name, 1, 15)])
        found = collect(consumer, 5)
        assert [message.value() for message in found] == [b"15", b"16", b"17", b"18", b"19"]
    finally:
        consumer.close()


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param("range", marks=pytest.mark.clients),
        pytest.param("roundrobin", marks=pytest.mark.clients),
        "cooperative-sticky",
    ],
)
def test_members_come_and_go_under_every_assignor(
    address: str, make_topic: Callable[..., str], strategy: str
) -> None:
    name = make_topic(6)
    config = {
        "bootstrap.servers": address,
        "group.id": name,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": 6000,
    }
    members = [Consumer(config) for _ in range(3)]
    try:
        for member in members:
            member.subscribe([name])
        deadline = SYSTEM.monotonic() + PATIENCE
        shares: list[int] = []
        while SYSTEM.monotonic() < deadline:
            for member in members:
                member.poll(0.05)
            shares = [len(member.assignment()) for member in members]
            if shares == [2, 2, 2]:
                break
        assert shares == [2, 2, 2]
        members.pop().close()
        while SYSTEM.monotonic() < deadline:
            for member in members:
                member.poll(0.05)
            shares = [len(member.assignment()) for member in members]
            if shares == [3, 3]:
                break
        assert shares == [3, 3]
        owned = itertools.chain.from_iterable(member.assignment() for member in members)
        assert sorted(one.partition for one in owned) == list(range(6))
    finally:
        for member in members:
            member.close()
