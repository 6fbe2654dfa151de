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
        ("reading.ranges", "close_kept"), ("state.cache", "close_opened"),
        ("spark.catalyst.client", "close"),
    )  # fmt: skip
    for room, close in kept:
        module = sys.modules.get(f"tailrace.pipelines.{room}")
        if module is not None:
            getattr(module, close)()


@pytest.fixture(scope="session", autouse=True)
def catalyst_lasts() -> None:
    """The JVM that computes expressions which are Spark's, once started, is there for all tests.
    It hardly ends by itself between them: the next would start one."""
    from tailrace.pipelines.spark.catalyst import door

    door.IDLE_SECONDS = 300.0  # of a run that was killed it is left for so long
    door.JVM = (*door.JVM, "-XX:TieredStopAtLevel=1")  # see SPARK_SUBMIT_OPTS
