"""OffsetFetch: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_iqi = Struct(">iqi")
_read_iqi = _struct_iqi.unpack_from
_write_iqi = _struct_iqi.pack


class OffsetFetchRequestTopic(Message):
    __slots__ = ("name", "partition_indexes",)

    def __init__(
        self,
        name: str = '',
        partition_indexes: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is NEW else partition_indexes


class OffsetFetchRequestTopics(Message):
    __slots__ = ("name", "topic_id", "partition_indexes",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partition_indexes: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_indexes: list[int] = [] if partition_indexes is NEW else partition_indexes


class OffsetFetchRequestGroup(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = NEW,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if topics is NEW else topics


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "topics", "groups", "require_stable",)

    def __init__(
        self,
        group_id: str = '',
        topics: list[OffsetFetchRequestTopic] | None = NEW,
        groups: list[OffsetFetchRequestGroup] = NEW,
        require_stable: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if topics is NEW else topics
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is NEW else groups
        self.require_stable: bool = require_stable


class OffsetFetchResponsePartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = '',
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


class OffsetFetchResponseTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[OffsetFetchResponsePartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is NEW else partitions


class OffsetFetchResponsePartitions(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = '',
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


class OffsetFetchResponseTopics(Message):
    __slots__ = ("name", "topic_id", "partitions",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[OffsetFetchResponsePartitions] = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is NEW else partitions


class OffsetFetchResponseGroup(Message):
    __slots__ = ("group_id", "topics", "error_code",)

    def __init__(
        self,
        group_id: str = '',
        topics: list[OffsetFetchResponseTopics] = NEW,
        error_code: int = 0,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is NEW else topics
        self.error_code: int = error_code


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = NEW,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is NEW else topics
        self.error_code: int = error_code
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is NEW else groups


def _decode_offset_fetch_request_1(b: memoryview, p: int = 0) -> OffsetFetchRequest:
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
            raise fail("partition_indexes is null")
        if n * 4 > end - p:
            raise fail("partition_indexes has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partition_indexes_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        topics_1.append(OffsetFetchRequestTopic(name_2, partition_indexes_2))
    return OffsetFetchRequest(group_id_1, topics_1, [], False)


def _decode_offset_fetch_request_2(b: memoryview, p: int = 0) -> OffsetFetchRequest:
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
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        topics_1 = None
    else:
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
                raise fail("partition_indexes is null")
            if n * 4 > end - p:
                raise fail("partition_indexes has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partition_indexes_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            topics_1.append(OffsetFetchRequestTopic(name_2, partition_indexes_2))
    return OffsetFetchRequest(group_id_1, topics_1, [], False)


def _decode_offset_fetch_request_6(b: memoryview, p: int = 0) -> OffsetFetchRequest:
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
        topics_1 = None
    else:
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
                raise fail("partition_indexes is null")
            if n * 4 > end - p:
                raise fail("partition_indexes has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partition_indexes_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_1.append(OffsetFetchRequestTopic(name_2, partition_indexes_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchRequest(group_id_1, topics_1, [], False)


def _decode_offset_fetch_request_7(b: memoryview, p: int = 0) -> OffsetFetchRequest:
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
        topics_1 = None
    else:
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
                raise fail("partition_indexes is null")
            if n * 4 > end - p:
                raise fail("partition_indexes has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partition_indexes_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_1.append(OffsetFetchRequestTopic(name_2, partition_indexes_2))
    (require_stable_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchRequest(group_id_1, topics_1, [], require_stable_1)


def _decode_offset_fetch_request_8(b: memoryview, p: int = 0) -> OffsetFetchRequest:
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
                    raise fail("name is null")
                q = p + n
                if q > end:
                    raise fail("name past the end")
                name_3 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partition_indexes is null")
                if n * 4 > end - p:
                    raise fail("partition_indexes has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                partition_indexes_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topics_2.append(OffsetFetchRequestTopics(name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_indexes_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(OffsetFetchRequestGroup(group_id_2, None, -1, topics_2))
    (require_stable_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchRequest('', [], groups_1, require_stable_1)


def _decode_offset_fetch_request_9(b: memoryview, p: int = 0) -> OffsetFetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 8 > end - p:
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
            member_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("member_id past the end")
            member_id_2 = str(b[p:q], "utf-8")
            p = q
        (member_epoch_2,) = _read_i(b, p)
        p += 4
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
                    raise fail("name is null")
                q = p + n
                if q > end:
                    raise fail("name past the end")
                name_3 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partition_indexes is null")
                if n * 4 > end - p:
                    raise fail("partition_indexes has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                partition_indexes_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topics_2.append(OffsetFetchRequestTopics(name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_indexes_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(OffsetFetchRequestGroup(group_id_2, member_id_2, member_epoch_2, topics_2))
    (require_stable_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchRequest('', [], groups_1, require_stable_1)


def _decode_offset_fetch_request_10(b: memoryview, p: int = 0) -> OffsetFetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("groups is null")
    if n * 8 > end - p:
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
            member_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("member_id past the end")
            member_id_2 = str(b[p:q], "utf-8")
            p = q
        (member_epoch_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            topics_2 = None
        else:
            if n * 18 > end - p:
                raise fail("topics has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            topics_2 = []
            for _ in range(n):
                (topic_id_3,) = _read_16s(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("partition_indexes is null")
                if n * 4 > end - p:
                    raise fail("partition_indexes has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                partition_indexes_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                topics_2.append(OffsetFetchRequestTopics('', topic_id_3, partition_indexes_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(OffsetFetchRequestGroup(group_id_2, member_id_2, member_epoch_2, topics_2))
    (require_stable_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchRequest('', [], groups_1, require_stable_1)


DECODE_OFFSET_FETCH_REQUEST = {
    1: _decode_offset_fetch_request_1,
    2: _decode_offset_fetch_request_2,
    3: _decode_offset_fetch_request_2,
    4: _decode_offset_fetch_request_2,
    5: _decode_offset_fetch_request_2,
    6: _decode_offset_fetch_request_6,
    7: _decode_offset_fetch_request_7,
    8: _decode_offset_fetch_request_8,
    9: _decode_offset_fetch_request_9,
    10: _decode_offset_fetch_request_10,
}


def _encode_offset_fetch_request_1(m: OffsetFetchRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partition_indexes
        out += _write_i(len(each_2))
        out += pack(f">{len(each_2)}i", *each_2)


def _encode_offset_fetch_request_2(m: OffsetFetchRequest, out: bytearray) -> None:
    write_string(out, m.group_id)
    each_1 = m.topics
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.name)
            each_2 = each_1_m.partition_indexes
            out += _write_i(len(each_2))
            out += pack(f">{len(each_2)}i", *each_2)


def _encode_offset_fetch_request_6(m: OffsetFetchRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.name)
            each_2 = each_1_m.partition_indexes
            write_varint(out, len(each_2) + 1)
            out += pack(f">{len(each_2)}i", *each_2)
            out.append(0)
    out.append(0)


def _encode_offset_fetch_request_7(m: OffsetFetchRequest, out: bytearray) -> None:
    write_compact_string(out, m.group_id)
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.name)
            each_2 = each_1_m.partition_indexes
            write_varint(out, len(each_2) + 1)
            out += pack(f">{len(each_2)}i", *each_2)
            out.append(0)
    out += _write_t(m.require_stable)
    out.append(0)


def _encode_offset_fetch_request_8(m: OffsetFetchRequest, out: bytearray) -> None:
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
                write_compact_string(out, each_2_m.name)
                each_3 = each_2_m.partition_indexes
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
                out.append(0)
        out.append(0)
    out += _write_t(m.require_stable)
    out.append(0)


def _encode_offset_fetch_request_9(m: OffsetFetchRequest, out: bytearray) -> None:
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        write_compact_nullable_string(out, each_1_m.member_id)
        out += _write_i(each_1_m.member_epoch)
        each_2 = each_1_m.topics
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                write_compact_string(out, each_2_m.name)
                each_3 = each_2_m.partition_indexes
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
                out.append(0)
        out.append(0)
    out += _write_t(m.require_stable)
    out.append(0)


def _encode_offset_fetch_request_10(m: OffsetFetchRequest, out: bytearray) -> None:
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        write_compact_nullable_string(out, each_1_m.member_id)
        out += _write_i(each_1_m.member_epoch)
        each_2 = each_1_m.topics
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                out += _write_16s(each_2_m.topic_id)
                each_3 = each_2_m.partition_indexes
                write_varint(out, len(each_3) + 1)
                out += pack(f">{len(each_3)}i", *each_3)
                out.append(0)
        out.append(0)
    out += _write_t(m.require_stable)
    out.append(0)


ENCODE_OFFSET_FETCH_REQUEST = {
    1: _encode_offset_fetch_request_1,
    2: _encode_offset_fetch_request_2,
    3: _encode_offset_fetch_request_2,
    4: _encode_offset_fetch_request_2,
    5: _encode_offset_fetch_request_2,
    6: _encode_offset_fetch_request_6,
    7: _encode_offset_fetch_request_7,
    8: _encode_offset_fetch_request_8,
    9: _encode_offset_fetch_request_9,
    10: _encode_offset_fetch_request_10,
}


def _decode_offset_fetch_response_1(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
        if n * 16 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3 = _read_iq(b, p)
            p += 12
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("metadata past the end")
                metadata_3 = str(b[p:q], "utf-8")
                p = q
            (error_code_3,) = _read_h(b, p)
            p += 2
            partitions_2.append(OffsetFetchResponsePartition(partition_index_3, committed_offset_3, -1, metadata_3, error_code_3))
        topics_1.append(OffsetFetchResponseTopic(name_2, partitions_2))
    return OffsetFetchResponse(0, topics_1, 0, [])


def _decode_offset_fetch_response_2(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
        if n * 16 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3 = _read_iq(b, p)
            p += 12
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("metadata past the end")
                metadata_3 = str(b[p:q], "utf-8")
                p = q
            (error_code_3,) = _read_h(b, p)
            p += 2
            partitions_2.append(OffsetFetchResponsePartition(partition_index_3, committed_offset_3, -1, metadata_3, error_code_3))
        topics_1.append(OffsetFetchResponseTopic(name_2, partitions_2))
    (error_code_1,) = _read_h(b, p)
    p += 2
    return OffsetFetchResponse(0, topics_1, error_code_1, [])


def _decode_offset_fetch_response_3(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
        if n * 16 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3 = _read_iq(b, p)
            p += 12
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("metadata past the end")
                metadata_3 = str(b[p:q], "utf-8")
                p = q
            (error_code_3,) = _read_h(b, p)
            p += 2
            partitions_2.append(OffsetFetchResponsePartition(partition_index_3, committed_offset_3, -1, metadata_3, error_code_3))
        topics_1.append(OffsetFetchResponseTopic(name_2, partitions_2))
    (error_code_1,) = _read_h(b, p)
    p += 2
    return OffsetFetchResponse(throttle_time_ms_1, topics_1, error_code_1, [])


def _decode_offset_fetch_response_5(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
        if n * 20 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("metadata past the end")
                metadata_3 = str(b[p:q], "utf-8")
                p = q
            (error_code_3,) = _read_h(b, p)
            p += 2
            partitions_2.append(OffsetFetchResponsePartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, metadata_3, error_code_3))
        topics_1.append(OffsetFetchResponseTopic(name_2, partitions_2))
    (error_code_1,) = _read_h(b, p)
    p += 2
    return OffsetFetchResponse(throttle_time_ms_1, topics_1, error_code_1, [])


def _decode_offset_fetch_response_6(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
        if n * 20 > end - p:
            raise fail("partitions has more elements than bytes")
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
                metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("metadata past the end")
                metadata_3 = str(b[p:q], "utf-8")
                p = q
            (error_code_3,) = _read_h(b, p)
            p += 2
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OffsetFetchResponsePartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, metadata_3, error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetFetchResponseTopic(name_2, partitions_2))
    (error_code_1,) = _read_h(b, p)
    p += 2
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchResponse(throttle_time_ms_1, topics_1, error_code_1, [])


def _decode_offset_fetch_response_8(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
            raise fail("topics is null")
        if n * 3 > end - p:
            raise fail("topics has more elements than bytes")
        topics_2 = []
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
            name_3 = str(b[p:q], "utf-8")
            p = q
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
                partition_index_4, committed_offset_4, committed_leader_epoch_4 = _read_iqi(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    metadata_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("metadata past the end")
                    metadata_4 = str(b[p:q], "utf-8")
                    p = q
                (error_code_4,) = _read_h(b, p)
                p += 2
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(OffsetFetchResponsePartitions(partition_index_4, committed_offset_4, committed_leader_epoch_4, metadata_4, error_code_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(OffsetFetchResponseTopics(name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_3))
        (error_code_2,) = _read_h(b, p)
        p += 2
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(OffsetFetchResponseGroup(group_id_2, topics_2, error_code_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchResponse(throttle_time_ms_1, [], 0, groups_1)


def _decode_offset_fetch_response_10(b: memoryview, p: int = 0) -> OffsetFetchResponse:
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
            raise fail("topics is null")
        if n * 18 > end - p:
            raise fail("topics has more elements than bytes")
        topics_2 = []
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
            if n * 20 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, committed_offset_4, committed_leader_epoch_4 = _read_iqi(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    metadata_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("metadata past the end")
                    metadata_4 = str(b[p:q], "utf-8")
                    p = q
                (error_code_4,) = _read_h(b, p)
                p += 2
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(OffsetFetchResponsePartitions(partition_index_4, committed_offset_4, committed_leader_epoch_4, metadata_4, error_code_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(OffsetFetchResponseTopics('', topic_id_3, partitions_3))
        (error_code_2,) = _read_h(b, p)
        p += 2
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        groups_1.append(OffsetFetchResponseGroup(group_id_2, topics_2, error_code_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetFetchResponse(throttle_time_ms_1, [], 0, groups_1)


DECODE_OFFSET_FETCH_RESPONSE = {
    1: _decode_offset_fetch_response_1,
    2: _decode_offset_fetch_response_2,
    3: _decode_offset_fetch_response_3,
    4: _decode_offset_fetch_response_3,
    5: _decode_offset_fetch_response_5,
    6: _decode_offset_fetch_response_6,
    7: _decode_offset_fetch_response_6,
    8: _decode_offset_fetch_response_8,
    9: _decode_offset_fetch_response_8,
    10: _decode_offset_fetch_response_10,
}


def _encode_offset_fetch_response_1(m: OffsetFetchResponse, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.committed_offset)
            write_nullable_string(out, each_2_m.metadata)
            out += _write_h(each_2_m.error_code)


def _encode_offset_fetch_response_2(m: OffsetFetchResponse, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.committed_offset)
            write_nullable_string(out, each_2_m.metadata)
            out += _write_h(each_2_m.error_code)
    out += _write_h(m.error_code)


def _encode_offset_fetch_response_3(m: OffsetFetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.committed_offset)
            write_nullable_string(out, each_2_m.metadata)
            out += _write_h(each_2_m.error_code)
    out += _write_h(m.error_code)


def _encode_offset_fetch_response_5(m: OffsetFetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_nullable_string(out, each_2_m.metadata)
            out += _write_h(each_2_m.error_code)
    out += _write_h(m.error_code)


def _encode_offset_fetch_response_6(m: OffsetFetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_compact_nullable_string(out, each_2_m.metadata)
            out += _write_h(each_2_m.error_code)
            out.append(0)
        out.append(0)
    out += _write_h(m.error_code)
    out.append(0)


def _encode_offset_fetch_response_8(m: OffsetFetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqi(each_3_m.partition_index, each_3_m.committed_offset, each_3_m.committed_leader_epoch)
                write_compact_nullable_string(out, each_3_m.metadata)
                out += _write_h(each_3_m.error_code)
                out.append(0)
            out.append(0)
        out += _write_h(each_1_m.error_code)
        out.append(0)
    out.append(0)


def _encode_offset_fetch_response_10(m: OffsetFetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.groups
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.group_id)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_16s(each_2_m.topic_id)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqi(each_3_m.partition_index, each_3_m.committed_offset, each_3_m.committed_leader_epoch)
                write_compact_nullable_string(out, each_3_m.metadata)
                out += _write_h(each_3_m.error_code)
                out.append(0)
            out.append(0)
        out += _write_h(each_1_m.error_code)
        out.append(0)
    out.append(0)


ENCODE_OFFSET_FETCH_RESPONSE = {
    1: _encode_offset_fetch_response_1,
    2: _encode_offset_fetch_response_2,
    3: _encode_offset_fetch_response_3,
    4: _encode_offset_fetch_response_3,
    5: _encode_offset_fetch_response_5,
    6: _encode_offset_fetch_response_6,
    7: _encode_offset_fetch_response_6,
    8: _encode_offset_fetch_response_8,
    9: _encode_offset_fetch_response_8,
    10: _encode_offset_fetch_response_10,
}
