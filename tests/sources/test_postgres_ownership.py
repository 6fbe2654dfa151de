"""Whose a slot and a publication are, and what becomes of them when a source is dropped."""

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from servers.capture import SMALL, Running
from tailrace.cli.source import source
from tailrace.sources import Postgres
from tailrace.sources.doctor import examine
from tailrace.sources.errors import SlotOwnedError, SlotTakenError, SourceDeclarationError
from tailrace.sources.postgres import catalog
from tailrace.sources.postgres.ownership import (
    Ownership,
    claim_publication,
    default_name,
    owner_of,
)
from tailrace.sources.postgres.replication import ReplicationStream
from tailrace.testing.source_log import SharedLog

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text)"
NAMES = st.text("abAB01_-", min_size=1, max_size=41)
SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() ORDER BY 1"


@given(NAMES, NAMES, NAMES, NAMES)
def test_names_are_short_plain_and_different(a: str, b: str, c: str, d: str) -> None:
    first, second = default_name(a, b), default_name(c, d)
    assert set(first) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert len(first) <= 63
    assert (first == second) == ((a, b) == (c, d))


def test_a_name_says_project_and_source() -> None:
    assert default_name("store", "orders_db") == "tailrace_store_orders_db"
    # What could be read in two ways, or is cut, ends in a digest of both.
    assert default_name("store_orders", "db").startswith("tailrace_store_orders_db_x")
    assert default_name("a" * 60, "b") != default_name("a" * 60, "c")


def project(
    database: Any, directory: Path, shared: SharedLog | None = None, **given: Any
) -> Running:
    declared = Postgres("shop", given.pop("dsn", database.dsn), tables=["orders"], **given)
    return Running(declared, shared or SharedLog(), directory, SMALL)


def refused(running: Running) -> SlotOwnedError:
    with pytest.raises(SlotOwnedError) as caught:
        running.until(lambda: False)
    running.stop()
    assert caught.value.hint
    return caught.value


def test_a_second_project_on_another_database_of_the_server_is_refused_by_name(
    database: Any, postgres_server: Any, tmp_path: Path
) -> None:
    database.run(ORDERS)
    other = postgres_server.create_database("elsewhere")
    try:
        with catalog.connect(other) as connection:
            connection.execute(ORDERS.encode())
        with project(database, tmp_path / "a") as running:
            running.copied()
            error = refused(project(database, tmp_path / "b", dsn=other))
            assert 'replication slot "tailrace_test_shop" belongs to database' in error.message
            assert database.name in error.message
            # The first goes on undisturbed.
            database.run("INSERT INTO orders VALUES (1, 'a')")
            running.reach(database.position())
        assert len(running.written.events("public.orders")) == 1
    finally:
        postgres_server.drop_database("elsewhere")


def test_a_second_project_on_the_same_database_never_takes_the_slot_over(
    database: Any, tmp_path: Path
) -> None:
    database.run(ORDERS)
    shared = SharedLog()
    with project(database, tmp_path / "a", shared) as running:
        running.copied()
    database.wait_for_slot()
    # Nobody reads the slot at the moment, and yet it is not anybody's.
    error = refused(project(database, tmp_path / "b"))
    assert error.message == 'publication "tailrace_test_shop" belongs to another project'
    assert 'Project "test"' in error.detail
    assert "slot" in refused(
        project(database, tmp_path / "b", slot="tailrace_test_shop", publication="mine")
    ).message  # fmt: skip
    with project(database, tmp_path / "b", slot="second", publication="second") as second:
        second.copied()
    database.run("INSERT INTO orders VALUES (1, 'a')")
    database.wait_for_slot()
    with project(database, tmp_path / "a", shared) as running:
        running.reach(database.position())
    assert [e["op"] for e in running.written.events("public.orders")] == ["c"]


def test_a_project_that_was_moved_keeps_what_it_owns(database: Any, tmp_path: Path) -> None:
    database.run(ORDERS)
    shared = SharedLog()
    for directory in ("a", "b"):
        database.wait_for_slot()
        with project(database, tmp_path / directory, shared) as running:
            running.copied()
    assert database.rows(SLOTS) == [("tailrace_test_shop",)]


def test_a_project_whose_log_was_deleted_finds_its_own_again(database: Any, tmp_path: Path) -> None:
    database.run(ORDERS, "INSERT INTO orders VALUES (1, 'a')")
    for _ in range(2):
        database.wait_for_slot()
        with project(database, tmp_path / "a") as running:
            running.copied()
            running.reach(database.position())
        assert len(running.written.table("public.orders")) == 1
    assert database.rows(SLOTS) == [("tailrace_test_shop",)]


def test_names_from_before_they_carried_the_project_stay(database: Any, tmp_path: Path) -> None:
    database.run(ORDERS)
    shared = SharedLog()
    with project(
        database, tmp_path / "a", shared, slot="tailrace_shop", publication="tailrace_shop"
    ) as running:
        running.copied()
    # As an earlier version left it: nothing recorded, no comment.
    (records,) = shared.topics["__tailrace_sources"]
    records[:] = [r for r in records if r is None or b"owns" not in (r.key or b"")]
    database.run("COMMENT ON PUBLICATION tailrace_shop IS NULL")
    database.wait_for_slot()
    database.run("INSERT INTO orders VALUES (1, 'a')")
    with project(database, tmp_path / "a", shared) as running:
        running.reach(database.position())
    assert database.rows(SLOTS) == [("tailrace_shop",)]
    assert [e["op"] for e in running.written.events("public.orders")] == ["c"]
    database.wait_for_slot()
    assert refused(project(database, tmp_path / "b", slot="tailrace_shop"))


def test_a_slot_that_somebody_made_is_left_alone(database: Any, tmp_path: Path) -> None:
    database.run(
        ORDERS, "SELECT pg_create_logical_replication_slot('tailrace_test_shop', 'pgoutput')"
    )
    assert "did not make it" in refused(project(database, tmp_path / "a")).message


def test_the_doctor_lists_slots_nobody_reads(database: Any) -> None:
    database.run(ORDERS, "SELECT pg_create_logical_replication_slot('tailrace_old', 'pgoutput')")
    found = [f for f in examine(Postgres("shop", database.dsn)) if f.check == "slot-unused"]
    (finding,) = [f for f in found if '"tailrace_old"' in f.message]
    assert finding.state == "warning"
    assert "pg_drop_replication_slot('tailrace_old')" in finding.hint


@pytest.fixture
def home(database: Any, tmp_path: Path) -> Path:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "test"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.py").write_text(
        "from tailrace import sources\n"
        f"shop = sources.Postgres('shop', {database.dsn!r}, tables=['orders'], ddl_trigger=True)\n"
        f"file = sources.SQLite('file', {str(tmp_path / 'x.db')!r})\n"
    )
    return tmp_path


def call(home: Path, *arguments: str) -> Any:
    return CliRunner().invoke(source, [*arguments, "--log", str(home)])


def test_drop_removes_what_a_source_made(database: Any, home: Path) -> None:
    database.run(ORDERS)
    with project(database, home / ".tailrace", ddl_trigger=True) as running:
        running.copied()
        assert "runs" in str(call(home, "drop", "shop", "--yes").exception)
    running.part.report("stopped")
    database.wait_for_slot()
    with ReplicationStream(database.dsn, "tailrace_test_shop", "tailrace_test_shop", 0):
        taken = call(home, "drop", "shop", "--yes")
        assert isinstance(taken.exception, SlotTakenError)
    database.wait_for_slot()
    answer = call(home, "drop", "shop", "--yes")
    assert answer.exit_code == 0, answer.output
    assert 'replication slot "tailrace_test_shop"' in answer.output
    assert database.rows(SLOTS) == []
    assert database.rows("SELECT pubname FROM pg_publication") == []
    assert database.rows("SELECT evtname FROM pg_event_trigger") == []
    assert "nothing" in call(home, "drop", "shop", "--yes").output


def test_drop_leaves_alone_what_is_another_project_s(
    database: Any, home: Path, tmp_path: Path
) -> None:
    database.run(ORDERS)
    with project(database, tmp_path / "other") as running:
        running.copied()
    database.wait_for_slot()
    assert isinstance(call(home, "drop", "shop", "--yes").exception, SlotOwnedError)
    assert database.rows(SLOTS) == [("tailrace_test_shop",)]


def test_drop_removes_the_publication_of_a_project_that_came_second(
    database: Any, home: Path, postgres_server: Any, tmp_path: Path
) -> None:
    # Two that begin at the same moment both make one, each in its database; one gets the slot.
    database.run(ORDERS)
    database.run("CREATE PUBLICATION tailrace_test_shop FOR TABLE orders")
    name = "tailrace_test_shop"
    owned = Ownership(owner_of(home / ".tailrace"), "test", "shop", name, name)
    with catalog.connect(database.dsn) as connection:
        claim_publication(connection, owned)
    other = postgres_server.create_database("elsewhere")
    try:
        with catalog.connect(other) as connection:
            connection.execute(ORDERS.encode())
        with project(database, tmp_path / "other", dsn=other) as running:
            running.copied()
            dropped = call(home, "drop", "shop", "--yes")
            assert isinstance(dropped.exception, SlotOwnedError)
            assert f'publication "{name}"' in dropped.output
            assert database.rows("SELECT pubname FROM pg_publication") == []
        with catalog.connect(other) as connection:
            assert catalog.read_slot(connection, name) is not None
    finally:
        postgres_server.drop_database("elsewhere")


def test_the_doctor_says_that_a_slot_is_another_project_s(
    database: Any, home: Path, tmp_path: Path
) -> None:
    database.run(ORDERS)
    with project(database, tmp_path / "other") as running:
        running.copied()
    answer = call(home, "doctor", "shop")
    assert answer.exit_code == 1
    assert '"tailrace_test_shop" belongs to another project' in answer.output
    assert "[slot-owned]" in answer.output
    assert 'ok       slot "tailrace_test_shop"' not in answer.output


def test_the_doctor_knows_a_project_s_own_slot(database: Any, home: Path) -> None:
    database.run(ORDERS)
    with project(database, home / ".tailrace") as running:
        running.copied()
        answer = call(home, "doctor", "shop")
    assert answer.exit_code == 0, answer.output
    assert 'ok       slot "tailrace_test_shop"' in answer.output


def test_drop_takes_triggers_and_change_table_out_of_a_file(home: Path) -> None:
    from servers.capture import SMALL_SQLITE
    from tailrace.sources import SQLite

    path = home / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("CREATE TABLE _tailrace_mine (id)")  # not one of ours
    with Running(
        SQLite("file", str(path)), SharedLog(), home / ".tailrace", SMALL_SQLITE
    ) as running:
        running.copied()
    answer = call(home, "drop", "file", "--yes")
    assert answer.exit_code == 0, answer.output
    assert "_tailrace_changes" in answer.output
    left = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%tailrace%'")
    assert left.fetchall() == [("_tailrace_mine",)]
    connection.execute("INSERT INTO items VALUES (1, 'a')")
    connection.close()


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:s3cr3t-p@ss@db.invalid/shop",
        "postgresql://me:s3cr3t/p@db.invalid/shop",
        "postgresql://me:s3cr3t%zz@db.invalid/shop",
        "host=db.invalid password=a s3cr3t",
        "host=db.invalid password='s3cr3t",
        "s3cr3t",
    ],
)
def test_a_dsn_that_cannot_be_read_is_not_shown(dsn: str, database: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceDeclarationError) as caught:
        catalog.connect(dsn)
    shown = "".join(traceback.format_exception(caught.value))
    for text in (caught.value.render(), orjson.dumps(caught.value.as_dict()).decode(), shown):
        assert "s3cr3t" not in text
        assert "ss@db" not in text
    (finding,) = examine(Postgres("shop", dsn))
    assert "s3cr3t" not in finding.render()
