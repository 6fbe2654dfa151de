"""The naive twin of an operator's state: a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class MemoryState:
    """One operator's state in a dict, sorted when scanned."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.rows.get(key) for key in keys]

    def put_many(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        for key, value in items:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value

    def scan(self, prefix: bytes = b"", after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        pairs = sorted(self.rows.items())
        return iter([pair for pair in pairs if pair[0].startswith(prefix) and pair[0] > after])


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
