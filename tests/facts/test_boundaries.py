"""Conditions on tags: courses and students, over several streams of one partition."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace as tr
from tailrace.client.errors import BrokerUnavailableError
from tailrace.clock import SYSTEM
from tailrace.errors import UsageError
from tailrace.facts.errors import (
    AppendConditionError,
    OwnerMissingError,
    Rejected,
    Reserved,
    VersionConflictError,
    from_parts,
    to_parts,
)
from tailrace.facts.query import Item, Query, tags_of


@dataclass(frozen=True)
class Created:
    course: str
    seats: int


@dataclass(frozen=True)
class Enrolled:
    course: str
    student: str


@dataclass(frozen=True)
class Nothing:
    events: int = 0


school = tr.events(
    "school", Created | Enrolled, state=Nothing, tags=("course", "student"), partitions=1
)


@school.evolve
def evolve(state: Nothing, event: object) -> Nothing:
    match event:
        case Created() | Enrolled():
            return Nothing(state.events + 1)
    raise TypeError(event)


def test_a_seat_is_given_once_however_many_want_it(tmp_path: Path) -> None:
    with tr.open(tmp_path / "log") as log, school.open(log) as opened:
        opened.append("c1", [Created("c1", 3)])
        opened.append("c2", [Created("c2", 3)])
        taken: list[str] = []
        full: list[str] = []

        def enrol(student: str) -> None:
            while True:
                seats = tr.matching(course="c1")
                busy = seats | tr.matching(Enrolled, student=student)
                read = opened.read(busy)
                enrolled = [e for e in read.events if isinstance(e, Enrolled) and e.course == "c1"]
                if len(enrolled) >= 3:
                    full.append(student)
                    return
                event = Enrolled("c1", student)
                try:
                    opened.append(f"{student}/c1", [event], unless=busy, after=read.position)
                except AppendConditionError as conflict:
                    assert isinstance(conflict, VersionConflictError)
                    continue
                taken.append(student)
                return

        threads = [threading.Thread(target=enrol, args=(f"s{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(taken), len(full)) == (3, 5)
        found = opened.read(tr.matching(Enrolled, course="c1"))
        assert sorted(e.student for e in found.events) == sorted(taken)
        # Another course is no conflict, and what was read before is none.
        opened.append("s9/c2", [Enrolled("c2", "s9")], unless=tr.matching(student="s9"))
        with pytest.raises(AppendConditionError):
            opened.append("s9/c2", [Enrolled("c2", "s9")], unless=tr.matching(student="s9"))
        with pytest.raises(UsageError):
            opened.read(tr.matching(teacher="t1"))
    # The tags are in the index, which can be read again.
    index = next((tmp_path / "log" / ".events").iterdir())
    for file in (index / "0").iterdir():
        file.unlink()
    with tr.open(tmp_path / "log") as log, school.open(log) as opened:
        found = opened.read(tr.matching(Enrolled, course="c1"))
        assert sorted(e.student for e in found.events) == sorted(taken)
        with pytest.raises(AppendConditionError):
            opened.append("x", [Enrolled("c2", "s9")], unless=tr.matching(student="s9"))


_VALUES = st.sampled_from(["a", "b", "c"])
_EVENTS = st.lists(
    st.tuples(st.sampled_from(["Created", "Enrolled"]), _VALUES, _VALUES), max_size=8
)


@given(_EVENTS, st.lists(st.tuples(st.booleans(), st.booleans(), _VALUES), min_size=1, max_size=3))
def test_a_query_is_types_or_tags_and_items_or(
    events: list[tuple[str, str, str]], items: list[tuple[bool, bool, str]]
) -> None:
    made: list[Query] = []
    for typed, tagged, value in items:
        kinds = (Enrolled,) if typed or not tagged else ()
        made.append(tr.matching(*kinds, **({"course": value} if tagged else {})))
    query = made[0]
    for other in made[1:]:
        query = query | other
    for kind, course, student in events:
        tags = tags_of({"course": course, "student": student}, ("course", "student"))
        naive = any(
            (not (typed or not tagged) or kind == "Enrolled") and (not tagged or course == value)
            for typed, tagged, value in items
        )
        assert query.matches(kind, tags) == naive


def test_an_empty_query_means_nothing_and_is_refused() -> None:
    with pytest.raises(UsageError):
        tr.matching()
    assert not Item(frozenset({"Other"}), ()).matches("Created", [])


def test_an_owner_ends_though_commands_come_while_a_batch_is_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tr.open(tmp_path / "log") as log:
        opened = school.open(log)
        owner = opened._owners._owners[0]  # type: ignore[attr-defined]
        refused: list[BaseException] = []

        def late() -> None:
            try:
                opened.append("c2", [Created("c2", 3)])
            except OwnerMissingError as error:
                refused.append(error)

        caller = threading.Thread(target=late)

        def reached(step: str) -> None:
            if step == "events.sent" and not caller.is_alive():
                caller.start()
                while owner._queue.empty():
                    SYSTEM.sleep(0.001)
                owner._stopping.set()

        monkeypatch.setattr("tailrace.facts.owner.reached", reached)
        opened.append("c1", [Created("c1", 3)])
        owner._thread.join(20)
        assert not owner._thread.is_alive()
        opened.close()
        caller.join(20)
        assert len(refused) == 1


def test_an_error_of_an_owner_elsewhere_is_no_refusal_of_its_command() -> None:
    """A refusal is what a command said, whatever its code; an error of the log is not one."""
    for told in (
        Rejected("no", code="version-conflict"),
        Rejected("no"),
        Reserved("taken"),
        BrokerUnavailableError("the log is away"),
        VersionConflictError("at 3"),
    ):
        back = from_parts(to_parts(told))
        assert (back.code, back.message) == (told.code, told.message)
        assert isinstance(back, Rejected) == isinstance(told, Rejected)
        assert isinstance(back, Reserved) == isinstance(told, Reserved)
