"""Rows as JSON and as Arrow: the fast way is judged by the slow one."""

from __future__ import annotations

import json
from datetime import datetime

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records import rows as module
from tailrace.records.rows import arrow_schema, arrow_type, json_value, python_rows, read_rows

COLUMNS = (
    ("i", "BIGINT"),
    ("s", "STRING"),
    ("d", "DECIMAL(12,3)"),
    ("t", "TIMESTAMP"),
    ("n", "TIMESTAMP_NTZ"),
    ("day", "DATE"),
    ("f", "DOUBLE"),
    ("b", "BOOLEAN"),
    ("a", "ARRAY<DECIMAL(5,1)>"),
    ("o", "STRUCT<x: INT, y: STRING>"),
)
moments = st.datetimes(min_value=datetime(1900, 1, 1))
row = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(),
        "d": st.none() | st.integers(-(10**9), 10**9).map(lambda n: f"{n / 1000:.3f}"),
        "t": st.none() | moments.map(lambda m: m.isoformat() + "Z"),
        "n": st.none() | moments.map(lambda m: m.isoformat()),
        "day": st.none() | st.dates().map(lambda d: d.isoformat()),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "b": st.none() | st.booleans(),
        "a": st.none() | st.lists(st.none() | st.integers(-999, 999).map(lambda n: f"{n}.5")),
        "o": st.none()
        | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.text()}),
    }
)


@given(st.lists(row, min_size=1, max_size=20))
def test_the_fast_reader_agrees_with_the_slow_one(documents):
    texts = [orjson.dumps(document) for document in documents]
    schema = arrow_schema(COLUMNS)
    slow, refused = module._read_slow(texts, schema)
    assert refused == []
    table, refused = read_rows(texts, COLUMNS)
    assert refused == []
    assert table.equals(slow)


@given(st.lists(row, min_size=1, max_size=5))
def test_rows_come_back_as_the_values_they_were(documents):
    table, _ = read_rows([orjson.dumps(document) for document in documents], COLUMNS)
    again, refused = read_rows([orjson.dumps(r) for r in python_rows(table)], COLUMNS)
    assert refused == []
    assert again.equals(table)


@pytest.mark.parametrize(
    ("document", "column"),
    [
        ({"i": "many"}, "i"),
        ({"i": 2**70}, "i"),
        ({"d": "1e99"}, "d"),
        ({"d": "12345678901234.000"}, "d"),
        ({"t": "yesterday"}, "t"),
        ({"day": "2026-02-30"}, "day"),
        ({"f": "much"}, "f"),
        ({"b": 1}, "b"),
        ({"a": 5}, "a"),
        ({"o": [1]}, "o"),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_the_rest_is_read(document, column):
    good = orjson.dumps({"i": 1, "s": "x"})
    table, refused = read_rows([good, json.dumps(document).encode(), good], COLUMNS)
    assert table.num_rows == 2
    assert [item.index for item in refused] == [1]
    assert repr(column) in refused[0].reason


@pytest.mark.parametrize("text", [b"", b"[1]", b"null", b"{", b"\xff\xfe"])
def test_what_is_no_object_is_refused(text):
    table, refused = read_rows([text, b'{"i":1}'], COLUMNS)
    assert (table.num_rows, [item.index for item in refused]) == (1, [0])


def test_not_a_number_and_infinities_are_text_in_json():
    table, refused = read_rows([b'{"f":"NaN"}', b'{"f":"Infinity"}', b'{"f":"-Infinity"}'], COLUMNS)
    assert refused == []
    assert [r["f"] for r in python_rows(table)] == ["NaN", "Infinity", "-Infinity"]


def test_nested_json_in_a_text_column_stays_json():
    table, _ = read_rows([b'{"s":{"a":[1,2]}}'], COLUMNS)
    assert table["s"].to_pylist() == ['{"a":[1,2]}']


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("bigint", pa.int64()),
        ("decimal", pa.decimal128(10, 0)),
        ("DECIMAL(38, 18)", pa.decimal128(38, 18)),
        ("varchar(20)", pa.string()),
        ("ARRAY<MAP<STRING, INT>>", pa.list_(pa.map_(pa.string(), pa.int32()))),
        ("STRUCT<a: BIGINT, b: STRUCT<c DECIMAL(5,2)>>",
         pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.decimal128(5, 2))]))])),
        ("INTERVAL DAY TO SECOND", pa.string()),
    ],
)  # fmt: skip
def test_types_are_read_from_sparks_words(ddl, kind):
    assert arrow_type(ddl) == kind


def test_values_without_a_json_form_become_text():
    assert (
        json_value(object.__new__(type("Thing", (), {"__str__": lambda self: "thing"}))) == "thing"
    )
