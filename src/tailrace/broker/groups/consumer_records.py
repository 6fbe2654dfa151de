"""The records of server-side groups in `__consumer_offsets`, Kafka's own schemas.

Kinds: 3 the group's epoch, 5 a member's wishes, 6 the epoch of the target, 7 a member's
target, 8 what a member has. Null removes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

from tailrace.broker.groups.assignors import Place
from tailrace.broker.groups.consumer_group import (
    ClassicSide,
    ConsumerMember,
    ConsumerState,
    MemberState,
)
from tailrace.broker.journal import KeyValue
from tailrace.wire.messages import group_records as wire

EPOCH, MEMBER, TARGET_EPOCH, TARGET, CURRENT = 3, 5, 6, 7, 8
KINDS = (EPOCH, MEMBER, TARGET_EPOCH, TARGET, CURRENT)

_SHORT = struct.Struct(">h")
_KEYS: dict[int, tuple[Any, Any, type[Any]]] = {
    EPOCH: (
        wire.ENCODE_CONSUMER_GROUP_METADATA_KEY,
        wire.DECODE_CONSUMER_GROUP_METADATA_KEY,
        wire.ConsumerGroupMetadataKey,
    ),
    MEMBER: (
        wire.ENCODE_CONSUMER_GROUP_MEMBER_METADATA_KEY,
        wire.DECODE_CONSUMER_GROUP_MEMBER_METADATA_KEY,
        wire.ConsumerGroupMemberMetadataKey,
    ),
    TARGET_EPOCH: (
        wire.ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        wire.DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        wire.ConsumerGroupTargetAssignmentMetadataKey,
    ),
    TARGET: (
        wire.ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        wire.DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        wire.ConsumerGroupTargetAssignmentMemberKey,
    ),
    CURRENT: (
        wire.ENCODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        wire.DECODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        wire.ConsumerGroupCurrentMemberAssignmentKey,
    ),
}


def key(kind: int, group_id: str, member_id: str | None = None) -> bytes:
    """The key of a record about a group or one of its members."""
    encode, _, message = _KEYS[kind]
    out = bytearray(_SHORT.pack(kind))
    encode[0](message(group_id) if member_id is None else message(group_id, member_id), out)
    return bytes(out)


def decode_key(data: bytes) -> tuple[int, str, str]:
    """Kind, group and member ("" where there is none)."""
    (kind,) = _SHORT.unpack_from(data)
    found = _KEYS[kind][1][0](memoryview(data), 2)
    return kind, found.group_id, getattr(found, "member_id", "")


def epoch_record(group_id: str, state: ConsumerState) -> KeyValue:
    value = wire.ConsumerGroupMetadataValue(state.epoch, hash_of(state.topics))
    return key(EPOCH, group_id), _value(wire.ENCODE_CONSUMER_GROUP_METADATA_VALUE, value)


def member_record(group_id: str, member: ConsumerMember) -> KeyValue:
    value = wire.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None
        if member.classic is None
        else wire.ClassicMemberMetadata(
            member.classic.session_timeout_ms,
            [wire.ClassicProtocol(*pair) for pair in member.classic.protocols],
        ),
    )
    encoded = _value(wire.ENCODE_CONSUMER_GROUP_MEMBER_METADATA_VALUE, value)
    return key(MEMBER, group_id, member.member_id), encoded


def target_records(
    group_id: str, state: ConsumerState, changed: Iterable[str], now_ms: int
) -> list[KeyValue]:
    """The targets of the members in `changed`, then the epoch they belong to."""
    records: list[KeyValue] = []
    for member_id in changed:
        places = state.target.get(member_id)
        encoded = None
        if places is not None:
            encoded = _value(
                wire.ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
                wire.ConsumerGroupTargetAssignmentMemberValue(
                    [wire.TopicPartition(*row) for row in by_topic(places)]
                ),
            )
        records.append((key(TARGET, group_id, member_id), encoded))
    value = wire.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=state.target_epoch, assignment_timestamp=now_ms
    )
    encoded = _value(wire.ENCODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE, value)
    records.append((key(TARGET_EPOCH, group_id), encoded))
    return records


def current_record(group_id: str, member: ConsumerMember) -> KeyValue:
    value = wire.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=[
            wire.TopicPartitions(*row, assignment_epochs=[member.epoch] * len(row[1]))
            for row in by_topic(member.assigned)
        ],
        partitions_pending_revocation=[
            wire.TopicPartitions(*row, assignment_epochs=[member.epoch] * len(row[1]))
            for row in by_topic(member.revoking)
        ],
    )
    encoded = _value(wire.ENCODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE, value)
    return key(CURRENT, group_id, member.member_id), encoded


def removal_records(group_id: str, member_id: str) -> list[KeyValue]:
    """Everything about a member goes."""
    return [(key(kind, group_id, member_id), None) for kind in (CURRENT, TARGET, MEMBER)]


def group_removal_records(group_id: str) -> list[KeyValue]:
    """What is left of an empty group goes."""
    return [(key(kind, group_id), None) for kind in (TARGET_EPOCH, EPOCH)]


def replay(state: ConsumerState, kind: int, member_id: str, value: bytes | None) -> None:
    """Bring `state` up to one record."""
    view = None if value is None else memoryview(value)
    match kind:
        case 3 if view is not None:
            group = wire.DECODE_CONSUMER_GROUP_METADATA_VALUE[0](view, 2)
            state.epoch, state.topics_hash = group.epoch, group.metadata_hash
        case 6 if view is not None:
            decode = wire.DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE[0]
            state.target_epoch = decode(view, 2).assignment_epoch
        case 5 if view is None:
            state.remove(member_id)
        case 5 if view is not None:
            found = wire.DECODE_CONSUMER_GROUP_MEMBER_METADATA_VALUE[0](view, 2)
            member = state.members.setdefault(member_id, ConsumerMember(member_id))
            member.instance_id = found.instance_id
            member.rack_id = found.rack_id
            member.client_id = found.client_id
            member.client_host = found.client_host
            member.topics = frozenset(found.subscribed_topic_names or ())
            member.pattern = found.subscribed_topic_regex or None
            member.rebalance_timeout_ms = found.rebalance_timeout_ms
            member.assignor = found.server_assignor
            told = found.classic_member_metadata
            member.classic = None
            if told is not None:
                member.classic = ClassicSide(
                    told.session_timeout_ms,
                    tuple((one.name, bytes(one.metadata)) for one in told.supported_protocols),
                )
            if found.instance_id is not None:
                state.static[found.instance_id] = member_id
        case 7 if view is None:
            state.target.pop(member_id, None)
        case 7 if view is not None:
            target = wire.DECODE_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE[0](view, 2)
            state.target[member_id] = _places(target.topic_partitions)
        case 8 if view is not None and member_id in state.members:
            current = wire.DECODE_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE[0](view, 2)
            member = state.members[member_id]
            member.epoch = current.member_epoch
            member.previous_epoch = current.previous_member_epoch
            member.state = MemberState(current.state)
            member.assigned = _places(current.assigned_partitions)
            member.revoking = _places(current.partitions_pending_revocation)
        case _:
            pass


def hash_of(topics: tuple[tuple[str, bytes, int], ...]) -> int:
    """A number that changes when a topic that is read comes, goes or grows."""
    return zlib.crc32(repr(topics).encode())


def by_topic(places: Iterable[Place]) -> list[tuple[bytes, list[int]]]:
    """Topic ids with their partitions, in order."""
    topics: dict[bytes, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    return list(topics.items())


def _places(rows: Iterable[Any]) -> frozenset[Place]:
    return frozenset((bytes(row.topic_id), index) for row in rows for index in row.partitions)


def _value(encode: Any, message: Any) -> bytes:
    out = bytearray(_SHORT.pack(0))
    encode[0](message, out)
    return bytes(out)
