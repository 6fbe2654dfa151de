"""Things of which there are few: a user name, a seat, a place in a course.

    usernames = tr.reservations("usernames", hold="10 minutes")

    with usernames.open(log) as names:
        names.claim("ann", holder="u1")      # held for ten minutes
        names.confirm("ann", holder="u1")    # held until it is released

A key has `capacity` seats and a line of those who wait. All of it is decided on one stream of an
event topic, the key's, so two claims can never both have the last seat. A hold runs out by the
time of the next decision on its key; the owner writes it down when it is due. A seat that becomes
free goes to the first in the line in the same decision, with a hold of its own.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tailrace.clock import to_datetime
from tailrace.config import parse_duration
from tailrace.errors import TailraceError, UsageError
from tailrace.facts.asking import Answer, Ask, Done
from tailrace.facts.declare import Events, Place
from tailrace.facts.declare import events as declare_events
from tailrace.facts.errors import OutcomeUnknownError, Rejected, Reserved

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.given import Given
    from tailrace.facts.opened import OpenedEvents
    from tailrace.facts.partition import Partition

log = logging.getLogger(__name__)

CLAIMED, CONFIRMED, WAITING = "claimed", "confirmed", "waiting"
TRIES = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A seat is held until a time, unless it is confirmed before."""

    holder: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A seat is held until it is released."""

    holder: str


@dataclass(frozen=True, slots=True)
class Released:
    """A holder gave the seat back."""

    holder: str


@dataclass(frozen=True, slots=True)
class Expired:
    """A hold ran out before it was confirmed."""

    holder: str


@dataclass(frozen=True, slots=True)
class Queued:
    """Somebody stands in line."""

    holder: str


@dataclass(frozen=True, slots=True)
class Left:
    """Somebody left the line."""

    holder: str


Happened = Claimed | Confirmed | Released | Expired | Queued | Left


@dataclass(frozen=True, slots=True)
class Hold:
    """One seat that is taken: "claimed" until a time, or "confirmed"."""

    holder: str
    status: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seats:
    """One key: who has it, and who waits, in order."""

    held: tuple[Hold, ...] = ()
    waiting: tuple[str, ...] = ()

    def hold_of(self, holder: str) -> Hold | None:
        return next((each for each in self.held if each.holder == holder), None)


def evolve(state: Seats, event: Happened) -> Seats:
    """The state of a key after an event."""
    holder = event.holder
    others = tuple(each for each in state.held if each.holder != holder)
    line = tuple(each for each in state.waiting if each != holder)
    match event:
        case Claimed(_, until):
            return Seats((*others, Hold(holder, CLAIMED, until)), line)
        case Confirmed():
            held = tuple(
                Hold(holder, CONFIRMED) if each.holder == holder else each for each in state.held
            )
            return replace(state, held=held)
        case Released() | Expired():
            return replace(state, held=others)
        case Queued():
            return replace(state, waiting=(*line, holder))
        case Left():
            return replace(state, waiting=line)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A key as it is now: who has it and who waits. `holder`, `status` and `until` are those of
    the first seat."""

    key: str
    held: tuple[Hold, ...]
    waiting: tuple[str, ...]

    @property
    def holder(self) -> str:
        return self.held[0].holder

    @property
    def status(self) -> str:
        return self.held[0].status

    @property
    def until(self) -> datetime | None:
        return self.held[0].until

    @property
    def holders(self) -> tuple[str, ...]:
        return tuple(each.holder for each in self.held)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a holder has of a key: "claimed" until a time, "confirmed", or "waiting". `new`: this
    call made it so. `position` is accepted by every `at_least`."""

    key: str
    holder: str
    status: str
    until: datetime | None
    position: str | None
    new: bool


class Reservations:
    """Keys that are held, as declared. See the module and `tr.reservations`."""

    def __init__(
        self,
        name: str,
        hold: timedelta,
        capacity: int,
        partitions: int,
        remember: str | timedelta,
        declared_at: Place,
    ) -> None:
        self.name = name
        self.hold = hold
        self.capacity = capacity
        self.declared_at = declared_at
        self.events: Events[Seats] = declare_events(
            name, Happened, state=Seats, partitions=partitions, remember=remember
        )
        self.events.declared_at = declared_at
        self.events.evolve(evolve)
        self._declare_commands()

    def __repr__(self) -> str:
        return f"tr.reservations({self.name!r})"

    # Deciding ------------------------------------------------------------------

    def lapse(self, state: Seats, at: datetime) -> tuple[list[Happened], Seats]:
        """What time alone does to a key: holds run out, and who waits moves up."""
        found: list[Happened] = [
            Expired(each.holder)
            for each in state.held
            if each.until is not None and each.until <= at
        ]
        for event in found:
            state = evolve(state, event)
        return self._fill(found, state, at)

    def _fill(
        self, found: list[Happened], state: Seats, at: datetime
    ) -> tuple[list[Happened], Seats]:
        """Free seats go to those who wait, first come first served."""
        while state.waiting and len(state.held) < self.capacity:
            event = Claimed(state.waiting[0], at + self.hold)
            found.append(event)
            state = evolve(state, event)
        return found, state

    def _declare_commands(self) -> None:
        self.events.command(self._command_claim())
        self.events.command(self._command_confirm())
        self.events.command(self._command_release())
        self.events.command(self._command_expire())

    def _command_claim(self) -> Any:
        def claim(state: Seats, holder: str, at: datetime, wait: bool = False) -> list[Happened]:
            found, state = self.lapse(state, at)
            if state.hold_of(holder) is not None or holder in state.waiting:
                return found
            if len(state.held) < self.capacity:
                return [*found, Claimed(holder, at + self.hold)]
            if wait:
                return [*found, Queued(holder)]
            ends = [each.until for each in state.held if each.until is not None]
            raise Reserved(
                f"taken in {self.name!r}: every seat is held",
                detail=f"by {', '.join(each.holder for each in state.held[:10])}"
                + (f"; the first hold ends at {min(ends).isoformat()}" if ends else ""),
                hint="take another one, or claim with wait=True to stand in line",
            )

        return claim

    def _command_confirm(self) -> Any:
        def confirm(state: Seats, holder: str, at: datetime) -> list[Happened]:
            found, state = self.lapse(state, at)
            hold = state.hold_of(holder)
            if hold is None:
                if len(state.held) >= self.capacity:
                    raise Reserved(
                        f"taken in {self.name!r}: {holder} holds no seat any more",
                        detail=f"held by {', '.join(each.holder for each in state.held[:10])}",
                        hint="confirm before the hold runs out",
                    )
                raise Rejected(
                    f"{holder} holds nothing in {self.name!r} to confirm",
                    code="expired",
                    detail="the hold has run out, or there was none",
                    hint="claim it again",
                )
            return found if hold.status == CONFIRMED else [*found, Confirmed(holder)]

        return confirm

    def _command_release(self) -> Any:
        def release(state: Seats, holder: str, at: datetime) -> list[Happened]:
            found, state = self.lapse(state, at)
            if state.hold_of(holder) is not None:
                event: Happened = Released(holder)
            elif holder in state.waiting:
                event = Left(holder)
            else:
                return found
            found.append(event)
            return self._fill(found, evolve(state, event), at)[0]

        return release

    def _command_expire(self) -> Any:
        def expire(state: Seats, at: datetime) -> list[Happened]:
            return self.lapse(state, at)[0]

        return expire

    # Doors ---------------------------------------------------------------------

    def open(
        self,
        log: Log,
        *,
        owns: bool = True,
        index: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        timeout: float = 30.0,
    ) -> Book:
        """Take part, as `Events.open`: own keys and let their holds run out, or only call."""
        opened = self.events.open(log, owns=owns, index=index, listen=listen, timeout=timeout)
        return Book(self, opened)

    def given(self, *events: object) -> Given[Seats]:
        """A test without a log, as `Events.given`."""
        return self.events.given(*events)


def reservations(
    name: str,
    *,
    hold: str | timedelta = "10 minutes",
    capacity: int = 1,
    partitions: int = 8,
    remember: str | timedelta = "7 days",
) -> Reservations:
    """Declare keys of which each has `capacity` seats: `tr.reservations("usernames")`.

    A claim is held for `hold`, then it must have been confirmed.
    """
    frame = sys._getframe(1)
    place = Place(frame.f_code.co_filename, frame.f_lineno)
    length = hold if isinstance(hold, timedelta) else parse_duration(hold)
    if length <= timedelta() or capacity < 1:
        raise UsageError(
            f"reservations {name!r} cannot have hold={hold!r} and capacity={capacity}",
            detail=f"declared at {place}",
            hint='hold="10 minutes", capacity=1',
        )
    return Reservations(name, length, capacity, partitions, remember, place)


class Book:
    """Reservations on a log. Every call may come from any thread."""

    def __init__(self, declared: Reservations, opened: OpenedEvents[Seats]) -> None:
        from tailrace.facts.due import DueStreams

        self.declared = declared
        self.opened = opened
        self._clock = opened.log.clock
        self._answers = _Answers()
        self._due = DueStreams(opened, _due_of, self._expire)

    def __repr__(self) -> str:
        return f"<{self.declared!r} on {self.opened.log!r}>"

    def __enter__(self) -> Book:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go. Holds run out where the keys have another owner, or at the next start."""
        self._due.close()
        self.opened.close()

    # Deciding ------------------------------------------------------------------

    def claim(
        self, key: str, *, holder: str, wait: bool = False, id: str | None = None, **about: Any
    ) -> Claim:
        """Hold a seat of `key`, or stand in line with `wait=True`. What `holder` has already
        comes back as it is. Raises Reserved. `about`: actor, cause, correlation."""
        _check_holder(holder)
        done = self.opened.execute("claim", key, id=id, holder=holder, wait=wait, **about)
        return _claim(key, holder, done)

    async def aclaim(
        self, key: str, *, holder: str, wait: bool = False, id: str | None = None, **about: Any
    ) -> Claim:
        """`claim` for asyncio."""
        _check_holder(holder)
        done = await self.opened.aexecute("claim", key, id=id, holder=holder, wait=wait, **about)
        return _claim(key, holder, done)

    def confirm(self, key: str, *, holder: str, id: str | None = None, **about: Any) -> Claim:
        """Keep what was claimed until it is released. Raises Rejected (`expired`: the hold has
        run out) and Reserved (and somebody else has it)."""
        done = self.opened.execute("confirm", key, id=id, holder=holder, **about)
        return _claim(key, holder, done)

    async def aconfirm(
        self, key: str, *, holder: str, id: str | None = None, **about: Any
    ) -> Claim:
        """`confirm` for asyncio."""
        done = await self.opened.aexecute("confirm", key, id=id, holder=holder, **about)
        return _claim(key, holder, done)

    def release(self, key: str, *, holder: str, id: str | None = None, **about: Any) -> bool:
        """Give a seat back, or leave the line; whether there was something to give back. The
        seat goes to the first in the line."""
        done = self.opened.execute("release", key, id=id, holder=holder, **about)
        return _gave_back(holder, done)

    async def arelease(self, key: str, *, holder: str, id: str | None = None, **about: Any) -> bool:
        """`release` for asyncio."""
        done = await self.opened.aexecute("release", key, id=id, holder=holder, **about)
        return _gave_back(holder, done)

    # Looking -------------------------------------------------------------------

    def get(self, key: str) -> Reservation | None:
        """Who has a key and who waits, by the time it is now; None if it is free."""
        state = self.opened.state(key).value
        _, state = self.declared.lapse(state, to_datetime(self._clock.wall_ms()))
        return Reservation(key, state.held, state.waiting) if state.held else None

    # In time -------------------------------------------------------------------

    def _expire(self, partition: Partition[Any], key: str) -> int:
        self.opened.start(self._answers, "expire", key, {}, cause="time")
        return 0


def _due_of(state: Seats) -> int | None:
    ends = [each.until for each in state.held if each.until is not None]
    # Rounded up: at that millisecond it has run out.
    return -((_EPOCH - min(ends)) // timedelta(milliseconds=1)) if ends else None


def _check_holder(holder: str) -> None:
    if not holder:
        raise UsageError("a reservation needs a holder", hint='holder="user-17"')


def _claim(key: str, holder: str, done: Done[Seats]) -> Claim:
    hold = done.state.hold_of(holder)
    new = any(each.holder == holder for each in done.events)
    if hold is not None:
        return Claim(key, holder, hold.status, hold.until, done.position, new)
    return Claim(key, holder, WAITING, None, done.position, new)


def _gave_back(holder: str, done: Done[Seats]) -> bool:
    return any(isinstance(e, Released | Left) and e.holder == holder for e in done.events)


class _Answers:
    """Answers nobody waits for: what failed is due again."""

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        for ask, answer in answers:
            if isinstance(answer, TailraceError):
                extra = {"stream": ask.stream, "error": str(answer)}
                log.info("a hold that has run out is not written yet", extra=extra)


@contextmanager
def claim_all(
    *wanted: tuple[Book, str], holder: str, confirm: bool = True
) -> Iterator[Sequence[Claim]]:
    """Several keys or none: `with tr.claim_all((names, "ann"), (mails, "ann@x.org"), holder="u1"):`

    They are claimed in this order. If one is taken, those claimed before it are released and
    Reserved is raised. If the block ends well they are confirmed, else released; what `holder`
    had before is left as it was. A process that dies in between leaves claims that run out.
    """
    made: list[tuple[Book, Claim]] = []
    try:
        for book, key in wanted:
            made.append((book, _surely(book, key, holder)))
        yield [each for _, each in made]
        if confirm:
            for book, each in made:
                book.confirm(each.key, holder=holder)
    except BaseException:
        for book, each in reversed(made):
            if each.new:
                with contextlib.suppress(TailraceError):  # it runs out by itself
                    book.release(each.key, holder=holder)
        raise


def _surely(book: Book, key: str, holder: str) -> Claim:
    """A claim whose answer was lost is asked for again, under its id."""
    id: str | None = None
    for left in reversed(range(TRIES)):
        try:
            return book.claim(key, holder=holder, id=id)
        except OutcomeUnknownError as error:
            if not left:
                raise
            id = error.id
    raise AssertionError("unreachable")
