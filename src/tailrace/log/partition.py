"""One partition: segments in a row, and what may be read of them.

All calls come from one thread, the broker's loop. Only `SyncTicket.run` may run on
another, and touches nothing but descriptors.

    log start offset ≤ … ≤ last stable offset ≤ high watermark ≤ end offset

Under `flush.messages=1` the high watermark is the offset up to which the files are
synced, else the end. The last stable offset stops at the first record of the oldest open
transaction. A crash leaves the synced part and, behind it, possibly a torn batch, which
recovery cuts off.
"""

from __future__ import annotations

import errno
import struct
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from tailrace.log.admission import Admitted, WritableBatch, admit
from tailrace.log.errors import (
    MessageTooLargeError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    StorageError,
)
from tailrace.log.lookup import TimeOffset, find_largest_time, find_time
from tailrace.log.partition_state import PartitionState
from tailrace.log.reading import read_slice
from tailrace.log.segment import Segment, Shelf
from tailrace.log.settings import TopicConfig
from tailrace.log.slices import Appended, Slice
from tailrace.log.sync import SyncTicket
from tailrace.log.transactions import AbortedEntry, AbortedTransaction, AbortedTransactions
from tailrace.records.encode import set_append_time
from tailrace.records.header import CONTROL, BatchHeader, check_batch
from tailrace.records.markers import encode_marker

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_MOST_RELATIVE = 2**31 - 1

__all__ = ["Appended", "Partition", "Slice", "WritableBatch"]


class Partition(PartitionState):
    """See the module's docstring. `Store` makes and closes partitions."""

    __slots__ = ("keep_start", "on_moved")

    def __init__(
        self,
        topic: str,
        index: int,
        directory: Path,
        config: TopicConfig,
        shelf: Shelf,
        leader_epoch: int,
    ) -> None:
        self.on_moved: Callable[[Partition], None] | None = None
        """Called when offsets move outside an append: a sync, retention, DeleteRecords."""
        self.keep_start: Callable[[Partition], None] | None = None
        """Called to have a start moved by DeleteRecords on disk."""
        super().__init__(topic, index, directory, config, shelf, leader_epoch)

    # ── appending ───────────────────────────────────────────────────────────────────

    def append(self, batch: WritableBatch, *, now_ms: int | None = None) -> Appended:
        """Append the one batch a client sent, patching its offset in place.

        Everything is checked before anything is written; a batch that repeats one of the
        producer's last five is answered with the first result. Raises errors with a
        `kafka_code`: 2, 10, 32, 45, 47, 48, 56, 76, 87.
        """
        return self.append_admitted(self.admit(batch, now_ms=now_ms), now_ms=now_ms)

    def admit(
        self, batch: WritableBatch, *, now_ms: int | None = None, limit: int | None = None
    ) -> Admitted:
        """Check the batch of a client, all but its producer's sequence; safe on any thread."""
        if len(batch) > self._config.max_message_bytes and len(batch) > 61:
            self._check_size(batch)
        now = self.shelf.clock.wall_ms() if now_ms is None else now_ms
        return admit(batch, self._config, now, limit)

    def append_admitted(self, admitted: Admitted, *, now_ms: int | None = None) -> Appended:
        """Append a batch that `admit` let through."""
        return self._append(admitted.batch, admitted.header, now_ms)

    def append_internal(self, batch: WritableBatch, *, now_ms: int | None = None) -> Appended:
        """Append a batch the broker itself made; no size limit, any base offset. Offsets
        committed in a transaction come with the producer's id and without a sequence."""
        return self._append(batch, check_batch(batch), now_ms)

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        coordinator_epoch: int,
        *,
        now_ms: int | None = None,
    ) -> Appended:
        """End the producer's transaction here; raises 47 or 52 if the marker comes too late.

        A marker without an open transaction is written all the same, as in Kafka.
        """
        self.producers.check_marker(producer_id, epoch, coordinator_epoch)
        now = self.shelf.clock.wall_ms() if now_ms is None else now_ms
        batch = encode_marker(commit, producer_id, epoch, coordinator_epoch, timestamp=now)
        return self._append(batch, check_batch(batch), now)

    def _check_size(self, batch: WritableBatch) -> None:
        size = 12 + int.from_bytes(batch[8:12], "big", signed=True)
        if size > self._config.max_message_bytes and batch[16] == 2:
            raise MessageTooLargeError(
                f"a batch of {size} bytes is too large for {self.topic}",
                detail=f"max.message.bytes is {self._config.max_message_bytes}",
            )

    def _append(self, batch: WritableBatch, header: BatchHeader, now_ms: int | None) -> Appended:
        config = self._config
        attributes = header[5]
        control = attributes & CONTROL
        now = self.shelf.clock.wall_ms() if now_ms is None else now_ms
        if self.failure is not None:
            raise self.failure
        producer_id = header[9]
        if producer_id >= 0 and not control:
            known = self.producers.check(header)
            if known is not None:
                return Appended(
                    known.base_offset,
                    known.last_offset,
                    known.timestamp if config.log_append_time else -1,
                    self.log_start_offset,
                    True,
                )
        timestamp, append_time = header[8], -1
        if config.log_append_time:
            set_append_time(batch, now)
            timestamp = append_time = now

        base_offset = self.end_offset
        size = header[1] + 12
        segment = self.active
        if (
            segment.size + size > config.segment_bytes
            or base_offset + header[6] - segment.base_offset > _MOST_RELATIVE
            or (
                segment.first_timestamp >= 0
                and timestamp - segment.first_timestamp > config.roll_ms - segment.jitter_ms
            )
            or segment.index_bytes >= config.segment_index_bytes
        ) and segment.size:
            segment = self.roll(now)
        if self.epochs.latest != self.leader_epoch:
            self._begin_epoch(base_offset)
        _BASE_OFFSET.pack_into(batch, 0, base_offset)
        _LEADER_EPOCH.pack_into(batch, 12, self.leader_epoch)
        if not segment.ready:
            self._open_active()
        descriptor = segment.descriptor
        assert descriptor is not None
        try:
            written = self.shelf.files.pwrite(descriptor.number, batch, segment.size)
        except OSError as error:
            raise self._refused(error, segment) from error
        if written != size:
            raise self._refused(OSError(errno.ENOSPC, "short write"), segment)

        segment.appended(header, base_offset, timestamp, config.index_interval_bytes)
        end_offset = base_offset + header[6] + 1
        self.end_offset = end_offset
        self.last_append_ms = now
        if producer_id >= 0:
            if control:
                self._note_marker(batch, header, base_offset, timestamp)
            else:
                self.producers.note(header, base_offset, timestamp, now)
                if self.first_unstable < 0 and self.producers.open:
                    self.first_unstable = base_offset
        if not self.needs_sync:
            self.high_watermark = end_offset
            if self.first_unstable < 0:
                self.last_stable_offset = end_offset
            elif self.ending or control:
                self._find_stable()
            else:
                self.last_stable_offset = self.first_unstable
        return Appended(base_offset, end_offset - 1, append_time, self.log_start_offset, False)

    def _open_active(self) -> None:
        segment = self.active
        try:
            segment.make_ready()
        except OSError as error:
            raise self._refused(error, segment) from error

    # ── segments ────────────────────────────────────────────────────────────────────

    def roll(self, now_ms: int) -> Segment:
        """Seal the active segment and begin another at the end; raises `StorageError`."""
        old, held = self.active, self.active.descriptor
        if held is not None and not self.shelf.hold(old.path, held):
            self._sync_now(held)
            held = None
        new = Segment(str(self.directory), self.end_offset, 0, self.shelf, sealed=False)
        new.begin(now_ms, self._config.segment_jitter_ms)
        try:
            new.make_ready()
            self.write_snapshot()
            self._pending_paths.update(dict.fromkeys(old.seal()))
        except OSError as error:
            new.release_descriptor()
            raise self._refused(error, old) from error
        if held is not None:
            self._unsynced[old.path] = None
        old.release_descriptor()
        self._names += 1
        self.active = new
        self.segments.append(new)
        self.bases.append(new.base_offset)
        return new

    def drop_segments(self, count: int) -> int:
        """Delete the oldest `count` segments, never the active one; the start moves.

        Segments that a start after a crash would read stay until a checkpoint is past them:
        nothing else says what their producers did, and which transactions are open. Returns
        how many went.
        """
        count = min(count, bisect_right(self.bases, self.noted_recovery_point) - 1)
        if count <= 0:
            return 0
        gone = self.segments[:count]
        del self.segments[:count]
        del self.bases[:count]
        for segment in gone:
            self._unsynced.pop(segment.path, None)
            self.shelf.let_go(segment.path)
            self.shelf.let_go(f"{segment.stem}.txnindex")
            self._unwritten.pop(segment, None)
        self._move_start(max(self.log_start_offset, self.bases[0]))
        for segment in gone:
            segment.delete()
        return count

    def replace_segments(self, segments: list[Segment], aborted: list[AbortedEntry]) -> None:
        """Take cleaned segments in the place of old ones."""
        for path in (*self._unsynced, *self._pending_paths):
            self.shelf.let_go(path)  # it may have been replaced
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.aborted = AbortedTransactions()
        for entry in aborted:
            self.aborted.add(entry)

    # ── reading ─────────────────────────────────────────────────────────────────────

    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int | None = None,
        *,
        minimum_one_batch: bool = True,
    ) -> Slice:
        """Batches from the one holding `offset`, up to `limit_offset` (default: the high
        watermark), at most `max_bytes`, from one segment.

        The last batch may be cut by `max_bytes`; the first is whole unless
        `minimum_one_batch` is off. The first records may lie before `offset`: readers skip
        them. Length 0 means nothing is there yet. Raises `OffsetOutOfRangeError` (1) and,
        on a damaged batch, `CorruptSegmentError` (56).
        """
        return read_slice(self, offset, max_bytes, limit_offset, minimum_one_batch)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end)."""
        if not self.aborted.entries:
            return []
        return self.aborted.between(start, end)

    def offset_for_time(self, timestamp: int) -> TimeOffset | None:
        """The first record at or after the timestamp, exact inside batches."""
        return find_time(self, timestamp)

    def max_timestamp_offset(self) -> TimeOffset | None:
        """The first record with the largest timestamp; None if the log is empty."""
        return find_largest_time(self)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch; (−1, −1) for an epoch to come."""
        if epoch > self.leader_epoch or epoch < 0:
            return -1, -1
        if epoch == self.leader_epoch:
            return epoch, self.end_offset
        return self.epochs.end_of(epoch, self.end_offset)

    # ── syncing ─────────────────────────────────────────────────────────────────────

    def begin_sync(self, *, checkpoint: bool = False) -> SyncTicket | None:
        """A ticket for what is not yet on disk, or None if all is.

        Hand `ticket.run()` to any thread, then call `ticket.finish()` on this one. Several
        tickets may be under way. With `checkpoint`, indexes and the producers' state are
        synced too, so that recovery may begin at this offset.
        """
        if self.failure is not None:
            raise self.failure
        synced = self.synced_offset == self.end_offset
        if synced and (not checkpoint or self.recovery_point == self.end_offset):
            return None
        paths = list(self._unsynced)
        if checkpoint:
            try:
                if self.active.ready:
                    self._pending_paths.update(dict.fromkeys(self.active.write_indexes()))
                self.write_snapshot()
            except OSError as error:
                raise self._refused(error, self.active) from error
            for segment in list(self._unwritten):
                if segment in self.segments:
                    self._write_aborted(segment)
            if self._unwritten:
                raise self._refused(OSError(errno.ENOSPC, "disk full"), self.active)
            paths += self._pending_paths
        directories: list[str] = []
        if self._names != self.names_synced:
            directories = [str(self.directory), str(self.directory.parent)]
        return SyncTicket(self, paths, directories, self._names, checkpoint)

    def sync(self, *, checkpoint: bool = False) -> None:
        """Have everything appended so far on disk on return."""
        ticket = self.begin_sync(checkpoint=checkpoint)
        if ticket is not None:
            ticket.run()
            ticket.finish()

    def synced(self, ticket: SyncTicket) -> None:
        """Take note of what a finished ticket has brought to disk."""
        # Only now, not when the ticket began: a later ticket that ends first must have
        # synced these files itself.
        for path in ticket.paths:
            self._unsynced.pop(path, None)
            self.shelf.let_go(path)
            if ticket.checkpoint:
                self._pending_paths.pop(path, None)
        self.names_synced = max(self.names_synced, ticket.names)
        self.synced_at = self.shelf.clock.monotonic()
        if ticket.checkpoint and ticket.offset > self.recovery_point:
            self.recovery_point = ticket.offset
        if ticket.offset > self.synced_offset:
            self.synced_offset = ticket.offset
            if self.needs_sync and ticket.offset > self.high_watermark:
                self.high_watermark = ticket.offset
                self._find_stable()
                self._moved()

    # ── administration ──────────────────────────────────────────────────────────────

    def delete_records(self, offset: int) -> int:
        """Move the log's start to `offset` (−1: the high watermark); the new start, on disk.

        Raises 1 past the high watermark, 44 if the topic is only compacted.
        """
        if self._config.compact and not self._config.delete:
            raise PolicyViolationError(
                f"records of {self.topic} cannot be deleted by offset",
                detail="cleanup.policy is compact",
            )
        if offset == -1:
            offset = self.high_watermark
        if offset > self.high_watermark or offset < 0:
            raise OffsetOutOfRangeError(
                f"offset {offset} of {self.topic}-{self.index} is not there",
                detail=f"the log ends at {self.high_watermark}",
            )
        if offset > self.log_start_offset:
            self._move_start(offset)
            if self.keep_start is not None:
                self.keep_start(self)
            self.drop_segments(bisect_right(self.bases, offset) - 1)
        return self.log_start_offset

    def sync_recovered(self) -> None:
        """Sync what recovery found where readers were promised it: the page cache may hold
        more than the disk."""
        if not self.needs_sync:
            return
        self._unsynced = {segment.path: None for segment in self.segments if segment.sealed}
        self.sync()

    def lose(self, failure: StorageError) -> None:
        """Be a partition whose directory is not there: every read and append raises."""
        self.failure = failure
        self.active = Segment(str(self.directory), 0, 0, self.shelf, sealed=False)
        self.segments, self.bases = [self.active], [0]

    def close(self) -> None:
        """Let go of all files; nothing is written."""
        for path in (*self._unsynced, *self._pending_paths, self.active.path):
            self.shelf.let_go(path)
        for segment in self.segments:
            segment.release_descriptor()
            self.shelf.forget(segment)

    def _moved(self) -> None:
        if self.on_moved is not None:
            self.on_moved(self)
