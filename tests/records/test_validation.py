"""Looking at every record of a batch, against a reader that takes them one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records.batch import Record, encode_batch
from tailrace.records.compression import decompress
from tailrace.records.decode import decode_headers, read_varint, records_block
from tailrace.records.encode import encode_columns
from tailrace.records.errors import CorruptBatchError, InvalidRecordError
from tailrace.records.header import HEADER_BYTES, read_header
from tailrace.records.validation import Inspection, inspect_records

ODD = [0, 1, 2, 3, 6, 12, 14, 127, 128, 129, 255]

texts = st.binary(max_size=20) | st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 200, b"x" * 9000])
one = st.builds(
    Record,
    st.just(0),
    st.integers(0, 20_000),
    st.none() | texts,
    st.none() | texts,
    st.just(())
    | st.lists(st.tuples(st.text(max_size=3), st.none() | texts), max_size=3).map(tuple),
)
# Equal records make runs, which are checked in another way than single ones.
batches = st.lists(st.tuples(one, st.integers(1, 90)), min_size=1, max_size=4).map(
    lambda rows: [record for record, times in rows for _ in range(times)]
)


def naive(block: bytes, count: int) -> Inspection:
    """Field by field, with nothing clever."""
    keyless: list[int] = []
    newest = -(1 << 63)
    position = 0

    def text(position: int) -> tuple[int, int]:
        length, position = read_varint(block, position)
        if length < -1:
            raise InvalidRecordError("negative length")
        return length, position + max(length, 0)

    try:
        for number in range(count):
            length, position = read_varint(block, position)
            end = position + length
            if length < 6 or end > len(block):
                raise InvalidRecordError("length")
            delta, position = read_varint(block, position + 1)
            newest = max(newest, delta)
            offset, position = read_varint(block, position)
            if offset != number:
                raise InvalidRecordError("offset")
            length, position = text(position)
            if length < 0:
                keyless.append(number)
            length, position = text(position)
            if position >= end:
                raise InvalidRecordError("too long")
            decode_headers(block[position:end])
            position = end
    except IndexError:
        raise InvalidRecordError("cut") from None
    if position != len(block):
        raise InvalidRecordError("more follows")
    return Inspection(keyless, newest)


@given(batches, st.booleans())
def test_whole_batches_are_read_as_one_by_one(some: list[Record], in_place: bool) -> None:
    batch = encode_batch(some)
    header = read_header(batch)
    block: bytes | memoryview = memoryview(batch)[HEADER_BYTES:]
    expected = naive(bytes(block), header.record_count)
    assert inspect_records(block if in_place else bytes(block), header.record_count) == expected
    assert expected.keyless == [at for at, record in enumerate(some) if record.key is None]
    assert header.base_timestamp + expected.newest == max(record.timestamp for record in some)


@given(batches, st.data())
def test_what_is_broken_is_refused_as_one_by_one(some: list[Record], data: st.DataObject) -> None:
    batch = encode_batch(some)
    count = read_header(batch).record_count + data.draw(st.sampled_from([0, 0, 0, -1, 1, 1000]))
    block = bytearray(batch[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(0, 3))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.sampled_from(ODD))
    if data.draw(st.booleans()):
        del block[data.draw(st.integers(0, len(block))) :]
    try:
        expected = naive(bytes(block), count)
    except InvalidRecordError:
        with pytest.raises(InvalidRecordError):
            inspect_records(bytes(block), count)
    else:
        assert inspect_records(bytes(block), count) == expected


@pytest.mark.parametrize("size", [0, 1, 50, 61, 62, 100, 1000, 8000, 9000, 20_000])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 64, 65, 200, 8191, 8192, 8193, 9000])
def test_records_of_one_size_are_read_whatever_the_width_of_their_numbers(
    size: int, count: int
) -> None:
    if size * count > 2_000_000:
        count = max(1, 2_000_000 // size)
    for keys in ([None] * count, [b"key"] * count):
        batch = encode_columns(keys, [b"v" * size] * count, 5)
        found = inspect_records(bytes(batch[HEADER_BYTES:]), count)
        assert found == Inspection([] if keys[0] else list(range(count)), 0)


def test_one_wrong_byte_in_a_long_run_is_found() -> None:
    chance = random.Random(7)
    batch = encode_columns([b"key"] * 500, [b"value"] * 500, 5)
    stride = 14  # of the first 64; the others are a byte longer
    for at in (1, 2, 3, 4, 8, 13):  # attributes are free; all others are numbers
        block = bytearray(batch[HEADER_BYTES:])
        block[stride * chance.randrange(64) + at] ^= 0x0C
        try:
            naive(bytes(block), 500)
        except InvalidRecordError:
            with pytest.raises(InvalidRecordError):
                inspect_records(bytes(block), 500)
        else:
            assert inspect_records(bytes(block), 500) == naive(bytes(block), 500)


def test_a_count_that_cannot_be_is_refused_before_a_record_is_looked_at() -> None:
    with pytest.raises(InvalidRecordError, match="cannot be in"):
        inspect_records(b"\x0c" * 70, 11)


def test_gzip_of_very_many_members_is_refused() -> None:
    """Each member cost a copy of all that follow it."""
    import gzip

    with pytest.raises(CorruptBatchError, match="members"):
        decompress(1, gzip.compress(b"") * 5000)
    assert decompress(1, gzip.compress(b"a") * 3) == b"aaa"


def test_a_block_is_what_follows_the_header() -> None:
    batch = encode_columns([None], [b"v"], 1, compression="gzip")
    assert inspect_records(records_block(batch, read_header(batch)), 1).keyless == [0]
