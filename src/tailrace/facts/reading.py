"""Events out of the log: a partition from an offset to its end, or the events of a stream."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tailrace.client.admin import Admin
from tailrace.client.committed import unreadable, visible_batches
from tailrace.client.fetcher import Fetcher
from tailrace.facts.records import Stored, parse_record
from tailrace.records.batch import Record, decode_records
from tailrace.records.errors import RecordsError
from tailrace.records.event_headers import EVENT, META, VERSION
from tailrace.records.header import BatchHeader, Buffer

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.erasures import Erasures
    from tailrace.facts.sealing import Seals
    from tailrace.records.event_columns import EventColumns

Batches = Sequence[tuple[int, BatchHeader]]
FETCH_BYTES = 4 * 1024 * 1024
SMALL_FETCH_BYTES = 128 * 1024
COLUMNS_FROM_BYTES = 64 * 1024
"""Less than this is read record by record: loading Arrow takes longer."""
NEAR = 2_000
"""Offsets less far apart than this are fetched together."""


class EventReader:
    """Reads single partitions of one log. Safe from any thread, one at a time; close it."""

    def __init__(
        self, log: Log, timeout: float, *, columns_from_bytes: int = COLUMNS_FROM_BYTES
    ) -> None:
        self._columns_from_bytes = columns_from_bytes
        self._lock = threading.Lock()
        self._log = log
        self._timeout = timeout
        self._fetchers: dict[int, Fetcher] = {}
        self.seals: Seals | None = None
        """Opens the personal fields of what is read, where the topic has some."""
        self.erasures: Erasures | None = None
        """What was erased from the log."""

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

    def pieces(
        self, topic: str, partition: int, start: int, end: int
    ) -> Iterator[tuple[EventColumns | list[Record], int]]:
        """The committed records with start ≤ offset < end, some at a time, each with the offset
        behind them: as columns where all of them are events, else one by one."""
        for buffer, batches, position, following in self._visible(topic, partition, start, end):
            columns = None
            if self.seals is None and len(buffer) >= self._columns_from_bytes:
                columns = _columns(buffer, batches, position, end)
            if columns is not None:
                yield columns, following
            else:
                yield _records(buffer, batches, position, end, (topic, partition)), following

    def records(
        self, topic: str, partition: int, start: int, end: int
    ) -> Iterator[tuple[list[Record], int]]:
        """The same, all one by one."""
        for buffer, batches, position, following in self._visible(topic, partition, start, end):
            yield _records(buffer, batches, position, end, (topic, partition)), following

    def _visible(
        self, topic: str, partition: int, start: int, end: int
    ) -> Iterator[tuple[Buffer, Batches, int, int]]:
        """Answers to fetches: the buffer, its committed batches, where it begins and ends."""
        position = start
        while position < end:
            with self._lock:
                answer = self._fetcher(FETCH_BYTES).ask(topic, partition, position, wait=0.2)
            batches, following = visible_batches(
                answer.buffer, position, end, answer.aborted, place=(topic, partition)
            )
            if batches:
                yield answer.buffer, batches, position, following
            position = following

    def open(self, stored: Stored) -> Stored:
        """An event with its personal fields. Raises EventUnreadableError for one whose key is
        missing."""
        return stored if self.seals is None else self.seals.open(stored)

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
                holding = [
                    each
                    for each in batches
                    if _any_between(offsets, each[1].base_offset, each[1].last_offset)
                ]
                some: list[Stored] | None = None
                size = sum(each[1].length for each in holding)
                if self.seals is None and size >= self._columns_from_bytes:
                    some = _chosen(answer.buffer, holding, wanted)
                if some is None:
                    some = [self.open(e) for e in _looked_through(answer.buffer, holding, wanted)]
                found += some
            number = last + 1
        return found


def _columns(buffer: Buffer, batches: Batches, start: int, end: int) -> EventColumns | None:
    from tailrace.records.event_columns import event_columns

    if batches[0][1].base_offset < start or batches[-1][1].last_offset >= end:
        return None
    try:
        return event_columns(buffer, batches)
    except RecordsError:
        return None  # which batch it is, is found one by one


def _records(
    buffer: Buffer, batches: Batches, start: int, end: int, place: tuple[str, int]
) -> list[Record]:
    found: list[Record] = []
    for position, header in batches:
        try:
            found += [
                record
                for record in decode_records(buffer, position)
                if start <= record.offset < end
            ]
        except RecordsError as error:
            raise unreadable(place, header, error) from error
    return found


def one_by_one(piece: EventColumns | list[Record]) -> Iterable[Record]:
    """The records of a piece."""
    if isinstance(piece, list):
        return piece
    names = (EVENT, VERSION, META)
    columns = (piece.kinds, piece.versions, piece.metas)
    return [
        Record(offset, timestamp, key, value, tuple(zip(names, headers, strict=True)))
        for offset, timestamp, key, value, headers in zip(
            piece.offsets.tolist(),
            piece.timestamps.tolist(),
            piece.streams.to_pylist(),
            piece.values.to_pylist(),
            zip(*(column.to_pylist() for column in columns), strict=True),
            strict=True,
        )
    ]


def _any_between(offsets: Sequence[int], first: int, last: int) -> bool:
    place = bisect_left(offsets, first)
    return place < len(offsets) and offsets[place] <= last


def _looked_through(buffer: Buffer, batches: Batches, wanted: set[int]) -> list[Stored]:
    """The events at these offsets, record by record."""
    found = [
        parse_record(*record)
        for place, _ in batches
        for record in decode_records(buffer, place)
        if record.offset in wanted
    ]
    return [event for event in found if event is not None]


def _chosen(buffer: Buffer, batches: Batches, wanted: set[int]) -> list[Stored] | None:
    """The same by columns; None if a record of the batches is no event."""
    import numpy as np
    import pyarrow as pa

    from tailrace.records.event_columns import event_columns

    try:
        columns = event_columns(buffer, batches)
        if columns is None:
            return None
        places = np.flatnonzero(np.isin(columns.offsets, list(wanted)))
        rows = pa.array(places)
        texts = (columns.streams, columns.kinds, columns.versions)
        streams, kinds, versions = (each.take(rows).cast(pa.string()).to_pylist() for each in texts)
        numbers = map(int, versions)
        metas, values = (each.take(rows).to_pylist() for each in (columns.metas, columns.values))
        return list(
            map(
                Stored,
                columns.offsets[places].tolist(),
                columns.timestamps[places].tolist(),
                streams,
                kinds,
                numbers,
                metas,
                values,
            )
        )
    except (RecordsError, pa.ArrowInvalid, ValueError):
        return None
