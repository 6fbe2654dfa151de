"""SaslAuthenticate: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)

    def __init__(
        self,
        auth_bytes: bytes = b'',
    ) -> None:
        self.auth_bytes: bytes = auth_bytes


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        auth_bytes: bytes = b'',
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: bytes = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms


def _decode_sasl_authenticate_request_0(b: memoryview, p: int = 0) -> SaslAuthenticateRequest:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("auth_bytes is null")
    q = p + n
    if q > end:
        raise fail("auth_bytes past the end")
    auth_bytes_1 = bytes(b[p:q])
    p = q
    return SaslAuthenticateRequest(auth_bytes_1)


def _decode_sasl_authenticate_request_2(b: memoryview, p: int = 0) -> SaslAuthenticateRequest:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("auth_bytes is null")
    q = p + n
    if q > end:
        raise fail("auth_bytes past the end")
    auth_bytes_1 = bytes(b[p:q])
    p = q
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return SaslAuthenticateRequest(auth_bytes_1)


DECODE_SASL_AUTHENTICATE_REQUEST = {
    0: _decode_sasl_authenticate_request_0,
    1: _decode_sasl_authenticate_request_0,
    2: _decode_sasl_authenticate_request_2,
}


def _encode_sasl_authenticate_request_0(m: SaslAuthenticateRequest, out: bytearray) -> None:
    write_bytes(out, m.auth_bytes)


def _encode_sasl_authenticate_request_2(m: SaslAuthenticateRequest, out: bytearray) -> None:
    write_compact_bytes(out, m.auth_bytes)
    out.append(0)


ENCODE_SASL_AUTHENTICATE_REQUEST = {
    0: _encode_sasl_authenticate_request_0,
    1: _encode_sasl_authenticate_request_0,
    2: _encode_sasl_authenticate_request_2,
}


def _decode_sasl_authenticate_response_0(b: memoryview, p: int = 0) -> SaslAuthenticateResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        error_message_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("error_message past the end")
        error_message_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("auth_bytes is null")
    q = p + n
    if q > end:
        raise fail("auth_bytes past the end")
    auth_bytes_1 = bytes(b[p:q])
    p = q
    return SaslAuthenticateResponse(error_code_1, error_message_1, auth_bytes_1, 0)


def _decode_sasl_authenticate_response_1(b: memoryview, p: int = 0) -> SaslAuthenticateResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        error_message_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("error_message past the end")
        error_message_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("auth_bytes is null")
    q = p + n
    if q > end:
        raise fail("auth_bytes past the end")
    auth_bytes_1 = bytes(b[p:q])
    p = q
    (session_lifetime_ms_1,) = _read_q(b, p)
    p += 8
    return SaslAuthenticateResponse(error_code_1, error_message_1, auth_bytes_1, session_lifetime_ms_1)


def _decode_sasl_authenticate_response_2(b: memoryview, p: int = 0) -> SaslAuthenticateResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
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
        raise fail("auth_bytes is null")
    q = p + n
    if q > end:
        raise fail("auth_bytes past the end")
    auth_bytes_1 = bytes(b[p:q])
    p = q
    (session_lifetime_ms_1,) = _read_q(b, p)
    p += 8
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return SaslAuthenticateResponse(error_code_1, error_message_1, auth_bytes_1, session_lifetime_ms_1)


DECODE_SASL_AUTHENTICATE_RESPONSE = {
    0: _decode_sasl_authenticate_response_0,
    1: _decode_sasl_authenticate_response_1,
    2: _decode_sasl_authenticate_response_2,
}


def _encode_sasl_authenticate_response_0(m: SaslAuthenticateResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_nullable_string(out, m.error_message)
    write_bytes(out, m.auth_bytes)


def _encode_sasl_authenticate_response_1(m: SaslAuthenticateResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_nullable_string(out, m.error_message)
    write_bytes(out, m.auth_bytes)
    out += _write_q(m.session_lifetime_ms)


def _encode_sasl_authenticate_response_2(m: SaslAuthenticateResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_compact_nullable_string(out, m.error_message)
    write_compact_bytes(out, m.auth_bytes)
    out += _write_q(m.session_lifetime_ms)
    out.append(0)


ENCODE_SASL_AUTHENTICATE_RESPONSE = {
    0: _encode_sasl_authenticate_response_0,
    1: _encode_sasl_authenticate_response_1,
    2: _encode_sasl_authenticate_response_2,
}
