"""Consuming means the same on every log."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tailrace.client.consumer import Consumer
from tailrace.client.errors import (
    ClientClosedError,
    ClientError,
    ConcurrentUseError,
    OffsetOutOfRangeError,
    WakeupError,
)
from tailrace.client.log import Log
from tailrace.client.pool import WorkerPool
from tailrace.client.record import LogRecord, Place
from tailrace.clock import SYSTEM
from tailrace.errors import UsageError

FAST = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 100, "fetch_max_wait_ms": 50}


def fill(log: Log, topic: str, count: int = 10, partitions: int = 1, start: int = 0) -> None:
    log.ensure_topic(topic, partitions)
    with log.producer() as producer:
        for number in range(start, start + count):
            producer.send(
                topic,
                key=b"k%d" % (number % 5),
                value=b"%d" % number,
                partition=number % partitions,
                timestamp=1000 * (number + 1),
            )


def numbers(records: Sequence[LogRecord]) -> list[int]:
    return [int(record.value or b"") for record in records]


def poll_until(consumer: Consumer, enough: Callable[[list[LogRecord]], bool]) -> list[LogRecord]:
    found: list[LogRecord] = []
    until = SYSTEM.monotonic() + 40
    while not enough(found):
        assert SYSTEM.monotonic() < until, f"only {numbers(found)}"
        found += consumer.poll(0.2)
    return found


class Listening:
    """Keeps what a consumer was told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[Place]]] = []

    def on_assigned(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.events.append(("assigned", list(partitions)))

    def on_revoked(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.events.append(("revoked", list(partitions)))

    def on_lost(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.events.append(("lost", list(partitions)))


def test_a_group_goes_on_where_it_committed(log: Log, name: str) -> None:
    fill(log, name, 10)
    with log.consumer(name, [name], enable_auto_commit=False, max_poll_records=4, **FAST) as first:
        got = poll_until(first, lambda found: len(found) >= 4)
        assert numbers(got[:4]) == [0, 1, 2, 3]
        first.commit({(name, 0): 4})
        assert first.committed() == {(name, 0): 4}
    with log.consumer(name, [name], **FAST) as second:
        assert numbers(poll_until(second, lambda found: len(found) >= 6)) == [4, 5, 6, 7, 8, 9]
    with log.consumer(name, [name], **FAST) as third:
        assert third.poll(1.0) == []


def test_iteration_ends_after_its_time_out(log: Log, name: str) -> None:
    fill(log, name, 10)
    with log.consumer(name, [name], **FAST) as consumer:
        found: list[LogRecord] = []
        while len(found) < 10:  # each of these loops ends by itself
            found += consumer.records(timeout=1)
        assert numbers(found) == list(range(10))


def test_auto_commit_stores_only_what_is_finished(log: Log, name: str) -> None:
    fill(log, name, 10)

    def fail_at_five() -> None:
        with log.consumer(name, [name], auto_commit_interval_ms=0, **FAST) as consumer:
            for record in consumer:
                if record.value == b"5":
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_five()
    with log.consumer(name, [name], **FAST) as consumer:
        assert numbers(poll_until(consumer, lambda found: len(found) >= 5)) == [5, 6, 7, 8, 9]


def test_a_loop_that_is_left_has_committed_its_last_record(log: Log, name: str) -> None:
    fill(log, name, 10)
    with log.consumer(name, [name], **FAST) as consumer:
        for record in consumer:
            if record.value == b"5":
                break
    with log.consumer(name, [name], **FAST) as consumer:
        assert numbers(poll_until(consumer, lambda found: len(found) >= 4)) == [6, 7, 8, 9]


def test_commits_without_waiting_are_told_to_their_callback(log: Log, name: str) -> None:
    fill(log, name, 10)
    told: list[tuple[dict[Place, int], ClientError | None]] = []
    with log.consumer(name, [name], enable_auto_commit=False, **FAST) as consumer:
        poll_until(consumer, lambda found: len(found) >= 10)
        consumer.commit_async(callback=lambda offsets, error: told.append((dict(offsets), error)))
        consumer.commit_async({(name, 0): 7}, lambda offsets, error: told.append((dict(offsets), error)))  # fmt: skip
        until = SYSTEM.monotonic() + 20
        while len(told) < 2 and SYSTEM.monotonic() < until:
            consumer.poll(0.1)
        assert told == [({(name, 0): 10}, None), ({(name, 0): 7}, None)]
        assert consumer.committed() == {(name, 0): 7}


def test_two_members_share_the_partitions_and_one_takes_over(log: Log, name: str) -> None:
    fill(log, name, 40, partitions=4)
    listening = Listening()
    with log.consumer(name, [name], listener=listening, **FAST) as first:
        poll_until(first, lambda found: len(found) >= 40)
        assert len(first.assignment()) == 4
        second = log.consumer(name, [name], **FAST)
        try:
            until = SYSTEM.monotonic() + 40
            while not (len(first.assignment()) == len(second.assignment()) == 2):
                assert SYSTEM.monotonic() < until
                first.poll(0.1)
                second.poll(0.1)
            assert not first.assignment() & second.assignment()
            fill(log, name, 8, partitions=4, start=40)
            mine = poll_until(first, lambda found: len(found) >= 4)
            other = poll_until(second, lambda found: len(found) >= 4)
            assert sorted(numbers([*mine, *other])) == list(range(40, 48))
        finally:
            second.close()
        until = SYSTEM.monotonic() + 40
        while len(first.assignment()) < 4:
            assert SYSTEM.monotonic() < until
            first.poll(0.1)
    kinds = [kind for kind, _ in listening.events]
    assert kinds[0] == "assigned"
    assert "revoked" in kinds


def test_offsets_can_live_in_the_users_own_database(log: Log, name: str, tmp_path: Path) -> None:
    fill(log, name, 10)
    database = sqlite3.connect(tmp_path / "own.db")
    database.execute("CREATE TABLE seen (n INTEGER PRIMARY KEY)")
    database.execute("CREATE TABLE position (topic TEXT, part INTEGER, next INTEGER, PRIMARY KEY (topic, part))")  # fmt: skip

    class Restore(Listening):
        def on_assigned(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
            for topic, partition in partitions:
                row = database.execute(
                    "SELECT next FROM position WHERE topic = ? AND part = ?", (topic, partition)
                ).fetchone()
                if row is not None:
                    consumer.seek(topic, partition, row[0])

    def run(count: int) -> None:
        with log.consumer(name, [name], enable_auto_commit=False, listener=Restore(), **FAST) as consumer:  # fmt: skip
            for record in consumer.records(timeout=20):
                with database:
                    database.execute("INSERT INTO seen VALUES (?)", (int(record.value or b""),))
                    database.execute(
                        "INSERT OR REPLACE INTO position VALUES (?, ?, ?)",
                        (record.topic, record.partition, record.offset + 1),
                    )
                count -= 1
                if count == 0:
                    return

    run(4)
    run(6)
    assert [row[0] for row in database.execute("SELECT n FROM seen ORDER BY n")] == list(range(10))
    database.close()


def test_given_partitions_need_no_group(log: Log, name: str) -> None:
    fill(log, name, 10, partitions=2)
    with log.consumer(partitions={(name, 1): 2}, **FAST) as consumer:
        assert numbers(poll_until(consumer, lambda found: len(found) >= 3)) == [5, 7, 9]
        assert consumer.assignment() == {(name, 1)}
        assert consumer.position(name, 1) == 5
        with pytest.raises(UsageError):
            consumer.commit()
    with pytest.raises(UsageError):
        log.consumer("g", [name], partitions=[(name, 0)])
    with pytest.raises(UsageError):
        log.consumer(topics=[name])
    with pytest.raises(UsageError):
        log.consumer("g", name)


def test_seeking_by_offset_and_by_time(log: Log, name: str) -> None:
    fill(log, name, 10)
    with log.consumer(partitions=[(name, 0)], max_poll_records=3, **FAST) as consumer:
        poll_until(consumer, lambda found: len(found) >= 3)
        consumer.seek(name, 0, 7)
        assert consumer.position(name, 0) == 7
        assert numbers(poll_until(consumer, lambda found: len(found) >= 3)) == [7, 8, 9]
        consumer.seek_to_time(5_000)
        assert numbers(poll_until(consumer, lambda found: len(found) >= 6)) == [4, 5, 6, 7, 8, 9]
        consumer.seek_to_beginning()
        assert numbers(poll_until(consumer, lambda found: len(found) >= 10))[0] == 0
        consumer.seek_to_end()
        assert consumer.poll(0.5) == []
        assert consumer.bounds(name, 0) == (0, 10)


def test_a_paused_partition_is_silent(log: Log, name: str) -> None:
    fill(log, name, 10, partitions=2)
    with log.consumer(name, [name], max_poll_records=1, **FAST) as consumer:
        before = poll_until(consumer, lambda found: len(found) >= 1)
        consumer.pause((name, 0))
        loud = 5 - sum(record.partition == 1 for record in before)
        rest = poll_until(consumer, lambda found: len(found) >= loud)
        assert consumer.poll(0.5) == []
        assert {record.partition for record in rest} == {1}
        consumer.resume((name, 0))
        silent = 5 - sum(record.partition == 0 for record in before)
        after = poll_until(consumer, lambda found: len(found) >= silent)
        assert sorted(numbers([*before, *rest, *after])) == list(range(10))


def test_wakeup_ends_a_poll_from_another_thread(log: Log, name: str) -> None:
    log.create_topic(name, 1)
    with log.consumer(name, [name], **FAST) as consumer:
        timer = threading.Timer(0.3, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(60)
        timer.join()
        assert consumer.poll(0.1) == []


def test_a_second_thread_is_refused(log: Log, name: str) -> None:
    log.create_topic(name, 1)
    with log.consumer(name, [name], **FAST) as consumer:
        entered = threading.Event()

        def work() -> None:
            entered.set()
            with pytest.raises(WakeupError):
                consumer.poll(60)

        thread = threading.Thread(target=work)
        thread.start()
        entered.wait()
        SYSTEM.sleep(0.3)
        with pytest.raises(ConcurrentUseError):
            consumer.commit()
        consumer.wakeup()
        thread.join()
    with pytest.raises(ClientClosedError):
        consumer.poll(0)


def test_a_pattern_finds_topics_that_appear_later(log: Log, name: str) -> None:
    fill(log, f"{name}.a", 3)
    with log.consumer(name, pattern=f"{name}\\..*", **FAST) as consumer:
        poll_until(consumer, lambda found: len(found) >= 3)
        fill(log, f"{name}.b", 2)
        fill(log, f"not-{name}.c", 2)
        later = poll_until(consumer, lambda found: len(found) >= 2)
        assert {record.topic for record in later} == {f"{name}.b"}


def test_where_a_new_group_starts_is_its_own_choice(log: Log, name: str) -> None:
    fill(log, name, 10)
    with log.consumer(name, [name], auto_offset_reset="latest", **FAST) as consumer:
        found: list[LogRecord] = []
        until = SYSTEM.monotonic() + 60
        while not found:  # it starts at the end, whenever it gets there
            assert SYSTEM.monotonic() < until
            fill(log, name, 1, start=100)
            found = consumer.poll(0.5)
        assert set(numbers(found)) == {100}
    with (
        log.consumer(name + "-none", [name], auto_offset_reset="none", **FAST) as consumer,
        pytest.raises(OffsetOutOfRangeError),
    ):
        poll_until(consumer, lambda found: len(found) >= 1)


def test_offsets_and_records_commit_together(log: Log, name: str) -> None:
    fill(log, name, 10)
    output = name + "-out"
    log.create_topic(output, 1)

    def run(fail_after: int) -> None:
        with (
            log.consumer(name, [name], enable_auto_commit=False, max_poll_records=2, **FAST) as consumer,
            log.producer(transactional_id=name) as producer,
        ):  # fmt: skip
            done = 0
            until = SYSTEM.monotonic() + 40
            while SYSTEM.monotonic() < until:
                records = consumer.poll(0.2)
                if not records:
                    if done:
                        return
                    continue
                with producer.transaction():
                    for record in records:
                        producer.send(output, value=record.value)
                        done += 1
                        if done == fail_after:
                            raise ZeroDivisionError
                    producer.send_offsets(consumer)

    with pytest.raises(ZeroDivisionError):
        run(5)
    run(100)
    until = SYSTEM.monotonic() + 20
    while len(list(log.read(output))) < 10 and SYSTEM.monotonic() < until:
        SYSTEM.sleep(0.05)
    assert numbers(list(log.read(output))) == list(range(10))


def test_a_pool_keeps_order_by_key_and_commits_below_the_unfinished(log: Log, name: str) -> None:
    fill(log, name, 200, partitions=2)
    seen: dict[bytes, list[int]] = {}
    lock = threading.Lock()
    hold = threading.Event()

    def work(record: LogRecord) -> None:
        if record.value == b"100":
            hold.wait(20)
        with lock:
            seen.setdefault(record.key or b"", []).append(int(record.value or b""))

    def count() -> int:
        with lock:
            return sum(map(len, seen.values()))

    with log.consumer(name, [name], enable_auto_commit=False, **FAST) as consumer:
        pool = WorkerPool(consumer, work, workers=4, commit_interval=0.05)
        held_at: list[dict[Place, int | None]] = []

        def until() -> bool:
            if not hold.is_set() and count() >= 140:
                SYSTEM.sleep(0.2)
                held_at.append(consumer.committed())
                hold.set()
            return count() == 200

        pool.run(until)
        assert consumer.committed() == {(name, 0): 100, (name, 1): 100}
    assert held_at
    assert (held_at[0][name, 0] or 0) <= 50  # record 100 stands at offset 50 of partition 0
    for each in seen.values():
        for partition in (0, 1):
            mine = [number for number in each if number % 2 == partition]
            assert mine == sorted(mine)


def test_a_pool_stops_at_work_that_fails_and_repeats_it_later(log: Log, name: str) -> None:
    fill(log, name, 20)
    done: list[int] = []

    def work(record: LogRecord) -> None:
        if record.value == b"7" and 7 not in done:
            done.append(7)
            raise ZeroDivisionError
        done.append(int(record.value or b""))

    with log.consumer(name, [name], enable_auto_commit=False, **FAST) as consumer:
        pool = WorkerPool(consumer, work, workers=1)
        with pytest.raises(ZeroDivisionError):
            pool.run(lambda: False)
        assert consumer.committed() == {(name, 0): 7}
    done.remove(7)
    assert done == list(range(7))
    done.append(7)
    with log.consumer(name, [name], enable_auto_commit=False, **FAST) as consumer:
        WorkerPool(consumer, work, workers=1).run(lambda: len(done) >= 21)
    assert done == [*range(8), *range(7, 20)]


@pytest.mark.clients  # members are asked every five seconds
def test_the_server_side_protocol_shares_and_remembers_as_the_classic_one(
    log: Log, name: str
) -> None:
    fill(log, name, 20, partitions=2)
    settings = {"group_protocol": "consumer", "fetch_max_wait_ms": 50}
    with log.consumer(name, [name], **settings) as first:
        got = poll_until(first, lambda found: len(found) >= 20)
        assert sorted(numbers(got)) == list(range(20))
        first.commit()
        with log.consumer(name, [name], **settings) as second:
            until = SYSTEM.monotonic() + 60
            while not (len(first.assignment()) == len(second.assignment()) == 1):
                assert SYSTEM.monotonic() < until
                first.poll(0.1)
                second.poll(0.1)
            assert first.assignment() != second.assignment()
    with log.consumer(name, [name], **settings) as third:
        assert third.poll(2.0) == []
        assert sum(offset or 0 for offset in third.committed([(name, 0), (name, 1)]).values()) == 20
