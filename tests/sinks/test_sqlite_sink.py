from __future__ import annotations

import sqlite3

from tailrace.sinks import SQLite
from tailrace.testing.sink_contract import Target
from tailrace.testing.table_contract import TableContract


class SQLiteTarget(Target):
    def declare(self, view, **options):
        return SQLite(self.directory / "copy.db", table=f"copy of {view}", **options)

    def take_down(self):
        self.directory.joinpath("copy.db").rename(self.directory / "away")
        self.directory.joinpath("copy.db").mkdir()

    def bring_up(self):
        self.directory.joinpath("copy.db").rmdir()
        self.directory.joinpath("away").rename(self.directory / "copy.db")

    def refused_row(self):
        return {"id": 100, "name": "forbidden"}

    def prepare_refusal(self, copy):
        connection = sqlite3.connect(self.directory / "copy.db")
        connection.execute(
            "CREATE TABLE \"copy of v\" (id BIGINT PRIMARY KEY, name TEXT CHECK (name <> 'forbidden'))"
        )
        connection.close()

    def execute(self, statement):
        connection = sqlite3.connect(self.directory / "copy.db")
        with connection:
            connection.execute(statement)
        connection.close()


class TestSQLiteSink(TableContract):
    widens = False

    def table(self, copy):
        return f'"{copy.declaration.table}"'

    def target(self, directory):
        return SQLiteTarget(directory)
