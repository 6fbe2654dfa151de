"""Logs and one Spark session for the pipelines' tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def log_address(kafka: str) -> str:
    """Where a log answers."""
    return kafka


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests that need one."""
    from tailrace.pipelines import session

    running = session.start("tests", tmp_path_factory.mktemp("spark"), master="local[2]")
    yield running
    running.stop()
