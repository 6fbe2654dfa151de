"""InitProducerId: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ihqh = Struct(">ihqh")
_read_ihqh = _struct_ihqh.unpack_from
_write_ihqh = _struct_ihqh.pack
_struct_ihqhqh = Struct(">ihqhqh")
_read_ihqhqh = _struct_ihqhqh.unpack_from
_write_ihqhqh = _struct_ihqhqh.pack
_struct_iqh = Struct(">iqh")
_read_iqh = _struct_iqh.unpack_from
_write_iqh = _struct_iqh.pack
_struct_iqhtt = Struct(">iqh??")
_read_iqhtt = _struct_iqhtt.unpack_from
_write_iqhtt = _struct_iqhtt.pack


class InitProducerIdRequest(Message):
    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc", "keep_prepared_txn",)

    def __init__(
        self,
        transactional_id: str | None = '',
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.enable2_pc: bool = enable2_pc
        self.keep_prepared_txn: bool = keep_prepared_txn


class InitProducerIdResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch", "ongoing_txn_producer_id", "ongoing_txn_producer_epoch",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.ongoing_txn_producer_id: int = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch: int = ongoing_txn_producer_epoch


def _decode_init_producer_id_request_0(b: memoryview, p: int = 0) -> InitProducerIdRequest:
    end = len(b)
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
    (transaction_timeout_ms_1,) = _read_i(b, p)
    p += 4
    return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_1, -1, -1, False, False)


def _decode_init_producer_id_request_2(b: memoryview, p: int = 0) -> InitProducerIdRequest:
    end = len(b)
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
    (transaction_timeout_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_1, -1, -1, False, False)


def _decode_init_producer_id_request_3(b: memoryview, p: int = 0) -> InitProducerIdRequest:
    end = len(b)
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
    transaction_timeout_ms_1, producer_id_1, producer_epoch_1 = _read_iqh(b, p)
    p += 14
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_1, producer_id_1, producer_epoch_1, False, False)


def _decode_init_producer_id_request_6(b: memoryview, p: int = 0) -> InitProducerIdRequest:
    end = len(b)
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
    transaction_timeout_ms_1, producer_id_1, producer_epoch_1, enable2_pc_1, keep_prepared_txn_1 = _read_iqhtt(b, p)
    p += 16
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_1, producer_id_1, producer_epoch_1, enable2_pc_1, keep_prepared_txn_1)


DECODE_INIT_PRODUCER_ID_REQUEST = {
    0: _decode_init_producer_id_request_0,
    1: _decode_init_producer_id_request_0,
    2: _decode_init_producer_id_request_2,
    3: _decode_init_producer_id_request_3,
    4: _decode_init_producer_id_request_3,
    5: _decode_init_producer_id_request_3,
    6: _decode_init_producer_id_request_6,
}


def _encode_init_producer_id_request_0(m: InitProducerIdRequest, out: bytearray) -> None:
    write_nullable_string(out, m.transactional_id)
    out += _write_i(m.transaction_timeout_ms)


def _encode_init_producer_id_request_2(m: InitProducerIdRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.transactional_id)
    out += _write_i(m.transaction_timeout_ms)
    out.append(0)


def _encode_init_producer_id_request_3(m: InitProducerIdRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.transactional_id)
    out += _write_iqh(m.transaction_timeout_ms, m.producer_id, m.producer_epoch)
    out.append(0)


def _encode_init_producer_id_request_6(m: InitProducerIdRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.transactional_id)
    out += _write_iqhtt(m.transaction_timeout_ms, m.producer_id, m.producer_epoch, m.enable2_pc, m.keep_prepared_txn)
    out.append(0)


ENCODE_INIT_PRODUCER_ID_REQUEST = {
    0: _encode_init_producer_id_request_0,
    1: _encode_init_producer_id_request_0,
    2: _encode_init_producer_id_request_2,
    3: _encode_init_producer_id_request_3,
    4: _encode_init_producer_id_request_3,
    5: _encode_init_producer_id_request_3,
    6: _encode_init_producer_id_request_6,
}


def _decode_init_producer_id_response_0(b: memoryview, p: int = 0) -> InitProducerIdResponse:
    throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1 = _read_ihqh(b, p)
    p += 16
    return InitProducerIdResponse(throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1, -1, -1)


def _decode_init_producer_id_response_2(b: memoryview, p: int = 0) -> InitProducerIdResponse:
    throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1 = _read_ihqh(b, p)
    p += 16
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return InitProducerIdResponse(throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1, -1, -1)


def _decode_init_producer_id_response_6(b: memoryview, p: int = 0) -> InitProducerIdResponse:
    throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1, ongoing_txn_producer_id_1, ongoing_txn_producer_epoch_1 = _read_ihqhqh(b, p)
    p += 26
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return InitProducerIdResponse(throttle_time_ms_1, error_code_1, producer_id_1, producer_epoch_1, ongoing_txn_producer_id_1, ongoing_txn_producer_epoch_1)


DECODE_INIT_PRODUCER_ID_RESPONSE = {
    0: _decode_init_producer_id_response_0,
    1: _decode_init_producer_id_response_0,
    2: _decode_init_producer_id_response_2,
    3: _decode_init_producer_id_response_2,
    4: _decode_init_producer_id_response_2,
    5: _decode_init_producer_id_response_2,
    6: _decode_init_producer_id_response_6,
}


def _encode_init_producer_id_response_0(m: InitProducerIdResponse, out: bytearray) -> None:
    out += _write_ihqh(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)


def _encode_init_producer_id_response_2(m: InitProducerIdResponse, out: bytearray) -> None:
    out += _write_ihqh(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
    out.append(0)


def _encode_init_producer_id_response_6(m: InitProducerIdResponse, out: bytearray) -> None:
    out += _write_ihqhqh(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, m.ongoing_txn_producer_id, m.ongoing_txn_producer_epoch)
    out.append(0)


ENCODE_INIT_PRODUCER_ID_RESPONSE = {
    0: _encode_init_producer_id_response_0,
    1: _encode_init_producer_id_response_0,
    2: _encode_init_producer_id_response_2,
    3: _encode_init_producer_id_response_2,
    4: _encode_init_producer_id_response_2,
    5: _encode_init_producer_id_response_2,
    6: _encode_init_producer_id_response_6,
}
