"""What the log says a table contains, to be compared with the table itself.

After a lost slot nobody knows which rows changed. The table is read in chunks as in any
copy, but only rows that differ from the log's last version are written, and at the end
the keys that were never met are deleted. Digests are kept in a scratch LMDB, so a large
table does not need memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import lmdb
import orjson

from tailrace.sources.postgres.toast import MAP_BYTES

_SEEN = b"\1"
_UNSEEN = b"\0"


class Comparison:
    """Key → digest of the row in the log, and whether the table had it."""

    def __init__(self, path: Path, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._path = path
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        self._environment = lmdb.open(
            str(path), map_size=MAP_BYTES, sync=False, metasync=False, lock=False
        )
        with self._environment.begin(write=True) as writing:
            for key, value in rows:
                name = _name(key)
                if value is None:
                    writing.delete(name)
                    continue
                after = orjson.loads(value).get("after")
                if after is not None:
                    writing.put(name, _UNSEEN + _digest(orjson.dumps(after)) + key)
        self._writing = self._environment.begin(write=True)

    def differs(self, key: bytes, row: bytes) -> bool:
        """Whether the log has another row, or none; notes that the key is there."""
        name = _name(key)
        found: bytes | None = self._writing.get(name)
        if found is None:
            return True
        self._writing.put(name, _SEEN + found[1:])
        # Numbers are compared by value: the log's JSON was read and written again.
        return found[1:17] != _digest(orjson.dumps(orjson.loads(row)))

    def unseen(self) -> Iterator[bytes]:
        """Keys in the log that the table did not have."""
        with self._writing.cursor() as cursor:
            for _, found in cursor:
                if found[:1] == _UNSEEN:
                    yield found[17:]

    def close(self) -> None:
        self._writing.abort()
        self._environment.close()
        shutil.rmtree(self._path, ignore_errors=True)


def _digest(row: bytes) -> bytes:
    return blake2b(row, digest_size=16).digest()


def _name(key: bytes) -> bytes:
    return blake2b(key, digest_size=16).digest()
