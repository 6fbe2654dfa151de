"""DescribeProducers: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_qiiqiq = Struct(">qiiqiq")
_read_qiiqiq = _struct_qiiqiq.unpack_from
_write_qiiqiq = _struct_qiiqiq.pack


class TopicRequest(Message):
    __slots__ = ("name", "partition_indexes",)

    def __init__(
        self,
        name: str = '',
        partition_indexes: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is NEW else partition_indexes


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[TopicRequest] = NEW,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is NEW else topics


class ProducerState(Message):
    __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset",)

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset


class PartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: list[ProducerState] = [] if active_producers is NEW else active_producers


class TopicResponse(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[PartitionResponse] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[PartitionResponse] = [] if partitions is NEW else partitions


class DescribeProducersResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TopicResponse] = [] if topics is NEW else topics


def _decode_describe_producers_request_0(b: memoryview, p: int = 0) -> DescribeProducersRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
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
    topics_1 = []
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
            raise fail("partition_indexes is null")
        if n * 4 > end - p:
            raise fail("partition_indexes has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partition_indexes_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(TopicRequest(name_2, partition_indexes_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeProducersRequest(topics_1)


DECODE_DESCRIBE_PRODUCERS_REQUEST = {
    0: _decode_describe_producers_request_0,
}


def _encode_describe_producers_request_0(m: DescribeProducersRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partition_indexes
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_PRODUCERS_REQUEST = {
    0: _encode_describe_producers_request_0,
}


def _decode_describe_producers_response_0(b: memoryview, p: int = 0) -> DescribeProducersResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 3 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
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
        if n * 9 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                error_message_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("error_message past the end")
                error_message_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("active_producers is null")
            if n * 37 > end - p:
                raise fail("active_producers has more elements than bytes")
            active_producers_3 = []
            for _ in range(n):
                producer_id_4, producer_epoch_4, last_sequence_4, last_timestamp_4, coordinator_epoch_4, current_txn_start_offset_4 = _read_qiiqiq(b, p)
                p += 36
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                active_producers_3.append(ProducerState(producer_id_4, producer_epoch_4, last_sequence_4, last_timestamp_4, coordinator_epoch_4, current_txn_start_offset_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(PartitionResponse(partition_index_3, error_code_3, error_message_3, active_producers_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(TopicResponse(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeProducersResponse(throttle_time_ms_1, topics_1)


DECODE_DESCRIBE_PRODUCERS_RESPONSE = {
    0: _decode_describe_producers_response_0,
}


def _encode_describe_producers_response_0(m: DescribeProducersResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            each_3 = each_2_m.active_producers
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_qiiqiq(each_3_m.producer_id, each_3_m.producer_epoch, each_3_m.last_sequence, each_3_m.last_timestamp, each_3_m.coordinator_epoch, each_3_m.current_txn_start_offset)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_PRODUCERS_RESPONSE = {
    0: _encode_describe_producers_response_0,
}
