"""Fixtures that `pytest` gets from the installed package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tailrace.testing.project import ProjectUnderTest


@pytest.fixture
def tailrace_broker(tmp_path: Path) -> Iterator[str]:
    """HOST:PORT of a fresh broker that any Kafka client can use; gone after the test."""
    from tailrace.broker.embedded import BrokerThread

    with BrokerThread(tmp_path / "tailrace-log", durable=False) as broker:
        yield broker.address


@pytest.fixture
def tailrace_project(request: pytest.FixtureRequest) -> ProjectUnderTest:
    """The project the test belongs to: the nearest directory above it with a tailrace.toml."""
    from tailrace.config import FILE_NAME
    from tailrace.project.load import load
    from tailrace.testing.project import ProjectUnderTest

    folder = request.path.parent
    home = next((path for path in [folder, *folder.parents] if (path / FILE_NAME).exists()), folder)
    return ProjectUnderTest(load(home))
