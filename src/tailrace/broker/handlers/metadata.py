"""Who leads what: Metadata, DescribeCluster, DescribeTopicPartitions.

There is one node; it leads every partition and is the controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.guard import write_refusal
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.log.store import check_topic_name
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import ZERO_UUID
from tailrace.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tailrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from tailrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.log.store import Topic

# Bit n: operation n of Kafka's AclOperation. Without access control everything is allowed.
TOPIC_OPERATIONS = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
NOT_ASKED = -(2**31)
BROKERS, CONTROLLERS = 1, 2
PARTITIONS_PER_ANSWER = 2000
NEW_TOPICS_PER_REQUEST = 50


class AutoCreation:
    """Which topics a request may have made by naming them: not too many at once, for each is a
    write to the disk. Clients ask again for what does not exist yet."""

    def __init__(self, allowed: bool, project: bool) -> None:
        self._left = NEW_TOPICS_PER_REQUEST if allowed else 0
        self._project = project

    def may(self, name: str) -> bool:
        if self._left <= 0 or write_refusal(name, project=self._project) is not None:
            return False
        self._left -= 1
        return True


class Metadata:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def metadata(self, request: Request[MetadataRequest]) -> None:
        broker, body = self._broker, request.body
        wanted = body.topics
        if wanted is None or (request.version == 0 and not wanted):
            topics = [self._topic(topic, body) for topic in broker.store.topics.values()]
        else:
            create = body.allow_auto_topic_creation if request.version >= 4 else True
            makes = AutoCreation(create, request.connection.project)
            topics = [self._wanted(one, body, makes) for one in _once(wanted)]
            if request.version < 12:
                for topic in topics:
                    topic.name = topic.name or ""  # null is allowed from version 12 on
        host, port = broker.told(request.connection)
        request.answer(
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=broker.node_id, host=host, port=port)],
                cluster_id=broker.cluster_id,
                controller_id=broker.node_id,
                topics=topics,
                cluster_authorized_operations=CLUSTER_OPERATIONS
                if body.include_cluster_authorized_operations
                else NOT_ASKED,
            )
        )

    def _wanted(
        self, wanted: MetadataRequestTopic, body: MetadataRequest, makes: AutoCreation
    ) -> MetadataResponseTopic:
        broker = self._broker
        name = wanted.name
        if name is None or wanted.topic_id != ZERO_UUID:
            topic = broker.topic_by_id(wanted.topic_id)
            if topic is None:
                return _missing(name, wanted.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
            return self._topic(topic, body)
        topic = broker.store.topics.get(name)
        if topic is None:
            try:
                check_topic_name(name)
                if not broker.settings.boolean("auto.create.topics.enable") or not makes.may(name):
                    return _missing(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if name in broker.store.journal.catalogue.topics:  # it is being made
                    return _missing(name, ZERO_UUID, ErrorCode.LEADER_NOT_AVAILABLE)
                topic = broker.auto_create(name)
            except TailraceError as error:
                code = getattr(error, "kafka_code", int(ErrorCode.UNKNOWN_SERVER_ERROR))
                return _missing(name, ZERO_UUID, code)
        return self._topic(topic, body)

    def _topic(self, topic: Topic, body: MetadataRequest) -> MetadataResponseTopic:
        node = self._broker.node_id
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id.bytes,
            is_internal=topic.internal,
            partitions=[
                MetadataResponsePartition(
                    partition_index=partition.index,
                    leader_id=node,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=[node],
                    isr_nodes=[node],
                )
                if partition.failure is None
                else MetadataResponsePartition(
                    error_code=int(ErrorCode.LEADER_NOT_AVAILABLE),
                    partition_index=partition.index,
                    leader_id=-1,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=[node],
                    offline_replicas=[node],
                )
                for partition in topic.partitions
            ],
            topic_authorized_operations=TOPIC_OPERATIONS
            if body.include_topic_authorized_operations
            else NOT_ASKED,
        )

    def cluster(self, request: Request[DescribeClusterRequest]) -> None:
        broker, body = self._broker, request.body
        if body.endpoint_type != BROKERS:
            code = (
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if body.endpoint_type == CONTROLLERS
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            )
            request.answer(
                DescribeClusterResponse(
                    error_code=int(code),
                    error_message="this is a broker",
                    cluster_id=broker.cluster_id,
                )
            )
            return
        host, port = broker.told(request.connection)
        request.answer(
            DescribeClusterResponse(
                error_message=None,
                cluster_id=broker.cluster_id,
                controller_id=broker.node_id,
                brokers=[DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port)],
                cluster_authorized_operations=CLUSTER_OPERATIONS
                if body.include_cluster_authorized_operations
                else NOT_ASKED,
            )
        )

    def topic_partitions(self, request: Request[DescribeTopicPartitionsRequest]) -> None:
        broker, body = self._broker, request.body
        store = broker.store
        names = sorted({one.name for one in body.topics}) or sorted(store.topics)
        first = 0
        if body.cursor is not None:
            names = [name for name in names if name >= body.cursor.topic_name]
            if names and names[0] == body.cursor.topic_name:
                first = body.cursor.partition_index
        left = min(body.response_partition_limit, PARTITIONS_PER_ANSWER)
        answer = DescribeTopicPartitionsResponse()
        for name in names:
            topic = store.topics.get(name)
            if topic is None:
                answer.topics.append(
                    DescribeTopicPartitionsResponseTopic(
                        error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                        name=name,
                        topic_authorized_operations=NOT_ASKED,
                    )
                )
                continue
            if left <= 0:
                answer.next_cursor = ResponseCursor(topic_name=name, partition_index=0)
                break
            chosen = topic.partitions[first : first + left]
            left -= len(chosen)
            answer.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    name=name,
                    topic_id=topic.id.bytes,
                    is_internal=topic.internal,
                    partitions=[
                        DescribeTopicPartitionsResponsePartition(
                            partition_index=partition.index,
                            leader_id=broker.node_id,
                            leader_epoch=partition.leader_epoch,
                            replica_nodes=[broker.node_id],
                            isr_nodes=[broker.node_id],
                            eligible_leader_replicas=[],
                            last_known_elr=[],
                        )
                        for partition in chosen
                    ],
                    topic_authorized_operations=TOPIC_OPERATIONS,
                )
            )
            if first + len(chosen) < len(topic.partitions):
                answer.next_cursor = ResponseCursor(
                    topic_name=name, partition_index=first + len(chosen)
                )
                break
            first = 0
        request.answer(answer)


def _once(wanted: list[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """Each topic once, however often it is named."""
    return {(one.name, one.topic_id): one for one in wanted}.values()


def _missing(name: str | None, topic_id: bytes, code: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=int(code), name=name, topic_id=topic_id, topic_authorized_operations=NOT_ASKED
    )


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = Metadata(broker)
    yield Route(ApiKey.METADATA, 0, 13, handlers.metadata)
    yield Route(ApiKey.DESCRIBE_CLUSTER, 0, 2, handlers.cluster)
    yield Route(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, handlers.topic_partitions)
