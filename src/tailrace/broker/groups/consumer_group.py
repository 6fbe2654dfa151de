"""One group of the server-side protocol (KIP-848) as plain state.

The *group epoch* rises when members, subscriptions or topics change; a *target
assignment* is computed for it; each member is led there step by step by its own
heartbeats: first it gives up what is no longer its own, then it gets what the others
have given up. A partition is therefore never read by two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from tailrace.broker.groups.assignors import Place

LEAVE, LEAVE_FOR_NOW = -1, -2


class MemberState(IntEnum):
    """By the numbers they have in the log."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What a member that speaks the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class ConsumerMember:
    """One member: what it wants, what it has, where it is on its way."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] = frozenset()
    pattern: str | None = None
    found: frozenset[str] = frozenset()
    """Topics that the pattern matches."""
    sees: Callable[[str], bool] | None = field(default=None, compare=False, repr=False)
    """Which of them it may know of, as it last spoke; None: all, or it has not spoken yet."""
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: frozenset[Place] = frozenset()
    revoking: frozenset[Place] = frozenset()
    classic: ClassicSide | None = None
    """Of a member that speaks the classic protocol, in a group that is changing over."""

    @property
    def subscribed(self) -> frozenset[str]:
        return self.topics | self.found


@dataclass(slots=True)
class ConsumerState:
    """The part of a group that only this protocol has."""

    epoch: int = 0
    target_epoch: int = 0
    target: dict[str, frozenset[Place]] = field(default_factory=dict)
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    topics: tuple[tuple[str, bytes, int], ...] = ()
    """Name, id and partitions of every topic read, as of the last epoch."""
    topics_hash: int = 0
    """Of the topics as of the last epoch in the log: a start sees what changed meanwhile."""
    patterns_checked_at: float = 0.0
    wanted: frozenset[str] | None = None
    """Every topic somebody reads; None when it has to be gathered anew."""

    @property
    def label(self) -> str:
        """The group's state by Kafka's name."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if any(
            one.state is not MemberState.STABLE or one.epoch != self.target_epoch
            for one in self.members.values()
        ):
            return "Reconciling"
        return "Stable"

    def subscribed(self) -> frozenset[str]:
        """Every topic somebody in the group reads."""
        if self.wanted is None:
            self.wanted = frozenset().union(*(one.subscribed for one in self.members.values()))
        return self.wanted

    def held_by_others(self, member_id: str) -> set[Place]:
        """Partitions that other members have, or have not given up yet."""
        held: set[Place] = set()
        for one in self.members.values():
            if one.member_id != member_id:
                held |= one.assigned
                held |= one.revoking
        return held

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.wanted = None
        self.target.pop(member_id, None)
        if member is not None and self.static.get(member.instance_id or "") == member_id:
            del self.static[member.instance_id or ""]

    def reconcile(self, member: ConsumerMember, owned: Iterable[Place] | None) -> bool:
        """Lead `member` one step towards its target; whether anything changed.

        `owned` is what the member says it has; None if it did not say.
        """
        before = (member.epoch, member.state, member.assigned, member.revoking)
        has = None if owned is None else frozenset(owned)
        if member.state is MemberState.UNREVOKED:
            if has is None or has & member.revoking:
                return False
            # One epoch on, or to the target if nothing new has to be given up first.
            member.revoking = frozenset()
            member.previous_epoch = member.epoch
            member.epoch += 1
            self._step(member, has)
        elif member.state is MemberState.UNRELEASED or member.epoch != self.target_epoch:
            self._step(member, has)
        return before != (member.epoch, member.state, member.assigned, member.revoking)

    def _step(self, member: ConsumerMember, has: frozenset[Place] | None) -> None:
        target = self.target.get(member.member_id, frozenset())
        kept = member.assigned & target
        lost = member.assigned - target
        wanted = target - member.assigned
        taken = wanted & self.held_by_others(member.member_id)
        if lost and (has is None or has & lost):
            member.assigned, member.revoking = kept, lost
            member.state = MemberState.UNREVOKED
            return
        member.assigned = kept | (wanted - taken)
        member.revoking = frozenset()
        member.state = MemberState.UNRELEASED if taken else MemberState.STABLE
        if member.epoch != self.target_epoch:
            member.previous_epoch = member.epoch
            member.epoch = self.target_epoch
