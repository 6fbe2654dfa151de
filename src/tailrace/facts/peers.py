"""A caller's side of the connections: one link to each other owner, many questions on it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.facts import messages
from tailrace.facts.asking import Answer, Ask, Done, LoopChannel, deliver
from tailrace.facts.declare import Events
from tailrace.facts.errors import PartitionLostError, from_parts
from tailrace.facts.links import Link, Links
from tailrace.facts.serving import plain_query

OnUnanswered = Callable[[list[tuple[int, Ask]]], None]


class Peer:
    """Another owner: what is asked of it, and what has no answer yet.

    `on_unanswered` gets decisions that must be asked of somebody else: the link ended, or the
    peer says that the partition is not its own.
    """

    def __init__(
        self,
        declared: Events[Any],
        links: Links,
        address: str,
        secret: str,
        on_unanswered: OnUnanswered,
        timeout: float,
    ) -> None:
        self.address = address
        self._declared = declared
        self._on_unanswered = on_unanswered
        self._decode_state = msgspec.json.Decoder(declared.state).decode
        self._numbers = itertools.count(1)
        self._asks: dict[int, tuple[int, Ask, float]] = {}
        self._looks: dict[int, _Look] = {}
        # What is asked in one turn of an event loop is sent together, and answers that come
        # together are delivered so: a system call and a wake-up for many.
        self._corked: dict[LoopChannel, list[tuple[int, bytes]]] = {}
        self._answers: list[tuple[Ask, Answer]] = []
        self._link = links.connect(
            address, secret, self._on_frame, self._on_closed, timeout, self._deliver
        )

    @property
    def closed(self) -> bool:
        return self._link.closed

    def ask(self, partition: int, ask: Ask) -> None:
        """Send a decision. Raises TypeError for arguments that cannot be sent."""
        number = next(self._numbers)
        types = self._declared.types.by_class
        told = messages.Decide(
            number,
            partition,
            ask.stream,
            ask.id,
            ask.named,
            ask.tried,
            None if ask.command is None else ask.command.name,
            dict(ask.arguments),
            [(types[type(each)].written, msgspec.json.encode(each)) for each in ask.events],
            ask.expected,
            ask.actor,
            ask.cause,
            ask.correlation,
            None if ask.unless is None else plain_query(ask.unless),
            ask.after,
        )
        frame = messages.encode(told)
        self._asks[number] = (partition, ask, SYSTEM.monotonic())
        channel = ask.channel
        if isinstance(channel, LoopChannel) and channel.is_current():
            corked = self._corked.setdefault(channel, [])
            corked.append((number, frame))
            if len(corked) == 1:
                channel.soon(lambda: self._uncork(channel))
            return
        self._link.send([frame])
        if self._link.closed:
            self._give_back([number])

    def _uncork(self, channel: LoopChannel) -> None:
        corked = self._corked.pop(channel)
        self._link.send([frame for _, frame in corked])
        if self._link.closed:
            self._give_back([number for number, _ in corked])

    def look(self, partition: int, what: str, timeout: float, **about: Any) -> messages.Answered:
        """Ask a question and wait. Raises TimeoutError, ConnectionError, TailraceError."""
        number = next(self._numbers)
        waiting = self._looks[number] = _Look()
        self._link.send([messages.encode(messages.Look(number, partition, what, **about))])
        try:
            if self._link.closed:
                raise ConnectionResetError(f"the link to {self.address} has ended")
            answer = waiting.wait(timeout)
        finally:
            self._looks.pop(number, None)
        if isinstance(answer, messages.Failed):
            raise from_parts(answer.parts)
        return answer

    def unanswered_for(self, seconds: float) -> set[int]:
        """The partitions with decisions that have no answer after so long."""
        before = SYSTEM.monotonic() - seconds
        return {
            partition for partition, _, asked_at in list(self._asks.values()) if asked_at < before
        }

    def take_back(self, partition: int) -> None:
        """The partition has another owner: its decisions are asked of that one."""
        self._give_back([n for n, each in list(self._asks.items()) if each[0] == partition])

    def close(self) -> None:
        self._link.close()

    # By the thread of the links ------------------------------------------------

    def _on_frame(self, link: Link, frame: bytes) -> None:
        answered = messages.decode_answered(frame)
        look = self._looks.get(answered.number)
        if look is not None:
            look.answer(answered)
            return
        found = self._asks.pop(answered.number, None)
        if found is None:
            return  # taken back, and answered by another owner
        partition, ask, _ = found
        if isinstance(answered, messages.Failed):
            error = from_parts(answered.parts)
            if isinstance(error, PartitionLostError):
                ask.tried = True
                self._on_unanswered([(partition, ask)])
            else:
                self._answers.append((ask, error))
        elif isinstance(answered, messages.Decided):
            self._answers.append((ask, self._done(answered)))

    def _deliver(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            deliver(answers)

    def _done(self, answered: messages.Decided) -> Answer:
        try:
            types = self._declared.types
            return Done(
                tuple(types.decode(kind, value) for kind, value in answered.events),
                answered.version,
                answered.position,
                self.state(answered.state),
                answered.id,
                answered.repeated,
            )
        except TailraceError as error:
            return error

    def state(self, raw: bytes) -> Any:
        return None if raw == b"null" else self._decode_state(raw)

    def _on_closed(self, link: Link) -> None:
        self._deliver()
        for look in list(self._looks.values()):
            look.answer(None)
        self._give_back(list(self._asks))

    def _give_back(self, numbers: list[int]) -> None:
        left: list[tuple[int, Ask]] = []
        for number in numbers:
            found = self._asks.pop(number, None)
            if found is not None:
                found[1].tried = True
                left.append(found[:2])
        if left:
            self._on_unanswered(left)


class _Look:
    """One thread that waits for the answer to a question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._answer: messages.Answered | None = None

    def answer(self, answer: messages.Answered | None) -> None:
        self._answer = answer
        if self._lock.locked():
            self._lock.release()

    def wait(self, timeout: float) -> messages.Answered:
        if not self._lock.acquire(timeout=timeout):
            raise TimeoutError
        if self._answer is None:
            raise ConnectionResetError("the link has ended")
        return self._answer
