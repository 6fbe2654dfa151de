"""How far groups have come: commit, fetch, delete, expire.

A commit counts once its record is in `__consumer_offsets`. Inside a transaction it is
kept aside until the transaction's marker is written there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tailrace.broker.groups import records
from tailrace.broker.groups.group import CommittedOffset, Group, GroupState, TopicPartition
from tailrace.broker.journal import Journal, KeyValue
from tailrace.clock import Clock
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import consumer_protocol

NO_OFFSET = CommittedOffset(-1, -1, "", -1)

CommitReply = Callable[[dict[TopicPartition, ErrorCode]], None]


@dataclass(frozen=True, slots=True)
class OffsetSettings:
    """Kafka's `offsets.*` and `offset.*` settings."""

    retention_ms: int = 10_080 * 60_000
    check_interval_ms: int = 600_000
    metadata_max_bytes: int = 4_096


@dataclass(frozen=True, slots=True)
class NewOffset:
    """One partition's part of a commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """An OffsetCommit or TxnOffsetCommit request. Outside group management the member
    id is empty and the generation negative."""

    group_id: str
    offsets: tuple[NewOffset, ...]
    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1
    retention_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    knows_member_epochs: bool = True
    """Whether the request's version (9 and newer) can come from a server-side group."""

    @property
    def transactional(self) -> bool:
        return self.producer_id >= 0


def check_commit(group: Group, commit: Commit) -> ErrorCode:
    """Whether this caller may commit for the group now."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if commit.generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE  # an administrator, or a consumer that assigns itself
    if group.consumer is not None:
        return _check_member_epoch(group, commit)
    if commit.generation >= 0 or commit.member_id != "" or commit.instance_id is not None:
        error = group.check_member(commit.member_id, commit.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if commit.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not commit.transactional and group.state is not GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not commit.transactional and group.state is GroupState.COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _check_member_epoch(group: Group, commit: Commit) -> ErrorCode:
    """The same for a group of the server-side protocol."""
    assert group.consumer is not None
    anonymous = commit.member_id == "" and commit.generation < 0 and commit.instance_id is None
    if commit.transactional and anonymous:
        return ErrorCode.NONE
    member = group.consumer.members.get(commit.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not (commit.transactional or commit.knows_member_epochs or member.classic):
        return ErrorCode.UNSUPPORTED_VERSION
    if commit.generation != member.epoch:
        return ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def subscribed_topics(group: Group) -> set[str] | None:
    """Topics the members of a consumer group read; None when that is not known."""
    if group.consumer is not None:
        return set(group.consumer.subscribed())
    if group.protocol_type != "consumer" or group.state is not GroupState.STABLE:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        data = memoryview(member.metadata(group.protocol))
        if len(data) < 2:
            return None
        version = min(int.from_bytes(data[:2], "big", signed=True), 3)
        decode = consumer_protocol.DECODE_CONSUMER_PROTOCOL_SUBSCRIPTION.get(version)
        if decode is None:
            return None
        try:
            topics.update(decode(data, 2).topics)
        except Exception:  # the member's own bytes; whatever is wrong with them is not ours
            return None
    return topics


class Offsets:
    """The offsets of all groups, written through the journal."""

    def __init__(self, settings: OffsetSettings, clock: Clock, journal: Journal) -> None:
        self.settings = settings
        self._clock = clock
        self._journal = journal

    def commit(self, group: Group, partition: int, commit: Commit, reply: CommitReply) -> None:
        """Write a checked commit; `partition` is where the group's records live."""
        now = self._clock.wall_ms()
        answers: dict[TopicPartition, ErrorCode] = {}
        accepted: dict[TopicPartition, CommittedOffset] = {}
        batch: list[KeyValue] = []
        for one in commit.offsets:
            key = (one.topic, one.partition)
            if len(one.metadata) > self.settings.metadata_max_bytes:
                answers[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            committed = CommittedOffset(
                one.offset,
                one.leader_epoch,
                one.metadata,
                now,
                now + commit.retention_ms if commit.retention_ms >= 0 else -1,
            )
            answers[key] = ErrorCode.NONE
            accepted[key] = committed
            batch.append(
                (
                    records.encode_offset_key(commit.group_id, one.topic, one.partition),
                    records.encode_offset_value(committed),
                )
            )
        if not accepted:
            reply(answers)
            return
        if commit.transactional:
            group.appending.update(accepted.keys())

        def done(result: int | Exception) -> None:
            if commit.transactional:
                group.appending.subtract(accepted.keys())
            if isinstance(result, Exception):
                error = error_of(result)
                reply({key: error if key in accepted else answers[key] for key in answers})
                return
            numbered = {
                key: replace(value, record_offset=result + index)
                for index, (key, value) in enumerate(accepted.items())
            }
            if commit.transactional:
                group.pending_offsets.setdefault(commit.producer_id, {}).update(numbered)
            else:
                group.offsets.update(numbered)
            reply(answers)

        self._journal.append(
            partition,
            batch,
            done,
            producer_id=commit.producer_id,
            producer_epoch=commit.producer_epoch,
        )

    def fetch(
        self,
        group: Group | None,
        wanted: Iterable[TopicPartition] | None,
        require_stable: bool,
        doubtful_before: int = 0,
    ) -> dict[TopicPartition, tuple[ErrorCode, CommittedOffset]]:
        """Committed offsets of `wanted`, or of every partition the group knows.

        An offset whose record is not behind `doubtful_before`, where a damaged range of the
        group's partition ends, may have been overtaken by one that is lost. Instead of it, and
        instead of "none", a client gets an error: it would go on at a wrong place else. The
        next commit for the same partition ends that.
        """
        lost = (ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET)
        if group is None:
            nothing = lost if doubtful_before else (ErrorCode.NONE, NO_OFFSET)
            return dict.fromkeys(wanted or (), nothing)
        if wanted is None:
            wanted = list(group.offsets)
        found: dict[TopicPartition, tuple[ErrorCode, CommittedOffset]] = {}
        for key in wanted:
            if require_stable and group.unstable(key):
                found[key] = (ErrorCode.UNSTABLE_OFFSET_COMMIT, NO_OFFSET)
                continue
            committed = group.offsets.get(key, NO_OFFSET)
            if doubtful_before and committed.record_offset < doubtful_before:
                found[key] = lost
            else:
                found[key] = (ErrorCode.NONE, committed)
        return found

    def end_transaction(self, group: Group, producer_id: int, commit: bool) -> None:
        """The transaction's marker was written: its offsets count, or never were."""
        pending = group.pending_offsets.pop(producer_id, None)
        if pending is None or not commit:
            return
        for key, committed in pending.items():
            present = group.offsets.get(key)
            # A plain commit written after the transactional one is the newer word.
            if present is None or present.record_offset < committed.record_offset:
                group.offsets[key] = committed

    def delete(
        self,
        group: Group,
        partition: int,
        wanted: Iterable[TopicPartition],
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Remove the offsets of `wanted`, as far as there are any."""
        present = [key for key in wanted if key in group.offsets]
        if not present:
            done(ErrorCode.NONE)
            return

        def appended(result: int | Exception) -> None:
            if isinstance(result, Exception):
                done(error_of(result))
                return
            for key in present:
                group.offsets.pop(key, None)
            done(ErrorCode.NONE)

        self._journal.append(
            partition,
            [(records.encode_offset_key(group.group_id, *key), None) for key in present],
            appended,
        )

    def expired(self, group: Group) -> list[TopicPartition]:
        """Offsets whose time is over. A group in use keeps what its members subscribe to."""
        subscribed: set[str] = set()
        since_empty = -1
        if group.protocol_type is not None or group.consumer is not None:
            if group.state is GroupState.EMPTY:
                since_empty = group.state_changed_at
            else:
                topics = subscribed_topics(group)
                if topics is None:
                    return []
                subscribed = topics
        now = self._clock.wall_ms()
        retention = self.settings.retention_ms
        gone: list[TopicPartition] = []
        for key, committed in group.offsets.items():
            if key[0] in subscribed or group.unstable(key):
                continue
            if committed.expires_at >= 0:
                over = now >= committed.expires_at
            else:
                since = since_empty if since_empty >= 0 else committed.committed_at
                over = now - since >= retention
            if over:
                gone.append(key)
        return gone


def error_of(problem: Exception) -> ErrorCode:
    """What a client is told when a record could not be written, as Kafka translates it."""
    match getattr(problem, "kafka_code", None):
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE:
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        case ErrorCode.INVALID_PRODUCER_EPOCH | ErrorCode.PRODUCER_FENCED as fenced:
            return ErrorCode(fenced)
        case _:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
