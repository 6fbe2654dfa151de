"""The Prometheus page, served by the loop itself.

HTTP/1.0 in its smallest form: one GET, one answer, closed. A page is made when it is
asked for; a peer that sends anything else, or nothing, is dropped. On loopback the request
must name this machine: a web page elsewhere can make a browser ask, under a name of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from tailrace.broker.listener import listen_on
from tailrace.broker.loop import READ, WRITE, Loop
from tailrace.loopback import is_loopback

REQUEST_LIMIT_BYTES = 8192
PATIENCE_SECONDS = 10.0
VISITORS_LIMIT = 64


class MetricsPage:
    """Serves `page()` at /metrics on an address of its own."""

    def __init__(self, loop: Loop, host: str, port: int, page: Callable[[], bytes]) -> None:
        self._loop = loop
        self._page = page
        self._private = is_loopback(host)
        self._visitors: set[_Visitor] = set()
        self._sock = listen_on(host, port)
        self.port = int(self._sock.getsockname()[1])
        loop.watch(self._sock.fileno(), READ, self._accept)

    def _accept(self, mask: int) -> None:
        try:
            sock, _ = self._sock.accept()
        except OSError:
            return
        if len(self._visitors) >= VISITORS_LIMIT:
            sock.close()
            return
        self._visitors.add(_Visitor(self._loop, sock, self._page, self._visitors, self._private))

    def close(self) -> None:
        """Stop listening and drop whoever is there."""
        self._loop.forget(self._sock.fileno())
        self._sock.close()
        for visitor in list(self._visitors):
            visitor.close()


class _Visitor:
    """One GET."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        page: Callable[[], bytes],
        visitors: set[_Visitor],
        private: bool,
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._page = page
        self._private = private
        self._visitors = visitors
        self._received = b""
        self._left = memoryview(b"")
        self._closed = False
        loop.watch(sock.fileno(), READ, self._on_event)
        self._timer = loop.call_later(PATIENCE_SECONDS, self.close)

    def _on_event(self, mask: int) -> None:
        try:
            if self._left:
                self._send()
                return
            received = self._sock.recv(REQUEST_LIMIT_BYTES)
            self._received += received
            if b"\r\n\r\n" in self._received:
                self._answer()
            elif not received or len(self._received) > REQUEST_LIMIT_BYTES:
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def _answer(self) -> None:
        words = self._received.split(b"\r\n", 1)[0].split(b" ")
        path = words[1].split(b"?")[0] if len(words) == 3 else b""
        if self._private and not is_loopback(_host(self._received)):
            status, body = b"403 Forbidden", b"ask for this machine by its address\n"
        elif words[0] == b"GET" and path in (b"/metrics", b"/"):
            status, body = b"200 OK", self._page()
        else:
            status, body = b"404 Not Found", b"the metrics are at /metrics\n"
        self._left = memoryview(
            b"HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body
        )
        self._loop.change(self._sock.fileno(), WRITE)
        self._send()

    def _send(self) -> None:
        self._left = self._left[self._sock.send(self._left) :]
        if not self._left:
            self.close()

    def close(self) -> None:
        """Done with, or given up."""
        if not self._closed:
            self._closed = True
            self._timer.cancel()
            self._visitors.discard(self)
            self._loop.forget(self._sock.fileno())
            self._sock.close()


def _host(request: bytes) -> str:
    """The name in the Host header, without a port; this machine if there is none."""
    for line in request.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"host":
            text = value.strip().decode("latin-1").lower()
            if text.startswith("["):
                return text[1:].partition("]")[0]
            return text.rpartition(":")[0] if ":" in text else text
    return "localhost"
