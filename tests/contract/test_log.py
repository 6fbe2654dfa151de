"""Topics, producing and reading mean the same on every log."""

from __future__ import annotations

import threading
import time
from concurrent.futures import wait
from datetime import UTC, datetime

import pytest

from tailrace.client import serializers
from tailrace.client.errors import (
    ClientClosedError,
    ClientError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestError,
    SerializationError,
    TopicExistsError,
    TransactionStateError,
    UnknownTopicError,
)
from tailrace.client.log import Log
from tailrace.client.record import Delivery
from tailrace.errors import UsageError
from tailrace.records.partitioner import partition_for


def test_a_topic_is_made_described_changed_and_deleted(log: Log, name: str) -> None:
    log.create_topic(name, partitions=3, config={"retention.ms": 1234})
    found = log.topic(name)
    assert found is not None
    assert len(found.leaders) == 3
    assert name in log.topics()
    assert log.topic_config(name)["retention.ms"] == "1234"
    log.alter_topic(name, {"retention.ms": None, "max.message.bytes": 5000})
    for _ in range(50):  # a cluster's brokers hear of it a little later
        if log.topic_config(name)["retention.ms"] != "1234":
            break
        time.sleep(0.1)
    assert log.topic_config(name)["retention.ms"] != "1234"
    assert log.topic_config(name)["max.message.bytes"] == "5000"
    with pytest.raises(TopicExistsError):
        log.create_topic(name)
    assert log.ensure_topic(name) is False
    log.delete_topic(name)
    assert log.topic(name) is None
    with pytest.raises(UnknownTopicError):
        log.delete_topic(name)


def test_a_topic_with_a_bad_setting_is_refused(log: Log, name: str) -> None:
    with pytest.raises(RequestError) as refused:
        log.create_topic(name, config={"no.such.setting": 1})
    assert refused.value.error_code == 40
    assert log.topic(name) is None


def test_records_come_back_as_they_were_sent(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer() as producer:
        futures = [
            producer.send(name, key=b"k", value=b"v", headers={"trace": b"1", "none": None}, timestamp=1000),
            producer.send(name, key=None, value=None, timestamp=datetime(2026, 1, 2, tzinfo=UTC)),
            producer.send(name, value=b""),
        ]  # fmt: skip
        producer.flush()
        assert [future.result(60) for future in futures] == [(0, 0), (0, 1), (0, 2)]
        first = futures[0].result()
        assert (first.topic, first.partition, first.offset, first.timestamp) == (name, 0, 0, 1000)
    records = list(log.read(name))
    assert [(r.offset, r.key, r.value) for r in records] == [
        (0, b"k", b"v"),
        (1, None, None),
        (2, None, b""),
    ]
    assert records[0].headers == (("trace", b"1"), ("none", None))
    assert records[0].header("trace") == b"1"
    assert records[0].timestamp == 1000
    assert records[1].time == datetime(2026, 1, 2, tzinfo=UTC)


def test_keys_choose_partitions_as_java_does(log: Log, name: str) -> None:
    log.create_topic(name, partitions=5)
    keys = [b"", b"a", b"user-17", b"\x00\xff" * 9, "zwölf".encode()]
    with log.producer(linger_ms=0) as producer:
        futures = {key: producer.send(name, key=key, value=b"x") for key in keys}
    assert {key: future.result().partition for key, future in futures.items()} == {
        key: partition_for(key, 5) for key in keys
    }


def test_a_program_may_bring_its_own_partitioner_and_serializers(log: Log, name: str) -> None:
    log.create_topic(name, partitions=3)
    with log.producer(
        key_serializer=serializers.text,
        value_serializer=serializers.json,
        partitioner=lambda topic, key, value, count: count - 1,
    ) as producer:
        delivery = producer.send(name, key="k", value={"n": 1}).result(60)
        with pytest.raises(SerializationError):
            producer.send(name, key=b"bytes are not text", value=None)
    assert delivery.partition == 2
    (record,) = log.read(name)
    assert (record.key, record.value) == (b"k", b'{"n":1}')


def test_a_callback_is_told_the_delivery(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    told: list[tuple[Delivery | None, ClientError | None]] = []
    with log.producer() as producer:
        producer.send(name, value=b"1", callback=lambda *fate: told.append(fate))
    assert told == [((0, 0), None)]


def test_errors_before_sending_are_raised_by_send(log: Log, name: str) -> None:
    with log.producer(max_request_size=2000) as producer:
        with pytest.raises(RecordTooLargeError):
            producer.send(name, value=b"x" * 3000)
        with pytest.raises(SerializationError):
            producer.send(name, value=object())
    with pytest.raises(ClientClosedError):
        producer.send(name, value=b"x")
    with pytest.raises(UsageError):
        log.producer(acks="most")
    with pytest.raises(UsageError, match="no setting") as misspelt:
        log.producer(linger=5)
    assert "linger_ms" in misspelt.value.hint
    with pytest.raises(UsageError, match="no setting"):
        log.consumer("g", [name], fetch_min_byte=5)


def test_a_final_error_comes_with_the_future(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1, config={"max.message.bytes": 1000})
    with log.producer() as producer:
        good = producer.send(name, value=b"fits")
        producer.flush()
        bad = producer.send(name, value=b"x" * 5000)
        with pytest.raises(RecordTooLargeError):
            bad.result(20)
        assert good.result() == (0, 0)
        assert producer.send(name, value=b"fits too").result(20) == (0, 1)


def test_many_threads_share_a_producer_and_order_holds_in_each(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer() as producer:

        def work(thread: int) -> None:
            for number in range(200):
                producer.send(name, key=b"%d" % thread, value=b"%d" % number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = list(log.read(name))
    assert len(records) == 800
    for thread in range(4):
        mine = [int(r.value or b"") for r in records if r.key == b"%d" % thread]
        assert mine == list(range(200))


def test_compression_is_the_producers_choice(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        with log.producer(compression_type=codec) as producer:
            wait([producer.send(name, value=codec.encode() * 100) for _ in range(20)])
    assert len(list(log.read(name))) == 80


def test_reading_starts_where_it_is_told(log: Log, name: str) -> None:
    log.create_topic(name, partitions=2)
    with log.producer() as producer:
        for number in range(10):
            producer.send(
                name, value=b"%d" % number, partition=number % 2, timestamp=1000 * number + 500
            )
    assert sorted(int(r.value or b"") for r in log.read(name)) == list(range(10))
    assert list(log.read(name, start="latest")) == []
    assert sorted(int(r.value or b"") for r in log.read(name, start=3)) == [6, 7, 8, 9]
    assert sorted(int(r.value or b"") for r in log.read(name, start={0: 4, 1: 5})) == [8]
    assert [r.offset for r in log.read(name, partitions=[1])] == [0, 1, 2, 3, 4]
    since = "1970-01-01T00:00:06.501Z"
    assert sorted(int(r.value or b"") for r in log.read(name, start=since)) == [7, 8, 9]
    with pytest.raises(UnknownTopicError):
        list(log.read(name + "-missing"))
    with pytest.raises(UnknownTopicError):
        list(log.read(name, partitions=[7]))
    with pytest.raises(UsageError):
        list(log.read(name, start="yesterday"))


def test_following_gets_what_is_written_later(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer(linger_ms=0) as producer:
        producer.send(name, value=b"before").result(60)
        reader = log.read(name, follow=True)
        assert next(reader).value == b"before"
        producer.send(name, value=b"after").result(60)
        assert next(reader).value == b"after"
        reader.close()  # type: ignore[attr-defined]


def test_a_transaction_is_visible_as_a_whole_or_not_at_all(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer(transactional_id=name) as producer:
        with producer.transaction():
            future = producer.send(name, key=b"k", value=b"kept")
            producer.flush()
            assert future.result(0).offset == 0

        def fail() -> None:
            with producer.transaction():
                producer.send(name, value=b"dropped")
                producer.flush()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with producer.transaction():
            producer.send(name, value=b"kept too")
        with pytest.raises(TransactionStateError):
            producer.send(name, value=b"outside")
    wait_until_stable(log, name)
    assert [r.value for r in log.read(name)] == [b"kept", b"kept too"]
    assert len(list(log.read(name, isolation_level="read_uncommitted"))) == 3


def test_a_newer_transactional_producer_fences_the_older(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer(transactional_id=name) as old:
        old.begin()
        late = old.send(name, value=b"zombie")
        with log.producer(transactional_id=name) as new:
            with new.transaction():
                new.send(name, value=b"new")
            with pytest.raises(ProducerFencedError):
                old.commit()
            assert isinstance(late.exception(0), ProducerFencedError)
    wait_until_stable(log, name)
    assert [r.value for r in log.read(name)] == [b"new"]


def wait_until_stable(log: Log, topic: str) -> None:
    """Kafka answers a commit before its markers are written."""
    from tailrace.clock import SYSTEM

    until = SYSTEM.monotonic() + 20
    while log.end_offsets(topic) != log.end_offsets(topic, "read_uncommitted"):
        assert SYSTEM.monotonic() < until, "a transaction stays open"
        SYSTEM.sleep(0.01)


def test_the_copies_of_a_new_topic_are_a_setting(log: Log, name: str) -> None:
    assert log.ensure_topic(name, 2, {"replication": "1", "retention.ms": "5000"})
    found = log.topic(name)
    assert found is not None
    assert len(found.leaders) == 2
    assert log.topic_config(name)["retention.ms"] == "5000"
