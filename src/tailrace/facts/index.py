"""A cache of what one partition holds, in LMDB, on this host.

    <directory>/data.mdb, lock.mdb     the environment
    <directory>/owner                  locked by the process that has it open

    meta      "stamp"                  → JSON of `Stamp`
    streams   stream                   → version, offset of its last event, version of the
                                         snapshot (3 × 8 bytes, big-endian), snapshot as JSON
    offsets   stream, 0, version (8)   → offsets (8 each) of the events from this version on
    commands  command id               → offset of its first event (8), events (4), time (8)
    tags      hash of the tag (16), offset (8) → ""

`owner` says how the environment was left, 4 × 8 bytes, big-endian: 1 open or 2 closed, the time of
the last write; of a closed one the time and size of its file. LMDB maps the file and trusts it: one
that another program has cut or written to since would end the process, so it is never opened.

Everything in it can be read again from the log. It is thrown away when it is torn, belongs to
another topic of this name, was written by other code (`fingerprint`) or by another run of the
machine: it is written without fsync, which a killed process survives and a killed machine does
not. Deleting it costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import lmdb
import msgspec

from tailrace.clock import SYSTEM
from tailrace.errors import UsageError
from tailrace.facts.records import LONGEST_COMMAND_ID, LONGEST_STREAM, is_stream
from tailrace.modes import make_private
from tailrace.unsynced import file_mark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 2
LONGEST_RUN = 256
"""Offsets of so many events of one stream stand together at most."""
MAP_BYTES = 64 << 30
_OPEN, _CLOSED = 1, 2
_LEFT = struct.Struct(">QQQQ")
LATE_NS = 5_000_000_000
"""A write of our own may end so long after it began: the disk was busy."""
_NUMBER = struct.Struct(">Q")
_STREAM = struct.Struct(">QQQ")
_COMMAND = struct.Struct(">QIQ")
DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.PanicError, lmdb.VersionMismatchError)  # fmt: skip


class Stamp(msgspec.Struct):
    """What the index holds, and by whose rules."""

    topic_id: str
    fingerprint: str
    mark: str
    """Which file it was written into, in which run of the machine: see `unsynced`."""
    format: int = FORMAT
    next: int = 0
    """The first offset that is not in it."""
    timestamp: int = 0
    """Of the last record: times of a partition never go back."""
    events: int = 0
    bytes: int = 0
    streams: int = 0
    foreign: int = 0
    kinds: dict[str, int] = {}
    """Events by what their header says: `Opened`, `Opened.2`."""
    rebuilt_events: int = 0
    rebuilt_seconds: float = 0.0


class StreamEntry(NamedTuple):
    """The last event of a stream, and its newest snapshot (version 0: none)."""

    version: int
    offset: int
    snapshot_version: int = 0
    snapshot: bytes = b""


class CommandEntry(NamedTuple):
    """The events of a command: `events` of them from `offset` on."""

    offset: int
    events: int
    timestamp: int


class IndexBatch:
    """What one batch of events changes; also what rebuilding collects."""

    __slots__ = (
        "bytes", "commands", "events", "foreign", "kinds", "new_streams", "offsets",
        "packed_commands", "streams", "tags",
    )  # fmt: skip

    def __init__(self) -> None:
        self.streams: dict[bytes, StreamEntry] = {}
        self.new_streams: dict[bytes, StreamEntry] = {}
        """Of `streams`, those that the index is known to lack: it does not look for them."""
        self.offsets: list[tuple[bytes, bytes]] = []
        self.commands: dict[bytes, CommandEntry] = {}
        self.packed_commands: list[tuple[bytes, bytes]] = []
        self.tags: list[tuple[bytes, bytes]] = []
        self.kinds: dict[str, int] = {}
        self.events = 0
        self.foreign = 0
        self.bytes = 0

    def add_event(self, stream: bytes, version: int, offset: int, kind: str, size: int) -> None:
        pack = _NUMBER.pack
        self.offsets.append((stream + b"\x00" + pack(version), pack(offset)))
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.events += 1
        self.bytes += size

    def add_single_commands(
        self, names: list[bytes], offsets: NDArray[np.int64], times: NDArray[np.int64]
    ) -> None:
        """Ids of commands that wrote one event each."""
        import numpy as np

        kind = np.dtype([("offset", ">u8"), ("events", ">u4"), ("time", ">u8")])  # as _COMMAND
        packed = np.empty(len(names), kind)
        packed["offset"], packed["events"], packed["time"] = offsets, 1, times
        octets, size = packed.tobytes(), kind.itemsize
        slices = [octets[at : at + size] for at in range(0, len(octets), size)]
        self.packed_commands = list(zip(names, slices, strict=True))

    def add_run(self, stream: bytes, first: int, offsets: Sequence[int]) -> None:
        """The offsets of the events of a stream from a version on; the caller counts them."""
        for begin in range(0, len(offsets), LONGEST_RUN):
            some = offsets[begin : begin + LONGEST_RUN]
            packed = struct.pack(f">{len(some)}Q", *some)
            self.offsets.append((offset_key(stream, first + begin), packed))

    def add_tag(self, tag: bytes, offset: int) -> None:
        self.tags.append((tag + _NUMBER.pack(offset), b""))


class PartitionIndex:
    """One environment. Reading is safe from any thread, writing is its owner's."""

    def __init__(self, directory: Path, topic_id: str, fingerprint: str) -> None:
        self.directory = directory
        self._lock = _locked(directory)
        self._data = directory / "data.mdb"
        try:
            self._open(topic_id, fingerprint)
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self, topic_id: str, fingerprint: str) -> None:
        try:
            if not self._as_it_was_left():
                self._remove()
            self._tell_left(_OPEN)
            self._environment = _environment(self.directory)
            found = self._stamp()
        except (*DAMAGE, msgspec.MsgspecError):
            found = None
        fitting = found is not None and (
            (found.format, found.topic_id, found.fingerprint, found.mark)
            == (FORMAT, topic_id, fingerprint, file_mark(self.directory / "data.mdb"))
        )
        if not fitting:
            with contextlib.suppress(AttributeError):
                self._environment.close()
            self._remove()
            self._environment = _environment(self.directory)
        names = ("meta", "streams", "offsets", "commands", "tags")
        made = [self._environment.open_db(name.encode()) for name in names]
        self._meta, self._streams, self._offsets, self._commands, self._tags = made
        mark = file_mark(self.directory / "data.mdb")
        self.stamp = found if fitting and found else Stamp(topic_id, fingerprint, mark)

    def _remove(self) -> None:
        for name in ("data.mdb", "lock.mdb"):
            with contextlib.suppress(FileNotFoundError):
                (self.directory / name).unlink()

    def _tell_left(self, how: int) -> None:
        """How the environment is left, were this process to end now."""
        about = (0, 0)
        if how == _CLOSED:
            with contextlib.suppress(FileNotFoundError):
                found = self._data.stat()
                about = (found.st_mtime_ns, found.st_size)
        os.pwrite(self._lock, _LEFT.pack(how, SYSTEM.wall_ms() * 1_000_000, *about), 0)

    def _as_it_was_left(self) -> bool:
        """Whether nobody else has cut the file or written to it since we did."""
        raw = os.pread(self._lock, _LEFT.size, 0)
        try:
            found = self._data.stat()
        except FileNotFoundError:
            return True
        if len(raw) < _LEFT.size:
            return False
        how, written_ns, mtime_ns, size = _LEFT.unpack(raw)
        if how == _CLOSED:
            return (found.st_mtime_ns, found.st_size) == (mtime_ns, size)
        return found.st_mtime_ns <= written_ns + LATE_NS and found.st_size >= _used_bytes(
            self._data
        )

    def _stamp(self) -> Stamp | None:
        meta = self._environment.open_db(b"meta")
        with self._environment.begin(db=meta) as reading:
            raw = reading.get(b"stamp")
        return None if raw is None else msgspec.json.decode(raw, type=Stamp)

    def close(self) -> None:
        """May be called again: opening a new one can fail, and is then tried once more."""
        self._environment.close()
        lock = self._lock
        if lock >= 0:
            with contextlib.suppress(OSError):  # a full disk: it is read again, then
                self._tell_left(_CLOSED)
            self._lock = -1
            os.close(lock)

    # Reading -------------------------------------------------------------------

    def stream(self, stream: bytes) -> StreamEntry | None:
        with self._environment.begin(db=self._streams) as reading:
            raw = reading.get(stream)
        return None if raw is None else _stream_entry(raw)

    def entries(self, streams: Iterable[bytes]) -> dict[bytes, StreamEntry]:
        """Those of the streams that are known."""
        with self._environment.begin(db=self._streams) as reading:
            found = reading.cursor().getmulti(sorted(streams))
            return {bytes(key): _stream_entry(raw) for key, raw in found}

    def streams(self) -> Iterator[tuple[str, StreamEntry]]:
        """Every stream, as it was at one moment."""
        with self._environment.begin(db=self._streams) as reading:
            for key, raw in reading.cursor():
                yield bytes(key).decode(), _stream_entry(raw)

    def command(self, command: bytes) -> CommandEntry | None:
        with self._environment.begin(db=self._commands) as reading:
            raw = reading.get(command)
        return None if raw is None else CommandEntry(*_COMMAND.unpack(raw))

    def offsets(self, stream: bytes, first: int, last: int) -> list[int]:
        """The offsets of the events `first` to `last` of a stream, in order."""
        found: list[int] = []
        prefix = stream + b"\x00"
        with self._environment.begin(db=self._offsets) as reading:
            cursor = reading.cursor()
            if not _to_run(cursor, prefix, first):
                return found
            until = offset_key(stream, last)
            for key, value in cursor:
                if key > until or key[:-8] != prefix:
                    break
                begins = _NUMBER.unpack(key[-8:])[0]
                run = struct.unpack(f">{len(value) // 8}Q", value)
                found += run[max(0, first - begins) : last - begins + 1]
        return found

    def version_before(self, stream: bytes, end: int) -> int:
        """The version of a stream's last event whose offset is below `end`; 0: none."""
        entry = self.stream(stream)
        if entry is None:
            return 0
        if entry.offset < end:
            return entry.version
        low, high = 0, entry.version
        prefix = stream + b"\x00"
        with self._environment.begin(db=self._offsets) as reading:
            cursor = reading.cursor()
            while high - low > 1:
                middle = (low + high) // 2
                offset = _offset_at(cursor, prefix, middle)
                if offset is not None and offset < end:
                    low = middle
                else:
                    high = middle
        return low

    def tagged(self, tag: bytes, after: int) -> list[int]:
        """The offsets above `after` of events with this tag."""
        found: list[int] = []
        with self._environment.begin(db=self._tags) as reading:
            cursor = reading.cursor()
            if cursor.set_range(tag + _NUMBER.pack(after + 1)):
                for key in cursor.iternext(values=False):
                    if key[:16] != tag:
                        break
                    found.append(_NUMBER.unpack(key[16:])[0])
        return found

    def newest(self, tag: bytes) -> int:
        """The offset of the last event with this tag; −1 if there is none."""
        with self._environment.begin(db=self._tags) as reading:
            cursor = reading.cursor()
            found = cursor.set_range(tag + b"\xff" * 8)
            if (cursor.prev() if found else cursor.last()) and cursor.key()[:16] == tag:
                return int(_NUMBER.unpack(cursor.key()[16:])[0])
        return -1

    # Writing -------------------------------------------------------------------

    def apply(self, batch: IndexBatch, following: int, timestamp: int) -> None:
        """Take a batch in, in one transaction: afterwards `following` is next."""
        self._tell_left(_OPEN)
        with self._environment.begin(write=True) as writing:
            streams = writing.cursor(self._streams)
            if batch.new_streams:
                self.stamp.streams += len(batch.new_streams)
                streams.putmulti(
                    [
                        (stream, _STREAM.pack(*entry[:3]) + entry.snapshot)
                        for stream, entry in sorted(batch.new_streams.items())
                    ]
                )
            for stream, entry in batch.streams.items():
                old = streams.get(stream)
                if old is None:
                    self.stamp.streams += 1
                elif not entry.snapshot_version and len(old) > _STREAM.size:
                    kept = _stream_entry(old)
                    entry = StreamEntry(*entry[:2], *kept[2:])
                writing.put(stream, _STREAM.pack(*entry[:3]) + entry.snapshot, db=self._streams)
            if batch.offsets:
                writing.cursor(self._offsets).putmulti(sorted(batch.offsets))
            if batch.commands:
                writing.cursor(self._commands).putmulti(
                    [(name, _COMMAND.pack(*each)) for name, each in sorted(batch.commands.items())]
                )
            if batch.packed_commands:
                writing.cursor(self._commands).putmulti(sorted(batch.packed_commands))
            if batch.tags:
                writing.cursor(self._tags).putmulti(sorted(batch.tags))
            stamp = self.stamp
            stamp.next = following
            stamp.timestamp = max(stamp.timestamp, timestamp)
            stamp.events += batch.events
            stamp.bytes += batch.bytes
            stamp.foreign += batch.foreign
            for kind, count in batch.kinds.items():
                stamp.kinds[kind] = stamp.kinds.get(kind, 0) + count
            writing.put(b"stamp", msgspec.json.encode(stamp), db=self._meta)

    def note_rebuild(self, events: int, seconds: float) -> None:
        """How long reading the whole partition took, for `events list`."""
        self.stamp.rebuilt_events, self.stamp.rebuilt_seconds = events, seconds
        with self._environment.begin(write=True, db=self._meta) as writing:
            writing.put(b"stamp", msgspec.json.encode(self.stamp))

    def forget_commands(self, before_ms: int, start: bytes, most: int = 1000) -> bytes:
        """Drop ids of commands older than a time, looking at `most` of them from `start`
        on; where to go on (b"": at the beginning again)."""
        with self._environment.begin(write=True, db=self._commands) as writing:
            cursor = writing.cursor()
            looked = 0
            found = cursor.set_range(start) if start else cursor.first()
            while found and looked < most:
                looked += 1
                if _COMMAND.unpack(cursor.value())[2] < before_ms:
                    cursor.delete()
                    found = bool(cursor.key())
                else:
                    found = cursor.next()
            return bytes(cursor.key()) if found else b""


def check_stream(stream: str) -> bytes:
    """The bytes of a stream's name. Raises UsageError for one that cannot be."""
    try:
        key = stream.encode()
    except UnicodeEncodeError:
        key = b""
    if not is_stream(key):
        raise UsageError(
            f"{stream!r} cannot be the name of a stream",
            hint=f"1 to {LONGEST_STREAM} bytes of text without NUL",
        )
    return key


def offset_key(stream: bytes, version: int) -> bytes:
    return stream + b"\x00" + _NUMBER.pack(version)


def _to_run(cursor: lmdb.Cursor, prefix: bytes, version: int) -> bool:
    """Move to the run of a stream that holds a version, or to the first one behind it."""
    wanted = prefix + _NUMBER.pack(version)
    found = cursor.set_range(wanted)
    if found and cursor.key() == wanted:
        return True
    before = cursor.prev() if found else cursor.last()
    if before and cursor.key()[:-8] == prefix:
        begins = _NUMBER.unpack(cursor.key()[-8:])[0]
        if version < begins + len(cursor.value()) // 8:
            return True
    return bool(cursor.set_range(wanted))


def _offset_at(cursor: lmdb.Cursor, prefix: bytes, version: int) -> int | None:
    if not _to_run(cursor, prefix, version) or cursor.key()[:-8] != prefix:
        return None
    place = version - _NUMBER.unpack(cursor.key()[-8:])[0]
    value = cursor.value()
    return int(_NUMBER.unpack_from(value, place * 8)[0]) if 0 <= place < len(value) // 8 else None


def tag_of(name: str, value: object) -> bytes:
    """The 16 bytes that stand for a tag and its value; also for `type=Opened`."""
    text = f"{name}\0{type(value).__name__}\0{value}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _stream_entry(raw: bytes) -> StreamEntry:
    version, offset, snapshot_version = _STREAM.unpack_from(raw)
    return StreamEntry(version, offset, snapshot_version, bytes(raw[_STREAM.size :]))


def _used_bytes(data: Path) -> int:
    """How long a file of LMDB must be for its pages, by its two heads; 0 if it has none."""
    with data.open("rb") as file:
        first = file.read(4096)
        most = 0
        for head in (first, file.read(4096)):
            if len(head) < 152 or struct.unpack_from("=I", head, 16)[0] != 0xBEEFC0DE:
                return 1 << 62
            page_bytes = struct.unpack_from("=I", head, 40)[0]
            most = max(most, (struct.unpack_from("=Q", head, 136)[0] + 1) * page_bytes)
    return most


def _environment(directory: Path) -> lmdb.Environment:
    return lmdb.open(
        str(directory),
        map_size=MAP_BYTES,
        max_dbs=8,
        max_readers=512,
        sync=False,
        metasync=False,
        writemap=False,  # a full disk would be SIGBUS
    )


def _locked(directory: Path) -> int:
    """Lock the directory for this process. Raises BlockingIOError if another has it."""
    make_private(directory)
    number = os.open(directory / "owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(number)
        raise
    return number


def open_index(root: Path, partition: int, topic_id: str, fingerprint: str) -> PartitionIndex:
    """The index of a partition: the one on this host, or a new one beside it while a process
    that has lost the partition and does not know it (it is stopped) holds the first."""
    for number in range(64):
        name = str(partition) if not number else f"{partition}.{number}"
        try:
            return PartitionIndex(root / name, topic_id, fingerprint)
        except BlockingIOError:
            continue
    raise BlockingIOError(f"all indexes of partition {partition} in {root} are in use")


def clear_indexes(root: Path) -> int:
    """Delete the indexes under `root` that no process has open; how many."""
    cleared = 0
    for directory in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            lock = _locked(directory)
        except (BlockingIOError, NotADirectoryError):
            continue
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)
        cleared += 1
    return cleared


__all__ = [
    "DAMAGE",
    "LONGEST_COMMAND_ID",
    "LONGEST_STREAM",
    "CommandEntry",
    "IndexBatch",
    "PartitionIndex",
    "Stamp",
    "StreamEntry",
    "check_stream",
    "clear_indexes",
    "open_index",
    "tag_of",
]
