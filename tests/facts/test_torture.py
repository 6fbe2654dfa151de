"""Workers are killed, stopped and continued while others write; then a plain Kafka client reads
every stream: versions 1…n, every acknowledged command once, the state what its events make."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

import tailrace as tr
from servers.accounts import Account, Deposited, declare, deposit, evolve, worker
from tailrace.broker.embedded import BrokerProcess
from tailrace.errors import TailraceError
from tailrace.facts.opened import OpenedEvents

NAME, PARTITIONS, STREAMS = "accounts", 4, 12
ROUNDS = 9


@pytest.fixture(params=["tailrace", pytest.param("kafka", marks=pytest.mark.clients)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    with BrokerProcess(tmp_path / "log") as broker:
        yield broker.address


@contextmanager
def caller(address: str, number: int, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A process that owns nothing and writes to any stream, until its input ends."""
    command = [sys.executable, __file__, address, str(number), topic]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def read_plainly(address: str, topic: str) -> Iterator[tuple[str, int, str, str, bytes]]:
    """Stream, version, type, command id and value of every record."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "plain", "enable.auto.commit": False,
         "isolation.level": "read_committed", "enable.partition.eof": True}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        ended = set[int]()
        while len(ended) < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                ended.add(message.partition())
                continue
            headers = dict(message.headers())
            yield (
                message.key().decode(),
                int(headers["tailrace.version"]),
                headers["tailrace.event"].decode(),
                json.loads(headers["tailrace.meta"])["command"],
                message.value(),
            )
    finally:
        consumer.close()


@pytest.mark.crash
@pytest.mark.timeout(900)
def test_owners_die_and_stop_while_others_write(address: str, tmp_path: Path) -> None:
    chance = random.Random(1)
    index, topic = tmp_path / "index", f"{NAME}-{os.getpid()}"
    told: dict[str, tuple[str, int]] = {}

    def listen(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            id, stream, version = line.split()
            told[id] = (stream, int(version))

    with tr.connect(address) as log, declare(topic, PARTITIONS).open(log, owns=False):
        pass  # the topic is there before anybody writes
    owners = [worker(address, topic, index, PARTITIONS) for _ in range(3)]
    alive = [each.__enter__() for each in owners]
    try:
        with caller(address, 0, topic) as first, caller(address, 1, topic) as second:
            threads = [threading.Thread(target=listen, args=(p,)) for p in (first, second)]
            for each in threads:
                each.start()
            for number in range(ROUNDS):
                before = len(told)
                victim = chance.randrange(len(alive))
                if number % 3 == 2:  # stopped, for longer than a session now and then
                    os.kill(alive[victim].process.pid, signal.SIGSTOP)
                    time.sleep(8.0 if number % 6 == 5 else 0.5)
                    os.kill(alive[victim].process.pid, signal.SIGCONT)
                else:
                    alive[victim].process.kill()
                    alive[victim].process.wait()
                    owners.append(worker(address, topic, index, PARTITIONS))
                    alive[victim] = owners[-1].__enter__()
                deadline = time.monotonic() + 120
                while len(told) < before + 40:
                    assert time.monotonic() < deadline, "nobody goes on"
                    time.sleep(0.02)
            for process in (first, second):
                assert process.stdin is not None
                process.stdin.close()
            for each in threads:
                each.join()
            assert (first.wait(), second.wait()) == (0, 0)
        versions: dict[str, int] = {}
        states: dict[str, Account] = {}
        ids: dict[str, tuple[str, int]] = {}
        for stream, version, kind, command, value in read_plainly(address, topic):
            assert version == versions.get(stream, 0) + 1, (stream, version)
            assert command not in ids, command
            assert kind == "Deposited"
            versions[stream] = version
            ids[command] = (stream, version)
            states[stream] = evolve(states.get(stream, Account()), Deposited(**json.loads(value)))
        assert {id: ids.get(id) for id in told} == told
        with (
            tr.connect(address) as log,
            declare(topic, PARTITIONS).open(log, owns=False, timeout=60) as bank,
        ):
            for stream, state in states.items():
                found = bank.state(stream)
                assert (found.version, found.value) == (versions[stream], state)
    finally:
        for one in owners:
            one.__exit__(None, None, None)


def main() -> None:
    address, number, topic = sys.argv[1:]
    ended = threading.Event()
    lock = threading.Lock()

    def write(bank: OpenedEvents[Account], mine: int) -> None:
        chance, count = random.Random(mine), 0
        while not ended.is_set():
            stream, id = f"s{chance.randrange(STREAMS)}", f"c{number}-{mine}-{count}"
            while True:
                try:
                    done = bank.execute(deposit, stream, amount=1, id=id)
                except TailraceError as error:
                    assert error.code in ("outcome-unknown", "owner-missing"), error.render()
                    continue
                break
            with lock:
                print(id, stream, done.version, flush=True)
            count += 1

    with tr.connect(address) as log, declare(topic, PARTITIONS).open(log, owns=False) as bank:
        threads = [threading.Thread(target=write, args=(bank, n)) for n in range(4)]
        for each in threads:
            each.start()
        sys.stdin.read()
        ended.set()
        for each in threads:
            each.join()


if __name__ == "__main__":
    main()
