"""An aggregate's FILTER keeps its arguments from rows that they do not fit, as in Spark."""

from __future__ import annotations

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.ticks import MemoryTables, table

KNOWN = table("t", "id BIGINT, n INT, s STRING", ["id"])
CASES = {
    "sum(1 / n) FILTER (WHERE n <> 0)": 1.5,
    "count(CAST(s AS INT)) FILTER (WHERE s <> 'x')": 2,
    "sum(DISTINCT CAST(s AS INT)) FILTER (WHERE s <> 'x')": 3,
    "max(CAST(s AS INT)) FILTER (WHERE s <> 'x')": 2,
    "collect_list(CAST(s AS INT)) FILTER (WHERE s <> 'x')": [1, 2],
    "max_by(s, 1 / n) FILTER (WHERE n <> 0)": "1",
    "corr(1 / n, CAST(s AS INT)) FILTER (WHERE n <> 0)": -1.0,
    "theta_sketch_estimate(theta_sketch_agg(CAST(s AS INT)) FILTER (WHERE n > 0))": 2,
    "tuple_sketch_summary_double(tuple_sketch_agg_double(s, CAST(s AS INT))"
    " FILTER (WHERE s <> 'x'))": 3.0,
    "percentile(CAST(s AS INT), 0.5) FILTER (WHERE s <> 'x')": 1.5,
}


@pytest.mark.parametrize(("call", "expected"), CASES.items())
def test_arguments_are_computed_for_rows_that_pass(call: str, expected: object) -> None:
    sql = f"SELECT {call} AS x FROM t"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [KNOWN]))
    for number, n, s in ((1, 1, "1"), (2, 2, "2"), (3, 0, "x")):
        memory.upsert("t", {"id": number, "n": n, "s": s})
    memory.tick()
    (row,) = memory.rows("v")
    assert row["x"] == (pytest.approx(expected) if isinstance(expected, float) else expected)
    memory.delete("t", {"id": 3})
    memory.tick()
    assert memory.rows("v") == [row]


def test_a_window_keeps_to_its_filter_too() -> None:
    sql = "SELECT id, sum(1 / n) FILTER (WHERE n <> 0) OVER (ORDER BY id) AS x FROM t"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [KNOWN]))
    for number, n in ((1, 1), (2, 0), (3, 2)):
        memory.upsert("t", {"id": number, "n": n, "s": ""})
    memory.tick()
    assert [row["x"] for row in memory.rows("v")] == [1.0, 1.0, 1.5]
