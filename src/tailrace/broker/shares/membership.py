"""Members of share groups: who is there, what they subscribe to, what they may read.

A pure state machine. What has to be kept of a change waits in `changed` until the
coordinator has written it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from tailrace.broker.shares.assignor import Place, assign
from tailrace.wire.errors import ErrorCode

LEAVE, JOIN = -1, 0


class Catalog(Protocol):
    """Which topics there are."""

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        """Id and number of partitions."""


class ShareMember:
    __slots__ = (
        "client_host", "client_id", "due", "epoch", "id", "previous_epoch", "rack_id", "told",
        "topics",
    )  # fmt: skip

    def __init__(self, member_id: str) -> None:
        self.id = member_id
        self.epoch = 0
        self.previous_epoch = 0
        self.topics: frozenset[str] = frozenset()
        self.told: frozenset[Place] | None = None
        self.due = 0.0
        self.client_id = self.client_host = ""
        self.rack_id: str | None = None


class ShareGroup:
    __slots__ = ("epoch", "id", "known", "members", "target", "topics")

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = 0
        self.members: dict[str, ShareMember] = {}
        self.topics: frozenset[str] = frozenset()  # every topic ever subscribed to
        self.target: dict[str, frozenset[Place]] = {}
        self.known: dict[str, tuple[bytes, int] | None] | None = None
        """The topics as of the target; None when it has to be computed anew."""

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
    assigned: frozenset[Place] | None = None
    message: str | None = None


class Membership:
    """All share groups of a broker."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        session_seconds: Callable[[str], float] = lambda group: 45.0,
        most_members: int = 200,
    ) -> None:
        self._catalog = catalog
        self._session_seconds = session_seconds
        self._most_members = most_members
        self.groups: dict[str, ShareGroup] = {}
        self.changed: dict[tuple[str, str], None] = {}
        """Groups and members of which something has to be kept."""

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
                group.known = None
            member.told = None
        elif group is None or member is None:
            return BeatAnswer(ErrorCode.UNKNOWN_MEMBER_ID, message="The member is not known.")
        elif beat.epoch == LEAVE:
            self.remove(group, member.id)
            return BeatAnswer(ErrorCode.NONE, LEAVE)
        elif beat.epoch not in (member.epoch, member.previous_epoch):
            return BeatAnswer(
                ErrorCode.FENCED_MEMBER_EPOCH,
                message=f"The member's epoch is {member.epoch}, not {beat.epoch}.",
            )
        return self._serve(group, member, beat, now)

    def _serve(self, group: ShareGroup, member: ShareMember, beat: Beat, now: float) -> BeatAnswer:
        member.due = now + self._session_seconds(group.id)
        member.client_id, member.client_host = beat.client_id, beat.client_host
        member.rack_id = beat.rack_id
        if beat.topics is not None and beat.topics != member.topics:
            member.topics = beat.topics
            group.topics |= beat.topics
            group.known = None
        self._assign(group)
        missed = beat.epoch != member.epoch  # the answer with its present epoch
        if member.epoch != group.epoch:
            member.previous_epoch, member.epoch = member.epoch, group.epoch
            self.changed[group.id, member.id] = None
        assigned = group.target[member.id]
        if assigned == member.told and not missed:
            return BeatAnswer(ErrorCode.NONE, member.epoch)
        member.told = assigned
        return BeatAnswer(ErrorCode.NONE, member.epoch, assigned)

    def _assign(self, group: ShareGroup) -> None:
        """Begin a new epoch if members, subscriptions or topics have changed."""
        names = frozenset().union(*(one.topics for one in group.members.values()))
        known = {name: self._catalog.look_up(name) for name in sorted(names)}
        if group.known == known:
            return
        group.known = known
        group.epoch += 1
        group.target = assign(
            {found[0]: found[1] for found in known.values() if found is not None},
            {
                one.id: frozenset(found[0] for name in one.topics if (found := known[name]))
                for one in group.members.values()
            },
            group.target,
        )

    def assignment(self, group: ShareGroup, member: ShareMember) -> frozenset[Place]:
        """What a member should read."""
        return group.target.get(member.id, frozenset())

    def remove(self, group: ShareGroup, member_id: str) -> None:
        """A member goes; its partitions go to the others with their next heartbeats."""
        group.members.pop(member_id, None)
        group.target.pop(member_id, None)
        group.known = None
        self.changed[group.id, member_id] = None
        if not group.members:
            group.epoch += 1

    def restore(
        self, group_id: str, epoch: int, members: Iterable[ShareMember], now: float
    ) -> None:
        """A group as it was kept; its members have their session time-out to come back."""
        group = self.groups[group_id] = ShareGroup(group_id)
        group.epoch = epoch
        for member in members:
            member.due = now + self._session_seconds(group_id)
            group.members[member.id] = member
            group.target[member.id] = member.told or frozenset()
            group.topics |= member.topics

    def expired(self, now: float) -> Iterable[tuple[ShareGroup, str]]:
        """Members that have been silent for too long; they are removed."""
        for group in self.groups.values():
            for member in [each for each in group.members.values() if each.due <= now]:
                self.remove(group, member.id)
                yield group, member.id
