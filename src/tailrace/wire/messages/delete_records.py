"""DeleteRecords: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_iqh = Struct(">iqh")
_read_iqh = _struct_iqh.unpack_from
_write_iqh = _struct_iqh.pack


class DeleteRecordsPartition(Message):
    __slots__ = ("partition_index", "offset",)

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset


class DeleteRecordsTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[DeleteRecordsPartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is NEW else partitions


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms",)

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] = NEW,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is NEW else topics
        self.timeout_ms: int = timeout_ms


class DeleteRecordsPartitionResult(Message):
    __slots__ = ("partition_index", "low_watermark", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.low_watermark: int = low_watermark
        self.error_code: int = error_code


class DeleteRecordsTopicResult(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[DeleteRecordsPartitionResult] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is NEW else partitions


class DeleteRecordsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is NEW else topics


def _decode_delete_records_request_0(b: memoryview, p: int = 0) -> DeleteRecordsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
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
        if n * 12 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, offset_3 = _read_iq(b, p)
            p += 12
            partitions_2.append(DeleteRecordsPartition(partition_index_3, offset_3))
        topics_1.append(DeleteRecordsTopic(name_2, partitions_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    return DeleteRecordsRequest(topics_1, timeout_ms_1)


def _decode_delete_records_request_2(b: memoryview, p: int = 0) -> DeleteRecordsRequest:
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
            raise fail("partitions is null")
        if n * 13 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, offset_3 = _read_iq(b, p)
            p += 12
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(DeleteRecordsPartition(partition_index_3, offset_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(DeleteRecordsTopic(name_2, partitions_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteRecordsRequest(topics_1, timeout_ms_1)


DECODE_DELETE_RECORDS_REQUEST = {
    0: _decode_delete_records_request_0,
    1: _decode_delete_records_request_0,
    2: _decode_delete_records_request_2,
}


def _encode_delete_records_request_0(m: DeleteRecordsRequest, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.offset)
    out += _write_i(m.timeout_ms)


def _encode_delete_records_request_2(m: DeleteRecordsRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.offset)
            out.append(0)
        out.append(0)
    out += _write_i(m.timeout_ms)
    out.append(0)


ENCODE_DELETE_RECORDS_REQUEST = {
    0: _encode_delete_records_request_0,
    1: _encode_delete_records_request_0,
    2: _encode_delete_records_request_2,
}


def _decode_delete_records_response_0(b: memoryview, p: int = 0) -> DeleteRecordsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
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
        if n * 14 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, low_watermark_3, error_code_3 = _read_iqh(b, p)
            p += 14
            partitions_2.append(DeleteRecordsPartitionResult(partition_index_3, low_watermark_3, error_code_3))
        topics_1.append(DeleteRecordsTopicResult(name_2, partitions_2))
    return DeleteRecordsResponse(throttle_time_ms_1, topics_1)


def _decode_delete_records_response_2(b: memoryview, p: int = 0) -> DeleteRecordsResponse:
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
        if n * 15 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, low_watermark_3, error_code_3 = _read_iqh(b, p)
            p += 14
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(DeleteRecordsPartitionResult(partition_index_3, low_watermark_3, error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(DeleteRecordsTopicResult(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteRecordsResponse(throttle_time_ms_1, topics_1)


DECODE_DELETE_RECORDS_RESPONSE = {
    0: _decode_delete_records_response_0,
    1: _decode_delete_records_response_0,
    2: _decode_delete_records_response_2,
}


def _encode_delete_records_response_0(m: DeleteRecordsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqh(each_2_m.partition_index, each_2_m.low_watermark, each_2_m.error_code)


def _encode_delete_records_response_2(m: DeleteRecordsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iqh(each_2_m.partition_index, each_2_m.low_watermark, each_2_m.error_code)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DELETE_RECORDS_RESPONSE = {
    0: _encode_delete_records_response_0,
    1: _encode_delete_records_response_0,
    2: _encode_delete_records_response_2,
}
