"""Tables without a key in Postgres: made while capture runs, deferrable and dropped keys,
TRUNCATE inside a large transaction."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from servers.capture import SMALL
from tailrace.testing.bag_contract import copies
from tailrace.testing.bags import bag_of, rebuild_bag


def bag(database: Any, shared: Any, table: str) -> None:
    """The topic of a table without a key alone gives its rows."""
    cursor = database.connection.execute(f"SELECT * FROM {table}")
    names = [column.name for column in cursor.description]
    rows = bag_of(dict(zip(names, row, strict=True)) for row in cursor)
    assert rebuild_bag(shared.topics[f"shop.public.{table}"][0]) == rows


def done(running: Any, *tables: str) -> bool:
    state = copies(running.log.shared)
    return all(state.get(f"public.{table}", {}).get("state") == "done" for table in tables)


def test_a_table_without_key_that_appears_is_copied_once(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run("CREATE TABLE others (id int PRIMARY KEY)")
    with capture(tables=["public.*"]) as running:
        running.copied()
        for name in ("lines", "rows"):
            database.run(
                f"CREATE TABLE {name} (a int, b text)",
                f"ALTER TABLE {name} REPLICA IDENTITY FULL",
                f"INSERT INTO {name} SELECT i % 3, 'x' FROM generate_series(1, 1000) i",
            )
        for number in range(200):
            database.run(
                f"INSERT INTO lines VALUES ({number % 5}, 'y')",
                f"UPDATE lines SET b = 'z' WHERE a = {number % 3}",
                "DELETE FROM rows WHERE ctid = (SELECT ctid FROM rows LIMIT 1)",
            )
            if done(running, "lines", "rows"):
                break
        running.until(lambda: done(running, "lines", "rows"))
        database.run("UPDATE lines SET b = 'last' WHERE a = 4", "DELETE FROM rows WHERE a = 1")
        running.reach(database.position())
    bag(database, shared, "lines")
    bag(database, shared, "rows")
    assert {e["op"] for e in running.written.events("public.rows")} >= {"r", "d"}
    running.written.check()


def test_a_table_whose_key_is_deferrable_has_none(database: Any, capture: Any, shared: Any) -> None:
    """Postgres takes no such key for a replica identity, and rows may share it for a while."""
    database.run(
        "CREATE TABLE lines (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, b text)",
        "ALTER TABLE lines REPLICA IDENTITY FULL",
        "INSERT INTO lines SELECT i, 'x' FROM generate_series(1, 250) i",
    )
    with capture(tables=["lines"]) as running:
        database.run("UPDATE lines SET id = id + 1")
        running.until(lambda: done(running, "lines"))
        database.run("UPDATE lines SET id = id + 1", "DELETE FROM lines WHERE id % 2 = 0")
        running.reach(database.position())
    bag(database, shared, "lines")


def test_another_key_deletes_what_stands_under_the_old_one(database: Any, capture: Any) -> None:
    database.run(
        "CREATE TABLE items (a int, b int, c text, PRIMARY KEY (a))",
        "INSERT INTO items SELECT i, 1000 - i, 'x' FROM generate_series(1, 150) i",
    )
    with capture(tables=["items"]) as running:
        running.copied()
        database.run(
            "ALTER TABLE items DROP CONSTRAINT items_pkey, ADD PRIMARY KEY (b)",
            "UPDATE items SET c = 'changed' WHERE a < 10",
            "DELETE FROM items WHERE a = 20",
        )
        running.until(lambda: copies(running.log.shared)["public.items"].get("compare") is not None)
        running.until(lambda: done(running, "items"))
        running.reach(database.position())
    rows = sorted((r["a"], r["b"], r["c"]) for r in running.written.table("public.items"))
    assert rows == sorted(database.rows("SELECT a, b, c FROM items"))
    running.written.check()


def test_a_key_dropped_under_full_identity_is_noticed(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(
        "CREATE TABLE items (id int PRIMARY KEY, b text)",
        "ALTER TABLE items REPLICA IDENTITY FULL",
        "INSERT INTO items SELECT i, 'x' FROM generate_series(1, 150) i",
    )
    with capture(tables=["items"]) as running:
        running.copied()
        database.run(
            "ALTER TABLE items DROP CONSTRAINT items_pkey",
            "INSERT INTO items VALUES (1, 'x'), (1, 'y')",
        )
        running.until(lambda: bool(copies(running.log.shared)["public.items"].get("bag")))
        database.run("DELETE FROM items WHERE b = 'y'")
        running.reach(database.position())
    bag(database, shared, "items")


def test_a_truncated_table_without_key_inside_a_large_transaction(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(
        "CREATE TABLE lines (a int, b text)",
        "ALTER TABLE lines REPLICA IDENTITY FULL",
        "INSERT INTO lines SELECT 0, 'x' FROM generate_series(1, 10)",
    )
    small = replace(SMALL, spill_rows=50, part_rows=100)
    with capture(small, tables=["lines"]) as running:
        running.until(lambda: done(running, "lines"))
    database.run(
        "BEGIN; INSERT INTO lines SELECT i, 'a' FROM generate_series(1, 300) i; TRUNCATE lines; "
        "INSERT INTO lines SELECT i, 'b' FROM generate_series(1, 250) i; COMMIT"
    )
    for commits in range(1, 9):
        database.wait_for_slot()
        running = capture(small, tables=["lines"], fail_after=commits)
        with suppress(ConnectionError), running:
            running.reach(database.position())
    with capture(small, tables=["lines"]) as running:
        running.reach(database.position())
    bag(database, shared, "lines")
    running.written.check()
