"""AlterPartitionReassignments: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_it = Struct(">i?")
_read_it = _struct_it.unpack_from
_write_it = _struct_it.pack
_struct_ith = Struct(">i?h")
_read_ith = _struct_ith.unpack_from
_write_ith = _struct_ith.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class ReassignablePartition(Message):
    __slots__ = ("partition_index", "replicas",)

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] | None = replicas


class ReassignableTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[ReassignablePartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartition] = [] if partitions is NEW else partitions


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics",)

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = NEW,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is NEW else topics


class ReassignablePartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "error_message",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class ReassignableTopicResponse(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[ReassignablePartitionResponse] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is NEW else partitions


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = '',
        responses: list[ReassignableTopicResponse] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is NEW else responses


def _decode_alter_partition_reassignments_request_0(b: memoryview, p: int = 0) -> AlterPartitionReassignmentsRequest:
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
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
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
                replicas_3 = None
            else:
                if n * 4 > end - p:
                    raise fail("replicas has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                replicas_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ReassignablePartition(partition_index_3, replicas_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ReassignableTopic(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterPartitionReassignmentsRequest(timeout_ms_1, True, topics_1)


def _decode_alter_partition_reassignments_request_1(b: memoryview, p: int = 0) -> AlterPartitionReassignmentsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    timeout_ms_1, allow_replication_factor_change_1 = _read_it(b, p)
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
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
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
                replicas_3 = None
            else:
                if n * 4 > end - p:
                    raise fail("replicas has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                replicas_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ReassignablePartition(partition_index_3, replicas_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ReassignableTopic(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterPartitionReassignmentsRequest(timeout_ms_1, allow_replication_factor_change_1, topics_1)


DECODE_ALTER_PARTITION_REASSIGNMENTS_REQUEST = {
    0: _decode_alter_partition_reassignments_request_0,
    1: _decode_alter_partition_reassignments_request_1,
}


def _encode_alter_partition_reassignments_request_0(m: AlterPartitionReassignmentsRequest, out: bytearray) -> None:
    out += _write_i(m.timeout_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.replicas
            if each_3 is None:
                out.append(0)
            else:
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_alter_partition_reassignments_request_1(m: AlterPartitionReassignmentsRequest, out: bytearray) -> None:
    out += _write_it(m.timeout_ms, m.allow_replication_factor_change)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.replicas
            if each_3 is None:
                out.append(0)
            else:
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_PARTITION_REASSIGNMENTS_REQUEST = {
    0: _encode_alter_partition_reassignments_request_0,
    1: _encode_alter_partition_reassignments_request_1,
}


def _decode_alter_partition_reassignments_response_0(b: memoryview, p: int = 0) -> AlterPartitionReassignmentsResponse:
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
        raise fail("responses is null")
    if n * 3 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ReassignablePartitionResponse(partition_index_3, error_code_3, error_message_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(ReassignableTopicResponse(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterPartitionReassignmentsResponse(throttle_time_ms_1, True, error_code_1, error_message_1, responses_1)


def _decode_alter_partition_reassignments_response_1(b: memoryview, p: int = 0) -> AlterPartitionReassignmentsResponse:
    end = len(b)
    throttle_time_ms_1, allow_replication_factor_change_1, error_code_1 = _read_ith(b, p)
    p += 7
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
        raise fail("responses is null")
    if n * 3 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ReassignablePartitionResponse(partition_index_3, error_code_3, error_message_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(ReassignableTopicResponse(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterPartitionReassignmentsResponse(throttle_time_ms_1, allow_replication_factor_change_1, error_code_1, error_message_1, responses_1)


DECODE_ALTER_PARTITION_REASSIGNMENTS_RESPONSE = {
    0: _decode_alter_partition_reassignments_response_0,
    1: _decode_alter_partition_reassignments_response_1,
}


def _encode_alter_partition_reassignments_response_0(m: AlterPartitionReassignmentsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_alter_partition_reassignments_response_1(m: AlterPartitionReassignmentsResponse, out: bytearray) -> None:
    out += _write_ith(m.throttle_time_ms, m.allow_replication_factor_change, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_PARTITION_REASSIGNMENTS_RESPONSE = {
    0: _encode_alter_partition_reassignments_response_0,
    1: _encode_alter_partition_reassignments_response_1,
}
