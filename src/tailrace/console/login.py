"""Log-in at the console by people: at an issuer, or at a proxy before it.

    GET  /api/login        to the issuer, with a sealed cookie that remembers this log-in
    GET  /api/login/done   back with a code; the session becomes a cookie, the page opens
    POST /api/logout       the cookie goes

A session is a sealed cookie (`seal`): name, role, and when it ends. The console keeps none of
them, so there is nothing to fill up; a restart ends them all. A proxy is believed by the address
of its connection alone, and only if it names exactly one user.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from tailrace.clock import SYSTEM, Clock
from tailrace.console.errors import (
    ForeignRequestError,
    LogInFailedError,
    NoRoleError,
    TooManyGuessesError,
)
from tailrace.console.guesses import Guesses
from tailrace.console.seal import Seal
from tailrace.console_login import OidcSettings, ProxySettings

if TYPE_CHECKING:
    from tailrace.console.issuer import Issuer, Person

log = logging.getLogger("tailrace.console.login")

LOGIN, DONE, LOGOUT = "/api/login", "/api/login/done", "/api/logout"
LOGIN_SECONDS = 600.0
LONGEST_CODE = 4096
AT_A_TIME = 4
"""Log-ins that ask the issuer at the same time; the others wait."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: `user` is empty for those who only know a token. `seconds`: how long that
    holds, None for as long as the console runs."""

    role: str
    user: str = ""
    way: str = "token"
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a browser that logs in."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""


class LogIns:
    """What the console knows of log-ins. On the loop's thread; the issuer is asked beside it."""

    def __init__(
        self,
        oidc: OidcSettings | None,
        proxy: ProxySettings | None,
        *,
        cookie: str,
        encrypted: bool,
        guesses: Guesses,
        clock: Clock = SYSTEM,
    ) -> None:
        self.oidc = oidc
        self.proxy = proxy
        self._cookie = cookie
        self._secure = "; Secure" if encrypted else ""
        self._guesses = guesses
        self._seal = Seal(clock)
        self._issuer: Issuer | None = None
        if oidc is not None:
            from tailrace.console.issuer import Issuer

            self._issuer = Issuer(oidc, clock)
        self._slots = asyncio.Semaphore(AT_A_TIME)

    # who calls

    def by_proxy(self, peer: str, headers: list[tuple[bytes, bytes]]) -> Caller | None:
        """Whom the proxy names; None if this connection is not its, or it names nobody."""
        proxy = self.proxy
        if proxy is None or not proxy.trusts(peer):
            return None
        users = [value for name, value in headers if name == proxy.user]
        groups = [value for name, value in headers if name == proxy.groups]
        if not users:
            return None
        if len(users) > 1 or len(groups) > 1:
            # One of them may be the caller's own, which the proxy should have taken away.
            raise ForeignRequestError(
                "the proxy names more than one user",
                hint="have it replace its headers, not add to them",
            )
        user = users[0].decode("latin-1").strip()[:200]
        if not user:
            return None
        listed = groups[0].decode("latin-1") if groups else ""
        names = {one.strip() for one in listed.split(",") if one.strip()}
        role = proxy.roles.of(user, names)
        if role is None:
            raise _no_role(user)
        return Caller(role, user, "proxy")

    def by_session(self, cookie: bytes) -> Caller | None:
        """Whose session this is; None if it is none, or over."""
        found = self._seal.open("session", cookie.decode("latin-1"))
        if found is None:
            return None
        values, left = found
        return Caller(values["role"], values["user"], "oidc", left)

    # logging in

    async def begin(self, redirect: str) -> Reply:
        """Send a browser to the issuer."""
        issuer = self._issuer
        assert issuer is not None
        async with self._slots:
            try:
                start = await asyncio.to_thread(issuer.start, redirect)
            except LogInFailedError as error:
                return _told(502, error)
        kept = {"state": start.state, "nonce": start.nonce, "verifier": start.verifier}
        sealed = self._seal.close("login", kept, LOGIN_SECONDS)
        # The way back from the issuer is another site's navigation: Strict would lose it.
        cookie = f"{self._cookie}-login={sealed}; Path={LOGIN}; HttpOnly; SameSite=Lax; Max-Age={LOGIN_SECONDS:.0f}{self._secure}"
        return Reply(302, [(b"location", start.location.encode()), (b"set-cookie", cookie.encode())])  # fmt: skip

    async def finish(self, query: bytes, cookie: bytes | None, redirect: str, peer: str) -> Reply:
        """A browser is back from the issuer."""
        issuer = self._issuer
        assert issuer is not None
        assert self.oidc is not None
        if self._guesses.exhausted(peer):
            return _told(429, TooManyGuessesError("too many log-ins failed", hint="try again in a minute"))  # fmt: skip
        try:
            person = await self._person(issuer, query, cookie, redirect)
            role = self.oidc.roles.of(person.name, person.groups)
            if role is None:
                raise _no_role(person.name)
        except (LogInFailedError, NoRoleError) as error:
            self._guesses.count(peer)
            log.info("log-in refused", extra={"caller": peer, "reason": error.detail or error.code})
            return _told(403, error, [self._forget("login", LOGIN)])
        log.info("logged in", extra={"caller": peer, "user": person.name, "role": role})
        session = {"user": person.name, "role": role}
        seconds = self.oidc.session.total_seconds()
        sealed = self._seal.close("session", session, seconds)
        cookie_text = f"{self._cookie}={sealed}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds:.0f}{self._secure}"
        # A redirect would carry the issuer's site along, and with it no Strict cookie: the page
        # is opened by a document of our own.
        headers = [(b"set-cookie", cookie_text.encode()), self._forget("login", LOGIN), (b"refresh", b"0; url=/")]  # fmt: skip
        return _document(200, headers, "Logged in", '<a href="/">Open the console</a>')

    async def _person(
        self, issuer: Issuer, query: bytes, cookie: bytes | None, redirect: str
    ) -> Person:
        try:
            text = query.decode("latin-1") if len(query) < 16_384 else ""
            given = parse_qs(text, max_num_fields=20)
        except ValueError:  # more fields than any issuer sends
            given = {}
        opened = None if cookie is None else self._seal.open("login", cookie.decode("latin-1"))
        state = given.get("state", [""])[0]
        if opened is None or not hmac.compare_digest(opened[0]["state"].encode(), state.encode()):
            raise LogInFailedError(
                "this log-in was not begun here, or took too long",
                hint="open the console and log in again",
            )
        code = given.get("code", [""])[0]
        if not code or len(code) > LONGEST_CODE:
            raise LogInFailedError(
                "the issuer did not log you in", detail=given.get("error", ["no code"])[0][:200]
            )
        kept = opened[0]
        async with self._slots:
            return await asyncio.to_thread(
                issuer.finish, code, kept["nonce"], kept["verifier"], redirect
            )

    def log_out(self) -> Reply:
        """Have the browser forget its session."""
        return Reply(200, [self._forget("", "/"), (b"content-type", b"application/json")], b"{}")

    def _forget(self, which: str, path: str) -> tuple[bytes, bytes]:
        name = f"{self._cookie}-{which}" if which else self._cookie
        return (b"set-cookie", f"{name}=; Path={path}; HttpOnly; Max-Age=0{self._secure}".encode())


def _no_role(user: str) -> NoRoleError:
    return NoRoleError(
        f"{user} is neither operator nor viewer of this console",
        hint="have one of your groups, or user:NAME, named under operators or viewers in tailrace.toml",
    )


def _told(status: int, error: LogInFailedError | NoRoleError | TooManyGuessesError, headers: list[tuple[bytes, bytes]] | None = None) -> Reply:  # fmt: skip
    words = html.escape(error.message)
    if error.hint:
        words += f"</p><p>{html.escape(error.hint)}"
    return _document(status, headers or [], "Not logged in", f'{words}</p><p><a href="/">Back</a>')


def _document(status: int, headers: list[tuple[bytes, bytes]], title: str, words: str) -> Reply:
    body = f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1><p>{words}</p></html>"
    told = [*headers, (b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store")]  # fmt: skip
    return Reply(status, told, body.encode())
