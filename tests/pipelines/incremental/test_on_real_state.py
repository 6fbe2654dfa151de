"""The same views on the state of a running project: files, LMDB caches, lost and thrown away."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tailrace.pipelines.incremental.compile import compile_views
from tailrace.pipelines.incremental.execute import run_tick
from tailrace.pipelines.incremental.graph import Graph, TickContext
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.shard import Attempt
from tailrace.pipelines.state.store import Version
from tailrace.testing.scripts import apply_step, read_script
from tailrace.testing.ticks import MemoryTables

FILES = sorted((Path(__file__).parents[2] / "views_sql").glob("*.sql"))
SHARDS = 3


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

    def tick(self):
        if self.rng.random() < 0.4:  # an attempt whose files nobody will ever name
            with self._begin() as lost:
                context = TickContext(self.number + 1, self.now_ms)
                run_tick(self.graph, self.inputs(), lost, context, shards=SHARDS)
                lost.finish(self.number + 1, 7)
        if self.rng.random() < 0.3:  # another host: no cache
            shutil.rmtree(self.directory / "cache", ignore_errors=True)
        with self._begin() as attempt:
            self.states = attempt
            emitted = super().tick()
            self.versions = {**self.versions, **attempt.finish(self.number)}
        return emitted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_views_on_files_and_caches_equal_views_in_memory(path: Path, tmp_path: Path) -> None:
    script = read_script(path)
    graph = compile_views(script.views, script.tables)
    durable = DurableTables(graph, tmp_path, seed=len(path.name))
    memory = MemoryTables(graph, shards=SHARDS)
    for step in script.steps * 2:
        apply_step(durable, script.tables, step)
        apply_step(memory, script.tables, step)
        assert durable.views == memory.views
