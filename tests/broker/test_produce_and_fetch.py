"""Batches in, the same batches out, over the wire."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.clock import SYSTEM
from tailrace.records.batch import check_batch, iterate_batches
from tailrace.records.encode import Record, encode_batch
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import fetch as fetching
from tailrace.wire.messages import produce as producing
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

Connect = Callable[[str], WireClient]


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce_appends(talk: WireClient, version: int) -> None:
    topic_id = talk.create("t", 2)
    request = talk.produce_request("t", batch_of(b"a", b"b"), partition=1)
    request.topic_data[0].topic_id = topic_id
    for base in (0, 2):
        answer = talk.ask(ApiKey.PRODUCE, version, request)
        result = answer.responses[0].partition_responses[0]
        assert (result.index, result.error_code, result.base_offset) == (1, 0, base)
    if version < 13:
        assert answer.responses[0].name == "t"
    else:
        assert answer.responses[0].topic_id == topic_id


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_reads(talk: WireClient, version: int) -> None:
    topic_id = talk.create("t")
    for value in (b"a", b"b" * 50_000, b"c"):
        talk.produce("t", batch_of(value))
    request = talk.fetch_request("t", 0, isolation=1)
    request.topics[0].topic_id = topic_id
    answer = talk.ask(ApiKey.FETCH, version, request)
    found = answer.responses[0].partitions[0]
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 3, 3)
    assert values_of(found.records) == [b"a", b"b" * 50_000, b"c"]
    for position, header in iterate_batches(found.records):
        check_batch(memoryview(found.records)[position : position + header.size])


def test_answers_name_each_partition_of_each_topic(talk: WireClient) -> None:
    talk.create("one", 2)
    talk.create("two")
    request = producing.ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            producing.TopicProduceData(
                name="one",
                partition_data=[
                    producing.PartitionProduceData(0, bytes(batch_of(b"x"))),
                    producing.PartitionProduceData(1, bytes(batch_of(b"y"))),
                    producing.PartitionProduceData(2, bytes(batch_of(b"z"))),
                ],
            ),
            producing.TopicProduceData(
                name="two",
                partition_data=[producing.PartitionProduceData(0, bytes(batch_of(b"z")))],
            ),
            producing.TopicProduceData(
                name="none",
                partition_data=[producing.PartitionProduceData(0, bytes(batch_of(b"z")))],
            ),
        ],
    )
    answer = talk.ask(ApiKey.PRODUCE, 8, request)
    told = {
        (topic.name, one.index): one.error_code
        for topic in answer.responses
        for one in topic.partition_responses
    }
    assert told == {("one", 0): 0, ("one", 1): 0, ("one", 2): 3, ("two", 0): 0, ("none", 0): 3}


def test_without_acknowledgement_nothing_is_answered(talk: WireClient) -> None:
    talk.create("t")
    talk.say(ApiKey.PRODUCE, 7, talk.produce_request("t", batch_of(b"quiet"), acks=0))
    talk.expect_nothing()
    assert values_of(talk.fetch("t", 0).records) == [b"quiet"]


def test_an_unheard_error_closes_the_connection(talk: WireClient) -> None:
    talk.create("t")
    talk.say(ApiKey.PRODUCE, 7, talk.produce_request("t", b"garbage" * 20, acks=0))
    talk.expect_nothing()
    assert talk.closed_by_peer()


def test_other_numbers_of_acknowledgements_are_refused(talk: WireClient) -> None:
    talk.create("t")
    assert talk.produce("t", batch_of(b"x"), acks=2).error_code == 21
    assert talk.fetch("t", 0).high_watermark == 0


def test_a_fetch_outside_the_log_says_so(talk: WireClient) -> None:
    talk.create("t")
    talk.produce("t", batch_of(b"x"))
    found = talk.fetch("t", 5)
    assert (found.error_code, found.high_watermark) == (1, -1)
    assert talk.fetch("t", 1).error_code == 0
    assert talk.fetch("nowhere", 0).error_code == 3
    assert talk.fetch("t", 0, partition=7).error_code == 3


def test_a_topic_id_nobody_has_is_error_100(talk: WireClient) -> None:
    request = talk.fetch_request("", 0)
    request.topics[0].topic_id = b"\x07" * 16
    answer = talk.ask(ApiKey.FETCH, 16, request)
    assert answer.responses[0].partitions[0].error_code == 100


def test_epochs_that_differ_are_told(talk: WireClient) -> None:
    talk.create("t")
    talk.produce("t", batch_of(b"x"))
    epoch = talk.ask(ApiKey.METADATA, 12, _all_topics()).topics[0].partitions[0].leader_epoch
    assert talk.fetch("t", 0, epoch=epoch).error_code == 0
    assert talk.fetch("t", 0, epoch=epoch + 1).error_code == 75


def _all_topics() -> object:
    from tailrace.wire.messages.metadata import MetadataRequest

    return MetadataRequest(topics=None)


# long polling


def test_a_fetch_waits_for_the_next_record(
    broker: BrokerThread, talk: WireClient, connect: Connect
) -> None:
    talk.create("t")
    reader = connect(broker.address)
    reader.say(ApiKey.FETCH, 12, talk.fetch_request("t", 0, max_wait_ms=20_000))
    SYSTEM.sleep(0.05)
    talk.produce("t", batch_of(b"news"))
    assert values_of(reader.hear().responses[0].partitions[0].records) == [b"news"]


def test_a_fetch_that_waits_in_vain_answers_empty(talk: WireClient) -> None:
    talk.create("t")
    before = SYSTEM.monotonic()
    found = talk.fetch("t", 0, max_wait_ms=150)
    assert SYSTEM.monotonic() - before >= 0.14
    assert (found.error_code, bytes(found.records or b"")) == (0, b"")


def test_a_fetch_waits_for_as_many_bytes_as_it_asks(
    broker: BrokerThread, talk: WireClient, connect: Connect
) -> None:
    talk.create("t")
    reader = connect(broker.address)
    reader.say(ApiKey.FETCH, 12, talk.fetch_request("t", 0, max_wait_ms=20_000, min_bytes=3000))
    for number in range(3):
        talk.produce("t", batch_of(bytes(1000)))
        if number < 2:
            reader.sock.settimeout(0.1)
            with pytest.raises(TimeoutError):
                reader.sock.recv(1)
    reader.sock.settimeout(20)
    found = reader.hear().responses[0].partitions[0]
    assert len(values_of(found.records)) == 3


def test_a_waiting_fetch_learns_that_its_topic_is_deleted(
    broker: BrokerThread, talk: WireClient, connect: Connect
) -> None:
    talk.create("t")
    reader = connect(broker.address)
    reader.say(ApiKey.FETCH, 12, talk.fetch_request("t", 0, max_wait_ms=20_000))
    SYSTEM.sleep(0.05)
    talk.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
    assert reader.hear().responses[0].partitions[0].error_code == 3


def test_a_reader_that_left_leaves_nothing_behind(broker: BrokerThread, talk: WireClient) -> None:
    talk.create("t")
    for _ in range(50):
        with WireClient(broker.address) as reader:
            reader.say(ApiKey.FETCH, 12, talk.fetch_request("t", 0, max_wait_ms=2**31 - 1))
    for _ in range(100):
        if broker.broker.fetch.parked_count == 0:
            break
        SYSTEM.sleep(0.02)
    assert broker.broker.fetch.parked_count == 0


# limits


def test_the_first_batch_comes_whole_whatever_the_limit(talk: WireClient) -> None:
    talk.create("t")
    for _ in range(3):
        talk.produce("t", batch_of(bytes(10_000)))
    found = talk.fetch("t", 0, max_bytes=100, partition_max_bytes=50)
    assert len(values_of(found.records)) == 1
    found = talk.fetch("t", 0, max_bytes=21_000, partition_max_bytes=21_000)
    assert len(values_of(found.records)) == 2


def test_later_partitions_get_what_is_left_and_no_torn_batch(talk: WireClient) -> None:
    talk.create("t", 3)
    for partition in range(3):
        talk.produce("t", batch_of(bytes(10_000)), partition)
    request = talk.fetch_request("t", 0, max_bytes=21_000)
    request.topics[0].partitions = [
        fetching.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(3)
    ]
    answer = talk.ask(ApiKey.FETCH, 12, request)
    sizes = [len(bytes(one.records or b"")) for one in answer.responses[0].partitions]
    assert sizes[0] > 10_000
    assert sizes[1] > 10_000
    assert sizes[2] == 0


# sessions


def test_a_session_tells_only_news(talk: WireClient) -> None:
    talk.create("t", 3)
    talk.produce("t", batch_of(b"a"), 0)
    request = talk.fetch_request("t", 0)
    request.session_epoch = 0
    request.topics[0].partitions = [
        fetching.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(3)
    ]
    answer = talk.ask(ApiKey.FETCH, 12, request)
    session = answer.session_id
    assert session > 0
    assert len(answer.responses[0].partitions) == 3

    def next_fetch(epoch: int, *changed: fetching.FetchPartition) -> fetching.FetchResponse:
        topics = [fetching.FetchTopic(topic="t", partitions=list(changed))] if changed else []
        answer: fetching.FetchResponse = talk.ask(
            ApiKey.FETCH,
            12,
            fetching.FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 20,
                session_id=session,
                session_epoch=epoch,
                topics=topics,
            ),
        )
        return answer

    moved = fetching.FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    assert next_fetch(1, moved).responses == []
    talk.produce("t", batch_of(b"b"), 2)
    (topic,) = next_fetch(2).responses
    assert [(one.partition_index, values_of(one.records)) for one in topic.partitions] == [
        (2, [b"b"])
    ]
    assert next_fetch(7).error_code == 71
    assert (
        talk.ask(
            ApiKey.FETCH, 12, fetching.FetchRequest(session_id=session + 1, session_epoch=3)
        ).error_code
        == 70
    )


def test_forgotten_partitions_leave_the_session(talk: WireClient) -> None:
    talk.create("t", 2)
    request = talk.fetch_request("t", 0)
    request.session_epoch = 0
    request.topics[0].partitions.append(
        fetching.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20)
    )
    session = talk.ask(ApiKey.FETCH, 12, request).session_id
    talk.produce("t", batch_of(b"x"), 1)
    answer = talk.ask(
        ApiKey.FETCH,
        12,
        fetching.FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            session_id=session,
            session_epoch=1,
            forgotten_topics_data=[fetching.ForgottenTopic(topic="t", partitions=[1])],
        ),
    )
    assert answer.responses == []


# durability


def test_under_flush_every_record_acknowledged_is_synced(
    broker: BrokerThread, talk: WireClient
) -> None:
    talk.create("t", flush_messages="1")
    partition = broker.broker.store.partition("t", 0)
    for number in range(20):
        assert talk.produce("t", batch_of(b"%d" % number)).base_offset == number
        assert partition.synced_offset == number + 1 == partition.high_watermark
    assert len(values_of(talk.fetch("t", 0).records)) == 20


def test_acknowledgements_after_a_sync_keep_their_order(
    broker: BrokerThread, talk: WireClient
) -> None:
    talk.create("slow", flush_messages="1")
    talk.create("fast")
    for _ in range(30):
        talk.say(ApiKey.PRODUCE, 9, talk.produce_request("slow", batch_of(b"s")))
        talk.say(ApiKey.PRODUCE, 9, talk.produce_request("fast", batch_of(b"f")))
    bases = [talk.hear().responses[0].partition_responses[0].base_offset for _ in range(60)]
    assert bases == [number // 2 for number in range(60)]


def test_many_writers_share_syncs(broker: BrokerThread, talk: WireClient, connect: Connect) -> None:
    talk.create("t", flush_messages="1")
    seen: list[int] = []

    def write() -> None:
        with WireClient(broker.address) as client:
            for _ in range(25):
                answer = client.produce("t", batch_of(b"x"))
                seen.append(answer.base_offset)

    writers = [threading.Thread(target=write) for _ in range(8)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert sorted(seen) == list(range(200))


@pytest.mark.parametrize("version", [8, 9])
def test_a_refused_batch_names_the_records_to_blame(talk: WireClient, version: int) -> None:
    now = SYSTEM.wall_ms()
    talk.create("compacted", cleanup_policy="compact")
    talk.create("timely", message_timestamp_after_max_ms="1000")
    keys = [b"a", None, b"b", None]
    keyed = encode_batch([Record(0, now, key, b"v", ()) for key in keys])
    answer = talk.produce("compacted", keyed, version=version)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert "without a key" in answer.error_message
    times = encode_batch([Record(0, now + late, None, b"v", ()) for late in (0, 10**7, 0)])
    answer = talk.produce("timely", times, version=version)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert talk.produce("timely", batch_of(b"v", timestamp=now), version=version).error_code == 0
