"""A fresh broker per test, and a client that speaks the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., BrokerThread]]:
    """Start a broker with settings; all are stopped after the test."""
    started: list[BrokerThread] = []

    def begin(directory: str = "log", **settings: str) -> BrokerThread:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        started.append(BrokerThread(tmp_path / directory, settings=given, durable=False))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


@pytest.fixture
def broker(start: Callable[..., BrokerThread]) -> BrokerThread:
    return start()


@pytest.fixture
def talk(broker: BrokerThread) -> Iterator[WireClient]:
    with WireClient(broker.address) as client:
        yield client


@pytest.fixture
def connect() -> Iterator[Callable[[str], WireClient]]:
    """More connections, closed after the test."""
    clients: list[WireClient] = []

    def open_one(address: str) -> WireClient:
        clients.append(WireClient(address))
        return clients[-1]

    yield open_one
    for one in clients:
        one.close()
