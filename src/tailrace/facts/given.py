"""Tests of decisions without a log.

    accounts.given(Opened("ann")).when(withdraw, amount=50).rejected("overdrawn")
    accounts.given(Opened("ann"), Deposited(80)).when(withdraw, amount=50).then(Withdrawn(50))

Every event goes through its JSON form, as it would through the log, and `evolve` is run twice on
each: an answer that differs, or a state that was changed in place, fails the test. `at=` is the
time a command with a parameter `at` is given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from tailrace.facts.declare import Command, Events
from tailrace.facts.errors import CommandResultError, Rejected
from tailrace.facts.event_types import encode_json
from tailrace.facts.mistakes import first_mistake

S = TypeVar("S")
_A_TIME = datetime(2026, 1, 1, tzinfo=UTC)


class Given(Generic[S]):
    """A stream with these events. `state` is what they make."""

    def __init__(self, declared: Events[S], events: Sequence[object]) -> None:
        mistake = first_mistake(declared)
        if mistake is not None:
            raise mistake
        self._declared = declared
        self.events = tuple(_as_written(declared, event) for event in events)
        self.state: S = declared.initial()
        for event in self.events:
            self.state = _evolved(declared, self.state, event)

    def when(
        self, command: str | Callable[..., Any], /, *, at: datetime = _A_TIME, **arguments: Any
    ) -> Outcome[S]:
        """What a command decides on this stream."""
        found = self._declared.find_command(command)
        if "at" in found.parameters and not found.wants_time:
            arguments["at"] = at
        found.check(arguments)
        if found.wants_time:
            arguments["at"] = at
        try:
            result = _called(found, self.state, arguments)
        except Rejected as error:
            return Outcome(self._declared, self, (), error)
        events = tuple(_as_written(self._declared, event) for event in result)
        return Outcome(self._declared, self, events, None)


class Outcome(Generic[S]):
    """What a command came to. The events a test goes on with are `given` again by `and_given`."""

    def __init__(
        self,
        declared: Events[S],
        before: Given[S],
        events: tuple[object, ...],
        error: Rejected | None,
    ) -> None:
        self._declared = declared
        self._before = before
        self.events = events
        self.error = error

    def then(self, *events: object) -> Given[S]:
        """Exactly these events were decided; the stream with them, to go on."""
        if self.error is not None:
            raise AssertionError(f"rejected [{self.error.code}]: {self.error.message}")
        wanted = tuple(_as_written(self._declared, event) for event in events)
        if wanted != self.events:
            raise AssertionError(f"decided {self.events!r}, expected {wanted!r}")
        return Given(self._declared, (*self._before.events, *self.events))

    def rejected(self, code: str | None = None) -> Given[S]:
        """The command said no, with this code; the stream as it was."""
        if self.error is None:
            raise AssertionError(f"not rejected, it decided {self.events!r}")
        if code is not None and self.error.code != code:
            raise AssertionError(
                f"rejected [{self.error.code}] ({self.error.message}), expected [{code}]"
            )
        return self._before

    @property
    def state(self) -> S:
        """The state after the events."""
        return Given(self._declared, (*self._before.events, *self.events)).state


def _called(command: Command, state: Any, arguments: dict[str, Any]) -> tuple[object, ...]:
    before = copy.deepcopy(state)
    result = command.function(state, **arguments)
    if state != before:
        raise AssertionError(f"the command {command.name} changes the state it is given")
    if result is None:
        return ()
    return tuple(result) if isinstance(result, list | tuple) else (result,)


def _as_written(declared: Events[Any], event: object) -> object:
    """The event as it comes back from the log."""
    known = declared.types.by_class.get(type(event))
    if known is None:
        raise CommandResultError(
            f"{event!r} is no event of {declared.name!r}",
            detail=f"its events are {', '.join(declared.types.by_name)}",
        )
    return known.decode(known.version, encode_json(event))


def _evolved(declared: Events[Any], state: Any, event: object) -> Any:
    """The state after an event, which `evolve` must tell twice alike."""
    function = declared.function
    assert function is not None
    before, second = copy.deepcopy(state), copy.deepcopy(state)
    first_result = function(state, event)
    if state != before and not declared.changes_in_place:
        raise AssertionError(f"evolve changes the state it is given, at {event!r}")
    second_result = function(second, copy.deepcopy(event))
    if first_result != second_result:
        raise AssertionError(
            f"evolve is not pure: twice the same {event!r}, "
            f"once {first_result!r}, once {second_result!r}"
        )
    return first_result
