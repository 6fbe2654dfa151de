"""Both sources keep the one contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.capture import SMALL_SQLITE, Database, PostgresCase, Running
from tailrace.sources import SQLite
from tailrace.sources.sqlite.change_table import alter
from tailrace.testing.source_contract import SourceContract
from tailrace.testing.source_log import SharedLog


class SQLiteCase:
    schema = "main"

    def __init__(self, path: Path, shared: SharedLog) -> None:
        self._path, self._shared = path, shared
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            for single in statement.split("; "):
                self.connection.execute(single)

    def alter(self, statement: str) -> None:
        alter(str(self._path), statement)

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
