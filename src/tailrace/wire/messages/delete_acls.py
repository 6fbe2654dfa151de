"""DeleteAcls: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class DeleteAclsFilter(Message):
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


class DeleteAclsRequest(Message):
    __slots__ = ("filters",)

    def __init__(
        self,
        filters: list[DeleteAclsFilter] = NEW,
    ) -> None:
        self.filters: list[DeleteAclsFilter] = [] if filters is NEW else filters


class DeleteAclsMatchingAcl(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        resource_type: int = 0,
        resource_name: str = '',
        pattern_type: int = 3,
        principal: str = '',
        host: str = '',
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class DeleteAclsFilterResult(Message):
    __slots__ = ("error_code", "error_message", "matching_acls",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        matching_acls: list[DeleteAclsMatchingAcl] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is NEW else matching_acls


class DeleteAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "filter_results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is NEW else filter_results


def _decode_delete_acls_request_1(b: memoryview, p: int = 0) -> DeleteAclsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("filters is null")
    if n * 10 > end - p:
        raise fail("filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    filters_1 = []
    for _ in range(n):
        (resource_type_filter_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            resource_name_filter_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("resource_name_filter past the end")
            resource_name_filter_2 = str(b[p:q], "utf-8")
            p = q
        (pattern_type_filter_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            principal_filter_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("principal_filter past the end")
            principal_filter_2 = str(b[p:q], "utf-8")
            p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            host_filter_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("host_filter past the end")
            host_filter_2 = str(b[p:q], "utf-8")
            p = q
        operation_2, permission_type_2 = _read_bb(b, p)
        p += 2
        filters_1.append(DeleteAclsFilter(resource_type_filter_2, resource_name_filter_2, pattern_type_filter_2, principal_filter_2, host_filter_2, operation_2, permission_type_2))
    return DeleteAclsRequest(filters_1)


def _decode_delete_acls_request_2(b: memoryview, p: int = 0) -> DeleteAclsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("filters is null")
    if n * 8 > end - p:
        raise fail("filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    filters_1 = []
    for _ in range(n):
        (resource_type_filter_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            resource_name_filter_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("resource_name_filter past the end")
            resource_name_filter_2 = str(b[p:q], "utf-8")
            p = q
        (pattern_type_filter_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            principal_filter_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("principal_filter past the end")
            principal_filter_2 = str(b[p:q], "utf-8")
            p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            host_filter_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("host_filter past the end")
            host_filter_2 = str(b[p:q], "utf-8")
            p = q
        operation_2, permission_type_2 = _read_bb(b, p)
        p += 2
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        filters_1.append(DeleteAclsFilter(resource_type_filter_2, resource_name_filter_2, pattern_type_filter_2, principal_filter_2, host_filter_2, operation_2, permission_type_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteAclsRequest(filters_1)


DECODE_DELETE_ACLS_REQUEST = {
    1: _decode_delete_acls_request_1,
    2: _decode_delete_acls_request_2,
    3: _decode_delete_acls_request_2,
}


def _encode_delete_acls_request_1(m: DeleteAclsRequest, out: bytearray) -> None:
    each_1 = m.filters
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type_filter)
        write_nullable_string(out, each_1_m.resource_name_filter)
        out += _write_b(each_1_m.pattern_type_filter)
        write_nullable_string(out, each_1_m.principal_filter)
        write_nullable_string(out, each_1_m.host_filter)
        out += _write_bb(each_1_m.operation, each_1_m.permission_type)


def _encode_delete_acls_request_2(m: DeleteAclsRequest, out: bytearray) -> None:
    each_1 = m.filters
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type_filter)
        write_compact_nullable_string(out, each_1_m.resource_name_filter)
        out += _write_b(each_1_m.pattern_type_filter)
        write_compact_nullable_string(out, each_1_m.principal_filter)
        write_compact_nullable_string(out, each_1_m.host_filter)
        out += _write_bb(each_1_m.operation, each_1_m.permission_type)
        out.append(0)
    out.append(0)


ENCODE_DELETE_ACLS_REQUEST = {
    1: _encode_delete_acls_request_1,
    2: _encode_delete_acls_request_2,
    3: _encode_delete_acls_request_2,
}


def _decode_delete_acls_response_1(b: memoryview, p: int = 0) -> DeleteAclsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("filter_results is null")
    if n * 8 > end - p:
        raise fail("filter_results has more elements than bytes")
    filter_results_1 = []
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
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("matching_acls is null")
        if n * 14 > end - p:
            raise fail("matching_acls has more elements than bytes")
        matching_acls_2 = []
        for _ in range(n):
            (error_code_3,) = _read_h(b, p)
            p += 2
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                error_message_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("error_message past the end")
                error_message_3 = str(b[p:q], "utf-8")
                p = q
            (resource_type_3,) = _read_b(b, p)
            p += 1
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("resource_name is null")
            q = p + n
            if q > end:
                raise fail("resource_name past the end")
            resource_name_3 = str(b[p:q], "utf-8")
            p = q
            (pattern_type_3,) = _read_b(b, p)
            p += 1
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
            matching_acls_2.append(DeleteAclsMatchingAcl(error_code_3, error_message_3, resource_type_3, resource_name_3, pattern_type_3, principal_3, host_3, operation_3, permission_type_3))
        filter_results_1.append(DeleteAclsFilterResult(error_code_2, error_message_2, matching_acls_2))
    return DeleteAclsResponse(throttle_time_ms_1, filter_results_1)


def _decode_delete_acls_response_2(b: memoryview, p: int = 0) -> DeleteAclsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("filter_results is null")
    if n * 5 > end - p:
        raise fail("filter_results has more elements than bytes")
    filter_results_1 = []
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
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("matching_acls is null")
        if n * 11 > end - p:
            raise fail("matching_acls has more elements than bytes")
        matching_acls_2 = []
        for _ in range(n):
            (error_code_3,) = _read_h(b, p)
            p += 2
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
            (resource_type_3,) = _read_b(b, p)
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
            resource_name_3 = str(b[p:q], "utf-8")
            p = q
            (pattern_type_3,) = _read_b(b, p)
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
            matching_acls_2.append(DeleteAclsMatchingAcl(error_code_3, error_message_3, resource_type_3, resource_name_3, pattern_type_3, principal_3, host_3, operation_3, permission_type_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        filter_results_1.append(DeleteAclsFilterResult(error_code_2, error_message_2, matching_acls_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteAclsResponse(throttle_time_ms_1, filter_results_1)


DECODE_DELETE_ACLS_RESPONSE = {
    1: _decode_delete_acls_response_1,
    2: _decode_delete_acls_response_2,
    3: _decode_delete_acls_response_2,
}


def _encode_delete_acls_response_1(m: DeleteAclsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.filter_results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)
        each_2 = each_1_m.matching_acls
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_h(each_2_m.error_code)
            write_nullable_string(out, each_2_m.error_message)
            out += _write_b(each_2_m.resource_type)
            write_string(out, each_2_m.resource_name)
            out += _write_b(each_2_m.pattern_type)
            write_string(out, each_2_m.principal)
            write_string(out, each_2_m.host)
            out += _write_bb(each_2_m.operation, each_2_m.permission_type)


def _encode_delete_acls_response_2(m: DeleteAclsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.filter_results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        each_2 = each_1_m.matching_acls
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_h(each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out += _write_b(each_2_m.resource_type)
            write_compact_string(out, each_2_m.resource_name)
            out += _write_b(each_2_m.pattern_type)
            write_compact_string(out, each_2_m.principal)
            write_compact_string(out, each_2_m.host)
            out += _write_bb(each_2_m.operation, each_2_m.permission_type)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DELETE_ACLS_RESPONSE = {
    1: _encode_delete_acls_response_1,
    2: _encode_delete_acls_response_2,
    3: _encode_delete_acls_response_2,
}
