"""The listening sockets and the connections that came through them.

Each listener of `listeners` is an `Acceptor`: its address, its TLS, how one logs in there. Holds
what connections share: the receive buffer, the budget for large frames, the
limits on their number, and the sweep that closes idle ones. At a limit new connections wait in
the system's queue, as with Kafka, until one goes; those that have not said who they are make
room first. At the limit of descriptors, or of one address, new ones are closed and the old served.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tailrace.broker.connection import SCRATCH_BYTES, Connection
from tailrace.broker.endpoints import IN_PROCESS, Endpoint
from tailrace.broker.errors import ListenError
from tailrace.broker.handshakes import Handshakes
from tailrace.broker.loop import READ, Loop
from tailrace.broker.quotas.rate import Rate
from tailrace.clock import Clock
from tailrace.errors import PortInUseError
from tailrace.log.settings import INT_MAX

if TYPE_CHECKING:
    from tailrace.broker.authentication.log_in import LogIns
    from tailrace.broker.authentication.tls import Tls

log = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
STALLED_SECONDS = 15.0
CUT_FRAME_SECONDS = 30.0
INSIDE = Endpoint("IN_PROCESS", "PLAINTEXT", None, 0)

Dispatch = Callable[[Connection, memoryview, int, int], None]


@dataclass(slots=True)
class Acceptor:
    """One listening socket, and what is asked of those who come through it."""

    endpoint: Endpoint
    tls: Tls | None = None
    log_ins: LogIns | None = None
    sock: socket.socket | None = None
    limit: int = INT_MAX
    """Most connections at a time through this listener."""
    rate: int = INT_MAX
    """Most new connections a second."""
    protected: bool = False
    """Whether there is room even at the broker's limit: others make it."""
    count: int = 0
    made: Rate = field(default_factory=Rate)
    full: bool = False
    """Whether new connections wait until another one goes."""
    resting: bool = False
    """Whether they wait because they came too fast."""
    unknown: dict[int, tuple[int, Connection]] = field(default_factory=dict)
    """Those that have not said who they are yet, with when they last said something: who has been
    silent for longest comes first."""

    @property
    def waiting(self) -> bool:
        return self.full or self.resting

    def open(self) -> None:
        """Listen; the endpoint has its port from now on. Raises PortInUseError, ListenError."""
        if self.endpoint.host is not None:
            self.sock = listen_on(self.endpoint.host, self.endpoint.port)
            self.endpoint = replace(self.endpoint, port=int(self.sock.getsockname()[1]))


class Listener:
    """Accepts connections and looks after them until `close`."""

    def __init__(
        self,
        loop: Loop,
        clock: Clock,
        acceptors: Sequence[Acceptor],
        dispatch: Dispatch,
        *,
        frame_limit_bytes: int,
        receive_budget_bytes: int,
        idle_seconds: float,
        connection_limit: int,
        connections_per_host: int,
        closed: Callable[[Connection], None] = lambda connection: None,
        other_limit_bytes: int | None = None,
        limits: Mapping[int, int] | None = None,
        login_seconds: float = 30.0,
        creation_rate: int = INT_MAX,
        rate_windows: tuple[int, float] = (11, 1.0),
        host_limits: Mapping[str, int] | None = None,
    ) -> None:
        self.loop = loop
        self.dispatch = dispatch
        self.frame_limit_bytes = frame_limit_bytes
        self.other_limit_bytes = other_limit_bytes or frame_limit_bytes
        self.limits = limits or {}
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.connections: dict[int, Connection] = {}
        self.now = clock.monotonic()
        self.bytes_out = 0
        self.accepted_total = 0
        self.refused_total = 0
        self.refused_frames_total = 0
        self.muted_total = 0
        self.monotonic = clock.monotonic
        self._closed = closed
        self._budget_bytes = receive_budget_bytes
        self.reserved_bytes = 0
        self._starved: deque[Connection] = deque()
        self._idle_seconds = idle_seconds
        self._connection_limit = connection_limit
        self._connections_per_host = connections_per_host
        self._host_limits = dict(host_limits or {})
        self._creation_rate = creation_rate
        self._made = Rate(*rate_windows)
        self._room_planned = False
        self._per_host: Counter[str] = Counter()
        self._login_seconds = login_seconds
        self._by_name: dict[str, Acceptor] = {}
        self._words = 0
        self.handshakes_failed_total = 0
        self.logins_late_total = 0
        self.handshakes = Handshakes(loop)
        self.acceptors = list(acceptors)
        opened: list[Acceptor] = []
        try:
            for acceptor in self.acceptors:
                acceptor.open()
                opened.append(acceptor)
        except BaseException:
            for acceptor in opened:
                if acceptor.sock is not None:
                    acceptor.sock.close()
            raise
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        for acceptor in self.acceptors:
            self._by_name[acceptor.endpoint.name] = acceptor
            if acceptor.sock is not None:
                loop.watch(acceptor.sock.fileno(), READ, self._accepting(acceptor))
        first = self.acceptors[0].endpoint
        self.host, self.port = (IN_PROCESS if first.host is None else first.host), first.port
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)

    # connections

    def _accepting(self, acceptor: Acceptor) -> Callable[[int], None]:
        return lambda mask: self._accept(acceptor)

    def _accept(self, acceptor: Acceptor) -> None:
        self.now = self.monotonic()
        listening = acceptor.sock
        if listening is None:
            return
        # What TLS needs for a connection is made here: a flood leaves the loop to others.
        for _ in range(128 if acceptor.tls is None else 16):
            if acceptor.waiting:
                return
            full, victim = self._room(acceptor)
            if full and victim is None:
                acceptor.full = True
                self._attend(acceptor)
                return
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._refuse_one(listening)
                    continue
                if error.errno in (errno.ECONNABORTED, errno.EINTR, errno.EPROTO):
                    continue
                raise
            peer = str(address[0])
            if victim is not None:
                self.refused_total += 1
                victim.close()
            self._count_new(acceptor)
            if self._per_host[peer] >= self._host_limits.get(peer, self._connections_per_host):
                self.refused_total += 1
                sock.close()
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if sock.getsockname()[0] == peer:
                send_unpaced(sock)
            self.adopt(sock, peer, acceptor)

    def _room(self, acceptor: Acceptor) -> tuple[bool, Connection | None]:
        """Whether there is no room for one more through this listener, and who makes it then; it
        waits until one goes if nobody does."""
        victim: Connection | None
        if acceptor.count >= acceptor.limit:
            victim = _most_silent([acceptor])
        elif len(self.connections) >= self._connection_limit:
            victim = _most_silent(self.acceptors)
            if victim is None and acceptor.protected:
                others = (
                    each
                    for each in self.connections.values()
                    if each.endpoint.name != acceptor.endpoint.name and not each.project
                )
                victim = min(others, key=lambda each: each.used_at, default=None)
        else:
            return False, None
        return True, victim

    def _count_new(self, acceptor: Acceptor) -> None:
        """Have the listener rest for a while if connections come faster than they may."""
        pause = 0.0
        for rate, limit in ((self._made, self._creation_rate), (acceptor.made, acceptor.rate)):
            if limit < INT_MAX:
                rate.add(1, self.now)
                pause = max(pause, rate.pause(limit, self.now))
        if pause > 0 and not acceptor.resting:
            acceptor.resting = True
            self._attend(acceptor)
            self.loop.call_later(pause, lambda: self._rested(acceptor))

    def _rested(self, acceptor: Acceptor) -> None:
        acceptor.resting = False
        self._attend(acceptor)

    def _room_again(self) -> None:
        self._room_planned = False
        for acceptor in self.acceptors:
            if acceptor.full:
                acceptor.full = False
                self._attend(acceptor)

    def _attend(self, acceptor: Acceptor) -> None:
        """Accept what comes, or leave it in the system's queue."""
        if acceptor.sock is not None:
            self.loop.change(acceptor.sock.fileno(), 0 if acceptor.waiting else READ)

    def adopt(
        self, sock: socket.socket, peer: str = IN_PROCESS, acceptor: Acceptor | None = None
    ) -> None:
        """Serve a connected socket; it belongs to the listener from now on."""
        sock.setblocking(False)
        number = self.accepted_total + 1
        endpoint = INSIDE if acceptor is None else acceptor.endpoint
        connection: Connection
        if acceptor is None or acceptor.tls is None:
            connection = Connection(sock, peer, number, self, endpoint)
        else:
            from tailrace.broker.secure_connection import SecureConnection

            try:
                wrapped = acceptor.tls.context.wrap_socket(
                    sock, server_side=True, do_handshake_on_connect=False
                )
            except (OSError, ValueError):
                sock.close()  # gone before it said anything
                return
            connection = SecureConnection(wrapped, peer, number, self, endpoint, acceptor.tls)
        self.accepted_total = number
        self._per_host[peer] += 1
        connection.project = acceptor is None  # nobody else can have the other end
        self.connections[number] = connection
        if acceptor is not None:
            acceptor.count += 1
        if acceptor is not None and acceptor.log_ins is not None:
            connection.log_in = acceptor.log_ins.begin(connection)
            connection.dispatch = connection.log_in.dispatch
            connection.frame_limit_bytes = acceptor.log_ins.frame_limit_bytes
        if acceptor is not None and (endpoint.tls or endpoint.sasl):
            connection.login_until = self.monotonic() + self._login_seconds
            self._words += 1
            acceptor.unknown[number] = (self._words, connection)

    def heard(self, connection: Connection) -> None:
        """It has said something on its way to saying who it is: silent ones make room before it."""
        acceptor = self._by_name.get(connection.endpoint.name)
        if acceptor is not None and acceptor.unknown.pop(connection.number, None) is not None:
            self._words += 1
            acceptor.unknown[connection.number] = (self._words, connection)

    def known(self, connection: Connection) -> None:
        """It has said who it is."""
        connection.login_until = 0.0
        acceptor = self._by_name.get(connection.endpoint.name)
        if acceptor is not None:
            acceptor.unknown.pop(connection.number, None)

    def handshake_failed(self, connection: Connection, error: Exception | None) -> None:
        """No TLS with this peer: another protocol, a certificate that is not trusted, no user."""
        self.handshakes_failed_total += 1
        reason = "no rule makes a user of its certificate"
        if error is not None:
            reason = getattr(error, "reason", None) or type(error).__name__
        log.info(
            "TLS handshake failed",
            extra={"peer": connection.peer, "listener": connection.listener, "reason": reason},
        )

    def _refuse_one(self, listening: socket.socket) -> None:
        """Out of descriptors: spend the spare one to take and close one connection.

        Left in the backlog it would make the loop spin on a socket that stays readable.
        """
        self.refused_total += 1
        os.close(self._spare)
        with contextlib.suppress(OSError):
            listening.accept()[0].close()
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def gone(self, connection: Connection) -> None:
        """A connection closed itself."""
        acceptor = self._by_name.get(connection.endpoint.name)
        if acceptor is not None:
            acceptor.unknown.pop(connection.number, None)
        if self.connections.pop(connection.number, None) is not None:
            if acceptor is not None:
                acceptor.count -= 1
            if not self._room_planned and any(each.full for each in self.acceptors):
                self._room_planned = True
                self.loop.call_soon(self._room_again)
            self._per_host[connection.peer] -= 1
            if self._per_host[connection.peer] <= 0:
                del self._per_host[connection.peer]
            self._closed(connection)

    def too_large(self, size: int, api_key: int) -> bool:
        """Whether a frame is larger than its kind of request may be."""
        return size > self.limits.get(api_key, self.other_limit_bytes)

    def refused_frame(self, connection: Connection, size: int, api_key: int = -1) -> None:
        """A length field outside the limits: the peer does not speak our protocol, or asks
        for too much at once."""
        self.refused_frames_total += 1
        log.info("frame refused", extra={"peer": connection.peer, "size": size, "request": api_key})

    # memory for frames

    def reserve(self, connection: Connection, count: int, force: bool) -> bool:
        """Whether `count` more bytes may be held for this connection; else it waits its turn."""
        if force or self.reserved_bytes + count <= self._budget_bytes:
            self.reserved_bytes += count
            return True
        self._starved.append(connection)
        return False

    def give_back(self, count: int) -> None:
        """Return reserved bytes; whoever waited for them goes on."""
        self.reserved_bytes -= count
        if self._starved and self.reserved_bytes < self._budget_bytes:
            self.loop.call_soon(self._starved.popleft().resume)

    def _sweep(self) -> None:
        """Every few seconds: idle connections go, unused buffers are given back."""
        self.now = now = self.monotonic()
        starving = bool(self._starved)
        for connection in list(self.connections.values()):
            quiet = now - connection.used_at
            stalled = starving and quiet > STALLED_SECONDS and connection.filled_bytes
            if connection.muted:
                continue  # it is our doing that it is quiet
            if connection.login_until and now > connection.login_until:
                self.logins_late_total += 1
                connection.close()
                continue
            # A frame that does not go on holds memory; one that waits for us may.
            cut = connection.filled_bytes and not (connection.paused or connection.starved)
            if (
                quiet > self._idle_seconds
                or (stalled and not connection.starved)
                or (cut and quiet > CUT_FRAME_SECONDS)
            ):
                connection.close()
            elif quiet >= SWEEP_SECONDS:
                connection.drop_buffer()
        if self._starved and self.reserved_bytes < self._budget_bytes:
            self._starved.popleft().resume()
        for acceptor in self.acceptors:
            if acceptor.tls is not None:
                acceptor.tls.refresh()
        self._sweeper = self.loop.call_later(SWEEP_SECONDS, self._sweep)

    # the end

    def stop_accepting(self) -> None:
        """New connections are refused from now on; the present ones stay."""
        for acceptor in self.acceptors:
            if acceptor.sock is not None:
                self.loop.forget(acceptor.sock.fileno())
                acceptor.sock.close()
                acceptor.sock = None

    def close(self) -> None:
        """Close everything at once."""
        self.stop_accepting()
        self._sweeper.cancel()
        for connection in list(self.connections.values()):
            connection.close()
        self.handshakes.close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1


def _most_silent(acceptors: Sequence[Acceptor]) -> Connection | None:
    """Of those that have not logged in, the one that said nothing for longest."""
    heads = [next(iter(each.unknown.values())) for each in acceptors if each.unknown]
    return min(heads, key=lambda head: head[0])[1] if heads else None


def send_unpaced(sock: socket.socket) -> None:
    """Leave out congestion control where there is no network.

    A system whose default is BBR paces even the loopback with a timer, which halves what a
    consumer on the same machine gets and doubles what sending costs. Reno never paces and
    every kernel allows it.
    """
    with contextlib.suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def listen_on(host: str, port: int) -> socket.socket:
    """A listening, non-blocking socket; raises PortInUseError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise ListenError(f"{host} is not a known address", detail=str(error)) from error
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and not host:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
        sock.listen(4096)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(
                f"another process listens on {host}:{port}",
                hint="choose another address with `--listen`, or port 0 to have a free one picked",
            ) from error
        raise ListenError(
            f"cannot listen on {host}:{port}",
            detail=str(error),
            hint="0.0.0.0 listens on every address of this machine",
        ) from error
    return sock
