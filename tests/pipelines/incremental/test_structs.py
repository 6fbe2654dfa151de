"""Structs in views: names, order, and the way through JSON into Arrow."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from pipelines.incremental.harness import TABLES
from tailrace.pipelines.errors import SqlTypeError
from tailrace.pipelines.incremental.changelog import record_pairs
from tailrace.pipelines.incremental.compile import ViewDefinition, compile_views
from tailrace.pipelines.incremental.graph import DELETED
from tailrace.pipelines.incremental.keys import encode_part
from tailrace.pipelines.incremental.rows import physical, to_array
from tailrace.pipelines.incremental.types import ddl
from tailrace.records.rows import read_rows, row_of

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
    table = pa.table(
        {"id": [1, 2], "l": pa.array([VALUES, []], kind), DELETED: pa.array([False, False])}
    )
    plan = dataclasses.replace(graph.views["v"], columns=(("id", "BIGINT"), ("l", ddl(kind))))
    values = [value for _, value in record_pairs(plan, table)]
    assert orjson.loads(values[0] or b"")["row"]["l"][1]["a"] == "9.50"
    read, refused = read_rows([row_of(value) for value in values if value], plan.columns)
    assert not refused
    assert read.column("l").to_pylist() == [VALUES, []]


def test_structs_are_ordered_field_by_field() -> None:
    array = pa.array([VALUES[2], VALUES[0], VALUES[1], None], KIND)
    keys = [encode_part(value, KIND) for value in physical(array)]
    assert sorted(range(4), key=keys.__getitem__) == [3, 1, 2, 0]
    assert to_array(physical(array), KIND).equals(array)


@pytest.mark.parametrize("sql", ["struct(id, k AS ID)", "named_struct('a', id, 'A', k)"])
def test_two_fields_of_one_name_are_refused(sql: str) -> None:
    with pytest.raises(SqlTypeError, match="two fields of one name"):
        compile_views([ViewDefinition("v", f"SELECT id, {sql} x FROM shop.a")], TABLES)
