"""Records that are being erased: what the topics' setting `tailrace.erase` names goes.

The setting (`records.erased_offsets`) is in the journal of topics, so an erasure that a crash has cut short goes on at the
next start. The store takes a partition out of it when its records are gone from every segment,
here and in the archive; nothing else ends an erasure.

What an erased record leaves is its slot: offset, key and time. A record of an event topic stays an
event, of the type `Erased`, with its version and the id of its command; any other record has no
value and the header `tailrace.erased`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import orjson

from tailrace.log import swap
from tailrace.log.archive import ArchivedSegment
from tailrace.log.archiver import is_plain
from tailrace.log.child import Child
from tailrace.log.cleaning_job import CleaningJob, CleaningResult
from tailrace.log.errors import StorageError
from tailrace.records.erased_offsets import ERASE, Ranges, held, read_request, write_request

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.segment import Segment
    from tailrace.log.store import Store

log = logging.getLogger(__name__)

_RETRY_MS = 15_000


class Erasing:
    """The erasures of one store: one partition and one child at a time, step by step.

    roll        if a record is in the active segment
    fetch       what lies in an archive that cannot be read in place
    rewrite     a child writes the segments that hold records again, beside the old ones
    swap        they take the place of the old ones; archived segments are local ones again
    remove      a child deletes the archive's copies of them
    told        the partition is taken out of the setting

    Every step may be repeated. Compaction and the archive rest from `rewrite` on.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._child: Child | None = None
        self._partition: Partition | None = None
        self._ranges: Ranges = []
        self._removing = False
        self._next_look_ms = 0

    @property
    def busy(self) -> bool:
        return self._child is not None

    def tick(self, now_ms: int) -> None:
        """Collect a child that has ended, begin the next step."""
        if self._child is not None:
            if self._child.ended:
                self._collect(now_ms)
            return
        if 0 < self._next_look_ms - now_ms <= _RETRY_MS:  # more: the clock was set back
            return
        archive = self._store.archive
        if self._store.compaction.busy or (archive is not None and archive.busy):
            return
        for partition, ranges in self._wanted():
            try:
                if self._ready(partition, ranges, now_ms):
                    self._rewrite(partition, ranges, now_ms)
                    return
            except (OSError, StorageError) as error:
                self._put_off(partition, error, now_ms)

    def stop(self) -> None:
        """End a running child; what it wrote is removed."""
        if self._child is None:
            return
        self._child.kill()
        self._child = None
        if self._partition is not None and os.path.isdir(self._partition.directory):
            swap.remove_leftovers(self._partition.directory)

    def _wanted(self) -> Iterator[tuple[Partition, Ranges]]:
        for topic in list(self._store.topics.values()):
            text = topic.overrides.get(ERASE)
            if not text:
                continue
            wanted = read_request(text)
            beyond = [number for number in wanted if number >= len(topic.partitions)]
            if beyond:
                self._tell_done(topic.name, beyond[0])
                continue
            for number, ranges in wanted.items():
                if topic.partitions[number].failure is None:
                    yield topic.partitions[number], ranges

    def _ready(self, partition: Partition, ranges: Ranges, now_ms: int) -> bool:
        """Have everything where the child can read it; False: look again later."""
        if held(ranges, partition.active.base_offset, partition.end_offset - 1):
            partition.roll(now_ms)
        waiting = False
        for segment in _affected(partition, ranges):
            if (
                isinstance(segment, ArchivedSegment)
                and not is_plain(segment.address)
                and not os.path.exists(segment.path)
            ):
                segment.archive.want(segment)
                waiting = True
        return not waiting

    def _rewrite(self, partition: Partition, ranges: Ranges, now_ms: int) -> None:
        config = partition.config
        affected = _affected(partition, ranges)
        limit = self._store.settings.get("log.cleaner.io.max.bytes.per.second")
        job = CleaningJob(
            str(partition.directory),
            [[each.base_offset, each.size] for each in affected],
            partition.cleaned_to,
            partition.active.base_offset,
            now_ms,
            config.delete_retention_ms,
            config.segment_bytes,
            config.index_interval_bytes,
            0,
            float(limit) if isinstance(limit, int | float) else 0.0,
            [],
            {},
            erased=[list(each) for each in ranges],
            elsewhere={str(each.base_offset): each.path for each in affected if not each.here},
        )
        self._partition, self._ranges, self._removing = partition, ranges, False
        self._child = Child("tailrace.log.eraser", orjson.dumps(asdict(job)))

    def _collect(self, now_ms: int) -> None:
        assert self._child is not None
        assert self._partition is not None
        partition, ranges, data = self._partition, self._ranges, self._child.result()
        self._child = self._partition = None
        if partition.failure is not None:
            return
        try:
            if data is None:
                raise OSError("the child that erases died")
            if not self._removing:
                self._swap(partition, ranges, CleaningResult.from_json(data), now_ms)
                return
            failure = next(filter(None, orjson.loads(data)), "")
            if failure:
                raise OSError(failure)
            self._tell_done(partition.topic, partition.index, ranges)
        except (OSError, StorageError) as error:
            self._put_off(partition, error, now_ms)

    def _swap(
        self, partition: Partition, ranges: Ranges, result: CleaningResult, now_ms: int
    ) -> None:
        if result.damage or result.failure:
            swap.remove_leftovers(partition.directory, partition.shelf.files)
            raise OSError(result.failure or f"a damaged batch: {result.damage}")
        if result.groups:
            self._store.compaction.put_in_place(partition, result, now_ms)
        archive = self._store.archive
        if archive is None:
            self._tell_done(partition.topic, partition.index, ranges)
            return
        archive.take_back(partition)
        addresses = [
            archive.address(partition, each.base_offset)
            for each in _affected(partition, ranges)
            if each.here  # what is still in the archive alone holds nothing that is erased
        ]
        parts = [f"{each}.part" for each in addresses if is_plain(each)]
        job = [["remove", "", each] for each in (*addresses, *parts)]
        self._partition, self._ranges, self._removing = partition, ranges, True
        self._child = Child("tailrace.log.archiver", orjson.dumps(job))

    def _tell_done(self, topic: str, partition: int, ranges: Ranges | None = None) -> None:
        """Take what is erased out of the setting; more may have been asked for meanwhile."""
        wanted = read_request(self._store.topics[topic].overrides.get(ERASE, ""))
        left = [each for each in wanted.pop(partition, []) if ranges and each not in ranges]
        if left:
            wanted[partition] = left
        self._store.alter_config(topic, {ERASE: write_request(wanted) or None})
        log.info("records erased", extra={"topic": topic, "partition": partition})

    def _put_off(self, partition: Partition, error: Exception, now_ms: int) -> None:
        log.error(
            "records not erased yet",
            extra={"topic": partition.topic, "partition": partition.index, "error": str(error)},
        )
        self._next_look_ms = now_ms + _RETRY_MS


def _affected(partition: Partition, ranges: Ranges) -> list[Segment]:
    """The sealed segments that may hold records of these offsets."""
    return [
        segment
        for place, segment in enumerate(partition.segments[:-1])
        if held(ranges, segment.base_offset, partition.bases[place + 1] - 1)
    ]
