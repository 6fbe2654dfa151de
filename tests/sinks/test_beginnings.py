"""A copy that starts "now" misses nothing that comes after its declaration was first run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from tailrace.sinks import Function
from tailrace.sinks.beginnings import beginning_of, record
from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.delivery import Delivery
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.testing.power import PowerFiles


class Watched:
    """A copy into a list."""

    def __init__(self, directory: Path, source: Any) -> None:
        self.directory, self.seen = directory, list[int]()
        declaration = Function(self.take, start="now")
        self.copy = Copy("v.function", "v", "v", source, (), declaration)

    def take(self, table: Any) -> None:
        self.seen += table["id"].to_pylist()

    def declare(self, log: MemoryLog) -> None:
        """What `up` does first."""
        one = beginning_of(self.copy)
        assert one is not None
        record(self.directory, log, "shop", [one])

    def deliver(self, log: MemoryLog) -> None:
        delivery = Delivery(
            self.copy,
            make_sink(self.copy, Surroundings(self.directory)),
            log,
            "shop",
            ListedDeadLetters(),
            memory=self.directory / "sinks" / "v.function.columns",
        )
        delivery.step(0)
        delivery.close()


def append(log: MemoryLog, *numbers: int) -> None:
    for number in numbers:
        log.topics["v"][0].append(None, orjson.dumps({"id": number}))


def test_the_first_rows_of_a_new_stream_are_delivered(tmp_path: Path) -> None:
    log, watched = MemoryLog(), Watched(tmp_path, "stream")
    watched.declare(log)  # not even the topic is there
    log.create("v")
    append(log, 1, 2)
    watched.deliver(log)
    append(log, 3)
    watched.deliver(log)
    assert watched.seen == [1, 2, 3]


@pytest.mark.parametrize("seed", range(8))
def test_a_beginning_outlives_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    files = PowerFiles(disk)
    monkeypatch.setattr("tailrace.sinks.beginnings.FILES", files)
    log = MemoryLog()
    Watched(disk, "stream").declare(log)
    files.cut(tmp_path / "after", random.Random(seed))
    files.release()
    watched = Watched(tmp_path / "after", "stream")
    log.create("v")
    append(log, 1, 2)
    watched.deliver(log)
    assert watched.seen == [1, 2]


def test_a_late_copy_of_a_stream_begins_where_it_was_declared(tmp_path: Path) -> None:
    log, watched = MemoryLog(), Watched(tmp_path, "stream")
    log.create("v")
    append(log, 1, 2)
    watched.declare(log)
    append(log, 3)
    watched.declare(log)
    append(log, 4)
    watched.deliver(log)
    assert watched.seen == [3, 4]


def tick(writer: TickWriter, *numbers: int) -> None:
    writer.tick({"v": [({"id": number}, {"id": number}) for number in numbers]})


def test_a_late_copy_of_a_view_begins_where_it_was_declared(tmp_path: Path) -> None:
    writer, watched = TickWriter(MemoryLog()), Watched(tmp_path, "view")
    writer.declare("v", ["id"], [("id", "BIGINT")])
    tick(writer, 1)
    watched.declare(writer.log)
    tick(writer, 2)
    tick(writer, 3)
    watched.deliver(writer.log)
    assert watched.seen == [2, 3]


def test_what_a_new_view_is_filled_with_is_no_change(tmp_path: Path) -> None:
    writer, watched = TickWriter(MemoryLog()), Watched(tmp_path, "view")
    watched.declare(writer.log)  # before the view's first tick
    writer.declare("v", ["id"], [("id", "BIGINT")])
    tick(writer, 1, 2)
    tick(writer, 3)
    watched.deliver(writer.log)
    assert watched.seen == [3]


def test_a_view_built_again_meanwhile_begins_with_its_next_change(tmp_path: Path) -> None:
    writer, watched = TickWriter(MemoryLog()), Watched(tmp_path, "view")
    writer.declare("v", ["id"], [("id", "BIGINT")])
    tick(writer, 1)
    watched.declare(writer.log)
    writer.declare("v", ["id"], [("id", "BIGINT")], generation=2)
    tick(writer, 1, 2)
    tick(writer, 3)
    watched.deliver(writer.log)
    assert watched.seen == [3]
