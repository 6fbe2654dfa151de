"""A wall clock that jumps must neither lose records nor stop the log's work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from log_helpers import HandClock, batch, read_all
from tailrace.log.clock_watch import ClockWatch
from tailrace.log.partition import Partition
from tailrace.log.store import Store

OpenStore = Callable[..., Store]
DAY = 24 * 3600 * 1000


def kept_for_a_day(store: Store, clock: HandClock) -> Partition:
    partition = store.create_topic(
        "t", 1, {"retention.ms": str(DAY), "internal.segment.bytes": "200"}
    ).partitions[0]
    for _ in range(5):
        partition.append(batch(b"x" * 90, at=clock.wall_ms()))
    return partition


def wait(store: Store, clock: HandClock, seconds: int) -> None:
    for _ in range(seconds // 120):
        clock.now += 120_000
        store.tick()


def test_a_clock_set_ahead_deletes_nothing_before_it_can_be_set_right(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    partition = kept_for_a_day(store, clock)
    store.tick()
    clock.jump(30 * DAY)
    wait(store, clock, 3000)
    assert len(read_all(partition)) == 5
    clock.jump(-30 * DAY)
    wait(store, clock, 7200)
    assert len(read_all(partition)) == 5
    assert partition.log_start_offset == 0


def test_a_clock_that_stays_ahead_is_believed_in_the_end(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    partition = kept_for_a_day(store, clock)
    store.tick()
    clock.jump(30 * DAY)
    wait(store, clock, 3600 + 120)
    assert partition.log_start_offset == 5, "a day is over for every record"


def test_size_still_limits_the_log_while_the_clock_is_in_doubt(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    partition = store.create_topic(
        "t", 1, {"retention.bytes": "500", "internal.segment.bytes": "200"}
    ).partitions[0]
    for _ in range(10):
        partition.append(batch(b"x" * 90, at=clock.wall_ms()))
    store.tick()
    clock.jump(30 * DAY)
    wait(store, clock, 120)
    assert partition.log_start_offset > 0


@pytest.mark.parametrize("jump", [-DAY // 24, -400 * DAY, 400 * DAY])
def test_flushing_by_time_goes_on_whatever_the_wall_clock_says(
    open_store: OpenStore, clock: HandClock, jump: int
) -> None:
    store = open_store()
    timed = store.create_topic("timed", 1, {"flush.ms": "500"}).partitions[0]
    store.tick()
    clock.jump(jump)
    timed.append(batch(b"a", at=clock.wall_ms()))
    store.tick()
    assert timed.synced_offset == 0, "a jump is no reason to flush"
    for _ in range(3):
        clock.now += 400
        store.tick()
    assert timed.synced_offset == 1


def test_a_producer_is_not_forgotten_because_the_clock_jumped(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1).partitions[0]
    sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = partition.append(batch(b"a", at=clock.wall_ms(), **sent))
    store.tick()
    clock.jump(30 * DAY)
    wait(store, clock, 1200)
    again = partition.append(batch(b"a", at=clock.wall_ms(), **sent))
    assert again.duplicate
    assert again.base_offset == first.base_offset


def test_records_written_around_a_jump_back_are_read_in_order(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, {"internal.segment.bytes": "300"}).partitions[0]
    start = clock.wall_ms()
    for number in range(12):
        if number == 6:
            clock.jump(-DAY)
        partition.append(batch(b"%d" % number, at=clock.wall_ms()))
        clock.now += 1000
    assert [record.value for record in read_all(partition)] == [b"%d" % n for n in range(12)]
    found = partition.offset_for_time(start + 3000)
    assert found is not None
    assert found.offset == 3, "the first record at or after a time, by offset"


def test_small_corrections_and_drift_are_no_jumps(clock: HandClock) -> None:
    watch = ClockWatch(clock)
    for _ in range(100):
        clock.now += 60_000
        clock.jump(9 * 60 * 1000)
        watch.look()
        assert not watch.doubtful
    clock.jump(11 * 60 * 1000)
    watch.look()
    assert watch.doubtful
    clock.jump(-11 * 60 * 1000)
    watch.look()
    assert not watch.doubtful


@pytest.mark.parametrize("stop", ["close", "abandon"])
def test_a_clock_that_is_ahead_at_the_start_deletes_nothing_before_it_can_be_set_right(
    open_store: OpenStore, clock: HandClock, stop: str
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    kept_for_a_day(store, clock).append(
        batch(b"a", at=clock.wall_ms(), producer_id=7, producer_epoch=0, base_sequence=0)
    )
    getattr(store, stop)()
    clock.jump(30 * DAY)
    for _ in range(2):
        # (A second start within the hour knows no more than the first.)
        store = open_store(log_retention_check_interval_ms="1000")
        wait(store, clock, 1200)
        assert store.clock_doubtful
        store.checkpoint()
        partition = store.partition("t", 0)
        assert (partition.log_start_offset, len(read_all(partition))) == (0, 6)
        assert partition.producer_epoch(7) == 0
        getattr(store, stop)()
    clock.jump(-30 * DAY)
    store = open_store(log_retention_check_interval_ms="1000")
    assert not store.clock_doubtful
    wait(store, clock, 7200)
    assert len(read_all(store.partition("t", 0))) == 6


def test_a_clock_set_right_while_in_doubt_is_believed_at_once(
    open_store: OpenStore, clock: HandClock
) -> None:
    open_store().close()
    clock.jump(30 * DAY)
    store = open_store()
    assert store.clock_doubtful
    clock.jump(-30 * DAY)
    store.tick()
    assert not store.clock_doubtful


def test_a_machine_that_was_off_deletes_after_an_hour(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    kept_for_a_day(store, clock)
    store.close()
    clock.jump(30 * DAY)
    store = open_store(log_retention_check_interval_ms="1000")
    partition = store.partition("t", 0)
    partition.append(batch(b"new", at=clock.wall_ms()))
    wait(store, clock, 3600 + 240)
    assert not store.clock_doubtful
    assert [record.value for record in read_all(partition)][-1] == b"new"
    assert partition.log_start_offset > 0
    store.close()
    assert not open_store().clock_doubtful, "the new time is noted"


@pytest.mark.parametrize("data", [None, b"", b"soon"])
def test_without_a_noted_clock_the_records_and_files_tell(
    open_store: OpenStore, clock: HandClock, tmp_path: Path, data: bytes | None
) -> None:
    store = open_store()
    kept_for_a_day(store, clock)
    store.abandon()
    note = tmp_path / "data" / "wall-clock"
    note.unlink()
    if data is not None:
        note.write_bytes(data)
    clock.jump(30 * DAY)
    assert open_store().clock_doubtful


def test_a_machine_that_never_runs_for_an_hour_deletes_in_the_end(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    kept_for_a_day(store, clock)
    store.close()
    for _ in range(3):
        clock.jump(10 * DAY)
        store = open_store(log_retention_check_interval_ms="1000")
        assert store.clock_doubtful
        wait(store, clock, 1440)
        store.close()
    assert open_store().partition("t", 0).log_start_offset == 5


def test_a_new_log_has_no_doubts(open_store: OpenStore) -> None:
    assert not open_store().clock_doubtful
