"""The same views on the state of a running project: files, LMDB caches, lost and thrown away."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.durable import SHARDS, DurableTables
from tailrace.pipelines.compiler import compile_views
from tailrace.testing.scripts import apply_step, read_script
from tailrace.testing.ticks import MemoryTables

FILES = sorted((Path(__file__).parents[2] / "views_sql").glob("*.sql"))


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
