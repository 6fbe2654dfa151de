"""OffsetCommit: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_iqi = Struct(">iqi")
_read_iqi = _struct_iqi.unpack_from
_write_iqi = _struct_iqi.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack


class OffsetCommitRequestPartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata",)

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = '',
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


class OffsetCommitRequestTopic(Message):
    __slots__ = ("name", "topic_id", "partitions",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[OffsetCommitRequestPartition] = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is NEW else partitions


class OffsetCommitRequest(Message):
    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics",)

    def __init__(
        self,
        group_id: str = '',
        generation_id_or_member_epoch: int = -1,
        member_id: str = '',
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.retention_time_ms: int = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is NEW else topics


class OffsetCommitResponsePartition(Message):
    __slots__ = ("partition_index", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class OffsetCommitResponseTopic(Message):
    __slots__ = ("name", "topic_id", "partitions",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[OffsetCommitResponsePartition] = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is NEW else partitions


class OffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is NEW else topics


def _decode_offset_commit_request_2(b: memoryview, p: int = 0) -> OffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (generation_id_or_member_epoch_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    (retention_time_ms_1,) = _read_q(b, p)
    p += 8
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 14 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3 = _read_iq(b, p)
            p += 12
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            partitions_2.append(OffsetCommitRequestPartition(partition_index_3, committed_offset_3, -1, committed_metadata_3))
        topics_1.append(OffsetCommitRequestTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_1, member_id_1, None, retention_time_ms_1, topics_1)


def _decode_offset_commit_request_5(b: memoryview, p: int = 0) -> OffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (generation_id_or_member_epoch_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 14 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3 = _read_iq(b, p)
            p += 12
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            partitions_2.append(OffsetCommitRequestPartition(partition_index_3, committed_offset_3, -1, committed_metadata_3))
        topics_1.append(OffsetCommitRequestTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_1, member_id_1, None, -1, topics_1)


def _decode_offset_commit_request_6(b: memoryview, p: int = 0) -> OffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (generation_id_or_member_epoch_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            partitions_2.append(OffsetCommitRequestPartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, committed_metadata_3))
        topics_1.append(OffsetCommitRequestTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_1, member_id_1, None, -1, topics_1)


def _decode_offset_commit_request_7(b: memoryview, p: int = 0) -> OffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (generation_id_or_member_epoch_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            partitions_2.append(OffsetCommitRequestPartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, committed_metadata_3))
        topics_1.append(OffsetCommitRequestTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_1, member_id_1, group_instance_id_1, -1, topics_1)


def _decode_offset_commit_request_8(b: memoryview, p: int = 0) -> OffsetCommitRequest:
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
    (generation_id_or_member_epoch_1,) = _read_i(b, p)
    p += 4
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
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
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
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OffsetCommitRequestPartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, committed_metadata_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetCommitRequestTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_1, member_id_1, group_instance_id_1, -1, topics_1)


def _decode_offset_commit_request_10(b: memoryview, p: int = 0) -> OffsetCommitRequest:
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
    (generation_id_or_member_epoch_1,) = _read_i(b, p)
    p += 4
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
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
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
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OffsetCommitRequestPartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, committed_metadata_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetCommitRequestTopic('', topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_1, member_id_1, group_instance_id_1, -1, topics_1)


DECODE_OFFSET_COMMIT_REQUEST = {
    2: _decode_offset_commit_request_2,
    3: _decode_offset_commit_request_2,
    4: _decode_offset_commit_request_2,
    5: _decode_offset_commit_request_5,
    6: _decode_offset_commit_request_6,
    7: _decode_offset_commit_request_7,
    8: _decode_offset_commit_request_8,
    9: _decode_offset_commit_request_8,
    10: _decode_offset_commit_request_10,
}


def _encode_offset_commit_request_2(m: OffsetCommitRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id_or_member_epoch)
    write_string(out, m.member_id)
    out += _write_q(m.retention_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.committed_offset)
            write_nullable_string(out, each_2_m.committed_metadata)


def _encode_offset_commit_request_5(m: OffsetCommitRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id_or_member_epoch)
    write_string(out, m.member_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.committed_offset)
            write_nullable_string(out, each_2_m.committed_metadata)


def _encode_offset_commit_request_6(m: OffsetCommitRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id_or_member_epoch)
    write_string(out, m.member_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_nullable_string(out, each_2_m.committed_metadata)


def _encode_offset_commit_request_7(m: OffsetCommitRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_i(m.generation_id_or_member_epoch)
    write_string(out, m.member_id)
    write_nullable_string(out, m.group_instance_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_nullable_string(out, each_2_m.committed_metadata)


def _encode_offset_commit_request_8(m: OffsetCommitRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_i(m.generation_id_or_member_epoch)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_compact_nullable_string(out, each_2_m.committed_metadata)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_offset_commit_request_10(m: OffsetCommitRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    out += _write_i(m.generation_id_or_member_epoch)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_compact_nullable_string(out, each_2_m.committed_metadata)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_OFFSET_COMMIT_REQUEST = {
    2: _encode_offset_commit_request_2,
    3: _encode_offset_commit_request_2,
    4: _encode_offset_commit_request_2,
    5: _encode_offset_commit_request_5,
    6: _encode_offset_commit_request_6,
    7: _encode_offset_commit_request_7,
    8: _encode_offset_commit_request_8,
    9: _encode_offset_commit_request_8,
    10: _encode_offset_commit_request_10,
}


def _decode_offset_commit_response_2(b: memoryview, p: int = 0) -> OffsetCommitResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
            partitions_2.append(OffsetCommitResponsePartition(partition_index_3, error_code_3))
        topics_1.append(OffsetCommitResponseTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return OffsetCommitResponse(0, topics_1)


def _decode_offset_commit_response_3(b: memoryview, p: int = 0) -> OffsetCommitResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
            partitions_2.append(OffsetCommitResponsePartition(partition_index_3, error_code_3))
        topics_1.append(OffsetCommitResponseTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return OffsetCommitResponse(throttle_time_ms_1, topics_1)


def _decode_offset_commit_response_8(b: memoryview, p: int = 0) -> OffsetCommitResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 3 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 7 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OffsetCommitResponsePartition(partition_index_3, error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetCommitResponseTopic(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetCommitResponse(throttle_time_ms_1, topics_1)


def _decode_offset_commit_response_10(b: memoryview, p: int = 0) -> OffsetCommitResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
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
        if n * 7 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3 = _read_ih(b, p)
            p += 6
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OffsetCommitResponsePartition(partition_index_3, error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetCommitResponseTopic('', topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetCommitResponse(throttle_time_ms_1, topics_1)


DECODE_OFFSET_COMMIT_RESPONSE = {
    2: _decode_offset_commit_response_2,
    3: _decode_offset_commit_response_3,
    4: _decode_offset_commit_response_3,
    5: _decode_offset_commit_response_3,
    6: _decode_offset_commit_response_3,
    7: _decode_offset_commit_response_3,
    8: _decode_offset_commit_response_8,
    9: _decode_offset_commit_response_8,
    10: _decode_offset_commit_response_10,
}


def _encode_offset_commit_response_2(m: OffsetCommitResponse, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)


def _encode_offset_commit_response_3(m: OffsetCommitResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)


def _encode_offset_commit_response_8(m: OffsetCommitResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_offset_commit_response_10(m: OffsetCommitResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_OFFSET_COMMIT_RESPONSE = {
    2: _encode_offset_commit_response_2,
    3: _encode_offset_commit_response_3,
    4: _encode_offset_commit_response_3,
    5: _encode_offset_commit_response_3,
    6: _encode_offset_commit_response_3,
    7: _encode_offset_commit_response_3,
    8: _encode_offset_commit_response_8,
    9: _encode_offset_commit_response_8,
    10: _encode_offset_commit_response_10,
}
