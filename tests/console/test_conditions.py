"""Conditions on records, judged by DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.console.conditions import compile_condition
from tailrace.errors import UsageError

numbers = st.integers(-3, 3).map(str)
texts = st.sampled_from(["'a'", "'b'", "'ab'"])
comparisons = st.one_of(
    st.tuples(
        st.sampled_from(["n", "m"]), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numbers
    ).map(" ".join),
    st.tuples(st.sampled_from(["n", "m"]), st.sampled_from(["=", "<", ">"]), st.just("m + 1")).map(
        " ".join
    ),
    st.tuples(st.just("t"), st.sampled_from(["=", "<", ">"]), texts).map(" ".join),
    st.sampled_from(
        [
            "n IS NULL",
            "n IS NOT NULL",
            "t LIKE 'a%'",
            "t NOT LIKE '_'",
            "n IN (1, 2, NULL)",
            "n NOT IN (1, 2)",
            "n BETWEEN -1 AND m",
        ]
    ),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(
            lambda p: f"({p[0]}{p[1]}{p[2]})"
        ),
        inner.map(lambda c: f"NOT ({c})"),
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-3, 3),
        "m": st.none() | st.integers(-3, 3),
        "t": st.none() | st.sampled_from(["a", "b", "ab", ""]),
    }
)


@given(conditions, st.lists(rows, min_size=1, max_size=8))
def test_a_condition_chooses_what_duckdb_chooses(condition: str, given_rows: list[Any]) -> None:
    chosen = compile_condition(condition)
    mine = [index for index, row in enumerate(given_rows) if chosen(row)]
    database = duckdb.connect()
    database.execute("CREATE TABLE r (i INTEGER, n INTEGER, m INTEGER, t VARCHAR)")
    database.executemany(
        "INSERT INTO r VALUES (?, ?, ?, ?)",
        [[index, row["n"], row["m"], row["t"]] for index, row in enumerate(given_rows)],
    )
    theirs = database.execute(f"SELECT i FROM r WHERE {condition} ORDER BY i").fetchall()
    assert mine == [index for (index,) in theirs]


def test_fields_may_be_nested_and_of_any_kind() -> None:
    chosen = compile_condition("address.city = 'Delft' AND amount > 10")
    assert chosen({"address": {"city": "Delft"}, "amount": "10.50"})  # decimals are strings
    assert not chosen({"address": "nowhere", "amount": 11})
    assert not chosen({"amount": {"odd": []}})
    assert not compile_condition("a < 1")({"a": "not a number"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "status =",
        "count(*) > 1",
        "x IN (SELECT 1)",
        "f(x)",
        "1; DROP TABLE x",
        "(" * 500 + "a" + ")" * 500,
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        compile_condition(text)
