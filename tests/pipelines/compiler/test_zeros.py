"""0.0 and -0.0 are equal, and a list of values shows which is which."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
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


NESTED: dict[str, Callable[[float], object]] = {
    "collect_list(struct(x))": lambda x: {"x": x},
    "array_agg(array(x))": lambda x: [x],
    "collect_list(array(struct(x)))": lambda x: [{"x": x}],
}


def _view(sql: str, rows: list[float]) -> MemoryTables:
    """A view over rows with ids 0, 1, … of group 1, after a tick for each."""
    known = table("t", "id BIGINT, g INT, x DOUBLE", ["id"])
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))
    for id, x in enumerate(rows):
        memory.upsert("t", {"id": id, "g": 1, "x": x})
        memory.tick()
    return memory


@pytest.mark.parametrize("expression", NESTED)
@pytest.mark.parametrize("others", [0, 40], ids=["small group", "group with entries"])
def test_a_list_of_nested_values_tells_their_zeros_apart(expression: str, others: int) -> None:
    rows = [*map(float, range(1, others + 1)), 0.0, -0.0, math.nan, -0.0]
    memory = _view(f"SELECT g, {expression} AS xs FROM t GROUP BY g", rows)
    nest = NESTED[expression]
    shown = [-0.0, -0.0, 0.0, *rows[:others], math.nan]
    assert repr(memory.rows("v")[0]["xs"]) == repr([nest(x) for x in shown])
    memory.delete("t", {"id": others + 1})
    memory.tick()
    assert repr(memory.rows("v")[0]["xs"]) == repr([nest(x) for x in shown[1:]])
    memory.delete("t", {"id": others})
    memory.delete("t", {"id": others + 3})
    memory.tick()
    assert repr(memory.rows("v")[0]["xs"]) == repr([nest(x) for x in shown[3:]])


@pytest.mark.parametrize(
    "expression",
    [
        "min(x)", "max(x)", "first(x)", "any_value(x)", "min_by(x, g)", "max_by(x, g)", "median(x)",
        "percentile(x, 0.1)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)", "min(struct(x)).x",
        "max(array(x))[0]", "histogram_numeric(x, 3)[0].x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_a_zero_that_is_shown_is_one_that_is_there(
    expression: str, zeros: tuple[float, float]
) -> None:
    for gone in (0, 1):
        memory = _view(f"SELECT g, {expression} AS x FROM t GROUP BY g", list(zeros))
        memory.delete("t", {"id": gone})
        memory.tick()
        assert repr(memory.rows("v")[0]["x"]) == repr(zeros[1 - gone])


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT g, mode(x) AS a FROM t GROUP BY g", [0.0]),
        ("SELECT g, collect_set(x) AS a FROM t GROUP BY g", [[0.0, 1.5]]),
        ("SELECT g, mode(array(x)) AS a FROM t GROUP BY g", [[0.0]]),
        ("SELECT g, collect_set(array(x)) AS a FROM t GROUP BY g", [[[0.0], [1.5]]]),
        ("SELECT array(x) AS a, count(*) AS n FROM t GROUP BY array(x)", [[0.0], [1.5]]),
        ("SELECT DISTINCT struct(x) AS a FROM t", [{"x": 0.0}, {"x": 1.5}]),
        ("SELECT g, count(DISTINCT array(x)) AS a FROM t GROUP BY g", [2]),
        ("SELECT DISTINCT x.id AS a FROM t x JOIN t y ON array(x.x) = array(y.x) AND y.id = 0", [0, 2, 3]),
    ],
)  # fmt: skip
def test_zeros_are_one_value_where_values_are_compared(sql: str, shown: list[object]) -> None:
    memory = _view(sql, [-0.0, 1.5, 0.0, -0.0])
    assert sorted(repr(row["a"]) for row in memory.rows("v")) == sorted(map(repr, shown))


def test_one_nan_is_another_inside_of_a_row() -> None:
    sql = "SELECT array(CASE WHEN id = 0 THEN x - x ELSE -(x - x) END) AS xs FROM t"
    memory = _view(sql, [math.inf, math.inf])
    assert [repr(row["xs"]) for row in memory.rows("v")] == ["[nan]", "[nan]"]
    memory.delete("t", {"id": 0})
    memory.tick()
    assert [repr(row["xs"]) for row in memory.rows("v")] == ["[nan]"]


def test_an_expression_of_the_one_zero_is_not_taken_for_that_of_the_other() -> None:
    known = table("t", "id BIGINT, g INT", ["id"])
    sql = "SELECT g, max(CASE WHEN g > 0 THEN {} END) AS a, max(CASE WHEN g > 0 THEN {} END) AS b FROM t GROUP BY g"
    for zeros in (("0.0E0", "-0.0E0"), ("-0.0E0", "0.0E0")):
        memory = MemoryTables(compile_views([ViewDefinition("v", sql.format(*zeros))], [known]))
        memory.upsert("t", {"id": 1, "g": 1})
        memory.tick()
        (row,) = memory.rows("v")
        assert [repr(row["a"]), repr(row["b"])] == [str(float(zero)) for zero in zeros]
