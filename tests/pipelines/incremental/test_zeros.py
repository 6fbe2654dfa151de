"""0.0 and -0.0 are equal, and a list of values shows which is which."""

from __future__ import annotations

import math
import random

import pytest

from tailrace.pipelines.incremental.compile import ViewDefinition, compile_views
from tailrace.testing.ticks import MemoryTables, table

SQL = "SELECT g, collect_list(x) AS xs, count(DISTINCT x) AS n FROM t GROUP BY g"


def _shown(values: list[float]) -> list[str]:
    return [repr(value) for value in sorted(values, key=lambda v: (v, math.copysign(1, v)))]


@pytest.mark.parametrize("others", [0, 40], ids=["small group", "group with entries"])
def test_a_list_tells_the_two_zeros_apart_while_they_come_and_go(others: int) -> None:
    known = table("t", "id BIGINT, g INT, x DOUBLE", ["id"])
    memory = MemoryTables(compile_views([ViewDefinition("v", SQL)], [known]))
    rows: dict[int, float] = {}
    for id in range(1000, 1000 + others):
        rows[id] = float(id)
        memory.upsert("t", {"id": id, "g": 1, "x": rows[id]})
    chance = random.Random(7)
    for _ in range(30):
        for _ in range(3):
            id = chance.randrange(8)
            if id in rows and chance.random() < 0.5:
                del rows[id]
                memory.delete("t", {"id": id})
            else:
                rows[id] = chance.choice([0.0, -0.0, 1.5])
                memory.upsert("t", {"id": id, "g": 1, "x": rows[id]})
        memory.tick()
        found = memory.rows("v")
        assert bool(found) == bool(rows)
        for row in found:
            assert [repr(value) for value in row["xs"]] == _shown(list(rows.values()))
            assert row["n"] == len(set(rows.values()))
