"""AlterUserScramCredentials: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
_struct_bi = Struct(">bi")
_read_bi = _struct_bi.unpack_from
_write_bi = _struct_bi.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class ScramCredentialDeletion(Message):
    __slots__ = ("name", "mechanism",)

    def __init__(
        self,
        name: str = '',
        mechanism: int = 0,
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism


class ScramCredentialUpsertion(Message):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password",)

    def __init__(
        self,
        name: str = '',
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b'',
        salted_password: bytes = b'',
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: bytes = salt
        self.salted_password: bytes = salted_password


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions",)

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] = NEW,
        upsertions: list[ScramCredentialUpsertion] = NEW,
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is NEW else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is NEW else upsertions


class AlterUserScramCredentialsResult(Message):
    __slots__ = ("user", "error_code", "error_message",)

    def __init__(
        self,
        user: str = '',
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class AlterUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is NEW else results


def _decode_alter_user_scram_credentials_request_0(b: memoryview, p: int = 0) -> AlterUserScramCredentialsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("deletions is null")
    if n * 3 > end - p:
        raise fail("deletions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    deletions_1 = []
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
        (mechanism_2,) = _read_b(b, p)
        p += 1
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        deletions_1.append(ScramCredentialDeletion(name_2, mechanism_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("upsertions is null")
    if n * 9 > end - p:
        raise fail("upsertions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    upsertions_1 = []
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
        mechanism_3, iterations_3 = _read_bi(b, p)
        p += 5
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("salt is null")
        q = p + n
        if q > end:
            raise fail("salt past the end")
        salt_3 = bytes(b[p:q])
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("salted_password is null")
        q = p + n
        if q > end:
            raise fail("salted_password past the end")
        salted_password_3 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        upsertions_1.append(ScramCredentialUpsertion(name_3, mechanism_3, iterations_3, salt_3, salted_password_3))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterUserScramCredentialsRequest(deletions_1, upsertions_1)


DECODE_ALTER_USER_SCRAM_CREDENTIALS_REQUEST = {
    0: _decode_alter_user_scram_credentials_request_0,
}


def _encode_alter_user_scram_credentials_request_0(m: AlterUserScramCredentialsRequest, out: bytearray) -> None:
    each_1 = m.deletions
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_b(each_1_m.mechanism)
        out.append(0)
    each_2 = m.upsertions
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        write_compact_string(out, each_2_m.name)
        out += _write_bi(each_2_m.mechanism, each_2_m.iterations)
        write_compact_bytes(out, each_2_m.salt)
        write_compact_bytes(out, each_2_m.salted_password)
        out.append(0)
    out.append(0)


ENCODE_ALTER_USER_SCRAM_CREDENTIALS_REQUEST = {
    0: _encode_alter_user_scram_credentials_request_0,
}


def _decode_alter_user_scram_credentials_response_0(b: memoryview, p: int = 0) -> AlterUserScramCredentialsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("results is null")
    if n * 5 > end - p:
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
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(AlterUserScramCredentialsResult(user_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterUserScramCredentialsResponse(throttle_time_ms_1, results_1)


DECODE_ALTER_USER_SCRAM_CREDENTIALS_RESPONSE = {
    0: _decode_alter_user_scram_credentials_response_0,
}


def _encode_alter_user_scram_credentials_response_0(m: AlterUserScramCredentialsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.user)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


ENCODE_ALTER_USER_SCRAM_CREDENTIALS_RESPONSE = {
    0: _encode_alter_user_scram_credentials_response_0,
}
