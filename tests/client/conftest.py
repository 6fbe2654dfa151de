"""Every test of the client runs on Apache Kafka and, where it is built, on our broker."""

from __future__ import annotations

import itertools
import os

import pytest

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A name no other test uses, for topics, groups and transactional ids."""
    return f"client-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(params=["tailrace_broker", "kafka"])
def log(request: pytest.FixtureRequest) -> str:
    """The address of a log."""
    address: str = request.getfixturevalue(request.param)
    return address
