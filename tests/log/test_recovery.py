"""What a crash, a torn write or a bad disk leaves, and what becomes of it."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_helpers import HandClock, batch, read_all
from tailrace.log.errors import CorruptSegmentError, DiskFullError, StorageError
from tailrace.log.files import Files
from tailrace.log.partition import Partition
from tailrace.log.retention import apply_retention
from tailrace.log.store import Store
from tailrace.records.batch import iterate_batches

OpenStore = Callable[..., Store]


def filled(store: Store, count: int = 30, **config: str) -> Partition:
    """A partition with `count` numbered records, one batch each."""
    texts = {name.replace("_", "."): value for name, value in config.items()}
    partition = store.create_topic("t", 1, texts).partitions[0]
    for number in range(count):
        partition.append(
            batch(b"%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
        )
    return partition


def last_log(partition: Partition) -> Path:
    return max(partition.directory.glob("*.log"))


def positions(path: Path) -> list[int]:
    return [position for position, _ in iterate_batches(path.read_bytes())]


@given(cut=st.floats(0, 1, exclude_max=True))
def test_torn_tail_is_truncated_on_open(
    tmp_path_factory: pytest.TempPathFactory, cut: float
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    store = Store.open([folder])
    partition = filled(store, 10)
    path = last_log(partition)
    store.abandon()
    begins = positions(path)
    size = path.stat().st_size
    keep = int(size * cut)
    os.truncate(path, keep)
    whole = sum(1 for place in [*begins[1:], size] if place <= keep)
    with Store.open([folder]) as again:
        found = again.partition("t", 0)
        assert [record.offset for record in read_all(found)] == list(range(whole))
        assert path.stat().st_size == ([*begins, size][whole])
        assert found.append(batch(b"next")).base_offset == whole


@pytest.mark.parametrize(
    "tail", [b"\x00" * 500, b"garbage" * 50, b"\x00" * 8 + b"\x00\x00\x10\x00"]
)
def test_garbage_at_the_end_is_cut_off(open_store: OpenStore, tail: bytes) -> None:
    store = open_store()
    partition = filled(store, 5)
    store.abandon()
    with last_log(partition).open("ab") as file:
        file.write(tail)
    assert len(read_all(open_store().partition("t", 0))) == 5


def test_a_flipped_bit_in_the_last_batch_ends_the_log_there(open_store: OpenStore) -> None:
    store = open_store()
    partition = filled(store, 5)
    store.abandon()
    path = last_log(partition)
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    found = open_store().partition("t", 0)
    assert found.end_offset == 4
    assert found.damaged == []


def test_a_flipped_bit_in_the_middle_is_told_and_never_served(open_store: OpenStore) -> None:
    store = open_store()
    partition = filled(store, 20)
    store.abandon()
    path = last_log(partition)
    data = bytearray(path.read_bytes())
    data[positions(path)[7] + 65] ^= 1
    path.write_bytes(data)
    found = open_store().partition("t", 0)
    assert [(each.base_offset, each.last_offset) for each in found.damaged] == [(7, 7)]
    assert [record.offset for record in read_all(found, limit=7)] == list(range(7))
    with found.read(5, 10**6) as piece:
        assert [header.base_offset for _, header in iterate_batches(piece.read())] == [5, 6]
    with pytest.raises(CorruptSegmentError) as caught:
        found.read(7, 100)
    assert path.name in caught.value.detail
    assert [record.offset for record in read_all(found, start=8)] == list(range(8, 20))
    assert found.append(batch(b"next")).base_offset == 20


def test_damage_stays_known_and_a_restored_file_is_served_again(open_store: OpenStore) -> None:
    store = open_store()
    partition = filled(store, 20)
    store.abandon()
    path = last_log(partition)
    good = path.read_bytes()
    data = bytearray(good)
    data[positions(path)[7] + 65] ^= 1
    path.write_bytes(data)
    store = open_store()
    store.checkpoint()
    store.checkpoint()
    store.close()
    store = open_store()
    assert len(store.partition("t", 0).damaged) == 1
    store.abandon()
    path.write_bytes(good)
    store = open_store()
    assert store.partition("t", 0).damaged == []
    assert len(read_all(store.partition("t", 0))) == 20
    store.close()
    assert not open_store().unclean


def test_damage_that_hides_a_length_ends_at_the_next_whole_batch(open_store: OpenStore) -> None:
    store = open_store()
    partition = filled(store, 20)
    store.abandon()
    path = last_log(partition)
    data = bytearray(path.read_bytes())
    at = positions(path)[7]
    data[at : at + 30] = os.urandom(30)
    path.write_bytes(data)
    found = open_store().partition("t", 0)
    assert [(each.base_offset, each.last_offset) for each in found.damaged] == [(7, 7)]
    assert [record.offset for record in read_all(found, start=8)] == list(range(8, 20))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("how", ["deleted", "garbage", "cut"])
@pytest.mark.parametrize("ending", ["index", "timeindex"])
def test_lost_or_wrong_indexes_are_built_again(
    open_store: OpenStore, clean: bool, how: str, ending: str
) -> None:
    store = open_store()
    partition = filled(store, 60, internal_segment_bytes="800", index_interval_bytes="100")
    (store.close if clean else store.abandon)()
    for path in partition.directory.glob(f"*.{ending}"):
        if how == "deleted":
            path.unlink()
        elif how == "garbage":
            path.write_bytes(os.urandom(48))
        else:
            path.write_bytes(path.read_bytes()[:-5])
    found = open_store().partition("t", 0)
    for offset in range(60):
        with found.read(offset, 10) as piece:
            assert next(iterate_batches(piece.read()))[1].base_offset == offset
    assert found.offset_for_time(0) is not None


def test_only_what_lies_past_the_recovery_point_is_read(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    partition = filled(store, 2000, internal_segment_bytes="50000")
    store.checkpoint()
    store.checkpoint()
    partition.append(batch(b"one more"))
    store.abandon()
    read = 0
    plain = os.pread

    def counting(number: int, length: int, position: int) -> bytes:
        nonlocal read
        data = plain(number, length, position)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    monkeypatch.setattr("tailrace.log.files.Files.pread", staticmethod(counting))
    found = open_store().partition("t", 0)
    monkeypatch.undo()
    assert found.end_offset == 2001
    assert read < partition.size_bytes / 5


def test_producers_and_aborted_transactions_survive_a_crash(open_store: OpenStore) -> None:
    store = open_store()
    partition = filled(store, 12, internal_segment_bytes="400")
    for number in range(12, 15):
        partition.append(
            batch(b"x", producer_id=1, producer_epoch=0, base_sequence=number, transactional=True)
        )
    partition.append_marker(1, 0, False, 0)
    partition.append(
        batch(b"open", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    )
    store.abandon()
    found = open_store().partition("t", 0)
    assert found.aborted_transactions(0, 100) == [(1, 12)]
    assert found.last_stable_offset == 16
    assert found.append(batch(b"11", producer_id=1, producer_epoch=0, base_sequence=11)).duplicate
    assert found.has_open_transaction(2)


@pytest.mark.parametrize("orphan", [False, True], ids=["same segment", "segment gone"])
def test_an_abort_whose_records_are_lost_says_nothing_of_those_that_follow(
    open_store: OpenStore, orphan: bool
) -> None:
    """After a power cut the index of aborted transactions may have what the log lost. Another
    transaction takes the offsets, and must not count as aborted after the next start."""

    def transaction(partition: Partition, first: int, *, commit: bool) -> None:
        for number in (first, first + 1):
            partition.append(
                batch(
                    b"x", producer_id=1, producer_epoch=0, base_sequence=number, transactional=True
                )
            )
        partition.append_marker(1, 0, commit, 0)

    store = open_store()
    partition = filled(store, 1, internal_segment_bytes="4000")
    transaction(partition, 1, commit=True)
    store.checkpoint()
    kept = partition.active.size
    transaction(partition, 3, commit=False)
    log = Path(partition.active.path)
    store.abandon()
    with log.open("r+b") as file:
        file.truncate(kept)
    if orphan:  # it had gone to a segment of its own
        log.with_suffix(".txnindex").rename(log.with_name(f"{4:020d}.txnindex"))
    again = open_store()
    partition = again.partition("t", 0)
    assert partition.end_offset == 4
    if orphan:
        partition.roll(again.clock.wall_ms())  # the segment that the index seems to belong to
    transaction(partition, 3, commit=True)
    again.checkpoint()
    again.checkpoint()
    again.abandon()
    found = open_store().partition("t", 0)
    assert found.end_offset == 7
    assert found.aborted_transactions(0, 100) == []


def test_a_second_crash_during_recovery_loses_nothing(open_store: OpenStore) -> None:
    store = open_store()
    filled(store, 50, internal_segment_bytes="500")
    store.abandon()
    for _ in range(3):
        again = open_store()
        assert len(read_all(again.partition("t", 0))) == 50
        again.abandon()


class FullDisk(Files):
    """A disk that takes `room` more bytes of segments."""

    __slots__ = ("room",)

    def __init__(self) -> None:
        self.room: int | None = None

    def pwrite(self, number: int, data: bytes | bytearray | memoryview, position: int) -> int:  # type: ignore[override]
        if self.room is None:
            return os.pwrite(number, data, position)
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = os.pwrite(number, memoryview(data)[: self.room], position)
        self.room -= written
        return written


def test_a_full_disk_refuses_writes_keeps_reading_and_recovers(tmp_path: Path) -> None:
    disk = FullDisk()
    with Store.open([tmp_path], clock=HandClock(), files=disk) as store:
        partition = filled(store, 10, internal_segment_bytes="1000")
        disk.room = 40
        for _ in range(5):
            with pytest.raises(DiskFullError) as caught:
                partition.append(
                    batch(b"10" * 20, producer_id=1, producer_epoch=0, base_sequence=10)
                )
            assert caught.value.kafka_code == 56
        assert len(read_all(partition)) == 10
        store.tick()
        disk.room = None
        partition.append(batch(b"10", producer_id=1, producer_epoch=0, base_sequence=10))
        assert [record.value for record in read_all(partition)][-1] == b"10"
    with Store.open([tmp_path]) as again:
        assert len(read_all(again.partition("t", 0))) == 11


def test_a_disk_that_fills_anywhere_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    for room in range(0, 400, 23):
        _fill_disk(tmp_path / str(room), room)


def _fill_disk(tmp_path: Path, room: int) -> None:
    disk = FullDisk()
    store = Store.open([tmp_path], clock=HandClock(), files=disk)
    partition = filled(store, 10, internal_segment_bytes="200")
    disk.room = room
    acknowledged = 10
    for number in range(10, 14):
        try:
            partition.append(
                batch(b"%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
            )
        except DiskFullError:
            break
        acknowledged += 1
    assert len(read_all(partition)) == acknowledged
    store.abandon()
    with Store.open([tmp_path]) as again:
        found = again.partition("t", 0)
        assert [record.value for record in read_all(found)] == [
            b"%d" % number for number in range(acknowledged)
        ]


def test_an_abort_on_a_full_disk_is_known_after_a_clean_stop(tmp_path: Path) -> None:
    disk = FullDisk()
    with Store.open([tmp_path], clock=HandClock(), files=disk) as store:
        partition = store.create_topic("t").partitions[0]
        partition.append(
            batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        )
        disk.room = 85  # room for the marker, not for the entry about it
        partition.append_marker(1, 0, False, 0)
        assert partition.aborted_transactions(0, 5) == [(1, 0)]
        disk.room = None
    with Store.open([tmp_path]) as again:
        assert not again.unclean
        assert again.partition("t", 0).aborted_transactions(0, 5) == [(1, 0)]


def test_a_full_disk_refuses_a_new_topic_or_makes_it_whole(tmp_path: Path) -> None:
    disk = FullDisk()
    made: set[str] = set()
    with Store.open([tmp_path], files=disk) as store:
        for room in range(0, 300, 17):
            disk.room = room
            name = f"t{room}"
            try:
                store.create_topic(name, 1)
                made.add(name)
            except StorageError as error:
                assert error.kafka_code == 56
            assert set(store.topics) == made
        disk.room = None
        for name in made:
            store.partition(name, 0).append(batch(b"x"))
        assert 0 < len(made) < 18
    with Store.open([tmp_path]) as again:
        assert set(again.topics) == made
        assert all(len(read_all(partition)) == 1 for partition in again.partitions())


def test_a_broker_that_crashed_on_a_full_disk_starts_and_serves(tmp_path: Path) -> None:
    disk = FullDisk()
    store = Store.open([tmp_path], clock=HandClock(), files=disk)
    filled(store, 20, internal_segment_bytes="400")
    store.abandon()
    disk.room = 0
    store = Store.open([tmp_path], clock=HandClock(), files=disk)
    partition = store.partition("t", 0)
    assert len(read_all(partition)) == 20
    with pytest.raises(DiskFullError):
        partition.append(batch(b"x"))
    disk.room = None
    assert partition.append(batch(b"x")).base_offset == 20
    store.close()
    with Store.open([tmp_path]) as again:
        assert len(read_all(again.partition("t", 0))) == 21


class BadSync(Files):
    """A disk that cannot sync."""

    __slots__ = ()

    def sync_data(self, number: int) -> None:  # type: ignore[override]
        raise OSError(errno.EIO, "Input/output error")


def test_after_a_failed_sync_the_partition_stops(open_store: OpenStore) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, {"flush.messages": "1"}).partitions[0]
    partition.append(batch(b"a"))
    store.shelf.files = BadSync()
    with pytest.raises(StorageError):
        partition.sync()
    assert partition.high_watermark == 0
    store.shelf.files = Files()
    with pytest.raises(StorageError):
        partition.append(batch(b"b"))


def test_deleted_records_leave_their_open_transaction(open_store: OpenStore) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, {"internal.segment.bytes": "150"}).partitions[0]
    partition.append(batch(b"a" * 60))
    partition.append(
        batch(b"b" * 60, producer_id=5, producer_epoch=2, base_sequence=0, transactional=True)
    )
    partition.append(batch(b"c" * 60))
    partition.delete_records(-1)
    partition.append(batch(b"d" * 60))
    assert (partition.producers.open, partition.last_stable_offset) == ({5: 1}, 3)
    store.abandon()
    partition = open_store().partition("t", 0)
    assert (partition.producers.open, partition.last_stable_offset) == ({5: 1}, 3)


@pytest.mark.parametrize("noted", [False, True])
def test_no_segment_goes_before_a_checkpoint_knows_its_producers(
    open_store: OpenStore, noted: bool
) -> None:
    store = open_store()
    partition = filled(store, 6, internal_segment_bytes="150", retention_bytes="100")
    if noted:
        store.checkpoint()  # begins a sync of everything, noted by the next one
        assert partition.recovery_point == 6
    assert apply_retention(partition, 0) == 0
    store.checkpoint()
    store.checkpoint()
    assert apply_retention(partition, 0) == 2
    store.abandon()
    partition = open_store().partition("t", 0)
    assert partition.log_start_offset == 4
    assert [(row.producer_id, row.last_sequence) for row in partition.describe_producers()] == [
        (1, 5)
    ]


def test_nothing_noted_of_a_deleted_topic_is_believed_of_the_next_of_its_name(
    open_store: OpenStore,
) -> None:
    store = open_store()
    filled(store, 30).delete_records(20)
    store.checkpoint()
    store.checkpoint()
    store.delete_topic("t")
    partition = filled(store, 10)
    path = last_log(partition)
    store.abandon()
    os.truncate(path, path.stat().st_size - 5)
    found = open_store().partition("t", 0)
    assert [record.offset for record in read_all(found)] == list(range(9))
    assert (found.log_start_offset, found.end_offset) == (0, 9)


def test_a_topic_made_again_after_a_restart_begins_at_zero(open_store: OpenStore) -> None:
    store = open_store()
    filled(store, 30).delete_records(20)
    store.checkpoint()
    store.checkpoint()
    store.delete_topic("t")
    store.abandon()
    assert filled(open_store(), 3).log_start_offset == 0


def test_a_recovery_point_past_the_end_is_taken_back(open_store: OpenStore) -> None:
    store = open_store()
    partition = filled(store, 10)
    path = last_log(partition)
    store.checkpoint()
    store.checkpoint()
    store.abandon()
    os.truncate(path, positions(path)[4])  # a disk that lied about a sync
    store = open_store()
    partition = store.partition("t", 0)
    assert partition.end_offset == 4
    partition.append(batch(b"new", producer_id=1, producer_epoch=0, base_sequence=4))
    store.abandon()
    os.truncate(path, path.stat().st_size - 3)
    assert open_store().partition("t", 0).end_offset == 4


def lose_directory(partition: Partition) -> None:
    shutil.rmtree(partition.directory)


def lose_segments(partition: Partition) -> None:
    for path in partition.directory.glob("*.log"):
        path.unlink()


def lose_content(partition: Partition) -> None:
    last_log(partition).write_bytes(b"")


@pytest.mark.parametrize("lose", [lose_directory, lose_segments, lose_content])
@pytest.mark.parametrize("clean", [True, False])
def test_records_that_are_gone_are_reported(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    lose: Callable[[Partition], None],
    clean: bool,
) -> None:
    store = Store.open([tmp_path])
    partition = filled(store, 10)
    other = store.create_topic("other", 1).partitions[0]
    other.append(batch(b"here"))
    store.close()
    if not clean:
        (tmp_path / "clean-stop").unlink()
    lose(partition)
    caplog.clear()
    with Store.open([tmp_path]) as again:
        assert [record.value for record in read_all(again.partition("other", 0))] == [b"here"]
    (found,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert (
        found.__dict__["path"],
        found.__dict__["base_offset"],
        found.__dict__["last_offset"],
    ) == (
        str(partition.directory),
        0,
        9,
    )
    caplog.clear()
    with Store.open([tmp_path]):
        assert not [one for one in caplog.records if one.levelno >= logging.ERROR]
