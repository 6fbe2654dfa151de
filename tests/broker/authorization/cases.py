"""Requests, and what each of them needs.

A case is one request. `needs` are all that it takes; with these it is allowed, and without any
one of them it is refused with the code that goes with that one. `instead` are alternatives
to the first need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tailrace.broker.authorization.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from tailrace.records.batch import Record, encode_batch
from tailrace.testing.wire_client import batch_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.message import Message
from tailrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)

Need = tuple[int, int, str]
REFUSALS = {29, 30, 31, 53, 65}
CODE = {TOPIC: 29, GROUP: 30, CLUSTER: 31, TRANSACTIONAL_ID: 53}

CLUSTER_NEEDS = {
    op: (op, CLUSTER, CLUSTER_NAME)
    for op in (ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, CREATE, CLUSTER_ACTION)
}


def topic(operation: int, name: str = "t") -> Need:
    return operation, TOPIC, name


def group(operation: int, name: str = "g") -> Need:
    return operation, GROUP, name


def transaction(operation: int) -> Need:
    return operation, TRANSACTIONAL_ID, "x"


@dataclass
class Case:
    name: str
    key: ApiKey
    version: int
    message: Callable[[bytes], Message]
    """The request, given the id of topic "t"."""
    code: Callable[[Any], int]
    needs: list[Need]
    instead: tuple[Need, ...] = ()
    repeated: bool = True
    """Whether it may be asked again and again; else it changes what it asks about."""


def _configs(module: Any, kind: int, name: str) -> Message:
    resource = module.AlterConfigsResource(kind, name, [])
    return module.__dict__[
        "AlterConfigsRequest" if module is alter_configs else "IncrementalAlterConfigsRequest"
    ](resources=[resource], validate_only=True)


def _batch(*, transactional: bool = False) -> bytes:
    if transactional:
        record = Record(0, 1, None, b"v", ())
        return bytes(
            encode_batch(
                [record], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
            )
        )
    return bytes(batch_of(b"v"))


def _produce(name: str, data: bytes, transactional_id: str | None = None) -> Message:
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            produce.TopicProduceData(
                name=name, partition_data=[produce.PartitionProduceData(0, data)]
            )
        ],
    )


def _produced(answer: Any) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


def _cases() -> list[Case]:
    K = ApiKey
    first = {"t": lambda a: a.topics[0].error_code}
    return [
        Case("produce", K.PRODUCE, 9, lambda _: _produce("t", _batch()), _produced, [topic(WRITE)]),
        Case(
            "produce by id", K.PRODUCE, 13,
            lambda i: produce.ProduceRequest(
                acks=-1, timeout_ms=1000, topic_data=[produce.TopicProduceData(
                    topic_id=i, partition_data=[produce.PartitionProduceData(0, _batch())])]),
            _produced, [topic(WRITE)],
        ),
        Case(
            "produce in a transaction", K.PRODUCE, 9,
            lambda _: _produce("t", _batch(transactional=True), "x"), _produced,
            [transaction(WRITE), topic(WRITE)],
        ),
        Case("produce to nothing", K.PRODUCE, 9, lambda _: _produce("none", _batch()), _produced,
             [topic(WRITE, "none")]),
        Case(
            "fetch", K.FETCH, 12,
            lambda _: fetch.FetchRequest(max_wait_ms=0, session_id=0, session_epoch=-1, max_bytes=1000, topics=[
                fetch.FetchTopic(topic="t", partitions=[fetch.FetchPartition(0, -1, 0, partition_max_bytes=1000)])]),
            lambda a: a.responses[0].partitions[0].error_code, [topic(READ)],
        ),
        Case(
            "fetch by id", K.FETCH, 17,
            lambda i: fetch.FetchRequest(max_wait_ms=0, session_id=0, session_epoch=-1, max_bytes=1000, topics=[
                fetch.FetchTopic(topic_id=i, partitions=[fetch.FetchPartition(0, -1, 0, partition_max_bytes=1000)])]),
            lambda a: a.responses[0].partitions[0].error_code, [topic(READ)],
        ),
        Case(
            "list offsets", K.LIST_OFFSETS, 7,
            lambda _: list_offsets.ListOffsetsRequest(topics=[
                list_offsets.ListOffsetsTopic("t", [list_offsets.ListOffsetsPartition(0, -1, -1)])]),
            lambda a: a.topics[0].partitions[0].error_code, [topic(DESCRIBE)],
        ),
        Case("metadata", K.METADATA, 9,
             lambda _: metadata.MetadataRequest([metadata.MetadataRequestTopic(name="t")]),
             first["t"], [topic(DESCRIBE)]),
        Case("metadata by id", K.METADATA, 12,
             lambda i: metadata.MetadataRequest([metadata.MetadataRequestTopic(topic_id=i, name=None)]),
             first["t"], [topic(DESCRIBE)]),
        Case("metadata of nothing", K.METADATA, 9,
             lambda _: metadata.MetadataRequest([metadata.MetadataRequestTopic(name="none")], False),
             first["t"], [topic(DESCRIBE, "none")]),
        Case("metadata that makes a topic", K.METADATA, 9,
             lambda _: metadata.MetadataRequest([metadata.MetadataRequestTopic(name="made")], True),
             first["t"], [topic(CREATE, "made"), topic(DESCRIBE, "made")],
             (CLUSTER_NEEDS[CREATE],), repeated=False),
        Case(
            "describe topic partitions", K.DESCRIBE_TOPIC_PARTITIONS, 0,
            lambda _: describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=[describe_topic_partitions.TopicRequest("t")], cursor=None),
            first["t"], [topic(DESCRIBE)],
        ),
        Case(
            "leader epochs", K.OFFSET_FOR_LEADER_EPOCH, 4,
            lambda _: offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic("t", [
                    offset_for_leader_epoch.OffsetForLeaderPartition(0, -1, 0)])]),
            lambda a: a.topics[0].partitions[0].error_code, [topic(DESCRIBE)],
            (CLUSTER_NEEDS[CLUSTER_ACTION],),
        ),
        Case(
            "delete records", K.DELETE_RECORDS, 2,
            lambda _: delete_records.DeleteRecordsRequest(topics=[
                delete_records.DeleteRecordsTopic("t", [delete_records.DeleteRecordsPartition(0, 0)])]),
            lambda a: a.topics[0].partitions[0].error_code, [topic(DELETE)],
        ),
        Case(
            "describe producers", K.DESCRIBE_PRODUCERS, 0,
            lambda _: describe_producers.DescribeProducersRequest(topics=[
                describe_producers.TopicRequest("t", [0])]),
            lambda a: a.topics[0].partitions[0].error_code, [topic(READ)],
        ),
        Case("create a topic", K.CREATE_TOPICS, 7,
             lambda _: create_topics.CreateTopicsRequest(
                 topics=[create_topics.CreatableTopic("new", 1, 1)], validate_only=True),
             first["t"], [topic(CREATE, "new")], (CLUSTER_NEEDS[CREATE],)),
        Case("delete a topic", K.DELETE_TOPICS, 5,
             lambda _: delete_topics.DeleteTopicsRequest(topic_names=["none"], timeout_ms=30_000),
             lambda a: a.responses[0].error_code, [topic(DESCRIBE, "none")],
             ((DELETE, CLUSTER, CLUSTER_NAME),)),
        Case("add partitions", K.CREATE_PARTITIONS, 3,
             lambda _: create_partitions.CreatePartitionsRequest(
                 topics=[create_partitions.CreatePartitionsTopic("t", 5, None)], validate_only=True),
             lambda a: a.results[0].error_code, [topic(ALTER)]),
        Case("describe log directories", K.DESCRIBE_LOG_DIRS, 4,
             lambda _: describe_log_dirs.DescribeLogDirsRequest(topics=None),
             lambda a: a.error_code, [CLUSTER_NEEDS[DESCRIBE]]),
        # configs
        *(
            Case(f"describe configs of kind {kind}", K.DESCRIBE_CONFIGS, 4,
                 lambda _, kind=kind, name=name: describe_configs.DescribeConfigsRequest(
                     resources=[describe_configs.DescribeConfigsResource(kind, name, None)]),
                 lambda a: a.results[0].error_code, [need])
            for kind, name, need in (
                (2, "t", topic(DESCRIBE_CONFIGS)),
                (4, "1", CLUSTER_NEEDS[DESCRIBE_CONFIGS]),
                (16, "m", CLUSTER_NEEDS[DESCRIBE_CONFIGS]),
                (32, "g", group(DESCRIBE_CONFIGS)),
            )
        ),
        *(
            Case(f"alter configs of kind {kind}", key, version,
                 lambda _, module=module, kind=kind, name=name: _configs(module, kind, name),
                 lambda a: a.responses[0].error_code, [need])
            for key, version, module in (
                (K.ALTER_CONFIGS, 2, alter_configs),
                (K.INCREMENTAL_ALTER_CONFIGS, 1, incremental_alter_configs),
            )
            for kind, name, need in (
                (2, "t", topic(ALTER_CONFIGS)),
                (4, "1", CLUSTER_NEEDS[ALTER_CONFIGS]),
                (32, "g", group(ALTER_CONFIGS)),
            )
        ),
        Case("alter loggers", K.INCREMENTAL_ALTER_CONFIGS, 1,
             lambda _: _configs(incremental_alter_configs, 8, "1"),
             lambda a: a.responses[0].error_code, [CLUSTER_NEEDS[ALTER_CONFIGS]]),
        Case("list config resources", K.LIST_CONFIG_RESOURCES, 1,
             lambda _: list_config_resources.ListConfigResourcesRequest(),
             lambda a: a.error_code, [CLUSTER_NEEDS[DESCRIBE_CONFIGS]]),
        Case("describe quotas", K.DESCRIBE_CLIENT_QUOTAS, 1,
             lambda _: describe_client_quotas.DescribeClientQuotasRequest(),
             lambda a: a.error_code, [CLUSTER_NEEDS[DESCRIBE_CONFIGS]]),
        Case("alter quotas", K.ALTER_CLIENT_QUOTAS, 1,
             lambda _: alter_client_quotas.AlterClientQuotasRequest(
                 entries=[alter_client_quotas.RequestEntryData(
                     [alter_client_quotas.RequestEntityData("user", "u")], [])], validate_only=True),
             lambda a: a.entries[0].error_code, [CLUSTER_NEEDS[ALTER_CONFIGS]]),
        Case("describe acls", K.DESCRIBE_ACLS, 3,
             lambda _: describe_acls.DescribeAclsRequest(2, "none", 3, None, None, 1, 1),
             lambda a: a.error_code, [CLUSTER_NEEDS[DESCRIBE]]),
        Case("create acls", K.CREATE_ACLS, 3,
             lambda _: create_acls.CreateAclsRequest([create_acls.AclCreation(2, "", 3, "User:z", "*", 3, 3)]),
             lambda a: a.results[0].error_code, [CLUSTER_NEEDS[ALTER]]),
        Case("delete acls", K.DELETE_ACLS, 3,
             lambda _: delete_acls.DeleteAclsRequest(
                 [delete_acls.DeleteAclsFilter(2, "none", 3, None, None, 1, 1)]),
             lambda a: a.filter_results[0].error_code, [CLUSTER_NEEDS[ALTER]]),
        # Kafka 4.3.1 never answers one who may not see them and asks for users=None.
        Case("describe credentials", K.DESCRIBE_USER_SCRAM_CREDENTIALS, 0,
             lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=[]),
             lambda a: a.error_code, [CLUSTER_NEEDS[DESCRIBE]]),
        Case("alter credentials", K.ALTER_USER_SCRAM_CREDENTIALS, 0,
             lambda _: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
                 deletions=[alter_user_scram_credentials.ScramCredentialDeletion("none", 1)]),
             lambda a: a.results[0].error_code, [CLUSTER_NEEDS[ALTER]]),
        # groups
        Case("find a group's coordinator", K.FIND_COORDINATOR, 4,
             lambda _: find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]),
             lambda a: a.coordinators[0].error_code, [group(DESCRIBE)]),
        Case("find a group's coordinator, as old clients", K.FIND_COORDINATOR, 1,
             lambda _: find_coordinator.FindCoordinatorRequest(key="g", key_type=0),
             lambda a: a.error_code, [group(DESCRIBE)]),
        Case("find a transaction's coordinator", K.FIND_COORDINATOR, 4,
             lambda _: find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]),
             lambda a: a.coordinators[0].error_code, [transaction(DESCRIBE)]),
        Case("find a share coordinator", K.FIND_COORDINATOR, 6,
             lambda _: find_coordinator.FindCoordinatorRequest(key_type=2, coordinator_keys=["g:i:0"]),
             lambda a: a.coordinators[0].error_code, [CLUSTER_NEEDS[CLUSTER_ACTION]]),
        Case("join", K.JOIN_GROUP, 9,
             lambda _: join_group.JoinGroupRequest(
                 group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=1000,
                 protocol_type="consumer",
                 protocols=[join_group.JoinGroupRequestProtocol("range", b"")]),
             lambda a: a.error_code, [group(READ)]),
        Case("sync", K.SYNC_GROUP, 5,
             lambda _: sync_group.SyncGroupRequest(
                 group_id="g", generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"),
             lambda a: a.error_code, [group(READ)]),
        Case("heartbeat", K.HEARTBEAT, 4,
             lambda _: heartbeat.HeartbeatRequest("g", 1, "m"),
             lambda a: a.error_code, [group(READ)]),
        Case("leave", K.LEAVE_GROUP, 5,
             lambda _: leave_group.LeaveGroupRequest(group_id="g"),
             lambda a: a.error_code, [group(READ)]),
        Case("server-side heartbeat", K.CONSUMER_GROUP_HEARTBEAT, 1,
             lambda _: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                 group_id="g", member_id="m", member_epoch=5, subscribed_topic_names=["t"],
                 subscribed_topic_regex=None, server_assignor=None, topic_partitions=None),
             lambda a: a.error_code, [group(READ), topic(DESCRIBE)]),
        Case("share heartbeat", K.SHARE_GROUP_HEARTBEAT, 1,
             lambda _: share_group_heartbeat.ShareGroupHeartbeatRequest(
                 group_id="g", member_id="m", member_epoch=5, subscribed_topic_names=["t"]),
             lambda a: a.error_code, [group(READ), topic(DESCRIBE)]),
        Case("describe groups", K.DESCRIBE_GROUPS, 5,
             lambda _: describe_groups.DescribeGroupsRequest(["g"]),
             lambda a: a.groups[0].error_code, [group(DESCRIBE)]),
        Case("describe server-side groups", K.CONSUMER_GROUP_DESCRIBE, 1,
             lambda _: consumer_group_describe.ConsumerGroupDescribeRequest(["g"]),
             lambda a: a.groups[0].error_code, [group(DESCRIBE)]),
        Case("describe share groups", K.SHARE_GROUP_DESCRIBE, 1,
             lambda _: share_group_describe.ShareGroupDescribeRequest(["g"]),
             lambda a: a.groups[0].error_code, [group(DESCRIBE)]),
        Case("delete groups", K.DELETE_GROUPS, 2,
             lambda _: delete_groups.DeleteGroupsRequest(["g"]),
             lambda a: a.results[0].error_code, [group(DELETE)]),
        Case("share fetch", K.SHARE_FETCH, 1,
             lambda i: share_fetch.ShareFetchRequest(
                 group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", max_wait_ms=0, max_bytes=1000,
                 topics=[share_fetch.FetchTopic(i, [share_fetch.FetchPartition(0, 1000)])]),
             lambda a: a.error_code or (a.responses[0].partitions[0].error_code if a.responses else 0),
             [group(READ), topic(READ)]),
        Case("share acknowledge", K.SHARE_ACKNOWLEDGE, 1,
             lambda _: share_acknowledge.ShareAcknowledgeRequest(
                 group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", share_session_epoch=5),
             lambda a: a.error_code, [group(READ)]),
        Case("describe share offsets", K.DESCRIBE_SHARE_GROUP_OFFSETS, 0,
             lambda _: describe_share_group_offsets.DescribeShareGroupOffsetsRequest([
                 describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup("g", [
                     describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic("t", [0])])]),
             lambda a: a.groups[0].error_code or a.groups[0].topics[0].partitions[0].error_code,
             [group(DESCRIBE), topic(DESCRIBE)]),
        Case("alter share offsets", K.ALTER_SHARE_GROUP_OFFSETS, 0,
             lambda _: alter_share_group_offsets.AlterShareGroupOffsetsRequest("g", [
                 alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic("t", [
                     alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(0, 0)])]),
             lambda a: a.error_code or a.responses[0].partitions[0].error_code,
             [group(READ), topic(READ)]),
        Case("delete share offsets", K.DELETE_SHARE_GROUP_OFFSETS, 0,
             lambda _: delete_share_group_offsets.DeleteShareGroupOffsetsRequest("g", []),
             lambda a: a.error_code, [group(DELETE)]),
        # offsets
        Case("commit", K.OFFSET_COMMIT, 9,
             lambda _: offset_commit.OffsetCommitRequest("g", topics=[
                 offset_commit.OffsetCommitRequestTopic("t", partitions=[
                     offset_commit.OffsetCommitRequestPartition(0, 1)])]),
             lambda a: a.topics[0].partitions[0].error_code, [group(READ), topic(READ)]),
        Case("commit by id", K.OFFSET_COMMIT, 10,
             lambda i: offset_commit.OffsetCommitRequest("g", topics=[
                 offset_commit.OffsetCommitRequestTopic(topic_id=i, partitions=[
                     offset_commit.OffsetCommitRequestPartition(0, 1)])]),
             lambda a: a.topics[0].partitions[0].error_code, [group(READ), topic(READ)]),
        Case("fetch offsets", K.OFFSET_FETCH, 8,
             lambda _: offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(
                 "g", None, -1, [offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=[0])])]),
             lambda a: a.groups[0].error_code or a.groups[0].topics[0].partitions[0].error_code,
             [group(DESCRIBE), topic(DESCRIBE)]),
        Case("fetch offsets by id", K.OFFSET_FETCH, 10,
             lambda i: offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(
                 "g", None, -1, [offset_fetch.OffsetFetchRequestTopics(topic_id=i, partition_indexes=[0])])]),
             lambda a: a.groups[0].error_code or a.groups[0].topics[0].partitions[0].error_code,
             [group(DESCRIBE), topic(DESCRIBE)]),
        *(
            Case(f"fetch offsets, as clients of version {version}", K.OFFSET_FETCH, version,
                 lambda _: offset_fetch.OffsetFetchRequest("g", [
                     offset_fetch.OffsetFetchRequestTopic("t", [0])]),
                 lambda a: a.error_code or a.topics[0].partitions[0].error_code,
                 [group(DESCRIBE), topic(DESCRIBE)])
            for version in (1, 7)
        ),
        Case("delete offsets", K.OFFSET_DELETE, 0,
             lambda _: offset_delete.OffsetDeleteRequest("kept", [
                 offset_delete.OffsetDeleteRequestTopic("t", [
                     offset_delete.OffsetDeleteRequestPartition(0)])]),
             lambda a: a.error_code or a.topics[0].partitions[0].error_code,
             [group(DELETE, "kept"), topic(READ)]),
        # transactions
        Case("an idempotent producer", K.INIT_PRODUCER_ID, 5,
             lambda _: init_producer_id.InitProducerIdRequest(None, 1000),
             lambda a: a.error_code, [(IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME)],
             (topic(WRITE, "any"),)),
        Case("a transactional producer", K.INIT_PRODUCER_ID, 5,
             lambda _: init_producer_id.InitProducerIdRequest("x", 1000),
             lambda a: a.error_code, [transaction(WRITE)]),
        Case("add partitions to a transaction", K.ADD_PARTITIONS_TO_TXN, 3,
             lambda _: add_partitions_to_txn.AddPartitionsToTxnRequest(
                 v3_and_below_transactional_id="x", v3_and_below_producer_id=99, v3_and_below_producer_epoch=0,
                 v3_and_below_topics=[add_partitions_to_txn.AddPartitionsToTxnTopic("t", [0])]),
             lambda a: a.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
             [transaction(WRITE), topic(WRITE)]),
        Case("add offsets to a transaction", K.ADD_OFFSETS_TO_TXN, 4,
             lambda _: add_offsets_to_txn.AddOffsetsToTxnRequest("x", 99, 0, "g"),
             lambda a: a.error_code, [transaction(WRITE), group(READ)]),
        Case("commit offsets in a transaction", K.TXN_OFFSET_COMMIT, 3,
             lambda _: txn_offset_commit.TxnOffsetCommitRequest("x", "g", 99, 0, topics=[
                 txn_offset_commit.TxnOffsetCommitRequestTopic("t", [
                     txn_offset_commit.TxnOffsetCommitRequestPartition(0, 1)])]),
             lambda a: a.topics[0].partitions[0].error_code,
             [transaction(WRITE), group(READ), topic(READ)]),
        Case("end a transaction", K.END_TXN, 4,
             lambda _: end_txn.EndTxnRequest("x", 99, 0, False),
             lambda a: a.error_code, [transaction(WRITE)]),
        Case("write markers", K.WRITE_TXN_MARKERS, 1,
             lambda _: write_txn_markers.WriteTxnMarkersRequest([
                 write_txn_markers.WritableTxnMarker(99, 0, False, [
                     write_txn_markers.WritableTxnMarkerTopic("none", [0])])]),
             lambda a: a.markers[0].topics[0].partitions[0].error_code,
             [CLUSTER_NEEDS[ALTER]], (CLUSTER_NEEDS[CLUSTER_ACTION],)),
        Case("describe transactions", K.DESCRIBE_TRANSACTIONS, 0,
             lambda _: describe_transactions.DescribeTransactionsRequest(["x"]),
             lambda a: a.transaction_states[0].error_code, [transaction(DESCRIBE)]),
    ]  # fmt: skip


CASES = _cases()
