"""DeleteGroups: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)

    def __init__(
        self,
        groups_names: list[str] = NEW,
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is NEW else groups_names


class DeletableGroupResult(Message):
    __slots__ = ("group_id", "error_code",)

    def __init__(
        self,
        group_id: str = '',
        error_code: int = 0,
    ) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code


class DeleteGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is NEW else results


def _decode_delete_groups_request_0(b: memoryview, p: int = 0) -> DeleteGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups_names is null")
    if n * 2 > end - p:
        raise fail("groups_names has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    groups_names_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("groups_names is null")
        q = p + n
        if q > end:
            raise fail("groups_names past the end")
        groups_names_1_each = str(b[p:q], "utf-8")
        p = q
        groups_names_1.append(groups_names_1_each)
    return DeleteGroupsRequest(groups_names_1)


def _decode_delete_groups_request_2(b: memoryview, p: int = 0) -> DeleteGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups_names is null")
    if n > end - p:
        raise fail("groups_names has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    groups_names_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("groups_names is null")
        q = p + n
        if q > end:
            raise fail("groups_names past the end")
        groups_names_1_each = str(b[p:q], "utf-8")
        p = q
        groups_names_1.append(groups_names_1_each)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteGroupsRequest(groups_names_1)


DECODE_DELETE_GROUPS_REQUEST = {
    0: _decode_delete_groups_request_0,
    1: _decode_delete_groups_request_0,
    2: _decode_delete_groups_request_2,
}


def _encode_delete_groups_request_0(m: DeleteGroupsRequest, out: bytearray) -> None:
    each_1 = m.groups_names
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)


def _encode_delete_groups_request_2(m: DeleteGroupsRequest, out: bytearray) -> None:
    each_1 = m.groups_names
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out.append(0)


ENCODE_DELETE_GROUPS_REQUEST = {
    0: _encode_delete_groups_request_0,
    1: _encode_delete_groups_request_0,
    2: _encode_delete_groups_request_2,
}


def _decode_delete_groups_response_0(b: memoryview, p: int = 0) -> DeleteGroupsResponse:
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("group_id is null")
        q = p + n
        if q > end:
            raise fail("group_id past the end")
        group_id_2 = str(b[p:q], "utf-8")
        p = q
        (error_code_2,) = _read_h(b, p)
        p += 2
        results_1.append(DeletableGroupResult(group_id_2, error_code_2))
    return DeleteGroupsResponse(throttle_time_ms_1, results_1)


def _decode_delete_groups_response_2(b: memoryview, p: int = 0) -> DeleteGroupsResponse:
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
        group_id_2 = str(b[p:q], "utf-8")
        p = q
        (error_code_2,) = _read_h(b, p)
        p += 2
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DeletableGroupResult(group_id_2, error_code_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteGroupsResponse(throttle_time_ms_1, results_1)


DECODE_DELETE_GROUPS_RESPONSE = {
    0: _decode_delete_groups_response_0,
    1: _decode_delete_groups_response_0,
    2: _decode_delete_groups_response_2,
}


def _encode_delete_groups_response_0(m: DeleteGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.group_id)
        out += _write_h(each_1_m.error_code)


def _encode_delete_groups_response_2(m: DeleteGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        out += _write_h(each_1_m.error_code)
        out.append(0)
    out.append(0)


ENCODE_DELETE_GROUPS_RESPONSE = {
    0: _encode_delete_groups_response_0,
    1: _encode_delete_groups_response_0,
    2: _encode_delete_groups_response_2,
}
