"""Copies that race with commits: streamed before they are visible."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import orjson
import psycopg
import pytest

from tailrace.sources.postgres import copy
from tailrace.sources.postgres.settings import CaptureSettings

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10,2))"


def test_a_commit_that_is_streamed_but_not_visible_yet_wins_over_the_copy(
    database: Any, capture: Any
) -> None:
    """A synchronous standby that never answers keeps a commit invisible for as long as we
    like, while the stream has it already: plain watermarks write the old row last."""
    database.run(
        ORDERS,
        "INSERT INTO orders SELECT i, 'old', 1 FROM generate_series(1, 50) i",
        # Its copy comes first, and is held up by a lock.
        "CREATE TABLE aardvark (id int PRIMARY KEY, x text)",
        "INSERT INTO aardvark SELECT i, 'x' FROM generate_series(1, 2500) i",
    )
    database.run("SET synchronous_commit = local")
    settings = CaptureSettings(
        chunk_rows=50, chunks_ahead=1, idle_cut_seconds=0.1, confirm_delay=0.0
    )
    writer = psycopg.connect(database.dsn, autocommit=True)
    blocker = psycopg.connect(database.dsn, autocommit=True)

    def change() -> None:
        with contextlib.suppress(psycopg.OperationalError):
            writer.execute("UPDATE orders SET customer = customer || '.' WHERE id = 7")

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    thread.join()
    try:
        with capture(settings, tables=["orders", "aardvark"], copy_connections=1) as running:
            running.until(lambda: bool(running.written.notes("CUT")))
            blocker.execute("BEGIN; LOCK TABLE aardvark IN ACCESS EXCLUSIVE MODE")
            never_answers(database, "nobody")
            updates = 0
            while not waits_for_standby(database, writer):
                # Postgres takes the new setting up in its own time.
                if not thread.is_alive():
                    thread = threading.Thread(target=change, daemon=True)
                    thread.start()
                    updates += 1
            running.until(lambda: len(running.written.events("public.orders")) == updates)
            assert {e["op"] for e in running.written.events("public.orders")} == {"u"}
            blocker.execute("ROLLBACK")
            # The copy reads the old row, since nobody can see the new one yet:
            running.until(lambda: len(running.written.events("public.orders")) == updates + 49, 90)
            (visible,) = database.rows("SELECT length(customer) FROM orders WHERE id = 7")[0]
            assert visible == len("old.") + updates - 1
            never_answers(database, "")
            thread.join(20)
            running.copied()
        rows = {r["id"]: r["customer"] for r in running.written.table("public.orders")}
        assert rows[7] == "old." + "." * updates
        assert len(rows) == 50
        running.written.check()
    finally:
        never_answers(database, "")
        thread.join(20)
        writer.close()
        blocker.close()


def test_a_streamed_commit_wins_over_chunks_read_in_parallel(
    database: Any, capture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same race with many ranges on their way at once, whose snapshots are all too old."""
    database.run(
        ORDERS,
        "INSERT INTO orders SELECT i, 'old', 1 FROM generate_series(1, 400) i",
        "ANALYZE orders",
        "SET synchronous_commit = local",
    )
    go = threading.Event()
    find = copy.sample_keys

    def when_told(*given: Any) -> list[tuple[str, ...]]:
        assert go.wait(60)
        return find(*given)

    monkeypatch.setattr(copy, "sample_keys", when_told)
    settings = CaptureSettings(
        chunk_rows=7, split_rows=100, touched_keys=0, idle_cut_seconds=0.1, confirm_delay=0.0
    )
    writer = psycopg.connect(database.dsn, autocommit=True)
    # A key that changes moves from one range to another.
    change = "UPDATE orders SET customer = 'new', id = CASE id WHEN 7 THEN 1007 ELSE id END WHERE id IN (7, 150, 390)"  # fmt: skip

    def changing() -> None:
        with contextlib.suppress(psycopg.OperationalError):
            writer.execute(change)

    thread = threading.Thread(target=changing, daemon=True)
    try:
        with capture(settings, tables=["orders"]) as running:
            running.until(lambda: bool(running.written.notes("CUT")))
            never_answers(database, "nobody")
            while database.rows("SHOW synchronous_standby_names") != [("nobody",)]:
                time.sleep(0.01)
            time.sleep(0.2)  # the writer takes the setting up in its own time
            thread.start()
            running.until(lambda: len(running.written.events("public.orders")) == 4)
            assert waits_for_standby(database, writer)
            go.set()
            # Every chunk sees the old rows, and none of the three is written.
            running.until(lambda: len(running.written.events("public.orders")) == 401, 90)
            never_answers(database, "")
            thread.join(20)
            running.copied()
        rows = {r["id"]: r["customer"] for r in running.written.table("public.orders")}
        there = dict(database.rows("SELECT id, customer FROM orders"))
        assert rows == there
        assert sorted(i for i, customer in rows.items() if customer == "new") == [150, 390, 1007]
        running.written.check()
    finally:
        go.set()
        never_answers(database, "")
        thread.join(20)
        writer.close()


def test_a_table_can_be_copied_again_while_it_streams(
    database: Any, capture: Any, shared: Any
) -> None:
    database.run(ORDERS, "INSERT INTO orders SELECT i, 'x', 1 FROM generate_series(1, 300) i")
    with capture(tables=["orders"]) as running:
        running.copied()
        ask = "SELECT pg_logical_emit_message(true, 'tailrace.snapshot', '{}')"
        database.run(ask.format('{"table": "orders", "where": "id <= 120"}'))
        for i in range(50):  # every tenth row stays as it is, and must be copied
            database.run(f"UPDATE orders SET amount = {i} WHERE id % 10 = {i % 9}")
        running.until(lambda: [c["state"] for c in copies(shared)[-2:]] == ["again", "done"])
        running.reach(database.position())
    written = {r["id"]: r["amount"] for r in running.written.table("public.orders")}
    there = {i: str(a) for i, a in database.rows("SELECT id, amount FROM orders")}
    assert written == there
    assert sum(e["op"] == "r" for e in running.written.events("public.orders")) > 300
    assert all(cut["copying"] == [] for cut in running.written.notes("CUT")[-3:])
    running.written.check()


def test_given_keys_are_copied_again_and_absent_ones_deleted(
    database: Any, capture: Any, shared: Any
) -> None:
    from tailrace.sources import Postgres, snapshot
    from tailrace.sources.errors import SnapshotRequestError

    database.run(
        "CREATE TABLE parts (id int, name text, amount int, PRIMARY KEY (id, name))",
        "INSERT INTO parts SELECT i, 'a ' || i, i FROM generate_series(1, 300) i",
    )
    shop = Postgres("shop", database.dsn, tables=["parts"])
    with capture(tables=["parts"]) as running:
        running.copied()
        before = len(running.written.events("public.parts"))
        keys = [{"id": 5, "name": "a 5"}, {"id": "280", "name": "a 280"}, {"id": 9, "name": "x'y"}]
        snapshot(shop, "parts", keys=keys)
        running.until(lambda: len(running.written.events("public.parts")) == before + 3)
        running.until(lambda: copies(shared)[-1]["state"] == "done")
    news = running.written.events("public.parts")[before:]
    assert [(e["op"], e["after"] or e["before"]) for e in news] == [
        ("r", {"id": 5, "name": "a 5", "amount": 5}),
        ("r", {"id": 280, "name": "a 280", "amount": 280}),
        ("d", {"id": 9, "name": "x'y"}),
    ]
    assert copies(shared)[-1]["rows"] == 2
    running.written.check()
    for wrong in ([5], [{"id": 5}], [{"id": "five", "name": "x"}], []):
        with pytest.raises(SnapshotRequestError):
            snapshot(shop, "parts", keys=wrong)


@pytest.mark.parametrize(
    "change",
    [{"columns": {"people": ["name"]}}, {"where": {"people": "id > 50"}},
     {"mask": {"people": {"email": "sha256"}}}],
    ids=["columns", "where", "mask"],
)  # fmt: skip
def test_a_changed_declaration_is_noticed_and_the_table_read_again(
    database: Any, capture: Any, change: dict[str, Any]
) -> None:
    database.run(
        "CREATE TABLE people (id int PRIMARY KEY, name text, email text)",
        "INSERT INTO people SELECT i, 'n' || i, 'e' || i FROM generate_series(1, 150) i",
    )
    with capture(tables=["people"]) as running:
        running.copied()
    assert len(running.written.table("public.people")) == 150
    with capture(tables=["people"], **change) as running:
        running.until(lambda: fits(running.written.table("public.people"), change))
        database.run("INSERT INTO people VALUES (20, 'x', 'y'), (300, 'x', 'y') ON CONFLICT (id) "
                     "DO UPDATE SET name = 'changed'")  # fmt: skip
        running.reach(database.position())
        events = len(running.written.events("public.people"))
    assert fits(running.written.table("public.people"), change)
    running.written.check()
    with capture(tables=["people"], **change) as running:
        database.run("INSERT INTO people VALUES (301, 'x', 'y')")
        running.reach(database.position())
    # Nothing was read again: the declaration is the one of the last run.
    assert len(running.written.events("public.people")) == events + 1


def fits(rows: list[dict[str, Any]], change: dict[str, Any]) -> bool:
    """Whether a copy looks as the changed declaration wants it."""
    if "columns" in change:
        return all(set(row) == {"id", "name"} for row in rows)
    if "where" in change:
        return all(row["id"] > 50 for row in rows)
    return all(len(row["email"]) == 64 for row in rows)


def copies(shared: Any) -> list[dict[str, Any]]:
    return [orjson.loads(value) for value in shared.values("__tailrace_sources")]


def waits_for_standby(database: Any, writer: Any) -> bool:
    found = database.rows(
        f"SELECT wait_event FROM pg_stat_activity WHERE pid = {writer.info.backend_pid}"
    )
    return bool(found == [("SyncRep",)])


def never_answers(database: Any, standby: str) -> None:
    """Commits wait for a standby of this name; for none if it is empty."""
    database.run(
        f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'", "SELECT pg_reload_conf()"
    )
