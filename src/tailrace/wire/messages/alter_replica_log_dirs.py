"""AlterReplicaLogDirs: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class AlterReplicaLogDirTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is NEW else partitions


class AlterReplicaLogDir(Message):
    __slots__ = ("path", "topics",)

    def __init__(
        self,
        path: str = '',
        topics: list[AlterReplicaLogDirTopic] = NEW,
    ) -> None:
        self.path: str = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is NEW else topics


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)

    def __init__(
        self,
        dirs: list[AlterReplicaLogDir] = NEW,
    ) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is NEW else dirs


class AlterReplicaLogDirPartitionResult(Message):
    __slots__ = ("partition_index", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class AlterReplicaLogDirTopicResult(Message):
    __slots__ = ("topic_name", "partitions",)

    def __init__(
        self,
        topic_name: str = '',
        partitions: list[AlterReplicaLogDirPartitionResult] = NEW,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is NEW else partitions


class AlterReplicaLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is NEW else results


def _decode_alter_replica_log_dirs_request_1(b: memoryview, p: int = 0) -> AlterReplicaLogDirsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("dirs is null")
    if n * 6 > end - p:
        raise fail("dirs has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    dirs_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("path is null")
        q = p + n
        if q > end:
            raise fail("path past the end")
        path_2 = str(b[p:q], "utf-8")
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
        topics_2 = []
        for _ in range(n):
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
            if n * 4 > end - p:
                raise fail("partitions has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partitions_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            topics_2.append(AlterReplicaLogDirTopic(name_3, partitions_3))
        dirs_1.append(AlterReplicaLogDir(path_2, topics_2))
    return AlterReplicaLogDirsRequest(dirs_1)


def _decode_alter_replica_log_dirs_request_2(b: memoryview, p: int = 0) -> AlterReplicaLogDirsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("dirs is null")
    if n * 3 > end - p:
        raise fail("dirs has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    dirs_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("path is null")
        q = p + n
        if q > end:
            raise fail("path past the end")
        path_2 = str(b[p:q], "utf-8")
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
            topics_2.append(AlterReplicaLogDirTopic(name_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        dirs_1.append(AlterReplicaLogDir(path_2, topics_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterReplicaLogDirsRequest(dirs_1)


DECODE_ALTER_REPLICA_LOG_DIRS_REQUEST = {
    1: _decode_alter_replica_log_dirs_request_1,
    2: _decode_alter_replica_log_dirs_request_2,
}


def _encode_alter_replica_log_dirs_request_1(m: AlterReplicaLogDirsRequest, out: bytearray) -> None:
    each_1 = m.dirs
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.path)
        each_2 = each_1_m.topics
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            out += _write_i(len(each_3))
            out += pack(f">{len(each_3)}i", *each_3)


def _encode_alter_replica_log_dirs_request_2(m: AlterReplicaLogDirsRequest, out: bytearray) -> None:
    each_1 = m.dirs
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.path)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_REPLICA_LOG_DIRS_REQUEST = {
    1: _encode_alter_replica_log_dirs_request_1,
    2: _encode_alter_replica_log_dirs_request_2,
}


def _decode_alter_replica_log_dirs_response_1(b: memoryview, p: int = 0) -> AlterReplicaLogDirsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results is null")
    if n * 6 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic_name is null")
        q = p + n
        if q > end:
            raise fail("topic_name past the end")
        topic_name_2 = str(b[p:q], "utf-8")
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
            partitions_2.append(AlterReplicaLogDirPartitionResult(partition_index_3, error_code_3))
        results_1.append(AlterReplicaLogDirTopicResult(topic_name_2, partitions_2))
    return AlterReplicaLogDirsResponse(throttle_time_ms_1, results_1)


def _decode_alter_replica_log_dirs_response_2(b: memoryview, p: int = 0) -> AlterReplicaLogDirsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results is null")
    if n * 3 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
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
            partitions_2.append(AlterReplicaLogDirPartitionResult(partition_index_3, error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(AlterReplicaLogDirTopicResult(topic_name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterReplicaLogDirsResponse(throttle_time_ms_1, results_1)


DECODE_ALTER_REPLICA_LOG_DIRS_RESPONSE = {
    1: _decode_alter_replica_log_dirs_response_1,
    2: _decode_alter_replica_log_dirs_response_2,
}


def _encode_alter_replica_log_dirs_response_1(m: AlterReplicaLogDirsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)


def _encode_alter_replica_log_dirs_response_2(m: AlterReplicaLogDirsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_REPLICA_LOG_DIRS_RESPONSE = {
    1: _encode_alter_replica_log_dirs_response_1,
    2: _encode_alter_replica_log_dirs_response_2,
}
