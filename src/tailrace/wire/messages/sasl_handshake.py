"""SaslHandshake: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)

    def __init__(
        self,
        mechanism: str = '',
    ) -> None:
        self.mechanism: str = mechanism


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms",)

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.mechanisms: list[str] = [] if mechanisms is NEW else mechanisms


def _decode_sasl_handshake_request_0(b: memoryview, p: int = 0) -> SaslHandshakeRequest:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("mechanism is null")
    q = p + n
    if q > end:
        raise fail("mechanism past the end")
    mechanism_1 = str(b[p:q], "utf-8")
    p = q
    return SaslHandshakeRequest(mechanism_1)


DECODE_SASL_HANDSHAKE_REQUEST = {
    0: _decode_sasl_handshake_request_0,
    1: _decode_sasl_handshake_request_0,
}


def _encode_sasl_handshake_request_0(m: SaslHandshakeRequest, out: bytearray) -> None:
    write_string(out, m.mechanism)


ENCODE_SASL_HANDSHAKE_REQUEST = {
    0: _encode_sasl_handshake_request_0,
    1: _encode_sasl_handshake_request_0,
}


def _decode_sasl_handshake_response_0(b: memoryview, p: int = 0) -> SaslHandshakeResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("mechanisms is null")
    if n * 2 > end - p:
        raise fail("mechanisms has more elements than bytes")
    mechanisms_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("mechanisms is null")
        q = p + n
        if q > end:
            raise fail("mechanisms past the end")
        mechanisms_1_each = str(b[p:q], "utf-8")
        p = q
        mechanisms_1.append(mechanisms_1_each)
    return SaslHandshakeResponse(error_code_1, mechanisms_1)


DECODE_SASL_HANDSHAKE_RESPONSE = {
    0: _decode_sasl_handshake_response_0,
    1: _decode_sasl_handshake_response_0,
}


def _encode_sasl_handshake_response_0(m: SaslHandshakeResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.mechanisms
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)


ENCODE_SASL_HANDSHAKE_RESPONSE = {
    0: _encode_sasl_handshake_response_0,
    1: _encode_sasl_handshake_response_0,
}
