"""share_group_records: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_iib = Struct(">iib")
_read_iib = _struct_iib.unpack_from
_write_iib = _struct_iib.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack


class ShareGroupMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        group_id: str = '',
    ) -> None:
        self.group_id: str = group_id


class ShareGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash",)

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash


class ShareGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id


class ShareGroupMemberMetadataValue(Message):
    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names",)

    def __init__(
        self,
        rack_id: str | None = '',
        client_id: str = '',
        client_host: str = '',
        subscribed_topic_names: list[str] = NEW,
    ) -> None:
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is NEW else subscribed_topic_names


class ShareGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        group_id: str = '',
    ) -> None:
        self.group_id: str = group_id


class ShareGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp",)

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp


class ShareGroupTargetAssignmentMemberKey(Message):
    __slots__ = ("group_id", "member_id",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id


class TopicPartition(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ShareGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[TopicPartition] = NEW,
    ) -> None:
        self.topic_partitions: list[TopicPartition] = [] if topic_partitions is NEW else topic_partitions


class ShareGroupCurrentMemberAssignmentKey(Message):
    __slots__ = ("group_id", "member_id",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions


class ShareGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions",)

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = NEW,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.assigned_partitions: list[TopicPartitions] = [] if assigned_partitions is NEW else assigned_partitions


class ShareGroupStatePartitionMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        group_id: str = '',
    ) -> None:
        self.group_id: str = group_id


class TopicPartitionsInfo(Message):
    __slots__ = ("topic_id", "topic_name", "partitions",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        topic_name: str = '',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is NEW else partitions


class TopicInfo(Message):
    __slots__ = ("topic_id", "topic_name",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        topic_name: str = '',
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name


class ShareGroupStatePartitionMetadataValue(Message):
    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics",)

    def __init__(
        self,
        initializing_topics: list[TopicPartitionsInfo] = NEW,
        initialized_topics: list[TopicPartitionsInfo] = NEW,
        deleting_topics: list[TopicInfo] = NEW,
    ) -> None:
        self.initializing_topics: list[TopicPartitionsInfo] = [] if initializing_topics is NEW else initializing_topics
        self.initialized_topics: list[TopicPartitionsInfo] = [] if initialized_topics is NEW else initialized_topics
        self.deleting_topics: list[TopicInfo] = [] if deleting_topics is NEW else deleting_topics


def _decode_share_group_metadata_key_0(b: memoryview, p: int = 0) -> ShareGroupMetadataKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    return ShareGroupMetadataKey(group_id_1)


DECODE_SHARE_GROUP_METADATA_KEY = {
    0: _decode_share_group_metadata_key_0,
}


def _encode_share_group_metadata_key_0(m: ShareGroupMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)


ENCODE_SHARE_GROUP_METADATA_KEY = {
    0: _encode_share_group_metadata_key_0,
}


def _decode_share_group_metadata_value_0(b: memoryview, p: int = 0) -> ShareGroupMetadataValue:
    epoch_1, metadata_hash_1 = _read_iq(b, p)
    p += 12
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareGroupMetadataValue(epoch_1, metadata_hash_1)


DECODE_SHARE_GROUP_METADATA_VALUE = {
    0: _decode_share_group_metadata_value_0,
}


def _encode_share_group_metadata_value_0(m: ShareGroupMetadataValue, out: bytearray) -> None:
    out += _write_iq(m.epoch, m.metadata_hash)
    out.append(0)


ENCODE_SHARE_GROUP_METADATA_VALUE = {
    0: _encode_share_group_metadata_value_0,
}


def _decode_share_group_member_metadata_key_0(b: memoryview, p: int = 0) -> ShareGroupMemberMetadataKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    return ShareGroupMemberMetadataKey(group_id_1, member_id_1)


DECODE_SHARE_GROUP_MEMBER_METADATA_KEY = {
    0: _decode_share_group_member_metadata_key_0,
}


def _encode_share_group_member_metadata_key_0(m: ShareGroupMemberMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


ENCODE_SHARE_GROUP_MEMBER_METADATA_KEY = {
    0: _encode_share_group_member_metadata_key_0,
}


def _decode_share_group_member_metadata_value_0(b: memoryview, p: int = 0) -> ShareGroupMemberMetadataValue:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        rack_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("rack_id past the end")
        rack_id_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("client_id is null")
    q = p + n
    if q > end:
        raise fail("client_id past the end")
    client_id_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("client_host is null")
    q = p + n
    if q > end:
        raise fail("client_host past the end")
    client_host_1 = str(b[p:q], "utf-8")
    p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("subscribed_topic_names is null")
    if n > end - p:
        raise fail("subscribed_topic_names has more elements than bytes")
    subscribed_topic_names_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("subscribed_topic_names is null")
        q = p + n
        if q > end:
            raise fail("subscribed_topic_names past the end")
        subscribed_topic_names_1_each = str(b[p:q], "utf-8")
        p = q
        subscribed_topic_names_1.append(subscribed_topic_names_1_each)
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareGroupMemberMetadataValue(rack_id_1, client_id_1, client_host_1, subscribed_topic_names_1)


DECODE_SHARE_GROUP_MEMBER_METADATA_VALUE = {
    0: _decode_share_group_member_metadata_value_0,
}


def _encode_share_group_member_metadata_value_0(m: ShareGroupMemberMetadataValue, out: bytearray) -> None:
    write_compact_nullable_string(out, m.rack_id)
    write_compact_string(out, m.client_id)
    write_compact_string(out, m.client_host)
    each_1 = m.subscribed_topic_names
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out.append(0)


ENCODE_SHARE_GROUP_MEMBER_METADATA_VALUE = {
    0: _encode_share_group_member_metadata_value_0,
}


def _decode_share_group_target_assignment_metadata_key_0(b: memoryview, p: int = 0) -> ShareGroupTargetAssignmentMetadataKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    return ShareGroupTargetAssignmentMetadataKey(group_id_1)


DECODE_SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = {
    0: _decode_share_group_target_assignment_metadata_key_0,
}


def _encode_share_group_target_assignment_metadata_key_0(m: ShareGroupTargetAssignmentMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)


ENCODE_SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = {
    0: _encode_share_group_target_assignment_metadata_key_0,
}


def _decode_share_group_target_assignment_metadata_value_0(b: memoryview, p: int = 0) -> ShareGroupTargetAssignmentMetadataValue:
    end = len(b)
    (assignment_epoch_1,) = _read_i(b, p)
    p += 4
    assignment_timestamp_1 = 0
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_2 = p + n
        if stop_2 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            (assignment_timestamp_1,) = _read_q(b, p)
            p += 8
            if p != stop_2:
                raise fail("assignment_timestamp is not as long as it says")
        else:
            p = stop_2
    return ShareGroupTargetAssignmentMetadataValue(assignment_epoch_1, assignment_timestamp_1)


DECODE_SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = {
    0: _decode_share_group_target_assignment_metadata_value_0,
}


def _encode_share_group_target_assignment_metadata_value_0(m: ShareGroupTargetAssignmentMetadataValue, out: bytearray) -> None:
    out += _write_i(m.assignment_epoch)
    given_1 = m.assignment_timestamp != 0
    out.append(given_1)
    if given_1:
        kept_2 = out
        out = bytearray()
        out += _write_q(m.assignment_timestamp)
        write_varint(kept_2, 0)
        write_varint(kept_2, len(out))
        kept_2 += out
        out = kept_2


ENCODE_SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = {
    0: _encode_share_group_target_assignment_metadata_value_0,
}


def _decode_share_group_target_assignment_member_key_0(b: memoryview, p: int = 0) -> ShareGroupTargetAssignmentMemberKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    return ShareGroupTargetAssignmentMemberKey(group_id_1, member_id_1)


DECODE_SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = {
    0: _decode_share_group_target_assignment_member_key_0,
}


def _encode_share_group_target_assignment_member_key_0(m: ShareGroupTargetAssignmentMemberKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


ENCODE_SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = {
    0: _encode_share_group_target_assignment_member_key_0,
}


def _decode_share_group_target_assignment_member_value_0(b: memoryview, p: int = 0) -> ShareGroupTargetAssignmentMemberValue:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topic_partitions is null")
    if n * 18 > end - p:
        raise fail("topic_partitions has more elements than bytes")
    topic_partitions_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topic_partitions_1.append(TopicPartition(topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareGroupTargetAssignmentMemberValue(topic_partitions_1)


DECODE_SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = {
    0: _decode_share_group_target_assignment_member_value_0,
}


def _encode_share_group_target_assignment_member_value_0(m: ShareGroupTargetAssignmentMemberValue, out: bytearray) -> None:
    each_1 = m.topic_partitions
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        out.append(0)
    out.append(0)


ENCODE_SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = {
    0: _encode_share_group_target_assignment_member_value_0,
}


def _decode_share_group_current_member_assignment_key_0(b: memoryview, p: int = 0) -> ShareGroupCurrentMemberAssignmentKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("member_id is null")
    q = p + n
    if q > end:
        raise fail("member_id past the end")
    member_id_1 = str(b[p:q], "utf-8")
    p = q
    return ShareGroupCurrentMemberAssignmentKey(group_id_1, member_id_1)


DECODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = {
    0: _decode_share_group_current_member_assignment_key_0,
}


def _encode_share_group_current_member_assignment_key_0(m: ShareGroupCurrentMemberAssignmentKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


ENCODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = {
    0: _encode_share_group_current_member_assignment_key_0,
}


def _decode_share_group_current_member_assignment_value_0(b: memoryview, p: int = 0) -> ShareGroupCurrentMemberAssignmentValue:
    end = len(b)
    member_epoch_1, previous_member_epoch_1, state_1 = _read_iib(b, p)
    p += 9
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("assigned_partitions is null")
    if n * 18 > end - p:
        raise fail("assigned_partitions has more elements than bytes")
    assigned_partitions_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        assigned_partitions_1.append(TopicPartitions(topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareGroupCurrentMemberAssignmentValue(member_epoch_1, previous_member_epoch_1, state_1, assigned_partitions_1)


DECODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = {
    0: _decode_share_group_current_member_assignment_value_0,
}


def _encode_share_group_current_member_assignment_value_0(m: ShareGroupCurrentMemberAssignmentValue, out: bytearray) -> None:
    out += _write_iib(m.member_epoch, m.previous_member_epoch, m.state)
    each_1 = m.assigned_partitions
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        out.append(0)
    out.append(0)


ENCODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = {
    0: _encode_share_group_current_member_assignment_value_0,
}


def _decode_share_group_state_partition_metadata_key_0(b: memoryview, p: int = 0) -> ShareGroupStatePartitionMetadataKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    return ShareGroupStatePartitionMetadataKey(group_id_1)


DECODE_SHARE_GROUP_STATE_PARTITION_METADATA_KEY = {
    0: _decode_share_group_state_partition_metadata_key_0,
}


def _encode_share_group_state_partition_metadata_key_0(m: ShareGroupStatePartitionMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)


ENCODE_SHARE_GROUP_STATE_PARTITION_METADATA_KEY = {
    0: _encode_share_group_state_partition_metadata_key_0,
}


def _decode_share_group_state_partition_metadata_value_0(b: memoryview, p: int = 0) -> ShareGroupStatePartitionMetadataValue:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("initializing_topics is null")
    if n * 19 > end - p:
        raise fail("initializing_topics has more elements than bytes")
    initializing_topics_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic_name is null")
        q = p + n
        if q > end:
            raise fail("topic_name past the end")
        topic_name_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        initializing_topics_1.append(TopicPartitionsInfo(topic_id_2, topic_name_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("initialized_topics is null")
    if n * 19 > end - p:
        raise fail("initialized_topics has more elements than bytes")
    initialized_topics_1 = []
    for _ in range(n):
        (topic_id_3,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic_name is null")
        q = p + n
        if q > end:
            raise fail("topic_name past the end")
        topic_name_3 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_3 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        initialized_topics_1.append(TopicPartitionsInfo(topic_id_3, topic_name_3, partitions_3))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("deleting_topics is null")
    if n * 18 > end - p:
        raise fail("deleting_topics has more elements than bytes")
    deleting_topics_1 = []
    for _ in range(n):
        (topic_id_4,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic_name is null")
        q = p + n
        if q > end:
            raise fail("topic_name past the end")
        topic_name_4 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        deleting_topics_1.append(TopicInfo(topic_id_4, topic_name_4))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ShareGroupStatePartitionMetadataValue(initializing_topics_1, initialized_topics_1, deleting_topics_1)


DECODE_SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = {
    0: _decode_share_group_state_partition_metadata_value_0,
}


def _encode_share_group_state_partition_metadata_value_0(m: ShareGroupStatePartitionMetadataValue, out: bytearray) -> None:
    each_1 = m.initializing_topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        write_compact_string(out, each_1_m.topic_name)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        out.append(0)
    each_3 = m.initialized_topics
    write_varint(out, len(each_3) + 1)
    for each_3_m in each_3:
        out += _write_16s(each_3_m.topic_id)
        write_compact_string(out, each_3_m.topic_name)
        each_4 = each_3_m.partitions
        write_varint(out, len(each_4) + 1)
        out += pack(f">{len(each_4)}i", *each_4)
        out.append(0)
    each_5 = m.deleting_topics
    write_varint(out, len(each_5) + 1)
    for each_5_m in each_5:
        out += _write_16s(each_5_m.topic_id)
        write_compact_string(out, each_5_m.topic_name)
        out.append(0)
    out.append(0)


ENCODE_SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = {
    0: _encode_share_group_state_partition_metadata_value_0,
}
