"""A topic sent to a multicast group, and what receivers missed sent again from the log.

Each partition is a sender of its own, `source=` plus its number. A sequence begins with the offset of
its first record and grows by one a record; markers of transactions, which take offsets, have none, so a
number is never beyond the offset. Which offset a number has is kept every `STEP` records and every
second in `<state>/multicast/<name>.json`; what was sent after the last of them is sent again, by the
same numbers. A new edge begins with the first record that the log has. One that has lost its file goes
on with the next record, whose number is its offset: receivers count a gap, and never take a new record
for an old one. Where records left the log before they were sent, the numbers leave them out too.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path

import orjson

from tailrace.client.log import Log
from tailrace.config import parse_address
from tailrace.errors import TailraceError, UsageError
from tailrace.files import FILES
from tailrace.modes import make_private
from tailrace.sources.edges.datagrams import DATAGRAM_BYTES, sending
from tailrace.sources.edges.declare import Multicast
from tailrace.sources.edges.repair import RepairServer
from tailrace.sources.edges.sequences import HEADER, pack
from tailrace.sources.edges.spool import EDGES_TOPIC

log = logging.getLogger(__name__)

STEP = 1_000
PLACES_LIMIT = 100_000
LARGEST_PAYLOAD = DATAGRAM_BYTES - 28 - HEADER.size  # behind the headers of IP and UDP
_POLL_SECONDS = 0.2
_SAVE_SECONDS = 1.0
_REPEAT_SECONDS = 1.0


class Places:
    """Which offset a number has: some pairs of one partition, oldest first."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        self._numbers = [number for number, _ in pairs]
        self._offsets = [offset for _, offset in pairs]
        self.next, self.offset = pairs[-1]

    def advance(self, offset: int, most_left_out: int) -> int:
        """The number of the record at `offset`; up to so many before it were never sent."""
        self.next += most_left_out
        number = self.next
        if number - self._numbers[-1] >= STEP or most_left_out:
            self._keep(number, offset)
        self.next, self.offset = number + 1, offset + 1
        return number

    def _keep(self, number: int, offset: int) -> None:
        self._numbers.append(number)
        self._offsets.append(offset)
        if len(self._numbers) > PLACES_LIMIT:
            del self._numbers[: PLACES_LIMIT // 2], self._offsets[: PLACES_LIMIT // 2]

    def find(self, number: int, kept_from: int) -> tuple[int, int] | None:
        """Number and offset to count from: the last known at or before `number`, unless records
        from there on have left the log; then the first that is whole. None: beyond the end."""
        if number >= self.next:
            return None
        at = max(bisect_right(self._numbers, number) - 1, 0)
        for n in range(at, len(self._numbers)):
            if self._offsets[n] >= kept_from:
                return self._numbers[n], self._offsets[n]
        return self.next, self.offset

    def number_at(self, offset: int) -> int | None:
        """The number of the record at an offset, where that is kept."""
        at = bisect_left(self._offsets, offset)
        found = at < len(self._offsets) and self._offsets[at] == offset
        return self._numbers[at] if found else None

    def pairs(self) -> list[tuple[int, int]]:
        found = list(zip(self._numbers, self._offsets, strict=True))
        return [*found, (self.next, self.offset)] if found[-1][0] != self.next else found


class Publishing:
    """One thread that reads and sends, and the server of repairs."""

    def __init__(self, edge: Multicast, source: Log, directory: Path) -> None:
        assert edge.send is not None
        self._edge = edge
        self._topic = edge.send
        self._log = source
        self._clock = source.clock
        self._path = directory / "multicast" / f"{edge.name}.json"
        self._group = parse_address(edge.group)
        self._lock = threading.Lock()
        self._places: dict[int, Places] = {}
        self._saved: bytes = b""
        self._saved_at = self._sent_at = 0.0
        self._counts = dict.fromkeys(("received", "accepted", "oversized", "repaired"), 0)
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._last: dict[int, bytes] = {}
        self._sock = sending(self._group[0], edge.interface, edge.hops)
        self._server: RepairServer | None = None
        if edge.repair is not None:
            try:
                self._server = RepairServer(*parse_address(edge.repair), self.find)
            except BaseException:
                self._sock.close()
                raise
        self._thread = threading.Thread(target=self._work, name="multicast sender", daemon=True)

    @property
    def address(self) -> str:
        return f"{self._group[0]}:{self._group[1]}"

    @property
    def repairs(self) -> tuple[str, int] | None:
        """Where receivers ask."""
        return None if self._server is None else self._server.address

    def start(self) -> None:
        self._log.ensure_topic(self._topic)
        if "compact" in (self._log.topic_config(self._topic).get("cleanup.policy") or ""):
            raise UsageError(
                f'topic "{self._topic}" is compacted and cannot be sent by edge {self._edge.name!r}',
                detail="Its records leave from between others, so their numbers would change.",
                hint="send a topic with cleanup.policy=delete",
            )
        self._load()
        self._thread.start()
        if self._server is not None:
            self._server.start()

    def close(self) -> None:
        self._stopping.set()
        if self._server is not None:
            self._server.close()
        if self._thread.is_alive():
            self._thread.join()
        if self._places:
            self._save()
        self._sock.close()

    def figures(self) -> dict[str, int]:
        if self._failure is not None:
            raise self._failure
        with self._lock:
            return self._counts | {"refused": 0, "lost": 0}

    # Which number ------------------------------------------------------------------

    def _load(self) -> None:
        kept: dict[int, list[tuple[int, int]]] = {}
        try:
            found = orjson.loads(self._path.read_bytes())
            if found["topic"] == self._topic and found["source"] == self._edge.number:
                kept = {int(n): [(a, b) for a, b in each] for n, each in found["places"].items()}
        except (OSError, ValueError, TypeError, KeyError):
            kept = {}
        new = not kept and self._first_time()
        partitions = self._log.end_offsets(self._topic)
        with self._log.consumer(enable_auto_commit=False) as consumer:
            for partition, end in partitions.items():
                begin = consumer.bounds(self._topic, partition)[0] if new else end
                self._places[partition] = Places(kept.get(partition) or [(begin, begin)])

    def _first_time(self) -> bool:
        """Whether no edge of this name has sent this topic; it is noted that one does."""
        key = f"{self._edge.name}\0sends".encode()
        self._log.ensure_topic(EDGES_TOPIC, 1, {"cleanup.policy": "compact"})
        begun = {record.value for record in self._log.read(EDGES_TOPIC) if record.key == key}
        if self._topic.encode() in begun:
            return False
        with self._log.producer() as producer:
            producer.send(EDGES_TOPIC, self._topic.encode(), key)
        return True

    def _save(self) -> None:
        places = {str(number): one.pairs() for number, one in self._places.items()}
        told = {"topic": self._topic, "source": self._edge.number, "places": places}
        data = orjson.dumps(told)
        if data != self._saved:
            make_private(self._path.parent)
            FILES.write_whole(self._path, data)
            self._saved = data

    # Sending -----------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._send_on()
                except TailraceError as error:
                    log.warning("no records", extra={"edge": self._edge.name, "error": str(error)})
                    self._stopping.wait(_SAVE_SECONDS)
        except BaseException as error:
            self._failure = error

    def _send_on(self) -> None:
        start = {(self._topic, number): one.offset for number, one in self._places.items()}
        with self._log.consumer(
            partitions=start, isolation_level="read_committed", enable_auto_commit=False
        ) as consumer:
            while not self._stopping.is_set():
                for record in consumer.poll(_POLL_SECONDS):
                    place = self._places[record.partition]
                    gone = 0
                    if record.offset > place.offset:
                        # Markers, or records that left before they could be sent.
                        kept_from = consumer.bounds(*record.place)[0]
                        gone = max(0, min(kept_from, record.offset) - place.offset)
                    with self._lock:
                        number = place.advance(record.offset, gone)
                    self._send(record.partition, number, record.value or b"")
                now = self._clock.monotonic()
                if now - self._saved_at > _SAVE_SECONDS:
                    self._save()
                    self._saved_at = now
                if now - self._sent_at > _REPEAT_SECONDS:
                    self._repeat()

    def _send(self, partition: int, number: int, payload: bytes) -> None:
        datagram = pack(self._edge.number + partition, number, payload)
        small = len(payload) <= LARGEST_PAYLOAD
        with self._lock:
            self._counts["received"] += 1
            self._counts["accepted" if small else "oversized"] += 1
        # One that is too large for UDP is a gap, which receivers have repaired.
        self._last[partition] = datagram if small else b""
        self._put(datagram if small else b"")

    def _repeat(self) -> None:
        """The last of each partition again, so that its loss is noticed too."""
        for datagram in self._last.values():
            self._put(datagram)
        self._sent_at = self._clock.monotonic()

    def _put(self, datagram: bytes) -> None:
        if not datagram:
            return
        self._sent_at = self._clock.monotonic()
        try:
            self._sock.sendto(datagram, self._group)
        except OSError as error:
            log.warning("a datagram was not sent", extra={"error": str(error)})

    # Repairs -----------------------------------------------------------------------

    def find(self, source: int, first: int, last: int) -> Iterator[bytes | None]:
        """The datagrams from `first` to `last`; None for those that are gone."""
        partition = source - self._edge.number
        place = self._places.get(partition)
        if place is None:
            yield from (None for _ in range(first, last + 1))
            return
        at = first
        for number, payload in self._read_back(place, partition, first, last):
            while at < number:
                yield None
                at += 1
            with self._lock:
                self._counts["repaired"] += 1
            yield pack(source, number, payload)
            at = number + 1
        while at <= last:
            yield None
            at += 1

    def _read_back(
        self, place: Places, partition: int, first: int, last: int
    ) -> Iterator[tuple[int, bytes]]:
        where = (self._topic, partition)
        with self._log.consumer(
            partitions={where: place.offset},
            isolation_level="read_committed",
            enable_auto_commit=False,
        ) as consumer:
            kept_from = consumer.bounds(*where)[0]
            with self._lock:
                found = place.find(first, kept_from)
                end = place.offset
            if found is None or found[0] > last:
                return
            number, offset = found
            consumer.seek(*where, offset)
            while consumer.position(*where) < end:
                for record in consumer.poll(1.0):
                    with self._lock:
                        number = place.number_at(record.offset) or number
                    if record.offset >= end or number > last:
                        return
                    if number >= first:
                        yield number, record.value or b""
                    number += 1
