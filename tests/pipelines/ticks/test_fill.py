"""Views that come, change and go while the project ticks on."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_ticks import in_process
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.reading.catalog import read_catalog
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.ticks.driver import Runner, TickSettings, last_row
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.testing.feed import ChangeFeed


class Project:
    def __init__(self, bootstrap: str, directory: Path, run: Runner = in_process) -> None:
        self.run = run
        self.bootstrap = bootstrap
        self.directory = directory
        self.name = f"shop{uuid.uuid4().hex[:8]}"
        self.keys: dict[str, str] = {}  # of views, where they are declared
        self.left_out: frozenset[str] = frozenset()  # declared, but not compiled
        self.ticked = 0  # the last tick that was seen to be committed

    @contextlib.contextmanager
    def running(self, limit: int = 1000, **sql: str) -> Iterator[ProjectTicks]:
        views = [
            tr.view(f"{self.name}_{name}", text.format(s=self.name), key=self.keys.get(name))
            for name, text in sql.items()
        ]
        with LogReader(self.bootstrap) as reader:
            graph = compile_views(views, read_catalog(reader, [self.name]).tables.values())
        ticks = ProjectTicks(
            graph,
            TickSettings(
                self.name, self.bootstrap, str(self.directory / "state"),
                str(self.directory / "cache"), shards=3, limit=limit,
                declared=self.left_out,
            ),
            self.run,
        )  # fmt: skip
        try:
            ticks.start()
            yield ticks
        finally:
            ticks.close()

    def catch_up(self, ticks: ProjectTicks, position: str) -> None:
        for _ in range(300):
            if not ticks.waiting and ticks.main.last.positions.get(self.name) == position:
                self.ticked = ticks.main.last.number
                return
            ticks.step(0.5)
        raise AssertionError(f"never reached {position}: {ticks.main.last}, {ticks.filling}")

    def rows(self, view: str) -> list[dict[str, Any]]:
        """A view as a follower shows it: its topic up to the ends of the last row."""
        with LogReader(self.bootstrap) as reader:
            tick = last_row(reader, self.name)
            while tick is None or tick.number < self.ticked:
                tick = last_row(reader, self.name)  # Kafka tells of a commit before it shows it
            info = tick.views[f"{self.name}_{view}"]
            shown: dict[bytes, dict[str, Any]] = {}
            ranges = [Range(info.topic, p, 0, end) for p, end in tick.ends[info.topic].items()]
            for records in reader.read(ranges):
                for key, value in zip(records.keys, records.values, strict=True):
                    assert key is not None
                    shown.pop(key, None)
                    if value is not None:
                        shown[key] = orjson.loads(value)["row"]
        return sorted(shown.values(), key=orjson.dumps)


PAID = "SELECT id, amount FROM {s}.orders WHERE status = 'paid'"
OPEN = "SELECT id, amount FROM {s}.orders WHERE status = 'open'"
COUNTRIES = "SELECT id, country FROM {s}.customers"
PER_COUNTRY = """SELECT c.country, count(*) AS orders FROM {s}.orders o
    JOIN {s}.customers c ON c.id = o.customer_id GROUP BY c.country"""


@pytest.fixture
def project(log_address: str, tmp_path: Path) -> Project:
    return Project(log_address, tmp_path)


def expected(feed: ChangeFeed, view: str, status: str = "paid") -> list[dict[str, Any]]:
    orders = feed.rows["orders"].values()
    if view != "per_country":
        rows = [{"id": o["id"], "amount": o["amount"]} for o in orders if o["status"] == status]
    else:
        countries = {row["id"]: row["country"] for row in feed.rows["customers"].values()}
        counts: dict[str | None, int] = {}
        for o in orders:
            if o["customer_id"] in countries:
                country = countries[o["customer_id"]]
                counts[country] = counts.get(country, 0) + 1
        rows = [{"country": country, "orders": n} for country, n in counts.items()]
    return sorted(rows, key=orjson.dumps)


@pytest.mark.parametrize("limit", [4, 1000])
def test_a_new_view_is_filled_beside_the_others(project: Project, limit: int) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(1, 25)][-1]
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
        position = [feed.transaction(*c) for c in traffic(2, 10)][-1]
        with project.running(limit=limit, paid=PAID, per_country=PER_COUNTRY) as ticks:
            assert ticks.waiting == [f"{project.name}_per_country"]
            project.catch_up(ticks, position)
            for changes in traffic(3, 6):
                project.catch_up(ticks, feed.transaction(*changes))
                assert project.rows("paid") == expected(feed, "paid")
                assert project.rows("per_country") == expected(feed, "per_country")
        assert not list((project.directory / "state-filling").glob("*"))


def test_a_view_declared_anew_is_shown_as_it_was_until_it_is_filled(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(4, 20)][-1]
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
        before = project.rows("paid")
        with project.running(limit=3, paid=OPEN, per_country=PER_COUNTRY) as ticks:
            position = feed.transaction(("customers", {"id": 1}, {"country": "NL"}))
            ticks.step(0.5)
            assert project.rows("paid") == before
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid", "open")
            assert ticks.main.last.views[f"{project.name}_paid"].generation == 2
            position = [feed.transaction(*c) for c in traffic(5, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid", "open")
            assert project.rows("per_country") == expected(feed, "per_country")


def test_a_fill_goes_on_after_a_restart_and_other_sql_begins_anew(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(6, 30)][-1]
        with project.running(countries=COUNTRIES) as ticks:
            project.catch_up(ticks, position)
        shares: list[float] = []
        for _ in range(3):
            with project.running(limit=3, countries=COUNTRIES, paid=PAID) as ticks:
                for _ in range(4):
                    ticks.step(0.5)
                done = next(iter(ticks.filling.values()))
                shares.append(next(iter(ticks.filled_shares.values())))
        assert done > 4
        assert 0 < shares[0] < shares[-1] < 1
        with project.running(limit=3, countries=COUNTRIES, paid=OPEN) as ticks:
            before = ticks.main.last.number
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid", "open")
            # Later than every tick of the fill: what it read must not count as newer.
            assert ticks.main.last.number > before + 10


def test_a_removed_view_leaves_no_state_behind(project: Project) -> None:
    from tailrace.pipelines.state.files import LocalFiles
    from tailrace.pipelines.state.shard import Attempt

    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(7, 20)][-1]
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            both = set(ticks.main.last.operators)
        with project.running(paid=PAID) as ticks:
            ticks.step(0.5)
            position = [feed.transaction(*c) for c in traffic(8, 3)][-1]
            project.catch_up(ticks, position)
            last = ticks.main.last
            assert set(last.operators) < both
            assert last.views.keys() == {f"{project.name}_paid"}
            files = LocalFiles(project.directory / "state")
            with Attempt.begin(files, project.directory / "elsewhere", last.state) as attempt:
                for shard in last.state:
                    assert set(attempt.shard(shard).operators()) <= set(last.operators)
        assert project.rows("paid") == expected(feed, "paid")


def test_a_rebuilt_view_is_shown_up_to_date_until_its_new_generation_takes_over(
    project: Project,
) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(9, 25)][-1]
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
        with project.running(limit=4, paid=PAID, per_country=PER_COUNTRY) as ticks:
            assert not ticks.rebuild("nonsense")
            assert ticks.rebuild(f"{project.name}_per_country")
            position = [feed.transaction(*c) for c in traffic(10, 3)][-1]
            while ticks.main.last.positions[project.name] != position:
                ticks.step(0.5)
            assert ticks.waiting
            assert project.rows("per_country") == expected(feed, "per_country")
            project.catch_up(ticks, position)
            assert ticks.main.last.views[f"{project.name}_per_country"].generation == 2
            assert project.rows("per_country") == expected(feed, "per_country")
            position = [feed.transaction(*c) for c in traffic(11, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("per_country") == expected(feed, "per_country")
            assert project.rows("paid") == expected(feed, "paid")


def test_what_operators_keep_is_told_from_the_running_cache(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tailrace.pipelines.state import inspect
    from tailrace.pipelines.state.cache import close_opened
    from tailrace.pipelines.state.files import LocalFiles
    from tailrace.pipelines.state.inspect import cached_sizes, current_sizes, sizes

    assert cached_sizes(project.directory / "cache") == {}
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(12, 10)][-1]
        with project.running(limit=3, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            last = ticks.main.last
    close_opened()  # as another process finds it
    files = LocalFiles(project.directory / "state")
    exact = sizes(files, project.directory / "scratch", last.state)
    told = cached_sizes(project.directory / "cache")
    # The running cache is at most one tick behind.
    assert told.keys() == exact.keys()
    assert sum(size.rows for size in told.values()) > 0
    close_opened()
    # What the last tick changed has not come to the caches yet: it is read from its files.
    assert {n: s.rows for n, s in told.items()} != {n: s.rows for n, s in exact.items()}
    now, whole = current_sizes(
        files, project.directory / "cache", project.directory / "more", last.state
    )
    assert ({n: s.rows for n, s in now.items()}, whole) == (
        {n: s.rows for n, s in exact.items()},
        True,
    )
    close_opened()
    monkeypatch.setattr(inspect, "MOST_BYTES_READ", 1)
    assert current_sizes(
        files, project.directory / "cache", project.directory / "more", last.state
    ) == (told, False)
