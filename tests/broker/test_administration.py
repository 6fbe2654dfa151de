"""Topics, settings and offsets over the wire, as Kafka answers them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.message import ZERO_UUID
from tailrace.wire.messages import alter_configs, create_partitions, delete_topics, metadata
from tailrace.wire.messages import create_topics as creation
from tailrace.wire.messages import describe_configs as description
from tailrace.wire.messages import incremental_alter_configs as incremental
from tailrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tailrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tailrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tailrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
)
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from tailrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tailrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

TOPIC, BROKER = 2, 4


def create(
    talk: WireClient,
    name: str,
    partitions: int = 1,
    copies: int = 1,
    *,
    version: int = 7,
    validate_only: bool = False,
    **config: str,
) -> creation.CreatableTopicResult:
    answer = talk.ask(
        ApiKey.CREATE_TOPICS,
        version,
        creation.CreateTopicsRequest(
            topics=[
                creation.CreatableTopic(
                    name,
                    partitions,
                    copies,
                    [],
                    [
                        creation.CreatableTopicConfig(key.replace("_", "."), value)
                        for key, value in config.items()
                    ],
                )
            ],
            validate_only=validate_only,
        ),
    )
    result: creation.CreatableTopicResult = answer.topics[0]
    return result


def names(talk: WireClient) -> list[str | None]:
    answer = talk.ask(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=None))
    return [topic.name for topic in answer.topics]


# topics


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_a_topic(talk: WireClient, version: int) -> None:
    assert create(talk, "t", 3, version=version).error_code == 0
    assert names(talk) == ["t"]


@pytest.mark.parametrize(
    ("name", "partitions", "copies", "config", "error"),
    [
        ("t", 1, 1, {}, 36),
        ("bad name", 1, 1, {}, 17),
        ("", 1, 1, {}, 17),
        ("..", 1, 1, {}, 17),
        ("x" * 250, 1, 1, {}, 17),
        ("u", 0, 1, {}, 37),
        ("u", -5, 1, {}, 37),
        ("u", 10_001, 1, {}, 44),
        ("u", 1, 2, {}, 38),
        ("u", 1, 0, {}, 38),
        ("u", 1, 1, {"no_such": "1"}, 40),
        ("u", 1, 1, {"retention_ms": "long"}, 40),
        ("u", 1, 1, {"min_insync_replicas": "2"}, 40),
    ],
)
def test_what_kafka_refuses_is_refused(
    talk: WireClient, name: str, partitions: int, copies: int, config: dict[str, str], error: int
) -> None:
    talk.create("t")
    result = create(talk, name, partitions, copies, **config)
    assert result.error_code == error, result
    assert names(talk) == ["t"]


def test_defaults_may_be_left_to_the_broker(start: Callable[..., BrokerThread]) -> None:
    broker = start(num_partitions="5")
    with WireClient(broker.address) as talk:
        result = create(talk, "t", -1, -1)
        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 5, 1)
        assert {one.name: one.value for one in result.configs or []}["segment.bytes"]


def test_validating_creates_nothing(talk: WireClient) -> None:
    assert create(talk, "t", validate_only=True).error_code == 0
    assert create(talk, "t", copies=3, validate_only=True).error_code == 38
    assert names(talk) == []


def test_a_topic_named_twice_in_one_request_is_refused(talk: WireClient) -> None:
    wanted = [creation.CreatableTopic("t", 1, 1), creation.CreatableTopic("t", 2, 1)]
    answer = talk.ask(ApiKey.CREATE_TOPICS, 7, creation.CreateTopicsRequest(topics=wanted))
    assert [one.error_code for one in answer.topics] == [42]


def test_topics_are_created_on_first_use_unless_told_not_to(
    start: Callable[..., BrokerThread], tmp_path: Path
) -> None:
    def look(talk: WireClient, name: str, version: int = 12, allow: bool = True) -> int:
        answer = talk.ask(
            ApiKey.METADATA,
            version,
            metadata.MetadataRequest(
                topics=[metadata.MetadataRequestTopic(name=name)], allow_auto_topic_creation=allow
            ),
        )
        code: int = answer.topics[0].error_code
        return code

    with WireClient(start("one").address) as talk:
        assert look(talk, "a", allow=False) == 3
        assert look(talk, "a") == 0
        assert look(talk, "b", version=1) == 0
        assert look(talk, "bad name") == 17
        assert sorted(filter(None, names(talk))) == ["a", "b"]
    with WireClient(start("two", auto_create_topics_enable="false").address) as talk:
        assert look(talk, "a") == 3


def test_metadata_finds_topics_by_id(talk: WireClient) -> None:
    topic_id = talk.create("t", 2)
    wanted = [
        metadata.MetadataRequestTopic(topic_id=topic_id, name=None),
        metadata.MetadataRequestTopic(topic_id=b"\x01" * 16, name=None),
    ]
    answer = talk.ask(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=wanted))
    assert [(one.name, one.error_code) for one in answer.topics] == [("t", 0), (None, 100)]


def test_an_old_client_that_names_no_topic_sees_all(talk: WireClient) -> None:
    talk.create("t")
    request = metadata.MetadataRequest(topics=[])
    assert len(talk.ask(ApiKey.METADATA, 0, request).topics) == 1
    assert len(talk.ask(ApiKey.METADATA, 1, request).topics) == 0


def test_topics_are_deleted_by_name_and_by_id(talk: WireClient) -> None:
    talk.create("a")
    topic_id = talk.create("b")
    answer = talk.ask(
        ApiKey.DELETE_TOPICS,
        6,
        delete_topics.DeleteTopicsRequest(
            topics=[
                delete_topics.DeleteTopicState(name=None, topic_id=topic_id),
                delete_topics.DeleteTopicState(name=None, topic_id=b"\x02" * 16),
                delete_topics.DeleteTopicState(name="none", topic_id=ZERO_UUID),
            ]
        ),
    )
    assert [(one.name, one.error_code) for one in answer.responses] == [
        ("b", 0),
        (None, 100),
        ("none", 3),
    ]
    request = delete_topics.DeleteTopicsRequest(topic_names=["a"])
    assert talk.ask(ApiKey.DELETE_TOPICS, 1, request).responses[0].error_code == 0
    assert names(talk) == []
    assert talk.produce("a", batch_of(b"x")).error_code == 3


def test_a_topic_deleted_and_created_again_is_another_one(talk: WireClient) -> None:
    first = talk.create("t")
    talk.produce("t", batch_of(b"old"))
    request = delete_topics.DeleteTopicsRequest(topic_names=["t"])
    talk.ask(ApiKey.DELETE_TOPICS, 3, request)
    assert talk.create("t") != first
    assert talk.fetch("t", 0).high_watermark == 0


def test_partitions_only_grow(talk: WireClient) -> None:
    talk.create("t", 2)

    def grow(count: int, validate_only: bool = False, name: str = "t") -> int:
        answer = talk.ask(
            ApiKey.CREATE_PARTITIONS,
            3,
            create_partitions.CreatePartitionsRequest(
                topics=[create_partitions.CreatePartitionsTopic(name, count, None)],
                validate_only=validate_only,
            ),
        )
        code: int = answer.results[0].error_code
        return code

    assert [grow(2), grow(1), grow(20_000), grow(5, name="none")] == [37, 37, 44, 3]
    assert grow(5, validate_only=True) == 0
    assert talk.produce("t", batch_of(b"x"), 4).error_code == 3
    assert grow(5) == 0
    assert talk.produce("t", batch_of(b"x"), 4).error_code == 0


def test_describing_partitions_goes_in_pages(talk: WireClient) -> None:
    for name in ("a", "b", "c"):
        talk.create(name, 3)
    seen: list[tuple[str | None, int]] = []
    cursor: RequestCursor | None = None
    for _ in range(10):
        answer = talk.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2, cursor=cursor),
        )
        seen += [(t.name, one.partition_index) for t in answer.topics for one in t.partitions]
        if answer.next_cursor is None:
            break
        cursor = RequestCursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert seen == [(name, index) for name in "abc" for index in range(3)]


# settings


def describe(talk: WireClient, kind: int, name: str, *keys: str) -> dict[str, tuple[str, int]]:
    answer = talk.ask(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        description.DescribeConfigsRequest(
            resources=[description.DescribeConfigsResource(kind, name, list(keys) or None)],
            include_synonyms=True,
            include_documentation=True,
        ),
    )
    assert answer.results[0].error_code == 0, answer.results[0]
    return {one.name: (one.value, one.config_source) for one in answer.results[0].configs}


def change(talk: WireClient, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    answer = talk.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        incremental.IncrementalAlterConfigsRequest(
            resources=[
                incremental.AlterConfigsResource(
                    kind, name, [incremental.AlterableConfig(*one) for one in changes]
                )
            ]
        ),
    )
    code: int = answer.responses[0].error_code
    return code


def test_topic_settings_say_where_they_come_from(start: Callable[..., BrokerThread]) -> None:
    broker = start(log_retention_ms="1234")
    with WireClient(broker.address) as talk:
        talk.create("t", segment_ms="99")
        found = describe(talk, TOPIC, "t")
        assert found["segment.ms"] == ("99", 1)
        assert found["retention.ms"] == ("1234", 4)
        assert found["max.message.bytes"][1] == 5
        assert describe(talk, TOPIC, "t", "segment.ms") == {"segment.ms": ("99", 1)}


def test_topic_settings_change_one_by_one(talk: WireClient) -> None:
    talk.create("t")
    assert change(talk, TOPIC, "t", ("retention.ms", 0, "77"), ("segment.ms", 0, "5")) == 0
    assert change(talk, TOPIC, "t", ("segment.ms", 1, None)) == 0
    assert change(talk, TOPIC, "t", ("cleanup.policy", 2, "compact")) == 0
    found = describe(talk, TOPIC, "t")
    assert found["retention.ms"] == ("77", 1)
    assert found["segment.ms"][1] == 5
    assert found["cleanup.policy"] == ("delete,compact", 1)
    assert change(talk, TOPIC, "t", ("cleanup.policy", 3, "delete")) == 0
    assert describe(talk, TOPIC, "t")["cleanup.policy"] == ("compact", 1)
    assert change(talk, TOPIC, "t", ("retention.ms", 0, "words")) == 40
    assert change(talk, TOPIC, "t", ("no.such", 0, "1")) == 40
    assert change(talk, TOPIC, "none", ("retention.ms", 0, "1")) == 3
    assert change(talk, TOPIC, "t", ("retention.ms", 9, "1")) == 42


def test_replacing_settings_resets_the_others(talk: WireClient) -> None:
    talk.create("t", retention_ms="5", segment_ms="6")
    answer = talk.ask(
        ApiKey.ALTER_CONFIGS,
        2,
        alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    TOPIC, "t", [alter_configs.AlterableConfig("segment.ms", "7")]
                )
            ]
        ),
    )
    assert answer.responses[0].error_code == 0
    found = describe(talk, TOPIC, "t")
    assert found["segment.ms"] == ("7", 1)
    assert found["retention.ms"][1] == 5


def test_broker_settings_change_while_it_runs_and_survive_a_restart(
    start: Callable[..., BrokerThread],
) -> None:
    broker = start()
    with WireClient(broker.address) as talk:
        talk.create("t")
        assert change(talk, BROKER, "1", ("log.retention.ms", 0, "4321")) == 0
        assert describe(talk, TOPIC, "t")["retention.ms"] == ("4321", 2)
        assert change(talk, BROKER, "1", ("node.id", 0, "5")) == 40
        assert change(talk, BROKER, "9", ("log.retention.ms", 0, "5")) == 42
    broker.stop()
    with WireClient(start().address) as talk:
        assert describe(talk, BROKER, "1")["log.retention.ms"] == ("4321", 2)
        assert describe(talk, TOPIC, "t")["retention.ms"] == ("4321", 2)


def test_a_size_limit_changes_at_once(talk: WireClient) -> None:
    talk.create("t")
    assert change(talk, TOPIC, "t", ("max.message.bytes", 0, "500")) == 0
    assert talk.produce("t", batch_of(bytes(1000))).error_code == 10
    assert change(talk, TOPIC, "t", ("max.message.bytes", 1, None)) == 0
    assert talk.produce("t", batch_of(bytes(1000))).error_code == 0


def test_resources_with_settings_are_listed(talk: WireClient) -> None:
    talk.create("t")
    answer = talk.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest([TOPIC, BROKER]))
    found = {(one.resource_type, one.resource_name) for one in answer.config_resources}
    assert found == {(TOPIC, "t"), (BROKER, "1")}


# offsets


def offset_at(talk: WireClient, name: str, timestamp: int, version: int = 9, **how: int) -> int:
    answer = talk.ask(
        ApiKey.LIST_OFFSETS,
        version,
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=how.get("isolation", 0),
            topics=[ListOffsetsTopic(name, [ListOffsetsPartition(0, -1, timestamp)])],
        ),
    )
    found = answer.topics[0].partitions[0]
    assert found.error_code == 0, found
    offset: int = found.offset
    return offset


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_lists_offsets(talk: WireClient, version: int) -> None:
    talk.create("t")
    for at in (1000, 5000, 3000):
        talk.produce("t", batch_of(b"x", timestamp=at))
    asked = {-1: 3, -2: 0, 2000: 1, 5000: 1, 5001: -1}
    if version >= 7:
        asked[-3] = 1
    assert {at: offset_at(talk, "t", at, version) for at in asked} == asked


def test_records_are_deleted_as_kafka_does_it(talk: WireClient) -> None:
    talk.create("t")
    talk.create("compacted", cleanup_policy="compact")
    for number in range(5):
        talk.produce("t", batch_of(b"%d" % number))

    def delete(offset: int, name: str = "t") -> tuple[int, int]:
        answer = talk.ask(
            ApiKey.DELETE_RECORDS,
            2,
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name, [DeleteRecordsPartition(0, offset)])]
            ),
        )
        found = answer.topics[0].partitions[0]
        return found.error_code, found.low_watermark

    assert delete(2) == (0, 2)
    assert delete(1) == (0, 2)
    assert delete(9)[0] == 1
    assert delete(0, "compacted")[0] == 44
    assert delete(0, "none")[0] == 3
    assert talk.fetch("t", 1).error_code == 1
    assert values_of(talk.fetch("t", 2).records) == [b"2", b"3", b"4"]
    assert delete(-1) == (0, 5)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_end_of_an_epoch_is_told(talk: WireClient, version: int) -> None:
    talk.create("t")
    talk.produce("t", batch_of(b"x", b"y"))

    def ask(epoch: int, current: int = -1) -> tuple[int, int]:
        answer = talk.ask(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            version,
            OffsetForLeaderEpochRequest(
                replica_id=-2,
                topics=[OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, current, epoch)])],
            ),
        )
        found = answer.topics[0].partitions[0]
        return found.error_code, found.end_offset

    answer = talk.ask(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=None))
    epoch = answer.topics[0].partitions[0].leader_epoch
    assert ask(epoch) == (0, 2)
    assert ask(epoch + 5) == (0, -1)
    assert ask(epoch, current=epoch + 1)[0] == 75


def test_an_unclean_start_begins_a_new_epoch(start: Callable[..., BrokerThread]) -> None:
    broker = start()
    with WireClient(broker.address) as talk:
        talk.create("t")
        talk.produce("t", batch_of(b"x"))
    # A crash: the files are left as they are, and nothing says that it was a clean stop.
    broker.stop()
    for one in broker.broker.directories:
        (one / "clean-stop").unlink()
    with WireClient(start().address) as talk:
        answer = talk.ask(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=None))
        epoch = answer.topics[0].partitions[0].leader_epoch
        assert epoch >= 1
        assert talk.fetch("t", 0, epoch=epoch - 1).error_code == 74
        assert talk.fetch("t", 0, epoch=epoch).error_code == 0


# producers, cluster


def test_producer_ids_never_repeat(start: Callable[..., BrokerThread]) -> None:
    seen: set[int] = set()
    for _ in range(3):
        broker = start()
        with WireClient(broker.address) as talk:
            for version in range(5):
                answer = talk.ask(
                    ApiKey.INIT_PRODUCER_ID, version, InitProducerIdRequest(None, 1000)
                )
                assert answer.producer_epoch == 0
                assert answer.producer_id not in seen
                seen.add(answer.producer_id)
        broker.stop()


def test_a_repeated_batch_is_answered_with_its_first_offset(talk: WireClient) -> None:
    talk.create("t")
    batch = batch_of(b"once", producer_id=7, producer_epoch=0, base_sequence=0)
    assert talk.produce("t", batch).base_offset == 0
    assert talk.produce("t", batch).base_offset == 0
    gap = batch_of(b"gap", producer_id=7, producer_epoch=0, base_sequence=5)
    assert talk.produce("t", gap).error_code == 45
    answer = talk.ask(
        ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[TopicRequest("t", [0])])
    )
    (producer,) = answer.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.last_sequence) == (7, 0)


def test_the_cluster_describes_itself(broker: BrokerThread, talk: WireClient) -> None:
    answer = talk.ask(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=1))
    (node,) = answer.brokers
    assert f"{node.host}:{node.port}" == broker.address
    assert answer.cluster_id
    assert talk.ask(
        ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=2)
    ).error_code in (114, 115)


def test_directories_tell_sizes(talk: WireClient) -> None:
    talk.create("t")
    talk.produce("t", batch_of(bytes(5000)))
    answer = talk.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    (directory,) = answer.results
    sizes = {
        (topic.name, one.partition_index): one.partition_size
        for topic in directory.topics
        for one in topic.partitions
    }
    assert sizes["t", 0] > 5000
    assert directory.total_bytes > directory.usable_bytes > 0
