"""consumer_protocol: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack


class TopicPartition(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ConsumerProtocolSubscription(Message):
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id",)

    def __init__(
        self,
        topics: list[str] = NEW,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = NEW,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics: list[str] = [] if topics is NEW else topics
        self.user_data: bytes | None = user_data
        self.owned_partitions: list[TopicPartition] = [] if owned_partitions is NEW else owned_partitions
        self.generation_id: int = generation_id
        self.rack_id: str | None = rack_id


class TopicPartition(Message):
    __slots__ = ("topic", "partitions",)

    def __init__(
        self,
        topic: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data",)

    def __init__(
        self,
        assigned_partitions: list[TopicPartition] = NEW,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions: list[TopicPartition] = [] if assigned_partitions is NEW else assigned_partitions
        self.user_data: bytes | None = user_data


def _decode_consumer_protocol_subscription_0(b: memoryview, p: int = 0) -> ConsumerProtocolSubscription:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 2 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topics is null")
        q = p + n
        if q > end:
            raise fail("topics past the end")
        topics_1_each = str(b[p:q], "utf-8")
        p = q
        topics_1.append(topics_1_each)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        user_data_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("user_data past the end")
        user_data_1 = bytes(b[p:q])
        p = q
    return ConsumerProtocolSubscription(topics_1, user_data_1, [], -1, None)


def _decode_consumer_protocol_subscription_1(b: memoryview, p: int = 0) -> ConsumerProtocolSubscription:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 2 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topics is null")
        q = p + n
        if q > end:
            raise fail("topics past the end")
        topics_1_each = str(b[p:q], "utf-8")
        p = q
        topics_1.append(topics_1_each)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        user_data_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("user_data past the end")
        user_data_1 = bytes(b[p:q])
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("owned_partitions is null")
    if n * 6 > end - p:
        raise fail("owned_partitions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    owned_partitions_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        owned_partitions_1.append(TopicPartition(topic_2, partitions_2))
    return ConsumerProtocolSubscription(topics_1, user_data_1, owned_partitions_1, -1, None)


def _decode_consumer_protocol_subscription_2(b: memoryview, p: int = 0) -> ConsumerProtocolSubscription:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 2 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topics is null")
        q = p + n
        if q > end:
            raise fail("topics past the end")
        topics_1_each = str(b[p:q], "utf-8")
        p = q
        topics_1.append(topics_1_each)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        user_data_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("user_data past the end")
        user_data_1 = bytes(b[p:q])
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("owned_partitions is null")
    if n * 6 > end - p:
        raise fail("owned_partitions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    owned_partitions_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        owned_partitions_1.append(TopicPartition(topic_2, partitions_2))
    (generation_id_1,) = _read_i(b, p)
    p += 4
    return ConsumerProtocolSubscription(topics_1, user_data_1, owned_partitions_1, generation_id_1, None)


def _decode_consumer_protocol_subscription_3(b: memoryview, p: int = 0) -> ConsumerProtocolSubscription:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 2 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topics is null")
        q = p + n
        if q > end:
            raise fail("topics past the end")
        topics_1_each = str(b[p:q], "utf-8")
        p = q
        topics_1.append(topics_1_each)
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        user_data_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("user_data past the end")
        user_data_1 = bytes(b[p:q])
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("owned_partitions is null")
    if n * 6 > end - p:
        raise fail("owned_partitions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    owned_partitions_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        owned_partitions_1.append(TopicPartition(topic_2, partitions_2))
    (generation_id_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        rack_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("rack_id past the end")
        rack_id_1 = str(b[p:q], "utf-8")
        p = q
    return ConsumerProtocolSubscription(topics_1, user_data_1, owned_partitions_1, generation_id_1, rack_id_1)


DECODE_CONSUMER_PROTOCOL_SUBSCRIPTION = {
    0: _decode_consumer_protocol_subscription_0,
    1: _decode_consumer_protocol_subscription_1,
    2: _decode_consumer_protocol_subscription_2,
    3: _decode_consumer_protocol_subscription_3,
}


def _encode_consumer_protocol_subscription_0(m: ConsumerProtocolSubscription, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)
    write_bytes(out, m.user_data)


def _encode_consumer_protocol_subscription_1(m: ConsumerProtocolSubscription, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)
    write_bytes(out, m.user_data)
    each_2 = m.owned_partitions
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        write_string(out, each_2_m.topic)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        out += pack(f">{len(each_3)}i", *each_3)


def _encode_consumer_protocol_subscription_2(m: ConsumerProtocolSubscription, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)
    write_bytes(out, m.user_data)
    each_2 = m.owned_partitions
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        write_string(out, each_2_m.topic)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        out += pack(f">{len(each_3)}i", *each_3)
    out += _write_i(m.generation_id)


def _encode_consumer_protocol_subscription_3(m: ConsumerProtocolSubscription, out: bytearray) -> None:
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m)
    write_bytes(out, m.user_data)
    each_2 = m.owned_partitions
    out += _write_i(len(each_2))
    for each_2_m in each_2:
        write_string(out, each_2_m.topic)
        each_3 = each_2_m.partitions
        out += _write_i(len(each_3))
        out += pack(f">{len(each_3)}i", *each_3)
    out += _write_i(m.generation_id)
    write_nullable_string(out, m.rack_id)


ENCODE_CONSUMER_PROTOCOL_SUBSCRIPTION = {
    0: _encode_consumer_protocol_subscription_0,
    1: _encode_consumer_protocol_subscription_1,
    2: _encode_consumer_protocol_subscription_2,
    3: _encode_consumer_protocol_subscription_3,
}


def _decode_consumer_protocol_assignment_0(b: memoryview, p: int = 0) -> ConsumerProtocolAssignment:
    end = len(b)
    left = ELEMENTS_LIMIT
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("assigned_partitions is null")
    if n * 6 > end - p:
        raise fail("assigned_partitions has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    assigned_partitions_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        assigned_partitions_1.append(TopicPartition(topic_2, partitions_2))
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        user_data_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("user_data past the end")
        user_data_1 = bytes(b[p:q])
        p = q
    return ConsumerProtocolAssignment(assigned_partitions_1, user_data_1)


DECODE_CONSUMER_PROTOCOL_ASSIGNMENT = {
    0: _decode_consumer_protocol_assignment_0,
    1: _decode_consumer_protocol_assignment_0,
    2: _decode_consumer_protocol_assignment_0,
    3: _decode_consumer_protocol_assignment_0,
}


def _encode_consumer_protocol_assignment_0(m: ConsumerProtocolAssignment, out: bytearray) -> None:
    each_1 = m.assigned_partitions
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        out += pack(f">{len(each_2)}i", *each_2)
    write_bytes(out, m.user_data)


ENCODE_CONSUMER_PROTOCOL_ASSIGNMENT = {
    0: _encode_consumer_protocol_assignment_0,
    1: _encode_consumer_protocol_assignment_0,
    2: _encode_consumer_protocol_assignment_0,
    3: _encode_consumer_protocol_assignment_0,
}
