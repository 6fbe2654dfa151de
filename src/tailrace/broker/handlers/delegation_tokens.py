"""Create, renew, expire and describe delegation tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tailrace.broker.authentication.delegation import DelegationTokens, Token
from tailrace.broker.authorization.acls import (
    CREATE_TOKENS,
    DELEGATION_TOKEN,
    DESCRIBE,
    DESCRIBE_TOKENS,
    USER,
)
from tailrace.broker.errors import UserError
from tailrace.broker.principals import ANONYMOUS, Principal
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import create_delegation_token as creating
from tailrace.wire.messages import describe_delegation_token as describing
from tailrace.wire.messages import expire_delegation_token as expiring
from tailrace.wire.messages import renew_delegation_token as renewing

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection
    from tailrace.broker.server import Broker


class TokenRequests:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def create(self, request: Request[creating.CreateDelegationTokenRequest]) -> None:
        body, requester = request.body, request.connection.principal
        owner = requester
        if request.version >= 3 and body.owner_principal_name:
            owner = Principal(body.owner_principal_type or "User", body.owner_principal_name)
        answer = creating.CreateDelegationTokenResponse(
            principal_type=owner.kind,
            principal_name=owner.name,
            token_requester_principal_type=requester.kind,
            token_requester_principal_name=requester.name,
        )
        try:
            tokens = self._tokens(request.connection)
            if owner != requester and not self._may(request, CREATE_TOKENS, USER, str(owner)):
                raise UserError(
                    "nobody may ask for another user's token",
                    int(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
                )
            renewers = [Principal(one.principal_type, one.principal_name) for one in body.renewers]
            token = tokens.create(owner, requester, renewers, body.max_lifetime_ms)
        except TailraceError as error:
            answer.error_code = _code(error)
        else:
            answer.issue_timestamp_ms = token.issued_at_ms
            answer.expiry_timestamp_ms = token.expires_at_ms
            answer.max_timestamp_ms = token.last_at_ms
            answer.token_id, answer.hmac = token.id, token.hmac
        request.answer(answer)

    def renew(self, request: Request[renewing.RenewDelegationTokenRequest]) -> None:
        answer = renewing.RenewDelegationTokenResponse()
        try:
            answer.expiry_timestamp_ms = self._tokens(request.connection).renew(
                request.body.hmac, request.connection.principal, request.body.renew_period_ms
            )
        except TailraceError as error:
            answer.error_code = _code(error)
        request.answer(answer)

    def expire(self, request: Request[expiring.ExpireDelegationTokenRequest]) -> None:
        answer = expiring.ExpireDelegationTokenResponse()
        try:
            answer.expiry_timestamp_ms = self._tokens(request.connection).expire(
                request.body.hmac, request.connection.principal, request.body.expiry_time_period_ms
            )
        except TailraceError as error:
            answer.error_code = _code(error)
        request.answer(answer)

    def describe(self, request: Request[describing.DescribeDelegationTokenRequest]) -> None:
        answer = describing.DescribeDelegationTokenResponse()
        principal, wanted = request.connection.principal, request.body.owners
        owners = (
            None
            if wanted is None
            else {Principal(one.principal_type, one.principal_name) for one in wanted}
        )
        try:
            tokens = self._tokens(request.connection)
        except TailraceError as error:
            answer.error_code = _code(error)
        else:
            answer.tokens = [
                _described(token)
                for token in tokens
                if (owners is None or token.owner in owners)
                and (
                    token.belongs_to(principal)
                    or self._may(request, DESCRIBE, DELEGATION_TOKEN, token.id)
                    or self._may(request, DESCRIBE_TOKENS, USER, str(token.owner))
                )
            ]
        request.answer(answer)

    def _may(self, request: Request[Any], operation: int, resource: int, name: str) -> bool:
        """Whether the client may do this to what is not its own. Where nobody decides, it may not."""
        connection, authorizer = request.connection, self._broker.authorizer
        if connection.project or authorizer is None:
            return connection.project
        return authorizer.allows(connection, operation, resource, name, request.api_key)

    def _tokens(self, connection: Connection) -> DelegationTokens:
        """Raises UserError unless there are tokens and this connection may ask about them."""
        tokens = self._broker.authentication.tokens
        if tokens is None:
            raise UserError(
                "delegation tokens are off", int(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
            )
        by_token = connection.log_in is not None and connection.log_in.by_token
        if by_token or connection.principal == ANONYMOUS or connection.endpoint.protocol == "PLAINTEXT":  # fmt: skip
            raise UserError(
                "tokens are for those who have logged in, and not by a token",
                int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
            )
        return tokens


def _described(token: Token) -> describing.DescribedDelegationToken:
    return describing.DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_at_ms,
        expiry_timestamp=token.expires_at_ms,
        max_timestamp=token.last_at_ms,
        token_id=token.id,
        hmac=token.hmac,
        renewers=[
            describing.DescribedDelegationTokenRenewer(
                principal_type=each.kind, principal_name=each.name
            )
            for each in token.renewers
        ],
    )


def _code(error: TailraceError) -> int:
    return int(getattr(error, "kafka_code", ErrorCode.UNKNOWN_SERVER_ERROR))


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = TokenRequests(broker)
    yield Route(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, handlers.create)
    yield Route(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, handlers.renew)
    yield Route(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, handlers.expire)
    yield Route(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, handlers.describe)
