"""Generations of a view: built beside, compared, shown, taken back, dropped."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_fill import OPEN, PAID, PER_COUNTRY, Project, expected
from tailrace.client.admin import Admin
from tailrace.client.ranges import KafkaRanges
from tailrace.pipelines.process import requests
from tailrace.pipelines.process.runner import RunningStreams, carry_out
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.driver import last_row
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed


@pytest.fixture
def project(tailrace_broker: str, tmp_path: Path) -> Project:
    return Project(tailrace_broker, tmp_path)


class Wishes:
    """Requests of an operator, carried out as the runner does."""

    def __init__(self, project: Project) -> None:
        self.part = Part(project.name, "pipelines", project.name, project.bootstrap, project.directory)  # fmt: skip
        self.streams = RunningStreams((), self.part, None, None)  # type: ignore[arg-type]

    def ask(self, action: str, name: str, generation: int | None = None) -> None:
        requests.ask(self.part.directory, action, name, generation=generation)

    def carry_out(self, ticks: ProjectTicks) -> None:
        assert carry_out(self.part, self.streams, ticks)

    @property
    def left(self) -> list[str]:
        return [request.action for request in requests.waiting(self.part.directory)]


def steps(ticks: ProjectTicks, count: int = 30) -> None:
    for _ in range(count):
        if ticks.step(0.02) is None and ticks.catching_up is None:
            return


def topics(project: Project) -> set[str]:
    with Admin(project.bootstrap) as admin:
        return {t.name for t in admin.list_topics() if t.name.startswith(f"{project.name}_")}


def test_a_held_generation_waits_for_the_switch_even_over_a_restart(project: Project) -> None:
    wishes, name = Wishes(project), f"{project.name}_per_country"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(21, 20)][-1]
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            wishes.ask("build", name)
            wishes.carry_out(ticks)
            steps(ticks)
            assert ticks.waiting == [name]
        position = [feed.transaction(*c) for c in traffic(22, 5)][-1]
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            wishes.carry_out(ticks)
            for changes in traffic(23, 3):
                position = feed.transaction(*changes)
                steps(ticks)
            assert ticks.catching_up is None
            assert ticks.main.last.positions[project.name] == position
            assert ticks.main.last.views[name].generation == 1
            with (
                contextlib.closing(KafkaRanges(project.bootstrap)) as log,
            Follower(project.directory / "views", log, project.name) as follower,
                Views(project.directory / "views") as views,
            ):  # fmt: skip
                follower.step(0.1)
                position = feed.transaction(("customers", {"id": 1}, {"country": "BE"}))
                steps(ticks)
                follower.step(1.0)
                both = [views.sql(f'SELECT * FROM "{n}" ORDER BY ALL').rows for n in (name, f"{name}@2")]  # fmt: skip
                assert both[0] == both[1]
                assert both[0]
                wishes.ask("switch", name)
                wishes.carry_out(ticks)
                assert wishes.left == ["build", "switch"]
                project.catch_up(ticks, position)
                wishes.carry_out(ticks)
                assert wishes.left == []
                follower.step(1.0)
                assert f"{name}@2" not in views.names
                assert views.sql(f'SELECT * FROM "{name}" ORDER BY ALL').rows == both[0]
            assert ticks.main.last.views[name].generation == 2
            assert project.rows("per_country") == expected(feed, "per_country")


def test_a_rollback_shows_the_earlier_generation_as_it_was(project: Project) -> None:
    wishes, name = Wishes(project), f"{project.name}_paid"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(24, 20)][-1]
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
            assert not ticks.roll_back(name)
        before = project.rows("paid")
        with project.running(paid=OPEN) as ticks:
            project.catch_up(ticks, position)
            wishes.ask("rollback", name, generation=2)
            wishes.ask("rollback", name, generation=2)  # as if it was carried out, but not noted
            wishes.carry_out(ticks)
            assert wishes.left == []
            assert project.rows("paid") == before
            shown = ticks.main.last.views[name]
            assert (shown.topic, shown.generation) == (name, 3)
            position = [feed.transaction(*c) for c in traffic(25, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == before
        with project.running(paid=OPEN) as ticks:  # still so after a restart
            position = [feed.transaction(*c) for c in traffic(26, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == before
            wishes.ask("switch", name)
            wishes.carry_out(ticks)
            assert project.rows("paid") == expected(feed, "paid", "open")
            shown = ticks.main.last.views[name]
            assert (shown.topic, shown.generation) == (f"{name}.2", 4)
            assert not ticks.switch(name)
            position = [feed.transaction(*c) for c in traffic(27, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid", "open")
            assert ticks.roll_back(name)
        with project.running(paid=PAID) as ticks:  # the mended view takes the place of both
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid")
            assert ticks.main.last.views[name].generation == 6
            assert not ticks.main.last.live
            previous = ticks.main.last.previous(name)
            assert previous is not None


def test_drop_deletes_what_is_not_shown(project: Project) -> None:
    wishes, name = Wishes(project), f"{project.name}_paid"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(28, 10)][-1]
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            assert ticks.rebuild(name)
            project.catch_up(ticks, position)
            assert topics(project) >= {name, f"{name}.2"}
            wishes.ask("drop", name)
            wishes.carry_out(ticks)
            assert topics(project) == {f"{name}.2", f"{project.name}_per_country"}
            assert ticks.main.last.previous(name) is None
            assert project.rows("paid") == expected(feed, "paid")
        with project.running(per_country=PER_COUNTRY) as ticks:
            steps(ticks)
            assert ticks.drop(name) == [f"{name}.2"]
            assert topics(project) == {f"{project.name}_per_country"}
            assert ticks.drop(name) == []
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            assert ticks.main.last.views[name].generation == 1
            assert project.rows("paid") == expected(feed, "paid")


def test_drop_gives_up_a_held_generation(project: Project) -> None:
    wishes, name = Wishes(project), f"{project.name}_paid"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(32, 10)][-1]
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
            wishes.ask("build", name)
            wishes.carry_out(ticks)
            steps(ticks)
            assert topics(project) == {name, f"{name}.2"}
            wishes.ask("drop", name)
            wishes.carry_out(ticks)
            wishes.carry_out(ticks)
            assert wishes.left == []
            assert ticks.waiting == []
            assert topics(project) == {name}
            assert not list((project.directory / "state-filling").glob("*"))
            with LogReader(project.bootstrap) as reader:
                assert last_row(reader, f"{project.name}/{name}") is None
            position = [feed.transaction(*c) for c in traffic(33, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid")
            assert ticks.rebuild(name)
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid")


def test_a_rebuild_asked_for_after_a_first_fill_is_carried_out(project: Project) -> None:
    wishes, name = Wishes(project), f"{project.name}_paid"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(29, 10)][-1]
        with project.running(per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            wishes.ask("rebuild", name)
            wishes.ask("rebuild", "nonsense")
            wishes.carry_out(ticks)
            assert wishes.left == ["rebuild"]
            project.catch_up(ticks, position)
            wishes.carry_out(ticks)
            assert wishes.left == []
            assert ticks.main.last.views[name].generation == 2


CUSTOMER_360 = """SELECT c.id, count(o.id) AS orders, sum(o.amount) AS spent,
    collect_list(struct(o.id, o.amount, o.status) ORDER BY o.id) FILTER (WHERE o.id IS NOT NULL)
        AS history
    FROM {s}.customers c LEFT JOIN {s}.orders o ON o.customer_id = c.id GROUP BY c.id"""


def test_lists_of_structs_reach_sql_over_views(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(30, 20)][-1]
        with project.running(whole=CUSTOMER_360) as ticks:
            project.catch_up(ticks, position)
        with (
            contextlib.closing(KafkaRanges(project.bootstrap)) as log,
            Follower(project.directory / "views", log, project.name) as follower,
            Views(project.directory / "views") as views,
        ):  # fmt: skip
            follower.step(1.0)
            name = f"{project.name}_whole"
            rows: list[dict[str, Any]] = views.sql(f'SELECT * FROM "{name}"').rows
            flat = views.sql(f'SELECT o.id FROM (SELECT unnest(history) AS o FROM "{name}")').rows
        customers = feed.rows["customers"]
        orders = [o for o in feed.rows["orders"].values() if o["customer_id"] in {c["id"] for c in customers.values()}]  # fmt: skip
        assert sorted(row["id"] for row in flat) == sorted(o["id"] for o in orders)
        for row in rows:
            theirs = sorted((o for o in orders if o["customer_id"] == row["id"]), key=lambda o: o["id"])  # fmt: skip
            assert [(o["id"], str(o["amount"]), o["status"]) for o in row["history"]] == [
                (o["id"], str(o["amount"]), o["status"]) for o in theirs
            ]
        shown = {row["id"]: orjson.loads(orjson.dumps(row["history"], default=str)) for row in project.rows("whole")}  # fmt: skip
        assert len(shown) == len(rows) == len(customers)


def test_a_follower_that_was_away_during_a_drop_goes_on_with_what_is_shown(
    project: Project,
) -> None:
    name = f"{project.name}_paid"
    directory = project.directory / "views"
    with (
        ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed,
        project.running(paid=PAID) as ticks,
    ):
        project.catch_up(ticks, feed.transaction(*next(traffic(34, 1))))
        with contextlib.closing(KafkaRanges(project.bootstrap)) as log:
            with Follower(directory, log, project.name) as follower:
                follower.step(1.0)
            for changes in traffic(35, 10):
                project.catch_up(ticks, feed.transaction(*changes))
            assert ticks.rebuild(name)
            project.catch_up(ticks, ticks.main.last.positions[project.name])
            assert ticks.rebuild(name, hold=True)
            steps(ticks)
            assert ticks.drop(name) == [name, f"{name}.3"]
            with Follower(directory, log, project.name) as follower, Views(directory) as views:
                for _ in range(5):
                    follower.step(0.2)
                rows = views.sql(f'SELECT id, amount FROM "{name}"').rows
                assert views.names == [name]
        assert sorted((row["id"], str(row["amount"])) for row in rows) == sorted(
            (row["id"], str(row["amount"])) for row in expected(feed, "paid")
        )
