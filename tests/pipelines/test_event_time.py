"""Event time in ticks: watermarks, idle partitions, stragglers by policy, backlogs."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.test_ticks import in_process
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines import windows
from tailrace.pipelines.declare import Topic
from tailrace.pipelines.errors import DataLostError, DeclarationError
from tailrace.pipelines.incremental.compile import compile_views
from tailrace.pipelines.reader import LogReader, read_all
from tailrace.pipelines.ticks.catalog import topic_table
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.testing.fake_clock import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clicks:
    """A topic of clicks with two partitions, and a windowed view of it."""

    def __init__(self, bootstrap: str, directory: Path, **policy: Any) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.name = f"clicks{uuid.uuid4().hex[:6]}"
        self.topic: Topic = tr.topic(self.name, schema="user STRING, at TIMESTAMP", time="at", **policy)  # fmt: skip
        self.view = windows.windowed(
            f"{self.name}_per_minute", self.topic, time="at",
            window=windows.tumbling("1 minute"), select={"clicks": "count(*)"},
        )  # fmt: skip
        with Admin(bootstrap) as admin:
            admin.ensure_topic(self.name, 2, {})
        self.run = in_process

    def write(self, partition: int, *seconds: int) -> None:
        with TransactionalWriter(self.bootstrap, f"w{self.name}") as writer:
            writer.init()
            for second in seconds:
                at = (START + timedelta(seconds=second)).isoformat()
                writer.send(self.name, partition, None, orjson.dumps({"user": "u", "at": at}))
            writer.commit()

    @contextlib.contextmanager
    def ticking(self, clock: Any = None) -> Iterator[ProjectTicks]:
        assert self.topic.time is not None
        graph = compile_views([self.view], [topic_table(self.topic)])
        ticks = ProjectTicks(
            graph,
            TickSettings(f"p{self.name}", self.bootstrap, str(self.directory / "state"), str(self.directory / "cache")),
            self.run,
            plain=frozenset([self.name]),
            times={self.name: self.topic.time},
            **({"clock": clock} if clock else {}),
        )  # fmt: skip
        try:
            ticks.start()
            yield ticks
        finally:
            ticks.close()

    def shown(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        with LogReader(self.bootstrap) as reader:
            for records in read_all(reader, self.view.name):
                for key, value in zip(records.keys, records.values, strict=True):
                    start = orjson.loads(key or b"")["window_start"]
                    rows.pop(start, None)
                    if value is not None:
                        rows[start] = orjson.loads(value)["row"]["clicks"]
        return {start[14:16]: clicks for start, clicks in rows.items()}


def settle(ticks: ProjectTicks) -> None:
    for _ in range(100):
        if ticks.step(0.0) is None:
            return


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.parametrize(
    ("late", "expected", "aside"),
    [
        ("correct", {"00": 2, "05": 2}, 0),
        ("drop", {"00": 1, "05": 2}, 0),
        ("side", {"00": 1, "05": 2}, 1),
    ],
)
def test_a_straggler_is_treated_as_declared(
    tailrace_broker: str, tmp_path: Path, late: str, expected: dict[str, int], aside: int, levels: bool
) -> None:  # fmt: skip
    clicks = Clicks(tailrace_broker, tmp_path, watermark="30 seconds", lateness="1 minute", late=late)  # fmt: skip
    if levels:
        clicks.run = run_levels_here  # type: ignore[assignment]
    with clicks.ticking() as ticks:
        clicks.write(0, 10, 300)
        clicks.write(1, 310)
        settle(ticks)
        mark = ticks.main.last.watermarks[clicks.name]
        assert mark == int(START.timestamp() * 1000) + 270_000
        clicks.write(0, 20)  # 250 s behind the watermark
        settle(ticks)
        assert clicks.shown() == expected
        assert ticks.main.late == ({} if late == "correct" else {clicks.name: 1})
        assert ticks.main.last.watermarks[clicks.name] == mark
    with LogReader(tailrace_broker) as reader:
        letters = [v for r in read_all(reader, f"{clicks.name}.late") for v in r.values]
    assert len(letters) == aside
    if letters:
        letter = orjson.loads(letters[0] or b"")
        assert letter["reason"].startswith("250000 ms behind")
        assert letter["position"] == f"log:{clicks.name}/0:3"


def test_a_partition_without_rows_holds_the_watermark_until_it_is_idle(
    tailrace_broker: str, tmp_path: Path
) -> None:
    clock = FakeClock()
    clicks = Clicks(tailrace_broker, tmp_path, idle="1 minute", late="drop")
    with clicks.ticking(clock) as ticks:
        clicks.write(0, 10)
        clicks.write(1, 100)
        settle(ticks)
        first = ticks.main.last.watermarks[clicks.name]
        clicks.write(1, 200)
        settle(ticks)
        assert ticks.main.last.watermarks[clicks.name] == first
        clock.advance(61)
        clicks.write(1, 300)
        settle(ticks)
        assert ticks.main.last.watermarks[clicks.name] == first + 290_000


def test_a_backlog_makes_no_false_peaks(tailrace_broker: str, tmp_path: Path) -> None:
    steady = Clicks(tailrace_broker, tmp_path / "steady")
    stopped = Clicks(tailrace_broker, tmp_path / "stopped")
    with steady.ticking() as ticks, stopped.ticking() as others:
        for number in range(0, 120, 10):
            for clicks in (steady, stopped):
                clicks.write(number // 10 % 2, *range(number, number + 10))
            settle(ticks)
            if number < 40:
                settle(others)
    with stopped.ticking() as others:  # back after two thirds of the time
        settle(others)
    assert stopped.shown() == steady.shown() == {"00": 60, "01": 60}


def test_rows_leave_a_view_by_the_clock_without_input(tailrace_broker: str, tmp_path: Path) -> None:
    clock = FakeClock(int(START.timestamp() * 1000))
    clicks = Clicks(tailrace_broker, tmp_path)
    clicks.view = tr.view(
        f"{clicks.name}_recent",
        f"SELECT count(*) AS clicks FROM {clicks.name} WHERE at > now() - INTERVAL '1' MINUTE",
    )

    def shown() -> int:
        with LogReader(tailrace_broker) as reader:
            values = [v for r in read_all(reader, clicks.view.name) for v in r.values if v]
        return int(orjson.loads(values[-1])["row"]["clicks"])

    with clicks.ticking(clock) as ticks:
        clicks.write(0, -30, -20, -10)
        ticks.step(0.0)
        assert shown() == 3
        clock.advance(45)
        ticks.step(0.0)
        assert shown() == 1
        assert ticks.step(0.0) is None  # nothing is due within its freshness
        clock.advance(10)
        ticks.step(0.0)
        assert shown() == 0


def test_records_lost_before_they_were_read_are_an_error_and_older_ones_are_not(
    tailrace_broker: str, tmp_path: Path
) -> None:
    clicks = Clicks(tailrace_broker, tmp_path)
    clicks.write(0, 10, 20, 30)
    with Admin(tailrace_broker) as admin:
        admin.delete_records({(clicks.name, 0): 2})
        with clicks.ticking() as ticks:  # begins where the topic begins
            settle(ticks)
            assert clicks.shown() == {"00": 1}
        clicks.write(0, 40, 50)
        admin.delete_records({(clicks.name, 0): 5})
        with clicks.ticking() as ticks, pytest.raises(DataLostError, match="are gone"):
            settle(ticks)
        assert clicks.shown() == {"00": 1}


def test_policies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(DeclarationError, match="event time"):
        tr.topic("clicks", late="drop")
    with pytest.raises(DeclarationError, match="unknown policy"):
        tr.topic("clicks", time="at", late="perhaps")


def test_a_devices_time_is_corrected_within_bounds() -> None:
    from tailrace.pipelines.time import corrected_at

    event, sent = START, START + timedelta(seconds=5)
    received = sent + timedelta(minutes=10)  # its clock is ten minutes behind
    assert corrected_at(event, sent, received) == START + timedelta(minutes=10)
    far = sent + timedelta(days=400)
    assert corrected_at(event, sent, far, bound="1 hour") == START + timedelta(hours=1)
