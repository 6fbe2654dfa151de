"""A declared key is judged with what a table's key tells about its other columns."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.ticks import MemoryTables, table

MEMBERS = table("l.members", "id BIGINT, name STRING, branch STRING", ["id"])
LOANS = table("l.loans", "id BIGINT, member_id BIGINT, at DATE", ["id"])
JOIN = "FROM l.members m LEFT JOIN l.loans o ON o.member_id = m.id"


def proven(sql: str, key: tuple[str, ...]) -> bool:
    view = ViewDefinition("v", sql, key)
    return compile_views([view], [MEMBERS, LOANS]).views["v"].proven


@pytest.mark.parametrize(
    ("sql", "key", "unique"),
    [
        (f"SELECT m.id, m.name, count(o.id) AS n {JOIN} GROUP BY m.id, m.name", ("id",), True),
        (f"SELECT m.id, m.name, min(o.at) AS at {JOIN} GROUP BY m.id, m.name", ("name",), False),
        (f"SELECT m.id AS member, o.id AS loan, m.name {JOIN}", ("member",), False),
        (f"SELECT o.id AS loan, m.name {JOIN.replace('LEFT ', '')}", ("loan",), True),
        ("SELECT id, upper(name) AS name FROM l.members GROUP BY id, upper(name)", ("id",), False),
        (
            f"SELECT id, branch, max(n) AS n FROM (SELECT m.id, m.branch, count(*) AS n {JOIN} GROUP BY m.id, m.branch) GROUP BY id, branch",
            ("id",),
            True,
        ),
        ("SELECT DISTINCT id, name FROM l.members", ("id",), True),
        ("SELECT DISTINCT name, branch FROM l.members", ("name",), False),
    ],
)
def test_a_key_of_a_view_is_proven_or_not(sql: str, key: tuple[str, ...], unique: bool) -> None:
    assert proven(sql, key) is unique


COLUMNS = ["m.id", "m.name", "m.branch", "o.id", "o.member_id"]


@given(
    grouped=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True),
    members=st.lists(st.tuples(st.integers(1, 4), st.sampled_from("ab"), st.sampled_from("xy"))),
    loans=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5))),
    data=st.data(),
)
def test_what_is_proven_is_unique_in_any_tables(
    grouped: list[str],
    members: list[tuple[int, str, str]],
    loans: list[tuple[int, int]],
    data: st.DataObject,
) -> None:
    names = {column: column.replace(".", "_") for column in grouped}
    shown = ", ".join(f"{column} AS {name}" for column, name in names.items())
    key = tuple(data.draw(st.lists(st.sampled_from(sorted(names.values())), min_size=1, unique=True)))  # fmt: skip
    sql = f"SELECT {shown}, count(*) AS n {JOIN} GROUP BY {', '.join(grouped)}"
    if not proven(sql, key):
        return
    bag = ViewDefinition("v", sql, tuple(names.values()))  # the same rows under their whole key
    memory = MemoryTables(compile_views([bag], [MEMBERS, LOANS]))
    for id, name, branch in members:
        memory.upsert("l.members", {"id": id, "name": name, "branch": branch})
    for id, member in loans:
        day = datetime(2026, 1, 1, tzinfo=UTC).date()
        memory.upsert("l.loans", {"id": id, "member_id": member, "at": day})
    memory.tick()
    counted = Counter(tuple(row[name] for name in key) for row in memory.rows("v"))
    assert all(count == 1 for count in counted.values()), (sql, key)
