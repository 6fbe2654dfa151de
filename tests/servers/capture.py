"""A database, what a capture wrote, and a capture that runs in a thread."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psycopg

from servers.postgres import PostgresServer
from tailrace.sources import MySQL, Postgres, SQLite
from tailrace.sources.control import ask_for_snapshot, paused
from tailrace.sources.errors import SlotTakenError
from tailrace.sources.mysql.capture import MySQLCapture
from tailrace.sources.mysql.settings import MySQLSettings
from tailrace.sources.postgres.capture import PostgresCapture
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.sqlite.capture import SQLiteCapture
from tailrace.sources.sqlite.change_table import alter
from tailrace.sources.sqlite.settings import SQLiteSettings
from tailrace.telemetry.part import Part
from tailrace.testing.source_contract import (
    check_cuts,
    check_events,
    check_tombstones,
    check_transactions_are_whole,
    rebuild,
)
from tailrace.testing.source_log import MemorySourceLog, SharedLog

SMALL = CaptureSettings(chunk_rows=100, idle_cut_seconds=0.1, confirm_delay=0.0, look_seconds=0.2)
SMALL_SQLITE = SQLiteSettings(
    read_rows=50, part_rows=200, chunk_rows=100, trim_seconds=0.0, confirm_delay=0.0
)


@dataclass
class Database:
    server: PostgresServer
    name: str
    dsn: str
    connection: psycopg.Connection[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.connection = psycopg.connect(self.dsn, autocommit=True)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement.encode())

    def drop_slot(self, name: str = "tailrace_test_shop") -> None:
        """Drop a slot as soon as the server has noticed that its reader is gone."""
        while True:
            try:
                self.run(f"SELECT pg_drop_replication_slot('{name}')")
            except psycopg.errors.ObjectInUse:
                time.sleep(0.02)
            else:
                return

    def wait_for_slot(self) -> None:
        """Until the server has noticed that the last reader of its slots is gone."""
        active = "SELECT 1 FROM pg_replication_slots WHERE active AND database = current_database()"
        while self.rows(active):
            time.sleep(0.02)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.encode()).fetchall()

    def position(self, source: str = "shop") -> str:
        (row,) = self.rows("SELECT pg_current_wal_lsn()")
        high, low = row[0].split("/")
        return f"pg:{source}:{(int(high, 16) << 32) + int(low, 16):016X}"


class Captured:
    """What a capture wrote, and the checks every capture must pass."""

    def __init__(self, shared: SharedLog, source: str = "shop") -> None:
        self.shared = shared
        self.source = source

    def events(self, table: str) -> list[dict[str, Any]]:
        values = self.shared.values(f"{self.source}.{table}")
        return [orjson.loads(value) for value in values if value is not None]

    def notes(self, status: str | None = None) -> list[dict[str, Any]]:
        found = [
            orjson.loads(value or b"null")
            for value in self.shared.values(f"{self.source}.transactions")
        ]
        return [note for note in found if status is None or note["status"] == status]

    def position(self) -> str:
        cuts = self.notes("CUT")
        return cuts[-1]["position"] if cuts else ""

    def table(self, table: str) -> list[dict[str, Any]]:
        """The table rebuilt from its topic, by key."""
        rows = rebuild(self.shared.records(f"{self.source}.{table}"))
        return [row for _, row in sorted(rows.items())]

    def check(self) -> None:
        topics = [
            name
            for name in self.shared.topics
            if name.startswith(f"{self.source}.") and name.count(".") == 2
        ]
        for topic in topics:
            for partition in self.shared.partitions(topic):
                check_events(partition)
                check_tombstones(partition)
        transactions = self.shared.records(f"{self.source}.transactions")
        ends = {
            name: {i: len(p) for i, p in enumerate(parts)}
            for name, parts in self.shared.topics.items()
        }
        check_cuts(transactions, ends)
        check_transactions_are_whole(
            transactions, {topic: self.shared.records(topic) for topic in topics}
        )


def _capture(
    source: Postgres | SQLite | MySQL,
    log: MemorySourceLog,
    part: Part,
    settings: CaptureSettings | SQLiteSettings | MySQLSettings,
) -> PostgresCapture | SQLiteCapture | MySQLCapture:
    # Made in the thread that uses it: SQLite's connections insist on it.
    if isinstance(source, Postgres):
        assert isinstance(settings, CaptureSettings)
        return PostgresCapture(source, log, part, settings)
    if isinstance(source, MySQL):
        assert isinstance(settings, MySQLSettings)
        return MySQLCapture(source, log, part, settings)
    assert isinstance(settings, SQLiteSettings)
    return SQLiteCapture(source, log, part, settings)


class Running:
    """A capture in a thread. Leaving the context stops it and raises what ended it."""

    def __init__(
        self,
        source: Postgres | SQLite | MySQL,
        shared: SharedLog,
        directory: Path,
        settings: CaptureSettings | SQLiteSettings | MySQLSettings,
        fail_after: int | None = None,
    ) -> None:
        self.part = Part("shop", "source", "test", "memory", directory)
        self.written = Captured(shared, source.name)
        self.log = MemorySourceLog(shared)
        self.log.fail_after = fail_after
        self.error: BaseException | None = None
        self._make = lambda: _capture(source, self.log, self.part, settings)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._make().work()
            # An attempt that ends without an error is followed by the next, as in `runner`.
            while not (self.part.stopping.is_set() or paused(self.part.directory, self.part.name)):
                with suppress(SlotTakenError):  # the server may not have noticed yet
                    self._make().work()
        except BaseException as error:
            self.error = error

    def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        """Wait for a condition; fails when the capture ends before."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.error is not None:
                raise self.error
            assert self._thread.is_alive(), "capture ended"
            assert time.monotonic() < deadline, f"waited too long: {self.written.notes()[-3:]}"
            time.sleep(0.01)

    def reach(self, position: str) -> None:
        """Wait until a cut covers `position`."""
        self.until(lambda: self.written.position() >= position)

    def copied(self) -> None:
        """Wait until no table is being copied."""
        self.until(lambda: bool((cuts := self.written.notes("CUT")) and not cuts[-1]["copying"]))

    def stop(self) -> None:
        self.part.stopping.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.stop()
        if kind is None and self.error is not None:
            raise self.error


class PostgresCase:
    """A Postgres database as the contracts of sources want it."""

    schema = "public"

    def __init__(
        self,
        database: Database,
        shared: SharedLog,
        directory: Path,
        *tables: str,
        **settings: Any,
    ) -> None:
        self._database, self.shared, self.directory = database, shared, directory
        self.address = database.dsn
        wanted = tables or ("items",)
        self._source = Postgres("shop", database.dsn, tables=wanted, **settings)

    def execute(self, *statements: str) -> None:
        self._database.run(*statements)

    def alter(self, statement: str) -> None:
        self.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._database.rows(query)

    def columns(self, table: str) -> list[str]:
        found = self._database.connection.execute(f"SELECT * FROM {table} LIMIT 0".encode())
        return [column.name for column in found.description or ()]

    def position(self) -> str:
        return self._database.position()

    def capture(self, *, fail_after: int | None = None) -> Running:
        self._database.wait_for_slot()
        return Running(self._source, self.shared, self.directory, SMALL, fail_after)

    @contextmanager
    def beside(self) -> Iterator[PostgresCase]:
        """The same database over a connection of its own."""
        other = Database(self._database.server, self._database.name, self._database.dsn)
        try:
            yield PostgresCase(other, self.shared, self.directory)
        finally:
            other.connection.close()

    def keyless(self, table: str) -> None:
        self.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")

    def empty(self, table: str) -> None:
        self.execute(f"TRUNCATE {table}")

    def snapshot(self, table: str) -> None:
        ask_for_snapshot(self._source, table, None)

    def drop_key(self, table: str) -> None:
        self.keyless(table)
        self.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
            f"ALTER TABLE {table} ALTER COLUMN id DROP NOT NULL",
        )

    def add_key(self, table: str, column: str) -> None:
        self.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({column})")


class SQLiteCase:
    """An SQLite file as the contracts of sources want it."""

    schema = "main"

    def __init__(self, path: Path, shared: SharedLog, *tables: str, **settings: Any) -> None:
        self._path, self.shared, self.directory = path, shared, path.parent
        self.address = str(path)
        wanted = tables or ("items",)
        self._source = SQLite("shop", str(path), tables=wanted, **settings)
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            for single in statement.split("; "):
                self.connection.execute(single)

    def alter(self, statement: str) -> None:
        alter(str(self._path), statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def columns(self, table: str) -> list[str]:
        found = self.connection.execute(f"SELECT * FROM {table} LIMIT 0")
        return [column[0] for column in found.description]

    def position(self) -> str:
        if not self.rows("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'"):
            return "sqlite:shop:0000000000000000"
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name = '_tailrace_changes'")
        return f"sqlite:shop:{found[0][0] if found else 0:016X}"

    def capture(self, *, fail_after: int | None = None) -> Running:
        return Running(self._source, self.shared, self.directory, SMALL_SQLITE, fail_after)

    @contextmanager
    def beside(self) -> Iterator[SQLiteCase]:
        """The same file over a connection of its own."""
        other = SQLiteCase(self._path, self.shared)
        with closing(other.connection):
            yield other

    def keyless(self, table: str) -> None:
        """Triggers tell all there is."""

    def empty(self, table: str) -> None:
        self.execute(f"DELETE FROM {table}")

    def snapshot(self, table: str) -> None:
        ask_for_snapshot(self._source, table, None)

    def drop_key(self, table: str) -> None:
        self._make_anew(table, "id INTEGER, amount INTEGER")

    def add_key(self, table: str, column: str) -> None:
        self._make_anew(table, f"id INTEGER, amount INTEGER, PRIMARY KEY ({column})")

    def _make_anew(self, table: str, columns: str) -> None:
        """SQLite's own way to another key: a new table under the name of the old one."""
        self.execute(
            f"BEGIN; CREATE TABLE other ({columns}); INSERT INTO other SELECT * FROM {table}; "
            f"DROP TABLE {table}; ALTER TABLE other RENAME TO {table}; COMMIT"
        )
