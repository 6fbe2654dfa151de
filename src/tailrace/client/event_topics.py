"""Topics that hold events, as a client sees them: they must lose nothing.

Our broker knows them by a setting and refuses the change itself. Apache Kafka has no place for
such a mark; there the transactional id of their owners tells, which it keeps for seven days
after the last owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tailrace.client.cluster import COORDINATOR_MOVED, TRANSACTION, Cluster, TryAgain
from tailrace.client.errors import BrokerUnavailableError, EventsCompactedError
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

_DESCRIBE = APIS[ApiKey.DESCRIBE_TRANSACTIONS]
LIMITS = ("retention.ms", "retention.bytes")


def owner_id(topic: str, partition: int) -> str:
    """The transactional id whose epochs fence the owners of a partition of events."""
    return f"tailrace.events.{topic}.{partition}"


def refuse_loss(name: str, settings: Mapping[str, str | None]) -> None:
    """Raises EventsCompactedError if these settings of an event topic would lose events."""
    wrong = _losing(settings)
    if wrong:
        raise EventsCompactedError(
            f"the event topic {name!r} would lose events",
            detail=", ".join(wrong),
            hint=f"`tailrace topic alter {name} --config cleanup.policy=delete --config "
            "retention.ms=-1`; to take something back, write a compensating event",
        )


def refuse_change(cluster: Cluster, name: str, changes: Mapping[str, str | None]) -> None:
    """`refuse_loss` for a change of settings, if the topic turns out to hold events."""
    if _losing(changes) and _has_owner(cluster, owner_id(name, 0)):
        refuse_loss(name, changes)


def _losing(settings: Mapping[str, str | None]) -> list[str]:
    policy = settings.get("cleanup.policy") or "delete"
    wrong = [f"cleanup.policy={policy}"] if "compact" in policy else []
    for limit in LIMITS:
        value = settings.get(limit)
        if value is not None and not value.strip().startswith("-"):
            wrong.append(f"{limit}={value}")
        elif limit in settings and value is None and limit == "retention.ms":
            wrong.append(f"{limit} back to its default")
    return wrong


class Fence(NamedTuple):
    """What the log lets write a partition of events: any other producer or epoch is refused."""

    producer_id: int
    epoch: int


def fences(cluster: Cluster, topic: str, partitions: int) -> dict[int, Fence]:
    """The fence of each partition that has had an owner; the cluster is closed."""
    try:
        found = {
            number: _described(cluster, owner_id(topic, number)) for number in range(partitions)
        }
    finally:
        cluster.close()
    return {number: fence for number, fence in found.items() if fence is not None}


def _has_owner(cluster: Cluster, transactional_id: str) -> bool:
    return _described(cluster, transactional_id) is not None


def _described(cluster: Cluster, transactional_id: str) -> Fence | None:
    def ask() -> Fence | None:
        try:
            connection = cluster.coordinator(transactional_id, TRANSACTION)
            if not connection.offers(_DESCRIBE):
                return None
            response = connection.request(
                _DESCRIBE, DescribeTransactionsRequest([transactional_id])
            )
        except BrokerUnavailableError:
            cluster.forget_coordinator(transactional_id, TRANSACTION)
            raise
        assert isinstance(response, DescribeTransactionsResponse)
        state = response.transaction_states[0]
        code = state.error_code
        if code in COORDINATOR_MOVED:
            cluster.forget_coordinator(transactional_id, TRANSACTION)
            raise TryAgain(code)
        return Fence(state.producer_id, state.producer_epoch) if code == ErrorCode.NONE else None

    return cluster.retry(ask, f"asking for {transactional_id}")
