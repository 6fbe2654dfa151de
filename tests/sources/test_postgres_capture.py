"""Inserts, updates, deletes, first copies and cuts of a real Postgres."""

from __future__ import annotations

import time
from typing import Any

import pytest

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"


def expected(database: Any) -> list[dict[str, Any]]:
    rows = database.rows("SELECT id, customer, amount::text FROM orders")
    return sorted(
        ({"id": i, "customer": c, "amount": a} for i, c, a in rows),
        key=lambda row: f'{{"id":{row["id"]}}}',
    )


def test_changes_of_a_table_arrive_in_order(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "INSERT INTO orders VALUES (1, 'Ann', 10.50), (2, 'Bob \"B\"', 7)",
            "UPDATE orders SET amount = 11 WHERE id = 1",
            "DELETE FROM orders WHERE id = 2",
        )
        running.reach(database.position())
        written = running.written
    assert [e["op"] for e in written.events("public.orders")] == ["c", "c", "u", "d"]
    first, second, third, fourth = written.events("public.orders")
    assert first["after"] == {"id": 1, "customer": "Ann", "amount": "10.50"}
    assert second["after"]["customer"] == 'Bob "B"'
    assert third["before"] is None
    assert third["after"]["amount"] == "11.00"
    assert fourth["before"] == {"id": 2}
    assert fourth["after"] is None
    assert first["transaction"]["id"] == second["transaction"]["id"]
    assert [e["transaction"]["total_order"] for e in (first, second, third)] == [1, 2, 1]
    assert first["source"]["connector"] == "postgresql"
    assert first["source"]["table"] == "orders"
    written.check()


def test_rows_from_before_are_copied(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'c' || i, i FROM generate_series(1, 950) i")
    with capture(tables=["orders"]) as running:
        running.copied()
    events = running.written.events("public.orders")
    assert {e["op"] for e in events} == {"r"}
    assert len(events) == 950
    assert running.written.table("public.orders") == expected(database)
    running.written.check()


def test_a_key_change_is_a_delete_and_an_insert(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run("INSERT INTO orders VALUES (1, 'Ann', 1)", "UPDATE orders SET id = 5")
        running.reach(database.position())
    events = running.written.events("public.orders")
    assert [(e["op"], e["transaction"]["total_order"]) for e in events] == [
        ("c", 1), ("d", 1), ("c", 2),
    ]  # fmt: skip
    assert running.written.table("public.orders") == expected(database)
    running.written.check()


def test_copying_while_rows_change_gives_the_table(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'c' || i, i FROM generate_series(1, 3000) i")
    with capture(tables=["orders"]) as running:
        for i in range(1, 400):
            database.run(
                f"UPDATE orders SET amount = amount + 1 WHERE id % 40 = {i % 40}",
                f"DELETE FROM orders WHERE id = {i * 7}",
                f"INSERT INTO orders VALUES ({10_000 + i}, 'new', 1)",
                f"UPDATE orders SET id = {20_000 + i} WHERE id = {3000 - i}",
            )
        running.copied()
        running.reach(database.position())
    assert running.written.table("public.orders") == expected(database)
    assert "r" in {e["op"] for e in running.written.events("public.orders")}
    running.written.check()


def test_an_idle_source_reaches_positions_without_rows(database: Any, capture: Any) -> None:
    database.run(ORDERS, "CREATE TABLE unrelated (x int)")
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run("INSERT INTO unrelated SELECT generate_series(1, 1000)")
        running.reach(database.position())
    running.written.check()


def test_small_transactions_share_a_log_transaction(database: Any, capture: Any) -> None:
    from tailrace.sources.postgres.settings import CaptureSettings

    settings = CaptureSettings(pace_seconds=2.0, idle_cut_seconds=60.0)
    database.run(ORDERS)
    with capture(settings, tables=["orders"]) as running:
        running.copied()
        before = len(running.written.notes("CUT"))
        began = time.monotonic()
        for i in range(100):
            database.run(f"INSERT INTO orders VALUES ({i}, 'x', 1)")
        running.reach(database.position())
        most = 2 + (time.monotonic() - began) / settings.pace_seconds
        assert len(running.written.notes("CUT")) - before <= most
    assert len(running.written.notes("END")) >= 100
    assert running.written.table("public.orders") == expected(database)
    running.written.check()


def test_a_large_transaction_is_split_and_whole(database: Any, capture: Any) -> None:
    from tailrace.sources.postgres.settings import CaptureSettings

    settings = CaptureSettings(spill_rows=100, part_rows=1000, idle_cut_seconds=0.1)
    database.run(ORDERS)
    with capture(settings, tables=["orders"]) as running:
        running.copied()
        database.run("INSERT INTO orders SELECT i, 'x', i FROM generate_series(1, 5050) i")
        running.reach(database.position())
    assert len(running.written.notes("PART")) == 5
    assert running.written.notes("END")[-1]["event_count"] == 5050
    assert running.written.table("public.orders") == expected(database)
    running.written.check()


def test_an_encrypted_connection_is_left_to_libpq(
    database: Any, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tailrace.sources.postgres.copy_socket._uses_gssapi", lambda connection: True
    )
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', i FROM generate_series(1, 1000) i")
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "INSERT INTO orders SELECT i, 'y', i FROM generate_series(1001, 4000) i",
            "UPDATE orders SET customer = 'z' WHERE id % 2 = 0", "DELETE FROM orders WHERE id < 9",
        )  # fmt: skip
        running.reach(database.position())
    assert running.written.table("public.orders") == expected(database)
    running.written.check()


def test_truncate_deletes_every_live_key(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "INSERT INTO orders SELECT i, 'x', i FROM generate_series(1, 20) i",
            "DELETE FROM orders WHERE id < 4",
            "BEGIN; INSERT INTO orders VALUES (99, 'y', 1); TRUNCATE orders; "
            "INSERT INTO orders VALUES (100, 'z', 1); COMMIT",
        )
        running.reach(database.position())
    assert running.written.table("public.orders") == expected(database)
    assert [n["table"] for n in running.written.notes("TRUNCATE")] == ["public.orders"]
    running.written.check()


def test_a_restart_goes_on_where_the_log_ends(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders VALUES (0, 'first', 1)")
    for i in range(1, 4):
        with capture(tables=["orders"]) as running:
            running.copied()
            database.run(f"INSERT INTO orders VALUES ({i}, 'x', 1)")
            running.reach(database.position())
        database.run(f"INSERT INTO orders VALUES ({i + 100}, 'while down', 1)")
    with capture(tables=["orders"]) as running:
        running.reach(database.position())
    assert running.written.table("public.orders") == expected(database)
    assert len(running.written.events("public.orders")) == 7
    running.written.check()


def test_schemas_tell_types_before_any_row(database: Any, capture: Any, shared: Any) -> None:
    import orjson

    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
    (value,) = shared.values("shop.schemas")
    schema = orjson.loads(value)
    assert schema["topic"] == "shop.public.orders"
    assert schema["key"] == ["id"]
    assert [(c["name"], c["type"], c["spark"], c["nullable"]) for c in schema["columns"]] == [
        ("id", "integer", "INT", False),
        ("customer", "text", "STRING", True),
        ("amount", "numeric(10,2)", "DECIMAL(10,2)", True),
    ]
