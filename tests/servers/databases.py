"""Fixtures: a Postgres server, a database of it for each test, and a log in memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from servers.capture import Database
from servers.postgres import PostgresServer, start_postgres
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
