"""How a partition comes up from its files.

After a clean stop everything is told by the stop's own note and no segment is read. After
a crash the batches past the recovery point are checked one by one, and indexes, producers'
state and aborted transactions past the point are rebuilt. A torn or garbled tail is cut
off. A broken batch with whole ones behind it means one of two things. If the machine has
run on, every write is there and the disk has gone bad: the batch is kept out of service and
told (`Damage`). If the power was cut, writes that nobody was promised are missing: the log
ends at the gap, and what lay behind it is kept aside in `*.cut` files.
"""

from __future__ import annotations

import errno
import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.log import swap
from tailrace.log.checkpoints import LeaderEpochs
from tailrace.log.damage import Damage, read_damage, write_damage
from tailrace.log.errors import CorruptSegmentError
from tailrace.log.files import WRITE
from tailrace.log.index import OffsetIndex, TimeIndex
from tailrace.log.partition import Partition
from tailrace.log.producers import Producers
from tailrace.log.segment import Segment
from tailrace.log.transactions import decode_entries
from tailrace.log.whole_batches import WholeBatches, next_whole
from tailrace.records.header import BatchHeader

log = logging.getLogger(__name__)

_LARGEST_BATCH = 2**31 - 1


@dataclass(slots=True)
class Listing:
    """What a partition's directory holds."""

    segments: dict[int, int] = field(default_factory=dict)
    """Base offset → size."""
    snapshots: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    """Files of an unfinished replacement."""


@dataclass(frozen=True, slots=True)
class CleanState:
    """What a clean stop notes of one partition."""

    log_start_offset: int
    end_offset: int
    cleaned_to: int
    active_base: int
    active_size: int
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int
    created_ms: int
    epochs: list[list[int]]
    snapshot: int
    """Offset of the producers' snapshot; −1 if there are no producers."""

    @classmethod
    def of(cls, partition: Partition) -> CleanState:
        active = partition.active
        return cls(
            partition.log_start_offset,
            partition.end_offset,
            partition.cleaned_to,
            active.base_offset,
            active.size,
            active.max_timestamp,
            active.max_timestamp_offset,
            active.first_timestamp,
            active.created_ms,
            [
                list(pair)
                for pair in zip(partition.epochs.epochs, partition.epochs.starts, strict=True)
            ],
            partition.end_offset if partition.producers.by_id else -1,
        )


def list_directory(directory: Path) -> Listing:
    """The listing of a partition's directory; empty if there is none."""
    listing = Listing()
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return listing
    with entries:
        for entry in entries:
            stem, _, ending = entry.name.partition(".")
            if len(stem) != 20 or not stem.isdigit():
                if entry.name.endswith((".tmp", ".cleaned", ".deleted")):
                    listing.leftovers.append(entry.name)
                continue
            match ending:
                case "log":
                    listing.segments[int(stem)] = entry.stat().st_size
                case "snapshot":
                    listing.snapshots.append(int(stem))
                case "txnindex":
                    listing.aborted.append(int(stem))
                case _ if ending.endswith(("tmp", "cleaned", "deleted")):
                    listing.leftovers.append(entry.name)
    listing.snapshots.sort()
    listing.aborted.sort()
    return listing


def open_partition(
    partition: Partition,
    clean: CleanState | None,
    recovery_point: int,
    log_start_offset: int,
    *,
    same_boot: bool = False,
    archived: Callable[[Partition, set[int]], list[Segment]] | None = None,
) -> None:
    """Fill `partition` from its directory; see the module's docstring for `same_boot`.

    `archived` gives the partition's segments that lie elsewhere. Records
    that were known to be on the disk and are gone are reported.
    """
    known, missing = recovery_point, log_start_offset
    if clean is not None:
        known, missing = max(known, clean.end_offset), clean.log_start_offset
    if _fill(partition, clean, recovery_point, log_start_offset, same_boot, archived):
        missing = partition.end_offset
    if missing < known:
        log.error(
            "records that were on the disk are gone",
            extra={
                "path": str(partition.directory),
                "base_offset": missing,
                "last_offset": known - 1,
                "hint": "restore the directory from a copy while the broker is stopped, or read the topic again from its source",
            },
        )


def _fill(
    partition: Partition,
    clean: CleanState | None,
    recovery_point: int,
    log_start_offset: int,
    same_boot: bool,
    archived: Callable[[Partition, set[int]], list[Segment]] | None,
) -> bool:
    """Whether there was a segment to fill it from."""
    directory = partition.directory
    if clean is None:
        swap.complete(directory, partition.shelf.files)
    listing = list_directory(directory)
    for name in listing.leftovers:
        partition.shelf.files.remove(directory / name)
    partition.noted_recovery_point = recovery_point
    if not listing.segments:
        _begin(partition, clean.end_offset if clean else log_start_offset)
        return False
    bases = sorted(listing.segments)
    last = bases[-1]
    partition.segments = [
        Segment(str(directory), base, listing.segments[base], partition.shelf, sealed=base != last)
        for base in bases
    ]
    if archived is not None:
        elsewhere = archived(partition, set(bases))
        # One that was written again, for an erasure, is here while later ones are not.
        partition.segments = sorted(
            [*elsewhere, *partition.segments], key=lambda each: each.base_offset
        )
        bases = [segment.base_offset for segment in partition.segments]
    partition.bases = bases
    partition.active = partition.segments[-1]
    indexed: dict[int, bytes] = {}
    for base in listing.aborted:
        indexed[base] = (directory / f"{base:020d}.txnindex").read_bytes()
        for entry in decode_entries(indexed[base], base):
            partition.aborted.add(entry)
    partition.snapshots = listing.snapshots
    known_damage = read_damage(directory)
    if known_damage:
        # Look again at what was broken: the file may have been restored.
        clean = None
        recovery_point = min(recovery_point, *known_damage)
    if (
        clean is not None
        and clean.active_base == last
        and clean.active_size == listing.segments[last]
        and (clean.snapshot < 0 or clean.snapshot in listing.snapshots)
        and _adopt_clean(partition, clean)
    ):
        return True
    partition.log_start_offset = max(log_start_offset, bases[0])
    partition.epochs = LeaderEpochs.read(directory / "leader-epoch-checkpoint")
    _recover(partition, recovery_point, same_boot or bool(known_damage), indexed)
    return True


def _begin(partition: Partition, offset: int) -> None:
    """A partition without segments: new, or its files are gone."""
    files = partition.shelf.files
    segment = Segment(str(partition.directory), offset, 0, partition.shelf, sealed=False)
    segment.begin(partition.shelf.clock.wall_ms())
    try:
        if not partition.directory.exists():
            files.make_directory(partition.directory)
        files.close(files.open(segment.path, WRITE))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        log.warning("partition without files: the disk is full", extra={"path": segment.path})
    partition.segments, partition.bases, partition.active = [segment], [offset], segment
    partition.log_start_offset = partition.end_offset = offset
    partition.synced_offset = partition.recovery_point = partition.cleaned_to = offset
    partition.settle()


def _adopt_clean(partition: Partition, clean: CleanState) -> bool:
    """Take over what the clean stop noted; False if its snapshot cannot be read."""
    if clean.snapshot >= 0:
        path = partition.directory / f"{clean.snapshot:020d}.snapshot"
        producers = Producers.decode(path.read_bytes())
        if producers is None:
            return False
        partition.producers = producers
    for epoch, start in clean.epochs:
        partition.epochs.epochs.append(epoch)
        partition.epochs.starts.append(start)
    partition.log_start_offset = clean.log_start_offset
    partition.end_offset = clean.end_offset
    partition.synced_offset = partition.recovery_point = clean.end_offset
    partition.cleaned_to = clean.cleaned_to
    partition.active.resume(
        clean.max_timestamp, clean.max_timestamp_offset, clean.first_timestamp, clean.created_ms
    )
    partition.settle()
    return True


def _recover(
    partition: Partition, recovery_point: int, same_boot: bool, indexed: Mapping[int, bytes]
) -> None:
    """`indexed`: what the files of aborted transactions hold, by base offset."""
    first = max(0, bisect_right(partition.bases, recovery_point) - 1)
    end_offset = partition.bases[first]
    last_filled = max(
        (place for place, each in enumerate(partition.segments) if each.size), default=-1
    )
    for place in range(first, len(partition.segments)):
        segment = partition.segments[place]
        has_later = place < last_filled
        start = 0
        if segment.base_offset < recovery_point:
            start = _trusted_position(segment, recovery_point)
        size = segment.size
        end_offset = max(
            _check_segment(partition, segment, start, end_offset, has_later, same_boot),
            segment.base_offset,
        )
        if segment.size < size:
            _end_with(partition, place)
            break
        following = partition.bases[place + 1] if place + 1 < len(partition.bases) else 0
        if end_offset < following and not same_boot and not partition.config.compact:
            # The end of this segment never reached the disk.
            _end_with(partition, place)
            break
    partition.end_offset = max(end_offset, partition.log_start_offset)
    if partition.damaged or read_damage(partition.directory):
        write_damage(partition.directory, partition.damaged, partition.shelf.files)
    _replay(partition, recovery_point)
    partition.correct_aborted(indexed)
    partition.aborted.cut_start(partition.log_start_offset)
    partition.epochs.cut_end(partition.end_offset)
    partition.recovery_point = min(recovery_point, partition.end_offset)
    partition.synced_offset = partition.recovery_point
    partition.settle()
    partition.sync_recovered()


def _trusted_position(segment: Segment, recovery_point: int) -> int:
    """Where the batch holding the recovery point begins; 0 if the index does not hold true."""
    try:
        return segment.position_of(recovery_point)
    except CorruptSegmentError:
        return 0


def _check_segment(
    partition: Partition,
    segment: Segment,
    start: int,
    expected: int,
    has_later: bool,
    same_boot: bool,
) -> int:
    """Check batches from `start` on, cut or mark what is broken; the next offset."""
    kept_index, kept_times, largest, largest_at = (
        OffsetIndex(),
        TimeIndex(),
        -1,
        segment.base_offset,
    )
    if start:
        segment.index.cut(start)
        try:
            largest, largest_at, expected = _largest_before(segment, start, expected)
        except CorruptSegmentError:
            start = 0  # an index that was on disk before the end of its segment
        else:
            kept_index, kept_times = segment.index, segment.times
            kept_times.cut(expected - segment.base_offset)
    interval = partition.config.index_interval_bytes
    since, position = 0, start
    first_timestamp = -1
    descriptor = segment.open_to_write()
    reader = WholeBatches(descriptor.number, segment.size)
    files = partition.shelf.files
    while position < segment.size:
        header = reader.at(position, expected)
        if header is None:
            found = next_whole(descriptor.number, position + 1, segment.size, expected)
            if not same_boot or (found is None and not has_later):
                if found is not None:
                    _keep_aside(partition, segment, position)
                log.warning(
                    "torn tail cut off",
                    extra={
                        "path": segment.path,
                        "position": position,
                        "bytes": segment.size - position,
                        "offset": expected,
                    },
                )
                files.truncate(descriptor.number, position)
                segment.size = position
                break
            following = (
                partition.bases[partition.segments.index(segment) + 1]
                if found is None
                else found[1].base_offset
            )
            damage = Damage(
                segment.path, position, segment.size if found is None else found[0],
                expected, following - 1,
            )  # fmt: skip
            log.error(
                "damaged batches are kept out of service",
                extra={
                    "path": damage.path,
                    "position": damage.position,
                    "base_offset": damage.base_offset,
                    "last_offset": damage.last_offset,
                },
            )
            segment.damaged.append(damage)
            position, expected = damage.end_position, following
            continue
        expected = header.last_offset + 1
        relative = header.last_offset - segment.base_offset
        if header.max_timestamp > largest:
            largest, largest_at = header.max_timestamp, header.last_offset
        if first_timestamp < 0:
            first_timestamp = header.max_timestamp
        if since > interval:
            kept_index.add(relative, position)
            if largest >= 0:
                kept_times.add(largest, largest_at - segment.base_offset)
            since = 0
        since += header.size
        position += header.size
    if segment.sealed and largest >= 0:
        kept_times.add(largest, largest_at - segment.base_offset)
    segment.adopt(kept_index, kept_times, largest, largest_at)
    segment.trust(start, segment.size)
    if segment.first_timestamp < 0:
        segment.first_timestamp = first_timestamp
    if not segment.created_ms:
        segment.created_ms = partition.shelf.clock.wall_ms()
    try:
        segment.write_indexes()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        log.warning("index not written: the disk is full", extra={"path": segment.path})
    return expected


def _keep_aside(partition: Partition, segment: Segment, position: int) -> None:
    """Copy what is about to be cut off to a `.cut` file."""
    path = f"{segment.stem}-{position}.cut"
    tail = os.pread(segment.open_to_write().number, segment.size - position, position)
    partition.shelf.files.write_whole(path, tail, sync=False)
    log.error(
        "unsynced records behind a gap are kept aside",
        extra={"path": path, "bytes": len(tail)},
    )


def _end_with(partition: Partition, place: int) -> None:
    """Make the segment at `place` the last one; later ones are kept aside."""
    for later in partition.segments[place + 1 :]:
        later.release_descriptor()
        partition.shelf.forget(later)
        if later.size:
            partition.shelf.files.rename(later.path, f"{later.stem}.cut")
            log.error(
                "unsynced records behind a gap are kept aside", extra={"path": f"{later.stem}.cut"}
            )
        later.delete()
    del partition.segments[place + 1 :]
    del partition.bases[place + 1 :]
    partition.active = partition.segments[-1]
    partition.active.sealed = False
    partition.aborted.cut_end(partition.active.base_offset + 2**31)


def _largest_before(segment: Segment, end: int, expected: int) -> tuple[int, int, int]:
    """(largest timestamp, its batch's last offset, next offset) of batches before `end`.

    The indexes tell the most of it; only the headers behind their last entries are read.
    """
    times, index = segment.times, segment.index
    largest, largest_at, position = -1, segment.base_offset, 0
    if times.timestamps and index.positions:
        largest, largest_at = times.timestamps[0], segment.base_offset + times.offsets[0]
        last = segment.base_offset + index.offsets[-1]
        for timestamp, offset in zip(times.timestamps, times.offsets, strict=True):
            if segment.base_offset + offset <= last:
                largest, largest_at = timestamp, segment.base_offset + offset
        position = index.positions[-1]
    for _, header in segment.headers(position, end):
        expected = header.last_offset + 1
        if header.max_timestamp > largest:
            largest, largest_at = header.max_timestamp, header.last_offset
    return largest, largest_at, expected


def _replay(partition: Partition, recovery_point: int) -> None:
    """Producers, open and aborted transactions and epochs, from the newest sure snapshot.

    Later snapshots may have outlived the index of aborted transactions that belongs to
    them: neither was synced. Aborts before the first segment matter to nobody, so a snapshot
    that old is always as good as the records it stands for. One past the end remembers
    batches that are gone: their repeats must be taken.
    """
    # Deleted records still say what their producers did, as long as they are there.
    elsewhere = [place for place, each in enumerate(partition.segments) if not each.here]
    start = partition.bases[elsewhere[-1] + 1 if elsewhere else 0]
    sure = min(max(recovery_point, start), partition.end_offset)
    for offset in reversed(partition.snapshots):
        path = partition.directory / f"{offset:020d}.snapshot"
        if offset > sure:
            partition.shelf.files.remove(path)
            continue
        producers = Producers.decode(path.read_bytes())
        if producers is not None:
            partition.producers = producers
            start = offset
            break
    partition.snapshots = [each for each in partition.snapshots if each <= sure]
    partition.aborted.cut_end(start)
    now = partition.shelf.clock.wall_ms()
    for segment, position, header in _headers_from(partition, start):
        if header.leader_epoch > partition.epochs.latest:
            partition.epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id < 0:
            continue
        if header.control:
            batch = segment.read_batch(position, header.size)
            partition.replay_marker(segment, batch, header)
        else:
            partition.producers.note(header, header.base_offset, header.max_timestamp, now)


def _headers_from(partition: Partition, offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
    first = max(0, bisect_right(partition.bases, offset) - 1)
    for segment in partition.segments[first:]:
        position = segment.position_of(offset)
        for place, header in segment.headers(position):
            yield segment, place, header
