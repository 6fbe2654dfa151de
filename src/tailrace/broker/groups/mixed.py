"""Groups with members of both protocols, and the way from one to the other.

A classic group becomes a server-side one when the first member of the new protocol joins
it, and goes back when the last one has left. In between classic members are led by the
broker: their heartbeats are told to join again when something changed, a join is a step of
reconciliation, and a sync tells what they have. Nobody assigns but the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tailrace.broker.groups import consumer_records as records
from tailrace.broker.groups.assignors import Place
from tailrace.broker.groups.consumer_group import (
    ClassicSide,
    ConsumerMember,
    ConsumerState,
    MemberState,
)
from tailrace.broker.groups.consumer_membership import ConsumerMembership
from tailrace.broker.groups.embedded_protocol import (
    Subscription,
    read_assignment,
    read_subscription,
    write_assignment,
)
from tailrace.broker.groups.group import (
    Group,
    GroupState,
    JoinAnswer,
    JoinReply,
    Member,
    SyncAnswer,
    SyncReply,
)
from tailrace.broker.groups.membership import Join, Sync
from tailrace.broker.groups.records import encode_group_key, encode_group_value
from tailrace.broker.journal import KeyValue
from tailrace.wire.errors import ErrorCode

PROTOCOL_TYPE = "consumer"


class Mixed:
    """Classic requests of members of server-side groups, and both conversions."""

    def __init__(self, consumers: ConsumerMembership, new_id: Callable[[], str]) -> None:
        self._consumers = consumers
        self._new_id = new_id

    # requests

    def join(self, group: Group, state: ConsumerState, request: Join, reply: JoinReply) -> None:
        """Let a classic member in, or lead it one step on."""

        def refuse(error: ErrorCode) -> None:
            reply(JoinAnswer(error, request.member_id))

        member_id = request.member_id
        if (
            member_id not in state.members
            and len(state.members) >= self._consumers.settings.max_size
        ):
            reply(JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
            return
        if request.protocol_type != PROTOCOL_TYPE or not self._speaks(state, request):
            refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        subscription = read_subscription(request.protocols[0][1])
        if subscription is None:
            refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        if member_id == "":
            member_id = f"{request.instance_id or request.client_id}-{self._new_id()}"
            if request.instance_id is None and request.id_required:
                reply(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id))
                return
        written: list[KeyValue] = []
        member = self._find(state, request, member_id, written)
        if isinstance(member, ErrorCode):
            refuse(member)
            return
        joined = member.epoch == 0 and member_id not in state.target
        changed = _update(member, request, subscription) or joined
        if changed:
            state.wanted = None
            written.append(records.member_record(group.group_id, member))
        owned = self._places(subscription.owned)
        moved = self._consumers.advance(group, state, member, owned, written, force=changed)
        if moved or joined:
            written.append(records.current_record(group.group_id, member))
        self._consumers.wait_for_sync(group, member)
        answer = JoinAnswer(
            ErrorCode.NONE,
            member_id,
            member.epoch,
            PROTOCOL_TYPE,
            request.protocols[0][0],
        )

        def stored(error: ErrorCode) -> None:
            reply(answer if error is ErrorCode.NONE else JoinAnswer(error, member_id))

        self._consumers.store(group, written, stored)
        self._consumers.leave_to_classic(group, state)

    def sync(self, group: Group, state: ConsumerState, request: Sync, reply: SyncReply) -> None:
        """Tell a classic member what it has."""
        member = self._classic(state, request.member_id, request.instance_id)
        if isinstance(member, ErrorCode):
            reply(SyncAnswer(member))
            return
        assert member.classic is not None
        names = [name for name, _ in member.classic.protocols]
        error = ErrorCode.NONE
        if request.protocol_type not in (None, PROTOCOL_TYPE) or (
            request.protocol is not None and request.protocol != names[0]
        ):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        elif request.generation != member.epoch:
            error = ErrorCode.ILLEGAL_GENERATION
        elif state.epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._consumers.wait_for_join(group, member)
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            reply(SyncAnswer(error))
            return
        self._consumers.wait_for_classic(group, member)
        reply(
            SyncAnswer(
                ErrorCode.NONE,
                write_assignment(_named(state, member.assigned), member.classic.protocols[0][1]),
                PROTOCOL_TYPE,
                names[0],
            )
        )

    def heartbeat(
        self,
        group: Group,
        state: ConsumerState,
        member_id: str,
        instance_id: str | None,
        generation: int,
    ) -> ErrorCode:
        """Note that a classic member lives; tells it when it has to join again."""
        member = self._classic(state, member_id, instance_id)
        if isinstance(member, ErrorCode):
            return member
        if generation != member.epoch:
            return ErrorCode.ILLEGAL_GENERATION
        self._consumers.note_alive(group, member)
        waits = member.state is MemberState.UNRELEASED and bool(
            (state.target.get(member_id, frozenset()) - member.assigned)
            & state.held_by_others(member_id)
        )
        if (
            member.epoch < state.epoch
            or member.state is MemberState.UNREVOKED
            or (member.state is MemberState.UNRELEASED and not waits)
        ):
            self._consumers.wait_for_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, group: Group, state: ConsumerState, leavers: Iterable[tuple[str, str | None]]
    ) -> list[tuple[str, str | None, ErrorCode]]:
        """Let members go, of either protocol: administrators remove them this way too."""
        answers: list[tuple[str, str | None, ErrorCode]] = []
        for member_id, instance_id in leavers:
            known = member_id
            if member_id == "" and instance_id is not None:
                known = state.static.get(instance_id, "")
            error = _check_member(state, known, instance_id)
            answers.append((member_id, instance_id, error))
            if error is ErrorCode.NONE:
                self._consumers.drop(group, state, known, lambda error: None)
        return answers

    # who it is

    def _classic(
        self, state: ConsumerState, member_id: str, instance_id: str | None
    ) -> ConsumerMember | ErrorCode:
        error = _check_member(state, member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        member = state.members[member_id]
        return ErrorCode.UNKNOWN_MEMBER_ID if member.classic is None else member

    def _find(
        self, state: ConsumerState, request: Join, member_id: str, written: list[KeyValue]
    ) -> ConsumerMember | ErrorCode:
        if request.instance_id is not None:
            old_id = state.static.get(request.instance_id)
            if old_id is not None and old_id != member_id:
                if request.member_id != "":
                    return ErrorCode.FENCED_INSTANCE_ID
                return self._consumers.replace_static(
                    request.group_id, state, old_id, member_id, written
                )
            if old_id is None and request.member_id != "":
                return ErrorCode.UNKNOWN_MEMBER_ID
        member = state.members.get(member_id)
        if member is None:
            member = ConsumerMember(member_id, instance_id=request.instance_id)
            state.members[member_id] = member
            if request.instance_id is not None:
                state.static[request.instance_id] = member_id
        return member

    @staticmethod
    def _speaks(state: ConsumerState, request: Join) -> bool:
        """Whether all classic members have a protocol in common with this one."""
        common = {name for name, _ in request.protocols}
        for member in state.members.values():
            if member.classic is not None and member.member_id != request.member_id:
                common &= {name for name, _ in member.classic.protocols}
        return bool(common)

    def _places(self, named: Iterable[tuple[str, int]]) -> frozenset[Place]:
        found = []
        for name, index in named:
            known = self._consumers.catalog.look_up(name)
            if known is not None:
                found.append((known[0], index))
        return frozenset(found)

    # from one protocol to the other

    def upgrade(self, group: Group) -> list[KeyValue]:
        """Make a classic group a server-side one; what has to be written for that."""
        for one in group.members.values():
            one.answer_join(JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, one.member_id))
            one.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        state = ConsumerState(epoch=group.generation, target_epoch=group.generation)
        for one in group.members.values():
            said = read_subscription(one.metadata(group.protocol)) or Subscription(frozenset())
            places = self._places(read_assignment(one.assignment))
            member = ConsumerMember(
                one.member_id,
                instance_id=one.instance_id,
                rack_id=said.rack_id,
                client_id=one.client_id,
                client_host=one.client_host,
                rebalance_timeout_ms=one.rebalance_timeout_ms,
                topics=said.topics,
                epoch=group.generation,
                previous_epoch=group.generation,
                assigned=places,
                classic=ClassicSide(one.session_timeout_ms, one.protocols),
            )
            state.members[one.member_id] = member
            state.target[one.member_id] = places
            if one.instance_id is not None:
                state.static[one.instance_id] = one.member_id
        group.members.clear()
        group.static.clear()
        group.pending_joins.clear()
        group.pending_syncs.clear()
        group.protocol_type = group.protocol = group.leader = None
        group.consumer = state
        group.state = GroupState.STABLE
        for member in state.members.values():
            self._consumers.note_alive(group, member)
        return [
            (encode_group_key(group.group_id), None),
            *self._consumers.whole(group.group_id, state),
        ]

    def downgrade(self, group: Group) -> list[KeyValue]:
        """Make a server-side group whose members are all classic a classic one again."""
        state = group.consumer
        assert state is not None
        written: list[KeyValue] = []
        for member_id in state.members:
            written += records.removal_records(group.group_id, member_id)
        written += records.group_removal_records(group.group_id)
        self._consumers.forget(group, state)
        group.consumer = None
        group.generation = state.target_epoch  # of which the members know
        group.protocol_type = PROTOCOL_TYPE
        group.state = GroupState.STABLE
        for one in state.members.values():
            assert one.classic is not None
            like = one.classic.protocols[0][1]
            group.add(
                Member(
                    member_id=one.member_id,
                    instance_id=one.instance_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    session_timeout_ms=one.classic.session_timeout_ms,
                    rebalance_timeout_ms=one.rebalance_timeout_ms,
                    protocols=one.classic.protocols,
                    assignment=write_assignment(
                        _named(state, state.target.get(one.member_id, frozenset())), like
                    ),
                )
            )
        group.protocol = group.select_protocol()
        written.append((encode_group_key(group.group_id), encode_group_value(group)))
        return written


def _check_member(state: ConsumerState, member_id: str, instance_id: str | None) -> ErrorCode:
    """Whether the caller is who it says it is."""
    if instance_id is not None:
        known = state.static.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in state.members else ErrorCode.UNKNOWN_MEMBER_ID


def _update(member: ConsumerMember, request: Join, said: Subscription) -> bool:
    """Take over what a classic member says; whether its wishes changed."""
    before = replace(member)
    member.topics = said.topics
    member.pattern = None
    member.found = frozenset()
    member.assignor = None
    member.rack_id = said.rack_id
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.client_id, member.client_host = request.client_id, request.client_host
    member.classic = ClassicSide(request.session_timeout_ms, request.protocols)
    return (before.topics, before.pattern, before.classic is None) != (
        member.topics,
        None,
        False,
    )


def _named(state: ConsumerState, places: Iterable[Place]) -> list[tuple[str, int]]:
    names = {topic_id: name for name, topic_id, _ in state.topics}
    return [(names[topic_id], index) for topic_id, index in places if topic_id in names]
