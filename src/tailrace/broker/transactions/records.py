"""The records of `__transaction_state`, byte for byte as Kafka writes them.

Key: int16 0, transactional id. Value: int16 version (0, or 1 with tagged fields), then
the fields; null removes.
"""

from __future__ import annotations

import struct

from tailrace.broker.transactions.state import State, TransactionRecord
from tailrace.wire.errors import DecodeError
from tailrace.wire.messages import transaction_records as wire

VERSION = 1
_SHORT = struct.Struct(">h")


def encode_key(transactional_id: str) -> bytes:
    out = bytearray(_SHORT.pack(0))
    wire.ENCODE_TRANSACTION_LOG_KEY[0](wire.TransactionLogKey(transactional_id), out)
    return bytes(out)


def encode_value(record: TransactionRecord) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(record.partitions):
        topics.setdefault(topic, []).append(index)
    value = wire.TransactionLogValue(
        producer_id=record.producer_id,
        previous_producer_id=record.previous_producer_id,
        next_producer_id=record.next_producer_id,
        producer_epoch=record.epoch,
        transaction_timeout_ms=record.timeout_ms,
        transaction_status=int(record.state),
        # Kafka writes null for an id that has never had a transaction, and only there.
        transaction_partitions=(
            None
            if record.state is State.EMPTY
            else [wire.PartitionsSchema(topic, indexes) for topic, indexes in topics.items()]
        ),
        transaction_last_update_timestamp_ms=record.updated_at,
        transaction_start_timestamp_ms=record.started_at,
        client_transaction_version=record.version,
    )
    out = bytearray(_SHORT.pack(VERSION))
    wire.ENCODE_TRANSACTION_LOG_VALUE[VERSION](value, out)
    return bytes(out)


def decode_key(key: bytes) -> str | None:
    """The transactional id; None for a kind of record that is not known."""
    if _SHORT.unpack_from(key)[0] != 0:
        return None
    return str(wire.DECODE_TRANSACTION_LOG_KEY[0](memoryview(key), 2).transactional_id)


def decode_value(transactional_id: str, value: bytes) -> TransactionRecord:
    (version,) = _SHORT.unpack_from(value)
    decode = wire.DECODE_TRANSACTION_LOG_VALUE.get(version)
    if decode is None:
        raise DecodeError(f"transaction record in unknown version {version}")
    found = decode(memoryview(value), 2)
    return TransactionRecord(
        transactional_id=transactional_id,
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        state=State(found.transaction_status),
        partitions=frozenset(
            (one.topic, index)
            for one in found.transaction_partitions or ()
            for index in one.partition_ids
        ),
        updated_at=found.transaction_last_update_timestamp_ms,
        started_at=found.transaction_start_timestamp_ms,
        previous_producer_id=found.previous_producer_id,
        next_producer_id=found.next_producer_id,
        version=found.client_transaction_version,
    )
