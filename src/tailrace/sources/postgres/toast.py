"""Values that the stream leaves out, kept beside the source.

Postgres does not send a value that is stored out of line (TOAST) and did not change. It
is completed from our own copy of the last row, never by reading the table, which may
have moved on. Kept are rows whose JSON is at least `SMALLEST` bytes: a row must pass
2 KB on disk before anything moves out of line, and no type's text is that much shorter.

An LMDB environment, `<directory>/sources/<name>.rows`: table + NUL + record key → row.
It is a cache of the change topics. Its stamp holds the next offset of every topic it
has applied and the kernel's boot id; behind → the topics are read from there, anything
else (ahead, another boot: it is not synced) → begun again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import lmdb
import orjson

from tailrace.sources.base import LogRecord
from tailrace.sources.errors import StateStorageError

SMALLEST = 256
_STAMP = b"\0stamp"
MAP_BYTES = 64 << 30  # address space, not disk


class RowStore:
    """The last large rows of a source's tables."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._boot = Path("/proc/sys/kernel/random/boot_id")
        self._changes: dict[bytes, bytes | None] = {}
        self._environment = self._open()
        self._offsets = self._read_stamp()

    def _open(self) -> lmdb.Environment:
        self._path.mkdir(parents=True, exist_ok=True)
        return lmdb.open(
            str(self._path), map_size=MAP_BYTES, sync=False, metasync=False, writemap=False,
            max_dbs=0, lock=True, readahead=False,
        )  # fmt: skip

    def _boot_id(self) -> str:
        return self._boot.read_text().strip() if self._boot.exists() else ""

    def _read_stamp(self) -> dict[str, int]:
        try:
            with self._environment.begin() as reading:
                found = reading.get(_STAMP)
            stamp = {} if found is None else orjson.loads(found)
        except (lmdb.Error, orjson.JSONDecodeError):
            stamp = {}
        if stamp and stamp["boot"] == self._boot_id():
            return dict(stamp["offsets"])
        self._begin_again()
        return {}

    def _begin_again(self) -> None:
        self._environment.close()
        shutil.rmtree(self._path, ignore_errors=True)
        self._environment = self._open()

    # --- at start ----------------------------------------------------------------------------

    def next_offset(self, topic: str, end: int) -> int:
        """From where a topic must be read to catch up; begins again if it is ahead."""
        offset = self._offsets.get(topic, 0)
        if offset > end:
            self._begin_again()
            self._offsets = {}
            return 0
        return offset

    def apply(self, table: str, topic: str, records: Iterable[LogRecord], end: int) -> None:
        """Take in committed records of a change topic, up to `end`."""
        for record in records:
            if record.key is None:
                continue
            if record.value is None:
                self.put(table, record.key, None)
            elif len(record.value) >= SMALLEST:
                after = orjson.loads(record.value).get("after")
                if after is not None:
                    self.put(table, record.key, orjson.dumps(after))
            if len(self._changes) >= 10_000:
                self.commit({})
        self.commit({topic: end})

    # --- while capturing ---------------------------------------------------------------------

    def put(self, table: str, key: bytes, row: bytes | None) -> None:
        """Remember a row, visible to `get` at once, kept once `commit` was called."""
        if row is None or len(row) >= SMALLEST:
            self._changes[table.encode() + b"\0" + key] = row

    def get(self, table: str, key: bytes) -> bytes | None:
        """The last row with this key that was large enough to be kept."""
        name = table.encode() + b"\0" + key
        if name in self._changes:
            return self._changes[name]
        with self._environment.begin(buffers=False) as reading:
            found: bytes | None = reading.get(_short(name))
        return found

    def commit(self, offsets: Mapping[str, int]) -> None:
        """After the log's commit: keep the changes, with the offsets they reach."""
        reached = {**self._offsets, **offsets}
        stamp = orjson.dumps({"boot": self._boot_id(), "offsets": reached})
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
