"""UpdateFeatures: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ht = Struct(">h?")
_read_ht = _struct_ht.unpack_from
_write_ht = _struct_ht.pack
_struct_hb = Struct(">hb")
_read_hb = _struct_hb.unpack_from
_write_hb = _struct_hb.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class FeatureUpdateKey(Message):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type",)

    def __init__(
        self,
        feature: str = '',
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.allow_downgrade: bool = allow_downgrade
        self.upgrade_type: int = upgrade_type


class UpdateFeaturesRequest(Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only",)

    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = NEW,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is NEW else feature_updates
        self.validate_only: bool = validate_only


class UpdatableFeatureResult(Message):
    __slots__ = ("feature", "error_code", "error_message",)

    def __init__(
        self,
        feature: str = '',
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class UpdateFeaturesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        results: list[UpdatableFeatureResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdatableFeatureResult] = [] if results is NEW else results


def _decode_update_features_request_0(b: memoryview, p: int = 0) -> UpdateFeaturesRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("feature_updates is null")
    if n * 5 > end - p:
        raise fail("feature_updates has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    feature_updates_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("feature is null")
        q = p + n
        if q > end:
            raise fail("feature past the end")
        feature_2 = str(b[p:q], "utf-8")
        p = q
        max_version_level_2, allow_downgrade_2 = _read_ht(b, p)
        p += 3
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        feature_updates_1.append(FeatureUpdateKey(feature_2, max_version_level_2, allow_downgrade_2, 1))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return UpdateFeaturesRequest(timeout_ms_1, feature_updates_1, False)


def _decode_update_features_request_1(b: memoryview, p: int = 0) -> UpdateFeaturesRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("feature_updates is null")
    if n * 5 > end - p:
        raise fail("feature_updates has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    feature_updates_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("feature is null")
        q = p + n
        if q > end:
            raise fail("feature past the end")
        feature_2 = str(b[p:q], "utf-8")
        p = q
        max_version_level_2, upgrade_type_2 = _read_hb(b, p)
        p += 3
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        feature_updates_1.append(FeatureUpdateKey(feature_2, max_version_level_2, False, upgrade_type_2))
    (validate_only_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return UpdateFeaturesRequest(timeout_ms_1, feature_updates_1, validate_only_1)


DECODE_UPDATE_FEATURES_REQUEST = {
    0: _decode_update_features_request_0,
    1: _decode_update_features_request_1,
    2: _decode_update_features_request_1,
}


def _encode_update_features_request_0(m: UpdateFeaturesRequest, out: bytearray) -> None:
    out += _write_i(m.timeout_ms)
    each_1 = m.feature_updates
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.feature)
        out += _write_ht(each_1_m.max_version_level, each_1_m.allow_downgrade)
        out.append(0)
    out.append(0)


def _encode_update_features_request_1(m: UpdateFeaturesRequest, out: bytearray) -> None:
    out += _write_i(m.timeout_ms)
    each_1 = m.feature_updates
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.feature)
        out += _write_hb(each_1_m.max_version_level, each_1_m.upgrade_type)
        out.append(0)
    out += _write_t(m.validate_only)
    out.append(0)


ENCODE_UPDATE_FEATURES_REQUEST = {
    0: _encode_update_features_request_0,
    1: _encode_update_features_request_1,
    2: _encode_update_features_request_1,
}


def _decode_update_features_response_0(b: memoryview, p: int = 0) -> UpdateFeaturesResponse:
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
            raise fail("feature is null")
        q = p + n
        if q > end:
            raise fail("feature past the end")
        feature_2 = str(b[p:q], "utf-8")
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
        results_1.append(UpdatableFeatureResult(feature_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return UpdateFeaturesResponse(throttle_time_ms_1, error_code_1, error_message_1, results_1)


def _decode_update_features_response_2(b: memoryview, p: int = 0) -> UpdateFeaturesResponse:
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
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return UpdateFeaturesResponse(throttle_time_ms_1, error_code_1, error_message_1, [])


DECODE_UPDATE_FEATURES_RESPONSE = {
    0: _decode_update_features_response_0,
    1: _decode_update_features_response_0,
    2: _decode_update_features_response_2,
}


def _encode_update_features_response_0(m: UpdateFeaturesResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    each_1 = m.results
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.feature)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


def _encode_update_features_response_2(m: UpdateFeaturesResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    out.append(0)


ENCODE_UPDATE_FEATURES_RESPONSE = {
    0: _encode_update_features_response_0,
    1: _encode_update_features_response_0,
    2: _encode_update_features_response_2,
}
