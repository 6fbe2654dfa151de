"""Columns out of batches, judged by the reader of single records."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records.batch import (
    Record,
    decode_records,
    encode_batch,
    iterate_batches,
)
from tailrace.records.decode_columns import RecordColumns, decode_columns
from tailrace.records.errors import InvalidRecordError, RecordsError

payload = st.one_of(st.none(), st.binary(max_size=20), st.just(b"x" * 70), st.just(b"y" * 9000))
headers = st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=2)  # fmt: skip
record = st.builds(Record, st.just(0), st.integers(0, 2**41), payload, payload, headers.map(tuple))
batch = st.tuples(st.lists(record, min_size=1, max_size=12), st.sampled_from(["none", "gzip", "zstd", "lz4"]))  # fmt: skip


def rows(columns: RecordColumns) -> list[Record]:
    tails = columns.headers or [()] * len(columns)
    return [
        Record(*row)
        for row in zip(
            columns.offsets.tolist(), columns.timestamps.tolist(), columns.keys.to_pylist(),
            columns.values.to_pylist(), tails, strict=True,
        )
    ]  # fmt: skip


@given(st.lists(batch, max_size=4), st.integers(0, 30), st.integers(0, 30))
def test_columns_hold_what_the_records_hold(
    batches: list[tuple[list[Record], str]], start: int, end: int
) -> None:
    buffer = b""
    for number, (records, codec) in enumerate(batches):
        buffer += encode_batch(records, base_offset=number * 15, compression=codec)
    expected = [r for position, _ in iterate_batches(buffer) for r in decode_records(buffer, position)]  # fmt: skip
    columns = decode_columns(buffer, iterate_batches(buffer))
    assert rows(columns) == expected
    assert rows(columns.between(start, end)) == [r for r in expected if start <= r.offset < end]


def test_runs_of_equal_sizes_end_where_sizes_change() -> None:
    sizes = [*[40] * 100, *[41] * 5, *[40] * 30, *[200] * 70, 9000, *[0] * 20]
    buffer = b"".join(
        bytes(encode_batch([Record(0, 5, None, b"x" * size) for size in part], base_offset=base))
        for base, part in ((0, sizes), (1000, sizes[::-1]), (2000, sizes[:17]))
    )
    columns = decode_columns(buffer, iterate_batches(buffer))
    assert [len(v or b"") for v in columns.values.to_pylist()] == [
        *sizes,
        *sizes[::-1],
        *sizes[:17],
    ]
    assert columns.offsets.tolist() == [
        *range(len(sizes)), *range(1000, 1000 + len(sizes)), *range(2000, 2017)
    ]  # fmt: skip


def test_damaged_records_are_refused_as_the_twin_refuses_them() -> None:
    good = bytes(encode_batch([Record(0, 5, b"key", b"value", (("h", b"1"),))] * 20))
    refused = 0
    for seed in range(300):
        chance = random.Random(seed)
        damaged = bytearray(good)
        damaged[chance.randrange(61, len(good))] = chance.randrange(256)
        try:
            expected = list(decode_records(damaged))
        except RecordsError:
            refused += 1
            with pytest.raises(InvalidRecordError):
                decode_columns(damaged, iterate_batches(damaged))
            continue
        assert rows(decode_columns(damaged, iterate_batches(damaged))) == expected
    assert refused


def test_no_batches_give_no_rows() -> None:
    assert rows(decode_columns(b"", [])) == []
