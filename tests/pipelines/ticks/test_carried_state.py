"""State of the version that named operators by texts is taken over by the one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_fill import COUNTRIES, OPEN, PAID, PER_COUNTRY, Project, expected
from tailrace.client.admin import Admin
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks import carried, driver
from tailrace.pipelines.ticks import project as project_module
from tailrace.pipelines.ticks.driver import last_row
from tailrace.pipelines.ticks.legacy_names import legacy_names
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.testing.feed import ChangeFeed


@pytest.fixture
def project(tailrace_broker: str, tmp_path: Path) -> Project:
    return Project(tailrace_broker, tmp_path)


def as_before(graph: Graph, row: Tick | None) -> Graph:
    """A graph as that version compiled it."""
    renamed = carried._renamed(graph, legacy_names(graph.nodes))
    return replace(renamed, nodes=tuple(replace(node, identity="") for node in renamed.nodes))


@contextmanager
def version_before() -> Iterator[None]:
    """Operators have their old names, and rows do not say by which rules they are named."""

    def tick(*given: Any, **named: Any) -> Tick:
        return Tick(*given, naming=0, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(project_module, "as_carried", as_before)
        patch.setattr(driver, "Tick", tick)
        yield


def operators(project: Project) -> set[str]:
    with LogReader(project.bootstrap) as reader:
        row = last_row(reader, project.name)
    assert row is not None
    return set(row.operators)


def forget_beginnings(project: Project, *, unread: str = "") -> None:
    """The records that made the rows so far leave the topics: nothing can be filled from them.
    Of table `unread` those that no tick has read go, too."""
    with LogReader(project.bootstrap) as reader, Admin(project.bootstrap) as admin:
        row = last_row(reader, project.name)
        assert row is not None
        for table in ("orders", "customers"):
            topic = f"{project.name}.public.{table}"
            read = {(topic, partition): end for partition, end in row.inputs[topic].items()}
            if table == unread:
                read = {(topic, p): end for p, (_, end) in reader.bounds(topic).items()}
            admin.alter_topic_config(topic, {"cleanup.policy": "delete"})
            admin.delete_records(read)


def test_an_upgrade_fills_no_view_again(project: Project) -> None:
    views = {"paid": PAID, "per_country": PER_COUNTRY}
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(1, 25)][-1]
        with version_before(), project.running(**views) as ticks:
            project.catch_up(ticks, position)
        before = operators(project)
        assert all(len(name.rpartition("-")[2]) == 16 for name in before)
        forget_beginnings(project)
        for turn in range(3):  # the second start reads a row of the new rules
            with project.running(**views) as ticks:
                assert not ticks.waiting
                position = [feed.transaction(*c) for c in traffic(2 + turn, 6)][-1]
                project.catch_up(ticks, position)
                assert {info.generation for info in ticks.main.last.views.values()} == {1}
            assert operators(project) == before
            assert project.rows("paid") == expected(feed, "paid")
            assert project.rows("per_country") == expected(feed, "per_country")


def test_views_that_come_later_begin_with_rows_of_carried_operators(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(1, 25)][-1]
        with version_before(), project.running(paid=PAID, countries=COUNTRIES) as ticks:
            project.catch_up(ticks, position)
        forget_beginnings(project)
        every = {"paid": PAID, "countries": COUNTRIES, "per_country": PER_COUNTRY}
        for _ in range(3):  # killed a few times on the way
            with project.running(limit=3, **every) as ticks:
                for _ in range(3):
                    ticks.step(0.5)
        # The carried operators go with their views; the fill goes on or begins again.
        with project.running(limit=3, **every) as ticks:
            position = [feed.transaction(*c) for c in traffic(2, 6)][-1]
            project.catch_up(ticks, position)
            assert project.rows("per_country") == expected(feed, "per_country")
        with project.running(per_country=PER_COUNTRY) as ticks:
            position = [feed.transaction(*c) for c in traffic(3, 6)][-1]
            project.catch_up(ticks, position)
            assert project.rows("per_country") == expected(feed, "per_country")


def test_a_view_declared_anew_with_the_upgrade_is_filled(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(1, 25)][-1]
        with version_before(), project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
        with project.running(paid=OPEN, per_country=PER_COUNTRY) as ticks:
            assert ticks.waiting == [f"{project.name}_paid"]
            assert project.rows("paid") == expected(feed, "paid")
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid", "open")
            assert project.rows("per_country") == expected(feed, "per_country")


def test_a_name_that_two_operators_had_is_given_to_neither(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(1, 25)][-1]
        with version_before(), project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)

        def alike(nodes: Any) -> dict[str, str]:
            names = legacy_names(nodes)
            groups = [node.id for node in nodes if node.operator.kind in ("group", "join")]
            return {**names, **dict.fromkeys(groups, names[groups[0]])}

        monkeypatch.setattr(carried, "legacy_names", alike)
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            assert ticks.waiting == [f"{project.name}_per_country"]
            position = [feed.transaction(*c) for c in traffic(2, 6)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid")
            assert project.rows("per_country") == expected(feed, "per_country")


def test_a_stopped_view_stays_stopped_through_the_upgrade(project: Project) -> None:
    views = {"paid": PAID, "countries": COUNTRIES}
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(1, 25)][-1]
        with version_before(), project.running(**views) as ticks:
            project.catch_up(ticks, position)
            for changes in traffic(2, 6):
                feed.transaction(*changes)
            forget_beginnings(project, unread="orders")
        with version_before(), project.running(**views) as ticks:
            stopped = set(ticks.failed)
            assert stopped == {f"{project.name}_paid"}
            ticks.step(0.5)
        for _ in range(3):
            with project.running(**views) as ticks:
                assert set(ticks.failed) == stopped
                assert not ticks.waiting
                ticks.step(0.5)
