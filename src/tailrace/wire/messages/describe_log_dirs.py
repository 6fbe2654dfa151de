"""DescribeLogDirs: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_iqqt = Struct(">iqq?")
_read_iqqt = _struct_iqqt.unpack_from
_write_iqqt = _struct_iqqt.pack
_struct_qq = Struct(">qq")
_read_qq = _struct_qq.unpack_from
_write_qq = _struct_qq.pack
_struct_qqt = Struct(">qq?")
_read_qqt = _struct_qqt.unpack_from
_write_qqt = _struct_qqt.pack


class DescribableLogDirTopic(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is NEW else partitions


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = NEW,
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if topics is NEW else topics


class DescribeLogDirsPartition(Message):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key",)

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key


class DescribeLogDirsTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[DescribeLogDirsPartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is NEW else partitions


class DescribeLogDirsResult(Message):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned",)

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = '',
        topics: list[DescribeLogDirsTopic] = NEW,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is NEW else topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes
        self.is_cordoned: bool = is_cordoned


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is NEW else results


def _decode_describe_log_dirs_request_1(b: memoryview, p: int = 0) -> DescribeLogDirsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
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
            if n * 4 > end - p:
                raise fail("partitions has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partitions_2 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            topics_1.append(DescribableLogDirTopic(topic_2, partitions_2))
    return DescribeLogDirsRequest(topics_1)


def _decode_describe_log_dirs_request_2(b: memoryview, p: int = 0) -> DescribeLogDirsRequest:
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
            topics_1.append(DescribableLogDirTopic(topic_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeLogDirsRequest(topics_1)


DECODE_DESCRIBE_LOG_DIRS_REQUEST = {
    1: _decode_describe_log_dirs_request_1,
    2: _decode_describe_log_dirs_request_2,
    3: _decode_describe_log_dirs_request_2,
    4: _decode_describe_log_dirs_request_2,
    5: _decode_describe_log_dirs_request_2,
}


def _encode_describe_log_dirs_request_1(m: DescribeLogDirsRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.topic)
            each_2 = each_1_m.partitions
            out += _write_i(len(each_2))
            out += pack(f">{len(each_2)}i", *each_2)


def _encode_describe_log_dirs_request_2(m: DescribeLogDirsRequest, out: bytearray) -> None:
    each_1 = m.topics
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.topic)
            each_2 = each_1_m.partitions
            write_varint(out, len(each_2) + 1)
            out += pack(f">{len(each_2)}i", *each_2)
            out.append(0)
    out.append(0)


ENCODE_DESCRIBE_LOG_DIRS_REQUEST = {
    1: _encode_describe_log_dirs_request_1,
    2: _encode_describe_log_dirs_request_2,
    3: _encode_describe_log_dirs_request_2,
    4: _encode_describe_log_dirs_request_2,
    5: _encode_describe_log_dirs_request_2,
}


def _decode_describe_log_dirs_response_1(b: memoryview, p: int = 0) -> DescribeLogDirsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results is null")
    if n * 8 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("log_dir is null")
        q = p + n
        if q > end:
            raise fail("log_dir past the end")
        log_dir_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("topics is null")
        if n * 6 > end - p:
            raise fail("topics has more elements than bytes")
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
            if n * 21 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, partition_size_4, offset_lag_4, is_future_key_4 = _read_iqqt(b, p)
                p += 21
                partitions_3.append(DescribeLogDirsPartition(partition_index_4, partition_size_4, offset_lag_4, is_future_key_4))
            topics_2.append(DescribeLogDirsTopic(name_3, partitions_3))
        results_1.append(DescribeLogDirsResult(error_code_2, log_dir_2, topics_2, -1, -1, False))
    return DescribeLogDirsResponse(throttle_time_ms_1, 0, results_1)


def _decode_describe_log_dirs_response_2(b: memoryview, p: int = 0) -> DescribeLogDirsResponse:
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
    if n * 5 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("log_dir is null")
        q = p + n
        if q > end:
            raise fail("log_dir past the end")
        log_dir_2 = str(b[p:q], "utf-8")
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
            if n * 22 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, partition_size_4, offset_lag_4, is_future_key_4 = _read_iqqt(b, p)
                p += 21
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(DescribeLogDirsPartition(partition_index_4, partition_size_4, offset_lag_4, is_future_key_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(DescribeLogDirsTopic(name_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DescribeLogDirsResult(error_code_2, log_dir_2, topics_2, -1, -1, False))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeLogDirsResponse(throttle_time_ms_1, 0, results_1)


def _decode_describe_log_dirs_response_3(b: memoryview, p: int = 0) -> DescribeLogDirsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results is null")
    if n * 5 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("log_dir is null")
        q = p + n
        if q > end:
            raise fail("log_dir past the end")
        log_dir_2 = str(b[p:q], "utf-8")
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
            if n * 22 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, partition_size_4, offset_lag_4, is_future_key_4 = _read_iqqt(b, p)
                p += 21
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(DescribeLogDirsPartition(partition_index_4, partition_size_4, offset_lag_4, is_future_key_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(DescribeLogDirsTopic(name_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DescribeLogDirsResult(error_code_2, log_dir_2, topics_2, -1, -1, False))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeLogDirsResponse(throttle_time_ms_1, error_code_1, results_1)


def _decode_describe_log_dirs_response_4(b: memoryview, p: int = 0) -> DescribeLogDirsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results is null")
    if n * 21 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("log_dir is null")
        q = p + n
        if q > end:
            raise fail("log_dir past the end")
        log_dir_2 = str(b[p:q], "utf-8")
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
            if n * 22 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, partition_size_4, offset_lag_4, is_future_key_4 = _read_iqqt(b, p)
                p += 21
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(DescribeLogDirsPartition(partition_index_4, partition_size_4, offset_lag_4, is_future_key_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(DescribeLogDirsTopic(name_3, partitions_3))
        total_bytes_2, usable_bytes_2 = _read_qq(b, p)
        p += 16
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DescribeLogDirsResult(error_code_2, log_dir_2, topics_2, total_bytes_2, usable_bytes_2, False))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeLogDirsResponse(throttle_time_ms_1, error_code_1, results_1)


def _decode_describe_log_dirs_response_5(b: memoryview, p: int = 0) -> DescribeLogDirsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results is null")
    if n * 22 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("log_dir is null")
        q = p + n
        if q > end:
            raise fail("log_dir past the end")
        log_dir_2 = str(b[p:q], "utf-8")
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
            if n * 22 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, partition_size_4, offset_lag_4, is_future_key_4 = _read_iqqt(b, p)
                p += 21
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(DescribeLogDirsPartition(partition_index_4, partition_size_4, offset_lag_4, is_future_key_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(DescribeLogDirsTopic(name_3, partitions_3))
        total_bytes_2, usable_bytes_2, is_cordoned_2 = _read_qqt(b, p)
        p += 17
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DescribeLogDirsResult(error_code_2, log_dir_2, topics_2, total_bytes_2, usable_bytes_2, is_cordoned_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeLogDirsResponse(throttle_time_ms_1, error_code_1, results_1)


DECODE_DESCRIBE_LOG_DIRS_RESPONSE = {
    1: _decode_describe_log_dirs_response_1,
    2: _decode_describe_log_dirs_response_2,
    3: _decode_describe_log_dirs_response_3,
    4: _decode_describe_log_dirs_response_4,
    5: _decode_describe_log_dirs_response_5,
}


def _encode_describe_log_dirs_response_1(m: DescribeLogDirsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_string(out, each_1_m.log_dir)
        each_2 = each_1_m.topics
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            out += _write_i(len(each_3))
            for each_3_m in each_3:
                out += _write_iqqt(each_3_m.partition_index, each_3_m.partition_size, each_3_m.offset_lag, each_3_m.is_future_key)


def _encode_describe_log_dirs_response_2(m: DescribeLogDirsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_string(out, each_1_m.log_dir)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqqt(each_3_m.partition_index, each_3_m.partition_size, each_3_m.offset_lag, each_3_m.is_future_key)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_describe_log_dirs_response_3(m: DescribeLogDirsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_string(out, each_1_m.log_dir)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqqt(each_3_m.partition_index, each_3_m.partition_size, each_3_m.offset_lag, each_3_m.is_future_key)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_describe_log_dirs_response_4(m: DescribeLogDirsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_string(out, each_1_m.log_dir)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqqt(each_3_m.partition_index, each_3_m.partition_size, each_3_m.offset_lag, each_3_m.is_future_key)
                out.append(0)
            out.append(0)
        out += _write_qq(each_1_m.total_bytes, each_1_m.usable_bytes)
        out.append(0)
    out.append(0)


def _encode_describe_log_dirs_response_5(m: DescribeLogDirsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_string(out, each_1_m.log_dir)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_iqqt(each_3_m.partition_index, each_3_m.partition_size, each_3_m.offset_lag, each_3_m.is_future_key)
                out.append(0)
            out.append(0)
        out += _write_qqt(each_1_m.total_bytes, each_1_m.usable_bytes, each_1_m.is_cordoned)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_LOG_DIRS_RESPONSE = {
    1: _encode_describe_log_dirs_response_1,
    2: _encode_describe_log_dirs_response_2,
    3: _encode_describe_log_dirs_response_3,
    4: _encode_describe_log_dirs_response_4,
    5: _encode_describe_log_dirs_response_5,
}
