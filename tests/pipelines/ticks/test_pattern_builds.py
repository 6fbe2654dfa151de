"""A changed pattern is built beside the one that is shown, and every match is told once."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from servers.patterns import in_process
from tailrace import config
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Pattern
from tailrace.pipelines.errors import ContentsError, EvaluationError
from tailrace.pipelines.process.requests import ask
from tailrace.pipelines.process.running_patterns import RunningPatterns
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.pattern_builds import read_builds
from tailrace.pipelines.ticks.patterns import PatternTicks
from tailrace.telemetry.part import Part

START = datetime(2026, 1, 1, tzinfo=UTC)


class Bank:
    """A topic of payments, and patterns over it under one name."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.topic = f"payments{uuid.uuid4().hex[:6]}"
        self.name = f"{self.topic}_tested"
        with Admin(bootstrap) as admin:
            admin.ensure_topic(self.topic, 1, {})

    def write(self, *rows: tuple[int, int, int] | bytes) -> None:
        """Rows (card, amount, second), or bytes as they are."""
        with TransactionalWriter(self.bootstrap, f"w{self.topic}") as writer:
            writer.init()
            for row in rows:
                if isinstance(row, bytes):
                    writer.send(self.topic, 0, None, row)
                    continue
                card, amount, second = row
                at = (START + timedelta(seconds=second)).isoformat()
                value = orjson.dumps({"card": card, "amount": amount, "at": at})
                writer.send(self.topic, 0, None, value)
            writer.commit()

    def declared(self, above: int = 500, **more: Any) -> Pattern:
        payments = tr.topic(
            self.topic, schema="card INT, amount INT, at TIMESTAMP", time="at",
            watermark="10 seconds", late="drop", ahead="3650 days", idle="1 hour",
        )  # fmt: skip
        arguments: dict[str, Any] = {
            "match": "probe+ theft",
            "define": {"probe": "amount < 2", "theft": f"amount > {above}"},
            "select": {"stolen": "last(theft.amount)"},
        }
        return tr.pattern(
            self.name, payments, key="card", order_by="at", within="1 hour", **{**arguments, **more}
        )

    @contextlib.contextmanager
    def running(self, pattern: Pattern) -> Iterator[Running]:
        part = Part("bank", "pipelines", "bank", self.bootstrap, self.directory)
        patterns = RunningPatterns([pattern], part, config.load(self.directory), in_process)
        running = Running(self, patterns)
        try:
            with LogReader(self.bootstrap) as running.reader:
                yield running
        finally:
            for life in patterns._lives.values():
                patterns._stop(life)

    def told(self, topic: str = "") -> list[int]:
        """What was stolen, of every match, in the order of the log."""
        with LogReader(self.bootstrap) as reader:
            return [
                orjson.loads(value)["stolen"]
                for records in read_all(reader, topic or self.name)
                for value in records.values
                if value is not None
            ]

    def builds(self) -> Any:
        with LogReader(self.bootstrap) as reader:
            return read_builds(reader, "bank", self.name)

    def ask(self, action: str, **more: Any) -> None:
        ask(self.directory / "patterns", action, self.name, **more)


class Running:
    reader: LogReader

    def __init__(self, bank: Bank, patterns: RunningPatterns) -> None:
        self.bank, self.patterns = bank, patterns

    @property
    def beside(self) -> dict[str, Any] | None:
        found: Any = self.patterns.progress()[self.bank.name]["beside"]
        return found

    def until(self, wished: Callable[[], bool]) -> None:
        for _ in range(400):
            self.patterns.step(self.reader)
            if wished():
                return
        raise AssertionError(self.patterns.progress())

    def hurry(self, steps: int) -> None:
        """Step so often, without pauses after what fails."""
        for _ in range(steps):
            for life in self.patterns._lives.values():
                life.start_at = life.beside_at = 0.0
            self.patterns.step(self.reader)

    def settle(self) -> None:
        """Step until nothing is left to do."""
        idle = 0
        while idle < 3:
            for life in self.patterns._lives.values():
                life.start_at = 0.0
            idle = 0 if self.patterns.step(self.reader) else idle + 1


@pytest.fixture
def bank(log_address: str, tmp_path: Path) -> Bank:
    return Bank(log_address, tmp_path)


def test_a_changed_pattern_takes_over_and_no_match_is_lost_or_told_twice(bank: Bank) -> None:
    bank.write((1, 1, 0), (1, 600, 1), (2, 1, 2), (1, 1, 3), b"no JSON", (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
    assert bank.told() == [600]
    # A partial match of card 2 waits: the new pattern has it too, or this match would be lost.
    with bank.running(bank.declared(above=100)) as running:
        running.until(lambda: bank.builds().shown == "~beside")
        bank.write((2, 700, 101), (1, 1, 102), (1, 200, 103), (9, 5, 200))
        running.settle()
        assert running.beside is not None
        assert running.beside["waits_for"] == "kept"
    assert sorted(bank.told()) == [200, 600, 700]
    assert sorted(bank.told(f"{bank.name}.1")) == [700]  # what the old one finds since
    with bank.running(bank.declared(above=100)) as running:
        bank.write((3, 1, 201), (3, 300, 202), (9, 5, 300))
        running.settle()
    assert sorted(bank.told()) == [200, 300, 600, 700]
    with LogReader(bank.bootstrap) as reader:
        letters = [len(records.values) for records in read_all(reader, f"{bank.name}.dead")]
    assert sum(letters) == 1  # though both have read it


def test_a_held_build_waits_for_the_switch_and_can_be_rolled_back(bank: Bank) -> None:
    bank.write((1, 1, 0), (1, 600, 1), (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
    bank.ask("build")
    changed = bank.declared(above=100)
    with bank.running(changed) as running:
        bank.write((1, 1, 101), (1, 200, 102), (9, 5, 200))
        running.settle()
        assert running.beside is not None
        assert running.beside["waits_for"] == "held"
        assert bank.told() == [600]
        assert sorted(bank.told(f"{bank.name}.2")) == [200, 600]
    with bank.running(changed) as running:  # and a restart leaves it held
        running.settle()
        assert bank.builds().shown == ""
        bank.ask("switch", generation=1)
        running.until(lambda: bank.builds().shown == "~beside")
        bank.write((2, 1, 201), (2, 300, 202), (9, 5, 300))
        running.settle()
        assert bank.told() == [600, 300]
        bank.ask("switch", generation=1)  # asked for twice, done once
        running.settle()
        assert bank.builds().shown == "~beside"
        bank.ask("rollback", generation=2)
        running.until(lambda: bank.builds().shown == "")
        bank.write((2, 1, 301), (2, 400, 302), (2, 1, 303), (2, 900, 304), (9, 5, 400))
        running.settle()
        assert bank.told() == [600, 300, 900]
    with bank.running(changed) as running:
        running.settle()
        assert bank.builds().shown == ""  # it stays rolled back
        bank.ask("drop")
        running.until(lambda: running.beside is None)
    with LogReader(bank.bootstrap) as reader:
        assert f"{bank.name}.2" not in reader.topics()


def test_a_build_begins_where_it_is_told_to(bank: Bank) -> None:
    bank.write((1, 1, 0), (1, 600, 1), (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
        bank.ask("build", begin="0:2")
        bank.write((1, 1, 101), (1, 700, 102), (9, 5, 200))
        running.until(lambda: running.beside is not None)
        running.settle()
    assert bank.told(f"{bank.name}.2") == [700]
    assert bank.told() == [600, 700]


def test_a_pattern_of_another_version_goes_over_where_it_stood(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows written before there were builds hold no declaration: the old one cannot go on."""
    bank.write((1, 1, 0), (1, 600, 1), (2, 1, 2), (9, 5, 100))
    ticking = PatternTicks._tick

    def before(self: PatternTicks, *how: Any, **more: Any) -> Any:
        self.build = {}
        return ticking(self, *how, **more)

    with monkeypatch.context() as older, bank.running(bank.declared()) as running:
        older.setattr(PatternTicks, "_tick", before)
        running.settle()
    assert not bank.builds().shown_row.build
    with bank.running(bank.declared(above=100)) as running:
        running.until(lambda: bank.builds().shown == "~beside")
        bank.write((2, 700, 101), (9, 5, 200))
        running.settle()
    assert bank.told() == [600, 700]


@pytest.mark.parametrize(
    "step",
    [2, 4, 6, *(pytest.param(one, marks=pytest.mark.crash) for one in (1, 3, 5, 7))],
)
def test_a_switch_that_dies_is_done_once(
    bank: Bank, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process goes before the n-th commit of the builds, and another one begins."""
    bank.write((1, 1, 0), (1, 600, 1), (2, 1, 2), (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
    commits = 0
    committing = TransactionalWriter.commit

    def commit(self: TransactionalWriter) -> Any:
        nonlocal commits
        commits += 1
        if commits == step:
            raise KeyboardInterrupt
        return committing(self)

    changed = replace(bank.declared(above=100))
    with monkeypatch.context() as dying, bank.running(changed) as running:
        dying.setattr(TransactionalWriter, "commit", commit)
        with pytest.raises(KeyboardInterrupt):
            running.hurry(60)
    with bank.running(changed) as running:
        running.until(lambda: bank.builds().shown == "~beside")
        bank.write((2, 700, 101), (1, 1, 102), (1, 200, 103), (9, 5, 200))
        running.settle()
    assert sorted(bank.told()) == [200, 600, 700]


def test_a_change_that_is_withdrawn_does_not_take_over(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.write((1, 1, 0), (1, 600, 1), (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
    changed = bank.declared(above=100)
    with monkeypatch.context() as slow, bank.running(changed) as running:
        slow.setattr(RunningPatterns, "_switch", lambda *_: None)
        running.until(lambda: running.beside is not None)
        running.settle()
    with bank.running(bank.declared()) as running:
        bank.write((1, 1, 101), (1, 200, 102), (9, 5, 200))
        running.settle()
        assert running.beside is not None
        assert running.beside["waits_for"] == "kept"
        assert bank.builds().shown == ""
    with bank.running(changed) as running:  # declared again, it does
        running.until(lambda: bank.builds().shown == "~beside")


def test_a_build_takes_over_from_one_that_fails(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.write((1, 1, 0), (1, 600, 1), (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
    bank.ask("build")
    stepping = PatternTicks.step

    def step(self: PatternTicks, *how: Any, **more: Any) -> Any:
        if not self._beside:
            raise EvaluationError("this row cannot be read")
        return stepping(self, *how, **more)

    with bank.running(bank.declared(above=100)) as running:
        running.settle()
        assert running.beside is not None
        monkeypatch.setattr(PatternTicks, "step", step)
        bank.ask("switch", generation=1)
        running.hurry(10)
        assert bank.builds().shown == "~beside"


def test_a_build_whose_commit_failed_asks_the_log(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.write((1, 1, 0), (1, 600, 1), (9, 5, 100))
    with bank.running(bank.declared()) as running:
        running.settle()
    bank.ask("build")
    with bank.running(bank.declared(above=100)) as running:
        running.settle()
        (life,) = running.patterns._lives.values()
        failing = life.beside
        assert failing is not None

        def commit(*_: Any) -> Any:
            raise ContentsError("the commit is in doubt")

        bank.write((1, 1, 101), (1, 200, 102), (9, 5, 200))
        monkeypatch.setattr(failing, "_commit", commit)
        running.until(lambda: life.beside_error is not None)
        monkeypatch.undo()
        running.until(lambda: life.beside is not None)
        assert life.beside is not failing
        assert life.beside_error is not None
        life.beside_at = 0.0
        running.settle()
        assert life.beside_error is None
    assert sorted(bank.told(f"{bank.name}.2")) == [200, 600]
