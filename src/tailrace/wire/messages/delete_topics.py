"""DeleteTopics: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_16s = Struct(">16s")
_read_16s = _struct_16s.unpack_from
_write_16s = _struct_16s.pack
_struct_16sh = Struct(">16sh")
_read_16sh = _struct_16sh.unpack_from
_write_16sh = _struct_16sh.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class DeleteTopicState(Message):
    __slots__ = ("name", "topic_id",)

    def __init__(
        self,
        name: str | None = None,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id


class DeleteTopicsRequest(Message):
    __slots__ = ("topics", "topic_names", "timeout_ms",)

    def __init__(
        self,
        topics: list[DeleteTopicState] = NEW,
        topic_names: list[str] = NEW,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is NEW else topics
        self.topic_names: list[str] = [] if topic_names is NEW else topic_names
        self.timeout_ms: int = timeout_ms


class DeletableTopicResult(Message):
    __slots__ = ("name", "topic_id", "error_code", "error_message",)

    def __init__(
        self,
        name: str | None = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is NEW else responses


def _decode_delete_topics_request_1(b: memoryview, p: int = 0) -> DeleteTopicsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topic_names is null")
    if n * 2 > end - p:
        raise fail("topic_names has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topic_names_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic_names is null")
        q = p + n
        if q > end:
            raise fail("topic_names past the end")
        topic_names_1_each = str(b[p:q], "utf-8")
        p = q
        topic_names_1.append(topic_names_1_each)
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    return DeleteTopicsRequest([], topic_names_1, timeout_ms_1)


def _decode_delete_topics_request_4(b: memoryview, p: int = 0) -> DeleteTopicsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topic_names is null")
    if n > end - p:
        raise fail("topic_names has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topic_names_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic_names is null")
        q = p + n
        if q > end:
            raise fail("topic_names past the end")
        topic_names_1_each = str(b[p:q], "utf-8")
        p = q
        topic_names_1.append(topic_names_1_each)
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteTopicsRequest([], topic_names_1, timeout_ms_1)


def _decode_delete_topics_request_6(b: memoryview, p: int = 0) -> DeleteTopicsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
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
            name_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("name past the end")
            name_2 = str(b[p:q], "utf-8")
            p = q
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(DeleteTopicState(name_2, topic_id_2))
    (timeout_ms_1,) = _read_i(b, p)
    p += 4
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteTopicsRequest(topics_1, [], timeout_ms_1)


DECODE_DELETE_TOPICS_REQUEST = {
    1: _decode_delete_topics_request_1,
    2: _decode_delete_topics_request_1,
    3: _decode_delete_topics_request_1,
    4: _decode_delete_topics_request_4,
    5: _decode_delete_topics_request_4,
    6: _decode_delete_topics_request_6,
}


def _encode_delete_topics_request_1(m: DeleteTopicsRequest, out: bytearray) -> None:
    each_1 = m.topic_names
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)
    out += _write_i(m.timeout_ms)


def _encode_delete_topics_request_4(m: DeleteTopicsRequest, out: bytearray) -> None:
    each_1 = m.topic_names
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out += _write_i(m.timeout_ms)
    out.append(0)


def _encode_delete_topics_request_6(m: DeleteTopicsRequest, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_nullable_string(out, each_1_m.name)
        out += _write_16s(each_1_m.topic_id)
        out.append(0)
    out += _write_i(m.timeout_ms)
    out.append(0)


ENCODE_DELETE_TOPICS_REQUEST = {
    1: _encode_delete_topics_request_1,
    2: _encode_delete_topics_request_1,
    3: _encode_delete_topics_request_1,
    4: _encode_delete_topics_request_4,
    5: _encode_delete_topics_request_4,
    6: _encode_delete_topics_request_6,
}


def _decode_delete_topics_response_1(b: memoryview, p: int = 0) -> DeleteTopicsResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 4 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
        responses_1.append(DeletableTopicResult(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_2, None))
    return DeleteTopicsResponse(throttle_time_ms_1, responses_1)


def _decode_delete_topics_response_4(b: memoryview, p: int = 0) -> DeleteTopicsResponse:
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
    if n * 4 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(DeletableTopicResult(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_2, None))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteTopicsResponse(throttle_time_ms_1, responses_1)


def _decode_delete_topics_response_5(b: memoryview, p: int = 0) -> DeleteTopicsResponse:
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
    if n * 5 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
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
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(DeletableTopicResult(name_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteTopicsResponse(throttle_time_ms_1, responses_1)


def _decode_delete_topics_response_6(b: memoryview, p: int = 0) -> DeleteTopicsResponse:
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
    if n * 21 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            name_2 = None
        else:
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
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(DeletableTopicResult(name_2, topic_id_2, error_code_2, error_message_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return DeleteTopicsResponse(throttle_time_ms_1, responses_1)


DECODE_DELETE_TOPICS_RESPONSE = {
    1: _decode_delete_topics_response_1,
    2: _decode_delete_topics_response_1,
    3: _decode_delete_topics_response_1,
    4: _decode_delete_topics_response_4,
    5: _decode_delete_topics_response_5,
    6: _decode_delete_topics_response_6,
}


def _encode_delete_topics_response_1(m: DeleteTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)


def _encode_delete_topics_response_4(m: DeleteTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)
        out.append(0)
    out.append(0)


def _encode_delete_topics_response_5(m: DeleteTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.name)
        out += _write_h(each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


def _encode_delete_topics_response_6(m: DeleteTopicsResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_nullable_string(out, each_1_m.name)
        out += _write_16sh(each_1_m.topic_id, each_1_m.error_code)
        write_compact_nullable_string(out, each_1_m.error_message)
        out.append(0)
    out.append(0)


ENCODE_DELETE_TOPICS_RESPONSE = {
    1: _encode_delete_topics_response_1,
    2: _encode_delete_topics_response_1,
    3: _encode_delete_topics_response_1,
    4: _encode_delete_topics_response_4,
    5: _encode_delete_topics_response_5,
    6: _encode_delete_topics_response_6,
}
