"""The rows a copy must have, worked out from the log and kept on disk.

A temporary LMDB environment holds the newest row of every key up to a position, sorted
by the range its key falls into, so that neither all rows nor all keys are ever in
memory. It can be moved on to a later position by reading only what lies between.

    range (2 bytes), blake2b-16 of the key   →  length of the key (4), key, row as JSON
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import lmdb

from tailrace.client.ranges import Range, RangeReader
from tailrace.modes import make_private
from tailrace.records.rows import normal_key, row_of
from tailrace.sinks.base import SinkPosition

RANGES = 1024
MAP_BYTES = 1 << 40


def place_of(key: bytes) -> bytes:
    """Where a key is kept: its range, then its digest."""
    digest = hashlib.blake2b(key, digest_size=18).digest()
    return range_of(key).to_bytes(2, "big") + digest[2:]


def range_of(key: bytes) -> int:
    """The range, of `RANGES`, that a key falls into."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=2).digest(), "big") % RANGES


class ExpectedRows:
    """Newest rows by key, as a topic has them up to `position`."""

    def __init__(self, reader: RangeReader, *, wrapped: bool, scratch: Path | None = None) -> None:
        self._reader = reader
        self._wrapped = wrapped
        if scratch is not None:
            make_private(scratch)
        self._directory = tempfile.mkdtemp(prefix="verify-", dir=scratch)
        self._environment: Any = lmdb.open(
            self._directory, map_size=MAP_BYTES, sync=False, metasync=False, lock=False
        )
        self.position: SinkPosition | None = None

    def __enter__(self) -> ExpectedRows:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._environment.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __len__(self) -> int:
        return int(self._environment.stat()["entries"])

    def advance(self, position: SinkPosition) -> None:
        """Move on to a position; from the topic's start if that is another topic, or lies
        before the one held."""
        held = self.position
        if (
            held is None
            or (held.topic, held.generation) != (position.topic, position.generation)
            or any(position.offsets.get(p, 0) < offset for p, offset in held.offsets.items())
        ):
            with self._environment.begin(write=True) as transaction:
                transaction.drop(self._environment.open_db(), delete=False)
            bounds = self._reader.bounds(position.topic)
            starts = {p: first for p, (first, _) in bounds.items()}
        else:
            starts = dict(held.offsets)
        ranges = [
            Range(position.topic, partition, starts.get(partition, 0), end)
            for partition, end in position.offsets.items()
            if end > starts.get(partition, 0)
        ]
        self.position = None  # until it is whole again
        for chunk in self._reader.read(ranges):
            self._take(chunk.keys, chunk.values)
        self.position = position

    def _take(self, keys: list[bytes | None], values: list[bytes | None]) -> None:
        changes: dict[bytes, bytes | None] = {}
        for key, value in zip(keys, values, strict=True):
            try:
                name = normal_key(key)
                row = None if value is None else row_of(value) if self._wrapped else value
            except (ValueError, KeyError, TypeError):
                continue  # no row: it is among the dead letters
            changes[place_of(name)] = (
                None if row is None else len(name).to_bytes(4, "big") + name + row
            )
        with self._environment.begin(write=True) as transaction:
            for place in sorted(changes):
                entry = changes[place]
                if entry is None:
                    transaction.delete(place)
                else:
                    transaction.put(place, entry)

    def rows(self, number: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and rows as JSON, of one range or of all."""
        prefix = b"" if number is None else number.to_bytes(2, "big")
        with self._environment.begin() as transaction, transaction.cursor() as cursor:
            found = cursor.set_range(prefix) if prefix else cursor.first()
            while found and cursor.key().startswith(prefix):
                entry = bytes(cursor.value())
                end = 4 + int.from_bytes(entry[:4], "big")
                yield entry[4:end], entry[end:]
                found = cursor.next()

    def get(self, key: bytes) -> bytes | None:
        """The row of one key as JSON."""
        with self._environment.begin() as transaction:
            entry = transaction.get(place_of(key))
        return None if entry is None else bytes(entry[4 + int.from_bytes(entry[:4], "big") :])
