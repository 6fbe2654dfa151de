"""What a partition knows: offsets, producers, transactions, epochs.

Everything here is worked out from batch headers and kept over restarts in small files:
producers in `<offset>.snapshot`, aborted transactions in `<base>.txnindex`, epochs in
`leader-epoch-checkpoint`. None of them is synced by itself: a checkpoint syncs them before
the recovery point moves, and recovery rebuilds what lies behind it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

from tailrace.log.checkpoints import LeaderEpochs
from tailrace.log.damage import Damage
from tailrace.log.errors import DiskFullError, StorageError
from tailrace.log.files import WRITE, Descriptor
from tailrace.log.producers import CompletedTransaction, ProducerRow, Producers
from tailrace.log.segment import Segment, Shelf
from tailrace.log.settings import LONG_MAX, TopicConfig
from tailrace.log.transactions import AbortedEntry, AbortedTransactions, encode_entries
from tailrace.records.header import BatchHeader
from tailrace.records.markers import decode_marker


class PartitionState:
    """Offsets and bookkeeping of one partition; `Partition` moves the bytes."""

    active: Segment
    needs_sync: bool
    """Answer a producer only once the high watermark has passed its batch."""

    __slots__ = (
        "_config",
        "_names",
        "_pending_paths",
        "_unsynced",
        "_unwritten",
        "aborted",
        "active",
        "bases",
        "cleaned_to",
        "directory",
        "end_offset",
        "ending",
        "epochs",
        "failure",
        "first_unstable",
        "high_watermark",
        "index",
        "last_append_ms",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "names_synced",
        "needs_sync",
        "noted_recovery_point",
        "producers",
        "recovery_point",
        "segments",
        "shelf",
        "snapshots",
        "synced_at",
        "synced_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        directory: Path,
        config: TopicConfig,
        shelf: Shelf,
        leader_epoch: int,
    ) -> None:
        self.topic = topic
        self.index = index
        self.directory = directory
        self.shelf = shelf
        self.leader_epoch = leader_epoch
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.log_start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.synced_offset = 0
        self.recovery_point = 0
        self.noted_recovery_point = 0
        """The recovery point in the directory's checkpoint: where a start after a crash begins.
        What lies before it is no longer needed to know the producers; what lies behind is."""
        self.first_unstable = -1
        """First offset readers of committed records may not pass; −1 if there is none."""
        self.cleaned_to = 0
        """Up to this offset the cleaner has been."""
        self.epochs = LeaderEpochs()
        self.producers = Producers()
        self.aborted = AbortedTransactions()
        self.ending: list[CompletedTransaction] = []
        self.snapshots: list[int] = []
        self.failure: StorageError | None = None
        """Set when a sync failed or the directory is lost: every call then raises it."""
        self.last_append_ms = 0
        self.synced_at = shelf.clock.monotonic()
        self._unsynced: dict[str, None] = {}
        """Paths of sealed segments not known to be on disk."""
        self._unwritten: dict[Segment, None] = {}
        """Segments whose index of aborted transactions a full disk refused."""
        self._pending_paths: dict[str, None] = {}
        """Other files to be synced before the recovery point may move."""
        self._names = 1
        """Counts changes to the directory; `names_synced` tells which is on disk."""
        self.names_synced = 0
        self.config = config

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} {self.log_start_offset}..{self.end_offset}>"

    def _note_marker(
        self,
        batch: bytes | bytearray | memoryview,
        header: BatchHeader,
        offset: int,
        timestamp: int,
    ) -> None:
        marker = decode_marker(batch)
        if marker is None:
            return
        ended = self.producers.note_marker(
            header[9], header[10], marker.coordinator_epoch, offset, timestamp, marker.commit
        )
        if ended is not None:
            self.ending.append(ended)
            if ended.aborted:
                self._note_abort(self.active, ended)

    def _note_abort(self, segment: Segment, ended: CompletedTransaction) -> None:
        stable = min([*self.producers.open.values(), ended.marker_offset + 1])
        self.aborted.add(
            AbortedEntry(ended.producer_id, ended.first_offset, ended.marker_offset, stable)
        )
        self._write_aborted(segment)

    def correct_aborted(self, indexed: Mapping[int, bytes]) -> None:
        """Write the indexes of aborted transactions again that say something else than the log
        does; `indexed` is what they hold, by base offset.

        Of an end that was lost they may name transactions: others will take their offsets, and
        would count as aborted after the next start that trusts these files.
        """
        following = [*self.bases[1:], LONG_MAX]
        for segment, end in zip(self.segments, following, strict=True):
            told = encode_entries(self.aborted.slice(segment.base_offset, end))
            if segment.here and indexed.get(segment.base_offset, b"") != told:
                self._write_aborted(segment)
        for base in indexed.keys() - set(self.bases):
            path = self.directory / f"{base:020d}.txnindex"
            if path.exists():
                self.shelf.files.remove(path)
                self._names += 1

    def replay_marker(self, segment: Segment, batch: bytes, header: BatchHeader) -> None:
        """Take note of a marker that recovery found in `segment`."""
        marker = decode_marker(batch)
        if marker is None:
            return
        ended = self.producers.note_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            header.base_offset,
            header.max_timestamp,
            marker.commit,
        )
        if ended is not None and ended.aborted:
            self._note_abort(segment, ended)

    def _find_stable(self) -> None:
        """Work out the last stable offset after transactions or the watermark moved.

        A transaction whose marker is not yet below the high watermark still counts as
        open: its end could be lost.
        """
        watermark = self.high_watermark
        if self.ending:
            self.ending = [each for each in self.ending if each.marker_offset >= watermark]
        firsts = list(self.producers.open.values())
        firsts += [each.first_offset for each in self.ending]
        self.first_unstable = max(min(firsts), self.log_start_offset) if firsts else -1
        self.last_stable_offset = min(self.first_unstable, watermark) if firsts else watermark

    def _refused(self, error: OSError, segment: Segment) -> StorageError:
        """The error for a failed write, after taking back what was half written."""
        if segment.descriptor is not None:
            try:
                self.shelf.files.truncate(segment.descriptor.number, segment.size)
            except OSError:
                # The next write goes to the same place, and recovery cuts what is torn.
                pass
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return DiskFullError(
                f"no space left for {self.topic}-{self.index}",
                detail=str(self.directory),
                hint="free some space; writing goes on by itself",
            )
        return StorageError(
            f"{self.topic}-{self.index} cannot be written", detail=f"{self.directory}: {error}"
        )

    def sync_failed(self, error: OSError) -> StorageError:
        """Stop for good, and have it known to the next start: nobody can say which pages are
        on disk, the kernel counts all of them as written."""
        self.failure = StorageError(
            f"{self.topic}-{self.index} could not be synced",
            detail=f"{self.directory}: {error}",
            hint="check the disk, then start the broker again: it will read what the disk holds",
        )
        if self.shelf.on_failed_sync is not None:
            self.shelf.on_failed_sync(self.directory)
        return self.failure

    def write_snapshot(self) -> None:
        """Write the producers' state as of the end.

        Snapshots older than the one recovery would begin with are removed.
        """
        if not self.producers.by_id and not self.snapshots:
            return
        offset = self.end_offset
        path = f"{self.directory}/{offset:020d}.snapshot"
        self.shelf.files.write_whole(path, self.producers.encode(), sync=False)
        self._pending_paths[path] = None
        if offset not in self.snapshots:
            self.snapshots.append(offset)
        self._names += 1
        while len(self.snapshots) > 1 and self.snapshots[1] <= self.noted_recovery_point:
            self._remove(f"{self.directory}/{self.snapshots.pop(0):020d}.snapshot")

    def _move_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self.aborted.cut_start(offset)
        self.epochs.cut_start(offset)
        if self.high_watermark < offset:
            self.high_watermark = offset
        self._find_stable()
        self._moved()

    def _write_aborted(self, segment: Segment) -> None:
        """Bring a segment's index of aborted transactions up to date.

        In place: what was synced of it must not be at risk before the next sync.
        """
        following = self.segments.index(segment) + 1
        end = self.bases[following] if following < len(self.bases) else LONG_MAX
        path = f"{segment.stem}.txnindex"
        entries = encode_entries(self.aborted.slice(segment.base_offset, end))
        files = self.shelf.files
        try:
            descriptor = Descriptor(files.open(path, WRITE), files)
            try:
                files.write_all(descriptor.number, entries, 0)
                files.truncate(descriptor.number, len(entries))
                if not self.shelf.hold(path, descriptor):
                    self._sync_now(descriptor)
            finally:
                descriptor.release()
        except OSError as error:
            # The marker is written and counts. The next checkpoint tries again, and until
            # one succeeds recovery would write this file again from the markers.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise self._refused(error, segment) from error
            self._unwritten[segment] = None
            return
        self._unwritten.pop(segment, None)
        self._pending_paths[path] = None
        self._names += 1

    def _sync_now(self, descriptor: Descriptor) -> None:
        try:
            self.shelf.files.sync_data(descriptor.number)
        except OSError as error:
            raise self.sync_failed(error) from error

    def _begin_epoch(self, offset: int) -> None:
        self.epochs.assign(self.leader_epoch, offset)
        path = self.directory / "leader-epoch-checkpoint"
        try:
            # Earlier epochs stand nowhere else: never replace them by a file still unsynced.
            self.epochs.write(path, self.shelf.files, sync=len(self.epochs.epochs) > 1)
        except OSError as error:
            self.epochs.cut_end(offset)
            raise self._refused(error, self.active) from error
        self._pending_paths[str(path)] = None
        self._names += 1

    def _remove(self, path: str) -> None:
        try:
            self.shelf.files.remove(path)
        except FileNotFoundError:
            return
        self._pending_paths.pop(path, None)

    @property
    def config(self) -> TopicConfig:
        """The topic's settings; setting them takes effect at once."""
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self.needs_sync = config.flush_messages == 1
        if not self.needs_sync and self.high_watermark < self.end_offset:
            self.high_watermark = self.end_offset
            self._find_stable()

    @property
    def damaged(self) -> list[Damage]:
        """What is broken in the middle of segments, in order."""
        return [damage for segment in self.segments for damage in segment.damaged]

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def has_open_transaction(self, producer_id: int) -> bool:
        return producer_id in self.producers.open

    def producer_epoch(self, producer_id: int) -> int | None:
        """The newest epoch seen of this producer; None if it never wrote here."""
        producer = self.producers.by_id.get(producer_id)
        return producer.epoch if producer is not None else None

    def describe_producers(self) -> list[ProducerRow]:
        return self.producers.rows()

    def settle(self) -> None:
        """Let readers see everything found on opening."""
        self.high_watermark = self.end_offset
        self.ending = []
        self._find_stable()

    def notify(self) -> None:
        """Tell that offsets may have moved outside an append."""
        self._moved()

    def _moved(self) -> None:
        """Offsets have moved outside an append; `Partition` tells others."""
