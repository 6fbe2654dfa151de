"""Lost slots, servers that go away, tables without a key."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from servers.capture import SMALL, Running
from tailrace.sources import Postgres
from tailrace.sources.errors import (
    PrivilegeError,
    ServerUnreachableError,
    SlotMissingError,
    SlotTakenError,
    TableMissingError,
    WalLevelError,
)
from tailrace.sources.postgres.replication import ReplicationStream
from tailrace.telemetry.part import Part, read_reports

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"


def expected(database: Any) -> dict[int, tuple[str, str]]:
    rows = database.rows("SELECT id, customer, amount::text FROM orders")
    return {i: (c, a) for i, c, a in rows}


def captured(running: Any) -> dict[int, tuple[str, str]]:
    rows = running.written.table("public.orders")
    return {r["id"]: (r["customer"], r["amount"]) for r in rows}


def test_after_a_lost_slot_only_what_differs_is_written(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 500) i")
    with capture(tables=["orders"]) as running:
        running.copied()
        running.reach(database.position())
    database.drop_slot()
    database.run(
        "UPDATE orders SET customer = 'y' WHERE id = 100",
        "DELETE FROM orders WHERE id IN (7, 8)",
        "INSERT INTO orders VALUES (1000, 'new', 5)",
    )
    before = len(running.written.events("public.orders"))
    with capture(tables=["orders"]) as running:
        running.until(lambda: running.written.notes("CUT")[-1]["epoch"] == 2)
        database.run("UPDATE orders SET customer = 'z' WHERE id = 200")
        running.until(lambda: captured(running) == expected(database))
        running.reach(database.position())
    news = running.written.events("public.orders")[before:]
    assert sorted(e["op"] for e in news) in (
        ["d", "d", "r", "r", "u"],
        ["d", "d", "r", "r", "r", "u"],
    )
    assert running.written.notes("CUT")[-1]["epoch"] == 2
    assert {e["idempotency_key"].split("-")[0] for e in news} == {"2"}
    running.written.check()


def partly_copied(capture: Any) -> Any:
    """A capture that ended in the middle of a first copy."""
    small = replace(SMALL, chunk_rows=5, chunks_ahead=1)
    running = capture(small, tables=["orders"], fail_after=4)
    with pytest.raises(ConnectionError):
        running.until(lambda: False)
    running.stop()
    return running


def test_rows_of_a_first_copy_that_go_while_the_slot_is_lost_are_deleted(
    database: Any, capture: Any
) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 500) i")
    running = partly_copied(capture)
    assert 0 < len(captured(running)) < 500
    database.drop_slot()
    database.run("DELETE FROM orders WHERE id % 2 = 0", "UPDATE orders SET id = id + 1000")
    with capture(tables=["orders"]) as running:
        running.reach(database.position())
        running.copied()
    assert captured(running) == expected(database)
    running.written.check()


def test_rows_of_a_first_copy_that_another_declaration_leaves_out_are_deleted(
    database: Any, capture: Any
) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 500) i")
    running = partly_copied(capture)
    assert 0 < len(captured(running)) < 500
    with capture(tables=["orders"], where={"orders": "id % 2 = 0"}) as running:
        running.reach(database.position())
        running.copied()
    assert captured(running) == {i: row for i, row in expected(database).items() if i % 2 == 0}
    running.written.check()


def test_recovery_reads_only_groups_of_rows_that_differ(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE TABLE things (id int, part text, amount numeric(10,2), at timestamptz, day date, "
        "raw bytea, x float8, doc jsonb, ok bool, feels mood, code char(5), PRIMARY KEY (id, part))",
        "INSERT INTO things SELECT i, 'p ' || i, i * 0.5, '2026-11-15 10:20:30+02'::timestamptz "
        "+ i * interval '1 s', NULLIF(date '0044-03-15 BC' + i, '0044-03-20 BC'), "
        "decode(md5(i::text), 'hex'), i * 1e15, jsonb_build_object('a', i, 'b', 'x\"y'), i % 2 = 0, "
        "CASE WHEN i % 3 = 0 THEN 'sad'::mood END, 'c' || i % 9 FROM generate_series(1, 1500) i",
        "INSERT INTO things (id, part, x, doc) VALUES (0, '', 'NaN', '\"text\"'), (-1, '(,)', "
        "'-Infinity', '[1.50, true, null]'), (-2, E'a\\tb', 1e-7, '17'), (-3, 'Zoë', NULL, NULL)",
    )  # fmt: skip
    with capture(tables=["things"]) as running:
        running.copied()
        running.reach(database.position())
    database.drop_slot()
    database.run(
        "UPDATE things SET amount = 7 WHERE id = 100", "DELETE FROM things WHERE id = 200",
        "INSERT INTO things (id, part) VALUES (5000, 'new')",
    )  # fmt: skip
    before = len(running.written.events("public.things"))
    with capture(tables=["things"]) as running:
        running.until(lambda: running.written.notes("CUT")[-1]["epoch"] == 2)
        running.until(lambda: last_copy(shared)["state"] == "done")
        running.reach(database.position())
    news = running.written.events("public.things")[before:]
    assert sorted((e["op"], (e["after"] or e["before"])["id"]) for e in news) == [
        ("d", 200), ("r", 100), ("r", 5000),
    ]  # fmt: skip
    # Three groups of a few dozen rows, of more than fifteen hundred.
    assert last_copy(shared)["rows"] < 200
    assert len(running.written.table("public.things")) == 1504
    running.written.check()


def last_copy(shared: Any) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(shared.values("__tailrace_sources")[-1])
    return found


def test_a_slot_that_fell_behind_the_limit_is_recovered(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 100) i")
    with capture(tables=["orders"]) as running:
        running.copied()
        running.reach(database.position())
    database.run(
        "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()",
        "UPDATE orders SET customer = 'unseen' WHERE id = 5", "DELETE FROM orders WHERE id = 6",
    )  # fmt: skip
    state = "SELECT wal_status FROM pg_replication_slots WHERE database = current_database()"
    try:
        for _ in range(50):
            if database.rows(state) == [("lost",)]:
                break
            database.run(
                "CREATE TABLE t (x int)", "DROP TABLE t", "SELECT pg_switch_wal()", "CHECKPOINT"
            )
        assert database.rows(state) == [("lost",)]
    finally:
        database.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    with capture(tables=["orders"]) as running:
        running.until(lambda: captured(running) == expected(database))
    assert running.written.notes("CUT")[-1]["epoch"] == 2
    running.written.check()


def test_partitions_are_captured_as_their_table(database: Any, capture: Any) -> None:
    database.run(
        "CREATE TABLE events (id int, day date, what text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
        "INSERT INTO events VALUES (1, '2026-01-05', 'a'), (2, '2026-02-05', 'b')",
    )
    with capture(tables=["public.*"]) as running:
        running.copied()
        database.run(
            "INSERT INTO events VALUES (3, '2026-01-06', 'c')",
            "UPDATE events SET day = '2026-02-07' WHERE id = 1",
        )
        running.reach(database.position())
    rows = {(r["id"], r["day"], r["what"]) for r in running.written.table("public.events")}
    assert rows == {(3, "2026-01-06", "c"), (1, "2026-02-07", "a"), (2, "2026-02-05", "b")}
    running.written.check()


def test_a_shape_that_changes_during_the_copy(database: Any, capture: Any) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 3000) i")
    with capture(tables=["orders"]) as running:
        running.until(lambda: bool(running.written.events("public.orders")))
        database.run("ALTER TABLE orders ADD COLUMN note text DEFAULT 'n'")
        database.run("UPDATE orders SET amount = 2 WHERE id % 100 = 0")
        running.copied()
        running.reach(database.position())
    rows = {r["id"]: r["amount"] for r in running.written.table("public.orders")}
    assert rows == {i: str(a) for i, a in database.rows("SELECT id, amount FROM orders")}
    running.written.check()


def test_a_table_without_key_is_captured_without_keys(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(
        "CREATE TABLE lines (at int, what text)",
        "ALTER TABLE lines REPLICA IDENTITY FULL",
        "INSERT INTO lines SELECT i, 'old' FROM generate_series(1, 300) i",
    )
    with capture(tables=["lines"]) as running:
        database.run("INSERT INTO lines VALUES (1000, 'new')")
        running.copied()
        database.run(
            "UPDATE lines SET what = 'changed' WHERE at = 5", "DELETE FROM lines WHERE at = 6"
        )
        running.reach(database.position())
    records = shared.records("shop.public.lines")
    assert {r.key for r in records} == {None}
    events = running.written.events("public.lines")
    rows: list[tuple[int, str]] = []
    for event in events:
        if event["before"] is not None:
            rows.remove((event["before"]["at"], event["before"]["what"]))
        if event["after"] is not None:
            rows.append((event["after"]["at"], event["after"]["what"]))
    assert sorted(rows) == sorted(database.rows("SELECT at, what FROM lines"))
    assert shared.configs["shop.public.lines"]["cleanup.policy"] == "delete"
    running.written.check()


def test_a_server_that_restarts_is_an_error_that_passes(
    database: Any, capture: Any, postgres_server: Any
) -> None:
    database.run(ORDERS)
    running = capture(tables=["orders"])
    running.copied()
    database.connection.close()
    postgres_server.restart()
    with pytest.raises(ServerUnreachableError):
        running.until(lambda: False)
    running.stop()
    database.__post_init__()
    database.run("INSERT INTO orders VALUES (1, 'a', 1)")
    with capture(tables=["orders"]) as running:
        running.reach(database.position())
    assert captured(running) == expected(database)
    running.written.check()


def test_a_slot_that_another_process_reads_is_named(database: Any, capture: Any) -> None:
    """Not another capture into the same log, which would end the first one and free the slot."""
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
    database.wait_for_slot()
    name = "tailrace_test_shop"
    with ReplicationStream(database.dsn, name, name, 0):
        source = Postgres("shop", database.dsn, tables=["orders"])
        second = Running(source, running.written.shared, running.part.directory, SMALL)
        with pytest.raises(SlotTakenError, match="in use"):
            second.until(lambda: False)
        second.stop()


def test_a_missing_table_or_slot_is_named_with_what_is_there(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    running = capture(tables=["order"])
    with pytest.raises(TableMissingError) as caught:
        running.until(lambda: False)
    assert "public.orders" in caught.value.detail
    running.stop()
    database.run("CREATE PUBLICATION given FOR TABLE orders")
    running = capture(tables=["orders"], create=False, publication="given", slot="absent")
    with pytest.raises(SlotMissingError) as missing:
        running.until(lambda: False)
    assert "pg_create_logical_replication_slot" in missing.value.hint
    running.stop()


def test_a_role_that_may_not_replicate_gets_the_sql(database: Any, capture: Any) -> None:
    database.run(ORDERS, "DROP ROLE IF EXISTS weak", "CREATE ROLE weak LOGIN")
    running = capture(tables=["orders"], dsn=database.dsn.replace("user=postgres", "user=weak"))
    with pytest.raises(PrivilegeError) as caught:
        running.until(lambda: False)
    assert caught.value.hint == 'ALTER ROLE "weak" REPLICATION;'
    running.stop()


def test_a_low_wal_level_is_refused(database: Any, capture: Any, postgres_server: Any) -> None:
    database.run(ORDERS)
    postgres_server.settings["wal_level"] = "replica"
    database.connection.close()
    try:
        postgres_server.restart()
        database.__post_init__()
        running = capture(tables=["orders"])
        with pytest.raises(WalLevelError) as caught:
            running.until(lambda: False)
        assert "ALTER SYSTEM SET wal_level" in caught.value.hint
        running.stop()
    finally:
        database.connection.close()
        postgres_server.settings["wal_level"] = "logical"
        postgres_server.restart()
        database.__post_init__()


def test_another_encoding_arrives_as_utf8(postgres_server: Any, shared: Any, tmp_path: Any) -> None:
    from servers.capture import SMALL, Database, Running
    from tailrace.sources import Postgres

    options = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    database = Database(postgres_server, "latin", postgres_server.create_database("latin", options))
    database.run(ORDERS, "SET client_encoding = 'UTF8'", "INSERT INTO orders VALUES (1, 'Zoë', 1)")
    try:
        with Running(
            Postgres("shop", database.dsn, tables=["orders"]), shared, tmp_path, SMALL
        ) as running:
            running.copied()
            database.run("INSERT INTO orders VALUES (2, 'Ünal', 1)")
            running.reach(database.position())
        assert captured(running) == {1: ("Zoë", "1.00"), 2: ("Ünal", "1.00")}
    finally:
        database.connection.close()
        postgres_server.drop_database("latin")


def test_columns_filters_and_masks_keep_values_out_of_the_log(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(
        "CREATE TABLE people (id int PRIMARY KEY, name text, email text, phone text, age int)",
        "INSERT INTO people VALUES (1, 'Ann', 'a@x', '12', 30), (2, 'Bob', 'b@x', '34', 10)",
    )
    with capture(
        tables=["people"], columns={"people": ["name", "email", "phone"]},
        where={"people": "id < 100 AND id <> 2"},
        mask={"people": {"email": "sha256", "phone": "redact"}},
    ) as running:  # fmt: skip
        running.copied()
        database.run(
            "INSERT INTO people VALUES (3, 'Cy', 'a@x', '56', 40), (200, 'No', 'n', 'n', 1)"
        )
        running.reach(database.position())
    first, third = running.written.table("public.people")
    assert set(first) == {"id", "name", "email", "phone"}
    assert first["phone"] == third["phone"] == "***"
    assert first["email"] == third["email"]
    assert len(first["email"]) == 64
    everything = b"".join(v or b"" for t in shared.topics for v in shared.values(t))
    assert b"a@x" not in everything
    assert b"Bob" not in everything


def test_a_replica_identity_index_serves_as_the_key(database: Any, capture: Any) -> None:
    database.run(
        "CREATE TABLE codes (code text NOT NULL, what text)",
        "CREATE UNIQUE INDEX codes_code ON codes (code)",
        "ALTER TABLE codes REPLICA IDENTITY USING INDEX codes_code",
        "INSERT INTO codes SELECT 'c' || i, 'old' FROM generate_series(1, 250) i",
    )
    with capture(tables=["codes"]) as running:
        running.copied()
        database.run(
            "UPDATE codes SET what = 'new' WHERE code = 'c7'",
            "UPDATE codes SET code = 'd8' WHERE code = 'c8'", "DELETE FROM codes WHERE code = 'c9'",
        )  # fmt: skip
        running.reach(database.position())
    rows = {r["code"]: r["what"] for r in running.written.table("public.codes")}
    assert rows == dict(database.rows("SELECT code, what FROM codes"))
    running.written.check()


def test_a_running_source_survives_restarts_and_pauses(
    database: Any, tailrace_broker: str, tmp_path: Path, postgres_server: Any
) -> None:
    """`run` as the supervisor calls it: it connects again by itself."""
    from tailrace.client.errors import UnknownTopicError
    from tailrace.client.fetcher import Fetcher
    from tailrace.sources import Postgres, run
    from tailrace.sources.control import pause_path

    database.run(ORDERS)
    part = Part("shop", "source", "test", tailrace_broker, tmp_path)
    source = Postgres("shop", database.dsn, tables=["orders"])
    thread = threading.Thread(target=run, args=(source, part), daemon=True)
    thread.start()

    def rows() -> int:
        with Fetcher(tailrace_broker) as fetcher:
            try:
                # A row may come twice, by the stream and by the first copy.
                return len({record.key for record in fetcher.read_all("shop.public.orders")})
            except UnknownTopicError:
                return 0

    def until(condition: Any) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    until(lambda: part._facts.get("state") == "running")
    database.run("INSERT INTO orders VALUES (1, 'a', 1)")
    until(lambda: rows() == 1)
    database.connection.close()
    postgres_server.restart()
    database.__post_init__()
    database.run("INSERT INTO orders VALUES (2, 'b', 1)")
    until(lambda: rows() == 2)
    path = pause_path(tmp_path, "shop")
    path.touch()
    until(lambda: part._facts.get("reason") == "paused")
    database.run("INSERT INTO orders VALUES (3, 'c', 1)")
    assert rows() == 2
    path.unlink()
    until(lambda: rows() == 3)
    part.stopping.set()
    thread.join(30)
    assert part._facts["state"] == "stopped"


def test_a_partition_dropped_while_its_changes_wait_is_no_table_of_its_own(
    database: Any, capture: Any
) -> None:
    database.run(
        "CREATE TABLE events (id int, day int, PRIMARY KEY (id, day)) PARTITION BY LIST (day)",
        "CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1)",
        "CREATE TABLE events_2 PARTITION OF events FOR VALUES IN (2)",
    )
    with capture(tables=["public.*"]) as running:
        running.copied()
    database.run(
        "INSERT INTO events VALUES (1, 1), (2, 2)",
        "DELETE FROM events WHERE day = 1",
        "DROP TABLE events_1",
        "INSERT INTO events VALUES (3, 2)",
    )
    with capture(tables=["public.*"]) as running:
        running.reach(database.position())
        running.until(lambda: bool(read_reports(running.part.directory)))
        (report,) = read_reports(running.part.directory)
    assert not report["refuses_updates"]
    assert not report.get("copying")
    rows = {(r["id"], r["day"]) for r in running.written.table("public.events")}
    assert rows == {(2, 2), (3, 2)}
    assert "shop.public.events_1" not in running.written.shared.topics
    assert not [note for note in running.written.notes() if "events_1" in str(note)]
    running.written.check()
