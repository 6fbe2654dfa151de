"""DescribeUserScramCredentials and AlterUserScramCredentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.authentication.users import check_iterations, check_name
from tailrace.broker.errors import UserError
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import alter_user_scram_credentials as altering
from tailrace.wire.messages import describe_user_scram_credentials as describing
from tailrace.wire.scram import ScramCredential, credential_of

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NUMBER_OF = {name: number for number, name in NUMBERS.items()}
LONGEST_SALT_BYTES = 1024


class UserRequests:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self, request: Request[describing.DescribeUserScramCredentialsRequest]) -> None:
        users = self._broker.authentication.users
        wanted = request.body.users
        if wanted:
            times = Counter(one.name for one in wanted)
            rows = [self._row(name, count) for name, count in times.items()]
        else:
            rows = [self._row(name, 1) for name, _ in users]
        request.answer(
            describing.DescribeUserScramCredentialsResponse(error_message=None, results=rows)
        )

    def _row(self, name: str, times: int) -> describing.DescribeUserScramCredentialsResult:
        found = self._broker.authentication.users.of(name)
        error, message = ErrorCode.NONE, None
        if times > 1:
            error = ErrorCode.DUPLICATE_RESOURCE
            message = f"Cannot describe SCRAM credentials for the same user twice: {name}"
            found = []
        elif not found:
            error = ErrorCode.RESOURCE_NOT_FOUND
            message = f"Attempt to describe a user credential that does not exist: {name}"
        return describing.DescribeUserScramCredentialsResult(
            user=name,
            error_code=int(error),
            error_message=message,
            credential_infos=[
                describing.CredentialInfo(
                    mechanism=_NUMBER_OF[each.mechanism], iterations=each.iterations
                )
                for each in found
            ],
        )

    def alter(self, request: Request[altering.AlterUserScramCredentialsRequest]) -> None:
        body = request.body
        changes: list[altering.ScramCredentialDeletion | altering.ScramCredentialUpsertion] = [
            *body.deletions,
            *body.upsertions,
        ]
        times = Counter(one.name for one in changes)
        results = {one.name: self._alter(one, times[one.name]) for one in changes}
        request.answer(
            altering.AlterUserScramCredentialsResponse(
                results=[
                    altering.AlterUserScramCredentialsResult(
                        user=name, error_code=code, error_message=message
                    )
                    for name, (code, message) in results.items()
                ]
            )
        )

    def _alter(
        self,
        change: altering.ScramCredentialDeletion | altering.ScramCredentialUpsertion,
        times: int,
    ) -> tuple[int, str | None]:
        if times > 1:
            return (
                int(ErrorCode.DUPLICATE_RESOURCE),
                "A user credential cannot be altered twice in the same request",
            )
        mechanism = NUMBERS.get(change.mechanism)
        if mechanism is None:
            return int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), "Unknown SCRAM mechanism"
        try:
            check_name(change.name)
            made: ScramCredential | None = None
            if isinstance(change, altering.ScramCredentialUpsertion):
                made = _credential(mechanism, change)
            self._broker.authentication.users.change(change.name, {mechanism: made})
        except TailraceError as error:
            code = getattr(error, "kafka_code", int(ErrorCode.UNKNOWN_SERVER_ERROR))
            return code, error.message
        return 0, None


def _credential(mechanism: str, change: altering.ScramCredentialUpsertion) -> ScramCredential:
    """Raises UserError."""
    check_iterations(change.iterations)
    if not 0 < len(change.salt) <= LONGEST_SALT_BYTES or not change.salted_password:
        raise UserError(
            "the salt or the salted password is empty", int(ErrorCode.UNACCEPTABLE_CREDENTIAL)
        )
    if len(change.salted_password) > LONGEST_SALT_BYTES:
        raise UserError("the salted password is too long", int(ErrorCode.UNACCEPTABLE_CREDENTIAL))
    return credential_of(
        mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
    )


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = UserRequests(broker)
    yield Route(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, handlers.describe)
    yield Route(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, handlers.alter)
