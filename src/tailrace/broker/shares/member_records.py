"""What is kept of share groups' members: Kafka's records of share groups, beside the state.

Kinds: 10 a member's wishes, 11 the group's epoch, 14 what a member has. Null removes.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.broker.groups.consumer_records import by_topic
from tailrace.broker.journal import KeyValue
from tailrace.broker.shares.membership import Membership, ShareGroup, ShareMember
from tailrace.wire.data import decode_data, encode_versioned
from tailrace.wire.messages import share_group_records as wire

MEMBER, EPOCH, CURRENT = 10, 11, 14
KINDS = (MEMBER, EPOCH, CURRENT)
STABLE = 0


def epoch_record(group: ShareGroup) -> KeyValue:
    key = encode_versioned(
        wire.ENCODE_SHARE_GROUP_METADATA_KEY, 0, wire.ShareGroupMetadataKey(group.id), leading=EPOCH
    )
    value = wire.ShareGroupMetadataValue(group.epoch, 0)
    return key, encode_versioned(wire.ENCODE_SHARE_GROUP_METADATA_VALUE, 0, value)


def member_records(group_id: str, member_id: str, member: ShareMember | None) -> list[KeyValue]:
    """A member as it is, or its removal."""
    wishes = encode_versioned(
        wire.ENCODE_SHARE_GROUP_MEMBER_METADATA_KEY,
        0,
        wire.ShareGroupMemberMetadataKey(group_id, member_id),
        leading=MEMBER,
    )
    current = encode_versioned(
        wire.ENCODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        0,
        wire.ShareGroupCurrentMemberAssignmentKey(group_id, member_id),
        leading=CURRENT,
    )
    if member is None:
        return [(current, None), (wishes, None)]
    return [
        (
            wishes,
            encode_versioned(
                wire.ENCODE_SHARE_GROUP_MEMBER_METADATA_VALUE,
                0,
                wire.ShareGroupMemberMetadataValue(
                    member.rack_id, member.client_id, member.client_host, sorted(member.topics)
                ),
            ),
        ),
        (
            current,
            encode_versioned(
                wire.ENCODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
                0,
                wire.ShareGroupCurrentMemberAssignmentValue(
                    member.epoch,
                    member.previous_epoch,
                    STABLE,
                    [wire.TopicPartitions(*row) for row in by_topic(member.told or ())],
                ),
            ),
        ),
    ]


class Kept:
    """Members and epochs gathered from the log."""

    def __init__(self) -> None:
        self._members: dict[tuple[str, str], ShareMember] = {}
        self._epochs: dict[str, int] = {}

    def take(self, kind: int, key: bytes, value: bytes | None) -> None:
        """One record; later ones count."""
        if kind == EPOCH:
            group_id = decode_data(wire.DECODE_SHARE_GROUP_METADATA_KEY, 0, key, 2).group_id
            if value is None:
                self._epochs.pop(group_id, None)
            else:
                found = decode_data(wire.DECODE_SHARE_GROUP_METADATA_VALUE, 0, value, 2)
                self._epochs[group_id] = found.epoch
            return
        # Both kinds have the same key: group and member.
        whose = decode_data(wire.DECODE_SHARE_GROUP_MEMBER_METADATA_KEY, 0, key, 2)
        place = (whose.group_id, whose.member_id)
        if value is None:
            self._members.pop(place, None)
            return
        member = self._members.setdefault(place, ShareMember(whose.member_id))
        if kind == MEMBER:
            said = decode_data(wire.DECODE_SHARE_GROUP_MEMBER_METADATA_VALUE, 0, value, 2)
            member.rack_id, member.client_id = said.rack_id, said.client_id
            member.client_host = said.client_host
            member.topics = frozenset(said.subscribed_topic_names or ())
        else:
            has = decode_data(wire.DECODE_SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE, 0, value, 2)
            member.epoch, member.previous_epoch = has.member_epoch, has.previous_member_epoch
            member.told = _places(has.assigned_partitions)

    def restore(self, membership: Membership, now: float) -> None:
        """Let the groups be as they were."""
        for group_id, epoch in self._epochs.items():
            members = [one for (group, _), one in self._members.items() if group == group_id]
            membership.restore(group_id, epoch, members, now)


def _places(rows: Iterable[wire.TopicPartitions]) -> frozenset[tuple[bytes, int]]:
    return frozenset((bytes(row.topic_id), index) for row in rows for index in row.partitions)
