"""ElectLeaders: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class TopicPartitions(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ElectLeadersRequest(Message):
    __slots__ = ("election_type", "topic_partitions", "timeout_ms",)

    def __init__(
        self,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = NEW,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[TopicPartitions] | None = [] if topic_partitions is NEW else topic_partitions
        self.timeout_ms: int = timeout_ms


class PartitionResult(Message):
    __slots__ = ("partition_id", "error_code", "error_message",)

    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class ReplicaElectionResult(Message):
    __slots__ = ("topic", "partition_result",)

    def __init__(
        self,
        topic: str = '',
        partition_result: list[PartitionResult] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partition_result: list[PartitionResult] = [] if partition_result is NEW else partition_result


class ElectLeadersResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ReplicaElectionResult] = [] if replica_election_results is NEW else replica_election_results


def _decode_elect_leaders_request_0(b: memoryview, p: int = 0) -> ElectLeadersRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        topic_partitions_1 = None
    else:
        if n * 6 > end - p:
            raise fail("topic_partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        topic_partitions_1 = []
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
            topic_partitions_1.append(TopicPartitions(topic_2, partitions_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    return ElectLeadersRequest(0, topic_partitions_1, timeout_ms_1)


def _decode_elect_leaders_request_1(b: memoryview, p: int = 0) -> ElectLeadersRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (election_type_1,) = _read_b(b, p)
    p += 1
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        topic_partitions_1 = None
    else:
        if n * 6 > end - p:
            raise fail("topic_partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        topic_partitions_1 = []
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
            topic_partitions_1.append(TopicPartitions(topic_2, partitions_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    return ElectLeadersRequest(election_type_1, topic_partitions_1, timeout_ms_1)


def _decode_elect_leaders_request_2(b: memoryview, p: int = 0) -> ElectLeadersRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (election_type_1,) = _read_b(b, p)
    p += 1
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        topic_partitions_1 = None
    else:
        if n * 3 > end - p:
            raise fail("topic_partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        topic_partitions_1 = []
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
            topic_partitions_1.append(TopicPartitions(topic_2, partitions_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ElectLeadersRequest(election_type_1, topic_partitions_1, timeout_ms_1)


DECODE_ELECT_LEADERS_REQUEST = {
    0: _decode_elect_leaders_request_0,
    1: _decode_elect_leaders_request_1,
    2: _decode_elect_leaders_request_2,
}


def _encode_elect_leaders_request_0(m: ElectLeadersRequest, out: bytearray) -> None:
    each_1 = m.topic_partitions
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.topic)
            each_2 = each_1_m.partitions
            out += _write_i(len(each_2))
            out += pack(f">{len(each_2)}i", *each_2)
    out += _write_i(m.timeout_ms)


def _encode_elect_leaders_request_1(m: ElectLeadersRequest, out: bytearray) -> None:
    out += _write_b(m.election_type)
    each_1 = m.topic_partitions
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.topic)
            each_2 = each_1_m.partitions
            out += _write_i(len(each_2))
            out += pack(f">{len(each_2)}i", *each_2)
    out += _write_i(m.timeout_ms)


def _encode_elect_leaders_request_2(m: ElectLeadersRequest, out: bytearray) -> None:
    out += _write_b(m.election_type)
    each_1 = m.topic_partitions
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
    out += _write_i(m.timeout_ms)
    out.append(0)


ENCODE_ELECT_LEADERS_REQUEST = {
    0: _encode_elect_leaders_request_0,
    1: _encode_elect_leaders_request_1,
    2: _encode_elect_leaders_request_2,
}


def _decode_elect_leaders_response_0(b: memoryview, p: int = 0) -> ElectLeadersResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("replica_election_results is null")
    if n * 6 > end - p:
        raise fail("replica_election_results has more elements than bytes")
    replica_election_results_1 = []
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
            raise fail("partition_result is null")
        if n * 8 > end - p:
            raise fail("partition_result has more elements than bytes")
        partition_result_2 = []
        for _ in range(n):
            partition_id_3, error_code_3 = _read_ih(b, p)
            p += 6
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                error_message_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("error_message past the end")
                error_message_3 = str(b[p:q], "utf-8")
                p = q
            partition_result_2.append(PartitionResult(partition_id_3, error_code_3, error_message_3))
        replica_election_results_1.append(ReplicaElectionResult(topic_2, partition_result_2))
    return ElectLeadersResponse(throttle_time_ms_1, 0, replica_election_results_1)


def _decode_elect_leaders_response_1(b: memoryview, p: int = 0) -> ElectLeadersResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("replica_election_results is null")
    if n * 6 > end - p:
        raise fail("replica_election_results has more elements than bytes")
    replica_election_results_1 = []
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
            raise fail("partition_result is null")
        if n * 8 > end - p:
            raise fail("partition_result has more elements than bytes")
        partition_result_2 = []
        for _ in range(n):
            partition_id_3, error_code_3 = _read_ih(b, p)
            p += 6
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                error_message_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("error_message past the end")
                error_message_3 = str(b[p:q], "utf-8")
                p = q
            partition_result_2.append(PartitionResult(partition_id_3, error_code_3, error_message_3))
        replica_election_results_1.append(ReplicaElectionResult(topic_2, partition_result_2))
    return ElectLeadersResponse(throttle_time_ms_1, error_code_1, replica_election_results_1)


def _decode_elect_leaders_response_2(b: memoryview, p: int = 0) -> ElectLeadersResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("replica_election_results is null")
    if n * 3 > end - p:
        raise fail("replica_election_results has more elements than bytes")
    replica_election_results_1 = []
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
            raise fail("partition_result is null")
        if n * 8 > end - p:
            raise fail("partition_result has more elements than bytes")
        partition_result_2 = []
        for _ in range(n):
            partition_id_3, error_code_3 = _read_ih(b, p)
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
            partition_result_2.append(PartitionResult(partition_id_3, error_code_3, error_message_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        replica_election_results_1.append(ReplicaElectionResult(topic_2, partition_result_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ElectLeadersResponse(throttle_time_ms_1, error_code_1, replica_election_results_1)


DECODE_ELECT_LEADERS_RESPONSE = {
    0: _decode_elect_leaders_response_0,
    1: _decode_elect_leaders_response_1,
    2: _decode_elect_leaders_response_2,
}


def _encode_elect_leaders_response_0(m: ElectLeadersResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.replica_election_results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partition_result
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_id, each_2_m.error_code)
            write_nullable_string(out, each_2_m.error_message)


def _encode_elect_leaders_response_1(m: ElectLeadersResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.replica_election_results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partition_result
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_id, each_2_m.error_code)
            write_nullable_string(out, each_2_m.error_message)


def _encode_elect_leaders_response_2(m: ElectLeadersResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.replica_election_results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic)
        each_2 = each_1_m.partition_result
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_id, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ELECT_LEADERS_RESPONSE = {
    0: _encode_elect_leaders_response_0,
    1: _encode_elect_leaders_response_1,
    2: _encode_elect_leaders_response_2,
}
