"""A client's log-in over SASL: SaslHandshake, then the messages of the mechanism.

Done after the versions are agreed and again before the session's lifetime ends (KIP-368).
"""

from __future__ import annotations

import json
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field

from tailrace.client.errors import AuthenticationError
from tailrace.clock import SYSTEM
from tailrace.security import Security
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tailrace.wire.scram import ScramClient, ScramError

HANDSHAKE, AUTHENTICATE = APIS[ApiKey.SASL_HANDSHAKE], APIS[ApiKey.SASL_AUTHENTICATE]
Request = Callable[[Api, Message], Message]
TOKEN_SECONDS = 20.0  # to fetch one
MOST_TOKEN_BYTES = 1 << 20


def log_in(address: str, security: Security, request: Request) -> float | None:
    """Identify ourselves; the seconds until it must be done again, None if never.

    Raises AuthenticationError.
    """
    mechanism = security.mechanism or ""
    answer = request(HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
    assert isinstance(answer, SaslHandshakeResponse)
    if answer.error_code != ErrorCode.NONE:
        raise AuthenticationError(
            f"{address} does not offer {mechanism}",
            detail=f"It offers: {', '.join(answer.mechanisms) or 'nothing'}.",
            hint="set mechanism under [log.security]",
        )

    def send(message: bytes) -> SaslAuthenticateResponse:
        reply = request(AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message))
        assert isinstance(reply, SaslAuthenticateResponse)
        if reply.error_code != ErrorCode.NONE:
            raise AuthenticationError(
                f"{address} refuses the log-in of {security.username!r}",
                detail=(reply.error_message or "")[:300],
                hint="check username, password and mechanism under [log.security]",
            )
        return reply

    match mechanism:
        case "PLAIN":
            last = send(f"\0{security.username}\0{security.password}".encode())
        case "OAUTHBEARER":
            last = send(b"n,,\x01auth=Bearer %b\x01\x01" % _TOKENS.token(security).encode())
            if last.auth_bytes:  # a refusal by RFC 7628, which wants one more message
                send(b"\x01")
        case _:
            last = _scram(address, security, send)
    lifetime = last.session_lifetime_ms / 1000
    return lifetime if lifetime > 0 else None


def _scram(
    address: str, security: Security, send: Callable[[bytes], SaslAuthenticateResponse]
) -> SaslAuthenticateResponse:
    client = ScramClient(security.mechanism or "", security.username or "", security.password or "")
    try:
        challenge = send(client.first())
        last = send(client.final(challenge.auth_bytes))
        client.verify(last.auth_bytes)
    except ScramError as error:
        raise AuthenticationError(
            f"the log-in at {address} cannot be trusted",
            detail=str(error),
            hint="another server than the one you mean may have answered",
        ) from error
    return last


@dataclass(slots=True)
class _Tokens:
    """Access tokens by who asked for them, kept until shortly before they expire."""

    kept: dict[Security, tuple[str, float]] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def token(self, security: Security) -> str:
        with self.guard:
            token, until = self.kept.get(security, ("", 0.0))
            now = SYSTEM.monotonic()
            if now >= until:
                token, seconds = _fetch_token(security)
                self.kept[security] = (token, now + 0.8 * seconds)
            return token


_TOKENS = _Tokens()


def _fetch_token(security: Security) -> tuple[str, float]:
    """A token by the grant of client credentials (RFC 6749, 4.4), and its seconds."""
    endpoint = security.token_endpoint or ""
    form = {
        "grant_type": "client_credentials",
        "client_id": security.username or "",
        "client_secret": security.password or "",
        **({"scope": security.scope} if security.scope else {}),
    }
    request = urllib.request.Request(
        endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
    )
    host = urllib.parse.urlsplit(endpoint).hostname or ""
    if not endpoint.startswith(("https://", "http://")):
        raise AuthenticationError("token_endpoint is no http address")
    context = ssl.create_default_context(cadata=security.ca) if security.ca else None
    try:
        with urllib.request.urlopen(request, timeout=TOKEN_SECONDS, context=context) as answer:
            told = json.loads(answer.read(MOST_TOKEN_BYTES))
        return str(told["access_token"]), float(told.get("expires_in", 300))
    except (OSError, ValueError, KeyError, TypeError) as error:
        status = f"status {error.code}" if isinstance(error, urllib.error.HTTPError) else ""
        raise AuthenticationError(
            f"no token could be had from {host}",
            detail=status or type(error).__name__,
            hint="check token_endpoint, username and password under [log.security]",
        ) from error
