"""kill -9 at random moments: everything acknowledged is there once, in order.

A failing round prints its seed; `LOG_KILL_SEED=N` runs that one again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from log_helpers import read_all
from tailrace.log.partition import Partition
from tailrace.log.store import Store
from tailrace.records.batch import decode_records, iterate_batches

WRITER = Path(__file__).with_name("log_writer.py")


def write_and_kill(directory: Path, seed: int) -> list[tuple[str, int]]:
    """What the writer acknowledged before it was killed."""
    chance = random.Random(seed)
    writer = subprocess.Popen(
        [sys.executable, str(WRITER), str(directory), str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    first = writer.stdout.readline()
    time.sleep(chance.random() ** 2 * 0.25)
    writer.send_signal(signal.SIGKILL)
    rest, errors = writer.communicate()
    assert writer.returncode in (-9, 0), errors.decode()
    lines = (first + rest).decode().splitlines()
    return [(kind, int(number)) for kind, number in (line.split(" ") for line in lines if line)]


def committed(partition: Partition) -> list[int]:
    """The numbers a reader of committed records sees."""
    aborted = sorted(
        partition.aborted_transactions(0, partition.last_stable_offset),
        key=lambda each: each.first_offset,
    )
    found: list[int] = []
    offset, skipping = 0, False
    while offset < partition.last_stable_offset:
        with partition.read(offset, 10**6, partition.last_stable_offset) as piece:
            data = piece.read()
        if not data:
            break
        for position, header in iterate_batches(data):
            offset = header.last_offset + 1
            if aborted and aborted[0].first_offset <= header.last_offset:
                skipping = True
                aborted.pop(0)
            if header.control:
                skipping = False
            elif not skipping:
                found += [int(record.value or b"") for record in decode_records(data, position)]
    return found


def numbers(partition: Partition) -> list[int]:
    return [int(record.value or b"") for record in read_all(partition)]


def check(directory: Path, told: list[tuple[str, int]]) -> None:
    """Judge the log against everything told so far."""
    store = Store.open([directory])
    try:
        for name in ("plain", "synced"):
            last = max((number for kind, number in told if kind == name), default=-1)
            if name not in store.topics:
                assert last == -1
                continue
            found = numbers(store.partition(name, 0))
            assert found == list(range(len(found)))
            assert len(found) > last
        made = max((number for kind, number in told if kind == "topic"), default=-1)
        assert all(f"made-{number}" in store.topics for number in range(made + 1))
        if "atomic" in store.topics:
            atomic = store.partition("atomic", 0)
            everything = numbers(atomic)
            assert everything == list(range(len(everything)))
            seen = set(committed(atomic))
            for kind, number in told:
                if kind == "commit":
                    assert number in seen
                elif kind == "abort":
                    assert number not in seen
    finally:
        store.abandon()


def rounds(directory: Path, seeds: list[int]) -> None:
    told: list[tuple[str, int]] = []
    for seed in seeds:
        try:
            told += write_and_kill(directory, seed)
            check(directory, told)
        except BaseException:
            print(f"failing seed: {seed}; all seeds: {seeds[: seeds.index(seed) + 1]}")
            raise
    assert any(kind == "plain" for kind, _ in told)


def seeds(count: int) -> list[int]:
    given = os.environ.get("LOG_KILL_SEED")
    if given is not None:
        return [int(given)]
    start = random.SystemRandom().randrange(10**6)
    print(f"seeds {start} to {start + count - 1}")
    return list(range(start, start + count))


def test_eight_kills_lose_nothing(tmp_path: Path) -> None:
    rounds(tmp_path / "log", seeds(8))


@pytest.mark.crash
@pytest.mark.timeout(1200)
def test_three_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    everything = seeds(300)
    for start in range(0, len(everything), 50):
        rounds(tmp_path / f"log-{start}", everything[start : start + 50])
