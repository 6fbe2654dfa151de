"""DescribeConfigs: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_tt = Struct(">??")
_read_tt = _struct_tt.unpack_from
_write_tt = _struct_tt.pack
_struct_tbt = Struct(">?b?")
_read_tbt = _struct_tbt.unpack_from
_write_tbt = _struct_tbt.pack
_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class DescribeConfigsResource(Message):
    __slots__ = ("resource_type", "resource_name", "configuration_keys",)

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = '',
        configuration_keys: list[str] | None = NEW,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: list[str] | None = [] if configuration_keys is NEW else configuration_keys


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation",)

    def __init__(
        self,
        resources: list[DescribeConfigsResource] = NEW,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is NEW else resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation


class DescribeConfigsSynonym(Message):
    __slots__ = ("name", "value", "source",)

    def __init__(
        self,
        name: str = '',
        value: str | None = '',
        source: int = 0,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source


class DescribeConfigsResourceResult(Message):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type", "documentation",)

    def __init__(
        self,
        name: str = '',
        value: str | None = '',
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = NEW,
        config_type: int = 0,
        documentation: str | None = '',
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is NEW else synonyms
        self.config_type: int = config_type
        self.documentation: str | None = documentation


class DescribeConfigsResult(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs",)

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = '',
        resource_type: int = 0,
        resource_name: str = '',
        configs: list[DescribeConfigsResourceResult] = NEW,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is NEW else configs


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is NEW else results


def _decode_describe_configs_request_1(b: memoryview, p: int = 0) -> DescribeConfigsRequest:
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
            configuration_keys_2 = None
        else:
            if n * 2 > end - p:
                raise fail("configuration_keys has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            configuration_keys_2 = []
            for _ in range(n):
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    raise fail("configuration_keys is null")
                q = p + n
                if q > end:
                    raise fail("configuration_keys past the end")
                configuration_keys_2_each = str(b[p:q], "utf-8")
                p = q
                configuration_keys_2.append(configuration_keys_2_each)
        resources_1.append(DescribeConfigsResource(resource_type_2, resource_name_2, configuration_keys_2))
    (include_synonyms_1,) = _read_t(b, p)
    p += 1
    return DescribeConfigsRequest(resources_1, include_synonyms_1, False)


def _decode_describe_configs_request_3(b: memoryview, p: int = 0) -> DescribeConfigsRequest:
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
            configuration_keys_2 = None
        else:
            if n * 2 > end - p:
                raise fail("configuration_keys has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            configuration_keys_2 = []
            for _ in range(n):
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    raise fail("configuration_keys is null")
                q = p + n
                if q > end:
                    raise fail("configuration_keys past the end")
                configuration_keys_2_each = str(b[p:q], "utf-8")
                p = q
                configuration_keys_2.append(configuration_keys_2_each)
        resources_1.append(DescribeConfigsResource(resource_type_2, resource_name_2, configuration_keys_2))
    include_synonyms_1, include_documentation_1 = _read_tt(b, p)
    p += 2
    return DescribeConfigsRequest(resources_1, include_synonyms_1, include_documentation_1)


def _decode_describe_configs_request_4(b: memoryview, p: int = 0) -> DescribeConfigsRequest:
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
            configuration_keys_2 = None
        else:
            if n > end - p:
                raise fail("configuration_keys has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            configuration_keys_2 = []
            for _ in range(n):
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("configuration_keys is null")
                q = p + n
                if q > end:
                    raise fail("configuration_keys past the end")
                configuration_keys_2_each = str(b[p:q], "utf-8")
                p = q
                configuration_keys_2.append(configuration_keys_2_each)
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        resources_1.append(DescribeConfigsResource(resource_type_2, resource_name_2, configuration_keys_2))
    include_synonyms_1, include_documentation_1 = _read_tt(b, p)
    p += 2
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeConfigsRequest(resources_1, include_synonyms_1, include_documentation_1)


DECODE_DESCRIBE_CONFIGS_REQUEST = {
    1: _decode_describe_configs_request_1,
    2: _decode_describe_configs_request_1,
    3: _decode_describe_configs_request_3,
    4: _decode_describe_configs_request_4,
}


def _encode_describe_configs_request_1(m: DescribeConfigsRequest, out: bytearray) -> None:
    each_1 = m.resources
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configuration_keys
        if each_2 is None:
            out += b"\xff\xff\xff\xff"
        else:
            out += _write_i(len(each_2))
            for each_2_m in each_2:
                write_string(out, each_2_m)
    out += _write_t(m.include_synonyms)


def _encode_describe_configs_request_3(m: DescribeConfigsRequest, out: bytearray) -> None:
    each_1 = m.resources
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configuration_keys
        if each_2 is None:
            out += b"\xff\xff\xff\xff"
        else:
            out += _write_i(len(each_2))
            for each_2_m in each_2:
                write_string(out, each_2_m)
    out += _write_tt(m.include_synonyms, m.include_documentation)


def _encode_describe_configs_request_4(m: DescribeConfigsRequest, out: bytearray) -> None:
    each_1 = m.resources
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_b(each_1_m.resource_type)
        write_compact_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configuration_keys
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                write_compact_string(out, each_2_m)
        out.append(0)
    out += _write_tt(m.include_synonyms, m.include_documentation)
    out.append(0)


ENCODE_DESCRIBE_CONFIGS_REQUEST = {
    1: _encode_describe_configs_request_1,
    2: _encode_describe_configs_request_1,
    3: _encode_describe_configs_request_3,
    4: _encode_describe_configs_request_4,
}


def _decode_describe_configs_response_1(b: memoryview, p: int = 0) -> DescribeConfigsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results is null")
    if n * 11 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
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
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("configs is null")
        if n * 11 > end - p:
            raise fail("configs has more elements than bytes")
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
            read_only_3, config_source_3, is_sensitive_3 = _read_tbt(b, p)
            p += 3
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("synonyms is null")
            if n * 5 > end - p:
                raise fail("synonyms has more elements than bytes")
            synonyms_3 = []
            for _ in range(n):
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    raise fail("name is null")
                q = p + n
                if q > end:
                    raise fail("name past the end")
                name_4 = str(b[p:q], "utf-8")
                p = q
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    value_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("value past the end")
                    value_4 = str(b[p:q], "utf-8")
                    p = q
                (source_4,) = _read_b(b, p)
                p += 1
                synonyms_3.append(DescribeConfigsSynonym(name_4, value_4, source_4))
            configs_2.append(DescribeConfigsResourceResult(name_3, value_3, read_only_3, config_source_3, is_sensitive_3, synonyms_3, 0, ''))
        results_1.append(DescribeConfigsResult(error_code_2, error_message_2, resource_type_2, resource_name_2, configs_2))
    return DescribeConfigsResponse(throttle_time_ms_1, results_1)


def _decode_describe_configs_response_3(b: memoryview, p: int = 0) -> DescribeConfigsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("results is null")
    if n * 11 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
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
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("configs is null")
        if n * 14 > end - p:
            raise fail("configs has more elements than bytes")
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
            read_only_3, config_source_3, is_sensitive_3 = _read_tbt(b, p)
            p += 3
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("synonyms is null")
            if n * 5 > end - p:
                raise fail("synonyms has more elements than bytes")
            synonyms_3 = []
            for _ in range(n):
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    raise fail("name is null")
                q = p + n
                if q > end:
                    raise fail("name past the end")
                name_4 = str(b[p:q], "utf-8")
                p = q
                (n,) = _read_h(b, p)
                p += 2
                if n < 0:
                    value_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("value past the end")
                    value_4 = str(b[p:q], "utf-8")
                    p = q
                (source_4,) = _read_b(b, p)
                p += 1
                synonyms_3.append(DescribeConfigsSynonym(name_4, value_4, source_4))
            (config_type_3,) = _read_b(b, p)
            p += 1
            (n,) = _read_h(b, p)
            p += 2
            if n < 0:
                documentation_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("documentation past the end")
                documentation_3 = str(b[p:q], "utf-8")
                p = q
            configs_2.append(DescribeConfigsResourceResult(name_3, value_3, read_only_3, config_source_3, is_sensitive_3, synonyms_3, config_type_3, documentation_3))
        results_1.append(DescribeConfigsResult(error_code_2, error_message_2, resource_type_2, resource_name_2, configs_2))
    return DescribeConfigsResponse(throttle_time_ms_1, results_1)


def _decode_describe_configs_response_4(b: memoryview, p: int = 0) -> DescribeConfigsResponse:
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
    if n * 7 > end - p:
        raise fail("results has more elements than bytes")
    results_1 = []
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
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("configs is null")
        if n * 9 > end - p:
            raise fail("configs has more elements than bytes")
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
            read_only_3, config_source_3, is_sensitive_3 = _read_tbt(b, p)
            p += 3
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("synonyms is null")
            if n * 4 > end - p:
                raise fail("synonyms has more elements than bytes")
            synonyms_3 = []
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
                name_4 = str(b[p:q], "utf-8")
                p = q
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    value_4 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("value past the end")
                    value_4 = str(b[p:q], "utf-8")
                    p = q
                (source_4,) = _read_b(b, p)
                p += 1
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                synonyms_3.append(DescribeConfigsSynonym(name_4, value_4, source_4))
            (config_type_3,) = _read_b(b, p)
            p += 1
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                documentation_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("documentation past the end")
                documentation_3 = str(b[p:q], "utf-8")
                p = q
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            configs_2.append(DescribeConfigsResourceResult(name_3, value_3, read_only_3, config_source_3, is_sensitive_3, synonyms_3, config_type_3, documentation_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        results_1.append(DescribeConfigsResult(error_code_2, error_message_2, resource_type_2, resource_name_2, configs_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeConfigsResponse(throttle_time_ms_1, results_1)


DECODE_DESCRIBE_CONFIGS_RESPONSE = {
    1: _decode_describe_configs_response_1,
    2: _decode_describe_configs_response_1,
    3: _decode_describe_configs_response_3,
    4: _decode_describe_configs_response_4,
}


def _encode_describe_configs_response_1(m: DescribeConfigsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configs
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.name)
            write_nullable_string(out, each_2_m.value)
            out += _write_tbt(each_2_m.read_only, each_2_m.config_source, each_2_m.is_sensitive)
            each_3 = each_2_m.synonyms
            out += _write_i(len(each_3))
            for each_3_m in each_3:
                write_string(out, each_3_m.name)
                write_nullable_string(out, each_3_m.value)
                out += _write_b(each_3_m.source)


def _encode_describe_configs_response_3(m: DescribeConfigsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)
        out += _write_b(each_1_m.resource_type)
        write_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configs
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            write_string(out, each_2_m.name)
            write_nullable_string(out, each_2_m.value)
            out += _write_tbt(each_2_m.read_only, each_2_m.config_source, each_2_m.is_sensitive)
            each_3 = each_2_m.synonyms
            out += _write_i(len(each_3))
            for each_3_m in each_3:
                write_string(out, each_3_m.name)
                write_nullable_string(out, each_3_m.value)
                out += _write_b(each_3_m.source)
            out += _write_b(each_2_m.config_type)
            write_nullable_string(out, each_2_m.documentation)


def _encode_describe_configs_response_4(m: DescribeConfigsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out += _write_b(each_1_m.resource_type)
        write_compact_string(out, each_1_m.resource_name)
        each_2 = each_1_m.configs
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            write_compact_string(out, each_2_m.name)
            write_compact_nullable_string(out, each_2_m.value)
            out += _write_tbt(each_2_m.read_only, each_2_m.config_source, each_2_m.is_sensitive)
            each_3 = each_2_m.synonyms
            write_varint(out, len(each_3) + 1)
            for each_3_m in each_3:
                write_compact_string(out, each_3_m.name)
                write_compact_nullable_string(out, each_3_m.value)
                out += _write_b(each_3_m.source)
                out.append(0)
            out += _write_b(each_2_m.config_type)
            write_compact_nullable_string(out, each_2_m.documentation)
            out.append(0)
        out.append(0)
    out.append(0)


ENCODE_DESCRIBE_CONFIGS_RESPONSE = {
    1: _encode_describe_configs_response_1,
    2: _encode_describe_configs_response_1,
    3: _encode_describe_configs_response_3,
    4: _encode_describe_configs_response_4,
}
