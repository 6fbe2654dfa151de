"""`tr.events(…)`: an event topic as a plain value; nothing here touches a file or a socket.

    accounts = tr.events("accounts", Opened | Deposited | Withdrawn, state=Account, partitions=8)

    @accounts.evolve
    def account(state: Account, event) -> Account: ...

    @accounts.command
    def withdraw(state: Account, amount: int) -> Withdrawn: ...

The decorators return the function they were given, so a test calls it as it is.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import re
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from tailrace.config import parse_duration
from tailrace.facts.errors import (
    CommandArgumentsError,
    CommandUnknownError,
    EventsDeclarationError,
)
from tailrace.facts.event_types import EventTypes, Upcast, encode_json, shape_of
from tailrace.records.event_headers import STATE_TOPIC

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.given import Given
    from tailrace.facts.opened import OpenedEvents
    from tailrace.facts.sealing import Keys, Seals

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,120}")
MOST_PARTITIONS = 1_000
TAG_TYPES = (str, int, bool)
DECLARED: weakref.WeakValueDictionary[str, Events[Any]] = weakref.WeakValueDictionary()
"""Every event topic this program has declared; of two with one name the later one."""
DECIDES: weakref.WeakKeyDictionary[Callable[..., Any], weakref.WeakSet[Events[Any]]]
DECIDES = weakref.WeakKeyDictionary()
"""Which topics a function is a command of."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's files something was declared."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Command:
    """One command: its function, and what arguments it takes."""

    def __init__(self, function: Callable[..., Any], topic: str) -> None:
        self.name = function.__name__
        self.topic = topic
        self.function = function
        parameters = list(inspect.signature(function).parameters.values())
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        if not parameters or any(each.kind not in named for each in parameters[1:]):
            raise EventsDeclarationError(
                f"the command {self.name} takes its state first, then named arguments",
                detail=str(place_of(function)),
                hint="def withdraw(state: Account, amount: int)",
            )
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise EventsDeclarationError(
                f"the command {self.name} is asynchronous",
                detail=str(place_of(function)),
                hint="a command decides from its state and arguments alone: write a plain def",
            )
        self.parameters = {each.name: each for each in parameters[1:]}
        moment = self.parameters.get("at")
        self.wants_time = moment is not None and moment.annotation in (
            datetime, "datetime", "datetime.datetime", "dt.datetime",
        )  # fmt: skip
        self._given = [name for name in self.parameters if not (self.wants_time and name == "at")]
        self._needed = frozenset(
            name for name in self._given if self.parameters[name].default is inspect.Parameter.empty
        )
        self._known = frozenset(self._given)
        self._converter: type | None = None

    def check(self, arguments: Mapping[str, object]) -> None:
        """Raises CommandArgumentsError unless the names fit."""
        if self._needed <= arguments.keys() <= self._known:
            return
        missing = sorted(self._needed - arguments.keys())
        unknown = sorted(arguments.keys() - self._known)
        said = [f"missing: {', '.join(missing)}"] if missing else []
        said += [f"unknown: {', '.join(unknown)}"] if unknown else []
        raise CommandArgumentsError(
            f"the arguments do not fit the command {self.name}",
            detail="; ".join(said),
            hint=f"it takes {', '.join(self._given) or 'none'}",
        )

    def convert(self, arguments: Mapping[str, object], *, strict: bool = True) -> dict[str, Any]:
        """Arguments that came as plain values, from JSON or a command line, in the types the
        command declares. Without `strict` also numbers and times written as text."""
        self.check(arguments)
        if self._converter is None:
            fields: list[tuple[str, Any, Any]] = [
                (name, annotation_of(self.function, name), None) for name in self._given
            ]
            self._converter = msgspec.defstruct(f"{self.name}_arguments", fields)
        try:
            made: Any = msgspec.convert(dict(arguments), self._converter, strict=strict)
        except msgspec.ValidationError as error:
            raise CommandArgumentsError(
                f"the arguments do not fit the command {self.name}", detail=str(error)
            ) from error
        return {name: getattr(made, name) for name in arguments}


class Events(Generic[S]):
    """An event topic as declared. See the module and `tr.events`."""

    def __init__(
        self,
        name: str,
        kinds: tuple[type, ...],
        *,
        state: type[S],
        partitions: int,
        tags: tuple[str, ...],
        remember: timedelta,
        declared_at: Place | None,
        publish: bool = False,
    ) -> None:
        self.name = name
        self.types = EventTypes(name, kinds)
        self.state = state
        self.partitions = partitions
        self.tags = tags
        self.remember = remember
        self.publish = publish
        self.declared_at = declared_at
        self.commands: dict[str, Command] = {}
        self.function: Callable[[Any, Any], Any] | None = None
        self.key: str | None = None
        """`events.key` of the project it belongs to."""
        self.sealing: Callable[[Keys, EventTypes], Seals] | None = None
        """How its events are sealed where that does not follow from their fields."""
        self._begins_with_none: bool | None = None
        DECLARED[name] = self

    def __repr__(self) -> str:
        return f"tr.events({self.name!r})"

    kind = "events"
    """What it is as the input of a stream."""

    @property
    def topic(self) -> str:
        return self.name

    @property
    def state_topic(self) -> str:
        """Where the states are published: a compacted topic keyed by stream."""
        return f"{self.name}{STATE_TOPIC}"

    # Decorators ----------------------------------------------------------------

    def evolve(self, function: F) -> F:
        """The state after an event: a pure function of the state before and the event."""
        if self.function is not None:
            raise EventsDeclarationError(
                f"{self.name!r} has two functions evolve",
                detail=f"{place_of(self.function)}\n{place_of(function)}",
            )
        self.function = function
        return function

    def command(self, function: F) -> F:
        """A decision: from the state and its arguments to an event, a list of events or
        None; or `raise tr.Rejected(…)`. A parameter `at: datetime` is filled in."""
        made = Command(function, self.name)
        if made.name in self.commands:
            raise EventsDeclarationError(
                f"{self.name!r} has two commands {made.name}",
                detail=f"{place_of(self.commands[made.name].function)}\n{place_of(function)}",
            )
        self.commands[made.name] = made
        DECIDES.setdefault(function, weakref.WeakSet()).add(self)
        return function

    def upcast(self, kind: str, version: int) -> Callable[[F], F]:
        """From the fields of version `version` of an event type to those of the next."""

        def take(function: F) -> F:
            known = self.types.by_name.get(kind)
            if known is None or version < 1 or version in known.upcasts:
                why = "there is one already" if known is not None else "the topic has no such type"
                raise EventsDeclarationError(
                    f'@upcast("{kind}", {version}) of {self.name!r} cannot be',
                    detail=f"{place_of(function)}: {why if version > 0 else 'versions begin at 1'}",
                )
            upcast: Upcast = function
            known.add(version, upcast)
            return function

        return take

    # What others ask -----------------------------------------------------------

    def initial(self) -> S:
        """The state of a stream without events."""
        if self._begins_with_none is None:
            try:
                self.state()
                self._begins_with_none = False
            except TypeError as error:
                if self.function is None or not _takes_none(self.function):
                    raise EventsDeclarationError(
                        f"the state of {self.name!r} has no beginning",
                        detail=f"{self.state.__name__}(): {error}",
                        hint="give its fields defaults, or let evolve take `state: X | None`",
                    ) from error
                self._begins_with_none = True
        return typing.cast(S, None) if self._begins_with_none else self.state()

    @property
    def changes_in_place(self) -> bool:
        """Whether its states could be changed in place: then nobody is given the one kept."""
        parameters = getattr(self.state, "__dataclass_params__", None)
        if parameters is not None:
            return not parameters.frozen
        config = getattr(self.state, "__struct_config__", None)
        if config is not None:
            return not config.frozen
        return self.state not in (int, float, str, bool, bytes, tuple, frozenset)

    def find_command(self, command: str | Callable[..., Any]) -> Command:
        """By name or by its function. Raises CommandUnknownError."""
        name = command if isinstance(command, str) else getattr(command, "__name__", str(command))
        found = self.commands.get(name)
        if found is None or not (isinstance(command, str) or found.function is command):
            near = difflib.get_close_matches(name, self.commands, 1)
            raise CommandUnknownError(
                f"{self.name!r} has no command {name}",
                detail=f"it has {', '.join(self.commands) or 'none'}",
                hint=f"did you mean {near[0]}?" if near else "declare it with @events.command",
            )
        return found

    def shape(self) -> dict[str, Any]:
        """What two processes that share the topic must agree on."""
        shape: dict[str, Any] = {
            "partitions": self.partitions,
            **({"publish": True} if self.publish else {}),
            "tags": list(self.tags),
            "types": {each.written: shape_of(each.cls) for each in self.types},
        }
        if self.types.has_personal:
            shape["personal"] = {each.written: each.personal for each in self.types}
        return shape

    def fingerprint(self) -> str:
        """Changes when code does that a cached state depends on: the files of `evolve`, of
        the state and of the events, and the upcasters."""
        told = hashlib.blake2b(encode_json(self.shape()), digest_size=16)
        upcasts = [step for each in self.types for step in each.upcasts.values()]
        parts = [self.function, self.state, *self.types.by_class, *upcasts]
        for content in sorted({_content(part) for part in parts if part is not None}):
            told.update(content)
        return told.hexdigest()

    # Doors ---------------------------------------------------------------------

    def open(
        self,
        log: Log,
        *,
        owns: bool = True,
        index: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        timeout: float = 30.0,
        key: str | None = None,
    ) -> OpenedEvents[S]:
        """Take part: own partitions and decide (`owns=True`), or only call those who do.

        `index` is the directory of the caches, `listen` where other processes reach this
        one, `timeout` how many seconds a call may take. `key` is what personal fields are sealed
        under; the project's `events.key`, or TAILRACE_EVENTS__KEY, where it is left out.
        """
        from tailrace.facts.opened import OpenedEvents

        return OpenedEvents(
            self, log, owns=owns, index=index, listen=listen, timeout=timeout, key=key
        )

    def given(self, *events: object) -> Given[S]:
        """A test of commands without a log: `accounts.given(Opened("ann")).when(withdraw,
        amount=50).rejected("overdrawn")`."""
        from tailrace.facts.given import Given

        return Given(self, events)


def events(
    name: str,
    kinds: Any,
    *,
    state: type[S],
    partitions: int = 8,
    tags: Iterable[str] = (),
    remember: str | timedelta = "7 days",
    publish: bool = False,
) -> Events[S]:
    """Declare an event topic: `tr.events("accounts", Opened | Deposited, state=Account)`.

    `kinds` is an event class or several joined by `|`. `tags` are fields of events by which
    conditions on appends ask (one partition only). A command id is remembered for `remember`.
    `publish`: the state of every stream is written to the table `<name>.state`, in the same
    transaction as the events.
    """
    frame = sys._getframe(1)
    declared_at = Place(frame.f_code.co_filename, frame.f_lineno)
    if not _NAME.fullmatch(name):
        raise EventsDeclarationError(
            f"{name!r} cannot be the name of an event topic",
            detail=str(declared_at),
            hint="letters, digits, _ and -, not more than 121",
        )
    try:
        if not 1 <= partitions <= MOST_PARTITIONS:
            raise EventsDeclarationError(f"{name!r} cannot have {partitions} partitions")
        wanted = tuple(tags)
        made = Events(
            name,
            _classes(name, kinds),
            state=state,
            partitions=partitions,
            tags=wanted,
            remember=remember if isinstance(remember, timedelta) else parse_duration(remember),
            declared_at=declared_at,
            publish=publish,
        )
        _check_tags(made)
        _check_published(made)
    except EventsDeclarationError as error:
        error.detail = "\n".join(filter(None, (error.detail, f"declared at {declared_at}")))
        raise
    return made


def _check_tags(made: Events[Any]) -> None:
    if made.tags and made.partitions != 1:
        raise EventsDeclarationError(
            f"{made.name!r} has tags and {made.partitions} partitions",
            detail="a condition on tags is checked by one owner: it cannot span partitions",
            hint="partitions=1",
        )
    for tag in made.tags:
        if not any(tag in shape_of(each.cls) for each in made.types):
            raise EventsDeclarationError(
                f"no event of {made.name!r} has a field {tag!r}, which is to be a tag"
            )


def _check_published(made: Events[Any]) -> None:
    if not made.publish:
        return
    if made.types.has_personal:
        raise EventsDeclarationError(
            f"the states of {made.name!r} cannot be published",
            detail="its events have personal fields, which are sealed in the log; its states are not",
            hint="leave publish=True out, or keep personal fields in a topic of their own",
        )
    try:
        fields = set(shape_of(made.state))
    except (AssertionError, TypeError):
        raise EventsDeclarationError(
            f"the states of {made.name!r} cannot be published",
            detail="they are no dataclass, so a table of them has no columns",
            hint="state=Account, a dataclass; or leave publish=True out",
        ) from None
    taken = sorted({"stream", "version"} & {name.lower() for name in fields})
    if taken or not fields:
        raise EventsDeclarationError(
            f"the states of {made.name!r} cannot be published",
            detail=f"a field is called {taken[0]!r}, as is a column of the table of states"
            if taken
            else "they have no fields, so a table of them has no columns",
            hint="rename the field" if taken else "leave publish=True out",
        )


def _classes(name: str, kinds: object) -> tuple[type, ...]:
    if isinstance(kinds, types.UnionType) or typing.get_origin(kinds) is typing.Union:
        return typing.get_args(kinds)
    if isinstance(kinds, type):
        return (kinds,)
    raise EventsDeclarationError(
        f"{name!r} is declared without event classes", hint="Opened | Deposited | Withdrawn"
    )


def place_of(function: Callable[..., Any] | type) -> Place:
    """Where a function or class stands."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        return Place(code.co_filename, code.co_firstlineno)
    try:
        lines, line = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "?"
    except (OSError, TypeError):
        return Place(getattr(function, "__module__", "?"), 0)
    return Place(file, line + next((n for n, text in enumerate(lines) if "class " in text), 0))


def annotation_of(function: Callable[..., Any], parameter: str) -> Any:
    """The type of a parameter; Any where it has none or its name cannot be found."""
    given = inspect.signature(function).parameters[parameter].annotation
    if given is inspect.Parameter.empty:
        return Any
    if isinstance(given, str):
        try:
            return eval(given, function.__globals__)
        except Exception:
            return Any
    return given


def _takes_none(function: Callable[..., Any]) -> bool:
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or first.annotation is inspect.Parameter.empty:
        return True
    found = annotation_of(function, first.name)
    return found is None or type(None) in typing.get_args(found) or "None" in str(first.annotation)


def _content(part: Callable[..., Any] | type) -> bytes:
    """The file a function or class stands in; without one, its compiled code."""
    try:
        file = inspect.getsourcefile(part)
        if file is not None:
            return hashlib.blake2b(Path(file).read_bytes()).digest()
    except (OSError, TypeError):
        pass
    return hashlib.blake2b(_compiled(part).encode()).digest()


def _compiled(part: Callable[..., Any] | type) -> str:
    if isinstance(part, type):
        inner = [value for value in vars(part).values() if inspect.isfunction(value)]
        return part.__qualname__ + "".join(map(_compiled, inner))
    code = getattr(inspect.unwrap(part), "__code__", None)
    return "" if code is None else code.co_code.hex() + repr(code.co_names)
