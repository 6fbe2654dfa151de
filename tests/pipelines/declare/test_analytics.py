"""Rates, rolling figures, comparisons and alerts against plain recomputes."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import View, analytics, windows
from tailrace.pipelines.errors import DeclarationError
from tailrace.testing.ticks import MemoryTables, table

EVENTS = table("shop.public.events", "id BIGINT, kind STRING, at TIMESTAMP, n BIGINT", ["id"])
START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = windows.tumbling("1 minute")

Row = tuple[str, int, int]  # kind, seconds after START, n
TICKS = st.lists(
    st.dictionaries(
        st.integers(1, 8),
        st.none() | st.tuples(st.sampled_from("ab"), st.integers(0, 240), st.integers(0, 9)),
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


def keep(
    views: list[View], ticks: list[dict[int, Row | None]]
) -> tuple[MemoryTables, dict[int, Row]]:
    memory = MemoryTables(compile_views(views, [EVENTS]), shards=2)
    rows: dict[int, Row] = {}
    for tick in ticks:
        for number, row in tick.items():
            if row is None:
                rows.pop(number, None)
                memory.delete(EVENTS.topic, {"id": number})
            else:
                rows[number] = row
                at = START + timedelta(seconds=row[1])
                memory.upsert(EVENTS.topic, {"id": number, "kind": row[0], "at": at, "n": row[2]})
        memory.tick()
    return memory, rows


@given(TICKS)
@settings(max_examples=30, deadline=None)
def test_a_rate_is_the_total_by_the_time(ticks: list[dict[int, Row | None]]) -> None:
    view = analytics.rate("r", "shop.events", time="at", window=MINUTE, key="kind", of="sum(n)", per="10 seconds")  # fmt: skip
    memory, rows = keep([view], ticks)
    expected: dict[tuple[str, int], int] = {}
    for kind, at, n in rows.values():
        expected[kind, at // 60] = expected.get((kind, at // 60), 0) + n
    assert {
        (row["kind"], (row["window_start"] - START).seconds // 60): (row["total"], row["rate"])
        for row in memory.rows("r")
    } == {place: (total, total / 6) for place, total in expected.items()}


@given(TICKS)
@settings(max_examples=30, deadline=None)
def test_rolling_figures_end_at_every_row(ticks: list[dict[int, Row | None]]) -> None:
    view = analytics.rolling(
        "r", "shop.events", time="at", size="50 seconds", of="n", row="id", key="kind",
        percentiles=[0.5, 0.95],
    )  # fmt: skip
    memory, rows = keep([view], ticks)
    found = {row["id"]: row for row in memory.rows("r")}
    assert found.keys() == rows.keys()
    for number, (kind, at, _) in rows.items():
        inside = [n for k, t, n in rows.values() if k == kind and at - 50 < t <= at]
        row = found[number]
        assert row["rows"] == len(inside)
        assert math.isclose(row["mean"], statistics.mean(inside))
        assert row["p50"] == statistics.median(inside)
        assert min(inside) <= row["p95"] <= max(inside)


@given(TICKS)
@settings(max_examples=30, deadline=None)
def test_a_window_stands_beside_the_earlier_one(ticks: list[dict[int, Row | None]]) -> None:
    counts = windows.windowed("counts", "shop.events", time="at", window=MINUTE, key="kind", select={"rows": "count(*)"})  # fmt: skip
    view = analytics.compared("c", counts, columns="rows", against="2 minutes", key="kind")
    loud = analytics.alert("loud", counts, change="rows", against="2 minutes", by=0.5, key="kind")
    memory, rows = keep([counts, view, loud], ticks)
    totals: dict[tuple[str, int], int] = {}
    for kind, at, _ in rows.values():
        totals[kind, at // 60] = totals.get((kind, at // 60), 0) + 1
    found = {
        (row["kind"], (row["window_start"] - START).seconds // 60): row for row in memory.rows("c")
    }
    assert found.keys() == totals.keys()
    alarming = set()
    for (kind, minute), total in totals.items():
        before = totals.get((kind, minute - 2))
        row = found[kind, minute]
        assert (row["rows"], row["rows_before"]) == (total, before)
        assert row["rows_change"] == (None if before is None else total - before)
        if before is None:
            assert row["rows_growth"] is None
        else:
            assert math.isclose(row["rows_growth"], total / before - 1)
            if abs(total / before - 1) > 0.5:
                alarming.add((kind, minute))
    assert {
        (row["kind"], (row["window_start"] - START).seconds // 60) for row in memory.rows("loud")
    } == alarming


def test_an_alert_on_a_figure_comes_and_goes() -> None:
    totals = View("totals", "SELECT kind, sum(n) AS total FROM shop.events GROUP BY kind")
    high = analytics.alert("high", totals, when="total > 10", key="kind")
    memory, _ = keep([totals, high], [{1: ("a", 0, 9), 2: ("b", 0, 3)}])
    assert memory.rows("high") == []
    memory.upsert(EVENTS.topic, {"id": 3, "kind": "a", "at": START, "n": 4})
    memory.tick()
    assert memory.rows("high") == [{"kind": "a", "total": 13}]
    memory.delete(EVENTS.topic, {"id": 1})
    memory.tick()
    assert memory.rows("high") == []


def test_absence_is_noticed_without_a_row_arriving() -> None:
    quiet = analytics.alert("quiet", "shop.events", absent="10 minutes", time="at", key="kind")
    dead = analytics.alert("dead", "shop.events", absent="10 minutes", time="at")
    memory = MemoryTables(compile_views([quiet, dead], [EVENTS]))
    memory.now_ms = int(START.timestamp() * 1000)
    memory.tick()
    assert len(memory.rows("dead")) == 1  # never anything at all
    memory.upsert(EVENTS.topic, {"id": 1, "kind": "a", "at": START, "n": 1})
    memory.upsert(EVENTS.topic, {"id": 2, "kind": "b", "at": START + timedelta(minutes=5), "n": 1})
    memory.tick()
    assert memory.rows("quiet") == memory.rows("dead") == []

    def after(minutes: int) -> list[str]:
        memory.now_ms = int((START + timedelta(minutes=minutes)).timestamp() * 1000)
        memory.tick()
        return sorted(row["kind"] for row in memory.rows("quiet"))

    assert after(11) == ["a"]
    assert memory.rows("dead") == []
    assert after(16) == ["a", "b"]
    assert len(memory.rows("dead")) == 1
    late = {"id": 3, "kind": "a", "at": START + timedelta(minutes=16), "n": 1}
    memory.upsert(EVENTS.topic, late)
    assert after(17) == ["b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs one rule"),
        ({"when": "n > 1", "absent": "1 minute"}, "needs one rule and has 2"),
        ({"absent": "1 minute"}, "time column"),
        ({"change": "n"}, "how much change"),
    ],
)
def test_rules_that_say_too_little_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message) as refused:
        analytics.alert("x", "shop.events", **given)
    assert "test_analytics.py" in (refused.value.detail or "")
    with pytest.raises(DeclarationError, match="one length"):
        analytics.rate("x", "shop.events", time="at", window=windows.session("1 minute"))
