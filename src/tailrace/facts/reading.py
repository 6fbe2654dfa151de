"""Events out of the log: a partition from an offset to its end, or the events of a stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tailrace.client.admin import Admin
from tailrace.client.committed import visible_batches
from tailrace.client.fetcher import Fetcher
from tailrace.facts.records import Stored, parse_record
from tailrace.records.batch import Record, decode_records

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.sealing import Seals

FETCH_BYTES = 4 * 1024 * 1024
SMALL_FETCH_BYTES = 128 * 1024
NEAR = 2_000
"""Offsets less far apart than this are fetched together."""


class EventReader:
    """Reads single partitions of one log. Safe from any thread, one at a time; close it."""

    def __init__(self, log: Log, timeout: float) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._timeout = timeout
        self._fetchers: dict[int, Fetcher] = {}
        self.seals: Seals | None = None
        """Opens the personal fields of what is read, where the topic has some."""

    def close(self) -> None:
        with self._lock:
            for fetcher in self._fetchers.values():
                fetcher.close()
            self._fetchers.clear()

    def _fetcher(self, fetch_bytes: int) -> Fetcher:
        found = self._fetchers.get(fetch_bytes)
        if found is None:
            found = self._fetchers[fetch_bytes] = self._log.fetcher(
                fetch_bytes=fetch_bytes, timeout=self._timeout
            )
        return found

    def records(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[Record]]:
        """The committed records with start ≤ offset < end, some at a time."""
        position = start
        while position < end:
            with self._lock:
                found = self._fetcher(FETCH_BYTES).fetch(
                    topic, partition, position, wait=0.2, end=end
                )
            if found.records:
                yield found.records
            position = found.following

    def parsed(self, record: Record) -> Stored | None:
        """The event of a record, open; None if it is foreign. Raises EventUnreadableError for one
        whose key is missing."""
        stored = parse_record(*record)
        if stored is None or self.seals is None:
            return stored
        return self.seals.open(stored)

    def offset_for_time(self, topic: str, partition: int, moment: int) -> int:
        """The first offset at or after a time in milliseconds; behind the last if none is."""
        place = (topic, partition)
        with self._lock:
            admin = Admin.over(self._fetcher(SMALL_FETCH_BYTES).cluster)
            found = admin.offsets_for_times({place: moment})[place].offset
            return found if found >= 0 else admin.end_offsets([place])[place]

    def at_offsets(self, topic: str, partition: int, offsets: Sequence[int]) -> list[Stored]:
        """The events at these offsets, which are in order."""
        found: list[Stored] = []
        number = 0
        while number < len(offsets):
            first = offsets[number]
            last = number
            while last + 1 < len(offsets) and offsets[last + 1] - offsets[last] < NEAR:
                last += 1
            wanted = set(offsets[number : last + 1])
            position, end = first, offsets[last] + 1
            few = end - first < 64
            while position < end:
                with self._lock:
                    answer = self._fetcher(SMALL_FETCH_BYTES if few else FETCH_BYTES).ask(
                        topic, partition, position, wait=0.2
                    )
                batches, position = visible_batches(answer.buffer, position, end, answer.aborted)
                for place, header in batches:
                    if wanted.isdisjoint(range(header.base_offset, header.last_offset + 1)):
                        continue
                    for record in decode_records(answer.buffer, place):
                        if record.offset in wanted:
                            event = self.parsed(record)
                            if event is not None:
                                found.append(event)
            number = last + 1
        return found
