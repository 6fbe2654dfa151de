"""Heartbeats of the server-side protocol (KIP-848).

One request does everything: it joins (epoch 0), lives on, leaves (epoch −1, or −2 for a
static member that will return). The answer leads the member to its target assignment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tailrace.broker.groups import consumer_records as records
from tailrace.broker.groups.assignors import ASSIGNORS, DEFAULT_ASSIGNOR, Place, Problem
from tailrace.broker.groups.consumer_group import (
    LEAVE,
    LEAVE_FOR_NOW,
    ConsumerMember,
    ConsumerState,
    MemberState,
)
from tailrace.broker.groups.deadlines import Deadlines
from tailrace.broker.groups.group import Group, GroupState
from tailrace.broker.groups.membership import DeadlineKey
from tailrace.broker.groups.patterns import Pattern, PatternError
from tailrace.broker.journal import KeyValue
from tailrace.clock import Clock
from tailrace.wire.errors import ErrorCode

log = logging.getLogger(__name__)

PATTERN_REFRESH_SECONDS = 2.0


class Catalog(Protocol):
    """Which topics there are."""

    def names(self) -> Iterable[str]:
        """All topics but internal ones."""

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        """Id and number of partitions; None if there is no such topic."""


class NoTopics:
    """A catalogue of nothing."""

    def names(self) -> Iterable[str]:
        return ()

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        return None


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Kafka's `group.consumer.*` settings."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    migration: str = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become a server-side one while it has members."""
        return self.migration in ("bidirectional", "upgrade")

    @property
    def downgrades(self) -> bool:
        """Whether it may go back."""
        return self.migration in ("bidirectional", "downgrade")


@dataclass(frozen=True, slots=True)
class Beat:
    """A ConsumerGroupHeartbeat request; None means "as before"."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: frozenset[Place] | None = None
    client_id: str = ""
    client_host: str = ""
    sees: Callable[[str], bool] | None = field(default=None, compare=False, repr=False)
    """With an authorizer: whether the member may know of a topic."""

    @property
    def complete(self) -> bool:
        """Whether the member said everything about itself, as after a reconnect."""
        return (
            (self.topics is not None or self.pattern is not None)
            and self.rebalance_timeout_ms != -1
            and self.owned is not None
        )


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """The answer; `assigned` is None when it has not changed."""

    error: ErrorCode
    member_id: str | None = None
    epoch: int = 0
    assigned: frozenset[Place] | None = None
    message: str | None = None


BeatReply = Callable[[BeatAnswer], None]
Append = Callable[[str, list[KeyValue], Callable[[ErrorCode], None]], None]


class ConsumerMembership:
    """The members of all server-side groups."""

    def __init__(
        self,
        settings: ConsumerSettings,
        clock: Clock,
        deadlines: Deadlines[DeadlineKey],
        catalog: Catalog,
        append: Append,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._deadlines = deadlines
        self.catalog = catalog
        self._append = append
        self.guarded = False
        """Whether there is an authorizer: members may then not know of every topic."""
        self.left_to_classic: Callable[[Group], None] = lambda group: None
        """Called when the last member of this protocol has left a group with classic ones."""

    def beat(
        self,
        group: Group,
        state: ConsumerState,
        beat: Beat,
        reply: BeatReply,
        written: list[KeyValue] | None = None,
    ) -> None:
        """Serve a heartbeat of a well-formed request; `written` is what goes before it."""
        if beat.epoch in (LEAVE, LEAVE_FOR_NOW):
            self._leave(group, state, beat, reply)
            return
        written = [] if written is None else written
        found = self._member(state, beat, written)
        if isinstance(found, BeatAnswer):
            reply(found)
            return
        member, joined = found
        changed = self._update(member, beat)
        if isinstance(changed, BeatAnswer):
            if joined:
                state.remove(member.member_id)
            reply(changed)
            return
        came_over, member.classic = member.classic is not None, None
        if joined or changed or came_over:
            state.wanted = None
            written.append(records.member_record(group.group_id, member))
        moved = self.advance(group, state, member, beat.owned, written, force=joined or changed)
        if moved or joined:
            written.append(records.current_record(group.group_id, member))
        self._wait_for(group, member, moved)
        # Kafka tells it again only to a member that says everything anew; one that holds
        # something else than it should has missed an answer.
        missed = beat.owned is not None and beat.owned != member.assigned
        tell = joined or moved or missed or beat.epoch != member.epoch or beat.complete
        answer = BeatAnswer(
            ErrorCode.NONE, member.member_id, member.epoch, member.assigned if tell else None
        )

        def stored(error: ErrorCode) -> None:
            reply(answer if error is ErrorCode.NONE else BeatAnswer(error))

        self.store(group, written, stored)

    def advance(
        self,
        group: Group,
        state: ConsumerState,
        member: ConsumerMember,
        owned: frozenset[Place] | None,
        written: list[KeyValue],
        *,
        force: bool,
    ) -> bool:
        """Begin a new epoch if need be and lead a member one step on; whether it moved."""
        self._refresh(group, state, written, force=force)
        moved = state.reconcile(member, owned)
        self._enter(group, state)
        return moved

    def store(
        self, group: Group, written: list[KeyValue], done: Callable[[ErrorCode], None]
    ) -> None:
        """Have records in the log, then call `done`."""
        if written:
            self._append(group.group_id, written, done)
        else:
            done(ErrorCode.NONE)

    def whole(self, group_id: str, state: ConsumerState) -> list[KeyValue]:
        """Everything there is to write of a group that was not of this protocol before."""
        members = list(state.members.values())
        return [
            *(records.member_record(group_id, one) for one in members),
            records.epoch_record(group_id, state),
            *records.target_records(group_id, state, list(state.members), self._clock.wall_ms()),
            *(records.current_record(group_id, one) for one in members),
        ]

    def expired(self, group: Group, state: ConsumerState, member_id: str) -> None:
        """A member was silent too long, or did not give up its partitions in time."""
        if member_id in state.members:
            self.drop(group, state, member_id, lambda error: None)

    def restore(self, group: Group, state: ConsumerState) -> None:
        """Start the clocks of a group read back from the log."""
        group.state = GroupState.STABLE if state.members else GroupState.EMPTY
        for member in state.members.values():
            self._find(member)
            if member.classic is not None:
                self.note_alive(group, member)
            else:
                self._wait_for(group, member, moved=True)
        state.wanted = None
        topics = self._topics(state)
        if records.hash_of(topics) == state.topics_hash:
            state.topics = topics

    def forget(self, group: Group, state: ConsumerState) -> None:
        for member_id in state.members:
            self._deadlines.clear(("consumer", group.group_id, member_id))
            self._deadlines.clear(("revoke", group.group_id, member_id))

    # who it is

    def _member(
        self, state: ConsumerState, beat: Beat, written: list[KeyValue]
    ) -> tuple[ConsumerMember, bool] | BeatAnswer:
        """The member, and whether it is new under this id."""
        if beat.instance_id is not None:
            static = state.static.get(beat.instance_id)
            if static is not None and static != beat.member_id:
                return self._return_of_a_static_member(state, beat, static, written)
            if static is None and beat.epoch > 0:
                return _refuse(ErrorCode.UNKNOWN_MEMBER_ID, "no such static member")
        member = state.members.get(beat.member_id)
        if member is None:
            if beat.epoch > 0:
                return _refuse(ErrorCode.UNKNOWN_MEMBER_ID, "not a member of this group")
            if len(state.members) >= self.settings.max_size:
                return _refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group is full")
            member = ConsumerMember(beat.member_id, instance_id=beat.instance_id)
            state.members[beat.member_id] = member
            if beat.instance_id is not None:
                state.static[beat.instance_id] = beat.member_id
            return member, True
        if beat.epoch == 0:
            if member.epoch == LEAVE_FOR_NOW:
                member.epoch = 0
            return member, False
        repeats = (
            beat.epoch == member.previous_epoch
            and beat.owned is not None
            and beat.owned <= member.assigned
        )
        if beat.epoch != member.epoch and not repeats:
            return _refuse(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"epoch {beat.epoch} is not the member's epoch {member.epoch}",
            )
        return member, False

    def _return_of_a_static_member(
        self, state: ConsumerState, beat: Beat, old_id: str, written: list[KeyValue]
    ) -> tuple[ConsumerMember, bool] | BeatAnswer:
        old = state.members[old_id]
        if beat.epoch > 0:
            return _refuse(ErrorCode.FENCED_INSTANCE_ID, "another member has this instance id")
        if old.epoch != LEAVE_FOR_NOW and old.classic is None:
            return _refuse(ErrorCode.UNRELEASED_INSTANCE_ID, "the instance id is still in use")
        member = self.replace_static(beat.group_id, state, old_id, beat.member_id, written)
        member.classic = None
        return member, False

    def replace_static(
        self,
        group_id: str,
        state: ConsumerState,
        old_id: str,
        new_id: str,
        written: list[KeyValue],
    ) -> ConsumerMember:
        """A static member takes over everything under its new id: nobody else notices."""
        old = state.members[old_id]
        target = state.target.pop(old_id, frozenset())
        state.remove(old_id)
        self._deadlines.clear(("consumer", group_id, old_id))
        self._deadlines.clear(("revoke", group_id, old_id))
        member = replace(
            old,
            member_id=new_id,
            epoch=0,
            previous_epoch=-1,
            state=MemberState.STABLE,
            assigned=frozenset(old.assigned),
            revoking=frozenset(),
        )
        state.members[new_id] = member
        state.static[old.instance_id or ""] = new_id
        state.target[new_id] = target
        written.extend(records.removal_records(group_id, old_id))
        written.append(records.member_record(group_id, member))
        written.extend(records.target_records(group_id, state, [new_id], self._clock.wall_ms()))
        return member

    def _leave(self, group: Group, state: ConsumerState, beat: Beat, reply: BeatReply) -> None:
        member_id = beat.member_id
        if beat.instance_id is not None:
            static = state.static.get(beat.instance_id)
            if static is None:
                reply(_refuse(ErrorCode.UNKNOWN_MEMBER_ID, "no such static member"))
                return
            if static != member_id:
                reply(_refuse(ErrorCode.FENCED_INSTANCE_ID, "another member has this instance id"))
                return
        member = state.members.get(member_id)
        if member is None:
            reply(_refuse(ErrorCode.UNKNOWN_MEMBER_ID, "not a member of this group"))
            return

        def stored(error: ErrorCode) -> None:
            gone = BeatAnswer(ErrorCode.NONE, member_id, beat.epoch)
            reply(gone if error is ErrorCode.NONE else BeatAnswer(error))

        if beat.epoch == LEAVE_FOR_NOW:
            member.previous_epoch = member.epoch
            member.epoch = LEAVE_FOR_NOW
            self._deadlines.clear(("revoke", group.group_id, member_id))
            written = [records.current_record(group.group_id, member)]
            self._append(group.group_id, written, stored)
        else:
            self.drop(group, state, member_id, stored)

    def drop(
        self,
        group: Group,
        state: ConsumerState,
        member_id: str,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """A member leaves or is dropped; its partitions are free."""
        state.remove(member_id)
        self._deadlines.clear(("consumer", group.group_id, member_id))
        self._deadlines.clear(("revoke", group.group_id, member_id))
        state.epoch += 1
        written = records.removal_records(group.group_id, member_id)
        written.append(records.epoch_record(group.group_id, state))
        self._enter(group, state)
        self._append(group.group_id, written, done)
        self.leave_to_classic(group, state)

    def leave_to_classic(self, group: Group, state: ConsumerState) -> None:
        """Give a group up that has classic members only."""
        if (
            self.settings.downgrades
            and state.members
            and all(one.classic is not None for one in state.members.values())
        ):
            self.left_to_classic(group)

    # what it wants

    def _update(self, member: ConsumerMember, beat: Beat) -> bool | BeatAnswer:
        """Take over what the member says about itself; whether its wishes changed."""
        before = (member.topics, member.pattern, member.assignor, member.rebalance_timeout_ms)
        member.sees = beat.sees
        news = beat.pattern is not None and beat.pattern != (member.pattern or "")
        refused = refusal(beat, check_pattern=news)
        if refused is not None:
            return refused
        if news:
            member.pattern = beat.pattern or None
            self._find(member)
        if beat.topics is not None:
            member.topics = beat.topics
        if beat.assignor is not None:
            member.assignor = beat.assignor
        if beat.rebalance_timeout_ms >= 0:
            member.rebalance_timeout_ms = beat.rebalance_timeout_ms
        if beat.rack_id is not None:
            member.rack_id = beat.rack_id
        member.client_id, member.client_host = beat.client_id, beat.client_host
        now = (member.topics, member.pattern, member.assignor, member.rebalance_timeout_ms)
        return before != now

    def _find(self, member: ConsumerMember, had: Container[str] = ()) -> None:
        """Look up which topics the member's pattern means today, as far as it may know of
        them; a pattern that has become too costly goes on meaning what it meant. `had` are
        the topics that are assigned to it."""
        if member.pattern is None:
            member.found = frozenset()
            return
        try:
            pattern = Pattern(member.pattern)
            found = (name for name in self.catalog.names() if pattern.matches(name))
            if member.sees is not None:
                member.found = frozenset(filter(member.sees, found))
            elif self.guarded:
                # Not heard of since a restart: nothing new is told it before it is.
                member.found = frozenset(name for name in found if name in had)
            else:
                member.found = frozenset(found)
        except PatternError as error:
            log.warning(
                "pattern of a member not followed",
                extra={"member": member.member_id, "error": str(error)},
            )

    def _refresh(
        self, group: Group, state: ConsumerState, written: list[KeyValue], *, force: bool
    ) -> None:
        """Begin a new epoch if anything changed, and compute its target."""
        now = self._clock.monotonic()
        if now - state.patterns_checked_at >= PATTERN_REFRESH_SECONDS:
            state.patterns_checked_at = now
            for member in state.members.values():
                if member.pattern is not None:
                    self._find(member, self._assigned_topics(state, member))
                    state.wanted = None
        topics = self._topics(state)
        if force or topics != state.topics:
            state.topics = topics
            state.epoch += 1
            written.append(records.epoch_record(group.group_id, state))
        if state.epoch > state.target_epoch:
            self._assign(group, state, written)

    def _assigned_topics(self, state: ConsumerState, member: ConsumerMember) -> frozenset[str]:
        if not self.guarded or member.sees is not None:
            return frozenset()
        ids = {topic_id for topic_id, _ in state.target.get(member.member_id, ())}
        known = ((name, self.catalog.look_up(name)) for name in self.catalog.names())
        return frozenset(name for name, found in known if found is not None and found[0] in ids)

    def _topics(self, state: ConsumerState) -> tuple[tuple[str, bytes, int], ...]:
        found = ((name, self.catalog.look_up(name)) for name in sorted(state.subscribed()))
        return tuple((name, *known) for name, known in found if known is not None)

    def _assign(self, group: Group, state: ConsumerState, written: list[KeyValue]) -> None:
        ids = {name: topic_id for name, topic_id, _ in state.topics}
        problem = Problem(
            topics={topic_id: count for _, topic_id, count in state.topics},
            subscriptions={
                one.member_id: frozenset(ids[name] for name in one.subscribed if name in ids)
                for one in state.members.values()
            },
            present={
                one.member_id: state.target.get(one.member_id, frozenset())
                for one in state.members.values()
            },
        )
        target = ASSIGNORS[self.assignor(state)](problem)
        changed = [one for one in target if target[one] != state.target.get(one)]
        state.target = target
        state.target_epoch = state.epoch
        written.extend(
            records.target_records(group.group_id, state, changed, self._clock.wall_ms())
        )

    @staticmethod
    def assignor(state: ConsumerState) -> str:
        """The assignor most members ask for."""
        votes = Counter(one.assignor for one in state.members.values() if one.assignor)
        if not votes:
            return DEFAULT_ASSIGNOR
        return min(votes, key=lambda name: (-votes[name], name))

    # time

    def note_alive(self, group: Group, member: ConsumerMember) -> None:
        """A classic member was heard of."""
        assert member.classic is not None
        self._deadlines.set(
            ("consumer", group.group_id, member.member_id),
            self._clock.monotonic() + member.classic.session_timeout_ms / 1000,
        )

    def wait_for_join(self, group: Group, member: ConsumerMember) -> None:
        """A classic member was told to join again: it has its rebalance time-out for that."""
        key = ("revoke", group.group_id, member.member_id)
        if key not in self._deadlines:
            self._deadlines.set(key, self._clock.monotonic() + member.rebalance_timeout_ms / 1000)

    def wait_for_sync(self, group: Group, member: ConsumerMember) -> None:
        """A classic member has joined: it must ask for its assignment."""
        self.note_alive(group, member)
        self._deadlines.set(
            ("revoke", group.group_id, member.member_id),
            self._clock.monotonic() + member.rebalance_timeout_ms / 1000,
        )

    def wait_for_classic(self, group: Group, member: ConsumerMember) -> None:
        """A classic member has its assignment: nothing is due but its heartbeats."""
        self.note_alive(group, member)
        self._deadlines.clear(("revoke", group.group_id, member.member_id))

    def _wait_for(self, group: Group, member: ConsumerMember, moved: bool) -> None:
        now = self._clock.monotonic()
        self._deadlines.set(
            ("consumer", group.group_id, member.member_id),
            now + self.settings.session_timeout_ms / 1000,
        )
        revoking = ("revoke", group.group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED:
            self._deadlines.clear(revoking)
        elif moved or revoking not in self._deadlines:
            self._deadlines.set(revoking, now + member.rebalance_timeout_ms / 1000)

    @staticmethod
    def _enter(group: Group, state: ConsumerState) -> None:
        """Keep what the rest of the coordinator looks at in step."""
        group.state = GroupState.STABLE if state.members else GroupState.EMPTY


def refusal(beat: Beat, *, check_pattern: bool = True) -> BeatAnswer | None:
    """Why a member cannot have what it wishes for; None if it can."""
    if beat.assignor is not None and beat.assignor not in ASSIGNORS:
        return _refuse(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {beat.assignor}; there are {', '.join(sorted(ASSIGNORS))}",
        )
    if check_pattern and beat.pattern:
        try:
            Pattern(beat.pattern)
        except PatternError as error:
            return _refuse(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error))
    return None


def check(beat: Beat) -> str | None:
    """What is wrong with the form of a request; None if nothing is."""
    if not beat.group_id:
        return "the group id is empty"
    if not beat.member_id:
        return "the member id is empty"
    if beat.instance_id == "" or beat.rack_id == "":
        return "an instance or rack id is empty"
    if beat.epoch < LEAVE_FOR_NOW:
        return "the member epoch is invalid"
    if beat.epoch == LEAVE_FOR_NOW and beat.instance_id is None:
        return "only static members leave for a while"
    if beat.epoch == 0:
        if beat.rebalance_timeout_ms == -1:
            return "a first request needs a rebalance time-out"
        if beat.owned is None or beat.owned:
            return "a first request owns no partitions"
        if beat.topics is None and beat.pattern is None:
            return "a first request subscribes to something"
    return None


def _refuse(error: ErrorCode, message: str) -> BeatAnswer:
    return BeatAnswer(error, message=message)
