"""DescribeAcls: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class DescribeAclsRequest(Message):
    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type",)

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = '',
        pattern_type_filter: int = 3,
        principal_filter: str | None = '',
        host_filter: str | None = '',
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type


class AclDescription(Message):
    __slots__ = ("principal", "host", "operation", "permission_type",)

    def __init__(
        self,
        principal: str = '',
        host: str = '',
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class DescribeAclsResource(Message):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls",)

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = '',
        pattern_type: int = 3,
        acls: list[AclDescription] = NEW,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: list[AclDescription] = [] if acls is NEW else acls


class DescribeAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        resources: list[DescribeAclsResource] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResource] = [] if resources is NEW else resources


def _decode_describe_acls_request_1(b: memoryview, p: int = 0) -> DescribeAclsRequest:
    end = len(b)
    (resource_type_filter_1,) = _read_b(b, p)
    p += 1
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        resource_name_filter_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("resource_name_filter past the end")
        resource_name_filter_1 = str(b[p:q], "utf-8")
        p = q
    (pattern_type_filter_1,) = _read_b(b, p)
    p += 1
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        principal_filter_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("principal_filter past the end")
        principal_filter_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        host_filter_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("host_filter past the end")
        host_filter_1 = str(b[p:q], "utf-8")
        p = q
    operation_1, permission_type_1 = _read_bb(b, p)
    p += 2
    return DescribeAclsRequest(resource_type_filter_1, resource_name_filter_1, pattern_type_filter_1, principal_filter_1, host_filter_1, operation_1, permission_type_1)


def _decode_describe_acls_request_2(b: memoryview, p: int = 0) -> DescribeAclsRequest:
    end = len(b)
    (resource_type_filter_1,) = _read_b(b, p)
    p += 1
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        resource_name_filter_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("resource_name_filter past the end")
        resource_name_filter_1 = str(b[p:q], "utf-8")
        p = q
    (pattern_type_filter_1,) = _read_b(b, p)
    p += 1
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        principal_filter_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("principal_filter past the end")
        principal_filter_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        host_filter_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("host_filter past the end")
        host_filter_1 = str(b[p:q], "utf-8")
        p = q
    operation_1, permission_type_1 = _read_bb(b, p)
    p += 2
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeAclsRequest(resource_type_filter_1, resource_name_filter_1, pattern_type_filter_1, principal_filter_1, host_filter_1, operation_1, permission_type_1)


DECODE_DESCRIBE_ACLS_REQUEST = {
    1: _decode_describe_acls_request_1,
    2: _decode_describe_acls_request_2,
    3: _decode_describe_acls_request_2,
}


def _encode_describe_acls_request_1(m: DescribeAclsRequest, out: bytearray) -> None:
    out += _write_b(m.resource_type_filter)
    write_nullable_string(out, m.resource_name_filter)
    out += _write_b(m.pattern_type_filter)
    write_nullable_string(out, m.principal_filter)
    write_nullable_string(out, m.host_filter)
    out += _write_bb(m.operation, m.permission_type)


def _encode_describe_acls_request_2(m: DescribeAclsRequest, out: bytearray) -> None:
    out += _write_b(m.resource_type_filter)
    write_compact_nullable_string(out, m.resource_name_filter)
    out += _write_b(m.pattern_type_filter)
    write_compact_nullable_string(out, m.principal_filter)
    write_compact_nullable_string(out, m.host_filter)
    out += _write_bb(m.operation, m.permission_type)
    out.append(0)


ENCODE_DESCRIBE_ACLS_REQUEST = {
    1: _encode_describe_acls_request_1,
    2: _encode_describe_acls_request_2,
    3: _encode_describe_acls_request_2,
}


def _decode_describe_acls_response_1(b: memoryview, p: int = 0) -> DescribeAclsResponse:
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
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("resources is null")
    if n * 8 > end - p:
        raise fail("resources has more elements than bytes")
    resources_1 = []
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
        (pattern_type_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("acls is null")
        if n * 6 > end - p:
            raise fail("acls has more elements than bytes")
        acls_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("principal is null")
            q = p + n
            if q > end:
                raise fail("principal past the end")
            principal_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("host is null")
            q = p + n
            if q > end:
                raise fail("host past the end")
            host_3 = str(b[p:q], "utf-8")
            p = q
            operation_3, permission_type_3 = _read_bb(b, p)
            p += 2
            acls_2.append(AclDescription(principal_3, host_3, operation_3, permission_type_3))
        resources_1.append(DescribeAclsResource(resource_type_2, resource_name_2, pattern_type_2, acls_2))
    return DescribeAclsResponse(throttle_time_ms_1, error_code_1, error_message_1, resources_1)


def _decode_describe_acls_response_2(b: memoryview, p: int = 0) -> DescribeAclsResponse:
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
        raise fail("resources is null")
    if n * 5 > end - p:
        raise fail("resources has more elements than bytes")
    resources_1 = []
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
        (pattern_type_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("acls is null")
        if n * 5 > end - p:
            raise fail("acls has more elements than bytes")
        acls_2 = []
        for _ in range(n):
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
            principal_3 = str(b[p:q], "utf-8")
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
            host_3 = str(b[p:q], "utf-8")
            p = q
            operation_3, permission_type_3 = _read_bb(b, p)
            p += 2
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            acls_2.append(AclDescription(principal_3, host_3, operation_3, permission_type_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        resources_1.append(DescribeAclsResource(resource_type_2, resource_name_2, pattern_type_2, acls_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeAclsResponse(throttle_time_ms_1, error_code_1, error_message_1, resources_1)


DECODE_DESCRIBE_ACLS_RESPONSE = {
    1: _decode_describe_acls_response_1,
    2: _decode_describe_acls_response_2,
    3: _decode_describe_acls_response_2,
}


def _encode_describe_acls_response_1(m: DescribeAclsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_nullable_string(out, m.error_message)
    each_1 = m.resources
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        out += _write_b(each_1_m.pattern_type)
        each_2 = each_1_m.acls
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.principal)
            write_string(out, each_2_m.host)
            out += _write_bb(each_2_m.operation, each_2_m.permission_type)


def _encode_describe_acls_response_2(m: DescribeAclsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.resources
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_compact_string(out, each_1_m.resource_name)
        out += _write_b(each_1_m.pattern_type)
        each_2 = each_1_m.acls
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.principal)
            write_compact_string(out, each_2_m.host)
            out += _write_bb(each_2_m.operation, each_2_m.permission_type)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_ACLS_RESPONSE = {
    1: _encode_describe_acls_response_1,
    2: _encode_describe_acls_response_2,
    3: _encode_describe_acls_response_2,
}
