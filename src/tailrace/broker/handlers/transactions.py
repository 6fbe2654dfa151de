"""Requests of transactional producers, translated for the coordinator and back.

Old versions do not know PRODUCER_FENCED and get INVALID_PRODUCER_EPOCH in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tailrace.broker.groups.group import TopicPartition
from tailrace.broker.groups.offsets import Commit, NewOffset
from tailrace.broker.groups.patterns import Pattern, PatternError
from tailrace.broker.guard import PROJECT_PREFIX, write_refusal
from tailrace.broker.journal import partition_of
from tailrace.broker.router import Request, Route
from tailrace.broker.transactions.coordinator import Identity
from tailrace.broker.transactions.state import State
from tailrace.broker.transactions.transitions import OWN_EPOCHS
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import add_offsets_to_txn as offsets_wire
from tailrace.wire.messages import add_partitions_to_txn as partitions_wire
from tailrace.wire.messages import describe_transactions as describe_wire
from tailrace.wire.messages import end_txn as end_wire
from tailrace.wire.messages import init_producer_id as init_wire
from tailrace.wire.messages import list_transactions as list_wire
from tailrace.wire.messages import txn_offset_commit as commit_wire
from tailrace.wire.messages import write_txn_markers as markers_wire

if TYPE_CHECKING:
    from tailrace.broker.coordination import Coordination

ABORTABLE_OFFSETS = 4
IMPLICIT_OFFSETS = 5
END_RAISES_EPOCH = 5


class TransactionRequests:
    """Everything a transactional producer and its administrator ask."""

    def __init__(self, coordination: Coordination) -> None:
        self._coordination = coordination
        self._transactions = coordination.transactions
        self._groups = coordination.groups
        self._topics = coordination.topics

    def routes(self) -> Iterable[Route]:
        yield Route(ApiKey.INIT_PRODUCER_ID, 0, 6, self.init)
        # Versions 4 and 5 are spoken between brokers.
        yield Route(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3, self.add_partitions)
        yield Route(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, self.add_offsets)
        yield Route(ApiKey.END_TXN, 0, 5, self.end)
        yield Route(ApiKey.TXN_OFFSET_COMMIT, 0, 5, self.commit_offsets)
        yield Route(ApiKey.WRITE_TXN_MARKERS, 1, 2, self.write_markers)
        yield Route(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, self.describe)
        yield Route(ApiKey.LIST_TRANSACTIONS, 0, 2, self.list)

    def init(self, request: Request[init_wire.InitProducerIdRequest]) -> None:
        body = request.body

        def reply(identity: Identity) -> None:
            request.answer(
                init_wire.InitProducerIdResponse(
                    error_code=int(_known(identity.error, request.version >= 4)),
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                )
            )

        if body.enable2_pc or body.keep_prepared_txn:
            # As a Kafka without `transaction.two.phase.commit.enable` answers.
            reply(Identity(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        if (body.producer_id == -1) != (body.producer_epoch == -1):
            reply(Identity(ErrorCode.INVALID_REQUEST))
            return
        if self._protected(body.transactional_id, request):
            reply(Identity(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        self._transactions.init_producer_id(
            body.transactional_id,
            body.transaction_timeout_ms,
            body.producer_id,
            body.producer_epoch,
            reply,
        )

    def add_partitions(self, request: Request[partitions_wire.AddPartitionsToTxnRequest]) -> None:
        body = request.body
        topics = body.v3_and_below_topics
        wanted = [(topic.name, index) for topic in topics for index in topic.partitions]
        project = request.connection.project
        refused = {name for name, _ in wanted if write_refusal(name, project=project) is not None}
        unknown = {place for place in wanted if not self._topics.has(*place)}

        def reply(error: ErrorCode) -> None:
            error = _known(error, request.version >= 2)

            def of(place: TopicPartition) -> ErrorCode:
                if not (unknown or refused):
                    return error
                if place[0] in refused:
                    return ErrorCode.TOPIC_AUTHORIZATION_FAILED
                if place in unknown:
                    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                return ErrorCode.OPERATION_NOT_ATTEMPTED

            request.answer(
                partitions_wire.AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=[
                        partitions_wire.AddPartitionsToTxnTopicResult(
                            topic.name,
                            [
                                partitions_wire.AddPartitionsToTxnPartitionResult(
                                    index, int(of((topic.name, index)))
                                )
                                for index in topic.partitions
                            ],
                        )
                        for topic in topics
                    ]
                )
            )

        if unknown or refused:
            reply(ErrorCode.NONE)
            return
        self._transactions.add_partitions(
            body.v3_and_below_transactional_id,
            body.v3_and_below_producer_id,
            body.v3_and_below_producer_epoch,
            wanted,
            reply,
        )

    def add_offsets(self, request: Request[offsets_wire.AddOffsetsToTxnRequest]) -> None:
        body = request.body

        def reply(error: ErrorCode) -> None:
            known = _known(error, request.version >= 2)
            request.answer(offsets_wire.AddOffsetsToTxnResponse(error_code=int(known)))

        self._transactions.add_partitions(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            [self._home(body.group_id)],
            reply,
        )

    def commit_offsets(self, request: Request[commit_wire.TxnOffsetCommitRequest]) -> None:
        body = request.body
        answers: dict[TopicPartition, ErrorCode] = {}
        offsets: list[NewOffset] = []
        for topic in body.topics:
            for one in topic.partitions:
                known = self._topics.has(topic.name, one.partition_index)
                answers[topic.name, one.partition_index] = (
                    ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                if known:
                    offsets.append(
                        NewOffset(
                            topic.name,
                            one.partition_index,
                            one.committed_offset,
                            one.committed_leader_epoch,
                            one.committed_metadata or "",
                        )
                    )

        def reply(found: dict[TopicPartition, ErrorCode]) -> None:
            for key, error in found.items():
                if error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH):
                    error = ErrorCode.ILLEGAL_GENERATION
                answers[key] = error
            request.answer(
                commit_wire.TxnOffsetCommitResponse(
                    topics=[
                        commit_wire.TxnOffsetCommitResponseTopic(
                            topic.name,
                            [
                                commit_wire.TxnOffsetCommitResponsePartition(
                                    one.partition_index,
                                    int(answers[topic.name, one.partition_index]),
                                )
                                for one in topic.partitions
                            ],
                        )
                        for topic in body.topics
                    ]
                )
            )

        if not offsets:
            reply({})
            return
        error = self._transactions.check_produce(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            self._home(body.group_id),
            implicit=request.version >= IMPLICIT_OFFSETS,
            abortable=request.version >= ABORTABLE_OFFSETS,
        )
        if error is not ErrorCode.NONE:
            reply({(one.topic, one.partition): error for one in offsets})
            return
        commit = Commit(
            group_id=body.group_id,
            offsets=tuple(offsets),
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id,
            producer_id=body.producer_id,
            producer_epoch=body.producer_epoch,
        )
        self._groups.commit(commit, reply)

    def end(self, request: Request[end_wire.EndTxnRequest]) -> None:
        body = request.body

        def reply(identity: Identity) -> None:
            request.answer(
                end_wire.EndTxnResponse(
                    error_code=int(_known(identity.error, request.version >= 2)),
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                )
            )

        if self._protected(body.transactional_id, request):
            reply(Identity(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        self._transactions.end(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            body.committed,
            reply,
            version=OWN_EPOCHS if request.version >= END_RAISES_EPOCH else 0,
        )

    def write_markers(self, request: Request[markers_wire.WriteTxnMarkersRequest]) -> None:
        """An administrator ends a transaction that hangs (`kafka-transactions abort`)."""
        results: list[markers_wire.WritableTxnMarkerResult] = []

        def steps() -> Iterator[None]:
            for marker in request.body.markers:
                topics: list[markers_wire.WritableTxnMarkerTopicResult] = []
                results.append(markers_wire.WritableTxnMarkerResult(marker.producer_id, topics))
                for topic in marker.topics:
                    rows: list[markers_wire.WritableTxnMarkerPartitionResult] = []
                    topics.append(markers_wire.WritableTxnMarkerTopicResult(topic.name, rows))
                    for index in dict.fromkeys(topic.partition_indexes):
                        error = self._write_marker(marker, topic.name, index, project)
                        rows.append(
                            markers_wire.WritableTxnMarkerPartitionResult(index, int(error))
                        )
                        yield
            request.answer(markers_wire.WriteTxnMarkersResponse(markers=results))

        project = request.connection.project
        request.in_turns(steps(), self._coordination.loop)

    def _write_marker(
        self, marker: markers_wire.WritableTxnMarker, topic: str, index: int, project: bool
    ) -> ErrorCode:
        aborts_offsets = (
            topic == self._coordination.offsets_topic.name and not marker.transaction_result
        )
        if write_refusal(topic, project=project) is not None and not aborts_offsets:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return self._coordination.write_marker(
            (topic, index),
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
        )

    def describe(self, request: Request[describe_wire.DescribeTransactionsRequest]) -> None:
        states = []
        for transactional_id in dict.fromkeys(request.body.transactional_ids):
            found = self._transactions.transactions.get(transactional_id)
            if found is None:
                missing = (
                    ErrorCode.INVALID_REQUEST
                    if transactional_id == ""
                    else ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
                )
                states.append(
                    describe_wire.TransactionState(
                        error_code=int(missing), transactional_id=transactional_id
                    )
                )
                continue
            record = found.record
            topics: dict[str, list[int]] = {}
            if record.state is State.ONGOING or record.state.prepared:
                for name, index in sorted(record.partitions):
                    topics.setdefault(name, []).append(index)
            states.append(
                describe_wire.TransactionState(
                    transactional_id=transactional_id,
                    transaction_state=record.state.label,
                    transaction_timeout_ms=record.timeout_ms,
                    transaction_start_time_ms=record.started_at,
                    producer_id=record.producer_id,
                    producer_epoch=record.epoch,
                    topics=[
                        describe_wire.TopicData(name, indexes) for name, indexes in topics.items()
                    ],
                )
            )
        request.answer(describe_wire.DescribeTransactionsResponse(transaction_states=states))

    def list(self, request: Request[list_wire.ListTransactionsRequest]) -> None:
        body = request.body
        labels = {state.label: state for state in State}
        unknown = [name for name in body.state_filters if name not in labels]
        states = {labels[name] for name in body.state_filters if name in labels}
        producers = set(body.producer_id_filters)
        longer_than = body.duration_filter if request.version >= 1 else -1
        matches: Callable[[str], object] = bool
        if request.version >= 2 and body.transactional_id_pattern:
            try:
                matches = Pattern(body.transactional_id_pattern).matches
            except PatternError:
                request.answer(_INVALID_PATTERN)
                return
        now = self._coordination.wall_ms()
        rows = []
        for transactional_id, transaction in self._transactions.transactions.items():
            record = transaction.record
            if (body.state_filters and record.state not in states) or (
                producers and record.producer_id not in producers
            ):
                continue
            if longer_than >= 0 and not 0 <= record.started_at < now - longer_than:
                continue
            try:
                matched = matches(transactional_id)
            except PatternError:
                request.answer(_INVALID_PATTERN)
                return
            if matched:
                rows.append(
                    list_wire.TransactionState(
                        transactional_id, record.producer_id, record.state.label
                    )
                )
        request.answer(
            list_wire.ListTransactionsResponse(
                unknown_state_filters=unknown, transaction_states=rows
            )
        )

    def _protected(self, transactional_id: str | None, request: Request[Any]) -> bool:
        """Whether a stranger would end an open transaction of the project: half a tick,
        committed, is what followers and sinks would take for whole."""
        found = self._transactions.transactions.get(transactional_id or "")
        return (
            found is not None
            and not request.connection.project
            and found.record.state is State.ONGOING
            and any(name.startswith(PROJECT_PREFIX) for name, _ in found.record.partitions)
        )

    def _home(self, group_id: str) -> TopicPartition:
        topic = self._coordination.offsets_topic
        return topic.name, partition_of(group_id, topic.partitions)


_INVALID_PATTERN = list_wire.ListTransactionsResponse(
    error_code=int(ErrorCode.INVALID_REGULAR_EXPRESSION)
)


def _known(error: ErrorCode, knows_fencing: bool) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and not knows_fencing:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
