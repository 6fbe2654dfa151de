"""Where offsets are: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tailrace.broker.guard import write_refusal
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tailrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tailrace.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = (
    -1, -2, -3, -4, -5, -6,
)  # fmt: skip
READ_COMMITTED = 1


class Offsets:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def list_offsets(self, request: Request[ListOffsetsRequest]) -> None:
        committed = request.body.isolation_level == READ_COMMITTED
        topics: list[ListOffsetsTopicResponse] = []

        def steps() -> Iterator[None]:
            for topic in request.body.topics:
                rows: list[ListOffsetsPartitionResponse] = []
                topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
                for one in topic.partitions:
                    rows.append(self._offset(topic.name, one, committed))
                    yield
            request.answer(ListOffsetsResponse(topics=topics))

        request.in_turns(steps(), self._broker.loop)

    def _offset(
        self, topic: str, wanted: ListOffsetsPartition, committed: bool
    ) -> ListOffsetsPartitionResponse:
        answer = ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index, timestamp=-1, offset=-1, leader_epoch=-1
        )
        partition = self._broker.partition_by_name(topic, wanted.partition_index)
        if partition is None:
            answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return answer
        answer.error_code = check_epoch(partition, wanted.current_leader_epoch)
        if answer.error_code:
            return answer
        limit = partition.last_stable_offset if committed else partition.high_watermark
        try:
            match wanted.timestamp:
                case -1:
                    answer.offset, answer.leader_epoch = limit, partition.leader_epoch
                case -2 | -4:
                    answer.offset = partition.log_start_offset
                    answer.leader_epoch = partition.leader_epoch
                case -5 | -6:
                    pass  # nothing lies in another tier
                case moment:
                    found = (
                        partition.max_timestamp_offset()
                        if moment == MAX_TIMESTAMP
                        else partition.offset_for_time(moment)
                    )
                    if found is not None and found.offset < limit:
                        answer.offset, answer.timestamp = found.offset, found.timestamp
                        answer.leader_epoch = found.leader_epoch
        except TailraceError as error:
            answer.error_code = getattr(error, "kafka_code", -1)
        return answer

    def leader_epochs(self, request: Request[OffsetForLeaderEpochRequest]) -> None:
        request.answer(
            OffsetForLeaderEpochResponse(
                topics=[
                    OffsetForLeaderTopicResult(
                        topic=topic.topic,
                        partitions=[self._epoch_end(topic.topic, one) for one in topic.partitions],
                    )
                    for topic in request.body.topics
                ]
            )
        )

    def _epoch_end(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        answer = EpochEndOffset(partition=wanted.partition, leader_epoch=-1, end_offset=-1)
        partition = self._broker.partition_by_name(topic, wanted.partition)
        if partition is None:
            answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return answer
        answer.error_code = check_epoch(partition, wanted.current_leader_epoch)
        if not answer.error_code:
            answer.leader_epoch, answer.end_offset = partition.epoch_end(wanted.leader_epoch)
        return answer

    def delete_records(self, request: Request[DeleteRecordsRequest]) -> None:
        project = request.connection.project
        topics: list[DeleteRecordsTopicResult] = []

        def steps() -> Iterator[None]:
            for topic in request.body.topics:
                rows: list[DeleteRecordsPartitionResult] = []
                topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=rows))
                for one in topic.partitions:
                    rows.append(self._delete(topic.name, one, project))
                    yield
            request.answer(DeleteRecordsResponse(topics=topics))

        request.in_turns(steps(), self._broker.loop)

    def _delete(
        self, topic: str, wanted: DeleteRecordsPartition, project: bool
    ) -> DeleteRecordsPartitionResult:
        answer = DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=-1
        )
        partition = self._broker.partition_by_name(topic, wanted.partition_index)
        if partition is None:
            answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return answer
        if write_refusal(topic, project=project) is not None:
            answer.error_code = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
            return answer
        if partition.config.values.get("tailrace.events") == "true":
            answer.error_code = int(ErrorCode.POLICY_VIOLATION)
            return answer
        try:
            answer.low_watermark = partition.delete_records(wanted.offset)
        except TailraceError as error:
            answer.error_code = getattr(error, "kafka_code", -1)
        else:
            self._broker.appended(partition)
        return answer


def check_epoch(partition: Partition, epoch: int) -> int:
    """The error for a client whose idea of the leader's epoch is not ours, or for a
    partition whose disk failed; 0 if all is well."""
    if partition.failure is not None:
        return partition.failure.kafka_code
    if epoch < 0 or epoch == partition.leader_epoch:
        return 0
    if epoch < partition.leader_epoch:
        return int(ErrorCode.FENCED_LEADER_EPOCH)
    return int(ErrorCode.UNKNOWN_LEADER_EPOCH)


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = Offsets(broker)
    yield Route(ApiKey.LIST_OFFSETS, 1, 11, handlers.list_offsets)
    yield Route(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, handlers.leader_epochs)
    yield Route(ApiKey.DELETE_RECORDS, 0, 2, handlers.delete_records)
