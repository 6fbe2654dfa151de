"""SaslHandshake and SaslAuthenticate of connections that may send requests already.

By one mechanism the project is known on any listener. Whoever logged in over SASL does it again
(KIP-368) with any other; the log-in itself is `authentication.log_in`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tailrace.wire.project_identity import MECHANISM

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

LONGEST_PROOF_BYTES = 1024


class Identity:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._token = broker.project_token

    def handshake(self, request: Request[SaslHandshakeRequest]) -> None:
        known = request.body.mechanism == MECHANISM
        log_in = request.connection.log_in
        if known:
            request.connection.challenge = self._token.challenge()
        elif log_in is not None:
            request.answer(log_in.again(request.body.mechanism, request.version))
            return
        error = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        request.answer(SaslHandshakeResponse(error_code=int(error), mechanisms=[MECHANISM]))

    def authenticate(self, request: Request[SaslAuthenticateRequest]) -> None:
        connection, data = request.connection, request.body.auth_bytes
        error = ErrorCode.NONE
        message: str | None = None
        answer = b""
        if not connection.challenge:
            error = ErrorCode.ILLEGAL_SASL_STATE
            message = "SaslAuthenticate request received after successful authentication"
        elif not data:
            answer = connection.challenge
        else:
            challenge, connection.challenge = connection.challenge, self._token.challenge()
            connection.project = len(data) <= LONGEST_PROOF_BYTES and self._token.accepts(
                challenge, data
            )
            if not connection.project:
                error, message = ErrorCode.SASL_AUTHENTICATION_FAILED, "this is not the token"
        request.answer(
            SaslAuthenticateResponse(
                error_code=int(error), error_message=message, auth_bytes=answer
            )
        )


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = Identity(broker)
    yield Route(ApiKey.SASL_HANDSHAKE, 0, 1, handlers.handshake)
    yield Route(ApiKey.SASL_AUTHENTICATE, 0, 2, handlers.authenticate)
