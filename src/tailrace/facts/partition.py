"""One partition as its owner knows it: what is committed, and nothing else.

Every answer is folded from the log; the index and the states in memory only say where to begin.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import lmdb
import msgspec

from tailrace.clock import Clock
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.errors import (
    EventsError,
    EventUnknownError,
    EventUnreadableError,
    EvolveFailedError,
    SubjectErasedError,
)
from tailrace.facts.event_types import EventType, decode_json, encode_json
from tailrace.facts.index import (
    CommandEntry,
    IndexBatch,
    PartitionIndex,
    StreamEntry,
    open_index,
    tag_of,
)
from tailrace.facts.query import Item, Query, tags_of
from tailrace.facts.reading import EventReader, one_by_one
from tailrace.facts.records import (
    LONGEST_COMMAND_ID,
    Stored,
    decode_command,
    is_stream,
    parse_record,
)
from tailrace.records.batch import Record
from tailrace.records.erased_offsets import offsets_of, read_request
from tailrace.records.event_headers import ERASED_TYPE, split_name

log = logging.getLogger(__name__)
if TYPE_CHECKING:
    from tailrace.records.event_columns import EventColumns

S = TypeVar("S")
T = TypeVar("T")
SNAPSHOT_EVERY = 32
MOST_STATES = 200_000
TYPE_TAG = "\0type"
MOST_AT_ONCE = 20_000
"""Events of one stream that are in memory at once while a state is folded from them."""


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


class Folding:
    """One stream while a piece is taken in. `known` False: its state cannot be told here."""

    __slots__ = ("before", "known", "offsets", "state", "version")

    def __init__(self, version: int, state: Any, known: bool, before: StreamEntry | None) -> None:
        self.version = version
        self.state = state
        self.known = known
        self.before = before
        self.offsets: list[int] = []


class IndexIncompleteError(lmdb.Error):
    """The index is being read from the log, and lacks events; whoever looks tries again."""


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
        self._whole = False  # whether the index was read to the end since it was begun
        self._beginnings = 0
        self.watchers: list[Callable[[], None]] = []
        """Called by the owner's thread when more is visible; must not block."""
        self._decode_state = msgspec.json.Decoder(declared.state).decode
        self._copies = declared.changes_in_place
        self.index = self._index()

    def _index(self) -> PartitionIndex:
        root, topic_id = self._open
        self._erased = self._erasures()
        fingerprint = self.declared.fingerprint() + self._erased
        return open_index(root, self.number, topic_id, fingerprint)

    def _erasures(self) -> str:
        book = self._reader.erasures
        return "" if book is None else book.mark(self.declared.name)

    def close(self) -> None:
        self.index.close()

    def start_afresh(self) -> None:
        """Throw the index away, as a damaged one is; `catch_up` reads everything again."""
        self._whole = False
        self._beginnings += 1
        directory = self.index.directory
        self.index.close()
        shutil.rmtree(directory, ignore_errors=True)
        self.states.clear()
        self.index = self._index()

    def looked(self, look: Callable[[Partition[S]], T]) -> T:
        """What a look at the index says, from any thread. Raises an lmdb.Error while the index is
        read again, or was begun again meanwhile: it lacks events, and does not know it."""
        beginnings = self._beginnings
        if not self._whole:
            raise IndexIncompleteError("the index is being read")
        found = look(self)
        if beginnings != self._beginnings:
            raise IndexIncompleteError("the index was begun again")
        return found

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
            if each.kind == ERASED_TYPE:
                continue
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

    def check_not_erased(self, stream: bytes) -> None:
        """Raises SubjectErasedError for a stream that was erased as a whole."""
        book = self._reader.erasures
        gone = None if book is None else book.of_key(self.declared.name, stream)
        if gone is not None:
            raise SubjectErasedError(
                "the stream was erased and does not come back",
                detail=f"erasure {gone.id} of {gone.at}",
                hint="`tailrace erase list` says why; use another stream",
            )

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
        offset = -1
        for start in range(first, version + 1, MOST_AT_ONCE):
            stored = self.events(stream, start, min(start + MOST_AT_ONCE - 1, version))
            state, offset = self.fold(state, stored), stored[-1].offset
        if offset < 0 and version:
            offset = self.index.offsets(stream, version, version)[0]
        return Known(version, state, offset)

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
        found = self._reader.at_offsets(self.declared.name, self.number, offsets)
        if len(found) != last - first + 1:
            raise EventUnreadableError(
                f"events of stream {stream.decode(errors='replace')!r} are missing",
                detail=f"{len(found)} of the versions {first} to {last} are in "
                f"{self.declared.name}/{self.number}",
                hint="records of the topic were deleted; write it again from a copy",
            )
        return found

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

    def streams_erased(self) -> set[str]:
        """The streams of which single events were erased."""
        book = self._reader.erasures
        done = (
            [] if book is None else [each for each in book.found.values() if each.kind == "record"]
        )
        offsets: set[int] = set()
        for each in done:
            ranges = read_request(each.offsets.get(self.declared.name, ""))
            offsets.update(offsets_of(ranges.get(self.number, [])))
        if not offsets:
            return set()
        found = self._reader.at_offsets(self.declared.name, self.number, sorted(offsets))
        return {each.stream for each in found}

    def streams_since(self, start: int, end: int) -> set[str]:
        """The streams with an event at start ≤ offset < end."""
        found: set[str] = set()
        for some, _ in self._reader.records(self.declared.name, self.number, start, end):
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

    def note(self, batch: IndexBatch, stored: Stored, stream: bytes, offset: int) -> None:
        """What the index keeps of one event at `offset`, but for its stream and command."""
        size = len(stored.value) + len(stored.meta) + len(stream)
        batch.add_event(stream, stored.version, offset, stored.kind, size)
        if self.declared.tags:
            batch.add_tag(tag_of(TYPE_TAG, split_name(stored.kind)[0]), offset)
            for tag in self.tags(stored.kind, stored.value):
                batch.add_tag(tag_of(*tag), offset)

    def snapshot(self, stream: bytes, known: Known) -> StreamEntry:
        """The entry of a stream, with a snapshot where one is due."""
        if known.version % SNAPSHOT_EVERY == 0:
            return self.with_snapshot(*known)
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
        if self._erasures() != self._erased:
            self.start_afresh()  # states, snapshots and tags of what was erased
        stamp = self.index.stamp
        if stamp.next > end:
            # The topic was made anew, or records were cut off: what we know is of another one.
            self.start_afresh()
            stamp = self.index.stamp
        whole = stamp.next == 0
        began = self._clock.monotonic()
        before = stamp.events
        since = self._remembered_since()
        for piece, following in self._reader.pieces(
            self.declared.name, self.number, stamp.next, end
        ):
            if isinstance(piece, list) or not self._take_columns(piece, following, since):
                self.take_events(one_by_one(piece), following, since)
        self.index.apply(IndexBatch(), end, 0)
        events = self.index.stamp.events - before
        if whole and events:
            self.index.note_rebuild(events, self._clock.monotonic() - began)
        self._refuse_newer()
        self.visible = end
        self._whole = True
        return events

    def count_records(self, first: int, end: int) -> int:
        """How many records there are between two offsets, whatever they are."""
        pieces = self._reader.pieces(self.declared.name, self.number, first, end)
        return sum(len(list(one_by_one(piece))) for piece, _ in pieces)

    def _take_columns(self, piece: EventColumns, following: int, since: int) -> bool:
        """False if the piece needs a look at each record."""
        # Arrow takes long to load: only for whoever reads much.
        from tailrace.facts.catching_up import take_columns

        return not self.declared.tags and take_columns(self, piece, following, since)

    def take_events(self, records: Iterable[Record], following: int, since: int) -> None:
        """Take records in, one by one: the naive twin of `take_columns`."""
        batch = IndexBatch()
        streams: dict[bytes, Folding] = {}
        timestamp = 0
        for record in records:
            stored = parse_record(*record)
            try:
                command = b"" if stored is None else decode_command(stored.meta).command.encode()
            except msgspec.MsgspecError:
                stored = None
            if stored is None:
                batch.foreign += 1
                continue
            stream = stored.stream.encode()
            if not is_stream(stream) or not 0 < len(command) <= LONGEST_COMMAND_ID:
                batch.foreign += 1
                continue
            folding = streams.get(stream)
            if folding is None:
                folding = streams[stream] = begin(self, stream, self.index.stream(stream))
            if stored.version <= folding.version:
                self._tell_foreign(stored)
                batch.foreign += 1
                continue
            timestamp = stored.timestamp
            if stored.timestamp >= since:
                entry = batch.commands.get(command)
                batch.commands[command] = (
                    CommandEntry(stored.offset, 1, stored.timestamp)
                    if entry is None
                    else CommandEntry(entry.offset, entry.events + 1, entry.timestamp)
                )
            if stored.version != folding.version + 1:
                folding.known = False  # records are missing: told when the stream is asked for
            stored = self._reader.open(stored)
            self.note(batch, stored, stream, stored.offset)
            folding.version = stored.version
            folding.offsets.append(stored.offset)
            if folding.known:
                try:
                    folding.state = self.fold(folding.state, [stored])
                except EventsError:
                    folding.known, folding.state = False, None
        streams = {stream: each for stream, each in streams.items() if each.offsets}
        for stream, each in streams.items():
            last = each.offsets[-1]
            old = 0 if each.before is None else each.before.snapshot_version
            batch.streams[stream] = (
                self.with_snapshot(each.version, each.state, last)
                if each.known and self.snapshot_due(old, each.version)
                else StreamEntry(each.version, last)
            )
        self.index.apply(batch, following, timestamp)
        self.keep(
            {
                stream: Known(each.version, each.state, each.offsets[-1]) if each.known else None
                for stream, each in streams.items()
            }
        )

    def _tell_foreign(self, stored: Stored) -> None:
        log.warning(
            "a record looks like an event and is none: its stream has this version already",
            extra={
                "topic": self.declared.name,
                "partition": self.number,
                "offset": stored.offset,
                "stream": stored.stream[:200],
                "version": stored.version,
            },
        )

    @staticmethod
    def known(version: int, state: Any, offset: int) -> Known:
        return Known(version, state, offset)

    def keep(self, streams: dict[bytes, Known | None]) -> None:
        """Keep these states in memory; None forgets one."""
        for stream, now in streams.items():
            if now is None:
                self.states.drop(stream)
            else:
                self.states.put(stream, now)

    def snapshot_due(self, snapshot_version: int, version: int) -> bool:
        return version - snapshot_version >= SNAPSHOT_EVERY

    def with_snapshot(self, version: int, state: Any, offset: int) -> StreamEntry:
        """The entry of a stream with its state; without it where that is None."""
        if state is None or self._reader.seals is not None:
            # A state may hold what is sealed in the log: nothing of it goes to this host's disk.
            return StreamEntry(version, offset)
        try:
            return StreamEntry(version, offset, version, encode_json(state))
        except (TypeError, ValueError, OverflowError, RecursionError):
            return StreamEntry(version, offset)  # fields that hold what they should not

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


def begin(partition: Partition[Any], stream: bytes, entry: StreamEntry | None) -> Folding:
    """A stream as the index (`entry`) and the states have it."""
    if entry is None:
        return Folding(0, partition.declared.initial(), True, None)
    known = partition.states.get(stream)
    if known is None or known.version != entry.version:
        return Folding(entry.version, None, False, entry)
    # Whoever holds the state that is known must not see it change.
    return Folding(entry.version, partition.copy(known.state), True, entry)
