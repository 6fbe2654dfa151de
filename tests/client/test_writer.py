"""The transactional writer, judged by what readers see afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tailrace.client.admin import Admin
from tailrace.client.errors import (
    BrokerUnavailableError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestTimeoutError,
    TransactionStateError,
)
from tailrace.client.fetcher import Fetcher
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM
from tailrace.records.partitioner import partition_for


def values(log: str, topic: str, partition: int = 0, isolation: str = "read_committed") -> list[bytes]:  # fmt: skip
    settle(log, topic)
    with Fetcher(log) as fetcher:
        return [record.value or b"" for record in fetcher.read_all(topic, partition, isolation)]


def settle(log: str, topic: str) -> None:
    """Wait until no transaction is open: Kafka answers a commit before its markers stand."""
    with Admin(log) as admin:
        until = SYSTEM.monotonic() + 20
        while admin.topic_end_offsets(topic) != admin.topic_end_offsets(topic, "read_uncommitted"):
            assert SYSTEM.monotonic() < until, "a transaction stays open"
            SYSTEM.sleep(0.01)


def make(log: str, name: str, partitions: int = 1, **config: str) -> None:
    with Admin(log) as admin:
        admin.create_topic(name, partitions, config)


def test_a_committed_transaction_is_visible_as_a_whole(log: str, name: str) -> None:
    make(log, name, 3)
    with TransactionalWriter(log, name) as writer:
        writer.init()
        for number in range(30):
            writer.send(name, None, b"%d" % number, b"value %d" % number, {"n": b"x", "none": None})
        ends = writer.flush()
        assert sum(ends.values()) == 30
        with Fetcher(log) as fetcher:
            assert [list(fetcher.read_all(name, index)) for index in range(3)] == [[], [], []]
        writer.commit()
    settle(log, name)
    with Fetcher(log) as fetcher:
        for index in range(3):
            records = list(fetcher.read_all(name, index))
            assert [record.key for record in records] == [
                b"%d" % number for number in range(30) if partition_for(b"%d" % number, 3) == index
            ]
            assert {record.headers for record in records} == {(("n", b"x"), ("none", None))}


def test_an_aborted_transaction_is_never_visible(log: str, name: str) -> None:
    make(log, name)
    with TransactionalWriter(log, name) as writer:
        writer.init()
        writer.send(name, 0, None, b"gone")
        writer.flush()
        writer.abort()
        writer.send(name, 0, None, b"kept")
        writer.commit()
    assert values(log, name) == [b"kept"]
    assert b"gone" in values(log, name, isolation="read_uncommitted")


@pytest.mark.parametrize("version", [1, 2])
def test_many_transactions_in_a_row_keep_their_order(log: str, name: str, version: int) -> None:
    make(log, name, 2)
    with TransactionalWriter(log, name, transaction_version=version) as writer:
        writer.init()
        for number in range(40):
            writer.send(name, number % 2, None, b"%d" % number)
            writer.send(name, 0, None, b"all %d" % number)
            if number % 5 == 4:
                writer.flush()
                writer.abort()
            else:
                writer.commit()
    kept = [number for number in range(40) if number % 5 != 4]
    assert values(log, name, 1) == [b"%d" % number for number in kept if number % 2]
    assert [each for each in values(log, name, 0) if each.startswith(b"all")] == [
        b"all %d" % number for number in kept
    ]


def test_flush_tells_the_offset_behind_the_last_record(log: str, name: str) -> None:
    make(log, name)
    with TransactionalWriter(log, name) as writer:
        writer.init()
        writer.send(name, 0, None, b"1")
        assert writer.flush() == {(name, 0): 1}
        writer.send(name, 0, None, b"2")
        assert writer.flush() == {(name, 0): 2}
        writer.commit()
        writer.send(name, 0, None, b"3")
        assert writer.flush() == {(name, 0): 4}  # a marker stands at offset 2
        writer.commit()
    settle(log, name)
    with Fetcher(log) as fetcher:
        assert [record.offset for record in fetcher.read_range(name, 0, 0, 4)] == [0, 1, 3]
        last = fetcher.read_last(name)
        assert last is not None
        assert (last.offset, last.value) == (3, b"3")


def test_columns_are_written_like_single_records(log: str, name: str) -> None:
    import pyarrow as pa

    make(log, name, 4)
    keys = [b"k%d" % number for number in range(1000)]
    payload = [b"v%d" % number for number in range(1000)]
    with TransactionalWriter(log, name, batch_bytes=3000) as writer:
        writer.init()
        writer.send_columns(name, None, pa.array(keys), pa.array(payload), timestamps=1234)
        writer.send_columns(name, 2, None, [b"x", None], [1, 2], [(("h", b"1"),), ()])
        writer.commit()
    settle(log, name)
    with Fetcher(log) as fetcher:
        found = {index: list(fetcher.read_all(name, index)) for index in range(4)}
    assert [record.value for record in found[2][-2:]] == [b"x", None]
    assert found[2][-2].headers == (("h", b"1"),)
    del found[2][-2:]
    for index, records in found.items():
        assert [record.key for record in records] == [
            key for key in keys if partition_for(key, 4) == index
        ]
        assert {record.timestamp for record in records} == {1234}


def test_a_newer_writer_fences_the_older_at_once(log: str, name: str) -> None:
    make(log, name)
    with TransactionalWriter(log, name) as old, TransactionalWriter(log, name) as new:
        old.init()
        old.send(name, 0, None, b"zombie")
        old.flush()
        new.init()
        with pytest.raises(ProducerFencedError):
            old.commit()
        with pytest.raises(ProducerFencedError):
            old.send(name, 0, None, b"again")
        new.send(name, 0, None, b"new")
        new.commit()
        assert values(log, name) == [b"new"]
        old.init()
        old.send(name, 0, None, b"back")
        old.commit()
        new.send(name, 0, None, b"late")
        with pytest.raises(ProducerFencedError):
            new.commit()
    assert values(log, name) == [b"new", b"back"]


def test_an_open_transaction_is_ended_by_the_next_init(log: str, name: str) -> None:
    make(log, name)
    crashed = TransactionalWriter(log, name)
    crashed.init()
    crashed.send(name, 0, None, b"half")
    crashed.flush()
    crashed.cluster.close()
    with TransactionalWriter(log, name) as writer:
        writer.init()
        writer.send(name, 0, None, b"whole")
        writer.commit()
    assert values(log, name) == [b"whole"]


@pytest.mark.parametrize("version", [1, 2])
def test_offsets_count_only_when_the_transaction_commits(log: str, name: str, version: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    make(log, name, 2)
    group = name + "-group"

    def committed() -> list[int]:
        consumer = Consumer({"bootstrap.servers": log, "group.id": group})
        try:
            found = consumer.committed([TopicPartition(name, 0), TopicPartition(name, 1)], 10)
            return [each.offset for each in found]
        finally:
            consumer.close()

    with TransactionalWriter(log, name, transaction_version=version) as writer:
        writer.init()
        writer.send_offsets(group, {(name, 0): 5, (name, 1): 6})
        writer.abort()
        assert committed() == [-1001, -1001]
        writer.send(name, 0, None, b"x")
        writer.send_offsets(group, {(name, 0): 7, (name, 1): 8})
        writer.commit()
        assert committed() == [7, 8]


@pytest.mark.parametrize("version", [1, 2])
def test_a_batch_the_log_finds_too_large_is_cut(log: str, name: str, version: int) -> None:
    make(log, name, 1, **{"max.message.bytes": "2000"})
    with TransactionalWriter(log, name, transaction_version=version) as writer:
        writer.init()
        for number in range(50):
            writer.send(name, 0, None, b"%d" % number + b"x" * 500)
        writer.commit()
        assert [each.rstrip(b"x") for each in values(log, name)] == [
            b"%d" % number for number in range(50)
        ]
        writer.send(name, 0, None, b"fits")
        writer.send(name, 0, None, b"y" * 5000)
        with pytest.raises(RecordTooLargeError):
            writer.commit()
        with pytest.raises(TransactionStateError):
            writer.send(name, 0, None, b"more")
        writer.abort()
        writer.send(name, 0, None, b"after")
        writer.commit()
    assert values(log, name)[50:] == [b"after"]


def test_compressed_batches_are_read_back(log: str, name: str) -> None:
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        topic = f"{name}-{codec}"
        make(log, topic)
        with TransactionalWriter(log, topic, compression=codec) as writer:
            writer.init()
            for number in range(100):
                writer.send(topic, 0, None, b"%d" % number * 10)
            writer.commit()
        assert values(log, topic) == [b"%d" % number * 10 for number in range(100)]


def test_an_empty_transaction_does_nothing(log: str, name: str) -> None:
    with TransactionalWriter(log, name) as writer:
        writer.init()
        assert writer.commit() == {}
        writer.abort()


def test_sending_before_init_is_refused() -> None:
    with (
        TransactionalWriter("127.0.0.1:1", "nobody") as writer,
        pytest.raises(TransactionStateError),
    ):
        writer.send("t", 0, None, b"x")


def test_no_broker_is_told_after_the_time_is_up() -> None:
    writer = TransactionalWriter("127.0.0.1:1", "nobody", timeout=timedelta(milliseconds=100))
    with writer, pytest.raises((RequestTimeoutError, BrokerUnavailableError), match="nobody"):
        writer.init()


def test_a_topic_that_does_not_exist_is_made(log: str, name: str) -> None:
    with TransactionalWriter(log, name) as writer:
        writer.init()
        writer.send(name, None, b"k", b"v")
        writer.commit()
    assert values(log, name) == [b"v"]
