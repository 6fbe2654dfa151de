"""Filters against the clock in all their forms: rows come and leave exactly when they are due.

The judge is DuckDB, given the same query with the tick's time in place of the clock. Time goes on
in steps of microseconds up to months: the length of a pause must not matter.
"""

from __future__ import annotations

import datetime
import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.engine.functions.times import DAY, add_months, date_trunc
from tailrace.pipelines.engine.operators.spans import (
    Every,
    Moment,
    Months,
    Shift,
    Some,
    Step,
    Truncation,
    Truth,
    is_in,
)
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.testing.recompute import Recompute, as_bag
from tailrace.testing.ticks import MemoryTables, table

TABLES = [
    table(
        "s.public.o", "id BIGINT, at TIMESTAMP, d DATE, n TIMESTAMP_NTZ, c STRING, k INT", ["id"]
    ),
    table("s.public.p", "c STRING, at TIMESTAMP", ["c"]),
]
FILTERS = [
    "at > now() - INTERVAL '1' HOUR",
    "now() - INTERVAL '1' HOUR <= at",
    "at + INTERVAL '1' HOUR < now()",
    "at BETWEEN now() - INTERVAL '2' DAY AND now()",
    "at NOT BETWEEN now() - INTERVAL '2' DAY AND now() + INTERVAL '1' DAY",
    "now() BETWEEN at AND at + INTERVAL '40' DAY",
    "at > now() - INTERVAL '1' MONTH",
    "at <= now() - INTERVAL '1' MONTH",
    "at >= now() + INTERVAL '3' MONTH",
    "at < now() - INTERVAL '1' YEAR",
    "d > current_date() - INTERVAL '7' DAY",
    "d >= current_date()",
    "d = current_date()",
    "d <> current_date()",
    "d > current_date() - 7",
    "d BETWEEN current_date() - INTERVAL '1' MONTH AND current_date()",
    "at >= current_date()",
    "d > now() - INTERVAL '36' HOUR",
    "n > now() - INTERVAL '7' DAY",
    "n > localtimestamp() - INTERVAL '7' DAY",
    "at > date_trunc('MONTH', now())",
    "now() - at < INTERVAL '1' DAY",
    "at - now() >= INTERVAL '5' HOUR",
    "at <= date_trunc('WEEK', now() - INTERVAL '3' DAY)",
    "at = date_trunc('DAY', now())",
    "at > date_trunc('QUARTER', now()) + INTERVAL '2' HOUR",
    "at > now() - INTERVAL '1' HOUR OR at < now() - INTERVAL '3' DAY",
    "c = 'x' OR at > now() - INTERVAL '1' DAY",
    "c = 'x' AND (at > now() OR d > current_date())",
    "NOT (at > now() - INTERVAL '1' DAY)",
    "NOT (c = 'x' AND at > now() - INTERVAL '1' DAY)",
    "NOT (c = 'x' OR at > now() - INTERVAL '1' DAY)",
    "at IS NULL OR at > now()",
    "coalesce(at, n) > now() - INTERVAL '1' DAY AND d < now()",
    "at > now() - INTERVAL '1' DAY * k",
    "k <> 0 AND (at > now() OR 10 / k > 2)",
    "k = 0 OR (10 / k > 2 AND at > now() - INTERVAL '1' DAY)",
]
QUERIES = [f"SELECT id, at, d FROM s.o WHERE {condition}" for condition in FILTERS] + [
    "WITH r AS (SELECT * FROM s.o WHERE at > now() - INTERVAL '1' DAY)"
    " SELECT r.id, p.at FROM r JOIN s.p p ON p.c = r.c",
    "SELECT o.id, p.at FROM s.o o JOIN s.p p ON p.c = o.c AND o.at > now() - INTERVAL '1' DAY"
    " AND p.at < now()",
    "SELECT o.id, p.at FROM s.o o JOIN s.p p ON p.c = o.c"
    " WHERE greatest(o.at, p.at) > now() - INTERVAL '1' DAY",
    "SELECT o.id, p.at FROM s.o o LEFT JOIN s.p p ON p.c = o.c AND p.at > now() - INTERVAL '1' DAY",
    "SELECT o.id, p.at FROM s.o o LEFT JOIN s.p p ON p.c = o.c AND o.at > now() - INTERVAL '1' DAY",
    "SELECT o.id, p.at FROM s.o o RIGHT JOIN s.p p ON p.c = o.c AND o.at > now()",
    "SELECT o.id, p.at FROM s.o o FULL JOIN s.p p ON p.c = o.c AND p.at > now() - INTERVAL '1' DAY",
    "SELECT id FROM s.o o WHERE EXISTS"
    " (SELECT 1 FROM s.p p WHERE p.c = o.c AND p.at > now() - INTERVAL '1' DAY AND p.at < o.at)",
    "SELECT id FROM s.o o WHERE NOT EXISTS"
    " (SELECT 1 FROM s.p p WHERE p.c = o.c AND p.at > now() - INTERVAL '1' DAY)",
    "SELECT id FROM s.o o WHERE at > now() OR EXISTS (SELECT 1 FROM s.p p WHERE p.c = o.c)",
    "SELECT c, count(*) AS n FROM s.o WHERE at > now() - INTERVAL '1' DAY GROUP BY c",
    "SELECT c, max(at) AS m FROM s.o GROUP BY c HAVING max(at) < now() - INTERVAL '1' DAY",
    "SELECT c, m FROM (SELECT c, max(at) AS m FROM s.o GROUP BY c) WHERE m > now() AND c <> 'x'",
    "SELECT id FROM s.o WHERE at > now() UNION ALL SELECT id FROM s.o WHERE d < current_date()",
]  # fmt: skip
START = datetime.datetime(2026, 1, 27, 23, 59, tzinfo=datetime.UTC)
PAUSES = [
    datetime.timedelta(microseconds=1000), datetime.timedelta(minutes=1), datetime.timedelta(hours=5),
    datetime.timedelta(days=1), datetime.timedelta(days=1, hours=7), datetime.timedelta(days=31),
]  # fmt: skip


def compiled(*queries: str) -> MemoryTables:
    """The first is view "v0"."""
    views = [ViewDefinition(f"v{i}", sql, None, "strict") for i, sql in enumerate(queries)]
    return MemoryTables(compile_views(views, TABLES), shards=2)


def row_near(chance: random.Random, now: datetime.datetime, number: int) -> dict[str, Any]:
    """A row some of whose times are just about to matter."""

    def moment() -> datetime.datetime | None:
        if chance.random() < 0.1:
            return None
        near = chance.choice([0, 1, 60, 3_600, 86_400, 2 * 86_400, 31 * 86_400, 400 * 86_400])
        return now + datetime.timedelta(seconds=chance.choice([-1, 1]) * chance.randint(0, near))

    at, other = moment(), moment()
    return {
        "id": number, "at": at, "d": other.date() if other else None,
        "n": other.replace(tzinfo=None) if other else None,
        "c": chance.choice(["x", "y", "z", None]), "k": chance.randint(0, 3),
    }  # fmt: skip


def walk_through(queries: list[str], seed: int, ticks: int) -> None:
    """Compare the views with the judge at every step of some random time."""
    chance = random.Random(seed)
    memory = compiled(*queries)
    assert not any("not incremental" in explain(memory.graph, name) for name in memory.graph.views)
    live: dict[str, dict[Any, dict[str, Any]]] = {"s.public.o": {}, "s.public.p": {}}
    now = START
    with Recompute(TABLES) as judge:
        for _ in range(ticks):
            for _ in range(chance.randint(0, 4)):
                number = chance.randint(1, 12)
                row = row_near(chance, now, number)
                topic, key = "s.public.o", number
                if chance.random() < 0.3:
                    topic, key, row = (
                        "s.public.p",
                        row["c"] or "x",
                        {"c": row["c"] or "x", "at": row["at"]},
                    )
                if key in live[topic] and chance.random() < 0.3:
                    memory.delete(topic, live[topic].pop(key))
                else:
                    live[topic][key] = row
                    memory.upsert(topic, row)
            memory.now_ms = int(now.timestamp() * 1000)
            memory.tick()
            judge.set_clock(now)
            judge.load({topic: list(rows.values()) for topic, rows in live.items()})
            for number, sql in enumerate(queries):
                asked = sql.replace("now()", "tick_now()").replace("current_date()", "tick_date()")
                asked = asked.replace("localtimestamp()", "tick_now()")
                shown = [tuple(row.values()) for row in memory.rows(f"v{number}")]
                assert as_bag(shown) == as_bag(judge.ask(asked)), (sql, now)
            now += chance.choice(PAUSES)


def test_rows_come_and_leave_when_they_are_due() -> None:
    walk_through(QUERIES, 1, 8)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 12))
def test_rows_come_and_leave_when_they_are_due_for_long(seed: int) -> None:
    walk_through(QUERIES, seed, 60)


def test_many_short_steps_show_what_one_long_pause_does() -> None:
    """Downtime changes nothing: what was due meanwhile is made up for in the next tick."""
    awake, asleep = (
        compiled("SELECT id FROM s.o WHERE at BETWEEN now() - INTERVAL '1' MONTH AND now()")
        for _ in range(2)
    )
    chance = random.Random(3)
    for memory in (awake, asleep):
        memory.now_ms = int(START.timestamp() * 1000)
    for number in range(60):
        row = row_near(chance, START + datetime.timedelta(days=30), number)
        for memory in (awake, asleep):
            memory.upsert("s.public.o", row)
    for memory in (awake, asleep):
        memory.tick()
    for _ in range(60):
        awake.now_ms += 86_400_000
        awake.tick()
    asleep.now_ms = awake.now_ms
    asleep.tick()
    assert sorted(map(repr, asleep.rows("v0"))) == sorted(map(repr, awake.rows("v0")))
    assert awake.rows("v0")


def test_a_clock_that_goes_back_does_not_bring_rows_back() -> None:
    memory = compiled("SELECT id FROM s.o WHERE at > now()")
    memory.upsert("s.public.o", {"id": 1, "at": START})
    for seconds, count in ((-1, 1), (1, 0), (-1, 0)):
        memory.now_ms = int(START.timestamp() * 1000) + seconds * 1000
        memory.tick()
        assert len(memory.rows("v0")) == count


def test_rows_that_left_leave_nothing_in_the_state() -> None:
    memory = compiled("SELECT id FROM s.o WHERE at BETWEEN now() - INTERVAL '1' MONTH AND now()")
    clocks = [node.id for node in memory.graph.nodes if node.operator.kind == "clock"]
    for number in range(20):
        memory.upsert("s.public.o", {"id": number, "at": START})
    memory.tick()
    memory.now_ms = int(START.timestamp() * 1000) + 40 * 86_400_000
    memory.tick()
    held = [key for (_, name), state in memory.states.states.items() if name in clocks for key in state.rows]  # fmt: skip
    assert set(held) <= {b"now"}


def test_a_filter_on_one_side_stands_before_the_join_and_lets_its_rows_go() -> None:
    sql = (
        "SELECT o.id, p.at FROM s.o o JOIN s.p p ON p.c = o.c WHERE o.at > now() - INTERVAL '1' DAY"
    )
    memory = compiled(sql)
    kinds = [node.operator.kind for node in memory.graph.nodes]
    assert kinds.index("clock") < kinds.index("join")
    memory.now_ms = int(START.timestamp() * 1000)
    for number in range(20):
        memory.upsert("s.public.o", {"id": number, "at": START, "c": "x"})
    memory.tick()
    join = next(node.id for node in memory.graph.nodes if node.operator.kind == "join")
    memory.now_ms += 2 * 86_400_000
    memory.tick()
    assert not any(state.rows for (_, name), state in memory.states.states.items() if name == join)


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ("SELECT id FROM s.o WHERE at > now() AND hour(at) = hour(now())", "now() AND"),
        ("SELECT id, now() AS n FROM s.o WHERE at > now()", "now() AS"),
        ("SELECT id FROM s.o\nWHERE unix_timestamp(at) > unix_timestamp(now()) - 9", "now()) - 9"),
    ],
)
def test_strict_refuses_what_is_no_filter_of_moments(sql: str, marked: str) -> None:
    with pytest.raises(NotIncrementalError, match="the clock") as caught:
        compiled(sql)
    line, marks = caught.value.detail.splitlines()[-2:]
    assert line[marks.index("^") :].startswith(marked)


def test_a_column_of_numbers_is_not_compared_with_the_clock() -> None:
    from tailrace.pipelines.errors import SqlTypeError

    with pytest.raises(SqlTypeError, match="INT and TIMESTAMP"):
        compiled("SELECT id FROM s.o WHERE k > now()")


# The spans themselves, against the plain reading of a condition at one moment --------------------

MICROS = st.one_of(
    st.integers(-40 * 366 * DAY, 80 * 366 * DAY),
    st.integers(-480, 900).map(lambda month: add_months(0, month) * DAY),
)
STEP = st.one_of(
    st.integers(-40 * DAY, 40 * DAY).map(Shift),
    st.integers(-30, 30).map(Months),
    st.sampled_from(["HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]).map(Truncation),
)
MOMENT = st.builds(
    Moment,
    st.integers(0, 2),
    st.sampled_from(["<", "<=", ">", ">=", "="]),
    st.lists(STEP, max_size=3).map(tuple),
)
CONDITION = st.recursive(
    st.one_of(MOMENT, MOMENT, st.just(Truth(3))),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Every(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Some(tuple(parts))),
    ),
    max_leaves=5,
)


def moved(now: int, steps: tuple[Step, ...]) -> int:
    for step in steps:
        match step:
            case Shift(micros):
                now += micros
            case Months(count):
                now = add_months(now // DAY, count) * DAY + now % DAY
            case Truncation(unit):
                now = date_trunc(unit, now)
    return now


def plainly(condition: Any, row: tuple[Any, ...], now: int) -> bool:
    match condition:
        case Truth(value):
            return bool(row[value])
        case Every(parts):
            return all(plainly(part, row, now) for part in parts)
        case Some(parts):
            return any(plainly(part, row, now) for part in parts)
    value = row[condition.value]
    if value is None:
        return False
    clock = moved(now, condition.steps)
    match condition.operator:
        case "<":
            return bool(value < clock)
        case "<=":
            return bool(value <= clock)
        case ">":
            return bool(value > clock)
        case ">=":
            return bool(value >= clock)
    return bool(value == clock)


@given(
    condition=CONDITION,
    values=st.tuples(MICROS, MICROS, st.none() | MICROS, st.none() | st.booleans()),
    times=st.lists(MICROS, max_size=5),
    beside=st.integers(-3, 3),
)
def test_spans_say_when_a_condition_holds(
    condition: Any, values: tuple[Any, ...], times: list[int], beside: int
) -> None:
    spans = condition.holds(values)
    assert spans == sorted(spans)
    assert all(begin < end for begin, end in spans)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))
    edges = [edge for span in spans for edge in span if abs(edge) < 1 << 61]
    near = [value + beside for value in values[:3] if value is not None]
    for now in [*times, *near, *edges, *(edge - 1 for edge in edges)]:
        assert is_in(spans, now) == plainly(condition, values, now), now
