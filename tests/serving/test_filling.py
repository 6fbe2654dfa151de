"""A view that is being filled says how far it is, wherever it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.up import FillWait
from tailrace.clock import SYSTEM
from tailrace.node.health import FILL_PATIENCE_SECONDS, status_of
from tailrace.node.supervisor import Supervisor
from tailrace.project import load
from tailrace.serving.errors import (
    QueryError,
    UnknownViewError,
    ViewFailedError,
    ViewFillingError,
    ViewsNotReadyError,
)
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views, open_views
from tailrace.telemetry.part import Part
from tailrace.testing.changelogs import MemoryLog, TickWriter


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state of a project that serves one view."""
    writer = TickWriter(MemoryLog())
    writer.declare("totals", ["id"], [("id", "BIGINT")])
    writer.tick({"totals": [({"id": 1}, {"id": 1})]})
    with Follower(tmp_path / ".tailrace" / "views", writer.log, writer.project) as follower:
        follower.step(0)
    return tmp_path / ".tailrace"


@pytest.fixture
def views(state: Path) -> Iterator[Views]:
    with open_views(state) as opened:
        yield opened


def report(state: Path, status: str = "running", **facts: Any) -> None:
    Part("shop", "pipelines", "shop", "", state).report(status, **facts)


def test_a_view_that_is_being_filled_says_how_far_it_is(state: Path, views: Views) -> None:
    report(state, views={"totals": "a", "new": "b"}, filling={"new": 3}, filled={"new": 0.24}, fills={"new": (1200, 5000)})  # fmt: skip
    for ask in (
        lambda: views.sql("SELECT * FROM new"),
        lambda: views.get("new", 1),
        lambda: views.rows("new"),
        lambda: views.describe("new"),
    ):
        with pytest.raises(ViewFillingError, match="'new' is being filled: 1,200 of 5,000 records"):
            ask()
    assert views.get("totals", 1) == {"id": 1}
    assert issubclass(ViewFillingError, ViewsNotReadyError)  # 503 over HTTP


def test_a_view_of_a_project_that_has_read_nothing_yet_has_no_answer(tmp_path: Path) -> None:
    writer = TickWriter(MemoryLog())
    writer.declare("totals", ["id"], [("id", "BIGINT")])
    writer.tick({})  # the first tick of a project: the views exist with it
    state = tmp_path / ".tailrace"
    source = Part("db", "source", "shop", "", state)
    with Follower(state / "views", writer.log, writer.project) as follower:
        follower.step(0)
        with open_views(state) as views:
            asks = (
                lambda: views.sql("SELECT * FROM totals").rows,
                lambda: views.rows("totals").rows,
                lambda: views.get("totals", 1),
            )
            report(state, views={"totals": "a"}, caught_up=False)
            for ask in asks:
                with pytest.raises(ViewFillingError, match="'totals' is being filled: begins to"):
                    ask()
            report(state, views={"totals": "a"}, caught_up=True)
            source.report("running", copying=["public.orders"])
            for ask in asks:
                with pytest.raises(ViewFillingError, match="source db copies its tables"):
                    ask()
            source.report("running", copying=[])
            report(state, views={"totals": "a"}, caught_up=True, caught_up_at=2)
            for ask in asks:  # it has read, in a tick that is not shown yet
                with pytest.raises(ViewFillingError, match="read and about to be shown"):
                    ask()
            report(state, views={"totals": "a"}, caught_up=True, caught_up_at=1)
            for ask in asks:
                assert not ask()  # there is nothing to read
            writer.tick({"totals": [({"id": 1}, {"id": 1})]}, inputs={"t": {0: 4}})
            follower.step(0)
            report(
                state, views={"totals": "a"}, caught_up=False
            )  # started again: what it knew before stands
            assert views.get("totals", 1) == {"id": 1}


def test_one_that_begins_with_rows_of_others_has_a_share(state: Path, views: Views) -> None:
    report(state, filling={"new": 3}, filled={"new": 0.24})
    with pytest.raises(ViewFillingError, match="24% read"):
        views.sql("SELECT * FROM new")
    report(state, filling={"new": 0}, filled={"new": 0.0})
    with pytest.raises(ViewFillingError, match="waits for its turn"):
        views.sql("SELECT * FROM new")


def test_one_that_failed_before_it_was_ever_shown_says_so(state: Path, views: Views) -> None:
    report(state, "lagging", filling={"new": 0}, failed={"new": {"error": "KeyError: 'x'"}})
    with pytest.raises(ViewFailedError, match="has failed") as told:
        views.sql("SELECT * FROM new")
    assert told.value.detail == "KeyError: 'x'"


def test_a_view_nobody_declared_is_unknown(state: Path, views: Views) -> None:
    report(state, views={"totals": "a"}, filling={})
    with pytest.raises(QueryError, match="there is no view 'nothing'"):
        views.sql("SELECT * FROM nothing")
    with pytest.raises(UnknownViewError):
        views.get("nothing", 1)


def test_reports_of_a_process_that_ended_say_nothing(state: Path, views: Views) -> None:
    report(state, "stopped", filling={"new": 3})
    with pytest.raises(UnknownViewError):
        views.get("new", 1)


def test_ready_waits_for_fills_and_names_them_after_a_while() -> None:
    wait = FillWait()
    assert wait.line({"new": "1 of 9 records read"}, 100.0) is None
    assert wait.line({"new": "5 of 9 records read"}, 100.0 + FILL_PATIENCE_SECONDS / 2) is None
    late = wait.line({"new": "5 of 9 records read"}, 100.0 + FILL_PATIENCE_SECONDS)
    assert late == "ready, still filling: new (5 of 9 records read)"
    assert FillWait().line({}, 0.0) == "ready"


def test_the_supervisor_waits_for_views_that_are_filled_but_not_shown(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    supervisor = Supervisor(load.load(tmp_path), echo=lambda line: None)
    state = supervisor.directory
    report(state, views={"a": "1", "b": "2", "c": "3"}, filling={"b": 1, "c": 0}, failed={"c": {"error": "x"}})  # fmt: skip
    served = Part("shop", "views", "shop", "", state)
    served.report("running", answers=[])
    assert supervisor.filling().keys() == {"a", "b"}
    served.report("running", answers=["a"])
    assert supervisor.filling().keys() == {"b"}
    facts: dict[str, Any] = {"views": {"a": "1", "b": "2"}, "filling": {}, "failed": {}}
    served.report("running", answers=["a", "b"])
    report(state, **facts, caught_up=False, lag=7)
    assert supervisor.filling() == {"a": "7 records behind", "b": "7 records behind"}
    report(state, **facts, caught_up=True)
    source = Part("db", "source", "shop", "", state)
    source.report("running", copying=["main.items"])
    settings = supervisor.project.settings
    report(state, ticking_since=SYSTEM.wall_ms(), **facts)
    assert status_of(settings)["ready"] is False
    assert status_of(settings)["filling"].keys() == {"a", "b"}
    report(state, ticking_since=SYSTEM.wall_ms() - 120_000, **facts)
    assert status_of(settings)["ready"] is True  # it takes long, and is named
    assert supervisor.filling()["a"] == "source db copies its tables"
    source.report("running", copying=[])
    assert supervisor.filling() == {}
    report(state, **facts, caught_up=True, caught_up_at=2)
    served.report("running", answers=["a", "b"], tick=1)
    assert supervisor.filling().keys() == {"a", "b"}  # the first reading is not shown yet
    served.report("running", answers=["a", "b"], tick=2)
    assert supervisor.filling() == {}
