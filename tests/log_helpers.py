"""What the log's tests share: a clock, batches, a plain reader."""

from __future__ import annotations

from pathlib import Path

from tailrace.log.files import Files
from tailrace.log.partition import Partition
from tailrace.records.batch import Record, decode_records, encode_columns, iterate_batches


class HandClock:
    """Time that moves only when told."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self.now = wall_ms
        self.ahead_ms = 0

    def wall_ms(self) -> int:
        return self.now + self.ahead_ms

    def monotonic(self) -> float:
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock alone."""
        self.ahead_ms += milliseconds


class NoSyncs(Files):
    """For tests that kill processes but no machines: what was written is there anyway."""

    __slots__ = ()

    sync_data = staticmethod(lambda number: None)

    def sync_directory(self, path: str | Path) -> None:
        """Nothing is lost."""

    def sync_filesystem(self, path: str | Path, held: int | None = None) -> None:
        """Nothing is lost."""


def batch(
    *values: bytes, key: bytes | None = b"k", at: int = 1_700_000_000_000, **more: object
) -> bytearray:
    """One batch with these values, all under one key."""
    return encode_columns([key] * len(values), list(values), at, **more)  # type: ignore[arg-type]


def read_all(
    partition: Partition, start: int | None = None, limit: int | None = None, max_bytes: int = 10**6
) -> list[Record]:
    """Every record a reader sees, control batches left out."""
    found: list[Record] = []
    offset = partition.log_start_offset if start is None else start
    while True:
        with partition.read(offset, max_bytes, limit) as piece:
            data = piece.read()
        if not data:
            return found
        following = offset
        for position, header in iterate_batches(data):
            following = header.last_offset + 1
            if not header.control:
                found += [
                    record for record in decode_records(data, position) if record.offset >= offset
                ]
        assert following > offset, "a read must bring at least one whole batch"
        offset = following
