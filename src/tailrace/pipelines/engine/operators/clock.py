"""Filters against the clock: rows come and leave by themselves.

    "e" + time + hash(row) -> marshal (row, weight, +1 it comes, −1 it leaves)
    "now"                  -> the latest time seen (microseconds, 8 bytes)

The clock is a constant of a tick and never goes back: the tick's time, or, of a filter against
a watermark, the smallest watermark of some streams (before the first of them there is no time,
and no row). A tick first lets the rows come and leave whose time has been reached, however long
ago, then takes in its changes.
"""

from __future__ import annotations

import hashlib
import marshal
from dataclasses import dataclass
from typing import ClassVar, cast

import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators.spans import EVER, Condition, is_in
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    decode_row,
    dumps,
    encode_row,
    physical,
    to_rows,
    weights,
)

_OFFSET = 1 << 63


@dataclass(frozen=True, slots=True)
class Clock:
    """Keeps rows while `condition` holds; its values are the columns `values` (timestamps and
    booleans). `streams`: topics, each with the column of its event time, whose watermark is
    the clock; none: the time is."""

    condition: Condition
    values: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    streams: tuple[tuple[str, str], ...] = ()
    kind: ClassVar[str] = "clock"
    wakes: ClassVar[bool] = True

    def describe(self) -> str:
        topics = " and ".join(topic for topic, _ in self.streams)
        of = f", the clock being the watermark of {topics}," if topics else ""
        shown = ", ".join(self.columns)
        return f"while {self.condition.shown(self.values)}{of} → {shown}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        now = self._now(state, tick)
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
        known = [physical(table.column(name)) for name in self.values]
        holds = self.condition.holds
        rows = zip(
            to_rows(table, self.columns), weights(table), zip(*known, strict=True), strict=True
        )
        for row, weight, values in rows:
            spans = holds(cast("tuple[int | bool | None, ...]", values))
            if not spans or spans[-1][1] <= now:
                continue
            data = encode_row(row)
            mark = hashlib.blake2b(data, digest_size=16).digest()
            if is_in(spans, now):
                totals[data] = totals.get(data, 0) + weight
            for comes, leaves in spans:
                if comes > now:
                    _schedule(entries, comes, mark, data, weight, 1)
                if now < leaves < EVER:
                    _schedule(entries, leaves, mark, data, weight, -1)
        keys = sorted(entries)
        for key, before in zip(keys, state.get_many(keys), strict=True):
            data, weight, sign = entries[key]
            total = (marshal.loads(before)[1] if before is not None else 0) + weight
            puts[key] = dumps((data, total, sign)) if total else None
        state.put_many(sorted(puts.items()))
        left = sorted((data, total) for data, total in totals.items() if total)
        out: list[Row] = [decode_row(data) for data, _ in left]
        return changes(out, [total for _, total in left], self.schema)

    def _now(self, state: OperatorState, tick: TickContext) -> int:
        marks = [tick.watermarks.get(topic) for topic, _ in self.streams] or [tick.now_ms]
        known = [mark * 1000 for mark in marks if mark is not None]
        now = min(known) if len(known) == len(marks) else -EVER
        stored = state.get(b"now")
        return now if stored is None else max(now, int.from_bytes(stored, "big") - _OFFSET)


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
