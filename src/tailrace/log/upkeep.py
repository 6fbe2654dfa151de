"""What a store does now and then: roll, flush, retention, expiry, checkpoints.

A checkpoint has two halves: the recovery points that earlier syncs have reached are
written, then new syncs begin, whose ends the next checkpoint writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.log.checkpoints import Offsets, write_offsets
from tailrace.log.clock_watch import ClockWatch
from tailrace.log.directories import CLEANED, LOG_STARTS, RECOVERY_POINTS, DataDirectory
from tailrace.log.errors import StorageError
from tailrace.log.partition import Partition
from tailrace.log.retention import apply_retention
from tailrace.log.settings import LONG_MAX
from tailrace.log.sync import FilesystemTicket, SyncTicket, Ticket

if TYPE_CHECKING:
    from tailrace.log.store import Store

log = logging.getLogger(__name__)

_SYNCED_ONE_BY_ONE = 16


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

    def _seconds(self, setting: str) -> float:
        return self.store.settings.number(setting) / 1000

    def tick(self) -> None:
        """Do what is due: roll, flush, retention, producer expiry, checkpoints."""
        clock, due = self.store.clock, self._due
        moment, now = clock.monotonic(), clock.wall_ms()
        self._watch.look()
        if moment >= due.flush:
            due.flush = moment + 0.1
            self._flush(moment)
        look = moment >= due.retention
        if look:
            due.retention = moment + self._seconds("log.retention.check.interval.ms")
            self._retain(now)
        if self.store.archive is not None:
            self.store.archive.tick(self._archiving(), now, look=look)
        if moment >= due.expiry and not self._watch.doubtful:
            due.expiry = moment + 600
            limit = now - self.store.settings.number("producer.id.expiration.ms")
            for partition in self.store.partitions():
                if partition.producers.by_id:
                    partition.producers.expire(limit)
        self.store.compaction.tick(self._compacted(), self.store.settings, now)
        if moment >= due.checkpoint:
            due.checkpoint = moment + self._seconds("log.flush.offset.checkpoint.interval.ms")
            self.checkpoint()

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
        try:
            self.write_checkpoints()
        except OSError as error:
            log.warning("recovery points not written", extra={"error": str(error)})
        self.sync_all()

    def sync_all(self) -> None:
        """Begin to move every recovery point to its end."""
        for directory in self.store.directories:
            tickets: list[SyncTicket] = []
            for partition in self.partitions_of(directory):
                if partition.failure is not None:
                    continue
                try:
                    ticket = partition.begin_sync(checkpoint=True)
                except StorageError as error:
                    log.warning("checkpoint put off", extra={"error": error.detail})
                    continue
                if ticket is not None:
                    tickets.append(ticket)
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
        for partition in self.store.partitions():
            if partition.failure is not None:
                continue
            active = partition.active
            try:
                if active.size and now - active.created_ms > partition.config.roll_ms:
                    partition.roll(now)
                apply_retention(partition, now, by_time=not self._watch.doubtful)
            except StorageError as error:
                log.warning("retention put off", extra={"error": error.detail})
            except OSError as error:
                log.warning("retention put off", extra={"error": str(error)})

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
            if directory.failure is not None:
                continue
            points: Offsets = {}
            cleaned: Offsets = {}
            for partition in self.partitions_of(directory):
                key = partition.topic, partition.index
                points[key] = partition.recovery_point
                if partition.cleaned_to:
                    cleaned[key] = partition.cleaned_to
            for name, offsets in ((RECOVERY_POINTS, points), (CLEANED, cleaned)):
                write_offsets(directory.path / name, offsets, self.store.shelf.files)
            self._write_starts(directory)

    def _write_starts(self, directory: DataDirectory) -> None:
        starts = {
            (partition.topic, partition.index): partition.log_start_offset
            for partition in self.partitions_of(directory)
            if partition.log_start_offset > partition.bases[0]
        }
        write_offsets(directory.path / LOG_STARTS, starts, self.store.shelf.files)

    def keep_start(self, partition: Partition) -> None:
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
