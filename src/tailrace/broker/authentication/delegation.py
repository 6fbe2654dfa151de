"""Delegation tokens: a short-lived name and password that act for the user who asked for them.

The password is an HMAC of the token's id under `delegation.token.secret.key`, so the journal holds
no secret: who it is for, who may renew it, and three times. A client shows it by SCRAM with
`tokenauth=true`. A token cannot be used to make others.
"""

from __future__ import annotations

import base64
import hmac
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tailrace.broker.errors import UserError
from tailrace.broker.principals import Principal
from tailrace.wire.errors import ErrorCode
from tailrace.wire.scram import ScramCredential, make_credential

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

log = logging.getLogger("tailrace.broker.authentication")

MOST_TOKENS = 100_000
MOST_RENEWERS = 100


@dataclass(frozen=True, slots=True)
class Token:
    """One delegation token; times in milliseconds."""

    id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_at_ms: int
    expires_at_ms: int
    last_at_ms: int
    """It is never renewed past this."""
    hmac: bytes = field(repr=False)
    _credentials: dict[str, ScramCredential] = field(
        default_factory=dict, repr=False, compare=False
    )

    def credential(self, mechanism: str) -> ScramCredential:
        """What proves the token's password."""
        if mechanism not in self._credentials:
            password = base64.b64encode(self.hmac)
            self._credentials[mechanism] = make_credential(mechanism, password)
        return self._credentials[mechanism]

    def belongs_to(self, principal: Principal) -> bool:
        """Whether this user may renew and see it."""
        return principal in (self.owner, self.requester, *self.renewers)


class DelegationTokens:
    """Owns the tokens of a running broker."""

    def __init__(self, broker: Broker) -> None:
        settings = broker.settings
        self._broker = broker
        self._secret = settings.text("delegation.token.secret.key").encode()
        self._longest_ms = settings.integer("delegation.token.max.lifetime.ms")
        self._usual_ms = settings.integer("delegation.token.expiry.time.ms")
        self._check_seconds = settings.integer("delegation.token.expiry.check.interval.ms") / 1000
        self._by_id: dict[str, Token] = {}
        self._by_hmac: dict[bytes, Token] = {}
        for token_id, values in broker.store.journal.catalogue.tokens.items():
            self._put(self._from_json(token_id, values))

    def begin(self) -> None:
        """Remove expired tokens from now on, now and then."""
        self._broker.loop.call_later(self._check_seconds, self._sweep)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._by_id.values())

    def valid(self, token_id: str) -> Token | None:
        """The token, unless it has expired."""
        token = self._by_id.get(token_id)
        if token is None or token.expires_at_ms <= self._broker.clock.wall_ms():
            return None
        return token

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Sequence[Principal],
        lifetime_ms: int,
    ) -> Token:
        """A new token; on disk on return. Raises UserError, StorageError."""
        if any(each.kind != "User" for each in (owner, *renewers)):
            raise UserError("only users have tokens", int(ErrorCode.INVALID_PRINCIPAL_TYPE))
        if len(self._by_id) >= MOST_TOKENS or len(renewers) > MOST_RENEWERS:
            raise UserError("there are too many tokens", int(ErrorCode.POLICY_VIOLATION))
        now = self._broker.clock.wall_ms()
        longest = self._longest_ms if lifetime_ms <= 0 else min(lifetime_ms, self._longest_ms)
        token_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        token = Token(
            token_id, owner, requester, tuple(renewers), now,
            min(now + self._usual_ms, now + longest), now + longest, self._hmac(token_id),
        )  # fmt: skip
        self._keep(token)
        return token

    def renew(self, shown: bytes, principal: Principal, period_ms: int) -> int:
        """Let it last longer; when it expires now. Raises UserError."""
        token = self._shown(shown, principal)
        now = self._broker.clock.wall_ms()
        period = period_ms if period_ms >= 0 else self._usual_ms
        token = replace(token, expires_at_ms=min(token.last_at_ms, now + period))
        self._keep(token)
        return token.expires_at_ms

    def expire(self, shown: bytes, principal: Principal, period_ms: int) -> int:
        """Let it end after the period, at once if that is negative. Raises UserError."""
        now = self._broker.clock.wall_ms()
        if period_ms < 0:
            token = self._shown(shown, principal, expired=True)
            self._forget(token)
            return now
        token = self._shown(shown, principal)
        token = replace(token, expires_at_ms=min(token.last_at_ms, now + period_ms))
        self._keep(token)
        return token.expires_at_ms

    def _shown(self, shown: bytes, principal: Principal, *, expired: bool = False) -> Token:
        token = self._by_hmac.get(bytes(shown))
        if token is None:
            raise UserError("there is no such token", int(ErrorCode.DELEGATION_TOKEN_NOT_FOUND))
        if not token.belongs_to(principal):
            raise UserError(
                "the token belongs to somebody else",
                int(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
            )
        if not expired and token.expires_at_ms <= self._broker.clock.wall_ms():
            raise UserError("the token has expired", int(ErrorCode.DELEGATION_TOKEN_EXPIRED))
        return token

    def _keep(self, token: Token) -> None:
        self._broker.store.change_token(token.id, _as_json(token))
        self._put(token)

    def _put(self, token: Token) -> None:
        self._by_id[token.id] = token
        self._by_hmac[token.hmac] = token

    def _forget(self, token: Token) -> None:
        self._broker.store.change_token(token.id, None)
        self._by_id.pop(token.id, None)
        self._by_hmac.pop(token.hmac, None)

    def _sweep(self) -> None:
        now = self._broker.clock.wall_ms()
        try:
            for token in [each for each in self if each.expires_at_ms <= now][:100]:
                self._forget(token)
        finally:
            self.begin()

    def _hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def _from_json(self, token_id: str, values: Mapping[str, Any]) -> Token:
        return Token(
            token_id,
            Principal("User", values["owner"]),
            Principal("User", values["requester"]),
            tuple(Principal("User", one) for one in values["renewers"]),
            values["issued_at"],
            values["expires_at"],
            values["last_at"],
            self._hmac(token_id),
        )


def _as_json(token: Token) -> dict[str, object]:
    return {
        "owner": token.owner.name,
        "requester": token.requester.name,
        "renewers": [each.name for each in token.renewers],
        "issued_at": token.issued_at_ms,
        "expires_at": token.expires_at_ms,
        "last_at": token.last_at_ms,
    }
