"""Real servers for the sinks' suites, one a session, one database or prefix a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.postgres import PostgresServer, start_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    yield from start_postgres()
