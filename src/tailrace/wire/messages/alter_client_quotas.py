"""AlterClientQuotas: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_t = Struct(">?")
_read_t = _struct_t.unpack_from
_write_t = _struct_t.pack
_struct_dt = Struct(">d?")
_read_dt = _struct_dt.unpack_from
_write_dt = _struct_dt.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class RequestEntityData(Message):
    __slots__ = ("entity_type", "entity_name",)

    def __init__(
        self,
        entity_type: str = '',
        entity_name: str | None = '',
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name


class OpData(Message):
    __slots__ = ("key", "value", "remove",)

    def __init__(
        self,
        key: str = '',
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove


class RequestEntryData(Message):
    __slots__ = ("entity", "ops",)

    def __init__(
        self,
        entity: list[RequestEntityData] = NEW,
        ops: list[OpData] = NEW,
    ) -> None:
        self.entity: list[RequestEntityData] = [] if entity is NEW else entity
        self.ops: list[OpData] = [] if ops is NEW else ops


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only",)

    def __init__(
        self,
        entries: list[RequestEntryData] = NEW,
        validate_only: bool = False,
    ) -> None:
        self.entries: list[RequestEntryData] = [] if entries is NEW else entries
        self.validate_only: bool = validate_only


class ResponseEntityData(Message):
    __slots__ = ("entity_type", "entity_name",)

    def __init__(
        self,
        entity_type: str = '',
        entity_name: str | None = '',
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name


class ResponseEntryData(Message):
    __slots__ = ("error_code", "error_message", "entity",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        entity: list[ResponseEntityData] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: list[ResponseEntityData] = [] if entity is NEW else entity


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: list[ResponseEntryData] = [] if entries is NEW else entries


def _decode_alter_client_quotas_request_0(b: memoryview, p: int = 0) -> AlterClientQuotasRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("entries is null")
    if n * 8 > end - p:
        raise fail("entries has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    entries_1 = []
    for _ in range(n):
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("entity is null")
        if n * 4 > end - p:
            raise fail("entity has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        entity_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("entity_type is null")
            q = p + n
            if q > end:
                raise fail("entity_type past the end")
            entity_type_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                entity_name_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("entity_name past the end")
                entity_name_3 = str(b[p:q], "utf-8")
                p = q
            entity_2.append(RequestEntityData(entity_type_3, entity_name_3))
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("ops is null")
        if n * 11 > end - p:
            raise fail("ops has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        ops_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("key is null")
            q = p + n
            if q > end:
                raise fail("key past the end")
            key_4 = str(b[p:q], "utf-8")
            p = q
            value_4, remove_4 = _read_dt(b, p)
            p += 9
            ops_2.append(OpData(key_4, value_4, remove_4))
        entries_1.append(RequestEntryData(entity_2, ops_2))
    (validate_only_1,) = _read_t(b, p)
    p += 1
    return AlterClientQuotasRequest(entries_1, validate_only_1)


def _decode_alter_client_quotas_request_1(b: memoryview, p: int = 0) -> AlterClientQuotasRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("entries is null")
    if n * 3 > end - p:
        raise fail("entries has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    entries_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("entity is null")
        if n * 3 > end - p:
            raise fail("entity has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        entity_2 = []
        for _ in range(n):
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("entity_type is null")
            q = p + n
            if q > end:
                raise fail("entity_type past the end")
            entity_type_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                entity_name_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("entity_name past the end")
                entity_name_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            entity_2.append(RequestEntityData(entity_type_3, entity_name_3))
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("ops is null")
        if n * 11 > end - p:
            raise fail("ops has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        ops_2 = []
        for _ in range(n):
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("key is null")
            q = p + n
            if q > end:
                raise fail("key past the end")
            key_4 = str(b[p:q], "utf-8")
            p = q
            value_4, remove_4 = _read_dt(b, p)
            p += 9
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            ops_2.append(OpData(key_4, value_4, remove_4))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        entries_1.append(RequestEntryData(entity_2, ops_2))
    (validate_only_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterClientQuotasRequest(entries_1, validate_only_1)


DECODE_ALTER_CLIENT_QUOTAS_REQUEST = {
    0: _decode_alter_client_quotas_request_0,
    1: _decode_alter_client_quotas_request_1,
}


def _encode_alter_client_quotas_request_0(m: AlterClientQuotasRequest, out: bytearray) -> None:
    each_1 = m.entries
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        each_2 = each_1_m.entity
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.entity_type)
            write_nullable_string(out, each_2_m.entity_name)
        each_3 = each_1_m.ops
        out += _write_i(len(each_3))
        for each_3_m in each_3:
            write_string(out, each_3_m.key)
            out += _write_dt(each_3_m.value, each_3_m.remove)
    out += _write_t(m.validate_only)


def _encode_alter_client_quotas_request_1(m: AlterClientQuotasRequest, out: bytearray) -> None:
    each_1 = m.entries
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        each_2 = each_1_m.entity
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.entity_type)
            write_compact_nullable_string(out, each_2_m.entity_name)
            out.append(0)
        each_3 = each_1_m.ops
        write_varint(out, len(each_3) + 1)
        for each_3_m in each_3:
            write_compact_string(out, each_3_m.key)
            out += _write_dt(each_3_m.value, each_3_m.remove)
            out.append(0)
        out.append(0)
    out += _write_t(m.validate_only)
    out.append(0)


ENCODE_ALTER_CLIENT_QUOTAS_REQUEST = {
    0: _encode_alter_client_quotas_request_0,
    1: _encode_alter_client_quotas_request_1,
}


def _decode_alter_client_quotas_response_0(b: memoryview, p: int = 0) -> AlterClientQuotasResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("entries is null")
    if n * 8 > end - p:
        raise fail("entries has more elements than bytes")
    entries_1 = []
    for _ in range(n):
        (error_code_2,) = _read_h(b, p)
        p += 2
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            error_message_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("error_message past the end")
            error_message_2 = str(b[p:q], "utf-8")
            p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("entity is null")
        if n * 4 > end - p:
            raise fail("entity has more elements than bytes")
        entity_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("entity_type is null")
            q = p + n
            if q > end:
                raise fail("entity_type past the end")
            entity_type_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                entity_name_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("entity_name past the end")
                entity_name_3 = str(b[p:q], "utf-8")
                p = q
            entity_2.append(ResponseEntityData(entity_type_3, entity_name_3))
        entries_1.append(ResponseEntryData(error_code_2, error_message_2, entity_2))
    return AlterClientQuotasResponse(throttle_time_ms_1, entries_1)


def _decode_alter_client_quotas_response_1(b: memoryview, p: int = 0) -> AlterClientQuotasResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("entries is null")
    if n * 5 > end - p:
        raise fail("entries has more elements than bytes")
    entries_1 = []
    for _ in range(n):
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
            raise fail("entity is null")
        if n * 3 > end - p:
            raise fail("entity has more elements than bytes")
        entity_2 = []
        for _ in range(n):
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("entity_type is null")
            q = p + n
            if q > end:
                raise fail("entity_type past the end")
            entity_type_3 = str(b[p:q], "utf-8")
            p = q
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                entity_name_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("entity_name past the end")
                entity_name_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            entity_2.append(ResponseEntityData(entity_type_3, entity_name_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        entries_1.append(ResponseEntryData(error_code_2, error_message_2, entity_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterClientQuotasResponse(throttle_time_ms_1, entries_1)


DECODE_ALTER_CLIENT_QUOTAS_RESPONSE = {
    0: _decode_alter_client_quotas_response_0,
    1: _decode_alter_client_quotas_response_1,
}


def _encode_alter_client_quotas_response_0(m: AlterClientQuotasResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.entries
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)
        each_2 = each_1_m.entity
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.entity_type)
            write_nullable_string(out, each_2_m.entity_name)


def _encode_alter_client_quotas_response_1(m: AlterClientQuotasResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.entries
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        each_2 = each_1_m.entity
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.entity_type)
            write_compact_nullable_string(out, each_2_m.entity_name)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_ALTER_CLIENT_QUOTAS_RESPONSE = {
    0: _encode_alter_client_quotas_response_0,
    1: _encode_alter_client_quotas_response_1,
}
