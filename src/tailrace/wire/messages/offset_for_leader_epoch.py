"""OffsetForLeaderEpoch: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_hiiq = Struct(">hiiq")
_read_hiiq = _struct_hiiq.unpack_from
_write_hiiq = _struct_hiiq.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_iii = Struct(">iii")
_read_iii = _struct_iii.unpack_from
_write_iii = _struct_iii.pack


class OffsetForLeaderPartition(Message):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch",)

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch


class OffsetForLeaderTopic(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[OffsetForLeaderPartition] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is NEW else partitions


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics",)

    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = NEW,
    ) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is NEW else topics


class EpochEndOffset(Message):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset",)

    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset


class OffsetForLeaderTopicResult(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[EpochEndOffset] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is NEW else partitions


class OffsetForLeaderEpochResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is NEW else topics


def _decode_offset_for_leader_epoch_request_2(b: memoryview, p: int = 0) -> OffsetForLeaderEpochRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
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
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 12 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, leader_epoch_3 = _read_iii(b, p)
            p += 12
            partitions_2.append(OffsetForLeaderPartition(partition_3, current_leader_epoch_3, leader_epoch_3))
        topics_1.append(OffsetForLeaderTopic(topic_2, partitions_2))
    return OffsetForLeaderEpochRequest(-2, topics_1)


def _decode_offset_for_leader_epoch_request_3(b: memoryview, p: int = 0) -> OffsetForLeaderEpochRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (replica_id_1,) = _read_i(b, p)
    p += 4
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
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 12 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, leader_epoch_3 = _read_iii(b, p)
            p += 12
            partitions_2.append(OffsetForLeaderPartition(partition_3, current_leader_epoch_3, leader_epoch_3))
        topics_1.append(OffsetForLeaderTopic(topic_2, partitions_2))
    return OffsetForLeaderEpochRequest(replica_id_1, topics_1)


def _decode_offset_for_leader_epoch_request_4(b: memoryview, p: int = 0) -> OffsetForLeaderEpochRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (replica_id_1,) = _read_i(b, p)
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
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
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
            partition_3, current_leader_epoch_3, leader_epoch_3 = _read_iii(b, p)
            p += 12
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(OffsetForLeaderPartition(partition_3, current_leader_epoch_3, leader_epoch_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetForLeaderTopic(topic_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetForLeaderEpochRequest(replica_id_1, topics_1)


DECODE_OFFSET_FOR_LEADER_EPOCH_REQUEST = {
    2: _decode_offset_for_leader_epoch_request_2,
    3: _decode_offset_for_leader_epoch_request_3,
    4: _decode_offset_for_leader_epoch_request_4,
}


def _encode_offset_for_leader_epoch_request_2(m: OffsetForLeaderEpochRequest, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iii(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.leader_epoch)


def _encode_offset_for_leader_epoch_request_3(m: OffsetForLeaderEpochRequest, out: bytearray) -> None:
    out += _write_i(m.replica_id)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iii(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.leader_epoch)


def _encode_offset_for_leader_epoch_request_4(m: OffsetForLeaderEpochRequest, out: bytearray) -> None:
    out += _write_i(m.replica_id)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iii(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.leader_epoch)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_OFFSET_FOR_LEADER_EPOCH_REQUEST = {
    2: _encode_offset_for_leader_epoch_request_2,
    3: _encode_offset_for_leader_epoch_request_3,
    4: _encode_offset_for_leader_epoch_request_4,
}


def _decode_offset_for_leader_epoch_response_2(b: memoryview, p: int = 0) -> OffsetForLeaderEpochResponse:
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
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            error_code_3, partition_3, leader_epoch_3, end_offset_3 = _read_hiiq(b, p)
            p += 18
            partitions_2.append(EpochEndOffset(error_code_3, partition_3, leader_epoch_3, end_offset_3))
        topics_1.append(OffsetForLeaderTopicResult(topic_2, partitions_2))
    return OffsetForLeaderEpochResponse(throttle_time_ms_1, topics_1)


def _decode_offset_for_leader_epoch_response_4(b: memoryview, p: int = 0) -> OffsetForLeaderEpochResponse:
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
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 19 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            error_code_3, partition_3, leader_epoch_3, end_offset_3 = _read_hiiq(b, p)
            p += 18
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(EpochEndOffset(error_code_3, partition_3, leader_epoch_3, end_offset_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(OffsetForLeaderTopicResult(topic_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return OffsetForLeaderEpochResponse(throttle_time_ms_1, topics_1)


DECODE_OFFSET_FOR_LEADER_EPOCH_RESPONSE = {
    2: _decode_offset_for_leader_epoch_response_2,
    3: _decode_offset_for_leader_epoch_response_2,
    4: _decode_offset_for_leader_epoch_response_4,
}


def _encode_offset_for_leader_epoch_response_2(m: OffsetForLeaderEpochResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_hiiq(each_2_m.error_code, each_2_m.partition, each_2_m.leader_epoch, each_2_m.end_offset)


def _encode_offset_for_leader_epoch_response_4(m: OffsetForLeaderEpochResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_hiiq(each_2_m.error_code, each_2_m.partition, each_2_m.leader_epoch, each_2_m.end_offset)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_OFFSET_FOR_LEADER_EPOCH_RESPONSE = {
    2: _encode_offset_for_leader_epoch_response_2,
    3: _encode_offset_for_leader_epoch_response_2,
    4: _encode_offset_for_leader_epoch_response_4,
}
