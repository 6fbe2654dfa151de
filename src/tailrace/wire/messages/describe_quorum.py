"""DescribeQuorum: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_H = Struct(">H")
_read_H = _struct_H.unpack_from
_write_H = _struct_H.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_i16sqqq = Struct(">i16sqqq")
_read_i16sqqq = _struct_i16sqqq.unpack_from
_write_i16sqqq = _struct_i16sqqq.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_ihiiq = Struct(">ihiiq")
_read_ihiiq = _struct_ihiiq.unpack_from
_write_ihiiq = _struct_ihiiq.pack
_struct_iiq = Struct(">iiq")
_read_iiq = _struct_iiq.unpack_from
_write_iiq = _struct_iiq.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_iqqq = Struct(">iqqq")
_read_iqqq = _struct_iqqq.unpack_from
_write_iqqq = _struct_iqqq.pack


class RequestPartitionData(Message):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index


class RequestTopicData(Message):
    __slots__ = ("topic_name", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        partitions: list[RequestPartitionData] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[RequestPartitionData] = [] if partitions is NEW else partitions


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[RequestTopicData] = NEW,
    ) -> None:
        self.topics: list[RequestTopicData] = [] if topics is NEW else topics


class ReplicaState(Message):
    __slots__ = ("replica_id", "replica_directory_id", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp",)

    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp


class ResponsePartitionData(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "leader_id", "leader_epoch", "high_watermark", "current_voters", "observers",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = NEW,
        observers: list[ReplicaState] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: list[ReplicaState] = [] if current_voters is NEW else current_voters
        self.observers: list[ReplicaState] = [] if observers is NEW else observers


class ResponseTopicData(Message):
    __slots__ = ("topic_name", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        partitions: list[ResponsePartitionData] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[ResponsePartitionData] = [] if partitions is NEW else partitions


class Listener(Message):
    __slots__ = ("name", "host", "port",)

    def __init__(
        self,
        name: str = '',
        host: str = '',
        port: int = 0,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


class Node(Message):
    __slots__ = ("node_id", "listeners",)

    def __init__(
        self,
        node_id: int = 0,
        listeners: list[Listener] = NEW,
    ) -> None:
        self.node_id: int = node_id
        self.listeners: list[Listener] = [] if listeners is NEW else listeners


class DescribeQuorumResponse(Message):
    __slots__ = ("error_code", "error_message", "topics", "nodes",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        topics: list[ResponseTopicData] = NEW,
        nodes: list[Node] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[ResponseTopicData] = [] if topics is NEW else topics
        self.nodes: list[Node] = [] if nodes is NEW else nodes


def _decode_describe_quorum_request_0(b: memoryview, p: int = 0) -> DescribeQuorumRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
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
        if n * 5 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(RequestPartitionData(partition_index_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(RequestTopicData(topic_name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeQuorumRequest(topics_1)


DECODE_DESCRIBE_QUORUM_REQUEST = {
    0: _decode_describe_quorum_request_0,
    1: _decode_describe_quorum_request_0,
    2: _decode_describe_quorum_request_0,
}


def _encode_describe_quorum_request_0(m: DescribeQuorumRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_QUORUM_REQUEST = {
    0: _encode_describe_quorum_request_0,
    1: _encode_describe_quorum_request_0,
    2: _encode_describe_quorum_request_0,
}


def _decode_describe_quorum_response_0(b: memoryview, p: int = 0) -> DescribeQuorumResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
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
        if n * 25 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, leader_id_3, leader_epoch_3, high_watermark_3 = _read_ihiiq(b, p)
            p += 22
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("current_voters is null")
            if n * 13 > end - p:
                raise fail("current_voters has more elements than bytes")
            current_voters_3 = []
            for _ in range(n):
                replica_id_4, log_end_offset_4 = _read_iq(b, p)
                p += 12
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                current_voters_3.append(ReplicaState(replica_id_4, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', log_end_offset_4, -1, -1))
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("observers is null")
            if n * 13 > end - p:
                raise fail("observers has more elements than bytes")
            observers_3 = []
            for _ in range(n):
                replica_id_5, log_end_offset_5 = _read_iq(b, p)
                p += 12
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                observers_3.append(ReplicaState(replica_id_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', log_end_offset_5, -1, -1))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ResponsePartitionData(partition_index_3, error_code_3, '', leader_id_3, leader_epoch_3, high_watermark_3, current_voters_3, observers_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ResponseTopicData(topic_name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeQuorumResponse(error_code_1, '', topics_1, [])


def _decode_describe_quorum_response_1(b: memoryview, p: int = 0) -> DescribeQuorumResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
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
        if n * 25 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, leader_id_3, leader_epoch_3, high_watermark_3 = _read_ihiiq(b, p)
            p += 22
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("current_voters is null")
            if n * 29 > end - p:
                raise fail("current_voters has more elements than bytes")
            current_voters_3 = []
            for _ in range(n):
                replica_id_4, log_end_offset_4, last_fetch_timestamp_4, last_caught_up_timestamp_4 = _read_iqqq(b, p)
                p += 28
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                current_voters_3.append(ReplicaState(replica_id_4, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', log_end_offset_4, last_fetch_timestamp_4, last_caught_up_timestamp_4))
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("observers is null")
            if n * 29 > end - p:
                raise fail("observers has more elements than bytes")
            observers_3 = []
            for _ in range(n):
                replica_id_5, log_end_offset_5, last_fetch_timestamp_5, last_caught_up_timestamp_5 = _read_iqqq(b, p)
                p += 28
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                observers_3.append(ReplicaState(replica_id_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', log_end_offset_5, last_fetch_timestamp_5, last_caught_up_timestamp_5))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ResponsePartitionData(partition_index_3, error_code_3, '', leader_id_3, leader_epoch_3, high_watermark_3, current_voters_3, observers_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ResponseTopicData(topic_name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeQuorumResponse(error_code_1, '', topics_1, [])


def _decode_describe_quorum_response_2(b: memoryview, p: int = 0) -> DescribeQuorumResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
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
        if n * 26 > end - p:
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
            leader_id_3, leader_epoch_3, high_watermark_3 = _read_iiq(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("current_voters is null")
            if n * 45 > end - p:
                raise fail("current_voters has more elements than bytes")
            current_voters_3 = []
            for _ in range(n):
                replica_id_4, replica_directory_id_4, log_end_offset_4, last_fetch_timestamp_4, last_caught_up_timestamp_4 = _read_i16sqqq(b, p)
                p += 44
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                current_voters_3.append(ReplicaState(replica_id_4, replica_directory_id_4, log_end_offset_4, last_fetch_timestamp_4, last_caught_up_timestamp_4))
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("observers is null")
            if n * 45 > end - p:
                raise fail("observers has more elements than bytes")
            observers_3 = []
            for _ in range(n):
                replica_id_5, replica_directory_id_5, log_end_offset_5, last_fetch_timestamp_5, last_caught_up_timestamp_5 = _read_i16sqqq(b, p)
                p += 44
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                observers_3.append(ReplicaState(replica_id_5, replica_directory_id_5, log_end_offset_5, last_fetch_timestamp_5, last_caught_up_timestamp_5))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(ResponsePartitionData(partition_index_3, error_code_3, error_message_3, leader_id_3, leader_epoch_3, high_watermark_3, current_voters_3, observers_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(ResponseTopicData(topic_name_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("nodes is null")
    if n * 6 > end - p:
        raise fail("nodes has more elements than bytes")
    nodes_1 = []
    for _ in range(n):
        (node_id_6,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("listeners is null")
        if n * 5 > end - p:
            raise fail("listeners has more elements than bytes")
        listeners_6 = []
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
            name_7 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("host is null")
            q = p + n
            if q > end:
                raise fail("host past the end")
            host_7 = str(b[p:q], "utf-8")
            p = q
            (port_7,) = _read_H(b, p)
            p += 2
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            listeners_6.append(Listener(name_7, host_7, port_7))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        nodes_1.append(Node(node_id_6, listeners_6))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeQuorumResponse(error_code_1, error_message_1, topics_1, nodes_1)


DECODE_DESCRIBE_QUORUM_RESPONSE = {
    0: _decode_describe_quorum_response_0,
    1: _decode_describe_quorum_response_1,
    2: _decode_describe_quorum_response_2,
}


def _encode_describe_quorum_response_0(m: DescribeQuorumResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihiiq(each_2_m.partition_index, each_2_m.error_code, each_2_m.leader_id, each_2_m.leader_epoch, each_2_m.high_watermark)
            each_3 = each_2_m.current_voters
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iq(each_3_m.replica_id, each_3_m.log_end_offset)
                out.append(0)
            each_4 = each_2_m.observers
            write_varint(out, len(each_4) + 1)
            for each_4_m in each_4:
                out += _write_iq(each_4_m.replica_id, each_4_m.log_end_offset)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_describe_quorum_response_1(m: DescribeQuorumResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihiiq(each_2_m.partition_index, each_2_m.error_code, each_2_m.leader_id, each_2_m.leader_epoch, each_2_m.high_watermark)
            each_3 = each_2_m.current_voters
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqqq(each_3_m.replica_id, each_3_m.log_end_offset, each_3_m.last_fetch_timestamp, each_3_m.last_caught_up_timestamp)
                out.append(0)
            each_4 = each_2_m.observers
            write_varint(out, len(each_4) + 1)
            for each_4_m in each_4:
                out += _write_iqqq(each_4_m.replica_id, each_4_m.log_end_offset, each_4_m.last_fetch_timestamp, each_4_m.last_caught_up_timestamp)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_describe_quorum_response_2(m: DescribeQuorumResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out += _write_iiq(each_2_m.leader_id, each_2_m.leader_epoch, each_2_m.high_watermark)
            each_3 = each_2_m.current_voters
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_i16sqqq(each_3_m.replica_id, each_3_m.replica_directory_id, each_3_m.log_end_offset, each_3_m.last_fetch_timestamp, each_3_m.last_caught_up_timestamp)
                out.append(0)
            each_4 = each_2_m.observers
            write_varint(out, len(each_4) + 1)
            for each_4_m in each_4:
                out += _write_i16sqqq(each_4_m.replica_id, each_4_m.replica_directory_id, each_4_m.log_end_offset, each_4_m.last_fetch_timestamp, each_4_m.last_caught_up_timestamp)
                out.append(0)
            out.append(0)
        out.append(0)
    each_5 = m.nodes
    write_varint(out, len(each_5) + 1)
    for each_5_m in each_5:
        out += _write_i(each_5_m.node_id)
        each_6 = each_5_m.listeners
        write_varint(out, len(each_6) + 1)
        for each_6_m in each_6:
            write_compact_string(out, each_6_m.name)
            write_compact_string(out, each_6_m.host)
            out += _write_H(each_6_m.port)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_QUORUM_RESPONSE = {
    0: _encode_describe_quorum_response_0,
    1: _encode_describe_quorum_response_1,
    2: _encode_describe_quorum_response_2,
}
