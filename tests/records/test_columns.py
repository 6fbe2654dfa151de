"""Batches from Arrow columns are those of the encoder that goes record by record."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records.batch import check_batch, decode_records, encode_columns
from tailrace.records.columns import RecordColumns, by_partition, murmur2_of
from tailrace.records.partitioner import murmur2, partition_for

BYTES = st.none() | st.binary(max_size=80) | st.integers(60, 9000).map(bytes)
PAIRS = st.lists(st.tuples(BYTES, BYTES), min_size=1, max_size=90)


@given(
    PAIRS,
    st.integers(0, 200),
    st.booleans(),
    st.sampled_from(["none", "lz4", "zstd"]),
    st.lists(st.tuples(st.text(max_size=70), st.none() | st.binary(max_size=90)), max_size=2),
)
def test_columns_become_the_bytes_of_single_records(
    pairs: list[tuple[bytes | None, bytes | None]],
    first: int,
    keyed: bool,
    compression: str,
    headers: list[tuple[str, bytes | None]],
) -> None:
    keys = [key for key, _ in pairs] if keyed else [None] * len(pairs)
    values = [value for _, value in pairs]
    first %= len(pairs)
    columns = RecordColumns(
        pa.array(keys, pa.binary()) if keyed else None,
        pa.array(values, pa.binary()),
        17,
        tuple(headers),
    )
    numbers = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 3, "transactional": True}
    made = columns.encode(first, len(pairs) - first, compression=compression, **numbers)  # type: ignore[arg-type]
    naive = encode_columns(keys[first:], values[first:], 17, tuple(headers), compression=compression, **numbers)  # type: ignore[arg-type]  # fmt: skip
    assert bytes(made) == bytes(naive)
    if compression == "none":
        assert len(made) <= columns.size_bytes(first, len(pairs) - first) + 61


@pytest.mark.parametrize("size", [10, 9_000, 20_000, 2_200_000])
def test_long_values_and_many_records(size: int) -> None:
    values = [bytes(size), None, b"x"] + [b"y"] * (20_000 if size == 10 else 3)
    columns = RecordColumns(None, pa.array(values, pa.binary()), 1)
    batch = columns.encode(0, len(values))
    check_batch(batch)
    assert [record.value for record in decode_records(batch)] == values
    assert len(batch) <= columns.size_bytes(0, len(values)) + 61


@given(PAIRS, st.integers(1, 3000), st.integers(1, 40))
def test_batches_stay_within_their_limits(
    pairs: list[tuple[bytes | None, bytes | None]], most_bytes: int, most_records: int
) -> None:
    columns = RecordColumns(
        pa.array([key for key, _ in pairs], pa.binary()),
        pa.chunked_array([pa.array([value for _, value in pairs], pa.large_binary())]),
        1,
    )
    first = 0
    while first < len(columns):
        count = columns.fitting(first, most_bytes, most_records)
        assert 1 <= count <= most_records
        assert count == 1 or len(columns.encode(first, count)) - 61 <= most_bytes
        first += count
    assert first == len(pairs)


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=50), st.integers(0, 49))
def test_many_keys_are_hashed_as_single_ones(keys: list[bytes], first: int) -> None:
    first %= len(keys)
    column = pa.array(keys, pa.binary()).slice(first)
    assert murmur2_of(column).tolist() == [murmur2(key) for key in keys[first:]]


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_record_goes_to_the_partition_of_its_key_in_order(partitions: int) -> None:
    keys = [b"%d" % (number % 40) if number % 9 else None for number in range(500)]
    values = [b"%d" % number for number in range(500)]
    found = {
        index: list(zip(some_keys.to_pylist(), some_values.to_pylist(), strict=True))
        for index, some_keys, some_values in by_partition(
            pa.array(keys, pa.binary()), pa.array(values, pa.binary()), partitions
        )
    }
    expected: dict[int, list[tuple[bytes | None, bytes]]] = {}
    for key, value in zip(keys, values, strict=True):
        place = 0 if key is None else partition_for(key, partitions)
        expected.setdefault(place, []).append((key, value))
    assert found == expected
    nothing = pa.array([], pa.binary())
    assert not list(by_partition(nothing, nothing, partitions))
