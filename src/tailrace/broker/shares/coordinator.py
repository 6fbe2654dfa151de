"""All share groups of a running broker: partitions, sessions, and what is kept of them.

State lives in `__share_group_state`, one snapshot a share-partition and change, in
Kafka's record format; compaction keeps the last. A record is kept before its answer is
sent. Locks are not kept: after a restart what was locked is available again, so an
acknowledged record never comes back and an unanswered one always does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tailrace.broker.internal_topic import InternalTopic
from tailrace.broker.journal import EndMarker, Entry, KeyValue
from tailrace.broker.shares.dead_letters import SETTING, bury
from tailrace.broker.shares.member_records import KINDS, Kept, epoch_record, member_records
from tailrace.broker.shares.membership import Beat, BeatAnswer, Membership, ShareGroup
from tailrace.broker.shares.partition import Given, Gone, Run, SharePartition
from tailrace.broker.shares.reading import Window, read_window
from tailrace.broker.shares.settings import GroupSettings
from tailrace.errors import TailraceError
from tailrace.wire.data import decode_data, encode_versioned, leading_version
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import uuid_text
from tailrace.wire.messages import share_records

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition

log = logging.getLogger(__name__)

STATE_TOPIC = "__share_group_state"
SNAPSHOT = 0  # kind of key and version of value
LAST_EPOCH = 2**31 - 1
MOST_WINDOWS = 64
BURY_AGAIN_SECONDS = 1.0

Place = tuple[bytes, int]  # topic id and partition
Key = tuple[str, bytes, int]  # group, topic id and partition


@dataclass(slots=True)
class Session:
    """One member's fetching on this broker."""

    group: str
    member: str
    connection: object
    epoch: int = 1  # what the next request must say
    places: dict[Place, None] = field(default_factory=dict)


class Acquired(NamedTuple):
    """Records given to a member from one partition, or why not."""

    place: Place
    error: ErrorCode = ErrorCode.NONE
    given: Sequence[Given] = ()
    records: bytes = b""


class Topics:
    """Topics by name, for assignments."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        topic = self._broker.store.topics.get(name)
        return None if topic is None else (topic.id.bytes, len(topic.partitions))


class Shares:
    """See the module. On the loop thread."""

    def __init__(self, broker: Broker, group_settings: GroupSettings) -> None:
        self._broker = broker
        self.settings = group_settings
        values = broker.settings
        self._most_sessions = values.integer("group.share.max.share.sessions")
        self._most_in_flight = values.integer("group.share.partition.max.record.locks")
        self.membership = Membership(
            Topics(broker),
            session_seconds=self._session_seconds,
            most_members=values.integer("group.share.max.size"),
        )
        self.sessions: dict[tuple[str, str], Session] = {}
        self.partitions: dict[Key, SharePartition] = {}
        self.released: Callable[[Key], None] = lambda key: None
        self._epochs: dict[Key, int] = {}
        self._bury_at: dict[Key, float] = {}
        self._topic = InternalTopic(
            broker,
            STATE_TOPIC,
            values.integer("share.coordinator.state.topic.num.partitions"),
            {"cleanup.policy": "compact"},
        )
        self._kept: dict[Key, share_records.ShareSnapshotValue] = {}
        self._load()

    def _session_seconds(self, group: str) -> float:
        """Silence after which a member goes."""
        return self.settings.integer(group, "share.session.timeout.ms") / 1000

    def heartbeat_ms_of(self, group: str) -> int:
        """How often members are asked to say something."""
        return self.settings.integer(group, "share.heartbeat.interval.ms")

    # Members -------------------------------------------------------------------

    def beat(self, beat: Beat) -> BeatAnswer:
        answer = self.membership.beat(beat, self._now())
        self._keep_members()
        if answer.error is ErrorCode.NONE and answer.epoch < 0:
            self.let_go(beat.group_id, beat.member_id)
        return answer

    def tick(self) -> None:
        """Silent members go, locks run out."""
        now = self._now()
        for group, member_id in list(self.membership.expired(now)):
            self.let_go(group.id, member_id)
        self._keep_members()
        for key, share in list(self.partitions.items()):
            deadline = share.next_deadline()
            if deadline is not None and deadline <= now and share.expire(now):
                self.keep(key)
                self.released(key)
            if share.gone:
                self.keep(key)

    def _keep_members(self) -> None:
        """Write what has changed of groups and members."""
        changed = self.membership.changed
        if not changed:
            return
        self.membership.changed = {}
        by_group: dict[str, list[KeyValue]] = {}
        for group_id, member_id in changed:
            group = self.membership.groups.get(group_id)
            member = None if group is None else group.members.get(member_id)
            by_group.setdefault(group_id, []).extend(member_records(group_id, member_id, member))
        for group_id, written in by_group.items():
            group = self.membership.groups.get(group_id)
            if group is not None:
                written.append(epoch_record(group))
            self._topic.append(java_hash(group_id) % self._topic.partitions, written, _noted)

    @property
    def idle(self) -> bool:
        """Whether there is nothing a tick could do."""
        return not self.partitions and not any(
            group.members for group in self.membership.groups.values()
        )

    def let_go(self, group: str, member: str) -> None:
        """End a member's session; what it holds is available again."""
        self.sessions.pop((group, member), None)
        for key, share in list(self.partitions.items()):
            if key[0] == group and share.release_member(member):
                self.keep(key)
                self.released(key)

    def disconnected(self, connection: object) -> None:
        for session in list(self.sessions.values()):
            if session.connection is connection:
                self.let_go(session.group, session.member)

    # Sessions ------------------------------------------------------------------

    def session(self, group: str, member: str, epoch: int, connection: object) -> Session | ErrorCode:  # fmt: skip
        """The session a request belongs to; 0 opens one."""
        if epoch == 0:
            if (group, member) in self.sessions:
                self.let_go(group, member)
            elif len(self.sessions) >= self._most_sessions:
                return ErrorCode.SHARE_SESSION_LIMIT_REACHED
            session = Session(group, member, connection)
            self.sessions[group, member] = session
            return session
        found = self.sessions.get((group, member))
        if found is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch < 0:
            return found
        if epoch != found.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        found.epoch = 1 if epoch == LAST_EPOCH else epoch + 1
        found.connection = connection
        return found

    # Records -------------------------------------------------------------------

    def acquire(
        self,
        session: Session,
        most_records: int,
        most_bytes: int,
        permitted: Callable[[bytes], bool] | None = None,
    ) -> list[Acquired]:
        """What a member gets now from its partitions, the one served last going last; an error
        for those of topics that it is not `permitted` to read."""
        found: list[Acquired] = []
        for place in list(session.places):
            if most_records <= 0 or most_bytes <= 0:
                break
            if permitted is not None and not permitted(place[0]):
                found.append(Acquired(place, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            one = self._acquire_from(session, place, most_records, most_bytes)
            if one is None:
                continue
            found.append(one)
            if one.error is ErrorCode.NONE:
                most_records -= sum(run.last - run.first + 1 for run in one.given)
                most_bytes -= len(one.records)
                session.places[place] = session.places.pop(place)
        return found

    def _acquire_from(
        self, session: Session, place: Place, most_records: int, most_bytes: int
    ) -> Acquired | None:
        partition = self._broker.partition_by_id(*place)
        if partition is None:
            unknown = not self._broker.knows_id(place[0])
            return Acquired(
                place,
                ErrorCode.UNKNOWN_TOPIC_ID if unknown else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        key = (session.group, *place)
        try:
            share = self.share(key, partition)
            # Both may have been changed since the last time.
            share.lock_seconds = (
                self.settings.integer(key[0], "share.record.lock.duration.ms") / 1000
            )
            share.most_deliveries = self.settings.integer(key[0], "share.delivery.count.limit")
            share.buries = bool(self.settings.text(key[0], SETTING))
            share.cut(partition.log_start_offset)
            committed = self.settings.text(key[0], "share.isolation.level") == "read_committed"
            limit = partition.last_stable_offset if committed else partition.high_watermark
            for _ in range(MOST_WINDOWS):
                offset = share.next_offset()
                if offset >= limit or share.full:
                    break
                window = read_window(partition, offset, limit, most_bytes, committed=committed)
                given = share.acquire(session.member, window.ranges, most_records, self._now())
                if given:
                    self.keep(key)
                    return Acquired(place, ErrorCode.NONE, given, _covering(window, given))
                if share.next_offset() == offset:
                    break
            self.keep(key)
        except TailraceError as error:
            return Acquired(place, ErrorCode(getattr(error, "kafka_code", -1)))
        return None

    def acknowledge(
        self, session: Session, place: Place, batches: Iterable[tuple[int, int, Sequence[int]]]
    ) -> ErrorCode:
        """A member's answers for one partition; kept before this returns."""
        partition = self._broker.partition_by_id(*place)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        key = (session.group, *place)
        share = self.share(key, partition)
        worst = ErrorCode.NONE
        for first, last, kinds in batches:
            code = share.acknowledge(session.member, first, last, kinds, self._now())
            if code is not ErrorCode.NONE:
                worst = code
        error = self.keep(key)
        if share.next_offset() < share.end:
            self.released(key)
        return error if error is not ErrorCode.NONE else worst

    # What is kept --------------------------------------------------------------

    def share(self, key: Key, partition: Partition) -> SharePartition:
        """The group's state of a partition, from what was kept or from the start."""
        found = self.partitions.get(key)
        if found is None:
            kept = self._kept.get(key)
            group = key[0]
            if kept is not None:
                start = kept.start_offset
            elif self._topic.doubtful_before(self._home(key)):
                # What was kept may be lost: a queue delivers again rather than not at all.
                start = partition.log_start_offset
            elif self.settings.text(group, "share.auto.offset.reset") == "earliest":
                start = partition.log_start_offset
            else:
                start = partition.high_watermark
            found = self.partitions[key] = SharePartition(
                start,
                lock_seconds=self.settings.integer(group, "share.record.lock.duration.ms") / 1000,
                most_deliveries=self.settings.integer(group, "share.delivery.count.limit"),
                most_in_flight=self._most_in_flight,
            )
            if kept is None:
                found.changed = True  # "latest" must not move when the broker restarts
                self.keep(key)
            else:
                found.restore(
                    Run(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                    for each in kept.state_batches
                )  # fmt: skip
        return found

    def keep(self, key: Key) -> ErrorCode:
        """Write a share-partition's state if it changed."""
        share = self.partitions[key]
        if share.gone and self._bury_at.get(key, 0.0) <= self._now():
            self._bury(key, share)
        if not share.changed:
            return ErrorCode.NONE
        now = self._broker.clock.wall_ms()
        self._epochs[key] = self._epochs.get(key, 0) + 1
        value = share_records.ShareSnapshotValue(
            snapshot_epoch=self._epochs[key],
            start_offset=share.start,
            create_timestamp=now,
            write_timestamp=now,
            state_batches=[share_records.StateBatch(*run) for run in share.runs()],
        )
        return self._append(key, value)

    def _bury(self, key: Key, share: SharePartition) -> None:
        """Write dead letters; what could not be written is tried again by a later tick, not
        with every answer of a worker meanwhile."""
        gone, share.gone = share.gone, []
        self._bury_at.pop(key, None)
        at_once = True

        def settled(each: Gone, written: bool) -> None:
            if not written:
                share.gone.append(each)
                self._bury_at[key] = self._now() + BURY_AGAIN_SECONDS
                return
            share.buried(each.offset)
            if not at_once and self.partitions.get(key) is share:
                self.keep(key)

        bury(self._broker, self.settings.text(key[0], SETTING), key, gone, settled)
        at_once = False

    def forget(self, key: Key) -> ErrorCode:
        """Drop a share-partition's state (an administrator's wish)."""
        self.partitions.pop(key, None)
        self._kept.pop(key, None)
        return self._append(key, None)

    def keys(self, group: str) -> list[Key]:
        """Every share-partition a group has state of."""
        return sorted({key for key in (*self.partitions, *self._kept) if key[0] == group})

    def groups(self) -> dict[str, str]:
        """State by name of every share group there is."""
        found = {key[0]: "Empty" for key in (*self.partitions, *self._kept)}
        found.update({group.id: group.state for group in self.membership.groups.values()})
        return found

    def delete(self, group_id: str) -> ErrorCode:
        """Forget a group that has no members."""
        group = self.membership.groups.get(group_id)
        if group is not None and group.members:
            return ErrorCode.NON_EMPTY_GROUP
        if group_id not in self.groups():
            return ErrorCode.GROUP_ID_NOT_FOUND
        worst = ErrorCode.NONE
        for key in self.keys(group_id):
            error = self.forget(key)
            worst = error if error is not ErrorCode.NONE else worst
        if self.membership.groups.pop(group_id, None) is not None:
            home = java_hash(group_id) % self._topic.partitions
            self._topic.append(home, [(epoch_record(ShareGroup(group_id))[0], None)], _noted)
        return worst

    def start_of(self, key: Key) -> int | None:
        """Where a group is in a partition; None if it never read it."""
        share = self.partitions.get(key)
        if share is not None:
            return share.start
        kept = self._kept.get(key)
        return None if kept is None else kept.start_offset

    def starts(self) -> Iterator[tuple[Key, int]]:
        """Where every group is in every partition it has state of."""
        for key, kept in self._kept.items():
            if key not in self.partitions:
                yield key, kept.start_offset
        for key, share in self.partitions.items():
            yield key, share.start

    def _append(self, key: Key, value: share_records.ShareSnapshotValue | None) -> ErrorCode:
        record_key = encode_versioned(
            share_records.ENCODE_SHARE_SNAPSHOT_KEY,
            0,
            share_records.ShareSnapshotKey(*key),
            leading=SNAPSHOT,
        )
        record_value = None
        if value is not None:
            record_value = encode_versioned(share_records.ENCODE_SHARE_SNAPSHOT_VALUE, 0, value)
        problem = ErrorCode.NONE

        def done(result: int | Exception) -> None:
            nonlocal problem
            if isinstance(result, Exception):
                log.error("share state was not kept", extra={"group": key[0], "error": str(result)})
                problem = ErrorCode(getattr(result, "kafka_code", ErrorCode.UNKNOWN_SERVER_ERROR))

        self._topic.append(self._home(key), [(record_key, record_value)], done)
        return problem

    def _home(self, key: Key) -> int:
        """The partition that keeps the state of a group's partition."""
        return java_hash(f"{key[0]}:{uuid_text(key[1])}:{key[2]}") % self._topic.partitions

    def _load(self) -> None:
        members = Kept()
        for partition in range(self._topic.partitions):
            for entry in self._topic.read(partition):
                if isinstance(entry, EndMarker):
                    continue
                try:
                    self._replay(members, entry)
                except Exception as error:  # whatever the bytes say, the others are to be had
                    self._topic.unreadable(partition, entry.offset, error)
        members.restore(self.membership, self._now())

    def _replay(self, members: Kept, entry: Entry) -> None:
        kind = leading_version(entry.key)
        if kind in KINDS:
            members.take(kind, entry.key, entry.value)
        if kind != SNAPSHOT:
            return
        found = decode_data(share_records.DECODE_SHARE_SNAPSHOT_KEY, 0, entry.key, 2)
        key = (found.group_id, found.topic_id, found.partition)
        if entry.value is None:
            self._kept.pop(key, None)
            return
        self._kept[key] = decode_data(
            share_records.DECODE_SHARE_SNAPSHOT_VALUE, leading_version(entry.value),
            entry.value, 2,
        )  # fmt: skip
        self._epochs[key] = self._kept[key].snapshot_epoch

    def _now(self) -> float:
        return self._broker.clock.monotonic()


def _noted(result: int | Exception) -> None:
    if isinstance(result, Exception):
        log.error("share group was not kept", extra={"error": str(result)})


def _covering(window: Window, given: Sequence[Given]) -> bytes:
    """The bytes of the batches from the first to the last record given out."""
    first = next(at for at, (_, last, _) in zip(window.positions, window.ranges, strict=True) if last >= given[0].first)  # fmt: skip
    end = len(window.data)
    for at, (start, _, _) in zip(window.positions, window.ranges, strict=True):
        if start > given[-1].last:
            end = at
            break
    return bytes(window.data[first:end])


def java_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())` of Java, which places keys in internal topics."""
    value = 0
    units = text.encode("utf-16-be")
    for position in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[position : position + 2], "big")) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
