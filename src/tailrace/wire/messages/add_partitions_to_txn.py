"""AddPartitionsToTxn: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_qh = Struct(">qh")
_read_qh = _struct_qh.unpack_from
_write_qh = _struct_qh.pack
_struct_qht = Struct(">qh?")
_read_qht = _struct_qht.unpack_from
_write_qht = _struct_qht.pack


class AddPartitionsToTxnTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is NEW else partitions


class AddPartitionsToTxnTransaction(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics",)

    def __init__(
        self,
        transactional_id: str = '',
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = NEW,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.verify_only: bool = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is NEW else topics


class AddPartitionsToTxnRequest(Message):
    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics",)

    def __init__(
        self,
        transactions: list[AddPartitionsToTxnTransaction] = NEW,
        v3_and_below_transactional_id: str = '',
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = NEW,
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is NEW else transactions
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = [] if v3_and_below_topics is NEW else v3_and_below_topics


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = ("name", "results_by_partition",)

    def __init__(
        self,
        name: str = '',
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = NEW,
    ) -> None:
        self.name: str = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = [] if results_by_partition is NEW else results_by_partition


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = ("partition_index", "partition_error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code


class AddPartitionsToTxnResult(Message):
    __slots__ = ("transactional_id", "topic_results",)

    def __init__(
        self,
        transactional_id: str = '',
        topic_results: list[AddPartitionsToTxnTopicResult] = NEW,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is NEW else topic_results


class AddPartitionsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = NEW,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = [] if results_by_transaction is NEW else results_by_transaction
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = [] if results_by_topic_v3_and_below is NEW else results_by_topic_v3_and_below


def _decode_add_partitions_to_txn_request_0(b: memoryview, p: int = 0) -> AddPartitionsToTxnRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("v3_and_below_transactional_id is null")
    q = p + n
    if q > end:
        raise fail("v3_and_below_transactional_id past the end")
    v3_and_below_transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    v3_and_below_producer_id_1, v3_and_below_producer_epoch_1 = _read_qh(b, p)
    p += 10
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("v3_and_below_topics is null")
    if n * 6 > end - p:
        raise fail("v3_and_below_topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    v3_and_below_topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        v3_and_below_topics_1.append(AddPartitionsToTxnTopic(name_2, partitions_2))
    return AddPartitionsToTxnRequest([], v3_and_below_transactional_id_1, v3_and_below_producer_id_1, v3_and_below_producer_epoch_1, v3_and_below_topics_1)


def _decode_add_partitions_to_txn_request_3(b: memoryview, p: int = 0) -> AddPartitionsToTxnRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("v3_and_below_transactional_id is null")
    q = p + n
    if q > end:
        raise fail("v3_and_below_transactional_id past the end")
    v3_and_below_transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    v3_and_below_producer_id_1, v3_and_below_producer_epoch_1 = _read_qh(b, p)
    p += 10
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("v3_and_below_topics is null")
    if n * 3 > end - p:
        raise fail("v3_and_below_topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    v3_and_below_topics_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
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
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        v3_and_below_topics_1.append(AddPartitionsToTxnTopic(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AddPartitionsToTxnRequest([], v3_and_below_transactional_id_1, v3_and_below_producer_id_1, v3_and_below_producer_epoch_1, v3_and_below_topics_1)


def _decode_add_partitions_to_txn_request_4(b: memoryview, p: int = 0) -> AddPartitionsToTxnRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("transactions is null")
    if n * 14 > end - p:
        raise fail("transactions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    transactions_1 = []
    for _ in range(n):
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
        producer_id_2, producer_epoch_2, verify_only_2 = _read_qht(b, p)
        p += 11
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topics is null")
        if n * 3 > end - p:
            raise fail("topics has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        topics_2 = []
        for _ in range(n):
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("name is null")
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_3 = str(b[p:q], "utf-8")
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
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partitions_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(AddPartitionsToTxnTopic(name_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        transactions_1.append(AddPartitionsToTxnTransaction(transactional_id_2, producer_id_2, producer_epoch_2, verify_only_2, topics_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AddPartitionsToTxnRequest(transactions_1, '', 0, 0, [])


DECODE_ADD_PARTITIONS_TO_TXN_REQUEST = {
    0: _decode_add_partitions_to_txn_request_0,
    1: _decode_add_partitions_to_txn_request_0,
    2: _decode_add_partitions_to_txn_request_0,
    3: _decode_add_partitions_to_txn_request_3,
    4: _decode_add_partitions_to_txn_request_4,
    5: _decode_add_partitions_to_txn_request_4,
}


def _encode_add_partitions_to_txn_request_0(m: AddPartitionsToTxnRequest, out: bytearray) -> None:
    write_string(out, m.v3_and_below_transactional_id)
    out += _write_qh(m.v3_and_below_producer_id, m.v3_and_below_producer_epoch)
    each_1 = m.v3_and_below_topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        out += pack(f">{len(each_2)}i", *each_2)


def _encode_add_partitions_to_txn_request_3(m: AddPartitionsToTxnRequest, out: bytearray) -> None:
    write_compact_string(out, m.v3_and_below_transactional_id)
    out += _write_qh(m.v3_and_below_producer_id, m.v3_and_below_producer_epoch)
    each_1 = m.v3_and_below_topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        out.append(0)
    out.append(0)


def _encode_add_partitions_to_txn_request_4(m: AddPartitionsToTxnRequest, out: bytearray) -> None:
    each_1 = m.transactions
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.transactional_id)
        out += _write_qht(each_1_m.producer_id, each_1_m.producer_epoch, each_1_m.verify_only)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ADD_PARTITIONS_TO_TXN_REQUEST = {
    0: _encode_add_partitions_to_txn_request_0,
    1: _encode_add_partitions_to_txn_request_0,
    2: _encode_add_partitions_to_txn_request_0,
    3: _encode_add_partitions_to_txn_request_3,
    4: _encode_add_partitions_to_txn_request_4,
    5: _encode_add_partitions_to_txn_request_4,
}


def _decode_add_partitions_to_txn_response_0(b: memoryview, p: int = 0) -> AddPartitionsToTxnResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results_by_topic_v3_and_below is null")
    if n * 6 > end - p:
        raise fail("results_by_topic_v3_and_below has more elements than bytes")
    results_by_topic_v3_and_below_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("results_by_partition is null")
        if n * 6 > end - p:
            raise fail("results_by_partition has more elements than bytes")
        results_by_partition_2 = []
        for _ in range(n):
            partition_index_3, partition_error_code_3 = _read_ih(b, p)
            p += 6
            results_by_partition_2.append(AddPartitionsToTxnPartitionResult(partition_index_3, partition_error_code_3))
        results_by_topic_v3_and_below_1.append(AddPartitionsToTxnTopicResult(name_2, results_by_partition_2))
    return AddPartitionsToTxnResponse(throttle_time_ms_1, 0, [], results_by_topic_v3_and_below_1)


def _decode_add_partitions_to_txn_response_3(b: memoryview, p: int = 0) -> AddPartitionsToTxnResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results_by_topic_v3_and_below is null")
    if n * 3 > end - p:
        raise fail("results_by_topic_v3_and_below has more elements than bytes")
    results_by_topic_v3_and_below_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("results_by_partition is null")
        if n * 7 > end - p:
            raise fail("results_by_partition has more elements than bytes")
        results_by_partition_2 = []
        for _ in range(n):
            partition_index_3, partition_error_code_3 = _read_ih(b, p)
            p += 6
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            results_by_partition_2.append(AddPartitionsToTxnPartitionResult(partition_index_3, partition_error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_by_topic_v3_and_below_1.append(AddPartitionsToTxnTopicResult(name_2, results_by_partition_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AddPartitionsToTxnResponse(throttle_time_ms_1, 0, [], results_by_topic_v3_and_below_1)


def _decode_add_partitions_to_txn_response_4(b: memoryview, p: int = 0) -> AddPartitionsToTxnResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results_by_transaction is null")
    if n * 3 > end - p:
        raise fail("results_by_transaction has more elements than bytes")
    results_by_transaction_1 = []
    for _ in range(n):
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
            raise fail("topic_results is null")
        if n * 3 > end - p:
            raise fail("topic_results has more elements than bytes")
        topic_results_2 = []
        for _ in range(n):
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("name is null")
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("results_by_partition is null")
            if n * 7 > end - p:
                raise fail("results_by_partition has more elements than bytes")
            results_by_partition_3 = []
            for _ in range(n):
                partition_index_4, partition_error_code_4 = _read_ih(b, p)
                p += 6
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                results_by_partition_3.append(AddPartitionsToTxnPartitionResult(partition_index_4, partition_error_code_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topic_results_2.append(AddPartitionsToTxnTopicResult(name_3, results_by_partition_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_by_transaction_1.append(AddPartitionsToTxnResult(transactional_id_2, topic_results_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AddPartitionsToTxnResponse(throttle_time_ms_1, error_code_1, results_by_transaction_1, [])


DECODE_ADD_PARTITIONS_TO_TXN_RESPONSE = {
    0: _decode_add_partitions_to_txn_response_0,
    1: _decode_add_partitions_to_txn_response_0,
    2: _decode_add_partitions_to_txn_response_0,
    3: _decode_add_partitions_to_txn_response_3,
    4: _decode_add_partitions_to_txn_response_4,
    5: _decode_add_partitions_to_txn_response_4,
}


def _encode_add_partitions_to_txn_response_0(m: AddPartitionsToTxnResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results_by_topic_v3_and_below
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.results_by_partition
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.partition_error_code)


def _encode_add_partitions_to_txn_response_3(m: AddPartitionsToTxnResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results_by_topic_v3_and_below
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.results_by_partition
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.partition_error_code)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_add_partitions_to_txn_response_4(m: AddPartitionsToTxnResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.results_by_transaction
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.transactional_id)
        each_2 = each_1_m.topic_results
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.results_by_partition
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_ih(each_3_m.partition_index, each_3_m.partition_error_code)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ADD_PARTITIONS_TO_TXN_RESPONSE = {
    0: _encode_add_partitions_to_txn_response_0,
    1: _encode_add_partitions_to_txn_response_0,
    2: _encode_add_partitions_to_txn_response_0,
    3: _encode_add_partitions_to_txn_response_3,
    4: _encode_add_partitions_to_txn_response_4,
    5: _encode_add_partitions_to_txn_response_4,
}
