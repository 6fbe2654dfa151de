"""RenewDelegationToken: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_hqi = Struct(">hqi")
_read_hqi = _struct_hqi.unpack_from
_write_hqi = _struct_hqi.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack


class RenewDelegationTokenRequest(Message):
    __slots__ = ("hmac", "renew_period_ms",)

    def __init__(
        self,
        hmac: bytes = b'',
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac: bytes = hmac
        self.renew_period_ms: int = renew_period_ms


class RenewDelegationTokenResponse(Message):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms",)

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.throttle_time_ms: int = throttle_time_ms


def _decode_renew_delegation_token_request_1(b: memoryview, p: int = 0) -> RenewDelegationTokenRequest:
    end = len(b)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("hmac is null")
    q = p + n
    if q > end:
        raise fail("hmac past the end")
    hmac_1 = bytes(b[p:q])
    p = q
    (renew_period_ms_1,) = _read_q(b, p)
    p += 8
    return RenewDelegationTokenRequest(hmac_1, renew_period_ms_1)


def _decode_renew_delegation_token_request_2(b: memoryview, p: int = 0) -> RenewDelegationTokenRequest:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("hmac is null")
    q = p + n
    if q > end:
        raise fail("hmac past the end")
    hmac_1 = bytes(b[p:q])
    p = q
    (renew_period_ms_1,) = _read_q(b, p)
    p += 8
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return RenewDelegationTokenRequest(hmac_1, renew_period_ms_1)


DECODE_RENEW_DELEGATION_TOKEN_REQUEST = {
    1: _decode_renew_delegation_token_request_1,
    2: _decode_renew_delegation_token_request_2,
}


def _encode_renew_delegation_token_request_1(m: RenewDelegationTokenRequest, out: bytearray) -> None:
    write_bytes(out, m.hmac)
    out += _write_q(m.renew_period_ms)


def _encode_renew_delegation_token_request_2(m: RenewDelegationTokenRequest, out: bytearray) -> None:
    write_compact_bytes(out, m.hmac)
    out += _write_q(m.renew_period_ms)
    out.append(0)


ENCODE_RENEW_DELEGATION_TOKEN_REQUEST = {
    1: _encode_renew_delegation_token_request_1,
    2: _encode_renew_delegation_token_request_2,
}


def _decode_renew_delegation_token_response_1(b: memoryview, p: int = 0) -> RenewDelegationTokenResponse:
    error_code_1, expiry_timestamp_ms_1, throttle_time_ms_1 = _read_hqi(b, p)
    p += 14
    return RenewDelegationTokenResponse(error_code_1, expiry_timestamp_ms_1, throttle_time_ms_1)


def _decode_renew_delegation_token_response_2(b: memoryview, p: int = 0) -> RenewDelegationTokenResponse:
    error_code_1, expiry_timestamp_ms_1, throttle_time_ms_1 = _read_hqi(b, p)
    p += 14
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return RenewDelegationTokenResponse(error_code_1, expiry_timestamp_ms_1, throttle_time_ms_1)


DECODE_RENEW_DELEGATION_TOKEN_RESPONSE = {
    1: _decode_renew_delegation_token_response_1,
    2: _decode_renew_delegation_token_response_2,
}


def _encode_renew_delegation_token_response_1(m: RenewDelegationTokenResponse, out: bytearray) -> None:
    out += _write_hqi(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)


def _encode_renew_delegation_token_response_2(m: RenewDelegationTokenResponse, out: bytearray) -> None:
    out += _write_hqi(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
    out.append(0)


ENCODE_RENEW_DELEGATION_TOKEN_RESPONSE = {
    1: _encode_renew_delegation_token_response_1,
    2: _encode_renew_delegation_token_response_2,
}
