"""A key with very many rows costs a change no more than any other key does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState
from tailrace.testing.state import MemoryStates
from tailrace.testing.ticks import MemoryTables, table

TABLES = [
    table("net.public.posts", "id BIGINT, author STRING", ["id"]),
    table("net.public.follows", "follower BIGINT, author STRING", ["follower", "author"]),
]
TIMELINE = "SELECT f.follower, p.id FROM net.follows f JOIN net.posts p ON p.author = f.author"


class Counted:
    """A state that counts the values that are read and written."""

    def __init__(self, inner: OperatorState, counts: dict[str, int]) -> None:
        self._inner, self._counts = inner, counts

    def get(self, key: bytes) -> bytes | None:
        self._counts["read"] += 1
        return self._inner.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._counts["read"] += len(keys)
        return self._inner.get_many(keys)

    def put_many(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        listed = list(items)
        self._counts["written"] += len(listed)
        self._inner.put_many(listed)

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for pair in self._inner.scan(prefix):
            self._counts["read"] += 1
            yield pair


class CountedStates:
    def __init__(self, states: MemoryStates) -> None:
        self._states = states
        self.counts = {"read": 0, "written": 0}

    def of(self, shard: int, operator: str) -> Counted:
        return Counted(self._states.of(shard, operator), self.counts)


def touched(memory: MemoryTables) -> dict[str, int]:
    """Run the next tick and count the values it reads and writes."""
    states = CountedStates(memory.states)
    memory.number += 1
    emitted = run_tick(memory.graph, memory.inputs(), states, TickContext(memory.number, 0))
    memory.apply({name: changes.to_pylist() for name, changes in emitted.items()})
    return states.counts


def test_following_a_star_costs_what_following_anyone_does() -> None:
    memory = MemoryTables(compile_views([ViewDefinition("timeline", TIMELINE)], TABLES))
    for number in range(5000):
        memory.upsert("net.public.follows", {"follower": number, "author": "star"})
    memory.upsert("net.public.follows", {"follower": 0, "author": "ann"})
    memory.upsert("net.public.posts", {"id": 1, "author": "star"})
    memory.upsert("net.public.posts", {"id": 2, "author": "ann"})
    memory.tick()
    assert len(memory.rows("timeline")) == 5001
    costs = []
    for author in ("star", "ann"):
        memory.upsert("net.public.follows", {"follower": 9999, "author": author})
        costs.append(touched(memory))
    assert all(cost["read"] < 20 and cost["written"] < 10 for cost in costs), costs
    memory.delete("net.public.follows", {"follower": 9999, "author": "star"})
    cost = touched(memory)
    assert cost["read"] < 20
    assert len(memory.rows("timeline")) == 5002
