"""Heartbeat: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id",)

    def __init__(
        self,
        group_id: str = '',
        generation_id: int = 0,
        member_id: str = '',
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id


class HeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code


def _decode_heartbeat_request_0(b: memoryview, p: int = 0) -> HeartbeatRequest:
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
    return HeartbeatRequest(group_id_1, generation_id_1, member_id_1, None)


def _decode_heartbeat_request_3(b: memoryview, p: int = 0) -> HeartbeatRequest:
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
    return HeartbeatRequest(group_id_1, generation_id_1, member_id_1, group_instance_id_1)


def _decode_heartbeat_request_4(b: memoryview, p: int = 0) -> HeartbeatRequest:
    end = len(b)
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
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return HeartbeatRequest(group_id_1, generation_id_1, member_id_1, group_instance_id_1)


DECODE_HEARTBEAT_REQUEST = {
    0: _decode_heartbeat_request_0,
    1: _decode_heartbeat_request_0,
    2: _decode_heartbeat_request_0,
    3: _decode_heartbeat_request_3,
    4: _decode_heartbeat_request_4,
}


def _encode_heartbeat_request_0(m: HeartbeatRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_string(out, m.member_id)


def _encode_heartbeat_request_3(m: HeartbeatRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_string(out, m.member_id)
    write_nullable_string(out, m.group_instance_id)


def _encode_heartbeat_request_4(m: HeartbeatRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_i(m.generation_id)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    out.append(0)


ENCODE_HEARTBEAT_REQUEST = {
    0: _encode_heartbeat_request_0,
    1: _encode_heartbeat_request_0,
    2: _encode_heartbeat_request_0,
    3: _encode_heartbeat_request_3,
    4: _encode_heartbeat_request_4,
}


def _decode_heartbeat_response_0(b: memoryview, p: int = 0) -> HeartbeatResponse:
    (error_code_1,) = _read_h(b, p)
    p += 2
    return HeartbeatResponse(0, error_code_1)


def _decode_heartbeat_response_1(b: memoryview, p: int = 0) -> HeartbeatResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    return HeartbeatResponse(throttle_time_ms_1, error_code_1)


def _decode_heartbeat_response_4(b: memoryview, p: int = 0) -> HeartbeatResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return HeartbeatResponse(throttle_time_ms_1, error_code_1)


DECODE_HEARTBEAT_RESPONSE = {
    0: _decode_heartbeat_response_0,
    1: _decode_heartbeat_response_1,
    2: _decode_heartbeat_response_1,
    3: _decode_heartbeat_response_1,
    4: _decode_heartbeat_response_4,
}


def _encode_heartbeat_response_0(m: HeartbeatResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)


def _encode_heartbeat_response_1(m: HeartbeatResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)


def _encode_heartbeat_response_4(m: HeartbeatResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    out.append(0)


ENCODE_HEARTBEAT_RESPONSE = {
    0: _encode_heartbeat_response_0,
    1: _encode_heartbeat_response_1,
    2: _encode_heartbeat_response_1,
    3: _encode_heartbeat_response_1,
    4: _encode_heartbeat_response_4,
}
