"""ApiVersions: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_hh = Struct(">hh")
_read_hh = _struct_hh.unpack_from
_write_hh = _struct_hh.pack
_struct_hhh = Struct(">hhh")
_read_hhh = _struct_hhh.unpack_from
_write_hhh = _struct_hhh.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack


class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version",)

    def __init__(
        self,
        client_software_name: str = '',
        client_software_version: str = '',
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version


class ApiVersion(Message):
    __slots__ = ("api_key", "min_version", "max_version",)

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version


class SupportedFeatureKey(Message):
    __slots__ = ("name", "min_version", "max_version",)

    def __init__(
        self,
        name: str = '',
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version


class FinalizedFeatureKey(Message):
    __slots__ = ("name", "max_version_level", "min_version_level",)

    def __init__(
        self,
        name: str = '',
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level


class ApiVersionsResponse(Message):
    __slots__ = ("error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch", "finalized_features", "zk_migration_ready",)

    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] = NEW,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = NEW,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = NEW,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is NEW else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is NEW else supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is NEW else finalized_features
        self.zk_migration_ready: bool = zk_migration_ready


def _decode_api_versions_request_0(b: memoryview, p: int = 0) -> ApiVersionsRequest:
    return ApiVersionsRequest('', '')


def _decode_api_versions_request_3(b: memoryview, p: int = 0) -> ApiVersionsRequest:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("client_software_name is null")
    q = p + n
    if q > end:
        raise fail("client_software_name past the end")
    client_software_name_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("client_software_version is null")
    q = p + n
    if q > end:
        raise fail("client_software_version past the end")
    client_software_version_1 = str(b[p:q], "utf-8")
    p = q
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ApiVersionsRequest(client_software_name_1, client_software_version_1)


DECODE_API_VERSIONS_REQUEST = {
    0: _decode_api_versions_request_0,
    1: _decode_api_versions_request_0,
    2: _decode_api_versions_request_0,
    3: _decode_api_versions_request_3,
    4: _decode_api_versions_request_3,
}


def _encode_api_versions_request_0(m: ApiVersionsRequest, out: bytearray) -> None:
    pass


def _encode_api_versions_request_3(m: ApiVersionsRequest, out: bytearray) -> None:
    write_compact_string(out, m.client_software_name)
    write_compact_string(out, m.client_software_version)
    out.append(0)


ENCODE_API_VERSIONS_REQUEST = {
    0: _encode_api_versions_request_0,
    1: _encode_api_versions_request_0,
    2: _encode_api_versions_request_0,
    3: _encode_api_versions_request_3,
    4: _encode_api_versions_request_3,
}


def _decode_api_versions_response_0(b: memoryview, p: int = 0) -> ApiVersionsResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("api_keys is null")
    if n * 6 > end - p:
        raise fail("api_keys has more elements than bytes")
    api_keys_1 = []
    for _ in range(n):
        api_key_2, min_version_2, max_version_2 = _read_hhh(b, p)
        p += 6
        api_keys_1.append(ApiVersion(api_key_2, min_version_2, max_version_2))
    return ApiVersionsResponse(error_code_1, api_keys_1, 0, [], -1, [], False)


def _decode_api_versions_response_1(b: memoryview, p: int = 0) -> ApiVersionsResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("api_keys is null")
    if n * 6 > end - p:
        raise fail("api_keys has more elements than bytes")
    api_keys_1 = []
    for _ in range(n):
        api_key_2, min_version_2, max_version_2 = _read_hhh(b, p)
        p += 6
        api_keys_1.append(ApiVersion(api_key_2, min_version_2, max_version_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    return ApiVersionsResponse(error_code_1, api_keys_1, throttle_time_ms_1, [], -1, [], False)


def _decode_api_versions_response_3(b: memoryview, p: int = 0) -> ApiVersionsResponse:
    end = len(b)
    (error_code_1,) = _read_h(b, p)
    p += 2
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("api_keys is null")
    if n * 7 > end - p:
        raise fail("api_keys has more elements than bytes")
    api_keys_1 = []
    for _ in range(n):
        api_key_2, min_version_2, max_version_2 = _read_hhh(b, p)
        p += 6
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        api_keys_1.append(ApiVersion(api_key_2, min_version_2, max_version_2))
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    supported_features_1 = []
    finalized_features_epoch_1 = -1
    finalized_features_1 = []
    zk_migration_ready_1 = False
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_3 = p + n
        if stop_3 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("supported_features is null")
            if n * 6 > end - p:
                raise fail("supported_features has more elements than bytes")
            supported_features_1 = []
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
                min_version_4, max_version_4 = _read_hh(b, p)
                p += 4
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                supported_features_1.append(SupportedFeatureKey(name_4, min_version_4, max_version_4))
            if p != stop_3:
                raise fail("supported_features is not as long as it says")
        elif tag == 1:
            (finalized_features_epoch_1,) = _read_q(b, p)
            p += 8
            if p != stop_3:
                raise fail("finalized_features_epoch is not as long as it says")
        elif tag == 2:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("finalized_features is null")
            if n * 6 > end - p:
                raise fail("finalized_features has more elements than bytes")
            finalized_features_1 = []
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
                name_5 = str(b[p:q], "utf-8")
                p = q
                max_version_level_5, min_version_level_5 = _read_hh(b, p)
                p += 4
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                finalized_features_1.append(FinalizedFeatureKey(name_5, max_version_level_5, min_version_level_5))
            if p != stop_3:
                raise fail("finalized_features is not as long as it says")
        elif tag == 3:
            (zk_migration_ready_1,) = _read_t(b, p)
            p += 1
            if p != stop_3:
                raise fail("zk_migration_ready is not as long as it says")
        else:
            p = stop_3
    return ApiVersionsResponse(error_code_1, api_keys_1, throttle_time_ms_1, supported_features_1, finalized_features_epoch_1, finalized_features_1, zk_migration_ready_1)


DECODE_API_VERSIONS_RESPONSE = {
    0: _decode_api_versions_response_0,
    1: _decode_api_versions_response_1,
    2: _decode_api_versions_response_1,
    3: _decode_api_versions_response_3,
    4: _decode_api_versions_response_3,
}


def _encode_api_versions_response_0(m: ApiVersionsResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.api_keys
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_hhh(each_1_m.api_key, each_1_m.min_version, each_1_m.max_version)


def _encode_api_versions_response_1(m: ApiVersionsResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.api_keys
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        out += _write_hhh(each_1_m.api_key, each_1_m.min_version, each_1_m.max_version)
    out += _write_i(m.throttle_time_ms)


def _encode_api_versions_response_3(m: ApiVersionsResponse, out: bytearray) -> None:
    out += _write_h(m.error_code)
    each_1 = m.api_keys
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_hhh(each_1_m.api_key, each_1_m.min_version, each_1_m.max_version)
        out.append(0)
    out += _write_i(m.throttle_time_ms)
    given_2 = m.supported_features != []
    given_3 = m.finalized_features_epoch != -1
    given_4 = m.finalized_features != []
    given_5 = m.zk_migration_ready != False
    out.append(given_2 + given_3 + given_4 + given_5)
    if given_2:
        kept_6 = out
        out = bytearray()
        each_7 = m.supported_features
        write_varint(out, len(each_7) + 1)
        for each_7_m in each_7:
            write_compact_string(out, each_7_m.name)
            out += _write_hh(each_7_m.min_version, each_7_m.max_version)
            out.append(0)
        write_varint(kept_6, 0)
        write_varint(kept_6, len(out))
        kept_6 += out
        out = kept_6
    if given_3:
        kept_8 = out
        out = bytearray()
        out += _write_q(m.finalized_features_epoch)
        write_varint(kept_8, 1)
        write_varint(kept_8, len(out))
        kept_8 += out
        out = kept_8
    if given_4:
        kept_9 = out
        out = bytearray()
        each_10 = m.finalized_features
        write_varint(out, len(each_10) + 1)
        for each_10_m in each_10:
            write_compact_string(out, each_10_m.name)
            out += _write_hh(each_10_m.max_version_level, each_10_m.min_version_level)
            out.append(0)
        write_varint(kept_9, 2)
        write_varint(kept_9, len(out))
        kept_9 += out
        out = kept_9
    if given_5:
        kept_11 = out
        out = bytearray()
        out += _write_t(m.zk_migration_ready)
        write_varint(kept_11, 3)
        write_varint(kept_11, len(out))
        kept_11 += out
        out = kept_11


ENCODE_API_VERSIONS_RESPONSE = {
    0: _encode_api_versions_response_0,
    1: _encode_api_versions_response_1,
    2: _encode_api_versions_response_1,
    3: _encode_api_versions_response_3,
    4: _encode_api_versions_response_3,
}
