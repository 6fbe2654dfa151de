"""Members of share groups: who is there, what they subscribe to, what they may read.

Every member gets every partition of its topics: with one broker there is nothing to
spread, and records are shared out one by one anyway. A pure state machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tailrace.wire.errors import ErrorCode

LEAVE, JOIN = -1, 0


class Catalog(Protocol):
    """Which topics there are."""

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        """Id and number of partitions."""


class ShareMember:
    __slots__ = ("client_host", "client_id", "due", "epoch", "id", "rack_id", "told", "topics")

    def __init__(self, member_id: str) -> None:
        self.id = member_id
        self.epoch = 0
        self.topics: frozenset[str] = frozenset()
        self.told: frozenset[tuple[bytes, int]] | None = None
        self.due = 0.0
        self.client_id = self.client_host = ""
        self.rack_id: str | None = None


class ShareGroup:
    __slots__ = ("epoch", "id", "members", "topics")

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0
        self.members: dict[str, ShareMember] = {}
        self.topics: frozenset[str] = frozenset()  # every topic ever subscribed to

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"


class Beat(NamedTuple):
    group_id: str
    member_id: str
    epoch: int
    topics: frozenset[str] | None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""


class BeatAnswer(NamedTuple):
    error: ErrorCode
    epoch: int = 0
    assigned: frozenset[tuple[bytes, int]] | None = None
    message: str | None = None


class Membership:
    """All share groups of a broker."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        session_seconds: float = 45.0,
        most_members: int = 200,
    ) -> None:
        self._catalog = catalog
        self._session_seconds = session_seconds
        self._most_members = most_members
        self.groups: dict[str, ShareGroup] = {}

    def beat(self, beat: Beat, now: float) -> BeatAnswer:
        """A member's heartbeat: the first joins (epoch 0), the last leaves (−1)."""
        if not beat.group_id:
            return BeatAnswer(ErrorCode.INVALID_REQUEST, message="GroupId can't be empty.")
        if not beat.member_id:
            return BeatAnswer(ErrorCode.INVALID_REQUEST, message="MemberId can't be empty.")
        if beat.epoch < LEAVE:
            return BeatAnswer(ErrorCode.INVALID_REQUEST, message="MemberEpoch is invalid.")
        group = self.groups.get(beat.group_id)
        member = None if group is None else group.members.get(beat.member_id)
        if beat.epoch == JOIN:
            if not beat.topics and member is None:
                return BeatAnswer(
                    ErrorCode.INVALID_REQUEST,
                    message="SubscribedTopicNames must be set in first request.",
                )
            if group is None:
                group = self.groups[beat.group_id] = ShareGroup(beat.group_id)
            if member is None:
                if len(group.members) >= self._most_members:
                    return BeatAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED)
                member = group.members[beat.member_id] = ShareMember(beat.member_id)
                group.epoch += 1
            member.told = None
        elif group is None or member is None:
            return BeatAnswer(ErrorCode.UNKNOWN_MEMBER_ID, message="The member is not known.")
        elif beat.epoch == LEAVE:
            self.remove(group, member.id)
            return BeatAnswer(ErrorCode.NONE, LEAVE)
        elif beat.epoch > member.epoch or beat.epoch < member.epoch - 1:
            return BeatAnswer(
                ErrorCode.FENCED_MEMBER_EPOCH,
                message=f"The member's epoch is {member.epoch}, not {beat.epoch}.",
            )
        member.due = now + self._session_seconds
        member.client_id, member.client_host = beat.client_id, beat.client_host
        member.rack_id = beat.rack_id
        if beat.topics is not None and beat.topics != member.topics:
            member.topics = beat.topics
            group.topics |= beat.topics
            group.epoch += 1
        assigned = self.assignment(member)
        if assigned != member.told and member.told is not None:
            group.epoch += 1
        member.epoch = max(group.epoch, 1)
        if assigned == member.told:
            return BeatAnswer(ErrorCode.NONE, member.epoch)
        member.told = assigned
        return BeatAnswer(ErrorCode.NONE, member.epoch, assigned)

    def assignment(self, member: ShareMember) -> frozenset[tuple[bytes, int]]:
        found = []
        for name in member.topics:
            known = self._catalog.look_up(name)
            if known is not None:
                found += [(known[0], index) for index in range(known[1])]
        return frozenset(found)

    def remove(self, group: ShareGroup, member_id: str) -> None:
        group.members.pop(member_id, None)
        group.epoch += 1

    def expired(self, now: float) -> Iterable[tuple[ShareGroup, str]]:
        """Members that have been silent for too long; they are removed."""
        for group in self.groups.values():
            for member in [each for each in group.members.values() if each.due <= now]:
                self.remove(group, member.id)
                yield group, member.id
