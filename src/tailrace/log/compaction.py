"""The loop's side of compaction: whom to clean, a child that does it, the swap.

One child at a time, of lowest priority. The loop only writes its job, looks now and then
whether it has ended, and swaps the files it left.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import orjson

from tailrace.log import swap
from tailrace.log.child import Child
from tailrace.log.cleaning_job import CleanedGroup, CleaningJob, CleaningResult
from tailrace.log.errors import StorageError
from tailrace.log.partition import Partition
from tailrace.log.segment import Segment
from tailrace.log.settings import LogSettings
from tailrace.log.transactions import AbortedEntry, encode_entries

log = logging.getLogger(__name__)

_RETRY_MS = 15_000


@dataclass(frozen=True, slots=True)
class Decided:
    """A swap that is decided on disk, and must be carried out before all else."""

    groups: list[CleanedGroup]
    aborted: list[AbortedEntry]
    cleaned_to: int


class Compaction:
    """The cleaner of one store."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._partition: Partition | None = None
        self._next_look_ms = 0
        self._broken: set[tuple[str, int]] = set()
        self._undone: tuple[Partition, Decided, StorageError] | None = None
        self.runs = 0
        self.last_run_ms = 0
        self.last_result: CleaningResult | None = None

    @property
    def busy(self) -> bool:
        """Whether it has files of a partition in hand."""
        return self._child is not None or self._undone is not None

    def tick(self, partitions: Iterable[Partition], settings: LogSettings, now_ms: int) -> None:
        """Collect a child that has ended, start the next when one is due."""
        if self._child is not None:
            if not self._child.ended:
                return
            self._collect(now_ms)
        backoff_ms = settings.number("log.cleaner.backoff.ms")
        if 0 < self._next_look_ms - now_ms <= backoff_ms:  # more: the clock was set back
            return
        if self._undone is not None and not self._carry_on(now_ms):
            return
        if not settings.get("log.cleaner.enable"):
            return
        chosen = choose(partitions, now_ms, self._broken)
        if chosen is None:
            self._next_look_ms = now_ms + backoff_ms
            return
        self._start(chosen, make_job(chosen, settings, now_ms))

    def stop(self) -> None:
        """End a running child; what it wrote is removed."""
        if self._child is not None:
            self._child.kill()
            if self._partition is not None and os.path.isdir(self._partition.directory):
                swap.remove_leftovers(self._partition.directory)
            self._child = self._partition = None

    def clean_here(
        self, partition: Partition, settings: LogSettings, now_ms: int
    ) -> CleaningResult:
        """Clean `partition` in this process, at once; raises `StorageError` (56)."""
        from tailrace.log.cleaner import Cleaner

        if partition.failure is not None:
            raise partition.failure
        job = make_job(partition, settings, now_ms)
        result = Cleaner(job, partition.shelf.files).run()
        self._use(partition, result, now_ms)
        return result

    def _start(self, partition: Partition, job: CleaningJob) -> None:
        try:
            self._child = Child("tailrace.log.cleaner", orjson.dumps(asdict(job)))
            self._partition = partition
        except OSError as error:
            log.warning("cleaner not started", extra={"error": str(error)})
            self._next_look_ms = job.now_ms + _RETRY_MS

    def _collect(self, now_ms: int) -> None:
        assert self._child is not None
        partition, data = self._partition, self._child.result()
        self._child = self._partition = None
        if partition is None or partition.failure is not None:
            return
        if data is None:
            log.warning(
                "cleaner failed", extra={"topic": partition.topic, "partition": partition.index}
            )
            swap.remove_leftovers(partition.directory)
            self._next_look_ms = now_ms + _RETRY_MS
            return
        try:
            self._use(partition, CleaningResult.from_json(data), now_ms)
        except OSError as error:
            log.warning("cleaned segments not swapped", extra={"error": str(error)})
            self._next_look_ms = now_ms + _RETRY_MS
        except StorageError:
            return  # told and put down in `_carry_out`

    def _use(self, partition: Partition, result: CleaningResult, now_ms: int) -> None:
        self.runs += 1
        self.last_run_ms = now_ms
        self.last_result = result
        if result.damage:
            self._broken.add((partition.topic, partition.index))
            path, position, why = result.damage
            log.error(
                "a damaged batch stops compaction",
                extra={"path": path, "position": position, "error": why},
            )
            return
        if result.failure:
            log.warning(
                "cleaning stopped early",
                extra={
                    "topic": partition.topic,
                    "partition": partition.index,
                    "error": result.failure,
                },
            )
            self._next_look_ms = now_ms + _RETRY_MS
            if not result.groups:
                swap.remove_leftovers(partition.directory, partition.shelf.files)
                return
        self._carry_out(partition, decide_swap(partition, result), now_ms)
        log.info(
            "partition compacted",
            extra={
                "topic": partition.topic,
                "partition": partition.index,
                "cleaned_to": result.cleaned_to,
                "bytes_read": result.bytes_read,
                "bytes_written": result.bytes_written,
            },
        )

    def put_in_place(self, partition: Partition, result: CleaningResult, now_ms: int) -> None:
        """Swap in what another child wrote. Raises `StorageError` if that is only half done; it
        is carried on then, before all else."""
        self._carry_out(partition, decide_swap(partition, result), now_ms)

    def _carry_out(self, partition: Partition, decided: Decided, now_ms: int) -> None:
        """Swap; a partition that is left half swapped serves nothing until it is whole."""
        try:
            carry_out(partition, decided)
        except OSError as error:
            failure = StorageError(
                f"cleaned segments of {partition.topic}-{partition.index} are not all in place",
                detail=f"{partition.directory}: {error}",
                hint="check the disk; this is tried again every few seconds and at every start",
            )
            log.error("cleaned segments not swapped", extra={"error": failure.detail})
            partition.failure = failure
            self._undone = partition, decided, failure
            self._next_look_ms = now_ms + 1000
            raise failure from error

    def _carry_on(self, now_ms: int) -> bool:
        """Try a swap that failed half-way again; whether nothing is left to be done."""
        assert self._undone is not None
        partition, decided, failure = self._undone
        self._undone = None
        if partition.failure is not failure:
            return True  # deleted, or its disk has gone: the next start looks after it
        try:
            self._carry_out(partition, decided, now_ms)
        except StorageError:
            return False
        partition.failure = None
        partition.notify()
        return True


def cleanable_end(partition: Partition, now_ms: int) -> int:
    """Base offset of the first segment the cleaner must leave alone: the active one, one
    with an open transaction, or one younger than `min.compaction.lag.ms`."""
    limit = min(partition.active.base_offset, partition.last_stable_offset)
    lag = partition.config.min_compaction_lag_ms
    for place, segment in enumerate(partition.segments[:-1]):
        following = partition.bases[place + 1]
        if following > limit:
            return segment.base_offset
        if lag and following > partition.cleaned_to and segment.max_timestamp > now_ms - lag:
            return segment.base_offset
    return partition.active.base_offset


def dirtiness(partition: Partition, now_ms: int) -> tuple[float, bool]:
    """(share of cleanable bytes that are dirty, whether `max.compaction.lag.ms` has passed)."""
    end = cleanable_end(partition, now_ms)
    start = max(partition.cleaned_to, partition.log_start_offset)
    clean = dirty = 0
    overdue = False
    for place, segment in enumerate(partition.segments[:-1]):
        if segment.base_offset >= end:
            break
        if partition.bases[place + 1] <= start:
            clean += segment.size
        else:
            dirty += segment.size
            limit = now_ms - partition.config.max_compaction_lag_ms
            overdue = overdue or (segment.size > 0 and segment.max_timestamp < limit)
    return (dirty / (clean + dirty) if dirty else 0.0), overdue and dirty > 0


def choose(
    partitions: Iterable[Partition], now_ms: int, broken: set[tuple[str, int]]
) -> Partition | None:
    """The partition most in need of cleaning, or None."""
    best: tuple[bool, float] = (False, 0.0)
    chosen: Partition | None = None
    for partition in partitions:
        config = partition.config
        if not config.compact or partition.failure is not None or len(partition.segments) < 2:
            continue
        if partition.damaged or (partition.topic, partition.index) in broken:
            continue
        share, overdue = dirtiness(partition, now_ms)
        if share <= 0 or (share < config.min_cleanable_dirty_ratio and not overdue):
            continue
        if (overdue, share) > best:
            best, chosen = (overdue, share), partition
    return chosen


def make_job(partition: Partition, settings: LogSettings, now_ms: int) -> CleaningJob:
    """What a child needs to know to clean `partition`."""
    end = cleanable_end(partition, now_ms)
    config = partition.config
    producers: dict[str, list[int]] = {}
    for producer_id, producer in partition.producers.by_id.items():
        last = producer.batches[-1].last_offset if producer.batches else -1
        producers[str(producer_id)] = [last, producer.epoch]
    limit = settings.get("log.cleaner.io.max.bytes.per.second")
    return CleaningJob(
        str(partition.directory),
        [[each.base_offset, each.size] for each in partition.segments if each.base_offset < end],
        max(partition.cleaned_to, partition.log_start_offset),
        end,
        now_ms,
        config.delete_retention_ms,
        config.segment_bytes,
        config.index_interval_bytes,
        settings.number("log.cleaner.dedupe.buffer.size"),
        float(limit) if isinstance(limit, int | float) else 0.0,
        [
            [entry.producer_id, entry.first_offset, entry.last_offset]
            for entry in partition.aborted.entries
        ],
        producers,
    )


def swap_segments(partition: Partition, result: CleaningResult) -> None:
    """Put the child's segments in place; readers that hold old ones go on undisturbed."""
    carry_out(partition, decide_swap(partition, result))


def decide_swap(partition: Partition, result: CleaningResult) -> Decided:
    """Have the swap decided on disk. After an `OSError` nothing is decided nor left behind.

    A group of which a segment has gone meanwhile (retention, DeleteRecords) is dropped.
    """
    files = partition.shelf.files
    directory = partition.directory
    present = set(partition.bases[:-1])
    groups = [group for group in result.groups if all(base in present for base in group.old)]
    kept = list(partition.aborted.entries)
    cleaned_to = partition.cleaned_to
    if len(groups) == len(result.groups):
        cleaned_to = max(cleaned_to, result.cleaned_to)
        kept = [entry for entry in kept if entry.last_offset >= result.cleaned_to]
    decided: list[swap.Group] = []
    try:
        for group in groups:
            covered = _following(partition.bases, group.old[-1])
            entries = [each for each in kept if group.base <= each.last_offset < covered]
            if entries:
                path = f"{directory}/{group.base:020d}.txnindex.cleaned"
                files.write_whole(path, encode_entries(entries))
            decided.append(swap.Group(group.base, group.old, bool(entries)))
        swap.decide(directory, decided, files)
    except OSError:
        if not swap.decided(directory):
            swap.remove_leftovers(directory, files)
            raise
    return Decided(groups, kept, cleaned_to)


def carry_out(partition: Partition, decided: Decided) -> None:
    """Do what was decided; after an `OSError` the files are neither the old nor the new ones,
    and it must be done again."""
    files = partition.shelf.files
    directory = partition.directory
    swap.complete(directory, files)
    # Also when an earlier try got as far as removing the decision.
    files.sync_directory(directory)
    replaced = {base: group for group in decided.groups for base in group.old}
    segments: list[Segment] = []
    for segment in partition.segments:
        group_of = replaced.get(segment.base_offset)
        if group_of is None:
            segments.append(segment)
            continue
        partition.shelf.forget(segment)
        segment.release_descriptor()
        if segment.base_offset == group_of.base:
            segments.append(
                Segment(str(directory), group_of.base, group_of.size, partition.shelf, sealed=True)
            )
    partition.replace_segments(segments, decided.aborted)
    partition.cleaned_to = decided.cleaned_to
    swap.remove_leftovers(directory, files)


def _following(bases: list[int], base: int) -> int:
    return bases[bases.index(base) + 1]
