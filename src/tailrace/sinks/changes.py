"""From records of a topic to batches of changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pyarrow as pa

from tailrace.client.ranges import Chunk
from tailrace.files import FILES
from tailrace.records.json_bytes import json_bytes
from tailrace.records.rows import normal_key, python_rows, read_rows, row_of
from tailrace.records.stream_columns import kind_in, wider
from tailrace.sinks.base import (
    AT,
    DELETED,
    OFFSET,
    PARTITION,
    VERSION,
    Batch,
    Shape,
    SinkPosition,
    forced_versions,
    version_of,
)


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is no row of the shape."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str


@dataclass(slots=True)
class Collector:
    """Gathers chunks until they are made into one batch."""

    shape: Shape
    wrapped: bool
    latest: bool
    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, chunk: Chunk, end: int) -> None:
        """Take a chunk's records below `end`."""
        count = len(chunk.offsets)
        while count and chunk.offsets[count - 1] >= end:
            count -= 1
        self.partitions += [chunk.partition] * count
        self.offsets += chunk.offsets[:count]
        self.keys += chunk.keys[:count]
        self.values += chunk.values[:count]
        self.times += chunk.timestamps[:count]

    def make(self, position: SinkPosition) -> tuple[Batch, list[BadRecord]]:
        """A batch that ends at `position`, and what could not be read."""
        indices: Sequence[int] = range(len(self.offsets))
        if self.latest and self.shape.keyed:
            names = self.keys if self.wrapped else map(_name, self.keys, indices)
            indices = sorted(dict(zip(names, indices, strict=True)).values())
        texts, deleted, taken = [], [], []
        bad: list[BadRecord] = []
        for index in indices:
            key, value = self.keys[index], self.values[index]
            if value is None and not self.shape.keyed:
                continue  # a tombstone says nothing where rows have no key
            try:
                text = (key or b"") if value is None else (row_of(value) if self.wrapped else value)
            except (ValueError, KeyError, TypeError) as reason:
                bad.append(self._bad(index, f"not a row: {reason}"))
                continue
            texts.append(text)
            deleted.append(value is None)
            taken.append(index)
        table, refused = read_rows(texts, self.shape.columns)
        if refused:
            out = {item.index: item.reason for item in refused}
            bad += [self._bad(taken[index], reason) for index, reason in out.items()]
            deleted = [flag for index, flag in enumerate(deleted) if index not in out]
            taken = [item for index, item in enumerate(taken) if index not in out]
        offsets = [self.offsets[index] for index in taken]
        generation = position.generation
        times = self.times or [0] * len(self.offsets)
        for name, values, kind in (
            (DELETED, deleted, pa.bool_()),
            (PARTITION, [self.partitions[index] for index in taken], pa.int32()),
            (OFFSET, offsets, pa.int64()),
            (VERSION, [version_of(generation, offset) for offset in offsets], pa.int64()),
            (AT, [times[index] for index in taken], pa.int64()),
        ):
            table = table.append_column(name, pa.array(values, kind))
        return Batch(self.shape, table, position), bad

    def _bad(self, index: int, reason: str) -> BadRecord:
        return BadRecord(
            self.partitions[index],
            self.offsets[index],
            self.keys[index],
            self.values[index],
            reason,
        )


def _name(key: bytes | None, index: int) -> object:
    """What tells a record's key from others: other people may write the same JSON in
    several ways, or no key at all."""
    if key is None:
        return index
    try:
        return normal_key(key)
    except ValueError:
        return key


def pieces(chunk: Chunk, rows: int) -> Iterator[Chunk]:
    """A chunk in parts of at most `rows` records."""
    if len(chunk.offsets) <= rows:
        yield chunk
        return
    for start in range(0, len(chunk.offsets), rows):
        stop = min(start + rows, len(chunk.offsets))
        last = stop == len(chunk.offsets)
        yield Chunk(
            chunk.topic,
            chunk.partition,
            chunk.offsets[start:stop],
            chunk.keys[start:stop],
            chunk.values[start:stop],
            chunk.timestamps[start:stop],
            chunk.headers[start:stop],
            chunk.following if last else chunk.offsets[stop - 1] + 1,
        )


def forced(
    shape: Shape, keys: Sequence[bytes], rows: Sequence[bytes | None], position: SinkPosition
) -> Batch:
    """A batch that writes these rows (JSON; None deletes the key), whatever versions the target
    has. What is no row of the shape is left out."""
    texts = [key if row is None else row for key, row in zip(keys, rows, strict=True)]
    table, refused = read_rows(texts, shape.columns)
    out = {one.index for one in refused}
    keys = [key for index, key in enumerate(keys) if index not in out]
    rows = [row for index, row in enumerate(rows) if index not in out]
    count = len(keys)
    for name, values in (
        (DELETED, pa.array([row is None for row in rows], pa.bool_())),
        (PARTITION, pa.array([0] * count, pa.int32())),
        (OFFSET, pa.array([0] * count, pa.int64())),
        (VERSION, pa.array(forced_versions(position, keys), pa.int64())),
        (AT, pa.array([position.at_ms] * count, pa.int64())),
    ):
        table = table.append_column(name, values)
    return Batch(shape, table, position, forced=True)


def removal(shape: Shape, rows: pa.Table, position: SinkPosition) -> Batch:
    """A batch that deletes `rows` (given with the shape's columns), whatever versions they
    have, and moves to `position`."""
    count = rows.num_rows
    keys = [json_bytes(key) for key in python_rows(rows.select(list(shape.key)))]
    for name, values in (
        (DELETED, pa.array([True] * count, pa.bool_())),
        (PARTITION, pa.array([0] * count, pa.int32())),
        (OFFSET, pa.array([0] * count, pa.int64())),
        (VERSION, pa.array(forced_versions(position, keys), pa.int64())),
        (AT, pa.array([position.at_ms] * count, pa.int64())),
    ):
        rows = rows.append_column(name, values)
    return Batch(shape, rows, position, forced=True)


class KnownColumns:
    """Columns of a stream: as the stream describes them, or told from the JSON of its rows.

    A column whose values no described type holds, or of several kinds, grows to the type
    that holds them all. Remembered in a file with the offsets read so far; without the
    file the stream is read again. What the file says of a column only grows: a copy made
    before streams described their columns keeps its types.
    """

    def __init__(self, path: Path | None) -> None:
        self.columns: dict[str, str] = {}
        self.offsets: dict[int, int] = {}
        self._path = path
        known = FILES.read_whole(path) if path is not None else None
        if known is not None:
            # What is damaged is as good as none.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                document = orjson.loads(known)
                offsets = {int(p): int(n) for p, n in document["offsets"].items()}
                self.columns, self.offsets = dict(document["columns"]), offsets

    def save(self) -> None:
        if self._path is None:
            return
        FILES.make_directories(self._path.parent)
        offsets = {str(p): n for p, n in self.offsets.items()}
        document = orjson.dumps({"columns": self.columns, "offsets": offsets})
        FILES.write_whole(self._path, document)

    def learn(
        self,
        values: Iterable[bytes | None],
        declared: Mapping[str, str],
        described: Mapping[str, str],
    ) -> None:
        """Take more rows into account. Types `declared` with the sink always win, then those
        `described` by the stream, as long as they hold the values."""
        for value in values:
            if value is None:
                continue
            try:
                row = orjson.loads(value)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(row, dict):
                continue
            for name, item in row.items():
                kind = declared.get(name)
                if kind is None:
                    before = self.columns.get(name, "VOID")
                    kind = wider(before, kind_in(described, name, item))
                self.columns[name] = kind
