"""Join, sync, heartbeat, leave: the classic group protocol.

Follows Kafka 4.3's own coordinator case by case, because clients depend on which
error they get in which state. Answers are given through the reply that came with the
request, at once or when the rebalance has got that far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tailrace.broker.groups.deadlines import Deadlines
from tailrace.broker.groups.group import (
    Group,
    GroupState,
    JoinAnswer,
    JoinReply,
    Member,
    Protocols,
    SyncAnswer,
    SyncReply,
)
from tailrace.clock import Clock
from tailrace.wire.errors import ErrorCode

NEW_MEMBER_TIMEOUT_SECONDS = 300.0

# ("session" | "pending", group, member) or ("join" | "sync", group, "")
DeadlineKey = tuple[str, str, str]
StoreGroup = Callable[[Group, Callable[[ErrorCode], None]], None]


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """Kafka's `group.*` settings, by the same names."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Join:
    """A JoinGroup request. Since version 4 a newcomer must come back with the id it was
    given (`id_required`); since version 9 a returning static leader can be told to skip
    the assignment (`can_skip_assignment`)."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    id_required: bool = True
    can_skip_assignment: bool = True


@dataclass(frozen=True, slots=True)
class Sync:
    """A SyncGroup request; `assignments` is filled by the leader only."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...] = ()


class Membership:
    """The members of all classic groups. Owns no table of groups: the coordinator does."""

    def __init__(
        self,
        settings: MembershipSettings,
        clock: Clock,
        deadlines: Deadlines[DeadlineKey],
        store: StoreGroup,
        new_id: Callable[[], str],
        stood_still: Callable[[str, float], None] = lambda group_id, seconds: None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._deadlines = deadlines
        self._store = store
        self._new_id = new_id
        self._stood_still = stood_still

    # requests

    def join(self, group: Group, request: Join, reply: JoinReply) -> None:
        """Let a consumer in, or back in; answered when the generation begins."""
        if not self._has_room(group, request.member_id):
            self._drop(group, request.member_id)
            reply(JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
        elif not group.supports(request.protocol_type, (name for name, _ in request.protocols)):
            reply(JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif request.member_id == "":
            self._join_as_unknown(group, request, reply)
        else:
            self._join_as_known(group, request, reply)

    def sync(self, group: Group, request: Sync, reply: SyncReply) -> None:
        """Hand out assignments: at once in a stable group, else when the leader has sent them."""
        error = group.check_member(request.member_id, request.instance_id)
        if error is ErrorCode.NONE and request.generation != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if error is ErrorCode.NONE and (
            (request.protocol_type is not None and request.protocol_type != group.protocol_type)
            or (request.protocol is not None and request.protocol != group.protocol)
        ):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if error is ErrorCode.NONE and group.state is GroupState.PREPARING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is ErrorCode.NONE and group.state in (GroupState.EMPTY, GroupState.DEAD):
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            reply(SyncAnswer(error))
            return
        member = group.members[request.member_id]
        if group.state is GroupState.STABLE:
            self._synced(group, member)
            self._alive(group, member)
            reply(self._assignment(group, member))
            return
        # An answer still open from an earlier try of the same member is let go.
        member.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = reply
        group.pending_syncs.discard(member.member_id)
        if request.member_id == group.leader:
            self._assign(group, dict(request.assignments))

    def heartbeat(
        self, group: Group, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Note that a member lives; tells it when it has to join again."""
        error = group.check_member(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._alive(group, group.members[member_id])
        if group.state is GroupState.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, group: Group, leavers: Iterable[tuple[str, str | None]]
    ) -> list[tuple[str, str | None, ErrorCode]]:
        """Let members go; a static one can be named by its instance id alone."""
        answers: list[tuple[str, str | None, ErrorCode]] = []
        gone = False
        for member_id, instance_id in leavers:
            if member_id == "" and instance_id is not None:
                known = group.static.get(instance_id)
                error = ErrorCode.NONE if known else ErrorCode.UNKNOWN_MEMBER_ID
            elif member_id in group.pending_joins:
                known, error = member_id, ErrorCode.NONE
            else:
                known, error = member_id, group.check_member(member_id, instance_id)
            answers.append((member_id, instance_id, error))
            if error is ErrorCode.NONE and known is not None:
                self._drop(group, known)
                gone = True
        if gone:
            self._after_removal(group)
        return answers

    def touch(self, group: Group, member_id: str) -> None:
        """A request of a member (an offset commit) counts as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None:
            self._alive(group, member)

    # time

    def session_expired(self, group: Group, member_id: str) -> None:
        """A member was silent for its session time-out."""
        member = group.members.get(member_id)
        if member is None:
            return
        if not member.is_new and (member.joining is not None or member.syncing is not None):
            return  # it waits for us; its time starts again with the answer
        self._drop(group, member_id)
        self._after_removal(group)

    def pending_expired(self, group: Group, member_id: str) -> None:
        """A consumer that was given an id never came back with it."""
        group.pending_joins.discard(member_id)
        self._after_removal(group)

    def join_expired(self, group: Group) -> None:
        """The time to join is over (or the delay of an empty group's first rebalance)."""
        if group.state is not GroupState.PREPARING:
            return
        if group.first_rebalance and group.member_added and group.first_rebalance_remaining > 0:
            group.member_added = False
            delay = min(
                self.settings.initial_rebalance_delay_ms / 1000, group.first_rebalance_remaining
            )
            group.first_rebalance_remaining -= delay
            self._deadlines.set(("join", group.group_id, ""), self._clock.monotonic() + delay)
            return
        self._complete_join(group)

    def sync_expired(self, group: Group) -> None:
        """Members that joined but never asked for their assignment are let go."""
        if group.state not in (GroupState.COMPLETING, GroupState.STABLE):
            return
        late = list(group.pending_syncs)
        for member_id in late:
            self._drop(group, member_id)
        if late:
            self._prepare(group)

    def restore(self, group: Group) -> None:
        """Start the session clocks of a group read back from the log."""
        for member in group.members.values():
            self._alive(group, member)

    def take_over(self, group: Group) -> None:
        """A group came from the server-side protocol: its members join again."""
        for member in group.members.values():
            self._alive(group, member)
        self._prepare(group)

    def forget(self, group: Group) -> None:
        """Drop every deadline of a group that goes away."""
        for member_id in group.members:
            self._deadlines.clear(("session", group.group_id, member_id))
        for member_id in group.pending_joins:
            self._deadlines.clear(("pending", group.group_id, member_id))
        self._deadlines.clear(("join", group.group_id, ""))
        self._deadlines.clear(("sync", group.group_id, ""))

    # joining

    def _has_room(self, group: Group, member_id: str) -> bool:
        limit = self.settings.max_size
        match group.state:
            case GroupState.PREPARING:
                member = group.members.get(member_id)
                if member is not None and member.joining is not None:
                    return True
                waiting = sum(1 for one in group.members.values() if one.joining is not None)
                return waiting < limit
            case GroupState.COMPLETING | GroupState.STABLE:
                return member_id in group.members or len(group.members) < limit
            case _:
                return True

    def _join_as_unknown(self, group: Group, request: Join, reply: JoinReply) -> None:
        member_id = f"{request.instance_id or request.client_id}-{self._new_id()}"
        if request.instance_id is not None:
            if request.instance_id in group.static:
                self._replace_static(group, request, member_id, reply)
            else:
                self._add(group, request, member_id, reply)
        elif request.id_required:
            group.pending_joins.add(member_id)
            self._deadlines.set(
                ("pending", group.group_id, member_id),
                self._clock.monotonic() + request.session_timeout_ms / 1000,
            )
            reply(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, request, member_id, reply)

    def _join_as_known(self, group: Group, request: Join, reply: JoinReply) -> None:
        if request.member_id in group.pending_joins and request.instance_id is None:
            self._deadlines.clear(("pending", group.group_id, request.member_id))
            self._add(group, request, request.member_id, reply)
            return
        error = group.check_member(request.member_id, request.instance_id)
        if error is not ErrorCode.NONE:
            reply(JoinAnswer(error, request.member_id))
            return
        member = group.members[request.member_id]
        same = member.protocols == request.protocols
        leads = group.leader == member.member_id
        match group.state:
            case GroupState.PREPARING:
                self._update(group, member, request, reply)
                self._maybe_complete_join(group)
            case GroupState.COMPLETING if same:
                # It did not get our first answer: give it again.
                reply(self._joined(group, member, with_members=leads))
            case GroupState.STABLE if same and not leads:
                reply(self._joined(group, member, with_members=False))
            case GroupState.COMPLETING | GroupState.STABLE:
                self._update(group, member, request, reply)
                self._prepare(group)
            case _:
                reply(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))

    def _add(self, group: Group, request: Join, member_id: str, reply: JoinReply) -> None:
        member = Member(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            joining=reply,
            is_new=True,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        if group.state is GroupState.PREPARING:
            group.member_added = True
        # The member cannot send heartbeats before it is answered; a client that is gone
        # must not hold up the group for ever either.
        self._deadlines.set(
            ("session", group.group_id, member_id),
            self._clock.monotonic() + NEW_MEMBER_TIMEOUT_SECONDS,
        )
        self._rebalance(group)

    def _update(self, group: Group, member: Member, request: Join, reply: JoinReply) -> None:
        member.answer_join(JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.client_id = request.client_id
        member.client_host = request.client_host
        member.joining = reply
        self._deadlines.clear(("session", group.group_id, member.member_id))

    def _replace_static(
        self, group: Group, request: Join, member_id: str, reply: JoinReply
    ) -> None:
        """A static member came back under a new id: no rebalance if nothing else changed."""
        assert request.instance_id is not None
        old_id = group.static[request.instance_id]
        led = group.leader == old_id
        old_leader = group.leader or ""
        self._deadlines.clear(("session", group.group_id, old_id))
        member = group.replace_static(request.instance_id, member_id)
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.client_id = request.client_id
        member.client_host = request.client_host
        match group.state:
            case GroupState.STABLE if group.select_protocol() == group.protocol:
                self._alive(group, member)
                skip = led and request.can_skip_assignment
                answer = JoinAnswer(
                    ErrorCode.NONE,
                    member_id,
                    group.generation,
                    group.protocol_type,
                    group.protocol,
                    # An older client that is told it leads would assign again: let it
                    # believe that its former self still does.
                    leader=member_id if skip else old_leader,
                    members=group.joined_members() if skip else (),
                    skip_assignment=skip,
                )

                def stored(error: ErrorCode) -> None:
                    if error is ErrorCode.NONE:
                        reply(answer)
                    else:
                        reply(JoinAnswer(error, member_id))

                self._store(group, stored)
            case GroupState.PREPARING:
                member.joining = reply
                self._maybe_complete_join(group)
            case _:
                member.joining = reply
                self._prepare(group)

    # rebalancing

    def _rebalance(self, group: Group) -> None:
        if group.state is GroupState.PREPARING:
            self._maybe_complete_join(group)
        else:
            self._prepare(group)

    def _prepare(self, group: Group) -> None:
        """Ask every member to join again."""
        if group.state is GroupState.COMPLETING:
            for member in group.members.values():
                member.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
                if member.joining is None:
                    self._alive(group, member)
        self._deadlines.clear(("sync", group.group_id, ""))
        group.pending_syncs.clear()
        group.first_rebalance = group.state is GroupState.EMPTY
        now = self._clock.monotonic()
        if group.rebalancing_since is None:
            group.rebalancing_since = now
        self._enter(group, GroupState.PREPARING)
        if not group.first_rebalance:
            self._deadlines.set(
                ("join", group.group_id, ""), now + group.rebalance_timeout_ms / 1000
            )
            self._maybe_complete_join(group)
            return
        delay = self.settings.initial_rebalance_delay_ms / 1000
        if delay <= 0:
            self._complete_join(group)
            return
        group.member_added = False
        group.first_rebalance_remaining = max(group.rebalance_timeout_ms / 1000 - delay, 0.0)
        self._deadlines.set(("join", group.group_id, ""), now + delay)

    def _maybe_complete_join(self, group: Group) -> None:
        if group.state is GroupState.PREPARING and group.all_joined and not group.first_rebalance:
            self._complete_join(group)

    def _complete_join(self, group: Group) -> None:
        """Begin the next generation with those who have joined."""
        for member in [one for one in group.members.values() if one.joining is None]:
            if member.instance_id is None:
                self._drop(group, member.member_id)
        now = self._clock.monotonic()
        if group.members and not group.elect_joined_leader():
            # Only static members that are away: wait for them once more.
            self._deadlines.set(
                ("join", group.group_id, ""), now + group.rebalance_timeout_ms / 1000
            )
            return
        self._deadlines.clear(("join", group.group_id, ""))
        group.first_rebalance = False
        group.generation += 1
        if not group.members:
            group.protocol = None
            group.leader = None
            self._enter(group, GroupState.EMPTY)
            self._settled(group)
            self._store(group, lambda error: None)
            return
        group.protocol = group.select_protocol()
        self._enter(group, GroupState.COMPLETING)
        group.pending_syncs = set(group.members)
        self._deadlines.set(("sync", group.group_id, ""), now + group.rebalance_timeout_ms / 1000)
        for member in list(group.members.values()):
            member.is_new = False
            leads = member.member_id == group.leader
            member.answer_join(self._joined(group, member, with_members=leads))
            self._alive(group, member)

    def _assign(self, group: Group, assignments: dict[str, bytes]) -> None:
        """The leader has spoken: write the generation down, then tell everybody."""
        generation = group.generation
        before = {one.member_id: one.assignment for one in group.members.values()}
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")

        def stored(error: ErrorCode) -> None:
            if group.state is not GroupState.COMPLETING or group.generation != generation:
                return  # another rebalance has begun meanwhile
            if error is not ErrorCode.NONE:
                for member in group.members.values():
                    member.assignment = before.get(member.member_id, b"")
                    member.answer_sync(SyncAnswer(error))
                self._prepare(group)
                return
            self._enter(group, GroupState.STABLE)
            self._settled(group)
            for member in list(group.members.values()):
                if member.syncing is not None:
                    self._alive(group, member)
                    member.answer_sync(self._assignment(group, member))
            if not group.pending_syncs:
                self._deadlines.clear(("sync", group.group_id, ""))

        self._store(group, stored)

    def _synced(self, group: Group, member: Member) -> None:
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._deadlines.clear(("sync", group.group_id, ""))

    # pieces

    def _drop(self, group: Group, member_id: str) -> None:
        """Take a member out and tell it, if it waits, that it is unknown."""
        group.pending_joins.discard(member_id)
        self._deadlines.clear(("session", group.group_id, member_id))
        self._deadlines.clear(("pending", group.group_id, member_id))
        member = group.remove(member_id)
        if member is not None:
            member.answer_join(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            member.answer_sync(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))

    def _after_removal(self, group: Group) -> None:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING):
            self._prepare(group)
        elif group.state is GroupState.PREPARING:
            self._maybe_complete_join(group)

    def _alive(self, group: Group, member: Member) -> None:
        self._deadlines.set(
            ("session", group.group_id, member.member_id),
            self._clock.monotonic() + member.session_timeout_ms / 1000,
        )

    def _enter(self, group: Group, state: GroupState) -> None:
        group.state = state
        group.state_changed_at = self._clock.wall_ms()

    def _settled(self, group: Group) -> None:
        if group.rebalancing_since is not None:
            self._stood_still(group.group_id, self._clock.monotonic() - group.rebalancing_since)
            group.rebalancing_since = None

    @staticmethod
    def _joined(group: Group, member: Member, *, with_members: bool) -> JoinAnswer:
        return JoinAnswer(
            ErrorCode.NONE,
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or "",
            group.joined_members() if with_members else (),
        )

    @staticmethod
    def _assignment(group: Group, member: Member) -> SyncAnswer:
        return SyncAnswer(ErrorCode.NONE, member.assignment, group.protocol_type, group.protocol)
