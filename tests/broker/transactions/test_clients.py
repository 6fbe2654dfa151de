"""Other people's transactional producers on our broker, and its files in Kafka's tools."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

import fresh_loop
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.transactions.state import State
from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.client.writer import TransactionalWriter


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broker")


@pytest.fixture
def address(directory: Path) -> Iterator[str]:
    with BrokerThread(directory) as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("in", 1)
            admin.create_topic("out", 3)
        yield broker.address


def committed(address: str, topic: str = "out") -> list[bytes]:
    """Every committed value, by partition and offset."""
    with Admin(address) as admin:
        ends = admin.topic_end_offsets(topic)
    with Fetcher(address) as fetcher:
        return [
            record.value or b""
            for index, end in sorted(ends.items())
            for record in fetcher.read_range(topic, index, 0, end)
        ]


def open_anywhere(address: str, topic: str = "out") -> bool:
    with Admin(address) as admin:
        return admin.topic_end_offsets(topic) != admin.topic_end_offsets(topic, "read_uncommitted")


def test_librdkafka_commits_aborts_and_is_fenced(address: str) -> None:
    settings = {"bootstrap.servers": address, "transactional.id": "c", "log_level": 0}
    first = Producer(settings)
    first.init_transactions(20)
    for number in range(6):
        first.begin_transaction()
        for index in range(3):
            first.produce("out", partition=index, value=str(number))
        if number % 2:
            first.abort_transaction(20)
        else:
            first.commit_transaction(20)
    first.begin_transaction()
    first.produce("out", partition=0, value="zombie")
    first.flush(10)
    second = Producer(settings)
    second.init_transactions(20)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(20)
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    second.produce("out", partition=0, value="second")
    second.commit_transaction(20)
    assert sorted(committed(address)) == sorted([b"0", b"2", b"4"] * 3 + [b"second"])
    assert not open_anywhere(address)


def test_librdkafka_offsets_move_with_the_transaction(address: str) -> None:
    plain = Producer({"bootstrap.servers": address})
    for number in range(10):
        plain.produce("in", value=str(number))
    plain.flush(10)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["in"])
    for _ in range(10):
        assert consumer.poll(20) is not None
    producer = Producer({"bootstrap.servers": address, "transactional.id": "c"})
    producer.init_transactions(20)
    place = TopicPartition("in", 0)
    for offset, commit in ((4, True), (7, False), (10, True)):
        producer.begin_transaction()
        producer.produce("out", value=str(offset))
        producer.send_offsets_to_transaction(
            [TopicPartition("in", 0, offset)], consumer.consumer_group_metadata(), 20
        )
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
        [found] = consumer.committed([place], 20)
        assert found.offset == (offset if commit else 4)
    consumer.close()
    assert sorted(committed(address)) == [b"10", b"4"]


def test_aiokafka_transactions(address: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def work() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id="a")
        await producer.start()
        try:
            async with producer.transaction():
                for index in range(3):
                    await producer.send_and_wait("out", b"kept", partition=index)
                await producer.send_offsets_to_transaction(
                    {aiokafka.TopicPartition("in", 0): 3}, "async"
                )
            await producer.begin_transaction()
            await producer.send_and_wait("out", b"dropped", partition=0)
            await producer.abort_transaction()
        finally:
            await producer.stop()

    fresh_loop.run(work(), 60)
    assert committed(address) == [b"kept"] * 3
    assert not open_anywhere(address)


def test_kafka_python_transactions(address: str) -> None:
    kafka = pytest.importorskip("kafka")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        producer = kafka.KafkaProducer(bootstrap_servers=address, transactional_id="p")
    try:
        producer.init_transactions()
        for value, commit in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
            producer.begin_transaction()
            producer.send("out", value=value, partition=0)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()
    assert committed(address) == [b"kept", b"kept too"]


def test_our_own_writer_gets_an_epoch_for_every_transaction(address: str) -> None:
    with TransactionalWriter(address, "w") as writer:
        writer.init()
        first = writer.producer_epoch
        for number in range(3):
            writer.send("out", 0, None, b"%d" % number)
            writer.commit()
        assert writer.producer_epoch == first + 3
    assert committed(address) == [b"0", b"1", b"2"]


@pytest.mark.clients
def test_java_commits_with_epochs_of_their_own(address: str, directory: Path) -> None:
    from servers.kafka import tool

    server = ("--bootstrap-server", address)
    tool(
        "org.apache.kafka.tools.ProducerPerformance", *server, "--topic", "out",
        "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
        "--transactional-id", "java", "--transaction-duration-ms", "10",
    )  # fmt: skip
    assert len(committed(address)) == 5000
    listed = tool("org.apache.kafka.tools.TransactionsCommand", *server, "list")
    assert "java" in listed
    assert "CompleteCommit" in listed
    described = tool(
        "org.apache.kafka.tools.TransactionsCommand", *server, "describe",
        "--transactional-id", "java",
    )  # fmt: skip
    epoch = int(described.splitlines()[1].split("\t")[3])
    assert epoch > 1, "every transaction has its own epoch since KIP-890"
    consumed = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *server, "--topic", "out", "--group", "j",
        "--from-beginning", "--isolation-level", "read_committed", "--max-messages", "5000",
        "--timeout-ms", "30000",
    )  # fmt: skip
    assert len(consumed.splitlines()) == 5000


def test_a_request_for_many_partitions_joins_them_at_once(address: str) -> None:
    with TransactionalWriter(address, "many") as writer:
        writer.init()
        for number in range(3):
            writer.send("out", number, b"k", b"v")
        writer.flush()
        with Admin(address) as admin:
            written = sum(end for end in admin.topic_end_offsets("__transaction_state").values())
        assert written == 2, "one record when it began, one for all partitions"
        assert open_anywhere(address)
        writer.commit()
    assert committed(address) == [b"v"] * 3


@pytest.mark.clients
def test_kafka_reads_the_records_of_our_internal_topics(address: str, directory: Path) -> None:
    from servers.kafka import tool

    test_librdkafka_offsets_move_with_the_transaction(address)
    dump = "org.apache.kafka.tools.DumpLogSegments"
    states = ""
    for path in directory.glob("__transaction_state-*/*.log"):
        states += tool(dump, "--files", str(path), "--transaction-log-decoder")
    for status in (
        State.ONGOING,
        State.PREPARE_COMMIT,
        State.COMPLETE_COMMIT,
        State.COMPLETE_ABORT,
    ):
        assert f'"transactionStatus":{status:d}' in states
    offsets = ""
    for path in directory.glob("__consumer_offsets-*/*.log"):
        offsets += tool(dump, "--files", str(path), "--offsets-decoder")
    assert '"group":"g"' in offsets
    assert '"offset":10' in offsets
    assert "endTxnMarker: COMMIT" in offsets
    for words in (states, offsets):
        assert "rror" not in words.replace("isvalid", ""), words[-3000:]


@pytest.mark.clients
def test_a_hanging_transaction_is_aborted_by_kafkas_tool(address: str) -> None:
    from servers.kafka import tool

    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": "h", "transaction.timeout.ms": 900_000}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("out", partition=0, value="open")
    producer.flush(10)
    assert open_anywhere(address)
    tool(
        "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", address, "abort",
        "--topic", "out", "--partition", "0", "--start-offset", "0",
    )  # fmt: skip
    assert not open_anywhere(address)
    assert committed(address) == []
