"""Views on the state of a running project: files, caches that get lost, attempts thrown away."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa

from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import Graph, TickContext
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.state.store import Version
from tailrace.testing.ticks import MemoryTables

SHARDS = 3


def shown(emitted: dict[str, pa.Table]) -> dict[str, list[str]]:
    """What a tick says, in any order."""
    return {name: sorted(map(repr, table.to_pylist())) for name, table in emitted.items()}


class DurableTables(MemoryTables):
    """Views whose state lives in files; caches get lost, attempts are thrown away."""

    def __init__(self, graph: Graph, directory: Path, seed: int) -> None:
        super().__init__(graph, shards=SHARDS)
        self.directory = directory
        self.files = LocalFiles(directory / "state")
        self.versions: dict[int, Version] = {}
        self.rng = random.Random(seed)

    def _begin(self) -> Attempt:
        return Attempt.begin(self.files, self.directory / "cache", self.versions)

    def tick(self) -> dict[str, pa.Table]:
        first: dict[str, pa.Table] | None = None
        if self.rng.random() < 0.4:  # an attempt whose files nobody will ever name
            with self._begin() as lost:
                context = TickContext(self.number + 1, self.now_ms)
                first = run_tick(self.graph, self.inputs(), lost, context, shards=SHARDS)
                lost.finish(self.number + 1, 7)
        if self.rng.random() < 0.3:  # another host: no cache
            shutil.rmtree(self.directory / "cache", ignore_errors=True)
        with self._begin() as attempt:
            self.states = attempt
            emitted = super().tick()
            self.versions = {**self.versions, **attempt.finish(self.number)}
        assert first is None or shown(first) == shown(emitted)  # a replay says the same
        return emitted
