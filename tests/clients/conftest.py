"""Brokers for other people's clients."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerProcess


@pytest.fixture(
    scope="module", params=["tailrace", pytest.param("kafka", marks=pytest.mark.clients)]
)
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """One broker process per module; tests use topics of their own.

    The suite runs on Apache Kafka too: a test that fails there asks for something no
    client may rely on.
    """
    if request.param == "kafka":
        yield request.getfixturevalue("kafka")
        return
    directory: Path = tmp_path_factory.mktemp("log")
    with BrokerProcess(directory) as broker:
        yield broker.address


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of this test's own."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:100]
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """Other people's clients close their sockets on threads of their own, when they like."""
