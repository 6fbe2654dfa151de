"""Filters against the clock: rows that come and leave by themselves.

    "e" + time + hash(row) -> marshal (row, weight, +1 it comes, −1 it leaves)
    "now"                  -> the latest time seen (microseconds, 8 bytes)

`now` is a constant of a tick and never goes back. A tick first lets the rows come and leave
whose time has been reached, then takes in its changes.
"""

from __future__ import annotations

import hashlib
import marshal
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tailrace.pipelines.incremental.graph import TickContext
from tailrace.pipelines.incremental.rows import (
    Row,
    changes,
    decode_row,
    dumps,
    encode_row,
    physical,
    to_rows,
    weights,
)
from tailrace.pipelines.state.store import OperatorState

_OFFSET = 1 << 63


@dataclass(frozen=True, slots=True)
class Clock:
    """Keeps rows while `low` < now < `high` (timestamp columns; None: open on that side)."""

    low: str | None
    high: str | None
    low_inclusive: bool
    high_inclusive: bool
    columns: tuple[str, ...]
    schema: pa.Schema
    kind: ClassVar[str] = "clock"
    wakes: ClassVar[bool] = True

    def describe(self) -> str:
        low = f"{self.low} <{'=' if self.low_inclusive else ''} now" if self.low else ""
        high = f"now <{'=' if self.high_inclusive else ''} {self.high}" if self.high else ""
        return f"while {' and '.join(filter(None, (low, high)))} → {', '.join(self.columns)}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        stored = state.get(b"now")
        now = tick.now_ms * 1000
        if stored is not None:
            now = max(now, int.from_bytes(stored, "big") - _OFFSET)
        totals: dict[bytes, int] = {}
        puts: dict[bytes, bytes | None] = {b"now": (now + _OFFSET).to_bytes(8, "big")}
        for key, value in state.scan(b"e"):
            if int.from_bytes(key[1:9], "big") - _OFFSET > now:
                break
            data, weight, sign = marshal.loads(value)
            totals[data] = totals.get(data, 0) + sign * weight
            puts[key] = None
        table = inputs[0]
        entries: dict[bytes, tuple[bytes, int, int]] = {}
        lows = physical(table.column(self.low)) if self.low else None
        highs = physical(table.column(self.high)) if self.high else None
        for at, (row, weight) in enumerate(
            zip(to_rows(table, self.columns), weights(table), strict=True)
        ):
            comes = leaves = None
            if lows is not None:
                if lows[at] is None:
                    continue
                comes = lows[at] + (not self.low_inclusive)  # type: ignore[operator]
            if highs is not None:
                if highs[at] is None:
                    continue
                leaves = highs[at] + self.high_inclusive  # type: ignore[operator]
            if leaves is not None and (leaves <= now or (comes is not None and leaves <= comes)):
                continue
            data = encode_row(row)
            mark = hashlib.blake2b(data, digest_size=16).digest()
            if comes is None or comes <= now:
                totals[data] = totals.get(data, 0) + weight
            else:
                _schedule(entries, comes, mark, data, weight, 1)
            if leaves is not None:
                _schedule(entries, leaves, mark, data, weight, -1)
        keys = sorted(entries)
        for key, known in zip(keys, state.get_many(keys), strict=True):
            data, weight, sign = entries[key]
            total = (marshal.loads(known)[1] if known is not None else 0) + weight
            puts[key] = dumps((data, total, sign)) if total else None
        state.put_many(sorted(puts.items()))
        left = sorted((data, total) for data, total in totals.items() if total)
        rows: list[Row] = [decode_row(data) for data, _ in left]
        return changes(rows, [total for _, total in left], self.schema)


def _schedule(
    entries: dict[bytes, tuple[bytes, int, int]],
    moment: int,
    mark: bytes,
    data: bytes,
    weight: int,
    sign: int,
) -> None:
    key = b"e" + (moment + _OFFSET).to_bytes(8, "big") + mark + (b"+" if sign > 0 else b"-")
    _, before, _ = entries.get(key, (data, 0, sign))
    entries[key] = (data, before + weight, sign)
