"""One sender's numbered datagrams in order, each once, and what is missing between them.

    TRM1 | source u32 | sequence u64 | payload                 big-endian

What comes ahead of a gap waits. A gap is filled, or given up and counted. The first datagram heard of
a sender says where its sequence begins here; those before it may be filled in and count as nothing if
they are not. A number that leaps far ahead is believed only with the next one behind it, so that one
forged or broken datagram does not make the rest look old.
"""

from __future__ import annotations

import struct
from bisect import insort
from collections.abc import Iterator

MAGIC = b"TRM1"
HEADER = struct.Struct("!4sIQ")
HELD_DATAGRAMS = 50_000
HELD_BYTES = 32 << 20
LEAP = 1_000_000
CATCH_UP = 100_000


class BadDatagram(Exception):
    """These bytes are no datagram of the format."""


def pack(source: int, sequence: int, payload: bytes) -> bytes:
    return HEADER.pack(MAGIC, source, sequence) + payload


def unpack(datagram: bytes) -> tuple[int, int, bytes]:
    """Source, sequence and payload."""
    if len(datagram) < HEADER.size or not datagram.startswith(MAGIC):
        raise BadDatagram
    _, source, sequence = HEADER.unpack_from(datagram)
    return source, sequence, datagram[HEADER.size :]


class Sequence:
    """The datagrams of one sender. `next`: the number to be handed out next, if that is known.

    With `catch_up`, those before the first one heard are missing too.
    """

    def __init__(self, next: int | None = None, *, catch_up: bool = False) -> None:
        self.next = next
        self.counted_from = next or 0
        self.lost = self.repeated = self.filled = 0
        self._catch_up = catch_up
        self._held: dict[int, tuple[bytes, float]] = {}
        self._numbers: list[int] = []  # those held, sorted
        self._held_bytes = 0
        self._leapt: tuple[int, bytes, float] | None = None

    def take(self, number: int, payload: bytes, now: float, *, asked: bool = False) -> bool:
        """One datagram, as it comes; False if it is not believed. `asked`: from a repair."""
        if self.next is None:
            self.next = max(0, number - CATCH_UP) if self._catch_up else number
            self.counted_from = number
        if number < self.next or number in self._held:
            self.repeated += not asked
            return True
        ahead = number - max(self.next, self._numbers[-1] if self._numbers else 0)
        if ahead > LEAP and number != self.next:
            leapt, self._leapt = self._leapt, (number, payload, now)
            if leapt is None or leapt[0] + 1 != number:
                return False
            self._leapt = None
            self._hold(*leapt)
        full = len(self._held) >= HELD_DATAGRAMS or self._held_bytes + len(payload) > HELD_BYTES
        if full and number != self.next:
            return True  # it is missing, then, and asked for when there is room
        self.filled += asked
        self._hold(number, payload, now)
        return True

    def _hold(self, number: int, payload: bytes, now: float) -> None:
        self._held[number] = payload, now
        self._held_bytes += len(payload)
        if not self._numbers or number > self._numbers[-1]:
            self._numbers.append(number)
        else:
            insort(self._numbers, number)

    def ready(self) -> Iterator[tuple[int, bytes]]:
        """Hand out what is in order."""
        count = 0
        try:
            while (held := self._held.pop(self.next or 0, None)) is not None:
                number = self.next or 0
                self.next = number + 1
                self._held_bytes -= len(held[0])
                count += 1
                yield number, held[0]
        finally:
            del self._numbers[:count]

    def waiting_since(self) -> float | None:
        """Since when the first datagram behind a gap waits; None if there is no gap."""
        return self._held[self._numbers[0]][1] if self._numbers else None

    def missing(self, most: int, near: int = 0) -> Iterator[tuple[int, int]]:
        """The gaps, first and last number of each, no longer than `most`. Gaps with no more than
        `near` datagrams between them are one."""
        if self.next is None:
            return
        first: int | None = None
        last, expected = -1, self.next
        for number in self._numbers:
            if number > expected:
                if first is not None and expected - last - 1 > near:
                    yield from _pieces(first, last, most)
                    first = None
                first, last = (expected if first is None else first), number - 1
            expected = number + 1
        if first is not None:
            yield from _pieces(first, last, most)

    def skip(self, first: int, last: int) -> None:
        """Nobody has the numbers from `first` to `last`: those at the front are given up."""
        if self.next is None or not first <= self.next <= last:
            return
        if self.next in self._held:
            return
        to = min(last + 1, self._numbers[0] if self._numbers else last + 1)
        self.lost += max(0, to - max(self.next, self.counted_from))
        self.next = to

    def give_up(self) -> None:
        """Go on behind the first gap."""
        if self._numbers and self.next is not None:
            self.skip(self.next, self._numbers[0] - 1)


def _pieces(first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    while first <= last:
        to = min(last, first + most - 1)
        yield first, to
        first = to + 1
