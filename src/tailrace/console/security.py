"""Who may call: loopback without a token, others with one, foreign pages never.

Three things are checked before any route: the Host header names an address we serve
(DNS rebinding), a browser's Origin is our own (cross-site requests), and the token is
right where one is needed. Answers carry headers that let the page load nothing but its
own files, so a hostile record value has nothing to run or to talk to.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import orjson

from tailrace.console.errors import ForeignRequestError, TokenNeededError
from tailrace.errors import ConfigValueError, TailraceError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
]  # fmt: skip


@lru_cache(maxsize=100)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def need_token(host: str, token: str | None) -> None:
    """Refuse to listen to other machines without a token."""
    if not is_loopback(host) and not token:
        raise ConfigValueError(
            "a console that other machines can reach needs a token",
            detail=f"console.listen names {host}",
            hint='set console.token = "${CONSOLE_TOKEN}", or listen on 127.0.0.1',
        )


class Guard:
    """ASGI middleware that lets only rightful requests through."""

    def __init__(self, app: App, *, host: str, token: str | None) -> None:
        self._app = app
        self._loopback = is_loopback(host)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        try:
            self._check(scope, headers)
        except TailraceError as error:
            status = 401 if isinstance(error, TokenNeededError) else 403
            await _refuse(send, status, error)
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self._loopback and not is_loopback(host.rpartition(":")[0].strip("[]") or host):
            raise ForeignRequestError(
                f"this console does not serve the host {host!r}", hint="call it as 127.0.0.1"
            )
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            raise ForeignRequestError(f"a page of {origin} may not call this console")
        if self._token is None:
            return
        public = scope["path"] == "/" or scope["path"].startswith("/assets/")
        if public and scope["method"] == "GET":
            return  # the page itself holds no data
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if not given:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            given = query.get("token", [""])[0].encode()
        if not hmac.compare_digest(given, self._token.encode()):
            raise TokenNeededError(
                "this console needs its token", hint="send Authorization: Bearer TOKEN"
            )


async def _refuse(send: Send, status: int, error: TailraceError) -> None:
    body = orjson.dumps(error.as_dict())
    headers = [(b"content-type", b"application/json"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
