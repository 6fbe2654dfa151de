"""Messages kept inside records and subscriptions."""

from __future__ import annotations

import random

import pytest
from kio.index import load_entity_schema
from kio.static.constants import EntityType

from tailrace.wire.data import decode_data, decode_versioned, encode_data, encode_versioned
from tailrace.wire.errors import DecodeError
from tailrace.wire.messages import (
    consumer_protocol,
    group_records,
    share_group_records,
    transaction_records,
)
from wire import kio_oracle


@pytest.mark.parametrize("name", ["consumer_protocol_subscription", "consumer_protocol_assignment"])
def test_group_protocol_matches_kio(name: str) -> None:
    decoders = getattr(consumer_protocol, f"DECODE_{name.upper()}")
    encoders = getattr(consumer_protocol, f"ENCODE_{name.upper()}")
    chance = random.Random(7)
    for version in decoders:
        kind = load_entity_schema(name, version, EntityType.data)  # type: ignore[arg-type]
        for _ in range(20):
            theirs = kio_oracle.make(kind, chance)
            data = kio_oracle.write(theirs)
            ours = decode_data(decoders, version, data)
            kio_oracle.assert_same(theirs, ours)
            assert encode_data(encoders, version, ours) == data


def tables() -> list[object]:
    return [
        pytest.param(module, name.removeprefix("DECODE_"), id=name.removeprefix("DECODE_").lower())
        for module in (group_records, share_group_records, transaction_records)
        for name in vars(module)
        if name.startswith("DECODE_")
    ]


@pytest.mark.parametrize(("module", "name"), tables())
def test_a_fresh_record_comes_back_as_it_was_written(module: object, name: str) -> None:
    decoders = getattr(module, f"DECODE_{name}")
    encoders = getattr(module, f"ENCODE_{name}")
    kind = getattr(module, "".join(part.capitalize() for part in name.split("_")))
    for version in decoders:
        data = encode_versioned(encoders, version, kind())
        assert decode_versioned(decoders, data) == (version, kind())
        with pytest.raises(DecodeError):
            decode_versioned(decoders, data[:1])


def test_an_offset_is_kept_in_kafkas_bytes() -> None:
    """Bytes as Kafka 4 writes them: value version 3, key kind 1."""
    value = group_records.OffsetCommitValue(
        offset=42, leader_epoch=7, metadata="m", commit_timestamp=1000
    )
    data = encode_versioned(group_records.ENCODE_OFFSET_COMMIT_VALUE, 3, value)
    assert data.hex() == "0003" + "000000000000002a" + "00000007" + "00016d" + "00000000000003e8"
    key = group_records.OffsetCommitKey(group="g", topic="t", partition=2)
    version = min(group_records.ENCODE_OFFSET_COMMIT_KEY)
    data = encode_versioned(group_records.ENCODE_OFFSET_COMMIT_KEY, version, key, leading=1)
    assert data.hex() == "0001" + "000167" + "000174" + "00000002"
