"""The group coordinator: every group of this broker.

A group's records live in one partition of `__consumer_offsets`; a partition is read
the first time one of its groups is asked for, so a broker with a long history starts
at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tailrace.broker.groups import consumer_records, records
from tailrace.broker.groups.consumer_group import ConsumerState
from tailrace.broker.groups.consumer_membership import (
    Beat,
    BeatAnswer,
    BeatReply,
    Catalog,
    ConsumerMembership,
    ConsumerSettings,
    NoTopics,
    check,
    refusal,
)
from tailrace.broker.groups.deadlines import Deadlines
from tailrace.broker.groups.group import (
    CommittedOffset,
    Group,
    GroupState,
    JoinAnswer,
    JoinReply,
    SyncAnswer,
    SyncReply,
    TopicPartition,
)
from tailrace.broker.groups.membership import (
    DeadlineKey,
    Join,
    Membership,
    MembershipSettings,
    Sync,
)
from tailrace.broker.groups.mixed import Mixed
from tailrace.broker.groups.offsets import (
    Commit,
    CommitReply,
    Offsets,
    OffsetSettings,
    check_commit,
    error_of,
    subscribed_topics,
)
from tailrace.broker.journal import EndMarker, Entry, Journal, KeyValue, partition_of
from tailrace.clock import Clock
from tailrace.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """All settings of the coordinator."""

    membership: MembershipSettings = field(default_factory=MembershipSettings)
    offsets: OffsetSettings = field(default_factory=OffsetSettings)
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """One member as DescribeGroups shows it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """One group as DescribeGroups shows it; an unknown one is Dead."""

    group_id: str
    state: GroupState
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupCoordinator:
    """Groups and their offsets, as a state machine over requests and time."""

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        journal: Journal,
        *,
        catalog: Catalog | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        stood_still: Callable[[str, float], None] = lambda group_id, seconds: None,
        may_expire: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_expire` says whether the wall clock can be trusted to delete by."""
        self._may_expire = may_expire
        self._settings = settings
        self._clock = clock
        self._journal = journal
        self._groups: dict[str, Group] = {}
        self._loaded: set[int] = set()
        self._deadlines: Deadlines[DeadlineKey] = Deadlines()
        self._membership = Membership(
            settings.membership, clock, self._deadlines, self._store, new_id, stood_still
        )
        self.consumers = ConsumerMembership(
            settings.consumer, clock, self._deadlines, catalog or NoTopics(), self._append
        )
        self._mixed = Mixed(self.consumers, new_id)
        self.consumers.left_to_classic = self._downgrade
        self._offsets = Offsets(settings.offsets, clock, journal)
        self._expiry_due = clock.monotonic() + settings.offsets.check_interval_ms / 1000

    def change_settings(self, settings: GroupSettings) -> None:
        """Take other settings from now on."""
        self._settings = settings
        self._membership.settings = settings.membership
        self.consumers.settings = settings.consumer
        self._offsets.settings = settings.offsets

    # membership

    def join(self, request: Join, reply: JoinReply) -> None:
        limits = self._settings.membership
        if request.group_id == "":
            reply(JoinAnswer(ErrorCode.INVALID_GROUP_ID, request.member_id))
            return
        timeout = request.session_timeout_ms
        if not limits.min_session_timeout_ms <= timeout <= limits.max_session_timeout_ms:
            reply(JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
            return
        group = self.group(request.group_id)
        if group is None:
            if request.member_id != "":
                reply(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                return
            group = self._create(request.group_id)
        if group.consumer is not None:
            if group.consumer.members:
                self._mixed.join(group, group.consumer, request, reply)
                return
            self._leave_server_side(group)
        self._membership.join(group, request, reply)

    def sync(self, request: Sync, reply: SyncReply) -> None:
        group = self.group(request.group_id)
        if request.group_id == "":
            reply(SyncAnswer(ErrorCode.INVALID_GROUP_ID))
        elif group is None:
            reply(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        elif group.consumer is not None:
            self._mixed.sync(group, group.consumer, request, reply)
        else:
            self._membership.sync(group, request, reply)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        if group_id == "":
            return ErrorCode.INVALID_GROUP_ID
        group = self.group(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.consumer is not None:
            return self._mixed.heartbeat(group, group.consumer, member_id, instance_id, generation)
        return self._membership.heartbeat(group, member_id, instance_id, generation)

    def leave(
        self, group_id: str, leavers: Iterable[tuple[str, str | None]]
    ) -> tuple[ErrorCode, list[tuple[str, str | None, ErrorCode]]]:
        """The error of the whole request, and one for each leaver."""
        if group_id == "":
            return ErrorCode.INVALID_GROUP_ID, []
        group = self.group(group_id)
        if group is None:
            return ErrorCode.NONE, [(*leaver, ErrorCode.UNKNOWN_MEMBER_ID) for leaver in leavers]
        if group.consumer is not None:
            return ErrorCode.NONE, self._mixed.leave(group, group.consumer, leavers)
        answers = self._membership.leave(group, leavers)
        self._drop_if_never_used(group)
        return ErrorCode.NONE, answers

    def beat(self, beat: Beat, reply: BeatReply) -> None:
        """A heartbeat of the server-side protocol."""
        problem = check(beat)
        if problem is not None:
            reply(BeatAnswer(ErrorCode.INVALID_REQUEST, message=problem))
            return
        group = self.group(beat.group_id)
        if group is None:
            if beat.epoch != 0:
                reply(BeatAnswer(ErrorCode.GROUP_ID_NOT_FOUND, message="there is no such group"))
                return
            group = self._create(beat.group_id)
        written: list[KeyValue] = []
        if group.consumer is None:
            if group.members:
                problem = self._why_classic(group, beat)
                if problem is not None:
                    reply(BeatAnswer(ErrorCode.GROUP_ID_NOT_FOUND, message=problem))
                    return
                refused = refusal(beat)
                if refused is not None:
                    reply(refused)
                    return
                self._membership.forget(group)
                written = self._mixed.upgrade(group)
            else:
                self._become_server_side(group)
        assert group.consumer is not None
        self.consumers.beat(group, group.consumer, beat, reply, written)

    # offsets

    def commit(self, commit: Commit, reply: CommitReply) -> None:
        group = self.group(commit.group_id)
        if group is None:
            if commit.generation >= 0:
                reply(_all(commit, ErrorCode.GROUP_ID_NOT_FOUND))
                return
            group = self._create(commit.group_id)
        error = check_commit(group, commit)
        if error is not ErrorCode.NONE:
            reply(_all(commit, error))
            return
        self._membership.touch(group, commit.member_id)
        self._offsets.commit(group, self._home(commit.group_id), commit, reply)

    def fetch(
        self, group_id: str, wanted: Iterable[TopicPartition] | None, require_stable: bool = False
    ) -> dict[TopicPartition, tuple[ErrorCode, CommittedOffset]]:
        group = self.group(group_id)
        doubtful_before = self._journal.doubtful_before(self._home(group_id))
        return self._offsets.fetch(group, wanted, require_stable, doubtful_before)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether a member of a server-side group that asks for offsets is up to date."""
        group = self.group(group_id)
        if group is None or group.consumer is None or (member_id is None and epoch < 0):
            return ErrorCode.NONE
        member = group.consumer.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.epoch == epoch:
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH

    def delete_offsets(
        self,
        group_id: str,
        wanted: Iterable[TopicPartition],
        reply: Callable[[ErrorCode, dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Forget offsets of topics that nobody in the group reads."""
        group = self.group(group_id)
        if group is None:
            reply(ErrorCode.GROUP_ID_NOT_FOUND, {})
            return
        served = group.consumer is not None or group.protocol_type == "consumer"
        if group.state is not GroupState.EMPTY and not served:
            reply(ErrorCode.NON_EMPTY_GROUP, {})
            return
        subscribed = subscribed_topics(group)
        if group.state is not GroupState.EMPTY and subscribed is None:
            # The subscriptions are being settled: refuse all, as Kafka does for unknown ones.
            subscribed = {topic for topic, _ in group.offsets}
        answers = {
            key: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if subscribed and key[0] in subscribed
            else ErrorCode.NONE
            for key in wanted
        }
        allowed = [key for key, error in answers.items() if error is ErrorCode.NONE]

        def done(error: ErrorCode) -> None:
            reply(error, answers if error is ErrorCode.NONE else {})

        self._offsets.delete(group, self._home(group_id), allowed, done)

    def end_transaction(self, partition: int, producer_id: int, commit: bool) -> None:
        """A marker was written to `partition`: settle what was committed under it."""
        if partition not in self._loaded:
            return
        for group in list(self._groups.values()):
            if producer_id in group.pending_offsets and self._home(group.group_id) == partition:
                self._offsets.end_transaction(group, producer_id, commit)

    # administration

    def group(self, group_id: str) -> Group | None:
        """The group, read from the log if need be; None if there is none."""
        self._load(self._home(group_id))
        return self._groups.get(group_id)

    def groups(self) -> list[Group]:
        """All groups there are."""
        for partition in range(self._journal.partitions):
            self._load(partition)
        return list(self._groups.values())

    def describe(self, group_id: str) -> DescribedGroup:
        group = self.group(group_id)
        if group is None or group.consumer is not None:
            return DescribedGroup(group_id, GroupState.DEAD)
        stable = group.state is GroupState.STABLE
        members = tuple(
            DescribedMember(
                one.member_id,
                one.instance_id,
                one.client_id,
                one.client_host,
                one.metadata(group.protocol) if stable else b"",
                one.assignment,
            )
            for one in group.members.values()
        )
        return DescribedGroup(
            group_id,
            group.state,
            group.protocol_type or "",
            (group.protocol or "") if stable else "",
            members,
        )

    def delete(self, group_id: str, reply: Callable[[ErrorCode], None]) -> None:
        """Remove an empty group with all its offsets."""
        group = self.group(group_id)
        if group is None:
            reply(ErrorCode.GROUP_ID_NOT_FOUND)
        elif group.state is not GroupState.EMPTY:
            reply(ErrorCode.NON_EMPTY_GROUP)
        else:
            self._remove(group, reply)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: its committed offsets go too."""
        for group in self.groups():
            gone = [key for key in group.offsets if key[0] == topic]
            if gone:
                self._offsets.delete(group, self._home(group.group_id), gone, lambda error: None)

    # time

    def next_due(self) -> float:
        """When `tick` has something to do next, in monotonic seconds."""
        due = self._deadlines.next_due()
        return self._expiry_due if due is None else min(due, self._expiry_due)

    def tick(self) -> None:
        """Do what has become due."""
        now = self._clock.monotonic()
        for kind, group_id, member_id in self._deadlines.expired(now):
            group = self._groups.get(group_id)
            if group is None:
                continue
            match kind:
                case "session":
                    self._membership.session_expired(group, member_id)
                case "pending":
                    self._membership.pending_expired(group, member_id)
                    self._drop_if_never_used(group)
                case "join":
                    self._membership.join_expired(group)
                case "consumer" | "revoke":
                    if group.consumer is not None:
                        self.consumers.expired(group, group.consumer, member_id)
                case _:
                    self._membership.sync_expired(group)
        if now >= self._expiry_due:
            self._expiry_due = now + self._settings.offsets.check_interval_ms / 1000
            if self._may_expire():
                self._expire_offsets()

    # pieces

    def _home(self, group_id: str) -> int:
        return partition_of(group_id, self._journal.partitions)

    def _create(self, group_id: str) -> Group:
        group = Group(group_id, state_changed_at=self._clock.wall_ms())
        self._groups[group_id] = group
        return group

    def _store(self, group: Group, done: Callable[[ErrorCode], None]) -> None:
        def appended(result: int | Exception) -> None:
            done(error_of(result) if isinstance(result, Exception) else ErrorCode.NONE)

        record = (records.encode_group_key(group.group_id), records.encode_group_value(group))
        self._journal.append(self._home(group.group_id), [record], appended)

    def _append(
        self, group_id: str, written: list[KeyValue], done: Callable[[ErrorCode], None]
    ) -> None:
        def appended(result: int | Exception) -> None:
            done(error_of(result) if isinstance(result, Exception) else ErrorCode.NONE)

        self._journal.append(self._home(group_id), written, appended)

    def _why_classic(self, group: Group, beat: Beat) -> str | None:
        """Why a group with classic members cannot change over now; None if it can."""
        settings = self._settings.consumer
        if beat.epoch != 0:
            return f"group {group.group_id} is not a consumer group"
        if not settings.upgrades:
            return f"group {group.group_id} is classic, and online upgrades are off"
        if group.protocol_type != "consumer":
            return f"the members of {group.group_id} are no consumers"
        if len(group.members) >= settings.max_size:
            return f"group {group.group_id} is too large"
        return None

    def _downgrade(self, group: Group) -> None:
        """The last member of the newer protocol has left: the others go on by themselves."""
        self._append(group.group_id, self._mixed.downgrade(group), lambda error: None)
        self._membership.take_over(group)

    def _become_server_side(self, group: Group) -> None:
        """An empty group goes over to the newer protocol and keeps its offsets."""
        if group.generation > 0:
            self._append(
                group.group_id,
                [(records.encode_group_key(group.group_id), None)],
                lambda error: None,
            )
        self._membership.forget(group)
        group.consumer = ConsumerState(epoch=group.generation, target_epoch=group.generation)
        group.protocol_type = group.protocol = group.leader = None

    def _leave_server_side(self, group: Group) -> None:
        """An empty group goes back to the classic protocol and keeps its offsets."""
        assert group.consumer is not None
        self._append(
            group.group_id,
            consumer_records.group_removal_records(group.group_id),
            lambda error: None,
        )
        group.generation = group.consumer.epoch
        group.consumer = None

    def _remove(self, group: Group, reply: Callable[[ErrorCode], None]) -> None:
        tombstones: list[KeyValue] = [
            (records.encode_offset_key(group.group_id, *key), None) for key in group.offsets
        ]
        if group.consumer is not None:
            tombstones.extend(consumer_records.group_removal_records(group.group_id))
        else:
            tombstones.append((records.encode_group_key(group.group_id), None))
        self._membership.forget(group)
        group.state = GroupState.DEAD
        self._groups.pop(group.group_id, None)

        def done(result: int | Exception) -> None:
            if isinstance(result, Exception):
                group.state = GroupState.EMPTY
                self._groups.setdefault(group.group_id, group)
                reply(error_of(result))
            else:
                reply(ErrorCode.NONE)

        self._journal.append(self._home(group.group_id), tombstones, done)

    def _drop_if_never_used(self, group: Group) -> None:
        """A group that only ever handed out a member id leaves nothing behind."""
        if (
            group.state is GroupState.EMPTY
            and group.generation == 0
            and not (group.members or group.pending_joins)
            and not (group.offsets or group.pending_offsets or +group.appending)
        ):
            self._membership.forget(group)
            self._groups.pop(group.group_id, None)

    def _expire_offsets(self) -> None:
        for group in self.groups():
            gone = self._offsets.expired(group)
            if gone:
                self._offsets.delete(group, self._home(group.group_id), gone, lambda error: None)
            if (
                group.state is GroupState.EMPTY
                and not (group.offsets or group.pending_offsets or group.pending_joins)
                and not +group.appending
            ):
                self._remove(group, lambda error: None)

    def _load(self, partition: int) -> None:
        """Read a partition's groups back; what came last counts."""
        if partition in self._loaded:
            return
        self._loaded.add(partition)
        found: dict[str, Group] = {}
        stored: set[str] = set()
        for entry in self._journal.read(partition):
            if isinstance(entry, EndMarker):
                for group in found.values():
                    self._offsets.end_transaction(group, entry.producer_id, entry.commit)
            else:
                try:
                    _replay(found, stored, entry)
                except Exception as error:  # whatever the bytes say, the others are to be had
                    self._journal.unreadable(partition, entry.offset, error)
        for group_id, group in found.items():
            if group_id in stored or group.offsets or group.pending_offsets:
                self._groups[group_id] = group
                if group.consumer is not None:
                    self.consumers.restore(group, group.consumer)
                else:
                    self._membership.restore(group)


def _replay(found: dict[str, Group], stored: set[str], entry: Entry) -> None:
    if records.kind_of(entry.key) in consumer_records.KINDS:
        _replay_server_side(found, stored, entry)
        return
    key = records.decode_key(entry.key)
    match key:
        case records.OffsetKey(group_id=group_id):
            group = found.setdefault(group_id, Group(group_id))
            place = (key.topic, key.partition)
            if entry.value is None:
                group.offsets.pop(place, None)
                return
            committed = records.decode_offset_value(entry.value, entry.offset)
            if entry.producer_id >= 0:
                group.pending_offsets.setdefault(entry.producer_id, {})[place] = committed
            else:
                group.offsets[place] = committed
        case records.GroupKey(group_id=group_id):
            group = found.setdefault(group_id, Group(group_id))
            if entry.value is None:
                # Offsets have tombstones of their own: a group that changes its protocol
                # keeps them.
                found[group_id] = Group(
                    group_id,
                    offsets=group.offsets,
                    pending_offsets=group.pending_offsets,
                    consumer=group.consumer,
                )
                if group.consumer is None:
                    stored.discard(group_id)
            else:
                stored.add(group_id)
                records.decode_group_value(group, entry.value)
        case None:
            pass


def _replay_server_side(found: dict[str, Group], stored: set[str], entry: Entry) -> None:
    kind, group_id, member_id = consumer_records.decode_key(entry.key)
    group = found.setdefault(group_id, Group(group_id))
    if kind == consumer_records.EPOCH and entry.value is None:
        group.consumer = None
        stored.discard(group_id)
        return
    if group.consumer is None and entry.value is None:
        return
    state = group.consumer or ConsumerState()
    consumer_records.replay(state, kind, member_id, entry.value)
    group.consumer = state
    stored.add(group_id)


def _all(commit: Commit, error: ErrorCode) -> dict[TopicPartition, ErrorCode]:
    return {(one.topic, one.partition): error for one in commit.offsets}
