"""A log in memory, and a project that writes ticks into it.

`MemoryLog` is the naive twin of a broker for readers of ranges: lists of records, with
the gaps that transaction markers leave. `TickWriter` writes changelogs and tick rows as
the tick driver does, and remembers what every view contains after every tick.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.client.ranges import Chunk, Range
from tailrace.records.partitioner import partition_for
from tailrace.records.tick import TICKS_TOPIC, TickRow, ViewInfo

Row = dict[str, Any]


@dataclass(slots=True)
class MemoryPartition:
    """Records by offset; offsets without a record are markers or compacted."""

    records: list[tuple[int, bytes | None, bytes | None]] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def append(self, key: bytes | None, value: bytes | None) -> int:
        self.records.append((self.end, key, value))
        self.end += 1
        return self.end

    def compact(self) -> None:
        """Keep the last record of every key; tombstones go too."""
        last = {key: offset for offset, key, _ in self.records}
        self.records = [r for r in self.records if last[r[1]] == r[0] and r[2] is not None]


class MemoryLog:
    """A `RangeReader` over lists."""

    def __init__(self) -> None:
        self.topics: dict[str, list[MemoryPartition]] = {}
        self.chunk_records = 100

    def create(self, topic: str, partitions: int = 1) -> None:
        self.topics.setdefault(topic, [MemoryPartition() for _ in range(partitions)])

    def bounds(self, topic: str) -> Mapping[int, tuple[int, int]]:
        return {i: (p.start, p.end) for i, p in enumerate(self.topics.get(topic, ()))}

    def read(self, ranges: Sequence[Range]) -> Iterator[Chunk]:
        for wanted in ranges:
            if wanted.end <= wanted.start:
                continue
            partition = self.topics[wanted.topic][wanted.partition]
            chunk = Chunk(wanted.topic, wanted.partition)
            for offset, key, value in partition.records:
                if wanted.start <= offset < wanted.end:
                    _append(chunk, offset, key, value)
                    if len(chunk.offsets) == self.chunk_records:
                        yield chunk
                        chunk = Chunk(wanted.topic, wanted.partition)
            chunk.following = wanted.end
            yield chunk

    def follow(self, topic: str, partition: int, start: int, timeout: float) -> Chunk:
        chunk = Chunk(topic, partition, following=start)
        if topic in self.topics:
            held = self.topics[topic][partition]
            for offset, key, value in held.records:
                if offset >= start:
                    _append(chunk, offset, key, value)
            chunk.following = max(start, held.end)
        if not chunk.offsets:
            time.sleep(min(timeout, 0.01))
        return chunk

    def close(self) -> None:
        """Nothing is held."""


def _append(chunk: Chunk, offset: int, key: bytes | None, value: bytes | None) -> None:
    chunk.offsets.append(offset)
    chunk.keys.append(key)
    chunk.values.append(value)
    chunk.timestamps.append(0)
    chunk.headers.append(())
    chunk.following = offset + 1


class TickWriter:
    """Writes ticks of one project, and knows what every view holds after each."""

    def __init__(
        self,
        log: MemoryLog,
        project: str = "shop",
        *,
        partitions: int = 2,
        now_ms: int | None = None,
    ) -> None:
        self.log = log
        self.project = project
        self.partitions = partitions
        self.views: dict[str, ViewInfo] = {}
        self.tick_number = 0
        self.now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        self.contents: dict[str, dict[bytes, Row]] = {}
        self.history: dict[int, dict[str, dict[bytes, Row]]] = {}
        log.create(TICKS_TOPIC)

    def declare(
        self, name: str, key: Sequence[str], columns: Sequence[tuple[str, str]], generation: int = 1
    ) -> None:
        """A new view, a new schema, or (with a higher generation) a view built anew."""
        topic = name if generation == 1 else f"{name}.{generation}"
        if name not in self.views or self.views[name].generation != generation:
            self.contents[name] = {}
        self.log.create(topic, self.partitions)
        self.views[name] = ViewInfo(name, topic, generation, tuple(key), tuple(columns))

    def tick(
        self,
        changes: Mapping[str, Sequence[tuple[Row, Row | None]]],
        *,
        positions: Mapping[str, str] | None = None,
        inputs: Mapping[str, Mapping[int, int]] | None = None,
    ) -> TickRow:
        """Commit one tick: per view, (key, row or None) in order."""
        touched: list[MemoryPartition] = []
        self.tick_number += 1
        for view, records in changes.items():
            info = self.views[view]
            for key, row in records:
                text = orjson.dumps(key)
                partition = self.log.topics[info.topic][partition_for(text, self.partitions)]
                partition.append(text, None if row is None else orjson.dumps({"row": row}))
                touched.append(partition)
                if row is None:
                    self.contents[view].pop(text, None)
                else:
                    self.contents[view][text] = row
        row_of_tick = TickRow(
            key=self.project,
            project=self.project,
            tick=self.tick_number,
            ends={
                info.topic: {i: p.end for i, p in enumerate(self.log.topics[info.topic])}
                for info in self.views.values()
            },
            views=dict(self.views),
            positions=positions or {},
            inputs={topic: dict(ends) for topic, ends in (inputs or {}).items()},
            ts_ms=self.now_ms + self.tick_number,
        )
        ticks = self.log.topics[TICKS_TOPIC][0]
        ticks.append(self.project.encode(), row_of_tick.encode())
        for partition in {id(p): p for p in [*touched, ticks]}.values():
            partition.end += 1  # the commit marker
        self.history[self.tick_number] = {v: dict(rows) for v, rows in self.contents.items()}
        return row_of_tick


TOTALS = (
    "totals",
    ("country",),
    (("country", "STRING"), ("orders", "BIGINT"), ("value", "DECIMAL(12,2)")),
)
ORDERS = ("orders", ("id",), (("id", "BIGINT"), ("country", "STRING"), ("placed_at", "TIMESTAMP")))


def random_project(seed: int, ticks: int, *, keys: int = 40, changes: int = 30) -> TickWriter:
    """Two views and `ticks` ticks of upserts and deletes; the same for the same seed."""
    chance = random.Random(seed)
    writer = TickWriter(MemoryLog())
    for name, key, columns in (TOTALS, ORDERS):
        writer.declare(name, key, columns)
    for _ in range(ticks):
        write_random_tick(writer, chance, keys=keys, changes=changes)
    return writer


def write_random_tick(
    writer: TickWriter, chance: random.Random, *, keys: int = 40, changes: int = 30
) -> TickRow:
    """One more tick for a project of `random_project`."""
    batch: dict[str, list[tuple[Row, Row | None]]] = {"totals": [], "orders": []}
    for number in chance.sample(range(keys), min(keys, chance.randint(0, changes))):
        country = f"C{number}"
        row = {
            "country": country,
            "orders": chance.randint(1, 9),
            "value": f"{chance.randint(1, 999)}.50",
        }
        batch["totals"].append(({"country": country}, None if chance.random() < 0.25 else row))
    for number in chance.sample(range(keys), min(keys, chance.randint(0, changes))):
        order = {
            "id": number,
            "country": None if chance.random() < 0.1 else f"C{chance.randint(0, 9)}",
            "placed_at": f"2026-11-15T10:{chance.randint(10, 59)}:30.123456Z",
        }
        batch["orders"].append(({"id": number}, None if chance.random() < 0.25 else order))
    return writer.tick(batch, positions={"shop": f"pg:shop:{writer.tick_number * 16 + 16:016X}"})
