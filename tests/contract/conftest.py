"""One suite for every log: in process, our broker, Apache Kafka."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.databases import (  # noqa: F401  (fixtures)
    binlog_case,
    binlog_server,
    database,
    postgres_server,
    shared,
)
from tailrace.client.log import Log, connect, open

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A name no other test uses, for topics, groups and transactional ids."""
    return f"contract-{os.getpid()}-{next(_numbers)}"


@pytest.fixture(
    params=["in process", "tailrace_broker", pytest.param("kafka", marks=pytest.mark.clients)]
)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """A log that is empty but for what other tests left under other names."""
    made: Log
    if request.param == "in process":
        made = open(tmp_path / "log")
    else:
        made = connect(request.getfixturevalue(request.param))
    with made:
        yield made
