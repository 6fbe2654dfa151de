"""One partition as its owner knows it: what is committed, and nothing else.

Every answer is folded from the log; the index and the states in memory only say where to begin.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tailrace.clock import Clock
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.errors import (
    EventsError,
    EventUnknownError,
    EvolveFailedError,
)
from tailrace.facts.event_types import EventType, decode_json, encode_json, split_name
from tailrace.facts.index import (
    CommandEntry,
    IndexBatch,
    PartitionIndex,
    StreamEntry,
    open_index,
    tag_of,
)
from tailrace.facts.query import Item, Query, tags_of
from tailrace.facts.reading import EventReader
from tailrace.facts.records import Stored, decode_meta, parse_record

S = TypeVar("S")
SNAPSHOT_EVERY = 32
MOST_STATES = 200_000
REBUILD_CHUNK = 20_000
TYPE_TAG = "\0type"


class Known(NamedTuple):
    """A stream at one of its versions; `offset` is that of its last event, −1 without one."""

    version: int
    state: Any
    offset: int


class States:
    """Streams in memory, a bounded number in two generations: what is not used while one of
    them fills is forgotten. An older version never takes the place of a newer one."""

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._new: dict[bytes, Known] = {}
        self._old: dict[bytes, Known] = {}
        self._lock = threading.Lock()

    def get(self, stream: bytes) -> Known | None:
        found = self._new.get(stream)
        if found is None:
            found = self._old.get(stream)
            if found is not None:
                self.put(stream, found)
        return found

    def put(self, stream: bytes, known: Known) -> None:
        with self._lock:
            kept = self._new.get(stream) or self._old.get(stream)
            if kept is not None and kept.version > known.version:
                return
            if len(self._new) >= self._half:
                self._old, self._new = self._new, {}
            self._new[stream] = known

    def drop(self, stream: bytes) -> None:
        with self._lock:
            self._new.pop(stream, None)
            self._old.pop(stream, None)

    def clear(self) -> None:
        with self._lock:
            self._new, self._old = {}, {}


class Partition(Generic[S]):
    """See the module. `apply` and `catch_up` are for the owner's thread, the rest for any."""

    def __init__(
        self,
        declared: Events[S],
        number: int,
        reader: EventReader,
        root: Path,
        topic_id: str,
        clock: Clock,
    ) -> None:
        self.declared = declared
        self.number = number
        self._reader = reader
        self._clock = clock
        self._open = (root, topic_id)
        self.states = States(MOST_STATES)
        self.visible = 0
        """`lookup` shows every event below this offset."""
        self.watchers: list[Callable[[], None]] = []
        """Called by the owner's thread when more is visible; must not block."""
        self._decode_state = msgspec.json.Decoder(declared.state).decode
        self._copies = declared.changes_in_place
        self.index = self._index()

    def _index(self) -> PartitionIndex:
        root, topic_id = self._open
        return open_index(root, self.number, topic_id, self.declared.fingerprint())

    def close(self) -> None:
        self.index.close()

    def start_afresh(self) -> None:
        """Throw the index away, as a damaged one is; `catch_up` reads everything again."""
        directory = self.index.directory
        self.index.close()
        shutil.rmtree(directory, ignore_errors=True)
        self.states.clear()
        self.index = self._index()

    # Folding -------------------------------------------------------------------

    def evolve(self, state: Any, event: object, stream: str) -> Any:
        """The state after an event. Raises EvolveFailedError."""
        function = self.declared.function
        assert function is not None
        try:
            return function(state, event)
        except Exception as error:
            raise EvolveFailedError(
                f"evolve of {self.declared.name!r} failed for stream {stream!r}",
                detail=f"at {type(event).__name__}: {type(error).__name__}: {error}",
                hint="correct evolve; the stream goes on then, and others go on meanwhile",
            ) from error

    def fold(self, state: Any, stored: Iterable[Stored]) -> Any:
        """The state after events of one stream. Raises EventsError, which names the stream."""
        decode = self.declared.types.decode
        for each in stored:
            try:
                event = decode(each.kind, each.value)
            except EventsError as error:
                place = f"{self.declared.name}/{self.number} at {each.offset}"
                error.detail = f"stream {each.stream!r}, version {each.version}, {place}" + (
                    f"\n{error.detail}" if error.detail else ""
                )
                raise
            state = self.evolve(state, event, each.stream)
        return state

    def copy(self, state: Any) -> Any:
        """A state that may be changed without changing the one that is kept."""
        if not self._copies or state is None:
            return state
        return self._decode_state(encode_json(state))

    def sealed(self, kind: EventType, value: bytes) -> bytes:
        """An event's JSON as it is written. Raises SubjectErasedError."""
        seals = self._reader.seals
        return value if seals is None else seals.seal(kind, value)

    # Looking -------------------------------------------------------------------

    def lookup(self, stream: bytes) -> Known:
        """The stream as it is committed now."""
        known = self.states.get(stream)
        if known is None:
            known = self._look_up(stream)
            newer = self.states.get(stream)  # committed while we folded
            if newer is not None and newer.version >= known.version:
                return newer
            if known.version:
                self.states.put(stream, known)
        return known

    def _look_up(self, stream: bytes) -> Known:
        entry = self.index.stream(stream)
        if entry is None:
            return Known(0, self.declared.initial(), -1)
        return self._at(stream, entry, entry.version)

    def _at(self, stream: bytes, entry: StreamEntry, version: int) -> Known:
        """The stream at a version, folded from its snapshot where that is older."""
        state: Any = self.declared.initial()
        first = 1
        if 0 < entry.snapshot_version <= version:
            state = self._decode_state(entry.snapshot)
            first = entry.snapshot_version + 1
        stored = self.events(stream, first, version)
        offset = stored[-1].offset if stored else -1
        if not stored and version:
            offset = self.index.offsets(stream, version, version)[0]
        return Known(version, self.fold(state, stored), offset)

    def at_version(self, stream: bytes, version: int) -> Known:
        """The stream as it was at a version; the newest if it has no such yet."""
        entry = self.index.stream(stream)
        if entry is not None and version >= entry.version:
            return self.lookup(stream)
        if entry is None or version < 1:
            return Known(0, self.declared.initial(), -1)
        return self._at(stream, entry, version)

    def version_before(self, stream: bytes, end: int) -> int:
        """The version of a stream's last event whose offset is below `end`."""
        return self.index.version_before(stream, end)

    def events(self, stream: bytes, first: int, last: int) -> list[Stored]:
        """The events `first` to `last` of a stream, out of the log."""
        if first > last:
            return []
        offsets = self.index.offsets(stream, first, last)
        return self._reader.at_offsets(self.declared.name, self.number, offsets)

    def command(self, command: bytes) -> list[Stored] | None:
        """The events of a command that is remembered; None if there is none such."""
        entry = self.index.command(command)
        if entry is None or entry.timestamp < self._remembered_since():
            return None
        offsets = range(entry.offset, entry.offset + entry.events)
        return self._reader.at_offsets(self.declared.name, self.number, offsets)

    def _remembered_since(self) -> int:
        return self._clock.wall_ms() - int(self.declared.remember.total_seconds() * 1000)

    def find(self, query: Query, after: int) -> list[int]:
        """The offsets above `after` of events that match, in order."""
        found: set[int] = set()
        for item in query.items:
            found |= self._of(item, after)
        return sorted(found)

    def _of(self, item: Item, after: int) -> set[int]:
        sets = [set(self.index.tagged(tag_of(*tag), after)) for tag in item.tags]
        if item.types:
            kinds: set[int] = set()
            for kind in item.types:
                kinds |= set(self.index.tagged(tag_of(TYPE_TAG, kind), after))
            sets.append(kinds)
        return set.intersection(*sets) if sets else set()

    def read(self, query: Query) -> tuple[list[Stored], int]:
        """The events that match, and the offset of the last record looked at."""
        following = self.index.stamp.next
        offsets = [offset for offset in self.find(query, -1) if offset < following]
        stored = self._reader.at_offsets(self.declared.name, self.number, offsets)
        return stored, following - 1

    def streams_since(self, start: int, end: int) -> set[str]:
        """The streams with an event at start ≤ offset < end."""
        found: set[str] = set()
        for some in self._reader.records(self.declared.name, self.number, start, end):
            for record in some:
                event = parse_record(*record)
                if event is not None:
                    found.add(event.stream)
        return found

    # Taking in -----------------------------------------------------------------

    def tags(self, kind: str, value: bytes) -> list[tuple[str, object]]:
        """The tags of an event by which conditions ask."""
        names = self.declared.tags
        if not names:
            return []
        try:
            known, version = self.declared.types.find(kind)
            fields = known.lifted(version, value)
        except TailraceError:
            fields = decode_json(value)
        return tags_of(fields, names)

    def note(self, batch: IndexBatch, stored: Stored, stream: bytes) -> None:
        """What the index keeps of one event, but for its stream and command."""
        size = len(stored.value) + len(stored.meta) + len(stream)
        batch.add_event(stream, stored.version, stored.offset, stored.kind, size)
        if self.declared.tags:
            batch.add_tag(tag_of(TYPE_TAG, split_name(stored.kind)[0]), stored.offset)
            for tag in self.tags(stored.kind, stored.value):
                batch.add_tag(tag_of(*tag), stored.offset)

    def snapshot(self, stream: bytes, known: Known) -> StreamEntry:
        """The entry of a stream, with a snapshot where one is due."""
        due = known.version % SNAPSHOT_EVERY == 0 and known.state is not None
        # A state may hold what is sealed in the log: nothing of it goes to this host's disk.
        if due and self._reader.seals is None:
            return StreamEntry(known.version, known.offset, known.version, encode_json(known.state))
        return StreamEntry(known.version, known.offset)

    def apply(
        self, batch: IndexBatch, streams: dict[bytes, Known], following: int, timestamp: int
    ) -> None:
        """A batch is committed: it can be seen from here on."""
        for stream, known in streams.items():
            batch.streams[stream] = self.snapshot(stream, known)
        self.index.apply(batch, following, timestamp)
        for stream, known in streams.items():
            self.states.put(stream, known)
        self.visible = following
        for watcher in tuple(self.watchers):
            watcher()

    def catch_up(self, end: int) -> int:
        """Read what the index lacks, up to `end`; how many events that were."""
        stamp = self.index.stamp
        if stamp.next > end:
            # The topic was made anew, or records were cut off: what we know is of another one.
            self.start_afresh()
            stamp = self.index.stamp
        whole = stamp.next == 0
        began = self._clock.monotonic()
        before = stamp.events
        chunk: list[Stored] = []
        foreign = 0
        position = stamp.next
        since = self._remembered_since()
        records = self._reader.records(self.declared.name, self.number, position, end)
        for some in records:
            for record in some:
                event = self._reader.parsed(record)
                if event is None:
                    foreign += 1
                else:
                    chunk.append(event)
            position = some[-1].offset + 1
            if len(chunk) >= REBUILD_CHUNK:
                self._take(chunk, foreign, position, since)
                chunk, foreign = [], 0
        self._take(chunk, foreign, end, since)
        events = self.index.stamp.events - before
        if whole and events:
            self.index.note_rebuild(events, self._clock.monotonic() - began)
        self._refuse_newer()
        self.visible = end
        return events

    def _take(self, chunk: Sequence[Stored], foreign: int, following: int, since: int) -> None:
        batch = IndexBatch()
        batch.foreign = foreign
        streams: dict[bytes, Known | None] = {}
        ends: dict[bytes, StreamEntry] = {}
        for stored in chunk:
            stream = stored.stream.encode()
            self.note(batch, stored, stream)
            command = decode_meta(stored.meta).command.encode()
            if stored.timestamp >= since:
                entry = batch.commands.get(command)
                batch.commands[command] = (
                    CommandEntry(stored.offset, 1, stored.timestamp)
                    if entry is None
                    else CommandEntry(entry.offset, entry.events + 1, entry.timestamp)
                )
            streams[stream] = known = self._folded(stream, stored, streams)
            ends[stream] = (
                StreamEntry(stored.version, stored.offset)
                if known is None or stored.version % SNAPSHOT_EVERY
                else self.snapshot(stream, known)
            )
            if known is not None and ends[stream].snapshot_version:
                batch.streams[stream] = ends[stream]
        for stream, end in ends.items():
            kept = batch.streams.get(stream)
            batch.streams[stream] = end if kept is None else StreamEntry(*end[:2], *kept[2:])
        timestamp = chunk[-1].timestamp if chunk else 0
        self.index.apply(batch, following, timestamp)
        for stream, now in streams.items():
            if now is None:
                self.states.drop(stream)
            else:
                self.states.put(stream, now)

    def _folded(
        self, stream: bytes, stored: Stored, streams: dict[bytes, Known | None]
    ) -> Known | None:
        """The stream after this event, if the state before it is at hand."""
        before = streams[stream] if stream in streams else self.states.get(stream)
        if before is None:
            if stored.version != 1 or stream in streams:
                return None
            before = Known(0, self.declared.initial(), -1)
        if before.version != stored.version - 1:
            return None
        try:
            return Known(stored.version, self.fold(before.state, [stored]), stored.offset)
        except EventsError:
            return None  # told when the stream is asked for

    def _refuse_newer(self) -> None:
        """A deployment older than the log is told before it decides anything."""
        for written in self.index.stamp.kinds:
            name, version = split_name(written)
            known = self.declared.types.by_name.get(name)
            if known is not None and version > known.version:
                raise EventUnknownError(
                    f"{self.declared.name!r} holds {written}, "
                    f"this code knows {name} up to version {known.version}",
                    detail=f"partition {self.number}: {self.index.stamp.kinds[written]} events",
                    hint="deploy the program that wrote them, or a newer one",
                )
