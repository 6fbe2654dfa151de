"""CreatePartitions: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_it = Struct(">i?")
_read_it = _struct_it.unpack_from
_write_it = _struct_it.pack


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)

    def __init__(
        self,
        broker_ids: list[int] = NEW,
    ) -> None:
        self.broker_ids: list[int] = [] if broker_ids is NEW else broker_ids


class CreatePartitionsTopic(Message):
    __slots__ = ("name", "count", "assignments",)

    def __init__(
        self,
        name: str = '',
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = NEW,
    ) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: list[CreatePartitionsAssignment] | None = [] if assignments is NEW else assignments


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only",)

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] = NEW,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is NEW else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


class CreatePartitionsTopicResult(Message):
    __slots__ = ("name", "error_code", "error_message",)

    def __init__(
        self,
        name: str = '',
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class CreatePartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is NEW else results


def _decode_create_partitions_request_0(b: memoryview, p: int = 0) -> CreatePartitionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 10 > end - p:
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
        (count_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            assignments_2 = None
        else:
            if n * 4 > end - p:
                raise fail("assignments has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            assignments_2 = []
            for _ in range(n):
                (n,) = _read_i(b, p)
                p += 4
                if n < 0:
                    raise fail("broker_ids is null")
                if n * 4 > end - p:
                    raise fail("broker_ids has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                broker_ids_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                assignments_2.append(CreatePartitionsAssignment(broker_ids_3))
        topics_1.append(CreatePartitionsTopic(name_2, count_2, assignments_2))
    timeout_ms_1, validate_only_1 = _read_it(b, p)
    p += 5
    return CreatePartitionsRequest(topics_1, timeout_ms_1, validate_only_1)


def _decode_create_partitions_request_2(b: memoryview, p: int = 0) -> CreatePartitionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 7 > end - p:
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
        (count_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            assignments_2 = None
        else:
            if n * 2 > end - p:
                raise fail("assignments has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            assignments_2 = []
            for _ in range(n):
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("broker_ids is null")
                if n * 4 > end - p:
                    raise fail("broker_ids has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                broker_ids_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                assignments_2.append(CreatePartitionsAssignment(broker_ids_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(CreatePartitionsTopic(name_2, count_2, assignments_2))
    timeout_ms_1, validate_only_1 = _read_it(b, p)
    p += 5
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreatePartitionsRequest(topics_1, timeout_ms_1, validate_only_1)


DECODE_CREATE_PARTITIONS_REQUEST = {
    0: _decode_create_partitions_request_0,
    1: _decode_create_partitions_request_0,
    2: _decode_create_partitions_request_2,
    3: _decode_create_partitions_request_2,
}


def _encode_create_partitions_request_0(m: CreatePartitionsRequest, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        out += _write_i(each_1_m.count)
        each_2 = each_1_m.assignments
        if each_2 is None:
            out += b"\xff\xff\xff\xff"
        else:
            out += _write_i(len(each_2))
            for each_2_m in each_2:
                each_3 = each_2_m.broker_ids
                out += _write_i(len(each_3))
                out += pack(f">{len(each_3)}i", *each_3)
    out += _write_it(m.timeout_ms, m.validate_only)


def _encode_create_partitions_request_2(m: CreatePartitionsRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_i(each_1_m.count)
        each_2 = each_1_m.assignments
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                each_3 = each_2_m.broker_ids
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
                out.append(0)
        out.append(0)
    out += _write_it(m.timeout_ms, m.validate_only)
    out.append(0)


ENCODE_CREATE_PARTITIONS_REQUEST = {
    0: _encode_create_partitions_request_0,
    1: _encode_create_partitions_request_0,
    2: _encode_create_partitions_request_2,
    3: _encode_create_partitions_request_2,
}


def _decode_create_partitions_response_0(b: memoryview, p: int = 0) -> CreatePartitionsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results is null")
    if n * 6 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
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
        (error_code_2,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            error_message_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("error_message past the end")
            error_message_2 = str(b[p:q], "utf-8")
            p = q
        results_1.append(CreatePartitionsTopicResult(name_2, error_code_2, error_message_2))
    return CreatePartitionsResponse(throttle_time_ms_1, results_1)


def _decode_create_partitions_response_2(b: memoryview, p: int = 0) -> CreatePartitionsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results is null")
    if n * 5 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
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
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            error_message_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("error_message past the end")
            error_message_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(CreatePartitionsTopicResult(name_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreatePartitionsResponse(throttle_time_ms_1, results_1)


DECODE_CREATE_PARTITIONS_RESPONSE = {
    0: _decode_create_partitions_response_0,
    1: _decode_create_partitions_response_0,
    2: _decode_create_partitions_response_2,
    3: _decode_create_partitions_response_2,
}


def _encode_create_partitions_response_0(m: CreatePartitionsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)


def _encode_create_partitions_response_2(m: CreatePartitionsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


ENCODE_CREATE_PARTITIONS_RESPONSE = {
    0: _encode_create_partitions_response_0,
    1: _encode_create_partitions_response_0,
    2: _encode_create_partitions_response_2,
    3: _encode_create_partitions_response_2,
}
