"""One mirror: fetch, write, rows, commit, in one transaction of the target per cycle.

    with Mirror("to-berlin", "ams:9092", "ber:9092", topics="orders.*") as mirror:
        mirror.run_until_caught_up()

A cycle takes what the source has committed, up to `CYCLE_BYTES` of a leader. Batches are passed
through with another head; a batch with gaps (compacted), with times of its log, or begun in the
middle is opened. The rows that say what was done stand in the same transaction, so a mirror that is
killed goes on where its last commit was: `init` ends what it left open, and a commit that was on its
way is found in the rows.

What the source lost is never passed over: the partition stops with offsets, and the others go on.
Records that came to the source from the target, or from a site that reaches the target by itself,
are not sent there (`origins`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import TracebackType

from tailrace.client.admin import Admin, Place
from tailrace.client.cluster import METADATA, Cluster, TopicInformation, TryAgain
from tailrace.client.committed import visible_batches
from tailrace.client.errors import (
    ClientError,
    DamagedBatchError,
    NotAllowedError,
    OffsetOutOfRangeError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestError,
    TopicProtectedError,
    UnreadableBatchError,
)
from tailrace.client.fetcher import Answer, Fetcher
from tailrace.client.sender import is_retriable
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.mirroring import groups as group_offsets
from tailrace.mirroring import topics as both_topics
from tailrace.mirroring.conflicts import CONFLICTS, OFFSET_HEADER, SITE_HEADER, Rule, Target
from tailrace.mirroring.errors import (
    MirrorError,
    MirrorFailedOverError,
    MirrorFencedError,
    MirrorLoopError,
    MirrorRecordsGoneError,
    MirrorRecordTooLargeError,
    MirrorShardError,
    MirrorSourceTruncatedError,
    MirrorTopicAnewError,
)
from tailrace.mirroring.fetch import Fetches
from tailrace.mirroring.origins import AGAIN, Origins
from tailrace.mirroring.plan import (
    ANYWHERE,
    MOST_SHARDS,
    PREFIX,
    SAME,
    TRANSACTIONS,
    compiled,
    validate_choices,
    validate_name,
)
from tailrace.mirroring.rows import (
    FAILED_OVER,
    RUNNING,
    TOPIC,
    MirrorRows,
    Owner,
    Position,
    Run,
    State,
    Stop,
    add_runs,
    again_row,
    ensure_topic,
    owner_row,
    position_row,
    read_rows,
    run_key,
    runs_row,
    settings_row,
    shard_of,
    state_row,
    stop_row,
)
from tailrace.mirroring.whole import WholeTransactions
from tailrace.records.batch import BatchHeader, Record, decode_records
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import offset_for_leader_epoch as epochs
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse

log = logging.getLogger(__name__)

CYCLE_BYTES = 16 * 1024 * 1024
GROUP_SECONDS = 5.0
LOOK_SECONDS = 2.0  # for new topics and partitions
SETTINGS_SECONDS = 30.0
SAVE_SECONDS = 5.0  # where there was nothing to mirror: markers, aborted records, the other site's
IDLE_SECONDS = 0.5
MOST_RUN_ROWS = 500  # then they become few large ones
RUNS_IN_A_ROW = 5_000
RUNS_OF_A_NAME = 10  # as long as a topic's name
MOST_FAILURES = 20  # one after another, each after the patience of its request
OF_A_SITE = (CONFLICTS, ".unmirrored")  # topics that belong to one site alone
FINAL = (NotAllowedError, TopicProtectedError, UnreadableBatchError, DamagedBatchError)
OFFSET_FOR_LEADER_EPOCH = APIS[ApiKey.OFFSET_FOR_LEADER_EPOCH]


class Mirror:
    """See the module. Owns connections; one thread only. `source_name` prefixes topics; `site` is
    what the source is called, `others` what the target is, and whoever reaches it by itself."""

    def __init__(
        self,
        name: str,
        source: str,
        target: str,
        *,
        topics: str,
        names: str = SAME,
        source_name: str = "",
        groups: str | None = None,
        site: str = "",
        others: Sequence[str] = (),
        cut: str = ANYWHERE,
        conflicts: str | None = None,
        pin: Mapping[str, str] | None = None,
        accept_gap: bool = False,
        shard: tuple[int, int] = (0, 1),
        starts: Mapping[Place, int] | None = None,
        timeout: float = 60.0,
        clock: Clock = SYSTEM,
        step: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`step` is called with the name of each step before it; tests kill there. `starts`: where
        partitions begin that were not mirrored yet, instead of at their first record. `shard`: which
        of how many processes this is; only the first writes the state and makes topics."""
        validate_name(name)
        validate_choices(names, cut, conflicts, pin or {})
        settles = conflicts is not None or bool(pin)
        if settles and not (site and others):
            raise UsageError(
                "conflicts are between sites, which have names", hint="--site ams --other ber"
            )
        if names == PREFIX and not source_name:
            raise UsageError("names with a prefix need the name of the source", hint="--prefix ams")
        self._pattern = compiled(topics)
        self._groups = None if groups is None else compiled(groups)
        self._starts = starts
        self._accept_gap = accept_gap
        self.name = name
        self._shard, self._shards = shard
        if not 0 <= self._shard < self._shards <= MOST_SHARDS:
            raise UsageError(
                f"there is no shard {shard[0]} of {shard[1]}",
                hint=f"--shard 0/2 and --shard 1/2; at most {MOST_SHARDS}",
            )
        self._names, self._prefix = names, source_name
        self._clock = clock
        self._step = step
        self.rows = MirrorRows()
        self.records = 0
        self.stopped: dict[Place, MirrorError] = {}
        self._absent: set[str] = set()  # topics that the source does not have any more
        self._limits: dict[Place, int] = {}  # of records that the target does not take
        self._left_out: set[tuple[Place, int]] = set()
        self._unsaved: set[Place] = set()
        self._unmade: set[Place] = set()  # which the first shard has not made at the target yet
        self._made: dict[str, int] = {}  # topics that have as many partitions at the target
        self._timeout = timeout
        self._failures = 0
        self._broken = False  # the next cycle begins with `_recover`
        self._writing = _Writing({})  # of the cycle
        self._groups_at = self._looked_at = self._settings_at = -1e9
        self._saved_at = clock.monotonic()
        self._source_admin = Admin(source, timeout=timeout, clock=clock)
        self._target_admin = Admin(target, timeout=timeout, clock=clock)
        self._fetcher = Fetcher(source, timeout=timeout, clock=clock)
        self._fetches = Fetches(source, most_bytes=CYCLE_BYTES, timeout=timeout, clock=clock)
        self._target_fetcher = Fetcher(target, timeout=timeout, clock=clock)
        self._writer = mirror_writer(target, name, timeout, clock, self._shard)
        self._whole: WholeTransactions | None = None
        if cut == TRANSACTIONS:
            self._whole = WholeTransactions(self._source_admin, self._fetcher, CYCLE_BYTES)
        self._settling: Target | None = None
        self._rule: Rule | None = None
        self._conflict_topics: set[str] = set()
        try:
            source_id = cluster_id(self._source_admin.cluster)
            target_id = cluster_id(self._target_admin.cluster)
            self.site, self.others = site, tuple(others)
            self._owner = Owner(site or source_id, source_id, name)
            self._owned = -1  # the producer id whose owner row is committed
            self._target_id = target_id
            self._origins = Origins(self._source_admin, self._fetcher, site or source_id, source_id)
            if settles:
                here = Origins(self._target_admin, self._target_fetcher, others[0], target_id)
                self._rule = Rule(conflicts, pin or (), {site, *others})
                self._settling = Target(self._rule, self._target_admin, self._target_fetcher, here)
            self._begin(source_id, target_id)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Mirror:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._source_admin.close()
        self._target_admin.close()
        self._fetcher.close()
        self._fetches.close()
        self._target_fetcher.close()
        self._writer.close()
        if self._settling is not None:
            self._settling.close()

    # Running -------------------------------------------------------------------

    def run(self, stopping: Callable[[], bool]) -> None:
        """Cycle after cycle, until `stopping()`. Raises MirrorError."""
        while not stopping():
            self.cycle()
        self.finish()

    def finish(self) -> None:
        """Keep what is known, so that the next run begins there. Raises MirrorFencedError."""
        try:
            self._save()
        except ProducerFencedError as error:
            raise self._fenced() from error

    def run_until_caught_up(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Until everything is there that the source has committed now. Raises the first stop of a
        partition, when the others are there, and MirrorShardError if some are not made yet."""
        try:
            self._catch_up(stopping)
        except ProducerFencedError as error:
            raise self._fenced() from error

    def _catch_up(self, stopping: Callable[[], bool]) -> None:
        self._look()
        ends = self._source_admin.end_offsets(self._going())
        while not stopping() and any(
            self.rows.positions[place].next < end
            for place, end in ends.items()
            if place not in self.stopped
        ):
            self.cycle()
        if self._settling is not None:
            self.cycle()  # what came between the look and the last append
        self._groups_at = -1e9
        self._look()
        self._save()
        self._carry_groups()
        for error in self.stopped.values():
            raise error
        for topic, partition in sorted(self._unmade):
            raise MirrorShardError(
                f'shard {self._shard} of the mirror "{self.name}" waits for the first',
                detail=f"partitions that are not at the target yet: {len(self._unmade)}, "
                f"from {topic}/{partition} on",
                hint=f"run shard 0/{self._shards}, which makes them, and this one again",
            )

    def cycle(self) -> int:
        """Fetch, write and commit once; how many records. What can be tried again is, from the
        rows at the target; an error that comes again and again is raised."""
        try:
            if self._broken:
                self._recover()
            self._look()
            count = self._cycle()
            numbers = self.rows.numbers_of(self._shard)
            if numbers.next - max(numbers.first, numbers.large_until) >= MOST_RUN_ROWS:
                self._consolidate()
            if self._clock.monotonic() - self._saved_at >= SAVE_SECONDS:
                self._save()
            self._carry_groups()
        except ProducerFencedError as error:
            raise self._fenced() from error
        except FINAL:
            raise
        except ClientError as error:
            self._broken = True
            if isinstance(error, RecordTooLargeError):
                if not self._limit(error):
                    raise
                return 0
            self._failures += 1
            if self._failures > MOST_FAILURES:
                raise
            return 0
        self._failures = 0
        return count

    def lag(self) -> dict[Place, int]:
        """By partition, how many offsets the source has committed beyond the mirror."""
        positions = self.rows.positions
        ends = self._source_admin.end_offsets(
            place for place in positions if place[0] not in self._absent
        )
        return {place: max(0, end - positions[place].next) for place, end in ends.items()}

    # Inside: the beginning -----------------------------------------------------

    def _begin(self, source: str, target: str) -> None:
        ensure_topic(self._target_admin)
        self._refuse_loops(source, target)
        self._step("init")
        self._writer.init()
        self._read_rows()
        state = self.rows.state
        if state is not None and state.state == FAILED_OVER:
            raise MirrorFailedOverError(
                f'the mirror "{self.name}" was failed over',
                detail="its target is written by others now",
                hint=f"`tailrace mirror fail-back {self.name}` brings that to the source and goes "
                "on; or use a mirror of another name",
            )
        if state is not None and (state.source, state.names) != (source, self._names):
            raise MirrorError(
                f'there is a mirror "{self.name}" from another log, or with other names',
                detail=f"from cluster {state.source}, names {state.names}",
                hint="give this one another name",
            )
        if self._shard:
            if state is None or state.sharing or state.shards != self._shards:
                raise MirrorShardError(
                    f'shard {self._shard} of the mirror "{self.name}" waits for the first',
                    detail="the first shard has not begun"
                    if state is None
                    else f"the mirror has {state.shards} shards until the first begins again",
                    hint=f"run shard 0/{self._shards}, too",
                )
        elif state is not None and (state.sharing or state.shards != self._shards):
            self._share_out(state)
        began = State(
            RUNNING, source, target, self._pattern.pattern, self._names, self._clock.wall_ms(),
            self._owner.site, self.others, self._groups.pattern if self._groups else None,
            fail_overs=state.fail_overs if state is not None else 0, shards=self._shards,
        )  # fmt: skip
        if not self._shard:
            self._writer.send(TOPIC, 0, *state_row(self.name, began))
        for place in self.rows.stopped:
            self._writer.send(TOPIC, 0, *stop_row(self.name, place, None))
        self._commit()
        self.rows.state = began
        self.rows.stopped.clear()

    def _share_out(self, state: State) -> None:
        """There are as many shards as before no longer: whoever runs one is fenced, and the runs of
        a partition come into the rows of its new shard, with the state that names their number.
        One that begins behind its fence reads that it may not."""
        self._writer.send(TOPIC, 0, *state_row(self.name, replace(state, sharing=True)))
        self._commit()
        self._step("fence")
        target = self._target_admin.cluster.bootstrap
        fence_shards(target, self.name, range(1, state.shards), self._timeout, self._clock)
        every = self._every_row()
        for key in every.run_keys(self.name):
            self._writer.send(TOPIC, 0, key, None)
        for shard in range(self._shards):
            numbers = every.numbers_of(shard)
            numbers.first = numbers.large_until = numbers.next
            for part in _in_parts(every.of_shard(shard, self._shards).runs):
                row = runs_row(self.name, numbers.next, part, shard)
                self._writer.send(TOPIC, 0, *row)
                numbers.next += 1
            numbers.large_until = numbers.next
        self.rows = every.of_shard(self._shard, self._shards)
        self._step("share")

    def _commit(self) -> None:
        """Commit, and see to it that the owner of what comes next is told. Under an id that is not
        owned yet there are only rows in the transaction, no records."""
        while True:
            id = self._writer.producer_id
            if self._owned != id:
                self._writer.send(TOPIC, 0, *owner_row(id, self._owner))
                self._step("owner")
            self._writer.commit()
            if id == self._writer.producer_id:
                self._owned = id
                return

    def _refuse_loops(self, source: str, target: str) -> None:
        if self._names == PREFIX:
            return
        if source == target:
            raise MirrorLoopError("both ends of the mirror are one log", hint="use --names prefix")
        for name, rows in read_rows(self._source_admin, self._fetcher).items():
            back = rows.state
            if back is None or back.state != RUNNING or back.names != SAME:
                continue
            shared = [
                topic.name
                for topic in self._topics()
                if compiled(back.topics).fullmatch(topic.name)
            ]
            known = back.site in self.others and self._owner.site in back.others
            if name == f"{self.name}.back" and not known:
                raise MirrorLoopError(
                    f'a fail-back of "{self.name}" was cut short',
                    detail=f"its way back, {name}, has not ended at the source",
                    hint=f"`tailrace mirror fail-back {self.name} --execute` ends it",
                )
            if back.source == target and shared and not known:
                raise MirrorLoopError(
                    f'the mirror "{name}" brings {shared[0]} here from there',
                    detail=f"it was started for site {back.site or '?'}"
                    + (f", other {', '.join(back.others)}" if back.others else ", without --other"),
                    hint="name both sites for both mirrors, as in --site ams --other ber here and "
                    "--site ber --other ams there; or use --names prefix, or topics that differ",
                )

    def _read_rows(self) -> None:
        self.rows = self._every_row().of_shard(self._shard, self._shards)

    def _every_row(self) -> MirrorRows:
        self._await_others()
        fetcher = Fetcher(self._target_admin.cluster.bootstrap, clock=self._clock)
        try:
            found = read_rows(self._target_admin, fetcher)
        finally:
            fetcher.close()
        return found.get(self.name, MirrorRows())

    def _await_others(self) -> None:
        """Rows that were committed behind an open transaction of another mirror, or of another
        shard, cannot be read until that is over."""
        place = (TOPIC, 0)
        written = self._target_admin.end_offsets([place], "read_uncommitted")[place]

        def look() -> None:
            if self._target_admin.end_offsets([place])[place] < written:
                raise TryAgain(ErrorCode.CONCURRENT_TRANSACTIONS)

        self._target_admin.cluster.retry(look, f"waiting for open transactions in {TOPIC}")

    def _recover(self) -> None:
        """After an error: what was begun is given up; what was committed is in the rows."""
        self._fetches.reset()
        if self._settling is not None:
            self._settling.given_up()
        if self._whole is not None:
            self._whole.reset()
        try:
            self._writer.init()
        except ProducerFencedError as error:
            raise self._fenced() from error
        here = self.rows.positions
        self._read_rows()
        state = self.rows.state
        if state is not None and (
            state.state == FAILED_OVER or state.sharing or state.shards != self._shards
        ):
            raise self._fenced()
        for place, position in here.items():  # those that moved without a record are in no row
            committed = self.rows.positions.get(place)
            if committed is None or committed.next < position.next:
                self.rows.positions[place] = position
        self._owned = -1
        self._commit()
        self._refuse_records()
        self._broken = False

    def _fenced(self) -> MirrorFencedError:
        return MirrorFencedError(
            f'the mirror "{self.name}" has a successor, or was failed over',
            hint="`tailrace mirror status` says which",
        )

    # Inside: topics ------------------------------------------------------------

    def _topics(self) -> list[TopicInformation]:
        return [
            each
            for each in self._source_admin.list_topics()
            if self._pattern.fullmatch(each.name)
            and not each.name.startswith("__")
            and not (self._names == SAME and each.name.endswith(OF_A_SITE))
        ]

    def _going(self) -> list[Place]:
        """Partitions that are mirrored now."""
        return [
            place
            for place in self.rows.positions
            if place not in self.stopped and place[0] not in self._absent
        ]

    def _look(self) -> None:
        """Topics and partitions that are new, replaced or gone."""
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        topics = self._topics()
        self._unmade.clear()
        for topic in topics:
            self._look_at(topic)
        here = {topic.name for topic in topics}
        gone = {name for name, _ in self.rows.positions} - here
        for name in gone - self._absent:
            log.warning("topic is gone at the source", extra={"mirror": self.name, "topic": name})
        self._absent = gone
        if now - self._settings_at >= SETTINGS_SECONDS and not self._shard:
            self._settings_at = now
            self._follow_settings(here)

    def _named(self, topic: str) -> str:
        """What a topic is called at the target."""
        return f"{self._prefix}.{topic}" if self._names == PREFIX else topic

    def _look_at(self, topic: TopicInformation) -> None:
        target = self._named(topic.name)
        count, id = len(topic.leaders), topic.id.hex()
        lacking = []
        for partition in range(count):
            place = (topic.name, partition)
            if shard_of(place, self._shards) != self._shard:
                continue
            known = self.rows.positions.get(place)
            if known is None:
                lacking.append(place)
            elif known.topic_id != id and place not in self.stopped:
                anew = MirrorTopicAnewError(
                    f'the topic "{topic.name}" was deleted and made again at the source',
                    detail=f"partition {partition} was mirrored up to offset {known.next}; "
                    f"the new topic begins at {self._source_start(place)}",
                    hint="--accept-gap takes the new topic from its beginning",
                )
                self._stop(place, anew, replace(known, next=self._source_start(place), epoch=-1, topic_id=id), 0)  # fmt: skip
        if self._shard:
            found = self._target_admin.describe_topic(target) if lacking else None
            there = 0 if found is None else len(found.leaders)
            self._unmade.update(place for place in lacking if place[1] >= there)
            lacking = [place for place in lacking if place[1] < there]  # the first makes the others
        elif lacking or self._shards > 1:
            self._ensure(topic, target, count, bool(lacking))
        if not lacking:
            return
        if self._settles(topic.name):
            self._refuse_log_times(topic.name, target)
        starts = self._source_admin.start_offsets(lacking)
        for place, start in starts.items():
            begun = start if self._starts is None else self._starts.get(place, start)
            self.rows.positions[place] = Position(begun, -1, id, target)

    def _ensure(self, topic: TopicInformation, target: str, count: int, lacking: bool) -> None:
        """Make a topic at the target, with settings that are followed from then on."""
        if not lacking and self._made.get(topic.name) == count:
            return
        settings = both_topics.own_settings(self._source_admin, topic.name)
        both_topics.ensure(self._target_admin, target, count, settings)
        self._made[topic.name] = count
        if topic.name not in self.rows.settings:  # else a change is found by `_follow_settings`
            self._keep_settings(topic.name, settings)

    def _settles(self, topic: str) -> bool:
        return self._rule is not None and self._rule.settles(topic)

    def _refuse_log_times(self, topic: str, target: str) -> None:
        for admin, name in ((self._source_admin, topic), (self._target_admin, target)):
            if admin.topic_config(name)["message.timestamp.type"].value == "LogAppendTime":
                raise UsageError(
                    f'conflicts of "{topic}" cannot be settled: its log sets the times',
                    detail="a record would have another time at each site, and another winner",
                    hint="message.timestamp.type=CreateTime at both sites",
                )

    def _source_start(self, place: Place) -> int:
        return self._source_admin.start_offsets([place])[place]

    def _follow_settings(self, topics: set[str]) -> None:
        known = {name: each.target for (name, _), each in self.rows.positions.items()}
        for name in sorted(topics):  # also of those whose partitions other shards have
            now = both_topics.own_settings(self._source_admin, name)
            before = self.rows.settings.get(name)
            if before is not None and before != now:
                target = known.get(name, self._named(name))
                both_topics.follow(self._target_admin, target, before, now)
            self._keep_settings(name, now)

    def _keep_settings(self, topic: str, settings: dict[str, str]) -> None:
        if self.rows.settings.get(topic) != settings:
            self._writer.send(TOPIC, 0, *settings_row(self.name, topic, settings))
            self._commit()
            self.rows.settings[topic] = settings

    # Inside: one cycle ---------------------------------------------------------

    def _cycle(self) -> int:
        self._step("fetch")
        going = self._following({})
        self._begin_fetch(going)
        self._writing = writing = _Writing(self.rows.positions)
        self._writer.on_written = writing.written
        answers = list(self._fetches.receive(IDLE_SECONDS))
        self._follow_target()
        for place, asked, answer in answers:
            if going.get(place) != asked:
                continue  # it stopped, or goes on elsewhere
            if isinstance(answer, OffsetOutOfRangeError):
                self._stop_lost(place)
            elif self._whole is not None:
                self._whole.hold(place, answer)
            else:
                self._take(place, answer, writing)
        self._take_whole(writing)
        self._settle(writing)
        moved = writing.moved
        self._begin_fetch(self._following(moved))
        if not writing.sent:
            self._move(moved)
            self._unsaved.update(moved)
            return 0
        self._write(writing)
        return writing.count

    def _following(self, moved: Mapping[Place, Position]) -> dict[Place, int]:
        """The offset that is fetched next, of every partition."""
        positions = self.rows.positions
        found = {place: moved.get(place, positions[place]).next for place in self._going()}
        return found if self._whole is None else self._whole.next(found)

    def _begin_fetch(self, wanted: Mapping[Place, int]) -> None:
        whole = self._whole
        self._fetches.begin(
            {at: each for at, each in wanted.items() if whole is None or not whole.is_full(at)}
        )

    def _take_whole(self, writing: _Writing) -> None:
        """Hand what is held to the writer, up to a cut that no transaction crosses."""
        if self._whole is None:
            return
        positions = {place: self.rows.positions[place].next for place in self._going()}
        for place, end in self._whole.cut(positions).items():
            for answer in self._whole.answers(place):
                self._take(place, answer, writing, end)
            if place in writing.moved:
                self._whole.passed(place, writing.moved[place].next)

    def _take(
        self, place: Place, answer: Answer, writing: _Writing, end: int | None = None
    ) -> None:
        """Hand what one partition has to the writer, up to `end`."""
        position = writing.moved.get(place, self.rows.positions[place])
        batches, following = visible_batches(
            answer.buffer, position.next, end, answer.aborted, place=place
        )
        if following == position.next:
            return
        if any(not self._origins.is_own(header) for _, header in batches):
            self._origins.read_on()
        epoch = position.epoch
        limit = self._limits.get(place)
        for at, header in batches:
            if header.leader_epoch != epoch:
                try:
                    self._refuse_truncation(place, position, epoch)
                except MirrorSourceTruncatedError as error:
                    self._stop_truncated(place, error, header.leader_epoch)
                    return
                epoch = header.leader_epoch
            if limit is not None and header.last_offset >= limit:
                following = limit
                if header.base_offset >= limit:
                    break
            if self._settles(place[0]) or self._origins.mixed(place, header):
                self._pass_single(place, position, answer, at, header, writing)
                continue
            owner = self._origins.of(place, header)
            if not self._came_from_there(owner):
                origin = "" if owner.site == self._owner.site else owner.site
                self._pass_on(place, position, answer, at, header, writing, origin)
        lost = self.rows.positions[place].conflicts + writing.lost.get(place, 0)
        writing.moved[place] = replace(position, next=following, epoch=epoch, conflicts=lost)

    def _came_from_there(self, owner: Owner) -> bool:
        """Whether a record is at the target, or comes there by itself."""
        return owner.cluster in (self._target_id, AGAIN) or owner.site in self.others

    def _pass_single(
        self,
        place: Place,
        position: Position,
        answer: Answer,
        at: int,
        header: BatchHeader,
        writing: _Writing,
    ) -> None:
        """Open a batch whose records are of several sites, or have to be judged."""
        there = (position.target, place[1])
        limit = self._limits.get(place, header.last_offset + 1)
        judge = self._settling if self._settles(place[0]) else None
        for record in decode_records(answer.buffer, at):
            if not position.next <= record.offset < limit or (place, record.offset) in self._left_out:  # fmt: skip
                continue
            owner = self._origins.of(place, header, record.offset)
            if self._came_from_there(owner):
                continue
            if (
                record.key is not None
                and judge is not None
                and not judge.wins(there, place[0], record.key, owner.site, record.timestamp)
            ):
                self._keep_loser(there, record, owner.site)
                writing.lose(place)
                continue
            origin = "" if owner.site == self._owner.site else owner.site
            writing.add(place, record.offset, 1, origin)
            self._writer.send(*there, record.key, record.value, record.headers, record.timestamp)

    # Inside: conflicts -----------------------------------------------------------

    def _follow_target(self) -> None:
        if self._settling is not None:
            self._settling.follow(
                {
                    (self.rows.positions[place].target, place[1]): place[0]
                    for place in self._going()
                    if self._settles(place[0])
                }
            )

    def _settle(self, writing: _Writing) -> None:
        """Append winners again where something else stands last."""
        if self._settling is None:
            return
        for place in self._going():
            if not self._settles(place[0]):
                continue
            position = writing.moved.get(place, self.rows.positions[place])
            there = (position.target, place[1])
            found = self._settling.wrong(there)
            for again, last, site in found:
                writing.again(place, again.site, again.order)
                self._writer.send(*there, again.key, again.value, again.headers, again.time)
                if site != self.others[0]:
                    # What others wrote loses here; what was written here loses where it arrives.
                    self._keep_loser(there, last, site)
                    writing.lose(place)
            if found:
                lost = self.rows.positions[place].conflicts + writing.lost.get(place, 0)
                writing.moved[place] = replace(position, conflicts=lost)

    def _keep_loser(self, there: Place, record: Record, site: str) -> None:
        topic = there[0] + CONFLICTS
        if topic not in self._conflict_topics:
            partitions = len(self._target_admin.cluster.topic(there[0]).leaders)
            kept = {"cleanup.policy": "delete", "retention.ms": "-1"}
            both_topics.ensure(self._target_admin, topic, partitions, kept)
            self._conflict_topics.add(topic)
        told = ((SITE_HEADER, site.encode()), (OFFSET_HEADER, b"%d" % record.offset))
        headers = (*record.headers, *told)
        self._writer.send(topic, there[1], record.key, record.value, headers, record.timestamp)

    def _write(self, writing: _Writing) -> None:
        """What was handed to the writer, and its rows, as one transaction."""
        self._step("flush")
        self._writer.flush()
        for place, position in writing.moved.items():
            self._writer.send(TOPIC, 0, *position_row(self.name, place, position))
        numbers = self.rows.numbers_of(self._shard)
        parts = list(_in_parts(writing.runs)) or [{}]  # copies have a number, too
        for number, part in enumerate(parts, numbers.next):
            self._writer.send(TOPIC, 0, *runs_row(self.name, number, part, self._shard))
        if writing.copies:
            row = again_row(self.name, numbers.next, writing.copies, self._shard)
            self._writer.send(TOPIC, 0, *row)
        self._step("commit")
        self._commit()
        self._step("committed")
        if self._settling is not None:
            self._settling.committed(writing.ends)
        self._move(writing.moved)
        add_runs(self.rows.runs, writing.runs)
        numbers.next += len(parts)
        self.records += writing.count

    def _move(self, moved: Mapping[Place, Position]) -> None:
        self.rows.positions.update(moved)
        self._unsaved.difference_update(moved)
        for place, limit in list(self._limits.items()):
            if self.rows.positions[place].next == limit:
                self._stop_at_record(place, limit)

    def _save(self) -> None:
        """Keep positions that moved without a record: a successor need not read as much again."""
        self._saved_at = self._clock.monotonic()
        if not self._unsaved:
            return
        for place in sorted(self._unsaved):
            row = position_row(self.name, place, self.rows.positions[place])
            self._writer.send(TOPIC, 0, *row)
        self._commit()
        self._unsaved.clear()

    def _consolidate(self, also: Mapping[Place, Position] | None = None) -> None:
        """Write the rows of runs again, as few large ones; runs of records that the target does
        not keep any more are left out. `also`: positions to be written in the same transaction."""
        rows = self.rows
        targets = {place: (each.target, place[1]) for place, each in rows.positions.items()}
        starts = self._target_admin.start_offsets(targets.values())
        kept: dict[Place, list[Run]] = {}
        for place, runs in rows.runs.items():
            start = starts[targets[place]]
            kept[place] = [run for run in runs if run.target + run.length > start]
        numbers = rows.numbers_of(self._shard)
        number = numbers.next
        for part in _in_parts(kept):
            self._writer.send(TOPIC, 0, *runs_row(self.name, number, part, self._shard))
            number += 1
        for old in range(numbers.first, numbers.next):
            self._writer.send(TOPIC, 0, run_key(self.name, old, self._shard), None)
        for place, position in (also or {}).items():
            self._writer.send(TOPIC, 0, *position_row(self.name, place, position))
        self._step("consolidate")
        self._commit()
        rows.runs = kept
        numbers.first, numbers.next, numbers.large_until = numbers.next, number, number

    def _carry_groups(self) -> None:
        """Store at the target how far groups have read at the source, translated."""
        now = self._clock.monotonic()
        if self._groups is None or now - self._groups_at < GROUP_SECONDS:
            return
        self._groups_at = now
        found = group_offsets.ahead(self._source_admin, self._target_admin, self.rows, self._groups)
        for group, offsets in found.items():
            self._writer.send_offsets(group, offsets)
            self._step("groups")
            self._commit()

    def _pass_on(
        self,
        place: Place,
        position: Position,
        answer: Answer,
        at: int,
        header: BatchHeader,
        writing: _Writing,
        origin: str,
    ) -> None:
        """Hand one batch to the writer, which may write at once what it has."""
        limit = self._limits.get(place, header.last_offset + 1)
        whole = (
            header.base_offset >= position.next
            and header.record_count == header.last_offset_delta + 1
            and not header.log_append_time
            and header.last_offset < limit
            and not self._left_out
        )
        if whole:
            writing.add(place, header.base_offset, header.record_count, origin)
            batch = memoryview(answer.buffer)[at : at + header.size]
            self._writer.send_batch(position.target, place[1], batch)
            return
        for record in decode_records(answer.buffer, at):
            if position.next <= record.offset < limit and (place, record.offset) not in self._left_out:  # fmt: skip
                writing.add(place, record.offset, 1, origin)
                self._writer.send(
                    position.target, place[1], record.key, record.value, record.headers,
                    record.timestamp,
                )  # fmt: skip

    # Inside: what stops a partition ---------------------------------------------

    def _stop(self, place: Place, error: MirrorError, onward: Position, keep_below: int) -> None:
        """Stop a partition, or go on at `onward` if a gap is accepted: runs of source offsets from
        `keep_below` on tell of records that the source does not have."""
        if not self._accept_gap:
            self._halt(place, error)
            return
        log.warning("gap accepted", extra={"mirror": self.name, "reason": error.message})
        runs = self.rows.runs.get(place, [])
        below = [
            run._replace(length=min(run.length, keep_below - run.source))
            for run in runs
            if run.source < keep_below
        ]
        self.rows.positions[place] = onward
        if self._whole is not None:
            self._whole.drop(place)
        if below != runs:
            self.rows.runs[place] = below
            self._consolidate({place: onward})
        else:
            self._unsaved.add(place)
            self._save()

    def _halt(self, place: Place, error: MirrorError) -> None:
        self.stopped[place] = error
        if self._whole is not None:
            self._whole.drop(place)
        stop = Stop(error.code, error.message, error.detail)
        self.rows.stopped[place] = stop
        self._writer.send(TOPIC, 0, *stop_row(self.name, place, stop))
        self._commit()
        log.error("partition stopped", extra={"mirror": self.name, "reason": error.message})

    def _stop_lost(self, place: Place) -> None:
        """The source does not hold the next offset."""
        position = self.rows.positions[place]
        start = self._source_start(place)
        end = self._source_admin.end_offsets([place], "read_uncommitted")[place]
        message = f"{place[0]}/{place[1]} of the source does not hold offset {position.next} any more"  # fmt: skip
        if start > position.next:
            gone = MirrorRecordsGoneError(
                message,
                detail=f"retention removed offsets {position.next} to {start - 1}",
                hint=f"--accept-gap goes on at offset {start}",
            )
            self._stop(place, gone, replace(position, next=start), position.next)
        elif end < position.next:
            cut = MirrorSourceTruncatedError(
                message,
                detail=f"the source ends at {end} now",
                hint=f"--accept-gap goes on at offset {end}",
            )
            self._stop(place, cut, replace(position, next=end, epoch=-1), end)
        # else it was the answer of a replica that is behind

    def _stop_truncated(self, place: Place, error: MirrorSourceTruncatedError, epoch: int) -> None:
        position = self.rows.positions[place]
        end = min(error.end, position.next)
        self._stop(place, error, replace(position, next=end, epoch=epoch), end)

    def _limit(self, error: RecordTooLargeError) -> bool:
        """Note which record the target does not take. None is refused for a row of ours, what is
        kept aside, or a winner's copy; nor one that was refused before."""
        place = self._writing.by_target.get(error.place) if error.place else None
        if place is None or not (waiting := self._writing.waiting.get(place)):
            return False
        offset = waiting[0].source
        if offset < 0 or self._limits.get(place) == offset or (place, offset) in self._left_out:
            return False
        self._limits[place] = offset
        return True

    def _refuse_records(self) -> None:
        """The transaction is given up; a partition is mirrored up to its record, and stops."""
        for place, offset in self._limits.items():
            if self._accept_gap:
                self._left_out.add((place, offset))
                log.warning("record left out", extra={"mirror": self.name, "reason": f"{place[0]}/{place[1]}:{offset} is too large"})  # fmt: skip
            elif self.rows.positions[place].next == offset:
                self._stop_at_record(place, offset)
        if self._accept_gap:
            self._limits.clear()

    def _stop_at_record(self, place: Place, offset: int) -> None:
        if place in self.stopped:
            return
        target = self.rows.positions[place].target
        self._halt(place, MirrorRecordTooLargeError(
            f"{place[0]}/{place[1]}: the record at offset {offset} is too large for the target",
            detail=f"everything before it is there; {target} takes at most its max.message.bytes",
            hint=f"`tailrace topic alter {target} --config max.message.bytes=…` at the target and "
            "start the mirror again, or leave the record out by --accept-gap",
        ))  # fmt: skip

    def _refuse_truncation(self, place: Place, position: Position, epoch: int) -> None:
        """Behind a change of leaders: did the log keep what was mirrored under the old one?"""
        if epoch < 0:
            return
        request = epochs.OffsetForLeaderEpochRequest(
            -1,
            [
                epochs.OffsetForLeaderTopic(
                    place[0], [epochs.OffsetForLeaderPartition(place[1], -1, epoch)]
                )
            ],
        )
        cluster = self._fetcher.cluster

        def ask() -> epochs.EpochEndOffset:
            leader = cluster.broker(cluster.leader(*place))
            answer = leader.request(OFFSET_FOR_LEADER_EPOCH, request)
            assert isinstance(answer, epochs.OffsetForLeaderEpochResponse)
            found = answer.topics[0].partitions[0]
            if found.error_code != ErrorCode.NONE:
                cluster.forget(place[0])
                if is_retriable(found.error_code):
                    raise TryAgain(found.error_code)
                raise RequestError.of(found.error_code, f"asking for an epoch of {place[0]}")
            return found

        found = cluster.retry(ask, "asking for the end of an epoch")
        if found.end_offset < position.next or found.leader_epoch < epoch:
            error = MirrorSourceTruncatedError(
                f"{place[0]}/{place[1]} of the source was cut back, to offset {found.end_offset}",
                detail=f"it was mirrored up to {position.next} of epoch {epoch}; "
                "what stood there then is at the target only",
                hint=f"--accept-gap goes on at offset {found.end_offset}",
            )
            error.end = found.end_offset
            raise error


class _Writing:
    """What one cycle has handed to the writer, and where it came to stand."""

    def __init__(self, positions: Mapping[Place, Position]) -> None:
        self.by_target = {(each.target, place[1]): place for place, each in positions.items()}
        self.waiting: dict[Place, deque[Run]] = {}  # `target` is not known yet
        self.runs: dict[Place, list[Run]] = {}
        self.moved: dict[Place, Position] = {}
        self.copies: dict[
            Place, list[tuple[int, str, int]]
        ] = {}  # winners that were appended again
        self.lost: dict[Place, int] = {}
        self.ends: dict[Place, int] = {}  # of what was written to places of the target
        self.count = 0
        self.sent = 0

    def lose(self, place: Place) -> None:
        """A record of the place is kept aside."""
        self.lost[place] = self.lost.get(place, 0) + 1
        self.sent += 1

    def again(self, place: Place, site: str, order: int) -> None:
        """A copy of a winner, which stood at `order` first, is handed to the writer."""
        self.waiting.setdefault(place, deque()).append(Run(-1, order, 1, site))
        self.sent += 1

    def add(self, place: Place, first: int, count: int, origin: str) -> None:
        """Records of the place are handed to the writer next."""
        self.waiting.setdefault(place, deque()).append(Run(first, -1, count, origin))
        self.count += count
        self.sent += count

    def written(self, target: Place, base: int, records: int) -> None:
        """The writer's records of a place stand at `base`."""
        place = self.by_target.get(target)
        if place is None:
            return  # a row of ours
        if base < 0:
            raise ClientError("the target did not tell where it wrote a batch")
        waiting = self.waiting[place]
        self.ends[target] = base + records
        while records:
            run = waiting.popleft()
            if run.source < 0:
                self.copies.setdefault(target, []).append((base, run.origin, run.target))
                base, records = base + 1, records - 1
                continue
            now = min(run.length, records)
            if now < run.length:
                waiting.appendleft(run._replace(source=run.source + now, length=run.length - now))
            add_runs(self.runs, {place: [run._replace(target=base, length=now)]})
            base, records = base + now, records - now


def cluster_id(cluster: Cluster) -> str:
    """What the log calls itself."""

    def ask() -> str:
        answer = cluster.any().request(METADATA, MetadataRequest([]), 12)
        assert isinstance(answer, MetadataResponse)
        return answer.cluster_id or ""

    return cluster.retry(ask, "asking for the cluster's id")


def _in_parts(runs: Mapping[Place, Sequence[Run]]) -> Iterator[dict[Place, list[Run]]]:
    """What stands in one row each, so that no row is larger than a topic takes."""
    part: dict[Place, list[Run]] = {}
    room = RUNS_IN_A_ROW
    for place, each in sorted(runs.items()):
        for at in range(0, len(each), RUNS_IN_A_ROW):
            some = list(each[at : at + RUNS_IN_A_ROW])
            if part and len(some) > room:
                yield part
                part, room = {}, RUNS_IN_A_ROW
            part[place] = some
            room -= len(some) + RUNS_OF_A_NAME
    if part:
        yield part


def fence_shards(
    target: str, name: str, shards: Iterable[int], timeout: float, clock: Clock
) -> None:
    """End whoever runs these shards of the mirror."""
    for shard in shards:
        with mirror_writer(target, name, timeout, clock, shard) as writer:
            writer.init()


def mirror_writer(
    target: str, name: str, timeout: float, clock: Clock, shard: int = 0
) -> TransactionalWriter:
    """Who writes for the mirror: whoever calls `init` on it fences the one before."""
    return TransactionalWriter(
        target,
        f"tailrace.mirror.{name}.{shard}",
        timeout=timedelta(seconds=timeout),
        buffer_bytes=2 * CYCLE_BYTES,
        create_topics=False,
        clock=clock,
    )
