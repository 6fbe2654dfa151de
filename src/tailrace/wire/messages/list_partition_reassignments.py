"""ListPartitionReassignments: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class ListPartitionReassignmentsTopics(Message):
    __slots__ = ("name", "partition_indexes",)

    def __init__(
        self,
        name: str = '',
        partition_indexes: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is NEW else partition_indexes


class ListPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "topics",)

    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ListPartitionReassignmentsTopics] | None = topics


class OngoingPartitionReassignment(Message):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas",)

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] = NEW,
        adding_replicas: list[int] = NEW,
        removing_replicas: list[int] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] = [] if replicas is NEW else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is NEW else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is NEW else removing_replicas


class OngoingTopicReassignment(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[OngoingPartitionReassignment] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is NEW else partitions


class ListPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        topics: list[OngoingTopicReassignment] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[OngoingTopicReassignment] = [] if topics is NEW else topics


def _decode_list_partition_reassignments_request_0(b: memoryview, p: int = 0) -> ListPartitionReassignmentsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topics_1 = None
    else:
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
            topics_1.append(ListPartitionReassignmentsTopics(name_2, partition_indexes_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListPartitionReassignmentsRequest(timeout_ms_1, topics_1)


DECODE_LIST_PARTITION_REASSIGNMENTS_REQUEST = {
    0: _decode_list_partition_reassignments_request_0,
}


def _encode_list_partition_reassignments_request_0(m: ListPartitionReassignmentsRequest, out: bytearray) -> None:
    out += _write_i(m.timeout_ms)
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.name)
            each_2 = each_1_m.partition_indexes
            write_varint(out, len(each_2) + 1)
            out += pack(f">{len(each_2)}i", *each_2)
            out.append(0)
    out.append(0)


ENCODE_LIST_PARTITION_REASSIGNMENTS_REQUEST = {
    0: _encode_list_partition_reassignments_request_0,
}


def _decode_list_partition_reassignments_response_0(b: memoryview, p: int = 0) -> ListPartitionReassignmentsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        error_message_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("error_message past the end")
        error_message_1 = str(b[p:q], "utf-8")
        p = q
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
        if n * 8 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("replicas is null")
            if n * 4 > end - p:
                raise fail("replicas has more elements than bytes")
            replicas_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("adding_replicas is null")
            if n * 4 > end - p:
                raise fail("adding_replicas has more elements than bytes")
            adding_replicas_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("removing_replicas is null")
            if n * 4 > end - p:
                raise fail("removing_replicas has more elements than bytes")
            removing_replicas_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OngoingPartitionReassignment(partition_index_3, replicas_3, adding_replicas_3, removing_replicas_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OngoingTopicReassignment(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListPartitionReassignmentsResponse(throttle_time_ms_1, error_code_1, error_message_1, topics_1)


DECODE_LIST_PARTITION_REASSIGNMENTS_RESPONSE = {
    0: _decode_list_partition_reassignments_response_0,
}


def _encode_list_partition_reassignments_response_0(m: ListPartitionReassignmentsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.replicas
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            each_4 = each_2_m.adding_replicas
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_2_m.removing_replicas
            write_varint(out, len(each_5) + 1)
            out += pack(f">{len(each_5)}i", *each_5)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_LIST_PARTITION_REASSIGNMENTS_RESPONSE = {
    0: _encode_list_partition_reassignments_response_0,
}
