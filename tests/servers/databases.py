"""Fixtures: a Postgres server, a database of it for each test, and a log in memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.binlog import BinlogServer, MySQLCase, start_binlog_server
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


@pytest.fixture(
    scope="session", params=["mariadb", pytest.param("mysql", marks=pytest.mark.thorough)]
)
def binlog_server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    """MariaDB as the machine has it; MySQL takes a download, and longer to start."""
    yield from start_binlog_server(mariadb=request.param == "mariadb")


@pytest.fixture
def binlog_case(
    binlog_server: BinlogServer, shared: SharedLog, tmp_path: Path
) -> Iterator[Callable[..., MySQLCase]]:
    """Makes a database of its own for the test: `binlog_case("items", history=…)`."""
    made: list[MySQLCase] = []

    def make(*tables: str, **settings: Any) -> MySQLCase:
        name = f"shop{next(_numbers)}"
        made.append(MySQLCase(binlog_server, name, shared, tmp_path, *tables, **settings))
        return made[-1]

    yield make
    for case in made:
        case.close()


@pytest.fixture
def shared() -> SharedLog:
    return SharedLog()
