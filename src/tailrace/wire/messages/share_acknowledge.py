"""ShareAcknowledge: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_it = Struct(">i?")
_read_it = _struct_it.unpack_from
_write_it = _struct_it.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack
_struct_qq = Struct(">qq")
_read_qq = _struct_qq.unpack_from
_write_qq = _struct_qq.pack


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


class AcknowledgePartition(Message):
    __slots__ = ("partition_index", "acknowledgement_batches",)

    def __init__(
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is NEW else acknowledgement_batches


class AcknowledgeTopic(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[AcknowledgePartition] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[AcknowledgePartition] = [] if partitions is NEW else partitions


class ShareAcknowledgeRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics",)

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = '',
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] = NEW,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[AcknowledgeTopic] = [] if topics is NEW else topics


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch",)

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class PartitionData(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "current_leader",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is NEW else current_leader


class ShareAcknowledgeTopicResponse(Message):
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


class ShareAcknowledgeResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] = NEW,
        node_endpoints: list[NodeEndpoint] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareAcknowledgeTopicResponse] = [] if responses is NEW else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is NEW else node_endpoints


def _decode_share_acknowledge_request_1(b: memoryview, p: int = 0) -> ShareAcknowledgeRequest:
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
    (share_session_epoch_1,) = _read_i(b, p)
    p += 4
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
            partitions_2.append(AcknowledgePartition(partition_index_3, acknowledgement_batches_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(AcknowledgeTopic(topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareAcknowledgeRequest(group_id_1, member_id_1, share_session_epoch_1, False, topics_1)


def _decode_share_acknowledge_request_2(b: memoryview, p: int = 0) -> ShareAcknowledgeRequest:
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
    share_session_epoch_1, is_renew_ack_1 = _read_it(b, p)
    p += 5
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
            partitions_2.append(AcknowledgePartition(partition_index_3, acknowledgement_batches_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(AcknowledgeTopic(topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareAcknowledgeRequest(group_id_1, member_id_1, share_session_epoch_1, is_renew_ack_1, topics_1)


DECODE_SHARE_ACKNOWLEDGE_REQUEST = {
    1: _decode_share_acknowledge_request_1,
    2: _decode_share_acknowledge_request_2,
}


def _encode_share_acknowledge_request_1(m: ShareAcknowledgeRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.group_id)
    write_compact_nullable_string(out, m.member_id)
    out += _write_i(m.share_session_epoch)
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
    out.append(0)


def _encode_share_acknowledge_request_2(m: ShareAcknowledgeRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.group_id)
    write_compact_nullable_string(out, m.member_id)
    out += _write_it(m.share_session_epoch, m.is_renew_ack)
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
    out.append(0)


ENCODE_SHARE_ACKNOWLEDGE_REQUEST = {
    1: _encode_share_acknowledge_request_1,
    2: _encode_share_acknowledge_request_2,
}


def _decode_share_acknowledge_response_1(b: memoryview, p: int = 0) -> ShareAcknowledgeResponse:
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
        if n * 17 > end - p:
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
            leader_id_4, leader_epoch_4 = _read_ii(b, p)
            p += 8
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            current_leader_3 = LeaderIdAndEpoch(leader_id_4, leader_epoch_4)
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(PartitionData(partition_index_3, error_code_3, error_message_3, current_leader_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(ShareAcknowledgeTopicResponse(topic_id_2, partitions_2))
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
        (node_id_5,) = _read_i(b, p)
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
        host_5 = str(b[p:q], "utf-8")
        p = q
        (port_5,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_5 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_5 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        node_endpoints_1.append(NodeEndpoint(node_id_5, host_5, port_5, rack_5))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareAcknowledgeResponse(throttle_time_ms_1, error_code_1, error_message_1, 0, responses_1, node_endpoints_1)


def _decode_share_acknowledge_response_2(b: memoryview, p: int = 0) -> ShareAcknowledgeResponse:
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
        if n * 17 > end - p:
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
            leader_id_4, leader_epoch_4 = _read_ii(b, p)
            p += 8
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            current_leader_3 = LeaderIdAndEpoch(leader_id_4, leader_epoch_4)
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(PartitionData(partition_index_3, error_code_3, error_message_3, current_leader_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(ShareAcknowledgeTopicResponse(topic_id_2, partitions_2))
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
        (node_id_5,) = _read_i(b, p)
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
        host_5 = str(b[p:q], "utf-8")
        p = q
        (port_5,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_5 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_5 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        node_endpoints_1.append(NodeEndpoint(node_id_5, host_5, port_5, rack_5))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareAcknowledgeResponse(throttle_time_ms_1, error_code_1, error_message_1, acquisition_lock_timeout_ms_1, responses_1, node_endpoints_1)


DECODE_SHARE_ACKNOWLEDGE_RESPONSE = {
    1: _decode_share_acknowledge_response_1,
    2: _decode_share_acknowledge_response_2,
}


def _encode_share_acknowledge_response_1(m: ShareAcknowledgeResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            write_compact_nullable_string(out, each_2_m.error_message)
            each_3 = each_2_m.current_leader
            out += _write_ii(each_3.leader_id, each_3.leader_epoch)
            out.append(0)
            out.append(0)
        out.append(0)
    each_4 = m.node_endpoints
    write_varint(out, len(each_4) + 1)
    for each_4_m in each_4:
        out += _write_i(each_4_m.node_id)
        write_compact_string(out, each_4_m.host)
        out += _write_i(each_4_m.port)
        write_compact_nullable_string(out, each_4_m.rack)
        out.append(0)
    out.append(0)


def _encode_share_acknowledge_response_2(m: ShareAcknowledgeResponse, out: bytearray) -> None:
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
            each_3 = each_2_m.current_leader
            out += _write_ii(each_3.leader_id, each_3.leader_epoch)
            out.append(0)
            out.append(0)
        out.append(0)
    each_4 = m.node_endpoints
    write_varint(out, len(each_4) + 1)
    for each_4_m in each_4:
        out += _write_i(each_4_m.node_id)
        write_compact_string(out, each_4_m.host)
        out += _write_i(each_4_m.port)
        write_compact_nullable_string(out, each_4_m.rack)
        out.append(0)
    out.append(0)


ENCODE_SHARE_ACKNOWLEDGE_RESPONSE = {
    1: _encode_share_acknowledge_response_1,
    2: _encode_share_acknowledge_response_2,
}
