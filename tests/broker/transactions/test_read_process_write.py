"""Read, process, write: every record exactly once, whoever is killed and whenever."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.client.writer import TransactionalWriter

WORKER = Path(__file__).parent / "worker.py"


def fill(address: str, records: int) -> None:
    with Admin(address) as admin:
        for topic in ("input", "output"):
            admin.create_topic(topic, 2)
    with TransactionalWriter(address, "filler") as writer:
        writer.init()
        for number in range(records):
            writer.send("input", number % 2, None, b"%d" % number)
        writer.commit()


def output(address: str) -> dict[int, list[int]]:
    """What a reader of committed records finds, by the partition it came from."""
    found: dict[int, list[int]] = {0: [], 1: []}
    with Admin(address) as admin:
        ends = admin.topic_end_offsets("output")
    with Fetcher(address) as fetcher:
        for index, end in ends.items():
            for record in fetcher.read_range("output", index, 0, end):
                assert record.key is not None
                assert record.value is not None
                found[int(record.key)].append(int(record.value))
    return found


def start_worker(address: str, records: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), address, str(records)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run(directory: Path, seed: int, kills: int, records: int) -> None:
    """Kill the worker or the broker `kills` times at random moments, then let it finish."""
    chance = random.Random(seed)
    print(f"seed {seed}")
    broker = BrokerProcess(directory)
    worker: subprocess.Popen[bytes] | None = None
    try:
        fill(broker.address, records)
        worker = start_worker(broker.address, records)
        left = kills
        deadline = time.monotonic() + 60 + 3 * kills
        while time.monotonic() < deadline:
            if left:
                time.sleep(chance.uniform(0.02, 0.9))
                left -= 1
                if chance.random() < 0.5:
                    worker.kill()
                else:
                    broker.kill()
                    broker = BrokerProcess(directory, listen=broker.address)
            try:
                status = worker.wait(0.01 if left else 1)
            except subprocess.TimeoutExpired:
                continue
            if status == 0 and not left:
                break
            worker = start_worker(broker.address, records)
        assert worker.poll() == 0, f"seed {seed}: the worker did not finish in time"
        found = output(broker.address)
        expected = {index: list(range(index, records, 2)) for index in (0, 1)}
        assert found == expected, f"seed {seed}: not exactly once"
    finally:
        if worker is not None and worker.poll() is None:
            worker.kill()
            worker.wait()
        broker.stop()


def test_a_few_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    run(tmp_path, seed=11, kills=4, records=2_500)


@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("round", range(10))
def test_hundreds_of_kills_lose_and_repeat_nothing(tmp_path: Path, round: int) -> None:
    run(tmp_path, seed=random.randrange(2**32), kills=30, records=20_000)
