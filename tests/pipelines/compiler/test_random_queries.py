"""Random queries over random changes: a view equals its recompute after every tick."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.durable import DurableTables
from pipelines.harness import TABLES, Shop, check_view
from tailrace.pipelines.state.cache import close_opened
from tailrace.testing.recompute import Recompute

COLUMNS = {
    "a": {"id": "n", "k": "n", "s": "s", "d": "n", "b": "b"},
    "b": {"id": "n", "k": "n", "s": "s", "d": "n", "n": "n"},
    "c": {"k": "n", "s": "s", "n": "n"},
}
Columns = dict[str, str]


@st.composite
def relations(draw: st.DrawFn, depth: int, prefix: str) -> tuple[str, Columns]:
    """A FROM clause and the columns it offers, by qualified name."""
    kind = draw(st.sampled_from(["table", "table", "join", "query"])) if depth else "table"
    if kind == "table":
        name = draw(st.sampled_from(sorted(COLUMNS)))
        alias = f"{prefix}t"
        return f"shop.{name} {alias}", {f"{alias}.{c}": t for c, t in COLUMNS[name].items()}
    if kind == "query":
        sql, columns = draw(queries(depth - 1, f"{prefix}q"))
        alias = f"{prefix}s"
        return f"({sql}) {alias}", {f"{alias}.{c}": t for c, t in columns.items()}
    left, left_columns = draw(relations(depth - 1, f"{prefix}l"))
    right, right_columns = draw(relations(0, f"{prefix}r"))
    mode = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]))
    if draw(st.integers(0, 4)) == 0:
        condition = draw(conditions(draw(st.sampled_from([left_columns, right_columns]))))
        return f"{left} {mode} {right} ON {condition}", {**left_columns, **right_columns}
    # A constant in place of a column would tie nothing to nothing, and be refused.
    shared = [k for k in "ns" if k in left_columns.values() and k in right_columns.values()]
    condition = f"{draw(_one(left_columns, shared[0]))} = {draw(_one(right_columns, shared[0]))}"
    if mode != "FULL JOIN" and draw(st.booleans()):
        condition += f" AND {draw(conditions({**left_columns, **right_columns}))}"
    return f"{left} {mode} {right} ON {condition}", {**left_columns, **right_columns}


def _one(columns: Columns, kind: str) -> st.SearchStrategy[str]:
    """A column of a type, or a constant where there is none."""
    found = [name for name, other in columns.items() if other == kind]
    return st.sampled_from(found or [{"n": "1", "s": "'x'", "b": "TRUE"}[kind]])


@st.composite
def numbers(draw: st.DrawFn, columns: Columns) -> str:
    column = draw(_one(columns, "n"))
    return draw(
        st.sampled_from(
            [column, f"{column} + 1", f"-{column}", f"coalesce({column}, 0)", f"abs({column})",
             f"CASE WHEN {column} > 1 THEN {column} ELSE 0 END"]
        )
    )  # fmt: skip


@st.composite
def conditions(draw: st.DrawFn, columns: Columns, subqueries: bool = False) -> str:
    number, text = draw(numbers(columns)), draw(_one(columns, "s"))
    simple = [
        f"{number} > {draw(st.integers(-2, 4))}", f"{number} IS NULL", f"{text} = 'x'",
        f"{text} IN ('x', 'zz')", f"NOT {number} = 1", f"{text} LIKE 'z%' OR {number} < 2",
    ]  # fmt: skip
    if subqueries:
        simple += [
            f"{number} IN (SELECT k FROM shop.b)",
            f"{number} NOT IN (SELECT n FROM shop.c WHERE n IS NOT NULL)",
            f"EXISTS (SELECT 1 FROM shop.c z WHERE z.k = {number})",
            f"NOT EXISTS (SELECT 1 FROM shop.b z WHERE z.k = {number} AND z.n > 1)",
            f"{number} > (SELECT avg(n) FROM shop.c)",
            f"{number} <= (SELECT count(*) FROM shop.b z WHERE z.s = {text})",
        ]
    return f"({draw(st.sampled_from(simple))})"


@st.composite
def queries(draw: st.DrawFn, depth: int, prefix: str = "") -> tuple[str, Columns]:
    """A query and its columns (names without a qualifier)."""
    kind = draw(st.sampled_from(["plain", "group", "distinct", "set", "window"]))
    if kind == "set":
        word = draw(st.sampled_from(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"]))
        sides = []
        for side in ("x", "y"):
            source, columns = draw(relations(0, f"{prefix}{side}"))
            sides.append(
                f"SELECT {draw(_one(columns, 'n'))} AS o0, {draw(_one(columns, 's'))} AS o1 FROM {source}"
            )
        return f"{sides[0]} {word} {sides[1]}", {"o0": "n", "o1": "s"}
    source, columns = draw(relations(depth, prefix))
    where = ""
    if draw(st.booleans()):
        where = f" WHERE {draw(conditions(columns, subqueries=True))}"
    number, text = draw(numbers(columns)), draw(_one(columns, "s"))
    if kind == "group":
        key = draw(st.sampled_from([text, _plain(draw, columns)]))
        measures = draw(
            st.lists(
                st.sampled_from(
                    ["count(*)", f"sum({number})", f"min({number})", f"max({text})",
                     f"count(DISTINCT {number})", f"avg(CAST({number} AS DOUBLE))",
                     f"count(*) FILTER (WHERE {text} = 'x')"]
                ),
                min_size=1, max_size=3, unique=True,
            )
        )  # fmt: skip
        listed = ", ".join(f"{m} AS m{i}" for i, m in enumerate(measures))
        having = draw(st.sampled_from(["", " HAVING count(*) > 1"]))
        kinds = {f"m{i}": "s" if m.startswith("max") else "n" for i, m in enumerate(measures)}
        sql = f"SELECT {key} AS g, {listed} FROM {source}{where} GROUP BY {key}{having}"
        return sql, {"g": "s" if key == text else "n", **kinds}
    if kind == "window":
        call = draw(
            st.sampled_from(
                [f"rank() OVER (PARTITION BY {text} ORDER BY {number})",
                 f"sum({number}) OVER (PARTITION BY {text})", f"count(*) OVER (ORDER BY {number})"]
            )
        )  # fmt: skip
        return f"SELECT {number} AS o0, {text} AS o1, {call} AS o2 FROM {source}{where}", {
            "o0": "n", "o1": "s", "o2": "n",
        }  # fmt: skip
    word = "DISTINCT " if kind == "distinct" else ""
    return f"SELECT {word}{number} AS o0, {text} AS o1 FROM {source}{where}", {"o0": "n", "o1": "s"}


def _plain(draw: st.DrawFn, columns: Columns) -> str:
    return draw(_one({n: t for n, t in columns.items() if t == "n"} or columns, "n"))


@given(queries(1), st.integers(0, 1000), st.sampled_from([1, 3]))
def test_random_view_equals_its_recompute(
    query: tuple[str, Columns], seed: int, shards: int
) -> None:
    check_view(query[0], seed, ticks=4, shards=shards)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@settings(max_examples=1000)
@given(queries(2), st.integers(0, 100_000), st.sampled_from([1, 2, 5]))
def test_deep_random_view_equals_its_recompute(
    query: tuple[str, Columns], seed: int, shards: int
) -> None:
    check_view(query[0], seed, ticks=8, shards=shards)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@settings(max_examples=200)
@given(queries(1), st.integers(0, 100_000))
def test_random_view_survives_lost_caches_and_thrown_away_attempts(
    query: tuple[str, Columns], seed: int
) -> None:
    check_durable(query[0], seed, ticks=6)


@pytest.mark.parametrize("seed", range(3))
def test_a_view_survives_lost_caches_and_thrown_away_attempts(seed: int) -> None:
    check_durable(
        "SELECT a.s, count(*) AS c, sum(b.n) AS n FROM shop.a LEFT JOIN shop.b ON a.k = b.k"
        " WHERE a.k IN (SELECT k FROM shop.c) GROUP BY a.s",
        seed,
        ticks=4,
    )


def check_durable(sql: str, seed: int, ticks: int) -> None:
    """Random ticks on files and caches; exact after each, replays say the same."""
    shop = Shop(sql, seed)
    with tempfile.TemporaryDirectory() as directory, Recompute(TABLES) as recompute:
        shop.memory = DurableTables(shop.memory.graph, Path(directory), seed)
        for _ in range(ticks):
            shop.change()
            shop.memory.tick()
            shop.check(recompute)
    close_opened()  # each maps much address space, and hundreds of examples come
