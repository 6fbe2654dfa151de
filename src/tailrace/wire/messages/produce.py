"""Produce: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_hi = Struct(">hi")
_read_hi = _struct_hi.unpack_from
_write_hi = _struct_hi.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ihqq = Struct(">ihqq")
_read_ihqq = _struct_ihqq.unpack_from
_write_ihqq = _struct_ihqq.pack
_struct_ihqqq = Struct(">ihqqq")
_read_ihqqq = _struct_ihqqq.unpack_from
_write_ihqqq = _struct_ihqqq.pack
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack


class PartitionProduceData(Message):
    __slots__ = ("index", "records",)

    def __init__(
        self,
        index: int = 0,
        records: bytes | bytearray | memoryview | None = None,
    ) -> None:
        self.index: int = index
        self.records: bytes | bytearray | memoryview | None = records


class TopicProduceData(Message):
    __slots__ = ("name", "topic_id", "partition_data",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partition_data: list[PartitionProduceData] = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is NEW else partition_data


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data",)

    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = NEW,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is NEW else topic_data


class BatchIndexAndErrorMessage(Message):
    __slots__ = ("batch_index", "batch_index_error_message",)

    def __init__(
        self,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch",)

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class PartitionProduceResponse(Message):
    __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader",)

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = NEW,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = NEW,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is NEW else record_errors
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is NEW else current_leader


class TopicProduceResponse(Message):
    __slots__ = ("name", "topic_id", "partition_responses",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partition_responses: list[PartitionProduceResponse] = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_responses: list[PartitionProduceResponse] = [] if partition_responses is NEW else partition_responses


class NodeEndpoint(Message):
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


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints",)

    def __init__(
        self,
        responses: list[TopicProduceResponse] = NEW,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = NEW,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is NEW else responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is NEW else node_endpoints


def _decode_produce_request_3(b: memoryview, p: int = 0) -> ProduceRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        transactional_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("transactional_id past the end")
        transactional_id_1 = str(b[p:q], "utf-8")
        p = q
    acks_1, timeout_ms_1 = _read_hi(b, p)
    p += 6
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topic_data is null")
    if n * 6 > end - p:
        raise fail("topic_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topic_data_1 = []
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
            raise fail("partition_data is null")
        if n * 8 > end - p:
            raise fail("partition_data has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partition_data_2 = []
        for _ in range(n):
            (index_3,) = _read_i(b, p)
            p += 4
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            partition_data_2.append(PartitionProduceData(index_3, records_3))
        topic_data_1.append(TopicProduceData(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_data_2))
    return ProduceRequest(transactional_id_1, acks_1, timeout_ms_1, topic_data_1)


def _decode_produce_request_9(b: memoryview, p: int = 0) -> ProduceRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        transactional_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("transactional_id past the end")
        transactional_id_1 = str(b[p:q], "utf-8")
        p = q
    acks_1, timeout_ms_1 = _read_hi(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topic_data is null")
    if n * 3 > end - p:
        raise fail("topic_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topic_data_1 = []
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
            raise fail("partition_data is null")
        if n * 6 > end - p:
            raise fail("partition_data has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partition_data_2 = []
        for _ in range(n):
            (index_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partition_data_2.append(PartitionProduceData(index_3, records_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topic_data_1.append(TopicProduceData(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_data_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ProduceRequest(transactional_id_1, acks_1, timeout_ms_1, topic_data_1)


def _decode_produce_request_13(b: memoryview, p: int = 0) -> ProduceRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        transactional_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("transactional_id past the end")
        transactional_id_1 = str(b[p:q], "utf-8")
        p = q
    acks_1, timeout_ms_1 = _read_hi(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topic_data is null")
    if n * 18 > end - p:
        raise fail("topic_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topic_data_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partition_data is null")
        if n * 6 > end - p:
            raise fail("partition_data has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partition_data_2 = []
        for _ in range(n):
            (index_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partition_data_2.append(PartitionProduceData(index_3, records_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topic_data_1.append(TopicProduceData('', topic_id_2, partition_data_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ProduceRequest(transactional_id_1, acks_1, timeout_ms_1, topic_data_1)


DECODE_PRODUCE_REQUEST = {
    3: _decode_produce_request_3,
    4: _decode_produce_request_3,
    5: _decode_produce_request_3,
    6: _decode_produce_request_3,
    7: _decode_produce_request_3,
    8: _decode_produce_request_3,
    9: _decode_produce_request_9,
    10: _decode_produce_request_9,
    11: _decode_produce_request_9,
    12: _decode_produce_request_9,
    13: _decode_produce_request_13,
}


def _encode_produce_request_3(m: ProduceRequest, out: bytearray) -> None:
    write_nullable_string(out, m.transactional_id)
    out += _write_hi(m.acks, m.timeout_ms)
    each_1 = m.topic_data
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partition_data
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_i(each_2_m.index)
            write_bytes(out, each_2_m.records)


def _encode_produce_request_9(m: ProduceRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.transactional_id)
    out += _write_hi(m.acks, m.timeout_ms)
    each_1 = m.topic_data
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partition_data
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.index)
            write_compact_bytes(out, each_2_m.records)
            out.append(0)
        out.append(0)
    out.append(0)


def _encode_produce_request_13(m: ProduceRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.transactional_id)
    out += _write_hi(m.acks, m.timeout_ms)
    each_1 = m.topic_data
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partition_data
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.index)
            write_compact_bytes(out, each_2_m.records)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_PRODUCE_REQUEST = {
    3: _encode_produce_request_3,
    4: _encode_produce_request_3,
    5: _encode_produce_request_3,
    6: _encode_produce_request_3,
    7: _encode_produce_request_3,
    8: _encode_produce_request_3,
    9: _encode_produce_request_9,
    10: _encode_produce_request_9,
    11: _encode_produce_request_9,
    12: _encode_produce_request_9,
    13: _encode_produce_request_13,
}


def _decode_produce_response_3(b: memoryview, p: int = 0) -> ProduceResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            raise fail("partition_responses is null")
        if n * 22 > end - p:
            raise fail("partition_responses has more elements than bytes")
        partition_responses_2 = []
        for _ in range(n):
            index_3, error_code_3, base_offset_3, log_append_time_ms_3 = _read_ihqq(b, p)
            p += 22
            partition_responses_2.append(PartitionProduceResponse(index_3, error_code_3, base_offset_3, log_append_time_ms_3, -1, [], None, LeaderIdAndEpoch()))
        responses_1.append(TopicProduceResponse(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_responses_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    return ProduceResponse(responses_1, throttle_time_ms_1, [])


def _decode_produce_response_5(b: memoryview, p: int = 0) -> ProduceResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            raise fail("partition_responses is null")
        if n * 30 > end - p:
            raise fail("partition_responses has more elements than bytes")
        partition_responses_2 = []
        for _ in range(n):
            index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            partition_responses_2.append(PartitionProduceResponse(index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3, [], None, LeaderIdAndEpoch()))
        responses_1.append(TopicProduceResponse(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_responses_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    return ProduceResponse(responses_1, throttle_time_ms_1, [])


def _decode_produce_response_8(b: memoryview, p: int = 0) -> ProduceResponse:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            raise fail("partition_responses is null")
        if n * 36 > end - p:
            raise fail("partition_responses has more elements than bytes")
        partition_responses_2 = []
        for _ in range(n):
            index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("record_errors is null")
            if n * 6 > end - p:
                raise fail("record_errors has more elements than bytes")
            record_errors_3 = []
            for _ in range(n):
                (batch_index_4,) = _read_i(b, p)
                p += 4
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    batch_index_error_message_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("batch_index_error_message past the end")
                    batch_index_error_message_4 = str(b[p:q], "utf-8")
                    p = q
                record_errors_3.append(BatchIndexAndErrorMessage(batch_index_4, batch_index_error_message_4))
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
            partition_responses_2.append(PartitionProduceResponse(index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3, record_errors_3, error_message_3, LeaderIdAndEpoch()))
        responses_1.append(TopicProduceResponse(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_responses_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    return ProduceResponse(responses_1, throttle_time_ms_1, [])


def _decode_produce_response_9(b: memoryview, p: int = 0) -> ProduceResponse:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 3 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            raise fail("partition_responses is null")
        if n * 33 > end - p:
            raise fail("partition_responses has more elements than bytes")
        partition_responses_2 = []
        for _ in range(n):
            index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("record_errors is null")
            if n * 6 > end - p:
                raise fail("record_errors has more elements than bytes")
            record_errors_3 = []
            for _ in range(n):
                (batch_index_4,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    batch_index_error_message_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("batch_index_error_message past the end")
                    batch_index_error_message_4 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                record_errors_3.append(BatchIndexAndErrorMessage(batch_index_4, batch_index_error_message_4))
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
            partition_responses_2.append(PartitionProduceResponse(index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3, record_errors_3, error_message_3, LeaderIdAndEpoch()))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(TopicProduceResponse(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_responses_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ProduceResponse(responses_1, throttle_time_ms_1, [])


def _decode_produce_response_10(b: memoryview, p: int = 0) -> ProduceResponse:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 3 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
            raise fail("partition_responses is null")
        if n * 33 > end - p:
            raise fail("partition_responses has more elements than bytes")
        partition_responses_2 = []
        for _ in range(n):
            index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("record_errors is null")
            if n * 6 > end - p:
                raise fail("record_errors has more elements than bytes")
            record_errors_3 = []
            for _ in range(n):
                (batch_index_4,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    batch_index_error_message_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("batch_index_error_message past the end")
                    batch_index_error_message_4 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                record_errors_3.append(BatchIndexAndErrorMessage(batch_index_4, batch_index_error_message_4))
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
            current_leader_3 = LeaderIdAndEpoch()
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_5 = p + n
                if stop_5 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    leader_id_6, leader_epoch_6 = _read_ii(b, p)
                    p += 8
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    current_leader_3 = LeaderIdAndEpoch(leader_id_6, leader_epoch_6)
                    if p != stop_5:
                        raise fail("current_leader is not as long as it says")
                else:
                    p = stop_5
            partition_responses_2.append(PartitionProduceResponse(index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3, record_errors_3, error_message_3, current_leader_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(TopicProduceResponse(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partition_responses_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    node_endpoints_1 = []
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_7 = p + n
        if stop_7 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("node_endpoints is null")
            if n * 11 > end - p:
                raise fail("node_endpoints has more elements than bytes")
            node_endpoints_1 = []
            for _ in range(n):
                (node_id_8,) = _read_i(b, p)
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
                host_8 = str(b[p:q], "utf-8")
                p = q
                (port_8,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    rack_8 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("rack past the end")
                    rack_8 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                node_endpoints_1.append(NodeEndpoint(node_id_8, host_8, port_8, rack_8))
            if p != stop_7:
                raise fail("node_endpoints is not as long as it says")
        else:
            p = stop_7
    return ProduceResponse(responses_1, throttle_time_ms_1, node_endpoints_1)


def _decode_produce_response_13(b: memoryview, p: int = 0) -> ProduceResponse:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 18 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partition_responses is null")
        if n * 33 > end - p:
            raise fail("partition_responses has more elements than bytes")
        partition_responses_2 = []
        for _ in range(n):
            index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("record_errors is null")
            if n * 6 > end - p:
                raise fail("record_errors has more elements than bytes")
            record_errors_3 = []
            for _ in range(n):
                (batch_index_4,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    batch_index_error_message_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("batch_index_error_message past the end")
                    batch_index_error_message_4 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                record_errors_3.append(BatchIndexAndErrorMessage(batch_index_4, batch_index_error_message_4))
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
            current_leader_3 = LeaderIdAndEpoch()
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_5 = p + n
                if stop_5 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    leader_id_6, leader_epoch_6 = _read_ii(b, p)
                    p += 8
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    current_leader_3 = LeaderIdAndEpoch(leader_id_6, leader_epoch_6)
                    if p != stop_5:
                        raise fail("current_leader is not as long as it says")
                else:
                    p = stop_5
            partition_responses_2.append(PartitionProduceResponse(index_3, error_code_3, base_offset_3, log_append_time_ms_3, log_start_offset_3, record_errors_3, error_message_3, current_leader_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(TopicProduceResponse('', topic_id_2, partition_responses_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    node_endpoints_1 = []
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_7 = p + n
        if stop_7 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("node_endpoints is null")
            if n * 11 > end - p:
                raise fail("node_endpoints has more elements than bytes")
            node_endpoints_1 = []
            for _ in range(n):
                (node_id_8,) = _read_i(b, p)
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
                host_8 = str(b[p:q], "utf-8")
                p = q
                (port_8,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    rack_8 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("rack past the end")
                    rack_8 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                node_endpoints_1.append(NodeEndpoint(node_id_8, host_8, port_8, rack_8))
            if p != stop_7:
                raise fail("node_endpoints is not as long as it says")
        else:
            p = stop_7
    return ProduceResponse(responses_1, throttle_time_ms_1, node_endpoints_1)


DECODE_PRODUCE_RESPONSE = {
    3: _decode_produce_response_3,
    4: _decode_produce_response_3,
    5: _decode_produce_response_5,
    6: _decode_produce_response_5,
    7: _decode_produce_response_5,
    8: _decode_produce_response_8,
    9: _decode_produce_response_9,
    10: _decode_produce_response_10,
    11: _decode_produce_response_10,
    12: _decode_produce_response_10,
    13: _decode_produce_response_13,
}


def _encode_produce_response_3(m: ProduceResponse, out: bytearray) -> None:
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partition_responses
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqq(each_2_m.index, each_2_m.error_code, each_2_m.base_offset, each_2_m.log_append_time_ms)
    out += _write_i(m.throttle_time_ms)


def _encode_produce_response_5(m: ProduceResponse, out: bytearray) -> None:
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partition_responses
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.index, each_2_m.error_code, each_2_m.base_offset, each_2_m.log_append_time_ms, each_2_m.log_start_offset)
    out += _write_i(m.throttle_time_ms)


def _encode_produce_response_8(m: ProduceResponse, out: bytearray) -> None:
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partition_responses
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.index, each_2_m.error_code, each_2_m.base_offset, each_2_m.log_append_time_ms, each_2_m.log_start_offset)
            each_3 = each_2_m.record_errors
            out += _write_i(len(each_3))
            for each_3_m in each_3:
                out += _write_i(each_3_m.batch_index)
                write_nullable_string(out, each_3_m.batch_index_error_message)
            write_nullable_string(out, each_2_m.error_message)
    out += _write_i(m.throttle_time_ms)


def _encode_produce_response_9(m: ProduceResponse, out: bytearray) -> None:
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partition_responses
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.index, each_2_m.error_code, each_2_m.base_offset, each_2_m.log_append_time_ms, each_2_m.log_start_offset)
            each_3 = each_2_m.record_errors
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_i(each_3_m.batch_index)
                write_compact_nullable_string(out, each_3_m.batch_index_error_message)
                out.append(0)
            write_compact_nullable_string(out, each_2_m.error_message)
            out.append(0)
        out.append(0)
    out += _write_i(m.throttle_time_ms)
    out.append(0)


def _encode_produce_response_10(m: ProduceResponse, out: bytearray) -> None:
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partition_responses
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.index, each_2_m.error_code, each_2_m.base_offset, each_2_m.log_append_time_ms, each_2_m.log_start_offset)
            each_3 = each_2_m.record_errors
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_i(each_3_m.batch_index)
                write_compact_nullable_string(out, each_3_m.batch_index_error_message)
                out.append(0)
            write_compact_nullable_string(out, each_2_m.error_message)
            given_4 = each_2_m.current_leader != LeaderIdAndEpoch()
            out.append(given_4)
            if given_4:
                kept_5 = out
                out = bytearray()
                each_6 = each_2_m.current_leader
                out += _write_ii(each_6.leader_id, each_6.leader_epoch)
                out.append(0)
                write_varint(kept_5, 0)
                write_varint(kept_5, len(out))
                kept_5 += out
                out = kept_5
        out.append(0)
    out += _write_i(m.throttle_time_ms)
    given_7 = m.node_endpoints != []
    out.append(given_7)
    if given_7:
        kept_8 = out
        out = bytearray()
        each_9 = m.node_endpoints
        write_varint(out, len(each_9) + 1)
        for each_9_m in each_9:
            out += _write_i(each_9_m.node_id)
            write_compact_string(out, each_9_m.host)
            out += _write_i(each_9_m.port)
            write_compact_nullable_string(out, each_9_m.rack)
            out.append(0)
        write_varint(kept_8, 0)
        write_varint(kept_8, len(out))
        kept_8 += out
        out = kept_8


def _encode_produce_response_13(m: ProduceResponse, out: bytearray) -> None:
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partition_responses
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.index, each_2_m.error_code, each_2_m.base_offset, each_2_m.log_append_time_ms, each_2_m.log_start_offset)
            each_3 = each_2_m.record_errors
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_i(each_3_m.batch_index)
                write_compact_nullable_string(out, each_3_m.batch_index_error_message)
                out.append(0)
            write_compact_nullable_string(out, each_2_m.error_message)
            given_4 = each_2_m.current_leader != LeaderIdAndEpoch()
            out.append(given_4)
            if given_4:
                kept_5 = out
                out = bytearray()
                each_6 = each_2_m.current_leader
                out += _write_ii(each_6.leader_id, each_6.leader_epoch)
                out.append(0)
                write_varint(kept_5, 0)
                write_varint(kept_5, len(out))
                kept_5 += out
                out = kept_5
        out.append(0)
    out += _write_i(m.throttle_time_ms)
    given_7 = m.node_endpoints != []
    out.append(given_7)
    if given_7:
        kept_8 = out
        out = bytearray()
        each_9 = m.node_endpoints
        write_varint(out, len(each_9) + 1)
        for each_9_m in each_9:
            out += _write_i(each_9_m.node_id)
            write_compact_string(out, each_9_m.host)
            out += _write_i(each_9_m.port)
            write_compact_nullable_string(out, each_9_m.rack)
            out.append(0)
        write_varint(kept_8, 0)
        write_varint(kept_8, len(out))
        kept_8 += out
        out = kept_8


ENCODE_PRODUCE_RESPONSE = {
    3: _encode_produce_response_3,
    4: _encode_produce_response_3,
    5: _encode_produce_response_5,
    6: _encode_produce_response_5,
    7: _encode_produce_response_5,
    8: _encode_produce_response_8,
    9: _encode_produce_response_9,
    10: _encode_produce_response_10,
    11: _encode_produce_response_10,
    12: _encode_produce_response_10,
    13: _encode_produce_response_13,
}
