"""An operator's name says all it computes: what differs has two names, or one view would be
computed by the other's operator."""

from __future__ import annotations

import datetime

import pytest

from tailrace.pipelines.incremental.compile import ViewDefinition, compile_views
from tailrace.pipelines.incremental.graph import TableInput
from tailrace.testing.ticks import MemoryTables, Row, table

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def beside(one: str, two: str, tables: list[TableInput], rows: dict[str, Row]) -> list[list[Row]]:
    """What two views of one project show, after it is found that each is what it is alone."""

    def shown(**views: str) -> list[list[Row]]:
        definitions = [ViewDefinition(name, sql) for name, sql in views.items()]
        memory = MemoryTables(compile_views(definitions, tables))
        for topic, row in rows.items():
            memory.upsert(topic, row)
        memory.tick()
        return [memory.rows(name) for name in views]

    both = shown(one=one, two=two)
    assert both == shown(one=one) + shown(two=two)
    assert both == shown(two=two, one=one)[::-1]
    return both


@pytest.mark.parametrize("shown", ["", ", sum(l.n) AS n"])
def test_a_column_is_not_taken_for_one_renamed_to_its_name(shown: str) -> None:
    tables = [
        table("shop.public.l", "id BIGINT, k INT, m INT, n INT", ["id"]),
        table("shop.public.r", "id BIGINT, k INT, k_2 INT", ["id"]),
    ]
    one, two = (
        f"SELECT l.k AS a, r.{name} AS b{shown} FROM shop.l JOIN shop.r ON l.k = r.k AND l.m = r.k_2"
        + (f" GROUP BY l.k, r.{name}" if shown else "")
        for name in ("k", "k_2")
    )
    rows = {
        "shop.public.l": {"id": 1, "k": 1, "m": 2, "n": 5},
        "shop.public.r": {"id": 1, "k": 1, "k_2": 2},
    }
    assert [row["b"] for rows in beside(one, two, tables, rows) for row in rows] == [1, 2]


@pytest.mark.parametrize(
    ("one", "two"), [("o.c", "r.c"), ("o.c, r.c AS d", "o.c, r.c_2 AS d"), ("r.c", "r.c_2 AS c")]
)
def test_versions_show_a_column_of_one_or_the_other_side(one: str, two: str) -> None:
    tables = [
        table("s.public.orders", "id BIGINT, at TIMESTAMP, c STRING", ["id"]),
        table("s.public.rates", "c STRING, c_2 STRING", ["c"], "history"),
    ]
    on = "FROM s.orders o LEFT JOIN s.rates FOR SYSTEM_TIME AS OF o.at r ON r.c = o.c"
    for rates in ("x", "y"):
        rows: dict[str, Row] = {
            "s.public.rates": {
                "c": rates, "c_2": "z", "__versioned_at": START, "__copied": False,
            },
            "s.public.orders": {"id": 1, "at": START, "c": "x"},
        }  # fmt: skip
        beside(f"SELECT {one} {on}", f"SELECT {two} {on}", tables, rows)
