"""AddOffsetsToTxn: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_qh = Struct(">qh")
_read_qh = _struct_qh.unpack_from
_write_qh = _struct_qh.pack


class AddOffsetsToTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id",)

    def __init__(
        self,
        transactional_id: str = '',
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = '',
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.group_id: str = group_id


class AddOffsetsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code


def _decode_add_offsets_to_txn_request_0(b: memoryview, p: int = 0) -> AddOffsetsToTxnRequest:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("transactional_id is null")
    q = p + n
    if q > end:
        raise fail("transactional_id past the end")
    transactional_id_1 = str(b[p:q], "utf-8")
    p = q
    producer_id_1, producer_epoch_1 = _read_qh(b, p)
    p += 10
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    return AddOffsetsToTxnRequest(transactional_id_1, producer_id_1, producer_epoch_1, group_id_1)


def _decode_add_offsets_to_txn_request_3(b: memoryview, p: int = 0) -> AddOffsetsToTxnRequest:
    end = len(b)
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
    producer_id_1, producer_epoch_1 = _read_qh(b, p)
    p += 10
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
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AddOffsetsToTxnRequest(transactional_id_1, producer_id_1, producer_epoch_1, group_id_1)


DECODE_ADD_OFFSETS_TO_TXN_REQUEST = {
    0: _decode_add_offsets_to_txn_request_0,
    1: _decode_add_offsets_to_txn_request_0,
    2: _decode_add_offsets_to_txn_request_0,
    3: _decode_add_offsets_to_txn_request_3,
    4: _decode_add_offsets_to_txn_request_3,
}


def _encode_add_offsets_to_txn_request_0(m: AddOffsetsToTxnRequest, out: bytearray) -> None:
    write_string(out, m.transactional_id)
    out += _write_qh(m.producer_id, m.producer_epoch)
    write_string(out, m.group_id)


def _encode_add_offsets_to_txn_request_3(m: AddOffsetsToTxnRequest, out: bytearray) -> None:
    write_compact_string(out, m.transactional_id)
    out += _write_qh(m.producer_id, m.producer_epoch)
    write_compact_string(out, m.group_id)
    out.append(0)


ENCODE_ADD_OFFSETS_TO_TXN_REQUEST = {
    0: _encode_add_offsets_to_txn_request_0,
    1: _encode_add_offsets_to_txn_request_0,
    2: _encode_add_offsets_to_txn_request_0,
    3: _encode_add_offsets_to_txn_request_3,
    4: _encode_add_offsets_to_txn_request_3,
}


def _decode_add_offsets_to_txn_response_0(b: memoryview, p: int = 0) -> AddOffsetsToTxnResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    return AddOffsetsToTxnResponse(throttle_time_ms_1, error_code_1)


def _decode_add_offsets_to_txn_response_3(b: memoryview, p: int = 0) -> AddOffsetsToTxnResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AddOffsetsToTxnResponse(throttle_time_ms_1, error_code_1)


DECODE_ADD_OFFSETS_TO_TXN_RESPONSE = {
    0: _decode_add_offsets_to_txn_response_0,
    1: _decode_add_offsets_to_txn_response_0,
    2: _decode_add_offsets_to_txn_response_0,
    3: _decode_add_offsets_to_txn_response_3,
    4: _decode_add_offsets_to_txn_response_3,
}


def _encode_add_offsets_to_txn_response_0(m: AddOffsetsToTxnResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)


def _encode_add_offsets_to_txn_response_3(m: AddOffsetsToTxnResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    out.append(0)


ENCODE_ADD_OFFSETS_TO_TXN_RESPONSE = {
    0: _encode_add_offsets_to_txn_response_0,
    1: _encode_add_offsets_to_txn_response_0,
    2: _encode_add_offsets_to_txn_response_0,
    3: _encode_add_offsets_to_txn_response_3,
    4: _encode_add_offsets_to_txn_response_3,
}
