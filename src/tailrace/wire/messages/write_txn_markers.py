"""WriteTxnMarkers: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ib = Struct(">ib")
_read_ib = _struct_ib.unpack_from
_write_ib = _struct_ib.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack
_struct_qht = Struct(">qh?")
_read_qht = _struct_qht.unpack_from
_write_qht = _struct_qht.pack


class WritableTxnMarkerTopic(Message):
    __slots__ = ("name", "partition_indexes",)

    def __init__(
        self,
        name: str = '',
        partition_indexes: list[int] = NEW,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is NEW else partition_indexes


class WritableTxnMarker(Message):
    __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version",)

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = NEW,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_result: bool = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is NEW else topics
        self.coordinator_epoch: int = coordinator_epoch
        self.transaction_version: int = transaction_version


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)

    def __init__(
        self,
        markers: list[WritableTxnMarker] = NEW,
    ) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is NEW else markers


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = ("partition_index", "error_code",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class WritableTxnMarkerTopicResult(Message):
    __slots__ = ("name", "partitions",)

    def __init__(
        self,
        name: str = '',
        partitions: list[WritableTxnMarkerPartitionResult] = NEW,
    ) -> None:
        self.name: str = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is NEW else partitions


class WritableTxnMarkerResult(Message):
    __slots__ = ("producer_id", "topics",)

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = NEW,
    ) -> None:
        self.producer_id: int = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is NEW else topics


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] = NEW,
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is NEW else markers


def _decode_write_txn_markers_request_1(b: memoryview, p: int = 0) -> WriteTxnMarkersRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("markers is null")
    if n * 17 > end - p:
        raise fail("markers has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    markers_1 = []
    for _ in range(n):
        producer_id_2, producer_epoch_2, transaction_result_2 = _read_qht(b, p)
        p += 11
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
                raise fail("partition_indexes is null")
            if n * 4 > end - p:
                raise fail("partition_indexes has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partition_indexes_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(WritableTxnMarkerTopic(name_3, partition_indexes_3))
        (coordinator_epoch_2,) = _read_i(b, p)
        p += 4
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        markers_1.append(WritableTxnMarker(producer_id_2, producer_epoch_2, transaction_result_2, topics_2, coordinator_epoch_2, 0))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return WriteTxnMarkersRequest(markers_1)


def _decode_write_txn_markers_request_2(b: memoryview, p: int = 0) -> WriteTxnMarkersRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("markers is null")
    if n * 18 > end - p:
        raise fail("markers has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    markers_1 = []
    for _ in range(n):
        producer_id_2, producer_epoch_2, transaction_result_2 = _read_qht(b, p)
        p += 11
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
                raise fail("partition_indexes is null")
            if n * 4 > end - p:
                raise fail("partition_indexes has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            partition_indexes_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(WritableTxnMarkerTopic(name_3, partition_indexes_3))
        coordinator_epoch_2, transaction_version_2 = _read_ib(b, p)
        p += 5
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        markers_1.append(WritableTxnMarker(producer_id_2, producer_epoch_2, transaction_result_2, topics_2, coordinator_epoch_2, transaction_version_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return WriteTxnMarkersRequest(markers_1)


DECODE_WRITE_TXN_MARKERS_REQUEST = {
    1: _decode_write_txn_markers_request_1,
    2: _decode_write_txn_markers_request_2,
}


def _encode_write_txn_markers_request_1(m: WriteTxnMarkersRequest, out: bytearray) -> None:
    each_1 = m.markers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_qht(each_1_m.producer_id, each_1_m.producer_epoch, each_1_m.transaction_result)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partition_indexes
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out += _write_i(each_1_m.coordinator_epoch)
        out.append(0)
    out.append(0)


def _encode_write_txn_markers_request_2(m: WriteTxnMarkersRequest, out: bytearray) -> None:
    each_1 = m.markers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_qht(each_1_m.producer_id, each_1_m.producer_epoch, each_1_m.transaction_result)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partition_indexes
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        out += _write_ib(each_1_m.coordinator_epoch, each_1_m.transaction_version)
        out.append(0)
    out.append(0)


ENCODE_WRITE_TXN_MARKERS_REQUEST = {
    1: _encode_write_txn_markers_request_1,
    2: _encode_write_txn_markers_request_2,
}


def _decode_write_txn_markers_response_1(b: memoryview, p: int = 0) -> WriteTxnMarkersResponse:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("markers is null")
    if n * 10 > end - p:
        raise fail("markers has more elements than bytes")
    markers_1 = []
    for _ in range(n):
        (producer_id_2,) = _read_q(b, p)
        p += 8
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
            if n * 7 > end - p:
                raise fail("partitions has more elements than bytes")
            partitions_3 = []
            for _ in range(n):
                partition_index_4, error_code_4 = _read_ih(b, p)
                p += 6
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                partitions_3.append(WritableTxnMarkerPartitionResult(partition_index_4, error_code_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            topics_2.append(WritableTxnMarkerTopicResult(name_3, partitions_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        markers_1.append(WritableTxnMarkerResult(producer_id_2, topics_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return WriteTxnMarkersResponse(markers_1)


DECODE_WRITE_TXN_MARKERS_RESPONSE = {
    1: _decode_write_txn_markers_response_1,
    2: _decode_write_txn_markers_response_1,
}


def _encode_write_txn_markers_response_1(m: WriteTxnMarkersResponse, out: bytearray) -> None:
    each_1 = m.markers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_q(each_1_m.producer_id)
        each_2 = each_1_m.topics
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            each_3 = each_2_m.partitions
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                out += _write_ih(each_3_m.partition_index, each_3_m.error_code)
                out.append(0)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_WRITE_TXN_MARKERS_RESPONSE = {
    1: _encode_write_txn_markers_response_1,
    2: _encode_write_txn_markers_response_1,
}
