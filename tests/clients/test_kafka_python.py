"""kafka-python, a client in pure Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from tailrace.clock import SYSTEM

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it reads its own files in an old way
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import KafkaAdminClient, NewTopic

pytestmark = pytest.mark.filterwarnings("ignore")

PATIENCE_MS = 20_000


@pytest.fixture
def admin(address: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=address)
    yield client
    client.close()


def collect(consumer: KafkaConsumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = SYSTEM.monotonic() + PATIENCE_MS / 1000
    while len(found) < count and SYSTEM.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=200).values():
            found += [record.value for record in records]
    return found


def listed(admin: KafkaAdminClient, topic: str, wanted: bool) -> bool:
    """Whether a topic comes to be there, or not: Apache Kafka answers before its own brokers
    have all heard of a change."""
    deadline = SYSTEM.monotonic() + PATIENCE_MS / 1000
    while (topic in admin.list_topics()) is not wanted:
        if SYSTEM.monotonic() > deadline:
            return False
        SYSTEM.sleep(0.05)
    return True


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_records_come_back_in_order(address: str, topic: str, codec: str | None) -> None:
    producer = KafkaProducer(bootstrap_servers=address, compression_type=codec, linger_ms=5)
    values = [b"value %d" % number for number in range(500)]
    sent = [producer.send(topic, value, partition=0) for value in values]
    producer.flush(20)
    assert [future.get(20).offset for future in sent] == list(range(500))
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    assert collect(consumer, 500) == values
    consumer.close()


def test_a_group_goes_on_where_it_stopped(
    address: str, topic: str, admin: KafkaAdminClient
) -> None:
    admin.create_topics([NewTopic(topic, 3, 1)])
    producer = KafkaProducer(bootstrap_servers=address)
    for number in range(60):
        producer.send(topic, b"%d" % number, key=b"%d" % number)
    producer.flush(20)
    for expected in (60, 1):
        consumer = KafkaConsumer(
            topic, bootstrap_servers=address, group_id=topic, auto_offset_reset="earliest"
        )
        assert len(collect(consumer, expected)) == expected
        consumer.commit()
        consumer.close()
        producer.send(topic, b"later")
        producer.flush(20)
    producer.close()


def test_topics_are_administered(address: str, topic: str, admin: KafkaAdminClient) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])
    assert listed(admin, topic, True)
    admin.delete_topics([topic])
    assert listed(admin, topic, False)


def test_offsets_are_found_by_time(address: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address)
    for number in range(10):
        producer.send(topic, b"x", partition=0, timestamp_ms=1_600_000_000_000 + number * 1000)
    producer.flush(20)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=address)
    place = TopicPartition(topic, 0)
    found = consumer.offsets_for_times({place: 1_600_000_004_500})
    assert found[place].offset == 5
    assert consumer.end_offsets([place]) == {place: 10}
    assert consumer.beginning_offsets([place]) == {place: 0}
    consumer.close()
