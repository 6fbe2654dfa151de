"""Clients of the console at the price of a socket: look-ups and subscribers."""

from __future__ import annotations

import re
import select
import socket
import time

CHANGE = re.compile(rb'"n":(\d+),"at":(\d+)')


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _connect(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


class Lookups:
    """Look-ups on several connections, one at a time on each."""

    def __init__(self, port: int, connections: int, keys: int) -> None:
        self._sockets = {s.fileno(): s for s in (_connect(port) for _ in range(connections))}
        self._poll = select.epoll()
        for number in self._sockets:
            self._poll.register(number, select.EPOLLIN)
        self._keys = keys
        self._part: dict[int, bytes] = {}
        self._asked = 0
        self.elapsed = 0.0

    def run(self, seconds: float, pace: int | None = None) -> list[float]:
        """Milliseconds of every look-up; with `pace` so many a second, else all it can.

        The time of a look-up that had to wait for a free connection counts from when it
        was due: that wait is the server's. One that this process was late for, since it
        shares a core with the follower, counts from when it was sent.
        """
        clock = time.perf_counter
        latencies: list[float] = []
        due: dict[int, float] = {}
        free = list(self._sockets)
        began = now = clock()
        until = began + seconds
        step = 0.0 if pace is None else 1 / pace
        following = began
        held_up = False
        while now < until or due:
            while free and now < until and (pace is None or following <= now):
                number = free.pop()
                due[number] = following if held_up else clock()
                following += step
                self._send(number)
            held_up = pace is not None and not free
            pause = -1.0 if pace is None or now >= until else max(0.0, following - clock())
            for number, _ in self._poll.poll(pause):
                answer = self._part.pop(number, b"") + self._sockets[number].recv(65536)
                assert answer.startswith(b"HTTP/1.1 200"), answer
                if not answer.endswith(b"}}"):
                    self._part[number] = answer
                    continue
                latencies.append((clock() - due.pop(number)) * 1000)
                free.append(number)
            now = clock()
        self.elapsed = now - began
        for each in self._sockets.values():
            each.close()
        self._poll.close()
        return latencies

    def _send(self, number: int) -> None:
        self._asked += 7919
        self._sockets[number].send(
            b"GET /api/views/v/%d HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"
            % (self._asked % self._keys)
        )


class Subscribers:
    """Subscribers of the view `small`, all in this process."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._count = count
        self._sockets: dict[int, socket.socket] = {}
        self._last: dict[int, int] = {}
        self._rest: dict[int, bytes] = {}
        self._first: dict[int, int] = {}
        self._poll = select.epoll()
        self.latencies: list[float] = []
        self.received = self.gaps = self.expected = 0

    def connect(self) -> None:
        """Connect everybody, and wait until each has its snapshot."""
        for _ in range(self._count):
            each = _connect(self._port)
            each.send(b"GET /api/views/small/changes HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
            self._sockets[each.fileno()] = each
            self._rest[each.fileno()] = b""
            self._poll.register(each.fileno(), select.EPOLLIN)
        while len(self._last) < self._count:
            self._receive(1.0)
        self._first = dict(self._last)
        self.latencies.clear()
        self.received = 0

    def run(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._receive(0.1)

    def finish(self, last: int, patience: float) -> None:
        """Wait for those who lack changes up to the number `last`."""
        until = time.monotonic() + patience
        self.expected = sum(last - first for first in self._first.values())
        while time.monotonic() < until and self.received < self.expected:
            self._receive(0.1)
        for each in self._sockets.values():
            each.close()

    def _receive(self, timeout: float) -> None:
        for number, _ in self._poll.poll(timeout):
            data = self._rest[number] + self._sockets[number].recv(1 << 16)
            whole, _, self._rest[number] = data.rpartition(b"\n\n")
            now = time.monotonic_ns()
            for n, at in CHANGE.findall(whole):
                change = int(n)
                before = self._last.get(number)
                if before is not None:
                    self.received += 1
                    self.gaps += change != before + 1
                    self.latencies.append((now - int(at)) / 1e6)
                self._last[number] = change
