"""An exception that nobody foresaw is the error of one view, never of all."""

from __future__ import annotations

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views, problems
from tailrace.pipelines.compiler.expressions.calls import RULES
from tailrace.pipelines.engine.functions.scalar import FUNCTIONS
from tailrace.pipelines.errors import SqlTypeError, UnforeseenError, ViewError
from tailrace.testing.ticks import MemoryTables, table

T = table("t", "id INT, s STRING, n INT", ["id"])
VIEWS = [
    ViewDefinition("good", "SELECT id, n FROM t"),
    ViewDefinition("broken", "SELECT id, upper(s) AS u FROM t"),
    ViewDefinition("above", "SELECT id FROM broken"),
    ViewDefinition("wrong", "SELECT nosuch FROM t"),
]


def _raises(*given: object) -> object:
    raise IndexError("list index out of range")


def test_a_defect_in_compiling_one_view_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(RULES, "upper", _raises)
    found = problems(VIEWS, [T])
    assert set(found) == {"broken", "above", "wrong"}
    broken = found["broken"]
    assert isinstance(broken, UnforeseenError)
    assert broken.message == "IndexError: list index out of range"
    assert "line 1: SELECT id, upper(s) AS u FROM t" in broken.detail
    assert broken.hint
    with pytest.raises(UnforeseenError):
        compile_views(VIEWS[:2], [T])


@pytest.mark.parametrize("sql", ["SELECT id, upper(s) AS u FROM t",
                                 "SELECT id FROM t WHERE upper(s) = 'A'",
                                 "SELECT upper(s) AS u, count(*) AS c FROM t GROUP BY upper(s)"])  # fmt: skip
def test_a_defect_in_computing_a_view_is_an_error_of_views(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ViewError` is what puts one view aside; anything else would end the pipelines."""
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [T]))
    memory.upsert("t", {"id": 1, "s": "a", "n": 1})
    monkeypatch.setitem(FUNCTIONS, "upper", lambda kinds, kind: _raises)
    with pytest.raises(ViewError) as caught:
        memory.tick()
    assert "IndexError: list index out of range" in caught.value.message


def test_a_list_of_nothing_is_refused_and_not_computed() -> None:
    found = problems([ViewDefinition("v", "SELECT id FROM t WHERE n IN ()"), VIEWS[0]], [T])
    assert set(found) == {"v"}


@pytest.mark.parametrize(
    "call",
    [
        "percentile(d, 2)", "percentile(d, -0.5)", "percentile(d, NULL)", "percentile(d, 'x')",
        "percentile(d, array(0.1, 3))", "percentile_cont(1.5) WITHIN GROUP (ORDER BY d)",
        "percentile_disc(2) WITHIN GROUP (ORDER BY d)", "percentile_approx(d, 2)",
        "percentile_approx(d, NULL)", "percentile_approx(d, 0.5, 0)",
        "approx_count_distinct(d, NULL)", "lag(d, NULL) OVER (ORDER BY id)",
        "lead(d, 1.5) OVER (ORDER BY id)",
    ],
)  # fmt: skip
def test_a_share_that_is_none_is_refused_as_in_spark(call: str) -> None:
    known = table("t", "id BIGINT, d DOUBLE", ["id"])
    with pytest.raises(SqlTypeError):
        compile_views([ViewDefinition("v", f"SELECT {call} AS p FROM t")], [known])
