"""Reservations: who has a key, who waits, and what time does to both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace as tr
from tailrace.client.log import LocalLog
from tailrace.errors import TailraceError, UsageError
from tailrace.facts.reservations import (
    Book,
    Claimed,
    Confirmed,
    Expired,
    Queued,
    Released,
    Reservations,
    Seats,
)
from tailrace.testing.moved_clock import MovedClock

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def until(told: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def events_of(book: Book, key: str) -> list[object]:
    return [fact.event for fact in book.opened.history(key)]


def test_a_hold_that_runs_out_is_written_once_also_by_the_next_start(tmp_path: Path) -> None:
    names = tr.reservations("names", hold="10 minutes", partitions=2)
    clock = MovedClock()
    with LocalLog(tmp_path / "log", clock=clock) as log:
        with names.open(log) as book:
            first = book.claim("ann", holder="u1")
            assert first.status == "claimed"
            assert first.new
            found = book.get("ann")
            assert found is not None
            assert found.until == first.until
            book.claim("bob", holder="u1")
            book.confirm("bob", holder="u1")
        clock.advance(9 * MINUTE)
        with names.open(log) as book:
            assert book.get("ann") is not None
        clock.advance(2 * MINUTE)
        for _ in range(2):  # a second start finds nothing due
            with names.open(log) as book:
                assert book.get("ann") is None
                until(lambda: events_of(book, "ann")[-1] == Expired("u1"))
            for cache in tmp_path.rglob("due.json"):
                cache.unlink()
        with names.open(log) as book:
            assert [type(each) for each in events_of(book, "ann")] == [Claimed, Expired]
            bob = book.get("bob")
            assert bob is not None
            assert (bob.status, bob.until) == ("confirmed", None)
            with pytest.raises(tr.Rejected) as late:
                book.confirm("ann", holder="u1")
            assert late.value.code == "expired"
            book.claim("ann", holder="u2")
            with pytest.raises(tr.Reserved):
                book.confirm("ann", holder="u1")


def test_the_last_seat_is_given_once_and_a_dropped_one_to_the_next(tmp_path: Path) -> None:
    seats = tr.reservations("seats", capacity=3, partitions=1)
    with tr.open(tmp_path / "log") as log, seats.open(log) as book:
        got: list[str] = []

        def claim(holder: str) -> None:
            try:
                book.claim("course", holder=holder)
            except tr.Reserved:
                return
            got.append(holder)

        threads = [threading.Thread(target=claim, args=(f"s{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 3
        assert book.claim("course", holder=got[0]).new is False  # once is enough
        assert book.claim("course", holder="late", wait=True).status == "waiting"
        assert book.claim("course", holder="later", wait=True).status == "waiting"
        assert book.release("course", holder=got[0])
        assert not book.release("course", holder=got[0])
        found = book.get("course")
        assert found is not None
        assert sorted(found.holders) == sorted([*got[1:], "late"])  # threads hear in any order
        assert (found.holders[-1], found.waiting) == ("late", ("later",))
        assert book.release("course", holder="later")  # leaves the line
        found = book.get("course")
        assert found is not None
        assert found.waiting == ()


def test_two_keys_are_held_together_or_not_at_all(tmp_path: Path) -> None:
    names = tr.reservations("names", partitions=2)
    mails = tr.reservations("mails", partitions=2)
    with tr.open(tmp_path / "log") as log, names.open(log) as n, mails.open(log) as m:
        m.claim("ann@x.org", holder="somebody")
        with (
            pytest.raises(tr.Reserved),
            tr.claim_all((n, "ann"), (m, "ann@x.org"), holder="u1"),
        ):
            raise AssertionError("not to be reached")
        assert n.get("ann") is None
        n.claim("mine", holder="u1")
        with (
            pytest.raises(ValueError, match="no"),
            tr.claim_all((n, "mine"), (m, "a@x.org"), holder="u1"),
        ):
            raise ValueError("no")
        assert n.get("mine") is not None  # held before, and still
        assert m.get("a@x.org") is None
        with tr.claim_all((n, "ann"), (m, "a@x.org"), holder="u1") as claims:
            assert [each.status for each in claims] == ["claimed", "claimed"]
        for book, key in ((n, "ann"), (m, "a@x.org")):
            found = book.get(key)
            assert found is not None
            assert (found.holder, found.status) == ("u1", "confirmed")


def test_decisions_are_judged_without_a_log() -> None:
    seats = tr.reservations("seats", hold="10 minutes")
    held = Claimed("u1", NOON + 10 * MINUTE)
    seats.given().when("claim", holder="u1", at=NOON).then(held).when(
        "confirm", holder="u1", at=NOON
    ).then(Confirmed("u1"))
    seats.given(held).when("claim", holder="u2", at=NOON).rejected("reserved")
    seats.given(held).when("confirm", holder="u1", at=NOON + 10 * MINUTE).rejected("expired")
    seats.given(held, Queued("u2")).when("release", holder="u1", at=NOON).then(
        Released("u1"), Claimed("u2", NOON + 10 * MINUTE)
    )
    later = NOON + 15 * MINUTE  # nobody has written the end of the hold yet
    seats.given(held, Queued("u2")).when("claim", holder="u3", at=later).rejected("reserved")
    seats.given(held).when("claim", holder="u3", at=later).then(
        Expired("u1"), Claimed("u3", later + 10 * MINUTE)
    )


def test_what_cannot_be_declared_or_claimed_is_told(tmp_path: Path) -> None:
    for wrong in ({"hold": "0 s"}, {"capacity": 0}):
        with pytest.raises(UsageError):
            tr.reservations("seats", **wrong)  # type: ignore[arg-type]
    with tr.open(tmp_path / "log") as log, tr.reservations("seats").open(log) as book:
        with pytest.raises(UsageError):
            book.claim("a", holder="")
        with pytest.raises(UsageError):
            book.claim("", holder="u1")
        assert book.get("a") is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "wait", "confirm", "release", "expire"]),
        st.sampled_from("abcd"),
        st.integers(0, 7),
    ),
    max_size=30,
)


@given(STEPS, st.integers(1, 3))
def test_never_more_holders_than_seats_and_nobody_waits_beside_a_free_one(
    steps: list[tuple[str, str, int]], capacity: int
) -> None:
    """Beside a naive model: a dict of who holds until when, and a list of who waits."""
    seats: Reservations = tr.reservations("seats", hold="5 minutes", capacity=capacity)
    state, now = Seats(), NOON
    held: dict[str, datetime | None] = {}
    line: list[str] = []

    def fill() -> None:
        while line and len(held) < capacity:
            held[line.pop(0)] = now + 5 * MINUTE

    for what, who, minutes in steps:
        now += minutes * MINUTE
        arguments = {} if what == "expire" else {"holder": who}
        if what == "wait":
            arguments["wait"] = True  # type: ignore[assignment]
        name = "claim" if what == "wait" else what
        outcome = _outcome(seats, state, name, now, arguments)
        before = (dict(held), list(line))
        for each in [each for each, end in held.items() if end is not None and end <= now]:
            del held[each]
        fill()
        good = True
        if name == "claim" and who not in held and who not in line:
            if len(held) < capacity:
                held[who] = now + 5 * MINUTE
            elif what == "wait":
                line.append(who)
            else:
                good = False
        elif name == "confirm":
            good = who in held
            if good:
                held[who] = None
        elif name == "release":
            if who in line:
                line.remove(who)
            held.pop(who, None)
            fill()
        if outcome is None:
            assert not good
            held, line = before
        else:
            assert good
            state = outcome
        assert {each.holder: each.until for each in state.held} == held
        assert list(state.waiting) == line
        assert len(state.held) <= capacity


def _outcome(
    seats: Reservations, state: Seats, name: str, now: datetime, arguments: dict[str, str]
) -> Seats | None:
    function = seats.events.function
    assert function is not None
    try:
        for event in seats.events.commands[name].function(state, at=now, **arguments):
            state = function(state, event)
    except TailraceError:
        return None
    return state
