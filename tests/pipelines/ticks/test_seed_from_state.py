"""A new view begins with the rows that running operators hold, at one cut."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.filling_driver import STEPS
from pipelines.ticks.test_fill import OPEN, PAID, PER_COUNTRY, Project, expected
from pipelines.ticks.test_ticks import in_process
from tailrace.client.admin import Admin
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.driver import last_row
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.testing.feed import ChangeFeed

SCRIPT = Path(__file__).parent / "filling_driver.py"
TOTALS = """SELECT c.country, sum(o.amount) AS value FROM {s}.orders o
    JOIN {s}.customers c ON c.id = o.customer_id GROUP BY c.country"""


class Counting:
    """Runs ticks, and remembers what those of fills have read."""

    def __init__(self, run=in_process) -> None:  # type: ignore[no-untyped-def]
        self.run = run
        self.fills: list[Work] = []
        self.records = 0

    def __call__(self, work: Work) -> Outcome:
        outcome: Outcome = self.run(work)
        if "-filling/" in work.state:
            self.fills.append(work)
            self.records += outcome.records
        return outcome


@pytest.fixture
def project(tailrace_broker: str, tmp_path: Path) -> Project:
    return Project(tailrace_broker, tmp_path, Counting())  # type: ignore[arg-type]


def fills(project: Project) -> Counting:
    assert isinstance(project.run, Counting)
    return project.run


BOTH_WAYS = pytest.mark.parametrize(
    ("limit", "run"),
    [
        (4, run_levels_here),
        (1000, in_process),
        pytest.param(4, in_process, marks=pytest.mark.thorough),
        pytest.param(1000, run_levels_here, marks=pytest.mark.thorough),
    ],
)


@BOTH_WAYS
def test_what_running_operators_hold_is_not_read_again(
    project: Project, limit: int, run: object
) -> None:
    project.run = Counting(run)
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(41, 40)][-1]
        with project.running(per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
        with project.running(limit=limit, per_country=PER_COUNTRY, paid=PAID) as ticks:
            assert ticks.waiting
            project.catch_up(ticks, position)
            assert fills(project).records == 0
            assert fills(project).fills[0].adoption is not None
            held = len(feed.rows["orders"])
            assert len(fills(project).fills) >= (held // limit if limit < held else 1)
            assert project.rows("paid") == expected(feed, "paid")
            for changes in traffic(42, 5):
                project.catch_up(ticks, feed.transaction(*changes))
                assert project.rows("paid") == expected(feed, "paid")
                assert project.rows("per_country") == expected(feed, "per_country")
        with project.running(per_country=PER_COUNTRY, paid=PAID) as ticks:
            position = [feed.transaction(*c) for c in traffic(43, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid")


@BOTH_WAYS
def test_of_a_table_that_nobody_reads_the_topic_is_read_and_of_others_the_rows(
    project: Project, limit: int, run: object
) -> None:
    project.run = Counting(run)
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(53, 40)][-1]
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
        with LogReader(project.bootstrap) as reader:
            records = sum(end for _, end in reader.bounds(feed.topic("customers")).values())
        for number in range(4 if limit < 10 else 1):  # with restarts in between
            with project.running(limit=limit, paid=PAID, per_country=PER_COUNTRY) as ticks:
                assert ticks.waiting
                position = feed.transaction(*next(traffic(54 + number, 1)))
                for _ in range(3):
                    ticks.step(0.2)
        with project.running(limit=limit, paid=PAID, per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
            assert sum(work.adoption is not None for work in fills(project).fills) == 1
            # Markers are no records; a few came since.
            assert fills(project).records <= records + 8 * 4
            most = max(sum(r.end - r.start for r in w.ranges) for w in fills(project).fills)
            assert most <= max(limit, 16)
            assert project.rows("per_country") == expected(feed, "per_country")
            for changes in traffic(58, 5):
                project.catch_up(ticks, feed.transaction(*changes))
                assert project.rows("per_country") == expected(feed, "per_country")
                assert project.rows("paid") == expected(feed, "paid")


def test_a_table_whose_first_copy_runs_is_waited_for(project: Project) -> None:
    customer = ("customers", {"id": 1}, {"country": "NL"})
    order = {"customer_id": 1, "amount": "1.00", "status": "open"}
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = feed.transaction(
            *(("orders", {"id": n}, order) for n in range(9)), copying=["customers"]
        )
        with project.running(paid=PAID) as ticks:
            project.catch_up(ticks, position)
        with project.running(paid=PAID, per_country=PER_COUNTRY) as ticks:
            for _ in range(5):
                ticks.step(0.2)
            assert ticks.waiting  # the copy is not whole at this cut: nothing is shown
            position = feed.transaction(customer)
            project.catch_up(ticks, position)
            assert not ticks.waiting
        assert project.rows("per_country") == expected(feed, "per_country")


def test_the_project_ticks_on_while_rows_are_read_and_only_what_is_new_is_read_of_topics(
    project: Project,
) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(44, 40)][-1]
        with project.running(per_country=PER_COUNTRY) as ticks:
            project.catch_up(ticks, position)
        shares: list[float] = []
        later = traffic(45, 30)
        for _ in range(4):  # with restarts in between
            with project.running(limit=2, per_country=PER_COUNTRY, paid=PAID) as ticks:
                for _ in range(3):
                    position = feed.transaction(*next(later))
                    ticks.step(0.5)
                    assert project.rows("per_country") != []
                shares.append(ticks.filled_shares[f"{project.name}_paid"])
        assert shares == sorted(shares)
        assert shares[0] < shares[-1] <= 1
        assert sum(work.adoption is not None for work in fills(project).fills) == 1
        with project.running(per_country=PER_COUNTRY, paid=PAID) as ticks:
            project.catch_up(ticks, position)
        assert 0 < fills(project).records < 30 * 8
        assert project.rows("paid") == expected(feed, "paid")
        assert project.rows("per_country") == expected(feed, "per_country")


def test_a_shared_operator_may_go_while_its_rows_are_read(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(46, 30)][-1]
        with project.running(per_country=PER_COUNTRY, open=OPEN) as ticks:
            project.catch_up(ticks, position)
        names = {"per_country": PER_COUNTRY, "open": OPEN, "totals": TOTALS}
        with project.running(limit=3, **names) as ticks:
            for _ in range(3):
                ticks.step(0.5)
            assert ticks.waiting
        del names["per_country"]  # the join and its customers go with it
        position = [feed.transaction(*c) for c in traffic(47, 5)][-1]
        with project.running(limit=3, **names) as ticks:
            project.catch_up(ticks, position)
            for changes in traffic(48, 4):
                project.catch_up(ticks, feed.transaction(*changes))
        with project.running(per_country=PER_COUNTRY, **names) as ticks:
            project.catch_up(ticks, position := feed.transaction(*next(traffic(49, 1))))
        countries = {row["id"]: row["country"] for row in feed.rows["customers"].values()}
        values: dict[str | None, float] = {}
        for order in feed.rows["orders"].values():
            if order["customer_id"] in countries:
                country = countries[order["customer_id"]]
                values[country] = values.get(country, 0) + float(order["amount"])
        shown = {row["country"]: float(row["value"]) for row in project.rows("totals")}
        assert shown == pytest.approx(values)
        assert project.rows("per_country") == expected(feed, "per_country")


# The last order of each customer; but with a gap in them, several seem to be the last.
NEWEST = """SELECT o.customer_id, o.id FROM {s}.orders o
    WHERE NOT EXISTS (SELECT 1 FROM {s}.orders n WHERE n.id = o.id + 1
        AND n.customer_id = o.customer_id)"""


def test_rows_that_fail_in_part_are_read_from_the_topics(project: Project) -> None:
    project.keys["newest"] = "customer_id"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        for number in range(60):
            order = {"customer_id": number // 6, "amount": "1.00", "status": "open"}
            position = feed.transaction(("orders", {"id": number}, order))
        with project.running(open=OPEN) as ticks:
            project.catch_up(ticks, position)
        with project.running(limit=3, open=OPEN, newest=NEWEST) as ticks:
            project.catch_up(ticks, position)
            assert fills(project).fills[0].adoption is not None
            assert fills(project).records == 60
            shown = ticks.main.last.views[f"{project.name}_newest"].topic
        want = [{"customer_id": n, "id": 6 * n + 5} for n in range(10)]
        assert project.rows("newest") == want
        with Admin(project.bootstrap) as admin:
            assert {t.name for t in admin.list_topics() if "_newest" in t.name} == {shown}


def test_a_rebuild_reads_the_topics(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(50, 10)][-1]
        with project.running(per_country=PER_COUNTRY, paid=PAID) as ticks:
            project.catch_up(ticks, position)
            assert ticks.rebuild(f"{project.name}_paid")
            project.catch_up(ticks, position)
            assert fills(project).records > 0
            assert project.rows("paid") == expected(feed, "paid")


def forget_the_beginning(project: Project, feed: ChangeFeed, table: str) -> None:
    """What retention does: the older half of a table's records goes."""
    topic = feed.topic(table)
    with LogReader(project.bootstrap) as reader:
        ends = {(topic, p): end // 2 for p, (_, end) in reader.bounds(topic).items()}
    with Admin(project.bootstrap) as admin:
        admin.alter_topic_config(topic, {"cleanup.policy": "delete"})
        admin.delete_records(ends)


@pytest.mark.parametrize("limit", [3, 1000])
def test_a_rebuild_keeps_rows_that_are_no_longer_in_their_topic(
    project: Project, limit: int
) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(51, 30)][-1]
        with project.running(per_country=PER_COUNTRY, paid=PAID) as ticks:
            project.catch_up(ticks, position)
        forget_the_beginning(project, feed, "orders")
        names = {"per_country": PER_COUNTRY, "paid": PAID, "open": OPEN}
        with project.running(limit=limit, **names) as ticks:
            project.catch_up(ticks, position)
            assert ticks.rebuild(f"{project.name}_paid")
            assert ticks.rebuild(f"{project.name}_per_country")
            project.catch_up(ticks, position)
            for changes in traffic(52, 3):
                project.catch_up(ticks, feed.transaction(*changes))
            assert ticks.main.last.views[f"{project.name}_paid"].generation == 2
        assert project.rows("paid") == expected(feed, "paid")
        assert project.rows("open") == expected(feed, "open", "open")
        assert project.rows("per_country") == expected(feed, "per_country")


def test_rows_that_fail_in_part_are_read_at_once_where_the_topic_has_lost_some(
    project: Project,
) -> None:
    project.keys["newest"] = "customer_id"
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        for number in range(60):
            order = {"customer_id": number // 6, "amount": "1.00", "status": "open"}
            position = feed.transaction(("orders", {"id": number}, order))
        with project.running(open=OPEN) as ticks:
            project.catch_up(ticks, position)
        forget_the_beginning(project, feed, "orders")
        with project.running(limit=3, open=OPEN, newest=NEWEST) as ticks:
            project.catch_up(ticks, position)
            assert fills(project).records == 0
        want = [{"customer_id": n, "id": 6 * n + 5} for n in range(10)]
        assert project.rows("newest") == want


@pytest.mark.parametrize(
    "step",
    [step if step == "committing" else pytest.param(step, marks=pytest.mark.crash) for step in STEPS],
)  # fmt: skip
@pytest.mark.parametrize(
    "first",
    [pytest.param({"per_country": PER_COUNTRY}, marks=pytest.mark.crash), {"paid": PAID}],
)
def test_a_fill_killed_at_any_step_begins_with_each_row_once(
    log_address: str, tmp_path: Path, step: str, first: dict[str, str]
) -> None:
    """The second view of the two is filled from rows of the first one's operators; and, if it
    joins a table that the first does not read, from the topic of that."""
    project = Project(log_address, tmp_path, Counting())  # type: ignore[arg-type]
    with ChangeFeed(log_address, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(len(step), 20)][-1]
        with project.running(**first) as ticks:
            project.catch_up(ticks, position)
        for number in (1, 2, 3):  # with the copy of the state; with rows of it; once more
            run = subprocess.run(
                [sys.executable, str(SCRIPT), log_address, project.name, str(tmp_path), step, str(number)],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            assert run.returncode == -signal.SIGKILL, run.stderr
            position = feed.transaction(*next(traffic(60 + number, 1)))
        with project.running(limit=5, per_country=PER_COUNTRY, paid=PAID) as ticks:
            project.catch_up(ticks, position)
        assert project.rows("paid") == expected(feed, "paid")
        assert project.rows("per_country") == expected(feed, "per_country")
        filled = ({"per_country", "paid"} - first.keys()).pop()
        with LogReader(log_address) as reader:
            assert last_row(reader, f"{project.name}/{project.name}_{filled}") is None
