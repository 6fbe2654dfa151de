"""Reactions: what follows from facts, in other streams and topics.

    @tr.reaction("promotion", courses, key="stream")
    def promotion(state, fact):
        match fact.event:
            case Dropped():
                yield tr.send(promote, fact.stream)

A reaction is declared as a plain value and stays callable. `key(fact)` says which *process* a fact
belongs to (None: to nobody); a process has a state of its own (`state=`, `@promotion.evolve`),
which has taken the fact in before the reaction is asked. What it yields is recorded with the
fact, in one batch of the topic `<name>.reactions`, and then carried out: see `reacting`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tailrace.config import parse_duration
from tailrace.errors import UsageError
from tailrace.facts.asking import Fact
from tailrace.facts.declare import DECIDES, DECLARED, Events, Place, place_of
from tailrace.facts.errors import CommandUnknownError, EventsDeclarationError
from tailrace.facts.event_types import fields_that_do_not_travel
from tailrace.facts.reservations import Reservations

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.given_reaction import GivenReaction
    from tailrace.facts.reacting import OpenedReaction

F = TypeVar("F", bound=Callable[..., Any])
KeyOf = Callable[[Fact], str | None]
MOST_PARTITIONS = 100
LONGEST_NAME = 60
LONGEST_KEY = 480


@dataclass(frozen=True, slots=True)
class Send:
    """A command that follows. See `tr.send`."""

    command: str | Callable[..., Any]
    stream: str
    arguments: dict[str, Any]
    on: Events[Any] | Reservations | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """A timer that is set, in the place of one of this name. See `tr.later`."""

    length: timedelta
    name: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """A timer that is taken back. See `tr.cancel`."""

    name: str


Wanted = Send | Later | Cancel


@dataclass(frozen=True, slots=True)
class Timeout:
    """The fact that a timer of the process has run out."""

    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The fact that a command of the process was refused: `code` and `message` of the refusal,
    `topic`, `stream` and `args` of the command."""

    command: str
    code: str = "rejected"
    message: str = ""
    topic: str = ""
    stream: str = ""
    args: dict[str, Any] = field(default_factory=dict)


def send(
    command: str | Callable[..., Any],
    stream: str,
    /,
    *,
    on: Events[Any] | Reservations | None = None,
    **arguments: Any,
) -> Send:
    """Have a command decided on a stream: `yield tr.send(promote, fact.stream)`.

    `on` is the event topic, where the function is a command of several or is given by name.
    """
    return Send(command, stream, arguments, on)


def later(length: str | timedelta, name: str) -> Later:
    """Set a timer of this process: `tr.Timeout(name)` is a fact of it after this time."""
    return Later(length if isinstance(length, timedelta) else parse_duration(length), name)


def cancel(name: str) -> Cancel:
    """Take a timer of this process back."""
    return Cancel(name)


class Reaction:
    """A reaction as declared. See the module and `tr.reaction`."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        sources: tuple[Events[Any], ...],
        key: KeyOf | str,
        state: type[Any] | None,
        partitions: int,
        start: str,
        declared_at: Place,
    ) -> None:
        self.function = function
        self.name = name
        self.sources = {each.name: each for each in sources}
        self.key = key
        self.state = state
        self.partitions = partitions
        self.start = start
        self.declared_at = declared_at
        self.fold: Callable[[Any, Any], Any] | None = None
        self._targets: dict[str, Events[Any]] = dict(self.sources)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__module__ = function.__module__

    def __repr__(self) -> str:
        return f"tr.reaction({self.name!r})"

    def __call__(self, state: Any, fact: Fact) -> Any:
        return self.function(state, fact)

    @property
    def topic(self) -> str:
        """Where its steps are recorded."""
        return f"{self.name}.reactions"

    def evolve(self, function: F) -> F:
        """The state of a process after an event: of its facts, tr.Timeout or tr.Refused."""
        if self.state is None:
            raise EventsDeclarationError(
                f"the reaction {self.name!r} has an evolve and no state",
                detail=str(place_of(function)),
                hint="tr.reaction(…, state=Order)",
            )
        self.fold = function
        return function

    def mistakes(self) -> Iterator[EventsDeclarationError]:
        """What can be known to be wrong without running."""
        try:
            inspect.signature(self.function).bind(None, None)
        except TypeError:
            takes = ", ".join(inspect.signature(self.function).parameters) or "nothing"
            yield EventsDeclarationError(
                f"the function of the reaction {self.name!r} takes {takes}",
                detail=f"declared at {self.declared_at}",
                hint=f"it is given the state and the fact: def {self.__name__}(state, fact)",
            )
        if self.state is None:
            return
        if self.fold is None:
            yield EventsDeclarationError(
                f"the reaction {self.name!r} has a state and no evolve",
                detail=f"declared at {self.declared_at}",
                hint=f"@{self.__name__}.evolve over a function (state, event) -> state",
            )
        try:
            self.state()
        except TypeError as error:
            yield EventsDeclarationError(
                f"the state of the reaction {self.name!r} has no beginning",
                detail=f"{self.state.__name__}(): {error}\n{place_of(self.state)}",
                hint="give its fields defaults",
            )
        for name, kind in fields_that_do_not_travel(self.state):
            yield EventsDeclarationError(
                f"{self.state.__name__}.{name} is a {kind}, which JSON does not bring back",
                detail=str(place_of(self.state)),
                hint="use numbers, text, times, decimals, lists, dicts, dataclasses",
            )

    # One step ------------------------------------------------------------------

    def process_of(self, fact: Fact) -> str | None:
        """The key of the process a fact belongs to. Raises UsageError for one that cannot be."""
        found: object = fact.stream if isinstance(self.key, str) else self.key(fact)
        if found is None:
            return None
        if not isinstance(found, str) or not _can_be_a_key(found):
            raise UsageError(
                f"{found!r} cannot be the key of a process of {self.name!r}",
                detail=f"{fact.type} at {fact.position}",
                hint=f"text of 1 to {LONGEST_KEY} bytes without control characters, or None",
            )
        return found

    def state_of(self, kept: Any) -> Any:
        """The state of a process as the reaction sees it, from what the journal keeps."""
        if self.state is None:
            return None
        return self.state() if kept is None else msgspec.convert(kept, self.state, strict=False)

    def react(self, kept: Any, fact: Fact) -> tuple[Any, list[Wanted]]:
        """What the state becomes, as the journal keeps it, and what follows. Raises whatever
        the user's functions raise."""
        state = self.state_of(kept)
        if self.state is not None:
            assert self.fold is not None
            state = self.fold(state, fact.event)
            kept = msgspec.to_builtins(state)
            self.state_of(kept)  # what cannot be read again is not written
        return kept, list(self._wanted(self.function(state, fact)))

    def _wanted(self, result: Any) -> Iterator[Wanted]:
        if result is None:
            return
        for each in (result,) if isinstance(result, Wanted) else result:
            if not isinstance(each, Wanted):
                raise TypeError(
                    f"the reaction {self.name} yields {each!r}, which is no tr.send(…), "
                    "tr.later(…) or tr.cancel(…)"
                )
            yield each

    def target(self, wanted: Send) -> Events[Any]:
        """The event topic a command goes to. Raises CommandUnknownError."""
        found = _events_of(wanted.on) if wanted.on is not None else self._guess(wanted.command)
        command = found.find_command(wanted.command)
        command.check(wanted.arguments)
        self._targets[found.name] = found
        return found

    def _guess(self, command: str | Callable[..., Any]) -> Events[Any]:
        name = command if isinstance(command, str) else getattr(command, "__name__", "?")
        if isinstance(command, str):
            found = [each for each in self.sources.values() if name in each.commands]
        else:
            known = set(DECIDES.get(command, ()))
            found = [each for each in self.sources.values() if each in known] or list(known)
        if len(found) == 1:
            return found[0]
        raise CommandUnknownError(
            f"the reaction {self.name} sends {name}, which is a command of "
            + (", ".join(sorted(each.name for each in found)) or "no event topic"),
            hint="say which: tr.send(command, stream, on=accounts, …)",
        )

    def find_target(self, topic: str) -> Events[Any]:
        """The declaration of a topic to which a command was to go."""
        found = self._targets.get(topic) or DECLARED.get(topic)
        if found is None:
            raise CommandUnknownError(
                f"the reaction {self.name} has a command for {topic!r}, which is not declared",
                hint=f'import the module with tr.events("{topic}", …)',
            )
        return found

    # Doors ---------------------------------------------------------------------

    def open(
        self,
        log: Log,
        *,
        index: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        timeout: float = 30.0,
    ) -> OpenedReaction:
        """React until it is closed, sharing the work with every process that has it open."""
        from tailrace.facts.reacting import OpenedReaction

        return OpenedReaction(self, log, index=index, listen=listen, timeout=timeout)

    def given(
        self, *events: object, stream: str = "stream", correlation: str | None = None
    ) -> GivenReaction:
        """A test without a log: `promotion.given(Dropped("ann"), stream="c1").sends(
        tr.send(promote, "c1"))`."""
        from tailrace.facts.given_reaction import GivenReaction

        return GivenReaction(self).and_given(*events, stream=stream, correlation=correlation)


def reaction(
    name: str,
    *sources: Events[Any] | Reservations,
    key: KeyOf | str = "stream",
    state: type[Any] | None = None,
    partitions: int = 4,
    start: str = "earliest",
) -> Callable[[Callable[..., Any]], Reaction]:
    """Declare what follows from the facts of these event topics. `key` is "stream" or a function
    from a fact to the process it belongs to. `start="latest"`: facts that are there when the
    reaction is first opened are passed over."""
    frame = sys._getframe(1)
    place = Place(frame.f_code.co_filename, frame.f_lineno)
    topics = tuple(map(_events_of, sources))
    wrong = _what_is_wrong(name, topics, key, partitions, start)
    if wrong is not None:
        raise EventsDeclarationError(
            f"the reaction {name!r} {wrong}",
            detail=f"declared at {place}",
            hint='@tr.reaction("promotion", courses, key="stream")',
        )

    def declare(function: Callable[..., Any]) -> Reaction:
        return Reaction(function, name, topics, key, state, partitions, start, place)

    return declare


def _what_is_wrong(
    name: str, topics: tuple[Events[Any], ...], key: object, partitions: int, start: str
) -> str | None:
    letters = name.replace("-", "").replace("_", "")
    if not (letters.isascii() and letters.isalnum() and len(name) <= LONGEST_NAME):
        return f"has a name that is not 1 to {LONGEST_NAME} letters, digits, _ and -"
    if not topics or len({each.name for each in topics}) != len(topics):
        return "needs event topics, each of them once"
    if not (callable(key) or key == "stream"):
        return f'has the key {key!r}, which is no function and not "stream"'
    if not 1 <= partitions <= MOST_PARTITIONS:
        return f"cannot have {partitions} partitions"
    if start not in ("earliest", "latest"):
        return f'starts at {start!r}, which is not "earliest" or "latest"'
    return None


def _events_of(declared: object) -> Events[Any]:
    if isinstance(declared, Reservations):
        return declared.events
    if isinstance(declared, Events):
        return declared
    raise EventsDeclarationError(
        f"{declared!r} is no event topic", hint="accounts = tr.events(…), tr.reservations(…)"
    )


def _can_be_a_key(text: str) -> bool:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= LONGEST_KEY and text[0] >= " " and "\x00" not in text
