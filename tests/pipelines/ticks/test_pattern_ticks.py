"""Patterns of events on a log: every match once, whatever is killed; late rows; bad records."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.killed_patterns import STEPS, declared, in_process, ticks_of
from tailrace import config
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Pattern
from tailrace.pipelines.process.running_patterns import RunningPatterns
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams import beginnings
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.patterns import PatternTicks
from tailrace.sources.declare import TableRef
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed, FeedTable

START = datetime(2026, 1, 1, tzinfo=UTC)
SCRIPT = Path(__file__).parent / "killed_patterns.py"
OFTEN = ("row sent",)  # the narrowest place; the others by `make test-crash`


class Bank:
    """A topic of payments, and a pattern over it."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.topic = f"payments{uuid.uuid4().hex[:6]}"
        with Admin(bootstrap) as admin:
            admin.ensure_topic(self.topic, 2, {})

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
                writer.send(self.topic, card % 2, None, value)
            writer.commit()

    @contextlib.contextmanager
    def ticking(self, pattern: Pattern | None = None) -> Iterator[PatternTicks]:
        ticks = ticks_of(self.bootstrap, pattern or declared(self.topic), str(self.directory))
        with contextlib.closing(ticks):
            ticks.begin()
            yield ticks

    def finish(self, pattern: Pattern | None = None) -> None:
        """Tick until nothing is due any more."""
        with self.ticking(pattern) as ticks:
            while ticks.step(0.0) is not None:
                pass

    def told(self, end: str = "_tested") -> list[dict[str, Any]]:
        return _told(self.bootstrap, f"{self.topic}{end}")


def _told(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    with LogReader(bootstrap) as reader:
        return [
            orjson.loads(value)
            for records in read_all(reader, topic)
            for value in records.values
            if value is not None
        ]


def _traffic() -> list[tuple[int, int, int]]:
    """Four cards in turn: probes, something else, and a theft; one theft comes too late."""
    rows = []
    for number in range(6):
        for card in range(4):
            second = 200 * number + card
            rows += [(card, 1, second), (card, 1, second + 5), (card, 50, second + 8)]
            if (number + card) % 3:
                rows.append((card, 600 + number, second + 10))
    return [*rows, (0, 1, 5_000), (1, 1, 5_000)]


@pytest.mark.parametrize(
    "step",
    [step if step in OFTEN else pytest.param(step, marks=pytest.mark.crash) for step in STEPS],
)
def test_every_match_is_told_once_when_ticks_are_killed(
    log_address: str, tmp_path: Path, step: str
) -> None:
    bank = Bank(log_address, tmp_path)
    bank.write(*_traffic())
    for number in (1, 3):
        run = subprocess.run(
            [sys.executable, str(SCRIPT), log_address, bank.topic, str(tmp_path), step, str(number)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert run.returncode == -signal.SIGKILL, run.stderr
    bank.finish()
    told, missed = bank.told(), bank.told("_tested.timeouts")
    thefts = [row for row in _traffic() if row[1] > 500]
    assert sorted((row["card"], row["stolen"]) for row in told) == sorted(
        (card, amount) for card, amount, _ in thefts
    )
    assert {row["op"] for row in told} == {"match"}
    assert len({row["match_id"] for row in told}) == len(told)
    assert {row["op"] for row in missed} == {"timeout"}
    assert sum(row["rows"] == 2 for row in missed) == 24 - len(thefts)
    assert len({row["match_id"] for row in missed}) == len(missed)


def test_a_row_without_a_time_or_without_sense_is_a_dead_letter(
    log_address: str, tmp_path: Path
) -> None:
    bank = Bank(log_address, tmp_path)
    bank.write(
        (0, 1, 0), b'{"card": 0, "amount": 1}', b"nothing", (0, 1, 1), (0, 700, 2), (0, 1, 60)
    )
    bank.finish()
    reasons = [row["reason"] for row in bank.told("_tested.dead")]
    assert len(reasons) == 2
    assert "the row has no event time" in reasons
    assert [(row["probes"], row["stolen"]) for row in bank.told()] == [(2, 700)]


def test_a_changed_pattern_goes_on_where_the_one_before_it_stood(
    log_address: str, tmp_path: Path
) -> None:
    bank = Bank(log_address, tmp_path)
    bank.write((0, 1, 0), (0, 1, 1), (0, 700, 2), (0, 1, 100))
    bank.finish()
    assert len(bank.told()) == 1
    other = declared(bank.topic, match="probe -> theft")
    bank.write((0, 700, 110), (0, 1, 200))
    bank.finish(other)
    told = bank.told()
    assert [row["stolen"] for row in told] == [700]
    bank.write((0, 1, 300), (0, 800, 310), (0, 1, 400))
    bank.finish(other)
    assert [row["stolen"] for row in bank.told()] == [700, 800]


def test_a_large_tick_tells_what_small_ones_tell(log_address: str, tmp_path: Path) -> None:
    bank = Bank(log_address, tmp_path)
    bank.write(*_traffic())
    found: dict[str, set[tuple[int, int]]] = {}
    for name, run, limit in (("small", in_process, 8), ("large", run_levels_here, 100_000)):
        pattern = replace(declared(bank.topic), name=f"{bank.topic}_{name}")
        ticks = ticks_of(log_address, pattern, str(tmp_path / name), run, limit)
        with contextlib.closing(ticks):
            ticks.begin()
            while ticks.step(0.0) is not None:
                pass
        found[name] = {(row["card"], row["stolen"]) for row in bank.told(f"_{name}")}
    assert found["small"] == found["large"]
    assert len(found["small"]) > 10


TRANSFERS = FeedTable(
    "transfers",
    (("id", "BIGINT"), ("account", "BIGINT"), ("amount", "BIGINT"), ("made_at", "TIMESTAMP")),
    ("id",), "forever",
)  # fmt: skip


def test_inserts_of_a_table_are_events_from_now_on_and_a_pattern_reads_another(
    log_address: str, tmp_path: Path
) -> None:
    source = f"bank{uuid.uuid4().hex[:6]}"
    transfers = TableRef(source, "public", "transfers", "forever").inserts()
    twice = tr.pattern(
        f"{source}_twice", transfers, key="account", order_by="made_at", match="big big",
        define={"big": "amount > 100"}, select={"ids": "collect_list(id)", "at": "last(made_at)"},
    )  # fmt: skip
    again = tr.pattern(
        f"{source}_again", twice, key="account", order_by="at", match="one two",
        define={"one": "op = 'match'"}, select={"last": "two.ids[1]"},
    )  # fmt: skip
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    part = Part("p", "pipelines", source, log_address, tmp_path / ".tailrace")
    with ChangeFeed(log_address, source, [TRANSFERS]) as feed:

        def insert(number: int, account: int, amount: int) -> None:
            at = (START + timedelta(seconds=number)).isoformat()
            row = {"account": account, "amount": amount, "made_at": at}
            feed.transaction(("transfers", {"id": number}, row))

        insert(1, 7, 500)
        beginnings.record(part.directory, log_address, [beginnings.beginning_of(twice)])
        insert(2, 7, 500)
        feed.transaction(("transfers", {"id": 2}, {"account": 7, "amount": 900, "made_at": None}))
        feed.transaction(("transfers", {"id": 1}, None))
        for number in range(3, 10):
            insert(number, 7, 10 if number == 4 else 200)
        settings = config.load(tmp_path)
        running = RunningPatterns([again, twice], part, settings, in_process)
        with LogReader(log_address) as reader:
            told: list[dict[str, Any]] = []
            for _ in range(1_000):
                running.step(reader)
                told = _told(log_address, f"{source}_again")
                if told:
                    break
                threading.Event().wait(0.02)
            running.change(replace(settings, tick=replace(settings.tick, limit=77)))
            insert(10, 7, 200)
            for number in range(100, 120):  # every partition gets a later row
                insert(number, 7, 10)
            for _ in range(1_000):  # they go on from where they were, with the new limit
                running.step(reader)
                if len(_told(log_address, f"{source}_twice")) == 4:
                    break
                threading.Event().wait(0.02)
            ticks = [life.ticks for life in running._lives.values() if life.ticks is not None]
            assert {one.settings.limit for one in ticks} == {77}
        for life in running._lives.values():
            running._stop(life)
    assert [row["ids"] for row in _told(log_address, f"{source}_twice")] == [
        [2, 3], [5, 6], [7, 8], [9, 10],
    ]  # fmt: skip
    assert [(row["account"], row["last"]) for row in told] == [(7, 6)]
