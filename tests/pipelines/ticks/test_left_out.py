"""A view whose SQL does not fit its tables is left out; the others go on."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.ticks.test_fill import OPEN, PAID, Project, expected
from tailrace import config
from tailrace.cli.pipeline import pipeline
from tailrace.pipelines.declare import View, mark_of
from tailrace.pipelines.process import requests, runner
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed


@pytest.fixture
def project(tailrace_broker: str, tmp_path: Path) -> Project:
    return Project(tailrace_broker, tmp_path)


def part_of(project: Project) -> Part:
    return Part("p", "pipelines", project.name, project.bootstrap, project.directory / ".tailrace")


def declared(project: Project, views: list[View]) -> runner.Declared:
    return runner.Declared(views, [], [], config.load(project.directory))


def test_a_view_that_does_not_fit_its_tables_does_not_keep_the_others(project: Project) -> None:
    views = [
        tr.view("fits", f"SELECT id FROM {project.name}.orders"),
        tr.view("dropped", f"SELECT id,\n colour FROM {project.name}.orders"),
        tr.view("behind", "SELECT id FROM dropped"),
        tr.view("typed", f"SELECT id FROM {project.name}.orders WHERE amount = TRUE"),
    ]
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        feed.transaction(*next(traffic(1, 1)))
        compiled = runner.wait_for_tables(declared(project, views), part_of(project))
    assert compiled is not None
    assert list(compiled.graph.views) == ["fits"]
    assert compiled.failed.keys() == {"dropped", "behind", "typed"}
    assert "line 2:  colour" in compiled.failed["dropped"]["detail"]


def test_a_table_that_is_never_described_is_not_waited_for_for_ever(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_DESCRIBING_SECONDS", 1.0)
    views = [
        tr.view("there", f"SELECT id FROM {project.name}.orders"),
        tr.view("absent", f"SELECT id FROM {project.name}.nothing"),
    ]
    with ChangeFeed(project.bootstrap, project.name, [ORDERS]) as feed:
        feed.transaction(("orders", {"id": 1}, {"customer_id": 1, "amount": "1", "status": "a"}))
        compiled = runner.wait_for_tables(declared(project, views), part_of(project))
        assert compiled is not None
        assert compiled.failed["absent"]["code"] == "sql-table"
        # Nothing to run at all: it goes on waiting.
        part = part_of(project)
        threading.Timer(2.5, part.stopping.set).start()
        assert runner.wait_for_tables(declared(project, views[1:]), part) is None


def test_nothing_is_taken_over_while_a_registry_does_not_answer(project: Project) -> None:
    settings = config.load(project.directory)
    away = replace(settings, registry=config.RegistrySettings(url="http://127.0.0.1:1"))
    views = [tr.view("clicked", "SELECT user FROM clicks")]
    part = part_of(project)
    requests.ask(part.directory, "apply", "1")
    (request,) = requests.waiting(part.directory)
    reload = runner.Reload(lambda: runner.Declared(views, [], [tr.topic("clicks")], away))
    runner._read_again(request, part, reload)
    applied = orjson.loads(part.report_path.read_bytes())["applied"]
    assert (applied["number"], applied["error"]["code"]) == ("1", "client-registry")
    assert requests.waiting(part.directory) == []


def test_a_jar_that_changed_or_is_gone_is_a_change_and_ends_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[Path] = []
    monkeypatch.setattr(runner, "mark_changed", marked.append)
    jar = project.directory / "f.jar"
    function = tr.java_function("f", "F", jars="f.jar", returns="INT").of(project.directory)
    replaced: list[object] = []

    class Running:
        tables: object = ()

        def replace(self, *given: object) -> None:
            replaced.append(given)

    def read() -> runner.Declared:
        references = runner.references_of([function])
        return replace(declared(project, []), functions=[function], references=references)

    jar.write_bytes(b"one")
    first = read()
    jar.unlink()
    gone = read()
    jar.write_bytes(b"other")
    for before, now, differs in ((first, gone, 1), (gone, read(), 2), (read(), read(), 2)):
        changed = runner.DeclarationsChanged(now, "7")
        assert runner._take_over(before, changed, Running(), part_of(project)) is now  # type: ignore[arg-type]
        assert len(marked) == differs
    assert gone.references == {"f": None}
    assert len(replaced) == 3


def test_a_view_left_out_is_shown_as_it_was_and_comes_back(project: Project) -> None:
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        position = [feed.transaction(*c) for c in traffic(71, 20)][-1]
        with project.running(paid=PAID, open=OPEN) as ticks:
            project.catch_up(ticks, position)
        before = project.rows("paid")
        project.left_out = frozenset([f"{project.name}_paid"])
        with project.running(open=OPEN) as ticks:
            position = [feed.transaction(*c) for c in traffic(72, 5)][-1]
            project.catch_up(ticks, position)
            assert project.rows("open") == expected(feed, "open", "open")
            assert project.rows("paid") == before
        project.left_out = frozenset()
        with project.running(paid=PAID, open=OPEN) as ticks:
            assert ticks.waiting == [f"{project.name}_paid"]
            project.catch_up(ticks, position)
            assert project.rows("paid") == expected(feed, "paid")
            assert ticks.main.last.views[f"{project.name}_paid"].generation == 2


def test_no_erasure_counts_as_cleared_while_a_view_is_left_out(project: Project) -> None:
    class Waiting:
        ids: tuple[str, ...] = ()

        def waiting(self) -> dict[str, list[str]]:
            return {"e1": [f"{project.name}.orders"]}

        def cleared(self, ids: Collection[str]) -> None:
            self.ids = tuple(ids)

    part, erasures = part_of(project), Waiting()
    views = [tr.view("fits", f"SELECT id FROM {project.name}.customers")]
    given = replace(declared(project, views), erasures=erasures)
    with ChangeFeed(project.bootstrap, project.name, [ORDERS, CUSTOMERS]) as feed:
        feed.transaction(*next(traffic(1, 1)))
        compiled = runner.wait_for_tables(given, part)
    assert compiled is not None
    with project.running(open=OPEN) as ticks:
        ticks.views_of = lambda topics: []  # type: ignore[method-assign]
        without = replace(compiled, failed={"paid": {"error": "no such column"}})
        assert runner._clearing(given, without, ticks, part) is None
        clearing = runner._clearing(given, compiled, ticks, part)
        assert clearing is not None
        clearing.step()
    assert erasures.ids == ("e1",)


def test_the_list_of_pipelines_tells_what_runs_from_what_is_declared(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    same, other = "SELECT id FROM clicks", "SELECT id, 1 AS one FROM clicks"
    (tmp_path / "pipelines" / "p.py").write_text(
        'import tailrace as tr\nclicks = tr.topic("clicks", schema="id BIGINT")\n'
        + "".join(f'{name} = tr.view("{name}", "{same}")\n' for name in ("a", "b", "c", "d"))
    )
    part = Part("p", "pipelines", "p", "127.0.0.1:1", tmp_path / ".tailrace")
    marks = {"a": mark_of(same, "auto"), "b": mark_of(other, "auto"), "d": "", "e": "gone"}
    part.report("running", tick=7, views=marks, failed={"d": {"error": "no"}})
    result = CliRunner().invoke(pipeline, ["list", "--json", "--log", str(tmp_path)])
    states = {row["name"]: row["state"] for row in orjson.loads(result.output)}
    assert states == {
        "a": "running",
        "b": "changed: `tailrace apply`",
        "c": "new: `tailrace apply`",
        "d": "failed",
        "e": "running, no longer declared: `tailrace apply`",
    }
