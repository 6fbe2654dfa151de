"""Every state of a topic told from its records alone: no index, no snapshot, no cache.

For `tailrace events rebuild` and `verify`; `testing.naive_fold` is the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.reading import COLUMNS_FROM_BYTES, EventReader, one_by_one
from tailrace.facts.records import (
    LONGEST_COMMAND_ID,
    Stored,
    decode_command,
    decode_commands,
    is_stream,
    parse_record,
)
from tailrace.facts.sealing import seals_for
from tailrace.records.batch import Record
from tailrace.records.event_headers import ERASED_TYPE

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.records.event_columns import EventColumns

TIMEOUT_SECONDS = 30.0


@dataclass(slots=True)
class Folded:
    """What the records of a topic make: (version, state) of every stream."""

    streams: dict[str, tuple[int, Any]] = field(default_factory=dict)
    events: int = 0
    foreign: int = 0
    seconds: float = 0.0
    broken: dict[str, str] = field(default_factory=dict)
    """Streams that cannot be told, or whose versions have a gap, and why."""


def fold(
    log: Log, declared: Events[Any], *, columns_from_bytes: int = COLUMNS_FROM_BYTES
) -> Folded:
    """Read the whole topic and fold every stream."""
    found = Folded()
    began = SYSTEM.monotonic()
    ends = log.end_offsets(declared.name)
    reader = EventReader(log, TIMEOUT_SECONDS, columns_from_bytes=columns_from_bytes)
    try:
        reader.seals = seals_for(log, declared)
        for number, end in sorted(ends.items()):
            one = _Partition(declared, found, reader)
            for piece, _ in reader.pieces(declared.name, number, 0, end):
                one.take(piece)
            one.finish()
    finally:
        if reader.seals is not None:
            reader.seals.keys.close()
        reader.close()
    found.seconds = SYSTEM.monotonic() - began
    return found


class _Partition:
    """The streams of one partition, by their bytes: (version, state)."""

    def __init__(self, declared: Events[Any], found: Folded, reader: EventReader) -> None:
        assert declared.function is not None
        self.declared, self.found = declared, found
        self._open = reader.open
        self.function: Callable[[Any, Any], Any] = declared.function
        self.streams: dict[bytes, tuple[int, Any]] = {}

    def take(self, piece: EventColumns | list[Record]) -> None:
        if isinstance(piece, list) or not self._columns(piece):
            self._one_by_one(piece)

    def _columns(self, piece: EventColumns) -> bool:
        """Fold a piece in one loop; False, and nothing done, if a record needs a closer look."""
        import pyarrow as pa

        try:
            versions: list[int] = piece.versions.cast(pa.string()).cast(pa.int64()).to_pylist()
            kinds = piece.kinds.cast(pa.string()).dictionary_encode()
            if ERASED_TYPE in kinds.dictionary.to_pylist():
                return False
            piece.streams.cast(pa.string())
            decoders = [self.declared.types.decoder(each) for each in kinds.dictionary.to_pylist()]
            metas = piece.metas.to_pylist()
            told = decode_commands(b"[" + b",".join(metas) + b"]")
            sizes = [len(each.command) for each in told]
            if len(told) != len(metas) or not min(sizes) or max(sizes) * 4 > LONGEST_COMMAND_ID:
                return False
        except (pa.ArrowInvalid, msgspec.MsgspecError, TailraceError):
            return False
        function, find = self.function, self.streams.get
        changed: dict[bytes, tuple[int, Any]] = {}
        now = changed.get
        begin = (0, None)
        initial = self.declared.initial
        keys = piece.streams.to_pylist()
        if not all(map(is_stream, set(keys))):
            return False
        for stream, version, number, value in zip(
            keys,
            versions,
            kinds.indices.to_pylist(),
            piece.values.to_pylist(),
            strict=True,
        ):
            before, state = now(stream) or self._begin(find(stream, begin), initial)
            if version != before + 1:
                return False
            try:
                changed[stream] = (version, function(state, decoders[number](value)))
            except Exception:
                return False  # which one it was, and why, is told one by one
        self.streams |= changed
        self.found.events += len(versions)
        return True

    def _begin(self, known: tuple[int, Any], initial: Callable[[], Any]) -> tuple[int, Any]:
        version, state = known
        if not version:
            return 0, initial()
        if self.declared.changes_in_place:  # what is given up must leave no trace
            raw = msgspec.json.encode(state)
            return version, None if state is None else msgspec.json.decode(
                raw, type=self.declared.state
            )
        return version, state

    def _one_by_one(self, piece: EventColumns | list[Record]) -> None:
        found, broken = self.found, self.found.broken
        for record in one_by_one(piece):
            stored = parse_record(*record)
            if stored is not None and not is_ours(stored):
                stored = None
            key = b"" if stored is None else stored.stream.encode()
            version, state = self.streams.get(key, (0, None))
            if stored is None or stored.version <= version:
                found.foreign += 1
                continue
            found.events += 1
            stream = stored.stream
            if not version:
                state = self.declared.initial()
            if stored.version != version + 1:
                broken.setdefault(stream, f"version {stored.version} stands behind {version}")
            if stream not in broken and stored.kind != ERASED_TYPE:
                try:
                    stored = self._open(stored)
                    event = self.declared.types.decode(stored.kind, stored.value)
                    state = self.function(state, event)
                except TailraceError as error:
                    broken[stream] = error.message
                except Exception as error:
                    broken[stream] = f"evolve failed: {type(error).__name__}: {error}"
            self.streams[key] = (stored.version, state)

    def finish(self) -> None:
        for stream, told in self.streams.items():
            self.found.streams[stream.decode()] = told


def is_ours(stored: Stored) -> bool:
    """Whether what looks like an event can be one: its key a stream, its meta data a command's."""
    try:
        command = decode_command(stored.meta).command.encode()
    except msgspec.MsgspecError:
        return False
    return is_stream(stored.stream.encode()) and 0 < len(command) <= LONGEST_COMMAND_ID


def differences(log: Log, declared: Events[Any], folded: Folded) -> Iterator[tuple[str, str]]:
    """Streams whose owner tells another state than the fold does, and how."""
    yield from folded.broken.items()
    with declared.open(log, owns=False) as opened:
        for stream, (version, state) in folded.streams.items():
            if stream in folded.broken:
                continue
            told = opened.state(stream, version=version)
            if (told.version, told.value) != (version, state):
                yield stream, f"its owner tells {told.value!r}, the log {state!r}"
