"""A tick in parts: some of the views in each task, and what one task would have done."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_fill import OPEN, PAID, PER_COUNTRY, Project, expected
from pipelines.ticks.test_ticks import in_process
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.state import shard as shards
from tailrace.pipelines.state.files import LocalFiles
from tailrace.pipelines.state.inspect import entries
from tailrace.pipelines.ticks import job, small_ticks, split
from tailrace.pipelines.ticks.job import Outcome, Work, complete, gather, guarded, in_parts
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.testing.feed import ChangeFeed
from tailrace.testing.ticks import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "paid": PAID,
    "open": OPEN,
    "per_country": PER_COUNTRY,
    "most": "SELECT customer_id, max(amount) AS most FROM {s}.orders GROUP BY customer_id",
    "top": "SELECT id, amount FROM {s}.orders ORDER BY amount DESC, id LIMIT 3",
    "nobody": "SELECT id FROM {s}.customers c WHERE NOT EXISTS"
    " (SELECT 1 FROM {s}.orders o WHERE o.customer_id = c.id)",
    "total": "SELECT count(*) AS n FROM {s}.orders",
}
SQL = [text.format(s="shop") for text in VIEWS.values()]
TABLES = [
    table("shop.public.orders", "id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING", ["id"]),
    table("shop.public.customers", "id BIGINT, country STRING", ["id"]),
]  # fmt: skip


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "WORTH_SECONDS", 1e-9)


def in_three_parts(work: Work) -> Outcome:
    works = in_parts(work, 3, split.Costs())
    return complete(gather(chain.from_iterable(map(guarded, works))), len(works))


@given(st.sets(st.sampled_from(SQL), min_size=1), st.integers(1, 5), st.randoms())
def test_parts_hold_every_operator_with_all_that_it_reads(
    sql: set[str], most: int, chance: random.Random
) -> None:
    graph = compile_views([ViewDefinition(f"v{n}", s) for n, s in enumerate(sorted(sql))], TABLES)
    costs = split.Costs({node.id: chance.random() for node in graph.nodes if chance.random() < 0.5})
    found = split.parts(graph, most, 1000, costs)
    assert len(found) == (min(most, len(_apart(graph))) if len(_apart(graph)) > 1 < most else 0)
    if not found:
        return
    owned = [name for part in found for name in part.owned]
    assert sorted(owned) == sorted(node.id for node in graph.nodes)
    for part in found:
        assert part.count == len(found)
        for node in graph.nodes:
            if node.id in part.nodes:
                sources = {e.source for e in node.edges if not e.source.startswith("table:")}
                assert sources <= part.nodes


def _apart(graph: Graph) -> set[frozenset[str]]:
    """Operators that are connected behind the first ones on their tables, naively."""
    left = {n.id: {e.source for e in n.edges} for n in graph.nodes if n.operator.kind != "keyed"}
    found = {frozenset([name]) for name in left}
    for name, sources in left.items():
        together = {group for group in found if group & (sources | {name})}
        found = found - together | {frozenset().union(*together)}
    return found


def test_work_is_divided_by_what_operators_took() -> None:
    graph = compile_views([ViewDefinition(f"v{n}", s) for n, s in enumerate(SQL)], TABLES)
    heavy = next(node.id for node in graph.nodes if node.operator.kind == "top")
    costs = split.Costs()
    costs.learn({node.id: 1e-3 for node in graph.nodes}, 1000)
    costs.learn({heavy: 1000.0}, 1000)
    alone = next(part for part in split.parts(graph, 2, 1, costs) if heavy in part.nodes)
    kinds = {node.operator.kind for node in graph.nodes if node.id in alone.nodes}
    assert kinds == {"keyed", "top", "result"}
    learnt = dict(costs.seconds)
    costs.learn({node.id: 1.0 for node in graph.nodes}, 1)
    assert costs.seconds == learnt, "what one change took tells nothing of a thousand"


def test_little_work_is_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    graph = compile_views([ViewDefinition(f"v{n}", s) for n, s in enumerate(SQL)], TABLES)
    assert split.parts(graph, 8, 10, split.Costs()) == ()
    assert len(split.parts(graph, 8, 10_000, split.Costs())) > 1


@pytest.mark.thorough
def test_ticks_in_parts_may_alternate_with_others(log_address: str, tmp_path: Path) -> None:
    chance = random.Random(7)

    def any_way(work: Work) -> Outcome:
        return chance.choice([in_process, in_three_parts, run_levels_here])(work)  # type: ignore[no-any-return]

    project = Project(log_address, tmp_path, any_way)
    with ChangeFeed(log_address, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(41, 5)][-1]
        with project.running(**VIEWS) as ticks:
            project.catch_up(ticks, position)
            for changes in traffic(42, 20):
                project.catch_up(ticks, feed.transaction(*changes))
                assert project.rows("paid") == expected(feed, "paid")
                assert project.rows("open") == expected(feed, "open", "open")
                assert project.rows("per_country") == expected(feed, "per_country")
                assert project.rows("total") == [{"n": len(feed.rows["orders"])}]


@pytest.mark.crash
def test_a_tick_that_ends_between_its_parts_is_done_anew(log_address: str, tmp_path: Path) -> None:
    """Files of some parts lie there: of the same tick, divided in another way."""
    chance = random.Random(8)
    ended = 0

    def ending(work: Work) -> Outcome:
        nonlocal ended
        works = in_parts(work, chance.choice([2, 3]), split.Costs())
        chance.shuffle(works)
        whole = chance.random() < 0.5
        done = works if whole else works[: chance.randrange(len(works) + 1)]
        outcome = gather(list(chain.from_iterable(map(guarded, done))))
        if not whole:
            ended += 1
            raise KilledError
        return complete(outcome, len(works))

    project = Project(log_address, tmp_path, ending)
    with ChangeFeed(log_address, project.name, [ORDERS, CUSTOMERS]) as feed:
        for changes in traffic(46, 15):
            position = feed.transaction(*changes)
            for _ in range(40):
                with suppress(KilledError), project.running(**VIEWS) as ticks:
                    project.catch_up(ticks, position)
                    break
            assert project.rows("paid") == expected(feed, "paid")
            assert project.rows("per_country") == expected(feed, "per_country")
            assert project.rows("total") == [{"n": len(feed.rows["orders"])}]
    assert ended > 5


def test_parts_keep_the_state_that_one_task_keeps(
    log_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where snapshots end its chain, which only ticks that are whole write."""
    monkeypatch.setattr(shards, "SNAPSHOT_EVERY", 3)
    monkeypatch.setattr(job, "SNAPSHOT_EVERY", 3)
    monkeypatch.setattr(job, "WHOLE_EVERY", 4)
    kept, shown = [], []
    name = ""
    for number, run in enumerate((in_process, in_three_parts)):
        project = Project(log_address, tmp_path / str(number), run)
        name = name or project.name  # both read the tables of the first
        project.name = name
        if not number:
            with ChangeFeed(log_address, name, [ORDERS, CUSTOMERS]) as feed:
                position = [feed.transaction(*c) for c in traffic(43, 40)][-1]
        with project.running(limit=9, **VIEWS) as ticks:
            if number:
                ticks.main.begin_anew()
            project.catch_up(ticks, position)
            last, nodes = ticks.main.last, [node.id for node in ticks.main.graph.nodes]
        files = LocalFiles(tmp_path / str(number) / "state")
        found = entries(files, tmp_path / f"look{number}", last.state, nodes)
        kept.append(sorted(found, key=repr))
        shown.append([project.rows(view) for view in VIEWS])
        names = [path.name for path in files.root.rglob("*-*")]
        assert any(name.endswith(".snapshot") for name in names)
        assert {name.split("-")[1] for name in names} == ({"0", "1", "2"} if number else {"0"})
    assert kept[0] == kept[1]
    assert kept[0]
    assert shown[0] == shown[1]


@pytest.mark.spark
def test_parts_run_on_spark(
    log_address: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[int] = []

    def run(work: Work) -> Outcome:
        outcome = small_ticks.run_on_spark(spark, work)
        tasks.append(outcome.tasks)
        return outcome

    project = Project(log_address, tmp_path, run)
    with ChangeFeed(log_address, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(44, 5)][-1]
        with project.running(**VIEWS) as ticks:
            project.catch_up(ticks, position)
            for changes in traffic(45, 4):
                project.catch_up(ticks, feed.transaction(*changes))
                assert project.rows("paid") == expected(feed, "paid")
                assert project.rows("per_country") == expected(feed, "per_country")
    assert max(tasks) > 1
