"""Brokers for other people's clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerProcess


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One broker process per module; tests use topics of their own."""
    directory: Path = tmp_path_factory.mktemp("log")
    with BrokerProcess(directory) as broker:
        yield broker.address


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of this test's own."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:120]


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """Other people's clients close their sockets on threads of their own, when they like."""
