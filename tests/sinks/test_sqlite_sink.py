from __future__ import annotations

import random
import sqlite3

from tailrace.sinks import SQLite
from tailrace.testing.changelogs import random_project, write_random_tick
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

    def test_a_file_restored_from_an_old_backup_catches_up(self, place):
        writer = random_project(4, 3)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        path = place.directory / "copy.db"
        connection, backup = sqlite3.connect(path), sqlite3.connect(place.directory / "backup")
        connection.backup(backup)
        for one in (connection, backup):
            one.close()
        chance = random.Random(4)
        running = self.opened(place, copy, writer)
        for _ in range(3):
            write_random_tick(writer, chance)
            running.step(0)
        running.close()
        for name in ("copy.db", "copy.db-wal", "copy.db-shm"):
            (place.directory / name).unlink(missing_ok=True)
        (place.directory / "backup").rename(path)
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
