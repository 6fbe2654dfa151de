"""SyncGroup: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class SyncGroupRequestAssignment(Message):
    __slots__ = ("member_id", "assignment",)

    def __init__(
        self,
        member_id: str = '',
        assignment: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.assignment: bytes = assignment


class SyncGroupRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments",)

    def __init__(
        self,
        group_id: str = '',
        generation_id: int = 0,
        member_id: str = '',
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is NEW else assignments


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b'',
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment


def _decode_sync_group_request_0(b: memoryview, p: int = 0) -> SyncGroupRequest:
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
    (generation_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("assignments is null")
    if n * 6 > end - p:
        raise fail("assignments has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    assignments_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        assignments_1.append(SyncGroupRequestAssignment(member_id_2, assignment_2))
    return SyncGroupRequest(group_id_1, generation_id_1, member_id_1, None, None, None, assignments_1)


def _decode_sync_group_request_3(b: memoryview, p: int = 0) -> SyncGroupRequest:
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
    (generation_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("assignments is null")
    if n * 6 > end - p:
        raise fail("assignments has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    assignments_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        assignments_1.append(SyncGroupRequestAssignment(member_id_2, assignment_2))
    return SyncGroupRequest(group_id_1, generation_id_1, member_id_1, group_instance_id_1, None, None, assignments_1)


def _decode_sync_group_request_4(b: memoryview, p: int = 0) -> SyncGroupRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (generation_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("assignments is null")
    if n * 3 > end - p:
        raise fail("assignments has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    assignments_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        assignments_1.append(SyncGroupRequestAssignment(member_id_2, assignment_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return SyncGroupRequest(group_id_1, generation_id_1, member_id_1, group_instance_id_1, None, None, assignments_1)


def _decode_sync_group_request_5(b: memoryview, p: int = 0) -> SyncGroupRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (generation_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        protocol_type_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol_type past the end")
        protocol_type_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        protocol_name_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol_name past the end")
        protocol_name_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("assignments is null")
    if n * 3 > end - p:
        raise fail("assignments has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    assignments_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        assignments_1.append(SyncGroupRequestAssignment(member_id_2, assignment_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return SyncGroupRequest(group_id_1, generation_id_1, member_id_1, group_instance_id_1, protocol_type_1, protocol_name_1, assignments_1)


DECODE_SYNC_GROUP_REQUEST = {
    0: _decode_sync_group_request_0,
    1: _decode_sync_group_request_0,
    2: _decode_sync_group_request_0,
    3: _decode_sync_group_request_3,
    4: _decode_sync_group_request_4,
    5: _decode_sync_group_request_5,
}


def _encode_sync_group_request_0(m: SyncGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_string(out, m.member_id)
    each_1 = m.assignments
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_bytes(out, each_1_m.assignment)


def _encode_sync_group_request_3(m: SyncGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_string(out, m.member_id)
    write_nullable_string(out, m.group_instance_id)
    each_1 = m.assignments
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_bytes(out, each_1_m.assignment)


def _encode_sync_group_request_4(m: SyncGroupRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    each_1 = m.assignments
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_bytes(out, each_1_m.assignment)
        out.append(0)
    out.append(0)


def _encode_sync_group_request_5(m: SyncGroupRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    write_compact_nullable_string(out, m.protocol_type)
    write_compact_nullable_string(out, m.protocol_name)
    each_1 = m.assignments
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_bytes(out, each_1_m.assignment)
        out.append(0)
    out.append(0)


ENCODE_SYNC_GROUP_REQUEST = {
    0: _encode_sync_group_request_0,
    1: _encode_sync_group_request_0,
    2: _encode_sync_group_request_0,
    3: _encode_sync_group_request_3,
    4: _encode_sync_group_request_4,
    5: _encode_sync_group_request_5,
}


def _decode_sync_group_response_0(b: memoryview, p: int = 0) -> SyncGroupResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("assignment is null")
    q = p + n
    if q > end:
        raise fail("assignment past the end")
    assignment_1 = bytes(b[p:q])
    p = q
    return SyncGroupResponse(0, error_code_1, None, None, assignment_1)


def _decode_sync_group_response_1(b: memoryview, p: int = 0) -> SyncGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("assignment is null")
    q = p + n
    if q > end:
        raise fail("assignment past the end")
    assignment_1 = bytes(b[p:q])
    p = q
    return SyncGroupResponse(throttle_time_ms_1, error_code_1, None, None, assignment_1)


def _decode_sync_group_response_4(b: memoryview, p: int = 0) -> SyncGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("assignment is null")
    q = p + n
    if q > end:
        raise fail("assignment past the end")
    assignment_1 = bytes(b[p:q])
    p = q
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return SyncGroupResponse(throttle_time_ms_1, error_code_1, None, None, assignment_1)


def _decode_sync_group_response_5(b: memoryview, p: int = 0) -> SyncGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        protocol_type_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol_type past the end")
        protocol_type_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        protocol_name_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol_name past the end")
        protocol_name_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("assignment is null")
    q = p + n
    if q > end:
        raise fail("assignment past the end")
    assignment_1 = bytes(b[p:q])
    p = q
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return SyncGroupResponse(throttle_time_ms_1, error_code_1, protocol_type_1, protocol_name_1, assignment_1)


DECODE_SYNC_GROUP_RESPONSE = {
    0: _decode_sync_group_response_0,
    1: _decode_sync_group_response_1,
    2: _decode_sync_group_response_1,
    3: _decode_sync_group_response_1,
    4: _decode_sync_group_response_4,
    5: _decode_sync_group_response_5,
}


def _encode_sync_group_response_0(m: SyncGroupResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_bytes(out, m.assignment)


def _encode_sync_group_response_1(m: SyncGroupResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_bytes(out, m.assignment)


def _encode_sync_group_response_4(m: SyncGroupResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_bytes(out, m.assignment)
    out.append(0)


def _encode_sync_group_response_5(m: SyncGroupResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.protocol_type)
    write_compact_nullable_string(out, m.protocol_name)
    write_compact_bytes(out, m.assignment)
    out.append(0)


ENCODE_SYNC_GROUP_RESPONSE = {
    0: _encode_sync_group_response_0,
    1: _encode_sync_group_response_1,
    2: _encode_sync_group_response_1,
    3: _encode_sync_group_response_1,
    4: _encode_sync_group_response_4,
    5: _encode_sync_group_response_5,
}
