"""Topics of the broker and of the project take no writes from strangers, and one bad record
in them stops no start."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.connection import Connection
from tailrace.client.errors import TopicProtectedError
from tailrace.client.identity import identify
from tailrace.client.writer import TransactionalWriter
from tailrace.records.batch import Record, encode_batch
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import add_partitions_to_txn as adding
from tailrace.wire.messages import alter_configs as replacing
from tailrace.wire.messages import create_partitions as growing
from tailrace.wire.messages import create_topics as creation
from tailrace.wire.messages import delete_records as cutting
from tailrace.wire.messages import delete_topics as deletion
from tailrace.wire.messages import (
    describe_transactions,
    end_txn,
    sasl_authenticate,
    sasl_handshake,
)
from tailrace.wire.messages import incremental_alter_configs as altering
from tailrace.wire.messages import init_producer_id as init
from tailrace.wire.messages import metadata as meta
from tailrace.wire.messages import offset_commit as committing
from tailrace.wire.messages import offset_fetch as fetching
from tailrace.wire.messages import write_txn_markers as marking

INVALID_TOPIC, UNKNOWN_TOPIC, NOT_ALLOWED, NOT_ATTEMPTED, NOT_ALLOWED_ID = 17, 3, 29, 55, 53
INTERNAL = ("__consumer_offsets", "__transaction_state")


def batch_of(value: bytes, *, key: bytes) -> bytearray:
    return encode_batch([Record(0, 1_700_000_000_000, key, value)])


def commit_offset(talk: WireClient, group: str, topic: str, offset: int) -> None:
    part = committing.OffsetCommitRequestPartition(0, offset)
    answer = talk.ask(
        ApiKey.OFFSET_COMMIT,
        8,
        committing.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            topics=[committing.OffsetCommitRequestTopic(name=topic, partitions=[part])],
        ),
    )
    assert answer.topics[0].partitions[0].error_code == 0


def committed(talk: WireClient, group: str, topic: str) -> tuple[int, int]:
    """Error and offset."""
    answer = talk.ask(
        ApiKey.OFFSET_FETCH,
        7,
        fetching.OffsetFetchRequest(
            group_id=group, topics=[fetching.OffsetFetchRequestTopic(topic, [0])]
        ),
    )
    row = answer.topics[0].partitions[0]
    return row.error_code, row.committed_offset


def begin_transaction(talk: WireClient, name: str) -> tuple[int, int]:
    answer = talk.ask(
        ApiKey.INIT_PRODUCER_ID,
        4,
        init.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
    )
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


@pytest.fixture
def filled(broker: BrokerThread, talk: WireClient) -> BrokerThread:
    """A broker with a group, a transactional id and a topic of the project."""
    talk.create("t")
    commit_offset(talk, "group", "t", 0)
    begin_transaction(talk, "some")
    with Admin(broker.address) as admin:
        admin.ensure_topic("__tailrace_ticks", 1, {"cleanup.policy": "compact"})
    return broker


@pytest.mark.parametrize("topic", [*INTERNAL, "__tailrace_ticks"])
@pytest.mark.parametrize("version", [7, 12])
def test_a_plain_producer_cannot_write_to_a_topic_that_is_not_its_own(
    filled: BrokerThread, talk: WireClient, topic: str, version: int
) -> None:
    partition = filled.broker.store.partition(topic, 0)
    end = partition.end_offset
    answer = talk.ask(
        ApiKey.PRODUCE, version, talk.produce_request(topic, batch_of(b"\xff\xff\xff", key=b"k"))
    )
    row = answer.responses[0].partition_responses[0]
    assert row.error_code == INVALID_TOPIC
    if version >= 8:
        assert topic in row.error_message
    assert partition.end_offset == end


@pytest.mark.parametrize("topic", [*INTERNAL, "__tailrace_ticks"])
def test_a_transaction_takes_no_partition_that_is_not_its_own(
    filled: BrokerThread, talk: WireClient, topic: str
) -> None:
    producer_id, epoch = begin_transaction(talk, "mine")
    answer = talk.ask(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        adding.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="mine",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                adding.AddPartitionsToTxnTopic(topic, [0]),
                adding.AddPartitionsToTxnTopic("t", [0]),
            ],
        ),
    )
    errors = {
        one.name: one.results_by_partition[0].partition_error_code
        for one in answer.results_by_topic_v3_and_below
    }
    assert errors == {topic: NOT_ALLOWED, "t": NOT_ATTEMPTED}


@pytest.mark.parametrize("topic", [*INTERNAL, "__tailrace_ticks"])
def test_records_and_topics_that_are_not_one_s_own_cannot_be_deleted(
    filled: BrokerThread, talk: WireClient, topic: str
) -> None:
    cut = talk.ask(
        ApiKey.DELETE_RECORDS,
        2,
        cutting.DeleteRecordsRequest(
            topics=[cutting.DeleteRecordsTopic(topic, [cutting.DeleteRecordsPartition(0, -1)])],
            timeout_ms=1000,
        ),
    )
    assert cut.topics[0].partitions[0].error_code == INVALID_TOPIC
    gone = talk.ask(
        ApiKey.DELETE_TOPICS,
        6,
        deletion.DeleteTopicsRequest(topics=[deletion.DeleteTopicState(topic)], timeout_ms=1000),
    )
    assert gone.responses[0].error_code == INVALID_TOPIC
    grown = talk.ask(
        ApiKey.CREATE_PARTITIONS,
        3,
        growing.CreatePartitionsRequest(
            topics=[growing.CreatePartitionsTopic(topic, 9, None)], timeout_ms=1000
        ),
    )
    assert grown.results[0].error_code == INVALID_TOPIC
    assert topic in filled.broker.store.topics


def test_a_stranger_neither_alters_nor_ends_anything_in_topics_of_the_project(
    filled: BrokerThread, talk: WireClient
) -> None:
    altered = talk.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        altering.IncrementalAlterConfigsRequest(
            resources=[
                altering.AlterConfigsResource(
                    2,
                    "__tailrace_ticks",
                    [altering.AlterableConfig("cleanup.policy", 0, "delete")],
                )
            ]
        ),
    )
    assert altered.responses[0].error_code == INVALID_TOPIC
    topic = marking.WritableTxnMarkerTopic("__tailrace_ticks", [0])
    marked = talk.ask(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        marking.WriteTxnMarkersRequest(markers=[marking.WritableTxnMarker(1, 0, True, [topic], 0)]),
    )
    assert marked.markers[0].topics[0].partitions[0].error_code == INVALID_TOPIC


@pytest.mark.parametrize("topic", [*INTERNAL, "__share_group_state", "__tailrace_views"])
def test_names_that_are_not_one_s_own_cannot_be_taken_first(talk: WireClient, topic: str) -> None:
    made = talk.ask(
        ApiKey.CREATE_TOPICS,
        7,
        creation.CreateTopicsRequest(topics=[creation.CreatableTopic(topic, 1, 1)]),
    )
    assert made.topics[0].error_code == INVALID_TOPIC
    told = talk.ask(
        ApiKey.METADATA,
        9,
        meta.MetadataRequest(
            topics=[meta.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
        ),
    )
    assert told.topics[0].error_code == UNKNOWN_TOPIC


def test_the_project_itself_writes_its_topics(filled: BrokerThread) -> None:
    with TransactionalWriter(filled.address, "tailrace.test") as writer:
        writer.init()
        writer.send("__tailrace_ticks", 0, b"shop", b"{}")
        writer.commit()
    assert filled.broker.store.partition("__tailrace_ticks", 0).end_offset == 2
    with Admin(filled.address) as admin:
        admin.delete_topic("__tailrace_ticks")
    assert "__tailrace_ticks" not in filled.broker.store.topics


def test_the_token_is_for_its_owner_alone_and_stays(
    start: Callable[..., BrokerThread], tmp_path: Path
) -> None:
    broker = start()
    with Admin(broker.address) as admin:
        admin.list_topics()
    path = tmp_path / "log" / "project-token"
    token = path.read_bytes()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    broker.stop()
    again = start()
    with Admin(again.address) as admin:
        admin.ensure_topic("__tailrace_ticks", 1, {})
    assert path.read_bytes() == token


def test_a_client_that_cannot_read_the_token_is_refused_with_the_reason(
    filled: BrokerThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log" / "project-token"
    token = path.read_text().split()[-1]
    path.unlink()
    with TransactionalWriter(filled.address, "tailrace.test") as writer:
        writer.init()
        writer.send("__tailrace_ticks", 0, b"shop", b"{}")
        with pytest.raises(TopicProtectedError, match="__tailrace_ticks"):
            writer.commit()
    monkeypatch.setenv("TAILRACE_LOG_TOKEN", token)  # how a process elsewhere is given it
    with TransactionalWriter(filled.address, "tailrace.test") as writer:
        writer.init()
        writer.send("__tailrace_ticks", 0, b"shop", b"{}")
        writer.commit()


def test_a_wrong_answer_to_the_challenge_makes_nobody_the_project(
    filled: BrokerThread, talk: WireClient
) -> None:
    shake = sasl_handshake.SaslHandshakeRequest("TAILRACE-PROJECT")
    assert talk.ask(ApiKey.SASL_HANDSHAKE, 1, shake).error_code == 0
    asked = talk.ask(ApiKey.SASL_AUTHENTICATE, 2, sasl_authenticate.SaslAuthenticateRequest(b""))
    assert asked.error_code == 0
    assert asked.auth_bytes
    for guess in (b"", asked.auth_bytes, b"\0" * 32):
        answer = talk.ask(
            ApiKey.SASL_AUTHENTICATE, 2, sasl_authenticate.SaslAuthenticateRequest(guess)
        )
        assert answer.error_code == (0 if guess == b"" else 58)
    answer = talk.produce("__tailrace_ticks", batch_of(b"v", key=b"k"))
    assert answer.error_code == INVALID_TOPIC


def test_other_mechanisms_are_refused_by_name(talk: WireClient) -> None:
    answer = talk.ask(ApiKey.SASL_HANDSHAKE, 1, sasl_handshake.SaslHandshakeRequest("PLAIN"))
    assert answer.error_code == 33
    answer = talk.ask(ApiKey.SASL_AUTHENTICATE, 2, sasl_authenticate.SaslAuthenticateRequest(b"x"))
    assert answer.error_code == 34


def test_a_broker_that_names_a_foreign_file_is_told_nothing(
    broker: BrokerThread, tmp_path: Path
) -> None:
    """A server could ask a client for any file; only a token of this form is ever used."""
    host, port = broker.broker.address
    connection = Connection(host, port)
    try:
        assert identify(connection)
        (tmp_path / "log" / "project-token").write_text("a private key\n")
        assert not identify(connection)
    finally:
        connection.close()


# what is unreadable


def poison(broker: BrokerThread, topic: str, partition: int, key: bytes, value: bytes) -> None:
    """Write past the guard, as a broker of an earlier version let anybody do."""
    broker.broker.store.partition(topic, partition).append_internal(batch_of(value, key=key))


POISONS = [
    (b"\x00\x00\x00\x06victim", b"\xff\xff\xff"),
    (b"\x00\x00\x00\x06victim", b""),
    (b"\x00\x00\x00\x06victim", b"\x00"),
    (b"\x00\x00\x00\x06victim", b"\x00\x01" + b"\xff" * 40),
    (b"\x00\x00\xff\xff", b"\x00\x01"),
    (b"\x00", b"\x00"),
    (b"", b""),
    (b"\x00\x01\x00\x05group\x00\x01t\x00\x00\x00\x00", b"\x7f\xff"),
    (b"\x00\x01\x00\x05group\x00\x01t\x00\x00\x00\x00", b""),
    (b"\x00\x02\x00\x05group", b"\x00\x03\xff\xff\xff"),
    (b"\x00\x03\x00\x05group", b"\x00"),
    (b"\x00\x05\x00\x05group", b"\x00\x00\x09"),
    (b"\x00\x07\xff\xff", b"\x00\x00\x09"),
    (b"\x00\x08\x00\x05group\x00\x01m", b"\x00\x00\x09"),
]


@pytest.mark.parametrize("topic", [*INTERNAL, "__share_group_state"])
def test_records_that_cannot_be_read_stop_no_start_and_are_told(
    start: Callable[..., BrokerThread], topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start()
    with WireClient(broker.address) as talk:
        talk.create("t")
        commit_offset(talk, "group", "t", 77)
        begin_transaction(talk, "some")
    if topic == "__share_group_state":
        broker.broker.create_internal_topic(topic, 4, {"cleanup.policy": "compact"})
    for key, value in POISONS:
        for partition in range(4):
            poison(broker, topic, partition, key, value)
    broker.stop()
    again = start()
    with WireClient(again.address) as talk:
        assert committed(talk, "group", "t") == (0, 77)
        begin_transaction(talk, "some")
    _ = again.broker.shares
    told = [one for one in caplog.records if one.msg == "record of an internal topic is unreadable"]
    assert told
    assert {one.topic for one in told} == {topic}  # type: ignore[attr-defined]
    assert all(one.offset >= 0 and one.partition in range(4) for one in told)  # type: ignore[attr-defined]
    page = again.broker.metrics.page().decode()
    assert f'tailrace_broker_unreadable_internal_records_total{{topic="{topic}"}}' in page


def changed_settings(talk: WireClient, topic: str, settings: dict[str, str]) -> list[int]:
    """Errors of the two ways to change settings, one after the other."""
    one_by_one = talk.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        altering.IncrementalAlterConfigsRequest(
            resources=[
                altering.AlterConfigsResource(
                    2,
                    topic,
                    [altering.AlterableConfig(name, 0, text) for name, text in settings.items()],
                )
            ]
        ),
    )
    together = talk.ask(
        ApiKey.ALTER_CONFIGS,
        2,
        replacing.AlterConfigsRequest(
            resources=[
                replacing.AlterConfigsResource(
                    2,
                    topic,
                    [replacing.AlterableConfig(name, text) for name, text in settings.items()],
                )
            ]
        ),
    )
    return [one_by_one.responses[0].error_code, together.responses[0].error_code]


@pytest.mark.parametrize("topic", INTERNAL)
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "1"),
        ("retention.bytes", "0"),
        ("max.message.bytes", "1"),
        ("remote.storage.enable", "true"),
    ],
)
def test_no_setting_makes_the_broker_forget_its_own_records(
    filled: BrokerThread, talk: WireClient, topic: str, setting: str, value: str
) -> None:
    before = dict(filled.broker.store.topics[topic].config.values)
    assert changed_settings(talk, topic, {setting: value}) == [INVALID_TOPIC, INVALID_TOPIC]
    assert filled.broker.store.topics[topic].config.values == before


@pytest.mark.parametrize("topic", INTERNAL)
def test_an_operator_may_tune_the_broker_s_own_topics(
    filled: BrokerThread, talk: WireClient, topic: str
) -> None:
    kept = {**filled.broker.store.topics[topic].overrides, "min.cleanable.dirty.ratio": "0.1"}
    assert changed_settings(talk, topic, kept) == [0, 0]
    found = filled.broker.store.topics[topic].config.values
    assert found["min.cleanable.dirty.ratio"] == "0.1"
    assert found["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("topic", "commit", "code"),
    [
        ("__transaction_state", True, INVALID_TOPIC),
        ("__transaction_state", False, INVALID_TOPIC),
        ("__consumer_offsets", True, INVALID_TOPIC),
        ("__consumer_offsets", False, 0),  # as `kafka-transactions abort` does
    ],
)
def test_markers_end_hanging_transactions_and_nothing_else(
    filled: BrokerThread, talk: WireClient, topic: str, commit: bool, code: int
) -> None:
    partition = filled.broker.store.partition(topic, 0)
    end = partition.end_offset
    marked = talk.ask(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        marking.WriteTxnMarkersRequest(
            markers=[
                marking.WritableTxnMarker(
                    7, 0, commit, [marking.WritableTxnMarkerTopic(topic, [0])], 0
                )
            ]
        ),
    )
    assert marked.markers[0].topics[0].partitions[0].error_code == code
    assert partition.end_offset == end + (code == 0)


@pytest.mark.parametrize("commit", [True, False])
def test_a_stranger_does_not_end_a_transaction_of_the_project(
    filled: BrokerThread, talk: WireClient, commit: bool
) -> None:
    with TransactionalWriter(filled.address, "tailrace.test") as writer:
        writer.init()
        writer.send("__tailrace_ticks", 0, b"shop", b"{}")
        writer.flush()
        seen = talk.ask(
            ApiKey.DESCRIBE_TRANSACTIONS,
            0,
            describe_transactions.DescribeTransactionsRequest(["tailrace.test"]),
        ).transaction_states[0]
        assert seen.transaction_state == "Ongoing"
        ended = talk.ask(
            ApiKey.END_TXN,
            3,
            end_txn.EndTxnRequest("tailrace.test", seen.producer_id, seen.producer_epoch, commit),
        )
        assert ended.error_code == NOT_ALLOWED_ID
        fenced = talk.ask(
            ApiKey.INIT_PRODUCER_ID,
            4,
            init.InitProducerIdRequest(
                transactional_id="tailrace.test", transaction_timeout_ms=60_000
            ),
        )
        assert fenced.error_code == NOT_ALLOWED_ID
        writer.commit()
    assert filled.broker.store.partition("__tailrace_ticks", 0).last_stable_offset == 2
