"""What the log says a table contains, to be compared with the table itself.

After lost changes nobody knows which rows differ. The table is read in chunks as in any
copy, but only rows that differ from the log's last version are written, and at the end
the keys that were never met are deleted. Digests are kept in a scratch SQLite file, so a
large table does not need memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import orjson


class Comparison:
    """Key → digest of the row in the log, and whether the table had it."""

    def __init__(self, path: Path, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # A scratch file: nothing in it is worth a journal or a flush.
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(
            "CREATE TABLE rows (key BLOB PRIMARY KEY, digest BLOB, seen INTEGER) WITHOUT ROWID"
        )
        self._file.execute("BEGIN")
        for key, value in rows:
            after = None if value is None else orjson.loads(value).get("after")
            if after is None:
                self._file.execute("DELETE FROM rows WHERE key = ?", [key])
            else:
                self._file.execute(
                    "INSERT OR REPLACE INTO rows VALUES (?, ?, 0)",
                    [key, _digest(orjson.dumps(after))],
                )

    def differs(self, key: bytes, row: bytes) -> bool:
        """Whether the log has another row, or none; notes that the key is there."""
        found = self._file.execute("SELECT digest FROM rows WHERE key = ?", [key]).fetchone()
        if found is None:
            return True
        self._file.execute("UPDATE rows SET seen = 1 WHERE key = ?", [key])
        # The log's JSON was read and written again, so this is too.
        return bool(found[0] != _digest(orjson.dumps(orjson.loads(row))))

    def unseen(self) -> Iterator[bytes]:
        """Keys in the log that the table did not have."""
        for (key,) in self._file.execute("SELECT key FROM rows WHERE seen = 0"):
            yield key

    def close(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def _digest(row: bytes) -> bytes:
    return blake2b(row, digest_size=16).digest()
