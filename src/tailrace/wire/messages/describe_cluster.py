"""DescribeCluster: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_tb = Struct(">?b")
_read_tb = _struct_tb.unpack_from
_write_tb = _struct_tb.pack
_struct_tbt = Struct(">?b?")
_read_tbt = _struct_tbt.unpack_from
_write_tbt = _struct_tbt.pack
_struct_b = Struct(">b")
_read_b = _struct_b.unpack_from
_write_b = _struct_b.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class DescribeClusterRequest(Message):
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers",)

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers


class DescribeClusterBroker(Message):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced",)

    def __init__(
        self,
        broker_id: int = 0,
        host: str = '',
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced


class DescribeClusterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = '',
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = NEW,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if brokers is NEW else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations


def _decode_describe_cluster_request_0(b: memoryview, p: int = 0) -> DescribeClusterRequest:
    (include_cluster_authorized_operations_1,) = _read_t(b, p)
    p += 1
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClusterRequest(include_cluster_authorized_operations_1, 1, False)


def _decode_describe_cluster_request_1(b: memoryview, p: int = 0) -> DescribeClusterRequest:
    include_cluster_authorized_operations_1, endpoint_type_1 = _read_tb(b, p)
    p += 2
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClusterRequest(include_cluster_authorized_operations_1, endpoint_type_1, False)


def _decode_describe_cluster_request_2(b: memoryview, p: int = 0) -> DescribeClusterRequest:
    include_cluster_authorized_operations_1, endpoint_type_1, include_fenced_brokers_1 = _read_tbt(b, p)
    p += 3
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClusterRequest(include_cluster_authorized_operations_1, endpoint_type_1, include_fenced_brokers_1)


DECODE_DESCRIBE_CLUSTER_REQUEST = {
    0: _decode_describe_cluster_request_0,
    1: _decode_describe_cluster_request_1,
    2: _decode_describe_cluster_request_2,
}


def _encode_describe_cluster_request_0(m: DescribeClusterRequest, out: bytearray) -> None:
    out += _write_t(m.include_cluster_authorized_operations)
    out.append(0)


def _encode_describe_cluster_request_1(m: DescribeClusterRequest, out: bytearray) -> None:
    out += _write_tb(m.include_cluster_authorized_operations, m.endpoint_type)
    out.append(0)


def _encode_describe_cluster_request_2(m: DescribeClusterRequest, out: bytearray) -> None:
    out += _write_tbt(m.include_cluster_authorized_operations, m.endpoint_type, m.include_fenced_brokers)
    out.append(0)


ENCODE_DESCRIBE_CLUSTER_REQUEST = {
    0: _encode_describe_cluster_request_0,
    1: _encode_describe_cluster_request_1,
    2: _encode_describe_cluster_request_2,
}


def _decode_describe_cluster_response_0(b: memoryview, p: int = 0) -> DescribeClusterResponse:
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
        raise fail("cluster_id is null")
    q = p + n
    if q > end:
        raise fail("cluster_id past the end")
    cluster_id_1 = str(b[p:q], "utf-8")
    p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (broker_id_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(DescribeClusterBroker(broker_id_2, host_2, port_2, rack_2, False))
    (cluster_authorized_operations_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClusterResponse(throttle_time_ms_1, error_code_1, error_message_1, 1, cluster_id_1, controller_id_1, brokers_1, cluster_authorized_operations_1)


def _decode_describe_cluster_response_1(b: memoryview, p: int = 0) -> DescribeClusterResponse:
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
    (endpoint_type_1,) = _read_b(b, p)
    p += 1
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("cluster_id is null")
    q = p + n
    if q > end:
        raise fail("cluster_id past the end")
    cluster_id_1 = str(b[p:q], "utf-8")
    p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 11 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (broker_id_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(DescribeClusterBroker(broker_id_2, host_2, port_2, rack_2, False))
    (cluster_authorized_operations_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClusterResponse(throttle_time_ms_1, error_code_1, error_message_1, endpoint_type_1, cluster_id_1, controller_id_1, brokers_1, cluster_authorized_operations_1)


def _decode_describe_cluster_response_2(b: memoryview, p: int = 0) -> DescribeClusterResponse:
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
    (endpoint_type_1,) = _read_b(b, p)
    p += 1
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("cluster_id is null")
    q = p + n
    if q > end:
        raise fail("cluster_id past the end")
    cluster_id_1 = str(b[p:q], "utf-8")
    p = q
    (controller_id_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("brokers is null")
    if n * 12 > end - p:
        raise fail("brokers has more elements than bytes")
    brokers_1 = []
    for _ in range(n):
        (broker_id_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("host is null")
        q = p + n
        if q > end:
            raise fail("host past the end")
        host_2 = str(b[p:q], "utf-8")
        p = q
        (port_2,) = _read_i(b, p)
        p += 4
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            rack_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("rack past the end")
            rack_2 = str(b[p:q], "utf-8")
            p = q
        (is_fenced_2,) = _read_t(b, p)
        p += 1
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        brokers_1.append(DescribeClusterBroker(broker_id_2, host_2, port_2, rack_2, is_fenced_2))
    (cluster_authorized_operations_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DescribeClusterResponse(throttle_time_ms_1, error_code_1, error_message_1, endpoint_type_1, cluster_id_1, controller_id_1, brokers_1, cluster_authorized_operations_1)


DECODE_DESCRIBE_CLUSTER_RESPONSE = {
    0: _decode_describe_cluster_response_0,
    1: _decode_describe_cluster_response_1,
    2: _decode_describe_cluster_response_2,
}


def _encode_describe_cluster_response_0(m: DescribeClusterResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    write_compact_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.broker_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    out += _write_i(m.cluster_authorized_operations)
    out.append(0)


def _encode_describe_cluster_response_1(m: DescribeClusterResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    out += _write_b(m.endpoint_type)
    write_compact_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.broker_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out.append(0)
    out += _write_i(m.cluster_authorized_operations)
    out.append(0)


def _encode_describe_cluster_response_2(m: DescribeClusterResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    write_compact_nullable_string(out, m.error_message)
    out += _write_b(m.endpoint_type)
    write_compact_string(out, m.cluster_id)
    out += _write_i(m.controller_id)
    each_1 = m.brokers
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_i(each_1_m.broker_id)
        write_compact_string(out, each_1_m.host)
        out += _write_i(each_1_m.port)
        write_compact_nullable_string(out, each_1_m.rack)
        out += _write_t(each_1_m.is_fenced)
        out.append(0)
    out += _write_i(m.cluster_authorized_operations)
    out.append(0)


ENCODE_DESCRIBE_CLUSTER_RESPONSE = {
    0: _encode_describe_cluster_response_0,
    1: _encode_describe_cluster_response_1,
    2: _encode_describe_cluster_response_2,
}
