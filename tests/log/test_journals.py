"""The journal of topics on several disks, some of which refuse a line now and then."""

from __future__ import annotations

import errno
import os
import random
from itertools import permutations
from pathlib import Path

import orjson
import pytest

from tailrace.log.errors import MetadataDamagedError
from tailrace.log.files import Files
from tailrace.log.metadata import Journal
from tailrace.log.store import Store
from tailrace.records.checksum import crc32c


class Moody(Files):
    """Refuses writes or syncs of files below some directories."""

    __slots__ = ("full", "unsynced")

    def __init__(self) -> None:
        self.full: set[str] = set()
        self.unsynced: set[str] = set()

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._refuse(number, self.full, errno.ENOSPC)
        return os.pwrite(number, data, position)

    def sync_data(self, number: int) -> None:
        self._refuse(number, self.unsynced, errno.EIO)

    def _refuse(self, number: int, where: set[str], code: int) -> None:
        path = os.readlink(f"/proc/self/fd/{number}")
        if any(path.startswith(each) for each in where):
            raise OSError(code, os.strerror(code), path)

    def sync_directory(self, path: str | Path) -> None:
        """Names are safe at once."""


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("kind", ["full", "unsynced"])
def test_a_topic_that_one_disk_missed_is_there_in_either_order(
    disks: list[Path], kind: str
) -> None:
    files = Moody()
    store = Store.open(disks, files=files)
    getattr(files, kind).add(str(disks[0] / "metadata"))
    store.create_topic("orders", 2)
    getattr(files, kind).clear()
    store.create_topic("other")
    store.close()
    for order in (disks, disks[::-1], disks[:1], disks[1:]):
        store = Store.open(order)
        assert set(store.topics) == {"orders", "other"}
        store.close()


def test_a_line_that_every_disk_refused_changes_nothing_and_the_next_one_counts(
    disks: list[Path],
) -> None:
    files = Moody()
    store = Store.open(disks, files=files)
    files.unsynced |= {str(each / "metadata") for each in disks}
    with pytest.raises(Exception, match="cannot be written"):
        store.create_topic("refused")
    files.unsynced.remove(str(disks[1] / "metadata"))
    store.create_topic("kept")
    store.abandon()
    for order in permutations(disks):
        store = Store.open(order)
        assert set(store.topics) == {"kept"}
        store.abandon()


def test_holes_are_filled_from_the_other_directory(disks: list[Path]) -> None:
    """As earlier versions left them: the line a disk refused was left out of it."""
    store = Store.open(disks)
    for name in ("one", "two", "three", "four"):
        store.create_topic(name)
    store.close()
    for disk, missing in zip(disks, (3, 4), strict=True):
        path = disk / "metadata" / "journal"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: missing - 1] + lines[missing:]))
    with Store.open(disks) as store:
        assert set(store.topics) == {"one", "two", "three", "four"}
    with Store.open(disks[:1]) as store:
        assert set(store.topics) == {"one", "two", "three", "four"}


def test_a_number_that_no_directory_has_is_damage(disks: list[Path]) -> None:
    store = Store.open(disks)
    for name in ("one", "two", "three"):
        store.create_topic(name)
    store.close()
    for disk in disks:
        path = disk / "metadata" / "journal"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:1] + lines[2:]))
    before = [(disk / "metadata" / "journal").read_bytes() for disk in disks]
    with pytest.raises(MetadataDamagedError, match="damaged") as caught:
        Store.open(disks)
    assert "number 2 is missing" in caught.value.detail
    assert before == [(disk / "metadata" / "journal").read_bytes() for disk in disks]


def _line(event: dict[str, object]) -> bytes:
    body = orjson.dumps(event)
    return b"%08x %b\n" % (crc32c(body), body)


@pytest.mark.parametrize("as_snapshot", [False, True])
def test_equal_numbers_with_different_content_are_an_error(
    disks: list[Path], as_snapshot: bool
) -> None:
    for number, disk in enumerate(disks):
        (disk / "metadata").mkdir(parents=True)
        if as_snapshot:
            event = {"op": "snapshot", "n": 1, "format": 1, "epoch": number, "broker": {}, "topics": []}  # fmt: skip
            (disk / "metadata" / "snapshot").write_bytes(_line(event))
        else:
            (disk / "metadata" / "journal").write_bytes(
                _line({"op": "epoch", "epoch": number, "n": 1})
            )
    for order in permutations(disks):
        with pytest.raises(MetadataDamagedError, match="contradict"):
            Journal(order)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_disks_refuse_what_was_acknowledged_is_there(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    disks = [tmp_path / name for name in "abc"]
    for disk in disks:
        disk.mkdir()
    possible = {0}
    """What was acknowledged last, and what was refused since: its line may be on a disk."""
    for _ in range(6):
        files = Moody()
        order = chance.sample(disks, len(disks))
        journal = Journal(order, files)
        assert journal.catalogue.epoch in possible
        possible = {journal.catalogue.epoch}
        for _ in range(chance.randrange(12)):
            where = chance.choice([files.full, files.unsynced])
            where.symmetric_difference_update({str(chance.choice(disks))})
            wanted = chance.randrange(10**9)
            try:
                journal.append({"op": "epoch", "epoch": wanted})
            except OSError:
                possible.add(wanted)
            else:
                possible = {wanted}
        if chance.random() < 0.2:
            journal.snapshot()
        journal.close()
        files.full, files.unsynced = set(), set()


def test_a_journal_torn_while_access_rules_change_has_the_old_ones_or_the_new(
    tmp_path: Path,
) -> None:
    old, new = (2, "a", 3, "User:x", "*", 3, 3), (2, "b", 4, "User:é", "*", 4, 2)
    disk = tmp_path / "log"
    disk.mkdir()
    journal = Journal([disk])
    journal.append({"op": "acls", "add": [old], "remove": []})
    path = disk / "metadata" / "journal"
    before = path.stat().st_size
    journal.append({"op": "acls", "add": [new], "remove": [old]})
    journal.close()
    whole = path.read_bytes()
    for size in range(before, len(whole) + 1):
        path.write_bytes(whole[:size])
        found = Journal([disk])
        found.close()
        assert list(found.catalogue.acls) == [new if size == len(whole) else old]
    kept = Journal([disk])
    kept.snapshot()
    kept.close()
    again = Journal([disk])
    again.close()
    assert list(again.catalogue.acls) == [new]
