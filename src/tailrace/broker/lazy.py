"""Coordinators and administration, loaded when somebody needs them.

Most of a broker's start is importing what groups, transactions and administration stand
on. A broker whose log has no groups and no transactions yet offers their requests from the
tables below and loads the code with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.init_producer_id import InitProducerIdResponse

if TYPE_CHECKING:
    from tailrace.broker.coordination import Coordination
    from tailrace.broker.server import Broker

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
FEATURES = {"transaction.version": 2, "group.version": 1, "share.version": 1}

OFFERED: tuple[tuple[ApiKey, int, int], ...] = (
    (ApiKey.OFFSET_COMMIT, 2, 10),
    (ApiKey.OFFSET_FETCH, 1, 10),
    (ApiKey.FIND_COORDINATOR, 0, 6),
    (ApiKey.JOIN_GROUP, 0, 9),
    (ApiKey.HEARTBEAT, 0, 4),
    (ApiKey.LEAVE_GROUP, 0, 5),
    (ApiKey.SYNC_GROUP, 0, 5),
    (ApiKey.DESCRIBE_GROUPS, 0, 6),
    (ApiKey.LIST_GROUPS, 0, 5),
    (ApiKey.DELETE_GROUPS, 0, 2),
    (ApiKey.OFFSET_DELETE, 0, 0),
    (ApiKey.INIT_PRODUCER_ID, 0, 6),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3),
    (ApiKey.ADD_OFFSETS_TO_TXN, 0, 4),
    (ApiKey.END_TXN, 0, 5),
    (ApiKey.WRITE_TXN_MARKERS, 1, 2),
    (ApiKey.TXN_OFFSET_COMMIT, 0, 5),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, 0),
    (ApiKey.LIST_TRANSACTIONS, 0, 2),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1),
)


ADMINISTRATION: dict[str, tuple[tuple[ApiKey, int, int], ...]] = {
    "topics": (
        (ApiKey.CREATE_TOPICS, 2, 7),
        (ApiKey.DELETE_TOPICS, 1, 6),
        (ApiKey.CREATE_PARTITIONS, 0, 3),
        (ApiKey.DESCRIBE_LOG_DIRS, 1, 5),
    ),
    "configs": (
        (ApiKey.DESCRIBE_CONFIGS, 1, 4),
        (ApiKey.ALTER_CONFIGS, 0, 2),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
        (ApiKey.LIST_CONFIG_RESOURCES, 0, 1),
    ),
    "offsets": (
        (ApiKey.LIST_OFFSETS, 1, 11),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4),
        (ApiKey.DELETE_RECORDS, 0, 2),
    ),
    "producers": ((ApiKey.DESCRIBE_PRODUCERS, 0, 0),),
    "users": (
        (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0),
    ),
    "delegation_tokens": (
        (ApiKey.CREATE_DELEGATION_TOKEN, 1, 3),
        (ApiKey.RENEW_DELEGATION_TOKEN, 1, 2),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3),
    ),
    "identity": ((ApiKey.SASL_HANDSHAKE, 0, 1), (ApiKey.SASL_AUTHENTICATE, 0, 2)),
    "acls": (
        (ApiKey.DESCRIBE_ACLS, 1, 3),
        (ApiKey.CREATE_ACLS, 1, 3),
        (ApiKey.DELETE_ACLS, 1, 3),
    ),
    "quotas": (
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1),
        (ApiKey.ALTER_CLIENT_QUOTAS, 0, 1),
    ),
}
"""Modules of `handlers`, and what they serve."""


def administration(broker: Broker) -> Iterable[Route]:
    """Routes that load their module of `handlers` and hand the request on to it."""
    for name, offered in ADMINISTRATION.items():
        for key, minimum, maximum in offered:
            yield Route(key, minimum, maximum, _loading(broker, name))


def _loading(broker: Broker, name: str) -> Callable[[Request[Any]], None]:
    def first(request: Request[Any]) -> None:
        module = import_module(f"tailrace.broker.handlers.{name}")
        broker.router.add(module.routes(broker))
        broker.router.routes[request.api_key].handler(request)

    return first


def routes(
    load: Callable[[], Coordination], next_producer_id: Callable[[], int]
) -> Iterable[Route]:
    """Routes that load the coordinators and hand the request on to them."""

    def first(request: Request[Any]) -> None:
        if request.api_key == ApiKey.INIT_PRODUCER_ID and request.body.transactional_id is None:
            # An idempotent producer is no reason to load them.
            try:
                answer = InitProducerIdResponse(producer_id=next_producer_id(), producer_epoch=0)
            except OSError:
                answer = InitProducerIdResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            request.answer(answer)
            return
        for route in load().routes():
            if route.api_key == request.api_key:
                route.handler(request)
                return

    for key, minimum, maximum in OFFERED:
        yield Route(key, minimum, maximum, first)
