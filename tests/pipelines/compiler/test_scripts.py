"""The files of tests/views_sql: tables, changes, and every view after each tick."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tailrace.pipelines.compiler import compile_views
from tailrace.testing.scripts import apply_step, read_script, shown_rows
from tailrace.testing.ticks import MemoryTables

FILES = sorted((Path(__file__).parents[2] / "views_sql").glob("*.sql"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("shards", [1, 4])
def test_views_show_what_the_file_expects_after_every_tick(path: Path, shards: int) -> None:
    script = read_script(path)
    memory = MemoryTables(compile_views(script.views, script.tables), shards=shards)
    assert script.steps
    for number, step in enumerate(script.steps):
        apply_step(memory, script.tables, step)
        assert step.expected, f"tick {number} expects nothing"
        for view, expected in step.expected.items():
            shown = sorted(orjson.dumps(row) for row in shown_rows(memory, view))
            assert shown == sorted(orjson.dumps(row) for row in expected), (view, number)
