"""Proof of sync: a copy compared with the log at one position.

The log up to the copy's own position says which rows it must have; both sides are read
as streams. Rows go into 1,024 ranges by the hash of their key, each with a checksum over
its rows; only ranges whose checksums differ are looked at row by row, some at a time. A
copy may go on moving meanwhile: keys that changed between the position before a scan and
the one after it are left out, since both of their values can be right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import pyarrow as pa

from tailrace.client.ranges import Range, RangeReader
from tailrace.records.json_bytes import json_bytes
from tailrace.records.rows import normal_key, python_rows, read_rows
from tailrace.sinks.base import Batch, Partial, Readable, Shape, Sink, SinkPosition
from tailrace.sinks.changes import forced
from tailrace.sinks.errors import SinkError
from tailrace.sinks.expected import RANGES, ExpectedRows, range_of
from tailrace.sinks.opening import Lenient, Opener, opened, opened_batch

LISTED = 1000
ROWS_AT_ONCE = 20_000
ROWS_IN_MEMORY = 200_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose row differs: None on a side where it is missing."""

    key: dict[str, Any]
    expected: dict[str, Any] | None
    found: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Verification:
    """What a comparison found. `ranges` are the numbers of those that differ, `count` is
    how many rows do, `differences` the first of them."""

    sink: str
    position: str
    rows: int
    ranges: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    count: int = 0
    skipped: int = 0
    keys: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def in_step(self) -> bool:
        return not self.ranges


@dataclass(slots=True)
class _Sums:
    """A checksum and a number of rows for every range."""

    digests: list[int] = field(default_factory=lambda: [0] * RANGES)
    counts: list[int] = field(default_factory=lambda: [0] * RANGES)

    def add(self, key: bytes, text: bytes) -> None:
        number = range_of(key)
        self.digests[number] = (self.digests[number] + _digest(text)) & 0xFFFFFFFFFFFFFFFF
        self.counts[number] += 1


class Verifier:
    """Compares the copy of one sink with the topic it is made from, as often as asked: a
    second look reads only what the log has got since. Close it: it keeps rows on disk."""

    def __init__(
        self,
        name: str,
        sink: Sink,
        reader: RangeReader,
        shape: Shape,
        *,
        wrapped: bool = True,
        scratch: Path | None = None,
        columns: Collection[str] = (),
        opener: Opener | None = None,
    ) -> None:
        """`columns`: those that the copy holds opened."""
        if not isinstance(sink, Readable):
            raise SinkError(
                f"sink {name!r} cannot be read back",
                detail="Webhooks, mails and functions leave nothing to compare.",
            )
        if not shape.keyed:
            raise SinkError(
                f"sink {name!r} appends rows without a key",
                detail="Without a key there is nothing to tell rows apart by.",
            )
        self._name = name
        self._sink = sink
        self._scan = sink.scan
        self._reader = reader
        self._shape = shape
        self._columns, self._opener = columns, opener
        self._lenient = None if opener is None else Lenient(opener)
        self._repeats = bool(getattr(sink, "repeats", False))
        self._seen = sink.seen(shape) if isinstance(sink, Partial) else shape
        self._expected = ExpectedRows(reader, wrapped=wrapped, scratch=scratch)

    @property
    def shape(self) -> Shape:
        return self._shape

    def __enter__(self) -> Verifier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._expected.close()

    def compare(self) -> Verification:
        """Look at everything once."""
        position = self._position()
        found = _Sums()
        for key, text in self._found():
            found.add(key, text)
        self._expected.advance(position)
        expected = _Sums()
        for key, text in self._wanted(self._expected.rows()):
            expected.add(key, text)
        rows = len(self._expected)
        suspect = [
            number
            for number in range(RANGES)
            if (found.digests[number], found.counts[number])
            != (expected.digests[number], expected.counts[number])
        ]
        # All keys that differ, a few bytes each; rows only of the first.
        keys: list[bytes] = []
        differences: list[Difference] = []
        skipped = 0
        sizes = {n: max(found.counts[n], expected.counts[n]) for n in suspect}
        for group in _groups(sizes):
            moving, wrong = self._look(group)
            skipped += moving
            keys += [key for key, _, _ in wrong]
            room = LISTED - len(differences)
            differences += [
                Difference(orjson.loads(key), _loads(e), _loads(f)) for key, e, f in wrong[:room]
            ]
        assert self._expected.position is not None
        return Verification(
            self._name,
            self._expected.position.encode(),
            rows,
            tuple(sorted({range_of(key) for key in keys})),
            tuple(sorted(differences, key=lambda one: orjson.dumps(one.key))),
            len(keys),
            skipped,
            tuple(keys),
        )

    def repair(self, differing: Sequence[bytes]) -> int:
        """Write the rows under these keys, those of a `Verification`, as the log has them
        now; how many. Takes the copy over from whoever writes it."""
        if not differing:
            return 0
        self._sink.open(self._shape)
        position = self._position()
        # The copy may have moved on: the newest value up to where it is now counts.
        self._expected.advance(position)
        keys = iter(differing)
        while part := list(islice(keys, ROWS_AT_ONCE)):
            self._sink.apply(self._forced(part, position))
        return len(differing)

    # ------------------------------------------------------------------ the two sides

    def _position(self) -> SinkPosition:
        position = self._sink.position()
        if position is None:
            raise SinkError(
                f"sink {self._name!r} has not applied anything yet",
                hint="start it with `tailrace up`, or fill it with `tailrace sink replay`",
            )
        return position

    def _found(self) -> Iterator[tuple[bytes, bytes]]:
        for table in self._scan(self._shape):
            yield from self._canonical(table)

    def _wanted(self, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        texts = (text for _, text in rows)
        while part := list(islice(texts, ROWS_AT_ONCE)):
            table, _ = read_rows(part, self._shape.columns)
            table = opened(table, self._columns, self._lenient)
            yield from self._canonical(table)

    def _look(self, ranges: frozenset[int]) -> tuple[int, list[tuple[bytes, bytes, bytes]]]:
        """Keys that moved, and (key, expected, found) of those that differ; b"" for none."""
        before = self._position()
        found: dict[bytes, bytes] = {}
        several = False
        for key, text in self._found():
            if range_of(key) not in ranges:
                continue
            if key in found and self._shape.one_row and not self._repeats:
                several = True  # whatever they are, a repair leaves the one of the log
            elif key in found and not (self._repeats and found[key] == text):
                raise SinkError(
                    f"key {key.decode()} is twice in the copy of {self._name!r}",
                    hint=f"remove one of the rows, or `tailrace sink replay {self._name}`",
                )
            found[key] = text
        after = self._position()
        self._expected.advance(before)
        moving = self._keys_between(before, after)
        wrong: list[tuple[bytes, bytes, bytes]] = []
        for number in sorted(ranges):
            for key, text in self._wanted(self._expected.rows(number)):
                held = found.pop(key, b"")
                if (held != text or several) and key not in moving:
                    wrong.append((key, text, held))
        wrong += [(key, b"", text) for key, text in found.items() if key not in moving]
        return len(moving), wrong

    def _keys_between(self, before: SinkPosition, after: SinkPosition) -> set[bytes]:
        if before == after:
            return set()
        ranges = [
            Range(after.topic, partition, before.offsets.get(partition, 0), end)
            for partition, end in after.offsets.items()
        ]
        keys: set[bytes] = set()
        for chunk in self._reader.read(ranges):
            keys.update(normal_key(key) for key in chunk.keys if key is not None)
        return keys

    def _canonical(self, table: pa.Table) -> list[tuple[bytes, bytes]]:
        """Key and row as JSON, written the same way whatever side they come from."""
        key = self._seen.key
        return [
            (json_bytes({name: row[name] for name in key}), json_bytes(row))
            for row in python_rows(table.select(list(self._seen.names)))
        ]

    def _forced(self, keys: list[bytes], position: SinkPosition) -> Batch:
        rows = [self._expected.get(key) for key in keys]
        return opened_batch(forced(self._shape, keys, rows, position), self._columns, self._opener)


def _groups(sizes: dict[int, int]) -> Iterator[frozenset[int]]:
    """Ranges in groups whose rows fit in memory together."""
    group: list[int] = []
    rows = 0
    for number, size in sizes.items():
        if group and rows + size > ROWS_IN_MEMORY:
            yield frozenset(group)
            group, rows = [], 0
        group.append(number)
        rows += size
    if group:
        yield frozenset(group)


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _loads(text: bytes) -> dict[str, Any] | None:
    return orjson.loads(text) if text else None
