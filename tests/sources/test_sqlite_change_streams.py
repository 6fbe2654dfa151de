"""A change stream of a SQLite table goes on exactly where it was left."""

from __future__ import annotations

import itertools
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.errors import UsageError
from tailrace.records.envelope import Change
from tailrace.records.position import parse_position
from tailrace.sources import SQLite
from tailrace.sources.log import BrokerSourceLog
from tailrace.sources.position import position
from tailrace.sources.sqlite.capture import SQLiteCapture
from tailrace.telemetry.part import Part


@pytest.fixture
def file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "shop.db", isolation_level=None, timeout=20)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.executemany("INSERT INTO orders VALUES (?, 0)", [(n,) for n in range(5)])
    yield connection
    connection.close()


@pytest.fixture
def shop(file: sqlite3.Connection, tailrace_broker: str, tmp_path: Path) -> Iterator[SQLite]:
    source = SQLite("shop", str(tmp_path / "shop.db"), history={"orders": "forever"})
    part = Part("shop", "source", "test", tailrace_broker, tmp_path)

    def work() -> None:
        SQLiteCapture(source, BrokerSourceLog(tailrace_broker, "shop"), part).work()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield source
    part.stopping.set()
    thread.join(30)


def taken(shop: SQLite, start: str, count: int, bootstrap: str) -> list[Change]:
    for _ in range(200):
        try:
            stream = iter(shop.table("orders").changes(start, bootstrap=bootstrap))
            return list(itertools.islice(stream, count))
        except UsageError:  # not captured yet
            time.sleep(0.05)
    raise AssertionError("the table was not captured")


def test_a_stream_goes_on_after_the_last_change_it_gave(
    shop: SQLite, file: sqlite3.Connection, tailrace_broker: str
) -> None:
    assert len(taken(shop, "snapshot", 5, tailrace_broker)) == 5
    file.execute("BEGIN")
    file.executemany("INSERT INTO orders VALUES (?, 1)", [(n,) for n in range(10, 14)])
    file.execute("UPDATE orders SET id = 20 WHERE id = 10")  # a delete and an insert
    file.execute("DELETE FROM orders WHERE id = 11")
    file.execute("COMMIT")
    before = position(file, "shop")
    file.execute("UPDATE orders SET n = 2 WHERE id = 20")
    seen = taken(shop, "snapshot", 13, tailrace_broker)
    assert [change.op for change in seen[:5]] == ["read"] * 5
    operations = ["insert"] * 4 + ["delete", "insert", "delete", "update"]
    assert [change.op for change in seen[5:]] == operations
    for number, change in enumerate(seen[:-1], 1):
        assert change.position is not None
        rest = taken(shop, change.position, len(seen) - number, tailrace_broker)
        assert rest == seen[number:]
    assert taken(shop, before, 1, tailrace_broker) == seen[-1:]
    # It is a position like others: covered once everything up to it is.
    assert (
        parse_position(seen[-1].position or "").number
        == parse_position(position(file, "shop")).number
    )


@pytest.mark.parametrize(
    "text", ["sqlite:shop:A.", "sqlite:shop:.1", "sqlite:shop:A.x", "pg:s:A.1"]
)
def test_half_a_position_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_position(text)
