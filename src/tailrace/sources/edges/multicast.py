"""Numbered datagrams of a multicast group as records: in order, each once, gaps repaired.

A record of the topic is the payload of a datagram; its key is the number of the sender, so that those
of one sender keep their order, and its headers name both (`multicast-source`, `multicast-sequence`).
The next number of each sender is kept with the records (`spool`): after a restart nothing is written
twice, and what was missed meanwhile is a gap like any other.
"""

from __future__ import annotations

import logging
import os
import threading
from math import inf
from time import monotonic

from tailrace.client.log import Log
from tailrace.config import parse_address
from tailrace.sources.edges import repair
from tailrace.sources.edges.committer import Outgoing
from tailrace.sources.edges.datagrams import arriving, drops, joined
from tailrace.sources.edges.declare import Multicast
from tailrace.sources.edges.sequences import BadDatagram, Sequence, unpack
from tailrace.sources.edges.spool import Spool

log = logging.getLogger(__name__)

SENDERS_LIMIT = 10_000
SOURCE_HEADER, SEQUENCE_HEADER = "multicast-source", "multicast-sequence"
NEAR = 32
_LAST_SECONDS = 2.0  # for what has arrived when it is stopped
_ROUND_SECONDS = 0.02
_ASK_SECONDS = 2.0


class Receiving:
    """The socket, a thread that reads it, one that mends gaps, and the spool's."""

    def __init__(self, edge: Multicast, source: Log) -> None:
        self._edge = edge
        self._log = source
        self._clock = source.clock
        self._lock = threading.Lock()
        self._senders: dict[int, Sequence] = {}
        self._counts = dict.fromkeys(("datagrams", "bad_datagrams"), 0)
        self._stopping = threading.Event()
        host, port = parse_address(edge.group)
        self._sock = joined(host, port, edge.interface, edge.buffer_bytes)
        self._inode = os.fstat(self._sock.fileno()).st_ino
        self._repair = None if edge.repair is None else parse_address(edge.repair)
        self._spool = Spool(source, edge.name)
        self._reader = threading.Thread(target=self._read, name="multicast reader", daemon=True)
        self._mender = threading.Thread(target=self._mend, name="multicast repairs", daemon=True)

    @property
    def address(self) -> str:
        return f"{parse_address(self._edge.group)[0]}:{self._sock.getsockname()[1]}"

    def start(self) -> None:
        self._log.ensure_topic(self._edge.written)
        self._spool.start()
        for source, number in self._spool.marks.items():
            self._senders[int(source)] = Sequence(int(number))
        self._reader.start()
        self._mender.start()

    def close(self) -> None:
        """Read what has arrived and write what is in order; the next start asks for the rest."""
        self._stopping.set()
        for thread in (self._reader, self._mender):
            if thread.is_alive():
                thread.join()
        self._spool.close()
        self._sock.close()

    def figures(self) -> dict[str, int]:
        with self._lock:
            senders = list(self._senders.values())
            counts = dict(self._counts)
            lost = sum(one.lost for one in senders)
            counts["repeated"] = sum(one.repeated for one in senders)
            counts["repaired"] = sum(one.filled for one in senders)
        spool = self._spool.counts
        return counts | {
            "senders": len(senders),
            "dropped_datagrams": drops(self._inode),  # asked for again, so not yet lost
            "received": counts["datagrams"],
            "accepted": spool["written"],
            "refused": counts["bad_datagrams"],
            "lost": lost + spool["too_large"],
        }

    def _read(self) -> None:
        last_at = inf
        for datagrams in arriving(self._sock):
            for datagram in datagrams:
                self.take(datagram)
            while self._spool.full and not self._stopping.is_set():
                self._stopping.wait(_ROUND_SECONDS)  # the kernel drops; that is repaired later
            if self._stopping.is_set():
                last_at = min(last_at, monotonic() + _LAST_SECONDS)
            if (not datagrams and last_at < inf) or monotonic() > last_at:
                return

    def take(self, datagram: bytes) -> None:
        """One datagram of any bytes."""
        with self._lock:
            self._counts["datagrams"] += 1
            try:
                source, number, payload = unpack(datagram)
                sender = self._sender(source)
            except BadDatagram:
                self._counts["bad_datagrams"] += 1
                return
            if not sender.take(number, payload, self._clock.monotonic()):
                self._counts["bad_datagrams"] += 1
                return
            self._hand_out(source, sender)

    def _sender(self, source: int) -> Sequence:
        known = self._senders.get(source)
        if known is None:
            if len(self._senders) >= SENDERS_LIMIT:
                raise BadDatagram
            known = self._senders[source] = Sequence(catch_up=self._repair is not None)
        return known

    def _hand_out(self, source: int, sender: Sequence) -> None:
        for number, payload in sender.ready():
            headers = (
                (SOURCE_HEADER, str(source).encode()),
                (SEQUENCE_HEADER, str(number).encode()),
            )
            record = Outgoing(self._edge.written, payload, str(source).encode(), headers)
            self._spool.put(record, (str(source), str(number + 1)))

    # Gaps --------------------------------------------------------------------------

    def _mend(self) -> None:
        while not self._stopping.wait(_ROUND_SECONDS):
            with self._lock:
                behind = [
                    (source, one, since)
                    for source, one in self._senders.items()
                    if (since := one.waiting_since()) is not None
                ]
            for source, sender, since in behind:
                # What is only out of order comes by itself at once.
                if self._repair is not None and self._clock.monotonic() - since > _ROUND_SECONDS:
                    self._fill(source, sender)
                self._give_up_late(source, sender)

    def _fill(self, source: int, sender: Sequence) -> None:
        assert self._repair is not None
        with self._lock:
            gaps = list(sender.missing(repair.ASKED_AT_ONCE, NEAR))
        for first, last in gaps:
            if self._stopping.is_set() or self._spool.full:
                return
            try:
                for number, payload in repair.ask(self._repair, source, first, last, _ASK_SECONDS):
                    with self._lock:
                        if payload is None:
                            sender.skip(number, number)
                        else:
                            sender.take(number, payload, self._clock.monotonic(), asked=True)
                        self._hand_out(source, sender)
            except OSError as error:
                log.warning("no repair", extra={"edge": self._edge.name, "error": str(error)})
                return

    def _give_up_late(self, source: int, sender: Sequence) -> None:
        patience = self._edge.wait.total_seconds()
        with self._lock:
            while (since := sender.waiting_since()) is not None:
                if self._clock.monotonic() - since < patience:
                    return
                sender.give_up()
                self._hand_out(source, sender)
