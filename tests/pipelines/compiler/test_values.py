"""VALUES of any constants: what no column decides."""

from __future__ import annotations

import datetime

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.testing.ticks import MemoryTables, table

KNOWN = table("t", "id BIGINT", ["id"])


def rows(sql: str) -> list[dict[str, object]]:
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [KNOWN]))
    memory.tick()
    return memory.rows("v")


def test_values_may_be_computed() -> None:
    sql = """SELECT * FROM VALUES
        (1 + 1, array(1.0F, 2.0F), named_struct('a', 1, 'b', array('x')), upper('a') = 'A'),
        (3, NULL, NULL, true) AS v(n, xs, s, b)"""
    assert rows(sql) == [
        {"n": 2, "xs": [1.0, 2.0], "s": {"a": 1, "b": ["x"]}, "b": True},
        {"n": 3, "xs": None, "s": None, "b": True},
    ]


def test_values_of_other_types_keep_theirs() -> None:
    sql = """SELECT * FROM VALUES (DATE '2026-01-31' + INTERVAL 1 MONTH, map('k', 2), unhex('00'),
        CAST('1.50' AS DECIMAL(5,2)) * 2) AS v(d, m, y, c)"""
    (row,) = rows(sql)
    assert row["d"] == datetime.date(2026, 2, 28)
    assert dict(row["m"]) == {"k": 2}  # type: ignore[call-overload]
    assert (row["y"], str(row["c"])) == (b"\0", "3.00")


def test_aggregates_read_them() -> None:
    sql = "SELECT vector_sum(x) AS s FROM VALUES (array(1.0F, 2.0F)), (array(3.0F, 4.0F)) AS v(x)"
    assert rows(sql) == [{"s": [4.0, 6.0]}]


@pytest.mark.parametrize("value", ["now()", "1 / 0"])
def test_what_is_no_constant_is_refused(value: str) -> None:
    with pytest.raises(NotIncrementalError):
        rows(f"SELECT * FROM VALUES ({value}) AS v(x)")
