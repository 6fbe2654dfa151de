"""Compression stays bounded, checksums and partitions equal Kafka's."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as their_murmur2
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records.checksum import crc32c
from tailrace.records.compression import CODECS, compress, decompress
from tailrace.records.errors import (
    CorruptBatchError,
    InvalidRecordError,
    RecordsError,
    UnsupportedCodecError,
)
from tailrace.records.partitioner import murmur2, partition_for

PACKED = [number for name, number in CODECS.items() if name != "none"]


@given(st.binary(max_size=100_000), st.sampled_from(PACKED))
def test_compression_round_trip(data: bytes, codec: int) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", PACKED)
def test_large_blocks_round_trip(codec: int) -> None:
    data = bytes(range(256)) * 20_000
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_is_refused_at_its_limit(codec: int) -> None:
    bomb = compress(codec, bytes(4_000_000))
    with pytest.raises(InvalidRecordError):
        decompress(codec, bomb, 1_000_000)


@given(st.binary(min_size=1, max_size=300), st.sampled_from(PACKED))
def test_garbage_is_refused_in_every_codec(data: bytes, codec: int) -> None:
    try:
        decompress(codec, data, 100_000)
    except RecordsError:
        return


@pytest.mark.parametrize("codec", PACKED)
def test_a_cut_block_is_refused(codec: int) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, compress(codec, b"hello" * 1000)[:-8])


def test_raw_snappy_without_framing_is_read() -> None:
    import cramjam

    assert decompress(CODECS["snappy"], bytes(cramjam.snappy.compress_raw(b"abc" * 50))) == (
        b"abc" * 50
    )


def test_an_unknown_codec_has_its_own_error() -> None:
    with pytest.raises(UnsupportedCodecError) as caught:
        decompress(7, b"x")
    assert caught.value.kafka_code == 76


def test_checksum_of_the_standard_text() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=200))
def test_murmur2_equals_another_clients(key: bytes) -> None:
    assert murmur2(key) == their_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_equals_the_java_clients_own_test(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


def test_a_key_stays_in_its_partition() -> None:
    assert partition_for(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10
