"""Cuts that no transaction of the source crosses.

A log commits a transaction partition by partition: what a reader sees of several partitions at one
moment may hold a part of it. Here a stretch is mirrored only up to a cut before which every
transaction is whole: all its records and all its markers, in all partitions.

What is known comes from reading uncommitted, to ends `later` that were taken after the ends
`sooner`: a producer ends a transaction after its last record was acknowledged, so of one that has a
marker before `sooner` every record stands before `later`. Transactions are told apart by producer id
and epoch, which is exact for producers of version 2: each of theirs has an epoch of its own. Those
of version 1 share one; they are taken together until a moment is seen when the producer has nothing
open, and there the next begins. So the cut is never wrong, and waits for such a moment.

Records are read twice, and held until a cut is behind them. While a transaction stays open, what is
held stays below a limit: only what lies before the next possible cut is worth more. All partitions
of one mirror count; a partition that stops is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tailrace.client.admin import Admin, Place
from tailrace.client.fetcher import Answer, Fetcher
from tailrace.records.batch import decode_marker, iterate_batches

UNCOMMITTED = "read_uncommitted"
Producer = tuple[int, int]  # id and epoch
Transaction = tuple[int, int, int]  # and which of theirs, counted by moments with nothing open


@dataclass(slots=True)
class Part:
    """One transaction in one partition: its first record, and its marker."""

    transaction: Transaction
    first: int
    marker: int | None = None


class WholeTransactions:
    """Holds what was fetched, and says how far it may go."""

    def __init__(self, admin: Admin, fetcher: Fetcher, most_held_bytes: int) -> None:
        self._admin = admin
        self._fetcher = fetcher
        self._most_held_bytes = most_held_bytes
        self._held: dict[Place, deque[tuple[int, Answer]]] = {}  # with the offset behind it
        self._sizes: dict[Place, int] = {}
        self._scanned: dict[Place, int] = {}
        self._parts: dict[Place, list[Part]] = {}
        self._open: dict[Place, dict[Producer, Part]] = {}
        self._turns: dict[Producer, int] = {}
        self._furthest: dict[Place, int] = {}  # where a cut could be if all were held
        self._moving = True

    def reset(self) -> None:
        """Begin again, from where the partitions are."""
        for each in (
            self._held,
            self._sizes,
            self._scanned,
            self._parts,
            self._open,
            self._turns,
            self._furthest,
        ):
            each.clear()
        self._moving = True

    def drop(self, place: Place) -> None:
        """A partition that does not go on, or goes on elsewhere."""
        for each in (
            self._held,
            self._sizes,
            self._scanned,
            self._parts,
            self._open,
            self._furthest,
        ):
            each.pop(place, None)

    @property
    def held_bytes(self) -> int:
        return sum(self._sizes.values())

    def next(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """The offset behind what is held of each partition."""
        held = self._held
        return {
            place: held[place][-1][0] if held.get(place) else position
            for place, position in positions.items()
        }

    def is_full(self, place: Place) -> bool:
        """Whether a partition waits because much is held: unless nothing moves, and more of this
        one could bring a cut nearer. While a transaction of the source stays open, none does."""
        if self.held_bytes <= self._most_held_bytes:
            return False
        held = self._held.get(place)
        return self._moving or (held[-1][0] if held else 0) >= self._furthest.get(place, 0)

    def hold(self, place: Place, answer: Answer) -> None:
        """Keep what was fetched."""
        end = max((header.last_offset + 1 for _, header in iterate_batches(answer.buffer)), default=0)  # fmt: skip
        if end:
            self._held.setdefault(place, deque()).append((end, answer))
            self._sizes[place] = self._sizes.get(place, 0) + len(answer.buffer)

    def cut(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Up to where each partition may be mirrored now."""
        sooner = self._admin.end_offsets(positions, UNCOMMITTED)
        later = self._admin.end_offsets(positions, UNCOMMITTED)
        for place, position in positions.items():
            self._scan(place, position, later[place])
        held = {place: each[-1][0] for place, each in self._held.items() if each}
        ends = {
            place: min(held.get(place, position), sooner[place])
            for place, position in positions.items()
        }
        parts = {place: self._parts.get(place, ()) for place in positions}
        found = lower(parts, ends)
        furthest = lower(parts, {place: sooner[place] for place in positions})
        self._furthest = {place: end for place, end in furthest.items() if end > positions[place]}
        self._close(sooner)
        self._moving = any(found[place] > position for place, position in positions.items())
        return {place: end for place, end in found.items() if end > positions[place]}

    def answers(self, place: Place) -> list[Answer]:
        """What is held of a partition, in order."""
        return [answer for _, answer in self._held.get(place, ())]

    def passed(self, place: Place, position: int) -> None:
        """The partition was mirrored up to `position`."""
        held = self._held.get(place)
        while held and held[0][0] <= position:
            self._sizes[place] -= len(held.popleft()[1].buffer)
        self._parts[place] = [
            part for part in self._parts.get(place, ()) if part.marker is None or part.marker >= position
        ]  # fmt: skip

    def _scan(self, place: Place, position: int, end: int) -> None:
        at = self._scanned.setdefault(place, position)
        parts, open_ones = self._parts.setdefault(place, []), self._open.setdefault(place, {})
        while at < end:
            before = at
            answer = self._fetcher.ask(*place, at, isolation=UNCOMMITTED)
            for index, header in iterate_batches(answer.buffer):
                if header.base_offset >= end:
                    at = end
                    break
                at = max(at, header.last_offset + 1)
                if not header.transactional:
                    continue
                producer = (header.producer_id, header.producer_epoch)
                part = open_ones.get(producer)
                if not header.control:
                    if part is None:
                        turn = self._turns.setdefault(producer, 0)
                        part = Part((*producer, turn), header.base_offset)
                        open_ones[producer] = part
                        parts.append(part)
                    continue
                marker = decode_marker(answer.buffer, index)
                ended = open_ones.pop(producer, None) or self._aborted(open_ones, header.producer_id)  # fmt: skip
                if ended is None or marker is None:
                    continue
                if marker.commit:
                    ended.marker = header.base_offset
                else:
                    parts.remove(ended)  # nobody sees its records
            if at == before:
                break
        self._scanned[place] = at

    def _aborted(self, open_ones: dict[Producer, Part], producer_id: int) -> Part | None:
        """A coordinator that aborts for a fenced producer writes its marker with a later epoch."""
        for producer in list(open_ones):
            if producer[0] == producer_id:
                return open_ones.pop(producer)
        return None

    def _close(self, sooner: Mapping[Place, int]) -> None:
        """Producers that had nothing open when `sooner` was taken begin another transaction."""
        busy: set[Transaction] = set()
        seen: set[Transaction] = set()
        for place, parts in self._parts.items():
            for part in parts:
                seen.add(part.transaction)
                if part.marker is None or part.marker >= sooner.get(place, 0):
                    busy.add(part.transaction)
        for transaction in seen - busy:
            if self._turns.get(transaction[:2]) == transaction[2]:
                self._turns[transaction[:2]] += 1


def lower(
    parts: Mapping[Place, Iterable[Part]], ends: Mapping[Place, int]
) -> dict[Place, int]:  # fmt: skip
    """The furthest cut up to `ends` before which every transaction is whole."""
    cut = dict(ends)
    transactions: dict[Transaction, list[tuple[Place, Part]]] = {}
    for place, each in parts.items():
        for part in each:
            transactions.setdefault(part.transaction, []).append((place, part))
    moved = True
    while moved:
        moved = False
        for group in transactions.values():
            if all(part.marker is not None and part.marker < cut[place] for place, part in group):
                continue
            for place, part in group:
                if part.first < cut[place]:
                    cut[place], moved = part.first, True
    return cut
