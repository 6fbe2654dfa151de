"""JoinGroup: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_t = Struct(">?")
_read_t = _struct_t.unpack_from
_write_t = _struct_t.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_hi = Struct(">hi")
_read_hi = _struct_hi.unpack_from
_write_hi = _struct_hi.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ihi = Struct(">ihi")
_read_ihi = _struct_ihi.unpack_from
_write_ihi = _struct_ihi.pack
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack


class JoinGroupRequestProtocol(Message):
    __slots__ = ("name", "metadata",)

    def __init__(
        self,
        name: str = '',
        metadata: bytes = b'',
    ) -> None:
        self.name: str = name
        self.metadata: bytes = metadata


class JoinGroupRequest(Message):
    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason",)

    def __init__(
        self,
        group_id: str = '',
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = '',
        group_instance_id: str | None = None,
        protocol_type: str = '',
        protocols: list[JoinGroupRequestProtocol] = NEW,
        reason: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is NEW else protocols
        self.reason: str | None = reason


class JoinGroupResponseMember(Message):
    __slots__ = ("member_id", "group_instance_id", "metadata",)

    def __init__(
        self,
        member_id: str = '',
        group_instance_id: str | None = None,
        metadata: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: bytes = metadata


class JoinGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = '',
        leader: str = '',
        skip_assignment: bool = False,
        member_id: str = '',
        members: list[JoinGroupResponseMember] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is NEW else members


def _decode_join_group_request_0(b: memoryview, p: int = 0) -> JoinGroupRequest:
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
    (session_timeout_ms_1,) = _read_i(b, p)
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
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("protocols is null")
    if n * 6 > end - p:
        raise fail("protocols has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    protocols_1 = []
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
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        protocols_1.append(JoinGroupRequestProtocol(name_2, metadata_2))
    return JoinGroupRequest(group_id_1, session_timeout_ms_1, -1, member_id_1, None, protocol_type_1, protocols_1, None)


def _decode_join_group_request_1(b: memoryview, p: int = 0) -> JoinGroupRequest:
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
    session_timeout_ms_1, rebalance_timeout_ms_1 = _read_ii(b, p)
    p += 8
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
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("protocols is null")
    if n * 6 > end - p:
        raise fail("protocols has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    protocols_1 = []
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
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        protocols_1.append(JoinGroupRequestProtocol(name_2, metadata_2))
    return JoinGroupRequest(group_id_1, session_timeout_ms_1, rebalance_timeout_ms_1, member_id_1, None, protocol_type_1, protocols_1, None)


def _decode_join_group_request_5(b: memoryview, p: int = 0) -> JoinGroupRequest:
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
    session_timeout_ms_1, rebalance_timeout_ms_1 = _read_ii(b, p)
    p += 8
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
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("protocols is null")
    if n * 6 > end - p:
        raise fail("protocols has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    protocols_1 = []
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
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        protocols_1.append(JoinGroupRequestProtocol(name_2, metadata_2))
    return JoinGroupRequest(group_id_1, session_timeout_ms_1, rebalance_timeout_ms_1, member_id_1, group_instance_id_1, protocol_type_1, protocols_1, None)


def _decode_join_group_request_6(b: memoryview, p: int = 0) -> JoinGroupRequest:
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
    session_timeout_ms_1, rebalance_timeout_ms_1 = _read_ii(b, p)
    p += 8
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
        raise fail("protocol_type is null")
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
        raise fail("protocols is null")
    if n * 3 > end - p:
        raise fail("protocols has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    protocols_1 = []
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
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        protocols_1.append(JoinGroupRequestProtocol(name_2, metadata_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return JoinGroupRequest(group_id_1, session_timeout_ms_1, rebalance_timeout_ms_1, member_id_1, group_instance_id_1, protocol_type_1, protocols_1, None)


def _decode_join_group_request_8(b: memoryview, p: int = 0) -> JoinGroupRequest:
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
    session_timeout_ms_1, rebalance_timeout_ms_1 = _read_ii(b, p)
    p += 8
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
        raise fail("protocol_type is null")
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
        raise fail("protocols is null")
    if n * 3 > end - p:
        raise fail("protocols has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    protocols_1 = []
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
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        protocols_1.append(JoinGroupRequestProtocol(name_2, metadata_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        reason_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("reason past the end")
        reason_1 = str(b[p:q], "utf-8")
        p = q
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return JoinGroupRequest(group_id_1, session_timeout_ms_1, rebalance_timeout_ms_1, member_id_1, group_instance_id_1, protocol_type_1, protocols_1, reason_1)


DECODE_JOIN_GROUP_REQUEST = {
    0: _decode_join_group_request_0,
    1: _decode_join_group_request_1,
    2: _decode_join_group_request_1,
    3: _decode_join_group_request_1,
    4: _decode_join_group_request_1,
    5: _decode_join_group_request_5,
    6: _decode_join_group_request_6,
    7: _decode_join_group_request_6,
    8: _decode_join_group_request_8,
    9: _decode_join_group_request_8,
}


def _encode_join_group_request_0(m: JoinGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.session_timeout_ms)
    write_string(out, m.member_id)
    write_string(out, m.protocol_type)
    each_1 = m.protocols
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        write_bytes(out, each_1_m.metadata)


def _encode_join_group_request_1(m: JoinGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
    write_string(out, m.member_id)
    write_string(out, m.protocol_type)
    each_1 = m.protocols
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        write_bytes(out, each_1_m.metadata)


def _encode_join_group_request_5(m: JoinGroupRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
    write_string(out, m.member_id)
    write_nullable_string(out, m.group_instance_id)
    write_string(out, m.protocol_type)
    each_1 = m.protocols
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        write_bytes(out, each_1_m.metadata)


def _encode_join_group_request_6(m: JoinGroupRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    write_compact_string(out, m.protocol_type)
    each_1 = m.protocols
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        write_compact_bytes(out, each_1_m.metadata)
        out.append(0)
    out.append(0)


def _encode_join_group_request_8(m: JoinGroupRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    write_compact_string(out, m.protocol_type)
    each_1 = m.protocols
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        write_compact_bytes(out, each_1_m.metadata)
        out.append(0)
    write_compact_nullable_string(out, m.reason)
    out.append(0)


ENCODE_JOIN_GROUP_REQUEST = {
    0: _encode_join_group_request_0,
    1: _encode_join_group_request_1,
    2: _encode_join_group_request_1,
    3: _encode_join_group_request_1,
    4: _encode_join_group_request_1,
    5: _encode_join_group_request_5,
    6: _encode_join_group_request_6,
    7: _encode_join_group_request_6,
    8: _encode_join_group_request_8,
    9: _encode_join_group_request_8,
}


def _decode_join_group_response_0(b: memoryview, p: int = 0) -> JoinGroupResponse:
    end = len(b)
    error_code_1, generation_id_1 = _read_hi(b, p)
    p += 6
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_name is null")
    q = p + n
    if q > end:
        raise fail("protocol_name past the end")
    protocol_name_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("leader is null")
    q = p + n
    if q > end:
        raise fail("leader past the end")
    leader_1 = str(b[p:q], "utf-8")
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
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        members_1.append(JoinGroupResponseMember(member_id_2, None, metadata_2))
    return JoinGroupResponse(0, error_code_1, generation_id_1, None, protocol_name_1, leader_1, False, member_id_1, members_1)


def _decode_join_group_response_2(b: memoryview, p: int = 0) -> JoinGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, generation_id_1 = _read_ihi(b, p)
    p += 10
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_name is null")
    q = p + n
    if q > end:
        raise fail("protocol_name past the end")
    protocol_name_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("leader is null")
    q = p + n
    if q > end:
        raise fail("leader past the end")
    leader_1 = str(b[p:q], "utf-8")
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
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        members_1.append(JoinGroupResponseMember(member_id_2, None, metadata_2))
    return JoinGroupResponse(throttle_time_ms_1, error_code_1, generation_id_1, None, protocol_name_1, leader_1, False, member_id_1, members_1)


def _decode_join_group_response_5(b: memoryview, p: int = 0) -> JoinGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, generation_id_1 = _read_ihi(b, p)
    p += 10
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_name is null")
    q = p + n
    if q > end:
        raise fail("protocol_name past the end")
    protocol_name_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("leader is null")
    q = p + n
    if q > end:
        raise fail("leader past the end")
    leader_1 = str(b[p:q], "utf-8")
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
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("members is null")
    if n * 8 > end - p:
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
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        members_1.append(JoinGroupResponseMember(member_id_2, group_instance_id_2, metadata_2))
    return JoinGroupResponse(throttle_time_ms_1, error_code_1, generation_id_1, None, protocol_name_1, leader_1, False, member_id_1, members_1)


def _decode_join_group_response_6(b: memoryview, p: int = 0) -> JoinGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, generation_id_1 = _read_ihi(b, p)
    p += 10
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("protocol_name is null")
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
        raise fail("leader is null")
    q = p + n
    if q > end:
        raise fail("leader past the end")
    leader_1 = str(b[p:q], "utf-8")
    p = q
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
        raise fail("members is null")
    if n * 4 > end - p:
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
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(JoinGroupResponseMember(member_id_2, group_instance_id_2, metadata_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return JoinGroupResponse(throttle_time_ms_1, error_code_1, generation_id_1, None, protocol_name_1, leader_1, False, member_id_1, members_1)


def _decode_join_group_response_7(b: memoryview, p: int = 0) -> JoinGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, generation_id_1 = _read_ihi(b, p)
    p += 10
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
        raise fail("leader is null")
    q = p + n
    if q > end:
        raise fail("leader past the end")
    leader_1 = str(b[p:q], "utf-8")
    p = q
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
        raise fail("members is null")
    if n * 4 > end - p:
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
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(JoinGroupResponseMember(member_id_2, group_instance_id_2, metadata_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return JoinGroupResponse(throttle_time_ms_1, error_code_1, generation_id_1, protocol_type_1, protocol_name_1, leader_1, False, member_id_1, members_1)


def _decode_join_group_response_9(b: memoryview, p: int = 0) -> JoinGroupResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, generation_id_1 = _read_ihi(b, p)
    p += 10
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
        raise fail("leader is null")
    q = p + n
    if q > end:
        raise fail("leader past the end")
    leader_1 = str(b[p:q], "utf-8")
    p = q
    (skip_assignment_1,) = _read_t(b, p)
    p += 1
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
        raise fail("members is null")
    if n * 4 > end - p:
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
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("metadata is null")
        q = p + n
        if q > end:
            raise fail("metadata past the end")
        metadata_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(JoinGroupResponseMember(member_id_2, group_instance_id_2, metadata_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return JoinGroupResponse(throttle_time_ms_1, error_code_1, generation_id_1, protocol_type_1, protocol_name_1, leader_1, skip_assignment_1, member_id_1, members_1)


DECODE_JOIN_GROUP_RESPONSE = {
    0: _decode_join_group_response_0,
    1: _decode_join_group_response_0,
    2: _decode_join_group_response_2,
    3: _decode_join_group_response_2,
    4: _decode_join_group_response_2,
    5: _decode_join_group_response_5,
    6: _decode_join_group_response_6,
    7: _decode_join_group_response_7,
    8: _decode_join_group_response_7,
    9: _decode_join_group_response_9,
}


def _encode_join_group_response_0(m: JoinGroupResponse, out: bytearray) -> None:
    out += _write_hi(m.error_code, m.generation_id)
    write_string(out, m.protocol_name)
    write_string(out, m.leader)
    write_string(out, m.member_id)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_bytes(out, each_1_m.metadata)


def _encode_join_group_response_2(m: JoinGroupResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
    write_string(out, m.protocol_name)
    write_string(out, m.leader)
    write_string(out, m.member_id)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_bytes(out, each_1_m.metadata)


def _encode_join_group_response_5(m: JoinGroupResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
    write_string(out, m.protocol_name)
    write_string(out, m.leader)
    write_string(out, m.member_id)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_nullable_string(out, each_1_m.group_instance_id)
        write_bytes(out, each_1_m.metadata)


def _encode_join_group_response_6(m: JoinGroupResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
    write_compact_string(out, m.protocol_name)
    write_compact_string(out, m.leader)
    write_compact_string(out, m.member_id)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        write_compact_bytes(out, each_1_m.metadata)
        out.append(0)
    out.append(0)


def _encode_join_group_response_7(m: JoinGroupResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
    write_compact_nullable_string(out, m.protocol_type)
    write_compact_nullable_string(out, m.protocol_name)
    write_compact_string(out, m.leader)
    write_compact_string(out, m.member_id)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        write_compact_bytes(out, each_1_m.metadata)
        out.append(0)
    out.append(0)


def _encode_join_group_response_9(m: JoinGroupResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
    write_compact_nullable_string(out, m.protocol_type)
    write_compact_nullable_string(out, m.protocol_name)
    write_compact_string(out, m.leader)
    out += _write_t(m.skip_assignment)
    write_compact_string(out, m.member_id)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        write_compact_bytes(out, each_1_m.metadata)
        out.append(0)
    out.append(0)


ENCODE_JOIN_GROUP_RESPONSE = {
    0: _encode_join_group_response_0,
    1: _encode_join_group_response_0,
    2: _encode_join_group_response_2,
    3: _encode_join_group_response_2,
    4: _encode_join_group_response_2,
    5: _encode_join_group_response_5,
    6: _encode_join_group_response_6,
    7: _encode_join_group_response_7,
    8: _encode_join_group_response_7,
    9: _encode_join_group_response_9,
}
