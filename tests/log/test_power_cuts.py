"""After a power cut everything that was synced and told is there, once and in order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from log_helpers import HandClock, read_all
from tailrace.log.partition import Partition
from tailrace.log.retention import apply_retention
from tailrace.log.store import Store
from tailrace.records.batch import decode_records, encode_columns, iterate_batches
from tailrace.testing.power import PowerFiles

SMALL = {"internal.segment.bytes": "700", "index.interval.bytes": "150"}


class Writer:
    """A random life of one store, remembering what it was promised."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.topics: list[str] = []
        self.synced = 0
        """Records of topic `synced` below this number are promised."""
        self.ended: dict[int, bool] = {}
        """First number of a transaction that was synced → whether it was committed."""
        self.table: dict[bytes, bytes] = {}
        """Promised values of topic `keyed`."""
        self.maybe: dict[bytes, set[bytes]] = {}
        self.short: list[bool] = []
        """Whether each offset of topic `short` holds a marker (else a record of a transaction)."""
        self.short_synced = 0
        self.short_start = 0
        """Records of topic `short` before this offset were deleted, and that was told."""

    def work(self, store: Store, steps: int) -> None:
        for name, config in (
            ("synced", {"flush.messages": "1"}),
            ("atomic", {"flush.messages": "1"}),
            ("keyed", {"cleanup.policy": "compact", "flush.messages": "1"}),
            ("short", {"flush.messages": "1", "retention.bytes": "1500"}),
        ):
            if name not in store.topics:
                store.create_topic(name, 1, SMALL | config)
        atomic = store.partition("atomic", 0)
        if atomic.has_open_transaction(1):
            atomic.append_marker(1, 0, False, 0)
            atomic.sync()
        for _ in range(steps):
            self.step(store)

    def step(self, store: Store) -> None:
        match self.chance.choices(
            ["synced", "atomic", "keyed", "short", "topic", "checkpoint", "compact"],
            [6, 4, 6, 6, 0.4, 1, 0.7],
        )[0]:
            case "synced":
                partition = store.partition("synced", 0)
                first = next_number(partition)
                partition.append(numbered(first, self.chance.randrange(1, 4)))
                if self.chance.random() < 0.7:
                    partition.sync()
                    self.synced = next_number(partition)
            case "atomic":
                partition = store.partition("atomic", 0)
                first = next_number(partition)
                for _ in range(self.chance.randrange(1, 3)):
                    partition.append(numbered(next_number(partition), 1, transactional=True))
                commit = self.chance.random() < 0.5
                partition.append_marker(1, 0, commit, 0)
                if self.chance.random() < 0.7:
                    partition.sync()
                    self.ended[first] = commit
            case "keyed":
                partition = store.partition("keyed", 0)
                key = b"%d" % self.chance.randrange(6)
                value = b"%d" % self.chance.randrange(10**9)
                partition.append(encode_columns([key], [value], 1_700_000_000_000))
                self.maybe.setdefault(key, set()).add(value)
                if self.chance.random() < 0.7:
                    partition.sync()
                    self.promise(partition)
            case "short":
                self.shorten(store)
            case "topic":
                name = f"made-{len(self.topics)}-{self.chance.randrange(10**6)}"
                store.create_topic(name)
                self.topics.append(name)
            case "checkpoint":
                store.checkpoint()
            case _:
                partition = store.partition("keyed", 0)
                if partition.active.size:
                    partition.roll(1_700_000_000_000)
                partition.sync()
                self.promise(partition)
                store.compact("keyed", 0)

    def shorten(self, store: Store) -> None:
        """Write in transactions that may stay open, and delete records with or without them."""
        partition = store.partition("short", 0)
        match self.chance.choices(["write", "end", "delete", "retain"], [5, 1, 2, 2])[0]:
            case "write":
                partition.append(numbered(next_number(partition), 1, transactional=True))
                self.short.append(False)
            case "end":
                partition.append_marker(1, 0, self.chance.random() < 0.5, 0)
                self.short.append(True)
            case "delete":
                end = partition.high_watermark
                self.short_start = partition.delete_records(
                    self.chance.choice([end, self.chance.randrange(end + 1)])
                )
            case _:
                apply_retention(partition, 1_700_000_000_000)
        if self.chance.random() < 0.7:
            partition.sync()
            self.short_synced = partition.end_offset

    def judge_short(self, partition: Partition) -> None:
        assert partition.end_offset >= self.short_synced
        del self.short[partition.end_offset :]
        # (A start past the end of what is left is where the log goes on.)
        self.short += [True] * (partition.end_offset - len(self.short))
        assert partition.log_start_offset >= self.short_start
        started = [not marker for marker in self.short]
        last = max((place for place, marker in enumerate(self.short) if marker), default=-1)
        first = next((place for place in range(last + 1, len(started)) if started[place]), None)
        assert partition.producers.open == ({} if first is None else {1: first})
        found = [record.offset for record in read_all(partition)]
        assert found == [
            offset
            for offset in range(partition.log_start_offset, partition.end_offset)
            if started[offset]
        ]
        self.short_synced = partition.end_offset

    def promise(self, partition: Partition) -> None:
        """All of `partition` is synced: the last value of every key is promised."""
        for record in read_all(partition):
            self.table[record.key or b""] = record.value or b""
        self.maybe = {}

    def judge(self, store: Store) -> None:
        assert set(self.topics) <= set(store.topics)
        if "synced" in store.topics:
            partition = store.partition("synced", 0)
            found = [int(record.value or b"") for record in read_all(partition)]
            assert found == list(range(len(found)))
            assert len(found) >= self.synced
            self.synced = len(found)
        if "atomic" in store.topics:
            self.judge_transactions(store.partition("atomic", 0))
        if "short" in store.topics:
            self.judge_short(store.partition("short", 0))
        if "keyed" in store.topics:
            found_rows = {
                r.key or b"": r.value or b"" for r in read_all(store.partition("keyed", 0))
            }
            for key, value in self.table.items():
                assert found_rows[key] == value or found_rows[key] in self.maybe.get(key, ())
            for key, value in found_rows.items():
                assert value == self.table.get(key) or value in self.maybe.get(key, ())
            self.table, self.maybe = found_rows, {}

    def judge_transactions(self, partition: Partition) -> None:
        seen: set[int] = set()
        waiting = sorted(
            partition.aborted_transactions(0, partition.last_stable_offset),
            key=lambda each: each.first_offset,
        )
        aborting = False
        offset = 0
        while offset < partition.last_stable_offset:
            with partition.read(offset, 10**6, partition.last_stable_offset) as piece:
                data = piece.read()
            if not data:
                break
            for position, header in iterate_batches(data):
                offset = header.last_offset + 1
                if waiting and waiting[0].first_offset <= header.last_offset:
                    waiting.pop(0)
                    aborting = True
                if header.control:
                    aborting = False
                elif not aborting:
                    seen |= {int(r.value or b"") for r in decode_records(data, position)}
        for number, commit in self.ended.items():
            assert (number in seen) == commit, f"transaction {number}"


def next_number(partition: Partition) -> int:
    rows = [row for row in partition.describe_producers() if row.producer_id == 1]
    return rows[0].last_sequence + 1 if rows else 0


def numbered(first: int, count: int, *, transactional: bool = False) -> bytearray:
    return encode_columns(
        [b"k"] * count,
        [b"%d" % number for number in range(first, first + count)],
        1_700_000_000_000,
        producer_id=1,
        producer_epoch=0,
        base_sequence=first,
        transactional=transactional,
    )


def live_through_power_cuts(folder: Path, seed: int, cuts: int) -> None:
    chance = random.Random(seed)
    clock = HandClock()
    writer = Writer(chance)
    disk = folder / "disk-0"
    disk.mkdir()
    for number in range(1, cuts + 1):
        files = PowerFiles(disk)
        # What the last cut left is on the disk.
        for path, _, names in disk.walk() if hasattr(disk, "walk") else _walk(disk):
            files.sync_directory(path)
            for name in names:
                with (path / name).open("rb") as file:
                    files.sync_data(file.fileno())
        store = Store.open([disk], clock=clock, files=files)
        writer.judge(store)
        writer.work(store, chance.randrange(1, 60))
        following = folder / f"disk-{number}"
        files.cut(following, chance)
        store.abandon()
        files.release()
        disk = following
    with Store.open([disk], clock=clock) as store:
        writer.judge(store)


def _walk(root: Path) -> list[tuple[Path, list[str], list[str]]]:
    import os

    return [(Path(path), folders, names) for path, folders, names in os.walk(root)]


@pytest.mark.parametrize("seed", [*range(6), 1060])
def test_a_power_cut_takes_nothing_that_was_promised(tmp_path: Path, seed: int) -> None:
    live_through_power_cuts(tmp_path, seed, 5)


@pytest.mark.crash
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("block", range(10))
def test_hundreds_of_power_cuts_take_nothing(tmp_path: Path, block: int) -> None:
    for seed in range(1000 + block * 20, 1020 + block * 20):
        print(f"seed {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        live_through_power_cuts(folder, seed, 6)
