"""Aborted transactions of a partition, for readers that want committed records only.

Each segment's `.txnindex` holds, 34 bytes an entry: version int16 (0), producer id, first
offset, last offset (the marker's), last stable offset when the marker was written. Aborts
are few, so a partition keeps the entries of all its segments in memory.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import NamedTuple

_ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """What Fetch tells a reader: skip this producer's records from `first_offset` to its marker."""

    producer_id: int
    first_offset: int


class AbortedEntry(NamedTuple):
    """One entry of the index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedTransactions:
    """The entries of all segments, ordered by the offset of their markers."""

    __slots__ = ("_lasts", "entries")

    def __init__(self) -> None:
        self.entries: list[AbortedEntry] = []
        self._lasts: list[int] = []

    def add(self, entry: AbortedEntry) -> None:
        self.entries.append(entry)
        self._lasts.append(entry.last_offset)

    def between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Transactions with records in [start, end), in the order of their markers."""
        return [
            AbortedTransaction(entry.producer_id, entry.first_offset)
            for entry in self.entries[bisect_left(self._lasts, start) :]
            if entry.first_offset < end
        ]

    def cut_start(self, offset: int) -> None:
        """Forget transactions whose marker lies before `offset`."""
        place = bisect_left(self._lasts, offset)
        del self.entries[:place]
        del self._lasts[:place]

    def cut_end(self, offset: int) -> None:
        """Forget transactions whose marker lies at `offset` or later."""
        place = bisect_left(self._lasts, offset)
        del self.entries[place:]
        del self._lasts[place:]

    def slice(self, start: int, end: int) -> list[AbortedEntry]:
        """Entries whose markers lie in [start, end): those of one segment's file."""
        return self.entries[bisect_left(self._lasts, start) : bisect_left(self._lasts, end)]


def encode_entries(entries: list[AbortedEntry]) -> bytes:
    return b"".join(_ENTRY.pack(0, *entry) for entry in entries)


def decode_entries(data: bytes, base_offset: int = 0) -> list[AbortedEntry]:
    """The entries in the `.txnindex` of the segment at `base_offset`.

    Ends where an entry cannot be right: after a power cut the part that was not synced may
    hold anything, and recovery writes it again from the markers.
    """
    whole = len(data) - len(data) % _ENTRY.size
    entries: list[AbortedEntry] = []
    last = base_offset - 1
    for version, *fields in _ENTRY.iter_unpack(data[:whole]):
        entry = AbortedEntry(*fields)
        if version != 0 or entry.last_offset <= last or entry.first_offset > entry.last_offset:
            break
        entries.append(entry)
        last = entry.last_offset
    return entries
