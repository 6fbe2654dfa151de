"""A topic as a work queue."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from tailrace.client.errors import ClientClosedError, TransactionStateError
from tailrace.client.log import Log
from tailrace.client.queue import Job, Queue
from tailrace.clock import SYSTEM


def fill(log: Log, topic: str, count: int, partitions: int = 1) -> None:
    log.ensure_topic(topic, partitions)
    with log.producer() as producer:
        for number in range(count):
            producer.send(topic, value=b"%d" % number, partition=number % partitions)


def take(queue: Queue, count: int) -> list[Job]:
    found: list[Job] = []
    until = SYSTEM.monotonic() + 40
    while len(found) < count:
        assert SYSTEM.monotonic() < until, f"only {len(found)} jobs of {count}"
        found += queue.poll(0.5)
    return found


def numbers(jobs: list[Job]) -> list[int]:
    return sorted(int(job.value or b"") for job in jobs)


def test_acknowledged_jobs_do_not_come_again(log: Log, name: str) -> None:
    fill(log, name, 30, partitions=2)
    with log.queue(name, name) as queue:
        jobs = take(queue, 30)
        assert numbers(jobs) == list(range(30))
        assert {job.delivery_count for job in jobs} == {1}
        for job in jobs:
            job.ack()
        with pytest.raises(TransactionStateError):
            jobs[0].reject()
        queue.flush()
    with log.queue(name, name) as queue:
        assert queue.poll(1.5) == []
    with pytest.raises(ClientClosedError):
        queue.poll(0)


def test_released_jobs_come_again_and_rejected_ones_do_not(log: Log, name: str) -> None:
    fill(log, name, 6)
    with log.queue(name, name) as queue:
        for job in take(queue, 6):
            number = int(job.value or b"")
            if number % 3 == 0:
                job.ack()
            elif number % 3 == 1:
                job.release()
            else:
                job.reject()
        again = take(queue, 2)
        assert numbers(again) == [1, 4]
        assert {job.delivery_count for job in again} == {2}
        for job in again:
            job.ack()
        assert queue.poll(1.0) == []


def test_jobs_without_an_answer_go_back_when_a_worker_leaves(log: Log, name: str) -> None:
    fill(log, name, 5)
    with log.queue(name, name) as first:
        take(first, 5)[0].ack()
    with log.queue(name, name) as second:
        jobs = take(second, 4)
        assert numbers(jobs) == [1, 2, 3, 4]
        for job in jobs:
            job.ack()


def test_two_workers_share_one_partition(log: Log, name: str) -> None:
    log.create_topic(name, 1)
    seen: Counter[int] = Counter()
    workers: Counter[str] = Counter()
    lock = threading.Lock()

    def work(number: int) -> None:
        with log.queue(name, name, max_records=5) as queue:
            ready.wait()
            while sum(seen.values()) < 200:
                for job in queue.poll(0.2):
                    with lock:
                        seen[int(job.value or b"")] += 1
                        workers[str(number)] += 1
                    job.ack()

    ready = threading.Barrier(3)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    ready.wait()
    fill(log, name, 200)
    for thread in threads:
        thread.join(60)
    assert sorted(seen) == list(range(200))
    assert set(seen.values()) == {1}
    assert len(workers) == 2


def test_a_delay_keeps_a_job_away_for_its_time(log: Log, name: str) -> None:
    fill(log, name, 2)
    with log.queue(name, name) as queue:
        first, second = take(queue, 2)
        first.ack()
        released_at = SYSTEM.monotonic()
        second.release(delay=1.5)
        (again,) = take(queue, 1)
        assert SYSTEM.monotonic() - released_at >= 1.5
        assert again.delivery_count == 2
        again.renew()
        again.ack()
        queue.flush()
        assert not queue.lost


def test_a_loop_over_a_queue_ends_after_its_time_out(log: Log, name: str) -> None:
    fill(log, name, 10)
    done = []
    with log.queue([name], name, max_records=3) as queue:
        while len(done) < 10:  # each of these loops ends by itself
            for job in queue.jobs(timeout=1):
                done.append(int(job.value or b""))
                job.ack()
    assert done == list(range(10))
