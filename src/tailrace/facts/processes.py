"""The journal of a reaction: the event topic `<name>.reactions`.

A stream is a process; streams `\\x01<topic>/<partition>` say up to where a source was read.

    Stepped   a fact, a timer or a refusal was taken in: the state after it, the commands that
              follow and under which ids, timers set and cancelled
    Settled   what became of a command: done (its position) or refused (the code)
    Tried     a command, or a fact, that fails, and how often it has
    Read      everything of a source below an offset is taken in

A process remembers the last offset of each source partition it has taken in, so a fact that is
read twice steps once, for ever. The id of a command follows from its cause and its place in the
step: whoever sends it again sends it under the same id, and its owner decides it once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tailrace.clock import to_datetime
from tailrace.facts.asking import Fact
from tailrace.facts.declare import Events
from tailrace.facts.errors import Rejected
from tailrace.facts.event_types import EventType, decode_json, encode_json
from tailrace.facts.questions import fact as fact_of
from tailrace.facts.reactions import Cancel, Later, Reaction, Refused, Send, Timeout
from tailrace.facts.records import Stored
from tailrace.facts.sealing import Seals

READER = "\x01"
LONGEST_CAUSE = 200
SEALED, ERASED_ARGUMENTS = "tr1", "tr1.erased"
MOST_ERROR = 500
_REMEMBER = timedelta(days=7)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Action:
    """A command that is to be carried out."""

    id: str
    topic: str
    command: str
    stream: str
    arguments: dict[str, Any]
    cause: str
    correlation: str | None
    at: int
    """The time of its cause, in milliseconds: before it nobody can have sent the command."""
    attempts: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Timer:
    """When it runs out, in milliseconds."""

    due: int
    correlation: str | None = None


@dataclass(frozen=True, slots=True)
class Stepped:
    """A fact was taken in, and this follows."""

    cause: str
    kind: str
    state: Any
    actions: tuple[Action, ...] = ()
    timers: dict[str, Timer] = field(default_factory=dict)
    cancelled: tuple[str, ...] = ()
    place: str = ""
    offset: int = -1
    subjects: tuple[str, ...] = ()
    """Tags of whom the state and the commands may tell something: both are sealed under them."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a command."""

    id: str
    outcome: str
    code: str = ""
    message: str = ""
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What fails, and how often it has."""

    id: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True)
class Read:
    """Facts below this offset need not be read again."""

    offset: int


@dataclass(frozen=True, slots=True)
class Process:
    """One process; of a reader only `read` and `trouble` are used."""

    state: Any = None
    seen: dict[str, int] = field(default_factory=dict)
    open: tuple[Action, ...] = ()
    timers: dict[str, Timer] = field(default_factory=dict)
    read: int = 0
    trouble: Tried | None = None
    subjects: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True):
    """A fact of a source, as it stands in the log."""

    topic: str
    partition: int
    stored: Stored

    @property
    def place(self) -> str:
        return f"{self.topic}/{self.partition}"


Happened = Stepped | Settled | Tried | Read


def evolve(process: Process, event: Happened) -> Process:
    """The process after an event of its journal."""
    match event:
        case Stepped():
            seen, timers = process.seen, dict(process.timers)
            if event.offset >= 0:
                seen = {**seen, event.place: event.offset}
            for name in event.cancelled:
                timers.pop(name, None)
            return replace(
                process,
                state=event.state,
                seen=seen,
                open=(*process.open, *event.actions),
                timers=timers | event.timers,
                subjects=event.subjects,
            )
        case Settled():
            return replace(process, open=tuple(e for e in process.open if e.id != event.id))
        case Tried():
            if not any(each.id == event.id for each in process.open):
                return replace(process, trouble=event)
            tried = tuple(
                replace(each, attempts=event.attempts, error=event.error)
                if each.id == event.id
                else each
                for each in process.open
            )
            return replace(process, open=tried)
        case Read():
            return replace(process, read=max(process.read, event.offset), trouble=None)


def reader_stream(topic: str, partition: int) -> str:
    return f"{READER}{topic}/{partition}"


def journal(
    reaction: Reaction, token: str = "", tag: Callable[[str], str] | None = None
) -> Events[Process]:
    """The event topic of a reaction. A refusal is recorded only for who has `token`: the owner
    of the process. One that was stopped, and goes on after another has taken over, may hold an
    answer from before. `tag` gives the tag of a subject, where sources have personal fields."""
    declared = Events(
        reaction.topic,
        (Stepped, Settled, Tried, Read),
        state=Process,
        partitions=reaction.partitions,
        tags=(),
        remember=_REMEMBER,
        declared_at=reaction.declared_at,
    )
    declared.evolve(evolve)
    personal = [each for each in reaction.sources.values() if each.types.has_personal]
    if personal:
        declared.sealing = JournalSeals
        declared.key = personal[0].key
    steps = Steps(reaction, token, tag)
    for command in (steps.step(), steps.fire(), steps.settle(), tried, read):
        declared.command(command)
    return declared


class Steps:
    """The decisions of a reaction's processes: pure functions of a process."""

    def __init__(
        self, reaction: Reaction, token: str, tag: Callable[[str], str] | None = None
    ) -> None:
        self._reaction = reaction
        self._token = token
        self._tag = tag

    def step(self) -> Callable[..., Any]:
        def step(process: Process, key: str, told: Told, at: datetime) -> Stepped | None:
            """Take a fact of a source in."""
            stored = told.stored
            if process.seen.get(told.place, -1) >= stored.offset:
                return None
            source = self._reaction.sources[told.topic]
            fact = fact_of(source, told.partition, stored)
            process = replace(process, subjects=self._subjects(process, source, fact))
            stepped = self._stepped(process, key, fact, fact.position, at)
            if stepped is None:
                return None
            return replace(stepped, place=told.place, offset=stored.offset)

        return step

    def fire(self) -> Callable[..., Any]:
        def fire(process: Process, key: str, name: str, due: int, at: datetime) -> Stepped | None:
            """A timer has run out, unless it was set again or taken back meanwhile."""
            timer = process.timers.get(name)
            if timer is None or timer.due != due or _milliseconds(at) < due:
                return None
            cause = f"timer:{key}:{name}:{due}"
            fact = _made(Timeout(name), key, cause, timer.correlation, at)
            left = {each: timer for each, timer in process.timers.items() if each != name}
            stepped = self._stepped(replace(process, timers=left), key, fact, cause, at)
            if stepped is None:
                stepped = Stepped(cause, fact.type, process.state, subjects=process.subjects)
            # Gone even where the step has set it again: what it sets comes after.
            return replace(stepped, cancelled=tuple({*stepped.cancelled, name}))

        return fire

    def settle(self) -> Callable[..., Any]:
        def settle(
            process: Process,
            key: str,
            id: str,
            token: str,
            outcome: str,
            at: datetime,
            code: str = "",
            message: str = "",
            position: str | None = None,
        ) -> list[Happened]:
            """What became of a command; a refusal is a fact of the process."""
            action = next((each for each in process.open if each.id == id), None)
            if action is None:
                return []
            # What a command says of somebody in its refusal is for the reaction, not for the log.
            said = "" if process.subjects else message[:MOST_ERROR]
            settled = Settled(id, outcome, code, said, position)
            if outcome != "refused":
                return [settled]
            if token != self._token:
                raise Rejected("another process reacts now", code="not-the-owner")
            refused = Refused(
                action.command, code, message, action.topic, action.stream, action.arguments
            )
            cause = f"{id}/refused"
            fact = _made(refused, key, cause, action.correlation, at)
            stepped = self._stepped(evolve(process, settled), key, fact, cause, at)
            return [settled] if stepped is None else [settled, stepped]

        return settle

    def _stepped(
        self, process: Process, key: str, fact: Fact, cause: str, at: datetime
    ) -> Stepped | None:
        """One step; None if nothing comes of the fact."""
        kept, wanted = self._reaction.react(process.state, fact)
        now = _milliseconds(at)
        actions: list[Action] = []
        timers: dict[str, Timer] = {}
        cancelled: list[str] = []
        for each in wanted:
            match each:
                case Later(length, name):
                    timers[name] = Timer(now + int(length.total_seconds() * 1000), fact.correlation)
                case Cancel(name):
                    timers.pop(name, None)
                    if name in process.timers:
                        cancelled.append(name)
                case Send():
                    actions.append(self._action(each, len(actions), fact, cause))
        if not actions and not timers and not cancelled and kept == process.state:
            return None
        return Stepped(
            cause,
            fact.type,
            kept,
            tuple(actions),
            timers,
            tuple(cancelled),
            subjects=process.subjects,
        )

    def _subjects(self, process: Process, source: Events[Any], fact: Fact) -> tuple[str, ...]:
        """The tags of those the process knows something of, and of those of a fact."""
        personal = source.types.by_class[type(fact.event)].personal
        if self._tag is None or not personal:
            return process.subjects
        fields = msgspec.to_builtins(fact.event)
        found = {
            self._tag(f"{subject}:{fields[subject]}")
            for name, subject in personal.items()
            if fields[name] is not None
        }
        return tuple(sorted({*process.subjects, *found}))

    def _action(self, wanted: Send, number: int, fact: Fact, cause: str) -> Action:
        target = self._reaction.target(wanted)
        if len(cause) > LONGEST_CAUSE:
            cause = hashlib.blake2b(cause.encode(), digest_size=16).hexdigest()
        return Action(
            f"{self._reaction.name}/{cause}/{number}",
            target.name,
            target.find_command(wanted.command).name,
            wanted.stream,
            msgspec.to_builtins(wanted.arguments),
            cause,
            fact.correlation,
            _milliseconds(fact.at),
        )


class JournalSeals(Seals):
    """Seals what a step has taken from personal fields: the state, and arguments of commands.

    Both are sealed under every subject the process knows something of, one inside the other.
    Erasing any of them takes both: the process goes on without a state, and its commands that
    were not sent are refused.
    """

    def seal(self, kind: EventType, value: bytes) -> bytes:
        fields: dict[str, Any] = decode_json(value)
        tags = fields.get("subjects")
        if not tags:
            return value
        gone = any(map(self.keys.is_erased, tags))
        if fields["state"] is not None:
            fields["state"] = None if gone else self._within(tags, "state", fields["state"])
        for action in fields["actions"]:
            given = action["arguments"]
            action["arguments"] = (
                {ERASED_ARGUMENTS: True}
                if gone
                else {SEALED: self._within(tags, "arguments", given)}
            )
        if gone:
            fields["subjects"] = []
        return encode_json(fields)

    def open(self, stored: Stored) -> Stored:
        if b'"subjects":["' not in stored.value:
            return stored
        fields: dict[str, Any] = decode_json(stored.value)
        tags = fields["subjects"]
        if not tags:
            return stored
        there, fields["state"] = self._without(tags, "state", fields["state"])
        for action in fields["actions"]:
            known, given = self._without(tags, "arguments", action["arguments"].get(SEALED))
            action["arguments"] = given if known else {ERASED_ARGUMENTS: True}
            there = there and known
        if not there:
            fields["subjects"] = []
        return stored._replace(value=encode_json(fields))

    def _within(self, tags: list[str], field: str, value: Any) -> Any:
        for tag in tags:
            value = self.keys.seal_under(self.topic, field, tag, value)
        return value

    def _without(self, tags: list[str], field: str, value: Any) -> tuple[bool, Any]:
        if value is None:
            return not any(map(self.keys.is_erased, tags)), None
        for _ in tags:
            there, value = self.keys.unseal(self.topic, field, value)
            if not there:
                return False, None
        return True, value


def tried(process: Process, id: str, attempts: int, error: str) -> Tried:
    return Tried(id, attempts, error[:MOST_ERROR])


def read(process: Process, offset: int) -> Read | None:
    if offset <= process.read and process.trouble is None:
        return None
    return Read(offset)


def _made(event: Timeout | Refused, key: str, cause: str, chain: str | None, at: datetime) -> Fact:
    """A fact that stands in no source: a timer, or a refusal."""
    return Fact(
        event, type(event).__name__, 0, at, cause, key, cause, cause, None, cause, chain, None
    )


def _milliseconds(at: datetime) -> int:
    return (at - to_datetime(0)) // _MILLISECOND


def due_of(process: Process) -> int | None:
    """When something is to be done for a process: 0 for now."""
    if process.open:
        return 0
    return min((timer.due for timer in process.timers.values()), default=None)
