"""Datagrams of a multicast sender asked for again, over TCP.

    asked      source u32 | first u64 | last u64                                    big-endian
    answered   for each number from first to last: length u32 | datagram; length 0: it is gone

A connection serves one request after another.
"""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import BinaryIO

from tailrace.errors import PortInUseError, TailraceError
from tailrace.sources.edges.sequences import BadDatagram, unpack

log = logging.getLogger(__name__)

ASK = struct.Struct("!IQQ")
LENGTH = struct.Struct("!I")
ASKED_AT_ONCE = 10_000
SERVED_AT_ONCE = 1_000_000
ANSWER_LIMIT_BYTES = 128 << 20
CONNECTIONS = 64
IDLE_SECONDS = 60.0
AGAIN_SECONDS = 0.05

# The datagrams from a first to a last number of a source; None for one that is gone.
Find = Callable[[int, int, int], Iterator[bytes | None]]


class RepairError(OSError):
    """The other end does not speak this."""


def ask(
    address: tuple[str, int], source: int, first: int, last: int, seconds: float
) -> Iterator[tuple[int, bytes | None]]:
    """Number and payload, None if it is gone. Raises OSError; what came before that counts."""
    until = monotonic() + seconds
    with socket.create_connection(address, seconds) as sock:
        sock.sendall(ASK.pack(source, first, last))
        with sock.makefile("rb") as answers:
            for number in range(first, last + 1):
                left = until - monotonic()
                if left <= 0:
                    raise TimeoutError("the repair takes too long")
                sock.settimeout(left)
                (length,) = LENGTH.unpack(_exactly(answers, LENGTH.size))
                if not length:
                    yield number, None
                    continue
                if length > ANSWER_LIMIT_BYTES:
                    raise RepairError(f"an answer of {length} bytes")
                try:
                    found, sequence, payload = unpack(_exactly(answers, length))
                except BadDatagram:
                    raise RepairError("the answer is no datagram") from None
                if (found, sequence) != (source, number):
                    raise RepairError("the answer is another datagram")
                yield number, payload


def _exactly(answers: BinaryIO, count: int) -> bytes:
    data = answers.read(count)
    if len(data) < count:
        raise RepairError("the connection ended within an answer")
    return data


class RepairServer:
    """Listens at once, answers from `start` until `close`."""

    def __init__(self, host: str, port: int, find: Find) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closing = False
        try:
            self._sock = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            raise PortInUseError(
                f"nothing can listen on {host}:{port}",
                detail=str(error),
                hint="choose another port, or 0",
            ) from error
        self._host = host
        self._accepting = threading.Thread(target=self._accept, name="repairs", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        return self._host, int(self._sock.getsockname()[1])

    def start(self) -> None:
        self._accepting.start()

    def close(self) -> None:
        with self._lock:
            self._closing = True
            socks = [self._sock, *self._open]
        for sock in socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone already
        self._sock.close()
        if self._accepting.is_alive():
            self._accepting.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._sock.accept()
            except OSError:
                with self._lock:
                    if self._closing:
                        return
                sleep(AGAIN_SECONDS)  # out of descriptors, or a peer that went at once
                continue
            with self._lock:
                if self._closing or len(self._open) >= CONNECTIONS:
                    sock.close()
                    continue
                self._open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), name="repair", daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock, sock.makefile("rb") as asked:
                sock.settimeout(IDLE_SECONDS)
                while len(head := asked.read(ASK.size)) == ASK.size:
                    source, first, last = ASK.unpack(head)
                    if not first <= last < first + SERVED_AT_ONCE:
                        return
                    self._answer(sock, source, first, last)
        except (OSError, TailraceError) as error:
            log.info("a repair ended", extra={"error": str(error)})  # they ask again
        finally:
            with self._lock:
                self._open.discard(sock)

    def _answer(self, sock: socket.socket, source: int, first: int, last: int) -> None:
        out = bytearray()
        for datagram in self._find(source, first, last):
            out += LENGTH.pack(len(datagram or b""))
            out += datagram or b""
            if len(out) >= 1 << 16:
                if self._closing:
                    return
                sock.sendall(out)
                out.clear()
        sock.sendall(out)
