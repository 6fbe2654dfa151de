"""ConsumerGroupHeartbeat: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack


class RequestTopicPartitions(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[RequestTopicPartitions] | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.server_assignor: str | None = server_assignor
        self.topic_partitions: list[RequestTopicPartitions] | None = topic_partitions


class ResponseTopicPartitions(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[ResponseTopicPartitions] = NEW,
    ) -> None:
        self.topic_partitions: list[ResponseTopicPartitions] = [] if topic_partitions is NEW else topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: Assignment | None = assignment


def _decode_consumer_group_heartbeat_request_0(b: memoryview, p: int = 0) -> ConsumerGroupHeartbeatRequest:
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
    (member_epoch_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("instance_id past the end")
        instance_id_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        rack_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("rack_id past the end")
        rack_id_1 = str(b[p:q], "utf-8")
        p = q
    (rebalance_timeout_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        subscribed_topic_names_1 = None
    else:
        if n > end - p:
            raise fail("subscribed_topic_names has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        subscribed_topic_names_1 = []
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
            subscribed_topic_names_1_each = str(b[p:q], "utf-8")
            p = q
            subscribed_topic_names_1.append(subscribed_topic_names_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        server_assignor_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("server_assignor past the end")
        server_assignor_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topic_partitions_1 = None
    else:
        if n * 18 > end - p:
            raise fail("topic_partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        topic_partitions_1 = []
        for _ in range(n):
            (topic_id_2,) = _read_16s(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partitions is null")
            if n * 4 > end - p:
                raise fail("partitions has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partitions_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topic_partitions_1.append(RequestTopicPartitions(topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupHeartbeatRequest(group_id_1, member_id_1, member_epoch_1, instance_id_1, rack_id_1, rebalance_timeout_ms_1, subscribed_topic_names_1, None, server_assignor_1, topic_partitions_1)


def _decode_consumer_group_heartbeat_request_1(b: memoryview, p: int = 0) -> ConsumerGroupHeartbeatRequest:
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
    (member_epoch_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("instance_id past the end")
        instance_id_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        rack_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("rack_id past the end")
        rack_id_1 = str(b[p:q], "utf-8")
        p = q
    (rebalance_timeout_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        subscribed_topic_names_1 = None
    else:
        if n > end - p:
            raise fail("subscribed_topic_names has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        subscribed_topic_names_1 = []
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
            subscribed_topic_names_1_each = str(b[p:q], "utf-8")
            p = q
            subscribed_topic_names_1.append(subscribed_topic_names_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        subscribed_topic_regex_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("subscribed_topic_regex past the end")
        subscribed_topic_regex_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        server_assignor_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("server_assignor past the end")
        server_assignor_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topic_partitions_1 = None
    else:
        if n * 18 > end - p:
            raise fail("topic_partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        topic_partitions_1 = []
        for _ in range(n):
            (topic_id_2,) = _read_16s(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partitions is null")
            if n * 4 > end - p:
                raise fail("partitions has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partitions_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topic_partitions_1.append(RequestTopicPartitions(topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupHeartbeatRequest(group_id_1, member_id_1, member_epoch_1, instance_id_1, rack_id_1, rebalance_timeout_ms_1, subscribed_topic_names_1, subscribed_topic_regex_1, server_assignor_1, topic_partitions_1)


DECODE_CONSUMER_GROUP_HEARTBEAT_REQUEST = {
    0: _decode_consumer_group_heartbeat_request_0,
    1: _decode_consumer_group_heartbeat_request_1,
}


def _encode_consumer_group_heartbeat_request_0(m: ConsumerGroupHeartbeatRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    write_compact_string(out, m.member_id)
    out += _write_i(m.member_epoch)
    write_compact_nullable_string(out, m.instance_id)
    write_compact_nullable_string(out, m.rack_id)
    out += _write_i(m.rebalance_timeout_ms)
    each_1 = m.subscribed_topic_names
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m)
    write_compact_nullable_string(out, m.server_assignor)
    each_2 = m.topic_partitions
    if each_2 is None:
        out.append(0)
    else:
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_16s(each_2_m.topic_id)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
    out.append(0)


def _encode_consumer_group_heartbeat_request_1(m: ConsumerGroupHeartbeatRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    write_compact_string(out, m.member_id)
    out += _write_i(m.member_epoch)
    write_compact_nullable_string(out, m.instance_id)
    write_compact_nullable_string(out, m.rack_id)
    out += _write_i(m.rebalance_timeout_ms)
    each_1 = m.subscribed_topic_names
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m)
    write_compact_nullable_string(out, m.subscribed_topic_regex)
    write_compact_nullable_string(out, m.server_assignor)
    each_2 = m.topic_partitions
    if each_2 is None:
        out.append(0)
    else:
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_16s(each_2_m.topic_id)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
    out.append(0)


ENCODE_CONSUMER_GROUP_HEARTBEAT_REQUEST = {
    0: _encode_consumer_group_heartbeat_request_0,
    1: _encode_consumer_group_heartbeat_request_1,
}


def _decode_consumer_group_heartbeat_response_0(b: memoryview, p: int = 0) -> ConsumerGroupHeartbeatResponse:
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
        member_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_1 = str(b[p:q], "utf-8")
        p = q
    member_epoch_1, heartbeat_interval_ms_1 = _read_ii(b, p)
    p += 8
    if b[p] > 127:
        assignment_1 = None
        p += 1
    else:
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic_partitions is null")
        if n * 18 > end - p:
            raise fail("topic_partitions has more elements than bytes")
        topic_partitions_2 = []
        for _ in range(n):
            (topic_id_3,) = _read_16s(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partitions is null")
            if n * 4 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topic_partitions_2.append(ResponseTopicPartitions(topic_id_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        assignment_1 = Assignment(topic_partitions_2)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupHeartbeatResponse(throttle_time_ms_1, error_code_1, error_message_1, member_id_1, member_epoch_1, heartbeat_interval_ms_1, assignment_1)


DECODE_CONSUMER_GROUP_HEARTBEAT_RESPONSE = {
    0: _decode_consumer_group_heartbeat_response_0,
    1: _decode_consumer_group_heartbeat_response_0,
}


def _encode_consumer_group_heartbeat_response_0(m: ConsumerGroupHeartbeatResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    write_compact_nullable_string(out, m.member_id)
    out += _write_ii(m.member_epoch, m.heartbeat_interval_ms)
    each_1 = m.assignment
    if each_1 is None:
        out.append(255)
    else:
        out.append(1)
        each_2 = each_1.topic_partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_16s(each_2_m.topic_id)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_CONSUMER_GROUP_HEARTBEAT_RESPONSE = {
    0: _encode_consumer_group_heartbeat_response_0,
    1: _encode_consumer_group_heartbeat_response_0,
}
