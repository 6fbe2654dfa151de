"""The naive twin of an operator's state: a dict."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence


class MemoryState:
    """One operator's state in a dict, with its keys in order."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self._sorted: list[bytes] = []
        self._of: dict[bytes, bytes] = self.rows

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.rows.get(key) for key in keys]

    def put_many(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        keys = self._keys()
        for key, value in items:
            if value is not None:
                if key not in self.rows:
                    insort(keys, key)
                self.rows[key] = value
            elif self.rows.pop(key, None) is not None:
                del keys[bisect_left(keys, key)]

    def scan(self, prefix: bytes = b"", after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        keys = self._keys()
        at = max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0)
        found: list[tuple[bytes, bytes]] = []
        while at < len(keys) and keys[at].startswith(prefix):
            found.append((keys[at], self.rows[keys[at]]))
            at += 1
        return iter(found)

    def _keys(self) -> list[bytes]:
        """The keys in order; a test may have put other rows in their place."""
        if self._of is not self.rows or len(self._sorted) != len(self.rows):
            self._sorted, self._of = sorted(self.rows), self.rows
        return self._sorted


class MemoryStates:
    """All shards' states in dicts; `copy` keeps a version to go back to."""

    def __init__(self) -> None:
        self.states: dict[tuple[int, str], MemoryState] = {}

    def of(self, shard: int, operator: str) -> MemoryState:
        return self.states.setdefault((shard, operator), MemoryState())

    def copy(self) -> MemoryStates:
        twin = MemoryStates()
        for (shard, operator), state in self.states.items():
            twin.of(shard, operator).rows = dict(state.rows)
        return twin

    def contents(self) -> dict[tuple[int, str], dict[bytes, bytes]]:
        return {name: dict(state.rows) for name, state in self.states.items() if state.rows}
