"""`tailrace view verify`: views beside Spark's own answers at a cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from click.testing import CliRunner

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_fill import OPEN, PAID, PER_COUNTRY, Project
from tailrace.cli.view import view
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.errors import DataLostError, ViewNotJudgedError
from tailrace.pipelines.reading.catalog import read_catalog
from tailrace.pipelines.reading.ranges import LogRanges
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.driver import last_row
from tailrace.pipelines.ticks.verification import Question, Verdict, contents, verify
from tailrace.project import verify as project_verify
from tailrace.testing.feed import ChangeFeed, FeedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVENTS = FeedTable("events", (("kind", "STRING"), ("amount", "DECIMAL(10,2)")), ())
VIEWS = {
    "paid": PAID,
    "per_country": PER_COUNTRY,
    "bag": "SELECT status, amount > 50 AS large FROM {s}.public.orders",
    "mean": "SELECT status, avg(CAST(amount AS DOUBLE)) AS mean, '{s}.public.orders' AS text"
    " FROM {s}.public.orders GROUP BY status",
    "above": "SELECT count(*) AS n, max(orders) AS most FROM {s}_per_country",
    "late": "SELECT c.id, max(o.amount) AS most, array_sort(collect_set(o.status)) AS seen"
    " FROM {s}.customers c LEFT JOIN {s}.orders o ON o.customer_id = c.id GROUP BY c.id",
    "kinds": "SELECT kind, sum(amount) AS total FROM {s}.events GROUP BY kind",
}


class Judge:
    """Asks about the views of a project that has ticked."""

    def __init__(self, project: Project, spark: SparkSession, directory: Path) -> None:
        self.project, self.spark, self.directory = project, spark, directory
        texts = {f"{project.name}_{n}": t.format(s=project.name) for n, t in VIEWS.items()}
        with LogReader(project.bootstrap) as reader:
            tables = list(read_catalog(reader, [project.name]).tables.values())
            tick = last_row(reader, project.name)
        assert tick is not None
        graph = compile_views([tr.view(n, t) for n, t in texts.items()], tables)
        reads = {f"{project.name}_above": [f"{project.name}_per_country"]}
        self.question = Question(graph, tick, "", texts, reads)

    def ask(self, name: str, text: str | None = None) -> Verdict:
        name = f"{self.project.name}_{name}"
        question = replace(self.question, name=name)
        if text is not None:
            question = replace(question, texts={**question.texts, name: text.format(s=self.project.name)})  # fmt: skip
        log = LogRanges(self.project.bootstrap)
        try:
            return verify(self.spark, log, question, self.directory)
        finally:
            log.close()


@pytest.fixture
def project(tailrace_broker: str, tmp_path: Path) -> Project:
    (tmp_path / ".tailrace").mkdir()
    return Project(tailrace_broker, tmp_path / ".tailrace")


def events(numbers: range) -> list[tuple[str, dict[str, object], dict[str, object] | None]]:
    return [("events", {}, {"kind": f"k{n % 3}", "amount": f"{n}.50"}) for n in numbers]


def test_a_view_is_compared_with_sparks_answer_at_its_tick(
    project: Project, spark: SparkSession, tmp_path: Path
) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS, EVENTS]) as feed:
        for changes in traffic(5, 25):
            feed.transaction(*changes)
        position = feed.transaction(*events(range(9)))
        with project.running(**VIEWS) as ticks:
            project.catch_up(ticks, position)
        for changes in traffic(6, 5):  # beyond the cut
            feed.transaction(*changes)
        judge = Judge(project, spark, tmp_path)
        for name in VIEWS:
            verdict = judge.ask(name)
            assert verdict.equal, (name, verdict)
            assert verdict.rows > 0
        wrong = judge.ask("paid", OPEN)
        assert not wrong.equal
        assert wrong.differing >= len(wrong.differences) > 0
        assert all(one.view is None or one.spark is None for one in wrong.differences)
        wrong = judge.ask("kinds", "SELECT kind, sum(amount) + 1 AS total FROM {s}.events GROUP BY kind")  # fmt: skip
        assert [one.key for one in wrong.differences] == [{"kind": f"k{n}"} for n in range(3)]
        assert wrong.types
        twice = judge.ask("per_country", PER_COUNTRY + " UNION ALL " + PER_COUNTRY)
        assert twice.differing == twice.rows
        assert {one.times for one in twice.differences} == {2}
        with pytest.raises(ViewNotJudgedError, match="Spark does not answer") as refused:
            judge.ask("paid", "SELECT nonsense FROM {s}.orders")
        assert "nonsense" in refused.value.detail
        _refusals(judge)
        _command(project, judge, tmp_path)


def _refusals(judge: Judge) -> None:
    name, question = f"{judge.project.name}_paid", judge.question
    assert name in question.tick.views
    judge.question = replace(question, tick=replace(question.tick, live={name: "x"}))
    with pytest.raises(ViewNotJudgedError, match="rolled back"):
        judge.ask("paid")
    judge.question = replace(question, tick=replace(question.tick, nodes={}))
    with pytest.raises(ViewNotJudgedError, match="as it is declared now"):
        judge.ask("paid")
    with LogReader(judge.project.bootstrap) as reader:
        tables = list(read_catalog(reader, [judge.project.name]).tables.values())
    clock = PAID.format(s=judge.project.name) + " AND year(now()) > amount"
    graph = compile_views([tr.view(name, clock)], tables)
    nodes = {name: graph.views[name].node}
    tick = replace(question.tick, nodes=nodes, operators=tuple(n.id for n in graph.nodes))
    judge.question = replace(question, tick=tick, graph=graph)
    with pytest.raises(ViewNotJudgedError, match="depends on the clock"):
        judge.ask("paid")
    judge.question = question


def _command(project: Project, judge: Judge, home: Path) -> None:
    """The command in a project's directory, on the Spark that runs."""
    (home / "tailrace.toml").write_text(
        f'[project]\nname = "{project.name}"\n[log]\nbootstrap = "{project.bootstrap}"\n'
    )
    (home / "pipelines").mkdir()
    for name, text in judge.question.texts.items():
        (home / "pipelines" / f"{name}.sql").write_text(text)

    (home / "pipelines" / f"{project.name}_clock.sql").write_text(
        PAID.format(s=project.name) + " AND year(now()) > amount"
    )

    def call(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(view, ["verify", *arguments, "--log", str(home)])
        if isinstance(found.exception, TailraceError):
            raise found.exception
        return found.exit_code, found.output

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(project_verify, "_spark", lambda _: _Running(judge))
        code, text = call(f"{project.name}_paid", f"{project.name}_above")
        assert code == 0, text
        assert text.count("equal to Spark's answer at tick") == 2
        code, text = call(f"{project.name}_above", "--json")
        told = orjson.loads(text)
        assert (code, told["equal"], told["rows"], told["spark_rows"]) == (0, True, 1, 1)
        code, text = call()  # all of them, and one that no batch query answers
        assert (code, text.count("equal to Spark's answer at tick")) == (1, len(VIEWS))
        assert f"{project.name}_clock: not compared" in text
        with pytest.raises(TailraceError, match="there is no view 'nonsense'"):
            call("nonsense")


class _Running:
    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def __enter__(self) -> tuple[SparkSession, Path]:
        return self.judge.spark, self.judge.directory

    def __exit__(self, *problem: object) -> None:
        pass


def test_records_that_are_gone_are_no_answer(project: Project) -> None:
    from tailrace.client.admin import Admin

    with ChangeFeed(project.bootstrap, project.name, [EVENTS]) as feed:
        position = feed.transaction(*events(range(20)))
        with project.running(kinds=VIEWS["kinds"]) as ticks:
            project.catch_up(ticks, position)
    with LogReader(project.bootstrap) as reader:
        tick = last_row(reader, project.name)
        table = read_catalog(reader, [project.name]).tables[f"{project.name}.public.events"]
    assert tick is not None
    log = LogRanges(project.bootstrap)
    try:
        assert contents(log, table, tick).num_rows == 20
        with Admin(project.bootstrap) as admin:
            admin.delete_records({(table.topic, p): 1 for p in tick.inputs[table.topic]})
        with pytest.raises(DataLostError, match="before offset"):
            contents(log, table, tick)
    finally:
        log.close()
