"""A disk that fills during cleaning: nothing is lost, nothing half swapped, and it goes on.

The real thing needs the right to mount a small disk; a file layer that refuses its n-th
change, for every n, reaches what a real disk cannot be made to do.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from log_helpers import HandClock, read_all
from tailrace.log.errors import StorageError
from tailrace.log.files import Files
from tailrace.log.partition import Partition
from tailrace.log.store import Store
from tailrace.records.batch import encode_columns

NOW = 1_700_000_000_000
KEYS = 40
IN_TURN = [number % KEYS for number in range(100)]
ONE_OFTEN = [number if number % 5 else 0 for number in range(100)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def table(partition: Partition) -> dict[bytes, bytes | None]:
    return {record.key or b"": record.value for record in read_all(partition)}


def fill(store: Store, keys: list[int], size: int, **config: str) -> dict[bytes, bytes | None]:
    """Write a record under each of `keys`; what must be readable ever after."""
    texts = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "index.interval.bytes": "100",
        "internal.segment.bytes": "3000",
    }
    texts |= {name.replace("_", "."): value for name, value in config.items()}
    partition = store.create_topic("t", 1, texts).partitions[0]
    for number, key in enumerate(keys):
        value = (b"%d " % number).ljust(size, b"x")
        partition.append(encode_columns([b"%d" % key], [value], NOW))
    partition.roll(NOW)
    return table(partition)


def is_whole(partition: Partition) -> bool:
    """Whether the directory holds the partition's segments and nothing of a cleaning."""
    names = {path.name for path in partition.directory.iterdir()}
    logs = {f"{base:020d}.log" for base in partition.bases}
    return (
        {name for name in names if name.endswith(".log")} == logs
        and not any(name.endswith((".cleaned", ".tmp")) for name in names)
        and "swap" not in names
    )


def run_child(store: Store, clock: HandClock) -> None:
    """Let the loop start a cleaner and collect it."""
    deadline = time.monotonic() + 60
    clock.now += 60_000
    store.tick()
    while store.compaction.busy:
        assert time.monotonic() < deadline, "the cleaner did not end"
        time.sleep(0.01)
        store.tick()


def fill_up(place: Path, leave: int) -> Path:
    """Take all but `leave` bytes of the disk."""
    ballast = place / "ballast"
    free = os.statvfs(place)
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - leave))
    return ballast


def test_a_cleaner_without_space_leaves_the_log_as_it_was(small_disk: Path) -> None:
    clock = HandClock(NOW)
    store = Store.open([small_disk / "log"], clock=clock)
    expected = fill(store, IN_TURN, 20_000, internal_segment_bytes="1000000")
    partition = store.partition("t", 0)
    before = list(partition.bases)
    ballast = fill_up(small_disk, leave=200_000)
    for _ in range(2):
        run_child(store, clock)
        assert store.compaction.last_result is not None
        assert "No space left" in store.compaction.last_result.failure
        assert (partition.bases, partition.cleaned_to) == (before, 0)
        assert table(partition) == expected
        assert is_whole(partition)
    ballast.unlink()
    run_child(store, clock)
    assert not store.compaction.last_result.failure
    assert partition.cleaned_to == partition.active.base_offset
    assert len(read_all(partition)) == KEYS
    assert table(partition) == expected
    assert is_whole(partition)
    store.abandon()
    with Store.open([small_disk / "log"], clock=clock) as again:
        assert table(again.partition("t", 0)) == expected


def test_space_for_one_segment_is_enough_to_make_space_for_all(small_disk: Path) -> None:
    """Cleaning all at once would need 1.6 MB; it gets 300 KB and what it frees."""
    clock = HandClock(NOW)
    store = Store.open([small_disk / "log"], clock=clock)
    expected = fill(store, ONE_OFTEN, 20_000, internal_segment_bytes="250000")
    partition = store.partition("t", 0)
    fill_up(small_disk, leave=300_000)
    stopped = 0
    while partition.cleaned_to < partition.active.base_offset:
        assert stopped < 20
        run_child(store, clock)
        assert store.compaction.last_result is not None
        stopped += bool(store.compaction.last_result.failure)
        assert table(partition) == expected
        assert is_whole(partition)
    assert stopped
    assert len(read_all(partition)) == len(set(ONE_OFTEN))
    store.abandon()
    with Store.open([small_disk / "log"], clock=clock) as again:
        assert table(again.partition("t", 0)) == expected


class FillingDisk(Files):
    """A file layer that refuses every change once `left` of them were made."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = 10**9

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, position: int) -> int:
        self._count()
        return os.pwrite(number, data, position)

    def sync_data(self, number: int) -> None:
        self._count()
        os.fdatasync(number)

    def open(self, path: str | Path, flags: int = os.O_RDONLY) -> int:
        if flags & os.O_CREAT:
            self._count()
        return super().open(path, flags)

    def rename(self, old: str | Path, new: str | Path) -> None:
        self._count()
        super().rename(old, new)

    def sync_directory(self, path: str | Path) -> None:
        self._count()
        super().sync_directory(path)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_cleaning_that_fails_at_any_step_is_taken_up_again(
    tmp_path: Path, restarted: bool
) -> None:
    outcomes: dict[str, int] = {}
    for step in range(400):
        outcome = _fails_at(tmp_path / str(step), step, restarted)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if outcome == "finished":
            break
    assert set(outcomes) == {"finished", "stopped early", "not decided", "half swapped"}


def _fails_at(folder: Path, step: int, restarted: bool) -> str:
    clock = HandClock(NOW)
    disk = FillingDisk()
    store = Store.open([folder], clock=clock, files=disk)
    expected = fill(store, [*range(KEYS), *range(KEYS)], 100)
    partition = store.partition("t", 0)
    # An aborted transaction, with its index, behind the cleanable part.
    partition.append(
        encode_columns([b"0"], [b"aborted"], NOW, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    )  # fmt: skip
    partition.append_marker(5, 0, False, 0)
    end = partition.end_offset
    disk.left = step
    try:
        result = store.compact("t", 0)
        outcome = "stopped early" if result.failure else "finished"
    except OSError:
        outcome = "not decided"
    except StorageError:
        outcome = "half swapped"
    if outcome == "half swapped":
        with pytest.raises(StorageError):
            partition.read(0, 1000)
        with pytest.raises(StorageError):
            partition.append(encode_columns([b"k"], [b"v"], NOW))
        clock.now += 2000
        store.compaction.tick([partition], store.settings, clock.now)
        assert partition.failure is not None
    else:
        assert seen(partition) == expected
        assert is_whole(partition)
    disk.left = 10**9
    if restarted:
        store.abandon()
        store = Store.open([folder], clock=clock)
        partition = store.partition("t", 0)
    else:
        clock.now += 2000
        store.compaction.tick([], store.settings, clock.now)
    assert seen(partition) == expected
    assert is_whole(partition)
    store.compact("t", 0)
    assert partition.cleaned_to == partition.active.base_offset
    assert seen(partition) == expected
    assert len([r for r in read_all(partition) if r.offset < 2 * KEYS]) == KEYS
    assert partition.end_offset == end
    assert partition.append(encode_columns([b"k"], [b"v"], NOW)).base_offset == end
    store.abandon()
    return outcome


def seen(partition: Partition) -> dict[bytes, bytes | None]:
    """What a reader of committed records sees."""
    aborted = partition.aborted_transactions(0, partition.end_offset)
    hidden = {2 * KEYS} if aborted else set()
    return {r.key or b"": r.value for r in read_all(partition) if r.offset not in hidden}
