"""What the verifier asks the log about itself: brokers, leaders, controller, replicas' ends."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.client.cluster import Cluster
from tailrace.client.errors import ClientError
from tailrace.clock import SYSTEM, Clock
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import describe_quorum, metadata
from tailrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

METADATA, LIST_OFFSETS = APIS[ApiKey.METADATA], APIS[ApiKey.LIST_OFFSETS]
DESCRIBE_QUORUM = APIS[ApiKey.DESCRIBE_QUORUM]
LATEST = -1
AS_A_DEBUGGER = -2  # −1 would be answered by leaders only


@dataclass(frozen=True, slots=True)
class Leadership:
    """Who leads a partition, and which replicas are in sync."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class Topology:
    """Connections of its own; one thread only."""

    def __init__(self, bootstrap: str, *, seconds: float = 5.0, clock: Clock = SYSTEM) -> None:
        self._cluster = Cluster(
            bootstrap, client_id="tailrace-verify", timeout=seconds, request_timeout=seconds,
            clock=clock,
        )  # fmt: skip

    def brokers(self) -> dict[int, tuple[str, int]]:
        """The address of every living broker, by id. Raises ClientError."""
        answer = self._metadata([])
        return {each.node_id: (each.host, each.port) for each in answer.brokers}

    def leaders(self, topic: str) -> dict[int, Leadership]:
        """By partition; empty while the topic is not known. Raises ClientError."""
        answer = self._metadata([topic])
        return {
            each.partition_index: Leadership(
                each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                tuple(sorted(each.isr_nodes)),
            )
            for found in answer.topics
            if found.error_code == ErrorCode.NONE
            for each in found.partitions
        }

    def controller(self) -> int | None:
        """The active controller; None where there is no quorum of them (the embedded broker)."""
        request = describe_quorum.DescribeQuorumRequest(
            [
                describe_quorum.RequestTopicData(
                    "__cluster_metadata", [describe_quorum.RequestPartitionData(0)]
                )
            ]
        )
        connection = self._cluster.any()
        if not connection.offers(DESCRIBE_QUORUM):
            return None
        answer = connection.request(DESCRIBE_QUORUM, request)
        assert isinstance(answer, describe_quorum.DescribeQuorumResponse)
        if answer.error_code != ErrorCode.NONE:
            return None
        leader = answer.topics[0].partitions[0].leader_id
        return leader if leader >= 0 else None

    def end_at(self, broker: int, topic: str, partition: int) -> int | None:
        """The end of a replica as that broker itself has it; None if it does not say."""
        request = ListOffsetsRequest(
            replica_id=AS_A_DEBUGGER,
            isolation_level=0,
            topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, LATEST)])],
            timeout_ms=5_000,
        )
        try:
            answer = self._cluster.broker(broker).request(LIST_OFFSETS, request, 7)
        except ClientError:
            return None
        assert isinstance(answer, ListOffsetsResponse)
        found = answer.topics[0].partitions[0]
        return found.offset if found.error_code == ErrorCode.NONE and found.offset >= 0 else None

    def close(self) -> None:
        self._cluster.close()

    def _metadata(self, topics: list[str]) -> metadata.MetadataResponse:
        def ask() -> metadata.MetadataResponse:
            self._cluster.refresh(topics)  # so that ids lead to addresses
            request = metadata.MetadataRequest(
                topics=[metadata.MetadataRequestTopic(name=name) for name in topics],
                allow_auto_topic_creation=False,
            )
            answer = self._cluster.any().request(METADATA, request, 12)
            assert isinstance(answer, metadata.MetadataResponse)
            return answer

        return self._cluster.retry(ask, "asking for metadata")
