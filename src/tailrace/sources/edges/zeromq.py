"""Messages of ZeroMQ as records.

ZeroMQ numbers nothing: what a PUB socket dropped because nobody took it, nobody can count. What
reached this edge is written once, or counted as lost. While the log does not take it a PULL socket
takes no more, so that its senders wait; a SUB socket goes on up to the room it has, and then its
publishers drop.
"""

from __future__ import annotations

import threading
from math import inf
from time import monotonic

import zmq

from tailrace.client.log import Log
from tailrace.config import parse_size
from tailrace.errors import PortInUseError
from tailrace.sources.edges.committer import Outgoing
from tailrace.sources.edges.declare import ZeroMQ
from tailrace.sources.edges.spool import Spool

FRAMES_LIMIT = 100
FRAME_HEADER = "frame"
_WAIT_MS = 100
_LAST_SECONDS = 2.0  # for what has arrived when it is stopped


class Messages:
    """The socket, a thread that reads it, and the spool's."""

    def __init__(self, edge: ZeroMQ, source: Log) -> None:
        self._edge = edge
        self._log = source
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("received", "refused"), 0)
        self._stopping = threading.Event()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sock = self._context.socket(zmq.PULL if edge.pull is not None else zmq.SUB)
        self._sock.setsockopt(zmq.LINGER, 0)
        self._sock.setsockopt(zmq.MAXMSGSIZE, parse_size(edge.limit))
        self._sock.setsockopt(zmq.RCVHWM, 10_000)
        self._sock.setsockopt(zmq.IPV6, int(any("[" in one for one in edge.addresses)))
        try:
            for address in edge.addresses:
                (self._sock.bind if edge.binds else self._sock.connect)(address)
        except zmq.ZMQError as error:
            self._sock.close()
            self._context.term()
            raise PortInUseError(
                f"edge {edge.name!r} cannot use {address}",
                detail=str(error),
                hint="choose another port, or `bind=` if the other side listens",
            ) from error
        if edge.subscribe is not None:
            for prefix in edge.prefixes:
                self._sock.setsockopt(zmq.SUBSCRIBE, prefix.encode())
        # The socket is the reader's alone once that runs.
        self.address = edge.listen
        if edge.binds:
            self.address = self._sock.getsockopt_string(zmq.LAST_ENDPOINT)
        self._spool = Spool(source, edge.name)
        self._reader = threading.Thread(target=self._read, name="zeromq reader", daemon=True)

    def start(self) -> None:
        self._log.ensure_topic(self._edge.written)
        self._spool.start()
        self._reader.start()

    def close(self) -> None:
        """Read what has arrived, write it, and stop."""
        self._stopping.set()
        if self._reader.is_alive():
            self._reader.join()
        self._spool.close()
        self._sock.close()
        self._context.term()

    def figures(self) -> dict[str, int]:
        spool = self._spool.counts
        with self._lock:
            counts = dict(self._counts)
        lost = spool["too_large"] + spool["given_up"]
        return counts | {"accepted": spool["written"], "lost": lost}

    def _read(self) -> None:
        last_at = inf
        while True:
            while self._spool.full and not self._stopping.wait(0.02):
                pass
            if self._stopping.is_set():
                last_at = min(last_at, monotonic() + _LAST_SECONDS)
            if monotonic() > last_at:
                return
            if not self._sock.poll(_WAIT_MS):
                if self._stopping.is_set():
                    return
                continue
            self.take(self._sock.recv_multipart())

    def take(self, frames: list[bytes]) -> None:
        """One message."""
        good = len(frames) <= FRAMES_LIMIT
        with self._lock:
            self._counts["received"] += 1
            self._counts["refused"] += not good
        if not good:
            return
        key = frames[0] if len(frames) > 1 else None
        value = frames[1] if len(frames) > 1 else frames[0]
        headers = tuple((FRAME_HEADER, frame) for frame in frames[2:])
        self._spool.put(Outgoing(self._edge.written, value, key, headers))
