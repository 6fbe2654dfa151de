"""What guards are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.broker.authorization.acls import (
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
)
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.router import Request
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message

Serve = Callable[[Request[Any]], None]
Guard = Callable[[Caller, Request[Any], Serve], None]

NOT_ASKED = -(2**31)
"""The bits of authorized operations that nobody asked for."""

REFUSED: dict[int, ErrorCode] = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error by which each kind of resource is refused."""

NO_TOPIC = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
NO_GROUP = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
NO_CLUSTER = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
NO_TRANSACTION = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def amend(request: Request[Any], change: Callable[[Any], None]) -> None:
    """Let `change` do its part on the answer when it comes."""

    def amended(response: Message) -> Message:
        change(response)
        return response

    request.amend = amended


def refuse(request: Request[Any], response: Message) -> None:
    """Answer in place of the handler."""
    request.answer(response)
