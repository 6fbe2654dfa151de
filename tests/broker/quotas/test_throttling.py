"""Clients over their quota: told to pause, made to pause, and nobody else."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.quotas.quota_talk import QuotaTalk
from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.records.encode import encode_columns
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import encode_request
from tailrace.wire.messages import create_topics, fetch, produce
from tailrace.wire.messages.api_versions import ApiVersionsRequest

SIZE = 1000


@pytest.fixture
def other(broker: BrokerThread) -> Iterator[QuotaTalk]:
    one = QuotaTalk(broker.address, client_id="other")
    yield one
    one.close()


def batch_for(topic: str, size: int, acks: int) -> produce.ProduceRequest:
    batch = encode_columns([None], [b"x" * size], 1_700_000_000_000)
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            produce.TopicProduceData(
                name=topic, partition_data=[produce.PartitionProduceData(0, batch)]
            )
        ],
    )


def send(talk: QuotaTalk, topic: str, size: int = SIZE, version: int = 12) -> Any:
    answer = talk.ask(ApiKey.PRODUCE, batch_for(topic, size, -1), version)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return answer


def read(talk: QuotaTalk, topic: str, version: int = 11) -> Any:
    return talk.ask(
        ApiKey.FETCH,
        fetch.FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            topics=[
                fetch.FetchTopic(
                    topic=topic,
                    partitions=[fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
                )
            ],
        ),
        version,
    )  # fmt: skip


@pytest.mark.parametrize("version", [3, 8, 12])
def test_a_fast_producer_is_told_to_pause_and_not_read_until_then(
    talk: QuotaTalk, other: QuotaTalk, version: int
) -> None:
    talk.create_topic("t")
    assert talk.alter(({"client-id": "tailrace"}, {"producer_byte_rate": 1000.0})) == [0]
    assert send(talk, "t", version=version).throttle_time_ms == 0
    began = time.monotonic()
    told = send(talk, "t", 9_200, version=version).throttle_time_ms
    assert 0 < told < 5_000
    assert send(other, "t", 50_000, version=version).throttle_time_ms == 0
    # It asks at once all the same: it is not heard before its pause is over.
    talk.stable_end("t")
    assert time.monotonic() - began >= told / 1000 * 0.9


def test_a_producer_that_wants_no_answers_pauses_too(talk: QuotaTalk) -> None:
    talk.create_topic("t")
    talk.alter(({"client-id": None}, {"producer_byte_rate": 1000.0}))
    host, port = talk.address.rsplit(":", 1)
    silent = encode_request(APIS[ApiKey.PRODUCE], 9, 1, batch_for("t", 10_800, 0), b"mute")
    question = encode_request(APIS[ApiKey.API_VERSIONS], 0, 2, ApiVersionsRequest(), b"mute")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        began = time.monotonic()
        sock.sendall(silent + question)
        assert sock.recv(8)[4:] == b"\0\0\0\2"
        assert time.monotonic() - began >= 0.5
    assert talk.stable_end("t") == (1, 1)


@pytest.mark.parametrize("version", [4, 11])
def test_a_fast_reader_gets_an_empty_answer_and_a_pause(tmp_path: Path, version: int) -> None:
    with (
        BrokerThread(tmp_path, settings={"quota.window.num": "2"}, durable=False) as broker,
        closing(QuotaTalk(broker.address)) as talk,
        closing(QuotaTalk(broker.address, client_id="other")) as other,
    ):
        read_too_fast(talk, other, version)


def read_too_fast(talk: QuotaTalk, other: QuotaTalk, version: int) -> None:
    talk.create_topic("t")
    for _ in range(6):
        send(other, "t")
    assert talk.alter(({"client-id": "tailrace"}, {"consumer_byte_rate": 7000.0})) == [0]
    first = read(talk, "t", version)
    assert first.throttle_time_ms == 0
    assert len(first.responses[0].partitions[0].records) > 6 * SIZE
    second = read(talk, "t", version)
    assert second.throttle_time_ms > 0
    assert second.responses == []
    assert len(read(other, "t", version).responses[0].partitions[0].records) > 6 * SIZE
    # The answer that was withheld does not count: after the pause it comes.
    for _ in range(20):
        third = read(talk, "t", version)
        if third.throttle_time_ms == 0:
            break
    assert len(third.responses[0].partitions[0].records) > 6 * SIZE


def test_an_answer_holds_no_more_than_the_quota_allows(talk: QuotaTalk, other: QuotaTalk) -> None:
    talk.create_topic("t")
    for _ in range(6):
        send(other, "t")
    talk.alter(({"client-id": "tailrace"}, {"consumer_byte_rate": 200.0}))
    first = read(talk, "t")
    assert first.throttle_time_ms == 0
    assert SIZE < len(first.responses[0].partitions[0].records) <= 2 * SIZE + 200


def test_time_in_requests_can_be_limited(talk: QuotaTalk, other: QuotaTalk) -> None:
    talk.create_topic("t")
    talk.alter(({"client-id": "tailrace"}, {"request_percentage": 0.0001}))
    assert 0 < send(talk, "t").throttle_time_ms <= 1000  # never more than one window
    assert read(talk, "t").responses == []
    assert send(other, "t").throttle_time_ms == 0


def test_making_topics_too_fast_is_refused(talk: QuotaTalk, other: QuotaTalk) -> None:
    talk.alter(({"client-id": "tailrace"}, {"controller_mutation_rate": 1.0}))

    def make(who: QuotaTalk, name: str, partitions: int, version: int = 7) -> tuple[int, int]:
        answer = who.ask(
            ApiKey.CREATE_TOPICS,
            create_topics.CreateTopicsRequest(
                [create_topics.CreatableTopic(name, partitions, 1)], timeout_ms=1000
            ),
            version,
        )
        return answer.topics[0].error_code, answer.throttle_time_ms

    assert make(talk, "a", 12) == (0, 0)  # overdraws
    code, told = make(talk, "b", 1)
    assert (code, told > 0) == (89, True)
    assert make(other, "b", 30) == (0, 0)
    code, told = make(talk, "c", 1, version=5)  # older clients cannot be refused
    assert (code, told > 0) == (0, True)


def test_a_shared_quota_counts_its_clients_together(broker: BrokerThread, talk: QuotaTalk) -> None:
    talk.create_topic("t")
    talk.alter(({"user": "ANONYMOUS"}, {"producer_byte_rate": 1000.0}))
    told = []
    for name in ("one", "two", "three"):
        who = QuotaTalk(broker.address, client_id=name)
        told.append(send(who, "t", 4_000).throttle_time_ms)
        who.close()
    assert told[:2] == [0, 0]
    assert told[2] > 0


def test_removing_a_quota_ends_the_counting(broker: BrokerThread, talk: QuotaTalk) -> None:
    talk.create_topic("t")
    assert not broker.broker.metering
    talk.alter(({"client-id": None}, {"producer_byte_rate": 1000.0}))
    assert broker.broker.metering
    talk.alter(({"client-id": None}, {"producer_byte_rate": None}))
    assert not broker.broker.metering
    assert send(talk, "t", 50_000).throttle_time_ms == 0


def test_quotas_survive_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        talk = QuotaTalk(broker.address)
        talk.alter(({"user": "a", "client-id": None}, {"consumer_byte_rate": 5.0}))
        talk.alter(({"user": None}, {"request_percentage": 12.5, "producer_byte_rate": 7.0}))
        talk.alter(({"user": None}, {"producer_byte_rate": None}))
        expected = talk.described()
        talk.close()
        broker.process.kill()
        broker.process.wait()
    with BrokerThread(tmp_path) as again:
        talk = QuotaTalk(again.address)
        assert talk.described() == expected
        assert len(expected) == 2
        talk.close()


def test_the_metrics_page_shows_who_was_throttled(tmp_path: Path) -> None:
    with BrokerThread(tmp_path, settings={"metrics.listen": "127.0.0.1:0"}, durable=False) as one:
        talk = QuotaTalk(one.address)
        talk.create_topic("t")
        talk.alter(({"client-id": "tailrace"}, {"producer_byte_rate": 1000.0}))
        told = send(talk, "t", 60_000).throttle_time_ms  # long enough to be seen
        url = f"http://127.0.0.1:{one.broker.metrics_port}/metrics"
        page = urllib.request.urlopen(url).read().decode()
        talk.close()
    labels = '{user="",client_id="tailrace"}'
    assert f"kafka_server_produce_throttled_total{labels} 1" in page
    [line] = [
        one
        for one in page.splitlines()
        if one.startswith("kafka_server_produce_throttle_time_seconds_total{")
    ]
    assert float(line.split()[-1]) * 1000 == pytest.approx(told, abs=1)
    assert f"kafka_server_produce_quota{labels} 1000.0" in page
    assert "tailrace_broker_connections_muted 1" in page
