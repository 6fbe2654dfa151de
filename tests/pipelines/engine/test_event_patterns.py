"""Patterns of events beside their naive twin: what is told in the end, and that it is told once."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tailrace as tr
from tailrace.pipelines.declare import EventTime
from tailrace.testing.event_patterns import EventClause, matches_of
from tailrace.testing.events import MemoryEvents
from tailrace.testing.row_patterns import TooLong

COLUMNS = "id BIGINT, k INT, x INT, y INT, at TIMESTAMP"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DEFINE = {"a": "x = 0", "b": "x = 1", "c": "x = 2", "d": "y > first(a.y)"}


def _first(view: Any) -> bool | None:
    mine, first = view.last("y", "D"), view.first("y", "A")
    return None if mine is None or first is None else mine > first


TWIN = {
    "A": lambda view: view.last("x", "A") == 0,
    "B": lambda view: view.last("x", "B") == 1,
    "C": lambda view: view.last("x", "C") == 2,
    "D": _first,
}
A, B, C, D = (("row", name) for name in "ABCD")


def skip(names: str, greedy: bool = True) -> tuple[Any, ...]:
    return ("skip", tuple(names.split()), greedy)


# match=, the same for the twin, other arguments
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("a b", ("sequence", A, B), {}),
    ("a{2,} c", ("sequence", ("repeat", A, 2, None, True), C), {}),
    ("a+ b*", ("sequence", ("repeat", A, 1, None, True), ("repeat", B, 0, None, True)), {}),
    ("a -> b", ("sequence", A, skip("B"), B), {}),
    ("a -> b -> c", ("sequence", A, skip("B"), B, skip("C"), C), {}),
    ("a ->> b c", ("sequence", A, skip("", False), B, C), {}),
    ("a -> (b | c)", ("sequence", A, skip("B C"), ("either", B, C)), {}),
    ("a -> !b -> c", ("sequence", A, skip("C B"), C), {}),
    ("a -> !b", ("sequence", A, ("absent", ("B",))), {}),
    ("a+ -> !(b | c)", ("sequence", ("repeat", A, 1, None, True), ("absent", ("B", "C"))), {}),
    ("!b -> a c", ("sequence", A, C), {"before": ("B",)}),
    ("a -> d", ("sequence", A, skip("D"), D), {}),
    ("a d+ b", ("sequence", A, ("repeat", D, 1, None, True), B), {}),
    (
        "a+ -> b",
        ("sequence", A, ("repeat", ("sequence", skip("A B"), A), 0, None, True), skip("B"), B),
        {"contiguity": "relaxed"},
    ),
    (
        "a{2} b",
        ("sequence", A, ("repeat", ("sequence", skip("", False), A), 1, 1, True), B),
        {"contiguity": "any"},
    ),
]  # fmt: skip
SKIPS = [("past last row", "last row"), ("to next row", "next row")]


def declared(text: str, more: dict[str, Any], **arguments: Any) -> Any:
    used = {name for name in DEFINE if name in text}
    stream = tr.topic("events", schema=COLUMNS)
    known = {name: value for name, value in more.items() if name != "before"}
    return tr.pattern(
        "p", stream, key="k", order_by="at", match=text,
        define={name: DEFINE[name] for name in used},
        select={"n": "count(*)", "first": "first(id)", "last": "last(id)"}, **{**known, **arguments},
    )  # fmt: skip


def clause(
    twin: tuple[Any, ...], more: dict[str, Any], skips: str, within: int, gap: int | None
) -> EventClause:
    return EventClause(
        twin, TWIN,
        {"n": lambda v: len(v.places()), "first": lambda v: v.first("id"), "last": lambda v: v.last("id")},
        ("k",), lambda row: (row["at"], row["partition"], row["id"]), "one", skips,
        ("at", datetime.timedelta(seconds=within)),
        now=datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC),
        gap=None if gap is None else ("at", datetime.timedelta(seconds=gap)),
        before=more.get("before", ()),
    )  # fmt: skip


def rows_of(rng: random.Random, count: int, *, disorder: int) -> list[dict[str, Any]]:
    """Rows of two keys with times of their own, as they come; none waits longer than `disorder`."""
    times = rng.sample(range(0, 3 * count), count)
    rows = [
        {"k": rng.randrange(2), "x": rng.randrange(3), "y": rng.randrange(4), "second": second}
        for second in sorted(times)
    ]
    rows.sort(key=lambda row: row["second"] + rng.randrange(disorder + 1))
    return [
        {
            "id": number,
            **{name: row[name] for name in ("k", "x", "y")},
            "at": START + datetime.timedelta(seconds=row["second"]),
        }
        for number, row in enumerate(rows)
    ]


def fed(
    events: MemoryEvents, rows: list[dict[str, Any]], rng: random.Random
) -> list[dict[str, Any]]:
    """Let the rows come, a few in each tick, and time pass behind them; rows with their places."""
    placed = []
    for row in rows:
        partition = row["k"] if rng.random() < 0.9 else rng.randrange(2)
        events.add(row, partition)
        placed.append({**row, "partition": partition})
        if rng.random() < 0.6:
            events.tick()
    events.tick()
    events.tick()
    events.pass_time(int(datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000))
    events.tick()
    events.tick()
    return placed


def standing(told: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """What is told and not taken back; nothing is taken back that does not stand."""
    count: Counter[tuple[Any, ...]] = Counter()
    for row in told:
        shown = tuple(row[name] for name in ("match_id", "k", "n", "first", "last"))
        count[shown] += -1 if row["op"] == "retract" else 1
        assert count[shown] in (0, 1), row
    return +count


def expected(
    judge: EventClause, rows: list[dict[str, Any]], *, every: bool = False
) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(row[name] for name in ("k", "n", "first", "last"))
        for key in (0, 1)
        for row in matches_of(judge, [row for row in rows if row["k"] == key], every=every)
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    case=st.sampled_from(CASES),
    skips=st.sampled_from(SKIPS),
    seed=st.integers(0, 1 << 32),
    within=st.integers(3, 25),
    gap=st.none() | st.integers(1, 8),
    policy=st.sampled_from(["drop", "correct", "early", "corrected", "kept"]),
)
def test_what_stands_in_the_end_is_what_a_batch_run_tells(
    case: Any, skips: Any, seed: int, within: int, gap: int | None, policy: str
) -> None:
    text, twin, more = case
    rng = random.Random(seed)
    rows = rows_of(rng, rng.randrange(4, 40), disorder=6)
    arguments: dict[str, Any] = {
        "drop": {"late": "drop", "watermark": "6 seconds"},
        "correct": {"watermark": "6 seconds"},
        "early": {
            "emit": "early",
            "late": "drop",
            "watermark": "2 seconds",
            "lateness": "4 seconds",
        },
        "corrected": {"watermark": "1 second"},
        "kept": {"watermark": "1 second", "keep": "8 seconds"},
    }[policy]
    pattern = declared(text, more, within=f"{within} seconds", skip=skips[0], **arguments)
    if gap is not None:
        pattern = declared(
            text, more, within=f"{within} seconds", gap=f"{gap} seconds", skip=skips[0], **arguments
        )
    events = MemoryEvents(pattern, COLUMNS)
    placed = fed(events, rows, rng)
    assert not events.late
    try:
        wanted = expected(clause(twin, more, skips[1], within, gap), placed)
    except TooLong:
        return
    stands = standing(events.told["p"])
    assert Counter(row[1:] for row in stands.elements()) == wanted
    assert len({row[0] for row in stands}) == len(stands), "an id belongs to one match"
    if policy == "drop":
        assert all(row["op"] == "match" for row in events.told["p"]), "nothing is taken back"


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    case=st.sampled_from([case for case in CASES if "any" not in case[2].values()]),
    seed=st.integers(0, 1 << 32),
    within=st.integers(3, 12),
    policy=st.sampled_from(["drop", "early", "corrected"]),
)
def test_every_match_is_told(case: Any, seed: int, within: int, policy: str) -> None:
    text, twin, more = case
    rng = random.Random(seed)
    rows = rows_of(rng, rng.randrange(4, 25), disorder=3)
    arguments: dict[str, Any] = {
        "drop": {"late": "drop", "watermark": "3 seconds"},
        "early": {"emit": "early", "watermark": "1 second", "timeouts": True},
        "corrected": {"watermark": "1 second", "keep": "8 seconds"},
    }[policy]
    pattern = declared(text, more, within=f"{within} seconds", matches="every", **arguments)
    events = MemoryEvents(pattern, COLUMNS)
    placed = fed(events, rows, rng)
    try:
        wanted = expected(clause(twin, more, "next row", within, None), placed, every=True)
    except TooLong:
        return
    stands = standing(events.told["p"])
    assert Counter(row[1:] for row in stands.elements()) == wanted
    assert len({row[0] for row in stands}) == len(stands)


def test_a_replay_in_other_ticks_tells_the_same_ids() -> None:
    rng = random.Random(3)
    rows = rows_of(rng, 60, disorder=4)
    pattern = declared("a -> b", {}, within="10 seconds", watermark="4 seconds", late="drop")
    told = []
    for seed in (1, 2):
        events = MemoryEvents(pattern, COLUMNS, shards=seed)
        again = random.Random(seed)
        for row in rows:
            events.add(row, row["k"])
            if again.random() < 0.5:
                events.tick()
        fed(events, [], again)
        told.append({row["match_id"]: row for row in events.told["p"]})
    assert told[0] == told[1]
    assert len(told[0]) > 3


def _events(pattern: Any, *rows: tuple[int, int, int]) -> MemoryEvents:
    """Rows (x, second, y) of one key, each in a tick of its own, time following at once."""
    events = MemoryEvents(pattern, COLUMNS)
    for number, (x, second, y) in enumerate(rows):
        at = START + datetime.timedelta(seconds=second)
        events.add({"id": number, "k": 1, "x": x, "y": y, "at": at})
        events.tick()
        events.tick()
    return events


def test_a_match_is_told_as_soon_as_no_later_row_can_change_it() -> None:
    events = _events(declared("a{2,} b", {}), (0, 0, 0), (0, 1, 0))
    assert not events.told["p"]
    events.add({"id": 2, "k": 1, "x": 1, "y": 0, "at": START + datetime.timedelta(seconds=2)})
    events.tick()
    assert not events.told["p"]
    events.tick()
    assert [row["n"] for row in events.told["p"]] == [3]


def test_a_greedy_end_waits_for_a_row_that_ends_it_or_for_its_time() -> None:
    events = _events(declared("a b+", {}, within="10 seconds"), (0, 0, 0), (1, 1, 0), (1, 2, 0))
    assert not events.told["p"]
    other = _events(
        declared("a b+", {}, within="10 seconds"), (0, 0, 0), (1, 1, 0), (1, 2, 0), (2, 3, 0)
    )
    assert [row["n"] for row in other.told["p"]] == [3]
    ended = _events(
        declared("a b+", {}, within="10 seconds"), (0, 0, 0), (1, 1, 0), (1, 2, 0), (1, 10, 0)
    )
    assert [row["n"] for row in ended.told["p"]] == [3]


def test_partial_matches_whose_time_is_over_are_told_apart() -> None:
    pattern = declared("a b c", {}, within="10 seconds", timeouts=True)
    events = _events(pattern, (0, 0, 0), (1, 1, 0), (0, 20, 0), (0, 21, 0), (2, 40, 0))
    assert not events.told["p"]
    told = [
        (row["op"], row["reached"], row["rows"], row["first"]) for row in events.told["p.timeouts"]
    ]
    assert told == [("timeout", "b", 2, 0), ("timeout", "a", 1, 3)]


def test_until_ends_a_repetition() -> None:
    pattern = declared("a+ -> b", {}, contiguity="relaxed", until={"a": "y = 9"}, within="1 minute")
    events = _events(pattern, (0, 0, 0), (2, 1, 0), (0, 2, 0), (2, 3, 9), (0, 4, 0), (1, 5, 0))
    assert [(row["first"], row["n"]) for row in events.told["p"]] == [(0, 3)]


def test_early_matches_are_taken_back_under_the_same_id() -> None:
    pattern = declared("a b+", {}, within="1 minute", emit="early")
    events = _events(pattern, (0, 0, 0), (1, 1, 0), (1, 2, 0))
    told = [(row["op"], row["n"]) for row in events.told["p"]]
    assert told == [("match", 2), ("retract", 2), ("match", 3)]
    assert len({row["match_id"] for row in events.told["p"]}) == 1


def test_a_late_row_under_correct_takes_a_match_back() -> None:
    pattern = declared("a b", {})
    events = _events(pattern, (0, 0, 0), (1, 10, 0), (2, 20, 0), (2, 5, 0))
    assert [row["op"] for row in events.told["p"]] == ["match", "retract"]


@pytest.mark.parametrize("late", ["drop", "side"])
def test_rows_behind_the_watermark_change_nothing(late: str) -> None:
    pattern = declared("a b", {}, late=late)
    events = _events(pattern, (0, 0, 0), (1, 10, 0), (2, 20, 0), (2, 5, 0))
    assert [row["op"] for row in events.told["p"]] == ["match"]
    assert events.late == [3]


def test_all_rows_of_a_match_are_told_without_those_skipped() -> None:
    pattern = tr.pattern(
        "p", tr.topic("events", schema=COLUMNS), key="k", order_by="at", match="a -> b",
        define={"a": "x = 0", "b": "x = 1"}, select={"what": "classifier()"}, rows="all",
    )  # fmt: skip
    events = _events(pattern, (0, 0, 0), (2, 1, 0), (1, 2, 0))
    told = [(row["what"], row["id"]) for row in events.told["p"]]
    assert told == [("a", 0), ("b", 2)]
    assert len({row["match_id"] for row in events.told["p"]}) == 1


def test_state_does_not_grow_with_matches_that_were_told() -> None:
    pattern = declared("a b", {}, within="10 seconds", late="drop", timeouts=True)
    few = _events(pattern, *[(n % 2, 20 * n, 0) for n in range(6)])
    many = _events(pattern, *[(n % 2, 20 * n, 0) for n in range(60)])
    sizes = [sum(len(list(s.scan())) for s in e.states.states.values()) for e in (few, many)]
    assert sizes[0] == sizes[1]


def test_more_matches_of_a_row_than_the_limit_are_an_error_with_the_key() -> None:
    from tailrace.pipelines.errors import EvaluationError

    pattern = declared("a ->> b ->> c", {}, within="1 hour", matches="every", limit=10)
    with pytest.raises(EvaluationError, match="more than 10 matches") as raised:
        _events(pattern, (0, 0, 0), *[(1 + n % 2, 1 + n, 0) for n in range(20)])
    assert "k = 1" in raised.value.detail


def test_a_policy_of_the_topic_counts() -> None:
    pattern = declared("a b", {})
    events = MemoryEvents(pattern, COLUMNS, time=EventTime("at", late="drop", lateness_ms=5_000))
    for number, (x, second) in enumerate([(0, 0), (1, 10), (2, 13)]):
        at = START + datetime.timedelta(seconds=second)
        events.add({"id": number, "k": 1, "x": x, "y": 0, "at": at})
        events.tick()
        events.tick()
    assert not events.told["p"], "a row may still come between them"
    events.pass_time(int((START + datetime.timedelta(seconds=15)).timestamp() * 1000))
    events.tick()
    assert len(events.told["p"]) == 1
