"""Proof of sync: a copy compared with the log at one position.

The log up to the copy's own position says which rows it must have; the target is scanned
once. Rows go into 1,024 ranges by the hash of their key, each with a checksum over its
rows; only ranges whose checksums differ are looked at row by row. A copy may go on
moving meanwhile: keys that changed between the position before the scan and the one
after it are left out, since both of their values can be right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

from tailrace.client.ranges import Range, RangeReader
from tailrace.records.rows import normal_key, python_rows, read_rows, row_of
from tailrace.sinks.base import (
    AT,
    DELETED,
    OFFSET,
    PARTITION,
    VERSION,
    Batch,
    Readable,
    Shape,
    Sink,
    SinkPosition,
    version_of,
)
from tailrace.sinks.errors import SinkError

RANGES = 1024
LISTED = 1000


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose row differs: None on a side where it is missing."""

    key: dict[str, Any]
    expected: dict[str, Any] | None
    found: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Verification:
    """What a comparison found. `ranges` are the numbers of those that differ."""

    sink: str
    position: str
    rows: int
    ranges: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    skipped: int = 0
    shape: Shape = field(default=Shape(()), repr=False)

    @property
    def in_step(self) -> bool:
        return not self.ranges


class Verifier:
    """Compares the copy of one sink with the topic it is made from."""

    def __init__(
        self, name: str, sink: Sink, reader: RangeReader, shape: Shape, *, wrapped: bool = True
    ) -> None:
        if not isinstance(sink, Readable):
            raise SinkError(
                f"sink {name!r} cannot be read back",
                detail="Webhooks, mails and functions leave nothing to compare.",
            )
        if not shape.key:
            raise SinkError(
                f"sink {name!r} appends rows without a key",
                detail="Without a key there is nothing to tell rows apart by.",
            )
        self._name = name
        self._sink = sink
        self._scan = sink.scan
        self._reader = reader
        self._shape = shape
        self._wrapped = wrapped

    def compare(self) -> Verification:
        """Look at everything once."""
        before = self._sink.position()
        if before is None:
            raise SinkError(f"sink {self._name!r} has not applied anything yet")
        found: dict[bytes, bytes] = {}
        sums_found = [0] * RANGES
        for table in self._scan(self._shape):
            for key, text in self._canonical(table):
                digest = _digest(text)
                if key in found:
                    raise SinkError(f"key {key.decode()} is twice in the copy of {self._name!r}")
                found[key] = text
                sums_found[_range(key)] ^= digest
        after = self._sink.position() or before
        moving = self._keys_between(before, after)
        expected = self._expected(before)
        sums_expected = [0] * RANGES
        for key in moving:
            expected.pop(key, None)
            if key in found:
                sums_found[_range(key)] ^= _digest(found.pop(key))
        for key, text in expected.items():
            sums_expected[_range(key)] ^= _digest(text)
        differing = tuple(i for i in range(RANGES) if sums_expected[i] != sums_found[i])
        wrong = set(differing)
        differences = [
            Difference(orjson.loads(key), _loads(expected.get(key)), _loads(found.get(key)))
            for key in (sorted(expected.keys() | found.keys()) if wrong else ())
            if _range(key) in wrong and expected.get(key) != found.get(key)
        ]
        return Verification(
            self._name,
            before.encode(),
            len(expected),
            differing,
            tuple(differences),
            len(moving),
            self._shape,
        )

    def repair(self, verification: Verification) -> int:
        """Write the rows that differ as the log has them; how many."""
        if not verification.differences:
            return 0
        self._sink.open(self._shape)
        position = self._sink.position()
        assert position is not None
        wanted = {orjson.dumps(d.key): d for d in verification.differences}
        # The copy may have moved on: the newest value up to where it is now counts.
        current = self._expected(position, only=wanted.keys())
        texts, deleted = [], []
        for key in wanted:
            text = current.get(key)
            texts.append(key if text is None else text)
            deleted.append(text is None)
        table, _ = read_rows(texts, self._shape.columns)
        count = len(texts)
        version = version_of(position.generation, max(position.offsets.values(), default=1) - 1)
        for name, values in (
            (DELETED, pa.array(deleted, pa.bool_())),
            (PARTITION, pa.array([0] * count, pa.int32())),
            (OFFSET, pa.array([0] * count, pa.int64())),
            (VERSION, pa.array([version] * count, pa.int64())),
            (AT, pa.array([position.at_ms] * count, pa.int64())),
        ):
            table = table.append_column(name, values)
        self._sink.apply(Batch(self._shape, table, position, forced=True))
        return count

    def _expected(
        self, position: SinkPosition, only: Iterable[bytes] | None = None
    ) -> dict[bytes, bytes]:
        """Rows by key in canonical form, from the topic's start to a position."""
        wanted = None if only is None else set(only)
        bounds = self._reader.bounds(position.topic)
        ranges = [
            Range(position.topic, partition, bounds.get(partition, (0, 0))[0], end)
            for partition, end in position.offsets.items()
        ]
        raw: dict[bytes, bytes] = {}
        for chunk in self._reader.read(ranges):
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                try:
                    name = normal_key(key)
                    if wanted is not None and name not in wanted:
                        continue
                    if value is None:
                        raw.pop(name, None)
                    else:
                        raw[name] = row_of(value) if self._wrapped else value
                except (ValueError, KeyError, TypeError):
                    continue  # no row: it is among the dead letters
        expected: dict[bytes, bytes] = {}
        texts = list(raw.values())
        for start in range(0, len(texts), 20_000):
            table, _ = read_rows(texts[start : start + 20_000], self._shape.columns)
            expected.update(self._canonical(table))
        return expected

    def _keys_between(self, before: SinkPosition, after: SinkPosition) -> set[bytes]:
        if before == after:
            return set()
        ranges = [
            Range(after.topic, partition, before.offsets.get(partition, 0), end)
            for partition, end in after.offsets.items()
        ]
        keys: set[bytes] = set()
        for chunk in self._reader.read(ranges):
            for key in chunk.keys:
                if key is not None:
                    keys.add(normal_key(key))
        return keys

    def _canonical(self, table: pa.Table) -> list[tuple[bytes, bytes]]:
        """Key and row as JSON, written the same way whatever side they come from."""
        key = self._shape.key
        return [
            (orjson.dumps({name: row[name] for name in key}), orjson.dumps(row))
            for row in python_rows(table.select(list(self._shape.names)))
        ]


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _range(key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=2).digest(), "big") % RANGES


def _loads(text: bytes | None) -> dict[str, Any] | None:
    return None if text is None else orjson.loads(text)
