"""How a request finds its handler and how its answer finds the way back.

A family of requests is a module in `handlers/` with one function,
`routes(broker) -> Iterable[Route]`. A handler is called on the loop thread with a
`Request` and calls `request.answer(response)` exactly once, now or later, always on
the loop thread. Answers leave a connection in the order its requests came in, however
late one of them is, so a parked answer blocks nobody but its own connection.

What is not routed is not offered: ApiVersions reads the same table.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tailrace.broker.connection import Hold
from tailrace.broker.metrics import Distribution
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import DecodeError, ErrorCode, UnsupportedVersionError
from tailrace.wire.frames import decode_request_header, encode_response
from tailrace.wire.message import Message, skip_tags

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection, FileRange, Slot
    from tailrace.broker.loop import Loop

log = logging.getLogger(__name__)

Body = TypeVar("Body")

IDLE = float("inf")

_HEADER = Struct(">hhih")
_RESPONSE = Struct(">ii")
_SIZE = Struct(">i")

# How long one request may keep the loop before others have their turn.
TURN_SECONDS = 0.05

BROKEN_REQUEST = (
    DecodeError,
    UnsupportedVersionError,
    struct.error,
    IndexError,
    UnicodeDecodeError,
)


class Request(Generic[Body]):
    """One request of one connection, waiting for its answer.

    `body` is the decoded message and owns its bytes: it may be kept after the handler
    has returned.
    """

    __slots__ = (
        "_api", "_latency", "_slot", "_throttle", "amend", "api_key", "arrived_at", "body",
        "client_id", "connection", "correlation_id", "guarded", "version",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        slot: Slot,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str,
        body: Body,
        api: Api,
        latency: Distribution,
        arrived_at: float,
        throttle: Throttle | None = None,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body
        self._slot = slot
        self._api = api
        self._latency = latency
        self.arrived_at = arrived_at
        self._throttle = throttle
        self.guarded = False
        """Whether a guard of the authorizer has seen it."""
        self.amend: Callable[[Message], Message] | None = None
        """What a guard has still to do to the answer."""

    @property
    def client_host(self) -> str:
        """The peer's address as Kafka prints it, with a leading slash."""
        return f"/{self.connection.peer}"

    @property
    def answered(self) -> bool:
        """Whether `answer` was called."""
        return self._slot.filled

    @property
    def abandoned(self) -> bool:
        """Whether the peer is gone; answering is then allowed and does nothing."""
        return self.connection.closed

    def answer(self, response: Message) -> None:
        """Send `response` (the API's response message); once per request."""
        if self._slot.filled:
            raise RuntimeError(f"request {self.correlation_id} was answered twice")
        if self.abandoned:
            self._slot.filled = True
            return
        if self.amend is not None:
            response = self.amend(response)
        self._latency.add(self.connection.monotonic() - self.arrived_at)
        if self._throttle is not None:
            self.pause(self._throttle(self.connection), response)
        frame = encode_response(self._api, self.version, self.correlation_id, response)
        self.connection.fill(self._slot, frame)

    def in_turns(self, steps: Iterable[None], loop: Loop) -> None:
        """Do the steps of a long piece of work, letting others have their turn now and then.

        The connection's next request waits until all are done: they may depend on each other.
        The last step answers. A step that raises closes the connection, as a handler does.
        """
        work, connection = iter(steps), self.connection

        def work_on() -> bool:
            until = connection.monotonic() + TURN_SECONDS
            for _ in work:
                if connection.monotonic() >= until:
                    connection.rest()
                    loop.call_later(0, go_on)
                    return False
            return True

        def go_on() -> None:
            connection.muted = False
            try:
                done = work_on()
            except Exception:
                log.exception("request failed", extra={"request": self.api_key})
                connection.close()
                return
            if done and not connection.muted:  # else it is over its quota
                connection.resume()

        work_on()

    def pause(self, seconds: float, response: Message) -> None:
        """Tell the client in `response` to pause, and see to it that it does."""
        if seconds > 0:
            milliseconds = round(seconds * 1000)
            if getattr(response, "throttle_time_ms", milliseconds) < milliseconds:
                response.throttle_time_ms = milliseconds  # type: ignore[attr-defined]
            self.connection.mute(seconds)

    def answer_parts(self, parts: list[bytes | bytearray | memoryview | FileRange]) -> None:
        """Send a whole frame made elsewhere; file ranges are released once sent."""
        if self._slot.filled:
            raise RuntimeError(f"request {self.correlation_id} was answered twice")
        self._latency.add(self.connection.monotonic() - self.arrived_at)
        self._slot.parts = parts
        self.connection.fill_parts(self._slot)


Throttle = Callable[["Connection"], float]
Handler = Callable[[Request[Any]], None]
# connection, frame, start of the body, end of the frame, version, correlation id
FrameHandler = Callable[["Connection", memoryview, int, int, int, int], None]


@dataclass(frozen=True, slots=True)
class Route:
    """Serve `api_key` in versions `minimum` … `maximum` with `handler`."""

    api_key: int
    minimum: int
    maximum: int
    handler: Handler


LONG_REQUESTS = frozenset(
    {
        ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP,
        ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,
    }
)  # fmt: skip
"""Requests that grow with the partitions and members of a client."""
LONG_REQUEST_BYTES = 16 * 1024 * 1024


class Timer(Protocol):
    """A call that will be made unless it is cancelled."""

    def cancel(self) -> None: ...


class Router:
    """Reads request headers, finds the route, decodes the body, calls the handler."""

    def __init__(self, loop: Loop, monotonic: Callable[[], float]) -> None:
        self._loop = loop
        self._monotonic = monotonic
        self.latencies: dict[int, Distribution] = {}
        self.queue_times: dict[int, Distribution] = {}
        self.routes: dict[int, Route] = {}
        self.requests: dict[int, int] = {}
        self.request_bytes = 0
        self.unreadable_total = 0
        self._frames: dict[int, tuple[int, int, int, FrameHandler]] = {}
        # Only while quotas are set: seconds a client must pause for a request served.
        self.throttle: Throttle | None = None
        self.guard: Callable[[Route], Route] | None = None
        """With an authorizer: puts before each route what asks for permission."""
        self.started_at = IDLE
        """When the request being dispatched began; `IDLE` outside of one."""
        self.serving: tuple[Connection, int, int, int] | None = None
        """Connection, API key, version and size of the last request, for the watchdog."""

    def add(self, routes: Iterable[Route]) -> None:
        """Serve these; a later route of the same API takes the place of an earlier one."""
        for route in routes:
            if self.guard is not None:
                route = self.guard(route)
            self.routes[route.api_key] = route
            self.requests.setdefault(route.api_key, 0)
            self.latencies.setdefault(route.api_key, Distribution())
            self.queue_times.setdefault(route.api_key, Distribution())

    def add_frames(self, route: Route, handler: FrameHandler) -> None:
        """Serve an API from its undecoded frame (the hot paths decode for themselves)."""
        self.add([route])
        first_flexible = APIS[route.api_key].first_flexible
        self._frames[route.api_key] = (route.minimum, route.maximum, first_flexible, handler)

    def dispatch(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """One whole frame, without its length: `view[start:end]`."""
        key, version, correlation_id, name_size = _HEADER.unpack_from(view, start)
        position = start + 10
        self.request_bytes += end - start
        self.serving = (connection, key, version, end - start)
        frame = self._frames.get(key)
        try:
            if frame is not None and frame[0] <= version <= frame[1]:
                if name_size > 0:
                    position += name_size
                if position > end:
                    raise DecodeError("client id past the end of the frame")
                if self.throttle is not None:
                    connection.client_id = str(view[start + 10 : position], "utf-8")
                if version >= frame[2]:
                    if view[position]:
                        position = skip_tags(view[:end], position)
                    else:
                        position += 1
                self.requests[key] += 1
                self.started_at = now = self._monotonic()
                self.queue_times[key].add(now - self._loop.polled_at)
                frame[3](connection, view, position, end, version, correlation_id)
                self.latencies[key].add(self._monotonic() - now)
                self.started_at = IDLE
                return
            self._dispatch_decoded(connection, view[start:end], key, version, correlation_id)
        except Hold:
            self.requests[key] -= 1  # it comes again
            self.started_at = IDLE
            raise
        except BROKEN_REQUEST as error:
            self.unreadable_total += 1
            log.info(
                "request unreadable",
                extra={
                    "peer": connection.peer,
                    "api_key": key,
                    "version": version,
                    "error": str(error),
                },
            )
            connection.close()
        except Exception:
            log.exception("request failed", extra={"request": key, "version": version})
            connection.close()

    def _dispatch_decoded(
        self, connection: Connection, frame: memoryview, key: int, version: int, correlation_id: int
    ) -> None:
        route = self.routes.get(key)
        if route is None or not route.minimum <= version <= route.maximum:
            if key == ApiKey.API_VERSIONS and route is not None:
                # The one request whose version a client cannot know: answered in version 0.
                slot = connection.open_slot()
                answer = APIS[key].encode_response
                out = bytearray(_RESPONSE.pack(0, correlation_id))
                answer(0, self.unsupported_versions(), out)
                _SIZE.pack_into(out, 0, len(out) - 4)
                connection.fill(slot, out)
                return
            raise DecodeError(f"request {key} version {version} is not offered")
        header = decode_request_header(frame)
        api = APIS[key]
        body = api.decode_request(version, frame, header.body)
        self.requests[key] += 1
        self.started_at = now = self._monotonic()
        self.queue_times[key].add(now - self._loop.polled_at)
        if self.throttle is not None:
            connection.client_id = header.client_id or ""
        request: Request[Any] = Request(
            connection,
            connection.open_slot(),
            key,
            version,
            correlation_id,
            header.client_id or "",
            body,
            api,
            self.latencies[key],
            now,
            self.throttle,
        )
        route.handler(request)
        self.started_at = IDLE

    def unsupported_versions(self) -> Message:
        """The answer to an ApiVersions request of a version that does not exist here."""
        from tailrace.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

        offered = self.routes[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(
            error_code=int(ErrorCode.UNSUPPORTED_VERSION),
            api_keys=[
                ApiVersion(
                    api_key=int(ApiKey.API_VERSIONS),
                    min_version=offered.minimum,
                    max_version=offered.maximum,
                )
            ],
        )
