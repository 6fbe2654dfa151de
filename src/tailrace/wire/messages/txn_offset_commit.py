"""TxnOffsetCommit: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_iqi = Struct(">iqi")
_read_iqi = _struct_iqi.unpack_from
_write_iqi = _struct_iqi.pack
_struct_qh = Struct(">qh")
_read_qh = _struct_qh.unpack_from
_write_qh = _struct_qh.pack
_struct_qhi = Struct(">qhi")
_read_qhi = _struct_qhi.unpack_from
_write_qhi = _struct_qhi.pack


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata",)

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = '',
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[TxnOffsetCommitRequestPartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is NEW else partitions


class TxnOffsetCommitRequest(Message):
    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id", "group_instance_id", "topics",)

    def __init__(
        self,
        transactional_id: str = '',
        group_id: str = '',
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = '',
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = NEW,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.group_id: str = group_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is NEW else topics


class TxnOffsetCommitResponsePartition(Message):
    __slots__ = ("partition_index", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[TxnOffsetCommitResponsePartition] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is NEW else partitions


class TxnOffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is NEW else topics


def _decode_txn_offset_commit_request_0(b: memoryview, p: int = 0) -> TxnOffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("transactional_id is null")
    q = p + n
    if q > end:
        raise fail("transactional_id past the end")
    transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    producer_id_1, producer_epoch_1 = _read_qh(b, p)
    p += 10
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
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 14 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3 = _read_iq(b, p)
            p += 12
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            partitions_2.append(TxnOffsetCommitRequestPartition(partition_index_3, committed_offset_3, -1, committed_metadata_3))
        topics_1.append(TxnOffsetCommitRequestTopic(name_2, partitions_2))
    return TxnOffsetCommitRequest(transactional_id_1, group_id_1, producer_id_1, producer_epoch_1, -1, '', None, topics_1)


def _decode_txn_offset_commit_request_2(b: memoryview, p: int = 0) -> TxnOffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("transactional_id is null")
    q = p + n
    if q > end:
        raise fail("transactional_id past the end")
    transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    producer_id_1, producer_epoch_1 = _read_qh(b, p)
    p += 10
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
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            partitions_2.append(TxnOffsetCommitRequestPartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, committed_metadata_3))
        topics_1.append(TxnOffsetCommitRequestTopic(name_2, partitions_2))
    return TxnOffsetCommitRequest(transactional_id_1, group_id_1, producer_id_1, producer_epoch_1, -1, '', None, topics_1)


def _decode_txn_offset_commit_request_3(b: memoryview, p: int = 0) -> TxnOffsetCommitRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("transactional_id is null")
    q = p + n
    if q > end:
        raise fail("transactional_id past the end")
    transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    producer_id_1, producer_epoch_1, generation_id_1 = _read_qhi(b, p)
    p += 14
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        group_instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("group_instance_id past the end")
        group_instance_id_1 = str(b[p:q], "utf-8")
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
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 18 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_index_3, committed_offset_3, committed_leader_epoch_3 = _read_iqi(b, p)
            p += 16
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                committed_metadata_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("committed_metadata past the end")
                committed_metadata_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(TxnOffsetCommitRequestPartition(partition_index_3, committed_offset_3, committed_leader_epoch_3, committed_metadata_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(TxnOffsetCommitRequestTopic(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return TxnOffsetCommitRequest(transactional_id_1, group_id_1, producer_id_1, producer_epoch_1, generation_id_1, member_id_1, group_instance_id_1, topics_1)


DECODE_TXN_OFFSET_COMMIT_REQUEST = {
    0: _decode_txn_offset_commit_request_0,
    1: _decode_txn_offset_commit_request_0,
    2: _decode_txn_offset_commit_request_2,
    3: _decode_txn_offset_commit_request_3,
    4: _decode_txn_offset_commit_request_3,
    5: _decode_txn_offset_commit_request_3,
}


def _encode_txn_offset_commit_request_0(m: TxnOffsetCommitRequest, out: bytearray) -> None:
    write_string(out, m.transactional_id)
    write_string(out, m.group_id)
    out += _write_qh(m.producer_id, m.producer_epoch)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iq(each_2_m.partition_index, each_2_m.committed_offset)
            write_nullable_string(out, each_2_m.committed_metadata)


def _encode_txn_offset_commit_request_2(m: TxnOffsetCommitRequest, out: bytearray) -> None:
    write_string(out, m.transactional_id)
    write_string(out, m.group_id)
    out += _write_qh(m.producer_id, m.producer_epoch)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_nullable_string(out, each_2_m.committed_metadata)


def _encode_txn_offset_commit_request_3(m: TxnOffsetCommitRequest, out: bytearray) -> None:
    write_compact_string(out, m.transactional_id)
    write_compact_string(out, m.group_id)
    out += _write_qhi(m.producer_id, m.producer_epoch, m.generation_id)
    write_compact_string(out, m.member_id)
    write_compact_nullable_string(out, m.group_instance_id)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition_index, each_2_m.committed_offset, each_2_m.committed_leader_epoch)
            write_compact_nullable_string(out, each_2_m.committed_metadata)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_TXN_OFFSET_COMMIT_REQUEST = {
    0: _encode_txn_offset_commit_request_0,
    1: _encode_txn_offset_commit_request_0,
    2: _encode_txn_offset_commit_request_2,
    3: _encode_txn_offset_commit_request_3,
    4: _encode_txn_offset_commit_request_3,
    5: _encode_txn_offset_commit_request_3,
}


def _decode_txn_offset_commit_response_0(b: memoryview, p: int = 0) -> TxnOffsetCommitResponse:
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
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
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
            partitions_2.append(TxnOffsetCommitResponsePartition(partition_index_3, error_code_3))
        topics_1.append(TxnOffsetCommitResponseTopic(name_2, partitions_2))
    return TxnOffsetCommitResponse(throttle_time_ms_1, topics_1)


def _decode_txn_offset_commit_response_3(b: memoryview, p: int = 0) -> TxnOffsetCommitResponse:
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
            partitions_2.append(TxnOffsetCommitResponsePartition(partition_index_3, error_code_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(TxnOffsetCommitResponseTopic(name_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return TxnOffsetCommitResponse(throttle_time_ms_1, topics_1)


DECODE_TXN_OFFSET_COMMIT_RESPONSE = {
    0: _decode_txn_offset_commit_response_0,
    1: _decode_txn_offset_commit_response_0,
    2: _decode_txn_offset_commit_response_0,
    3: _decode_txn_offset_commit_response_3,
    4: _decode_txn_offset_commit_response_3,
    5: _decode_txn_offset_commit_response_3,
}


def _encode_txn_offset_commit_response_0(m: TxnOffsetCommitResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)


def _encode_txn_offset_commit_response_3(m: TxnOffsetCommitResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ih(each_2_m.partition_index, each_2_m.error_code)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_TXN_OFFSET_COMMIT_RESPONSE = {
    0: _encode_txn_offset_commit_response_0,
    1: _encode_txn_offset_commit_response_0,
    2: _encode_txn_offset_commit_response_0,
    3: _encode_txn_offset_commit_response_3,
    4: _encode_txn_offset_commit_response_3,
    5: _encode_txn_offset_commit_response_3,
}
