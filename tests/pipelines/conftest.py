"""Logs, and what the pipelines' tests share of Spark's door."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(params=["tailrace", pytest.param("kafka", marks=pytest.mark.cluster)])
def log_address(request: pytest.FixtureRequest) -> str:
    """Where a log answers: ours, and with the marker `cluster` a real Apache Kafka."""
    address = request.getfixturevalue("kafka" if request.param == "kafka" else "tailrace_broker")
    assert isinstance(address, str)
    return address


@pytest.fixture(autouse=True)
def kept_connections_closed() -> Iterator[None]:
    """What a worker keeps for its next task, a test gives back."""
    yield
    kept = (
        ("ranges", "close_kept"), ("state.cache", "close_opened"), ("catalyst.client", "close"),
    )  # fmt: skip
    for room, close in kept:
        module = sys.modules.get(f"tailrace.pipelines.{room}")
        if module is not None:
            getattr(module, close)()
    jvm = sys.modules.get("tailrace.pipelines.catalyst.door")
    if jvm is not None and not _lasting:
        jvm.end()  # or the test is held until it ends by itself


_lasting: list[str] = []
"""What of it the tests share."""


@pytest.fixture(scope="session")
def catalyst() -> Iterator[None]:
    """The JVM that computes expressions which are Spark's, for all tests that need it. It
    does not end by itself between them: the next would start one, and wait for its end."""
    from tailrace.pipelines.catalyst import client, door

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "IDLE_SECONDS", 3_600.0)
        door.connect().close()
    _lasting.append("catalyst")
    yield
    _lasting.clear()
    client.close()
    door.end()
