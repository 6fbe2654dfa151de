"""Real servers for the sinks' suites, one a session, one database or prefix a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.binlog import BinlogServer, start_binlog_server
from servers.mariadb import MariaDBServer, start_mariadb
from servers.postgres import PostgresServer, start_postgres
from servers.redis import RedisServer, start_redis


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    yield from start_postgres()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    yield from start_redis()


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    yield from start_mariadb()


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[BinlogServer]:
    yield from start_binlog_server(mariadb=False)
