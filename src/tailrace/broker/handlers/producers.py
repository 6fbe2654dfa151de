"""DescribeProducers. InitProducerId is the transaction coordinator's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""

    def partition(topic: str, index: int) -> PartitionResponse:
        found = broker.partition_by_name(topic, index)
        if found is None:
            return PartitionResponse(
                partition_index=index,
                error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                error_message=None,
            )
        return PartitionResponse(
            partition_index=index,
            error_message=None,
            active_producers=[
                ProducerState(
                    producer_id=row.producer_id,
                    producer_epoch=row.epoch,
                    last_sequence=row.last_sequence,
                    last_timestamp=row.last_timestamp,
                    coordinator_epoch=row.coordinator_epoch,
                    current_txn_start_offset=row.current_transaction_start,
                )
                for row in found.describe_producers()
            ],
        )

    def describe(request: Request[DescribeProducersRequest]) -> None:
        wanted: dict[str, dict[int, None]] = {}  # each once: a partition may have many producers
        for topic in request.body.topics:
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        request.answer(
            DescribeProducersResponse(
                topics=[
                    TopicResponse(
                        name=name, partitions=[partition(name, index) for index in indexes]
                    )
                    for name, indexes in wanted.items()
                ]
            )
        )

    yield Route(ApiKey.DESCRIBE_PRODUCERS, 0, 0, describe)
