"""DescribeUserScramCredentials: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_bi = Struct(">bi")
_read_bi = _struct_bi.unpack_from
_write_bi = _struct_bi.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class UserName(Message):
    __slots__ = ("name",)

    def __init__(
        self,
        name: str = '',
    ) -> None:
        self.name: str = name


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)

    def __init__(
        self,
        users: list[UserName] | None = NEW,
    ) -> None:
        self.users: list[UserName] | None = [] if users is NEW else users


class CredentialInfo(Message):
    __slots__ = ("mechanism", "iterations",)

    def __init__(
        self,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations


class DescribeUserScramCredentialsResult(Message):
    __slots__ = ("user", "error_code", "error_message", "credential_infos",)

    def __init__(
        self,
        user: str = '',
        error_code: int = 0,
        error_message: str | None = '',
        credential_infos: list[CredentialInfo] = NEW,
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is NEW else credential_infos


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        results: list[DescribeUserScramCredentialsResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is NEW else results


def _decode_describe_user_scram_credentials_request_0(b: memoryview, p: int = 0) -> DescribeUserScramCredentialsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        users_1 = None
    else:
        if n * 2 > end - p:
            raise fail("users has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        users_1 = []
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
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            users_1.append(UserName(name_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeUserScramCredentialsRequest(users_1)


DECODE_DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST = {
    0: _decode_describe_user_scram_credentials_request_0,
}


def _encode_describe_user_scram_credentials_request_0(m: DescribeUserScramCredentialsRequest, out: bytearray) -> None:
    each_1 = m.users
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            write_compact_string(out, each_1_m.name)
            out.append(0)
    out.append(0)


ENCODE_DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST = {
    0: _encode_describe_user_scram_credentials_request_0,
}


def _decode_describe_user_scram_credentials_response_0(b: memoryview, p: int = 0) -> DescribeUserScramCredentialsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
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
        raise fail("results is null")
    if n * 6 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("user is null")
        q = p + n
        if q > end:
            raise fail("user past the end")
        user_2 = str(b[p:q], "utf-8")
        p = q
        (error_code_2,) = _read_h(b, p)
        p += 2
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            error_message_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("error_message past the end")
            error_message_2 = str(b[p:q], "utf-8")
            p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("credential_infos is null")
        if n * 6 > end - p:
            raise fail("credential_infos has more elements than bytes")
        credential_infos_2 = []
        for _ in range(n):
            mechanism_3, iterations_3 = _read_bi(b, p)
            p += 5
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            credential_infos_2.append(CredentialInfo(mechanism_3, iterations_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DescribeUserScramCredentialsResult(user_2, error_code_2, error_message_2, credential_infos_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeUserScramCredentialsResponse(throttle_time_ms_1, error_code_1, error_message_1, results_1)


DECODE_DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE = {
    0: _decode_describe_user_scram_credentials_response_0,
}


def _encode_describe_user_scram_credentials_response_0(m: DescribeUserScramCredentialsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.user)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        each_2 = each_1_m.credential_infos
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_bi(each_2_m.mechanism, each_2_m.iterations)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE = {
    0: _encode_describe_user_scram_credentials_response_0,
}
