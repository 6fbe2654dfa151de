"""A batch that nobody can read, left by a broker that did not look: said with its place, once,
and not in the way of what lies behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerThread
from tailrace.client.columns import ColumnFetcher
from tailrace.client.errors import DamagedBatchError, UnreadableBatchError
from tailrace.client.fetcher import Fetcher
from tailrace.client.ranges import KafkaRanges, Range
from tailrace.console.search import search
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.reading.reader import Range as LogRange
from tailrace.records.encode import assemble, encode_columns
from tailrace.testing.wire_client import WireClient

TIME = 1_700_000_000_000
POISON = {
    "gzip": assemble(b"no gzip", count=2, last_offset_delta=1, attributes=1,
                     base_timestamp=TIME, max_timestamp=TIME),
    "garbage": assemble(b"\x99" * 40, count=2, last_offset_delta=1, attributes=0,
                        base_timestamp=TIME, max_timestamp=TIME),
    "count": assemble(bytes(encode_columns([b"k"], [b"v"], TIME)[61:]), count=2,
                      last_offset_delta=1, attributes=0, base_timestamp=TIME, max_timestamp=TIME),
}  # fmt: skip


@pytest.fixture(params=POISON)
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # fmt: skip
    """A log with records 0 and 1, a broken batch at 2 and 3, and record 4."""
    with BrokerThread(tmp_path_factory.mktemp("log"), durable=False) as broker:
        with WireClient(broker.address) as talk:
            talk.create("t")
            talk.produce("t", encode_columns([b"k"] * 2, [b"0", b"1"], TIME))
            broker.broker.store.partition("t", 0).append_internal(bytearray(POISON[request.param]))
            talk.produce("t", encode_columns([b"k"], [b"4"], TIME))
        yield broker.address


def named(error: UnreadableBatchError) -> tuple[str, int, int, int]:
    assert "t/0" in error.message
    assert error.hint
    return error.topic, error.partition, error.first_offset, error.last_offset


PLACE = ("t", 0, 2, 3)


def test_a_fetcher_gives_what_is_before_it_and_then_its_place(address: str) -> None:
    with Fetcher(address) as fetcher:
        fetched = fetcher.fetch("t", 0, 0)
        assert [record.value for record in fetched.records] == [b"0", b"1"]
        with pytest.raises(UnreadableBatchError) as caught:
            fetcher.fetch("t", 0, fetched.following)
        assert named(caught.value) == PLACE
        behind = fetcher.fetch("t", 0, caught.value.last_offset + 1)
        assert [record.value for record in behind.records] == [b"4"]


def test_columns_give_what_is_before_it_and_then_its_place(address: str) -> None:
    fetcher = ColumnFetcher(address)
    found: list[bytes] = []

    def read() -> None:
        for columns in fetcher.read("t", 0, 0, 5):
            found.extend(columns.values.to_pylist())

    try:
        with pytest.raises(UnreadableBatchError) as caught:
            read()
    finally:
        fetcher.close()
    assert found == [b"0", b"1"]
    assert named(caught.value) == PLACE


def test_ranges_go_on_behind_it_if_asked_to(address: str) -> None:
    reader = KafkaRanges(address)
    broken: list[UnreadableBatchError] = []
    try:
        with pytest.raises(UnreadableBatchError):
            list(reader.read([Range("t", 0, 0, 5)]))
        chunks = list(reader.read([Range("t", 0, 0, 5)], unreadable=broken.append))
    finally:
        reader.close()
    assert [value for chunk in chunks for value in chunk.values] == [b"0", b"1", b"4"]
    assert [named(one) for one in broken] == [PLACE]


def test_the_console_shows_it_in_its_place(address: str) -> None:
    shown = search(address, "t", "earliest", 100)["records"]
    assert [row["offset"] for row in shown] == [0, 1, 2, 4]
    assert [row["value"] for row in shown if row["offset"] != 2] == ["0", "1", "4"]
    assert "not shown" in shown[2]["value"]


def test_a_consumer_gets_the_others_and_may_seek_behind_it(tmp_path: Path) -> None:
    with tr.open(tmp_path / "log") as log:
        log.create_topic("t", partitions=1)
        with log.producer() as producer:
            for value in (b"0", b"1"):
                producer.send("t", value)
        broker = log._broker.broker
        broker.store.partition("t", 0).append_internal(bytearray(POISON["garbage"]))
        with log.producer() as producer:
            producer.send("t", b"4")
        found: list[object] = []

        def read() -> None:
            for _ in range(50):
                found.extend(record.value for record in consumer.poll(5))

        with log.consumer(partitions={("t", 0): 0}) as consumer:
            with pytest.raises(UnreadableBatchError) as caught:
                read()
            assert found == [b"0", b"1"]
            assert named(caught.value) == PLACE
            consumer.seek("t", 0, 4)
            assert [record.value for record in consumer.poll(5)] == [b"4"]


def test_a_reader_of_the_pipelines_does_not_wait_for_ever(
    request: pytest.FixtureRequest, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.callspec.params["address"] == "count":
        pytest.skip("librdkafka passes over missing records; rows are read on our own wire")
    monkeypatch.setattr("tailrace.pipelines.reading.reader.LOOK_SECONDS", 0.5)
    with LogReader(address) as reader, pytest.raises(UnreadableBatchError) as caught:
        list(reader.read([LogRange("t", 0, 0, 5)], timeout=30))
    assert named(caught.value) == PLACE


@pytest.fixture
def flipped(tmp_path: Path) -> Iterator[str]:
    """A log with five records, each a batch; one bit of the third changed on the disk since."""
    with BrokerThread(tmp_path, durable=False) as broker:
        with WireClient(broker.address) as talk:
            talk.create("t")
            for number in range(5):
                value = b"value-%d" % number
                talk.produce("t", encode_columns([b"k"], [value], TIME + number))
        [segment] = broker.broker.store.partition("t", 0).directory.glob("*.log")
        with segment.open("r+b") as file:
            file.seek(segment.read_bytes().index(b"value-2"))
            file.write(b"w")
        yield broker.address


def test_a_batch_that_does_not_match_its_checksum_is_never_used(flipped: str) -> None:
    with Fetcher(flipped) as fetcher:
        assert [one.value for one in fetcher.fetch("t", 0, 0).records] == [b"value-0", b"value-1"]
        with pytest.raises(DamagedBatchError, match="2 to 2 of t/0"):
            fetcher.fetch("t", 0, 2)
        assert [one.value for one in fetcher.fetch("t", 0, 3).records] == [b"value-3", b"value-4"]
    columns = ColumnFetcher(flipped)
    found: list[bytes] = []

    def read() -> None:
        for each in columns.read("t", 0, 0, 5):
            found.extend(each.values.to_pylist())

    try:
        with pytest.raises(DamagedBatchError):
            read()
    finally:
        columns.close()
    assert found == [b"value-0", b"value-1"]
    with LogReader(flipped) as reader, pytest.raises(DamagedBatchError):
        list(reader.read([LogRange("t", 0, 0, 5)]))
    ranges = KafkaRanges(flipped)
    try:
        with pytest.raises(DamagedBatchError):
            list(ranges.read([Range("t", 0, 0, 5)]))
    finally:
        ranges.close()
    shown = search(flipped, "t", "earliest", 100)["records"][::-1]
    assert [one["value"] for one in shown if "value-" in str(one["value"])] == [
        f"value-{n}" for n in (4, 3, 1, 0)
    ]
    assert any("are damaged" in str(one["value"]) for one in shown)
