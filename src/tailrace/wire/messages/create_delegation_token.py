"""CreateDelegationToken: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_qqq = Struct(">qqq")
_read_qqq = _struct_qqq.unpack_from
_write_qqq = _struct_qqq.pack


class CreatableRenewers(Message):
    __slots__ = ("principal_type", "principal_name",)

    def __init__(
        self,
        principal_type: str = '',
        principal_name: str = '',
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


class CreateDelegationTokenRequest(Message):
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms",)

    def __init__(
        self,
        owner_principal_type: str | None = '',
        owner_principal_name: str | None = '',
        renewers: list[CreatableRenewers] = NEW,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        self.owner_principal_name: str | None = owner_principal_name
        self.renewers: list[CreatableRenewers] = [] if renewers is NEW else renewers
        self.max_lifetime_ms: int = max_lifetime_ms


class CreateDelegationTokenResponse(Message):
    __slots__ = ("error_code", "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac", "throttle_time_ms",)

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = '',
        principal_name: str = '',
        token_requester_principal_type: str = '',
        token_requester_principal_name: str = '',
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = '',
        hmac: bytes = b'',
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp_ms: int = issue_timestamp_ms
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.max_timestamp_ms: int = max_timestamp_ms
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.throttle_time_ms: int = throttle_time_ms


def _decode_create_delegation_token_request_1(b: memoryview, p: int = 0) -> CreateDelegationTokenRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("renewers is null")
    if n * 4 > end - p:
        raise fail("renewers has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    renewers_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("principal_type is null")
        q = p + n
        if q > end:
            raise fail("principal_type past the end")
        principal_type_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("principal_name is null")
        q = p + n
        if q > end:
            raise fail("principal_name past the end")
        principal_name_2 = str(b[p:q], "utf-8")
        p = q
        renewers_1.append(CreatableRenewers(principal_type_2, principal_name_2))
    (max_lifetime_ms_1,) = _read_q(b, p)
    p += 8
    return CreateDelegationTokenRequest('', '', renewers_1, max_lifetime_ms_1)


def _decode_create_delegation_token_request_2(b: memoryview, p: int = 0) -> CreateDelegationTokenRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("renewers is null")
    if n * 3 > end - p:
        raise fail("renewers has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    renewers_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("principal_type is null")
        q = p + n
        if q > end:
            raise fail("principal_type past the end")
        principal_type_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("principal_name is null")
        q = p + n
        if q > end:
            raise fail("principal_name past the end")
        principal_name_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        renewers_1.append(CreatableRenewers(principal_type_2, principal_name_2))
    (max_lifetime_ms_1,) = _read_q(b, p)
    p += 8
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateDelegationTokenRequest('', '', renewers_1, max_lifetime_ms_1)


def _decode_create_delegation_token_request_3(b: memoryview, p: int = 0) -> CreateDelegationTokenRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        owner_principal_type_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("owner_principal_type past the end")
        owner_principal_type_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        owner_principal_name_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("owner_principal_name past the end")
        owner_principal_name_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("renewers is null")
    if n * 3 > end - p:
        raise fail("renewers has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    renewers_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("principal_type is null")
        q = p + n
        if q > end:
            raise fail("principal_type past the end")
        principal_type_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("principal_name is null")
        q = p + n
        if q > end:
            raise fail("principal_name past the end")
        principal_name_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        renewers_1.append(CreatableRenewers(principal_type_2, principal_name_2))
    (max_lifetime_ms_1,) = _read_q(b, p)
    p += 8
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateDelegationTokenRequest(owner_principal_type_1, owner_principal_name_1, renewers_1, max_lifetime_ms_1)


DECODE_CREATE_DELEGATION_TOKEN_REQUEST = {
    1: _decode_create_delegation_token_request_1,
    2: _decode_create_delegation_token_request_2,
    3: _decode_create_delegation_token_request_3,
}


def _encode_create_delegation_token_request_1(m: CreateDelegationTokenRequest, out: bytearray) -> None:
    each_1 = m.renewers
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.principal_type)
        write_string(out, each_1_m.principal_name)
    out += _write_q(m.max_lifetime_ms)


def _encode_create_delegation_token_request_2(m: CreateDelegationTokenRequest, out: bytearray) -> None:
    each_1 = m.renewers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.principal_type)
        write_compact_string(out, each_1_m.principal_name)
        out.append(0)
    out += _write_q(m.max_lifetime_ms)
    out.append(0)


def _encode_create_delegation_token_request_3(m: CreateDelegationTokenRequest, out: bytearray) -> None:
    write_compact_nullable_string(out, m.owner_principal_type)
    write_compact_nullable_string(out, m.owner_principal_name)
    each_1 = m.renewers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.principal_type)
        write_compact_string(out, each_1_m.principal_name)
        out.append(0)
    out += _write_q(m.max_lifetime_ms)
    out.append(0)


ENCODE_CREATE_DELEGATION_TOKEN_REQUEST = {
    1: _encode_create_delegation_token_request_1,
    2: _encode_create_delegation_token_request_2,
    3: _encode_create_delegation_token_request_3,
}


def _decode_create_delegation_token_response_1(b: memoryview, p: int = 0) -> CreateDelegationTokenResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("principal_type is null")
    q = p + n
    if q > end:
        raise fail("principal_type past the end")
    principal_type_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("principal_name is null")
    q = p + n
    if q > end:
        raise fail("principal_name past the end")
    principal_name_1 = str(b[p:q], "utf-8")
    p = q
    issue_timestamp_ms_1, expiry_timestamp_ms_1, max_timestamp_ms_1 = _read_qqq(b, p)
    p += 24
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("token_id is null")
    q = p + n
    if q > end:
        raise fail("token_id past the end")
    token_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("hmac is null")
    q = p + n
    if q > end:
        raise fail("hmac past the end")
    hmac_1 = bytes(b[p:q])
    p = q
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    return CreateDelegationTokenResponse(error_code_1, principal_type_1, principal_name_1, '', '', issue_timestamp_ms_1, expiry_timestamp_ms_1, max_timestamp_ms_1, token_id_1, hmac_1, throttle_time_ms_1)


def _decode_create_delegation_token_response_2(b: memoryview, p: int = 0) -> CreateDelegationTokenResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("principal_type is null")
    q = p + n
    if q > end:
        raise fail("principal_type past the end")
    principal_type_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("principal_name is null")
    q = p + n
    if q > end:
        raise fail("principal_name past the end")
    principal_name_1 = str(b[p:q], "utf-8")
    p = q
    issue_timestamp_ms_1, expiry_timestamp_ms_1, max_timestamp_ms_1 = _read_qqq(b, p)
    p += 24
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("token_id is null")
    q = p + n
    if q > end:
        raise fail("token_id past the end")
    token_id_1 = str(b[p:q], "utf-8")
    p = q
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
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateDelegationTokenResponse(error_code_1, principal_type_1, principal_name_1, '', '', issue_timestamp_ms_1, expiry_timestamp_ms_1, max_timestamp_ms_1, token_id_1, hmac_1, throttle_time_ms_1)


def _decode_create_delegation_token_response_3(b: memoryview, p: int = 0) -> CreateDelegationTokenResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("principal_type is null")
    q = p + n
    if q > end:
        raise fail("principal_type past the end")
    principal_type_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("principal_name is null")
    q = p + n
    if q > end:
        raise fail("principal_name past the end")
    principal_name_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("token_requester_principal_type is null")
    q = p + n
    if q > end:
        raise fail("token_requester_principal_type past the end")
    token_requester_principal_type_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("token_requester_principal_name is null")
    q = p + n
    if q > end:
        raise fail("token_requester_principal_name past the end")
    token_requester_principal_name_1 = str(b[p:q], "utf-8")
    p = q
    issue_timestamp_ms_1, expiry_timestamp_ms_1, max_timestamp_ms_1 = _read_qqq(b, p)
    p += 24
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("token_id is null")
    q = p + n
    if q > end:
        raise fail("token_id past the end")
    token_id_1 = str(b[p:q], "utf-8")
    p = q
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
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateDelegationTokenResponse(error_code_1, principal_type_1, principal_name_1, token_requester_principal_type_1, token_requester_principal_name_1, issue_timestamp_ms_1, expiry_timestamp_ms_1, max_timestamp_ms_1, token_id_1, hmac_1, throttle_time_ms_1)


DECODE_CREATE_DELEGATION_TOKEN_RESPONSE = {
    1: _decode_create_delegation_token_response_1,
    2: _decode_create_delegation_token_response_2,
    3: _decode_create_delegation_token_response_3,
}


def _encode_create_delegation_token_response_1(m: CreateDelegationTokenResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_string(out, m.principal_type)
    write_string(out, m.principal_name)
    out += _write_qqq(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
    write_string(out, m.token_id)
    write_bytes(out, m.hmac)
    out += _write_i(m.throttle_time_ms)


def _encode_create_delegation_token_response_2(m: CreateDelegationTokenResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_compact_string(out, m.principal_type)
    write_compact_string(out, m.principal_name)
    out += _write_qqq(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
    write_compact_string(out, m.token_id)
    write_compact_bytes(out, m.hmac)
    out += _write_i(m.throttle_time_ms)
    out.append(0)


def _encode_create_delegation_token_response_3(m: CreateDelegationTokenResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    write_compact_string(out, m.principal_type)
    write_compact_string(out, m.principal_name)
    write_compact_string(out, m.token_requester_principal_type)
    write_compact_string(out, m.token_requester_principal_name)
    out += _write_qqq(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
    write_compact_string(out, m.token_id)
    write_compact_bytes(out, m.hmac)
    out += _write_i(m.throttle_time_ms)
    out.append(0)


ENCODE_CREATE_DELEGATION_TOKEN_RESPONSE = {
    1: _encode_create_delegation_token_response_1,
    2: _encode_create_delegation_token_response_2,
    3: _encode_create_delegation_token_response_3,
}
