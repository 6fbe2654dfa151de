"""Who may call: those who know the token or have logged in, from the console's own page or from none.

Before any route is reached, the Host header must name an address we serve (DNS
rebinding), a browser's request must come from our own page (`Origin`, `Sec-Fetch-Site`),
its body must be small, and the token must be right. The token travels as `Authorization:
Bearer …`; a page exchanges it once, at `POST /api/session`, for a cookie that scripts
cannot read and other sites cannot send, because an event stream cannot carry the header.
People may log in instead (`login`): at an issuer, or at a proxy before the console.
Operators may do everything, viewers only what changes nothing. Whatever changes something, and whoever tried, is told to the log stream
`console.audit`.

Answers carry headers that let the page load nothing but its own files, so a hostile
record value has nothing to run or to talk to.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.console.errors import (
    BodyTooLargeError,
    ConsoleError,
    ForeignRequestError,
    TokenNeededError,
    TooManyGuessesError,
    ViewerError,
)
from tailrace.console.guesses import Guesses
from tailrace.console.login import DONE, LOGIN, LOGOUT, Caller, LogIns, Reply
from tailrace.console_login import OPERATOR, VIEWER, OidcSettings, ProxySettings
from tailrace.loopback import is_loopback

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = dict[bytes, bytes]

log = logging.getLogger("tailrace.console.login")
audit = logging.getLogger("tailrace.console.audit")

HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]  # fmt: skip
SESSION, ME = "/api/session", "/api/me"
READING = frozenset({SESSION, LOGOUT, "/api/sql"})
"""What is asked by POST and changes nothing; and trying an event against stored queries."""
BODY_BYTES = 1 << 20
_STATUS: dict[type[ConsoleError], int] = {
    TokenNeededError: 401,
    BodyTooLargeError: 413,
    TooManyGuessesError: 429,
}


_is_loopback = lru_cache(maxsize=100)(is_loopback)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call a console.

    `host` is where it listens. `token` None: callers need none; `chosen`: a person made it
    up, so that guesses are counted. `viewer`: the token of those who may only look. `public` is the origin of a proxy before it, `cookie`
    the name of its cookie: cookies are shared by all ports of a host, so it names the port.
    """

    host: str
    token: str | None = field(repr=False)
    chosen: bool = True
    public: str | None = None
    encrypted: bool = False
    cookie: str = "tailrace"
    viewer: str | None = field(default=None, repr=False)
    oidc: OidcSettings | None = None
    proxy: ProxySettings | None = None

    @property
    def open(self) -> bool:
        """Whether nobody is asked who they are."""
        return self.token is None and self.oidc is None and self.proxy is None

    @property
    def tokens(self) -> dict[str, bytes]:
        """The token of each role; none if callers need none."""
        given = {OPERATOR: self.token, VIEWER: self.viewer if self.token is not None else None}
        return {role: token.encode() for role, token in given.items() if token is not None}


def _is_reading(path: str) -> bool:
    """Whether a POST changes nothing."""
    tries = path.startswith("/api/percolations/") and path.endswith("/test")
    return path in READING or (tries and path.count("/") == 4)


def session_of(token: bytes) -> bytes:
    """The cookie's value: it proves a token, and does not give it away."""
    return hmac.new(token, b"tailrace console", "sha256").hexdigest().encode()


class Guard:
    """ASGI middleware that lets only rightful requests through."""

    def __init__(self, app: App, access: Access, clock: Clock = SYSTEM) -> None:
        self._app = app
        self._access = access
        self._loopback = is_loopback(access.host)
        self._tokens = access.tokens
        self._sessions = {role: session_of(token) for role, token in self._tokens.items()}
        self._cookie = access.cookie.encode()
        # Where one logs in, nobody is asked to have done so.
        self._public = frozenset({LOGIN, DONE} if access.oidc is not None else ())
        self._guesses = Guesses(clock)
        self._log_ins = LogIns(
            access.oidc,
            access.proxy,
            cookie=access.cookie,
            encrypted=access.encrypted,
            guesses=self._guesses,
            clock=clock,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        changes = scope["method"] not in ("GET", "HEAD") and not _is_reading(scope["path"])
        caller: Caller | None = None
        try:
            caller = self._check(scope, headers)
            if changes and caller is not None and caller.role == VIEWER:
                raise ViewerError(
                    "viewers may look, and not operate",
                    hint="open the link that `tailrace up` printed, or log in as one of the operators",
                )
        except ConsoleError as error:
            status = _STATUS.get(type(error), 403)
            if changes:
                self._tell(scope, caller, status)
            await self._refuse(send, status, error)
            return
        if await self._own(scope, headers, send, caller):
            return
        scope["state"] = {
            **scope.get("state", {}),
            "role": OPERATOR if caller is None else caller.role,
        }

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
                if changes:
                    self._tell(scope, caller, message["status"])
            await send(message)

        if caller is None or caller.seconds is None:
            await self._app(scope, receive, with_headers)
            return
        try:  # an event stream lasts no longer than the session that it came in by
            async with asyncio.timeout(caller.seconds):
                await self._app(scope, receive, with_headers)
        except TimeoutError:
            log.info("session is over", extra={"caller": self._peer(scope), "user": caller.user})

    async def _own(self, scope: Scope, headers: Headers, send: Send, caller: Caller | None) -> bool:
        """Answer what is about the caller alone; whether it was that."""
        asked = (scope["method"], scope["path"])
        reply: Reply
        if asked == ("POST", SESSION):
            reply = self._begin_session(caller)
        elif asked == ("GET", ME):
            reply = self._about(caller)
        elif asked == ("POST", LOGOUT):
            reply = self._log_ins.log_out()
        elif self._access.oidc is not None and asked == ("GET", LOGIN):
            reply = await self._log_ins.begin(self._redirect(headers))
        elif self._access.oidc is not None and asked == ("GET", DONE):
            cookie = _cookie(headers, self._cookie + b"-login")
            reply = await self._log_ins.finish(
                scope.get("query_string", b""), cookie, self._redirect(headers), self._peer(scope)
            )
        else:
            return False
        await _send(send, reply.status, reply.headers, reply.body)
        return True

    def _redirect(self, headers: Headers) -> str:
        """Where the issuer sends a browser back to."""
        access = self._access
        if access.public is not None:
            return access.public + DONE
        host = headers.get(b"host", b"").decode("latin-1")
        return f"{'https' if access.encrypted else 'http'}://{host}{DONE}"

    def _peer(self, scope: Scope) -> str:
        """The address of the caller: for the proxy's connections, of whom it speaks for."""
        peer = _caller(scope)
        proxy = self._access.proxy
        if proxy is not None and proxy.trusts(peer):
            for name, value in reversed(scope["headers"]):
                if name == b"x-forwarded-for":
                    return value.decode("latin-1").rpartition(",")[2].strip()[:100] or peer
        return peer

    def _check(self, scope: Scope, headers: Headers) -> Caller | None:
        """The caller; None if nobody is asked, or for the page itself."""
        self._check_place(scope, headers)
        _check_size(headers)
        path = scope["path"]
        public = path == "/" or path.startswith("/assets/") or path in self._public
        if self._access.open or (public and scope["method"] == "GET"):  # the page holds no data
            return None
        return self._check_caller(scope, headers)

    def _check_place(self, scope: Scope, headers: Headers) -> None:
        """Refuse what another page asks, or asks of another host."""
        access = self._access
        host = headers.get(b"host", b"").decode("latin-1").lower()
        public = access.public is not None and host == access.public.partition("://")[2]
        if self._loopback and not public and not _is_loopback(_name(host)):
            raise ForeignRequestError(
                f"this console does not serve the host {host!r}",
                hint="call it as 127.0.0.1, or name the address of a proxy as console.public",
            )
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        # By its public name the console is asked as it is public, with TLS or without.
        ours = origin == access.public or (not public and origin.partition("://")[2] == host)
        if origin and not ours:
            raise ForeignRequestError(
                f"a page of {origin} may not call this console",
                hint="if a proxy before the console has this address, name it as console.public",
            )
        site = headers.get(b"sec-fetch-site", b"")
        if site in (b"cross-site", b"same-site") and not _opens_page(scope, headers):
            # An image or a script of another page, which carries no Origin: its page cannot
            # read the answer, but asking alone costs work.
            raise ForeignRequestError("a page of another site may not call this console")

    def _check_caller(self, scope: Scope, headers: Headers) -> Caller:
        cookie = _cookie(headers, self._cookie)
        known = self._log_ins.by_proxy(_caller(scope), scope["headers"])
        if known is None and cookie is not None:
            role = _whose(cookie, self._sessions)
            known = Caller(role) if role is not None else None
            if known is None and self._access.oidc is not None:
                known = self._log_ins.by_session(cookie)
        if known is not None:
            # A browser sends its cookie, and a proxy its user, whoever's page asks.
            if scope["method"] not in ("GET", "HEAD") and b"origin" not in headers:
                raise ForeignRequestError("a call that changes something says whose page asks it")
            return known
        return Caller(self._check_token(scope, headers))

    def _check_token(self, scope: Scope, headers: Headers) -> str:
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if not given:
            raise _token_needed()
        caller = self._peer(scope)
        role = _whose(given, self._tokens)
        # Nobody guesses a random token, and those who know it must not be locked out by
        # those who try; one that a person made up is another matter.
        made_up = role is None or role == VIEWER or self._access.chosen
        if made_up and self._guesses.exhausted(caller):
            raise TooManyGuessesError(
                "too many wrong tokens came from this address", hint="try again in a minute"
            )
        if role is None:
            self._guesses.count(caller)
            raise _token_needed()
        return role

    def _begin_session(self, caller: Caller | None) -> Reply:
        """Answer a call that carried a token with the cookie that stands for it."""
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        if caller is not None and caller.way == "token":
            secure = "; Secure" if self._access.encrypted else ""
            value = f"{self._access.cookie}={self._sessions[caller.role].decode()}; Path=/; HttpOnly; SameSite=Strict{secure}"
            headers.append((b"set-cookie", value.encode()))
        return Reply(200, headers, b"{}")

    def _about(self, caller: Caller | None) -> Reply:
        """Who the caller is, for the page."""
        told = {
            "role": OPERATOR if caller is None else caller.role,
            "user": "" if caller is None else caller.user,
            "way": "open" if caller is None else caller.way,
        }
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        return Reply(200, headers, orjson.dumps(told))

    async def _refuse(self, send: Send, status: int, error: ConsoleError) -> None:
        headers = [(b"content-type", b"application/json")]
        if status == 429:
            headers.append((b"retry-after", b"60"))
        told = error.as_dict()
        if status == 401 and self._access.oidc is not None:
            told["login"] = LOGIN.removeprefix("/")
        await _send(send, status, headers, orjson.dumps(told))

    def _tell(self, scope: Scope, caller: Caller | None, status: int) -> None:
        """Tell the audit log who changed something, or tried to."""
        nobody = "anybody" if status < 400 else "none"
        audit.info(
            "operation" if status < 400 else "operation refused or failed",
            extra={
                "caller": self._peer(scope),
                "user": "" if caller is None else caller.user,
                "role": nobody if caller is None else caller.role,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
            },
        )


def _whose(given: bytes, known: dict[str, bytes]) -> str | None:
    """The role whose secret this is. Every one is compared, so that time tells nothing."""
    found = None
    for role, secret in known.items():
        if hmac.compare_digest(given, secret):
            found = role
    return found


def _caller(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _token_needed() -> TokenNeededError:
    return TokenNeededError(
        "this console needs its token",
        hint="open the link that `tailrace up` printed, or send Authorization: Bearer TOKEN with the text of .tailrace/console.token",
    )


def _check_size(headers: Headers) -> None:
    """Refuse a body before it is read; each must say how long it is."""
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or int(length) > BODY_BYTES:
        raise BodyTooLargeError(
            "the body of the request is too large, or does not say its length",
            hint=f"send at most {BODY_BYTES:,} bytes, with Content-Length",
        )


def _name(host: str) -> str:
    """The name in `name:port`, `[::1]:port` or `name`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _cookie(headers: Headers, name: bytes) -> bytes | None:
    for pair in headers.get(b"cookie", b"").split(b";"):
        found, _, value = pair.strip().partition(b"=")
        if found == name:
            return value
    return None


def _opens_page(scope: Scope, headers: Headers) -> bool:
    """Whether somebody follows a link to the page, which holds no data, or comes back from the
    issuer, in a window of its own."""
    return (
        scope["path"] in ("/", DONE)
        and scope["method"] == "GET"
        and headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
    )


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send(
        {"type": "http.response.start", "status": status, "headers": [*headers, length, *HEADERS]}
    )
    await send({"type": "http.response.body", "body": body})
