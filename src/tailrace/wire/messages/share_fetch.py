"""ShareFetch: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack
_struct_iiiiii = Struct(">iiiiii")
_read_iiiiii = _struct_iiiiii.unpack_from
_write_iiiiii = _struct_iiiiii.pack
_struct_iiiiiibt = Struct(">iiiiiib?")
_read_iiiiiibt = _struct_iiiiiibt.unpack_from
_write_iiiiiibt = _struct_iiiiiibt.pack
_struct_qq = Struct(">qq")
_read_qq = _struct_qq.unpack_from
_write_qq = _struct_qq.pack
_struct_qqh = Struct(">qqh")
_read_qqh = _struct_qqh.unpack_from
_write_qqh = _struct_qqh.pack


class AcknowledgementBatch(Message):
    __slots__ = ("first_offset", "last_offset", "acknowledge_types",)

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = NEW,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is NEW else acknowledge_types


class FetchPartition(Message):
    __slots__ = ("partition_index", "partition_max_bytes", "acknowledgement_batches",)

    def __init__(
        self,
        partition_index: int = 0,
        partition_max_bytes: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_max_bytes: int = partition_max_bytes
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is NEW else acknowledgement_batches


class FetchTopic(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[FetchPartition] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is NEW else partitions


class ForgottenTopic(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ShareFetchRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data",)

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = '',
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] = NEW,
        forgotten_topics_data: list[ForgottenTopic] = NEW,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.max_records: int = max_records
        self.batch_size: int = batch_size
        self.share_acquire_mode: int = share_acquire_mode
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[FetchTopic] = [] if topics is NEW else topics
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is NEW else forgotten_topics_data


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch",)

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class AcquiredRecords(Message):
    __slots__ = ("first_offset", "last_offset", "delivery_count",)

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_count: int = delivery_count


class PartitionData(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "acknowledge_error_code", "acknowledge_error_message", "current_leader", "records", "acquired_records",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = NEW,
        records: bytes | bytearray | memoryview | None = None,
        acquired_records: list[AcquiredRecords] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acknowledge_error_code: int = acknowledge_error_code
        self.acknowledge_error_message: str | None = acknowledge_error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is NEW else current_leader
        self.records: bytes | bytearray | memoryview | None = records
        self.acquired_records: list[AcquiredRecords] = [] if acquired_records is NEW else acquired_records


class ShareFetchableTopicResponse(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[PartitionData] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is NEW else partitions


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


class ShareFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = NEW,
        node_endpoints: list[NodeEndpoint] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareFetchableTopicResponse] = [] if responses is NEW else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is NEW else node_endpoints


def _decode_share_fetch_request_1(b: memoryview, p: int = 0) -> ShareFetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_id_1 = None
    else:
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
        member_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_1 = str(b[p:q], "utf-8")
        p = q
    share_session_epoch_1, max_wait_ms_1, min_bytes_1, max_bytes_1, max_records_1, batch_size_1 = _read_iiiiii(b, p)
    p += 24
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
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("acknowledgement_batches is null")
            if n * 18 > end - p:
                raise fail("acknowledgement_batches has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            acknowledgement_batches_3 = []
            for _ in range(n):
                first_offset_4, last_offset_4 = _read_qq(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("acknowledge_types is null")
                if n > end - p:
                    raise fail("acknowledge_types has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                acknowledge_types_4 = list(unpack_from(f">{n}b", b, p))
                p += n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                acknowledgement_batches_3.append(AcknowledgementBatch(first_offset_4, last_offset_4, acknowledge_types_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(FetchPartition(partition_index_3, 0, acknowledgement_batches_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic(topic_id_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 18 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (topic_id_5,) = _read_16s(b, p)
        p += 16
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
        partitions_5 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic(topic_id_5, partitions_5))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareFetchRequest(group_id_1, member_id_1, share_session_epoch_1, max_wait_ms_1, min_bytes_1, max_bytes_1, max_records_1, batch_size_1, 0, False, topics_1, forgotten_topics_data_1)


def _decode_share_fetch_request_2(b: memoryview, p: int = 0) -> ShareFetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_id_1 = None
    else:
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
        member_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_1 = str(b[p:q], "utf-8")
        p = q
    share_session_epoch_1, max_wait_ms_1, min_bytes_1, max_bytes_1, max_records_1, batch_size_1, share_acquire_mode_1, is_renew_ack_1 = _read_iiiiiibt(b, p)
    p += 26
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
        if n * 6 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("acknowledgement_batches is null")
            if n * 18 > end - p:
                raise fail("acknowledgement_batches has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            acknowledgement_batches_3 = []
            for _ in range(n):
                first_offset_4, last_offset_4 = _read_qq(b, p)
                p += 16
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("acknowledge_types is null")
                if n > end - p:
                    raise fail("acknowledge_types has more elements than bytes")
                left -= n
                if left < 0:
                    raise fail(TOO_MANY_ELEMENTS)
                acknowledge_types_4 = list(unpack_from(f">{n}b", b, p))
                p += n
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                acknowledgement_batches_3.append(AcknowledgementBatch(first_offset_4, last_offset_4, acknowledge_types_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(FetchPartition(partition_index_3, 0, acknowledgement_batches_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic(topic_id_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 18 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (topic_id_5,) = _read_16s(b, p)
        p += 16
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
        partitions_5 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic(topic_id_5, partitions_5))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareFetchRequest(group_id_1, member_id_1, share_session_epoch_1, max_wait_ms_1, min_bytes_1, max_bytes_1, max_records_1, batch_size_1, share_acquire_mode_1, is_renew_ack_1, topics_1, forgotten_topics_data_1)


DECODE_SHARE_FETCH_REQUEST = {
    1: _decode_share_fetch_request_1,
    2: _decode_share_fetch_request_2,
}


def _encode_share_fetch_request_1(m: ShareFetchRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.group_id)
    write_compact_nullable_string(out, m.member_id)
    out += _write_iiiiii(m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.acknowledgement_batches
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_qq(each_3_m.first_offset, each_3_m.last_offset)
                each_4 = each_3_m.acknowledge_types
                write_varint(out, len(each_4) + 1)
                out += pack(f">{len(each_4)}b", *each_4)
                out.append(0)
            out.append(0)
        out.append(0)
    each_5 = m.forgotten_topics_data
    write_varint(out, len(each_5) + 1)
    for each_5_m in each_5:
        out += _write_16s(each_5_m.topic_id)
        each_6 = each_5_m.partitions
        write_varint(out, len(each_6) + 1)
        out += pack(f">{len(each_6)}i", *each_6)
        out.append(0)
    out.append(0)


def _encode_share_fetch_request_2(m: ShareFetchRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.group_id)
    write_compact_nullable_string(out, m.member_id)
    out += _write_iiiiiibt(m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size, m.share_acquire_mode, m.is_renew_ack)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.acknowledgement_batches
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_qq(each_3_m.first_offset, each_3_m.last_offset)
                each_4 = each_3_m.acknowledge_types
                write_varint(out, len(each_4) + 1)
                out += pack(f">{len(each_4)}b", *each_4)
                out.append(0)
            out.append(0)
        out.append(0)
    each_5 = m.forgotten_topics_data
    write_varint(out, len(each_5) + 1)
    for each_5_m in each_5:
        out += _write_16s(each_5_m.topic_id)
        each_6 = each_5_m.partitions
        write_varint(out, len(each_6) + 1)
        out += pack(f">{len(each_6)}i", *each_6)
        out.append(0)
    out.append(0)


ENCODE_SHARE_FETCH_REQUEST = {
    1: _encode_share_fetch_request_1,
    2: _encode_share_fetch_request_2,
}


def _decode_share_fetch_response_1(b: memoryview, p: int = 0) -> ShareFetchResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
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
    (acquisition_lock_timeout_ms_1,) = _read_i(b, p)
    p += 4
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
            raise fail("partitions is null")
        if n * 22 > end - p:
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
            (acknowledge_error_code_3,) = _read_h(b, p)
            p += 2
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                acknowledge_error_message_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("acknowledge_error_message past the end")
                acknowledge_error_message_3 = str(b[p:q], "utf-8")
                p = q
            leader_id_4, leader_epoch_4 = _read_ii(b, p)
            p += 8
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            current_leader_3 = LeaderIdAndEpoch(leader_id_4, leader_epoch_4)
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("records is null")
            q = p + n
            if q > end:
                raise fail("records past the end")
            records_3 = b[p:q]
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("acquired_records is null")
            if n * 19 > end - p:
                raise fail("acquired_records has more elements than bytes")
            acquired_records_3 = []
            for _ in range(n):
                first_offset_5, last_offset_5, delivery_count_5 = _read_qqh(b, p)
                p += 18
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                acquired_records_3.append(AcquiredRecords(first_offset_5, last_offset_5, delivery_count_5))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(PartitionData(partition_index_3, error_code_3, error_message_3, acknowledge_error_code_3, acknowledge_error_message_3, current_leader_3, records_3, acquired_records_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(ShareFetchableTopicResponse(topic_id_2, partitions_2))
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
        (node_id_6,) = _read_i(b, p)
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
        host_6 = str(b[p:q], "utf-8")
        p = q
        (port_6,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_6 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_6 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        node_endpoints_1.append(NodeEndpoint(node_id_6, host_6, port_6, rack_6))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareFetchResponse(throttle_time_ms_1, error_code_1, error_message_1, acquisition_lock_timeout_ms_1, responses_1, node_endpoints_1)


DECODE_SHARE_FETCH_RESPONSE = {
    1: _decode_share_fetch_response_1,
    2: _decode_share_fetch_response_1,
}


def _encode_share_fetch_response_1(m: ShareFetchResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    out += _write_i(m.acquisition_lock_timeout_ms)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            out += _write_h(each_2_m.acknowledge_error_code)
            write_compact_nullable_string(out, each_2_m.acknowledge_error_message)
            each_3 = each_2_m.current_leader
            out += _write_ii(each_3.leader_id, each_3.leader_epoch)
            out.append(0)
            write_compact_bytes(out, each_2_m.records)
            each_4 = each_2_m.acquired_records
            write_varint(out, len(each_4) + 1)
            for each_4_m in each_4:
                out += _write_qqh(each_4_m.first_offset, each_4_m.last_offset, each_4_m.delivery_count)
                out.append(0)
            out.append(0)
        out.append(0)
    each_5 = m.node_endpoints
    write_varint(out, len(each_5) + 1)
    for each_5_m in each_5:
        out += _write_i(each_5_m.node_id)
        write_compact_string(out, each_5_m.host)
        out += _write_i(each_5_m.port)
        write_compact_nullable_string(out, each_5_m.rack)
        out.append(0)
    out.append(0)


ENCODE_SHARE_FETCH_RESPONSE = {
    1: _encode_share_fetch_response_1,
    2: _encode_share_fetch_response_1,
}
