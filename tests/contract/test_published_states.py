"""States beside their events, in one transaction: the same on every log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from servers.accounts import Account, declare, deposit, open_account, withdraw
from tailrace.client.log import Log
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.errors import (
    CommandResultError,
    EventsDeclarationError,
    EventsTooLargeError,
    Rejected,
)
from tailrace.facts.opened import OpenedEvents


def table(log: Log, name: str) -> dict[str, dict[str, object] | None]:
    """The table of states as any Kafka client reads it: the last value of every key."""
    return {
        (record.key or b"").decode(): None if record.value is None else orjson.loads(record.value)
        for record in log.read(f"{name}.state")
    }


def becomes(log: Log, name: str, wanted: dict[str, Any]) -> None:
    """The table is that, at once or when the log has ended the transactions: Apache Kafka answers
    a commit before all partitions show it."""
    deadline = time.monotonic() + 30
    while (found := table(log, name)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def told(bank: OpenedEvents[Account], streams: Iterator[str]) -> dict[str, dict[str, object]]:
    found = ((stream, bank.state(stream).value) for stream in streams)
    return {
        stream: {"owner": state.owner, "balance": state.balance, "events": state.events}
        for stream, state in found
    }


def test_the_table_has_the_state_of_every_stream(log: Log, name: str, tmp_path: Path) -> None:
    declared = declare(name, publish=True)
    with declared.open(log, index=tmp_path / "index") as bank:
        bank.execute(open_account, "a", owner="ann")
        bank.execute(deposit, "a", amount=50, expected=1)
        bank.execute(deposit, "b", amount=7, id="once")
        assert bank.execute(deposit, "b", amount=7, id="once").repeated
        with pytest.raises(Rejected):
            bank.execute(withdraw, "b", amount=8)
        done = bank.execute(withdraw, "a", amount=20)
        assert bank.state("a", at=done.position).value == Account("ann", 30, 3)
        becomes(log, name, told(bank, iter("ab")))
        records = list(log.read(f"{name}.state"))
        assert [r.header("tailrace.version") for r in records if r.key == b"a"] == [
            b"1",
            b"2",
            b"3",
        ]
        assert log.topic_config(f"{name}.state")["cleanup.policy"] == "compact"
    # Another process begins where this one ended, whatever became of the index.
    with declared.open(log, index=tmp_path / "other") as bank:
        assert bank.execute(deposit, "a", amount=1).version == 4
        becomes(log, name, told(bank, iter("ab")))


def test_states_that_nobody_published_are_written_first(
    log: Log, name: str, tmp_path: Path
) -> None:
    with declare(name).open(log, index=tmp_path / "index") as bank:
        for stream in "abc":
            bank.execute(deposit, stream, amount=1)
    published = declare(name, publish=True)
    with published.open(log, index=tmp_path / "index") as bank:
        becomes(log, name, told(bank, iter("abc")))
        bank.execute(deposit, "a", amount=1)
    with declare(name).open(log, index=tmp_path / "index") as bank:  # for a while without
        bank.execute(deposit, "b", amount=1)
        bank.execute(deposit, "d", amount=1)
        assert table(log, name) != told(bank, iter("abcd"))
    before = len(list(log.read(f"{name}.state")))
    with published.open(log, index=tmp_path / "index") as bank:
        becomes(log, name, told(bank, iter("abcd")))
        # Only of the streams that changed: "b" and "d".
        assert len(list(log.read(f"{name}.state"))) == before + 2


@dataclass(frozen=True, slots=True)
class Put:
    text: str


@dataclass(frozen=True, slots=True)
class Closed:
    pass


@dataclass(frozen=True, slots=True)
class Note:
    text: str


def notes(name: str) -> Events[Note]:
    declared = tr.events(name, Put | Closed, state=Note, partitions=1, publish=True)

    @declared.evolve
    def note(state: Note | None, event: object) -> Note | None:
        match event:
            case Put(text):
                return Note(text)
            case Closed():
                return None
        raise TypeError(event)

    return declared


def test_a_stream_whose_state_is_none_leaves_the_table(log: Log, name: str, tmp_path: Path) -> None:
    with notes(name).open(log, index=tmp_path / "index") as board:
        board.append("n", [Put("one")])
        becomes(log, name, {"n": {"text": "one"}})
        done = board.append("n", [Put("two"), Closed()])
        assert (done.version, done.state) == (3, None)
        becomes(log, name, {"n": None})
        assert board.append("n", [Put("three")]).version == 4
        becomes(log, name, {"n": {"text": "three"}})


@dataclass
class Numbered:
    stream: str = ""


def test_states_without_columns_cannot_be_published() -> None:
    for state in (int, Numbered):
        with pytest.raises(EventsDeclarationError) as wrong:
            tr.events("notes", Put | Closed, state=state, publish=True)
        assert "cannot be published" in wrong.value.message
        assert "test_published_states.py" in wrong.value.detail


def test_a_topic_that_is_no_table_of_states_is_refused(log: Log, name: str, tmp_path: Path) -> None:
    log.create_topic(f"{name}.state", 1, {"cleanup.policy": "delete"})
    with pytest.raises(TailraceError) as wrong, notes(name).open(log, index=tmp_path / "index"):
        pass
    assert (wrong.value.code, "no table of the states" in wrong.value.message) == (
        "events-differ",
        True,
    )


def test_a_state_that_cannot_be_in_the_table_is_not_decided(
    log: Log, name: str, tmp_path: Path
) -> None:
    with notes(name).open(log, index=tmp_path / "index") as board:
        log.alter_topic(f"{name}.state", {"max.message.bytes": "5000"})
    with notes(name).open(log, index=tmp_path / "index") as board:
        with pytest.raises(EventsTooLargeError) as wrong:
            board.append("n", [Put("x" * 4500)])
        assert f"{name}.state" in wrong.value.detail or wrong.value.message.startswith("the events")
        assert board.append("n", [Put("short")]).version == 1
        becomes(log, name, {"n": {"text": "short"}})


def test_a_state_that_is_no_json_fails_its_command_alone(
    log: Log, name: str, tmp_path: Path
) -> None:
    declared = tr.events(name, Put | Closed, state=Note, partitions=1, publish=True)

    @declared.evolve
    def note(state: Note | None, event: object) -> Note | None:
        return Note(object()) if isinstance(event, Closed) else Note("fine")  # type: ignore[arg-type]

    with declared.open(log, index=tmp_path / "index") as board:
        with pytest.raises(CommandResultError) as wrong:
            board.append("n", [Closed()])
        assert "cannot be written as JSON" in wrong.value.message
        assert board.append("n", [Put("x")]).version == 1
