"""One batch as it is decided: commands against states that may still be on their way.

Every command sees the events of those decided before it, also of those the log has not
acknowledged yet. If such a batch is lost, what was decided on it is decided again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tailrace.clock import to_datetime
from tailrace.errors import TailraceError
from tailrace.facts.asking import Ask, Done
from tailrace.facts.errors import (
    AppendConditionError,
    CommandFailedError,
    CommandIdReusedError,
    CommandResultError,
    EventsTooLargeError,
    Rejected,
    VersionConflictError,
)
from tailrace.facts.event_types import EventType, encode_json
from tailrace.facts.index import LONGEST_STREAM, CommandEntry, IndexBatch
from tailrace.facts.partition import Known, Partition
from tailrace.facts.records import (
    BatchOfEvents,
    Meta,
    Stored,
    decode_meta,
    encode_meta,
    encode_record,
)
from tailrace.records.event_headers import split_name

MOST_ASKS = 2_000
NOT_RECORDS_BYTES = 256
MOST_STATE_BYTES = 8 * 1024 * 1024
"""Of the states that one batch publishes."""


class Decided(NamedTuple):
    """What a command came to: `known` is its stream afterwards."""

    ask: Ask
    events: tuple[object, ...]
    known: Known
    batch: DecidedBatch | None
    """The batch in which the stream's last event is; None: it is committed."""
    repeated: bool = False


class DecidedBatch:
    """Events decided together, and everybody who waits for them."""

    def __init__(self, timestamp: int) -> None:
        self.records = BatchOfEvents(timestamp)
        self.timestamp = timestamp
        self.known: dict[bytes, Known] = {}
        self.results: list[Decided | tuple[Ask, TailraceError]] = []
        self.by_id: dict[str, Decided] = {}
        self.stored: list[tuple[bytes, Stored]] = []
        self.tagged: list[tuple[str, list[tuple[str, object]]]] = []
        self.states: dict[bytes, bytes | None] = {}
        """The states to be published, as JSON; None: the stream has none any more."""
        self.state_bytes = 0
        self.base = -1

    @property
    def asks(self) -> list[Ask]:
        return [each[0] for each in self.results]

    def committed(self, base: int) -> tuple[IndexBatch, dict[bytes, Known]]:
        """What there is to index now that the first record is known to be at `base`."""
        self.base = base
        found = IndexBatch()
        for each in self.by_id.values():
            count = len(each.events)
            if count:
                first = base + each.known.offset - count + 1
                found.commands[each.ask.id.encode()] = CommandEntry(first, count, self.timestamp)
        known = {
            key: Known(version, state, base + offset)
            for key, (version, state, offset) in self.known.items()
        }
        return found, known

    def offset_of(self, decided: Decided) -> int:
        """Where the last event of a decided stream stands, once its batch is committed."""
        if decided.batch is None:
            return decided.known.offset
        return decided.batch.base + decided.known.offset


class Decider:
    """Decides for one partition; `on_their_way` are the batches before the one being made."""

    def __init__(self, partition: Partition[Any], most_bytes: int) -> None:
        self.partition = partition
        self.declared = partition.declared
        self.most_bytes = most_bytes
        self.on_their_way: list[DecidedBatch] = []
        self.batch = DecidedBatch(0)

    def begin(self, timestamp: int) -> DecidedBatch:
        self.batch = DecidedBatch(timestamp)
        return self.batch

    def take(self, ask: Ask) -> bool:
        """Decide into the batch; False if the batch has no room for it."""
        batch = self.batch
        try:
            decided = self._decide(ask)
        except TailraceError as error:
            batch.results.append((ask, error))
            return True
        if decided is None:
            return False
        batch.results.append(decided)
        return True

    def _latest(self, key: bytes) -> tuple[Known, DecidedBatch | None]:
        found = self.batch.known.get(key)
        if found is not None:
            return found, self.batch
        for batch in reversed(self.on_their_way):
            found = batch.known.get(key)
            if found is not None:
                return found, batch
        return self.partition.lookup(key), None

    def _decide(self, ask: Ask) -> Decided | None:
        if (ask.named or ask.tried) and (first := self._first_answer(ask)) is not None:
            return first
        self.partition.check_not_erased(ask.key)
        known, where = self._latest(ask.key)
        if ask.expected is not None and ask.expected != known.version:
            error = VersionConflictError(
                f"stream {ask.stream!r} is at version {known.version}, expected was {ask.expected}",
                hint="read the state again and decide anew",
            )
            error.expected, error.actual = ask.expected, known.version
            raise error
        if ask.unless is not None:
            self._check_condition(ask)
        events = ask.events if ask.command is None else self._call(ask, known)
        if not events:
            return self._keep(Decided(ask, (), known, where))
        return self._write(ask, events, known)

    def _keep(self, decided: Decided) -> Decided:
        self.batch.by_id[decided.ask.id] = decided
        return decided

    # Repeats -------------------------------------------------------------------

    def _first_answer(self, ask: Ask) -> Decided | None:
        """The answer a command with this id has had; None if the id is new."""
        for batch in (self.batch, *self.on_their_way):
            first = batch.by_id.get(ask.id)
            if first is not None:
                if not first.events:
                    continue  # it left nothing: decided as if it were new
                name = None if first.ask.command is None else first.ask.command.name
                self._same(ask, first.ask.stream, name)
                return first._replace(ask=ask, repeated=ask.named)
        stored = self.partition.command(ask.id.encode())
        if not stored:
            return None
        last = stored[-1]
        self._same(ask, last.stream, decode_meta(last.meta).name)
        types = self.declared.types
        events = tuple(types.decode(each.kind, each.value) for each in stored)
        known = self.partition.at_version(ask.key, last.version)
        return Decided(ask, events, known._replace(offset=last.offset), None, ask.named)

    def _same(self, ask: Ask, stream: str, name: str | None) -> None:
        asked = None if ask.command is None else ask.command.name
        if (stream, name) != (ask.stream, asked):
            raise CommandIdReusedError(
                f"the command id {ask.id!r} belongs to {name or 'append'} on {stream!r}",
                detail=f"it was given again to {asked or 'append'} on {ask.stream!r}",
                hint="give every decision an id of its own",
            )

    # Deciding ------------------------------------------------------------------

    def _check_condition(self, ask: Ask) -> None:
        query = ask.unless
        assert query is not None
        pending = any(
            query.matches(kind, tags)
            for batch in (self.batch, *self.on_their_way)
            for kind, tags in batch.tagged
        )
        if pending or self.partition.find(query, ask.after):
            raise AppendConditionError(
                f"an event behind position {ask.after} matches the condition",
                detail=f"append to {ask.stream!r}",
                hint="read again and decide anew",
            )

    def _call(self, ask: Ask, known: Known) -> tuple[object, ...]:
        command = ask.command
        assert command is not None
        arguments = ask.arguments
        if command.wants_time:
            moment: datetime = to_datetime(self.batch.timestamp)
            arguments = {**arguments, "at": moment}
        try:
            result = command.function(self.partition.copy(known.state), **arguments)
        except Rejected:
            raise
        except Exception as error:
            raise CommandFailedError(
                f"the command {command.name} failed on {ask.stream!r}",
                detail=f"{type(error).__name__}: {error}",
                hint="correct the command; raise tr.Rejected(…) to say no",
            ) from error
        if result is None:
            return ()
        return tuple(result) if isinstance(result, list | tuple) else (result,)

    def _write(self, ask: Ask, events: Sequence[object], known: Known) -> Decided | None:
        """The events as records of the batch; None if it has no room."""
        batch, declared = self.batch, self.declared
        name = None if ask.command is None else ask.command.name
        state = self.partition.copy(known.state)
        place = first = batch.records.count
        version = known.version
        records: list[bytes] = []
        stored: list[tuple[bytes, Stored]] = []
        written: list[object] = []
        size = 0
        for number, event in enumerate(events):
            known_type = self._type_of(event, ask)
            value = self._encoded(known_type, event, ask)
            event = self._as_read(known_type, value, ask)
            value = self.partition.sealed(known_type, value)
            state = self.partition.evolve(state, event, ask.stream)
            version += 1
            meta = encode_meta(
                Meta(
                    f"{ask.id}/{number}",
                    ask.id,
                    name,
                    ask.cause,
                    ask.correlation or ask.id,
                    ask.actor,
                )
            )
            kind = known_type.written
            record = encode_record(place, ask.key, known_type.header, version, meta, value)
            records.append(record)
            size += len(record)
            written.append(event)
            stored.append(
                (ask.key, Stored(place, batch.timestamp, ask.stream, kind, version, meta, value))
            )
            place += 1
        if batch.records.size_bytes + size > self.most_bytes - NOT_RECORDS_BYTES:
            if first:
                return None
            raise EventsTooLargeError(
                f"the events of one command take {size:,} bytes",
                detail=f"{len(events)} events on stream {ask.stream!r}; "
                f"{declared.name!r} takes {self.most_bytes:,} (max.message.bytes)",
                hint="keep large objects elsewhere and write their address",
            )
        if declared.publish:
            told = self._published(ask, state)
            size = 0 if told is None else len(told)
            if first and batch.state_bytes + size > MOST_STATE_BYTES:
                return None
            batch.states[ask.key] = told
            batch.state_bytes += size
        batch.records.extend(records)
        batch.stored += stored
        if declared.tags:
            batch.tagged += [
                (split_name(each.kind)[0], self.partition.tags(each.kind, each.value))
                for _, each in stored
            ]
        after = Known(version, state, place - 1)
        batch.known[ask.key] = after
        return self._keep(Decided(ask, tuple(written), after, batch))

    def _published(self, ask: Ask, state: object) -> bytes | None:
        """The state as its table has it. What cannot be in the table is not decided."""
        if state is None:
            return None
        try:
            told = encode_json(state)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise CommandResultError(
                f"the state of {ask.stream!r} cannot be written as JSON",
                detail=f"{type(error).__name__}: {error}",
                hint="correct evolve: the states of this topic are published",
            ) from error
        if len(told) > self.most_bytes - LONGEST_STREAM - NOT_RECORDS_BYTES:
            raise EventsTooLargeError(
                f"the state of {ask.stream!r} would take {len(told):,} bytes",
                detail=f"{self.declared.state_topic!r} takes {self.most_bytes:,}",
                hint="keep large objects elsewhere, or leave publish=True out",
            )
        return told

    def _type_of(self, event: object, ask: Ask) -> EventType:
        known = self.declared.types.by_class.get(type(event))
        if known is None:
            who = "append" if ask.command is None else f"the command {ask.command.name}"
            raise CommandResultError(
                f"{who} gave a {type(event).__name__}, which is no event of {self.declared.name!r}",
                detail=f"its events are {', '.join(self.declared.types.by_name)}",
            )
        return known

    def _encoded(self, known: EventType, event: object, ask: Ask) -> bytes:
        try:
            return encode_json(event)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise CommandResultError(
                f"an event {known.name} for {ask.stream!r} cannot be written as JSON",
                detail=f"{type(error).__name__}: {error}",
            ) from error

    def _as_read(self, known: EventType, value: bytes, ask: Ask) -> object:
        """The event as every reader will see it; what cannot be read is not written."""
        try:
            return known.decode(known.version, value)
        except TailraceError as error:
            raise CommandResultError(
                f"an event {known.name} for {ask.stream!r} holds what its fields do not allow",
                detail=error.detail,
                hint="Python does not check the types of a dataclass's fields; the log does",
            ) from error

    # Answering -----------------------------------------------------------------

    def answer(self, batch: DecidedBatch, decided: Decided) -> Done[Any]:
        """What the caller is told, once the batch is committed."""
        offset = batch.offset_of(decided)
        known = decided.known
        return Done(
            decided.events,
            known.version,
            None if offset < 0 else f"log:{self.declared.name}/{self.partition.number}:{offset}",
            self.partition.copy(known.state),
            decided.ask.id,
            decided.repeated,
        )
