"""The checkpoint of many partitions takes its turns: nobody waits for all of them."""

from __future__ import annotations

from pathlib import Path

from log_helpers import HandClock, NoSyncs, batch
from tailrace.log.store import Store
from tailrace.log.sync import Ticket

PARTITIONS = 40
INTERVAL_MS = 60_000


class BusyClock(HandClock):
    """A clock on which a while passes with every look."""

    step_ms = 0

    def monotonic(self) -> float:
        self.now += self.step_ms
        return super().monotonic()


def filled(directory: Path, clock: BusyClock) -> tuple[Store, list[Ticket]]:
    store = Store.open([directory], clock=clock, files=NoSyncs())
    store.create_topic("many", PARTITIONS)
    for partition in store.topics["many"].partitions:
        partition.append(batch(b"x"))
    waiting: list[Ticket] = []
    store.sync_later = waiting.append
    clock.now += INTERVAL_MS
    clock.step_ms = 5
    return store, waiting


def begun(store: Store) -> int:
    """How many partitions have files of a checkpoint, their indexes, so far."""
    return sum(any(p.directory.glob("*.index")) for p in store.topics["many"].partitions)


def finish(waiting: list[Ticket]) -> None:
    for ticket in waiting:
        ticket.run()
        ticket.finish()
    waiting.clear()


def test_a_tick_begins_a_few_and_the_next_ones_the_others(tmp_path: Path) -> None:
    clock = BusyClock()
    store, waiting = filled(tmp_path, clock)
    store.tick()
    first = begun(store)
    assert 0 < first < PARTITIONS / 2
    ticks = 1
    while not waiting:
        store.tick()
        ticks += 1
    assert ticks > 3
    assert begun(store) == PARTITIONS
    finish(waiting)
    assert all(p.recovery_point == 1 for p in store.topics["many"].partitions)
    clock.step_ms = 0
    store.sync_later = None
    store.close()


def test_a_topic_may_go_in_between(tmp_path: Path) -> None:
    clock = BusyClock()
    store, waiting = filled(tmp_path, clock)
    store.create_topic("other", 1)
    other = store.topics["other"].partitions[0]
    other.append(batch(b"x"))
    store.tick()
    assert begun(store) < PARTITIONS
    store.delete_topic("many")
    for _ in range(PARTITIONS):
        store.tick()
    finish(waiting)
    assert other.recovery_point == 1
    clock.step_ms = 0
    store.sync_later = None
    store.close()


def test_a_stop_in_between_leaves_nothing_out(tmp_path: Path) -> None:
    clock = BusyClock()
    store, _ = filled(tmp_path, clock)
    store.tick()
    assert 0 < begun(store) < PARTITIONS
    clock.step_ms = 0
    store.sync_later = None
    store.close()
    again = Store.open([tmp_path], clock=clock, files=NoSyncs())
    assert all(p.recovery_point == 1 for p in again.topics["many"].partitions)
    again.close()
