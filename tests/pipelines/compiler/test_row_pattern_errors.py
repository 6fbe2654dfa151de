"""Errors of MATCH_RECOGNIZE point into the clause; those of rows name the key and the row."""

from __future__ import annotations

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.patterns import matcher
from tailrace.pipelines.errors import EvaluationError, ViewError
from tailrace.testing.ticks import MemoryTables, table

TABLES = [
    table("s.public.t", "id BIGINT, k INT, x INT, at TIMESTAMP_NTZ", ["id"]),
    table("s.public.u", "k INT, y INT", ["k"]),
]


def clause(
    *, measures: str = "A.x AS a", rows: str = "", pattern: str = "A B", tail: str = ""
) -> str:
    return (
        f"SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY id MEASURES {measures} {rows} "
        f"PATTERN ({pattern}) {tail}) AS m"
    )


def window(
    *, asked: str = "a OVER w", measures: str = "A.x AS a", skip: str = "", pattern: str = "A B",
    frame: str = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", tail: str = "", more: str = "",
) -> str:  # fmt: skip
    return (
        f"SELECT {asked} FROM s.t {more} WINDOW w AS (ORDER BY id MEASURES {measures} "
        f"{frame} {skip} PATTERN ({pattern}) {tail})"
    )


def said(sql: str) -> tuple[str, str]:
    """The message of an error, and the text at its mark."""
    with pytest.raises(ViewError) as caught:
        compile_views([ViewDefinition("v", sql)], TABLES)
    error = caught.value
    line, _, mark = error.detail.rpartition("\n")
    shown = line.splitlines()[-1]
    begin, end = mark.index("^"), len(mark.rstrip())
    return f"{error.message} {error.detail}", shown[begin:end]


@pytest.mark.parametrize(
    ("sql", "message", "marked"),
    [
        (clause(tail="DEFINE Z AS x > 1"), "no variable 'Z'", "Z"),
        (clause(measures="Z.x AS a"), "no variable 'Z'", "Z"),
        (clause(tail="SUBSET U = (A, Q)"), "no variable 'Q'", "Q"),
        (clause(rows="AFTER MATCH SKIP TO Q"), "no variable 'Q'", "Q"),
        (clause(measures="CLASSIFIER(Q) AS q"), "no variable 'Q'", "Q"),
        (clause(measures="count(Q.*) AS q"), "no variable 'Q'", "Q"),
        (clause(tail="SUBSET A = (B)"), "the name is taken", "A"),
        (clause(tail="DEFINE A AS x > 1, A AS x > 2"), "DEFINE A twice", "A"),
        (clause(tail="SUBSET U = (A) DEFINE U AS x > 1"), "a subset has no condition", "U"),
        (clause(measures="A.q AS a"), "column 'q' does not exist", "q"),
        (clause(pattern="A{3,2}"), "at least 3 turns and at most 2", "{"),
        (clause(pattern="A **"), "a second quantifier", "*"),
        (clause(pattern="A | "), "nothing stands here", ")"),
        (clause(pattern="(A B", tail="DEFINE A AS x > 1"), "PATTERN ( is never closed", "("),
        (clause(pattern="A B))"), "not expected here", ")"),
        (clause(pattern="A{20000}"), "more than 10,000 instructions", "A{20000}"),
        (clause(pattern="PERMUTE(A,B,C,D,E,F,G,H)"), "at most 7", "PERMUTE"),
        (clause(measures="sum(A.x + B.x) AS a"), "A and B", "sum(A.x + B.x"),
        (clause(measures="LAST(A.x + B.x) AS a"), "A and B", "A.x + B.x"),
        (clause(measures="LAST(A.x, B.x) AS a"), "an offset is a whole number", "B.x"),
        (clause(measures="sum(count(A.x)) AS a"), "inside an aggregate", "count(A.x"),
        (clause(measures="PREV(PREV(x)) AS a"), "inside an aggregate or another", "PREV(x"),
        (clause(measures="RUNNING PREV(x) AS a"), "stands before FIRST, LAST", "RUNNING PREV(x"),
        (clause(measures="A.x AS a, B.x AS a"), "two measures are named", "B.x AS a"),
        (clause(measures="row_number() OVER () AS a"), "window function", "row_number"),
        (clause(tail="DEFINE A AS FINAL LAST(x) > 1"), "FINAL in DEFINE", "FINAL LAST(x"),
        (clause(tail="DEFINE A AS now() > at"), "the present time", "A AS now() > at"),
        (clause(tail="WITHIN INTERVAL '1' MINUTE"), "needs a TIMESTAMP", "'1'"),
        (clause(rows="INITIAL"), "belongs to a pattern in a WINDOW", "INITIAL"),
        (window(tail="DEFINE Z AS x > 1"), "no variable 'Z'", "Z"),
        (window(measures="Z.x AS a"), "no variable 'Z'", "Z"),
        (window(asked="b OVER w"), "the window has no measure 'b'", "b"),
        (window(asked="a OVER (ORDER BY id)"), "a window without a PATTERN", "a OVER (ORDER BY id"),
        (window(measures="MATCH_NUMBER() AS a"), "MATCH_NUMBER() in a window", "MATCH_NUMBER() AS a"),
        (window(pattern="^ A B"), "^ or $ in a window", "^ A B"),
        (window(pattern="A {- B -}"), "{- -} in a window", "A {- B -}"),
        (window(pattern="A{3,2}"), "at least 3 turns and at most 2", "{"),
        (window(frame="ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"), "the frame of a window", "ROWS"),
        (window(frame="RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING"), "the frame of a window", "RANGE"),
        (window(skip="ALL ROWS PER MATCH"), "no ROW PER MATCH", "ALL"),
        (window(skip="AFTER MATCH SKIP TO Q"), "no variable 'Q'", "Q"),
        (window(asked="k, count(*) AS n, a OVER w", more="GROUP BY k"), "with GROUP BY", "MEASURES"),
        (
            clause(rows="ALL ROWS PER MATCH WITH UNMATCHED ROWS", pattern="A {- B -}"),
            "WITH UNMATCHED ROWS",
            "A {- B -}",
        ),
    ],
)  # fmt: skip
def test_an_error_points_into_the_clause(sql: str, message: str, marked: str) -> None:
    found, shown = said(sql)
    assert message in found
    assert marked.startswith(shown) or shown.startswith(marked)


@pytest.mark.parametrize(
    "sql",
    [
        clause(pattern='"a b" `c`', measures="`c`.x AS x", tail="DEFINE `c` AS `c`.x > 1"),
        clause(pattern="a /* not (closed */ B", measures="A.x AS x, CLASSIFIER(b) AS y"),
        clause(pattern="PERMUTE(A, B, C, D, E, F, G)"),
        "SELECT first(x) AS running, last(x) AS final FROM s.t",
        "SELECT * FROM (s.t MATCH_RECOGNIZE (ORDER BY id MEASURES A.x AS a PATTERN (A)) AS m "
        "JOIN s.u ON m.a = u.k)",
        "SELECT m.a, u.y FROM s.u LEFT JOIN s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id "
        "MEASURES A.x AS a PATTERN (A)) AS m ON m.k = u.k WHERE u.k = 3",
        "WITH q AS (SELECT * FROM s.t) SELECT a, count(*) AS n FROM q MATCH_RECOGNIZE (ORDER BY id "
        "MEASURES A.x AS a PATTERN (A)) GROUP BY a",
        "SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY id MEASURES A.x AS a PATTERN (A)) m "
        "MATCH_RECOGNIZE (ORDER BY a MEASURES B.a AS b PATTERN (B)) n",
        "SELECT k, (SELECT max(a) FROM s.t MATCH_RECOGNIZE (ORDER BY id MEASURES A.x AS a "
        "PATTERN (A)) m) AS z FROM s.u",
        window(asked="id, a OVER w AS a", skip="AFTER MATCH SKIP TO NEXT ROW SEEK"),
        window(
            asked="id, row_number() OVER w AS n, sum(t.x) OVER w AS s, nth_value(x, 2) OVER w AS y"
        ),
        window(asked="id, upper(cast(a OVER w AS STRING)) AS u", more="WHERE x > 1"),
        window(
            asked="t.id, u.y, a OVER w AS a", more="JOIN s.u ON u.k = t.id", measures="A.y AS a"
        ),
        "SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING "
        "PATTERN (A B*) DEFINE B AS x > 1) AS n FROM s.t QUALIFY n > 2",
        clause(tail="DEFINE B AS x > (SELECT max(y) FROM s.u) AND x IN (SELECT y FROM s.u)"),
    ],
)
def test_what_a_view_may_say(sql: str) -> None:
    assert compile_views([ViewDefinition("v", sql)], TABLES).views


def failing(sql: str, rows: list[int]) -> EvaluationError:
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES))
    for number, x in enumerate(rows):
        memory.upsert("s.public.t", {"id": number, "k": 7, "x": x})
    with pytest.raises(EvaluationError) as caught:
        memory.tick()
    return caught.value


def test_a_skip_that_cannot_be_done_names_the_row() -> None:
    error = failing(
        "SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id MEASURES A.x AS a "
        "AFTER MATCH SKIP TO C PATTERN (A B | C) DEFINE B AS x > 1) AS m",
        [0, 2],
    )
    assert "no row of the match is C" in error.message
    assert "k = 7, id = 0" in error.detail


def test_an_overflow_in_a_condition_names_the_row() -> None:
    error = failing(
        "SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id MEASURES A.x AS a "
        "PATTERN (A B) DEFINE B AS B.x * 2 > 0) AS m",
        [1, 2_000_000_000],
    )
    assert "k = 7, id = 0" in error.detail


def test_a_condition_fails_only_for_rows_that_are_asked_about() -> None:
    sql = (
        "SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id MEASURES A.x AS a "
        "PATTERN (A B) DEFINE A AS x = 1, B AS 10 div B.x > 1) AS m"
    )
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES))
    for number, x in enumerate([0, 0, 1, 2]):
        memory.upsert("s.public.t", {"id": number, "k": 7, "x": x})
    memory.tick()
    assert memory.rows("v") == [{"k": 7, "a": 1}]


def test_an_attempt_of_too_many_steps_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "MOST_STEPS", 10_000)
    # The threads differ in which rows were A: 2 to the power of the rows.
    error = failing(
        "SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id MEASURES count(*) AS n "
        "PATTERN ((A | B)* C) DEFINE C AS x = 5 AND collect_list(A.id)[0] = -1) AS m",
        [0] * 40,
    )
    assert "10,000 steps" in error.message
    assert "WITHIN" in error.hint


@pytest.mark.parametrize(
    ("pattern", "define"),
    [("(A*)* B", "B AS x < FIRST(A.x)"), ("(A | A B)+ C", "B AS x >= 0, C AS x < FIRST(A.x)")],
)
def test_many_long_attempts_end_in_an_error(
    pattern: str, define: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them takes too many steps; all of them together do, row after row."""
    monkeypatch.setattr(matcher, "MOST_STEPS", 5_000)
    monkeypatch.setattr(matcher, "STEPS_PER_ROW", 20)
    error = failing(
        "SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id MEASURES count(*) AS n "
        f"PATTERN ({pattern}) DEFINE A AS x >= FIRST(A.x), {define}) AS m",
        [0] * 400,
    )
    assert "20 steps per row" in error.message
    assert "k = 7" in error.detail
