"""What the log says a table contains, to be compared with the table itself.

After lost changes nobody knows which rows differ. Where the database can add up digests
of its rows, groups of rows whose sums agree are left out; the rest is read in chunks as
in any copy, but only rows that differ from the log's last version are written, and at the
end the keys that were never met are deleted. Digests are kept in a scratch SQLite file,
so a large table does not need memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import orjson

from tailrace.modes import make_private


class Summed(Protocol):
    """What one row adds to the sums of its group."""

    @property
    def group(self) -> str: ...

    @property
    def first(self) -> int: ...

    @property
    def second(self) -> int: ...


class Comparison:
    """Key → digest of the row in the log, and whether the table had it.

    With `sum_of` also the group of each row and what it adds to the group's sums.
    """

    def __init__(
        self,
        path: Path,
        rows: Iterable[tuple[bytes, bytes | None]],
        sum_of: Callable[[bytes, bytes], Summed] | None = None,
    ) -> None:
        self._path = path
        make_private(path.parent)
        path.unlink(missing_ok=True)
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # A scratch file: nothing in it is worth a journal or a flush.
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(
            "CREATE TABLE rows (key BLOB PRIMARY KEY, digest BLOB, seen INTEGER, grp TEXT, "
            "first INTEGER, second INTEGER) WITHOUT ROWID"
        )
        self._file.execute("BEGIN")
        for key, value in rows:
            after = None if value is None else orjson.loads(value).get("after")
            if after is None or value is None:
                self._file.execute("DELETE FROM rows WHERE key = ?", [key])
                continue
            summed: list[object] = [None, None, None]
            if sum_of is not None:
                found = sum_of(key, value)
                summed = [found.group, found.first, found.second]
            self._file.execute(
                "INSERT OR REPLACE INTO rows VALUES (?, ?, 0, ?, ?, ?)",
                [key, _digest(orjson.dumps(after)), *summed],
            )

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM rows").fetchone()[0])

    def keep_differing(self, sums: Mapping[str, tuple[int, int, int]], digits: int) -> list[str]:
        """The groups whose sums are not these; rows of the others count as met."""
        query = "SELECT substr(grp, 1, ?), count(*), sum(first), sum(second) FROM rows GROUP BY 1"
        held = {group: rest for group, *rest in self._file.execute(query, [digits])}
        differing = [
            group
            for group in {*sums, *held}
            if list(sums.get(group, (0, 0, 0))) != held.get(group, [0, 0, 0])
        ]
        self._file.execute("UPDATE rows SET seen = 1")
        self._file.executemany(
            "UPDATE rows SET seen = 0 WHERE substr(grp, 1, ?) = ?",
            [(digits, group) for group in differing],
        )
        return sorted(differing)

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
