"""Rows as JSON and as Arrow: the fast way is judged by the slow one."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

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


def test_numbers_of_json_in_a_text_column_keep_their_digits():
    whole = '{"x":12345678901234567890.123456789,"y":1.50,"z":[1E400,-0.0,"é\\"\\n",null]}'
    texts = [f'{{"s":{whole},"i":5}}', '{"s":1.50}', '{"s":1.0,"i":"7"}']
    table, refused = read_rows(
        [text.encode() for text in texts], [("s", "STRING"), ("i", "BIGINT")]
    )
    assert (table["s"].to_pylist(), refused) == ([whole, "1.50", "1.0"], [])
    assert table["i"].to_pylist() == [5, None, 7]
    table, refused = read_rows([b'{"s":NaN}', b'{"d":1E400}'], [("s", "STRING"), ("d", "DOUBLE")])
    assert (table.num_rows, len(refused)) == (0, 2)


def test_decimals_of_any_width_are_read_beside_a_row_that_does_not_fit():
    numbers = ["12345678901.5", "-99999999999999999999.999999999999999999", "0"]
    texts = [f'{{"d":"{number}"}}'.encode() for number in [*numbers, "NaN"]]
    table, refused = read_rows(texts, [("d", "DECIMAL(38,18)")])
    assert table["d"].to_pylist() == [Decimal(number) for number in numbers]
    assert [(item.index, item.reason) for item in refused] == [
        (3, "column 'd': 'NaN' is no number of decimal128(38, 18)")
    ]


def test_infinite_dates_are_the_last_and_the_first_there_are():
    columns = [("d", "DATE"), ("n", "TIMESTAMP_NTZ"), ("z", "TIMESTAMP"), ("l", "ARRAY<DATE>")]
    far, past = (
        f'{{"d":"{word}","n":"{word}","z":"{word}","l":["{word}"]}}'.encode()
        for word in ("infinity", "-infinity")
    )
    table, refused = read_rows([far, past], columns)
    assert refused == []
    last, first = table.to_pylist()
    assert (last["d"], first["d"]) == (date(9999, 12, 31), date(1, 1, 1))
    assert (last["n"], first["n"]) == (datetime.max, datetime.min)
    assert (last["z"], first["z"]) == (
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
    )
    assert (last["l"], first["l"]) == ([date.max], [date.min])


def test_what_does_not_fit_in_a_struct_is_named_with_its_way():
    columns = [("after", "STRUCT<a: INT, b: STRUCT<c: DATE>>")]
    _, (refused,) = read_rows([b'{"after":{"a":1,"b":{"c":"soon"}}}'], columns)
    assert refused.reason.startswith("column 'after.b.c': ")


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
