"""A small HTTP/1.1 server on threads, for the registry and the edges; core only.

One thread a connection, no more than `connections` of them; a request is read whole, within limits
and within a time, before its handler is called. A peer that sends something else, too much or too
slowly gets the status for it and is hung up on; so does one whose body finds no room beside those
that others are sending (`bodies_limit_bytes`). Of too many connections the one goes that has waited
longest without a whole request, so that silent ones keep nobody out. On loopback a request must, unless
`any_name`, name this machine and come from no page of another site: such a page can make a browser
ask, under a name of its own or without being shown the answer.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from tailrace.clock import SYSTEM, Clock
from tailrace.errors import PortInUseError, UsageError
from tailrace.loopback import is_loopback

log = logging.getLogger(__name__)

HEAD_LIMIT_BYTES = 64 * 1024
HEADERS_LIMIT = 100
IDLE_SECONDS = 60.0
REQUEST_SECONDS = 30.0
BODIES_LIMIT_BYTES = 128 << 20
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `path` are the decoded parts between slashes; names of headers are small."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def parameter(self, name: str, default: str = "") -> str:
        found = self.query.get(name)
        return found[-1] if found else default


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


Handle = Callable[[Request], Answer]
Refuse = Callable[[int, str], Answer]
"""The answer for a status and what is wrong, in the words of the service."""


class _Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Gone(Exception):
    """The peer went away, or was too slow to begin."""


class HttpServer:
    """Listens at once, serves from `start` until `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        handle: Handle,
        *,
        refuse: Refuse,
        tls: ssl.SSLContext | None = None,
        body_limit_bytes: int = 16 << 20,
        bodies_limit_bytes: int = BODIES_LIMIT_BYTES,
        connections: int = 256,
        name: str = "http",
        any_name: bool = False,
        clock: Clock = SYSTEM,
    ) -> None:
        self._handle = handle
        self._refuse = refuse
        self._tls = tls
        self._body_limit_bytes = body_limit_bytes
        self._connections = connections
        self._name = name
        self._clock = clock
        self._room = _Room(max(bodies_limit_bytes, body_limit_bytes))
        self._private = is_loopback(host) and not any_name
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._waiting: dict[socket.socket, None] = {}  # for a whole request; the longest first
        self._closing = False
        self._sock = _listen(host, port)
        self.port = int(self._sock.getsockname()[1])
        self.host = host
        self._accepting = threading.Thread(target=self._accept, name=name, daemon=True)

    @property
    def address(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{shown}:{self.port}"

    def start(self) -> None:
        self._accepting.start()

    def close(self) -> None:
        """Stop listening, hang up, and wait for the threads."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            threads = list(self._open.items())
        for sock, _ in threads:
            _shut(sock)
        _shut(self._sock)
        if self._accepting.is_alive():
            self._accepting.join()
        self._sock.close()
        for _, thread in threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._sock.accept()
            except OSError:
                with self._lock:
                    if self._closing:
                        return
                self._clock.sleep(0.05)  # out of descriptors, perhaps: they may come back
                continue
            with self._lock:
                full = self._closing
                if not full and len(self._open) >= self._connections:
                    longest = next(iter(self._waiting), None)
                    if longest is None:
                        full = True
                    else:
                        del self._waiting[longest]
                        _shut(longest)
                if not full:
                    thread = threading.Thread(
                        target=self._serve,
                        args=(sock,),
                        name=f"{self._name} connection",
                        daemon=True,
                    )
                    self._open[sock] = thread
                    self._waiting[sock] = None
                    # Under the lock, so that `close` never waits for one that has not begun.
                    thread.start()
            if full:
                sock.close()

    def _serve(self, sock: socket.socket) -> None:
        used: socket.socket = sock
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(REQUEST_SECONDS)
            if self._tls is not None:
                used = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                with self._lock:
                    self._open[used] = self._open.pop(sock)
                    if self._closing or sock not in self._waiting:
                        return
                    del self._waiting[sock]
                    self._waiting[used] = None
                used.do_handshake()
            link = _Link(used, self._body_limit_bytes, self._room, self._private, self._clock)
            while not self._closing and self._one(link, used):
                with self._lock:
                    self._waiting[used] = None
        except (_Gone, OSError):
            pass
        finally:
            with self._lock:
                self._open.pop(used, None)
                self._waiting.pop(used, None)
            used.close()

    def _one(self, link: _Link, used: socket.socket) -> bool:
        """Serve one request; whether another may follow."""
        try:
            try:
                request, keep = link.request()
            except _Refused as refused:
                link.answer(self._refuse(refused.status, refused.reason), keep=False, head=False)
                return False
            with self._lock:
                if used not in self._waiting:
                    raise _Gone  # somebody else has its place
                del self._waiting[used]
            try:
                answer = self._handle(request)
            except Exception:
                log.exception("a request failed", extra={"service": self._name})
                answer = self._refuse(500, "Internal Server Error")
        finally:
            link.give_back()
        link.answer(answer, keep=keep, head=request.method == "HEAD")
        return keep


class _Room:
    """Memory for the bodies that all connections have sent so far."""

    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        with self._lock:
            if count > self._left:
                return False
            self._left -= count
            return True

    def give(self, count: int) -> None:
        with self._lock:
            self._left += count


class _Link:
    """One connection."""

    def __init__(
        self,
        sock: socket.socket,
        limit: int,
        room: _Room,
        private: bool,
        clock: Clock,
    ) -> None:
        self._sock = sock
        self._limit = limit
        self._room = room
        self._taken = 0
        self._private = private
        self._clock = clock
        # A bytearray gives up its front without copying the rest, however small the pieces.
        self._kept = bytearray()
        self._until = 0.0

    def request(self) -> tuple[Request, bool]:
        head = self._head()
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _Refused(400, "Bad Request")
        method, target, version = words
        headers = _headers(lines[1:])
        if self._private and not is_loopback(_host(headers.get("host", ""))):
            raise _Refused(403, "ask for this machine by its address")
        if self._private and _foreign(method, headers):
            raise _Refused(403, "a page of another site may not ask here")
        path, _, query = target.partition("?")
        if not path.startswith("/"):
            raise _Refused(400, "Bad Request")
        try:
            parts = tuple(unquote(one, errors="strict") for one in path[1:].split("/"))
            asked = parse_qs(query, keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError:
            raise _Refused(400, "Bad Request") from None
        body = self._body(headers)
        wish = headers.get("connection", "").lower()
        keep = wish != "close" if version == "HTTP/1.1" else wish == "keep-alive"
        while parts and not parts[-1]:
            parts = parts[:-1]
        return Request(method, parts, asked, headers, body), keep

    def _head(self) -> bytes:
        """The lines of a request; a peer may be quiet for a while before it begins."""
        self._until = self._clock.monotonic() + IDLE_SECONDS
        begun = bool(self._kept)
        while (end := self._kept.find(b"\r\n\r\n")) < 0:
            if len(self._kept) > HEAD_LIMIT_BYTES:
                raise _Refused(431, "Request Header Fields Too Large")
            self._kept += self._receive(begun)
            if not begun:
                begun = True
                self._until = self._clock.monotonic() + REQUEST_SECONDS
        if end > HEAD_LIMIT_BYTES:
            raise _Refused(431, "Request Header Fields Too Large")
        return self._cut(end, 4).lstrip(b"\r\n")

    def _cut(self, count: int, more: int = 0) -> bytes:
        """Take the first bytes of what came; `more` after them are dropped."""
        found = bytes(self._kept[:count])
        del self._kept[: count + more]
        return found

    def _hold(self, count: int) -> None:
        """Count bytes of a body; there is only so much room for those of all connections."""
        if not self._room.take(count):
            raise _Refused(503, "Service Unavailable")
        self._taken += count

    def give_back(self) -> None:
        """The body is not needed any more."""
        self._room.give(self._taken)
        self._taken = 0

    def _receive(self, begun: bool = True) -> bytes:
        left = self._until - self._clock.monotonic()
        try:
            self._sock.settimeout(max(left, 0.001))
            received = self._sock.recv(_CHUNK_BYTES) if left > 0 else None
        except TimeoutError:
            received = None
        if received is None:
            if begun:
                raise _Refused(408, "Request Timeout")
            raise _Gone
        if not received:
            raise _Gone
        return received

    def _body(self, headers: Mapping[str, str]) -> bytes:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise _Refused(400, "Bad Request")
            self._go_on(headers)
            return self._chunks()
        if length is None:
            return b""
        if not (length.isascii() and length.isdigit()) or len(length) > 12:
            raise _Refused(400, "Bad Request")
        if int(length) > self._limit:
            raise _Refused(413, "Request Entity Too Large")
        self._go_on(headers)
        return self._exactly(int(length))

    def _go_on(self, headers: Mapping[str, str]) -> None:
        if headers.get("expect", "").lower() == "100-continue":
            self._send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _exactly(self, count: int) -> bytes:
        held = min(len(self._kept), count)
        self._hold(held)
        while len(self._kept) < count:
            received = self._receive()
            more = min(len(received), count - held)
            self._hold(more)
            held += more
            self._kept += received
        return self._cut(count)

    def _line(self) -> bytes:
        while (end := self._kept.find(b"\r\n")) < 0:
            if len(self._kept) > 4096:
                raise _Refused(400, "Bad Request")
            self._kept += self._receive()
        return self._cut(end, 2)

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        have = 0
        while True:
            size = self._line().partition(b";")[0].strip()
            try:
                count = int(size, 16) if 0 < len(size) <= 8 and b"_" not in size else -1
            except ValueError:
                count = -1
            if count < 0:
                raise _Refused(400, "Bad Request")
            have += count
            if have > self._limit:
                raise _Refused(413, "Request Entity Too Large")
            if not count:
                while self._line():
                    pass
                return b"".join(parts)
            parts.append(self._exactly(count))
            if self._line():
                raise _Refused(400, "Bad Request")

    def answer(self, answer: Answer, *, keep: bool, head: bool) -> None:
        try:
            phrase = HTTPStatus(answer.status).phrase
        except ValueError:
            phrase = ""
        lines = [f"HTTP/1.1 {answer.status} {phrase}"]
        if answer.status != 204:
            lines.append(f"Content-Type: {answer.content_type}")
            lines.append(f"Content-Length: {len(answer.body)}")
        lines += [f"{name}: {value}" for name, value in answer.headers]
        lines.append(f"Connection: {'keep-alive' if keep else 'close'}")
        data = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
        self._send(data if head or answer.status == 204 else data + answer.body)

    def _send(self, data: bytes) -> None:
        self._sock.settimeout(REQUEST_SECONDS)
        self._sock.sendall(data)


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > HEADERS_LIMIT:
        raise _Refused(431, "Request Header Fields Too Large")
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise _Refused(400, "Bad Request")
        if name in found and name in ("content-length", "transfer-encoding", "host"):
            raise _Refused(400, "Bad Request")
        value = value.strip()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _foreign(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks for a page of another site, and not for somebody who follows a link."""
    origin = headers.get("origin", "").lower()
    if origin and origin.partition("://")[2] != headers.get("host", "").lower():
        return True
    elsewhere = headers.get("sec-fetch-site", "") in ("cross-site", "same-site")
    followed = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    return elsewhere and not followed


def _host(text: str) -> str:
    """The name in a Host header, without a port; this machine if there is none."""
    text = text.lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return (text.rpartition(":")[0] if ":" in text else text) or "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(256)
    except socket.gaierror as error:
        sock.close()
        raise UsageError(f"{host!r} is no address of this machine", detail=str(error)) from error
    except OSError as error:
        sock.close()
        raise PortInUseError(
            f"nothing can listen on {host}:{port}",
            detail=str(error),
            hint="choose another port, or 0",
        ) from error
    return sock


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
