"""ListOffsets: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ib = Struct(">ib")
_read_ib = _struct_ib.unpack_from
_write_ib = _struct_ib.pack
_struct_ihqq = Struct(">ihqq")
_read_ihqq = _struct_ihqq.unpack_from
_write_ihqq = _struct_ihqq.pack
_struct_ihqqi = Struct(">ihqqi")
_read_ihqqi = _struct_ihqqi.unpack_from
_write_ihqqi = _struct_ihqqi.pack
_struct_iiq = Struct(">iiq")
_read_iiq = _struct_iiq.unpack_from
_write_iiq = _struct_iiq.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack


class ListOffsetsPartition(Message):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp",)

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp


class ListOffsetsTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[ListOffsetsPartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is NEW else partitions


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms",)

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = NEW,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is NEW else topics
        self.timeout_ms: int = timeout_ms


class ListOffsetsPartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch


class ListOffsetsTopicResponse(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[ListOffsetsPartitionResponse] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is NEW else partitions


class ListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is NEW else topics


def _decode_list_offsets_request_1(b: memoryview, p: int = 0) -> ListOffsetsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (replica_id_1,) = _read_i(b, p)
    p += 4
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
            partition_index_3, timestamp_3 = _read_iq(b, p)
            p += 12
            partitions_2.append(ListOffsetsPartition(partition_index_3, -1, timestamp_3))
        topics_1.append(ListOffsetsTopic(name_2, partitions_2))
    return ListOffsetsRequest(replica_id_1, 0, topics_1, 0)


def _decode_list_offsets_request_2(b: memoryview, p: int = 0) -> ListOffsetsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, isolation_level_1 = _read_ib(b, p)
    p += 5
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
            partition_index_3, timestamp_3 = _read_iq(b, p)
            p += 12
            partitions_2.append(ListOffsetsPartition(partition_index_3, -1, timestamp_3))
        topics_1.append(ListOffsetsTopic(name_2, partitions_2))
    return ListOffsetsRequest(replica_id_1, isolation_level_1, topics_1, 0)


def _decode_list_offsets_request_4(b: memoryview, p: int = 0) -> ListOffsetsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, isolation_level_1 = _read_ib(b, p)
    p += 5
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
        if n * 16 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, current_leader_epoch_3, timestamp_3 = _read_iiq(b, p)
            p += 16
            partitions_2.append(ListOffsetsPartition(partition_index_3, current_leader_epoch_3, timestamp_3))
        topics_1.append(ListOffsetsTopic(name_2, partitions_2))
    return ListOffsetsRequest(replica_id_1, isolation_level_1, topics_1, 0)


def _decode_list_offsets_request_6(b: memoryview, p: int = 0) -> ListOffsetsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, isolation_level_1 = _read_ib(b, p)
    p += 5
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
        if n * 17 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, current_leader_epoch_3, timestamp_3 = _read_iiq(b, p)
            p += 16
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ListOffsetsPartition(partition_index_3, current_leader_epoch_3, timestamp_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ListOffsetsTopic(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListOffsetsRequest(replica_id_1, isolation_level_1, topics_1, 0)


def _decode_list_offsets_request_10(b: memoryview, p: int = 0) -> ListOffsetsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, isolation_level_1 = _read_ib(b, p)
    p += 5
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
        if n * 17 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, current_leader_epoch_3, timestamp_3 = _read_iiq(b, p)
            p += 16
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ListOffsetsPartition(partition_index_3, current_leader_epoch_3, timestamp_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ListOffsetsTopic(name_2, partitions_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListOffsetsRequest(replica_id_1, isolation_level_1, topics_1, timeout_ms_1)


DECODE_LIST_OFFSETS_REQUEST = {
    1: _decode_list_offsets_request_1,
    2: _decode_list_offsets_request_2,
    3: _decode_list_offsets_request_2,
    4: _decode_list_offsets_request_4,
    5: _decode_list_offsets_request_4,
    6: _decode_list_offsets_request_6,
    7: _decode_list_offsets_request_6,
    8: _decode_list_offsets_request_6,
    9: _decode_list_offsets_request_6,
    10: _decode_list_offsets_request_10,
    11: _decode_list_offsets_request_10,
}


def _encode_list_offsets_request_1(m: ListOffsetsRequest, out: bytearray) -> None:
    out += _write_i(m.replica_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.timestamp)


def _encode_list_offsets_request_2(m: ListOffsetsRequest, out: bytearray) -> None:
    out += _write_ib(m.replica_id, m.isolation_level)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.timestamp)


def _encode_list_offsets_request_4(m: ListOffsetsRequest, out: bytearray) -> None:
    out += _write_ib(m.replica_id, m.isolation_level)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iiq(each_2_m.partition_index, each_2_m.current_leader_epoch, each_2_m.timestamp)


def _encode_list_offsets_request_6(m: ListOffsetsRequest, out: bytearray) -> None:
    out += _write_ib(m.replica_id, m.isolation_level)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiq(each_2_m.partition_index, each_2_m.current_leader_epoch, each_2_m.timestamp)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_list_offsets_request_10(m: ListOffsetsRequest, out: bytearray) -> None:
    out += _write_ib(m.replica_id, m.isolation_level)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiq(each_2_m.partition_index, each_2_m.current_leader_epoch, each_2_m.timestamp)
            out.append(0)
        out.append(0)
    out += _write_i(m.timeout_ms)
    out.append(0)


ENCODE_LIST_OFFSETS_REQUEST = {
    1: _encode_list_offsets_request_1,
    2: _encode_list_offsets_request_2,
    3: _encode_list_offsets_request_2,
    4: _encode_list_offsets_request_4,
    5: _encode_list_offsets_request_4,
    6: _encode_list_offsets_request_6,
    7: _encode_list_offsets_request_6,
    8: _encode_list_offsets_request_6,
    9: _encode_list_offsets_request_6,
    10: _encode_list_offsets_request_10,
    11: _encode_list_offsets_request_10,
}


def _decode_list_offsets_response_1(b: memoryview, p: int = 0) -> ListOffsetsResponse:
    end = len(b)
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
        if n * 22 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, timestamp_3, offset_3 = _read_ihqq(b, p)
            p += 22
            partitions_2.append(ListOffsetsPartitionResponse(partition_index_3, error_code_3, timestamp_3, offset_3, -1))
        topics_1.append(ListOffsetsTopicResponse(name_2, partitions_2))
    return ListOffsetsResponse(0, topics_1)


def _decode_list_offsets_response_2(b: memoryview, p: int = 0) -> ListOffsetsResponse:
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
        if n * 22 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, timestamp_3, offset_3 = _read_ihqq(b, p)
            p += 22
            partitions_2.append(ListOffsetsPartitionResponse(partition_index_3, error_code_3, timestamp_3, offset_3, -1))
        topics_1.append(ListOffsetsTopicResponse(name_2, partitions_2))
    return ListOffsetsResponse(throttle_time_ms_1, topics_1)


def _decode_list_offsets_response_4(b: memoryview, p: int = 0) -> ListOffsetsResponse:
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
        if n * 26 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, timestamp_3, offset_3, leader_epoch_3 = _read_ihqqi(b, p)
            p += 26
            partitions_2.append(ListOffsetsPartitionResponse(partition_index_3, error_code_3, timestamp_3, offset_3, leader_epoch_3))
        topics_1.append(ListOffsetsTopicResponse(name_2, partitions_2))
    return ListOffsetsResponse(throttle_time_ms_1, topics_1)


def _decode_list_offsets_response_6(b: memoryview, p: int = 0) -> ListOffsetsResponse:
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
        if n * 27 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, timestamp_3, offset_3, leader_epoch_3 = _read_ihqqi(b, p)
            p += 26
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ListOffsetsPartitionResponse(partition_index_3, error_code_3, timestamp_3, offset_3, leader_epoch_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ListOffsetsTopicResponse(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListOffsetsResponse(throttle_time_ms_1, topics_1)


DECODE_LIST_OFFSETS_RESPONSE = {
    1: _decode_list_offsets_response_1,
    2: _decode_list_offsets_response_2,
    3: _decode_list_offsets_response_2,
    4: _decode_list_offsets_response_4,
    5: _decode_list_offsets_response_4,
    6: _decode_list_offsets_response_6,
    7: _decode_list_offsets_response_6,
    8: _decode_list_offsets_response_6,
    9: _decode_list_offsets_response_6,
    10: _decode_list_offsets_response_6,
    11: _decode_list_offsets_response_6,
}


def _encode_list_offsets_response_1(m: ListOffsetsResponse, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.timestamp, each_2_m.offset)


def _encode_list_offsets_response_2(m: ListOffsetsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.timestamp, each_2_m.offset)


def _encode_list_offsets_response_4(m: ListOffsetsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqqi(each_2_m.partition_index, each_2_m.error_code, each_2_m.timestamp, each_2_m.offset, each_2_m.leader_epoch)


def _encode_list_offsets_response_6(m: ListOffsetsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqi(each_2_m.partition_index, each_2_m.error_code, each_2_m.timestamp, each_2_m.offset, each_2_m.leader_epoch)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_LIST_OFFSETS_RESPONSE = {
    1: _encode_list_offsets_response_1,
    2: _encode_list_offsets_response_2,
    3: _encode_list_offsets_response_2,
    4: _encode_list_offsets_response_4,
    5: _encode_list_offsets_response_4,
    6: _encode_list_offsets_response_6,
    7: _encode_list_offsets_response_6,
    8: _encode_list_offsets_response_6,
    9: _encode_list_offsets_response_6,
    10: _encode_list_offsets_response_6,
    11: _encode_list_offsets_response_6,
}
