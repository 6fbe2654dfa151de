"""How many records the next tick reads: fewer after one whose changes were many.

A record may change very many rows: a post of somebody whom 20,000 follow. Ticks are whole, so
everybody else waits for the one that is running. After a tick that put out more than
`most_changes`, the next reads as many records as would have made that many; while they
make fewer, the number grows again. It is a forecast: a tick may hold more by its share of
such records, and a single transaction is taken whole, however large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailrace.pipelines.engine.changelog import Piece

GROWS = 4  # times, from tick to tick
NO_LIMIT = 1 << 40  # records


@dataclass(slots=True)
class TickSize:
    """Learns from every tick what the next may read."""

    most_changes: int
    _records: int = NO_LIMIT

    def records(self, limit: int) -> int:
        """The most that the next tick reads; `limit` is what it may in any case. A tick that
        must read everything (NO_LIMIT) does."""
        return limit if limit >= NO_LIMIT else min(limit, self._records)

    def learn(self, records: int, changes: Mapping[str, Sequence[Piece]]) -> None:
        """A tick has read so many records and put out these changes."""
        count = sum(len(piece.keys) for pieces in changes.values() for piece in pieces)
        if not records or (count <= self.most_changes and self._records >= NO_LIMIT):
            return
        fitting = records * self.most_changes // max(count, 1)
        grown = NO_LIMIT if count > self.most_changes else max(self._records, records) * GROWS
        self._records = max(1, min(fitting, grown))
