"""Forgetting windows that can no longer change.

    "x" + end of the window (8 bytes) + key -> nothing         beside an operator's own entries

A stream that is declared with `keep` takes no row older than its watermark less `keep` (the
*horizon*, a constant of the tick). A window that ended before the horizon therefore gets
no more rows: its state goes, and nothing is emitted: what was shown stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from tailrace.pipelines.incremental.graph import TickContext
from tailrace.pipelines.incremental.rows import physical
from tailrace.pipelines.state.store import OperatorState

_OFFSET = 1 << 63
_PREFIX = b"x"


@dataclass(frozen=True, slots=True)
class Expiry:
    """When the rows of a key are over: at `column` of the input plus `adds` microseconds, which
    is after the event time of every row: the columns in `times` (topic, column)."""

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
        self, state: OperatorState, table: pa.Table, keys: Iterable[bytes], new: set[bytes]
    ) -> None:
        """Note when each of the keys in `new` will be over."""
        entries = {
            _entry(end + self.adds, key)  # type: ignore[operator]
            for key, end in zip(keys, physical(table.column(self.column)), strict=True)
            if key in new and end is not None
        }
        state.put_many([(entry, b"\x01") for entry in sorted(entries)])

    def forget(
        self, state: OperatorState, horizon: int, entries: Callable[[bytes], Iterable[bytes]]
    ) -> None:
        """Remove the `entries` of every key that is over by `horizon`."""
        last = _entry(horizon, b"\xff" * 8)
        over: list[bytes] = []
        for entry, _ in state.scan(_PREFIX):
            if entry > last:
                break
            over.append(entry)
        gone = list(over)
        for entry in over:
            gone += entries(entry[9:])
        state.put_many([(entry, None) for entry in sorted(gone)])


def _entry(end: int, key: bytes) -> bytes:
    return _PREFIX + min(max(end + _OFFSET, 0), 2 * _OFFSET - 1).to_bytes(8, "big") + key
