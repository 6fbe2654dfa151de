"""Messages written with data: outbox rows, logical messages, annotations, positions."""

from __future__ import annotations

import base64
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tailrace as tr
from tailrace.errors import UsageError
from tailrace.sources import Outbox

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"


def test_outbox_rows_go_to_the_topics_they_name(database: Any, capture: Any, shared: Any) -> None:
    database.run(
        ORDERS,
        "CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype text, aggregateid text, "
        "payload jsonb, headers jsonb)",
        "INSERT INTO outbox VALUES (gen_random_uuid(), 'old', '0', '{}', NULL)",
    )
    with capture(tables=["orders"], outbox=Outbox("outbox", headers="headers")) as running:
        running.copied()
        database.run(
            "BEGIN; INSERT INTO orders VALUES (1, 'a', 1); INSERT INTO outbox VALUES "
            "('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'order', '1', '{\"total\": 1}', "
            '\'{"trace": "t1"}\'); DELETE FROM outbox; COMMIT',
            "BEGIN; INSERT INTO outbox VALUES (gen_random_uuid(), 'order', '2', '{}', NULL); ROLLBACK",
        )
        running.reach(database.position())
    (message,) = shared.records("order.events")
    assert message.key == b"1"
    assert message.value == b'{"total":1}'
    assert dict(shared.headers["order.events", b"1"]) == {
        "id": b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "trace": b"t1",
    }  # fmt: skip
    assert shared.records("old.events") == []
    assert shared.records("shop.public.outbox") == []
    assert "order.events" in running.written.notes("CUT")[-1]["offsets"] or any(
        "order.events" in cut["offsets"] for cut in running.written.notes("CUT")
    )
    running.written.check()


def test_an_outbox_needs_no_table(database: Any, capture: Any, shared: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "SELECT pg_logical_emit_message(true, 'outbox', "
            """'{"type": "mail", "key": "ann", "payload": {"text": "hello"}}')"""
        )
        running.until(lambda: bool(shared.records("mail.events")))
    (message,) = shared.records("mail.events")
    assert (message.key, message.value) == (b"ann", b'{"text":"hello"}')


def test_logical_messages_and_annotations_are_told(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "BEGIN; INSERT INTO orders VALUES (1, 'a', 1); "
            "SELECT pg_logical_emit_message(true, 'tailrace.annotation', '{\"who\": \"ann\"}'); "
            "SELECT pg_logical_emit_message(true, 'app', 'note'); COMMIT",
            "SELECT pg_logical_emit_message(false, 'app', 'alone')",
        )
        running.until(lambda: len(running.written.notes("MESSAGE")) == 2)
    inside, alone = running.written.notes("MESSAGE")
    assert inside["op"] == "m"
    assert base64.b64decode(inside["message"]["content"]) == b"note"
    assert base64.b64decode(alone["message"]["content"]) == b"alone"
    (end,) = [n for n in running.written.notes("END") if "annotations" in n]
    assert end["annotations"] == {"who": "ann"}
    running.written.check()


def test_a_position_is_reached_although_nothing_captured_changed(
    database: Any, capture: Any
) -> None:
    database.run(ORDERS, "CREATE TABLE unrelated (x int)")
    with capture(tables=["orders"]) as running, psycopg.connect(database.dsn) as connection:
        running.copied()
        connection.execute("INSERT INTO unrelated VALUES (1)")
        with pytest.raises(UsageError, match="inside a transaction"):
            tr.position(connection)
        connection.commit()
        position = tr.position(connection)
        assert position.startswith("pg:shop:")
        assert tr.position(connection, "shop") >= position
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        running.reach(position)


def test_a_sqlite_file_has_positions_too(tmp_path: Path) -> None:
    from tailrace.sources.sqlite import change_table

    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    assert tr.position(connection, "shop") == "sqlite:shop:0000000000000000"
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    change_table.prepare(connection)
    connection.execute("BEGIN IMMEDIATE")
    change_table.install(connection, change_table.read_shapes(connection)[0])
    connection.execute("COMMIT")
    connection.execute("INSERT INTO t VALUES (1), (2)")
    assert tr.position(connection, "shop") == "sqlite:shop:0000000000000002"
    connection.close()
