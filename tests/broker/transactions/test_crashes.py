"""A crash after every single write, and power cuts that keep files to different moments.

Whatever happens: a transaction is visible in all its partitions or in none, one that was
answered as committed is visible, one that was answered as aborted is not, and none stays
open for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.transactions.conftest import Desk, Place
from tailrace.testing.partitions import Crash
from tailrace.wire.errors import ErrorCode

PLACES: list[Place] = [("a", 0), ("a", 1), ("b", 0)]


@dataclass(frozen=True)
class Step:
    """One transaction: where it writes and how it ends."""

    places: tuple[Place, ...]
    commit: bool


@dataclass
class Story:
    """What a producer did and what it was told."""

    version: int
    number: int = 0
    places: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    told: dict[int, bool] = field(default_factory=dict)

    def live(self, desk: Desk, steps: list[Step]) -> None:
        """Begin anew under the same transactional id and work until the crash."""
        who = desk.init()
        assert who.error is ErrorCode.NONE
        for step in steps:
            self.number += 1
            value = self.number
            self.places[value] = step.places
            if self.version < 2:
                assert desk.add(who, *step.places) is ErrorCode.NONE
            for place in step.places:
                error = desk.produce(who, place, value, implicit=self.version >= 2)
                assert error is ErrorCode.NONE
            answer = desk.end(who, step.commit, version=self.version)
            assert answer.error is ErrorCode.NONE
            self.told[value] = step.commit
            if self.version >= 2:
                who = answer

    def judge(self, desk: Desk) -> None:
        visible = {place: desk.committed(place) for place in PLACES}
        for value, places in self.places.items():
            seen = [value in visible[place] for place in places]
            assert len(set(seen)) == 1, f"half of transaction {value} is visible: {seen}"
            if value in self.told:
                assert seen[0] is self.told[value], f"transaction {value} was told otherwise"
        for place, values in visible.items():
            assert values == sorted(values), f"{place} is out of order"


steps = st.lists(
    st.builds(
        Step,
        st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True).map(tuple),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def end_of(desk: Desk) -> None:
    """Nothing may stay open once the time-out has passed."""
    desk.pass_time(70)
    assert list(desk.partitions.open_transactions()) == []


@pytest.mark.parametrize("version", [0, 2])
def test_kill_after_every_write(version: int) -> None:
    plan = [
        Step((PLACES[0], PLACES[2]), commit=True),
        Step((PLACES[0],), commit=False),
        Step((PLACES[1], PLACES[2]), commit=True),
        Step((PLACES[0], PLACES[1], PLACES[2]), commit=True),
    ]
    crash_after, crashed = 0, True
    while crashed:
        desk, story = Desk(), Story(version)
        desk.start(crash_after)
        try:
            story.live(desk, plan)
            crashed = False
        except Crash:
            crash_after += 1
        desk.start()
        story.judge(desk)
        story.live(desk, plan)
        story.judge(desk)
        end_of(desk)
    assert crash_after > 30, "the plan has fewer writes than it should"


@settings(max_examples=150)
@given(
    version=st.sampled_from([0, 2]),
    lives=st.lists(st.tuples(steps, st.integers(0, 70)), min_size=1, max_size=4),
    data=st.data(),
)
def test_power_cuts_at_any_moment(
    version: int, lives: list[tuple[list[Step], int]], data: st.DataObject
) -> None:
    desk, story = Desk(), Story(version)
    for plan, crash_after in lives:
        try:
            desk.start(crash_after)
            story.live(desk, plan)
        except Crash:
            pass
        desk.disk.cut_power(
            lambda name, synced, written: data.draw(st.integers(synced, written), label=str(name))
        )
    desk.start()
    story.judge(desk)
    end_of(desk)
    story.judge(desk)


@settings(max_examples=100)
@given(
    version=st.sampled_from([0, 2]),
    lives=st.lists(st.tuples(steps, st.integers(0, 50)), min_size=1, max_size=4),
)
def test_kills_without_flush(version: int, lives: list[tuple[list[Step], int]]) -> None:
    desk, story = Desk(flush=False), Story(version)
    for plan, crash_after in lives:
        try:
            desk.start(crash_after)
            story.live(desk, plan)
        except Crash:
            pass
    desk.start()
    story.judge(desk)
    end_of(desk)
    story.judge(desk)
