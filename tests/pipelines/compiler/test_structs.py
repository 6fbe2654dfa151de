"""Structs in views: names, order, and the way through JSON into Arrow."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from pipelines.harness import TABLES
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.errors import SqlNameError, SqlTypeError
from tailrace.pipelines.values.columns import DELETED
from tailrace.pipelines.values.keys import encode_part
from tailrace.pipelines.values.rows import physical, to_array
from tailrace.pipelines.values.types import ddl
from tailrace.records.rows import read_rows, row_of
from tailrace.testing.ticks import run_ticks, table

KIND = pa.struct(
    [("a", pa.decimal128(20, 2)), ("b", pa.timestamp("us", "UTC")), ("c", pa.date32()),
     ("d", pa.list_(pa.string())), ("e", pa.struct([("f", pa.float64())]))]
)  # fmt: skip
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
VALUES = [
    {"a": Decimal("-1.50"), "b": NOON, "c": datetime.date(2026, 1, 1), "d": ["x"], "e": {"f": 1.0}},
    {"a": Decimal("9.50"), "b": NOON, "c": None, "d": None, "e": None},
    {"a": Decimal("10.25"), "b": None, "c": datetime.date(1969, 1, 1), "d": [], "e": {"f": None}},
]


def test_a_list_of_structs_comes_back_from_the_changelog_as_it_went_in() -> None:
    graph = compile_views([ViewDefinition("v", "SELECT id, k FROM shop.a")], TABLES)
    kind = pa.list_(KIND)
    shown = pa.table(
        {"id": [1, 2], "l": pa.array([VALUES, []], kind), DELETED: pa.array([False, False])}
    )
    plan = dataclasses.replace(graph.views["v"], columns=(("id", "BIGINT"), ("l", ddl(kind))))
    values = [value for _, value in record_pairs(plan, shown)]
    assert orjson.loads(values[0] or b"")["row"]["l"][1]["a"] == "9.50"
    read, refused = read_rows([row_of(value) for value in values if value], plan.columns)
    assert not refused
    assert read.column("l").to_pylist() == [VALUES, []]


def test_structs_are_ordered_field_by_field() -> None:
    array = pa.array([VALUES[2], VALUES[0], VALUES[1], None], KIND)
    keys = [encode_part(value, KIND) for value in physical(array)]
    assert sorted(range(4), key=keys.__getitem__) == [3, 1, 2, 0]
    assert to_array(physical(array), KIND).equals(array)


def test_arrays_are_ordered_element_by_element() -> None:
    kind = pa.list_(pa.decimal128(20, 2))
    listed = [None, [], [None], [Decimal("-1.00")], [Decimal("2.00")], [Decimal("2.00"), None],
              [Decimal("256.00")], [Decimal("70000.00"), Decimal("1.00")]]  # fmt: skip
    array = pa.array(listed, kind)
    keys = [encode_part(value, kind) for value in physical(array)]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("nested", ["f", "struct(f)", "array(f)", "array(struct(k, f))"])
@pytest.mark.parametrize("tail", ["GROUP BY {}", "DISTINCT", "EXCEPT"])
def test_a_nested_zero_is_one_key_whatever_its_sign(nested: str, tail: str) -> None:
    sql = {
        "DISTINCT": f"SELECT DISTINCT {nested} x FROM shop.a",
        "EXCEPT": f"SELECT {nested} x FROM shop.a EXCEPT SELECT {nested} FROM shop.a WHERE id > 9",
    }.get(tail, f"SELECT {nested} x FROM shop.a GROUP BY {nested}")
    changes = [
        [("upsert", "shop.public.a", {"id": 1, "k": 1, "f": 0.0})],
        [("upsert", "shop.public.a", {"id": 2, "k": 1, "f": -0.0})],
        [("delete", "shop.public.a", {"id": 1})],
        [("delete", "shop.public.a", {"id": 2})],
    ]
    seen = run_ticks(sql, TABLES, changes)
    assert [len(after["v"]) for after in seen] == [1, 1, 1, 0]
    assert "-0.0" not in str(seen)


@pytest.mark.parametrize("sql", ["struct(id, k AS ID)", "named_struct('a', id, 'A', k)"])
def test_two_fields_of_one_name_are_refused(sql: str) -> None:
    with pytest.raises(SqlTypeError, match="two fields of one name"):
        compile_views([ViewDefinition("v", f"SELECT id, {sql} x FROM shop.a")], TABLES)


NESTED = [
    table("shop.public.l", "id BIGINT, st STRUCT<x: INT, y: STRING>", ["id"]),
    table("shop.public.r", "id BIGINT, st STRUCT<x: INT, y: STRING>", ["id"]),
]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT l.id, r.st.x v FROM shop.l l JOIN shop.r r ON l.st.x = r.id", [(1, 7)]),
        (
            "SELECT id, st.x v FROM shop.l l WHERE EXISTS"
            " (SELECT 1 FROM shop.r r WHERE r.id = l.st.x)",
            [(1, 2)],
        ),
        ("SELECT q.id, q.p.st.x v FROM (SELECT id, struct(st) p FROM shop.l) q", [(1, 2)]),
    ],
)
def test_a_field_is_found_behind_its_table_and_column(
    sql: str, expected: list[tuple[int, int]]
) -> None:
    rows = [
        ("upsert", "shop.public.l", {"id": 1, "st": {"x": 2, "y": "a"}}),
        ("upsert", "shop.public.r", {"id": 2, "st": {"x": 7, "y": "b"}}),
    ]
    (after,) = run_ticks(sql, NESTED, [rows])
    assert [(row["id"], row["v"]) for row in after["v"]] == expected


@pytest.mark.parametrize("name", ["r.st.x", "nowhere.st.x", "l.st.z"])
def test_a_field_of_no_table_here_is_refused(name: str) -> None:
    with pytest.raises(SqlNameError):
        run_ticks(f"SELECT id, {name} v FROM shop.l l", NESTED, [])
