"""Tables that change shape while they are captured."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"


def versions(shared: Any, table: str = "public.orders") -> list[dict[str, Any]]:
    found = [orjson.loads(value) for value in shared.values("shop.schemas")]
    return [schema for schema in found if schema["table"] == table]


def names(schema: dict[str, Any]) -> list[str]:
    return [column["name"] for column in schema["columns"]]


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_added_dropped_renamed_and_retyped_columns_are_versions(
    database: Any, capture: Any, shared: Any, restart: bool
) -> None:
    database.run(ORDERS)
    statements = [
        "INSERT INTO orders VALUES (1, 'a', 1)",
        "ALTER TABLE orders ADD COLUMN note text DEFAULT 'seven'",
        "INSERT INTO orders VALUES (2, 'b', 2)",
        "ALTER TABLE orders DROP COLUMN customer",
        "INSERT INTO orders VALUES (3, 3, 'n')",
        "ALTER TABLE orders RENAME COLUMN amount TO price",
        "INSERT INTO orders VALUES (4, 4, 'n')",
        "ALTER TABLE orders ALTER price TYPE text",
        "INSERT INTO orders VALUES (5, 'five', 'n')",
    ]
    with capture(tables=["orders"]) as running:
        running.copied()
        if not restart:
            database.run(*statements)
            running.reach(database.position())
    if restart:
        # All of it happened while nobody captured; the stream still has it in order.
        database.run(*statements)
        with capture(tables=["orders"]) as running:
            running.reach(database.position())
    # Rows may be read again meanwhile, for what they have in new columns.
    events = [e for e in running.written.events("public.orders") if e["op"] == "c"]
    assert [e["after"] for e in events] == [
        {"id": 1, "customer": "a", "amount": "1.00"},
        {"id": 2, "customer": "b", "amount": "2.00", "note": "seven"},
        {"id": 3, "amount": "3.00", "note": "n"},
        {"id": 4, "price": "4.00", "note": "n"},
        {"id": 5, "price": "five", "note": "n"},
    ]
    assert [e["source"]["schema_version"] for e in events] == [1, 2, 3, 4, 5]
    assert [names(v) for v in versions(shared)] == [list(e["after"]) for e in events]
    assert versions(shared)[4]["columns"][1]["type"] == "text"
    running.written.check()


def test_a_change_of_shape_inside_a_transaction(database: Any, capture: Any, shared: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "BEGIN; INSERT INTO orders VALUES (1, 'a', 1); ALTER TABLE orders ADD x int; "
            "INSERT INTO orders VALUES (2, 'b', 2, 3); COMMIT"
        )
        running.reach(database.position())
    first, second = running.written.events("public.orders")
    assert "x" not in first["after"]
    assert second["after"]["x"] == 3
    assert first["transaction"]["id"] == second["transaction"]["id"]
    running.written.check()


def test_a_new_table_that_matches_the_pattern_is_captured(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["public.*"], exclude=["secret"]) as running:
        running.copied()
        database.run(
            "CREATE TABLE secret (id int PRIMARY KEY)",
            "INSERT INTO secret VALUES (1)",
            "CREATE TABLE later (id int PRIMARY KEY, x text)",
            "INSERT INTO later VALUES (1, 'before anybody noticed')",
        )
        running.until(lambda: bool(running.written.events("public.later")))
        database.run("INSERT INTO later VALUES (2, 'after')")
        running.reach(database.position())
        running.copied()
    assert [r["id"] for r in running.written.table("public.later")] == [1, 2]
    assert running.written.events("public.secret") == []
    running.written.check()


def test_a_changed_key_is_a_new_version(database: Any, capture: Any, shared: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id, customer)",
            "INSERT INTO orders VALUES (1, 'b', 2)",
        )
        running.reach(database.position())
    assert [v["key"] for v in versions(shared)] == [["id"], ["id", "customer"]]


def test_a_changed_replica_identity_goes_on(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "ALTER TABLE orders REPLICA IDENTITY FULL",
            "UPDATE orders SET amount = 2",
            "ALTER TABLE orders REPLICA IDENTITY DEFAULT",
            "UPDATE orders SET amount = 3",
        )
        running.reach(database.position())
    _, full, key_only = running.written.events("public.orders")
    assert full["before"] == {"id": 1, "customer": "a", "amount": "1.00"}
    assert key_only["before"] is None
    running.written.check()


def test_a_dropped_table_leaves_the_others_alone(database: Any, capture: Any) -> None:
    database.run(ORDERS, "CREATE TABLE other (id int PRIMARY KEY)")
    with capture(tables=["public.*"]) as running:
        running.copied()
        database.run(
            "INSERT INTO orders VALUES (1, 'a', 1)", "DROP TABLE orders",
            "INSERT INTO other VALUES (1)",
        )  # fmt: skip
        running.reach(database.position())
    assert len(running.written.events("public.orders")) == 1
    assert len(running.written.events("public.other")) == 1
    running.written.check()


def test_an_event_trigger_tells_of_ddl_before_the_next_row(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"], ddl_trigger=True) as running:
        running.copied()
        database.run("ALTER TABLE orders ADD COLUMN note varchar(20) NOT NULL DEFAULT 'x'")
        running.until(lambda: len(versions(shared)) == 2)
    assert versions(shared)[1]["columns"][3] == {
        "name": "note", "type": "character varying(20)", "spark": "STRING", "nullable": False,
    }  # fmt: skip
    (note,) = running.written.notes("DDL")
    assert note["command"] == "ALTER TABLE"
    assert note["table"] == "public.orders"


def test_declared_history_is_told_with_the_schema(database: Any, capture: Any, shared: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
    assert versions(shared)[-1]["history"] is None
    assert shared.configs["shop.public.orders"]["cleanup.policy"] == "compact"
    with capture(tables=["orders"], history={"orders": "90 days"}) as running:
        running.until(lambda: versions(shared)[-1]["history"] == "90 days")
    assert len({v["version"] for v in versions(shared)}) == 1


def test_a_field_added_to_a_row_type_is_a_new_version(database: Any, capture: Any) -> None:
    """No message tells of it: the next value has one field more."""
    database.run(
        "CREATE TYPE place AS (street text)",
        "CREATE TABLE people (id int PRIMARY KEY, home place, others place[])",
        "INSERT INTO people VALUES (1, ROW('a'))",
    )
    with capture(tables=["people"]) as running:
        running.copied()
        database.run(
            "INSERT INTO people VALUES (2, ROW('b'))",
            "ALTER TYPE place ADD ATTRIBUTE number int",
            "INSERT INTO people VALUES (3, ROW('c', 3), ARRAY[ROW('d, e', 4)::place])",
            "INSERT INTO people SELECT i, ROW('x', i)::place FROM generate_series(1000, 1999) i",
        )
        running.reach(database.position())
    rows = {row["id"]: row for row in running.written.table("public.people")}
    assert rows[2]["home"] == {"street": "b"}
    assert rows[3] == {
        "id": 3,
        "home": {"street": "c", "number": 3},
        "others": [{"street": "d, e", "number": 4}],
    }
    assert [rows[i]["home"]["number"] for i in range(1000, 2000)] == list(range(1000, 2000))
    versions = {e["after"]["id"]: e["source"]["schema_version"] for e in running.written.events("public.people")}  # fmt: skip
    assert (versions[2], versions[3], versions[1500]) == (1, 2, 2)
    running.written.check()
    # A field that is dropped before its rows were read has lost its name.
    database.run(
        "INSERT INTO people VALUES (4, ROW('f', 4))",
        "ALTER TYPE place DROP ATTRIBUTE number",
        "INSERT INTO people VALUES (5, ROW('g'))",
    )
    with capture(tables=["people"]) as running:
        running.reach(database.position())
    rows = {row["id"]: row for row in running.written.table("public.people")}
    assert rows[5]["home"] == {"street": "g"}
    assert rows[4]["home"] == "(f,4)"
    running.written.check()


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ("ADD COLUMN note text DEFAULT 'seven'", {"customer": "a", "amount": "1.00", "note": "seven"}),
        ("RENAME COLUMN customer TO buyer", {"buyer": "a", "amount": "1.00"}),
        ("ALTER amount TYPE text", {"customer": "a", "amount": "1.00"}),
    ],
)  # fmt: skip
def test_rows_from_before_get_the_values_of_a_new_column(
    database: Any, capture: Any, change: str, row: dict[str, Any]
) -> None:
    """Nothing in the stream tells what earlier rows have there."""
    database.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(f"ALTER TABLE orders {change}", "INSERT INTO orders VALUES (2, 'b', 2)")
        running.reach(database.position())
        running.copied()
    rows = {r["id"]: r for r in running.written.table("public.orders")}
    assert rows[1] == {"id": 1, **row}
    running.written.check()


def test_a_column_without_values_is_not_read_for(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run("ALTER TABLE orders ADD note text", "INSERT INTO orders VALUES (2, 'b', 2)")
        running.reach(database.position())
        assert running.written.notes("CUT")[-1]["copying"] == []
    assert len(running.written.events("public.orders")) == 2


def test_rows_move_to_another_key_when_the_table_has_another(database: Any, capture: Any) -> None:
    database.run(
        ORDERS,
        "ALTER TABLE orders ALTER customer SET NOT NULL",
        "CREATE UNIQUE INDEX by_customer ON orders (customer)",
        "INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    )
    with capture(tables=["orders"]) as running:
        running.copied()
        database.run(
            "ALTER TABLE orders REPLICA IDENTITY USING INDEX by_customer",
            "UPDATE orders SET amount = 9 WHERE id = 1",
        )
        running.until(
            lambda: (
                len(running.written.table("public.orders")) == 3
                and {r["customer"]: r["amount"] for r in running.written.table("public.orders")}[
                    "a"
                ]
                == "9.00"
            )
        )
    found = sorted(r["id"] for r in running.written.table("public.orders"))
    assert found == [1, 2, 3]
    running.written.check()
