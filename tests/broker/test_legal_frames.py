"""Requests that are legal and far too large: answered or refused, and nobody waits for them."""

from __future__ import annotations

import select
import struct
import threading
import time
from collections.abc import Callable, Iterable

import pytest

from tailrace.broker import fetch_sessions, router
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.handlers import configs
from tailrace.broker.handlers import produce as produce_handler
from tailrace.broker.handlers.metadata import NEW_TOPICS_PER_REQUEST
from tailrace.broker.watchdog import Watchdog
from tailrace.log import admission
from tailrace.records.batch import Record, encode_batch
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import DecodeError
from tailrace.wire.message import ELEMENTS_LIMIT, TAGS_LIMIT, Message
from tailrace.wire.messages import (
    consumer_group_describe,
    describe_producers,
    describe_transactions,
    fetch,
    heartbeat,
    offset_fetch,
    share_group_describe,
)
from tailrace.wire.messages import create_partitions as growing
from tailrace.wire.messages import create_topics as creation
from tailrace.wire.messages import delete_topics as deletion
from tailrace.wire.messages import describe_configs as describing
from tailrace.wire.messages import describe_groups as groups_wire
from tailrace.wire.messages import describe_share_group_offsets as share_offsets
from tailrace.wire.messages import metadata as meta
from tailrace.wire.messages import produce as producing
from tailrace.wire.messages import write_txn_markers as markers

LEADER_NOT_AVAILABLE, POLICY_VIOLATION, FETCH_SESSION_ID_NOT_FOUND = 5, 44, 70


def encoded(key: ApiKey, version: int, message: object) -> memoryview:
    out = bytearray()
    APIS[key].encode_request(version, message, out)  # type: ignore[arg-type]
    return memoryview(out)


def test_a_request_of_too_many_elements_is_refused_before_they_are_made() -> None:
    name = meta.MetadataRequestTopic(name="")
    few = encoded(ApiKey.METADATA, 9, meta.MetadataRequest(topics=[name] * ELEMENTS_LIMIT))
    assert len(APIS[ApiKey.METADATA].decode_request(9, few, 0).topics) == ELEMENTS_LIMIT
    many = encoded(ApiKey.METADATA, 9, meta.MetadataRequest(topics=[name] * (ELEMENTS_LIMIT + 1)))
    with pytest.raises(DecodeError, match="elements"):
        APIS[ApiKey.METADATA].decode_request(9, many, 0)


def test_elements_of_all_arrays_count_together() -> None:
    topic = creation.CreatableTopic(
        "t", 1, 1, [creation.CreatableReplicaAssignment(0, [1] * 1000)] * 60, []
    )
    many = encoded(ApiKey.CREATE_TOPICS, 7, creation.CreateTopicsRequest(topics=[topic] * 2))
    with pytest.raises(DecodeError, match="elements"):
        APIS[ApiKey.CREATE_TOPICS].decode_request(7, many, 0)


def test_tags_are_counted_too() -> None:
    tags = bytearray()
    count = TAGS_LIMIT + 1
    tags += bytes([count & 127 | 128, count >> 7]) + b"\x01\x00" * count
    frame = encoded(ApiKey.HEARTBEAT, 4, heartbeat.HeartbeatRequest("g", 1, "m", None))
    with pytest.raises(DecodeError, match="tagged"):
        APIS[ApiKey.HEARTBEAT].decode_request(4, memoryview(bytes(frame[:-1]) + tags), 0)


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_CONFIGS])
def test_a_frame_too_large_for_its_kind_closes_the_connection(
    broker: BrokerThread, connect: Callable[[str], WireClient], key: ApiKey
) -> None:
    talk = connect(broker.address)
    talk.send_bytes(struct.pack(">ihhih", 3 << 20, key, 9, 1, -1))
    assert talk.closed_by_peer()
    assert broker.broker.listener.refused_frames_total == 1
    large = connect(broker.address)  # produce may be as large as it likes, and is waited for
    large.send_bytes(struct.pack(">ihhih", 3 << 20, ApiKey.PRODUCE, 9, 1, -1))
    assert connect(broker.address).ask(ApiKey.METADATA, 9, meta.MetadataRequest()).brokers
    assert broker.broker.listener.refused_frames_total == 1


def test_very_many_topics_in_one_request_are_answered_in_turns(
    broker: BrokerThread, talk: WireClient, connect: Callable[[str], WireClient]
) -> None:
    topics = [creation.CreatableTopic(f"{n}!", 1, 1) for n in range(9_000)]
    talk.say(
        ApiKey.CREATE_TOPICS,
        7,
        creation.CreateTopicsRequest(topics=topics, validate_only=True),
    )
    answer = talk.hear()
    assert {one.error_code for one in answer.topics} == {17}
    assert len(answer.topics) == 9_000


def test_the_next_request_waits_for_one_that_is_served_in_turns(talk: WireClient) -> None:
    topics = [creation.CreatableTopic(f"t{n}", 1, 1) for n in range(300)]
    talk.say(ApiKey.CREATE_TOPICS, 7, creation.CreateTopicsRequest(topics=topics))
    for _ in range(3):
        talk.say(ApiKey.METADATA, 9, meta.MetadataRequest(topics=None))
    assert {one.error_code for one in talk.hear().topics} == {0}
    for _ in range(3):
        assert len(talk.hear().topics) == 300


def test_others_are_served_between_the_topics_of_one_request(
    broker: BrokerThread,
    talk: WireClient,
    connect: Callable[[str], WireClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router, "TURN_SECONDS", 0.0)  # so that every step is a turn
    other = connect(broker.address)
    topics = [creation.CreatableTopic(f"t{n}", 10, 1) for n in range(120)]
    done = threading.Event()

    def create() -> None:
        talk.ask(ApiKey.CREATE_TOPICS, 7, creation.CreateTopicsRequest(topics=topics))
        done.set()

    thread = threading.Thread(target=create)
    thread.start()
    partly = 0
    while not done.is_set():
        found = len(other.ask(ApiKey.METADATA, 9, meta.MetadataRequest(topics=None)).topics)
        partly += 0 < found < 120
    thread.join()
    assert partly > 0


def test_others_are_served_while_one_wide_topic_is_made_widened_and_deleted(
    broker: BrokerThread,
    talk: WireClient,
    connect: Callable[[str], WireClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router, "TURN_SECONDS", 0.0)  # so that every step is a turn
    other = connect(broker.address)
    only = meta.MetadataRequest([meta.MetadataRequestTopic(name="wide")])

    def turns(key: ApiKey, version: int, message: Message) -> set[tuple[int, int]]:
        """What another client is told of the topic meanwhile."""
        talk.say(key, version, message)
        seen = set()
        while not select.select([talk.sock], [], [], 0)[0]:
            [topic] = other.ask(ApiKey.METADATA, 9, only).topics
            seen.add((topic.error_code, len(topic.partitions)))
        result = talk.hear()
        errors = getattr(result, "topics", None) or getattr(result, "results", None)
        assert [one.error_code for one in errors or result.responses] == [0]
        return seen

    wide = creation.CreateTopicsRequest(topics=[creation.CreatableTopic("wide", 200, 1)])
    assert (LEADER_NOT_AVAILABLE, 0) in turns(ApiKey.CREATE_TOPICS, 7, wide)
    wider = growing.CreatePartitionsRequest([growing.CreatePartitionsTopic("wide", 400, None)])
    counts = {count for _, count in turns(ApiKey.CREATE_PARTITIONS, 3, wider)}
    assert any(200 < count < 400 for count in counts)
    gone = deletion.DeleteTopicsRequest(topic_names=["wide"])
    assert turns(ApiKey.DELETE_TOPICS, 5, gone) - {(0, 400)}


def test_many_small_batches_are_as_much_work_as_a_large_one(
    broker: BrokerThread,
    talk: WireClient,
    connect: Callable[[str], WireClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "REQUEST_RECORDS", 300)
    monkeypatch.setattr(produce_handler, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(produce_handler, "TURN_MASK", 0)
    talk.create("t", 60)
    other = connect(broker.address)
    good = bytes(encode_batch([Record(n, 1, None, b"v", ()) for n in range(10)]))
    packed = bytes(
        encode_batch([Record(n, 1, None, b"v", ()) for n in range(10)], compression="gzip")
    )
    torn = bytearray(good)
    torn[-1] ^= 1
    batches = [torn if n == 50 else packed if n % 5 == 0 else good for n in range(60)]
    data = [producing.PartitionProduceData(n, bytes(each)) for n, each in enumerate(batches)]
    request = producing.ProduceRequest(
        None, -1, 1000, [producing.TopicProduceData(name="t", partition_data=data)]
    )
    talk.say(ApiKey.PRODUCE, 9, request)
    talk.say(ApiKey.METADATA, 9, meta.MetadataRequest(topics=[]))  # waits for its turn
    assert other.ask(ApiKey.METADATA, 9, meta.MetadataRequest(topics=[])).brokers
    [topic] = talk.hear().responses
    assert [one.index for one in topic.partition_responses] == list(range(60))
    assert {one.index for one in topic.partition_responses if one.error_code} == {50}
    assert talk.hear().brokers
    assert 1 < broker.broker.inspector.inspected_total < 60
    ends = [each.end_offset for each in broker.broker.store.topics["t"].partitions]
    assert ends == [0 if n == 50 else 10 for n in range(60)]


def test_a_partition_that_is_named_twice_is_no_request(
    talk: WireClient, connect: Callable[[str], WireClient], broker: BrokerThread
) -> None:
    talk.create("t")
    batch = bytes(encode_batch([Record(0, 1, None, b"v", ())]))
    data = [producing.PartitionProduceData(0, batch)] * 2
    twice = producing.TopicProduceData(name="t", partition_data=data)
    once = producing.TopicProduceData(name="t", partition_data=data[:1])
    for topics in ([twice], [once, once]):
        client = connect(broker.address)
        client.say(ApiKey.PRODUCE, 9, producing.ProduceRequest(None, -1, 1000, topics))
        assert client.closed_by_peer()
    assert broker.broker.store.topics["t"].partitions[0].end_offset == 0


def test_the_limit_of_partitions_is_one_of_the_request(talk: WireClient) -> None:
    topics = [creation.CreatableTopic(f"t{n}", 4000, 1) for n in range(3)]
    answer = talk.ask(
        ApiKey.CREATE_TOPICS, 7, creation.CreateTopicsRequest(topics=topics, validate_only=True)
    )
    assert [one.error_code for one in answer.topics] == [POLICY_VIOLATION] * 3
    talk.create("a")
    talk.create("b")
    more = [growing.CreatePartitionsTopic(name, 6000, None) for name in ("a", "b")]
    grown = talk.ask(
        ApiKey.CREATE_PARTITIONS,
        3,
        growing.CreatePartitionsRequest(topics=more, timeout_ms=1000),
    )
    assert [one.error_code for one in grown.results] == [POLICY_VIOLATION] * 2


def test_naming_topics_makes_a_limited_number_at_a_time(talk: WireClient) -> None:
    names = [meta.MetadataRequestTopic(name=f"t{n}") for n in range(NEW_TOPICS_PER_REQUEST + 30)]
    request = meta.MetadataRequest(topics=names, allow_auto_topic_creation=True)
    errors = [one.error_code for one in talk.ask(ApiKey.METADATA, 9, request).topics]
    assert errors == [0] * NEW_TOPICS_PER_REQUEST + [3] * 30
    errors = [one.error_code for one in talk.ask(ApiKey.METADATA, 9, request).topics]
    assert errors == [0] * (NEW_TOPICS_PER_REQUEST + 30)


def test_a_topic_asked_for_often_is_answered_once(talk: WireClient) -> None:
    talk.create("t")
    resource = describing.DescribeConfigsResource(2, "t", None)
    request = describing.DescribeConfigsRequest([resource] * 50_000, True, True)
    answer = talk.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert len(answer.results) == 1
    names = meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name="t")] * 1000)
    assert len(talk.ask(ApiKey.METADATA, 9, names).topics) == 1


def test_an_answer_that_would_be_too_large_stops(
    talk: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configs, "ENTRIES_PER_ANSWER", 50)
    resources = [describing.DescribeConfigsResource(2, talk.create(n) and n, None) for n in "abc"]
    answer = talk.ask(
        ApiKey.DESCRIBE_CONFIGS, 4, describing.DescribeConfigsRequest(resources, True, True)
    )
    assert [one.error_code for one in answer.results] == [0, 0, POLICY_VIOLATION]
    assert "fewer" in answer.results[-1].error_message


def test_a_held_loop_is_reported_with_request_and_stack(
    broker: BrokerThread, talk: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    inside = broker.broker
    let_go = threading.Event()

    def a_handler_that_hangs() -> None:
        let_go.wait(30)

    talk.ask(ApiKey.METADATA, 9, meta.MetadataRequest())
    inside.call_from_thread(a_handler_that_hangs)
    watchdog = Watchdog(inside.loop, inside.router, held_seconds=0.05)
    thread = threading.Thread(target=watchdog._run, args=(inside.loop.thread_id,))
    thread.start()
    until = time.monotonic() + 30
    while not watchdog.held_total and time.monotonic() < until:
        time.sleep(0.01)
    let_go.set()
    watchdog._done.set()
    thread.join()
    told = next(one for one in caplog.records if one.msg == "the loop is held up")
    assert told.request == "metadata"  # type: ignore[attr-defined]
    assert "a_handler_that_hangs" in told.stack  # type: ignore[attr-defined]


def described(talk: WireClient, key: ApiKey, version: int, name: str) -> list[object]:
    """The answers for a group or transaction that is named very often in one request."""
    often = [name] * 1000
    match key:
        case ApiKey.DESCRIBE_GROUPS:
            return list(talk.ask(key, version, groups_wire.DescribeGroupsRequest(often)).groups)
        case ApiKey.CONSUMER_GROUP_DESCRIBE:
            request = consumer_group_describe.ConsumerGroupDescribeRequest(often)
            return list(talk.ask(key, version, request).groups)
        case ApiKey.SHARE_GROUP_DESCRIBE:
            shares = share_group_describe.ShareGroupDescribeRequest(often)
            return list(talk.ask(key, version, shares).groups)
        case ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
            wanted = share_offsets.DescribeShareGroupOffsetsRequestGroup(name, None)
            offsets = share_offsets.DescribeShareGroupOffsetsRequest([wanted] * 1000)
            return list(talk.ask(key, version, offsets).groups)
        case _:
            transactions = describe_transactions.DescribeTransactionsRequest(often)
            return list(talk.ask(key, version, transactions).transaction_states)


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.DESCRIBE_GROUPS, 6),
        (ApiKey.CONSUMER_GROUP_DESCRIBE, 1),
        (ApiKey.SHARE_GROUP_DESCRIBE, 1),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1),
        (ApiKey.DESCRIBE_TRANSACTIONS, 0),
    ],
)
def test_what_is_named_often_is_described_once(talk: WireClient, key: ApiKey, version: int) -> None:
    assert len(described(talk, key, version, "x")) == 1


def test_producers_of_a_partition_named_often_are_described_once(talk: WireClient) -> None:
    talk.create("t")
    topic = describe_producers.TopicRequest("t", [0] * 1000)
    request = describe_producers.DescribeProducersRequest([topic] * 3)
    answer = talk.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request)
    assert [[one.partition_index for one in topic.partitions] for topic in answer.topics] == [[0]]


def test_offsets_of_a_group_named_often_are_fetched_once(talk: WireClient) -> None:
    talk.create("t", 2)
    talk.create("u")
    both = offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])
    one = offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[1])
    other = offset_fetch.OffsetFetchRequestTopics(name="u", partition_indexes=[0])
    groups = [
        offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)
        for topics in ([both], [one], [one, other])
    ]
    groups += [offset_fetch.OffsetFetchRequestGroup(group_id="all", topics=None)] * 1000
    request = offset_fetch.OffsetFetchRequest(groups=groups)
    found = talk.ask(ApiKey.OFFSET_FETCH, 9, request).groups
    assert [group.group_id for group in found] == ["g", "all"]
    places = [
        (row.name, [one.partition_index for one in row.partitions]) for row in found[0].topics
    ]
    assert places == [("t", [0, 1]), ("u", [0])]


def fetch_in_session(
    talk: WireClient, session: int, epoch: int, partitions: Iterable[int]
) -> tuple[int, int]:
    """Error and session id of a fetch."""
    wanted = [fetch.FetchPartition(partition=index) for index in partitions]
    request = fetch.FetchRequest(
        max_wait_ms=0,
        session_id=session,
        session_epoch=epoch,
        topics=[fetch.FetchTopic(topic="t", partitions=wanted)] if wanted else [],
    )
    answer = talk.ask(ApiKey.FETCH, 12, request)
    return answer.error_code, answer.session_id


def test_a_fetch_session_is_limited_however_it_grows(
    broker: BrokerThread, talk: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_PER_SESSION", 100)
    assert fetch_in_session(talk, 0, 0, range(101)) == (0, 0)  # served, without a session
    error, session = fetch_in_session(talk, 0, 0, range(60))
    assert error == 0
    assert session != 0
    assert fetch_in_session(talk, session, 1, range(60, 100))[0] == 0
    assert fetch_in_session(talk, session, 2, range(100, 101))[0] == 0
    assert fetch_in_session(talk, session, 3, ())[0] == FETCH_SESSION_ID_NOT_FOUND
    assert len(broker.broker.fetch.sessions) == 0


def test_the_sessions_of_all_clients_are_limited_together(
    broker: BrokerThread, talk: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_LIMIT", 100)
    sessions = [fetch_in_session(talk, 0, 0, range(40))[1] for _ in range(3)]
    errors = [fetch_in_session(talk, session, 1, ())[0] for session in sessions]
    assert errors == [FETCH_SESSION_ID_NOT_FOUND, 0, 0]


def test_markers_of_very_many_partitions_are_written_in_turns(
    broker: BrokerThread, talk: WireClient
) -> None:
    talk.create("t")
    topic = markers.WritableTxnMarkerTopic("t", [0] * 5000)
    request = markers.WriteTxnMarkersRequest([markers.WritableTxnMarker(7, 0, False, [topic], 0)])
    rows = talk.ask(ApiKey.WRITE_TXN_MARKERS, 1, request).markers[0].topics[0].partitions
    assert [(row.partition_index, row.error_code) for row in rows] == [(0, 0)]
    assert broker.broker.store.partition("t", 0).end_offset == 1
