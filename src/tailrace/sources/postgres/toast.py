"""Values that the stream leaves out, kept beside the source.

Postgres does not send a value that is stored out of line (TOAST) and did not change. It
is completed from our own copy of the last row, never by reading the table, which may
have moved on. Kept are rows whose JSON is at least `SMALLEST` bytes: a row must pass
2 KB on disk before anything moves out of line, and no type's text is that much shorter.

An LMDB environment, `<directory>/sources/<name>.rows`: table + NUL + record key → version
of the schema (4 bytes, big-endian) + row. It is a cache of the change topics. Its stamp holds
the next offset of every topic it has applied, the mark of the file (`unsynced`) and the number
of this format; behind → the topics are read from there, anything else (ahead, another boot or
file: it is not synced, another format, damage, pages that the disk refused) → begun again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import lmdb
import orjson

from tailrace.modes import file_mode, make_private
from tailrace.sources.base import LogRecord
from tailrace.sources.errors import StateStorageError
from tailrace.sources.postgres.raw_json import members
from tailrace.unsynced import WRITE_BACK, file_mark

SMALLEST = 256
FORMAT = 2
_STAMP = b"\0stamp"
MAP_BYTES = 64 << 30  # address space, not disk


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row's JSON, in the shape of a version of its schema."""

    version: int
    json: bytes


class RowStore:
    """The last large rows of a source's tables."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._refused = False  # whether the disk refused a page of it
        self._changes: dict[bytes, bytes | None] = {}
        self._environment = self._opened()
        self._offsets = self._read_stamp()

    def _open(self) -> lmdb.Environment:
        make_private(self._path)
        return lmdb.open(
            str(self._path), mode=file_mode(), map_size=MAP_BYTES, sync=False, metasync=False, writemap=False,
            max_dbs=0, lock=True, readahead=False,
        )  # fmt: skip

    def _opened(self) -> lmdb.Environment:
        """Whatever is there and cannot be opened is begun again: it is a cache."""
        try:
            return self._open()
        except lmdb.Error:
            shutil.rmtree(self._path, ignore_errors=True)
            return self._open()

    def _mark(self) -> str:
        return file_mark(self._path / "data.mdb")

    def _give_up(self) -> None:
        self._refused = True

    def _read_stamp(self) -> dict[str, int]:
        try:
            with self._environment.begin() as reading:
                found = reading.get(_STAMP)
            stamp = {} if found is None else orjson.loads(found)
        except (lmdb.Error, orjson.JSONDecodeError):
            stamp = {}
        if stamp.get("format") == FORMAT and stamp["boot"] == self._mark():
            return dict(stamp["offsets"])
        self._begin_again()
        return {}

    def _begin_again(self) -> None:
        self._environment.close()
        shutil.rmtree(self._path, ignore_errors=True)
        self._environment = self._open()
        self._refused = False

    # --- at start ----------------------------------------------------------------------------

    def next_offset(self, topic: str, end: int) -> int:
        """From where a topic must be read to catch up; begins again if it is ahead."""
        offset = self._offsets.get(topic, 0)
        if offset > end:
            self._begin_again()
            self._offsets = {}
            return 0
        return offset

    def apply(
        self, table: str, topic: str, records: Iterable[LogRecord], end: int, smallest: int
    ) -> set[bytes]:
        """Take in committed records of a change topic, up to `end`; the keys whose last row
        lacks a value, as earlier versions wrote them."""
        partial: set[bytes] = set()
        for record in records:
            if record.key is None:
                continue
            if record.value is None:
                self.put(table, record.key, None)
                partial.discard(record.key)
            elif len(record.value) >= smallest:
                try:
                    event = members(record.value, until="source")
                    after, source = event["after"], orjson.loads(event["source"])
                except (KeyError, ValueError):  # not of ours: nothing is known
                    after, source = b"null", {}
                partial.discard(record.key)
                if source.get("missing"):
                    partial.add(record.key)
                    after = b"null"
                known = None if after == b"null" else after
                self.put(table, record.key, known, source.get("schema_version") or 0)
            if len(self._changes) >= 10_000:
                self.commit({})
        self.commit({topic: end})
        return partial

    # --- while capturing ---------------------------------------------------------------------

    def put(self, table: str, key: bytes, row: bytes | None, version: int = 0) -> None:
        """Remember a row, visible to `get` at once, kept once `commit` was called."""
        packed = None if row is None else version.to_bytes(4, "big") + row
        self._changes[table.encode() + b"\0" + key] = packed

    def get(self, table: str, key: bytes) -> KeptRow | None:
        """The last row with this key that was kept."""
        name = table.encode() + b"\0" + key
        if name in self._changes:
            found = self._changes[name]
        else:
            try:
                with self._environment.begin(buffers=False) as reading:
                    found = reading.get(_short(name))
            except lmdb.Error as error:
                self._begin_again()
                raise StateStorageError(
                    f"the rows kept in {self._path} cannot be read",
                    detail=str(error),
                    hint="capture reads them from the change topics again",
                ) from error
        return None if found is None else KeptRow(int.from_bytes(found[:4], "big"), found[4:])

    def commit(self, offsets: Mapping[str, int]) -> None:
        """After the log's commit: keep the changes, with the offsets they reach."""
        if self._refused:
            self._begin_again()
            raise StateStorageError(
                f"the rows kept in {self._path} cannot be trusted",
                detail="The disk did not take all of them.",
                hint="look at that disk; capture reads them from the change topics again",
            )
        reached = {**self._offsets, **offsets}
        stamp = orjson.dumps({"format": FORMAT, "boot": self._mark(), "offsets": reached})
        try:
            with self._environment.begin(write=True) as writing:
                for name, row in self._changes.items():
                    if row is None:
                        writing.delete(_short(name))
                    else:
                        writing.put(_short(name), row)
                writing.put(_STAMP, stamp)
        except lmdb.Error as error:
            raise StateStorageError(
                f"the rows kept in {self._path} cannot be written",
                detail=str(error),
                hint="make room on that disk; capture goes on by itself",
            ) from error
        self._offsets = reached
        self._changes.clear()
        WRITE_BACK.look(self._path / "data.mdb", self._give_up)

    @property
    def dirty(self) -> bool:
        return bool(self._changes)

    def close(self) -> None:
        self._environment.close()


def _short(name: bytes) -> bytes:
    """LMDB takes keys of up to 511 bytes; a longer one is replaced by its digest."""
    if len(name) <= 500:
        return name
    from hashlib import sha256

    return name[:400] + sha256(name).digest()
