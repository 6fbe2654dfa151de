"""DescribeTopicPartitions: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_16st = Struct(">16s?")
_read_16st = _struct_16st.unpack_from
_write_16st = _struct_16st.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_hiii = Struct(">hiii")
_read_hiii = _struct_hiii.unpack_from
_write_hiii = _struct_hiii.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class TopicRequest(Message):
    __slots__ = ("name",)

    def __init__(
        self,
        name: str = '',
    ) -> None:
        self.name: str = name


class RequestCursor(Message):
    __slots__ = ("topic_name", "partition_index",)

    def __init__(
        self,
        topic_name: str = '',
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor",)

    def __init__(
        self,
        topics: list[TopicRequest] = NEW,
        response_partition_limit: int = 2000,
        cursor: RequestCursor | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is NEW else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: RequestCursor | None = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas",)

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = NEW,
        isr_nodes: list[int] = NEW,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is NEW else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is NEW else isr_nodes
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is NEW else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations",)

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = NEW,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = [] if partitions is NEW else partitions
        self.topic_authorized_operations: int = topic_authorized_operations


class ResponseCursor(Message):
    __slots__ = ("topic_name", "partition_index",)

    def __init__(
        self,
        topic_name: str = '',
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = NEW,
        next_cursor: ResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is NEW else topics
        self.next_cursor: ResponseCursor | None = next_cursor


def _decode_describe_topic_partitions_request_0(b: memoryview, p: int = 0) -> DescribeTopicPartitionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 2 > end - p:
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
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(TopicRequest(name_2))
    (response_partition_limit_1,) = _read_i(b, p)
    p += 4
    if b[p] > 127:
        cursor_1 = None
        p += 1
    else:
        p += 1
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
        (partition_index_3,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        cursor_1 = RequestCursor(topic_name_3, partition_index_3)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeTopicPartitionsRequest(topics_1, response_partition_limit_1, cursor_1)


DECODE_DESCRIBE_TOPIC_PARTITIONS_REQUEST = {
    0: _decode_describe_topic_partitions_request_0,
}


def _encode_describe_topic_partitions_request_0(m: DescribeTopicPartitionsRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out.append(0)
    out += _write_i(m.response_partition_limit)
    each_2 = m.cursor
    if each_2 is None:
        out.append(255)
    else:
        out.append(1)
        write_compact_string(out, each_2.topic_name)
        out += _write_i(each_2.partition_index)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_TOPIC_PARTITIONS_REQUEST = {
    0: _encode_describe_topic_partitions_request_0,
}


def _decode_describe_topic_partitions_response_0(b: memoryview, p: int = 0) -> DescribeTopicPartitionsResponse:
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
    if n * 26 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            name_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_2 = str(b[p:q], "utf-8")
            p = q
        topic_id_2, is_internal_2 = _read_16st(b, p)
        p += 17
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
            error_code_3, partition_index_3, leader_id_3, leader_epoch_3 = _read_hiii(b, p)
            p += 14
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                eligible_leader_replicas_3 = None
            else:
                if n * 4 > end - p:
                    raise fail("eligible_leader_replicas has more elements than bytes")
                eligible_leader_replicas_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                last_known_elr_3 = None
            else:
                if n * 4 > end - p:
                    raise fail("last_known_elr has more elements than bytes")
                last_known_elr_3 = list(unpack_from(f">{n}i", b, p))
                p += 4 * n
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("offline_replicas is null")
            if n * 4 > end - p:
                raise fail("offline_replicas has more elements than bytes")
            offline_replicas_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(DescribeTopicPartitionsResponsePartition(error_code_3, partition_index_3, leader_id_3, leader_epoch_3, replica_nodes_3, isr_nodes_3, eligible_leader_replicas_3, last_known_elr_3, offline_replicas_3))
        (topic_authorized_operations_2,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(DescribeTopicPartitionsResponseTopic(error_code_2, name_2, topic_id_2, is_internal_2, partitions_2, topic_authorized_operations_2))
    if b[p] > 127:
        next_cursor_1 = None
        p += 1
    else:
        p += 1
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
        topic_name_4 = str(b[p:q], "utf-8")
        p = q
        (partition_index_4,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        next_cursor_1 = ResponseCursor(topic_name_4, partition_index_4)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeTopicPartitionsResponse(throttle_time_ms_1, topics_1, next_cursor_1)


DECODE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE = {
    0: _decode_describe_topic_partitions_response_0,
}


def _encode_describe_topic_partitions_response_0(m: DescribeTopicPartitionsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.name)
        out += _write_16st(each_1_m.topic_id, each_1_m.is_internal)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_hiii(each_2_m.error_code, each_2_m.partition_index, each_2_m.leader_id, each_2_m.leader_epoch)
            each_3 = each_2_m.replica_nodes
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            each_4 = each_2_m.isr_nodes
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_2_m.eligible_leader_replicas
            if each_5 is None:
                out.append(0)
            else:
                write_varint(out, len(each_5) + 1)
                out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_2_m.last_known_elr
            if each_6 is None:
                out.append(0)
            else:
                write_varint(out, len(each_6) + 1)
                out += pack(f">{len(each_6)}i", *each_6)
            each_7 = each_2_m.offline_replicas
            write_varint(out, len(each_7) + 1)
            out += pack(f">{len(each_7)}i", *each_7)
            out.append(0)
        out += _write_i(each_1_m.topic_authorized_operations)
        out.append(0)
    each_8 = m.next_cursor
    if each_8 is None:
        out.append(255)
    else:
        out.append(1)
        write_compact_string(out, each_8.topic_name)
        out += _write_i(each_8.partition_index)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE = {
    0: _encode_describe_topic_partitions_response_0,
}
