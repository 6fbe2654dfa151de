"""DescribeClientQuotas: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
_struct_d = Struct(">d")
_read_d = _struct_d.unpack_from
_write_d = _struct_d.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class ComponentData(Message):
    __slots__ = ("entity_type", "match_type", "match",)

    def __init__(
        self,
        entity_type: str = '',
        match_type: int = 0,
        match: str | None = '',
    ) -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict",)

    def __init__(
        self,
        components: list[ComponentData] = NEW,
        strict: bool = False,
    ) -> None:
        self.components: list[ComponentData] = [] if components is NEW else components
        self.strict: bool = strict


class EntityData(Message):
    __slots__ = ("entity_type", "entity_name",)

    def __init__(
        self,
        entity_type: str = '',
        entity_name: str | None = '',
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name


class ValueData(Message):
    __slots__ = ("key", "value",)

    def __init__(
        self,
        key: str = '',
        value: float = 0.0,
    ) -> None:
        self.key: str = key
        self.value: float = value


class EntryData(Message):
    __slots__ = ("entity", "values",)

    def __init__(
        self,
        entity: list[EntityData] = NEW,
        values: list[ValueData] = NEW,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is NEW else entity
        self.values: list[ValueData] = [] if values is NEW else values


class DescribeClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        entries: list[EntryData] | None = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: list[EntryData] | None = [] if entries is NEW else entries


def _decode_describe_client_quotas_request_0(b: memoryview, p: int = 0) -> DescribeClientQuotasRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("components is null")
    if n * 5 > end - p:
        raise fail("components has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    components_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("entity_type is null")
        q = p + n
        if q > end:
            raise fail("entity_type past the end")
        entity_type_2 = str(b[p:q], "utf-8")
        p = q
        (match_type_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            match_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("match past the end")
            match_2 = str(b[p:q], "utf-8")
            p = q
        components_1.append(ComponentData(entity_type_2, match_type_2, match_2))
    (strict_1,) = _read_t(b, p)
    p += 1
    return DescribeClientQuotasRequest(components_1, strict_1)


def _decode_describe_client_quotas_request_1(b: memoryview, p: int = 0) -> DescribeClientQuotasRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("components is null")
    if n * 4 > end - p:
        raise fail("components has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    components_1 = []
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
        entity_type_2 = str(b[p:q], "utf-8")
        p = q
        (match_type_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            match_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("match past the end")
            match_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        components_1.append(ComponentData(entity_type_2, match_type_2, match_2))
    (strict_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClientQuotasRequest(components_1, strict_1)


DECODE_DESCRIBE_CLIENT_QUOTAS_REQUEST = {
    0: _decode_describe_client_quotas_request_0,
    1: _decode_describe_client_quotas_request_1,
}


def _encode_describe_client_quotas_request_0(m: DescribeClientQuotasRequest, out: bytearray) -> None:
    each_1 = m.components
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.entity_type)
        out += _write_b(each_1_m.match_type)
        write_nullable_string(out, each_1_m.match)
    out += _write_t(m.strict)


def _encode_describe_client_quotas_request_1(m: DescribeClientQuotasRequest, out: bytearray) -> None:
    each_1 = m.components
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.entity_type)
        out += _write_b(each_1_m.match_type)
        write_compact_nullable_string(out, each_1_m.match)
        out.append(0)
    out += _write_t(m.strict)
    out.append(0)


ENCODE_DESCRIBE_CLIENT_QUOTAS_REQUEST = {
    0: _encode_describe_client_quotas_request_0,
    1: _encode_describe_client_quotas_request_1,
}


def _decode_describe_client_quotas_response_0(b: memoryview, p: int = 0) -> DescribeClientQuotasResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
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
        entries_1 = None
    else:
        if n * 8 > end - p:
            raise fail("entries has more elements than bytes")
        entries_1 = []
        for _ in range(n):
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
                entity_2.append(EntityData(entity_type_3, entity_name_3))
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("values is null")
            if n * 10 > end - p:
                raise fail("values has more elements than bytes")
            values_2 = []
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
                (value_4,) = _read_d(b, p)
                p += 8
                values_2.append(ValueData(key_4, value_4))
            entries_1.append(EntryData(entity_2, values_2))
    return DescribeClientQuotasResponse(throttle_time_ms_1, error_code_1, error_message_1, entries_1)


def _decode_describe_client_quotas_response_1(b: memoryview, p: int = 0) -> DescribeClientQuotasResponse:
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
        entries_1 = None
    else:
        if n * 3 > end - p:
            raise fail("entries has more elements than bytes")
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
                entity_2.append(EntityData(entity_type_3, entity_name_3))
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("values is null")
            if n * 10 > end - p:
                raise fail("values has more elements than bytes")
            values_2 = []
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
                (value_4,) = _read_d(b, p)
                p += 8
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                values_2.append(ValueData(key_4, value_4))
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            entries_1.append(EntryData(entity_2, values_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClientQuotasResponse(throttle_time_ms_1, error_code_1, error_message_1, entries_1)


DECODE_DESCRIBE_CLIENT_QUOTAS_RESPONSE = {
    0: _decode_describe_client_quotas_response_0,
    1: _decode_describe_client_quotas_response_1,
}


def _encode_describe_client_quotas_response_0(m: DescribeClientQuotasResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_nullable_string(out, m.error_message)
    each_1 = m.entries
    if each_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _write_i(len(each_1))
        for each_1_m in each_1:
            each_2 = each_1_m.entity
            out += _write_i(len(each_2))
            for each_2_m in each_2:
                write_string(out, each_2_m.entity_type)
                write_nullable_string(out, each_2_m.entity_name)
            each_3 = each_1_m.values
            out += _write_i(len(each_3))
            for each_3_m in each_3:
                write_string(out, each_3_m.key)
                out += _write_d(each_3_m.value)


def _encode_describe_client_quotas_response_1(m: DescribeClientQuotasResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.entries
    if each_1 is None:
        out.append(0)
    else:
        write_varint(out, len(each_1) + 1)
        for each_1_m in each_1:
            each_2 = each_1_m.entity
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                write_compact_string(out, each_2_m.entity_type)
                write_compact_nullable_string(out, each_2_m.entity_name)
                out.append(0)
            each_3 = each_1_m.values
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                write_compact_string(out, each_3_m.key)
                out += _write_d(each_3_m.value)
                out.append(0)
            out.append(0)
    out.append(0)


ENCODE_DESCRIBE_CLIENT_QUOTAS_RESPONSE = {
    0: _encode_describe_client_quotas_response_0,
    1: _encode_describe_client_quotas_response_1,
}
