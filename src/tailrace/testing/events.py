"""Patterns of events driven without Spark: rows in memory, one tick after another.

events = MemoryEvents(card_testing, "id BIGINT, card BIGINT, amount DOUBLE, at TIMESTAMP")
events.add({"id": 1, "card": 7, "amount": 0.5, "at": noon})
events.tick()              # rows are read; the watermark counts from the next tick on
events.tick()
events.told["card_testing"]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa

from tailrace.pipelines.compiler.event_pattern import Waiting, compile_events, ordered
from tailrace.pipelines.declare import EventTime, Pattern
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.engine.evaluate import evaluate
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import TableInput, TickContext
from tailrace.pipelines.reading.reader import Records
from tailrace.pipelines.ticks.event_time import Timing, on_time, renewed, watermarks
from tailrace.pipelines.values.columns import PLACED, SHARD, TIME
from tailrace.testing.state import MemoryStates
from tailrace.testing.ticks import table

Row = dict[str, Any]


class MemoryEvents:
    """One pattern with its state in memory; `told` has its records by topic."""

    def __init__(
        self, pattern: Pattern, columns: str, *, shards: int = 2, time: EventTime | None = None
    ) -> None:
        source: TableInput = table("events", columns, kind="stream")
        policy = time or pattern.time or EventTime(pattern.order_by)
        self.time = replace(policy, column=TIME)
        lateness = None if policy.late == "correct" else policy.lateness_ms
        kept = policy.keep_ms if policy.late == "correct" else None
        self.table = ordered(pattern.name, pattern.order_by, source)
        self.graph = compile_events(pattern, self.table, Waiting(lateness, kept))
        self.shards, self.states, self.number = shards, MemoryStates(), 0
        self.told: dict[str, list[Row]] = {name: [] for name in self.graph.views}
        self.late: list[int] = []  # offsets of rows that came too late
        self.watermarks: dict[str, int] = {}
        self.now_ms = 0
        self._newest: Mapping[str, tuple[int, int]] = {}
        self._waiting: dict[int, list[tuple[int, Row]]] = {}
        self._ends: dict[int, int] = {}

    def add(self, row: Row, partition: int = 0) -> int:
        """A row of the next tick; its offset."""
        offset = self._ends.get(partition, 0)
        self._ends[partition] = offset + 1
        self._waiting.setdefault(partition, []).append((offset, row))
        return offset

    def tick(self) -> dict[str, list[Row]]:
        """Read the rows that were added and tell what is found; records by topic."""
        self.number += 1
        timing, mark = Timing(), self.watermarks.get("events")
        pieces = [
            self._rows(partition, rows, mark, timing)
            for partition, rows in sorted(self._waiting.items())
        ]
        self._waiting.clear()
        inputs = {"events": pa.concat_tables(pieces)} if pieces else {}
        context = TickContext(self.number, self.now_ms, dict(self.watermarks))
        emitted = run_tick(self.graph, inputs, self.states, context, shards=self.shards)
        policies = {"events": self.time}
        self._newest = renewed(self._newest, timing.newest, policies, self.now_ms)
        self.watermarks = watermarks(policies, self._newest, self.watermarks, self.now_ms)
        found: dict[str, list[Row]] = {}
        for name, rows in emitted.items():
            pairs = record_pairs(self.graph.views[name], rows)
            found[name] = [orjson.loads(value or b"") for _, value in pairs]
            self.told[name] += found[name]
        return found

    def pass_time(self, ms: int) -> None:
        """Let the watermark pass this time (milliseconds since 1970), as a producer may say."""
        self.watermarks["events"] = max(ms, self.watermarks.get("events", ms))

    def _rows(
        self, partition: int, rows: list[tuple[int, Row]], mark: int | None, timing: Timing
    ) -> pa.Table:
        plain = pa.Table.from_pylist([row for _, row in rows], schema=self.table.recorded)
        assert self.table.order is not None
        times = evaluate(self.table.order, plain)
        offsets = [offset for offset, _ in rows]
        count = len(rows)
        added = [
            times,
            times.cast(pa.int64()),
            pa.repeat(pa.scalar(partition, pa.int64()), count),
            pa.array(offsets, pa.int64()),
            pa.repeat(pa.scalar(partition % self.shards, pa.int32()), count),
        ]
        columns = [column.combine_chunks() for column in plain.columns]
        names = [*plain.column_names, *PLACED.names, SHARD]
        whole = pa.table([*columns, *added], names=names)
        records = Records("events", partition, offsets=offsets)
        records.keys, records.values = [None] * count, [None] * count
        records.headers = []
        kept = on_time(whole, range(count), records, self.time, mark, timing, 1 << 50)
        left = set(kept.column("__offset").to_pylist())
        self.late += [offset for offset in offsets if offset not in left]
        return kept
