"""A database, what a capture wrote, and a capture that runs in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psycopg

from servers.postgres import PostgresServer
from tailrace.sources import Postgres, SQLite
from tailrace.sources.postgres.capture import PostgresCapture
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.sqlite.capture import SQLiteCapture
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

    def drop_slot(self, name: str = "tailrace_shop") -> None:
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
            check_events(self.shared.records(topic))
            check_tombstones(self.shared.records(topic))
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
    source: Postgres | SQLite,
    log: MemorySourceLog,
    part: Part,
    settings: CaptureSettings | SQLiteSettings,
) -> PostgresCapture | SQLiteCapture:
    # Made in the thread that uses it: SQLite's connections insist on it.
    if isinstance(source, Postgres):
        assert isinstance(settings, CaptureSettings)
        return PostgresCapture(source, log, part, settings)
    assert isinstance(settings, SQLiteSettings)
    return SQLiteCapture(source, log, part, settings)


class Running:
    """A capture in a thread. Leaving the context stops it and raises what ended it."""

    def __init__(
        self,
        source: Postgres | SQLite,
        shared: SharedLog,
        directory: Path,
        settings: CaptureSettings | SQLiteSettings,
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
    """A Postgres database as the contract of sources wants it."""

    schema = "public"

    def __init__(self, database: Database, shared: SharedLog, directory: Path) -> None:
        self._database, self._shared, self._directory = database, shared, directory

    def execute(self, *statements: str) -> None:
        self._database.run(*statements)

    def alter(self, statement: str) -> None:
        self.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._database.rows(query)

    def position(self) -> str:
        return self._database.position()

    def capture(self, *, fail_after: int | None = None) -> Running:
        self._database.wait_for_slot()
        source = Postgres("shop", self._database.dsn, tables=["items"])
        return Running(source, self._shared, self._directory, SMALL, fail_after)
