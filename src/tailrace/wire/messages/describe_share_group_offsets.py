"""DescribeShareGroupOffsets: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_iqih = Struct(">iqih")
_read_iqih = _struct_iqih.unpack_from
_write_iqih = _struct_iqih.pack
_struct_iqiqh = Struct(">iqiqh")
_read_iqiqh = _struct_iqiqh.unpack_from
_write_iqiqh = _struct_iqiqh.pack


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is NEW else partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = ("group_id", "topics",)

    def __init__(
        self,
        group_id: str = '',
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = [] if topics is NEW else topics


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = NEW,
    ) -> None:
        self.groups: list[DescribeShareGroupOffsetsRequestGroup] = [] if groups is NEW else groups


class DescribeShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message",)

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.leader_epoch: int = leader_epoch
        self.lag: int = lag
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[DescribeShareGroupOffsetsResponsePartition] = [] if partitions is NEW else partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    __slots__ = ("group_id", "topics", "error_code", "error_message",)

    def __init__(
        self,
        group_id: str = '',
        topics: list[DescribeShareGroupOffsetsResponseTopic] = NEW,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsResponseTopic] = [] if topics is NEW else topics
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DescribeShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribeShareGroupOffsetsResponseGroup] = [] if groups is NEW else groups


def _decode_describe_share_group_offsets_request_0(b: memoryview, p: int = 0) -> DescribeShareGroupOffsetsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 3 > end - p:
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
            topics_2 = None
        else:
            if n * 3 > end - p:
                raise fail("topics has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            topics_2 = []
            for _ in range(n):
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
                topic_name_3 = str(b[p:q], "utf-8")
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
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                partitions_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topics_2.append(DescribeShareGroupOffsetsRequestTopic(topic_name_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(DescribeShareGroupOffsetsRequestGroup(group_id_2, topics_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeShareGroupOffsetsRequest(groups_1)


DECODE_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST = {
    0: _decode_describe_share_group_offsets_request_0,
    1: _decode_describe_share_group_offsets_request_0,
}


def _encode_describe_share_group_offsets_request_0(m: DescribeShareGroupOffsetsRequest, out: bytearray) -> None:
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        each_2 = each_1_m.topics
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                write_compact_string(out, each_2_m.topic_name)
                each_3 = each_2_m.partitions
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
                out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST = {
    0: _encode_describe_share_group_offsets_request_0,
    1: _encode_describe_share_group_offsets_request_0,
}


def _decode_describe_share_group_offsets_response_0(b: memoryview, p: int = 0) -> DescribeShareGroupOffsetsResponse:
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
    if n * 6 > end - p:
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
            raise fail("topics is null")
        if n * 19 > end - p:
            raise fail("topics has more elements than bytes")
        topics_2 = []
        for _ in range(n):
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
            topic_name_3 = str(b[p:q], "utf-8")
            p = q
            (topic_id_3,) = _read_16s(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partitions is null")
            if n * 20 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, start_offset_4, leader_epoch_4, error_code_4 = _read_iqih(b, p)
                p += 18
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    error_message_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("error_message past the end")
                    error_message_4 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(DescribeShareGroupOffsetsResponsePartition(partition_index_4, start_offset_4, leader_epoch_4, -1, error_code_4, error_message_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(DescribeShareGroupOffsetsResponseTopic(topic_name_3, topic_id_3, partitions_3))
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
        groups_1.append(DescribeShareGroupOffsetsResponseGroup(group_id_2, topics_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeShareGroupOffsetsResponse(throttle_time_ms_1, groups_1)


def _decode_describe_share_group_offsets_response_1(b: memoryview, p: int = 0) -> DescribeShareGroupOffsetsResponse:
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
    if n * 6 > end - p:
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
            raise fail("topics is null")
        if n * 19 > end - p:
            raise fail("topics has more elements than bytes")
        topics_2 = []
        for _ in range(n):
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
            topic_name_3 = str(b[p:q], "utf-8")
            p = q
            (topic_id_3,) = _read_16s(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("partitions is null")
            if n * 28 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, start_offset_4, leader_epoch_4, lag_4, error_code_4 = _read_iqiqh(b, p)
                p += 26
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    error_message_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("error_message past the end")
                    error_message_4 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(DescribeShareGroupOffsetsResponsePartition(partition_index_4, start_offset_4, leader_epoch_4, lag_4, error_code_4, error_message_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(DescribeShareGroupOffsetsResponseTopic(topic_name_3, topic_id_3, partitions_3))
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
        groups_1.append(DescribeShareGroupOffsetsResponseGroup(group_id_2, topics_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeShareGroupOffsetsResponse(throttle_time_ms_1, groups_1)


DECODE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE = {
    0: _decode_describe_share_group_offsets_response_0,
    1: _decode_describe_share_group_offsets_response_1,
}


def _encode_describe_share_group_offsets_response_0(m: DescribeShareGroupOffsetsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.topic_name)
            out += _write_16s(each_2_m.topic_id)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqih(each_3_m.partition_index, each_3_m.start_offset, each_3_m.leader_epoch, each_3_m.error_code)
                write_compact_nullable_string(out, each_3_m.error_message)
                out.append(0)
            out.append(0)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


def _encode_describe_share_group_offsets_response_1(m: DescribeShareGroupOffsetsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.topic_name)
            out += _write_16s(each_2_m.topic_id)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqiqh(each_3_m.partition_index, each_3_m.start_offset, each_3_m.leader_epoch, each_3_m.lag, each_3_m.error_code)
                write_compact_nullable_string(out, each_3_m.error_message)
                out.append(0)
            out.append(0)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE = {
    0: _encode_describe_share_group_offsets_response_0,
    1: _encode_describe_share_group_offsets_response_1,
}
