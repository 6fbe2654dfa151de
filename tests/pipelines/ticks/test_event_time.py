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
from pipelines.ticks.test_ticks import in_process
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import Topic, windows
from tailrace.pipelines.errors import DataLostError, DeclarationError
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.state.files import open_files
from tailrace.pipelines.state.inspect import sizes
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.testing.fake_clock import FakeClock
from tailrace.testing.ticks import MemoryTables, table

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

    def promise(self, partition: int, producer: str, second: int) -> None:
        """Send a producer's own watermark, alone."""
        headers = tr.time.watermark(START + timedelta(seconds=second), producer)
        with TransactionalWriter(self.bootstrap, f"w{self.name}") as writer:
            writer.init()
            writer.send(self.name, partition, None, None, tuple(headers.items()))
            writer.commit()

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

    def shown_windows(self) -> dict[tuple[str, str], int]:
        rows: dict[tuple[str, str], int] = {}
        with LogReader(self.bootstrap) as reader:
            for records in read_all(reader, self.view.name):
                for value in records.values:
                    row = orjson.loads(value or b"null")["row"]
                    rows[row["window_start"], row["window_end"]] = row["clicks"]
        return rows


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
    clock = FakeClock(int(START.timestamp() * 1000))
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


def test_producers_may_send_their_own_watermarks_and_vanish(
    tailrace_broker: str, tmp_path: Path
) -> None:
    clock = FakeClock(int(START.timestamp() * 1000))
    clicks = Clicks(tailrace_broker, tmp_path, watermark="5 minutes", idle="1 minute", late="drop")
    start = int(START.timestamp())

    def mark(ticks: ProjectTicks) -> int:
        settle(ticks)
        return ticks.main.last.watermarks[clicks.name] // 1000 - start

    with clicks.ticking(clock) as ticks:
        clicks.write(0, 100)
        assert mark(ticks) == 100 - 300
        clicks.promise(0, "one", 90)
        clicks.promise(0, "two", 40)
        assert mark(ticks) == 40  # the smallest promise, not the delay
        clicks.promise(0, "two", 80)
        assert mark(ticks) == 80
        clock.advance(45)
        clicks.promise(0, "one", 500)
        assert mark(ticks) == 80  # two holds it back
        clock.advance(30)
        clicks.promise(0, "one", 510)
        assert mark(ticks) == 510  # two has been silent for more than a minute
        clicks.promise(0, "two", 100)  # back, with older rows: too late now
        clicks.write(0, 95)
        assert mark(ticks) == 510
        assert ticks.main.late == {clicks.name: 1}


def test_an_event_from_the_future_makes_no_other_row_late(
    tailrace_broker: str, tmp_path: Path
) -> None:
    clock = FakeClock(int(START.timestamp() * 1000))
    clicks = Clicks(tailrace_broker, tmp_path, late="drop", ahead="1 hour", keep="10 minutes")
    century = 100 * 365 * 86_400
    with clicks.ticking(clock) as ticks:
        clicks.write(0, 10, century, 20)
        settle(ticks)
        assert ticks.main.last.watermarks[clicks.name] == clock.wall_ms() + 20_000
        clicks.promise(0, "wrong", century)
        clicks.write(0, 30, 3_599)
        settle(ticks)
        assert ticks.main.last.watermarks[clicks.name] == clock.wall_ms() + 3_599_000
        assert ticks.main.late == {}
    assert clicks.shown_windows()[text(START), text(START + timedelta(minutes=1))] == 3
    assert sum(clicks.shown_windows().values()) == 5  # it is counted, in its own window


def test_the_share_of_late_rows_is_told_and_alarms(tailrace_broker: str, tmp_path: Path) -> None:
    clock = FakeClock(int(START.timestamp() * 1000))
    clicks = Clicks(tailrace_broker, tmp_path, late="drop", late_alarm=0.3)
    with clicks.ticking(clock) as ticks:
        clicks.write(0, *range(1000, 1004))
        settle(ticks)
        assert ticks.main.late_share == {clicks.name: 0.0}
        clicks.write(0, 1, 2)
        settle(ticks)
        assert ticks.main.late_share == {clicks.name: 2 / 6}
        assert ticks.main.late_alarms == {clicks.name: 2 / 6}
        clicks.write(0, *range(2000, 2003))
        settle(ticks)
        assert ticks.main.late_alarms == {}
        clock.advance(400)  # only the last minutes count
        clicks.write(0, 3, 3000)
        settle(ticks)
        assert ticks.main.late_share == {clicks.name: 0.5}


@pytest.mark.parametrize("window", ["tumbling", "hopping", "cumulative"])
def test_windows_that_cannot_change_leave_the_state_and_stay_in_the_view(
    tailrace_broker: str, tmp_path: Path, window: str
) -> None:
    clicks = Clicks(tailrace_broker, tmp_path, keep="4 minutes")
    clicks.view = windows.windowed(
        clicks.view.name, clicks.topic, time="at", key="user",
        window={
            "tumbling": windows.tumbling("1 minute"),
            "hopping": windows.hopping("2 minutes", every="1 minute"),
            "cumulative": windows.cumulative("2 minutes", step="1 minute"),
        }[window],
        select={"clicks": "count(*)", "users": "count(DISTINCT user)", "latest": "max(at)",
                "about": "approx_count_distinct(user)"},
    )  # fmt: skip

    def kept(ticks: ProjectTicks) -> int:
        files = open_files(ticks.main.settings.state)
        found = sizes(files, tmp_path / "looking", ticks.main.last.state)
        return sum(size.rows for size in found.values())

    with clicks.ticking() as ticks:
        held: list[int] = []
        for first in range(0, 48, 3):
            clicks.write(0, *(m * 60 + s for m in range(first, first + 3) for s in (5, 6)))
            settle(ticks)
            held.append(kept(ticks))
        # A shard forgets when rows reach it: some windows stay a little longer.
        without = held[0] + 15 * (held[1] - held[0])
        assert max(held) < 0.7 * without, (held, without)
        before = ticks.main.late.get(clicks.name, 0)
        clicks.write(0, 10)  # 47 minutes late: no window of its time is left
        settle(ticks)
        assert ticks.main.late.get(clicks.name, 0) == before + 1
        clicks.write(0, 45 * 60 + 7)  # two minutes late: corrected
        settle(ticks)
        shown = clicks.shown_windows()
    late = START + timedelta(minutes=45, seconds=7)
    expected: dict[tuple[str, str], int] = {}
    for at in [START + timedelta(seconds=m * 60 + s) for m in range(48) for s in (5, 6)] + [late]:
        for place in windows_of(window, at):
            expected[place] = expected.get(place, 0) + 1
    assert shown == expected


def windows_of(window: str, at: datetime) -> list[tuple[str, str]]:
    minute = at.replace(second=0)
    two = minute - timedelta(minutes=minute.minute % 2)
    found = {
        "tumbling": [(minute, minute + timedelta(minutes=1))],
        "hopping": [
            (start, start + timedelta(minutes=2))
            for start in (minute, minute - timedelta(minutes=1))
        ],
        "cumulative": [
            (two, two + timedelta(minutes=n)) for n in (1, 2) if at < two + timedelta(minutes=n)
        ],
    }[window]
    return [(text(start), text(end)) for start, end in found]


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


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
        with pytest.raises(DataLostError, match="are gone"), clicks.ticking() as ticks:
            settle(ticks)
        assert clicks.shown() == {"00": 1}


def test_policies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(DeclarationError, match="event time"):
        tr.topic("clicks", late="drop")
    with pytest.raises(DeclarationError, match="unknown policy"):
        tr.topic("clicks", time="at", late="perhaps")
    with pytest.raises(DeclarationError, match="keep needs an event time"):
        tr.topic("clicks", keep="1 day")
    with pytest.raises(DeclarationError, match="shorter than lateness"):
        tr.topic("clicks", time="at", lateness="1 hour", keep="1 minute")


def test_a_devices_time_is_corrected_within_bounds() -> None:
    from tailrace.pipelines.declare.time import corrected_at

    event, sent = START, START + timedelta(seconds=5)
    received = sent + timedelta(minutes=10)  # its clock is ten minutes behind
    assert corrected_at(event, sent, received) == START + timedelta(minutes=10)
    far = sent + timedelta(days=400)
    assert corrected_at(event, sent, far, bound="1 hour") == START + timedelta(hours=1)


def test_views_correct_device_times_and_keep_each_offset_for_audit() -> None:
    readings = table("readings", "device STRING, happened TIMESTAMP, sent TIMESTAMP, received TIMESTAMP", kind="stream")  # fmt: skip
    corrected = tr.view(
        "corrected",
        f"SELECT device, {tr.time.corrected_sql('happened', 'sent', 'received', bound='1 hour')} AS at "
        "FROM readings",
    )
    audit = tr.time.offsets("audit", "readings", device="device", sent="sent", received="received")
    memory = MemoryTables(compile_views([corrected, audit], [readings]))
    rows = [
        ("slow", 0, 5, 605, 600),  # ten minutes behind
        ("slow", 60, 70, 672, 662),
        ("fast", 1000, 1001, 401, 400),  # ten minutes ahead
        ("mad", 0, 0, 9999, 3600),  # not believed beyond an hour
    ]
    for device, happened, sent, received, _ in rows:
        at = [START + timedelta(seconds=s) for s in (happened, sent, received)]
        memory.upsert("readings", dict(zip(("device", "happened", "sent", "received"), [device, *at], strict=True)))  # fmt: skip
    memory.tick()
    found = sorted((row["device"], (row["at"] - START).total_seconds()) for row in memory.rows("corrected"))  # fmt: skip
    assert found == sorted((device, float(expected)) for device, _, _, _, expected in rows)
    assert sorted(memory.rows("audit"), key=lambda row: row["device"]) == [
        {"device": "fast", "offset_seconds": -600, "largest_seconds": -600, "readings": 1},
        {"device": "mad", "offset_seconds": 9999, "largest_seconds": 9999, "readings": 1},
        {"device": "slow", "offset_seconds": 600, "largest_seconds": 602, "readings": 2},
    ]
