"""Metadata: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_16st = Struct(">16s?")
_read_16st = _struct_16st.unpack_from
_write_16st = _struct_16st.pack
_struct_t = Struct(">?")
_read_t = _struct_t.unpack_from
_write_t = _struct_t.pack
_struct_tt = Struct(">??")
_read_tt = _struct_tt.unpack_from
_write_tt = _struct_tt.pack
_struct_ttt = Struct(">???")
_read_ttt = _struct_ttt.unpack_from
_write_ttt = _struct_ttt.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_hii = Struct(">hii")
_read_hii = _struct_hii.unpack_from
_write_hii = _struct_hii.pack
_struct_hiii = Struct(">hiii")
_read_hiii = _struct_hiii.unpack_from
_write_hiii = _struct_hiii.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class MetadataRequestTopic(Message):
    __slots__ = ("topic_id", "name",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        name: str | None = '',
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str | None = name


class MetadataRequest(Message):
    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations",)

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = NEW,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if topics is NEW else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    __slots__ = ("node_id", "host", "port", "rack",)

    def __init__(
        self,
        node_id: int = 0,
        host: str = '',
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class MetadataResponsePartition(Message):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas",)

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = NEW,
        isr_nodes: list[int] = NEW,
        offline_replicas: list[int] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is NEW else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is NEW else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is NEW else offline_replicas


class MetadataResponseTopic(Message):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations",)

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = NEW,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is NEW else partitions
        self.topic_authorized_operations: int = topic_authorized_operations


class MetadataResponse(Message):
    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = NEW,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = NEW,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is NEW else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is NEW else topics
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.error_code: int = error_code


def _decode_metadata_request_0(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 2 > end - p:
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
        topics_1.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_2))
    return MetadataRequest(topics_1, True, False, False)


def _decode_metadata_request_1(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        topics_1 = None
    else:
        if n * 2 > end - p:
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
            topics_1.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_2))
    return MetadataRequest(topics_1, True, False, False)


def _decode_metadata_request_4(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        topics_1 = None
    else:
        if n * 2 > end - p:
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
            topics_1.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_2))
    (allow_auto_topic_creation_1,) = _read_t(b, p)
    p += 1
    return MetadataRequest(topics_1, allow_auto_topic_creation_1, False, False)


def _decode_metadata_request_8(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        topics_1 = None
    else:
        if n * 2 > end - p:
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
            topics_1.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_2))
    allow_auto_topic_creation_1, include_cluster_authorized_operations_1, include_topic_authorized_operations_1 = _read_ttt(b, p)
    p += 3
    return MetadataRequest(topics_1, allow_auto_topic_creation_1, include_cluster_authorized_operations_1, include_topic_authorized_operations_1)


def _decode_metadata_request_9(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topics_1 = None
    else:
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
            topics_1.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_2))
    allow_auto_topic_creation_1, include_cluster_authorized_operations_1, include_topic_authorized_operations_1 = _read_ttt(b, p)
    p += 3
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataRequest(topics_1, allow_auto_topic_creation_1, include_cluster_authorized_operations_1, include_topic_authorized_operations_1)


def _decode_metadata_request_10(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topics_1 = None
    else:
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
                name_2 = None
            else:
                q = p + n
                if q > end:
                    raise fail("name past the end")
                name_2 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_1.append(MetadataRequestTopic(topic_id_2, name_2))
    allow_auto_topic_creation_1, include_cluster_authorized_operations_1, include_topic_authorized_operations_1 = _read_ttt(b, p)
    p += 3
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataRequest(topics_1, allow_auto_topic_creation_1, include_cluster_authorized_operations_1, include_topic_authorized_operations_1)


def _decode_metadata_request_11(b: memoryview, p: int = 0) -> MetadataRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topics_1 = None
    else:
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
                name_2 = None
            else:
                q = p + n
                if q > end:
                    raise fail("name past the end")
                name_2 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_1.append(MetadataRequestTopic(topic_id_2, name_2))
    allow_auto_topic_creation_1, include_topic_authorized_operations_1 = _read_tt(b, p)
    p += 2
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataRequest(topics_1, allow_auto_topic_creation_1, False, include_topic_authorized_operations_1)


DECODE_METADATA_REQUEST = {
    0: _decode_metadata_request_0,
    1: _decode_metadata_request_1,
    2: _decode_metadata_request_1,
    3: _decode_metadata_request_1,
    4: _decode_metadata_request_4,
    5: _decode_metadata_request_4,
    6: _decode_metadata_request_4,
    7: _decode_metadata_request_4,
    8: _decode_metadata_request_8,
    9: _decode_metadata_request_9,
    10: _decode_metadata_request_10,
    11: _decode_metadata_request_11,
    12: _decode_metadata_request_11,
    13: _decode_metadata_request_11,
}


def _encode_metadata_request_0(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)


def _encode_metadata_request_1(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.name)


def _encode_metadata_request_4(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.name)
    out += _write_t(m.allow_auto_topic_creation)


def _encode_metadata_request_8(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.name)
    out += _write_ttt(m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations)


def _encode_metadata_request_9(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.name)
            out.append(0)
    out += _write_ttt(m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations)
    out.append(0)


def _encode_metadata_request_10(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            out += _write_16s(each_1_m.topic_id)
            write_compact_nullable_string(out, each_1_m.name)
            out.append(0)
    out += _write_ttt(m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations)
    out.append(0)


def _encode_metadata_request_11(m: MetadataRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            out += _write_16s(each_1_m.topic_id)
            write_compact_nullable_string(out, each_1_m.name)
            out.append(0)
    out += _write_tt(m.allow_auto_topic_creation, m.include_topic_authorized_operations)
    out.append(0)


ENCODE_METADATA_REQUEST = {
    0: _encode_metadata_request_0,
    1: _encode_metadata_request_1,
    2: _encode_metadata_request_1,
    3: _encode_metadata_request_1,
    4: _encode_metadata_request_4,
    5: _encode_metadata_request_4,
    6: _encode_metadata_request_4,
    7: _encode_metadata_request_4,
    8: _encode_metadata_request_8,
    9: _encode_metadata_request_9,
    10: _encode_metadata_request_10,
    11: _encode_metadata_request_11,
    12: _encode_metadata_request_11,
    13: _encode_metadata_request_11,
}


def _decode_metadata_response_0(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 10 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, None))
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 8 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4 = _read_hii(b, p)
            p += 10
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, -1, replica_nodes_4, isr_nodes_4, []))
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', False, partitions_3, -2147483648))
    return MetadataResponse(0, brokers_1, None, -1, topics_1, -2147483648, 0)


def _decode_metadata_response_1(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    (controller_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 9 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (is_internal_3,) = _read_t(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4 = _read_hii(b, p)
            p += 10
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, -1, replica_nodes_4, isr_nodes_4, []))
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, -2147483648))
    return MetadataResponse(0, brokers_1, None, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_2(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 9 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (is_internal_3,) = _read_t(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4 = _read_hii(b, p)
            p += 10
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, -1, replica_nodes_4, isr_nodes_4, []))
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, -2147483648))
    return MetadataResponse(0, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_3(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 9 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (is_internal_3,) = _read_t(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4 = _read_hii(b, p)
            p += 10
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, -1, replica_nodes_4, isr_nodes_4, []))
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, -2147483648))
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_5(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 9 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (is_internal_3,) = _read_t(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 22 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4 = _read_hii(b, p)
            p += 10
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("offline_replicas is null")
            if n * 4 > end - p:
                raise fail("offline_replicas has more elements than bytes")
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, -1, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, -2147483648))
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_7(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 9 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (is_internal_3,) = _read_t(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 26 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
            p += 14
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("offline_replicas is null")
            if n * 4 > end - p:
                raise fail("offline_replicas has more elements than bytes")
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, -2147483648))
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_8(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 13 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_3 = str(b[p:q], "utf-8")
        p = q
        (is_internal_3,) = _read_t(b, p)
        p += 1
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 26 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
            p += 14
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("replica_nodes is null")
            if n * 4 > end - p:
                raise fail("replica_nodes has more elements than bytes")
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("isr_nodes is null")
            if n * 4 > end - p:
                raise fail("isr_nodes has more elements than bytes")
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("offline_replicas is null")
            if n * 4 > end - p:
                raise fail("offline_replicas has more elements than bytes")
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        (topic_authorized_operations_3,) = _read_i(b, p)
        p += 4
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, topic_authorized_operations_3))
    (cluster_authorized_operations_1,) = _read_i(b, p)
    p += 4
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, cluster_authorized_operations_1, 0)


def _decode_metadata_response_9(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
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
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 10 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (error_code_3,) = _read_h(b, p)
        p += 2
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
        (is_internal_3,) = _read_t(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
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
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        (topic_authorized_operations_3,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_3, partitions_3, topic_authorized_operations_3))
    (cluster_authorized_operations_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, cluster_authorized_operations_1, 0)


def _decode_metadata_response_10(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
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
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
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
        (error_code_3,) = _read_h(b, p)
        p += 2
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
        topic_id_3, is_internal_3 = _read_16st(b, p)
        p += 17
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
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
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        (topic_authorized_operations_3,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, topic_id_3, is_internal_3, partitions_3, topic_authorized_operations_3))
    (cluster_authorized_operations_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, cluster_authorized_operations_1, 0)


def _decode_metadata_response_11(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
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
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
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
        (error_code_3,) = _read_h(b, p)
        p += 2
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
        topic_id_3, is_internal_3 = _read_16st(b, p)
        p += 17
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
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
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        (topic_authorized_operations_3,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, topic_id_3, is_internal_3, partitions_3, topic_authorized_operations_3))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_12(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
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
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
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
        (error_code_3,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            name_3 = None
        else:
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_3 = str(b[p:q], "utf-8")
            p = q
        topic_id_3, is_internal_3 = _read_16st(b, p)
        p += 17
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
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
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        (topic_authorized_operations_3,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, topic_id_3, is_internal_3, partitions_3, topic_authorized_operations_3))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, 0)


def _decode_metadata_response_13(b: memoryview, p: int = 0) -> MetadataResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (node_id_2,) = _read_i(b, p)
        p += 4
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
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(MetadataResponseBroker(node_id_2, host_2, port_2, rack_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        cluster_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("cluster_id past the end")
        cluster_id_1 = str(b[p:q], "utf-8")
        p = q
    (controller_id_1,) = _read_i(b, p)
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
        (error_code_3,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            name_3 = None
        else:
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_3 = str(b[p:q], "utf-8")
            p = q
        topic_id_3, is_internal_3 = _read_16st(b, p)
        p += 17
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = []
        for _ in range(n):
            error_code_4, partition_index_4, leader_id_4, leader_epoch_4 = _read_hiii(b, p)
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
            replica_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            isr_nodes_4 = list(unpack_from(f">{n}i", b, p))
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
            offline_replicas_4 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_3.append(MetadataResponsePartition(error_code_4, partition_index_4, leader_id_4, leader_epoch_4, replica_nodes_4, isr_nodes_4, offline_replicas_4))
        (topic_authorized_operations_3,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(MetadataResponseTopic(error_code_3, name_3, topic_id_3, is_internal_3, partitions_3, topic_authorized_operations_3))
    (error_code_1,) = _read_h(b, p)
    p += 2
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return MetadataResponse(throttle_time_ms_1, brokers_1, cluster_id_1, controller_id_1, topics_1, -2147483648, error_code_1)


DECODE_METADATA_RESPONSE = {
    0: _decode_metadata_response_0,
    1: _decode_metadata_response_1,
    2: _decode_metadata_response_2,
    3: _decode_metadata_response_3,
    4: _decode_metadata_response_3,
    5: _decode_metadata_response_5,
    6: _decode_metadata_response_5,
    7: _decode_metadata_response_7,
    8: _decode_metadata_response_8,
    9: _decode_metadata_response_9,
    10: _decode_metadata_response_10,
    11: _decode_metadata_response_11,
    12: _decode_metadata_response_12,
    13: _decode_metadata_response_13,
}


def _encode_metadata_response_0(m: MetadataResponse, out: bytearray) -> None:
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)


def _encode_metadata_response_1(m: MetadataResponse, out: bytearray) -> None:
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_nullable_string(out, each_1_m.rack)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)


def _encode_metadata_response_2(m: MetadataResponse, out: bytearray) -> None:
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_nullable_string(out, each_1_m.rack)
    write_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)


def _encode_metadata_response_3(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_nullable_string(out, each_1_m.rack)
    write_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)


def _encode_metadata_response_5(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_nullable_string(out, each_1_m.rack)
    write_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            out += _write_i(len(each_6))
            out += pack(f">{len(each_6)}i", *each_6)


def _encode_metadata_response_7(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_nullable_string(out, each_1_m.rack)
    write_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            out += _write_i(len(each_6))
            out += pack(f">{len(each_6)}i", *each_6)


def _encode_metadata_response_8(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_nullable_string(out, each_1_m.rack)
    write_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            out += _write_i(len(each_4))
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            out += _write_i(len(each_5))
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            out += _write_i(len(each_6))
            out += pack(f">{len(each_6)}i", *each_6)
        out += _write_i(each_2_m.topic_authorized_operations)
    out += _write_i(m.cluster_authorized_operations)


def _encode_metadata_response_9(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    write_compact_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_compact_string(out, each_2_m.name)
        out += _write_t(each_2_m.is_internal)
        each_3 = each_2_m.partitions
        write_varint(out, len(each_3) + 1)
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            write_varint(out, len(each_5) + 1)
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            write_varint(out, len(each_6) + 1)
            out += pack(f">{len(each_6)}i", *each_6)
            out.append(0)
        out += _write_i(each_2_m.topic_authorized_operations)
        out.append(0)
    out += _write_i(m.cluster_authorized_operations)
    out.append(0)


def _encode_metadata_response_10(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    write_compact_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_compact_string(out, each_2_m.name)
        out += _write_16st(each_2_m.topic_id, each_2_m.is_internal)
        each_3 = each_2_m.partitions
        write_varint(out, len(each_3) + 1)
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            write_varint(out, len(each_5) + 1)
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            write_varint(out, len(each_6) + 1)
            out += pack(f">{len(each_6)}i", *each_6)
            out.append(0)
        out += _write_i(each_2_m.topic_authorized_operations)
        out.append(0)
    out += _write_i(m.cluster_authorized_operations)
    out.append(0)


def _encode_metadata_response_11(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    write_compact_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_compact_string(out, each_2_m.name)
        out += _write_16st(each_2_m.topic_id, each_2_m.is_internal)
        each_3 = each_2_m.partitions
        write_varint(out, len(each_3) + 1)
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            write_varint(out, len(each_5) + 1)
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            write_varint(out, len(each_6) + 1)
            out += pack(f">{len(each_6)}i", *each_6)
            out.append(0)
        out += _write_i(each_2_m.topic_authorized_operations)
        out.append(0)
    out.append(0)


def _encode_metadata_response_12(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    write_compact_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_compact_nullable_string(out, each_2_m.name)
        out += _write_16st(each_2_m.topic_id, each_2_m.is_internal)
        each_3 = each_2_m.partitions
        write_varint(out, len(each_3) + 1)
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            write_varint(out, len(each_5) + 1)
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            write_varint(out, len(each_6) + 1)
            out += pack(f">{len(each_6)}i", *each_6)
            out.append(0)
        out += _write_i(each_2_m.topic_authorized_operations)
        out.append(0)
    out.append(0)


def _encode_metadata_response_13(m: MetadataResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.node_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    write_compact_nullable_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_2 = m.topics
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        out += _write_h(each_2_m.error_code)
        write_compact_nullable_string(out, each_2_m.name)
        out += _write_16st(each_2_m.topic_id, each_2_m.is_internal)
        each_3 = each_2_m.partitions
        write_varint(out, len(each_3) + 1)
        for each_3_m in each_3:
            out += _write_hiii(each_3_m.error_code, each_3_m.partition_index, each_3_m.leader_id, each_3_m.leader_epoch)
            each_4 = each_3_m.replica_nodes
            write_varint(out, len(each_4) + 1)
            out += pack(f">{len(each_4)}i", *each_4)
            each_5 = each_3_m.isr_nodes
            write_varint(out, len(each_5) + 1)
            out += pack(f">{len(each_5)}i", *each_5)
            each_6 = each_3_m.offline_replicas
            write_varint(out, len(each_6) + 1)
            out += pack(f">{len(each_6)}i", *each_6)
            out.append(0)
        out += _write_i(each_2_m.topic_authorized_operations)
        out.append(0)
    out += _write_h(m.error_code)
    out.append(0)


ENCODE_METADATA_RESPONSE = {
    0: _encode_metadata_response_0,
    1: _encode_metadata_response_1,
    2: _encode_metadata_response_2,
    3: _encode_metadata_response_3,
    4: _encode_metadata_response_3,
    5: _encode_metadata_response_5,
    6: _encode_metadata_response_5,
    7: _encode_metadata_response_7,
    8: _encode_metadata_response_8,
    9: _encode_metadata_response_9,
    10: _encode_metadata_response_10,
    11: _encode_metadata_response_11,
    12: _encode_metadata_response_12,
    13: _encode_metadata_response_13,
}
