"""A wall clock that jumps must neither lose records nor stop the log's work."""

from __future__ import annotations

from collections.abc import Callable

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
