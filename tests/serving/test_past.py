"""The time machine: earlier ticks folded from the changelog, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.serving.errors import HistoryGoneError, UnknownViewError
from tailrace.serving.past import TimeMachine
from tailrace.testing.changelogs import MemoryLog, TickWriter, random_project

FOREVER = 1 << 60


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 12), st.data())
def test_every_tick_is_folded_as_it_was(seed: int, ticks: int, data: st.DataObject) -> None:
    writer = random_project(seed, ticks, keys=8, changes=6)
    machine = TimeMachine(writer.log, "shop")
    number = data.draw(st.integers(1, ticks))
    row = machine.at_tick(number)
    assert row.tick == number
    for view in ("totals", "orders"):
        expected = writer.history[number][view]
        # Nothing was compacted, so age does not matter: the records themselves prove it.
        for kept in (0, FOREVER):
            past = machine.view(view, row, kept_ms=kept, limit=1000)
            assert past.rows == [expected[key] for key in sorted(expected)]
    assert machine.at_time(row.ts_ms).tick == number


def test_a_source_position_finds_the_first_tick_that_reached_it() -> None:
    writer = TickWriter(MemoryLog())
    writer.declare("v", ["id"], [("id", "BIGINT")])
    for number in range(1, 20):
        writer.tick(
            {"v": [({"id": number}, {"id": number})]},
            positions={"shop": f"pg:shop:{number * 16:016X}"},
        )
    machine = TimeMachine(writer.log, "shop")
    assert machine.at_position("pg:shop:0000000000000041").tick == 5
    assert machine.at_position("tick:shop:7").tick == 7
    span = machine.span()
    assert span is not None
    assert (span[0].tick, span[1].tick) == (1, 19)


def test_what_compaction_took_is_refused_unless_the_tick_is_younger() -> None:
    writer = TickWriter(MemoryLog(), partitions=1, now_ms=0)  # long ago
    writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
    for number in range(3):
        writer.tick({"v": [({"id": 1}, {"id": 1, "n": number})]})
    machine = TimeMachine(writer.log, "shop")
    assert machine.view("v", machine.at_tick(1), kept_ms=0).rows == [{"id": 1, "n": 0}]
    writer.log.topics["v"][0].compact()
    with pytest.raises(HistoryGoneError):
        machine.view("v", machine.at_tick(1), kept_ms=0)
    # The broker leaves records alone that are younger than min.compaction.lag.ms.
    machine.view("v", machine.at_tick(3), kept_ms=FOREVER)


def test_a_tick_before_all_and_a_view_that_was_not_yet_are_told_apart() -> None:
    writer = TickWriter(MemoryLog())
    writer.declare("v", ["id"], [("id", "BIGINT")])
    machine = TimeMachine(writer.log, "shop")
    assert machine.span() is None
    with pytest.raises(HistoryGoneError, match="no tick is kept"):
        machine.at_tick(5)
    writer.tick({"v": [({"id": 1}, {"id": 1})]})
    writer.declare("later", ["id"], [("id", "BIGINT")])
    writer.tick({"later": [({"id": 1}, {"id": 1})]})
    with pytest.raises(UnknownViewError):
        machine.view("later", machine.at_tick(1), kept_ms=0)
