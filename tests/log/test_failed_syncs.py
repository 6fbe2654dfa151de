"""After a sync that failed, nothing is believed that only the page cache has."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from log_helpers import HandClock, batch, read_all
from tailrace.log import files as log_files
from tailrace.log.directories import SYNC_FAILED
from tailrace.log.errors import StorageError
from tailrace.log.partition import Partition
from tailrace.log.store import Store
from tailrace.testing.power import LyingCache

SYNCED = {"flush.messages": "1"}


@pytest.fixture
def disk() -> Iterator[LyingCache]:
    disk = LyingCache()
    yield disk
    disk.release()


def opened(path: Path, disk: LyingCache) -> Store:
    return Store.open([path], clock=HandClock(), files=disk)


def append(partition: Partition, text: bytes) -> None:
    """Raises `StorageError` if the record cannot be promised."""
    partition.append(batch(text))
    partition.sync()


def values(partition: Partition) -> list[bytes | None]:
    return [record.value for record in read_all(partition)]


def test_a_record_whose_sync_failed_is_gone_and_the_next_one_is_on_the_disk(
    tmp_path: Path, disk: LyingCache
) -> None:
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1, SYNCED).partitions[0]
    append(partition, b"kept" * 2000)
    disk.refuse_once(".log")
    with pytest.raises(StorageError, match="could not be synced"):
        append(partition, b"lost" * 2000)
    store.abandon()

    store = opened(tmp_path, disk)
    partition = store.partition("t", 0)
    assert values(partition) == [b"kept" * 2000]
    append(partition, b"later" * 2000)
    store.abandon()
    disk.evict()

    store = opened(tmp_path, disk)
    assert values(store.partition("t", 0)) == [b"kept" * 2000, b"later" * 2000]
    store.abandon()


def test_a_clean_stop_does_not_make_a_failed_sync_forgotten(
    tmp_path: Path, disk: LyingCache
) -> None:
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1, SYNCED).partitions[0]
    other = store.create_topic("other", 1).partitions[0]
    append(partition, b"kept")
    disk.refuse_once(".log")
    with pytest.raises(StorageError):
        append(partition, b"lost")
    other.append(batch(b"unharmed"))
    store.close()

    store = opened(tmp_path, disk)
    assert store.unclean
    assert values(store.partition("t", 0)) == [b"kept"]
    assert values(store.partition("other", 0)) == [b"unharmed"]
    store.close()


def test_the_mark_stays_until_everything_found_is_on_the_disk(
    tmp_path: Path, disk: LyingCache
) -> None:
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1, SYNCED).partitions[0]
    append(partition, b"kept")
    disk.refuse_once(".log")
    with pytest.raises(StorageError):
        append(partition, b"lost")
    assert (tmp_path / SYNC_FAILED).exists()
    assert store.sync_failures == 1
    store.abandon()
    assert (tmp_path / SYNC_FAILED).exists()
    opened(tmp_path, disk).abandon()
    assert not (tmp_path / SYNC_FAILED).exists()


def test_a_mark_that_cannot_be_written_takes_the_note_of_the_boot_away(
    tmp_path: Path, disk: LyingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1, SYNCED).partitions[0]
    append(partition, b"kept")
    disk.refuse_once(".log")

    def full(self: LyingCache, path: str | Path, data: bytes, *, sync: bool = True) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(LyingCache, "write_whole", full)
    with pytest.raises(StorageError):
        append(partition, b"lost")
    monkeypatch.undo()
    store.abandon()
    store = opened(tmp_path, disk)
    assert values(store.partition("t", 0)) == [b"kept"]
    store.abandon()


def test_a_sealed_segment_is_synced_over_the_descriptor_that_wrote_it(
    tmp_path: Path, disk: LyingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that the kernel noted for a file is told to descriptors that were open, and
    forgotten with the inode."""
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1, {"internal.segment.bytes": "150"}).partitions[0]
    synced: list[int] = []
    real = disk.sync_data
    numbers = []
    for _ in range(3):
        partition.append(batch(b"x" * 90))
        assert partition.active.descriptor is not None
        numbers.append(partition.active.descriptor.number)
    assert len(set(numbers)) == 3
    monkeypatch.setattr(LyingCache, "sync_data", lambda self, n: (synced.append(n), real(n))[1])
    partition.sync()
    assert set(numbers) <= set(synced)
    store.abandon()


def test_more_sealed_segments_than_descriptors_are_synced_when_they_are_sealed(
    tmp_path: Path, disk: LyingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.log.segment.HELD_LIMIT", 4)
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1, {"internal.segment.bytes": "150"}).partitions[0]
    for _ in range(20):
        partition.append(batch(b"x" * 90))
    assert len(store.shelf.unsynced) == 4
    partition.sync()
    assert not store.shelf.unsynced
    store.abandon()
    disk.evict()
    store = opened(tmp_path, disk)
    assert len(values(store.partition("t", 0))) == 20
    store.abandon()


def test_a_filesystem_that_cannot_be_synced_stops_only_the_partitions_whose_files_fail(
    tmp_path: Path, disk: LyingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, disk)
    topic = store.create_topic("t", 30)
    for partition in topic.partitions:
        partition.append(batch(b"x"))
    disk.refuse = lambda path: path.endswith("t-7/00000000000000000000.log")
    monkeypatch.setattr(LyingCache, "sync_filesystem", _refused)
    store.checkpoint()
    assert [each.index for each in topic.partitions if each.failure] == [7]
    store.abandon()


def _refused(self: LyingCache, path: str | Path, held: int | None = None) -> None:
    raise OSError(errno.EIO, "somebody's file")


def test_old_kernels_do_not_tell_of_errors_by_syncfs(
    tmp_path: Path, disk: LyingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    for release, tells in (
        ("5.7.19", False), ("4.19.0-25-amd64", False), ("5.8.0", True), ("6.18.44-x", True),
        ("5.10.0-rc1+", True), ("strange", False),
    ):  # fmt: skip
        assert log_files.tells_of_errors(release) is tells
    monkeypatch.setattr(log_files, "SYNCFS_TELLS", False)
    store = opened(tmp_path, disk)
    topic = store.create_topic("t", 30)
    for partition in topic.partitions:
        partition.append(batch(b"x"))
    disk.refuse = lambda path: path.endswith("t-7/00000000000000000000.log")
    monkeypatch.setattr(LyingCache, "sync_filesystem", lambda self, path, held=None: None)
    store.checkpoint()
    assert [each.index for each in topic.partitions if each.failure] == [7]
    store.abandon()


def test_one_partition_that_cannot_be_synced_on_opening_stops_alone(
    tmp_path: Path, disk: LyingCache, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path, disk)
    store.create_topic("bad", 1, SYNCED).partitions[0].append(batch(b"x"))
    store.create_topic("good", 1, SYNCED).partitions[0].append(batch(b"y"))
    store.abandon()
    disk.refuse_once("bad-0/00000000000000000000.log")
    with caplog.at_level(logging.ERROR):
        store = opened(tmp_path, disk)
    assert store.partition("bad", 0).failure is not None
    assert (tmp_path / SYNC_FAILED).exists()
    assert values(store.partition("good", 0)) == [b"y"]
    store.abandon()


def test_an_index_of_aborted_transactions_is_synced_over_a_descriptor_that_saw_its_writes(
    tmp_path: Path, disk: LyingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, disk)
    partition = store.create_topic("t", 1).partitions[0]
    opened_for: list[str] = []
    real = LyingCache.open

    def watched(self: LyingCache, path: str | Path, flags: int = 0) -> int:
        opened_for.append(str(path))
        return real(self, path, flags)

    for number in range(3):
        partition.append(
            batch(b"x", producer_id=1, producer_epoch=0, base_sequence=number, transactional=True)
        )
        partition.append_marker(1, 0, False, 0)
    monkeypatch.setattr(LyingCache, "open", watched)
    store.checkpoint()
    assert not [path for path in opened_for if path.endswith(".txnindex")]
    assert not store.shelf.unsynced
    disk.refuse_once(".txnindex")
    partition.append(
        batch(b"x", producer_id=1, producer_epoch=0, base_sequence=3, transactional=True)
    )
    partition.append_marker(1, 0, False, 0)
    store.checkpoint()
    assert partition.failure is not None
    store.abandon()
    store = opened(tmp_path, disk)
    assert len(store.partition("t", 0).aborted_transactions(0, 100)) == 4
    store.abandon()


def test_a_journal_of_topics_whose_sync_failed_is_read_from_the_disk(
    tmp_path: Path, disk: LyingCache
) -> None:
    store = opened(tmp_path, disk)
    store.create_topic("kept")
    disk.refuse_once("metadata/journal")
    with pytest.raises(StorageError):
        store.create_topic("refused")
    assert store.sync_failures == 1
    store.abandon()
    store = opened(tmp_path, disk)
    assert set(store.topics) == {"kept"}
    store.create_topic("later")
    store.abandon()
    disk.evict()
    store = opened(tmp_path, disk)
    assert set(store.topics) == {"kept", "later"}
    store.abandon()
