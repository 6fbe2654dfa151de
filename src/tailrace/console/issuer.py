"""Asking an issuer of OpenID Connect who somebody is: the authorization code flow with PKCE.

    start()     the issuer's page to send a browser to, and what to remember until it is back
    finish()    the code it came back with → the user's name and groups

Everything from the issuer is bounded, comes over TLS (or this machine's loopback) and is
followed nowhere. An ID token counts only if one of the issuer's keys signed it, by an asymmetric
algorithm, for this client, with the nonce of this very log-in. Blocking: call it from a thread.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import urlsplit

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.console.errors import LogInFailedError
from tailrace.console_login import OidcSettings
from tailrace.errors import TailraceError
from tailrace.extras import require
from tailrace.loopback import is_loopback

log = logging.getLogger("tailrace.console.login")

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]  # fmt: skip
MOST_BYTES = 1 << 20
FETCH_SECONDS = 10.0
FRESH_SECONDS = 3600.0
ASKED_AGAIN_SECONDS = 10.0
SKEW_SECONDS = 60
MOST_GROUPS = 10_000
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Start:
    """A log-in that has begun: where it goes on, and what must be known when it is back."""

    location: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class Person:
    """Whom the issuer vouches for."""

    name: str
    groups: frozenset[str]


class Issuer:
    """One issuer; keeps its addresses and keys for an hour. Safe on any thread."""

    def __init__(self, settings: OidcSettings, clock: Clock = SYSTEM) -> None:
        require("authlib")
        require("joserfc")
        self.settings = settings
        self._clock = clock
        self._guard = threading.Lock()
        self._about: dict[str, Any] | None = None
        self._keys: Any = None
        self._read_at = 0.0
        self._tried_at = -ASKED_AGAIN_SECONDS
        self._context = ssl.create_default_context()

    def start(self, redirect: str) -> Start:
        """Begin a log-in that comes back to `redirect`."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        about, _ = self._known()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        location = prepare_grant_uri(
            about["authorization_endpoint"],
            self.settings.client_id,
            "code",
            redirect_uri=redirect,
            scope=self.settings.scopes,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return Start(location, state, nonce, verifier)

    def finish(self, code: str, nonce: str, verifier: str, redirect: str) -> Person:
        """Whom this code stands for. Raises LogInFailedError."""
        about, _ = self._known()
        tokens = self._exchange(about, code, verifier, redirect)
        given = tokens.get("id_token")
        if not isinstance(given, str):
            raise _refused("its answer has no ID token")
        access = tokens.get("access_token")
        claims = self._checked(given, nonce, access if isinstance(access, str) else None)
        if found_at(claims, self.settings.claim) is None and isinstance(access, str):
            claims = {**self._asked(about, access, str(claims["sub"])), **claims}
        return person_of(claims, self.settings)

    # the exchange

    def _exchange(
        self, about: Mapping[str, Any], code: str, verifier: str, redirect: str
    ) -> dict[str, Any]:
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        settings = self.settings
        body = prepare_token_request(
            "authorization_code", redirect_uri=redirect, code=code, code_verifier=verifier
        )
        offered = about.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = "none"
        if settings.client_secret is not None:
            basic = "client_secret_basic" in offered or "client_secret_post" not in offered
            method = "client_secret_basic" if basic else "client_secret_post"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        sign = ClientAuth(settings.client_id, settings.client_secret, method)
        url, headers, body = sign.prepare("POST", about["token_endpoint"], headers, body)
        return self._fetch(url, headers, body.encode())

    def _checked(self, token: str, nonce: str, access: str | None) -> dict[str, Any]:
        """The claims of an ID token that is for us, now, and of this log-in."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jws import extract_compact

        settings = self.settings
        try:
            kid = extract_compact(token.encode()).headers().get("kid")
            _, keys = self._known(kid)
            decoded = jwt.decode(token, keys, algorithms=ALGORITHMS)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {"iss": {"essential": True, "value": settings.issuer},
                 "aud": {"essential": True, "value": settings.client_id}},
                {"nonce": nonce, "client_id": settings.client_id, "access_token": access},
            )  # fmt: skip
            claims.validate(now=self._clock.wall_ms() // 1000, leeway=SKEW_SECONDS)
        except TailraceError:
            raise
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _refused(f"the ID token is not to be trusted: {type(error).__name__}") from None
        found = dict(claims)
        audience = found.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        # What matters most is looked at here as well: it does not hang on a library's options.
        if (
            found.get("iss") != settings.issuer
            or settings.client_id not in named
            or not isinstance(found.get("nonce"), str)
            or not hmac.compare_digest(found["nonce"].encode(), nonce.encode())
            or not isinstance(found.get("sub"), str)
        ):
            raise _refused("the ID token is for somebody else")
        return found

    def _asked(self, about: Mapping[str, Any], access: str, subject: str) -> dict[str, Any]:
        """More about the user, where the ID token does not tell the groups."""
        place = about.get("userinfo_endpoint")
        if not isinstance(place, str):
            return {}
        found = self._fetch(_safe(place), {"Authorization": f"Bearer {access}"})
        if found.get("sub") != subject:
            raise _refused("it tells of another user")
        return found

    # what the issuer publishes

    def _known(self, wanted: str | None = None) -> tuple[dict[str, Any], Any]:
        """Its addresses and keys; read again if they are old, or lack the key that is wanted."""
        with self._guard:
            now = self._clock.monotonic()
            old = self._about is None or now - self._read_at > FRESH_SECONDS
            lacks = self._keys is not None and wanted is not None and all(
                each.kid != wanted for each in self._keys
            )  # fmt: skip
            if (old or lacks) and now - self._tried_at >= ASKED_AGAIN_SECONDS:
                self._tried_at = now
                try:
                    self._about, self._keys = self._read()
                    self._read_at = now
                except LogInFailedError:
                    if self._about is None:
                        raise
                    log.error("issuer not read again", extra={"issuer": self.settings.issuer})
            if self._about is None:
                raise _refused("it did not answer a moment ago")
            return self._about, self._keys

    def _read(self) -> tuple[dict[str, Any], Any]:
        from authlib.oidc.discovery import get_well_known_url
        from joserfc.jwk import KeySet

        about = self._fetch(get_well_known_url(self.settings.issuer, external=True))
        if about.get("issuer") != self.settings.issuer:
            raise _refused(
                f"its discovery document is of {str(about.get('issuer'))[:LONGEST_NAME]!r}"
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _safe(about.get(name))
        found = self._fetch(about["jwks_uri"]).get("keys")
        try:
            signing = [
                one
                for one in found or ()
                if one.get("kty") != "oct" and one.get("use", "sig") == "sig"
            ]
            return about, KeySet.import_key_set({"keys": signing})
        except Exception as error:  # whatever it publishes, it is no set of keys
            raise _refused(f"its keys cannot be read: {type(error).__name__}") from None

    def _fetch(
        self, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> dict[str, Any]:
        """The object at an address of the issuer. Raises LogInFailedError."""
        asked = urllib.request.Request(
            url, data=body, headers={"Accept": "application/json", **(headers or {})}
        )
        opener = urllib.request.build_opener(
            _NoRedirect(), urllib.request.HTTPSHandler(context=self._context)
        )
        try:
            with opener.open(asked, timeout=FETCH_SECONDS) as answer:
                data = answer.read(MOST_BYTES + 1)
            found = orjson.loads(data) if len(data) <= MOST_BYTES else None
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            log.error(
                "issuer did not answer as it should",
                extra={"host": urlsplit(url).hostname, "error": str(reason)[:LONGEST_NAME]},
            )
            raise _refused("it did not answer, or refused the log-in") from None
        if not isinstance(found, dict):
            raise _refused("its answer is no object")
        return found


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What was asked of one address is asked of no other."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str,
        headers: Message, newurl: str,
    ) -> None:  # fmt: skip
        return None


def _safe(place: object) -> str:
    """An address that secrets may be sent to."""
    url = urlsplit(place) if isinstance(place, str) else urlsplit("")
    if url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or "")):
        assert isinstance(place, str)
        return place
    raise _refused("one of its addresses is not https")


def found_at(claims: Mapping[str, Any], name: str) -> object:
    """A claim by its name, or by a path with dots, `realm_access.roles`; None if absent."""
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def person_of(claims: Mapping[str, Any], settings: OidcSettings) -> Person:
    """Name and groups; the subject stands in for a name that is not told."""
    given = found_at(claims, settings.claim)
    listed = [*given.split(), given] if isinstance(given, str) else given
    groups = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    name = found_at(claims, settings.name)
    shown = name if isinstance(name, str) and name.strip() else str(claims["sub"])
    return Person(shown[:LONGEST_NAME], frozenset(groups[:MOST_GROUPS]))


def _refused(why: str) -> LogInFailedError:
    return LogInFailedError(
        "the issuer did not log anybody in",
        detail=why,
        hint="try again; the console's log says more, and console.oidc names the issuer",
    )
