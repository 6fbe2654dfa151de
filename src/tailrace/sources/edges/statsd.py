"""Metrics over UDP, aggregated and written at each flush; what the kernel dropped is counted.

Every datagram sent to the socket is either received or lost: the kernel keeps the number it dropped
for want of room, in the column `drops` of `/proc/net/udp` (SO_RXQ_OVFL would tell it only with the
next datagram). A record is `{"name", "type", "value", "tags", "at"}`; those of a flush become visible
together. While the log does not take them they wait, up to `HELD_LIMIT`, and are lost and counted
beyond.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from pathlib import Path

import orjson

from tailrace.client.errors import ClientError
from tailrace.client.log import Log
from tailrace.config import parse_address
from tailrace.errors import PortInUseError
from tailrace.sources.edges.committer import Committer, Full, Outgoing
from tailrace.sources.edges.declare import StatsD
from tailrace.sources.edges.statsd_lines import Aggregate, BadLine

log = logging.getLogger(__name__)

DATAGRAM_BYTES = 65_535
HELD_LIMIT = 200_000
_RECORDS_AT_ONCE = 5_000
_SO_RCVBUFFORCE = 33
_WAIT_SECONDS = 0.1


class Listening:
    """The socket, a thread that reads it, and one that flushes."""

    def __init__(self, edge: StatsD, source: Log) -> None:
        self._edge = edge
        self._log = source
        self._clock = source.clock
        self._lock = threading.Lock()
        self._aggregate = Aggregate()
        self._held: list[Outgoing] = []
        self._counts = dict.fromkeys(
            ("datagrams", "lines", "bad_lines", "lost_datagrams", "written", "lost_records"), 0
        )
        self._stopping = threading.Event()
        self._sock = _bound(*parse_address(edge.listen), edge.buffer_bytes)
        self._inode = os.fstat(self._sock.fileno()).st_ino
        self._committer = Committer(source, f"tailrace.edge.{edge.name}")
        self._reader = threading.Thread(target=self._read, name="statsd reader", daemon=True)
        self._flusher = threading.Thread(target=self._flush_again, name="statsd flush", daemon=True)

    @property
    def address(self) -> str:
        host, port = self._sock.getsockname()[:2]
        return f"{host}:{port}"

    def start(self) -> None:
        self._log.ensure_topic(self._edge.written)
        self._committer.start()
        self._reader.start()
        self._flusher.start()

    def close(self) -> None:
        """Read what has arrived, write it, and stop."""
        self._stopping.set()
        for thread in (self._reader, self._flusher):
            if thread.is_alive():
                thread.join()
        self.flush()
        self._committer.close()
        self._sock.close()

    def figures(self) -> dict[str, int]:
        self._look_for_losses()
        with self._lock:
            counts = dict(self._counts)
        return counts | {
            "received": counts["lines"] + counts["bad_lines"],
            "accepted": counts["lines"],
            "refused": counts["bad_lines"],
            "lost": counts["lost_datagrams"] + counts["lost_records"],
        }

    # Reading -----------------------------------------------------------------------

    def _read(self) -> None:
        self._sock.settimeout(_WAIT_SECONDS)
        while True:
            try:
                data = self._sock.recv(DATAGRAM_BYTES)
            except TimeoutError:
                if self._stopping.is_set():
                    return
                continue
            except OSError:
                return
            self.take(data)

    def take(self, datagram: bytes) -> None:
        """Count the lines of one datagram."""
        lines = bad = 0
        with self._lock:
            for line in datagram.split(b"\n"):
                if not line or line.startswith((b"_e{", b"_sc|")):
                    bad += bool(line)  # events and checks of DogStatsD are no metrics
                    continue
                try:
                    self._aggregate.add(line)
                    lines += 1
                except BadLine:
                    bad += 1
            self._counts["datagrams"] += 1
            self._counts["lines"] += lines
            self._counts["bad_lines"] += bad

    def _look_for_losses(self) -> None:
        dropped = drops(self._inode)
        with self._lock:
            self._counts["lost_datagrams"] = max(dropped, self._counts["lost_datagrams"])

    # Flushing ----------------------------------------------------------------------

    def _flush_again(self) -> None:
        while not self._stopping.wait(self._edge.every.total_seconds()):
            self.flush()

    def flush(self) -> None:
        """Write what has added up, and what an earlier flush could not."""
        self._look_for_losses()
        at = self._clock.wall_ms()
        with self._lock:
            metrics = self._aggregate.take()
        for one in metrics:
            value = int(one.value) if float(one.value).is_integer() and abs(one.value) < 2**53 else one.value  # fmt: skip
            told = {"name": one.name, "type": one.kind, "value": value, "tags": one.tags, "at": at}
            self._held.append(
                Outgoing(self._edge.written, orjson.dumps(told), one.name.encode(), timestamp=at)
            )
        excess = len(self._held) - HELD_LIMIT
        if excess > 0:
            del self._held[:excess]
            with self._lock:
                self._counts["lost_records"] += excess
        while self._held:
            some = self._held[:_RECORDS_AT_ONCE]
            try:
                self._committer.submit(some).result()
            except (ClientError, Full, OSError) as error:
                log.warning("metrics wait", extra={"edge": self._edge.name, "error": str(error)})
                return
            del self._held[: len(some)]
            with self._lock:
                self._counts["written"] += len(some)


def drops(inode: int) -> int:
    """How many datagrams the kernel dropped at a socket; 0 where it does not tell."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) >= 13 and fields[9] == str(inode):
                return int(fields[-1])
    return 0


def _bound(host: str, port: int, buffer_bytes: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer_bytes)
        except OSError:  # only root may have more than net.core.rmem_max
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise PortInUseError(
            f"nothing can listen on {host}:{port} (UDP)",
            detail=str(error),
            hint="choose another port, or 0",
        ) from error
    return sock
