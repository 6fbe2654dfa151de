"""Old segments elsewhere: moved out, still read, deleted in the end.

A topic with `remote.storage.enable=true` keeps the newest `local.retention.ms` /
`local.retention.bytes` of sealed segments in its data directory. Older ones lie under
`tailrace.archive.url` as `<topic>-<partition>-<topic id>/<base offset>.log`, until
`retention.ms` / `retention.bytes` take them. Their indexes stay here, and the file
`archived` in the partition's directory names them; it is on disk before the local copy
goes. From a plain directory they are read where they lie; from anywhere else they are
fetched into the partition's directory when a reader comes, who waits meanwhile.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

import orjson

from tailrace.log.archiver import is_plain
from tailrace.log.child import Child
from tailrace.log.errors import NotFetchedError, StorageError
from tailrace.log.files import Descriptor
from tailrace.log.partition import Partition
from tailrace.log.segment import Segment

log = logging.getLogger(__name__)

_NAME = "archived"
_AT_ONCE = 8
_RETRY_MS = 15_000


class ArchivedSegment(Segment):
    """A sealed segment whose batches lie in the archive."""

    __slots__ = ("_local", "address", "archive", "partition")

    def __init__(self, partition: Partition, base_offset: int, size: int, archive: Archive) -> None:
        super().__init__(str(partition.directory), base_offset, size, partition.shelf, sealed=True)
        self.unread_bytes = 0  # what an archive gives back it answers for itself
        self._local = self.path[:-4]
        self.partition = partition
        self.archive = archive
        self.address = archive.address(partition, base_offset)
        self.path = self.address if is_plain(self.address) else f"{self._local}.fetched"

    @property
    def stem(self) -> str:
        return self._local

    def acquire(self) -> Descriptor:
        """Raises `NotFetchedError` while the segment is on its way here."""
        try:
            descriptor = self.shelf.open_files.get(self.path)
        except FileNotFoundError:
            self.archive.want(self)
            raise NotFetchedError(
                f"{self.partition.topic}-{self.partition.index} from {self.base_offset} is in the archive",
                detail=self.address,
                hint="it is being fetched; ask again",
            ) from None
        self.archive.used(self)
        return descriptor

    def delete(self) -> None:
        super().delete()
        self.archive.remove(self)


_Move = tuple[str, Segment, str, Partition]
"""Operation, segment, address, partition."""


class Archive:
    """The archive of one store; all calls come from the loop."""

    def __init__(self, url: str, cache_bytes: int) -> None:
        self.url = url.removeprefix("file://").rstrip("/")
        self._cache_bytes = cache_bytes
        self._child: Child | None = None
        self._job: list[_Move] = []
        self._wanted: OrderedDict[str, ArchivedSegment] = OrderedDict()
        self._removals: list[str] = []
        self._fetched: OrderedDict[str, ArchivedSegment] = OrderedDict()
        self._rest_until_ms = 0
        self._more = False
        """Whether the last round left segments to be moved."""
        self._ids: dict[str, str] = {}
        self.last_error = ""

    @property
    def busy(self) -> bool:
        return self._child is not None

    def take_back(self, partition: Partition) -> None:
        """Note that segments which were archived are local ones again."""
        write_archived(partition, partition.segments)
        for segment in partition.segments:
            if segment.here:
                fetched = f"{segment.stem}.fetched"
                self._fetched.pop(fetched, None)
                self._wanted.pop(fetched, None)
                for path in (fetched, f"{fetched}.part"):
                    partition.shelf.open_files.forget(path)
                    _unlink(path)

    def name_topic(self, topic: str, topic_id: str) -> None:
        """Tell a topic's id: a new topic of an old name must not find the old one's files."""
        self._ids[topic] = topic_id

    def address(self, partition: Partition, base_offset: int) -> str:
        folder = f"{partition.topic}-{partition.index}-{self._ids[partition.topic]}"
        return f"{self.url}/{folder}/{base_offset:020d}.log"

    def want(self, segment: ArchivedSegment) -> None:
        """Have a segment fetched; its partition is told when it is here."""
        self._wanted[segment.path] = segment

    def used(self, segment: ArchivedSegment) -> None:
        if segment.path in self._fetched:
            self._fetched.move_to_end(segment.path)

    def remove(self, segment: ArchivedSegment) -> None:
        """Delete a segment from the archive, soon."""
        self._fetched.pop(segment.path, None)
        self._wanted.pop(segment.path, None)
        if not is_plain(segment.address):
            _unlink(segment.path)
        self._removals.append(segment.address)

    def discard(self, address: str) -> None:
        """Delete what lies at `address`, soon."""
        self._removals.append(address)

    # ── periodic work ────────────────────────────────────────────────────────────────

    def tick(self, partitions: Iterable[Partition], now_ms: int, *, look: bool) -> None:
        """Collect a child that has ended; start the next: fetches first, then removals,
        then, if `look`, segments past local retention."""
        if self._child is not None:
            if not self._child.ended:
                return
            self._collect(now_ms)
        if now_ms < self._rest_until_ms:
            return
        if self._wanted:
            self._job = self._fetches(next(iter(self._wanted.values())))
        elif self._removals:
            self._start([["remove", "", address] for address in self._removals])
            self._removals = []
            return
        elif look or self._more:
            self._job = self._past_local_retention(partitions, now_ms)
            self._more = len(self._job) >= _AT_ONCE
        if self._job:
            self._start([[each[0], each[1].path, each[2]] for each in self._job])

    def stop(self) -> None:
        """End a running child; nothing is half done."""
        if self._child is not None:
            self._child.kill()
            self._child = None
            self._job = []

    def _start(self, job: list[list[str]]) -> None:
        try:
            self._child = Child("tailrace.log.archiver", orjson.dumps(job))
        except OSError as error:
            self._job = []
            log.warning("archiver not started", extra={"error": str(error)})

    def _collect(self, now_ms: int) -> None:
        assert self._child is not None
        data = self._child.result()
        job, self._job, self._child = self._job, [], None
        failures: list[str] = orjson.loads(data) if data else ["the archiver died"] * len(job)
        self.last_error = next((each for each in failures if each), "")
        if self.last_error:
            log.warning("archive failed", extra={"url": self.url, "error": self.last_error})
            self._rest_until_ms = now_ms + _RETRY_MS
        for (operation, segment, _, partition), failure in zip(job, failures, strict=False):
            if operation == "get" and isinstance(segment, ArchivedSegment):
                self._wanted.pop(segment.path, None)
                if not failure:
                    self._keep(segment)
                segment.partition.notify()
            elif operation == "put" and not failure:
                move_out(partition, segment, self)

    def _fetches(self, wanted: ArchivedSegment) -> list[_Move]:
        """A wanted segment and some behind it: readers go forward."""
        job: list[_Move] = [("get", wanted, wanted.address, wanted.partition)]
        room = self._cache_bytes // 2 - wanted.size
        segments = wanted.partition.segments
        place = segments.index(wanted) if wanted in segments else len(segments)
        for segment in segments[place + 1 : place + _AT_ONCE]:
            room -= segment.size
            if room < 0 or not isinstance(segment, ArchivedSegment):
                break
            if segment.path not in self._fetched:
                job.append(("get", segment, segment.address, segment.partition))
        return job

    def _keep(self, segment: ArchivedSegment) -> None:
        """Count a fetched segment to the cache; the least used ones go."""
        self._fetched[segment.path] = segment
        total = sum(each.size for each in self._fetched.values())
        while total > self._cache_bytes and len(self._fetched) > 1:
            path, oldest = self._fetched.popitem(last=False)
            oldest.shelf.open_files.forget(path)
            _unlink(path)
            total -= oldest.size

    def _past_local_retention(self, partitions: Iterable[Partition], now_ms: int) -> list[_Move]:
        job: list[_Move] = []
        for partition in partitions:
            for segment in to_move(partition, now_ms):
                if len(job) >= _AT_ONCE:
                    return job
                address = self.address(partition, segment.base_offset)
                job.append(("put", segment, address, partition))
        return job


def to_move(partition: Partition, now_ms: int) -> list[Segment]:
    """Sealed segments that local retention no longer keeps and a crash cannot touch."""
    config = partition.config
    if not config.archived or partition.failure is not None:
        return []
    age = config.retention_ms if config.local_retention_ms == -2 else config.local_retention_ms
    most = (
        config.retention_bytes
        if config.local_retention_bytes == -2
        else config.local_retention_bytes
    )
    local = [each for each in partition.segments if not isinstance(each, ArchivedSegment)]
    excess = sum(each.size for each in local) - most if most >= 0 else 0
    sure = min(partition.noted_recovery_point, partition.last_stable_offset)
    found: list[Segment] = []
    for place, segment in enumerate(local[:-1]):
        if local[place + 1].base_offset > sure:
            break
        old = 0 <= age < now_ms - segment.max_timestamp
        if not old and (excess <= 0 or excess < segment.size):
            break
        excess -= segment.size
        found.append(segment)
    return found


def move_out(partition: Partition, segment: Segment, archive: Archive) -> None:
    """Let the archive's copy stand for a segment that was copied whole."""
    if segment not in partition.segments:
        archive.discard(archive.address(partition, segment.base_offset))
        return
    place = partition.segments.index(segment)
    _ = segment.index  # built again if it was lost, while the batches are at hand
    stand_in = ArchivedSegment(partition, segment.base_offset, segment.size, archive)
    segments = [*partition.segments]
    segments[place] = stand_in
    write_archived(partition, segments)
    partition.segments[place] = stand_in
    partition.shelf.forget(segment)
    segment.release_descriptor()
    _unlink(segment.path)


def write_archived(partition: Partition, segments: list[Segment]) -> None:
    """Have the list of archived segments on disk."""
    rows = [[each.base_offset, each.size] for each in segments if isinstance(each, ArchivedSegment)]
    partition.shelf.files.write_whole(partition.directory / _NAME, orjson.dumps(rows))


def read_archived(partition: Partition, archive: Archive | None, local: set[int]) -> list[Segment]:
    """The archived segments of a partition that is being opened.

    A segment that is still here as well was copied but never let go: the one here counts.
    """
    path = partition.directory / _NAME
    try:
        rows = [(int(base), int(size)) for base, size in orjson.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        # Written whole and synced: a bad disk or a hand. Without the list the log would begin
        # where its local segments do, as if the archived ones had been deleted.
        raise StorageError(
            f"the list of archived segments {path} is damaged",
            detail=str(error),
            hint="put a good copy back and start again; the segments themselves are in the archive",
        ) from error
    if archive is None:
        log.error(
            "archived segments cannot be read without tailrace.archive.url",
            extra={"topic": partition.topic, "partition": partition.index},
        )
        return []
    found: list[Segment] = []
    for base, size in rows:
        if base not in local:
            segment = ArchivedSegment(partition, base, size, archive)
            if not is_plain(segment.address):
                _unlink(segment.path)
            found.append(segment)
    return found


def _unlink(path: str | Path) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
