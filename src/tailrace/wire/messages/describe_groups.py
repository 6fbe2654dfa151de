"""DescribeGroups: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations",)

    def __init__(
        self,
        groups: list[str] = NEW,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups: list[str] = [] if groups is NEW else groups
        self.include_authorized_operations: bool = include_authorized_operations


class DescribedGroupMember(Message):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment",)

    def __init__(
        self,
        member_id: str = '',
        group_instance_id: str | None = None,
        client_id: str = '',
        client_host: str = '',
        member_metadata: bytes = b'',
        member_assignment: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: bytes = member_metadata
        self.member_assignment: bytes = member_assignment


class DescribedGroup(Message):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = '',
        group_state: str = '',
        protocol_type: str = '',
        protocol_data: str = '',
        members: list[DescribedGroupMember] = NEW,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: list[DescribedGroupMember] = [] if members is NEW else members
        self.authorized_operations: int = authorized_operations


class DescribeGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is NEW else groups


def _decode_describe_groups_request_0(b: memoryview, p: int = 0) -> DescribeGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 2 > end - p:
        raise fail("groups has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    groups_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("groups is null")
        q = p + n
        if q > end:
            raise fail("groups past the end")
        groups_1_each = str(b[p:q], "utf-8")
        p = q
        groups_1.append(groups_1_each)
    return DescribeGroupsRequest(groups_1, False)


def _decode_describe_groups_request_3(b: memoryview, p: int = 0) -> DescribeGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 2 > end - p:
        raise fail("groups has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    groups_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("groups is null")
        q = p + n
        if q > end:
            raise fail("groups past the end")
        groups_1_each = str(b[p:q], "utf-8")
        p = q
        groups_1.append(groups_1_each)
    (include_authorized_operations_1,) = _read_t(b, p)
    p += 1
    return DescribeGroupsRequest(groups_1, include_authorized_operations_1)


def _decode_describe_groups_request_5(b: memoryview, p: int = 0) -> DescribeGroupsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n > end - p:
        raise fail("groups has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    groups_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("groups is null")
        q = p + n
        if q > end:
            raise fail("groups past the end")
        groups_1_each = str(b[p:q], "utf-8")
        p = q
        groups_1.append(groups_1_each)
    (include_authorized_operations_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeGroupsRequest(groups_1, include_authorized_operations_1)


DECODE_DESCRIBE_GROUPS_REQUEST = {
    0: _decode_describe_groups_request_0,
    1: _decode_describe_groups_request_0,
    2: _decode_describe_groups_request_0,
    3: _decode_describe_groups_request_3,
    4: _decode_describe_groups_request_3,
    5: _decode_describe_groups_request_5,
    6: _decode_describe_groups_request_5,
}


def _encode_describe_groups_request_0(m: DescribeGroupsRequest, out: bytearray) -> None:
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)


def _encode_describe_groups_request_3(m: DescribeGroupsRequest, out: bytearray) -> None:
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)
    out += _write_t(m.include_authorized_operations)


def _encode_describe_groups_request_5(m: DescribeGroupsRequest, out: bytearray) -> None:
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out += _write_t(m.include_authorized_operations)
    out.append(0)


ENCODE_DESCRIBE_GROUPS_REQUEST = {
    0: _encode_describe_groups_request_0,
    1: _encode_describe_groups_request_0,
    2: _encode_describe_groups_request_0,
    3: _encode_describe_groups_request_3,
    4: _encode_describe_groups_request_3,
    5: _encode_describe_groups_request_5,
    6: _encode_describe_groups_request_5,
}


def _decode_describe_groups_response_0(b: memoryview, p: int = 0) -> DescribeGroupsResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 14 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
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
            raise fail("group_state is null")
        q = p + n
        if q > end:
            raise fail("group_state past the end")
        group_state_2 = str(b[p:q], "utf-8")
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("protocol_data is null")
        q = p + n
        if q > end:
            raise fail("protocol_data past the end")
        protocol_data_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("members is null")
        if n * 14 > end - p:
            raise fail("members has more elements than bytes")
        members_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("member_id is null")
            q = p + n
            if q > end:
                raise fail("member_id past the end")
            member_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_id is null")
            q = p + n
            if q > end:
                raise fail("client_id past the end")
            client_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_host is null")
            q = p + n
            if q > end:
                raise fail("client_host past the end")
            client_host_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_metadata is null")
            q = p + n
            if q > end:
                raise fail("member_metadata past the end")
            member_metadata_3 = bytes(b[p:q])
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_assignment is null")
            q = p + n
            if q > end:
                raise fail("member_assignment past the end")
            member_assignment_3 = bytes(b[p:q])
            p = q
            members_2.append(DescribedGroupMember(member_id_3, None, client_id_3, client_host_3, member_metadata_3, member_assignment_3))
        groups_1.append(DescribedGroup(error_code_2, None, group_id_2, group_state_2, protocol_type_2, protocol_data_2, members_2, -2147483648))
    return DescribeGroupsResponse(0, groups_1)


def _decode_describe_groups_response_1(b: memoryview, p: int = 0) -> DescribeGroupsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 14 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
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
            raise fail("group_state is null")
        q = p + n
        if q > end:
            raise fail("group_state past the end")
        group_state_2 = str(b[p:q], "utf-8")
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("protocol_data is null")
        q = p + n
        if q > end:
            raise fail("protocol_data past the end")
        protocol_data_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("members is null")
        if n * 14 > end - p:
            raise fail("members has more elements than bytes")
        members_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("member_id is null")
            q = p + n
            if q > end:
                raise fail("member_id past the end")
            member_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_id is null")
            q = p + n
            if q > end:
                raise fail("client_id past the end")
            client_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_host is null")
            q = p + n
            if q > end:
                raise fail("client_host past the end")
            client_host_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_metadata is null")
            q = p + n
            if q > end:
                raise fail("member_metadata past the end")
            member_metadata_3 = bytes(b[p:q])
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_assignment is null")
            q = p + n
            if q > end:
                raise fail("member_assignment past the end")
            member_assignment_3 = bytes(b[p:q])
            p = q
            members_2.append(DescribedGroupMember(member_id_3, None, client_id_3, client_host_3, member_metadata_3, member_assignment_3))
        groups_1.append(DescribedGroup(error_code_2, None, group_id_2, group_state_2, protocol_type_2, protocol_data_2, members_2, -2147483648))
    return DescribeGroupsResponse(throttle_time_ms_1, groups_1)


def _decode_describe_groups_response_3(b: memoryview, p: int = 0) -> DescribeGroupsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 18 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
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
            raise fail("group_state is null")
        q = p + n
        if q > end:
            raise fail("group_state past the end")
        group_state_2 = str(b[p:q], "utf-8")
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("protocol_data is null")
        q = p + n
        if q > end:
            raise fail("protocol_data past the end")
        protocol_data_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("members is null")
        if n * 14 > end - p:
            raise fail("members has more elements than bytes")
        members_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("member_id is null")
            q = p + n
            if q > end:
                raise fail("member_id past the end")
            member_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_id is null")
            q = p + n
            if q > end:
                raise fail("client_id past the end")
            client_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_host is null")
            q = p + n
            if q > end:
                raise fail("client_host past the end")
            client_host_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_metadata is null")
            q = p + n
            if q > end:
                raise fail("member_metadata past the end")
            member_metadata_3 = bytes(b[p:q])
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_assignment is null")
            q = p + n
            if q > end:
                raise fail("member_assignment past the end")
            member_assignment_3 = bytes(b[p:q])
            p = q
            members_2.append(DescribedGroupMember(member_id_3, None, client_id_3, client_host_3, member_metadata_3, member_assignment_3))
        (authorized_operations_2,) = _read_i(b, p)
        p += 4
        groups_1.append(DescribedGroup(error_code_2, None, group_id_2, group_state_2, protocol_type_2, protocol_data_2, members_2, authorized_operations_2))
    return DescribeGroupsResponse(throttle_time_ms_1, groups_1)


def _decode_describe_groups_response_4(b: memoryview, p: int = 0) -> DescribeGroupsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("groups is null")
    if n * 18 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
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
            raise fail("group_state is null")
        q = p + n
        if q > end:
            raise fail("group_state past the end")
        group_state_2 = str(b[p:q], "utf-8")
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
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("protocol_data is null")
        q = p + n
        if q > end:
            raise fail("protocol_data past the end")
        protocol_data_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("members is null")
        if n * 16 > end - p:
            raise fail("members has more elements than bytes")
        members_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("member_id is null")
            q = p + n
            if q > end:
                raise fail("member_id past the end")
            member_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                group_instance_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("group_instance_id past the end")
                group_instance_id_3 = str(b[p:q], "utf-8")
                p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_id is null")
            q = p + n
            if q > end:
                raise fail("client_id past the end")
            client_id_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("client_host is null")
            q = p + n
            if q > end:
                raise fail("client_host past the end")
            client_host_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_metadata is null")
            q = p + n
            if q > end:
                raise fail("member_metadata past the end")
            member_metadata_3 = bytes(b[p:q])
            p = q
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("member_assignment is null")
            q = p + n
            if q > end:
                raise fail("member_assignment past the end")
            member_assignment_3 = bytes(b[p:q])
            p = q
            members_2.append(DescribedGroupMember(member_id_3, group_instance_id_3, client_id_3, client_host_3, member_metadata_3, member_assignment_3))
        (authorized_operations_2,) = _read_i(b, p)
        p += 4
        groups_1.append(DescribedGroup(error_code_2, None, group_id_2, group_state_2, protocol_type_2, protocol_data_2, members_2, authorized_operations_2))
    return DescribeGroupsResponse(throttle_time_ms_1, groups_1)


def _decode_describe_groups_response_5(b: memoryview, p: int = 0) -> DescribeGroupsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 12 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
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
            raise fail("protocol_data is null")
        q = p + n
        if q > end:
            raise fail("protocol_data past the end")
        protocol_data_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("members is null")
        if n * 7 > end - p:
            raise fail("members has more elements than bytes")
        members_2 = []
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
            member_id_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                group_instance_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("group_instance_id past the end")
                group_instance_id_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("client_id is null")
            q = p + n
            if q > end:
                raise fail("client_id past the end")
            client_id_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("client_host is null")
            q = p + n
            if q > end:
                raise fail("client_host past the end")
            client_host_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("member_metadata is null")
            q = p + n
            if q > end:
                raise fail("member_metadata past the end")
            member_metadata_3 = bytes(b[p:q])
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("member_assignment is null")
            q = p + n
            if q > end:
                raise fail("member_assignment past the end")
            member_assignment_3 = bytes(b[p:q])
            p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            members_2.append(DescribedGroupMember(member_id_3, group_instance_id_3, client_id_3, client_host_3, member_metadata_3, member_assignment_3))
        (authorized_operations_2,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(DescribedGroup(error_code_2, None, group_id_2, group_state_2, protocol_type_2, protocol_data_2, members_2, authorized_operations_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeGroupsResponse(throttle_time_ms_1, groups_1)


def _decode_describe_groups_response_6(b: memoryview, p: int = 0) -> DescribeGroupsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 13 > end - p:
        raise fail("groups has more elements than bytes")
    groups_1 = []
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
            raise fail("protocol_data is null")
        q = p + n
        if q > end:
            raise fail("protocol_data past the end")
        protocol_data_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("members is null")
        if n * 7 > end - p:
            raise fail("members has more elements than bytes")
        members_2 = []
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
            member_id_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                group_instance_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("group_instance_id past the end")
                group_instance_id_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("client_id is null")
            q = p + n
            if q > end:
                raise fail("client_id past the end")
            client_id_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("client_host is null")
            q = p + n
            if q > end:
                raise fail("client_host past the end")
            client_host_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("member_metadata is null")
            q = p + n
            if q > end:
                raise fail("member_metadata past the end")
            member_metadata_3 = bytes(b[p:q])
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("member_assignment is null")
            q = p + n
            if q > end:
                raise fail("member_assignment past the end")
            member_assignment_3 = bytes(b[p:q])
            p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            members_2.append(DescribedGroupMember(member_id_3, group_instance_id_3, client_id_3, client_host_3, member_metadata_3, member_assignment_3))
        (authorized_operations_2,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(DescribedGroup(error_code_2, error_message_2, group_id_2, group_state_2, protocol_type_2, protocol_data_2, members_2, authorized_operations_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeGroupsResponse(throttle_time_ms_1, groups_1)


DECODE_DESCRIBE_GROUPS_RESPONSE = {
    0: _decode_describe_groups_response_0,
    1: _decode_describe_groups_response_1,
    2: _decode_describe_groups_response_1,
    3: _decode_describe_groups_response_3,
    4: _decode_describe_groups_response_4,
    5: _decode_describe_groups_response_5,
    6: _decode_describe_groups_response_6,
}


def _encode_describe_groups_response_0(m: DescribeGroupsResponse, out: bytearray) -> None:
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_string(out, each_1_m.group_id)
        write_string(out, each_1_m.group_state)
        write_string(out, each_1_m.protocol_type)
        write_string(out, each_1_m.protocol_data)
        each_2 = each_1_m.members
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.member_id)
            write_string(out, each_2_m.client_id)
            write_string(out, each_2_m.client_host)
            write_bytes(out, each_2_m.member_metadata)
            write_bytes(out, each_2_m.member_assignment)


def _encode_describe_groups_response_1(m: DescribeGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_string(out, each_1_m.group_id)
        write_string(out, each_1_m.group_state)
        write_string(out, each_1_m.protocol_type)
        write_string(out, each_1_m.protocol_data)
        each_2 = each_1_m.members
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.member_id)
            write_string(out, each_2_m.client_id)
            write_string(out, each_2_m.client_host)
            write_bytes(out, each_2_m.member_metadata)
            write_bytes(out, each_2_m.member_assignment)


def _encode_describe_groups_response_3(m: DescribeGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_string(out, each_1_m.group_id)
        write_string(out, each_1_m.group_state)
        write_string(out, each_1_m.protocol_type)
        write_string(out, each_1_m.protocol_data)
        each_2 = each_1_m.members
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.member_id)
            write_string(out, each_2_m.client_id)
            write_string(out, each_2_m.client_host)
            write_bytes(out, each_2_m.member_metadata)
            write_bytes(out, each_2_m.member_assignment)
        out += _write_i(each_1_m.authorized_operations)


def _encode_describe_groups_response_4(m: DescribeGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_string(out, each_1_m.group_id)
        write_string(out, each_1_m.group_state)
        write_string(out, each_1_m.protocol_type)
        write_string(out, each_1_m.protocol_data)
        each_2 = each_1_m.members
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.member_id)
            write_nullable_string(out, each_2_m.group_instance_id)
            write_string(out, each_2_m.client_id)
            write_string(out, each_2_m.client_host)
            write_bytes(out, each_2_m.member_metadata)
            write_bytes(out, each_2_m.member_assignment)
        out += _write_i(each_1_m.authorized_operations)


def _encode_describe_groups_response_5(m: DescribeGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.group_state)
        write_compact_string(out, each_1_m.protocol_type)
        write_compact_string(out, each_1_m.protocol_data)
        each_2 = each_1_m.members
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.member_id)
            write_compact_nullable_string(out, each_2_m.group_instance_id)
            write_compact_string(out, each_2_m.client_id)
            write_compact_string(out, each_2_m.client_host)
            write_compact_bytes(out, each_2_m.member_metadata)
            write_compact_bytes(out, each_2_m.member_assignment)
            out.append(0)
        out += _write_i(each_1_m.authorized_operations)
        out.append(0)
    out.append(0)


def _encode_describe_groups_response_6(m: DescribeGroupsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.group_state)
        write_compact_string(out, each_1_m.protocol_type)
        write_compact_string(out, each_1_m.protocol_data)
        each_2 = each_1_m.members
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.member_id)
            write_compact_nullable_string(out, each_2_m.group_instance_id)
            write_compact_string(out, each_2_m.client_id)
            write_compact_string(out, each_2_m.client_host)
            write_compact_bytes(out, each_2_m.member_metadata)
            write_compact_bytes(out, each_2_m.member_assignment)
            out.append(0)
        out += _write_i(each_1_m.authorized_operations)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_GROUPS_RESPONSE = {
    0: _encode_describe_groups_response_0,
    1: _encode_describe_groups_response_1,
    2: _encode_describe_groups_response_1,
    3: _encode_describe_groups_response_3,
    4: _encode_describe_groups_response_4,
    5: _encode_describe_groups_response_5,
    6: _encode_describe_groups_response_6,
}
