"""Batches: round trips, and every way to be wrong told apart as Kafka tells them."""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records.batch import (
    Record,
    check_batch,
    decode_marker,
    decode_records,
    encode_batch,
    encode_columns,
    encode_marker,
    iterate_batches,
    read_header,
    set_append_time,
)
from tailrace.records.checksum import crc32c
from tailrace.records.errors import CorruptBatchError, InvalidRecordError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3).map(tuple)
records = st.lists(
    st.builds(Record, st.just(0), st.integers(0, 2**41), blobs, blobs, headers),
    min_size=1,
    max_size=20,
)


@given(records, st.sampled_from(CODECS), st.integers(0, 2**40))
def test_records_come_back_as_they_went_in(some: list[Record], codec: str, base: int) -> None:
    batch = encode_batch(some, compression=codec, base_offset=base)
    header = check_batch(batch)
    assert header.record_count == len(some)
    assert header.max_timestamp == max(record.timestamp for record in some)
    assert list(decode_records(batch)) == [
        record._replace(offset=base + place) for place, record in enumerate(some)
    ]


@given(records, st.sampled_from(("none", "gzip")))
def test_another_client_reads_our_batches(some: list[Record], codec: str) -> None:
    batch = DefaultRecordBatch(bytes(encode_batch(some, compression=codec)))
    assert batch.validate_crc()
    theirs = [(each.timestamp, each.key, each.value, tuple(each.headers)) for each in batch]
    assert theirs == [(each.timestamp, each.key, each.value, each.headers) for each in some]


@given(records)
def test_we_read_another_clients_batches(some: list[Record]) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 10**9)
    for place, record in enumerate(some):
        builder.append(place, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert check_batch(batch).record_count == len(some)
    assert [each[1:] for each in decode_records(batch)] == [each[1:] for each in some]


def test_columns_and_records_give_the_same_bytes() -> None:
    rows = [Record(0, 5 + n, b"k%d" % n, b"v" * n, (("h", b"x"),)) for n in range(3000)]
    columns = encode_columns(
        [row.key for row in rows],
        [row.value for row in rows],
        [row.timestamp for row in rows],
        (("h", b"x"),),
    )
    assert columns == encode_batch(rows)


def test_a_column_without_keys_and_one_time_for_all() -> None:
    batch = encode_columns(None, [b"a", None], 7)
    assert list(decode_records(batch)) == [Record(0, 7, None, b"a"), Record(1, 7, None, None)]


def _sealed(batch: bytearray) -> bytearray:
    batch[17:21] = struct.pack(">I", crc32c(memoryview(batch)[21:]))
    return batch


def _patched(position: int, form: str, value: int, *, seal: bool = False) -> bytearray:
    batch = encode_columns([b"k"] * 3, [b"value"] * 3, 1000)
    struct.pack_into(form, batch, position, value)
    return _sealed(batch) if seal else batch


CORRUPT = {
    "wrong checksum": _patched(17, ">I", 1),
    "flipped bit": _patched(70, ">b", 99),
    "magic 9": _patched(16, ">b", 9),
    "negative length": _patched(8, ">i", -1),
    "short length": _patched(8, ">i", 10),
}
INVALID = {
    "magic 1": _patched(16, ">b", 1),
    "cut": encode_columns([b"k"], [b"v"], 1)[:-3],
    "length too long": _patched(8, ">i", 10_000),
    "count too high": _patched(57, ">i", 4, seal=True),
    "offsets too far": _patched(23, ">i", 5, seal=True),
    "header only": _sealed(bytearray(_patched(57, ">i", 0, seal=True)[:61])),
    "empty": bytearray(),
}
struct.pack_into(">i", INVALID["header only"], 8, 49)


@pytest.mark.parametrize("name", CORRUPT)
def test_damage_is_answered_with_corrupt_message(name: str) -> None:
    with pytest.raises(CorruptBatchError) as caught:
        check_batch(CORRUPT[name])
    assert caught.value.kafka_code == 2


@pytest.mark.parametrize("name", INVALID)
def test_nonsense_is_answered_with_invalid_record(name: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        check_batch(INVALID[name])
    assert caught.value.kafka_code == 87


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_without_a_crash(data: bytes) -> None:
    with pytest.raises((CorruptBatchError, InvalidRecordError)):
        check_batch(data)


@given(st.binary(max_size=120), st.integers(1, 5))
def test_records_of_garbage_are_refused(garbage: bytes, count: int) -> None:
    batch = encode_columns([b"k"], [b"v"], 1)[:61] + garbage
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">ii", batch, 53, -1, count)
    try:
        found = list(decode_records(batch))
    except (InvalidRecordError, CorruptBatchError):
        return
    assert len(found) == count


def test_batches_in_a_row_are_walked_and_a_cut_one_ends_the_walk() -> None:
    first = encode_columns([b"a"], [b"1"], 1)
    second = encode_columns([b"b"], [b"2"], 1, base_offset=1)
    row = bytes(first + second)
    assert [header.base_offset for _, header in iterate_batches(row)] == [0, 1]
    assert [header.base_offset for _, header in iterate_batches(row[:-1])] == [0]


def test_append_time_replaces_every_records_time() -> None:
    batch = encode_columns([b"a", b"b"], [b"1", b"2"], [5, 6])
    set_append_time(batch, 99)
    assert check_batch(batch).log_append_time
    assert [record.timestamp for record in decode_records(batch)] == [99, 99]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_how_its_transaction_ended(commit: bool) -> None:
    batch = encode_marker(commit, producer_id=9, epoch=3, coordinator_epoch=4, timestamp=1)
    header = read_header(batch)
    assert header.control
    assert header.transactional
    assert (header.producer_id, header.producer_epoch) == (9, 3)
    assert decode_marker(batch) == (commit, 4)


def test_sequences_wrap_after_the_largest() -> None:
    batch = encode_columns(
        [b"k"] * 3, [b"v"] * 3, 1, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2
    )
    assert read_header(batch).last_sequence == 0
