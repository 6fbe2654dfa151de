"""AlterConfigs: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class AlterableConfig(Message):
    __slots__ = ("name", "value",)

    def __init__(
        self,
        name: str = '',
        value: str | None = '',
    ) -> None:
        self.name: str = name
        self.value: str | None = value


class AlterConfigsResource(Message):
    __slots__ = ("resource_type", "resource_name", "configs",)

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = '',
        configs: list[AlterableConfig] = NEW,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[AlterableConfig] = [] if configs is NEW else configs


class AlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only",)

    def __init__(
        self,
        resources: list[AlterConfigsResource] = NEW,
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is NEW else resources
        self.validate_only: bool = validate_only


class AlterConfigsResourceResponse(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        resource_type: int = 0,
        resource_name: str = '',
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name


class AlterConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is NEW else responses


def _decode_alter_configs_request_0(b: memoryview, p: int = 0) -> AlterConfigsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("resources is null")
    if n * 7 > end - p:
        raise fail("resources has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    resources_1 = []
    for _ in range(n):
        (resource_type_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("resource_name is null")
        q = p + n
        if q > end:
            raise fail("resource_name past the end")
        resource_name_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("configs is null")
        if n * 4 > end - p:
            raise fail("configs has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        configs_2 = []
        for _ in range(n):
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                raise fail("name is null")
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_3 = str(b[p:q], "utf-8")
            p = q
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                value_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("value past the end")
                value_3 = str(b[p:q], "utf-8")
                p = q
            configs_2.append(AlterableConfig(name_3, value_3))
        resources_1.append(AlterConfigsResource(resource_type_2, resource_name_2, configs_2))
    (validate_only_1,) = _read_t(b, p)
    p += 1
    return AlterConfigsRequest(resources_1, validate_only_1)


def _decode_alter_configs_request_2(b: memoryview, p: int = 0) -> AlterConfigsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("resources is null")
    if n * 4 > end - p:
        raise fail("resources has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    resources_1 = []
    for _ in range(n):
        (resource_type_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("resource_name is null")
        q = p + n
        if q > end:
            raise fail("resource_name past the end")
        resource_name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("configs is null")
        if n * 3 > end - p:
            raise fail("configs has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        configs_2 = []
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
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                value_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("value past the end")
                value_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            configs_2.append(AlterableConfig(name_3, value_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        resources_1.append(AlterConfigsResource(resource_type_2, resource_name_2, configs_2))
    (validate_only_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterConfigsRequest(resources_1, validate_only_1)


DECODE_ALTER_CONFIGS_REQUEST = {
    0: _decode_alter_configs_request_0,
    1: _decode_alter_configs_request_0,
    2: _decode_alter_configs_request_2,
}


def _encode_alter_configs_request_0(m: AlterConfigsRequest, out: bytearray) -> None:
    each_1 = m.resources
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configs
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.name)
            write_nullable_string(out, each_2_m.value)
    out += _write_t(m.validate_only)


def _encode_alter_configs_request_2(m: AlterConfigsRequest, out: bytearray) -> None:
    each_1 = m.resources
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_compact_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configs
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            write_compact_nullable_string(out, each_2_m.value)
            out.append(0)
        out.append(0)
    out += _write_t(m.validate_only)
    out.append(0)


ENCODE_ALTER_CONFIGS_REQUEST = {
    0: _encode_alter_configs_request_0,
    1: _encode_alter_configs_request_0,
    2: _encode_alter_configs_request_2,
}


def _decode_alter_configs_response_0(b: memoryview, p: int = 0) -> AlterConfigsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 7 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
        (resource_type_2,) = _read_b(b, p)
        p += 1
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("resource_name is null")
        q = p + n
        if q > end:
            raise fail("resource_name past the end")
        resource_name_2 = str(b[p:q], "utf-8")
        p = q
        responses_1.append(AlterConfigsResourceResponse(error_code_2, error_message_2, resource_type_2, resource_name_2))
    return AlterConfigsResponse(throttle_time_ms_1, responses_1)


def _decode_alter_configs_response_2(b: memoryview, p: int = 0) -> AlterConfigsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
        (resource_type_2,) = _read_b(b, p)
        p += 1
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("resource_name is null")
        q = p + n
        if q > end:
            raise fail("resource_name past the end")
        resource_name_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(AlterConfigsResourceResponse(error_code_2, error_message_2, resource_type_2, resource_name_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return AlterConfigsResponse(throttle_time_ms_1, responses_1)


DECODE_ALTER_CONFIGS_RESPONSE = {
    0: _decode_alter_configs_response_0,
    1: _decode_alter_configs_response_0,
    2: _decode_alter_configs_response_2,
}


def _encode_alter_configs_response_0(m: AlterConfigsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)


def _encode_alter_configs_response_2(m: AlterConfigsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out += _write_b(each_1_m.resource_type)
        write_compact_string(out, each_1_m.resource_name)
        out.append(0)
    out.append(0)


ENCODE_ALTER_CONFIGS_RESPONSE = {
    0: _encode_alter_configs_response_0,
    1: _encode_alter_configs_response_0,
    2: _encode_alter_configs_response_2,
}
