"""LeaveGroup: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class MemberIdentity(Message):
    __slots__ = ("member_id", "group_instance_id", "reason",)

    def __init__(
        self,
        member_id: str = '',
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
        members: list[MemberIdentity] = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.members: list[MemberIdentity] = [] if members is NEW else members


class MemberResponse(Message):
    __slots__ = ("member_id", "group_instance_id", "error_code",)

    def __init__(
        self,
        member_id: str = '',
        group_instance_id: str | None = '',
        error_code: int = 0,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[MemberResponse] = [] if members is NEW else members


def _decode_leave_group_request_0(b: memoryview, p: int = 0) -> LeaveGroupRequest:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    return LeaveGroupRequest(group_id_1, member_id_1, [])


def _decode_leave_group_request_3(b: memoryview, p: int = 0) -> LeaveGroupRequest:
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
        raise fail("members is null")
    if n * 4 > end - p:
        raise fail("members has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    members_1 = []
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
            p = q
        members_1.append(MemberIdentity(member_id_2, group_instance_id_2, None))
    return LeaveGroupRequest(group_id_1, '', members_1)


def _decode_leave_group_request_4(b: memoryview, p: int = 0) -> LeaveGroupRequest:
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
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("members is null")
    if n * 3 > end - p:
        raise fail("members has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    members_1 = []
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
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(MemberIdentity(member_id_2, group_instance_id_2, None))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return LeaveGroupRequest(group_id_1, '', members_1)


def _decode_leave_group_request_5(b: memoryview, p: int = 0) -> LeaveGroupRequest:
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
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("members is null")
    if n * 4 > end - p:
        raise fail("members has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    members_1 = []
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
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
            p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            reason_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("reason past the end")
            reason_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(MemberIdentity(member_id_2, group_instance_id_2, reason_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return LeaveGroupRequest(group_id_1, '', members_1)


DECODE_LEAVE_GROUP_REQUEST = {
    0: _decode_leave_group_request_0,
    1: _decode_leave_group_request_0,
    2: _decode_leave_group_request_0,
    3: _decode_leave_group_request_3,
    4: _decode_leave_group_request_4,
    5: _decode_leave_group_request_5,
}


def _encode_leave_group_request_0(m: LeaveGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


def _encode_leave_group_request_3(m: LeaveGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_nullable_string(out, each_1_m.group_instance_id)


def _encode_leave_group_request_4(m: LeaveGroupRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        out.append(0)
    out.append(0)


def _encode_leave_group_request_5(m: LeaveGroupRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        write_compact_nullable_string(out, each_1_m.reason)
        out.append(0)
    out.append(0)


ENCODE_LEAVE_GROUP_REQUEST = {
    0: _encode_leave_group_request_0,
    1: _encode_leave_group_request_0,
    2: _encode_leave_group_request_0,
    3: _encode_leave_group_request_3,
    4: _encode_leave_group_request_4,
    5: _encode_leave_group_request_5,
}


def _decode_leave_group_response_0(b: memoryview, p: int = 0) -> LeaveGroupResponse:
    (error_code_1,) = _read_h(b, p)
    p += 2
    return LeaveGroupResponse(0, error_code_1, [])


def _decode_leave_group_response_1(b: memoryview, p: int = 0) -> LeaveGroupResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    return LeaveGroupResponse(throttle_time_ms_1, error_code_1, [])


def _decode_leave_group_response_3(b: memoryview, p: int = 0) -> LeaveGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("members is null")
    if n * 6 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
            p = q
        (error_code_2,) = _read_h(b, p)
        p += 2
        members_1.append(MemberResponse(member_id_2, group_instance_id_2, error_code_2))
    return LeaveGroupResponse(throttle_time_ms_1, error_code_1, members_1)


def _decode_leave_group_response_4(b: memoryview, p: int = 0) -> LeaveGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("members is null")
    if n * 5 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
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
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
            p = q
        (error_code_2,) = _read_h(b, p)
        p += 2
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(MemberResponse(member_id_2, group_instance_id_2, error_code_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return LeaveGroupResponse(throttle_time_ms_1, error_code_1, members_1)


DECODE_LEAVE_GROUP_RESPONSE = {
    0: _decode_leave_group_response_0,
    1: _decode_leave_group_response_1,
    2: _decode_leave_group_response_1,
    3: _decode_leave_group_response_3,
    4: _decode_leave_group_response_4,
    5: _decode_leave_group_response_4,
}


def _encode_leave_group_response_0(m: LeaveGroupResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)


def _encode_leave_group_response_1(m: LeaveGroupResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)


def _encode_leave_group_response_3(m: LeaveGroupResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_nullable_string(out, each_1_m.group_instance_id)
        out += _write_h(each_1_m.error_code)


def _encode_leave_group_response_4(m: LeaveGroupResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        out += _write_h(each_1_m.error_code)
        out.append(0)
    out.append(0)


ENCODE_LEAVE_GROUP_RESPONSE = {
    0: _encode_leave_group_response_0,
    1: _encode_leave_group_response_1,
    2: _encode_leave_group_response_1,
    3: _encode_leave_group_response_3,
    4: _encode_leave_group_response_4,
    5: _encode_leave_group_response_4,
}
