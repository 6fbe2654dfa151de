"""The records of `__consumer_offsets`, byte for byte as Kafka writes them.

Key: int16 kind (0 and 1: a committed offset, 2: a classic group), then the fields.
Value: int16 version, then the fields; null removes. Older versions are read, the one
Kafka 4.3 writes by default is written: 3 for both.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tailrace.broker.groups.group import CommittedOffset, Group, GroupState, Member
from tailrace.wire.errors import DecodeError
from tailrace.wire.messages import group_records as wire

OFFSET_KINDS = (0, 1)
GROUP_KIND = 2
VERSION = 3
EXPIRING_OFFSET_VERSION = 1

_SHORT = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Whose offset, of which partition."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Which group."""

    group_id: str


def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    out = bytearray(_SHORT.pack(1))
    wire.ENCODE_OFFSET_COMMIT_KEY[0](wire.OffsetCommitKey(group_id, topic, partition), out)
    return bytes(out)


def encode_offset_value(committed: CommittedOffset) -> bytes:
    # Only version 1 can say when an offset expires by itself (retention_time_ms of old clients).
    version = VERSION if committed.expires_at < 0 else EXPIRING_OFFSET_VERSION
    out = bytearray(_SHORT.pack(version))
    value = wire.OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.committed_at,
        expire_timestamp=committed.expires_at,
    )
    wire.ENCODE_OFFSET_COMMIT_VALUE[version](value, out)
    return bytes(out)


def encode_group_key(group_id: str) -> bytes:
    out = bytearray(_SHORT.pack(GROUP_KIND))
    wire.ENCODE_GROUP_METADATA_KEY[0](wire.GroupMetadataKey(group_id), out)
    return bytes(out)


def encode_group_value(group: Group) -> bytes:
    """The generation as it stands: members with their subscriptions and assignments."""
    members = [
        wire.MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol),
            assignment=member.assignment,
        )
        for member in group.members.values()
    ]
    value = wire.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.state_changed_at,
        members=members,
    )
    out = bytearray(_SHORT.pack(VERSION))
    wire.ENCODE_GROUP_METADATA_VALUE[VERSION](value, out)
    return bytes(out)


def kind_of(key: bytes) -> int:
    """The kind of record a key belongs to."""
    return int(_SHORT.unpack_from(key)[0])


def decode_key(key: bytes) -> OffsetKey | GroupKey | None:
    """What a record is about; None for kinds of newer protocols."""
    (kind,) = _SHORT.unpack_from(key)
    view = memoryview(key)
    if kind in OFFSET_KINDS:
        offset_key = wire.DECODE_OFFSET_COMMIT_KEY[0](view, 2)
        return OffsetKey(offset_key.group, offset_key.topic, offset_key.partition)
    if kind == GROUP_KIND:
        return GroupKey(wire.DECODE_GROUP_METADATA_KEY[0](view, 2).group)
    return None


def decode_offset_value(value: bytes, record_offset: int) -> CommittedOffset:
    decode = wire.DECODE_OFFSET_COMMIT_VALUE.get(_version(value))
    if decode is None:
        raise DecodeError(f"offset record in unknown version {_version(value)}")
    found = decode(memoryview(value), 2)
    return CommittedOffset(
        offset=found.offset,
        leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        committed_at=found.commit_timestamp,
        expires_at=found.expire_timestamp,
        record_offset=record_offset,
    )


def decode_group_value(group: Group, value: bytes) -> None:
    """Bring `group` to the generation in `value`, keeping its offsets."""
    decode = wire.DECODE_GROUP_METADATA_VALUE.get(_version(value))
    if decode is None:
        raise DecodeError(f"group record in unknown version {_version(value)}")
    found = decode(memoryview(value), 2)
    group.generation = found.generation
    group.protocol_type = found.protocol_type or None
    group.protocol = found.protocol
    group.leader = None
    group.members.clear()
    group.static.clear()
    for one in found.members:
        group.add(
            Member(
                member_id=one.member_id,
                instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                session_timeout_ms=one.session_timeout,
                rebalance_timeout_ms=(
                    one.rebalance_timeout if one.rebalance_timeout >= 0 else one.session_timeout
                ),
                protocols=((found.protocol or "", bytes(one.subscription)),),
                assignment=bytes(one.assignment),
            )
        )
    group.leader = found.leader
    group.state = GroupState.STABLE if group.members else GroupState.EMPTY
    group.state_changed_at = found.current_state_timestamp


def _version(value: bytes) -> int:
    (version,) = _SHORT.unpack_from(value)
    return int(version)
