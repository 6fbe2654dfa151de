"""The hash of a column, all values at once, is the one of each value by itself."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.values.shards import _big_integer, hash_bytes, shards_of

lengths = st.lists(st.integers(0, 100), min_size=1, max_size=6)  # few, so that many are equal
values = lengths.flatmap(
    lambda sizes: st.lists(
        st.none() | st.sampled_from(sizes).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
        min_size=1,
        max_size=40,
    )
)


@given(values, values, st.integers(0, 39))
def test_many_texts_are_hashed_as_single_ones(
    first: list[bytes | None], second: list[bytes | None], cut: int
) -> None:
    rows = [*first, *second]
    chunks = [pa.array(part, pa.binary()) for part in (first, second)]
    table = pa.table({"a": pa.chunked_array(chunks)}).slice(cut)
    if not table.num_rows:
        return
    alone = [42 if value is None else hash_bytes(value, 42) for value in rows[cut:]]
    want = np.array(alone, dtype="u8").view("i8") % 97
    assert shards_of(table, ["a"], 97).tolist() == want.tolist()


def test_a_column_of_nothing() -> None:
    table = pa.table({"a": pa.nulls(3, pa.string()), "b": pa.array(["x", "y", None])})
    alone = [hash_bytes(b"x", 42), hash_bytes(b"y", 42), 42]
    want = np.array(alone, dtype="u8").view("i8") % 97
    assert shards_of(table, ["a", "b"], 97).tolist() == want.tolist()
    assert shards_of(table.slice(3), ["a", "b"], 97).tolist() == []


near = st.integers(0, 9).flatmap(
    lambda size: st.integers(-(1 << (8 * size + 1)), 1 << (8 * size + 1))
)


@given(st.lists(st.none() | near, min_size=1, max_size=40), st.integers(0, 39))
def test_many_decimals_are_hashed_as_single_ones(numbers: list[int | None], cut: int) -> None:
    values = [None if number is None else decimal.Decimal(number) for number in numbers]
    table = pa.table({"a": pa.array(values, pa.decimal128(38, 0))}).slice(cut)
    if not table.num_rows:
        return
    alone = [42 if n is None else hash_bytes(_big_integer(n), 42) for n in numbers[cut:]]
    want = np.array(alone, dtype="u8").view("i8") % 97
    assert shards_of(table, ["a"], 97).tolist() == want.tolist()
