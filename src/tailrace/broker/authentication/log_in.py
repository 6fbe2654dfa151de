"""SASL on the broker: which request may come when, as Kafka's SaslServerAuthenticator has it.

    START      ApiVersions (once it is answered well: HANDSHAKE), SaslHandshake
    HANDSHAKE  SaslHandshake → MESSAGES
    MESSAGES   SaslAuthenticate, or bare messages after a handshake of version 0, until the
               mechanism knows the user → DONE
    DONE       everything; SaslHandshake begins a new log-in of the same user (KIP-368)

Until it is done a connection reaches no handler and its frames are small. A failed log-in is
answered after `connection.failed.authentication.delay.ms` and closed. A session that is over may
only log in again. After the handshake a foreign request is answered with 34, before it with nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING

from tailrace.broker.authentication.exchange import Exchange, Refused, Step
from tailrace.broker.principals import Principal
from tailrace.broker.router import BROKEN_REQUEST
from tailrace.errors import TailraceError
from tailrace.wire.apis import APIS, BROKEN_FRAME, ApiKey
from tailrace.wire.errors import DecodeError, ErrorCode
from tailrace.wire.frames import RequestHeader, decode_request_header, encode_response
from tailrace.wire.message import Message
from tailrace.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection, Slot
    from tailrace.broker.listener import Listener
    from tailrace.broker.loop import Loop
    from tailrace.broker.router import Router
    from tailrace.clock import Clock

log = logging.getLogger("tailrace.broker.authentication")

START, HANDSHAKE, MESSAGES, DONE = range(4)
RENEWED_AFTER_SECONDS = 1.0  # not more often than this, as Kafka has it
MOST_MESSAGES = 10
"""No mechanism needs more of them in one log-in."""

_KEY_AND_VERSION = Struct(">hh")
_SIZE = Struct(">i")

Begin = Callable[["Connection"], Exchange]
Work = Callable[[Callable[[], Step], Callable[[Step | Exception], None]], None]


@dataclass(slots=True)
class Counts:
    """Of one listener, by Kafka's names."""

    successful: int = 0
    failed: int = 0
    renewed: int = 0
    renewal_failed: int = 0
    expired: int = 0


@dataclass(slots=True)
class LogIns:
    """How one logs in at one listener."""

    listener: str
    mechanisms: Mapping[str, Begin]
    """By name: what begins a log-in. One that is not to be offered by name is in `hidden`."""
    loop: Loop
    router: Router
    clock: Clock
    work: Work
    connections: Callable[[], Listener]
    frame_limit_bytes: int
    delay_seconds: float
    session_ms: Mapping[str, int]
    """By mechanism: the longest session, 0 for as long as the credentials last."""
    project: Principal
    hidden: frozenset[str] = frozenset()
    counts: Counts = field(default_factory=Counts)

    @property
    def offered(self) -> list[str]:
        return [name for name in self.mechanisms if name not in self.hidden]

    def begin(self, connection: Connection) -> LogIn:
        """The log-in of a new connection."""
        return LogIn(self, connection)


class LogIn:
    """One connection's log-in, and its later ones."""

    __slots__ = (
        "_bare", "_connection", "_exchange", "_kind", "_messages", "_renewing", "_session_until", "_since", "_state",
        "by_token", "mechanism",
    )  # fmt: skip

    def __init__(self, kind: LogIns, connection: Connection) -> None:
        self._kind = kind
        self._connection = connection
        self._state = START
        self._exchange: Exchange | None = None
        self._bare = False
        self._renewing = False
        self._messages = 0
        self._since = 0.0
        self._session_until = 0.0
        self.mechanism = ""
        self.by_token = False
        """Whether the client showed a delegation token."""

    # what comes in

    def dispatch(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """One frame of a connection that has not logged in."""
        kind = self._kind
        kind.connections().heard(connection)
        try:
            if self._bare:
                kind.router.request_bytes += end - start
                self._message(bytes(view[start:end]), None)
            else:
                self._request(view, start, end)
        except BROKEN_REQUEST as error:
            kind.router.unreadable_total += 1
            self._tell("message unreadable", error=type(error).__name__)
            connection.close()
        except Exception:
            log.exception("log-in failed", extra={"listener": kind.listener})
            connection.close()

    def _request(self, view: memoryview, start: int, end: int) -> None:
        key, version = _KEY_AND_VERSION.unpack_from(view, start)
        connection, kind, state = self._connection, self._kind, self._state
        if key == ApiKey.API_VERSIONS and state == START:
            route = kind.router.routes[key]
            if route.minimum <= version <= route.maximum:
                self._state = HANDSHAKE
            kind.router.dispatch(connection, view, start, end)
            return
        kind.router.request_bytes += end - start
        header = decode_request_header(view[start:end])
        if header.api is None or not header.api.min_version <= version <= header.api.max_version:
            raise DecodeError(f"request {key} version {version} before a log-in")
        if key == ApiKey.SASL_HANDSHAKE and state in (START, HANDSHAKE):
            body = header.api.decode_request(version, view[start:end], header.body)
            assert isinstance(body, SaslHandshakeRequest)
            kind.router.requests[key] += 1
            self._handshake(body.mechanism, version, _Reply(connection, header))
        elif key == ApiKey.SASL_AUTHENTICATE and state == MESSAGES:
            body = header.api.decode_request(version, view[start:end], header.body)
            assert isinstance(body, SaslAuthenticateRequest)
            kind.router.requests[key] += 1
            self._message(body.auth_bytes, _Reply(connection, header))
        else:
            self._foreign(header)

    def _foreign(self, header: RequestHeader) -> None:
        """Something else than the log-in's next message."""
        self._tell("foreign request before the log-in", request=header.api_key)
        if self._state == MESSAGES and (answer := _illegal_state(header)) is not None:
            self._connection.fill(self._connection.open_slot(), answer)
            self._connection.close_after_answers()
        else:
            self._connection.close()

    # the log-in

    def _handshake(self, mechanism: str, version: int, reply: _Reply) -> None:
        kind = self._kind
        begin = kind.mechanisms.get(mechanism)
        if begin is None:
            self._tell("mechanism not offered")
            kind.counts.failed += 1
            reply.send(
                SaslHandshakeResponse(
                    error_code=int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), mechanisms=kind.offered
                )
            )
            self._connection.close_after_answers()
            return
        if not self._renewing:
            self.mechanism = mechanism
        self._exchange = begin(self._connection) if mechanism == self.mechanism else _Other()
        self._state = MESSAGES
        self._messages = 0
        self._bare = version == 0
        if self._bare:
            self._connection.least_frame_bytes = 0
        reply.send(SaslHandshakeResponse(mechanisms=kind.offered))

    def _message(self, data: bytes, reply: _Reply | None) -> None:
        exchange = self._exchange
        assert exchange is not None
        self._messages += 1
        try:
            if self._messages > MOST_MESSAGES:
                raise Refused("Authentication failed: too many messages")
            step = exchange.step(data)
        except Refused as refused:
            self._fail(str(refused), reply)
            return
        if isinstance(step, Step):
            self._settle(step, reply)
            return
        self._connection.rest()
        self._kind.work(step, lambda outcome: self._worked(outcome, reply))

    def _worked(self, outcome: Step | Exception, reply: _Reply | None) -> None:
        connection = self._connection
        if connection.closed:
            return
        connection.muted = False
        if isinstance(outcome, Step):
            self._settle(outcome, reply)
            if not connection.muted:
                connection.resume()
            return
        if not isinstance(outcome, Refused):
            log.error("log-in failed", exc_info=outcome)
        self._fail(str(outcome) if isinstance(outcome, Refused) else "Authentication failed", reply)

    def _settle(self, step: Step, reply: _Reply | None) -> None:
        lifetime_ms = 0
        if step.principal is not None:
            if self._renewing and step.principal != self._connection.principal:
                self._fail("Cannot change principals during re-authentication", reply)
                return
            lifetime_ms = self._lifetime_ms(step)
            if step.expires_at_ms is not None and lifetime_ms <= 0:
                self._fail("Authentication failed: the credentials have expired", reply)
                return
        if reply is not None:
            reply.send(
                SaslAuthenticateResponse(
                    error_message="",
                    auth_bytes=step.answer,
                    session_lifetime_ms=lifetime_ms,
                )
            )
        else:
            bare = _SIZE.pack(len(step.answer)) + step.answer
            self._connection.fill(self._connection.open_slot(), bare)
        if step.principal is not None:
            self._done(step, lifetime_ms)

    def _lifetime_ms(self, step: Step) -> int:
        longest = self._kind.session_ms.get(self.mechanism, 0)
        if step.expires_at_ms is None:
            return longest
        left = max(0, step.expires_at_ms - self._kind.clock.wall_ms())
        return min(left, longest) if longest else left

    def _done(self, step: Step, lifetime_ms: int) -> None:
        connection, kind = self._connection, self._kind
        assert step.principal is not None
        self._state = DONE
        self._exchange = None
        self._bare = False
        self.by_token = step.by_token
        connection.principal = step.principal
        if step.principal == kind.project and not step.by_token:
            connection.project = True
        listener = kind.connections()
        connection.least_frame_bytes = 8
        connection.frame_limit_bytes = listener.frame_limit_bytes
        now = kind.clock.monotonic()
        self._since = now
        if lifetime_ms:
            self._session_until = now + lifetime_ms / 1000
            connection.dispatch = self._dispatch_in_session
        else:
            connection.dispatch = kind.router.dispatch
        if self._renewing:
            kind.counts.renewed += 1
        else:
            kind.counts.successful += 1
            listener.known(connection)
        self._renewing = False

    def _fail(self, message: str, reply: _Reply | None) -> None:
        connection, kind = self._connection, self._kind
        self._tell("log-in refused", mechanism=self.mechanism)
        if self._renewing:
            kind.counts.renewal_failed += 1
        else:
            kind.counts.failed += 1
        connection.rest()

        def answer() -> None:
            if connection.closed:
                return
            if reply is None:
                connection.close()
                return
            reply.send(
                SaslAuthenticateResponse(
                    error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message=message
                )
            )
            connection.close_after_answers()

        kind.loop.call_later(kind.delay_seconds, answer)

    # afterwards

    def _dispatch_in_session(
        self, connection: Connection, view: memoryview, start: int, end: int
    ) -> None:
        kind = self._kind
        if kind.clock.monotonic() > self._session_until:
            (key, _) = _KEY_AND_VERSION.unpack_from(view, start)
            if key != ApiKey.SASL_HANDSHAKE:
                kind.counts.expired += 1
                self._tell("session is over")
                connection.close()
                return
        kind.router.dispatch(connection, view, start, end)

    def again(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        """A handshake of a connection that is logged in already: a new log-in of the same user."""
        kind = self._kind
        answer = SaslHandshakeResponse(mechanisms=kind.offered)
        if kind.clock.monotonic() - self._since < RENEWED_AFTER_SECONDS or version == 0:
            answer.error_code = int(ErrorCode.ILLEGAL_SASL_STATE)
            answer.mechanisms = []
            return answer
        begin = kind.mechanisms.get(mechanism)
        if begin is None:
            answer.error_code = int(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
            return answer
        self._renewing = True
        self._exchange = begin(self._connection) if mechanism == self.mechanism else _Other()
        self._state = MESSAGES
        self._messages = 0
        self._connection.dispatch = self.dispatch
        self._connection.frame_limit_bytes = kind.frame_limit_bytes
        return answer

    def _tell(self, what: str, **more: object) -> None:
        extra = {"peer": self._connection.peer, "listener": self._kind.listener, **more}
        log.info(what, extra=extra)


def _illegal_state(header: RequestHeader) -> bytearray | None:
    """An answer with error 34, if this kind of answer has a place for an error."""
    api = header.api
    assert api is not None
    module = import_module(f"tailrace.wire.messages.{api.module}")
    name = "".join(word.title() for word in api.module.split("_")) + "Response"
    answer: Message = getattr(module, name)()
    if "error_code" not in answer.__slots__:
        return None
    answer.error_code = int(ErrorCode.ILLEGAL_SASL_STATE)  # type: ignore[attr-defined]
    try:
        return encode_response(api, header.api_version, header.correlation_id, answer)
    except (TailraceError, *BROKEN_FRAME):
        return None  # this version has none


class _Other:
    """The exchange of a client that would change its mechanism while it is logged in."""

    def step(self, message: bytes) -> Step:
        raise Refused("The SASL mechanism cannot be changed by re-authentication")


class _Reply:
    """The place of one answer."""

    __slots__ = ("_connection", "_header", "_slot")

    def __init__(self, connection: Connection, header: RequestHeader) -> None:
        self._connection = connection
        self._header = header
        self._slot: Slot = connection.open_slot()

    def send(self, message: Message) -> None:
        header = self._header
        api = APIS[header.api_key]
        frame = encode_response(api, header.api_version, header.correlation_id, message)
        self._connection.fill(self._slot, frame)
