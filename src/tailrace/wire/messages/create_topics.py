"""CreateTopics: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_16sh = Struct(">16sh")
_read_16sh = _struct_16sh.unpack_from
_write_16sh = _struct_16sh.pack
_struct_tbt = Struct(">?b?")
_read_tbt = _struct_tbt.unpack_from
_write_tbt = _struct_tbt.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_it = Struct(">i?")
_read_it = _struct_it.unpack_from
_write_it = _struct_it.pack
_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack


class CreatableReplicaAssignment(Message):
    __slots__ = ("partition_index", "broker_ids",)

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] = NEW,
    ) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: list[int] = [] if broker_ids is NEW else broker_ids


class CreatableTopicConfig(Message):
    __slots__ = ("name", "value",)

    def __init__(
        self,
        name: str = '',
        value: str | None = '',
    ) -> None:
        self.name: str = name
        self.value: str | None = value


class CreatableTopic(Message):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs",)

    def __init__(
        self,
        name: str = '',
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = NEW,
        configs: list[CreatableTopicConfig] = NEW,
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is NEW else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is NEW else configs


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only",)

    def __init__(
        self,
        topics: list[CreatableTopic] = NEW,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is NEW else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


class CreatableTopicConfigs(Message):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive",)

    def __init__(
        self,
        name: str = '',
        value: str | None = '',
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive


class CreatableTopicResult(Message):
    __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs",)

    def __init__(
        self,
        name: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        error_code: int = 0,
        error_message: str | None = '',
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = NEW,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topic_config_error_code: int = topic_config_error_code
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if configs is NEW else configs


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is NEW else topics


def _decode_create_topics_request_2(b: memoryview, p: int = 0) -> CreateTopicsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 16 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
        num_partitions_2, replication_factor_2 = _read_ih(b, p)
        p += 6
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignments is null")
        if n * 8 > end - p:
            raise fail("assignments has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        assignments_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                raise fail("broker_ids is null")
            if n * 4 > end - p:
                raise fail("broker_ids has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            broker_ids_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            assignments_2.append(CreatableReplicaAssignment(partition_index_3, broker_ids_3))
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
            configs_2.append(CreatableTopicConfig(name_4, value_4))
        topics_1.append(CreatableTopic(name_2, num_partitions_2, replication_factor_2, assignments_2, configs_2))
    timeout_ms_1, validate_only_1 = _read_it(b, p)
    p += 5
    return CreateTopicsRequest(topics_1, timeout_ms_1, validate_only_1)


def _decode_create_topics_request_5(b: memoryview, p: int = 0) -> CreateTopicsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 10 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
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
        num_partitions_2, replication_factor_2 = _read_ih(b, p)
        p += 6
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("assignments is null")
        if n * 6 > end - p:
            raise fail("assignments has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        assignments_2 = []
        for _ in range(n):
            (partition_index_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("broker_ids is null")
            if n * 4 > end - p:
                raise fail("broker_ids has more elements than bytes")
            left -= n
            if left < 0:
                raise fail(TOO_MANY_ELEMENTS)
            broker_ids_3 = list(unpack_from(f">{n}i", b, p))
            p += 4 * n
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            assignments_2.append(CreatableReplicaAssignment(partition_index_3, broker_ids_3))
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
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            configs_2.append(CreatableTopicConfig(name_4, value_4))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(CreatableTopic(name_2, num_partitions_2, replication_factor_2, assignments_2, configs_2))
    timeout_ms_1, validate_only_1 = _read_it(b, p)
    p += 5
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateTopicsRequest(topics_1, timeout_ms_1, validate_only_1)


DECODE_CREATE_TOPICS_REQUEST = {
    2: _decode_create_topics_request_2,
    3: _decode_create_topics_request_2,
    4: _decode_create_topics_request_2,
    5: _decode_create_topics_request_5,
    6: _decode_create_topics_request_5,
    7: _decode_create_topics_request_5,
}


def _encode_create_topics_request_2(m: CreateTopicsRequest, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        out += _write_ih(each_1_m.num_partitions, each_1_m.replication_factor)
        each_2 = each_1_m.assignments
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.broker_ids
            out += _write_i(len(each_3))
            out += pack(f">{len(each_3)}i", *each_3)
        each_4 = each_1_m.configs
        out += _write_i(len(each_4))
        for each_4_m in each_4:
            write_string(out, each_4_m.name)
            write_nullable_string(out, each_4_m.value)
    out += _write_it(m.timeout_ms, m.validate_only)


def _encode_create_topics_request_5(m: CreateTopicsRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_ih(each_1_m.num_partitions, each_1_m.replication_factor)
        each_2 = each_1_m.assignments
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_i(each_2_m.partition_index)
            each_3 = each_2_m.broker_ids
            write_varint(out, len(each_3) + 1)
            out += pack(f">{len(each_3)}i", *each_3)
            out.append(0)
        each_4 = each_1_m.configs
        write_varint(out, len(each_4) + 1)
        for each_4_m in each_4:
            write_compact_string(out, each_4_m.name)
            write_compact_nullable_string(out, each_4_m.value)
            out.append(0)
        out.append(0)
    out += _write_it(m.timeout_ms, m.validate_only)
    out.append(0)


ENCODE_CREATE_TOPICS_REQUEST = {
    2: _encode_create_topics_request_2,
    3: _encode_create_topics_request_2,
    4: _encode_create_topics_request_2,
    5: _encode_create_topics_request_5,
    6: _encode_create_topics_request_5,
    7: _encode_create_topics_request_5,
}


def _decode_create_topics_response_2(b: memoryview, p: int = 0) -> CreateTopicsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("name is null")
        q = p + n
        if q > end:
            raise fail("name past the end")
        name_2 = str(b[p:q], "utf-8")
        p = q
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
        topics_1.append(CreatableTopicResult(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_2, error_message_2, 0, -1, -1, []))
    return CreateTopicsResponse(throttle_time_ms_1, topics_1)


def _decode_create_topics_response_5(b: memoryview, p: int = 0) -> CreateTopicsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 12 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
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
        num_partitions_2, replication_factor_2 = _read_ih(b, p)
        p += 6
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            configs_2 = None
        else:
            if n * 6 > end - p:
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
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                configs_2.append(CreatableTopicConfigs(name_3, value_3, read_only_3, config_source_3, is_sensitive_3))
        topic_config_error_code_2 = 0
        n, p = read_varint(b, p)
        if n > TAGS_LIMIT:
            raise fail("too many tagged fields")
        for _ in range(n):
            tag, p = read_varint(b, p)
            n, p = read_varint(b, p)
            stop_4 = p + n
            if stop_4 > end:
                raise fail("tagged field past the end")
            if tag == 0:
                (topic_config_error_code_2,) = _read_h(b, p)
                p += 2
                if p != stop_4:
                    raise fail("topic_config_error_code is not as long as it says")
            else:
                p = stop_4
        topics_1.append(CreatableTopicResult(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_2, error_message_2, topic_config_error_code_2, num_partitions_2, replication_factor_2, configs_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateTopicsResponse(throttle_time_ms_1, topics_1)


def _decode_create_topics_response_7(b: memoryview, p: int = 0) -> CreateTopicsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 28 > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
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
        topic_id_2, error_code_2 = _read_16sh(b, p)
        p += 18
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
        num_partitions_2, replication_factor_2 = _read_ih(b, p)
        p += 6
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            configs_2 = None
        else:
            if n * 6 > end - p:
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
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                configs_2.append(CreatableTopicConfigs(name_3, value_3, read_only_3, config_source_3, is_sensitive_3))
        topic_config_error_code_2 = 0
        n, p = read_varint(b, p)
        if n > TAGS_LIMIT:
            raise fail("too many tagged fields")
        for _ in range(n):
            tag, p = read_varint(b, p)
            n, p = read_varint(b, p)
            stop_4 = p + n
            if stop_4 > end:
                raise fail("tagged field past the end")
            if tag == 0:
                (topic_config_error_code_2,) = _read_h(b, p)
                p += 2
                if p != stop_4:
                    raise fail("topic_config_error_code is not as long as it says")
            else:
                p = stop_4
        topics_1.append(CreatableTopicResult(name_2, topic_id_2, error_code_2, error_message_2, topic_config_error_code_2, num_partitions_2, replication_factor_2, configs_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return CreateTopicsResponse(throttle_time_ms_1, topics_1)


DECODE_CREATE_TOPICS_RESPONSE = {
    2: _decode_create_topics_response_2,
    3: _decode_create_topics_response_2,
    4: _decode_create_topics_response_2,
    5: _decode_create_topics_response_5,
    6: _decode_create_topics_response_5,
    7: _decode_create_topics_response_7,
}


def _encode_create_topics_response_2(m: CreateTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)
        write_nullable_string(out, each_1_m.error_message)


def _encode_create_topics_response_5(m: CreateTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out += _write_ih(each_1_m.num_partitions, each_1_m.replication_factor)
        each_2 = each_1_m.configs
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                write_compact_string(out, each_2_m.name)
                write_compact_nullable_string(out, each_2_m.value)
                out += _write_tbt(each_2_m.read_only, each_2_m.config_source, each_2_m.is_sensitive)
                out.append(0)
        given_3 = each_1_m.topic_config_error_code != 0
        out.append(given_3)
        if given_3:
            kept_4 = out
            out = bytearray()
            out += _write_h(each_1_m.topic_config_error_code)
            write_varint(kept_4, 0)
            write_varint(kept_4, len(out))
            kept_4 += out
            out = kept_4
    out.append(0)


def _encode_create_topics_response_7(m: CreateTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_16sh(each_1_m.topic_id, each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out += _write_ih(each_1_m.num_partitions, each_1_m.replication_factor)
        each_2 = each_1_m.configs
        if each_2 is None:
            out.append(0)
        else:
            write_varint(out, len(each_2) + 1)
            for each_2_m in each_2:
                write_compact_string(out, each_2_m.name)
                write_compact_nullable_string(out, each_2_m.value)
                out += _write_tbt(each_2_m.read_only, each_2_m.config_source, each_2_m.is_sensitive)
                out.append(0)
        given_3 = each_1_m.topic_config_error_code != 0
        out.append(given_3)
        if given_3:
            kept_4 = out
            out = bytearray()
            out += _write_h(each_1_m.topic_config_error_code)
            write_varint(kept_4, 0)
            write_varint(kept_4, len(out))
            kept_4 += out
            out = kept_4
    out.append(0)


ENCODE_CREATE_TOPICS_RESPONSE = {
    2: _encode_create_topics_response_2,
    3: _encode_create_topics_response_2,
    4: _encode_create_topics_response_2,
    5: _encode_create_topics_response_5,
    6: _encode_create_topics_response_5,
    7: _encode_create_topics_response_7,
}
