"""Fixtures that `pytest` gets from the installed package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tailrace_broker(tmp_path: Path) -> Iterator[str]:
    """HOST:PORT of a fresh broker that any Kafka client can use; gone after the test."""
    from tailrace.broker.embedded import BrokerThread

    with BrokerThread(tmp_path / "tailrace-log", durable=False) as broker:
        yield broker.address
