"""Several workers: tasks are spread, move as little as possible, and survive their worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from connectors.conftest import PLUGINS, Asking, until
from tailrace.client.log import Log
from tailrace.connectors.serve import ConnectServer

SESSION_SECONDS = 6.0


def placed(ask: Asking, name: str) -> dict[int, str]:
    """The worker of each task that runs."""
    status, found = ask("GET", f"/connectors/{name}/status")
    rows = found["tasks"] if status == 200 else []
    return {one["id"]: one["worker_id"] for one in rows if one["state"] == "RUNNING"}


@pytest.mark.crash
def test_a_worker_that_comes_moves_only_what_it_gets(begin: Callable[..., ConnectServer], log: Log) -> None:  # fmt: skip
    first = begin(group__id="moving", config__storage__topic="moving-configs")
    ask = Asking(first.address)
    until(lambda: ask("DELETE", "/connectors/none")[0] == 404)
    ask.make("spread", "Numbers", topic="spread", tasks__max="4")
    ask.wait("spread", "RUNNING", *["RUNNING"] * 4)
    pids = {unit: one.child.process.pid for unit, one in first.worker._running.items() if one.child}
    second = begin(group__id="moving", config__storage__topic="moving-configs")
    until(lambda: set(placed(ask, "spread").values()) == {first.address, second.address}
          and len(placed(ask, "spread")) == 4)  # fmt: skip
    stayed = [task for task, worker in placed(ask, "spread").items() if worker == first.address]
    assert len(stayed) in (2, 3)
    now = {unit: one.child.process.pid for unit, one in first.worker._running.items() if one.child}
    assert all(now[("spread", task)] == pids[("spread", task)] for task in stayed)

    # A follower answers what it is asked to change: the leader does it.
    other = Asking(second.address)
    follower, leader = (ask, other) if second.worker.leads else (other, ask)
    assert follower("PUT", "/connectors/spread/pause")[0] == 202
    follower.wait("spread", "PAUSED", *["PAUSED"] * 4)
    assert follower("PATCH", "/connectors/spread/config", {"tasks.max": "2"})[0] == 200
    assert follower("GET", "/connectors/spread/config")[1]["tasks.max"] == "2"
    assert follower("PUT", "/connectors/spread/resume")[0] == 202
    leader.wait("spread", "RUNNING", "RUNNING", "RUNNING")
    for task in (0, 1):
        assert follower("POST", f"/connectors/spread/tasks/{task}/restart")[0] == 204
        assert leader("POST", f"/connectors/spread/tasks/{task}/restart")[0] == 204
    status, made = follower("POST", "/connectors", {"name": "f", "config": {"connector.class": "Numbers", "topic": "spread", "end": "5"}})  # fmt: skip
    assert (status, made["name"]) == (201, "f")
    assert follower("DELETE", "/connectors/f")[0] == 204
    assert follower("DELETE", "/connectors/spread")[0] == 204
    ask.client.close()
    other.client.close()


class Process:
    """A worker as users start one."""

    def __init__(self, log: str, directory: Path, name: str) -> None:
        self.output = directory / f"{name}.out"
        command = [sys.executable, "-P", "-m", "tailrace", "connect", "start", "--log", log,
                   "--listen", "127.0.0.1:0", "--plugins", str(PLUGINS), "--set", "group.id=killing",
                   "--set", "config.storage.topic=killing-configs",
                   "--set", f"session.timeout.ms={int(SESSION_SECONDS * 1000)}"]  # fmt: skip
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def ready(self) -> Asking:
        until(lambda: "listening on" in self.output.read_text(), self.output.read_text)
        line = next(x for x in self.output.read_text().splitlines() if x.startswith("listening on"))
        self.address = line.rpartition(" ")[2]
        return Asking(self.address)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def start(address: str, tmp_path: Path) -> Iterator[Callable[[str], Process]]:
    started: list[Process] = []

    def begin_process(name: str) -> Process:
        started.append(Process(address, tmp_path, name))
        return started[-1]

    yield begin_process
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGCONT)
        one.stop()


@pytest.mark.crash
def test_a_dead_workers_tasks_are_taken_over_and_a_frozen_one_is_fenced(
    start: Callable[[str], Process], log: Log
) -> None:
    workers = [start(name) for name in "abc"]
    asks = [one.ready() for one in workers]
    ask = asks[0]
    until(lambda: ask("DELETE", "/connectors/none")[0] == 404)
    ask.make("numbers", "Numbers", topic="killed", tasks__max="4", end="6000")
    until(lambda: len(placed(ask, "numbers")) == 4, lambda: placed(ask, "numbers"))

    # Killed: its tasks run elsewhere within its session.
    dead = workers[1]
    os.kill(dead.process.pid, signal.SIGKILL)
    killed_at = time.monotonic()
    until(lambda: len(placed(ask, "numbers")) == 4 and dead.address not in placed(ask, "numbers").values(),
          lambda: placed(ask, "numbers"))  # fmt: skip
    took = time.monotonic() - killed_at
    assert took < SESSION_SECONDS + 2 + 3, took  # 3 for a busy machine
    print(f"taken over after {took:.1f} s")

    # Frozen, with its tasks: others take over; awake again it writes nothing.
    frozen = workers[2]
    family = [frozen.process.pid, *children(frozen.process.pid)]
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: len(placed(ask, "numbers")) == 4 and frozen.address not in placed(ask, "numbers").values(),
          lambda: placed(ask, "numbers"))  # fmt: skip
    for pid in family:
        os.kill(pid, signal.SIGCONT)

    def rows() -> list[tuple[bytes, int]]:
        return [(one.key, orjson.loads(one.value)["n"]) for one in log.read("killed")]

    until(lambda: len(rows()) >= 4 * 6000, lambda: len(rows()), seconds=120)
    assert Counter(rows()) == {(str(part).encode(), n): 1 for part in range(4) for n in range(1, 6001)}  # fmt: skip
    for one in asks:
        one.client.close()


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(one) for path in found for one in path.read_text().split()]


def test_an_idle_worker_is_small(start: Callable[[str], Process]) -> None:
    worker = start("small")
    worker.ready().client.close()
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))  # fmt: skip
    assert resident < 80 * 1024


@pytest.mark.crash
def test_each_of_five_workers_moves_only_what_it_gets(begin: Callable[..., ConnectServer]) -> None:
    settings = {"group__id": "five", "config__storage__topic": "five-configs"}
    workers = [begin(**settings)]
    ask = Asking(workers[0].address)
    until(lambda: ask("DELETE", "/connectors/none")[0] == 404)
    ask.make("five", "Numbers", topic="five", tasks__max="8", parts="8")
    ask.wait("five", "RUNNING", *["RUNNING"] * 8)

    def running() -> dict[object, int]:
        """The process of everything that runs, wherever."""
        return {
            unit: one.child.process.pid
            for worker in workers
            for unit, one in list(worker.worker._running.items())
            if one.child is not None and not one.stopping
        }

    for count in range(2, 6):
        before = running()
        workers.append(begin(**settings))
        fair = 9 // count  # eight tasks and the connector itself
        until(lambda fair=fair: len(workers[-1].worker._running) >= fair - 1
              and len(set(running())) == 8 and len(placed(ask, "five")) == 8)  # type: ignore[misc]  # fmt: skip
        got = set(workers[-1].worker._running)
        assert len(got) <= fair + 1
        assert {unit: pid for unit, pid in running().items() if unit not in got} == {
            unit: pid for unit, pid in before.items() if unit not in got
        }
    assert len(set(placed(ask, "five").values())) == 5
    ask.client.close()
