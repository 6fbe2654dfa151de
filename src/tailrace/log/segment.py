"""One segment: a file of record batches, byte for byte as they came over the wire.

`<base offset, 20 digits>.log` with `.index` and `.timeindex` beside it, and `.txnindex`
if transactions were aborted in it. Only the last segment of a partition is written to;
the others are sealed, hold no descriptor and no index in memory until they are read.
"""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from tailrace.clock import SYSTEM, Clock
from tailrace.log.damage import Damage
from tailrace.log.errors import CorruptSegmentError
from tailrace.log.files import FILES, WRITE, Descriptor, Files, OpenFiles
from tailrace.log.index import OffsetIndex, TimeIndex, write_out
from tailrace.records.header import HEADER, HEADER_BYTES, BatchHeader

_SCAN_BYTES = 16 * 1024
_SEARCH_BYTES = 6 * 1024  # a little more than lies between two entries of the index
_PLACE = struct.Struct(">qi4xb6xi")
"""Of a batch's header: base offset, length, magic, last offset delta."""
_TRUSTED_RANGES = 32
_REMEMBERED_STARTS = 128
HELD_LIMIT = 256
"""Sealed segments that wait for their sync with their descriptor open."""


class Shelf:
    """What all segments of a store share: system calls, open files, loaded indexes, time."""

    def __init__(
        self,
        files: Files = FILES,
        clock: Clock = SYSTEM,
        *,
        open_limit: int = 512,
        index_limit: int = 256,
    ) -> None:
        self.files = files
        self.clock = clock
        self.open_files = OpenFiles(files, open_limit)
        self.unsynced: dict[str, Descriptor] = {}
        """Path → the descriptor over which a sealed segment or an index of aborted transactions
        was written, until it is synced: only who had a file open is sure to be told that a
        write of it failed."""
        self.roots: dict[str, int] = {}
        """Data directory → a descriptor of a file there, open since the start."""
        self.on_failed_sync: Callable[[Path], None] | None = None
        """Called with a partition's directory when a sync failed in it."""
        self._index_limit = index_limit
        self._loaded: OrderedDict[int, Segment] = OrderedDict()

    def loaded(self, segment: Segment) -> None:
        """Note the use of a sealed segment's indexes; the least used ones are dropped."""
        key = id(segment)
        self._loaded[key] = segment
        self._loaded.move_to_end(key)
        while len(self._loaded) > self._index_limit:
            _, oldest = self._loaded.popitem(last=False)
            oldest.drop_indexes()

    def hold(self, path: str, descriptor: Descriptor) -> bool:
        """Keep a descriptor of `path` until it is synced; False if there are too many."""
        if path not in self.unsynced:
            if len(self.unsynced) >= HELD_LIMIT:
                return False
            self.unsynced[path] = descriptor.acquire()
        return True

    def let_go(self, path: str) -> None:
        """Close the descriptor of a file that was synced, deleted or replaced."""
        held = self.unsynced.pop(path, None)
        if held is not None:
            held.release()

    def sync_filesystem(self, directory: Path) -> None:
        """Sync all that lies on the disk of a data directory."""
        self.files.sync_filesystem(directory, self.roots.get(str(directory)))

    def forget(self, segment: Segment) -> None:
        self._loaded.pop(id(segment), None)
        self.open_files.forget(segment.path)


class Segment:
    """The batches from `base_offset` on."""

    __slots__ = (
        "_index",
        "_max_timestamp",
        "_times",
        "_trusted",
        "base_offset",
        "created_ms",
        "damaged",
        "descriptor",
        "first_timestamp",
        "jitter_ms",
        "max_timestamp_offset",
        "path",
        "ready",
        "sealed",
        "shelf",
        "since_index",
        "size",
        "starts",
        "unread_bytes",
    )

    def __init__(
        self, directory: str, base_offset: int, size: int, shelf: Shelf, *, sealed: bool
    ) -> None:
        self.base_offset = base_offset
        self.path = f"{directory}/{base_offset:020d}.log"
        self.size = size
        self.shelf = shelf
        self.sealed = sealed
        self.unread_bytes = size
        """Up to here the file was found on opening: a read is checked before it is served."""
        self._trusted: tuple[tuple[int, int], ...] = ()
        self.descriptor: Descriptor | None = None
        self.damaged: list[Damage] = []
        """Ranges that hold no whole batch; walks go round them."""
        self.ready = False
        """Whether a batch can be appended at once: file open, indexes in memory."""
        self.created_ms = 0
        self.jitter_ms = 0
        self.first_timestamp = -1
        self.since_index = 0
        self.starts: dict[int, int] = {}
        """Base offset → position of batches appended lately: readers at the tail need no search."""
        self._index: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self._max_timestamp: int | None = None
        self.max_timestamp_offset = -1

    @property
    def stem(self) -> str:
        """Path of the index files, without their ending."""
        return self.path[:-4]

    @property
    def here(self) -> bool:
        """Whether the batches lie in the data directory."""
        return self.path[:-4] == self.stem

    @property
    def max_timestamp(self) -> int:
        """Largest record timestamp; the file's time if the index does not tell; −1 if empty."""
        if self._max_timestamp is None:
            times = self.times
            if times.timestamps:
                self._max_timestamp = times.timestamps[-1]
                self.max_timestamp_offset = self.base_offset + times.offsets[-1]
            elif self.size:
                self._max_timestamp = int(os.stat(self.path).st_mtime * 1000)
            else:
                self._max_timestamp = -1
        return self._max_timestamp

    @property
    def index_bytes(self) -> int:
        """Size of the offset index in memory."""
        return 8 * len(self._index.offsets) if self._index is not None else 0

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._load()
        elif self.sealed:
            self.shelf.loaded(self)
        assert self._index is not None
        return self._index

    @property
    def times(self) -> TimeIndex:
        if self._times is None:
            self._load()
        assert self._times is not None
        return self._times

    def begin(self, now_ms: int, jitter_ms: int = 0) -> None:
        """Make this a new, empty segment to be written to.

        It counts as older by a random part of `jitter_ms`, so that not all segments of a
        broker come of age at once.
        """
        if jitter_ms > 0:
            import random

            self.jitter_ms = random.randrange(jitter_ms)
        self.created_ms = now_ms - self.jitter_ms
        self._index, self._times = OffsetIndex(), TimeIndex()
        self._max_timestamp = -1

    def adopt(self, index: OffsetIndex, times: TimeIndex, max_timestamp: int, at: int) -> None:
        """Take indexes found by recovery."""
        self._index, self._times = index, times
        self._max_timestamp, self.max_timestamp_offset = max_timestamp, at

    def resume(self, max_timestamp: int, at: int, first_timestamp: int, created_ms: int) -> None:
        """Take what a clean stop noted, so that nothing need be read."""
        self._max_timestamp, self.max_timestamp_offset = max_timestamp, at
        self.first_timestamp, self.created_ms = first_timestamp, created_ms

    def drop_indexes(self) -> None:
        """Free the memory of a sealed segment's indexes; they are read again when needed."""
        if self.sealed:
            self._index = self._times = None

    def open_to_write(self) -> Descriptor:
        """This segment's own descriptor, opened on first use."""
        if self.descriptor is None:
            files = self.shelf.files
            try:
                number = files.open(self.path, WRITE)
            except FileNotFoundError:
                # The disk was full when the partition was made.
                files.make_directory(os.path.dirname(self.path))
                number = files.open(self.path, WRITE)
            self.descriptor = Descriptor(number, files)
        return self.descriptor

    def make_ready(self) -> None:
        """Open the file and load the indexes before the first append."""
        self.open_to_write()
        _ = self.index, self.times, self.max_timestamp
        self.ready = True

    def acquire(self) -> Descriptor:
        """A descriptor to read from, counted: release it."""
        if self.descriptor is not None:
            return self.descriptor.acquire()
        if self.sealed:
            return self.shelf.open_files.get(self.path)
        return self.open_to_write().acquire()

    def appended(self, header: BatchHeader, offset: int, timestamp: int, interval: int) -> None:
        """Account for a batch just written at the end; `offset` is its base offset."""
        position = self.size
        size = header[1] + 12
        relative = offset - self.base_offset + header[6]
        assert self._max_timestamp is not None
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
            self.max_timestamp_offset = self.base_offset + relative
        if self.since_index > interval:
            assert self._index is not None
            self._index.add(relative, position)
            self._note_time()
            self.since_index = 0
        self.since_index += size
        if self.first_timestamp < 0:
            self.first_timestamp = timestamp
        starts = self.starts
        if len(starts) >= _REMEMBERED_STARTS:
            starts.clear()
        starts[offset] = position
        self.size = position + size

    def _note_time(self) -> None:
        """Add the largest timestamp so far to the time index; records may have none."""
        if self._times is not None and self._max_timestamp is not None and self._max_timestamp >= 0:
            self._times.add(self._max_timestamp, self.max_timestamp_offset - self.base_offset)

    def position_of(self, offset: int) -> int:
        """Where the first batch begins whose last offset is ≥ `offset`; the size if none."""
        found = self.starts.get(offset)
        if found is not None:
            return found
        if offset <= self.base_offset:
            return 0
        for damage in self.damaged:
            if damage.base_offset <= offset <= damage.last_offset:
                return damage.position
        return self._search(self.index.lookup(offset - self.base_offset), offset)

    def _search(self, position: int, offset: int) -> int:
        """Walk batches from `position` to the first whose last offset is ≥ `offset`."""
        size, unpack = self.size, _PLACE.unpack_from
        descriptor = self.acquire()
        try:
            block, start = b"", position
            while position < size:
                if self.damaged:
                    position = self._behind_damage(position)
                within = position - start
                if within < 0 or within + _PLACE.size > len(block):
                    start, within = position, 0
                    block = self.shelf.files.pread(descriptor.number, _SEARCH_BYTES, position)
                    if len(block) < _PLACE.size:
                        break
                base, length, magic, delta = unpack(block, within)
                if magic != 2 or length < 49:
                    raise self.corrupt(position, f"magic {magic}, length {length}")
                if base + delta >= offset:
                    return position
                position += length + 12
        finally:
            descriptor.release()
        return size

    def headers(
        self, position: int = 0, end: int | None = None
    ) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of the batches from `position`, without their records.

        Raises `CorruptSegmentError` where no batch begins.
        """
        limit = self.size if end is None else end
        pread, unpack = self.shelf.files.pread, HEADER.unpack_from
        descriptor = self.acquire()
        try:
            block, start = b"", position
            while position < limit:
                if self.damaged:
                    position = self._behind_damage(position)
                    if position >= limit:
                        return
                within = position - start
                if within < 0 or within + HEADER_BYTES > len(block):
                    start, within = position, 0
                    block = pread(descriptor.number, _SCAN_BYTES, position)
                    if len(block) < HEADER_BYTES:
                        raise self.corrupt(position, "it is cut inside a header")
                header = BatchHeader._make(unpack(block, within))
                if header[3] != 2 or header[1] < 49:
                    raise self.corrupt(position, f"magic {header[3]}, length {header[1]}")
                yield position, header
                position += header[1] + 12
        finally:
            descriptor.release()

    def _behind_damage(self, position: int) -> int:
        for damage in self.damaged:
            if damage.position <= position < damage.end_position:
                position = damage.end_position
        return position

    def trusts(self, position: int, end: int) -> bool:
        """Whether every batch that begins in this range was checked by this process."""
        return position >= self.unread_bytes or any(
            first <= position and min(end, self.unread_bytes) <= last
            for first, last in self._trusted
        )

    def trust(self, position: int, end: int) -> None:
        """Every batch that begins in this range was checked. Ranges that touch are joined."""
        apart = []
        for first, last in self._trusted:
            if last < position or end < first:
                apart.append((first, last))
            else:
                position, end = min(position, first), max(end, last)
        if position <= 0 and end >= self.unread_bytes:
            self.unread_bytes, self._trusted = 0, ()
        else:
            self._trusted = (*apart[-_TRUSTED_RANGES:], (position, end))

    def read_batch(self, position: int, size: int) -> bytes:
        """The bytes of one batch."""
        descriptor = self.acquire()
        try:
            return self.shelf.files.pread(descriptor.number, size, position)
        finally:
            descriptor.release()

    def write_indexes(self, *, sync: bool = False) -> list[str]:
        """Bring the index files up to date; their paths."""
        paths = []
        for index, ending in ((self._index, "index"), (self._times, "timeindex")):
            if index is not None:
                path = f"{self.stem}.{ending}"
                write_out(index, path, self.shelf.files, sync=sync)
                paths.append(path)
        return paths

    def seal(self) -> list[str]:
        """End writing: the time index gets its last entry, indexes go to disk."""
        if self.size:
            self._note_time()
        paths = self.write_indexes()
        self.sealed = True
        self.starts.clear()
        self.shelf.loaded(self)
        return paths

    def release_descriptor(self) -> None:
        """Let go of the own descriptor, once all is synced or the partition closes."""
        self.ready = False
        if self.descriptor is not None:
            self.descriptor.release()
            self.descriptor = None

    def delete(self) -> None:
        """Remove the files; sends that hold a descriptor go on."""
        self.shelf.forget(self)
        self.release_descriptor()
        for ending in (".log", ".index", ".timeindex", ".txnindex"):
            try:
                self.shelf.files.remove(self.stem + ending)
            except FileNotFoundError:
                continue

    def corrupt(self, position: int, detail: str) -> CorruptSegmentError:
        return CorruptSegmentError(
            f"no record batch at byte {position} of {self.path}",
            detail=detail,
            hint="restore the file from a copy, or give up the range with DeleteRecords",
        )

    def _load(self) -> None:
        """Read the index files; build them again from the segment if they cannot be right."""
        offset_bytes, time_bytes = self._bytes("index"), self._bytes("timeindex")
        index = None if offset_bytes is None else OffsetIndex.decode(offset_bytes, self.size)
        times = None if time_bytes is None else TimeIndex.decode(time_bytes)
        if index is None or times is None:
            index, times, _ = self.build_indexes()
            self._index, self._times = index, times
            self.write_indexes()
        self._index, self._times = index, times
        if self.sealed:
            self.shelf.loaded(self)

    def build_indexes(self, interval: int = 4096) -> tuple[OffsetIndex, TimeIndex, int]:
        """(offset index, time index, last offset) from the headers of all batches."""
        index, times = OffsetIndex(), TimeIndex()
        since, largest, largest_at, last = 0, -1, 0, self.base_offset - 1
        for position, header in self.headers():
            last = header[0] + header[6]
            relative = last - self.base_offset
            if header[8] > largest:
                largest, largest_at = header[8], relative
            if since > interval:
                index.add(relative, position)
                if largest >= 0:
                    times.add(largest, largest_at)
                since = 0
            since += header[1] + 12
        if self.size and largest >= 0:
            times.add(largest, largest_at)
        return index, times, last

    def _bytes(self, ending: str) -> bytes | None:
        try:
            with open(f"{self.stem}.{ending}", "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
