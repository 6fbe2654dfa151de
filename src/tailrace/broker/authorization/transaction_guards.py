"""Requests of producers with an id, and of those who look after transactions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tailrace.broker.authorization.acls import (
    ALTER,
    CLUSTER_ACTION,
    DESCRIBE,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.authorization.guarding import (
    NO_CLUSTER,
    NO_GROUP,
    NO_TOPIC,
    NO_TRANSACTION,
    Guard,
    Serve,
    amend,
)
from tailrace.broker.router import Request
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker


def _init(
    caller: Caller, request: Request[init_producer_id.InitProducerIdRequest], serve: Serve
) -> None:
    transactional_id = request.body.transactional_id
    code = 0
    if transactional_id is not None:
        if not caller.may(WRITE, TRANSACTIONAL_ID, transactional_id):
            code = NO_TRANSACTION
    elif not caller.may_cluster(IDEMPOTENT_WRITE, told=False) and not caller.may_some(WRITE, TOPIC):
        code = NO_CLUSTER
        caller.may_cluster(IDEMPOTENT_WRITE)  # for the audit log
    if code:
        request.answer(
            init_producer_id.InitProducerIdResponse(
                error_code=code, producer_id=-1, producer_epoch=-1
            )
        )
    else:
        serve(request)


def _add_partitions(
    broker: Broker,
    caller: Caller,
    request: Request[add_partitions_to_txn.AddPartitionsToTxnRequest],
    serve: Serve,
) -> None:
    body = request.body
    topics = body.v3_and_below_topics

    def answer(codes: dict[str, int]) -> None:
        def code(name: str, index: int) -> int:
            if name in codes:
                return codes[name]
            if broker.partition_by_name(name, index) is None:
                return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return int(ErrorCode.OPERATION_NOT_ATTEMPTED)

        request.answer(
            add_partitions_to_txn.AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=[
                    add_partitions_to_txn.AddPartitionsToTxnTopicResult(
                        topic.name,
                        [
                            add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                                index, code(topic.name, index)
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in topics
                ]
            )
        )

    if not caller.may(WRITE, TRANSACTIONAL_ID, body.v3_and_below_transactional_id):
        answer(dict.fromkeys((topic.name for topic in topics), NO_TRANSACTION))
        return
    _, others = caller.parted(WRITE, TOPIC, topics, _name)
    if not others:
        serve(request)
        return
    # None is added if one is refused: the others are told apart by whether they exist.
    answer(dict.fromkeys((topic.name for topic in others), NO_TOPIC))


def _add_offsets(
    caller: Caller, request: Request[add_offsets_to_txn.AddOffsetsToTxnRequest], serve: Serve
) -> None:
    body = request.body
    code = 0
    if not caller.may(WRITE, TRANSACTIONAL_ID, body.transactional_id):
        code = NO_TRANSACTION
    elif not caller.may(READ, GROUP, body.group_id):
        code = NO_GROUP
    if code:
        request.answer(add_offsets_to_txn.AddOffsetsToTxnResponse(error_code=code))
    else:
        serve(request)


def _commit_offsets(
    caller: Caller, request: Request[txn_offset_commit.TxnOffsetCommitRequest], serve: Serve
) -> None:
    body = request.body

    def rows(topics: list[Any], code: int) -> list[Any]:
        return [
            txn_offset_commit.TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    txn_offset_commit.TxnOffsetCommitResponsePartition(one.partition_index, code)
                    for one in topic.partitions
                ],
            )
            for topic in topics
        ]

    code = 0
    if not caller.may(WRITE, TRANSACTIONAL_ID, body.transactional_id):
        code = NO_TRANSACTION
    elif not caller.may(READ, GROUP, body.group_id):
        code = NO_GROUP
    if code:
        request.answer(txn_offset_commit.TxnOffsetCommitResponse(topics=rows(body.topics, code)))
        return
    body.topics, others = caller.parted(READ, TOPIC, body.topics, _name)

    def change(answer: txn_offset_commit.TxnOffsetCommitResponse) -> None:
        answer.topics += rows(others, NO_TOPIC)

    amend(request, change)
    serve(request)


def _end(caller: Caller, request: Request[end_txn.EndTxnRequest], serve: Serve) -> None:
    if caller.may(WRITE, TRANSACTIONAL_ID, request.body.transactional_id):
        serve(request)
    else:
        request.answer(
            end_txn.EndTxnResponse(error_code=NO_TRANSACTION, producer_id=-1, producer_epoch=-1)
        )


def _write_markers(
    caller: Caller, request: Request[write_txn_markers.WriteTxnMarkersRequest], serve: Serve
) -> None:
    if caller.may_cluster(ALTER, told=False) or caller.may_cluster(CLUSTER_ACTION):
        serve(request)
        return
    request.answer(
        write_txn_markers.WriteTxnMarkersResponse(
            markers=[
                write_txn_markers.WritableTxnMarkerResult(
                    marker.producer_id,
                    [
                        write_txn_markers.WritableTxnMarkerTopicResult(
                            topic.name,
                            [
                                write_txn_markers.WritableTxnMarkerPartitionResult(
                                    index, NO_CLUSTER
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.body.markers
            ]
        )
    )


def _describe(
    caller: Caller,
    request: Request[describe_transactions.DescribeTransactionsRequest],
    serve: Serve,
) -> None:
    body = request.body
    body.transactional_ids, others = caller.parted(
        DESCRIBE, TRANSACTIONAL_ID, body.transactional_ids, str
    )

    def change(answer: describe_transactions.DescribeTransactionsResponse) -> None:
        for state in answer.transaction_states:
            state.topics, _ = caller.parted(
                DESCRIBE, TOPIC, state.topics, lambda topic: str(topic.topic)
            )
        answer.transaction_states += [
            describe_transactions.TransactionState(error_code=NO_TRANSACTION, transactional_id=one)
            for one in dict.fromkeys(others)
        ]

    amend(request, change)
    serve(request)


def _list(
    caller: Caller, request: Request[list_transactions.ListTransactionsRequest], serve: Serve
) -> None:
    def change(answer: list_transactions.ListTransactionsResponse) -> None:
        answer.transaction_states, _ = caller.parted(
            DESCRIBE,
            TRANSACTIONAL_ID,
            answer.transaction_states,
            lambda state: str(state.transactional_id),
            told=False,
        )

    amend(request, change)
    serve(request)


def _name(topic: Any) -> str:
    return str(topic.name)


def guards(broker: Broker) -> dict[int, Guard]:
    """The guards of this module."""
    return {
        ApiKey.INIT_PRODUCER_ID: _init,
        ApiKey.ADD_PARTITIONS_TO_TXN: partial(_add_partitions, broker),
        ApiKey.ADD_OFFSETS_TO_TXN: _add_offsets,
        ApiKey.TXN_OFFSET_COMMIT: _commit_offsets,
        ApiKey.END_TXN: _end,
        ApiKey.WRITE_TXN_MARKERS: _write_markers,
        ApiKey.DESCRIBE_TRANSACTIONS: _describe,
        ApiKey.LIST_TRANSACTIONS: _list,
    }
