"""ListGroups: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter",)

    def __init__(
        self,
        states_filter: list[str] = NEW,
        types_filter: list[str] = NEW,
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is NEW else states_filter
        self.types_filter: list[str] = [] if types_filter is NEW else types_filter


class ListedGroup(Message):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type",)

    def __init__(
        self,
        group_id: str = '',
        protocol_type: str = '',
        group_state: str = '',
        group_type: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type


class ListGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "groups",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListedGroup] = [] if groups is NEW else groups


def _decode_list_groups_request_0(b: memoryview, p: int = 0) -> ListGroupsRequest:
    return ListGroupsRequest([], [])


def _decode_list_groups_request_3(b: memoryview, p: int = 0) -> ListGroupsRequest:
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListGroupsRequest([], [])


def _decode_list_groups_request_4(b: memoryview, p: int = 0) -> ListGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("states_filter is null")
    if n > end - p:
        raise fail("states_filter has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    states_filter_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("states_filter is null")
        q = p + n
        if q > end:
            raise fail("states_filter past the end")
        states_filter_1_each = str(b[p:q], "utf-8")
        p = q
        states_filter_1.append(states_filter_1_each)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListGroupsRequest(states_filter_1, [])


def _decode_list_groups_request_5(b: memoryview, p: int = 0) -> ListGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("states_filter is null")
    if n > end - p:
        raise fail("states_filter has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    states_filter_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("states_filter is null")
        q = p + n
        if q > end:
            raise fail("states_filter past the end")
        states_filter_1_each = str(b[p:q], "utf-8")
        p = q
        states_filter_1.append(states_filter_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("types_filter is null")
    if n > end - p:
        raise fail("types_filter has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    types_filter_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("types_filter is null")
        q = p + n
        if q > end:
            raise fail("types_filter past the end")
        types_filter_1_each = str(b[p:q], "utf-8")
        p = q
        types_filter_1.append(types_filter_1_each)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListGroupsRequest(states_filter_1, types_filter_1)


DECODE_LIST_GROUPS_REQUEST = {
    0: _decode_list_groups_request_0,
    1: _decode_list_groups_request_0,
    2: _decode_list_groups_request_0,
    3: _decode_list_groups_request_3,
    4: _decode_list_groups_request_4,
    5: _decode_list_groups_request_5,
}


def _encode_list_groups_request_0(m: ListGroupsRequest, out: bytearray) -> None:
    pass


def _encode_list_groups_request_3(m: ListGroupsRequest, out: bytearray) -> None:
    out.append(0)


def _encode_list_groups_request_4(m: ListGroupsRequest, out: bytearray) -> None:
    each_1 = m.states_filter
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out.append(0)


def _encode_list_groups_request_5(m: ListGroupsRequest, out: bytearray) -> None:
    each_1 = m.states_filter
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    each_2 = m.types_filter
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        write_compact_string(out, each_2_m)
    out.append(0)


ENCODE_LIST_GROUPS_REQUEST = {
    0: _encode_list_groups_request_0,
    1: _encode_list_groups_request_0,
    2: _encode_list_groups_request_0,
    3: _encode_list_groups_request_3,
    4: _encode_list_groups_request_4,
    5: _encode_list_groups_request_5,
}


def _decode_list_groups_response_0(b: memoryview, p: int = 0) -> ListGroupsResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 4 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("protocol_type is null")
        q = p + n
        if q > end:
            raise fail("protocol_type past the end")
        protocol_type_2 = str(b[p:q], "utf-8")
        p = q
        groups_1.append(ListedGroup(group_id_2, protocol_type_2, '', ''))
    return ListGroupsResponse(0, error_code_1, groups_1)


def _decode_list_groups_response_1(b: memoryview, p: int = 0) -> ListGroupsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 4 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("protocol_type is null")
        q = p + n
        if q > end:
            raise fail("protocol_type past the end")
        protocol_type_2 = str(b[p:q], "utf-8")
        p = q
        groups_1.append(ListedGroup(group_id_2, protocol_type_2, '', ''))
    return ListGroupsResponse(throttle_time_ms_1, error_code_1, groups_1)


def _decode_list_groups_response_3(b: memoryview, p: int = 0) -> ListGroupsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 3 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
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
        protocol_type_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(ListedGroup(group_id_2, protocol_type_2, '', ''))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListGroupsResponse(throttle_time_ms_1, error_code_1, groups_1)


def _decode_list_groups_response_4(b: memoryview, p: int = 0) -> ListGroupsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 4 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
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
        protocol_type_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("group_state is null")
        q = p + n
        if q > end:
            raise fail("group_state past the end")
        group_state_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(ListedGroup(group_id_2, protocol_type_2, group_state_2, ''))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListGroupsResponse(throttle_time_ms_1, error_code_1, groups_1)


def _decode_list_groups_response_5(b: memoryview, p: int = 0) -> ListGroupsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 5 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
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
        protocol_type_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("group_state is null")
        q = p + n
        if q > end:
            raise fail("group_state past the end")
        group_state_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("group_type is null")
        q = p + n
        if q > end:
            raise fail("group_type past the end")
        group_type_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(ListedGroup(group_id_2, protocol_type_2, group_state_2, group_type_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListGroupsResponse(throttle_time_ms_1, error_code_1, groups_1)


DECODE_LIST_GROUPS_RESPONSE = {
    0: _decode_list_groups_response_0,
    1: _decode_list_groups_response_1,
    2: _decode_list_groups_response_1,
    3: _decode_list_groups_response_3,
    4: _decode_list_groups_response_4,
    5: _decode_list_groups_response_5,
}


def _encode_list_groups_response_0(m: ListGroupsResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.group_id)
        write_string(out, each_1_m.protocol_type)


def _encode_list_groups_response_1(m: ListGroupsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.group_id)
        write_string(out, each_1_m.protocol_type)


def _encode_list_groups_response_3(m: ListGroupsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.protocol_type)
        out.append(0)
    out.append(0)


def _encode_list_groups_response_4(m: ListGroupsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.protocol_type)
        write_compact_string(out, each_1_m.group_state)
        out.append(0)
    out.append(0)


def _encode_list_groups_response_5(m: ListGroupsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.protocol_type)
        write_compact_string(out, each_1_m.group_state)
        write_compact_string(out, each_1_m.group_type)
        out.append(0)
    out.append(0)


ENCODE_LIST_GROUPS_RESPONSE = {
    0: _encode_list_groups_response_0,
    1: _encode_list_groups_response_1,
    2: _encode_list_groups_response_1,
    3: _encode_list_groups_response_3,
    4: _encode_list_groups_response_4,
    5: _encode_list_groups_response_5,
}
