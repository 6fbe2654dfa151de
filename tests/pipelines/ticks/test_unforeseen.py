"""An exception nobody foresaw stops the views that meet it; the others go on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.test_ticks import in_process
from tailrace import config
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import EventTime, Topic
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.engine.unforeseen import is_foreseen, unforeseen
from tailrace.pipelines.errors import EvaluationError, UnforeseenError
from tailrace.pipelines.process import runner
from tailrace.pipelines.process.running_streams import RunningStreams
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.driver import Runner, TickSettings, last_row
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.telemetry.part import Part


class Broken:
    """An operator that raises what nobody foresaw; everything else is the one it replaces."""

    def __init__(self, operator: Any) -> None:
        self.operator = operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operator, name)

    def apply(self, *_: object) -> Any:
        raise KeyError("no such thing")


class Visits:
    """Two topics with a view each."""

    def __init__(self, bootstrap: str, directory: Path, run: Runner) -> None:
        self.bootstrap, self.directory, self.run = bootstrap, directory, run
        mark = uuid.uuid4().hex[:6]
        self.project_name = f"p{mark}"
        self.visits, self.orders = f"visits{mark}", f"orders{mark}"
        with Admin(bootstrap) as admin:
            for name in (self.visits, self.orders):
                admin.create_topic(name, 1)

    def graph(self) -> Graph:
        topics = [
            topic_table(tr.topic(name, schema="id BIGINT, at TIMESTAMP"))
            for name in (self.visits, self.orders)
        ]
        views = [
            tr.view(f"{name}_all", f"SELECT id, count(*) AS n FROM {name} GROUP BY id", key="id")
            for name in (self.visits, self.orders)
        ]
        return compile_views(views, topics)

    def write(self, topic: str, *numbers: int) -> None:
        with TransactionalWriter(self.bootstrap, f"w{topic}") as writer:
            writer.init()
            for number in numbers:
                row = {"id": number, "at": "2026-11-18T10:00:00Z"}
                writer.send(topic, 0, orjson.dumps({"id": number}), orjson.dumps(row))
            writer.commit()

    def project(self, graph: Graph | None = None, **more: Any) -> ProjectTicks:
        settings = TickSettings(
            self.project_name, self.bootstrap,
            str(self.directory / "state"), str(self.directory / "cache"), shards=2,
        )  # fmt: skip
        plain = frozenset([self.visits, self.orders])
        return ProjectTicks(graph or self.graph(), settings, self.run, plain=plain, **more)

    def shown(self, topic: str) -> set[int]:
        with LogReader(self.bootstrap) as reader:
            tick = last_row(reader, self.project_name)
            assert tick is not None
            info = tick.views[f"{topic}_all"]
            keys = [key for records in read_all(reader, info.topic) for key in records.keys]
        return {orjson.loads(key or b"")["id"] for key in keys}


@pytest.fixture(params=["one task", "levels"])
def visits(request: pytest.FixtureRequest, tailrace_broker: str, tmp_path: Path) -> Visits:
    run = in_process if request.param == "one task" else run_levels_here
    return Visits(tailrace_broker, tmp_path, run)


@pytest.fixture
def projects(visits: Visits) -> Iterator[list[ProjectTicks]]:
    """Closed at the end, whatever happens."""
    made: list[ProjectTicks] = []
    yield made
    for project in made:
        project.close()


def steps(project: ProjectTicks, count: int = 12) -> None:
    for _ in range(count):
        project.step(0.05)


def test_a_record_that_nobody_foresaw_stops_its_readers_alone(
    visits: Visits, projects: list[ProjectTicks]
) -> None:
    # as if the declaration had not been checked
    wrong = {visits.visits: EventTime("att")}
    for attempt in range(2):  # and again after a restart
        project = visits.project(times=wrong)
        projects.append(project)
        project.start()
        visits.write(visits.orders, 10 + attempt)
        visits.write(visits.visits, *range(5))
        steps(project)
        assert set(project.failed) == {f"{visits.visits}_all"}
        error = project.failed[f"{visits.visits}_all"]
        assert error["error"] == "KeyError: 'Field \"att\" does not exist in schema'"
        assert f"reading {visits.visits}/0@0" in error["detail"]
        assert "event_time.py" in error["detail"]
        assert "Traceback" in error["traceback"]
        assert error["code"] == "unforeseen"
        visits.write(visits.orders, 20 + attempt)
        steps(project)
        assert visits.shown(visits.orders) >= {10 + attempt, 20 + attempt}
        project = visits.project()  # the declaration is put right
        projects.append(project)
    project.start()
    steps(project, 20)
    assert project.failed == {}
    assert visits.shown(visits.visits) == set(range(5))


def test_an_operator_that_nobody_foresaw_stops_its_own_views(
    visits: Visits, projects: list[ProjectTicks]
) -> None:
    graph = visits.graph()
    own = graph.views[f"{visits.visits}_all"].node
    nodes = tuple(
        replace(node, operator=Broken(node.operator)) if node.id == own else node  # type: ignore[arg-type]
        for node in graph.nodes
    )
    project = visits.project(replace(graph, nodes=nodes))
    projects.append(project)
    project.start()
    visits.write(visits.visits, 1)
    visits.write(visits.orders, 2)
    steps(project)
    error = project.failed[f"{visits.visits}_all"]
    assert error["error"] == "KeyError: 'no such thing'"
    assert f"in operator {own}" in error["detail"]
    assert visits.shown(visits.orders) == {2}


def test_what_is_the_machines_or_ours_passes() -> None:
    assert is_foreseen(OSError("disk"))
    assert is_foreseen(MemoryError())
    assert is_foreseen(EvaluationError("division by zero"))
    assert not is_foreseen(KeyError("x"))


def test_a_long_exception_is_one_line() -> None:
    error = unforeseen(ValueError("a\n" * 1000), "here")
    assert "\n" not in error.message
    assert len(error.message) <= 300
    assert isinstance(error, UnforeseenError)
    assert error.as_dict()["traceback"]


def test_ticks_that_fail_for_no_known_reason_are_tried_again_in_the_same_process(
    tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    clicks = Topic(f"c{uuid.uuid4().hex[:6]}", "id BIGINT")
    with Admin(tailrace_broker) as admin:
        admin.create_topic(clicks.name, 1)
    part = Part("p", "pipelines", "p", tailrace_broker, tmp_path / ".tailrace")
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
        )
    )
    settings = config.load(tmp_path)
    running = RunningStreams([], part, spark, settings)
    monkeypatch.setattr(runner, "_FIRST_PAUSE", 0.01)
    calls: list[dict[str, Any]] = []

    def ticks(*_: object) -> None:
        if len(calls) == 2:
            part.stopping.set()
            return
        calls.append(dict(part._facts))
        raise KeyError("nobody foresaw this")

    monkeypatch.setattr(runner, "_tick", ticks)
    view = tr.view("v", f"SELECT id FROM {clicks.name}", key="id")
    runner.run_ticks(runner.Declared([view], [], [clicks], settings), running, part, spark)
    assert calls[1]["state"] == "lagging"
    assert calls[1]["failed"]["v"]["error"] == "KeyError: 'nobody foresaw this'"
    running.close()
