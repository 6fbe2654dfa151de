"""Every source gives the right rows of a table without a key, to whoever reads its topic alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.binlog import MySQLCase
from servers.capture import Database, PostgresCase, SQLiteCase
from tailrace.testing.bag_contract import BagContract
from tailrace.testing.source_log import SharedLog

SETTINGS: dict[str, Any] = {"partitions": 3, "history": {"items": "forever"}}


class TestPostgres(BagContract):
    @pytest.fixture
    def case(self, database: Database, shared: SharedLog, tmp_path: Path) -> PostgresCase:
        return PostgresCase(database, shared, tmp_path, "items", "lines", **SETTINGS)


class TestSQLite(BagContract):
    @pytest.fixture
    def case(self, shared: SharedLog, tmp_path: Path) -> Iterator[SQLiteCase]:
        made = SQLiteCase(tmp_path / "shop.db", shared, "items", "lines", **SETTINGS)
        yield made
        made.connection.close()


@pytest.mark.thorough
class TestMySQL(BagContract):
    @pytest.fixture
    def case(self, binlog_case: Callable[..., MySQLCase]) -> MySQLCase:
        return binlog_case("items", "lines", **SETTINGS)
