"""One mirror: fetch, write, rows, commit, in one transaction of the target per cycle.

    with Mirror("to-berlin", "ams:9092", "ber:9092", topics="orders.*") as mirror:
        mirror.run_until_caught_up()

A cycle takes what the source has committed, up to `CYCLE_BYTES`. Batches are passed through with
another head; a batch with gaps (compacted), with times of its log, or begun in the middle is
opened. The rows that say what was done stand in the same transaction, so a mirror that is killed
goes on where its last commit was: `init` ends what it left open, and a commit that was on its way
is found in the rows.

What the source lost is never passed over: the partition's error is raised, with offsets.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
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
    TopicExistsError,
    TopicProtectedError,
    UnreadableBatchError,
)
from tailrace.client.fetcher import Answer, Fetcher
from tailrace.client.groups import Groups
from tailrace.client.sender import is_retriable
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.mirroring.errors import (
    MirrorError,
    MirrorFailedOverError,
    MirrorFencedError,
    MirrorLoopError,
    MirrorSourceLostError,
)
from tailrace.mirroring.rows import (
    TOPIC,
    MirrorRows,
    Position,
    Run,
    State,
    add_runs,
    ensure_topic,
    position_row,
    read_rows,
    run_key,
    runs_row,
    state_row,
)
from tailrace.mirroring.translate import translate
from tailrace.records.batch import BatchHeader, decode_records
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import offset_for_leader_epoch as epochs
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse

CYCLE_BYTES = 16 * 1024 * 1024
GROUP_SECONDS = 5.0
LOOK_SECONDS = 2.0  # for new topics and partitions
IDLE_SECONDS = 0.05
MOST_RUN_ROWS = 500  # then they become few large ones
RUNS_IN_A_ROW = 5_000
MOST_FAILURES = 20  # one after another, each after the patience of its request
FINAL = (
    NotAllowedError,
    TopicProtectedError,
    RecordTooLargeError,
    UnreadableBatchError,
    DamagedBatchError,
)
SAME, PREFIX = "same", "prefix"
# Settings that belong to the place, not to the topic.
NOT_COPIED = re.compile(
    r"(leader|follower)\.replication\.throttled\.replicas|min\.insync\.replicas"
    r"|unclean\.leader\.election\.enable|(tailrace|internal|remote)\..*"
)
OFFSET_FOR_LEADER_EPOCH = APIS[ApiKey.OFFSET_FOR_LEADER_EPOCH]


class Mirror:
    """See the module. Owns connections; one thread only. `source_name` prefixes topics."""

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
        timeout: float = 60.0,
        clock: Clock = SYSTEM,
        step: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`step` is called with the name of each step before it; tests kill there."""
        _validate_name(name)
        if names not in (SAME, PREFIX):
            raise UsageError(f"names are {SAME} or {PREFIX}, not {names!r}")
        if names == PREFIX and not source_name:
            raise UsageError("names with a prefix need the name of the source", hint="--prefix ams")
        self._pattern = _compiled(topics)
        self._groups = None if groups is None else _compiled(groups)
        self._groups_at = -1e9
        self.name = name
        self._names, self._prefix = names, source_name
        self._clock = clock
        self._step = step
        self.rows = MirrorRows()
        self.records = 0
        self._failures = 0
        self._looked_at = -1e9
        self._source_admin = Admin(source, timeout=timeout, clock=clock)
        self._target_admin = Admin(target, timeout=timeout, clock=clock)
        self._fetcher = Fetcher(source, fetch_bytes=4 * 1024 * 1024, timeout=timeout, clock=clock)
        self._writer = _writer(target, name, timeout, clock)
        try:
            self._begin()
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
        self._writer.close()

    # Running -------------------------------------------------------------------

    def run(self, stopping: Callable[[], bool]) -> None:
        """Cycle after cycle, until `stopping()`. Raises MirrorError."""
        while not stopping():
            if not self.cycle():
                self._clock.sleep(IDLE_SECONDS)

    def run_until_caught_up(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Until everything is there that the source has committed now."""
        self._look()
        ends = self._source_admin.end_offsets(self.rows.positions)
        while not stopping() and any(
            self.rows.positions[place].next < end for place, end in ends.items()
        ):
            self.cycle()
        self._groups_at = -1e9
        self.cycle()

    def cycle(self) -> int:
        """Fetch, write and commit once; how many records. What can be tried again is, from the
        rows at the target; an error that comes again and again is raised."""
        try:
            self._look()
            count = self._cycle()
            small_from = max(self.rows.first_run, self.rows.large_until)
            if self.rows.next_run - small_from >= MOST_RUN_ROWS:
                self._consolidate()
            self._carry_groups()
        except ProducerFencedError as error:
            raise self._fenced() from error
        except FINAL:
            raise
        except ClientError:
            self._failures += 1
            if self._failures > MOST_FAILURES:
                raise
            self._recover()
            return 0
        self._failures = 0
        return count

    def lag(self) -> dict[Place, int]:
        """By partition, how many offsets the source has committed beyond the mirror."""
        ends = self._source_admin.end_offsets(self.rows.positions)
        return {place: max(0, end - self.rows.positions[place].next) for place, end in ends.items()}

    # Inside: the beginning -----------------------------------------------------

    def _begin(self) -> None:
        source, target = cluster_id(self._source_admin.cluster), cluster_id(self._target_admin.cluster)  # fmt: skip
        ensure_topic(self._target_admin)
        self._refuse_loops(source, target)
        self._step("init")
        self._writer.init()
        self._read_rows()
        state = self.rows.state
        if state is not None and state.state == "failed-over":
            raise MirrorFailedOverError(
                f'the mirror "{self.name}" was failed over',
                detail="its target is written by others now",
                hint="use a mirror of another name",
            )
        if state is not None and (state.source, state.names) != (source, self._names):
            raise MirrorError(
                f'there is a mirror "{self.name}" from another log, or with other names',
                detail=f"from cluster {state.source}, names {state.names}",
                hint="give this one another name",
            )
        began = State("running", source, target, self._pattern.pattern, self._names, self._clock.wall_ms())  # fmt: skip
        self._writer.send(TOPIC, 0, *state_row(self.name, began))
        self._writer.commit()
        self.rows.state = began

    def _refuse_loops(self, source: str, target: str) -> None:
        if self._names == PREFIX:
            return
        if source == target:
            raise MirrorLoopError("both ends of the mirror are one log", hint="use --names prefix")
        for name, rows in read_rows(self._source_admin, self._fetcher).items():
            back = rows.state
            if back is None or back.state != "running" or back.names != SAME:
                continue
            shared = [
                topic.name for topic in self._topics() if re.fullmatch(back.topics, topic.name)
            ]
            if back.source == target and shared:
                raise MirrorLoopError(
                    f'the mirror "{name}" brings {shared[0]} here from there',
                    hint="use --names prefix, or topics that differ",
                )

    def _read_rows(self) -> None:
        fetcher = Fetcher(self._target_admin.cluster.bootstrap, clock=self._clock)
        try:
            found = read_rows(self._target_admin, fetcher)
        finally:
            fetcher.close()
        self.rows = found.get(self.name, MirrorRows())

    def _recover(self) -> None:
        """After an error: what was begun is given up; what was committed is in the rows."""
        try:
            self._writer.init()
        except ProducerFencedError as error:
            raise self._fenced() from error
        self._read_rows()
        if self.rows.state is not None and self.rows.state.state == "failed-over":
            raise self._fenced()
        self._looked_at = -1e9

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
            if self._pattern.fullmatch(each.name) and not each.name.startswith("__")
        ]

    def _look(self) -> None:
        """Topics and partitions that are new, or replaced."""
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for topic in self._topics():
            target = f"{self._prefix}.{topic.name}" if self._names == PREFIX else topic.name
            count, id = len(topic.leaders), topic.id.hex()
            lacking = [
                each for each in range(count) if (topic.name, each) not in self.rows.positions
            ]
            for partition in range(count):
                known = self.rows.positions.get((topic.name, partition))
                if known is not None and known.topic_id != id:
                    raise MirrorSourceLostError(
                        f'the topic "{topic.name}" was deleted and made again at the source',
                        detail=f"partition {partition} was mirrored up to offset {known.next}",
                        hint="`tailrace errors mirror-source-lost` says how to go on",
                    )
            if not lacking:
                continue
            self._make_target(topic.name, target, count)
            starts = self._source_admin.start_offsets([(topic.name, each) for each in lacking])
            for (name, partition), start in starts.items():
                self.rows.positions[name, partition] = Position(start, -1, id, target)

    def _make_target(self, topic: str, target: str, partitions: int) -> None:
        found = self._target_admin.describe_topic(target)
        if found is None:
            config = {
                name: str(entry.value)
                for name, entry in self._source_admin.topic_config(topic).items()
                if not entry.is_default
                and entry.value is not None
                and not NOT_COPIED.fullmatch(name)
            }
            try:
                self._target_admin.create_topic(target, partitions, config)
                return
            except TopicExistsError:
                found = self._target_admin.describe_topic(target)
        if found is not None and len(found.leaders) < partitions:
            self._target_admin.add_partitions(target, partitions)

    # Inside: one cycle ---------------------------------------------------------

    def _cycle(self) -> int:
        size = count = 0
        waiting: dict[Place, deque[tuple[int, int]]] = {}  # source offsets, as first and count
        runs: dict[Place, list[Run]] = {}
        moved: dict[Place, Position] = {}
        by_target = {
            (position.target, place[1]): place for place, position in self.rows.positions.items()
        }

        def written(target: Place, base: int, records: int) -> None:
            place = by_target.get(target)
            if place is None:
                return  # a row of ours
            if base < 0:
                raise ClientError("the target did not tell where it wrote a batch")
            while records:
                source, length = waiting[place].popleft()
                now = min(length, records)
                if now < length:
                    waiting[place].appendleft((source + now, length - now))
                add_runs(runs, {place: [(source, base, now)]})
                base, records = base + now, records - now

        self._writer.on_written = written
        ends = self._source_admin.end_offsets(self.rows.positions)
        for place, position in sorted(self.rows.positions.items()):
            if size >= CYCLE_BYTES:
                break
            if ends[place] == position.next:
                continue
            self._step("fetch")
            answer = self._fetch(place, position)
            batches, following = visible_batches(
                answer.buffer, position.next, None, answer.aborted, place=place
            )
            if following == position.next:
                continue
            epoch = position.epoch
            for at, header in batches:
                if header.leader_epoch != epoch:
                    self._refuse_truncation(place, position, epoch)
                    epoch = header.leader_epoch
                passed = self._pass_on(place, position, answer, at, header)
                waiting.setdefault(place, deque()).extend(passed)
                size += header.size
                count += sum(length for _, length in passed)
            moved[place] = Position(following, epoch, position.topic_id, position.target)
        if not count:
            # Markers and aborted records alone: nothing that a successor would repeat.
            self.rows.positions.update(moved)
            return 0
        self._step("flush")
        self._writer.flush()
        for place, position in moved.items():
            self._writer.send(TOPIC, 0, *position_row(self.name, place, position))
        self._writer.send(TOPIC, 0, *runs_row(self.name, self.rows.next_run, runs))
        self._step("commit")
        self._writer.commit()
        self._step("committed")
        self.rows.positions.update(moved)
        add_runs(self.rows.runs, runs)
        self.rows.next_run += 1
        self.records += count
        return count

    def _consolidate(self) -> None:
        """Write the rows of runs again, as few large ones; runs of records that the target does
        not keep any more are left out."""
        rows = self.rows
        targets = {place: (each.target, place[1]) for place, each in rows.positions.items()}
        starts = self._target_admin.start_offsets(targets.values())
        kept: dict[Place, list[Run]] = {}
        for place, runs in rows.runs.items():
            start = starts[targets[place]]
            kept[place] = [run for run in runs if run[1] + run[2] > start]
        number = rows.next_run
        for place, runs in sorted(kept.items()):
            for at in range(0, len(runs), RUNS_IN_A_ROW):
                part = {place: runs[at : at + RUNS_IN_A_ROW]}
                self._writer.send(TOPIC, 0, *runs_row(self.name, number, part))
                number += 1
        for old in range(rows.first_run, rows.next_run):
            self._writer.send(TOPIC, 0, run_key(self.name, old), None)
        self._step("consolidate")
        self._writer.commit()
        rows.runs = kept
        rows.first_run, rows.next_run, rows.large_until = rows.next_run, number, number

    def _carry_groups(self) -> None:
        """Store at the target how far groups have read at the source, translated.

        A group with members at the target, or further there already, is left alone. What is
        not mirrored yet waits.
        """
        now = self._clock.monotonic()
        if self._groups is None or now - self._groups_at < GROUP_SECONDS:
            return
        self._groups_at = now
        source, target = Groups(self._source_admin), Groups(self._target_admin)
        for group in source.every():
            if group.kind == "share" or not self._groups.fullmatch(group.name):
                continue
            wanted = self._translated(source.offsets(group.name))
            if not wanted:
                continue
            known = target.describe(group.name)
            if known is not None and known.members:
                continue
            stored = target.offsets(group.name)
            ahead = {place: each for place, each in wanted.items() if each > stored.get(place, -1)}
            if ahead:
                self._writer.send_offsets(group.name, ahead)
                self._step("groups")
                self._writer.commit()

    def _translated(self, offsets: Mapping[Place, int]) -> dict[Place, int]:
        found = {}
        for place, offset in offsets.items():
            position, runs = self.rows.positions.get(place), self.rows.runs.get(place)
            if position is None or not runs or offset > position.next:
                continue
            end = runs[-1][1] + runs[-1][2]  # behind the last record that is there
            found[position.target, place[1]] = translate(runs, offset, end)
        return found

    def _fetch(self, place: Place, position: Position) -> Answer:
        try:
            return self._fetcher.ask(*place, position.next)
        except OffsetOutOfRangeError as error:
            start = self._source_admin.start_offsets([place])[place]
            end = self._source_admin.end_offsets([place], "read_uncommitted")[place]
            lost = (
                f"retention removed offsets {position.next} to {start - 1}"
                if start > position.next
                else f"the source ends at {end} now"
            )
            raise MirrorSourceLostError(
                f"{place[0]}/{place[1]} of the source does not hold offset {position.next} any more",
                detail=lost,
                hint="`tailrace errors mirror-source-lost` says how to go on",
            ) from error

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
            raise MirrorSourceLostError(
                f"{place[0]}/{place[1]} of the source was cut back, to offset {found.end_offset}",
                detail=f"it was mirrored up to {position.next} of epoch {epoch}; "
                "what stood there then is at the target only",
                hint="`tailrace errors mirror-source-lost` says how to go on",
            )

    def _pass_on(
        self, place: Place, position: Position, answer: Answer, at: int, header: BatchHeader
    ) -> list[tuple[int, int]]:
        """Hand one batch to the writer; the source offsets of its records, as first and count."""
        whole = (
            header.base_offset >= position.next
            and header.record_count == header.last_offset_delta + 1
            and not header.log_append_time
        )
        if whole:
            batch = memoryview(answer.buffer)[at : at + header.size]
            self._writer.send_batch(position.target, place[1], batch)
            return [(header.base_offset, header.record_count)]
        offsets = []
        for record in decode_records(answer.buffer, at):
            if record.offset >= position.next:
                self._writer.send(
                    position.target, place[1], record.key, record.value, record.headers,
                    record.timestamp,
                )  # fmt: skip
                offsets.append((record.offset, 1))
        return offsets


def fail_over(name: str, target: str, clock: Clock = SYSTEM) -> None:
    """Fence the process that runs the mirror, and write that the target is on its own now."""
    with (
        Admin(target, clock=clock) as admin,
        Fetcher(target, clock=clock) as fetcher,
        _writer(target, name, 60.0, clock) as writer,
    ):
        writer.init()
        rows = read_rows(admin, fetcher).get(name)
        if rows is None or rows.state is None:
            raise UsageError(f'there is no mirror "{name}" into this log')
        known = rows.state
        over = State("failed-over", known.source, known.target, known.topics, known.names, clock.wall_ms())  # fmt: skip
        writer.send(TOPIC, 0, *state_row(name, over))
        writer.commit()


def cluster_id(cluster: Cluster) -> str:
    """What the log calls itself."""

    def ask() -> str:
        answer = cluster.any().request(METADATA, MetadataRequest([]), 12)
        assert isinstance(answer, MetadataResponse)
        return answer.cluster_id or ""

    return cluster.retry(ask, "asking for the cluster's id")


def _writer(target: str, name: str, timeout: float, clock: Clock) -> TransactionalWriter:
    from datetime import timedelta

    return TransactionalWriter(
        target,
        f"tailrace.mirror.{name}.0",
        timeout=timedelta(seconds=timeout),
        buffer_bytes=2 * CYCLE_BYTES,
        create_topics=False,
        clock=clock,
    )


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is no pattern", detail=str(error)) from error


def _validate_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name) or name in ("runs", "state"):
        raise UsageError(
            f"{name!r} cannot be the name of a mirror",
            hint="letters, digits, dots, dashes and underscores; not runs, not state",
        )
