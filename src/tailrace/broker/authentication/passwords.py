"""PLAIN and SCRAM: log-in by name and password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tailrace.broker.authentication.exchange import Later, Refused, Step
from tailrace.broker.authentication.users import STRONGEST, Passwords, Users
from tailrace.broker.errors import LogInSettingError
from tailrace.broker.principals import Principal
from tailrace.masking import remember
from tailrace.project_token import PROJECT_USER
from tailrace.wire.scram import (
    FirstMessage,
    ScramCredential,
    ScramError,
    ScramServer,
    make_credential,
    read_first,
)

if TYPE_CHECKING:
    from tailrace.broker.authentication.delegation import DelegationTokens

_OPTION = re.compile(r'\s*([A-Za-z0-9_.@-]{1,300})\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s";]+))')
_PLAIN_WRONG = "Authentication failed: Invalid username or password"


class Plain:
    """RFC 4616: one message with name and password."""

    def __init__(
        self, users: Users, passwords: Passwords, own: Mapping[str, ScramCredential]
    ) -> None:
        self._users = users
        self._passwords = passwords
        self._own = own

    def step(self, message: bytes) -> Step | Later:
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise Refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        try:
            acting_for, name = parts[0].decode(), parts[1].decode()
        except UnicodeDecodeError:
            raise Refused("Invalid SASL/PLAIN response: not UTF-8") from None
        password = parts[2]
        if not name:
            raise Refused("Authentication failed: username not specified")
        if not password:
            raise Refused("Authentication failed: password not specified")
        found = self._find(name)
        credential = found if found is not None else self._users.decoy(name, STRONGEST)
        outcome = Step(b"", Principal("User", name))
        own_name = not acting_for or acting_for == name
        if found is not None and own_name and self._passwords.known(found, password):
            return outcome

        def check() -> Step:
            right = self._passwords.check(credential, password)
            if not (right and found is not None):
                raise Refused(_PLAIN_WRONG)
            if not own_name:
                raise Refused(
                    "Authentication failed: Client requested an authorization id that is "
                    "different from username"
                )
            return outcome

        return check

    def _find(self, name: str) -> ScramCredential | None:
        found = self._own.get(name)
        if found is not None:
            return found
        kept = self._users.of(name)
        return kept[-1] if kept else None


class Scram:
    """RFC 5802, with the password's keys of `Users` or a delegation token's."""

    def __init__(
        self,
        mechanism: str,
        users: Users,
        tokens: DelegationTokens | None,
        own: Mapping[str, ScramCredential],
    ) -> None:
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._own = own
        self._first: FirstMessage | None = None
        self._server: ScramServer | None = None
        self._outcome: Step | None = None

    def step(self, message: bytes) -> Step:
        wrong = (
            "Authentication failed during authentication due to invalid credentials with "
            f"SASL mechanism {self._mechanism}"
        )
        try:
            if self._server is None:
                return self._challenge(read_first(message))
            proof = self._server.finish(message)
        except ScramError:
            raise Refused(wrong) from None
        if self._outcome is None:  # nobody's credential: its proof cannot be right
            raise Refused(wrong)
        found = self._outcome
        return Step(proof, found.principal, found.expires_at_ms, found.by_token)

    def _challenge(self, first: FirstMessage) -> Step:
        credential: ScramCredential | None = None
        name = first.username
        if first.token:
            token = self._tokens.valid(name) if self._tokens is not None else None
            if token is not None:
                credential = token.credential(self._mechanism)
                self._outcome = Step(b"", token.owner, token.expires_at_ms, by_token=True)
        else:
            credential = self._own.get(name) or self._users.credential(name, self._mechanism)
            if credential is not None and credential.mechanism != self._mechanism:
                credential = None
            if credential is not None:
                self._outcome = Step(b"", Principal("User", name))
        if credential is None:
            credential = self._users.decoy(name, self._mechanism)
        self._server = ScramServer(first, credential)
        return Step(self._server.challenge())


def users_of_jaas(text: str, setting: str) -> dict[str, ScramCredential]:
    """The users that a `sasl.jaas.config` of PLAIN names, by `user_NAME="PASSWORD"`.

    Raises LogInSettingError.
    """
    found: dict[str, ScramCredential] = {}
    if not text.strip():
        return found
    module, _, rest = text.strip().rstrip(";").partition(" required")
    if not module.endswith("PlainLoginModule"):
        raise LogInSettingError(
            f"{setting} cannot be read",
            hint="org.apache.kafka.common.security.plain.PlainLoginModule required "
            'user_NAME="PASSWORD";',
        )
    position = 0
    rest = rest.rstrip()
    while position < len(rest):
        match = _OPTION.match(rest, position)
        if match is None:
            raise LogInSettingError(
                f"{setting} cannot be read", detail=f"at its character {position}, after required"
            )
        position = match.end()
        name = match[1]
        value = match[3] if match[3] is not None else re.sub(r"\\(.)", r"\1", match[2])
        remember(value)
        if name.startswith("user_"):
            if name[5:] == PROJECT_USER:
                raise LogInSettingError(f"{setting} names {PROJECT_USER}, the project itself")
            found[name[5:]] = make_credential("SCRAM-SHA-256", value.encode())
    return found
