"""Logs and one Spark session for the pipelines' tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["tailrace", pytest.param("kafka", marks=pytest.mark.cluster)])
def log_address(request: pytest.FixtureRequest) -> str:
    """Where a log answers: ours, and with the marker `cluster` a real Apache Kafka."""
    address = request.getfixturevalue("kafka" if request.param == "kafka" else "tailrace_broker")
    assert isinstance(address, str)
    return address


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests that need one."""
    from tailrace.pipelines import session

    running = session.start("tests", tmp_path_factory.mktemp("spark"), master="local[2]")
    yield running
    running.stop()
