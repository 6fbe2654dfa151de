"""Requests about topics: what there is, making, changing and deleting them, and their ends.

A topic that the caller may not describe is answered like one that it may not have, whether it
exists or not; lists leave it out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tailrace.broker.authorization.acls import (
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    TOPIC,
)
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.authorization.guarding import NO_TOPIC, NOT_ASKED, Guard, Serve, amend
from tailrace.broker.router import Request
from tailrace.log.errors import LogError
from tailrace.log.store import check_topic_name
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import ZERO_UUID
from tailrace.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_producers,
    describe_topic_partitions,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

REFUSAL = "Authorization failed."
FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED.message
# In the versions between these, Metadata tells what may be done to the cluster.
CLUSTER_BITS = range(8, 11)


class TopicGuards:
    """The guards of this module that look topics up."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(
        self, caller: Caller, request: Request[metadata.MetadataRequest], serve: Serve
    ) -> None:
        body = request.body
        everything = body.topics is None or (request.version == 0 and not body.topics)
        refused: list[metadata.MetadataResponseTopic] = []
        if not everything:
            wanted = body.topics or []
            body.topics = [
                one for one in wanted if not self._refused(caller, request, one, refused)
            ]

        def change(answer: metadata.MetadataResponse) -> None:
            if everything:
                answer.topics = [
                    topic
                    for topic in answer.topics
                    if caller.may(DESCRIBE, TOPIC, topic.name or "", told=False)
                ]
            elif not body.topics:
                answer.topics = []  # version 0 takes an empty list for all topics
            if body.include_topic_authorized_operations:
                for topic in answer.topics:
                    if topic.name:
                        topic.topic_authorized_operations = caller.operations(TOPIC, topic.name)
            answer.topics += refused
            if request.version in CLUSTER_BITS and body.include_cluster_authorized_operations:
                answer.cluster_authorized_operations = cluster_bits(caller)

        amend(request, change)
        serve(request)

    def _refused(
        self,
        caller: Caller,
        request: Request[metadata.MetadataRequest],
        wanted: metadata.MetadataRequestTopic,
        refused: list[metadata.MetadataResponseTopic],
    ) -> bool:
        """Whether a topic may not be told of, or not be made by naming it."""
        name = wanted.name
        if name is None or wanted.topic_id != ZERO_UUID:
            topic = self._broker.topic_by_id(wanted.topic_id)
            if topic is None or caller.may(DESCRIBE, TOPIC, topic.name):
                return False
            refused.append(_no_topic(None, wanted.topic_id))
            return True
        if caller.may(DESCRIBE, TOPIC, name) and (
            name in self._broker.store.topics
            or not self._makes(request)
            or caller.may_cluster(CREATE, told=False)
            or caller.may(CREATE, TOPIC, name)
        ):
            return False
        refused.append(_no_topic(name, ZERO_UUID))
        return True

    def _makes(self, request: Request[metadata.MetadataRequest]) -> bool:
        """Whether naming a topic that does not exist would make it."""
        allowed = request.body.allow_auto_topic_creation if request.version >= 4 else True
        return allowed and self._broker.settings.boolean("auto.create.topics.enable")

    def topic_partitions(
        self,
        caller: Caller,
        request: Request[describe_topic_partitions.DescribeTopicPartitionsRequest],
        serve: Serve,
    ) -> None:
        body = request.body
        names = {one.name for one in body.topics}
        everything = not names
        candidates = names or set(self._broker.store.topics)
        if body.cursor is not None:
            cursor = body.cursor.topic_name
            candidates = {name for name in candidates if name >= cursor}
        allowed, others = caller.parted(
            DESCRIBE, TOPIC, sorted(candidates), str, told=not everything
        )
        refused = [
            describe_topic_partitions.DescribeTopicPartitionsResponseTopic(
                error_code=NO_TOPIC, name=name, topic_authorized_operations=NOT_ASKED
            )
            for name in others
            if not everything
        ]
        body.topics = [describe_topic_partitions.TopicRequest(name=name) for name in allowed]

        def change(answer: describe_topic_partitions.DescribeTopicPartitionsResponse) -> None:
            for topic in answer.topics:
                topic.topic_authorized_operations = caller.operations(TOPIC, topic.name or "")
            answer.topics += refused

        amend(request, change)
        if allowed:
            serve(request)
        else:
            request.answer(describe_topic_partitions.DescribeTopicPartitionsResponse())

    def delete(
        self, caller: Caller, request: Request[delete_topics.DeleteTopicsRequest], serve: Serve
    ) -> None:
        body = request.body
        refused: list[delete_topics.DeletableTopicResult] = []
        any_topic = caller.may_cluster(DELETE, told=False)

        def kept(name: str | None, topic_id: bytes) -> bool:
            if any_topic:
                return True
            if name is None:
                topic = self._broker.topic_by_id(topic_id)
                if topic is None or caller.may(DELETE, TOPIC, topic.name):
                    return True
                shown = topic.name if caller.may(DESCRIBE, TOPIC, topic.name) else None
            else:
                if caller.may(DESCRIBE, TOPIC, name) and (
                    name not in self._broker.store.topics or caller.may(DELETE, TOPIC, name)
                ):
                    return True
                shown = name
            refused.append(
                delete_topics.DeletableTopicResult(
                    name=shown, topic_id=topic_id, error_code=NO_TOPIC, error_message=FAILED
                )
            )
            return False

        body.topic_names = [name for name in body.topic_names if kept(name, ZERO_UUID)]
        body.topics = [one for one in body.topics if kept(one.name, one.topic_id)]

        def change(answer: delete_topics.DeleteTopicsResponse) -> None:
            answer.responses += refused

        amend(request, change)
        serve(request)


def _create(
    caller: Caller, request: Request[create_topics.CreateTopicsRequest], serve: Serve
) -> None:
    body = request.body
    refused: dict[str, create_topics.CreatableTopicResult] = {}
    if not caller.may_cluster(CREATE, told=False):
        counts = Counter(topic.name for topic in body.topics)
        allowed, others = caller.parted(CREATE, TOPIC, body.topics, lambda topic: str(topic.name))
        body.topics = allowed
        for topic in others:
            if counts[topic.name] > 1:  # told as such, whoever asks
                body.topics.append(topic)
                continue
            refused[topic.name] = create_topics.CreatableTopicResult(
                name=topic.name, error_code=NO_TOPIC, error_message=REFUSAL, configs=[]
            )

    def change(answer: create_topics.CreateTopicsResponse) -> None:
        for topic in answer.topics:
            if not topic.error_code and not caller.may(
                DESCRIBE_CONFIGS, TOPIC, topic.name, told=False
            ):
                topic.topic_config_error_code = NO_TOPIC
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = [] if request.version >= 5 else topic.configs
        answer.topics += refused.values()

    amend(request, change)
    serve(request)


def _add_partitions(
    caller: Caller, request: Request[create_partitions.CreatePartitionsRequest], serve: Serve
) -> None:
    body = request.body
    body.topics, others = caller.parted(ALTER, TOPIC, body.topics, lambda topic: str(topic.name))

    def change(answer: create_partitions.CreatePartitionsResponse) -> None:
        answer.results += [
            create_partitions.CreatePartitionsTopicResult(
                name=topic.name, error_code=NO_TOPIC, error_message=None
            )
            for topic in others
        ]

    amend(request, change)
    serve(request)


def _list_offsets(
    caller: Caller, request: Request[list_offsets.ListOffsetsRequest], serve: Serve
) -> None:
    body = request.body
    body.topics, others = caller.parted(DESCRIBE, TOPIC, body.topics, _name)

    def change(answer: list_offsets.ListOffsetsResponse) -> None:
        answer.topics += [
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=one.partition_index,
                        error_code=NO_TOPIC,
                        timestamp=-1,
                        offset=-1,
                        leader_epoch=-1,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in others
        ]

    amend(request, change)
    serve(request)


def _leader_epochs(
    caller: Caller,
    request: Request[offset_for_leader_epoch.OffsetForLeaderEpochRequest],
    serve: Serve,
) -> None:
    body = request.body
    others: list[Any] = []
    if not caller.may_cluster(CLUSTER_ACTION, told=False):
        body.topics, others = caller.parted(
            DESCRIBE, TOPIC, body.topics, lambda topic: str(topic.topic)
        )

    def change(answer: offset_for_leader_epoch.OffsetForLeaderEpochResponse) -> None:
        answer.topics += [
            offset_for_leader_epoch.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    offset_for_leader_epoch.EpochEndOffset(
                        partition=one.partition,
                        error_code=NO_TOPIC,
                        leader_epoch=-1,
                        end_offset=-1,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in others
        ]

    amend(request, change)
    serve(request)


def _delete_records(
    caller: Caller, request: Request[delete_records.DeleteRecordsRequest], serve: Serve
) -> None:
    body = request.body
    body.topics, others = caller.parted(DELETE, TOPIC, body.topics, _name)

    def change(answer: delete_records.DeleteRecordsResponse) -> None:
        answer.topics += [
            delete_records.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    delete_records.DeleteRecordsPartitionResult(
                        partition_index=one.partition_index, low_watermark=-1, error_code=NO_TOPIC
                    )
                    for one in topic.partitions
                ],
            )
            for topic in others
        ]

    amend(request, change)
    serve(request)


def _describe_producers(
    caller: Caller, request: Request[describe_producers.DescribeProducersRequest], serve: Serve
) -> None:
    body = request.body
    misnamed = [topic for topic in body.topics if not _legal(topic.name)]
    legal = [topic for topic in body.topics if _legal(topic.name)]
    body.topics, others = caller.parted(READ, TOPIC, legal, _name)

    def refusal(topic: describe_producers.TopicRequest, code: int) -> Any:
        return describe_producers.TopicResponse(
            name=topic.name,
            partitions=[
                describe_producers.PartitionResponse(
                    partition_index=index,
                    error_code=code,
                    error_message=ErrorCode(code).message,
                )
                for index in topic.partition_indexes
            ],
        )

    def change(answer: describe_producers.DescribeProducersResponse) -> None:
        answer.topics += [refusal(topic, NO_TOPIC) for topic in others]
        illegal = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
        answer.topics += [refusal(topic, illegal) for topic in misnamed]

    amend(request, change)
    serve(request)


def cluster_bits(caller: Caller) -> int:
    """What may be done to the cluster; 0 for who may not ask."""
    return caller.operations(CLUSTER, CLUSTER_NAME) if caller.may_cluster(DESCRIBE) else 0


def _no_topic(name: str | None, topic_id: bytes) -> metadata.MetadataResponseTopic:
    return metadata.MetadataResponseTopic(
        error_code=NO_TOPIC, name=name, topic_id=topic_id, topic_authorized_operations=NOT_ASKED
    )


def _name(topic: Any) -> str:
    return str(topic.name)


def _legal(name: str) -> bool:
    try:
        check_topic_name(name)
    except LogError:
        return False
    return True


def guards(broker: Broker) -> dict[int, Guard]:
    """The guards of this module."""
    looking = TopicGuards(broker)
    return {
        ApiKey.METADATA: looking.describe,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: looking.topic_partitions,
        ApiKey.DELETE_TOPICS: looking.delete,
        ApiKey.CREATE_TOPICS: _create,
        ApiKey.CREATE_PARTITIONS: _add_partitions,
        ApiKey.LIST_OFFSETS: _list_offsets,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: _leader_epochs,
        ApiKey.DELETE_RECORDS: _delete_records,
        ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
    }
