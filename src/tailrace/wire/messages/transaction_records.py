"""transaction_records: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

# mypy: ignore-errors

from __future__ import annotations

from struct import Struct, pack, unpack_from

from tailrace.wire.message import (
    ELEMENTS_LIMIT,
    NEW,
    TAGS_LIMIT,
    TOO_MANY_ELEMENTS,
    Message,
    fail,
    read_long_varint,
    read_varint,
    skip_tags,
    write_bytes,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
    write_varint,
)

_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack
_struct_qhib = Struct(">qhib")
_read_qhib = _struct_qhib.unpack_from
_write_qhib = _struct_qhib.pack
_struct_qq = Struct(">qq")
_read_qq = _struct_qq.unpack_from
_write_qq = _struct_qq.pack


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)

    def __init__(
        self,
        transactional_id: str = '',
    ) -> None:
        self.transactional_id: str = transactional_id


class PartitionsSchema(Message):
    __slots__ = ("topic", "partition_ids",)

    def __init__(
        self,
        topic: str = '',
        partition_ids: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partition_ids: list[int] = [] if partition_ids is NEW else partition_ids


class TransactionLogValue(Message):
    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version",)

    def __init__(
        self,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = NEW,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.previous_producer_id: int = previous_producer_id
        self.next_producer_id: int = next_producer_id
        self.producer_epoch: int = producer_epoch
        self.next_producer_epoch: int = next_producer_epoch
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_status: int = transaction_status
        self.transaction_partitions: list[PartitionsSchema] | None = [] if transaction_partitions is NEW else transaction_partitions
        self.transaction_last_update_timestamp_ms: int = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms: int = transaction_start_timestamp_ms
        self.client_transaction_version: int = client_transaction_version


def _decode_transaction_log_key_0(b: memoryview, p: int = 0) -> TransactionLogKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("transactional_id is null")
    q = p + n
    if q > end:
        raise fail("transactional_id past the end")
    transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    return TransactionLogKey(transactional_id_1)


DECODE_TRANSACTION_LOG_KEY = {
    0: _decode_transaction_log_key_0,
}


def _encode_transaction_log_key_0(m: TransactionLogKey, out: bytearray) -> None:
    write_string(out, m.transactional_id)


ENCODE_TRANSACTION_LOG_KEY = {
    0: _encode_transaction_log_key_0,
}


def _decode_transaction_log_value_0(b: memoryview, p: int = 0) -> TransactionLogValue:
    end = len(b)
    producer_id_1, producer_epoch_1, transaction_timeout_ms_1, transaction_status_1 = _read_qhib(b, p)
    p += 15
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        transaction_partitions_1 = None
    else:
        if n * 6 > end - p:
            raise fail("transaction_partitions has more elements than bytes")
        transaction_partitions_1 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("topic is null")
            q = p + n
            if q > end:
                raise fail("topic past the end")
            topic_2 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("partition_ids is null")
            if n * 4 > end - p:
                raise fail("partition_ids has more elements than bytes")
            partition_ids_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            transaction_partitions_1.append(PartitionsSchema(topic_2, partition_ids_2))
    transaction_last_update_timestamp_ms_1, transaction_start_timestamp_ms_1 = _read_qq(b, p)
    p += 16
    return TransactionLogValue(producer_id_1, -1, -1, producer_epoch_1, -1, transaction_timeout_ms_1, transaction_status_1, transaction_partitions_1, transaction_last_update_timestamp_ms_1, transaction_start_timestamp_ms_1, 0)


def _decode_transaction_log_value_1(b: memoryview, p: int = 0) -> TransactionLogValue:
    end = len(b)
    producer_id_1, producer_epoch_1, transaction_timeout_ms_1, transaction_status_1 = _read_qhib(b, p)
    p += 15
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        transaction_partitions_1 = None
    else:
        if n * 3 > end - p:
            raise fail("transaction_partitions has more elements than bytes")
        transaction_partitions_1 = []
        for _ in range(n):
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("topic is null")
            q = p + n
            if q > end:
                raise fail("topic past the end")
            topic_2 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partition_ids is null")
            if n * 4 > end - p:
                raise fail("partition_ids has more elements than bytes")
            partition_ids_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            transaction_partitions_1.append(PartitionsSchema(topic_2, partition_ids_2))
    transaction_last_update_timestamp_ms_1, transaction_start_timestamp_ms_1 = _read_qq(b, p)
    p += 16
    previous_producer_id_1 = -1
    next_producer_id_1 = -1
    client_transaction_version_1 = 0
    next_producer_epoch_1 = -1
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_3 = p + n
        if stop_3 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            (previous_producer_id_1,) = _read_q(b, p)
            p += 8
            if p != stop_3:
                raise fail("previous_producer_id is not as long as it says")
        elif tag == 1:
            (next_producer_id_1,) = _read_q(b, p)
            p += 8
            if p != stop_3:
                raise fail("next_producer_id is not as long as it says")
        elif tag == 2:
            (client_transaction_version_1,) = _read_h(b, p)
            p += 2
            if p != stop_3:
                raise fail("client_transaction_version is not as long as it says")
        elif tag == 3:
            (next_producer_epoch_1,) = _read_h(b, p)
            p += 2
            if p != stop_3:
                raise fail("next_producer_epoch is not as long as it says")
        else:
            p = stop_3
    return TransactionLogValue(producer_id_1, previous_producer_id_1, next_producer_id_1, producer_epoch_1, next_producer_epoch_1, transaction_timeout_ms_1, transaction_status_1, transaction_partitions_1, transaction_last_update_timestamp_ms_1, transaction_start_timestamp_ms_1, client_transaction_version_1)


DECODE_TRANSACTION_LOG_VALUE = {
    0: _decode_transaction_log_value_0,
    1: _decode_transaction_log_value_1,
}


def _encode_transaction_log_value_0(m: TransactionLogValue, out: bytearray) -> None:
    out += _write_qhib(m.producer_id, m.producer_epoch, m.transaction_timeout_ms, m.transaction_status)
    each_1 = m.transaction_partitions
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.topic)
            each_2 = each_1_m.partition_ids
            out += _write_i(len(each_2))
            out += pack(f">{len(each_2)}i", *each_2)
    out += _write_qq(m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms)


def _encode_transaction_log_value_1(m: TransactionLogValue, out: bytearray) -> None:
    out += _write_qhib(m.producer_id, m.producer_epoch, m.transaction_timeout_ms, m.transaction_status)
    each_1 = m.transaction_partitions
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.topic)
            each_2 = each_1_m.partition_ids
            write_varint(out, len(each_2) + 1)
            out += pack(f">{len(each_2)}i", *each_2)
            out.append(0)
    out += _write_qq(m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms)
    given_3 = m.previous_producer_id != -1
    given_4 = m.next_producer_id != -1
    given_5 = m.client_transaction_version != 0
    given_6 = m.next_producer_epoch != -1
    out.append(given_3 + given_4 + given_5 + given_6)
    if given_3:
        kept_7 = out
        out = bytearray()
        out += _write_q(m.previous_producer_id)
        write_varint(kept_7, 0)
        write_varint(kept_7, len(out))
        kept_7 += out
        out = kept_7
    if given_4:
        kept_8 = out
        out = bytearray()
        out += _write_q(m.next_producer_id)
        write_varint(kept_8, 1)
        write_varint(kept_8, len(out))
        kept_8 += out
        out = kept_8
    if given_5:
        kept_9 = out
        out = bytearray()
        out += _write_h(m.client_transaction_version)
        write_varint(kept_9, 2)
        write_varint(kept_9, len(out))
        kept_9 += out
        out = kept_9
    if given_6:
        kept_10 = out
        out = bytearray()
        out += _write_h(m.next_producer_epoch)
        write_varint(kept_10, 3)
        write_varint(kept_10, len(out))
        kept_10 += out
        out = kept_10


ENCODE_TRANSACTION_LOG_VALUE = {
    0: _encode_transaction_log_value_0,
    1: _encode_transaction_log_value_1,
}
