"""Copying a topic while copier and broker are killed: every record once, in order."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.log import Log
from tailrace.clock import SYSTEM

WORKER = Path(__file__).parent / "copying_worker.py"


class Copier:
    """The worker process, started again whenever it is gone."""

    def __init__(self, address: str, most: int) -> None:
        self.command = [sys.executable, str(WORKER), address, str(most)]
        self.started = 0
        self.start()

    def start(self) -> None:
        self.started += 1
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def keep_alive(self) -> None:
        if self.process.poll() is not None:
            self.start()


def run(directory: Path, seed: int, kills: int, records: int) -> None:
    chance = random.Random(seed)
    print(f"seed {seed}: {kills} kills, {records} records")
    broker = BrokerProcess(directory)
    address = broker.address
    log = tr.connect(address)
    for topic in ("in", "out"):
        log.create_topic(topic, partitions=2)
    with log.producer() as producer:
        for number in range(records):
            producer.send("in", key=b"%d" % number, value=b"%d" % number, partition=number % 2)
    copier = Copier(address, max(1, records // 150))
    try:
        for _ in range(kills):
            SYSTEM.sleep(chance.uniform(0.05, 1.2))
            victim = chance.choice(["copier", "broker", "both"])
            if victim != "broker":
                copier.kill()
            if victim != "copier":
                broker.kill()
                SYSTEM.sleep(chance.uniform(0, 0.3))
                broker = BrokerProcess(directory, listen=address)
            copier.keep_alive()
        until = SYSTEM.monotonic() + 90
        while sum(log.end_offsets("out").values()) < records or written(log) < records:
            assert SYSTEM.monotonic() < until, f"seed {seed}: only {written(log)} of {records}"
            copier.keep_alive()
            SYSTEM.sleep(0.3)
        for partition in (0, 1):
            values = [int(r.value or b"") for r in log.read("out", partitions=[partition])]
            assert values == [n for n in range(records) if n % 2 == partition], f"seed {seed}"
    finally:
        copier.kill()
        log.close()
        broker.stop()


def written(log: Log) -> int:
    return sum(1 for _ in log.read("out"))


def test_a_few_kills_leave_every_record_once(tmp_path: Path) -> None:
    run(tmp_path, int(os.environ.get("SEED", "11")), kills=3, records=200)


@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
def test_many_kills_leave_every_record_once(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, kills=30, records=4000)
