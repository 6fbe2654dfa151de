"""AlterShareGroupOffsets: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack


class AlterShareGroupOffsetsRequestPartition(Message):
    __slots__ = ("partition_index", "start_offset",)

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        partitions: list[AlterShareGroupOffsetsRequestPartition] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterShareGroupOffsetsRequestPartition] = [] if partitions is NEW else partitions


class AlterShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics",)

    def __init__(
        self,
        group_id: str = '',
        topics: list[AlterShareGroupOffsetsRequestTopic] = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = [] if topics is NEW else topics


class AlterShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("partition_index", "error_code", "error_message",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[AlterShareGroupOffsetsResponsePartition] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[AlterShareGroupOffsetsResponsePartition] = [] if partitions is NEW else partitions


class AlterShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[AlterShareGroupOffsetsResponseTopic] = [] if responses is NEW else responses


def _decode_alter_share_group_offsets_request_0(b: memoryview, p: int = 0) -> AlterShareGroupOffsetsRequest:
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
        raise fail("topics is null")
    if n * 3 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
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
        topic_name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 13 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, start_offset_3 = _read_iq(b, p)
            p += 12
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(AlterShareGroupOffsetsRequestPartition(partition_index_3, start_offset_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(AlterShareGroupOffsetsRequestTopic(topic_name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterShareGroupOffsetsRequest(group_id_1, topics_1)


DECODE_ALTER_SHARE_GROUP_OFFSETS_REQUEST = {
    0: _decode_alter_share_group_offsets_request_0,
}


def _encode_alter_share_group_offsets_request_0(m: AlterShareGroupOffsetsRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.start_offset)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_SHARE_GROUP_OFFSETS_REQUEST = {
    0: _encode_alter_share_group_offsets_request_0,
}


def _decode_alter_share_group_offsets_response_0(b: memoryview, p: int = 0) -> AlterShareGroupOffsetsResponse:
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
        raise fail("responses is null")
    if n * 19 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
        topic_name_2 = str(b[p:q], "utf-8")
        p = q
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 8 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
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
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(AlterShareGroupOffsetsResponsePartition(partition_index_3, error_code_3, error_message_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(AlterShareGroupOffsetsResponseTopic(topic_name_2, topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterShareGroupOffsetsResponse(throttle_time_ms_1, error_code_1, error_message_1, responses_1)


DECODE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE = {
    0: _decode_alter_share_group_offsets_response_0,
}


def _encode_alter_share_group_offsets_response_0(m: AlterShareGroupOffsetsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE = {
    0: _encode_alter_share_group_offsets_response_0,
}
