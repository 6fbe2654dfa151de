"""OffsetDelete: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_hi = Struct(">hi")
_read_hi = _struct_hi.unpack_from
_write_hi = _struct_hi.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index


class OffsetDeleteRequestTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[OffsetDeleteRequestPartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is NEW else partitions


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics",)

    def __init__(
        self,
        group_id: str = '',
        topics: list[OffsetDeleteRequestTopic] = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is NEW else topics


class OffsetDeleteResponsePartition(Message):
    __slots__ = ("partition_index", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class OffsetDeleteResponseTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[OffsetDeleteResponsePartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is NEW else partitions


class OffsetDeleteResponse(Message):
    __slots__ = ("error_code", "throttle_time_ms", "topics",)

    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is NEW else topics


def _decode_offset_delete_request_0(b: memoryview, p: int = 0) -> OffsetDeleteRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
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
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            partitions_2.append(OffsetDeleteRequestPartition(partition_index_3))
        topics_1.append(OffsetDeleteRequestTopic(name_2, partitions_2))
    return OffsetDeleteRequest(group_id_1, topics_1)


DECODE_OFFSET_DELETE_REQUEST = {
    0: _decode_offset_delete_request_0,
}


def _encode_offset_delete_request_0(m: OffsetDeleteRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)


ENCODE_OFFSET_DELETE_REQUEST = {
    0: _encode_offset_delete_request_0,
}


def _decode_offset_delete_response_0(b: memoryview, p: int = 0) -> OffsetDeleteResponse:
    end = len(b)
    error_code_1, throttle_time_ms_1 = _read_hi(b, p)
    p += 6
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
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
            partitions_2.append(OffsetDeleteResponsePartition(partition_index_3, error_code_3))
        topics_1.append(OffsetDeleteResponseTopic(name_2, partitions_2))
    return OffsetDeleteResponse(error_code_1, throttle_time_ms_1, topics_1)


DECODE_OFFSET_DELETE_RESPONSE = {
    0: _decode_offset_delete_response_0,
}


def _encode_offset_delete_response_0(m: OffsetDeleteResponse, out: bytearray) -> None:
    out += _write_hi(m.error_code, m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)


ENCODE_OFFSET_DELETE_RESPONSE = {
    0: _encode_offset_delete_response_0,
}
