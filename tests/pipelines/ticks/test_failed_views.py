"""A view that a tick fails on is put aside; the others go on, and it comes back by itself."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.test_ticks import in_process
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks import failed_views
from tailrace.pipelines.ticks.driver import TickSettings, last_row
from tailrace.pipelines.ticks.project import ProjectTicks


class Readings:
    """A table of readings and views over it, two of which can fail."""

    SQL = (
        ("total", "SELECT day, count(*) AS n, sum(value) AS value FROM {t} GROUP BY day", "day"),
        ("shares", "SELECT id, 100 DIV value AS share FROM {t}", "id"),
        ("one_a_day", "SELECT day, id, value FROM {t}", "day"),
    )

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.name = f"readings{uuid.uuid4().hex[:6]}"
        self.topic = tr.topic(self.name, schema="id BIGINT, day STRING, value BIGINT", key="id")
        self.rows: dict[int, tuple[str, int]] = {}
        with Admin(bootstrap) as admin:
            admin.ensure_topic(self.name, 2, {})

    def views(self, *names: str) -> list[Any]:
        return [
            tr.view(f"{self.name}_{name}", sql.format(t=self.name), key=key)
            for name, sql, key in self.SQL
            if not names or name in names
        ]

    def write(self, **rows: tuple[str, int] | None) -> None:
        """Readings by id (`r1` is 1); None removes one."""
        with TransactionalWriter(self.bootstrap, f"w{self.name}") as writer:
            writer.init()
            for name, row in rows.items():
                number = int(name[1:])
                key, value = orjson.dumps({"id": number}), None
                if row is None:
                    self.rows.pop(number)
                else:
                    self.rows[number] = row
                    value = orjson.dumps({"id": number, "day": row[0], "value": row[1]})
                writer.send(self.name, None, key, value)
            writer.commit()

    def project(self, *names: str) -> ProjectTicks:
        graph = compile_views(self.views(*names), [topic_table(self.topic)])
        settings = TickSettings(
            f"p{self.name}", self.bootstrap, str(self.directory / "state"), str(self.directory / "cache"), shards=2
        )  # fmt: skip
        return ProjectTicks(graph, settings, in_process, plain=frozenset([self.name]))

    def shown(self, name: str) -> dict[Any, dict[str, Any]]:
        """A view as its changelog tells it."""
        rows: dict[Any, dict[str, Any]] = {}
        with LogReader(self.bootstrap) as reader:
            tick = last_row(reader, f"p{self.name}")
            assert tick is not None
            info = tick.views[f"{self.name}_{name}"]
            for records in read_all(reader, info.topic):
                for key, value in zip(records.keys, records.values, strict=True):
                    at = orjson.loads(key or b"")[info.key[0]]
                    if value is None:
                        rows.pop(at, None)
                    else:
                        rows[at] = orjson.loads(value)["row"]
        return rows

    def total(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for day, value in self.rows.values():
            count, total = found.get(day, (0, 0))
            found[day] = count + 1, total + value
        return found

    def check(self, *names: str) -> None:
        for name in names:
            rows = self.shown(name)
            match name:
                case "total":
                    assert {d: (r["n"], r["value"]) for d, r in rows.items()} == self.total()
                case "shares":
                    expected = {i: 100 // v for i, (_, v) in self.rows.items()}
                    assert {i: r["share"] for i, r in rows.items()} == expected
                case _:
                    assert {d: r["id"] for d, r in rows.items()} == {
                        d: i for i, (d, _) in self.rows.items()
                    }


@pytest.fixture
def readings(tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Readings:
    monkeypatch.setattr(failed_views, "FIRST_PAUSE", 0.0)
    made = Readings(tailrace_broker, tmp_path)
    made.write(r1=("mon", 5), r2=("tue", 7))
    return made


@pytest.fixture
def project(readings: Readings) -> Iterator[ProjectTicks]:
    made = readings.project()
    made.start()
    settle(made)
    readings.check("total", "shares", "one_a_day")
    yield made
    made.close()


def settle(project: ProjectTicks, steps: int = 12) -> None:
    for _ in range(steps):
        project.step(0.0)


def test_the_other_views_go_on_and_the_failing_one_is_shown_as_it_was(
    readings: Readings, project: ProjectTicks
) -> None:
    before = readings.shown("shares")
    with TransactionalWriter(readings.bootstrap, "bad") as writer:
        writer.init()
        writer.send(readings.name, 0, b"r9", b"{no json")
        writer.commit()
    settle(project)
    readings.write(r3=("sun", 0), r4=("wed", 4))
    settle(project)
    assert project.main.dead == 1
    readings.write(r5=("thu", 1), r3=("fri", 0))
    settle(project)
    readings.check("total", "one_a_day")
    assert readings.shown("shares") == before
    errors = project.aside.errors()
    assert list(errors) == [f"{readings.name}_shares"]
    told = errors[f"{readings.name}_shares"]
    assert told["code"] == "evaluation"
    assert "division by zero" in told["error"]
    assert f"{readings.name}_shares" in told["detail"]
    # its row is put right: it comes back, exact
    readings.write(r3=("fri", 9))
    settle(project)
    assert not project.aside.errors()
    assert not project.waiting
    readings.check("total", "shares", "one_a_day")
    readings.write(r6=("sat", 2), r1=None)
    settle(project)
    readings.check("total", "shares", "one_a_day")


def test_any_key_a_producer_may_choose_is_a_key(readings: Readings, project: ProjectTicks) -> None:
    """Empty, long beyond what the cache holds, not text; and one that looks like a stand-in."""
    odd = [b"", b"\0", b"\0" * 401, b"\0" * 400, b"k" * 5000, b"k" * 5001, b"\xff\xfe"]
    for round_ in (0, 1):
        with TransactionalWriter(readings.bootstrap, "odd") as writer:
            writer.init()
            for number, key in enumerate(odd, 10):
                row = {"id": number, "day": f"d{number}", "value": number + round_}
                writer.send(readings.name, 0, key, orjson.dumps(row))
                readings.rows[number] = (f"d{number}", number + round_)
            writer.commit()
        settle(project)
        readings.check("total", "shares", "one_a_day")
    with TransactionalWriter(readings.bootstrap, "odd") as writer:
        writer.init()
        writer.send(readings.name, 0, b"", None)
        writer.commit()
    del readings.rows[10]
    settle(project)
    readings.check("total", "shares", "one_a_day")
    assert not project.aside.errors()


def test_two_views_may_fail_in_one_tick(readings: Readings, project: ProjectTicks) -> None:
    readings.write(r3=("mon", 0))
    settle(project)
    names = {f"{readings.name}_shares", f"{readings.name}_one_a_day"}
    assert project.aside.errors().keys() == names
    readings.check("total")
    readings.write(r3=("sun", 3))
    settle(project)
    assert not project.aside.errors()
    readings.check("total", "shares", "one_a_day")


def test_a_driver_that_starts_again_fills_the_failing_view_and_never_guesses(
    readings: Readings, project: ProjectTicks
) -> None:
    """What was put aside has no state in the last row: going on would start it from nothing."""
    readings.write(r3=("mon", 3))
    settle(project)
    assert project.waiting == [f"{readings.name}_one_a_day"]
    project.close()
    again = readings.project()
    try:
        again.start()
        assert again.waiting == [f"{readings.name}_one_a_day"]
        settle(again)
        assert again.aside.errors().keys() == {f"{readings.name}_one_a_day"}
        readings.write(r3=None, r4=("wed", 4))
        settle(again)
        assert not again.waiting
        readings.check("total", "shares", "one_a_day")
    finally:
        again.close()


def test_with_no_view_left_the_error_is_raised(readings: Readings) -> None:
    alone = readings.project("shares")
    try:
        alone.start()
        settle(alone)
        readings.write(r3=("wed", 0))
        with pytest.raises(EvaluationError, match="division by zero") as caught:
            settle(alone)
        assert f"{readings.name}_shares" in caught.value.detail
        readings.write(r3=("wed", 2))
        settle(alone)
        readings.check("shares")
    finally:
        alone.close()


def test_a_view_that_fails_on_a_topic_nobody_else_reads_is_not_taken_over_unread(
    readings: Readings, tailrace_broker: str, tmp_path: Path
) -> None:
    """Its fill has nothing to catch up with; taken over, it would fail in the project's ticks
    again, with another generation each time."""
    other = Readings(tailrace_broker, tmp_path)
    other.write(r1=("mon", 5), r2=("tue", 0))
    tables = [topic_table(readings.topic), topic_table(other.topic)]
    graph = compile_views([*readings.views("total"), *other.views("shares")], tables)
    settings = TickSettings(
        f"p{readings.name}", tailrace_broker, str(tmp_path / "state"), str(tmp_path / "cache"), shards=2
    )  # fmt: skip
    plain = frozenset([readings.name, other.name])
    project = ProjectTicks(graph, settings, in_process, plain=plain)
    try:
        project.start()
        settle(project, 20)
        assert list(project.aside.errors()) == [f"{other.name}_shares"]
        readings.write(r3=("sun", 1))
        settle(project, 20)
        readings.check("total")
        with Admin(tailrace_broker) as admin:
            made = [
                topic
                for topic in (t.name for t in admin.list_topics())
                if topic.startswith(f"{other.name}_shares")
            ]
        assert len(made) <= 2, made
        other.write(r2=("tue", 4))
        settle(project)
        assert not project.aside.errors()
        with LogReader(tailrace_broker) as reader:
            tick = last_row(reader, f"p{readings.name}")
        assert tick is not None
        assert f"{other.name}_shares" in tick.views
    finally:
        project.close()
