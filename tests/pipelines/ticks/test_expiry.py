"""What can no longer change leaves the state, and no number with it.

The twin of a view that forgets is the same view that does not; late rows are kept from both.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace as tr
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import View, windows
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import Graph, TableInput, TickContext
from tailrace.pipelines.engine.operators.join import Join
from tailrace.testing.state import MemoryStates

TIMESTAMP = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("at", TIMESTAMP), ("n", pa.int64())])  # fmt: skip
CLICKS = TableInput("clicks", "clicks", SCHEMA, kind="stream", time="at")
VIEWS = TableInput("searches", "searches", SCHEMA, kind="stream", time="at")
START = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = 20


def windowed(window: windows.Window) -> View:
    return windows.windowed(
        "w", "clicks", time="at", window=window, key="kind",
        select={"rows": "count(*)", "total": "sum(n)", "most": "max(n)", "kinds": "count(DISTINCT n)"},
    )  # fmt: skip


DECLARED = {
    "tumbling": windowed(windows.tumbling("1 minute")),
    "hopping": windowed(windows.hopping("1 minute", every="20 seconds")),
    "cumulative": windowed(windows.cumulative("1 minute", step="15 seconds")),
    "session": windowed(windows.session("30 seconds")),
    "sliding": windowed(windows.sliding("50 seconds", row="id")),
    "SQL tumbling": tr.view(
        "w", "SELECT kind, window.start s, count(*) c FROM clicks GROUP BY kind, window(at, '1 minute')",
        key=["kind", "s"],
    ),
    "SQL hopping": tr.view(
        "w",
        "SELECT kind, window.start s, count(*) c FROM clicks "
        "GROUP BY kind, window(at, '1 minute', '20 seconds')",
        key=["kind", "s"],
    ),
    "SQL session": tr.view(
        "w",
        "SELECT kind, session_window.start s, session_window.end e, sum(n) c FROM clicks "
        "GROUP BY kind, session_window(at, '30 seconds')",
        key=["kind", "s", "e"],
    ),
    "truncated": tr.view(
        "w", "SELECT kind, date_trunc('MINUTE', at) m, count(*) c FROM clicks GROUP BY kind, 2",
        key=["kind", "m"],
    ),
    "windows of windows": tr.view(
        "w",
        "SELECT window(s, '2 minutes').start AS s2, max(c) AS most FROM (SELECT window.start s, "
        "kind, count(*) c FROM clicks GROUP BY kind, window(at, '30 seconds')) t "
        "GROUP BY window(s, '2 minutes')",
        key="s2",
    ),
    "interval join": tr.view(
        "w",
        "SELECT a.id AS a, b.id AS b, b.at AS at, a.n + b.n AS n FROM searches a JOIN clicks b ON a.kind = b.kind "
        "AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND",
        key=["a", "b"],
    ),
    "interval join as a bag": tr.view(
        "w",
        "SELECT a.kind, b.at FROM searches a JOIN clicks b ON a.kind = b.kind "
        "AND b.at > a.at - INTERVAL '10' SECOND AND a.at >= b.at - INTERVAL '40' SECOND",
    ),
    "interval join, counted": tr.view(
        "w",
        "SELECT a.id AS a, a.at AS at, count(*) AS clicks FROM searches a JOIN clicks b "
        "ON a.kind = b.kind AND b.at >= a.at AND b.at < a.at + INTERVAL '40' SECOND GROUP BY a.id, a.at",
        key=["a", "at"],
    ),
}  # fmt: skip

# Joins that report rows without a partner, and those made of them.
OUTER = {
    "left interval join": tr.view(
        "o1",
        "SELECT a.id AS a, a.at AS at, b.id AS b FROM searches a LEFT JOIN clicks b "
        "ON a.kind = b.kind AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND",
    ),
    "right interval join": tr.view(
        "o2",
        "SELECT a.id AS a, b.at AS at, b.id AS b FROM searches a RIGHT JOIN clicks b "
        "ON a.kind = b.kind AND b.at - a.at < INTERVAL '40' SECOND AND b.at >= a.at",
    ),
    "full interval join": tr.view(
        "o3",
        "SELECT a.id AS a, b.id AS b, coalesce(b.at, a.at) AS at FROM searches a FULL JOIN clicks b "
        "ON a.kind = b.kind AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND",
    ),
    "left interval join, counted": tr.view(
        "o4",
        "SELECT a.id AS a, a.at AS at, count(b.id) AS clicks FROM searches a LEFT JOIN clicks b "
        "ON a.kind = b.kind AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND GROUP BY a.id, a.at",
        key=["a", "at"],
    ),
    "without a partner": tr.view(
        "o5",
        "SELECT a.id AS a, a.at AS at FROM searches a WHERE NOT EXISTS (SELECT 1 FROM clicks b "
        "WHERE a.kind = b.kind AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND)",
        key="a",
    ),
    "with a partner": tr.view(
        "o6",
        "SELECT a.id AS a, a.at AS at FROM searches a WHERE EXISTS (SELECT 1 FROM clicks b "
        "WHERE a.kind = b.kind AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND)",
        key="a",
    ),
    "windows side by side": tr.view(
        "o7",
        "SELECT coalesce(a.s, b.s) AS s, coalesce(a.kind, b.kind) AS kind, a.n AS searches, b.n AS clicks FROM "
        "(SELECT kind, window.start s, count(*) n FROM searches GROUP BY kind, window(at, '1 minute')) a "
        "FULL JOIN "
        "(SELECT kind, window.start s, count(*) n FROM clicks GROUP BY kind, window(at, '1 minute')) b "
        "ON a.kind <=> b.kind AND a.s = b.s",
        key=["s", "kind"],
    ),
    "unmatched when the window closes": tr.view(
        "o8",
        "SELECT a.id AS a, a.at AS at, b.id AS b FROM searches a LEFT JOIN clicks b "
        "ON a.kind = b.kind AND b.at BETWEEN a.at AND a.at + INTERVAL '40' SECOND "
        "WHERE b.id IS NOT NULL OR a.at < watermark('searches', 'clicks') - INTERVAL '40' SECOND",
    ),
}  # fmt: skip

Event = tuple[str, str | None, int, int]  # topic, kind, seconds, n
# Rows are just not too late (so many seconds after the horizon), or the newest so far.
DRAWN = st.tuples(
    st.sampled_from(["clicks", "searches"]),
    st.sampled_from(["a", "b", None]),
    st.sampled_from(["late", "late", "new"]),
    st.integers(0, 25),
    st.integers(0, 5),
)
TICKS = st.lists(st.lists(DRAWN, min_size=1, max_size=6), min_size=4, max_size=12)


class Kept:
    """Views over ticks, and what they show."""

    def __init__(self, *views: View, forgets: bool) -> None:
        self.graph = compile_views(views, [CLICKS, VIEWS])
        self.states = MemoryStates()
        self.shown: dict[tuple[str, bytes], Any] = {}
        self.forgets = forgets

    def tick(self, number: int, events: list[tuple[int, Event]], horizon: int) -> None:
        inputs = {}
        for topic in ("clicks", "searches"):
            rows = [(i, e) for i, e in events if e[0] == topic]
            inputs[topic] = pa.table(
                {
                    "id": pa.array([i for i, _ in rows], pa.int64()),
                    "kind": pa.array([e[1] for _, e in rows], pa.string()),
                    "at": pa.array([START + timedelta(seconds=e[2]) for _, e in rows], TIMESTAMP),
                    "n": pa.array([e[3] for _, e in rows], pa.int64()),
                },
                schema=SCHEMA,
            )
        at = int((START + timedelta(seconds=horizon)).timestamp() * 1000)
        known = dict.fromkeys(inputs, ("at", at)) if self.forgets else {}
        mark = int((START + timedelta(seconds=horizon + KEEP)).timestamp() * 1000)
        context = TickContext(number, 0, dict.fromkeys(inputs, mark), known)
        for name, changes in run_tick(self.graph, inputs, self.states, context).items():
            for key, value in record_pairs(self.graph.views[name], changes):
                if value is None:
                    del self.shown[name, key]
                else:
                    self.shown[name, key] = orjson.loads(value)["row"]

    def rows(self) -> int:
        return sum(len(state.rows) for state in self.states.states.values())


def forgotten_and_kept(views: Iterable[View], ticks: list[Any]) -> None:
    """The views show the same whether they forget or not."""
    forgetful, faithful = Kept(*views, forgets=True), Kept(*views, forgets=False)
    number, newest = 0, 0
    for drawn in ticks:
        horizon = newest - KEEP
        events: list[tuple[int, Event]] = []
        for topic, kind, when, seconds, n in drawn:
            number += 1
            at = horizon + seconds if when == "late" else newest + seconds
            events.append((number, (topic, kind, at, n)))
        for kept in (forgetful, faithful):
            kept.tick(number, events, horizon)
        # What this tick's rows say of the time counts from the next one on.
        newest = max([newest, *(event[2] for _, event in events)])
        assert forgetful.shown == faithful.shown


@pytest.mark.parametrize("name", DECLARED)
@given(ticks=TICKS)
def test_forgetting_changes_no_number(name: str, ticks: list[Any]) -> None:
    forgotten_and_kept([DECLARED[name]], ticks)


@pytest.mark.thorough
@pytest.mark.parametrize("name", OUTER)
@given(ticks=TICKS)
def test_forgetting_changes_no_row_without_a_partner(name: str, ticks: list[Any]) -> None:
    forgotten_and_kept([OUTER[name]], ticks)


def test_outer_joins_forget_and_show_the_same() -> None:
    chance = random.Random(4)
    ticks = [
        [
            (
                chance.choice(["clicks", "searches"]),
                chance.choice(["a", "b", None]),
                chance.choice(["late", "late", "new"]),
                chance.randint(0, 25),
                chance.randint(0, 5),
            )
            for _ in range(6)
        ]
        for _ in range(12)
    ]
    forgotten_and_kept(OUTER.values(), ticks)


@pytest.mark.parametrize("name", [*DECLARED, "outer joins"])
def test_state_does_not_grow_with_time(name: str) -> None:
    kept = Kept(*([DECLARED[name]] if name in DECLARED else OUTER.values()), forgets=True)
    held = []
    for tick in range(40):
        now = tick * 60
        events = [
            (10 * tick + i, (topic, kind, now + 5 * i, i))
            for i, (topic, kind) in enumerate(
                (topic, kind) for topic in ("clicks", "searches") for kind in ("a", "b", None)
            )
        ]
        kept.tick(tick, events, now - KEEP)
        held.append(kept.rows())
    assert max(held[20:]) <= max(held[:20]) < 15 * held[0], held


def test_a_join_forgets_also_in_ticks_that_bring_rows_of_one_side() -> None:
    kept = Kept(DECLARED["interval join, counted"], forgets=True)
    held = []
    for tick in range(40):
        topic = "clicks" if tick % 2 else "searches"
        kept.tick(tick, [(tick, (topic, f"kind {tick}", tick * 60, 1))], tick * 60 - KEEP)
        held.append(kept.rows())
    assert max(held[20:]) <= max(held[:20]), held


@pytest.mark.parametrize(
    "sql",
    [
        # Nothing bounds the rows of a key, or what bounds them is no time of the stream.
        "SELECT kind, count(*) c FROM clicks GROUP BY kind",
        "SELECT kind, date_trunc('MINUTE', at) + INTERVAL '1' MONTH AS window_end, count(*) c "
        "FROM clicks GROUP BY kind, 2",
        "SELECT a.id AS a, b.id AS b FROM searches a JOIN clicks b ON a.kind = b.kind",
        "SELECT a.id AS a, b.id AS b FROM searches a JOIN clicks b ON a.kind = b.kind AND b.at >= a.at",
        "SELECT a.id AS a, b.id AS b FROM searches a JOIN clicks b ON a.kind = b.kind "
        "AND b.at BETWEEN a.at AND a.at + INTERVAL '1' MONTH",
    ],
)
def test_without_a_proof_nothing_is_forgotten(sql: str) -> None:
    graph = compile_views([tr.view("w", sql)], [CLICKS, VIEWS])
    assert not _expiring(graph)


def test_a_column_called_window_end_proves_nothing() -> None:
    """It lies before the rows' times: rows of its group may still come when it has passed."""
    sql = "SELECT at - INTERVAL '1' HOUR AS window_end, count(*) c FROM clicks GROUP BY 1"
    view = tr.view("w", sql, key="window_end")
    forgetful = Kept(view, forgets=True)
    for tick in range(3):
        forgetful.tick(tick, [(tick, ("clicks", "a", 100, 1))], 50)
    assert [row["c"] for row in forgetful.shown.values()] == [3]


def test_joins_that_forget_at_other_times_are_not_shared() -> None:
    def within(seconds: int) -> View:
        return tr.view(
            f"w{seconds}",
            "SELECT a.id AS a, b.id AS b, b.at AS at FROM searches a JOIN clicks b ON a.kind = b.kind "
            f"AND b.at BETWEEN a.at AND a.at + INTERVAL '{seconds}' SECOND",
            key=["a", "b"],
        )

    one = compile_views([within(10)], [CLICKS, VIEWS])
    both = compile_views([within(10), within(20)], [CLICKS, VIEWS])
    assert [o.kind for o in _expiring(one)].count("join") == 1
    assert [o.kind for o in _expiring(both)].count("join") == 2


def _expiring(graph: Graph) -> list[Any]:
    return [
        node.operator for node in graph.nodes if getattr(node.operator, "expiry", None) is not None
    ]


def test_a_join_says_when_its_rows_are_over() -> None:
    graph = compile_views([DECLARED["interval join"]], [CLICKS, VIEWS])
    join = next(o for o in _expiring(graph) if isinstance(o, Join))
    assert "until" in join.describe()
    assert "until" not in replace(join, expiry=None).describe()
