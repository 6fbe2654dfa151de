"""How long partners are apart, as `explain` tells it, against all pairs gone through one by one."""

from __future__ import annotations

import datetime
import marshal
import random
from collections import Counter
from typing import Any

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.join_distance import EDGES, HISTOGRAM, Between, told
from tailrace.testing.ticks import MemoryTables, table

SEARCHES = table("searches", "id BIGINT, user STRING, at TIMESTAMP", [], "stream")
CLICKS = table("clicks", "id BIGINT, user STRING, at TIMESTAMP", [], "stream")
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)

JOINS: dict[str, tuple[str, int | None, int | None]] = {
    "after": ("JOIN clicks c ON c.user = s.user AND c.at BETWEEN s.at AND s.at + INTERVAL '10' MINUTE", 0, 600_000_000),
    "around": ("JOIN clicks c ON c.user = s.user AND c.at > s.at - INTERVAL '1' HOUR AND c.at - s.at < INTERVAL '1' HOUR",
               1 - 3_600_000_000, 3_600_000_000 - 1),
    "left": ("LEFT JOIN clicks c ON c.user = s.user AND c.at BETWEEN s.at AND s.at + INTERVAL '10' MINUTE", 0, 600_000_000),
    "full": ("FULL JOIN clicks c ON c.user = s.user AND c.at BETWEEN s.at AND s.at + INTERVAL '10' MINUTE", 0, 600_000_000),
    "open": ("JOIN clicks c ON c.user = s.user AND c.at >= s.at", 0, None),
    "itself": ("JOIN searches c ON c.user = s.user AND c.at > s.at AND c.at <= s.at + INTERVAL '1' DAY", 1, 86_400_000_000),
}  # fmt: skip


def bucket(gap: int) -> int:
    place = next((n for n, edge in enumerate(EDGES) if abs(gap) <= edge), len(EDGES))
    return place if gap >= 0 else -place - 1


def histogram(memory: MemoryTables) -> tuple[Counter[int], str]:
    """The sum over the shards, and the join that holds it."""
    [join] = [
        node.id
        for node in memory.graph.nodes
        if isinstance(node.operator, Join) and node.operator.between is not None
    ]
    found: Counter[int] = Counter()
    for (_, name), state in memory.states.states.items():
        value = state.get(HISTOGRAM)
        if name == join and value is not None:
            found.update(marshal.loads(value))
    return found, join


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("shards", [1, 3])
def test_the_histogram_is_that_of_all_pairs(name: str, shards: int) -> None:
    join, least, most = JOINS[name]
    sql = f"SELECT s.id, c.id AS other FROM searches s {join}"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [SEARCHES, CLICKS]), shards=shards)  # fmt: skip
    chance = random.Random(name)
    rows: dict[str, list[tuple[str | None, datetime.datetime | None]]] = {
        "searches": [],
        "clicks": [],
    }
    for _ in range(12):
        for number in range(chance.randint(0, 12)):
            topic = chance.choice(["searches", "clicks"])
            user = chance.choice(["ann", "bob", "cy", None])
            micros = chance.choice([1, 1_000, 10**6, 10**8, 10**10, 10**12])
            at = (
                START + chance.randint(0, 20) * micros * MICROSECOND
                if chance.random() < 0.95
                else None
            )
            rows[topic].append((user, at))
            memory.upsert(topic, {"id": number, "user": user, "at": at})
        memory.tick()
        expected: Counter[int] = Counter()
        for user, at in rows["searches"]:
            for other, then in rows["searches" if name == "itself" else "clicks"]:
                if user is None or user != other or at is None or then is None:
                    continue
                gap = (then - at) // MICROSECOND
                if (least is None or gap >= least) and (most is None or gap <= most):
                    expected[bucket(gap)] += 1
        assert histogram(memory)[0] == expected
    assert histogram(memory)[0]


def test_explain_tells_it() -> None:
    sql = f"SELECT s.id, c.id AS other FROM searches s {JOINS['around'][0]}"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [SEARCHES, CLICKS]))
    for number, seconds in enumerate((0.0, 0.5, 1.5, 90, 100, -4)):
        at = START + datetime.timedelta(hours=3 * number)
        memory.upsert("searches", {"id": number, "user": "ann", "at": at})
        click = at + datetime.timedelta(seconds=seconds)
        memory.upsert("clicks", {"id": number, "user": "ann", "at": click})
    memory.tick()
    counts, join = histogram(memory)
    lines = explain(memory.graph, "v", None, {join: counts}).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("time from"))
    assert [line.rstrip() for line in lines[first:]] == [
        "time from searches.at to clicks.at, of 6 pairs: half within 2 s, 90 % within 2 min, 99 % within 2 min",
        "  2 s to 5 s before                  1   16.7 %",
        "  up to 1 ms                         1   16.7 %",
        "  100 ms to 1 s                      1   16.7 %",
        "  1 s to 2 s                         1   16.7 %",
        "  1 min to 2 min                     2   33.3 %",
    ]
    assert "time from" not in explain(memory.graph, "v")


def test_a_join_that_has_seen_no_pair_says_so() -> None:
    between = Between("at", "at_2", "searches.at", "clicks.at", 0, None)
    assert told(between, {}) == ["time from searches.at to clicks.at: no pairs yet"]
    assert told(between, {len(EDGES): 1})[0].endswith("99 % within more than 365 d")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.id, c.id AS other FROM searches s JOIN clicks c ON c.user = s.user",
        "SELECT s.id, p.id AS other FROM searches s JOIN shop.people p ON p.user = s.user AND p.at < s.at",
        "SELECT s.id FROM searches s JOIN clicks c ON c.user = s.user AND c.id > s.id",
    ],
)
def test_other_joins_count_nothing(sql: str) -> None:
    people = table("shop.public.people", "id BIGINT, user STRING, at TIMESTAMP", ["id"])
    graph = compile_views([ViewDefinition("v", sql)], [SEARCHES, CLICKS, people])
    joins: list[Any] = [node.operator for node in graph.nodes if isinstance(node.operator, Join)]
    assert [join.between for join in joins] == [None]
