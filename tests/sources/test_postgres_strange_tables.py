"""Tables that are named oddly, made anew, renamed, very wide, or published by somebody else."""

from __future__ import annotations

import re
import time
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.client.errors import RecordTooLargeError
from tailrace.records.topic_names import topic_name
from tailrace.sources import Postgres
from tailrace.sources.base import LARGEST_BYTES
from tailrace.sources.errors import SourceDeclarationError, TableMissingError
from tailrace.sources.log import BrokerSourceLog
from tailrace.sources.schema import TableSchema, read_record
from tailrace.telemetry.part import read_reports

LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
ITEMS = "CREATE TABLE items (id int PRIMARY KEY, a text)"


def told(running: Any) -> tuple[object, object]:
    """State and error code that the source reports."""
    (report,) = read_reports(running.part.directory)
    error = report["error"]
    return report["state"], error["code"] if isinstance(error, dict) else error


def test_any_name_of_a_table_or_column_is_captured(database: Any, capture: Any) -> None:
    database.run(
        'CREATE SCHEMA "My Schema"',
        'CREATE TABLE "My Schema"."Größe" ("ID" int PRIMARY KEY, "Säule ""x""" text)',
        'CREATE TABLE "a:b" (id int PRIMARY KEY, "select" text)',
        'CREATE TABLE "x.y" (id int PRIMARY KEY)',
        'CREATE TABLE "[odd]" (id int PRIMARY KEY)',
        """INSERT INTO "My Schema"."Größe" VALUES (1, 'copied')""",
        """INSERT INTO "a:b" VALUES (1, 'copied')""",
    )
    tables = ["My Schema.Größe", "a:b", "public.x*", "[odd]"]
    with capture(tables=tables) as running:
        running.copied()
        database.run(
            """INSERT INTO "My Schema"."Größe" VALUES (2, 'streamed')""",
            'INSERT INTO "x.y" VALUES (1)',
            'INSERT INTO "[odd]" VALUES (1)',
        )
        running.reach(database.position())
    topics = running.written.shared.topics
    assert all(LEGAL.fullmatch(topic) for topic in topics)
    assert running.written.table("My_x20_Schema.Gr_xf6__xdf_e") == [
        {"ID": 1, 'Säule "x"': "copied"},
        {"ID": 2, 'Säule "x"': "streamed"},
    ]
    assert running.written.table("public.a_x3a_b") == [{"id": 1, "select": "copied"}]
    assert running.written.table("public.x_x2e_y") == [{"id": 1}]
    assert running.written.table("public._x5b_odd_x5d_") == [{"id": 1}]
    assert Postgres("shop", "", tables=tables).table("My Schema.Größe").topic in topics


name = st.text(st.sampled_from("abx_-. 0f2eü😀"), min_size=1, max_size=20)


@given(name, name, name, name)
def test_no_two_tables_share_a_topic(a: str, b: str, c: str, d: str) -> None:
    first, second = topic_name("shop", a, b), topic_name("shop", c, d)
    assert LEGAL.fullmatch(first)
    assert (first == second) == ((a, b) == (c, d))
    shape = TableSchema("shop", a, b, (), ())
    assert read_record(shape.record("pg:shop:0")[1]) == shape


def test_a_long_name_is_cut_and_still_its_own() -> None:
    names = [topic_name("s" * 41, "ü" * 31, "ö" * 30 + last) for last in ("a", "b")]
    assert all(LEGAL.fullmatch(name) for name in names)
    assert len(set(names)) == 2


@pytest.mark.parametrize("running_then", [True, False], ids=["while running", "while stopped"])
def test_a_table_made_anew_under_its_name_is_compared_with_the_log(
    database: Any, capture: Any, running_then: bool
) -> None:
    """What a migration does: build another table, drop the old one, take its name."""
    database.run(ITEMS, "INSERT INTO items VALUES (1, 'same'), (2, 'changes'), (3, 'goes')")
    swap = (
        "BEGIN; CREATE TABLE made (id int PRIMARY KEY, a text, b int DEFAULT 5); "
        "INSERT INTO made VALUES (1, 'same'), (2, 'changed'), (7, 'comes'); "
        "DROP TABLE items; ALTER TABLE made RENAME TO items; COMMIT"
    )
    with capture(tables=["items"]) as running:
        running.copied()
        if running_then:
            database.run(swap)
            running.until(lambda: len(running.written.table("public.items")[0]) == 3)
    if not running_then:
        database.run(swap)
    with capture(tables=["items"]) as running:
        running.until(lambda: len(running.written.table("public.items")[0]) == 3)
        database.run("INSERT INTO items VALUES (8, 'streamed')", "DELETE FROM items WHERE id = 1")
        running.reach(database.position())
        running.until(lambda: len(running.written.table("public.items")) == 3)
    assert running.written.table("public.items") == [
        {"id": 2, "a": "changed", "b": 5},
        {"id": 7, "a": "comes", "b": 5},
        {"id": 8, "a": "streamed", "b": 5},
    ]
    running.written.check()


def test_a_table_without_key_made_anew_is_copied_again(database: Any, capture: Any) -> None:
    database.run("CREATE TABLE lines (a int)", "INSERT INTO lines VALUES (1), (2)")
    with capture(tables=["lines"]) as running:
        running.copied()
        running.until(lambda: bool(read_reports(running.part.directory)))
        (report,) = read_reports(running.part.directory)
        assert report["refuses_updates"] == ["public.lines"]
    database.run("DROP TABLE lines", "CREATE TABLE lines (a int)", "INSERT INTO lines VALUES (7)")
    with capture(tables=["lines"]) as running:
        running.until(lambda: len(running.written.events("public.lines")) == 4)
        database.run("INSERT INTO lines VALUES (8)")
        running.reach(database.position())
    events = running.written.events("public.lines")
    assert [(e["op"], e["after"] and e["after"]["a"]) for e in events] == [
        ("r", 1), ("r", 2), ("t", None), ("r", 7), ("c", 8),
    ]  # fmt: skip
    (note,) = running.written.notes("TRUNCATE")
    assert note["table"] == "public.lines"


def test_a_renamed_table_is_told_and_the_others_go_on(database: Any, capture: Any) -> None:
    database.run(ITEMS, "CREATE TABLE others (id int PRIMARY KEY)")
    with pytest.raises(TableMissingError), capture(tables=["items", "nowhere"]) as running:
        running.copied()
    with capture(tables=["items", "others"]) as running:
        running.copied()
        database.run("ALTER TABLE items RENAME TO things", "INSERT INTO others VALUES (1)")
        running.until(lambda: told(running) == ("lagging", "table-missing"))
    with capture(tables=["items", "others"]) as running:
        database.run("INSERT INTO others VALUES (2)")
        running.reach(database.position())
        running.until(lambda: told(running) == ("lagging", "table-missing"))
        database.run("ALTER TABLE things RENAME TO items", "INSERT INTO items VALUES (1, 'back')")
        running.until(lambda: told(running) == ("running", None))
        running.reach(database.position())
    assert running.written.table("public.others") == [{"id": 1}, {"id": 2}]
    assert running.written.table("public.items") == [{"id": 1, "a": "back"}]


def test_the_last_changes_of_a_table_dropped_meanwhile_arrive(database: Any, capture: Any) -> None:
    database.run(ITEMS, "CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO items VALUES (1, 'x'), (2, 'x')")  # fmt: skip
    with capture(tables=["public.*"]) as running:
        running.copied()
    database.run(
        "UPDATE items SET a = 'last' WHERE id = 1",
        "UPDATE items SET id = 3 WHERE id = 2",
        "DROP TABLE items",
        "INSERT INTO others VALUES (1)",
    )
    with capture(tables=["public.*"]) as running:
        running.reach(database.position())
        running.copied()
    assert running.written.table("public.items") == [{"id": 1, "a": "last"}, {"id": 3, "a": "x"}]
    assert running.written.table("public.others") == [{"id": 1}]
    running.written.check()
    with capture(tables=["others"]) as running:
        database.run("INSERT INTO others VALUES (2)")
        running.reach(database.position())


def test_a_given_publication_decides_what_is_copied(database: Any, capture: Any) -> None:
    if database.connection.info.server_version < 150000:
        pytest.skip("column lists and row filters are there since 15")
    database.run(
        "CREATE TABLE items (id int PRIMARY KEY, a text, secret text)",
        "CREATE TABLE more (id int PRIMARY KEY)",
        "INSERT INTO items VALUES (1, 'a', 's'), (100, 'b', 's')",
        "CREATE PUBLICATION mine FOR TABLE items (id, a) WHERE (id < 50)",
        "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')",
    )
    given = {"slot": "mine", "publication": "mine", "create": False}
    with capture(tables=["items"], **given) as running:
        running.copied()
        database.run("INSERT INTO items VALUES (2, 'x', 's'), (200, 'y', 's')")
        running.reach(database.position())
    assert running.written.table("public.items") == [{"id": 1, "a": "a"}, {"id": 2, "a": "x"}]
    assert {e["source"]["schema_version"] for e in running.written.events("public.items")} == {1}
    for wrong in ({"tables": ["public.*"]}, {"tables": ["items"], "where": {"items": "id > 5"}}):
        with pytest.raises(SourceDeclarationError), capture(**wrong, **given) as running:
            running.reach("pg:shop:FFFFFFFFFFFFFFFF")
    while database.rows("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'mine' AND active"):
        time.sleep(0.02)
    database.run("SELECT pg_drop_replication_slot('mine')")


def test_a_filter_that_would_stop_the_application_is_refused(database: Any, capture: Any) -> None:
    """Postgres refuses updates of a table whose published filter is not in its identity."""
    if database.connection.info.server_version < 150000:
        pytest.skip("row filters are there since 15")
    database.run("CREATE TABLE items (id int PRIMARY KEY, a int)", "INSERT INTO items VALUES (1, 5), (2, -1)")  # fmt: skip
    where = {"items": "a > 0"}
    with pytest.raises(SourceDeclarationError) as refused, capture(tables=["items"], where=where) as running:  # fmt: skip
        running.copied()
    assert refused.value.hint == "ALTER TABLE public.items REPLICA IDENTITY FULL;"
    database.run("UPDATE items SET a = 6 WHERE id = 1", refused.value.hint)
    with capture(tables=["items"], where=where) as running:
        running.copied()
        database.run("UPDATE items SET a = -a", "INSERT INTO items VALUES (3, 0)")
        running.reach(database.position())
    assert running.written.table("public.items") == [{"id": 2, "a": 1}]
    # A filter that comes later is judged as well.
    database.run("ALTER TABLE items REPLICA IDENTITY DEFAULT")
    with pytest.raises(SourceDeclarationError), capture(tables=["items"], where={"items": "a > 1"}) as running:  # fmt: skip
        running.reach("pg:shop:FFFFFFFFFFFFFFFF")


def test_prepared_transactions_and_savepoints(database: Any, capture: Any) -> None:
    if database.rows("SHOW max_prepared_transactions") == [("0",)]:
        pytest.skip("the server does not prepare transactions")
    database.run(ITEMS)
    with capture(tables=["items"]) as running:
        running.copied()
        database.run("BEGIN", "INSERT INTO items VALUES (1, 'x')", "PREPARE TRANSACTION 'one'")
        database.run("BEGIN", "INSERT INTO items VALUES (2, 'x')", "PREPARE TRANSACTION 'two'")
        database.run("INSERT INTO items VALUES (3, 'x')")
        running.reach(database.position())
        assert [r["id"] for r in running.written.table("public.items")] == [3]
        database.run("COMMIT PREPARED 'one'", "ROLLBACK PREPARED 'two'")
        with psycopg.connect(database.dsn) as connection:
            for number in range(10, 16):
                with connection.transaction(force_rollback=number % 2 == 0):
                    connection.execute("INSERT INTO items VALUES (%s, 'y')", [number])
        running.reach(database.position())
    assert {r["id"] for r in running.written.table("public.items")} == {1, 3, 11, 13, 15}
    running.written.check()


def test_who_keeps_the_first_copy_waiting_is_told(database: Any, capture: Any) -> None:
    database.run(ITEMS, "INSERT INTO items VALUES (1, 'x')")

    def waits_for(running: Any) -> Any:
        reports = read_reports(running.part.directory)
        return reports[0].get("waits_for") if reports else None

    with psycopg.connect(database.dsn) as writer:
        writer.execute("INSERT INTO items VALUES (2, 'x')")
        with capture(tables=["items"]) as running:
            process = f"process {writer.info.backend_pid} of postgres"
            running.until(lambda: str(waits_for(running) or "").find(process) > 0)
            writer.commit()
            running.copied()
            running.until(lambda: waits_for(running) == [])
    assert [r["id"] for r in running.written.table("public.items")] == [1, 2]


def test_a_row_that_no_log_takes_is_named(tailrace_broker: str) -> None:
    log = BrokerSourceLog(tailrace_broker, "shop")
    try:
        log.init()
        log.ensure_topic("shop.public.items", 1, {})
        with pytest.raises(RecordTooLargeError, match="a row for"):
            log.send("shop.public.items", 0, [b"k"], [bytes(LARGEST_BYTES)], 0)
    finally:
        log.close()
