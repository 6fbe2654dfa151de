"""A database and a log for each test, and a capture that runs in a thread."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.capture import SMALL, Database, Running
from servers.postgres import PostgresServer, start_postgres
from tailrace.sources import Postgres
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.testing.source_log import SharedLog

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A Postgres with logical WAL: 18, or the version in TAILRACE_POSTGRES."""
    yield from start_postgres(int(os.environ.get("TAILRACE_POSTGRES", "18")))


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    name = f"shop{next(_numbers)}"
    made = Database(postgres_server, name, postgres_server.create_database(name))
    yield made
    made.connection.close()
    postgres_server.drop_database(name)


@pytest.fixture
def shared() -> SharedLog:
    return SharedLog()


@pytest.fixture
def capture(database: Database, shared: SharedLog, tmp_path: Path) -> Callable[..., Running]:
    """Start capturing the test's database: `with capture(tables=[…]) as running`."""

    def start(settings: CaptureSettings = SMALL, **parameters: Any) -> Running:
        directory = parameters.pop("directory", tmp_path)
        if directory == tmp_path:
            database.wait_for_slot()
        return Running(
            Postgres("shop", parameters.pop("dsn", database.dsn), **parameters),
            shared,
            directory,
            settings,
        )

    return start
