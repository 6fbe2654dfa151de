"""ListConfigResources: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)

    def __init__(
        self,
        resource_types: list[int] = NEW,
    ) -> None:
        self.resource_types: list[int] = [] if resource_types is NEW else resource_types


class ConfigResource(Message):
    __slots__ = ("resource_name", "resource_type",)

    def __init__(
        self,
        resource_name: str = '',
        resource_type: int = 16,
    ) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type


class ListConfigResourcesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "config_resources",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ConfigResource] = [] if config_resources is NEW else config_resources


def _decode_list_config_resources_request_0(b: memoryview, p: int = 0) -> ListConfigResourcesRequest:
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListConfigResourcesRequest([])


def _decode_list_config_resources_request_1(b: memoryview, p: int = 0) -> ListConfigResourcesRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("resource_types is null")
    if n > end - p:
        raise fail("resource_types has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    resource_types_1 = list(unpack_from(f">{n}b", b, p))
    p += n
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListConfigResourcesRequest(resource_types_1)


DECODE_LIST_CONFIG_RESOURCES_REQUEST = {
    0: _decode_list_config_resources_request_0,
    1: _decode_list_config_resources_request_1,
}


def _encode_list_config_resources_request_0(m: ListConfigResourcesRequest, out: bytearray) -> None:
    out.append(0)


def _encode_list_config_resources_request_1(m: ListConfigResourcesRequest, out: bytearray) -> None:
    each_1 = m.resource_types
    write_varint(out, len(each_1) + 1)
    out += pack(f">{len(each_1)}b", *each_1)
    out.append(0)


ENCODE_LIST_CONFIG_RESOURCES_REQUEST = {
    0: _encode_list_config_resources_request_0,
    1: _encode_list_config_resources_request_1,
}


def _decode_list_config_resources_response_0(b: memoryview, p: int = 0) -> ListConfigResourcesResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("config_resources is null")
    if n * 2 > end - p:
        raise fail("config_resources has more elements than bytes")
    config_resources_1 = []
    for _ in range(n):
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
        config_resources_1.append(ConfigResource(resource_name_2, 16))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListConfigResourcesResponse(throttle_time_ms_1, error_code_1, config_resources_1)


def _decode_list_config_resources_response_1(b: memoryview, p: int = 0) -> ListConfigResourcesResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("config_resources is null")
    if n * 3 > end - p:
        raise fail("config_resources has more elements than bytes")
    config_resources_1 = []
    for _ in range(n):
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
        (resource_type_2,) = _read_b(b, p)
        p += 1
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        config_resources_1.append(ConfigResource(resource_name_2, resource_type_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListConfigResourcesResponse(throttle_time_ms_1, error_code_1, config_resources_1)


DECODE_LIST_CONFIG_RESOURCES_RESPONSE = {
    0: _decode_list_config_resources_response_0,
    1: _decode_list_config_resources_response_1,
}


def _encode_list_config_resources_response_0(m: ListConfigResourcesResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.config_resources
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.resource_name)
        out.append(0)
    out.append(0)


def _encode_list_config_resources_response_1(m: ListConfigResourcesResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.config_resources
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.resource_name)
        out += _write_b(each_1_m.resource_type)
        out.append(0)
    out.append(0)


ENCODE_LIST_CONFIG_RESOURCES_RESPONSE = {
    0: _encode_list_config_resources_response_0,
    1: _encode_list_config_resources_response_1,
}
