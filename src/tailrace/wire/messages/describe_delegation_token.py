"""DescribeDelegationToken: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_qqq = Struct(">qqq")
_read_qqq = _struct_qqq.unpack_from
_write_qqq = _struct_qqq.pack


class DescribeDelegationTokenOwner(Message):
    __slots__ = ("principal_type", "principal_name",)

    def __init__(
        self,
        principal_type: str = '',
        principal_name: str = '',
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


class DescribeDelegationTokenRequest(Message):
    __slots__ = ("owners",)

    def __init__(
        self,
        owners: list[DescribeDelegationTokenOwner] | None = NEW,
    ) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if owners is NEW else owners


class DescribedDelegationTokenRenewer(Message):
    __slots__ = ("principal_type", "principal_name",)

    def __init__(
        self,
        principal_type: str = '',
        principal_name: str = '',
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


class DescribedDelegationToken(Message):
    __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers",)

    def __init__(
        self,
        principal_type: str = '',
        principal_name: str = '',
        token_requester_principal_type: str = '',
        token_requester_principal_name: str = '',
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = '',
        hmac: bytes = b'',
        renewers: list[DescribedDelegationTokenRenewer] = NEW,
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp: int = issue_timestamp
        self.expiry_timestamp: int = expiry_timestamp
        self.max_timestamp: int = max_timestamp
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.renewers: list[DescribedDelegationTokenRenewer] = [] if renewers is NEW else renewers


class DescribeDelegationTokenResponse(Message):
    __slots__ = ("error_code", "tokens", "throttle_time_ms",)

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = NEW,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.tokens: list[DescribedDelegationToken] = [] if tokens is NEW else tokens
        self.throttle_time_ms: int = throttle_time_ms


def _decode_describe_delegation_token_request_1(b: memoryview, p: int = 0) -> DescribeDelegationTokenRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        owners_1 = None
    else:
        if n * 4 > end - p:
            raise fail("owners has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        owners_1 = []
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
            owners_1.append(DescribeDelegationTokenOwner(principal_type_2, principal_name_2))
    return DescribeDelegationTokenRequest(owners_1)


def _decode_describe_delegation_token_request_2(b: memoryview, p: int = 0) -> DescribeDelegationTokenRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        owners_1 = None
    else:
        if n * 3 > end - p:
            raise fail("owners has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        owners_1 = []
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
            owners_1.append(DescribeDelegationTokenOwner(principal_type_2, principal_name_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeDelegationTokenRequest(owners_1)


DECODE_DESCRIBE_DELEGATION_TOKEN_REQUEST = {
    1: _decode_describe_delegation_token_request_1,
    2: _decode_describe_delegation_token_request_2,
    3: _decode_describe_delegation_token_request_2,
}


def _encode_describe_delegation_token_request_1(m: DescribeDelegationTokenRequest, out: bytearray) -> None:
    each_1 = m.owners
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            write_string(out, each_1_m.principal_type)
            write_string(out, each_1_m.principal_name)


def _encode_describe_delegation_token_request_2(m: DescribeDelegationTokenRequest, out: bytearray) -> None:
    each_1 = m.owners
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.principal_type)
            write_compact_string(out, each_1_m.principal_name)
            out.append(0)
    out.append(0)


ENCODE_DESCRIBE_DELEGATION_TOKEN_REQUEST = {
    1: _encode_describe_delegation_token_request_1,
    2: _encode_describe_delegation_token_request_2,
    3: _encode_describe_delegation_token_request_2,
}


def _decode_describe_delegation_token_response_1(b: memoryview, p: int = 0) -> DescribeDelegationTokenResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("tokens is null")
    if n * 38 > end - p:
        raise fail("tokens has more elements than bytes")
    tokens_1 = []
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
        issue_timestamp_2, expiry_timestamp_2, max_timestamp_2 = _read_qqq(b, p)
        p += 24
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("token_id is null")
        q = p + n
        if q > end:
            raise fail("token_id past the end")
        token_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("hmac is null")
        q = p + n
        if q > end:
            raise fail("hmac past the end")
        hmac_2 = bytes(b[p:q])
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("renewers is null")
        if n * 4 > end - p:
            raise fail("renewers has more elements than bytes")
        renewers_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("principal_type is null")
            q = p + n
            if q > end:
                raise fail("principal_type past the end")
            principal_type_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("principal_name is null")
            q = p + n
            if q > end:
                raise fail("principal_name past the end")
            principal_name_3 = str(b[p:q], "utf-8")
            p = q
            renewers_2.append(DescribedDelegationTokenRenewer(principal_type_3, principal_name_3))
        tokens_1.append(DescribedDelegationToken(principal_type_2, principal_name_2, '', '', issue_timestamp_2, expiry_timestamp_2, max_timestamp_2, token_id_2, hmac_2, renewers_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    return DescribeDelegationTokenResponse(error_code_1, tokens_1, throttle_time_ms_1)


def _decode_describe_delegation_token_response_2(b: memoryview, p: int = 0) -> DescribeDelegationTokenResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("tokens is null")
    if n * 30 > end - p:
        raise fail("tokens has more elements than bytes")
    tokens_1 = []
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
        issue_timestamp_2, expiry_timestamp_2, max_timestamp_2 = _read_qqq(b, p)
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
        token_id_2 = str(b[p:q], "utf-8")
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
        hmac_2 = bytes(b[p:q])
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
        renewers_2 = []
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
            principal_type_3 = str(b[p:q], "utf-8")
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
            principal_name_3 = str(b[p:q], "utf-8")
            p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            renewers_2.append(DescribedDelegationTokenRenewer(principal_type_3, principal_name_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        tokens_1.append(DescribedDelegationToken(principal_type_2, principal_name_2, '', '', issue_timestamp_2, expiry_timestamp_2, max_timestamp_2, token_id_2, hmac_2, renewers_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeDelegationTokenResponse(error_code_1, tokens_1, throttle_time_ms_1)


def _decode_describe_delegation_token_response_3(b: memoryview, p: int = 0) -> DescribeDelegationTokenResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("tokens is null")
    if n * 32 > end - p:
        raise fail("tokens has more elements than bytes")
    tokens_1 = []
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
        token_requester_principal_type_2 = str(b[p:q], "utf-8")
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
        token_requester_principal_name_2 = str(b[p:q], "utf-8")
        p = q
        issue_timestamp_2, expiry_timestamp_2, max_timestamp_2 = _read_qqq(b, p)
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
        token_id_2 = str(b[p:q], "utf-8")
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
        hmac_2 = bytes(b[p:q])
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
        renewers_2 = []
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
            principal_type_3 = str(b[p:q], "utf-8")
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
            principal_name_3 = str(b[p:q], "utf-8")
            p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            renewers_2.append(DescribedDelegationTokenRenewer(principal_type_3, principal_name_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        tokens_1.append(DescribedDelegationToken(principal_type_2, principal_name_2, token_requester_principal_type_2, token_requester_principal_name_2, issue_timestamp_2, expiry_timestamp_2, max_timestamp_2, token_id_2, hmac_2, renewers_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeDelegationTokenResponse(error_code_1, tokens_1, throttle_time_ms_1)


DECODE_DESCRIBE_DELEGATION_TOKEN_RESPONSE = {
    1: _decode_describe_delegation_token_response_1,
    2: _decode_describe_delegation_token_response_2,
    3: _decode_describe_delegation_token_response_3,
}


def _encode_describe_delegation_token_response_1(m: DescribeDelegationTokenResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.tokens
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.principal_type)
        write_string(out, each_1_m.principal_name)
        out += _write_qqq(each_1_m.issue_timestamp, each_1_m.expiry_timestamp, each_1_m.max_timestamp)
        write_string(out, each_1_m.token_id)
        write_bytes(out, each_1_m.hmac)
        each_2 = each_1_m.renewers
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.principal_type)
            write_string(out, each_2_m.principal_name)
    out += _write_i(m.throttle_time_ms)


def _encode_describe_delegation_token_response_2(m: DescribeDelegationTokenResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.tokens
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.principal_type)
        write_compact_string(out, each_1_m.principal_name)
        out += _write_qqq(each_1_m.issue_timestamp, each_1_m.expiry_timestamp, each_1_m.max_timestamp)
        write_compact_string(out, each_1_m.token_id)
        write_compact_bytes(out, each_1_m.hmac)
        each_2 = each_1_m.renewers
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.principal_type)
            write_compact_string(out, each_2_m.principal_name)
            out.append(0)
        out.append(0)
    out += _write_i(m.throttle_time_ms)
    out.append(0)


def _encode_describe_delegation_token_response_3(m: DescribeDelegationTokenResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.tokens
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.principal_type)
        write_compact_string(out, each_1_m.principal_name)
        write_compact_string(out, each_1_m.token_requester_principal_type)
        write_compact_string(out, each_1_m.token_requester_principal_name)
        out += _write_qqq(each_1_m.issue_timestamp, each_1_m.expiry_timestamp, each_1_m.max_timestamp)
        write_compact_string(out, each_1_m.token_id)
        write_compact_bytes(out, each_1_m.hmac)
        each_2 = each_1_m.renewers
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.principal_type)
            write_compact_string(out, each_2_m.principal_name)
            out.append(0)
        out.append(0)
    out += _write_i(m.throttle_time_ms)
    out.append(0)


ENCODE_DESCRIBE_DELEGATION_TOKEN_RESPONSE = {
    1: _encode_describe_delegation_token_response_1,
    2: _encode_describe_delegation_token_response_2,
    3: _encode_describe_delegation_token_response_3,
}
