"""A log in this process, workers in this process, their tasks as real processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

import tailrace as tr
from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import Log
from tailrace.connectors.serve import ConnectServer, Settings

PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("log")
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0"}  # fmt: skip
    with BrokerThread(directory, durable=False, settings=settings) as broker:
        yield broker.address


@pytest.fixture(scope="module")
def log(address: str) -> Iterator[Log]:
    with tr.connect(address) as found:
        yield found


class Asking:
    """Requests to a worker: status and answer as a pair."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=f"http://{address}", timeout=60)

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        if body is not None:
            more["json"] = body
        answer = self.client.request(method, path, **more)
        return answer.status_code, answer.json() if answer.content else None

    def make(self, name: str, connector: str, **settings: Any) -> None:
        given = {key.replace("__", "."): value for key, value in settings.items()}
        status, found = self("POST", "/connectors", {"name": name, "config": {"connector.class": connector, **given}})  # fmt: skip
        assert status == 201, found

    def states(self, name: str) -> list[str]:
        """The connector's state, then those of its tasks."""
        status, found = self("GET", f"/connectors/{name}/status")
        if status != 200:
            return []
        return [found["connector"]["state"], *(one["state"] for one in found["tasks"])]

    def wait(self, name: str, *states: str) -> None:
        until(lambda: self.states(name) == list(states), lambda: self.states(name))

    def trace(self, name: str, task: int = 0) -> str:
        until(lambda: "FAILED" in self.states(name), lambda: self.states(name))
        found = self("GET", f"/connectors/{name}/status")[1]
        rows = [found["connector"], *found["tasks"]]
        return str(next(one["trace"] for one in rows if one["state"] == "FAILED"))


def until(holds: Callable[[], bool], shown: Callable[[], Any] = lambda: "", seconds: float = 60) -> None:  # fmt: skip
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.05)


def task_processes() -> list[psutil.Process]:
    """The processes of tasks below this one."""
    found = []
    for one in psutil.Process().children(recursive=True):
        try:
            if "tailrace.connectors.task" in " ".join(one.cmdline()):
                found.append(one)
        except psutil.Error:
            continue
    return found


def _starter(stack: ExitStack, log: Log, address: str) -> Callable[..., ConnectServer]:
    def start(**given: str) -> ConnectServer:
        settings = {name.replace("__", "."): value for name, value in given.items()}
        chosen = Settings("127.0.0.1:0", [PLUGINS], {"offset.storage.partitions": "3", **settings})
        server = stack.enter_context(ConnectServer(log, address, chosen))
        server.start()
        return server

    return start


@pytest.fixture
def begin(log: Log, address: str) -> Iterator[Callable[..., ConnectServer]]:
    """Starts workers; they are stopped at the end."""
    with ExitStack() as stack:
        yield _starter(stack, log, address)


@pytest.fixture(scope="module")
def ask(log: Log, address: str) -> Iterator[Asking]:
    """One worker for all tests of a module."""
    with ExitStack() as stack:
        asking = Asking(_starter(stack, log, address)().address)
        until(lambda: asking("DELETE", "/connectors/none")[0] == 404)
        yield asking
        asking.client.close()
