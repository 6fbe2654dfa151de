"""A reaction at work: facts are read, steps recorded, commands carried out.

    read a fact → step: one batch of the journal → send its commands → settle each

Every process that has the reaction open owns some partitions of its journal, fenced as those of
any event topic. The owner of a process steps it, lets its timers run out and sends its commands,
one after the other; the owner of a reader's stream reads that source partition. Whatever dies,
another one finds in the journal what is open and sends it again under the same ids.

A command is *settled* when its owner has decided it. A refusal is a fact of the process
(tr.Refused). Anything else that goes wrong is tried again, ever more slowly, and told by
`tailrace events reactions`.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import lmdb

from tailrace.client.errors import ClientError
from tailrace.client.log import LocalLog
from tailrace.errors import TailraceError
from tailrace.facts.asking import Answer, Ask, Done
from tailrace.facts.due import AGAIN_MS, DueStreams
from tailrace.facts.errors import (
    EventsClosedError,
    EventsError,
    OutcomeUnknownError,
    OwnerMissingError,
    PartitionLostError,
    Rejected,
    SourceReplacedError,
)
from tailrace.facts.failpoints import reached
from tailrace.facts.opened import OpenedEvents, opened_here
from tailrace.facts.partition import Partition
from tailrace.facts.processes import (
    ERASED_ARGUMENTS,
    READER,
    Action,
    Process,
    Told,
    due_of,
    journal,
    reader_stream,
)
from tailrace.facts.questions import fact as fact_of
from tailrace.facts.reading import EventReader
from tailrace.facts.records import Stored, parse_record
from tailrace.facts.sealing import seals_for
from tailrace.facts.topic import ensure_topic
from tailrace.records.event_headers import ERASED_TYPE

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.declare import Events
    from tailrace.facts.reactions import Reaction

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
"""Between two looks at the ends of the sources, where nobody wakes us."""
SAVE_SECONDS = 5.0
KNOCK_SECONDS = 1.0
MOST_FACTS = 500
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 30.0
PASSING = (OwnerMissingError, OutcomeUnknownError, PartitionLostError, EventsClosedError, ClientError)  # fmt: skip
"""What goes away by itself, as a rule: told when it has happened a few times."""
TOLD_AT = frozenset({1, 3, 10, 30, 100, 300, 1000})
TOLD_AT_IF_PASSING = TOLD_AT - {1}


@dataclass(slots=True)
class _Flight:
    """A command on its way, or one that waits to be tried again."""

    attempts: int = 0
    at: float = 0.0
    """Monotonic: when it was sent, or may be sent again."""
    sent: bool = False


@dataclass(slots=True)
class _Reading:
    """One source partition that this process reads."""

    topic: str
    partition: int
    position: int
    saved: int
    saved_at: float
    attempts: int = 0
    again_at: float = 0.0
    trouble: str = ""

    @property
    def stream(self) -> str:
        return reader_stream(self.topic, self.partition)


class OpenedReaction:
    """See the module and `Reaction.open`."""

    def __init__(
        self,
        declared: Reaction,
        log: Log,
        *,
        index: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        timeout: float = 30.0,
    ) -> None:
        for mistake in declared.mistakes():
            raise mistake
        self.declared = declared
        self.log = log
        self._clock = log.clock
        self._timeout = timeout
        self._index = index
        self._token = secrets.token_hex(16)
        for source in declared.sources.values():
            ensure_topic(log, source)
        self._seals = {
            name: seals
            for name, source in declared.sources.items()
            if (seals := seals_for(log, source)) is not None
        }
        keys = next((each.keys for each in self._seals.values()), None)
        recorded = journal(declared, self._token, None if keys is None else keys.tag)
        try:
            self.opened: OpenedEvents[Process] = recorded.open(
                log, index=index, listen=listen, timeout=timeout
            )
        except BaseException:
            self._close_keys()
            raise
        self._lock = threading.Lock()
        self._flights: dict[str, _Flight] = {}
        self._targets = _Targets(log, index, timeout)
        self._readings: dict[str, _Reading] = {}
        self._reader = EventReader(log, timeout)
        self._woken = threading.Event()
        self._stopping = False
        self._knocked_at = 0.0
        if declared.start == "latest":
            self._begin_at_the_ends()
        self._due = DueStreams(self.opened, due_of, self._act)
        name = f"reaction {declared.name}"
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<{self.declared!r} on {self.log!r}>"

    def __enter__(self) -> OpenedReaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish the step at hand and let the processes go to others, or to the next start."""
        if self._stopping:
            return
        self._stopping = True
        self._woken.set()
        self._thread.join()
        self._due.close()
        for reading in self._readings.values():
            if not reading.attempts:
                with suppress(TailraceError):
                    self._save(reading)
        self._targets.close()
        self.opened.close()
        self._close_keys()
        self._reader.close()

    def _close_keys(self) -> None:
        for seals in self._seals.values():
            seals.keys.close()

    def process(self, key: str) -> Process:
        """A process as its journal has it: state, open commands, timers."""
        return self.opened.state(key).value

    def state(self, key: str) -> Any:
        """The state of a process; None for a reaction without."""
        return self.declared.state_of(self.process(key).state)

    def _begin_at_the_ends(self) -> None:
        """A reaction that is opened for the first time passes over what is there."""
        for topic in self.declared.sources:
            for partition, end in self.log.end_offsets(topic).items():
                stream = reader_stream(topic, partition)
                if self.opened.state(stream).version == 0 and end > 0:
                    self.opened.execute("read", stream, offset=end)

    # Reading -------------------------------------------------------------------

    def _read(self) -> None:
        while not self._stopping:
            self._woken.clear()
            moved = False
            try:
                self._follow_ownership()
                moved = self._look()
                self._knock()
            except (TailraceError, lmdb.Error, OSError) as error:
                extra = {"reaction": self.declared.name, "error": str(error)}
                log.warning("a reaction waits", extra=extra)
                self._woken.wait(1.0)
            except Exception:
                log.exception("the reader of a reaction stumbled")
                self._woken.wait(1.0)
            if not moved:
                self._woken.wait(LOOK_SECONDS)

    def _follow_ownership(self) -> None:
        """Read what the owned streams say is to be read, from where they say."""
        owned = {each.number: each for each in self.opened.owned()}
        mine: set[str] = set()
        for topic, source in self.declared.sources.items():
            for partition in range(source.partitions):
                stream = reader_stream(topic, partition)
                owner = owned.get(self.opened.partition_of(stream))
                if owner is None:
                    continue
                mine.add(stream)
                if stream not in self._readings:
                    start = owner.lookup(stream.encode()).state.read
                    now = self._clock.monotonic()
                    self._readings[stream] = _Reading(topic, partition, start, start, now)
        for stream in self._readings.keys() - mine:
            del self._readings[stream]

    def _look(self) -> bool:
        """Take in what is new; whether there was any."""
        moved = False
        now = self._clock.monotonic()
        for topic in self.declared.sources:
            readings = [e for e in self._readings.values() if e.topic == topic]
            if not readings:
                continue
            ends = self.log.end_offsets(topic)
            for reading in readings:
                if self._stopping:
                    return False
                end = ends.get(reading.partition, 0)
                if end < reading.position and reading.again_at <= now:
                    self._stop_at(reading, reading.position, _replaced(reading, end))
                elif end > reading.position and reading.again_at <= now:
                    moved |= self._take(reading, end)
                # One that is stopped keeps its trouble, which a save would take back.
                if not reading.attempts and now - reading.saved_at > SAVE_SECONDS:
                    self._save(reading)
        return moved

    def _knock(self) -> None:
        """Ask something of every partition that is not ours, now and then: an owner that is dead
        is found out by who calls it, and nobody else calls."""
        now = self._clock.monotonic()
        if now - self._knocked_at < KNOCK_SECONDS:
            return
        self._knocked_at = now
        for seals in self._seals.values():
            seals.keys.refresh()
        owned = {each.number for each in self.opened.owned()}
        for number in set(range(self.declared.partitions)) - owned:
            stream = next(
                stream
                for stream in map(reader_stream, itertools.repeat(""), itertools.count())
                if self.opened.partition_of(stream) == number
            )
            self.opened.start(_Nobody(), "read", stream, {"offset": 0})

    def _save(self, reading: _Reading) -> None:
        if reading.position > reading.saved:
            self.opened.execute("read", reading.stream, offset=reading.position)
            reading.saved, reading.saved_at = reading.position, self._clock.monotonic()
            reached("reactions.read")

    def _take(self, reading: _Reading, end: int) -> bool:
        """Step every fact up to `end`. One that fails stops its source partition; it is tried
        again, and what came after it steps once all the same."""
        for records, following in self._reader.records(
            reading.topic, reading.partition, reading.position, end
        ):
            facts: list[Stored] = []
            for record in records:
                stored = parse_record(*record)
                if (
                    stored is not None
                    and stored.offset >= reading.position
                    and stored.kind != ERASED_TYPE
                ):
                    facts.append(stored)
            seals = self._seals.get(reading.topic)
            if seals is not None:
                facts = [seals.open(stored) for stored in facts]
            for start in range(0, len(facts), MOST_FACTS):
                failed = self._step(reading, facts[start : start + MOST_FACTS])
                if self._stopping:
                    return False
                if failed is not None:
                    stored, error = failed
                    self._stop_at(reading, stored.offset, error)
                    return False
            reading.position = following
            reading.attempts, reading.trouble = 0, ""
        reading.position = max(reading.position, end)
        return True

    def _step(
        self, reading: _Reading, facts: list[Stored]
    ) -> tuple[Stored, TailraceError | Exception] | None:
        """Step these facts, those of one process in their order, and wait until all of them are
        durable; the first that failed."""
        source = self.declared.sources[reading.topic]
        waiting: dict[str, deque[Stored]] = {}
        failed: list[tuple[Stored, TailraceError | Exception]] = []
        for stored in facts:
            try:
                key = self.declared.process_of(fact_of(source, reading.partition, stored))
            except Exception as error:  # the user's `key`, or an event that cannot be read
                failed.append((stored, error))
                break  # nothing behind it is known to belong to another process
            if key is not None:
                waiting.setdefault(key, deque()).append(stored)
        while waiting and not self._stopping:
            round_ = _Round(len(waiting))
            for key, some in waiting.items():
                told = Told(reading.topic, reading.partition, some[0])
                self.opened.start(round_, "step", key, {"key": key, "told": told}, ticket=key)
            for key, answer in round_.answers(self._timeout + 5.0):
                stored = waiting[key].popleft()
                if isinstance(answer, TailraceError):
                    failed.append((stored, answer))
                    waiting[key].clear()
                if not waiting[key]:
                    del waiting[key]
            if round_.unanswered:
                late = OwnerMissingError("a step was not answered in time")
                failed.extend((some[0], late) for some in waiting.values())
                break
            reached("reactions.stepped")
        return min(failed, key=lambda each: each[0].offset, default=None)

    def _stop_at(self, reading: _Reading, offset: int, error: Exception) -> None:
        """Try a fact again in a while. What stands behind it may be read twice."""
        reading.position = offset
        reading.attempts += 1
        reading.trouble = self._recorded(error)
        reading.again_at = self._clock.monotonic() + pause_after(reading.attempts)
        place = f"log:{reading.topic}/{reading.partition}:{offset}"
        extra = {"reaction": self.declared.name, "fact": place, "error": reading.trouble}
        log.warning("a fact cannot be taken in", extra=extra)
        if _is_told(error, reading.attempts):
            about = {"id": place, "attempts": reading.attempts, "error": reading.trouble}
            with suppress(TailraceError):
                self.opened.start(_Nobody(), "tried", reading.stream, about)
        reading.saved = -1  # the next save takes the trouble back

    # Carrying out --------------------------------------------------------------

    def _act(self, partition: Partition[Any], key: str) -> int:
        """What is due for a process; when to look again, in milliseconds."""
        if key.startswith(READER):
            return 0
        process: Process = partition.lookup(key.encode()).state
        now = self._clock.wall_ms()
        again = [0]
        for name, timer in process.timers.items():
            if timer.due <= now:
                about = {"key": key, "name": name, "due": timer.due}
                self.opened.start(_Nobody(), "fire", key, about, cause="time")
                reached("reactions.fired")
            else:
                again.append(timer.due - now)
        if process.open:
            again.append(self._send(partition, key, process.open[0]))
        return min((each for each in again if each > 0), default=0)

    def _send(self, partition: Partition[Any], key: str, action: Action) -> int:
        """Send the oldest open command of a process, unless it is on its way or rests; when to
        look again, in milliseconds."""
        now = self._clock.monotonic()
        with self._lock:
            flight = self._flights.setdefault(action.id, _Flight(action.attempts))
            if now < flight.at:
                return max(1, int((flight.at - now) * 1000))
            flight.at = now + self._timeout * 2  # an answer comes before that
            flight.sent = True
        # A refusal that was recorded since we looked is final: the command is not sent again.
        process: Process = partition.lookup(key.encode()).state
        if all(each.id != action.id for each in process.open) or not self.opened.sure(partition):
            with self._lock:
                self._flights.pop(action.id, None)
            return AGAIN_MS
        if ERASED_ARGUMENTS in action.arguments:
            gone = "what the command was to say was erased with its subject"
            self._settle(key, action.id, "refused", code="subject-erased", message=gone)
            return AGAIN_MS
        try:
            target = self._targets.find(self.declared.find_target(action.topic))
            position = self._decided_before(target, action)
            if position is not None:
                self._settle(key, action.id, "done", position=position)
                return AGAIN_MS
            command = target.declared.find_command(action.command)
            reached("reactions.sending")
            target.start(
                _Sent(self, key, action),
                action.command,
                action.stream,
                command.convert(action.arguments, strict=False),
                id=action.id,
                actor=f"reaction:{self.declared.name}",
                cause=action.cause,
                correlation=action.correlation,
            )
        except (TailraceError, OSError) as error:
            self._failed(key, action, error)
        return AGAIN_MS

    def _decided_before(self, target: OpenedEvents[Any], action: Action) -> str | None:
        """Where a command stands that is so old that its owner may have forgotten the id."""
        remembered = target.declared.remember.total_seconds() * 1000
        if self._clock.wall_ms() - action.at < remembered / 2:
            return None
        for fact in target.history(action.stream):
            if fact.command == action.id:
                return fact.position
        return None

    def on_answer(self, key: str, action: Action, answer: Answer) -> None:
        """By the thread of the command's owner: must not block."""
        if self._stopping:
            return
        reached("reactions.sent")
        if isinstance(answer, Done):
            self._settle(key, action.id, "done", position=answer.position)
        elif isinstance(answer, Rejected):
            self._settle(key, action.id, "refused", code=answer.code, message=answer.message)
        else:
            self._failed(key, action, answer)

    def _settle(self, key: str, id: str, outcome: str, **about: Any) -> None:
        arguments = {"key": key, "id": id, "token": self._token, "outcome": outcome, **about}
        try:
            self.opened.start(_Settling(self, id), "settle", key, arguments)
        except TailraceError:
            self.on_settled(id)

    def on_settled(self, id: str) -> None:
        """The journal has it, or another one will find it open and send it again."""
        with self._lock:
            self._flights.pop(id, None)
        self._due.wake()
        reached("reactions.settled")

    def _failed(self, key: str, action: Action, error: Exception) -> None:
        """Try again, ever more slowly."""
        with self._lock:
            flight = self._flights.setdefault(action.id, _Flight(action.attempts))
            flight.attempts += 1
            flight.sent = False
            flight.at = self._clock.monotonic() + pause_after(flight.attempts)
            attempts = flight.attempts
        if _is_told(error, attempts):
            told = self._recorded(error)
            extra = {"reaction": self.declared.name, "command": action.id, "error": told}
            log.warning("a command of a reaction fails", extra=extra)
            about = {"id": action.id, "attempts": attempts, "error": told}
            with suppress(TailraceError):
                self.opened.start(_Nobody(), "tried", key, about)
        self._due.wake()

    def _recorded(self, error: Exception) -> str:
        """An error as the journal keeps it: where sources are personal without what it says."""
        if not self._seals:
            return _told(error)
        return error.code if isinstance(error, TailraceError) else type(error).__name__


class _Targets:
    """The topics commands go to: as this program has them open, or else opened for them."""

    def __init__(self, log: Log, index: str | Path | None, timeout: float) -> None:
        self._log = log
        self._index = index
        self._timeout = timeout
        self._own: dict[str, OpenedEvents[Any]] = {}

    def find(self, declared: Events[Any]) -> OpenedEvents[Any]:
        own = self._own.get(declared.name)
        found = opened_here(self._log, declared.name)
        if found is not None and found is not own:
            return found
        local = isinstance(self._log, LocalLog)
        if own is not None and (not local or len(own.owned()) == declared.partitions):
            return own
        if own is not None:
            own.close()  # the program had the topic open meanwhile, and ours has lost it
        made = self._own[declared.name] = declared.open(
            self._log, owns=local, index=self._index, timeout=self._timeout
        )
        return made

    def close(self) -> None:
        for each in self._own.values():
            each.close()


class _Round:
    """Steps of different processes, and their answers."""

    def __init__(self, count: int) -> None:
        self.unanswered = count
        self._answers: deque[tuple[Ask, Answer]] = deque()
        self._some = threading.Semaphore(0)

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        self._answers.extend(answers)
        self._some.release(len(answers))

    def answers(self, timeout: float) -> Iterator[tuple[str, Answer]]:
        """Key and answer of every step; it ends early when one is missing for too long."""
        while self.unanswered and self._some.acquire(timeout=timeout):
            ask, answer = self._answers.popleft()
            self.unanswered -= 1
            yield ask.ticket, answer


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """Where the answer to one command goes."""

    reaction: OpenedReaction
    key: str
    action: Action

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        for _, answer in answers:
            self.reaction.on_answer(self.key, self.action, answer)


@dataclass(frozen=True, slots=True, eq=False)
class _Settling:
    """Where the answer to a settlement goes."""

    reaction: OpenedReaction
    id: str

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        for _, answer in answers:
            if isinstance(answer, TailraceError):
                extra = {"command": self.id, "error": answer.code}
                log.warning("what became of a command is not recorded yet", extra=extra)
            self.reaction.on_settled(self.id)


class _Nobody:
    """Answers nobody waits for: what was asked is due again."""

    def deliver(self, answers: list[tuple[Ask, Answer]]) -> None:
        for ask, answer in answers:
            if isinstance(answer, TailraceError):
                extra = {"process": ask.stream, "error": answer.code}
                log.info("a step of a reaction is tried again", extra=extra)


def _replaced(reading: _Reading, end: int) -> SourceReplacedError:
    return SourceReplacedError(
        f"{reading.topic}/{reading.partition} ends at {end}, and the reaction has read it up to "
        f"{reading.position}",
        detail="it was deleted and made again, or the log has lost records",
        hint="give the reaction another name, so that it begins anew",
    )


def pause_after(attempts: int) -> float:
    """Seconds until something that has failed so often is tried again."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts, 20)))


def _is_told(error: Exception, attempts: int) -> bool:
    passing = isinstance(error, PASSING) or type(error) is EventsError
    return attempts in (TOLD_AT_IF_PASSING if passing else TOLD_AT)


def _told(error: Exception) -> str:
    if isinstance(error, TailraceError):
        return f"[{error.code}] {error.message}" + (f": {error.detail}" if error.detail else "")
    return f"{type(error).__name__}: {error}"
