"""One consumer group as plain state: its members, its generation, its offsets.

    Empty ─► PreparingRebalance ─► CompletingRebalance ─► Stable
      ▲            │  ▲                    │                │
      └────────────┘  └────────────────────┴────────────────┘

*Preparing*: members are asked to join again. *Completing*: all have joined and wait
for the leader's assignment. *Dead* groups are gone from the coordinator's table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tailrace.broker.groups.consumer_group import ConsumerState
from tailrace.wire.errors import ErrorCode

TopicPartition = tuple[str, int]
Protocols = tuple[tuple[str, bytes], ...]


class GroupState(StrEnum):
    """The states of a classic group, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """One member as its leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    """The answer to JoinGroup; `members` is filled for the leader only."""

    error: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """The answer to SyncGroup."""

    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has come in one partition. `record_offset` is the place of the
    commit in `__consumer_offsets`: of two commits the later record counts."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int = -1
    record_offset: int = -1


JoinReply = Callable[[JoinAnswer], None]
SyncReply = Callable[[SyncAnswer], None]


@dataclass(slots=True)
class Member:
    """One member of a classic group. `joining` and `syncing` hold the answer it waits for."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: JoinReply | None = None
    syncing: SyncReply | None = None
    is_new: bool = False

    def metadata(self, protocol: str | None) -> bytes:
        """What this member said about itself for `protocol`."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def answer_join(self, answer: JoinAnswer) -> None:
        """Answer a waiting JoinGroup, if one waits."""
        reply, self.joining = self.joining, None
        if reply is not None:
            reply(answer)

    def answer_sync(self, answer: SyncAnswer) -> None:
        """Answer a waiting SyncGroup, if one waits."""
        reply, self.syncing = self.syncing, None
        if reply is not None:
            reply(answer)


@dataclass(slots=True)
class Group:
    """A group and everything known about it. Members keep the order they came in."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    state_changed_at: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    pending_joins: set[str] = field(default_factory=set)
    pending_syncs: set[str] = field(default_factory=set)
    # The first rebalance of an empty group waits for more members, in steps.
    first_rebalance: bool = False
    first_rebalance_remaining: float = 0.0
    member_added: bool = False
    rebalancing_since: float | None = None
    # Of a group of the server-side protocol: its members are there, not above.
    consumer: ConsumerState | None = None
    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    pending_offsets: dict[int, dict[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    # Transactional commits whose append is not yet known to have succeeded.
    appending: Counter[TopicPartition] = field(default_factory=Counter)

    @property
    def kind(self) -> str:
        """The group's protocol by Kafka's name."""
        return "classic" if self.consumer is None else "consumer"

    @property
    def label(self) -> str:
        """The group's state by Kafka's name."""
        return str(self.state) if self.consumer is None else self.consumer.label

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        return not self.pending_joins and all(
            member.joining is not None for member in self.members.values()
        )

    def common_protocols(self) -> set[str]:
        """Protocols that every member speaks."""
        spoken = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*spoken) if spoken else set()

    def select_protocol(self) -> str:
        """The common protocol that most members like best; the earlier vote wins a tie."""
        common = self.common_protocols()
        votes = Counter(
            next(name for name, _ in member.protocols if name in common)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols fits in."""
        names = list(names)
        if self.state is GroupState.EMPTY or not self.members:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and not self.common_protocols().isdisjoint(names)

    def add(self, member: Member) -> None:
        """Take `member` in; the first one leads."""
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.discard(member.member_id)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Let a member go; the longest-standing of the others leads if it was the leader."""
        member = self.members.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        if member is not None and self.static.get(member.instance_id or "") == member_id:
            del self.static[member.instance_id or ""]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, instance_id: str, new_id: str) -> Member:
        """Give the static member `instance_id` a new member id; the old one is fenced."""
        old_id = self.static[instance_id]
        member = self.members[old_id]
        member.answer_join(JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
        member.member_id = new_id
        # Rebuilt so that the member keeps its place: the order decides who leads next.
        self.members = {other.member_id: other for other in self.members.values()}
        self.static[instance_id] = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.discard(old_id)
            self.pending_syncs.add(new_id)
        if self.leader == old_id:
            self.leader = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Let someone who has joined lead; False if nobody has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((one for one in self.members.values() if one.joining is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether the caller is who it says it is."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """All members with their metadata for the chosen protocol, as the leader gets them."""
        return tuple(
            JoinedMember(one.member_id, one.instance_id, one.metadata(self.protocol))
            for one in self.members.values()
        )

    def unstable(self, key: TopicPartition) -> bool:
        """Whether a transaction still open has committed an offset for this partition."""
        return self.appending[key] > 0 or any(key in one for one in self.pending_offsets.values())
