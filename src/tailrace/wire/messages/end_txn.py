"""EndTxn: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ihqh = Struct(">ihqh")
_read_ihqh = _struct_ihqh.unpack_from
_write_ihqh = _struct_ihqh.pack
_struct_qht = Struct(">qh?")
_read_qht = _struct_qht.unpack_from
_write_qht = _struct_qht.pack


class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed",)

    def __init__(
        self,
        transactional_id: str = '',
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.committed: bool = committed


class EndTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch


def _decode_end_txn_request_0(b: memoryview, p: int = 0) -> EndTxnRequest:
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
    producer_id_1, producer_epoch_1, committed_1 = _read_qht(b, p)
    p += 11
    return EndTxnRequest(transactional_id_1, producer_id_1, producer_epoch_1, committed_1)


def _decode_end_txn_request_3(b: memoryview, p: int = 0) -> EndTxnRequest:
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
    producer_id_1, producer_epoch_1, committed_1 = _read_qht(b, p)
    p += 11
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return EndTxnRequest(transactional_id_1, producer_id_1, producer_epoch_1, committed_1)


DECODE_END_TXN_REQUEST = {
    0: _decode_end_txn_request_0,
    1: _decode_end_txn_request_0,
    2: _decode_end_txn_request_0,
    3: _decode_end_txn_request_3,
    4: _decode_end_txn_request_3,
    5: _decode_end_txn_request_3,
}


def _encode_end_txn_request_0(m: EndTxnRequest, out: bytearray) -> None:
    write_string(out, m.transactional_id)
    out += _write_qht(m.producer_id, m.producer_epoch, m.committed)


def _encode_end_txn_request_3(m: EndTxnRequest, out: bytearray) -> None:
    write_compact_string(out, m.transactional_id)
    out += _write_qht(m.producer_id, m.producer_epoch, m.committed)
    out.append(0)


ENCODE_END_TXN_REQUEST = {
    0: _encode_end_txn_request_0,
    1: _encode_end_txn_request_0,
    2: _encode_end_txn_request_0,
    3: _encode_end_txn_request_3,
    4: _encode_end_txn_request_3,
    5: _encode_end_txn_request_3,
}


def _decode_end_txn_response_0(b: memoryview, p: int = 0) -> EndTxnResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    return EndTxnResponse(throttle_time_ms_1, error_code_1, -1, -1)


def _decode_end_txn_response_3(b: memoryview, p: int = 0) -> EndTxnResponse:
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return EndTxnResponse(throttle_time_ms_1, error_code_1, -1, -1)


def _decode_end_txn_response_5(b: memoryview, p: int = 0) -> EndTxnResponse:
    throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1 = _read_ihqh(b, p)
    p += 16
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return EndTxnResponse(throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1)


DECODE_END_TXN_RESPONSE = {
    0: _decode_end_txn_response_0,
    1: _decode_end_txn_response_0,
    2: _decode_end_txn_response_0,
    3: _decode_end_txn_response_3,
    4: _decode_end_txn_response_3,
    5: _decode_end_txn_response_5,
}


def _encode_end_txn_response_0(m: EndTxnResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)


def _encode_end_txn_response_3(m: EndTxnResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    out.append(0)


def _encode_end_txn_response_5(m: EndTxnResponse, out: bytearray) -> None:
    out += _write_ihqh(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
    out.append(0)


ENCODE_END_TXN_RESPONSE = {
    0: _encode_end_txn_response_0,
    1: _encode_end_txn_response_0,
    2: _encode_end_txn_response_0,
    3: _encode_end_txn_response_3,
    4: _encode_end_txn_response_3,
    5: _encode_end_txn_response_5,
}
