"""Connections that drop, disks that fill or lose power, tables that cannot be read."""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.broker.server import Broker
from tailrace.broker.settings import BrokerSettings
from tailrace.client.errors import UnknownTopicError
from tailrace.client.fetcher import Fetcher
from tailrace.log.files import Files
from tailrace.sources import Postgres, run
from tailrace.sources.errors import StateStorageError
from tailrace.sources.postgres import toast
from tailrace.telemetry.part import Part
from tailrace.testing.power import PowerFiles

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"
OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tailrace' AND datname = current_database()"


class Process:
    """A source as the supervisor runs it."""

    def __init__(self, dsn: str, address: str, directory: Path, **parameters: Any) -> None:
        self.part = Part("shop", "source", "test", address, directory)
        self.address = address
        source = Postgres("shop", dsn, tables=["orders"], **parameters)
        self._thread = threading.Thread(target=run, args=(source, self.part), daemon=True)
        self._thread.start()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not condition():
            assert self._thread.is_alive(), self.part._facts
            assert time.monotonic() < deadline, self.part._facts
            time.sleep(0.02)

    def rows(self) -> dict[int, str]:
        """The table as the log has it."""
        found: dict[int, str] = {}
        with Fetcher(self.address) as fetcher:
            try:
                for record in fetcher.read_all("shop.public.orders"):
                    if record.value is None:
                        found.pop(orjson.loads(record.key or b"{}")["id"], None)
                    elif (row := orjson.loads(record.value)["after"]) is not None:
                        found[row["id"]] = row["customer"]
            except UnknownTopicError:
                return {}
        return found

    def code(self) -> str | None:
        error = self.part._facts.get("error")
        return None if error is None else error["code"]

    def stop(self) -> None:
        self.part.stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def running(*arguments: Any, **parameters: Any) -> Iterator[Process]:
    process = Process(*arguments, **parameters)
    try:
        yield process
    finally:
        process.stop()


def there(database: Any) -> dict[int, str]:
    return dict(database.rows("SELECT id, customer FROM orders"))


def test_dropped_connections_are_made_again(
    database: Any, tailrace_broker: str, tmp_path: Path
) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'old', 1 FROM generate_series(1, 500) i")
    with running(database.dsn, tailrace_broker, tmp_path) as process:
        for number in range(4):
            database.run(OURS, f"INSERT INTO orders VALUES ({1000 + number}, 'new', 1)",
                         f"UPDATE orders SET customer = 'round {number}' WHERE id % 7 = {number}")  # fmt: skip
            process.until(lambda: process.rows() == there(database))
        process.until(lambda: process.code() is None)


def test_a_table_that_may_not_be_read_waits_and_the_others_go_on(
    database: Any, capture: Any
) -> None:
    role = f"reader_{database.name}"
    database.run(
        ORDERS, "CREATE TABLE secret (id int PRIMARY KEY)", "INSERT INTO secret VALUES (1)",
        "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 250) i",
        f"CREATE ROLE {role} LOGIN REPLICATION", f"GRANT SELECT ON orders TO {role}",
        "CREATE PUBLICATION given FOR TABLE orders, secret",
    )  # fmt: skip
    dsn = database.dsn.replace("user=postgres", f"user={role}")
    try:
        with capture(
            tables=["orders", "secret"], dsn=dsn, create=False, publication="given",
            slot=made_slot(database),
        ) as attempt:  # fmt: skip
            attempt.until(lambda: len(attempt.written.table("public.orders")) == 250)
            attempt.until(
                lambda: (attempt.part._facts.get("error") or {}).get("code") == "copy-blocked"
            )
            error = attempt.part._facts["error"]
            assert error["hint"] == f'GRANT SELECT ON "public"."secret" TO "{role}";'
            database.run("INSERT INTO orders VALUES (999, 'y', 1)", "INSERT INTO secret VALUES (2)")
            attempt.reach(database.position())
            assert len(attempt.written.table("public.orders")) == 251
            database.run(f"GRANT SELECT ON secret TO {role}")
            attempt.copied()
            assert [row["id"] for row in attempt.written.table("public.secret")] == [1, 2]
            attempt.until(lambda: attempt.part._facts["error"] is None)
        attempt.written.check()
    finally:
        database.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def made_slot(database: Any) -> str:
    name = f"given_{database.name}"
    database.run(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
    return name


def test_a_table_dropped_during_its_copy_leaves_the_others_alone(
    database: Any, capture: Any
) -> None:
    database.run(
        ORDERS, "CREATE TABLE gone (id int PRIMARY KEY)",
        "INSERT INTO gone SELECT generate_series(1, 3000)",
        "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 1000) i",
    )  # fmt: skip
    with capture(tables=["public.*"]) as attempt:
        attempt.until(lambda: bool(attempt.written.events("public.gone")))
        database.run("DROP TABLE gone")
        attempt.copied()
        database.run("INSERT INTO orders VALUES (5000, 'y', 1)")
        attempt.reach(database.position())
    assert len(attempt.written.table("public.orders")) == 1001
    attempt.written.check()


def test_a_type_made_after_the_start_arrives_as_text(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as attempt:
        attempt.copied()
        database.run(
            "CREATE TYPE mood AS ENUM ('glad')", "CREATE DOMAIN amount AS numeric(8,1)",
            "CREATE TYPE span AS RANGE (subtype = float8)",
            "ALTER TABLE orders ADD feels mood, ADD much amount, ADD part span",
            "INSERT INTO orders VALUES (1, 'a', 1, 'glad', 2.5, '[1,2.5)')",
        )  # fmt: skip
        attempt.reach(database.position())
    (row,) = attempt.written.table("public.orders")
    assert (row["feels"], row["much"], row["part"]) == ("glad", "2.5", "[1,2.5)")


def test_much_retained_wal_is_critical(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(
        tables=["orders"], heartbeat="50 ms", wal_warning="0", wal_critical="0"
    ) as attempt:
        attempt.until(lambda: attempt.part._facts.get("wal_state") == "critical")


def test_no_room_for_large_rows_is_told_and_nothing_is_lost(
    database: Any, tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(ORDERS)
    monkeypatch.setattr(toast, "MAP_BYTES", 1 << 17)
    with running(database.dsn, tailrace_broker, tmp_path) as process:
        process.until(lambda: process.part._facts.get("state") == "running")
        database.run(
            "INSERT INTO orders SELECT i, repeat('x', 2000) || i, 1 FROM generate_series(1, 300) i"
        )
        process.until(lambda: process.code() == StateStorageError.code)
        assert "make room" in process.part._facts["error"]["hint"]
        monkeypatch.setattr(toast, "MAP_BYTES", 1 << 27)
        database.run(
            "UPDATE orders SET amount = 2 WHERE id % 3 = 0", "DELETE FROM orders WHERE id = 7"
        )
        process.until(lambda: process.rows() == there(database))
        process.until(lambda: process.code() is None)


class FillingFiles(Files):
    """A disk that takes nothing more while it is full, and never syncs."""

    __slots__ = ("full",)

    def __init__(self) -> None:
        self.full = False

    def sync_data(self, number: int) -> None:
        """Nothing."""

    def pwrite(self, number: int, data: Any, position: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().pwrite(number, data, position)


def test_a_full_disk_under_the_log_delays_and_loses_nothing(database: Any, tmp_path: Path) -> None:
    database.run(ORDERS)
    files = FillingFiles()
    broker = Broker([tmp_path / "log"], settings=BrokerSettings(), files=files)
    thread = threading.Thread(target=broker.run, daemon=True)
    thread.start()
    address = "{}:{}".format(*broker.address)
    try:
        with running(database.dsn, address, tmp_path) as process:
            process.until(lambda: process.part._facts.get("state") == "running")
            database.run("INSERT INTO orders VALUES (1, 'before', 1)")
            process.until(lambda: process.rows() == there(database))
            files.full = True
            database.run("INSERT INTO orders SELECT i, 'full', 1 FROM generate_series(2, 400) i")
            time.sleep(0.5)
            assert len(process.rows()) == 1
            files.full = False
            process.until(lambda: process.rows() == there(database))
    finally:
        broker.stop()
        thread.join()


def test_after_a_power_cut_the_slot_is_not_ahead_of_the_log(database: Any, tmp_path: Path) -> None:
    database.run(ORDERS)
    disk = tmp_path / "disk"
    disk.mkdir()
    files = PowerFiles(disk)
    broker = Broker([disk], settings=BrokerSettings(), files=files)
    thread = threading.Thread(target=broker.run, daemon=True)
    thread.start()
    address = "{}:{}".format(*broker.address)
    cuts: list[tuple[int, Path]] = []
    done = threading.Event()
    slot = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE database = current_database()"

    def cut() -> None:
        # On the broker's own thread, between two of its steps: what the server was told
        # before must be in what the disk holds.
        (row,) = database.rows(slot)
        target = tmp_path / f"cut-{len(cuts)}"
        files.cut(target, random.Random(len(cuts)))
        cuts.append((int(row[0]), target))
        done.set()

    with running(database.dsn, address, tmp_path) as process:
        process.until(lambda: process.part._facts.get("state") == "running")
        began = int(database.rows(slot)[0][0])
        for number in range(3):
            for i in range(40):
                database.run(f"INSERT INTO orders VALUES ({number * 100 + i}, 'x', 1)")
            process.until(lambda: int(database.rows(slot)[0][0]) > (cuts[-1][0] if cuts else began))
            database.run(f"UPDATE orders SET amount = {number}")
            done.clear()
            broker.call_from_thread(cut)
            assert done.wait(30)
    broker.stop()
    thread.join()
    files.release()
    for confirmed, target in cuts:
        with BrokerThread(target, durable=False) as after, Fetcher(after.address) as fetcher:
            last = fetcher.read_last("shop.transactions")
            assert last is not None
            position = orjson.loads(last.value or b"{}")["position"]
            assert int(position.rpartition(":")[2], 16) >= confirmed
