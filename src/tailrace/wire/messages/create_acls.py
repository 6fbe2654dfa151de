"""CreateAcls: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_bb = Struct(">bb")
_read_bb = _struct_bb.unpack_from
_write_bb = _struct_bb.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class AclCreation(Message):
    __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type",)

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = '',
        resource_pattern_type: int = 3,
        principal: str = '',
        host: str = '',
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class CreateAclsRequest(Message):
    __slots__ = ("creations",)

    def __init__(
        self,
        creations: list[AclCreation] = NEW,
    ) -> None:
        self.creations: list[AclCreation] = [] if creations is NEW else creations


class AclCreationResult(Message):
    __slots__ = ("error_code", "error_message",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class CreateAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is NEW else results


def _decode_create_acls_request_1(b: memoryview, p: int = 0) -> CreateAclsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("creations is null")
    if n * 10 > end - p:
        raise fail("creations has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    creations_1 = []
    for _ in range(n):
        (resource_type_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("resource_name is null")
        q = p + n
        if q > end:
            raise fail("resource_name past the end")
        resource_name_2 = str(b[p:q], "utf-8")
        p = q
        (resource_pattern_type_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("principal is null")
        q = p + n
        if q > end:
            raise fail("principal past the end")
        principal_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        operation_2, permission_type_2 = _read_bb(b, p)
        p += 2
        creations_1.append(AclCreation(resource_type_2, resource_name_2, resource_pattern_type_2, principal_2, host_2, operation_2, permission_type_2))
    return CreateAclsRequest(creations_1)


def _decode_create_acls_request_2(b: memoryview, p: int = 0) -> CreateAclsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("creations is null")
    if n * 8 > end - p:
        raise fail("creations has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    creations_1 = []
    for _ in range(n):
        (resource_type_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("resource_name is null")
        q = p + n
        if q > end:
            raise fail("resource_name past the end")
        resource_name_2 = str(b[p:q], "utf-8")
        p = q
        (resource_pattern_type_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("principal is null")
        q = p + n
        if q > end:
            raise fail("principal past the end")
        principal_2 = str(b[p:q], "utf-8")
        p = q
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
        operation_2, permission_type_2 = _read_bb(b, p)
        p += 2
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        creations_1.append(AclCreation(resource_type_2, resource_name_2, resource_pattern_type_2, principal_2, host_2, operation_2, permission_type_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateAclsRequest(creations_1)


DECODE_CREATE_ACLS_REQUEST = {
    1: _decode_create_acls_request_1,
    2: _decode_create_acls_request_2,
    3: _decode_create_acls_request_2,
}


def _encode_create_acls_request_1(m: CreateAclsRequest, out: bytearray) -> None:
    each_1 = m.creations
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        out += _write_b(each_1_m.resource_pattern_type)
        write_string(out, each_1_m.principal)
        write_string(out, each_1_m.host)
        out += _write_bb(each_1_m.operation, each_1_m.permission_type)


def _encode_create_acls_request_2(m: CreateAclsRequest, out: bytearray) -> None:
    each_1 = m.creations
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_compact_string(out, each_1_m.resource_name)
        out += _write_b(each_1_m.resource_pattern_type)
        write_compact_string(out, each_1_m.principal)
        write_compact_string(out, each_1_m.host)
        out += _write_bb(each_1_m.operation, each_1_m.permission_type)
        out.append(0)
    out.append(0)


ENCODE_CREATE_ACLS_REQUEST = {
    1: _encode_create_acls_request_1,
    2: _encode_create_acls_request_2,
    3: _encode_create_acls_request_2,
}


def _decode_create_acls_response_1(b: memoryview, p: int = 0) -> CreateAclsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results is null")
    if n * 4 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
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
        results_1.append(AclCreationResult(error_code_2, error_message_2))
    return CreateAclsResponse(throttle_time_ms_1, results_1)


def _decode_create_acls_response_2(b: memoryview, p: int = 0) -> CreateAclsResponse:
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
    if n * 4 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
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
        results_1.append(AclCreationResult(error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateAclsResponse(throttle_time_ms_1, results_1)


DECODE_CREATE_ACLS_RESPONSE = {
    1: _decode_create_acls_response_1,
    2: _decode_create_acls_response_2,
    3: _decode_create_acls_response_2,
}


def _encode_create_acls_response_1(m: CreateAclsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)


def _encode_create_acls_response_2(m: CreateAclsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


ENCODE_CREATE_ACLS_RESPONSE = {
    1: _encode_create_acls_response_1,
    2: _encode_create_acls_response_2,
    3: _encode_create_acls_response_2,
}
