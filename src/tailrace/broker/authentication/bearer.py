"""OAUTHBEARER (RFC 7628): a signed token says who this is, and until when.

The keys come from one URL that the operator allows by name. A token is taken if it is signed by
one of them with an asymmetric algorithm, was issued by whom and for whom it should be, and has
`exp`, `iat` and a subject. Everything here that may read from the network runs beside the loop.
"""

from __future__ import annotations

import json
import logging
import re
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from typing import IO, TYPE_CHECKING, Any

from tailrace.broker.authentication.exchange import Later, Refused, Step
from tailrace.broker.errors import LogInSettingError
from tailrace.broker.principals import Principal
from tailrace.extras import require
from tailrace.project_token import PROJECT_USER

if TYPE_CHECKING:
    from tailrace.broker.settings import BrokerSettings
    from tailrace.clock import Clock

log = logging.getLogger("tailrace.broker.authentication")

ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]  # fmt: skip
LONGEST_TOKEN_BYTES = 64 * 1024
MOST_KEYS_BYTES = 1 << 20
FETCH_SECONDS = 10.0
LOOKED_AGAIN_SECONDS = 10.0
"""Not more often than this are keys read again because a token names one that is not there."""

_MESSAGE = re.compile(
    rb"n,(?:a=([^,\x01]{0,1024}))?,\x01((?:[A-Za-z]{1,64}=[^\x01]*\x01){1,20})\x01"
)
_AUTH = re.compile(rb"(?:^|\x01)auth=[Bb]earer +([A-Za-z0-9._~+/=-]+)\x01")
_INVALID = b'{"status":"invalid_token"}'


class Bearer:
    """One log-in by a token."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._failed = False

    def step(self, message: bytes) -> Step | Later:
        if self._failed:  # the client has seen why, as the RFC wants it
            raise Refused(_INVALID.decode())
        match = _MESSAGE.fullmatch(message)
        auth = None if match is None else _AUTH.search(match[2])
        if match is None or auth is None or len(auth[1]) > LONGEST_TOKEN_BYTES:
            raise Refused("Authentication failed: invalid OAUTHBEARER client first message")
        acting_for, token = match[1], auth[1].decode("ascii")

        def check() -> Step:
            try:
                user, expires_at_ms = self._keys.user_of(token)
            except Refused as refused:
                log.info("token refused", extra={"reason": str(refused)})
                self._failed = True
                return Step(_INVALID)
            if acting_for and acting_for.decode("utf-8", "replace") != user:
                self._failed = True
                return Step(_INVALID)
            return Step(b"", Principal("User", user), expires_at_ms)

        return check


class Keys:
    """The keys that sign a listener's tokens, and what else a token must say."""

    def __init__(self, listener: str, settings: BrokerSettings, clock: Clock) -> None:
        require("joserfc")
        self._clock = clock
        self._guard = threading.Lock()
        self._keys: Any = None
        self._read_at = 0.0
        self._tried_at = -LOOKED_AGAIN_SECONDS

        def text(name: str) -> str:
            return settings.of_listener(listener, f"sasl.oauthbearer.{name}", "OAUTHBEARER")

        self._url = text("jwks.endpoint.url")
        self._issuer = text("expected.issuer")
        self._audience = [one.strip() for one in text("expected.audience").split(",") if one.strip()]  # fmt: skip
        self._skew = int(text("clock.skew.seconds"))
        self._subject = text("sub.claim.name")
        self._refresh_seconds = int(text("jwks.endpoint.refresh.ms")) / 1000
        allowed = [one.strip() for one in settings.text(ALLOWED).split(",") if one.strip()]
        if not self._url:
            raise LogInSettingError(
                f"OAUTHBEARER on listener {listener} has no keys",
                hint="set sasl.oauthbearer.jwks.endpoint.url to where your issuer publishes them",
            )
        if self._url not in allowed:
            raise LogInSettingError(
                "the URL of the keys that sign tokens is not in the list of allowed ones",
                hint=f"add it to {ALLOWED}",
            )
        if urllib.parse.urlsplit(self._url).scheme not in ("https", "http", "file"):
            raise LogInSettingError("keys of tokens are read from https, http or file URLs")

    def user_of(self, token: str) -> tuple[str, int]:
        """Who the token is for, and when it ends in milliseconds. Raises Refused."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        header = _header(token)
        keys = self._current(header.get("kid"))
        try:
            claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise Refused(f"signature: {type(error).__name__}") from None
        return self._checked(claims)

    def _checked(self, claims: dict[str, Any]) -> tuple[str, int]:
        now = self._clock.wall_ms() / 1000
        expires, issued = _number(claims.get("exp")), _number(claims.get("iat"))
        begins = _number(claims.get("nbf", 0))
        if expires + self._skew <= now:
            raise Refused("expired")
        if max(issued, begins) - self._skew > now:
            raise Refused("not valid yet")
        if self._issuer and claims.get("iss") != self._issuer:
            raise Refused("another issuer")
        if self._audience:
            given = claims.get("aud")
            named = given if isinstance(given, list) else [given]
            if not any(one in self._audience for one in named):
                raise Refused("for another audience")
        user = claims.get(self._subject)
        if not isinstance(user, str) or not user.strip():
            raise Refused("no subject")
        if user == PROJECT_USER:  # an issuer may let anybody choose a name
            raise Refused("a name that nobody can be given")
        return user, int(expires * 1000)

    def _current(self, wanted: str | None) -> Any:
        """The keys; read again if they are old, or lack the one that is wanted."""
        with self._guard:
            now = self._clock.monotonic()
            old = self._keys is None or now - self._read_at > self._refresh_seconds
            lacks = (
                self._keys is not None
                and wanted is not None
                and all(each.kid != wanted for each in self._keys)
            )
            if (old or lacks) and now - self._tried_at >= LOOKED_AGAIN_SECONDS:
                self._tried_at = now
                try:
                    self._keys = _read_keys(self._url)
                    self._read_at = now
                except Exception as error:
                    log.error(
                        "keys of tokens cannot be read",
                        extra={
                            "host": urllib.parse.urlsplit(self._url).hostname,
                            "error": type(error).__name__,
                        },
                    )
            if self._keys is None:
                raise Refused("no keys to check it with")
            return self._keys


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An allowed URL does not allow another."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str,
        headers: Message, newurl: str,
    ) -> None:  # fmt: skip
        return None


def _read_keys(url: str) -> Any:
    from joserfc.jwk import KeySet

    opener = urllib.request.build_opener(
        _NoRedirect(), urllib.request.HTTPSHandler(context=ssl.create_default_context())
    )
    with opener.open(url, timeout=FETCH_SECONDS) as answer:
        data = answer.read(MOST_KEYS_BYTES + 1)
    if len(data) > MOST_KEYS_BYTES:
        raise ValueError("too many keys")
    found = json.loads(data)["keys"]
    signing = [one for one in found if one.get("kty") != "oct" and one.get("use", "sig") == "sig"]
    return KeySet.import_key_set({"keys": signing})


def _header(token: str) -> dict[str, Any]:
    from joserfc.jws import extract_compact

    try:
        return dict(extract_compact(token.encode()).headers())
    except Exception:
        raise Refused("it is no signed token") from None


def _number(value: object) -> float:
    """A time of a token. Raises Refused if it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11:
        return value
    raise Refused("exp, iat or nbf is missing or no number")
