"""What is asked of an owner, and how the answer comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from tailrace.errors import TailraceError
from tailrace.facts.declare import Command
from tailrace.facts.query import Query

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Done(Generic[S]):
    """A command that was carried out. `events` are what it wrote, `version` and `position` those
    of the stream's last event, `state` the one after it. `repeated`: its id was known, and this
    is the first answer again."""

    events: tuple[Any, ...]
    version: int
    position: str | None
    state: S
    id: str
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class StateAt(Generic[S]):
    """A state, the version and the position of the last event in it."""

    value: S
    version: int
    position: str | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One event of a stream, with everything that is known of it."""

    event: Any
    type: str
    version: int
    at: datetime
    position: str
    stream: str
    id: str
    command: str
    name: str | None
    cause: str | None
    correlation: str | None
    actor: str | None


@dataclass(frozen=True, slots=True)
class Read:
    """Events that match a query; `position` is how far was looked, for `append(after=…)`."""

    events: tuple[Any, ...]
    facts: tuple[Fact, ...]
    position: str


@dataclass(slots=True, eq=False)
class Ask:
    """One decision that is asked for: a command, or events to append as they are."""

    stream: str
    key: bytes
    id: str
    channel: Channel
    command: Command | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[object, ...] = ()
    expected: int | None = None
    named: bool = False
    """Whether the id was given by the caller: only such a one can be repeated by it."""
    tried: bool = False
    """Whether it may have been carried out before: its id must be looked for."""
    actor: str | None = None
    cause: str | None = None
    correlation: str | None = None
    unless: Query | None = None
    after: int = -1
    ticket: Any = None
    """The channel's own: whom of its callers the answer is for."""


Answer = Done[Any] | TailraceError


class Channel(Protocol):
    """Where answers go: a thread, an event loop, another process."""

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        """Called by an owner's thread; must not block."""


class Waiting:
    """One thread that waits for one answer."""

    __slots__ = ("_answer", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._answer: Answer | None = None

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        self._answer = answers[-1][1]
        self._lock.release()

    def wait(self, timeout: float) -> Answer | None:
        """The answer; None if none came in time."""
        return self._answer if self._lock.acquire(timeout=max(0.0, timeout)) else None


class LoopChannel:
    """The callers of one event loop: one wake-up for all answers of a batch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def is_current(self) -> bool:
        """Whether this thread runs the loop now."""
        return asyncio._get_running_loop() is self._loop

    def soon(self, work: Callable[[], None]) -> None:
        """Have the loop do something after its present turn; for its own thread."""
        self._loop.call_soon(work)

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, answers)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more


def _resolve(answers: list[tuple[Ask, Answer]]) -> None:
    for ask, answer in answers:
        future: asyncio.Future[Answer] = ask.ticket
        if not future.done():
            future.set_result(answer)


def deliver(answers: Iterable[tuple[Ask, Answer]]) -> None:
    """Every answer to its channel, those for one channel together."""
    by_channel: dict[Channel, list[tuple[Ask, Answer]]] = {}
    for each in answers:
        channel = each[0].channel
        found = by_channel.get(channel)
        if found is None:
            by_channel[channel] = [each]
        else:
            found.append(each)
    for channel, some in by_channel.items():
        channel.deliver(some)
