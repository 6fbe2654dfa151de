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
import threading
from collections.abc import Iterable
from math import inf
from time import monotonic

from tailrace.client.errors import ClientError
from tailrace.client.log import Log
from tailrace.config import parse_address
from tailrace.records.json_bytes import json_bytes
from tailrace.sources.edges.committer import Committer, Full, Outgoing
from tailrace.sources.edges.datagrams import arriving, bound, drops
from tailrace.sources.edges.declare import StatsD
from tailrace.sources.edges.statsd_lines import Aggregate, BadLine

log = logging.getLogger(__name__)

HELD_LIMIT = 200_000
_RECORDS_AT_ONCE = 5_000
_LAST_SECONDS = 2.0  # for what has arrived when it is stopped


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
        self._sock = bound(*parse_address(edge.listen), edge.buffer_bytes)
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
        last_at = inf
        for datagrams in arriving(self._sock):
            if datagrams:
                self.take(datagrams)
            if self._stopping.is_set():
                last_at = min(last_at, monotonic() + _LAST_SECONDS)
            if (not datagrams and last_at < inf) or monotonic() > last_at:
                return

    def take(self, datagrams: Iterable[bytes]) -> None:
        """Count the lines of some datagrams."""
        count = lines = bad = 0
        with self._lock:
            add = self._aggregate.add
            for datagram in datagrams:
                count += 1
                for line in datagram.split(b"\n"):
                    if not line or line.startswith((b"_e{", b"_sc|")):
                        bad += bool(line)  # events and checks of DogStatsD are no metrics
                        continue
                    try:
                        add(line)
                        lines += 1
                    except BadLine:
                        bad += 1
            self._counts["datagrams"] += count
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
                Outgoing(self._edge.written, json_bytes(told), one.name.encode(), timestamp=at)
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
