"""FindCoordinator: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
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


class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys",)

    def __init__(
        self,
        key: str = '',
        key_type: int = 0,
        coordinator_keys: list[str] = NEW,
    ) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is NEW else coordinator_keys


class Coordinator(Message):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message",)

    def __init__(
        self,
        key: str = '',
        node_id: int = 0,
        host: str = '',
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        node_id: int = 0,
        host: str = '',
        port: int = 0,
        coordinators: list[Coordinator] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.coordinators: list[Coordinator] = [] if coordinators is NEW else coordinators


def _decode_find_coordinator_request_0(b: memoryview, p: int = 0) -> FindCoordinatorRequest:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("key is null")
    q = p + n
    if q > end:
        raise fail("key past the end")
    key_1 = str(b[p:q], "utf-8")
    p = q
    return FindCoordinatorRequest(key_1, 0, [])


def _decode_find_coordinator_request_1(b: memoryview, p: int = 0) -> FindCoordinatorRequest:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("key is null")
    q = p + n
    if q > end:
        raise fail("key past the end")
    key_1 = str(b[p:q], "utf-8")
    p = q
    (key_type_1,) = _read_b(b, p)
    p += 1
    return FindCoordinatorRequest(key_1, key_type_1, [])


def _decode_find_coordinator_request_3(b: memoryview, p: int = 0) -> FindCoordinatorRequest:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("key is null")
    q = p + n
    if q > end:
        raise fail("key past the end")
    key_1 = str(b[p:q], "utf-8")
    p = q
    (key_type_1,) = _read_b(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return FindCoordinatorRequest(key_1, key_type_1, [])


def _decode_find_coordinator_request_4(b: memoryview, p: int = 0) -> FindCoordinatorRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (key_type_1,) = _read_b(b, p)
    p += 1
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("coordinator_keys is null")
    if n > end - p:
        raise fail("coordinator_keys has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    coordinator_keys_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("coordinator_keys is null")
        q = p + n
        if q > end:
            raise fail("coordinator_keys past the end")
        coordinator_keys_1_each = str(b[p:q], "utf-8")
        p = q
        coordinator_keys_1.append(coordinator_keys_1_each)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return FindCoordinatorRequest('', key_type_1, coordinator_keys_1)


DECODE_FIND_COORDINATOR_REQUEST = {
    0: _decode_find_coordinator_request_0,
    1: _decode_find_coordinator_request_1,
    2: _decode_find_coordinator_request_1,
    3: _decode_find_coordinator_request_3,
    4: _decode_find_coordinator_request_4,
    5: _decode_find_coordinator_request_4,
    6: _decode_find_coordinator_request_4,
}


def _encode_find_coordinator_request_0(m: FindCoordinatorRequest, out: bytearray) -> None:
    write_string(out, m.key)


def _encode_find_coordinator_request_1(m: FindCoordinatorRequest, out: bytearray) -> None:
    write_string(out, m.key)
    out += _write_b(m.key_type)


def _encode_find_coordinator_request_3(m: FindCoordinatorRequest, out: bytearray) -> None:
    write_compact_string(out, m.key)
    out += _write_b(m.key_type)
    out.append(0)


def _encode_find_coordinator_request_4(m: FindCoordinatorRequest, out: bytearray) -> None:
    out += _write_b(m.key_type)
    each_1 = m.coordinator_keys
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out.append(0)


ENCODE_FIND_COORDINATOR_REQUEST = {
    0: _encode_find_coordinator_request_0,
    1: _encode_find_coordinator_request_1,
    2: _encode_find_coordinator_request_1,
    3: _encode_find_coordinator_request_3,
    4: _encode_find_coordinator_request_4,
    5: _encode_find_coordinator_request_4,
    6: _encode_find_coordinator_request_4,
}


def _decode_find_coordinator_response_0(b: memoryview, p: int = 0) -> FindCoordinatorResponse:
    end = len(b)
    error_code_1, node_id_1 = _read_hi(b, p)
    p += 6
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("host is null")
    q = p + n
    if q > end:
        raise fail("host past the end")
    host_1 = str(b[p:q], "utf-8")
    p = q
    (port_1,) = _read_i(b, p)
    p += 4
    return FindCoordinatorResponse(0, error_code_1, '', node_id_1, host_1, port_1, [])


def _decode_find_coordinator_response_1(b: memoryview, p: int = 0) -> FindCoordinatorResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        error_message_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("error_message past the end")
        error_message_1 = str(b[p:q], "utf-8")
        p = q
    (node_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("host is null")
    q = p + n
    if q > end:
        raise fail("host past the end")
    host_1 = str(b[p:q], "utf-8")
    p = q
    (port_1,) = _read_i(b, p)
    p += 4
    return FindCoordinatorResponse(throttle_time_ms_1, error_code_1, error_message_1, node_id_1, host_1, port_1, [])


def _decode_find_coordinator_response_3(b: memoryview, p: int = 0) -> FindCoordinatorResponse:
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
    (node_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("host is null")
    q = p + n
    if q > end:
        raise fail("host past the end")
    host_1 = str(b[p:q], "utf-8")
    p = q
    (port_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return FindCoordinatorResponse(throttle_time_ms_1, error_code_1, error_message_1, node_id_1, host_1, port_1, [])


def _decode_find_coordinator_response_4(b: memoryview, p: int = 0) -> FindCoordinatorResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("coordinators is null")
    if n * 14 > end - p:
        raise fail("coordinators has more elements than bytes")
    coordinators_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("key is null")
        q = p + n
        if q > end:
            raise fail("key past the end")
        key_2 = str(b[p:q], "utf-8")
        p = q
        (node_id_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        port_2, error_code_2 = _read_ih(b, p)
        p += 6
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
        coordinators_1.append(Coordinator(key_2, node_id_2, host_2, port_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return FindCoordinatorResponse(throttle_time_ms_1, 0, '', 0, '', 0, coordinators_1)


DECODE_FIND_COORDINATOR_RESPONSE = {
    0: _decode_find_coordinator_response_0,
    1: _decode_find_coordinator_response_1,
    2: _decode_find_coordinator_response_1,
    3: _decode_find_coordinator_response_3,
    4: _decode_find_coordinator_response_4,
    5: _decode_find_coordinator_response_4,
    6: _decode_find_coordinator_response_4,
}


def _encode_find_coordinator_response_0(m: FindCoordinatorResponse, out: bytearray) -> None:
    out += _write_hi(m.error_code, m.node_id)
    write_string(out, m.host)
    out += _write_i(m.port)


def _encode_find_coordinator_response_1(m: FindCoordinatorResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_nullable_string(out, m.error_message)
    out += _write_i(m.node_id)
    write_string(out, m.host)
    out += _write_i(m.port)


def _encode_find_coordinator_response_3(m: FindCoordinatorResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    out += _write_i(m.node_id)
    write_compact_string(out, m.host)
    out += _write_i(m.port)
    out.append(0)


def _encode_find_coordinator_response_4(m: FindCoordinatorResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.coordinators
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.key)
        out += _write_i(each_1_m.node_id)
        write_compact_string(out, each_1_m.host)
        out += _write_ih(each_1_m.port, each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


ENCODE_FIND_COORDINATOR_RESPONSE = {
    0: _encode_find_coordinator_response_0,
    1: _encode_find_coordinator_response_1,
    2: _encode_find_coordinator_response_1,
    3: _encode_find_coordinator_response_3,
    4: _encode_find_coordinator_response_4,
    5: _encode_find_coordinator_response_4,
    6: _encode_find_coordinator_response_4,
}
