"""What is incremental, what is computed again and why: nothing falls back in silence."""

from __future__ import annotations

import datetime
import pickle
from typing import Any

import pytest

from pipelines.harness import TABLES, random_row
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.errors import NotIncrementalError
from tailrace.testing.ticks import MemoryTables, table

ORDERS = table("shop.public.orders", "id BIGINT, country STRING, amount INT, at TIMESTAMP", ["id"])
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def minutes(count: int) -> datetime.timedelta:
    return datetime.timedelta(minutes=count)


def memory_of(sql: str, policy: str) -> MemoryTables:
    memory = MemoryTables(compile_views([ViewDefinition("v", sql, None, policy)], [ORDERS]))
    memory.now_ms = int(NOON.timestamp() * 1000)
    return memory


WHOLE = [
    ("SELECT id, sum(amount) OVER (ORDER BY id) AS s FROM shop.orders", "PARTITION BY"),
    ("SELECT percentile(amount, 0.5) AS p FROM shop.orders", "without GROUP BY"),
    ("SELECT a.id, b.id AS other FROM shop.orders a JOIN shop.orders b ON a.amount < b.amount",
     "without an equality"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "why"), WHOLE)
def test_strict_refuses_what_goes_through_everything(sql: str, why: str) -> None:
    with pytest.raises(NotIncrementalError, match="strict") as caught:
        memory_of(sql, "strict")
    assert why in caught.value.message
    assert "not incremental" in explain(memory_of(sql, "auto").graph, "v")


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ("SELECT id,\n sum(amount) OVER (ORDER BY id) AS s FROM shop.orders", "sum(amount) OVER"),
        ("SELECT median(amount) AS p FROM shop.orders", "median"),
        ("SELECT max(id) AS m, collect_list(id) AS p FROM shop.orders", "collect_list"),
        ("SELECT a.id, b.id AS o\nFROM shop.orders a\nJOIN shop.orders b ON a.amount < b.amount", "shop.orders b ON"),
        ("SELECT a.id, b.id AS o FROM shop.orders a\nLEFT JOIN shop.orders b ON a.amount > 5", "shop.orders b ON"),
        ("SELECT a.id, b.id AS o FROM shop.orders a\nJOIN shop.orders b ON b.country = 'NL'", "shop.orders b ON"),
        ("SELECT a.id FROM shop.orders a WHERE EXISTS (SELECT 1 FROM shop.orders b WHERE b.id > a.id)", "1 FROM shop.orders b"),
        ("SELECT a.id FROM shop.orders a WHERE amount > (SELECT max(amount) FROM shop.orders)", "max(amount)"),
    ],
)  # fmt: skip
def test_strict_points_at_what_it_refuses(sql: str, marked: str) -> None:
    with pytest.raises(NotIncrementalError, match="strict") as caught:
        memory_of(sql, "strict")
    line, marks = caught.value.detail.splitlines()[-2:]
    assert line[marks.index("^") :].startswith(marked)


def test_strict_points_into_the_view_that_is_read() -> None:
    inner = ViewDefinition("w", "SELECT id, rank() OVER (ORDER BY id) AS r FROM shop.orders")
    outer = ViewDefinition("v", "SELECT * FROM w", None, "strict")
    with pytest.raises(NotIncrementalError, match="strict") as caught:
        compile_views([inner, outer], [ORDERS])
    assert caught.value.detail.startswith("in view 'w':\nline 1: SELECT id, rank() OVER")


def test_strict_takes_what_costs_as_much_as_the_change() -> None:
    sql = "SELECT country, sum(amount) AS s FROM shop.orders GROUP BY country"
    said = explain(memory_of(sql, "strict").graph, "v")
    assert "incremental: every operator" in said
    assert "not incremental" not in said


def test_a_window_by_key_says_that_its_partition_is_computed_again() -> None:
    sql = "SELECT id, rank() OVER (PARTITION BY country ORDER BY id) AS r FROM shop.orders"
    assert "the partition of (country) that changed" in explain(memory_of(sql, "strict").graph, "v")


CLOCK = "SELECT id, timestampdiff(MINUTE, at, now()) AS age FROM shop.orders"


def test_the_clock_in_select_is_refused_by_strict_with_the_place() -> None:
    with pytest.raises(NotIncrementalError, match="clock") as caught:
        memory_of(CLOCK, "strict")
    line, marks = caught.value.detail.splitlines()[-2:]
    assert line[marks.index("^") :].startswith("now")
    assert "auto" in caught.value.hint


def test_auto_computes_what_depends_on_the_clock_again_in_every_tick() -> None:
    memory = memory_of(CLOCK, "auto")
    assert memory.graph.timed
    assert "it depends on the clock" in explain(memory.graph, "v")
    memory.upsert("shop.public.orders", {"id": 1, "country": "NL", "amount": 5, "at": NOON})
    memory.tick()
    assert memory.rows("v") == [{"id": 1, "age": 0}]
    memory.now_ms += 7 * 60_000
    assert "v" in memory.tick()
    assert memory.rows("v") == [{"id": 1, "age": 7}]
    assert memory.tick() == {}  # the same minute: nothing to say


def test_the_time_since_1970_and_the_local_time_are_the_clock() -> None:
    sql = "SELECT id, unix_timestamp() - unix_timestamp(at) AS age, localtimestamp() AS n FROM shop.orders"
    memory = memory_of(sql, "auto")
    memory.upsert("shop.public.orders", {"id": 1, "country": "NL", "amount": 5, "at": NOON})
    memory.now_ms += 90_000
    memory.tick()
    local = (NOON + datetime.timedelta(seconds=90)).replace(tzinfo=None)
    assert memory.rows("v") == [{"id": 1, "age": 90, "n": local}]
    with pytest.raises(NotIncrementalError, match="clock"):
        memory_of(sql, "strict")


def test_auto_keeps_what_stands_below_the_clock_incremental() -> None:
    sql = (
        "SELECT country, n, current_date() AS day FROM"
        " (SELECT country, count(*) AS n FROM shop.orders GROUP BY country)"
    )
    graph = memory_of(sql, "auto").graph
    assert [node.operator.kind for node in graph.nodes] == ["keyed", "group", "recompute", "result"]


def test_a_filter_against_the_clock_in_any_form_is_kept_by_auto() -> None:
    memory = memory_of("SELECT id FROM shop.orders WHERE hour(at) = hour(now())", "auto")
    for number, hour in ((1, 12), (2, 13)):
        at = NOON.replace(hour=hour)
        memory.upsert("shop.public.orders", {"id": number, "country": "", "amount": 1, "at": at})
    memory.tick()
    assert memory.rows("v") == [{"id": 1}]
    memory.now_ms += 3_600_000
    memory.tick()
    assert memory.rows("v") == [{"id": 2}]


QUERIES = [
    "SELECT k, count(*) AS c, sum(d) AS s FROM shop.a GROUP BY k",
    "SELECT a.id, b.s FROM shop.a LEFT JOIN shop.b ON a.k = b.k",
    "SELECT DISTINCT s FROM shop.a WHERE k IN (SELECT k FROM shop.c)",
    "SELECT id, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM shop.a",
    "SELECT k, n FROM shop.c UNION ALL SELECT k, n FROM shop.b",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_full_gives_what_incremental_gives(sql: str) -> None:
    import random

    chance = random.Random(5)
    sides = [
        MemoryTables(compile_views([ViewDefinition("v", sql, None, policy)], TABLES), shards=2)
        for policy in ("auto", "full")
    ]
    assert "policy full" in explain(sides[1].graph, "v")
    live: dict[str, dict[Any, dict[str, Any]]] = {known.topic: {} for known in TABLES}
    for _ in range(6):
        for _ in range(6):
            known = chance.choice(TABLES)
            row = random_row(chance, known.schema.names)
            key = row.get("id", len(live[known.topic]))
            gone = known.key and key in live[known.topic] and chance.random() < 0.3
            for side in sides:
                (side.delete if gone else side.upsert)(known.topic, row)
            live[known.topic][key] = row
        emitted = [side.tick() for side in sides]
        first, second = (sorted(map(repr, side.rows("v"))) for side in sides)
        assert first == second
        counts = [table.num_rows for table in (e.get("v") for e in emitted) if table is not None]
        assert len(set(counts)) <= 1  # full emits differences only, too


def test_a_part_that_is_recomputed_survives_pickling() -> None:
    graph = memory_of(CLOCK, "auto").graph
    again = pickle.loads(pickle.dumps(graph))
    assert [node.id for node in again.nodes] == [node.id for node in graph.nodes]
    assert again.timed
