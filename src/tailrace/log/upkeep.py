"""What a store does now and then: roll, flush, retention, expiry, checkpoints.

A checkpoint has two halves: the recovery points that earlier syncs have reached are
written, then new syncs begin, whose ends the next checkpoint writes. To begin them is work of
a fraction of a millisecond for each partition: thousands take their turns over many ticks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.log.checkpoints import Offsets, write_offsets
from tailrace.log.clock_watch import WAIT_SECONDS, ClockWatch
from tailrace.log.directories import (
    CLEANED,
    LOG_STARTS,
    RECOVERY_POINTS,
    DataDirectory,
    write_clock,
)
from tailrace.log.errors import StorageError
from tailrace.log.partition import Partition
from tailrace.log.retention import apply_retention, expired_segments
from tailrace.log.settings import LONG_MAX
from tailrace.log.sync import FilesystemTicket, SyncTicket, Ticket

if TYPE_CHECKING:
    from tailrace.log.store import Store

log = logging.getLogger(__name__)

_SYNCED_ONE_BY_ONE = 16
_SYNCED_TOGETHER = 500  # one after the other they are told of their ends on the loop
TURN_SECONDS = 0.02


@dataclass(slots=True)
class _Due:
    """When the next round of each periodic work is due, in monotonic seconds: a wall clock
    that is set back must not put work off."""

    retention: float
    checkpoint: float
    expiry: float
    flush: float


class Upkeep:
    """The periodic work of one store, all on its loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        now = store.clock.monotonic()
        self._due = _Due(
            retention=now + min(30, self._seconds("log.retention.check.interval.ms")),
            checkpoint=now + self._seconds("log.flush.offset.checkpoint.interval.ms"),
            expiry=now,
            flush=now,
        )
        self._watch = ClockWatch(store.clock)
        self._beginning: Iterator[None] | None = None  # a checkpoint, partition by partition

    def _seconds(self, setting: str) -> float:
        return self.store.settings.number(setting) / 1000

    def tick(self) -> None:
        """Do what is due: roll, flush, retention, producer expiry, checkpoints."""
        clock, due = self.store.clock, self._due
        self._watch.look()
        moment, now = clock.monotonic(), self._watch.believed_ms
        if moment >= due.flush:
            due.flush = moment + 0.1
            self._flush(moment)
        look = moment >= due.retention
        if look:
            due.retention = moment + self._seconds("log.retention.check.interval.ms")
            self._retain(now)
        self.store.erasing.tick(now)
        if self.store.archive is not None and not self.store.erasing.busy:
            self.store.archive.tick(self._archiving(), now, look=look)
        if moment >= due.expiry and not self._watch.doubtful:
            due.expiry = moment + 600
            limit = now - self.store.settings.number("producer.id.expiration.ms")
            for partition in self.store.partitions():
                if partition.producers.by_id:
                    partition.producers.expire(limit)
        if not self.store.erasing.busy:
            self.store.compaction.tick(self._compacted(), self.store.settings, now)
        if moment >= due.checkpoint and self._beginning is None:
            due.checkpoint = moment + self._seconds("log.flush.offset.checkpoint.interval.ms")
            self._note_points()
            self._beginning = self._begin_all()
        if self._beginning is not None:
            until = clock.monotonic() + TURN_SECONDS
            for _ in self._beginning:
                if clock.monotonic() > until:
                    break
            else:
                self._beginning = None

    @property
    def clock_doubtful(self) -> bool:
        """Whether the wall clock is ahead for a reason nobody knows: nothing is deleted by it."""
        return self._watch.doubtful

    def compare_clock(self) -> None:
        """Compare the wall clock with the newest that was noted before this start.

        Files copied from elsewhere have times of the copying, and producers give records the
        times they like, so these count only where no clock was noted.
        """
        directories = self.store.directories
        noted = [each.noted_ms for each in directories if each.noted_ms]
        if not noted:
            noted = [modified for each in directories for modified in each.modified_ms]
            noted += [
                each.active.max_timestamp
                for each in self.store.partitions()
                if each.failure is None and each.active.max_timestamp > 0
            ]
        if noted:
            waiting = max(each.clock_wait_seconds for each in directories)
            # A doubt goes on where the last stop left it: short runs end it, too.
            self._watch.compare(max(noted), waiting or WAIT_SECONDS)
        self._note_clock(directories)

    def _note_clock(self, directories: Iterable[DataDirectory]) -> None:
        for directory in directories:
            try:
                write_clock(
                    directory,
                    self._watch.believed_ms,
                    self._watch.wait_seconds,
                    self.store.shelf.files,
                )
            except OSError as error:
                log.warning("clock not noted", extra={"error": str(error)})

    def _compacted(self) -> Iterator[Partition]:
        for topic in self.store.topics.values():
            if topic.config.compact:
                yield from topic.partitions

    def _archiving(self) -> Iterator[Partition]:
        for topic in self.store.topics.values():
            if topic.config.archived:
                yield from topic.partitions

    def checkpoint(self) -> None:
        """Begin to move recovery points to the ends, and note those reached before."""
        self._note_points()
        self.sync_all()

    def _note_points(self) -> None:
        try:
            self.write_checkpoints()
        except OSError as error:
            log.warning("recovery points not written", extra={"error": str(error)})

    def sync_all(self) -> None:
        """Begin to move every recovery point to its end."""
        for _ in self._beginning or ():
            pass  # what it has begun holds files
        self._beginning = None
        for _ in self._begin_all():
            pass

    def _begin_all(self) -> Iterator[None]:
        for directory in self.store.directories:
            yield from self._in_steps(directory, list(self.partitions_of(directory)))

    def _begin_checkpoints(self, directory: DataDirectory, partitions: Iterable[Partition]) -> None:
        for _ in self._in_steps(directory, partitions):
            pass

    def _in_steps(
        self, directory: DataDirectory, partitions: Iterable[Partition]
    ) -> Iterator[None]:
        """Begin the checkpoints of some partitions, pausing behind each."""
        tickets: list[SyncTicket] = []
        for partition in partitions:
            yield
            if partition.failure is not None or not self._has(partition):
                continue
            try:
                ticket = partition.begin_sync(checkpoint=True)
            except StorageError as error:
                log.warning("checkpoint put off", extra={"error": error.detail})
                continue
            if ticket is not None:
                tickets.append(ticket)
            if len(tickets) == _SYNCED_TOGETHER:
                self._run_together(directory, tickets)
                tickets = []
        self._run_together(directory, tickets)

    def _has(self, partition: Partition) -> bool:
        """Whether a partition still is one: its topic may go between two steps."""
        topic = self.store.topics.get(partition.topic)
        return (
            topic is not None
            and partition.index < len(topic.partitions)
            and topic.partitions[partition.index] is partition
        )

    def _run_together(self, directory: DataDirectory, tickets: list[SyncTicket]) -> None:
        if len(tickets) > _SYNCED_ONE_BY_ONE:
            self._run(FilesystemTicket(directory.path, tickets))
        else:
            for ticket in tickets:
                self._run(ticket)

    def _flush(self, moment: float) -> None:
        for topic in self.store.topics.values():
            config = topic.config
            if config.flush_messages == LONG_MAX and config.flush_ms == LONG_MAX:
                continue
            for partition in topic.partitions:
                unsynced = partition.end_offset - partition.synced_offset
                if not unsynced or partition.failure is not None:
                    continue
                if 1 < config.flush_messages <= unsynced or (
                    config.flush_ms != LONG_MAX
                    and (moment - partition.synced_at) * 1000 >= config.flush_ms
                ):
                    self._sync(partition)

    def _retain(self, now: int) -> None:
        by_time = not self._watch.doubtful
        for directory in self.store.directories:
            waiting: list[Partition] = []
            for partition in self.partitions_of(directory):
                if partition.failure is not None:
                    continue
                active = partition.active
                try:
                    if active.size and now - active.created_ms > partition.config.roll_ms:
                        partition.roll(now)
                    apply_retention(partition, now, by_time=by_time)
                    if expired_segments(partition, now, by_time=by_time):
                        waiting.append(partition)
                except StorageError as error:
                    log.warning("retention put off", extra={"error": error.detail})
                except OSError as error:
                    log.warning("retention put off", extra={"error": str(error)})
            if waiting and directory.failure is None:
                self._let_go(directory, waiting, now)

    def _let_go(self, directory: DataDirectory, waiting: list[Partition], now: int) -> None:
        """Bring checkpoints past segments that retention may then delete: at once, or when
        their syncs have ended."""
        self._begin_checkpoints(
            directory,
            [each for each in waiting if each.recovery_point == each.noted_recovery_point],
        )
        if any(each.recovery_point > each.noted_recovery_point for each in waiting):
            try:
                self._write_checkpoints(directory)
            except OSError as error:
                log.warning("retention put off", extra={"error": str(error)})
                return
            for partition in waiting:
                apply_retention(partition, now, by_time=not self._watch.doubtful)
        elif self.store.sync_later is not None:
            self._due.retention = self.store.clock.monotonic() + 1

    def _sync(self, partition: Partition) -> None:
        try:
            ticket = partition.begin_sync()
        except StorageError as error:
            log.error("sync failed", extra={"error": error.detail})
            return
        if ticket is not None:
            self._run(ticket)

    def _run(self, ticket: Ticket) -> None:
        if self.store.sync_later is not None:
            self.store.sync_later(ticket)
            return
        ticket.run()
        try:
            ticket.finish()
        except StorageError as error:
            log.error("sync failed", extra={"error": error.detail})

    def write_checkpoints(self) -> None:
        for directory in self.store.directories:
            if directory.failure is None:
                self._write_checkpoints(directory)

    def _write_checkpoints(self, directory: DataDirectory) -> None:
        points: Offsets = {}
        cleaned: Offsets = {}
        partitions = list(self.partitions_of(directory))
        for partition in partitions:
            key = partition.topic, partition.index
            points[key] = partition.recovery_point
            if partition.cleaned_to:
                cleaned[key] = partition.cleaned_to
        files = self.store.shelf.files
        # Starts first: nothing is deleted for a recovery point before its start is noted.
        self._write_starts(directory)
        write_offsets(directory.path / RECOVERY_POINTS, points, files)
        directory.recovery_points = points
        for partition in partitions:
            partition.noted_recovery_point = points[partition.topic, partition.index]
        write_offsets(directory.path / CLEANED, cleaned, files)
        directory.cleaned = cleaned
        self._note_clock([directory])

    def _write_starts(self, directory: DataDirectory) -> None:
        # Even where the first segment says as much: after a power cut deleted files may be back.
        starts = {
            (partition.topic, partition.index): partition.log_start_offset
            for partition in self.partitions_of(directory)
            if partition.log_start_offset > 0
        }
        write_offsets(directory.path / LOG_STARTS, starts, self.store.shelf.files)
        directory.log_starts = starts

    def forget_offsets(self, topic: str) -> None:
        """Have on disk that nothing is noted of a topic of this name: it is about to be made,
        and what was noted was said of an earlier one."""
        for directory in self.store.directories:
            noted = (directory.recovery_points, directory.log_starts, directory.cleaned)
            if any(name == topic for offsets in noted for name, _ in offsets):
                try:
                    self._write_checkpoints(directory)
                except OSError as error:
                    raise StorageError(
                        "the offsets of an earlier topic cannot be removed", detail=str(error)
                    ) from error

    def take_back_points(self) -> None:
        """Have no recovery point on disk that lies past its log's end: what is appended there
        next would be trusted unread after a crash."""
        for directory in self.store.directories:
            if any(
                partition.noted_recovery_point > partition.end_offset
                for partition in self.partitions_of(directory)
                if partition.failure is None
            ):
                try:
                    self._write_checkpoints(directory)
                except OSError as error:
                    raise StorageError(
                        "recovery points cannot be corrected", detail=str(error)
                    ) from error

    def keep_start(self, partition: Partition) -> None:
        """Have a start that DeleteRecords moved on disk; its segments go at the next tick."""
        self._due.retention = self.store.clock.monotonic()
        for directory in self.store.directories:
            if directory.path == partition.directory.parent:
                try:
                    self._write_starts(directory)
                except OSError as error:
                    raise StorageError(
                        "the log's new start cannot be written", detail=str(error)
                    ) from error

    def partitions_of(self, directory: DataDirectory) -> Iterator[Partition]:
        for partition in self.store.partitions():
            if partition.directory.parent == directory.path:
                yield partition
