"""Tests of reactions without a log.

    promotion.given(Dropped("ann"), stream="c1").sends(tr.send(promote, "c1"))
    checkout.given(Ordered(5), stream="o1").sends(tr.send(charge, "acc", amount=5)).refused(
        charge, code="overdrawn").sends(tr.send(cancel, "o1"))
    checkout.given(Ordered(5)).sends(…).after("2 days").sends(tr.send(remind, "stream"))

The steps are those of a real log: every fact goes through its JSON form, every step is decided
twice and compared, timers run out when `after` moves the clock past them, in their order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tailrace.config import parse_duration
from tailrace.facts.asking import Fact
from tailrace.facts.event_types import encode_json
from tailrace.facts.processes import Action, Process, Stepped, Told, evolve, journal
from tailrace.facts.questions import fact as fact_of
from tailrace.facts.reactions import Reaction, Send
from tailrace.facts.records import Meta, Stored, encode_meta

_A_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_TOKEN = "given"


class GivenReaction:
    """The processes of a reaction after some facts; `now` is the time it is for them."""

    def __init__(self, declared: Reaction) -> None:
        for mistake in declared.mistakes():
            raise mistake
        self._declared = declared
        self._journal = journal(declared, _TOKEN)
        self._processes: dict[str, Process] = {}
        self._sent: list[Action] = []
        self._told = 0
        self._offset = 0
        self._versions: dict[tuple[str, str], int] = {}
        self.now = _A_TIME

    def and_given(
        self, *events: object, stream: str = "stream", correlation: str | None = None
    ) -> GivenReaction:
        """More facts: events of one stream, or facts (`shop.history("o1")`) of their own."""
        for event in events:
            if isinstance(event, Fact):
                self._take_in(event.event, event.stream, event.correlation)
            else:
                self._take_in(event, stream, correlation)
        return self

    def _take_in(self, event: object, stream: str, correlation: str | None) -> None:
        source = next(
            (e for e in self._declared.sources.values() if type(event) in e.types.by_class), None
        )
        if source is None:
            raise AssertionError(
                f"{event!r} is no event of {', '.join(self._declared.sources)}, "
                f"to which {self._declared.name} reacts"
            )
        known = source.types.by_class[type(event)]
        version = self._versions[source.name, stream] = (
            self._versions.get((source.name, stream), 0) + 1
        )
        id = f"given-{self._offset}"
        meta = encode_meta(Meta(f"{id}/0", id, None, None, correlation or id, None))
        stored = Stored(
            self._offset, self._milliseconds, stream, known.written, version, meta,
            encode_json(event),
        )  # fmt: skip
        self._offset += 1
        key = self._declared.process_of(fact_of(source, 0, stored))
        if key is not None:
            self._step("step", key, told=Told(source.name, 0, stored))

    def sends(self, *wanted: Send) -> GivenReaction:
        """Exactly these commands were sent, in this order, since this was asked last."""
        said = [
            (target.name, target.find_command(each.command).name, each.stream, each.arguments)
            for each in wanted
            for target in (self._declared.target(each),)
        ]
        sent = [
            (each.topic, each.command, each.stream, each.arguments)
            for each in self._sent[self._told :]
        ]
        self._told = len(self._sent)
        plain = [(*each[:3], _plain(each[3])) for each in said]
        if plain != sent:
            raise AssertionError(f"sent {sent!r}, expected {plain!r}")
        return self

    def refused(
        self,
        command: str | Callable[..., Any],
        *,
        code: str = "rejected",
        message: str = "",
        stream: str | None = None,
    ) -> GivenReaction:
        """The oldest open command of this name was refused."""
        name = command if isinstance(command, str) else command.__name__
        for key, process in self._processes.items():
            for action in process.open:
                if action.command == name and stream in (None, action.stream):
                    about = {"outcome": "refused", "code": code, "message": message}
                    self._step("settle", key, id=action.id, token=_TOKEN, **about)
                    return self
        raise AssertionError(f"no command {name} is open")

    def after(self, length: str | timedelta) -> GivenReaction:
        """Time passes; timers that run out meanwhile do so in their order."""
        end = self.now + (length if isinstance(length, timedelta) else parse_duration(length))
        while True:
            due = [
                (timer.due, key, name)
                for key, process in self._processes.items()
                for name, timer in process.timers.items()
            ]
            if not due or min(due)[0] > _milliseconds(end):
                break
            moment, key, name = min(due)
            self.now = max(self.now, datetime.fromtimestamp(moment / 1000, UTC))
            self._step("fire", key, name=name, due=moment)
        self.now = end
        return self

    def state_of(self, key: str = "stream") -> Any:
        """The state of a process."""
        return self._declared.state_of(self._process(key).state)

    @property
    def state(self) -> Any:
        """The state of the only process."""
        if len(self._processes) > 1:
            raise AssertionError(f"there are {len(self._processes)} processes: state_of(key)")
        return self.state_of(next(iter(self._processes), "stream"))

    def timers(self, key: str = "stream") -> dict[str, datetime]:
        """When each timer of a process runs out."""
        timers = self._process(key).timers
        return {name: datetime.fromtimestamp(e.due / 1000, UTC) for name, e in timers.items()}

    # Inside --------------------------------------------------------------------

    @property
    def _milliseconds(self) -> int:
        return _milliseconds(self.now)

    def _process(self, key: str) -> Process:
        return self._processes.get(key, Process())

    def _step(self, what: str, key: str, **arguments: Any) -> None:
        function = self._journal.commands[what].function
        process = self._process(key)
        before = copy.deepcopy(process)
        first = function(process, key=key, at=self.now, **arguments)
        second = function(copy.deepcopy(before), key=key, at=self.now, **arguments)
        if process != before:
            raise AssertionError(f"{self._declared.name} changes the state it is given")
        if first != second:
            raise AssertionError(
                f"{self._declared.name} is not pure: once {first!r}, once {second!r}"
            )
        events = first if isinstance(first, list) else [] if first is None else [first]
        for event in events:
            process = evolve(process, event)
            if isinstance(event, Stepped):
                self._sent += event.actions
        self._processes[key] = process


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)
