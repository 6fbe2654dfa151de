"""kill -9 and SIGSTOP of owners: nothing acknowledged is lost, nothing is written twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from servers.accounts import PUBLISH, Account, declare, deposit, evolve, worker
from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import Log
from tailrace.errors import TailraceError
from tailrace.facts.failpoints import VARIABLE
from tailrace.facts.opened import OpenedEvents

STEPS = (
    "events.fence.init", "events.fence.written", "events.fence.aborted", "events.decided",
    "events.sent", "events.acknowledged", "events.indexed", "events.answered",
)  # fmt: skip


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        yield broker.address


def judge(log: Log, name: str, acknowledged: dict[str, int]) -> dict[str, int]:
    """Read the topic as any Kafka client would: versions 1…n of every stream, every id once,
    every acknowledged one there at its version. The events of each stream."""
    versions: dict[str, int] = {}
    ids: dict[str, int] = {}
    for record in log.read(name):
        stream = record.key.decode()
        version = int(record.header("tailrace.version"))
        assert version == versions.get(stream, 0) + 1, f"{stream}: {version} out of order"
        versions[stream] = version
        command = orjson.loads(record.header("tailrace.meta"))["command"]
        assert command not in ids, f"{command} is there twice"
        ids[command] = version
    for command, version in acknowledged.items():
        assert ids.get(command) == version, f"{command} was acknowledged and is lost"
    return versions


def judge_states(log: Log, bank: OpenedEvents[Account], versions: dict[str, int]) -> None:
    """The table of states has each stream at its last version, and every version on the way
    that it names is the state the events make."""
    last: dict[str, int] = {}
    for record in log.read(bank.declared.state_topic):
        stream, version = record.key.decode(), int(record.header("tailrace.version"))
        assert version >= last.get(stream, 0), f"{stream}: {version} after {last[stream]}"
        last[stream] = version
        assert orjson.loads(record.value)["events"] == version
    assert last == versions


class Writer(threading.Thread):
    """Deposits on one stream until it is stopped, repeating by id what it is not told."""

    def __init__(self, bank: OpenedEvents[Account], stream: str, prefix: str, most: int) -> None:
        super().__init__()
        self.bank, self.stream, self.prefix, self.most = bank, stream, prefix, most
        self.told: dict[str, int] = {}
        self.failed: list[str] = []
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set() and number < self.most:
            try:
                done = self.bank.execute(
                    deposit, self.stream, amount=1, id=f"{self.prefix}-{number}"
                )
            except TailraceError as error:
                if error.code not in ("outcome-unknown", "owner-missing"):
                    self.failed.append(error.render())
                    return
                continue
            self.told[done.id] = done.version
            number += 1

    def finish(self) -> None:
        self.stopping.set()
        self.join()
        assert self.failed == []


def run_with_kills(
    address: str, tmp_path: Path, steps: list[str], *, publish: bool = False
) -> None:
    """Callers write without a pause while one owner after the other dies at a named step."""
    name, index = "accounts", tmp_path / "index"
    told = {PUBLISH: "1"} if publish else {}
    declared = declare(name, publish=publish)
    with tr.connect(address) as log, declared.open(log, index=index, timeout=20) as bank:
        writers = [Writer(bank, f"s{n}", f"w{n}", 1_000_000) for n in range(4)]
        try:
            for step in steps:
                with worker(address, name, index, **{VARIABLE: step}, **told) as other:
                    assert other.process.wait(60) == -signal.SIGKILL, step
                before = [len(writer.told) for writer in writers]
                deadline = time.monotonic() + 60
                while any(len(w.told) < n + 3 for w, n in zip(writers, before, strict=True)):
                    assert time.monotonic() < deadline, f"nobody took over after {step}"
                    time.sleep(0.01)
        finally:
            for writer in writers:
                writer.stopping.set()
        for writer in writers:
            writer.finish()
        acknowledged = {command: n for writer in writers for command, n in writer.told.items()}
        versions = judge(log, name, acknowledged)
        assert sum(versions.values()) == len(acknowledged)
        if publish:
            judge_states(log, bank, versions)
        for stream, version in versions.items():
            state = Account()
            for fact in bank.history(stream):
                state = evolve(state, fact.event)
            found = bank.state(stream)
            assert (found.version, found.value) == (version, state)
            assert state.events == version


@pytest.mark.timeout(300)
def test_owners_killed_at_named_steps(address: str, tmp_path: Path) -> None:
    run_with_kills(address, tmp_path, ["events.fence.written", "events.acknowledged:3"])  # fmt: skip


@pytest.mark.timeout(300)
def test_owners_that_publish_states_killed_at_named_steps(address: str, tmp_path: Path) -> None:
    steps = ["events.published:2", "events.acknowledged:2"]
    run_with_kills(address, tmp_path, steps, publish=True)


@pytest.mark.crash
@pytest.mark.parametrize("step", [*STEPS, "events.published"])
def test_owners_that_publish_states_killed_at_every_step(
    address: str, tmp_path: Path, step: str
) -> None:
    number = 1 if "fence" in step else 3
    run_with_kills(address, tmp_path, [f"{step}:{number}"] * 2, publish=True)


@pytest.mark.crash
@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize("step", STEPS)
def test_owners_killed_at_every_step(address: str, tmp_path: Path, step: str, number: int) -> None:
    times = 1 if "fence" in step else number
    run_with_kills(address, tmp_path, [f"{step}:{times}"] * 2)


def test_a_killed_owner_is_replaced_when_its_address_refuses(address: str, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with tr.connect(address) as log, declare("accounts").open(log, index=index) as bank:
        streams = [f"s{n}" for n in range(6)]
        with worker(address, "accounts", index) as other:
            for stream in streams:
                bank.execute(deposit, stream, amount=1)
            assert len(set(bank.owners().values())) == 2
            other.process.kill()
            other.process.wait()
            # Not after a session (6 s): the next caller lets the dead member leave.
            for stream in streams:
                assert bank.execute(deposit, stream, amount=1).version == 2
        assert len(set(bank.owners().values())) == 1


@pytest.mark.timeout(300)
def test_a_stopped_owner_that_goes_on_writes_nothing(address: str, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with tr.connect(address) as log, declare("accounts").open(log, index=index, timeout=40) as bank:
        told: dict[str, int] = {}
        with worker(address, "accounts", index) as other:
            other.say("owners")
            (number,) = other.hear().split()
            theirs = next(s for s in map(str, range(99)) if bank.partition_of(s) == int(number))
            other.say(f"deposit {theirs} 400 own")
            for _ in range(20):
                command, version = other.hear().split()
                told[command] = int(version)
            os.kill(other.process.pid, signal.SIGSTOP)
            writer = Writer(bank, theirs, "ours", 30)
            writer.join()
            writer.finish()
            told |= writer.told
            os.kill(other.process.pid, signal.SIGCONT)
            for _ in range(380):
                command, version = other.hear().split()
                told[command] = int(version)
            other.say("end")
            other.process.wait()
        assert len(told) == 430
        assert judge(log, "accounts", told)[theirs] == 430
