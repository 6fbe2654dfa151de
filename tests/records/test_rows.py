"""Rows of JSON as Arrow: whatever a producer writes, it is a row or refused by its number."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.values.topic_schema import parse_schema
from tailrace.records.rows import read_column, read_objects

SCHEMA = parse_schema(
    "i TINYINT, l BIGINT, f FLOAT, d DOUBLE, b BOOLEAN, s STRING, dec DECIMAL(10,2), dt DATE, "
    "at TIMESTAMP, nt TIMESTAMP_NTZ, ti TIME, bin BINARY, a ARRAY<INT>, m MAP<STRING, INT>, "
    "st STRUCT<x: INT, y: STRING>, aa ARRAY<ARRAY<STRING>>"
)
ODD = [
    b"null", b"true", b"-0.0", b"1e400", b"9" * 5000, b'"1e999999999"', b"NaN", b'"NaN"',
    b'"\\ud800"', b'["\\ud800"]', b'{"\\ud800":1}', b'{"y":"\\udc00"}', b'"\\u0000"',
    b'"\xff"', b'"\xed\xa0\x80"', b"[" * 1500 + b"]" * 1500, b'{"x":' * 1500 + b"1" + b"}" * 1500,
    b'"9999-12-31T23:59:59-14:00"', b'"0001-01-01T00:00:00+14:00"', b'"99999-01-01"',
    b'"2026-02-30"', b'"24:00:00"', b'"infinity"', b'"2026-01-01T00:00:00+99:99"', b"[]", b"{}",
    b'"x', b"truee", b'"AAA"', b"1.5", b'"2026-01-01"', b'{"x":1}',
]  # fmt: skip
FIELDS = st.tuples(st.sampled_from(SCHEMA.names), st.sampled_from(ODD))
ROWS = st.lists(st.lists(FIELDS, min_size=1, max_size=3), min_size=1, max_size=4)


def written(fields: list[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % (name.encode(), value) for name, value in fields) + b"}"


@given(ROWS)
def test_whatever_stands_in_a_record_it_is_a_row_or_refused(
    rows: list[list[tuple[str, bytes]]],
) -> None:
    texts = [written(fields) for fields in rows]
    table, refused = read_objects(texts, SCHEMA)
    assert table.num_rows + len({one.index for one in refused}) == len(texts)
    table.validate(full=True)
    table.to_pylist()
    at_once = read_column(pa.array(texts, pa.binary()), SCHEMA)
    if at_once is not None:
        assert at_once.to_pylist() == table.to_pylist() or b"NaN" in b"".join(texts)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'"\\ud800"', "column 's'"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    ],
)
def test_a_row_that_cannot_be_read_does_not_take_others_along(value: bytes, reason: str) -> None:
    rows = [b'{"s":"a"}', b'{"s":' + value + b"}", b'{"s":"b"}']
    table, refused = read_objects(rows, SCHEMA)
    assert table.column("s").to_pylist() == ["a", "b"]
    assert [one.index for one in refused] == [1]
    assert reason in refused[0].reason


def test_a_moment_that_its_offset_puts_out_of_reach_is_refused() -> None:
    rows = [b'{"at":"9999-12-31T23:59:59.999999Z"}', b'{"at":"9999-12-31T23:59:59-14:00"}']
    table, refused = read_objects(rows, SCHEMA)
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
    assert [row["at"] for row in table.to_pylist()] == [last]
    assert [one.index for one in refused] == [1]
