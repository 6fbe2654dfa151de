"""What only a log in this process, or only a broker that goes away, can show."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.client.errors import (
    BrokerUnavailableError,
    BufferFullError,
    ClientClosedError,
    ClientError,
    ProducerFencedError,
    RequestTimeoutError,
)
from tailrace.client.fetcher import Fetcher
from tailrace.client.local_group import LocalGroups
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError, UsageError
from tailrace.testing.fake_clock import FakeClock


def test_what_was_written_is_there_after_closing(tmp_path: Path) -> None:
    with tr.open(tmp_path) as log:
        log.create_topic("t", 1)
        with log.producer() as producer:
            producer.send("t", value=b"kept")
        with log.consumer("g", ["t"]) as consumer:
            assert [record.value for record in consumer.poll(10)] == [b"kept"]
    with tr.open(tmp_path) as log:
        assert [record.value for record in log.read("t")] == [b"kept"]
        with log.consumer("g", ["t"]) as consumer:
            assert consumer.poll(0.5) == []
    with pytest.raises(ClientClosedError):
        log.topics()


def test_a_second_opener_is_told_who_has_the_log(tmp_path: Path) -> None:
    with tr.open(tmp_path):
        program = f"import tailrace as tr; tr.open({str(tmp_path)!r})"
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert run.returncode != 0
        assert "DirectoryLockedError" in run.stderr
        with pytest.raises(TailraceError) as locked:
            tr.open(tmp_path)
        assert locked.value.code == "data-locked"
    with tr.open(tmp_path) as log:
        assert log.topics() == []


def test_a_group_begun_in_process_goes_on_behind_a_broker(tmp_path: Path) -> None:
    with tr.open(tmp_path) as log:
        log.create_topic("t", 1)
        with log.producer() as producer:
            for number in range(10):
                producer.send("t", value=b"%d" % number)
        with log.consumer("g", ["t"], max_poll_records=4) as consumer:
            assert len(consumer.poll(10)) == 4
    with BrokerThread(tmp_path) as broker, tr.connect(broker.address) as log:
        with log.consumer("g", ["t"], session_timeout_ms=6000) as consumer:
            found: list[bytes | None] = []
            while len(found) < 6:  # a loop ends when nothing came for a second
                found += [record.value for record in consumer.records(timeout=1)]
        assert found == [b"4", b"5", b"6", b"7", b"8", b"9"]


def test_a_member_that_does_not_poll_loses_its_partitions(tmp_path: Path) -> None:
    clock = FakeClock()
    with tr.open(tmp_path) as log:
        log._groups = LocalGroups(clock)
        log.create_topic("t", 2)
        sleeper = log.consumer("g", ["t"], max_poll_interval_ms=200)
        sleeper.poll(0.1)
        assert len(sleeper.assignment()) == 2
        with log.consumer("g", ["t"]) as other:
            other.poll(0.1)
            assert other.assignment() == set()
            clock.advance(0.3)
            other.poll(0.1)
            assert len(other.assignment()) == 2
            sleeper.poll(0.1)
            assert sleeper.assignment() == set()
        sleeper.close()


def test_records_sent_while_the_broker_restarts_are_written_once_and_in_order(
    tmp_path: Path,
) -> None:
    broker = BrokerProcess(tmp_path)
    address = broker.address
    with tr.connect(address) as log:
        log.create_topic("t", 1)
        with log.producer(linger_ms=0) as producer:
            futures = []
            for number in range(600):
                futures.append(producer.send("t", value=b"%d" % number))
                if number == 200:
                    broker.kill()
                if number == 400:
                    broker = BrokerProcess(tmp_path, listen=address)
                SYSTEM.sleep(0.001)
            producer.flush(60)
        assert [future.result().offset for future in futures] == list(range(600))
        assert [int(record.value or b"") for record in log.read("t")] == list(range(600))
    broker.stop()


def test_an_exhausted_delivery_is_told_as_such(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker:
        log = tr.connect(broker.address)
        log.create_topic("t", 1)
        producer = log.producer(delivery_timeout_ms=1500, request_timeout_ms=1000)
        assert producer.send("t", value=b"1").result(20) == (0, 0)
    late = producer.send("t", value=b"2")
    with pytest.raises(RequestTimeoutError):
        late.result(30)
    producer.close()
    log.close()


def test_a_full_buffer_blocks_and_then_raises(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as broker:
        log = tr.connect(broker.address)
        log.create_topic("t", 1)
    producer = log.producer(buffer_memory=4096, max_block_ms=200, delivery_timeout_ms=2000)

    def fill() -> None:
        for _ in range(1000):
            producer.send("t", value=b"x" * 1000)

    with pytest.raises(BufferFullError):
        fill()
    producer.close()
    log.close()


def test_no_broker_and_no_address_are_told_apart() -> None:
    with pytest.raises(UsageError, match="not an address"):
        tr.connect("nowhere")
    with tr.connect("127.0.0.1:1", timeout=0.2) as log:
        with pytest.raises((BrokerUnavailableError, RequestTimeoutError)) as told:
            log.topics()
        assert isinstance(told.value, ClientError)


def test_a_transaction_past_its_time_out_is_fenced_and_the_writer_can_begin_again(
    tmp_path: Path,
) -> None:
    with BrokerThread(tmp_path, durable=False) as broker:
        with TransactionalWriter(
            broker.address, "slow", transaction_timeout=timedelta(milliseconds=300)
        ) as writer:
            writer.init()
            writer.send("t", 0, None, b"too late")
            writer.flush()
            with Fetcher(broker.address) as fetcher:
                until = SYSTEM.monotonic() + 60
                while fetcher.fetch("t", 0, 0).end == 0:  # until the log has ended it
                    assert SYSTEM.monotonic() < until
                    SYSTEM.sleep(0.1)
            with pytest.raises(ProducerFencedError):
                writer.commit()
            writer.init()
            writer.send("t", 0, None, b"in time")
            writer.commit()
        with tr.connect(broker.address) as log:
            assert [record.value for record in log.read("t")] == [b"in time"]
