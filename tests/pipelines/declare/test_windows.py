"""Windowed views against a plain recompute, under late, changed and deleted rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import windows
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.engine.execute import run_tick
from tailrace.pipelines.engine.graph import TableInput, TickContext
from tailrace.pipelines.errors import DeclarationError
from tailrace.testing.state import MemoryStates

EVENTS = TableInput(
    "shop.public.events", "shop.public.events",
    pa.schema([("id", pa.int64()), ("kind", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("n", pa.int64())]),
    ("id",),
)  # fmt: skip
START = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[str, int, int]  # kind, seconds after START, n
TICKS = st.lists(
    st.dictionaries(
        st.integers(1, 8),
        st.none() | st.tuples(st.sampled_from("ab"), st.integers(-200, 400), st.integers(0, 9)),
        max_size=5,
    ),
    min_size=1,
    max_size=5,
)


def keep(view: Any, ticks: list[dict[int, Row | None]]) -> list[dict[str, Any]]:
    """What a view shows after these ticks of upserts."""
    graph = compile_views([view], [EVENTS])
    states = MemoryStates()
    shown: dict[bytes, dict[str, Any]] = {}
    for number, tick in enumerate(ticks, 1):
        ids = list(tick)
        rows = [tick[i] for i in ids]
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "kind": pa.array([r and r[0] for r in rows], pa.string()),
                "at": pa.array([r and START + timedelta(seconds=r[1]) for r in rows], pa.timestamp("us", tz="UTC")),
                "n": pa.array([r and r[2] for r in rows], pa.int64()),
                "__key": pa.array([b"%d" % i for i in ids], pa.binary()),
                "__deleted": pa.array([r is None for r in rows], pa.bool_()),
            }
        )  # fmt: skip
        out = run_tick(graph, {EVENTS.topic: table}, states, TickContext(number, 0))
        for name, changes in out.items():
            for key, value in record_pairs(graph.views[name], changes):
                if value is None:
                    del shown[key]
                else:
                    shown[key] = orjson.loads(value)["row"]
    return sorted(shown.values(), key=orjson.dumps)


def last(ticks: list[dict[int, Row | None]]) -> dict[int, Row]:
    rows: dict[int, Row | None] = {}
    for tick in ticks:
        rows |= tick
    return {i: row for i, row in rows.items() if row is not None}


def text(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat() + "Z"


def by_windows(
    ticks: list[dict[int, Row | None]], of: Callable[[int], list[tuple[int, int]]]
) -> list[dict[str, Any]]:
    found: dict[tuple[str, int, int], list[int]] = {}
    for kind, at, n in last(ticks).values():
        for start, end in of(at):
            found.setdefault((kind, start, end), []).append(n)
    return sorted(
        (
            {"kind": kind, "window_start": text(start), "window_end": text(end), "rows": len(ns), "total": sum(ns)}
            for (kind, start, end), ns in found.items()
        ),
        key=orjson.dumps,
    )  # fmt: skip


def declared(window: windows.Window) -> Any:
    return windows.windowed(
        "w", "shop.events", time="at", window=window, key="kind",
        select={"rows": "count(*)", "total": "sum(n)"},
    )  # fmt: skip


@given(TICKS)
def test_tumbling_windows(ticks: list[dict[int, Row | None]]) -> None:
    view = declared(windows.tumbling("1 minute"))
    assert keep(view, ticks) == by_windows(ticks, lambda t: [(t // 60 * 60, t // 60 * 60 + 60)])


@given(TICKS)
def test_hopping_windows(ticks: list[dict[int, Row | None]]) -> None:
    view = declared(windows.hopping("1 minute", every="20 seconds"))
    expected = by_windows(
        ticks, lambda t: [(s, s + 60) for s in range(t // 20 * 20 - 40, t + 1, 20)]
    )
    assert keep(view, ticks) == expected


@given(TICKS)
def test_cumulative_windows(ticks: list[dict[int, Row | None]]) -> None:
    view = declared(windows.cumulative("1 minute", step="15 seconds"))

    def of(t: int) -> list[tuple[int, int]]:
        start = t // 60 * 60
        return [(start, end) for end in range(start + 15, start + 61, 15) if t < end]

    assert keep(view, ticks) == by_windows(ticks, of)


@given(TICKS)
def test_sessions_merge_and_split(ticks: list[dict[int, Row | None]]) -> None:
    view = declared(windows.session("30 seconds"))
    found: list[dict[str, Any]] = []
    for kind in "ab":
        rows = sorted((at, n) for k, at, n in last(ticks).values() if k == kind)
        sessions: list[list[tuple[int, int]]] = []
        for at, n in rows:
            if sessions and at - sessions[-1][-1][0] <= 30:
                sessions[-1].append((at, n))
            else:
                sessions.append([(at, n)])
        found += [
            {
                "kind": kind,
                "window_start": text(s[0][0]),
                "window_end": text(s[-1][0] + 30),
                "rows": len(s),
                "total": sum(n for _, n in s),
            }
            for s in sessions
        ]
    assert keep(view, ticks) == sorted(found, key=orjson.dumps)


@given(TICKS)
def test_a_sliding_window_ends_at_every_row(ticks: list[dict[int, Row | None]]) -> None:
    view = declared(windows.sliding("50 seconds", row="id"))
    rows = last(ticks)
    expected = []
    for i, (kind, at, _) in rows.items():
        inside = [n for k, t, n in rows.values() if k == kind and at - 50 < t <= at]
        expected.append(
            {"id": i, "kind": kind, "window_start": text(at - 50), "window_end": text(at),
             "rows": len(inside), "total": sum(inside)}
        )  # fmt: skip
    assert keep(view, ticks) == sorted(expected, key=orjson.dumps)


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DeclarationError, match="whole seconds"):
        windows.tumbling("1500 ms")
    with pytest.raises(DeclarationError, match="does not divide"):
        windows.hopping("1 minute", every="7 seconds")
    with pytest.raises(DeclarationError, match="selects nothing"):
        windows.windowed("w", "t", time="at", window=windows.tumbling("1 minute"), select={})
