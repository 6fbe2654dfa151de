"""Users of a log that log in by SCRAM: add, remove, list. A password never leaves this process;
what is sent is the salted password, as Kafka's own tools send it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from tailrace.client.admin import Admin
from tailrace.client.errors import RequestError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.scram import MECHANISMS

NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_NAMES = {number: name for name, number in NUMBERS.items()}


@dataclass(frozen=True, slots=True)
class User:
    """A user's name, and the iterations of each mechanism they may log in with."""

    name: str
    mechanisms: dict[str, int]


class Users:
    """Asks an admin's connections about users."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def every(self) -> list[User]:
        """All users there are."""
        from tailrace.wire.messages import describe_user_scram_credentials as messages

        response = self._admin.ask(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            messages.DescribeUserScramCredentialsRequest(users=None),
            messages.DescribeUserScramCredentialsResponse,
        )
        _judge(response.error_code, "describing users", response.error_message)
        return [
            User(row.user, {_NAMES[one.mechanism]: one.iterations for one in row.credential_infos})
            for row in response.results
            if row.error_code == ErrorCode.NONE
        ]

    def add(
        self, name: str, password: str, mechanisms: Iterable[str], iterations: int = 4096
    ) -> None:
        """Let a user log in with this password. Raises RequestError."""
        from tailrace.wire.messages import alter_user_scram_credentials as messages

        for mechanism in mechanisms:  # Kafka takes one of a user in a request
            salt = secrets.token_bytes(24)
            salted = hashlib.pbkdf2_hmac(MECHANISMS[mechanism], password.encode(), salt, iterations)
            self._alter(
                messages.AlterUserScramCredentialsRequest(
                    upsertions=[
                        messages.ScramCredentialUpsertion(
                            name=name,
                            mechanism=NUMBERS[mechanism],
                            iterations=iterations,
                            salt=salt,
                            salted_password=salted,
                        )
                    ]
                )
            )

    def remove(self, name: str) -> None:
        """Forget a user. Raises RequestError if there is none."""
        from tailrace.wire.messages import alter_user_scram_credentials as messages

        kept = next((each.mechanisms for each in self.every() if each.name == name), {})
        for mechanism in kept or {"SCRAM-SHA-512": 0}:  # to hear that there is none
            self._alter(
                messages.AlterUserScramCredentialsRequest(
                    deletions=[
                        messages.ScramCredentialDeletion(name=name, mechanism=NUMBERS[mechanism])
                    ]
                )
            )

    def _alter(self, request: object) -> None:
        from tailrace.wire.messages import alter_user_scram_credentials as messages

        assert isinstance(request, messages.AlterUserScramCredentialsRequest)
        response = self._admin.ask(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            request,
            messages.AlterUserScramCredentialsResponse,
        )
        for row in response.results:
            _judge(row.error_code, f"changing user {row.user}", row.error_message)


def _judge(code: int, what: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise RequestError.of(code, what, detail=message or "")
