"""DescribeTransactions: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_iqqh = Struct(">iqqh")
_read_iqqh = _struct_iqqh.unpack_from
_write_iqqh = _struct_iqqh.pack


class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids",)

    def __init__(
        self,
        transactional_ids: list[str] = NEW,
    ) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is NEW else transactional_ids


class TopicData(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is NEW else partitions


class TransactionState(Message):
    __slots__ = ("error_code", "transactional_id", "transaction_state", "transaction_timeout_ms", "transaction_start_time_ms", "producer_id", "producer_epoch", "topics",)

    def __init__(
        self,
        error_code: int = 0,
        transactional_id: str = '',
        transaction_state: str = '',
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.transactional_id: str = transactional_id
        self.transaction_state: str = transaction_state
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_start_time_ms: int = transaction_start_time_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.topics: list[TopicData] = [] if topics is NEW else topics


class DescribeTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "transaction_states",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.transaction_states: list[TransactionState] = [] if transaction_states is NEW else transaction_states


def _decode_describe_transactions_request_0(b: memoryview, p: int = 0) -> DescribeTransactionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("transactional_ids is null")
    if n > end - p:
        raise fail("transactional_ids has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    transactional_ids_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("transactional_ids is null")
        q = p + n
        if q > end:
            raise fail("transactional_ids past the end")
        transactional_ids_1_each = str(b[p:q], "utf-8")
        p = q
        transactional_ids_1.append(transactional_ids_1_each)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeTransactionsRequest(transactional_ids_1)


DECODE_DESCRIBE_TRANSACTIONS_REQUEST = {
    0: _decode_describe_transactions_request_0,
}


def _encode_describe_transactions_request_0(m: DescribeTransactionsRequest, out: bytearray) -> None:
    each_1 = m.transactional_ids
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out.append(0)


ENCODE_DESCRIBE_TRANSACTIONS_REQUEST = {
    0: _encode_describe_transactions_request_0,
}


def _decode_describe_transactions_response_0(b: memoryview, p: int = 0) -> DescribeTransactionsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("transaction_states is null")
    if n * 28 > end - p:
        raise fail("transaction_states has more elements than bytes")
    transaction_states_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("transactional_id is null")
        q = p + n
        if q > end:
            raise fail("transactional_id past the end")
        transactional_id_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("transaction_state is null")
        q = p + n
        if q > end:
            raise fail("transaction_state past the end")
        transaction_state_2 = str(b[p:q], "utf-8")
        p = q
        transaction_timeout_ms_2, transaction_start_time_ms_2, producer_id_2, producer_epoch_2 = _read_iqqh(b, p)
        p += 22
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topics is null")
        if n * 3 > end - p:
            raise fail("topics has more elements than bytes")
        topics_2 = []
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
            topic_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partitions is null")
            if n * 4 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(TopicData(topic_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        transaction_states_1.append(TransactionState(error_code_2, transactional_id_2, transaction_state_2, transaction_timeout_ms_2, transaction_start_time_ms_2, producer_id_2, producer_epoch_2, topics_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeTransactionsResponse(throttle_time_ms_1, transaction_states_1)


DECODE_DESCRIBE_TRANSACTIONS_RESPONSE = {
    0: _decode_describe_transactions_response_0,
}


def _encode_describe_transactions_response_0(m: DescribeTransactionsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.transaction_states
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_string(out, each_1_m.transactional_id)
        write_compact_string(out, each_1_m.transaction_state)
        out += _write_iqqh(each_1_m.transaction_timeout_ms, each_1_m.transaction_start_time_ms, each_1_m.producer_id, each_1_m.producer_epoch)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.topic)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_TRANSACTIONS_RESPONSE = {
    0: _encode_describe_transactions_response_0,
}
