"""Forgetting what can no longer change: windows, sessions, rows of a join.

    "x" + when it is over (8 bytes) + key -> nothing         beside an operator's own entries

A stream that is declared with `keep` takes no row older than its watermark less `keep` (the
*horizon*, a constant of the tick). What only older rows could change (`lowering.expiry_inference` proves
it) is therefore over: its state goes, and nothing is emitted: what was shown stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState

_OFFSET = 1 << 63
PREFIX = b"x"
NOTE_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Expiry:
    """When something is over: at `column` plus `adds` microseconds, which is after the event
    time of every row that can change it, of the streams in `times` (topic, column)."""

    column: str
    adds: int
    times: tuple[tuple[str, str], ...]

    def horizon(self, tick: TickContext) -> int | None:
        """Windows that ended by then (microseconds) are over; None: none ever is."""
        found = [tick.horizons.get(topic) for topic, _ in self.times]
        if any(
            known is None or known[0] != column
            for known, (_, column) in zip(found, self.times, strict=True)
        ):
            return None
        return min(known[1] for known in found if known is not None) * 1000

    def remember(
        self, state: OperatorState, ends: Iterable[tuple[int | None, bytes]], under: bytes = PREFIX
    ) -> None:
        """Note for keys the value of `column` by which something of theirs will be over."""
        entries = {under + _bytes(end + self.adds) + key for end, key in ends if end is not None}
        state.put_many([(entry, b"\x01") for entry in sorted(entries)])

    def over(self, state: OperatorState, horizon: int, under: bytes = PREFIX) -> list[bytes]:
        """The keys something of which is over by `horizon`; their notes go."""
        start, last = len(under), _bytes(horizon)
        gone: list[bytes] = []
        for entry, _ in state.scan(under):
            if entry[start : start + 8] > last:
                break
            gone.append(entry)
        state.put_many([(entry, None) for entry in gone])
        return sorted({entry[start + 8 :] for entry in gone})

    def is_over(self, end: object, horizon: int) -> bool:
        """Whether a value of `column` is of the past."""
        return end is not None and cast(int, end) + self.adds <= horizon


def coarse(end: object) -> int | None:
    """A time (microseconds) not before `end` that many share: one note serves them all."""
    return None if end is None else -(-cast(int, end) // NOTE_MICROS) * NOTE_MICROS


def _bytes(moment: int) -> bytes:
    return min(max(moment + _OFFSET, 0), 2 * _OFFSET - 1).to_bytes(8, "big")
