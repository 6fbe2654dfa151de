"""Syncs of several partitions at once: told once, when all are on the disk, or what failed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from log_helpers import batch
from tailrace.broker.loop import Loop
from tailrace.broker.sync import Syncer
from tailrace.clock import SYSTEM
from tailrace.log.files import Files
from tailrace.log.partition import Partition
from tailrace.log.settings import LogSettings
from tailrace.log.store import Store


class BadDisk(Files):
    """Fails to sync the file it is told to, and counts the others; may be held up."""

    def __init__(self) -> None:
        self.bad = ""
        self.synced: list[str] = []
        self.free = threading.Event()
        self.free.set()

    def sync_data(self, number: int) -> None:  # type: ignore[override]
        self.free.wait(10)
        path = os.readlink(f"/proc/self/fd/{number}")
        if self.bad and self.bad in path:
            raise OSError(5, "the disk is broken")
        self.synced.append(path)
        os.fdatasync(number)


class Syncing:
    """A loop, its syncer and the partitions of one topic."""

    def __init__(self, directory: Path) -> None:
        self.disk = BadDisk()
        self.store = Store.open([directory], LogSettings(), files=self.disk)
        self.partitions: list[Partition] = self.store.create_topic("clicks", 10).partitions
        self.loop = Loop(SYSTEM)
        self.moved: list[Partition] = []
        self.syncer = Syncer(self.loop, self.moved.append)

    def append(self) -> None:
        for partition in self.partitions:
            partition.append(batch(b"a"))

    def run(self) -> None:
        """Until somebody stops the loop, at most ten seconds."""
        began = SYSTEM.monotonic()
        self.loop.call_later(10, self.loop.stop)
        self.loop.run()
        assert SYSTEM.monotonic() - began < 10


@pytest.fixture
def syncing(tmp_path: Path) -> Iterator[Syncing]:
    made = Syncing(tmp_path / "log")
    yield made
    made.syncer.close()
    made.store.close()
    made.loop.close()


def test_all_is_on_the_disk_when_it_is_told_and_it_is_told_once(syncing: Syncing) -> None:
    syncing.append()
    syncing.disk.synced.clear()
    told: list[Exception | None] = []

    def done(error: Exception | None) -> None:
        told.append(error)
        assert all(one.synced_offset == one.end_offset == 1 for one in syncing.partitions)
        syncing.loop.call_later(0.05, syncing.loop.stop)

    syncing.syncer.want_all(syncing.partitions, done)
    assert told == []
    syncing.run()
    assert told == [None]
    assert sorted(syncing.moved, key=lambda one: one.index) == syncing.partitions
    assert len(set(syncing.disk.synced)) == len(syncing.partitions)


def test_nothing_to_sync_is_told_at_once(syncing: Syncing) -> None:
    told: list[Exception | None] = []
    syncing.syncer.want_all([], told.append)
    syncing.syncer.want_all(syncing.partitions, told.append)
    assert told == [None, None]


def test_what_comes_while_a_sync_runs_waits_for_the_next(syncing: Syncing) -> None:
    syncing.append()
    syncing.disk.free.clear()
    told: list[tuple[str, int]] = []
    one = syncing.partitions[3]
    syncing.syncer.want(one, lambda error: told.append(("one", one.synced_offset)))
    one.append(batch(b"b"))

    def done(error: Exception | None) -> None:
        assert error is None
        told.append(("all", one.synced_offset))
        syncing.loop.stop()

    syncing.syncer.want_all(syncing.partitions, done)
    syncing.disk.free.set()
    syncing.run()
    assert told == [("one", 1), ("all", 2)]


def test_a_failed_sync_is_told_and_the_others_are_done(syncing: Syncing) -> None:
    syncing.append()
    syncing.disk.bad = "clicks-4/"
    told: list[Exception | None] = []

    def done(error: Exception | None) -> None:
        told.append(error)
        syncing.loop.stop()

    syncing.syncer.want_all(syncing.partitions, done)
    syncing.run()
    assert "could not be synced" in str(told[0])
    assert [one.index for one in syncing.partitions if one.synced_offset == 0] == [4]
