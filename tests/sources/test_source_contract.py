"""Both sources keep the one contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.capture import SMALL, SMALL_SQLITE, Database, Running
from tailrace.sources import Postgres, SQLite
from tailrace.testing.source_contract import SourceContract
from tailrace.testing.source_log import SharedLog


class PostgresCase:
    schema = "public"

    def __init__(self, database: Database, shared: SharedLog, directory: Path) -> None:
        self._database, self._shared, self._directory = database, shared, directory

    def execute(self, *statements: str) -> None:
        self._database.run(*statements)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._database.rows(query)

    def position(self) -> str:
        return self._database.position()

    def capture(self, *, fail_after: int | None = None) -> Running:
        self._database.wait_for_slot()
        source = Postgres("shop", self._database.dsn, tables=["items"])
        return Running(source, self._shared, self._directory, SMALL, fail_after)


class SQLiteCase:
    schema = "main"

    def __init__(self, path: Path, shared: SharedLog) -> None:
        self._path, self._shared = path, shared
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            for single in statement.split("; "):
                self.connection.execute(single)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def position(self) -> str:
        if not self.rows("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'"):
            return "sqlite:shop:0000000000000000"
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name = '_tailrace_changes'")
        return f"sqlite:shop:{found[0][0] if found else 0:016X}"

    def capture(self, *, fail_after: int | None = None) -> Running:
        source = SQLite("shop", str(self._path), tables=["items"])
        return Running(source, self._shared, self._path.parent, SMALL_SQLITE, fail_after)


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
