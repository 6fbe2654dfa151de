"""All sources keep the one contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers.binlog import MySQLCase
from servers.capture import Database, PostgresCase, SQLiteCase
from tailrace.testing.source_contract import SourceContract
from tailrace.testing.source_log import SharedLog


class TestPostgres(SourceContract):
    @pytest.fixture
    def case(self, database: Database, shared: SharedLog, tmp_path: Path) -> PostgresCase:
        return PostgresCase(database, shared, tmp_path)


class TestSQLite(SourceContract):
    @pytest.fixture
    def case(self, shared: SharedLog, tmp_path: Path) -> Iterator[SQLiteCase]:
        made = SQLiteCase(tmp_path / "shop.db", shared)
        yield made
        made.connection.close()


class TestMySQL(SourceContract):
    @pytest.fixture
    def case(self, binlog_case: Callable[..., MySQLCase]) -> MySQLCase:
        return binlog_case("items")
