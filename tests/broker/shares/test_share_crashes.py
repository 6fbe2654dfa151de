"""Workers on a queue whose broker is killed again and again; and a very long queue."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest

import tailrace as tr
from servers.processes import free_port
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.client.queue import Queue
from tailrace.clock import SYSTEM

RECORDS = 3000
WORKERS = 3
KILLS = 5


class Ledger:
    """Who holds which record, and which are done for; the naive judge of the queue."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.holders: dict[int, tuple[int, int, int]] = {}
        self.done: set[int] = set()
        self.deliveries: Counter[int] = Counter()
        self.problems: list[str] = []
        self.life = 0
        """How often the broker was started: a lock does not outlive it."""

    def given(self, offset: int, worker: int, session: int, life: int) -> None:
        with self.guard:
            self.deliveries[offset] += 1
            if offset in self.done:
                self.problems.append(f"{offset} came again after its acknowledgement")
            held = self.holders.get(offset)
            # A worker that lost its session lost its locks; so did everybody at a kill.
            if held is not None and held[0] != worker and held[2] == life == self.life:
                self.problems.append(f"{offset} was given to {worker} while {held[0]} had it")
            self.holders[offset] = (worker, session, life)

    def let_go(self, offset: int, worker: int) -> None:
        with self.guard:
            if self.holders.get(offset, (None,))[0] == worker:
                del self.holders[offset]

    def acknowledged(self, offsets: set[int]) -> None:
        with self.guard:
            self.done |= offsets

    @property
    def complete(self) -> bool:
        with self.guard:
            return len(self.done) >= RECORDS


def work(address: str, number: int, ledger: Ledger, stop: threading.Event) -> None:
    chance = random.Random(number)
    session = 0
    while not stop.is_set() and not ledger.complete:
        session += 1
        try:
            with (
                tr.connect(address) as log,
                log.queue("jobs", group="workers", max_records=20) as queue,
            ):
                take(queue, number, session, ledger, stop, chance)
        except ClientError:
            SYSTEM.sleep(0.1)  # the broker is down; begin again


def take(
    queue: Queue,
    number: int,
    session: int,
    ledger: Ledger,
    stop: threading.Event,
    chance: random.Random,
) -> None:
    while not stop.is_set() and not ledger.complete:
        life = ledger.life
        answered: set[int] = set()
        jobs = queue.poll(0.3)
        for job in jobs:
            ledger.given(job.record.offset, number, session, life)
        SYSTEM.sleep(chance.random() / 50)  # the work
        for job in jobs:
            ledger.let_go(job.record.offset, number)
            if chance.random() < 0.1 and job.delivery_count < 50:
                job.release()
            else:
                job.ack()
                answered.add(job.record.offset)
        lost_before = len(queue.lost)
        queue.flush()
        lost = {record.offset for record in list(queue.lost)[lost_before:]}
        ledger.acknowledged(answered - lost)


@pytest.mark.crash
@pytest.mark.timeout(300)
def test_acknowledged_jobs_stay_done_however_often_the_broker_is_killed(tmp_path: Path) -> None:
    chance = random.Random(11)
    address = f"127.0.0.1:{free_port()}"
    broker = BrokerProcess(tmp_path, listen=address)
    with Admin(address) as admin:
        admin.create_topic("jobs", 1)
        admin.alter_group_config(
            "workers",
            {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "100"},
        )
    with tr.connect(address) as log, log.producer() as producer:
        for number in range(RECORDS):
            producer.send("jobs", value=b"%d" % number)
    ledger, stop = Ledger(), threading.Event()
    workers = [
        threading.Thread(target=work, args=(address, number, ledger, stop))
        for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in range(KILLS):
            stop.wait(0.5 + chance.random())
            ledger.life += 1
            broker.kill()
            broker = BrokerProcess(tmp_path, listen=address)
        for _ in range(1200):
            if ledger.complete or stop.wait(0.1):
                break
    finally:
        stop.set()
        for worker in workers:
            worker.join()
        broker.stop()
    assert not ledger.problems, ledger.problems[:5]
    assert len(ledger.done) == RECORDS
    assert len(ledger.deliveries) == RECORDS


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_queue_of_a_million_jobs_without_an_answer_stays_small(tmp_path: Path) -> None:
    count = 1_000_000
    with BrokerProcess(tmp_path) as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("jobs", 1)
            admin.alter_group_config("workers", {"share.auto.offset.reset": "earliest"})
        with tr.connect(broker.address) as log, log.producer() as producer:
            for number in range(count):
                producer.send("jobs", value=b"%d" % number)
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss
        with tr.connect(broker.address) as log:
            with log.queue("jobs", group="workers", max_records=500) as queue:
                held = []
                while jobs := queue.poll(2):
                    held += jobs
                assert len(held) == 2000  # group.share.partition.max.record.locks
                assert process.memory_info().rss - before < 30 << 20
                for job in held:
                    job.ack()
                queue.flush()
                assert queue.poll(5)
            with Admin(broker.address) as admin:
                assert admin.topic_end_offsets("jobs")[0] == count
