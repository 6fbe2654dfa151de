"""group_records: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack
_struct_iib = Struct(">iib")
_read_iib = _struct_iib.unpack_from
_write_iib = _struct_iib.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack
_struct_qi = Struct(">qi")
_read_qi = _struct_qi.unpack_from
_write_qi = _struct_qi.pack
_struct_qq = Struct(">qq")
_read_qq = _struct_qq.unpack_from
_write_qq = _struct_qq.pack


class OffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition",)

    def __init__(
        self,
        group: str = '',
        topic: str = '',
        partition: int = 0,
    ) -> None:
        self.group: str = group
        self.topic: str = topic
        self.partition: int = partition


class OffsetCommitValue(Message):
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id",)

    def __init__(
        self,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = '',
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
    ) -> None:
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch
        self.metadata: str = metadata
        self.commit_timestamp: int = commit_timestamp
        self.expire_timestamp: int = expire_timestamp
        self.topic_id: bytes = topic_id


class GroupMetadataKey(Message):
    __slots__ = ("group",)

    def __init__(
        self,
        group: str = '',
    ) -> None:
        self.group: str = group


class MemberMetadata(Message):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment",)

    def __init__(
        self,
        member_id: str = '',
        group_instance_id: str | None = None,
        client_id: str = '',
        client_host: str = '',
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b'',
        assignment: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.rebalance_timeout: int = rebalance_timeout
        self.session_timeout: int = session_timeout
        self.subscription: bytes = subscription
        self.assignment: bytes = assignment


class GroupMetadataValue(Message):
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members",)

    def __init__(
        self,
        protocol_type: str = '',
        generation: int = 0,
        protocol: str | None = '',
        leader: str | None = '',
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = NEW,
    ) -> None:
        self.protocol_type: str = protocol_type
        self.generation: int = generation
        self.protocol: str | None = protocol
        self.leader: str | None = leader
        self.current_state_timestamp: int = current_state_timestamp
        self.members: list[MemberMetadata] = [] if members is NEW else members


class ConsumerGroupMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        group_id: str = '',
    ) -> None:
        self.group_id: str = group_id


class ConsumerGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash",)

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch: int = epoch
        self.metadata_hash: int = metadata_hash


class ConsumerGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id


class ClassicProtocol(Message):
    __slots__ = ("name", "metadata",)

    def __init__(
        self,
        name: str = '',
        metadata: bytes = b'',
    ) -> None:
        self.name: str = name
        self.metadata: bytes = metadata


class ClassicMemberMetadata(Message):
    __slots__ = ("session_timeout_ms", "supported_protocols",)

    def __init__(
        self,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = NEW,
    ) -> None:
        self.session_timeout_ms: int = session_timeout_ms
        self.supported_protocols: list[ClassicProtocol] = [] if supported_protocols is NEW else supported_protocols


class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "classic_member_metadata",)

    def __init__(
        self,
        instance_id: str | None = '',
        rack_id: str | None = '',
        client_id: str = '',
        client_host: str = '',
        subscribed_topic_names: list[str] = NEW,
        subscribed_topic_regex: str | None = '',
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = '',
        classic_member_metadata: ClassicMemberMetadata | None = NEW,
    ) -> None:
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is NEW else subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.server_assignor: str | None = server_assignor
        self.classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata() if classic_member_metadata is NEW else classic_member_metadata


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        group_id: str = '',
    ) -> None:
        self.group_id: str = group_id


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp",)

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch: int = assignment_epoch
        self.assignment_timestamp: int = assignment_timestamp


class ConsumerGroupTargetAssignmentMemberKey(Message):
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


class ConsumerGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[TopicPartition] = NEW,
    ) -> None:
        self.topic_partitions: list[TopicPartition] = [] if topic_partitions is NEW else topic_partitions


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    __slots__ = ("group_id", "member_id",)

    def __init__(
        self,
        group_id: str = '',
        member_id: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions", "assignment_epochs",)

    def __init__(
        self,
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
        assignment_epochs: list[int] | None = NEW,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions
        self.assignment_epochs: list[int] | None = [] if assignment_epochs is NEW else assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation",)

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = NEW,
        partitions_pending_revocation: list[TopicPartitions] = NEW,
    ) -> None:
        self.member_epoch: int = member_epoch
        self.previous_member_epoch: int = previous_member_epoch
        self.state: int = state
        self.assigned_partitions: list[TopicPartitions] = [] if assigned_partitions is NEW else assigned_partitions
        self.partitions_pending_revocation: list[TopicPartitions] = [] if partitions_pending_revocation is NEW else partitions_pending_revocation


class ConsumerGroupRegularExpressionKey(Message):
    __slots__ = ("group_id", "regular_expression",)

    def __init__(
        self,
        group_id: str = '',
        regular_expression: str = '',
    ) -> None:
        self.group_id: str = group_id
        self.regular_expression: str = regular_expression


class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = ("topics", "version", "timestamp",)

    def __init__(
        self,
        topics: list[str] = NEW,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics: list[str] = [] if topics is NEW else topics
        self.version: int = version
        self.timestamp: int = timestamp


def _decode_offset_commit_key_0(b: memoryview, p: int = 0) -> OffsetCommitKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group is null")
    q = p + n
    if q > end:
        raise fail("group past the end")
    group_1 = str(b[p:q], "utf-8")
    p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("topic is null")
    q = p + n
    if q > end:
        raise fail("topic past the end")
    topic_1 = str(b[p:q], "utf-8")
    p = q
    (partition_1,) = _read_i(b, p)
    p += 4
    return OffsetCommitKey(group_1, topic_1, partition_1)


DECODE_OFFSET_COMMIT_KEY = {
    0: _decode_offset_commit_key_0,
}


def _encode_offset_commit_key_0(m: OffsetCommitKey, out: bytearray) -> None:
    write_string(out, m.group)
    write_string(out, m.topic)
    out += _write_i(m.partition)


ENCODE_OFFSET_COMMIT_KEY = {
    0: _encode_offset_commit_key_0,
}


def _decode_offset_commit_value_0(b: memoryview, p: int = 0) -> OffsetCommitValue:
    end = len(b)
    (offset_1,) = _read_q(b, p)
    p += 8
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("metadata is null")
    q = p + n
    if q > end:
        raise fail("metadata past the end")
    metadata_1 = str(b[p:q], "utf-8")
    p = q
    (commit_timestamp_1,) = _read_q(b, p)
    p += 8
    return OffsetCommitValue(offset_1, -1, metadata_1, commit_timestamp_1, -1, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00')


def _decode_offset_commit_value_1(b: memoryview, p: int = 0) -> OffsetCommitValue:
    end = len(b)
    (offset_1,) = _read_q(b, p)
    p += 8
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("metadata is null")
    q = p + n
    if q > end:
        raise fail("metadata past the end")
    metadata_1 = str(b[p:q], "utf-8")
    p = q
    commit_timestamp_1, expire_timestamp_1 = _read_qq(b, p)
    p += 16
    return OffsetCommitValue(offset_1, -1, metadata_1, commit_timestamp_1, expire_timestamp_1, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00')


def _decode_offset_commit_value_3(b: memoryview, p: int = 0) -> OffsetCommitValue:
    end = len(b)
    offset_1, leader_epoch_1 = _read_qi(b, p)
    p += 12
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("metadata is null")
    q = p + n
    if q > end:
        raise fail("metadata past the end")
    metadata_1 = str(b[p:q], "utf-8")
    p = q
    (commit_timestamp_1,) = _read_q(b, p)
    p += 8
    return OffsetCommitValue(offset_1, leader_epoch_1, metadata_1, commit_timestamp_1, -1, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00')


def _decode_offset_commit_value_4(b: memoryview, p: int = 0) -> OffsetCommitValue:
    end = len(b)
    offset_1, leader_epoch_1 = _read_qi(b, p)
    p += 12
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("metadata is null")
    q = p + n
    if q > end:
        raise fail("metadata past the end")
    metadata_1 = str(b[p:q], "utf-8")
    p = q
    (commit_timestamp_1,) = _read_q(b, p)
    p += 8
    topic_id_1 = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
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
            (topic_id_1,) = _read_16s(b, p)
            p += 16
            if p != stop_2:
                raise fail("topic_id is not as long as it says")
        else:
            p = stop_2
    return OffsetCommitValue(offset_1, leader_epoch_1, metadata_1, commit_timestamp_1, -1, topic_id_1)


DECODE_OFFSET_COMMIT_VALUE = {
    0: _decode_offset_commit_value_0,
    1: _decode_offset_commit_value_1,
    2: _decode_offset_commit_value_0,
    3: _decode_offset_commit_value_3,
    4: _decode_offset_commit_value_4,
}


def _encode_offset_commit_value_0(m: OffsetCommitValue, out: bytearray) -> None:
    out += _write_q(m.offset)
    write_string(out, m.metadata)
    out += _write_q(m.commit_timestamp)


def _encode_offset_commit_value_1(m: OffsetCommitValue, out: bytearray) -> None:
    out += _write_q(m.offset)
    write_string(out, m.metadata)
    out += _write_qq(m.commit_timestamp, m.expire_timestamp)


def _encode_offset_commit_value_3(m: OffsetCommitValue, out: bytearray) -> None:
    out += _write_qi(m.offset, m.leader_epoch)
    write_string(out, m.metadata)
    out += _write_q(m.commit_timestamp)


def _encode_offset_commit_value_4(m: OffsetCommitValue, out: bytearray) -> None:
    out += _write_qi(m.offset, m.leader_epoch)
    write_compact_string(out, m.metadata)
    out += _write_q(m.commit_timestamp)
    given_1 = m.topic_id != b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
    out.append(given_1)
    if given_1:
        kept_2 = out
        out = bytearray()
        out += _write_16s(m.topic_id)
        write_varint(kept_2, 0)
        write_varint(kept_2, len(out))
        kept_2 += out
        out = kept_2


ENCODE_OFFSET_COMMIT_VALUE = {
    0: _encode_offset_commit_value_0,
    1: _encode_offset_commit_value_1,
    2: _encode_offset_commit_value_0,
    3: _encode_offset_commit_value_3,
    4: _encode_offset_commit_value_4,
}


def _decode_group_metadata_key_0(b: memoryview, p: int = 0) -> GroupMetadataKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group is null")
    q = p + n
    if q > end:
        raise fail("group past the end")
    group_1 = str(b[p:q], "utf-8")
    p = q
    return GroupMetadataKey(group_1)


DECODE_GROUP_METADATA_KEY = {
    0: _decode_group_metadata_key_0,
}


def _encode_group_metadata_key_0(m: GroupMetadataKey, out: bytearray) -> None:
    write_string(out, m.group)


ENCODE_GROUP_METADATA_KEY = {
    0: _encode_group_metadata_key_0,
}


def _decode_group_metadata_value_0(b: memoryview, p: int = 0) -> GroupMetadataValue:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (generation_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        protocol_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol past the end")
        protocol_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        leader_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("leader past the end")
        leader_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("members is null")
    if n * 18 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_id is null")
        q = p + n
        if q > end:
            raise fail("client_id past the end")
        client_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_host is null")
        q = p + n
        if q > end:
            raise fail("client_host past the end")
        client_host_2 = str(b[p:q], "utf-8")
        p = q
        (session_timeout_2,) = _read_i(b, p)
        p += 4
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("subscription is null")
        q = p + n
        if q > end:
            raise fail("subscription past the end")
        subscription_2 = bytes(b[p:q])
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        members_1.append(MemberMetadata(member_id_2, None, client_id_2, client_host_2, -1, session_timeout_2, subscription_2, assignment_2))
    return GroupMetadataValue(protocol_type_1, generation_1, protocol_1, leader_1, -1, members_1)


def _decode_group_metadata_value_1(b: memoryview, p: int = 0) -> GroupMetadataValue:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (generation_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        protocol_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol past the end")
        protocol_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        leader_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("leader past the end")
        leader_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("members is null")
    if n * 22 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_id is null")
        q = p + n
        if q > end:
            raise fail("client_id past the end")
        client_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_host is null")
        q = p + n
        if q > end:
            raise fail("client_host past the end")
        client_host_2 = str(b[p:q], "utf-8")
        p = q
        rebalance_timeout_2, session_timeout_2 = _read_ii(b, p)
        p += 8
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("subscription is null")
        q = p + n
        if q > end:
            raise fail("subscription past the end")
        subscription_2 = bytes(b[p:q])
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        members_1.append(MemberMetadata(member_id_2, None, client_id_2, client_host_2, rebalance_timeout_2, session_timeout_2, subscription_2, assignment_2))
    return GroupMetadataValue(protocol_type_1, generation_1, protocol_1, leader_1, -1, members_1)


def _decode_group_metadata_value_2(b: memoryview, p: int = 0) -> GroupMetadataValue:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (generation_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        protocol_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol past the end")
        protocol_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        leader_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("leader past the end")
        leader_1 = str(b[p:q], "utf-8")
        p = q
    (current_state_timestamp_1,) = _read_q(b, p)
    p += 8
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("members is null")
    if n * 22 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_id is null")
        q = p + n
        if q > end:
            raise fail("client_id past the end")
        client_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_host is null")
        q = p + n
        if q > end:
            raise fail("client_host past the end")
        client_host_2 = str(b[p:q], "utf-8")
        p = q
        rebalance_timeout_2, session_timeout_2 = _read_ii(b, p)
        p += 8
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("subscription is null")
        q = p + n
        if q > end:
            raise fail("subscription past the end")
        subscription_2 = bytes(b[p:q])
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        members_1.append(MemberMetadata(member_id_2, None, client_id_2, client_host_2, rebalance_timeout_2, session_timeout_2, subscription_2, assignment_2))
    return GroupMetadataValue(protocol_type_1, generation_1, protocol_1, leader_1, current_state_timestamp_1, members_1)


def _decode_group_metadata_value_3(b: memoryview, p: int = 0) -> GroupMetadataValue:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (generation_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        protocol_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol past the end")
        protocol_1 = str(b[p:q], "utf-8")
        p = q
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        leader_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("leader past the end")
        leader_1 = str(b[p:q], "utf-8")
        p = q
    (current_state_timestamp_1,) = _read_q(b, p)
    p += 8
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("members is null")
    if n * 24 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
            p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_id is null")
        q = p + n
        if q > end:
            raise fail("client_id past the end")
        client_id_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("client_host is null")
        q = p + n
        if q > end:
            raise fail("client_host past the end")
        client_host_2 = str(b[p:q], "utf-8")
        p = q
        rebalance_timeout_2, session_timeout_2 = _read_ii(b, p)
        p += 8
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("subscription is null")
        q = p + n
        if q > end:
            raise fail("subscription past the end")
        subscription_2 = bytes(b[p:q])
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        members_1.append(MemberMetadata(member_id_2, group_instance_id_2, client_id_2, client_host_2, rebalance_timeout_2, session_timeout_2, subscription_2, assignment_2))
    return GroupMetadataValue(protocol_type_1, generation_1, protocol_1, leader_1, current_state_timestamp_1, members_1)


def _decode_group_metadata_value_4(b: memoryview, p: int = 0) -> GroupMetadataValue:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("protocol_type is null")
    q = p + n
    if q > end:
        raise fail("protocol_type past the end")
    protocol_type_1 = str(b[p:q], "utf-8")
    p = q
    (generation_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        protocol_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("protocol past the end")
        protocol_1 = str(b[p:q], "utf-8")
        p = q
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        leader_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("leader past the end")
        leader_1 = str(b[p:q], "utf-8")
        p = q
    (current_state_timestamp_1,) = _read_q(b, p)
    p += 8
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("members is null")
    if n * 15 > end - p:
        raise fail("members has more elements than bytes")
    members_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("member_id is null")
        q = p + n
        if q > end:
            raise fail("member_id past the end")
        member_id_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            group_instance_id_2 = None
        else:
            q = p + n
            if q > end:
                raise fail("group_instance_id past the end")
            group_instance_id_2 = str(b[p:q], "utf-8")
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
        client_id_2 = str(b[p:q], "utf-8")
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
        client_host_2 = str(b[p:q], "utf-8")
        p = q
        rebalance_timeout_2, session_timeout_2 = _read_ii(b, p)
        p += 8
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("subscription is null")
        q = p + n
        if q > end:
            raise fail("subscription past the end")
        subscription_2 = bytes(b[p:q])
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("assignment is null")
        q = p + n
        if q > end:
            raise fail("assignment past the end")
        assignment_2 = bytes(b[p:q])
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        members_1.append(MemberMetadata(member_id_2, group_instance_id_2, client_id_2, client_host_2, rebalance_timeout_2, session_timeout_2, subscription_2, assignment_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return GroupMetadataValue(protocol_type_1, generation_1, protocol_1, leader_1, current_state_timestamp_1, members_1)


DECODE_GROUP_METADATA_VALUE = {
    0: _decode_group_metadata_value_0,
    1: _decode_group_metadata_value_1,
    2: _decode_group_metadata_value_2,
    3: _decode_group_metadata_value_3,
    4: _decode_group_metadata_value_4,
}


def _encode_group_metadata_value_0(m: GroupMetadataValue, out: bytearray) -> None:
    write_string(out, m.protocol_type)
    out += _write_i(m.generation)
    write_nullable_string(out, m.protocol)
    write_nullable_string(out, m.leader)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_string(out, each_1_m.client_id)
        write_string(out, each_1_m.client_host)
        out += _write_i(each_1_m.session_timeout)
        write_bytes(out, each_1_m.subscription)
        write_bytes(out, each_1_m.assignment)


def _encode_group_metadata_value_1(m: GroupMetadataValue, out: bytearray) -> None:
    write_string(out, m.protocol_type)
    out += _write_i(m.generation)
    write_nullable_string(out, m.protocol)
    write_nullable_string(out, m.leader)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_string(out, each_1_m.client_id)
        write_string(out, each_1_m.client_host)
        out += _write_ii(each_1_m.rebalance_timeout, each_1_m.session_timeout)
        write_bytes(out, each_1_m.subscription)
        write_bytes(out, each_1_m.assignment)


def _encode_group_metadata_value_2(m: GroupMetadataValue, out: bytearray) -> None:
    write_string(out, m.protocol_type)
    out += _write_i(m.generation)
    write_nullable_string(out, m.protocol)
    write_nullable_string(out, m.leader)
    out += _write_q(m.current_state_timestamp)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_string(out, each_1_m.client_id)
        write_string(out, each_1_m.client_host)
        out += _write_ii(each_1_m.rebalance_timeout, each_1_m.session_timeout)
        write_bytes(out, each_1_m.subscription)
        write_bytes(out, each_1_m.assignment)


def _encode_group_metadata_value_3(m: GroupMetadataValue, out: bytearray) -> None:
    write_string(out, m.protocol_type)
    out += _write_i(m.generation)
    write_nullable_string(out, m.protocol)
    write_nullable_string(out, m.leader)
    out += _write_q(m.current_state_timestamp)
    each_1 = m.members
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.member_id)
        write_nullable_string(out, each_1_m.group_instance_id)
        write_string(out, each_1_m.client_id)
        write_string(out, each_1_m.client_host)
        out += _write_ii(each_1_m.rebalance_timeout, each_1_m.session_timeout)
        write_bytes(out, each_1_m.subscription)
        write_bytes(out, each_1_m.assignment)


def _encode_group_metadata_value_4(m: GroupMetadataValue, out: bytearray) -> None:
    write_compact_string(out, m.protocol_type)
    out += _write_i(m.generation)
    write_compact_nullable_string(out, m.protocol)
    write_compact_nullable_string(out, m.leader)
    out += _write_q(m.current_state_timestamp)
    each_1 = m.members
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.member_id)
        write_compact_nullable_string(out, each_1_m.group_instance_id)
        write_compact_string(out, each_1_m.client_id)
        write_compact_string(out, each_1_m.client_host)
        out += _write_ii(each_1_m.rebalance_timeout, each_1_m.session_timeout)
        write_compact_bytes(out, each_1_m.subscription)
        write_compact_bytes(out, each_1_m.assignment)
        out.append(0)
    out.append(0)


ENCODE_GROUP_METADATA_VALUE = {
    0: _encode_group_metadata_value_0,
    1: _encode_group_metadata_value_1,
    2: _encode_group_metadata_value_2,
    3: _encode_group_metadata_value_3,
    4: _encode_group_metadata_value_4,
}


def _decode_consumer_group_metadata_key_0(b: memoryview, p: int = 0) -> ConsumerGroupMetadataKey:
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
    return ConsumerGroupMetadataKey(group_id_1)


DECODE_CONSUMER_GROUP_METADATA_KEY = {
    0: _decode_consumer_group_metadata_key_0,
}


def _encode_consumer_group_metadata_key_0(m: ConsumerGroupMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)


ENCODE_CONSUMER_GROUP_METADATA_KEY = {
    0: _encode_consumer_group_metadata_key_0,
}


def _decode_consumer_group_metadata_value_0(b: memoryview, p: int = 0) -> ConsumerGroupMetadataValue:
    end = len(b)
    (epoch_1,) = _read_i(b, p)
    p += 4
    metadata_hash_1 = 0
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
            (metadata_hash_1,) = _read_q(b, p)
            p += 8
            if p != stop_2:
                raise fail("metadata_hash is not as long as it says")
        else:
            p = stop_2
    return ConsumerGroupMetadataValue(epoch_1, metadata_hash_1)


DECODE_CONSUMER_GROUP_METADATA_VALUE = {
    0: _decode_consumer_group_metadata_value_0,
}


def _encode_consumer_group_metadata_value_0(m: ConsumerGroupMetadataValue, out: bytearray) -> None:
    out += _write_i(m.epoch)
    given_1 = m.metadata_hash != 0
    out.append(given_1)
    if given_1:
        kept_2 = out
        out = bytearray()
        out += _write_q(m.metadata_hash)
        write_varint(kept_2, 0)
        write_varint(kept_2, len(out))
        kept_2 += out
        out = kept_2


ENCODE_CONSUMER_GROUP_METADATA_VALUE = {
    0: _encode_consumer_group_metadata_value_0,
}


def _decode_consumer_group_member_metadata_key_0(b: memoryview, p: int = 0) -> ConsumerGroupMemberMetadataKey:
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
    return ConsumerGroupMemberMetadataKey(group_id_1, member_id_1)


DECODE_CONSUMER_GROUP_MEMBER_METADATA_KEY = {
    0: _decode_consumer_group_member_metadata_key_0,
}


def _encode_consumer_group_member_metadata_key_0(m: ConsumerGroupMemberMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


ENCODE_CONSUMER_GROUP_MEMBER_METADATA_KEY = {
    0: _encode_consumer_group_member_metadata_key_0,
}


def _decode_consumer_group_member_metadata_value_0(b: memoryview, p: int = 0) -> ConsumerGroupMemberMetadataValue:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        instance_id_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("instance_id past the end")
        instance_id_1 = str(b[p:q], "utf-8")
        p = q
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
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        subscribed_topic_regex_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("subscribed_topic_regex past the end")
        subscribed_topic_regex_1 = str(b[p:q], "utf-8")
        p = q
    (rebalance_timeout_ms_1,) = _read_i(b, p)
    p += 4
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        server_assignor_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("server_assignor past the end")
        server_assignor_1 = str(b[p:q], "utf-8")
        p = q
    classic_member_metadata_1 = ClassicMemberMetadata()
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
            if b[p] > 127:
                classic_member_metadata_1 = None
                p += 1
            else:
                p += 1
                (session_timeout_ms_3,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("supported_protocols is null")
                if n * 3 > end - p:
                    raise fail("supported_protocols has more elements than bytes")
                supported_protocols_3 = []
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
                        raise fail("metadata is null")
                    q = p + n
                    if q > end:
                        raise fail("metadata past the end")
                    metadata_4 = bytes(b[p:q])
                    p = q
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    supported_protocols_3.append(ClassicProtocol(name_4, metadata_4))
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                classic_member_metadata_1 = ClassicMemberMetadata(session_timeout_ms_3, supported_protocols_3)
            if p != stop_2:
                raise fail("classic_member_metadata is not as long as it says")
        else:
            p = stop_2
    return ConsumerGroupMemberMetadataValue(instance_id_1, rack_id_1, client_id_1, client_host_1, subscribed_topic_names_1, subscribed_topic_regex_1, rebalance_timeout_ms_1, server_assignor_1, classic_member_metadata_1)


DECODE_CONSUMER_GROUP_MEMBER_METADATA_VALUE = {
    0: _decode_consumer_group_member_metadata_value_0,
}


def _encode_consumer_group_member_metadata_value_0(m: ConsumerGroupMemberMetadataValue, out: bytearray) -> None:
    write_compact_nullable_string(out, m.instance_id)
    write_compact_nullable_string(out, m.rack_id)
    write_compact_string(out, m.client_id)
    write_compact_string(out, m.client_host)
    each_1 = m.subscribed_topic_names
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    write_compact_nullable_string(out, m.subscribed_topic_regex)
    out += _write_i(m.rebalance_timeout_ms)
    write_compact_nullable_string(out, m.server_assignor)
    given_2 = m.classic_member_metadata != ClassicMemberMetadata()
    out.append(given_2)
    if given_2:
        kept_3 = out
        out = bytearray()
        each_4 = m.classic_member_metadata
        if each_4 is None:
            out.append(255)
        else:
            out.append(1)
            out += _write_i(each_4.session_timeout_ms)
            each_5 = each_4.supported_protocols
            write_varint(out, len(each_5) + 1)
            for each_5_m in each_5:
                write_compact_string(out, each_5_m.name)
                write_compact_bytes(out, each_5_m.metadata)
                out.append(0)
            out.append(0)
        write_varint(kept_3, 0)
        write_varint(kept_3, len(out))
        kept_3 += out
        out = kept_3


ENCODE_CONSUMER_GROUP_MEMBER_METADATA_VALUE = {
    0: _encode_consumer_group_member_metadata_value_0,
}


def _decode_consumer_group_target_assignment_metadata_key_0(b: memoryview, p: int = 0) -> ConsumerGroupTargetAssignmentMetadataKey:
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
    return ConsumerGroupTargetAssignmentMetadataKey(group_id_1)


DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = {
    0: _decode_consumer_group_target_assignment_metadata_key_0,
}


def _encode_consumer_group_target_assignment_metadata_key_0(m: ConsumerGroupTargetAssignmentMetadataKey, out: bytearray) -> None:
    write_string(out, m.group_id)


ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = {
    0: _encode_consumer_group_target_assignment_metadata_key_0,
}


def _decode_consumer_group_target_assignment_metadata_value_0(b: memoryview, p: int = 0) -> ConsumerGroupTargetAssignmentMetadataValue:
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
    return ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch_1, assignment_timestamp_1)


DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = {
    0: _decode_consumer_group_target_assignment_metadata_value_0,
}


def _encode_consumer_group_target_assignment_metadata_value_0(m: ConsumerGroupTargetAssignmentMetadataValue, out: bytearray) -> None:
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


ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = {
    0: _encode_consumer_group_target_assignment_metadata_value_0,
}


def _decode_consumer_group_target_assignment_member_key_0(b: memoryview, p: int = 0) -> ConsumerGroupTargetAssignmentMemberKey:
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
    return ConsumerGroupTargetAssignmentMemberKey(group_id_1, member_id_1)


DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = {
    0: _decode_consumer_group_target_assignment_member_key_0,
}


def _encode_consumer_group_target_assignment_member_key_0(m: ConsumerGroupTargetAssignmentMemberKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = {
    0: _encode_consumer_group_target_assignment_member_key_0,
}


def _decode_consumer_group_target_assignment_member_value_0(b: memoryview, p: int = 0) -> ConsumerGroupTargetAssignmentMemberValue:
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
    return ConsumerGroupTargetAssignmentMemberValue(topic_partitions_1)


DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = {
    0: _decode_consumer_group_target_assignment_member_value_0,
}


def _encode_consumer_group_target_assignment_member_value_0(m: ConsumerGroupTargetAssignmentMemberValue, out: bytearray) -> None:
    each_1 = m.topic_partitions
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        out.append(0)
    out.append(0)


ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = {
    0: _encode_consumer_group_target_assignment_member_value_0,
}


def _decode_consumer_group_current_member_assignment_key_0(b: memoryview, p: int = 0) -> ConsumerGroupCurrentMemberAssignmentKey:
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
    return ConsumerGroupCurrentMemberAssignmentKey(group_id_1, member_id_1)


DECODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = {
    0: _decode_consumer_group_current_member_assignment_key_0,
}


def _encode_consumer_group_current_member_assignment_key_0(m: ConsumerGroupCurrentMemberAssignmentKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.member_id)


ENCODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = {
    0: _encode_consumer_group_current_member_assignment_key_0,
}


def _decode_consumer_group_current_member_assignment_value_0(b: memoryview, p: int = 0) -> ConsumerGroupCurrentMemberAssignmentValue:
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
        assignment_epochs_2 = []
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
                    assignment_epochs_2 = None
                else:
                    if n * 4 > end - p:
                        raise fail("assignment_epochs has more elements than bytes")
                    assignment_epochs_2 = list(unpack_from(f">{n}i", b, p))
                    p += 4 * n
                if p != stop_3:
                    raise fail("assignment_epochs is not as long as it says")
            else:
                p = stop_3
        assigned_partitions_1.append(TopicPartitions(topic_id_2, partitions_2, assignment_epochs_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("partitions_pending_revocation is null")
    if n * 18 > end - p:
        raise fail("partitions_pending_revocation has more elements than bytes")
    partitions_pending_revocation_1 = []
    for _ in range(n):
        (topic_id_4,) = _read_16s(b, p)
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
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        assignment_epochs_4 = []
        n, p = read_varint(b, p)
        if n > TAGS_LIMIT:
            raise fail("too many tagged fields")
        for _ in range(n):
            tag, p = read_varint(b, p)
            n, p = read_varint(b, p)
            stop_5 = p + n
            if stop_5 > end:
                raise fail("tagged field past the end")
            if tag == 0:
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    assignment_epochs_4 = None
                else:
                    if n * 4 > end - p:
                        raise fail("assignment_epochs has more elements than bytes")
                    assignment_epochs_4 = list(unpack_from(f">{n}i", b, p))
                    p += 4 * n
                if p != stop_5:
                    raise fail("assignment_epochs is not as long as it says")
            else:
                p = stop_5
        partitions_pending_revocation_1.append(TopicPartitions(topic_id_4, partitions_4, assignment_epochs_4))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupCurrentMemberAssignmentValue(member_epoch_1, previous_member_epoch_1, state_1, assigned_partitions_1, partitions_pending_revocation_1)


DECODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = {
    0: _decode_consumer_group_current_member_assignment_value_0,
}


def _encode_consumer_group_current_member_assignment_value_0(m: ConsumerGroupCurrentMemberAssignmentValue, out: bytearray) -> None:
    out += _write_iib(m.member_epoch, m.previous_member_epoch, m.state)
    each_1 = m.assigned_partitions
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        out += pack(f">{len(each_2)}i", *each_2)
        given_3 = each_1_m.assignment_epochs != []
        out.append(given_3)
        if given_3:
            kept_4 = out
            out = bytearray()
            each_5 = each_1_m.assignment_epochs
            if each_5 is None:
                out.append(0)
            else:
                write_varint(out, len(each_5) + 1)
                out += pack(f">{len(each_5)}i", *each_5)
            write_varint(kept_4, 0)
            write_varint(kept_4, len(out))
            kept_4 += out
            out = kept_4
    each_6 = m.partitions_pending_revocation
    write_varint(out, len(each_6) + 1)
    for each_6_m in each_6:
        out += _write_16s(each_6_m.topic_id)
        each_7 = each_6_m.partitions
        write_varint(out, len(each_7) + 1)
        out += pack(f">{len(each_7)}i", *each_7)
        given_8 = each_6_m.assignment_epochs != []
        out.append(given_8)
        if given_8:
            kept_9 = out
            out = bytearray()
            each_10 = each_6_m.assignment_epochs
            if each_10 is None:
                out.append(0)
            else:
                write_varint(out, len(each_10) + 1)
                out += pack(f">{len(each_10)}i", *each_10)
            write_varint(kept_9, 0)
            write_varint(kept_9, len(out))
            kept_9 += out
            out = kept_9
    out.append(0)


ENCODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = {
    0: _encode_consumer_group_current_member_assignment_value_0,
}


def _decode_consumer_group_regular_expression_key_0(b: memoryview, p: int = 0) -> ConsumerGroupRegularExpressionKey:
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
        raise fail("regular_expression is null")
    q = p + n
    if q > end:
        raise fail("regular_expression past the end")
    regular_expression_1 = str(b[p:q], "utf-8")
    p = q
    return ConsumerGroupRegularExpressionKey(group_id_1, regular_expression_1)


DECODE_CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = {
    0: _decode_consumer_group_regular_expression_key_0,
}


def _encode_consumer_group_regular_expression_key_0(m: ConsumerGroupRegularExpressionKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    write_string(out, m.regular_expression)


ENCODE_CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = {
    0: _encode_consumer_group_regular_expression_key_0,
}


def _decode_consumer_group_regular_expression_value_0(b: memoryview, p: int = 0) -> ConsumerGroupRegularExpressionValue:
    end = len(b)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n > end - p:
        raise fail("topics has more elements than bytes")
    topics_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topics is null")
        q = p + n
        if q > end:
            raise fail("topics past the end")
        topics_1_each = str(b[p:q], "utf-8")
        p = q
        topics_1.append(topics_1_each)
    version_1, timestamp_1 = _read_qq(b, p)
    p += 16
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ConsumerGroupRegularExpressionValue(topics_1, version_1, timestamp_1)


DECODE_CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = {
    0: _decode_consumer_group_regular_expression_value_0,
}


def _encode_consumer_group_regular_expression_value_0(m: ConsumerGroupRegularExpressionValue, out: bytearray) -> None:
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    out += _write_qq(m.version, m.timestamp)
    out.append(0)


ENCODE_CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = {
    0: _encode_consumer_group_regular_expression_value_0,
}
