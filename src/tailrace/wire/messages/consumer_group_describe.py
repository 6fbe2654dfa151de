"""ConsumerGroupDescribe: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_16s = Struct(">16s")
_read_16s = _struct_16s.unpack_from
_write_16s = _struct_16s.pack
_struct_t = Struct(">?")
_read_t = _struct_t.unpack_from
_write_t = _struct_t.pack
_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack


class ConsumerGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations",)

    def __init__(
        self,
        group_ids: list[str] = NEW,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is NEW else group_ids
        self.include_authorized_operations: bool = include_authorized_operations


class TopicPartitions(Message):
    __slots__ = ("topic_id", "topic_name", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        topic_name: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is NEW else partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] = NEW,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is NEW else topic_partitions


class Member(Message):
    __slots__ = ("member_id", "instance_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "assignment", "target_assignment", "member_type",)

    def __init__(
        self,
        member_id: str = '',
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = '',
        client_host: str = '',
        subscribed_topic_names: list[str] = NEW,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment = NEW,
        target_assignment: Assignment = NEW,
        member_type: int = -1,
    ) -> None:
        self.member_id: str = member_id
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is NEW else subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.assignment: Assignment = Assignment() if assignment is NEW else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is NEW else target_assignment
        self.member_type: int = member_type


class DescribedGroup(Message):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name", "members", "authorized_operations",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = '',
        group_state: str = '',
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = '',
        members: list[Member] = NEW,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[Member] = [] if members is NEW else members
        self.authorized_operations: int = authorized_operations


class ConsumerGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is NEW else groups


def _decode_consumer_group_describe_request_0(b: memoryview, p: int = 0) -> ConsumerGroupDescribeRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("group_ids is null")
    if n > end - p:
        raise fail("group_ids has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    group_ids_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("group_ids is null")
        q = p + n
        if q > end:
            raise fail("group_ids past the end")
        group_ids_1_each = str(b[p:q], "utf-8")
        p = q
        group_ids_1.append(group_ids_1_each)
    (include_authorized_operations_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupDescribeRequest(group_ids_1, include_authorized_operations_1)


DECODE_CONSUMER_GROUP_DESCRIBE_REQUEST = {
    0: _decode_consumer_group_describe_request_0,
    1: _decode_consumer_group_describe_request_0,
}


def _encode_consumer_group_describe_request_0(m: ConsumerGroupDescribeRequest, out: bytearray) -> None:
    each_1 = m.group_ids
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out += _write_t(m.include_authorized_operations)
    out.append(0)


ENCODE_CONSUMER_GROUP_DESCRIBE_REQUEST = {
    0: _encode_consumer_group_describe_request_0,
    1: _encode_consumer_group_describe_request_0,
}


def _decode_consumer_group_describe_response_0(b: memoryview, p: int = 0) -> ConsumerGroupDescribeResponse:
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
    if n * 20 > end - p:
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
        group_epoch_2, assignment_epoch_2 = _read_ii(b, p)
        p += 8
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("assignor_name is null")
        q = p + n
        if q > end:
            raise fail("assignor_name past the end")
        assignor_name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("members is null")
        if n * 16 > end - p:
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
                instance_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("instance_id past the end")
                instance_id_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                rack_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("rack_id past the end")
                rack_id_3 = str(b[p:q], "utf-8")
                p = q
            (member_epoch_3,) = _read_i(b, p)
            p += 4
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
                raise fail("subscribed_topic_names is null")
            if n > end - p:
                raise fail("subscribed_topic_names has more elements than bytes")
            subscribed_topic_names_3 = []
            for _ in range(n):
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("subscribed_topic_names is null")
                q = p + n
                if q > end:
                    raise fail("subscribed_topic_names past the end")
                subscribed_topic_names_3_each = str(b[p:q], "utf-8")
                p = q
                subscribed_topic_names_3.append(subscribed_topic_names_3_each)
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                subscribed_topic_regex_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("subscribed_topic_regex past the end")
                subscribed_topic_regex_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("topic_partitions is null")
            if n * 19 > end - p:
                raise fail("topic_partitions has more elements than bytes")
            topic_partitions_4 = []
            for _ in range(n):
                (topic_id_5,) = _read_16s(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("topic_name is null")
                q = p + n
                if q > end:
                    raise fail("topic_name past the end")
                topic_name_5 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partitions is null")
                if n * 4 > end - p:
                    raise fail("partitions has more elements than bytes")
                partitions_5 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topic_partitions_4.append(TopicPartitions(topic_id_5, topic_name_5, partitions_5))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            assignment_3 = Assignment(topic_partitions_4)
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("topic_partitions is null")
            if n * 19 > end - p:
                raise fail("topic_partitions has more elements than bytes")
            topic_partitions_6 = []
            for _ in range(n):
                (topic_id_7,) = _read_16s(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("topic_name is null")
                q = p + n
                if q > end:
                    raise fail("topic_name past the end")
                topic_name_7 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partitions is null")
                if n * 4 > end - p:
                    raise fail("partitions has more elements than bytes")
                partitions_7 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topic_partitions_6.append(TopicPartitions(topic_id_7, topic_name_7, partitions_7))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            target_assignment_3 = Assignment(topic_partitions_6)
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            members_2.append(Member(member_id_3, instance_id_3, rack_id_3, member_epoch_3, client_id_3, client_host_3, subscribed_topic_names_3, subscribed_topic_regex_3, assignment_3, target_assignment_3, -1))
        (authorized_operations_2,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(DescribedGroup(error_code_2, error_message_2, group_id_2, group_state_2, group_epoch_2, assignment_epoch_2, assignor_name_2, members_2, authorized_operations_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupDescribeResponse(throttle_time_ms_1, groups_1)


def _decode_consumer_group_describe_response_1(b: memoryview, p: int = 0) -> ConsumerGroupDescribeResponse:
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
    if n * 20 > end - p:
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
        group_epoch_2, assignment_epoch_2 = _read_ii(b, p)
        p += 8
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("assignor_name is null")
        q = p + n
        if q > end:
            raise fail("assignor_name past the end")
        assignor_name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("members is null")
        if n * 17 > end - p:
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
                instance_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("instance_id past the end")
                instance_id_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                rack_id_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("rack_id past the end")
                rack_id_3 = str(b[p:q], "utf-8")
                p = q
            (member_epoch_3,) = _read_i(b, p)
            p += 4
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
                raise fail("subscribed_topic_names is null")
            if n > end - p:
                raise fail("subscribed_topic_names has more elements than bytes")
            subscribed_topic_names_3 = []
            for _ in range(n):
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("subscribed_topic_names is null")
                q = p + n
                if q > end:
                    raise fail("subscribed_topic_names past the end")
                subscribed_topic_names_3_each = str(b[p:q], "utf-8")
                p = q
                subscribed_topic_names_3.append(subscribed_topic_names_3_each)
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                subscribed_topic_regex_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("subscribed_topic_regex past the end")
                subscribed_topic_regex_3 = str(b[p:q], "utf-8")
                p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("topic_partitions is null")
            if n * 19 > end - p:
                raise fail("topic_partitions has more elements than bytes")
            topic_partitions_4 = []
            for _ in range(n):
                (topic_id_5,) = _read_16s(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("topic_name is null")
                q = p + n
                if q > end:
                    raise fail("topic_name past the end")
                topic_name_5 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partitions is null")
                if n * 4 > end - p:
                    raise fail("partitions has more elements than bytes")
                partitions_5 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topic_partitions_4.append(TopicPartitions(topic_id_5, topic_name_5, partitions_5))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            assignment_3 = Assignment(topic_partitions_4)
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("topic_partitions is null")
            if n * 19 > end - p:
                raise fail("topic_partitions has more elements than bytes")
            topic_partitions_6 = []
            for _ in range(n):
                (topic_id_7,) = _read_16s(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("topic_name is null")
                q = p + n
                if q > end:
                    raise fail("topic_name past the end")
                topic_name_7 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partitions is null")
                if n * 4 > end - p:
                    raise fail("partitions has more elements than bytes")
                partitions_7 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topic_partitions_6.append(TopicPartitions(topic_id_7, topic_name_7, partitions_7))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            target_assignment_3 = Assignment(topic_partitions_6)
            (member_type_3,) = _read_b(b, p)
            p += 1
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            members_2.append(Member(member_id_3, instance_id_3, rack_id_3, member_epoch_3, client_id_3, client_host_3, subscribed_topic_names_3, subscribed_topic_regex_3, assignment_3, target_assignment_3, member_type_3))
        (authorized_operations_2,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(DescribedGroup(error_code_2, error_message_2, group_id_2, group_state_2, group_epoch_2, assignment_epoch_2, assignor_name_2, members_2, authorized_operations_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupDescribeResponse(throttle_time_ms_1, groups_1)


DECODE_CONSUMER_GROUP_DESCRIBE_RESPONSE = {
    0: _decode_consumer_group_describe_response_0,
    1: _decode_consumer_group_describe_response_1,
}


def _encode_consumer_group_describe_response_0(m: ConsumerGroupDescribeResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.group_state)
        out += _write_ii(each_1_m.group_epoch, each_1_m.assignment_epoch)
        write_compact_string(out, each_1_m.assignor_name)
        each_2 = each_1_m.members
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.member_id)
            write_compact_nullable_string(out, each_2_m.instance_id)
            write_compact_nullable_string(out, each_2_m.rack_id)
            out += _write_i(each_2_m.member_epoch)
            write_compact_string(out, each_2_m.client_id)
            write_compact_string(out, each_2_m.client_host)
            each_3 = each_2_m.subscribed_topic_names
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                write_compact_string(out, each_3_m)
            write_compact_nullable_string(out, each_2_m.subscribed_topic_regex)
            each_4 = each_2_m.assignment
            each_5 = each_4.topic_partitions
            write_varint(out, len(each_5) + 1)
            for each_5_m in each_5:
                out += _write_16s(each_5_m.topic_id)
                write_compact_string(out, each_5_m.topic_name)
                each_6 = each_5_m.partitions
                write_varint(out, len(each_6) + 1)
                out += pack(f">{len(each_6)}i", *each_6)
                out.append(0)
            out.append(0)
            each_7 = each_2_m.target_assignment
            each_8 = each_7.topic_partitions
            write_varint(out, len(each_8) + 1)
            for each_8_m in each_8:
                out += _write_16s(each_8_m.topic_id)
                write_compact_string(out, each_8_m.topic_name)
                each_9 = each_8_m.partitions
                write_varint(out, len(each_9) + 1)
                out += pack(f">{len(each_9)}i", *each_9)
                out.append(0)
            out.append(0)
            out.append(0)
        out += _write_i(each_1_m.authorized_operations)
        out.append(0)
    out.append(0)


def _encode_consumer_group_describe_response_1(m: ConsumerGroupDescribeResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        write_compact_string(out, each_1_m.group_id)
        write_compact_string(out, each_1_m.group_state)
        out += _write_ii(each_1_m.group_epoch, each_1_m.assignment_epoch)
        write_compact_string(out, each_1_m.assignor_name)
        each_2 = each_1_m.members
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.member_id)
            write_compact_nullable_string(out, each_2_m.instance_id)
            write_compact_nullable_string(out, each_2_m.rack_id)
            out += _write_i(each_2_m.member_epoch)
            write_compact_string(out, each_2_m.client_id)
            write_compact_string(out, each_2_m.client_host)
            each_3 = each_2_m.subscribed_topic_names
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                write_compact_string(out, each_3_m)
            write_compact_nullable_string(out, each_2_m.subscribed_topic_regex)
            each_4 = each_2_m.assignment
            each_5 = each_4.topic_partitions
            write_varint(out, len(each_5) + 1)
            for each_5_m in each_5:
                out += _write_16s(each_5_m.topic_id)
                write_compact_string(out, each_5_m.topic_name)
                each_6 = each_5_m.partitions
                write_varint(out, len(each_6) + 1)
                out += pack(f">{len(each_6)}i", *each_6)
                out.append(0)
            out.append(0)
            each_7 = each_2_m.target_assignment
            each_8 = each_7.topic_partitions
            write_varint(out, len(each_8) + 1)
            for each_8_m in each_8:
                out += _write_16s(each_8_m.topic_id)
                write_compact_string(out, each_8_m.topic_name)
                each_9 = each_8_m.partitions
                write_varint(out, len(each_9) + 1)
                out += pack(f">{len(each_9)}i", *each_9)
                out.append(0)
            out.append(0)
            out += _write_b(each_2_m.member_type)
            out.append(0)
        out += _write_i(each_1_m.authorized_operations)
        out.append(0)
    out.append(0)


ENCODE_CONSUMER_GROUP_DESCRIBE_RESPONSE = {
    0: _encode_consumer_group_describe_response_0,
    1: _encode_consumer_group_describe_response_1,
}
