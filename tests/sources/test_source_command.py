"""`tailrace source …` and the doctor, on a project with a real database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tailrace.cli.source import source
from tailrace.sources import Postgres, SQLite
from tailrace.sources.doctor import examine
from tailrace.sources.errors import CopyBlockedError
from tailrace.telemetry.part import Part

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text)"


@pytest.fixture
def project(database: Any, tmp_path: Path) -> Path:
    database.run(ORDERS, "CREATE TABLE lines (what text)")
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.py").write_text(
        "from tailrace import sources\n"
        f"shop = sources.Postgres('shop', {database.dsn!r}, tables=['public.*'])\n"
    )
    return tmp_path


def call(project: Path, *arguments: str) -> Any:
    return CliRunner().invoke(source, [*arguments, "--log", str(project)])


def test_sources_are_listed_and_paused(project: Path) -> None:
    (row,) = orjson.loads(call(project, "list", "--json").output)
    assert (row["name"], row["kind"], row["state"]) == ("shop", "postgres", "not running")
    assert call(project, "pause", "shop").exit_code == 0
    assert orjson.loads(call(project, "list", "--json").output)[0]["state"] == "paused"
    assert call(project, "resume", "shop").exit_code == 0
    assert orjson.loads(call(project, "list", "--json").output)[0]["state"] == "not running"
    assert call(project, "status", "shop").exit_code == 1


def test_the_status_shows_an_error_in_its_four_parts(project: Path) -> None:
    part = Part("shop", "source", "shop", "", project / ".tailrace")
    error = CopyBlockedError("it waits", detail="because", hint="GRANT SELECT …;")
    part.report("lagging", copying=["a", "b"], waits_for=[], error=error.as_dict())
    shown = call(project, "status", "shop")
    assert shown.exit_code == 1
    assert error.render() in shown.output
    lines = {line[:18].strip(): line[19:] for line in shown.output.splitlines()}
    assert (lines["copying"], lines["waits_for"]) == ("a, b", "–")


def test_the_doctor_names_what_will_break_and_the_sql_that_repairs_it(project: Path) -> None:
    answer = call(project, "doctor", "shop")
    assert answer.exit_code == 1
    assert 'ALTER TABLE "public"."lines" ADD PRIMARY KEY' in answer.output
    assert "ok       public.orders: key id" in answer.output
    assert "max_slot_wal_keep_size" in answer.output
    findings = orjson.loads(call(project, "doctor", "shop", "--json").output)
    assert {f["state"] for f in findings} == {"good", "warning", "bad"}


def test_a_snapshot_is_asked_for_in_the_database(project: Path, database: Any) -> None:
    from tailrace.sources.errors import SnapshotRequestError

    assert call(project, "snapshot", "shop", "--table", "orders").exit_code == 0
    keys = project / "keys"
    keys.write_text("7\n8\n")
    answer = call(
        project, "snapshot", "shop", "--table", "orders", "--key", "5", "--keys", str(keys)
    )
    assert "3 rows of orders" in answer.output
    wrong = call(project, "snapshot", "shop", "--table", "orders", "--key", "five")
    assert isinstance(wrong.exception, SnapshotRequestError)
    assert call(project, "snapshot", "shop", "--table", "lines").exit_code == 0
    for part in (["--where", "a > 1"], ["--key", "5"]):
        refused = call(project, "snapshot", "shop", "--table", "lines", *part)
        assert isinstance(refused.exception, SnapshotRequestError)
        assert "no primary key" in refused.exception.message
    unknown = call(project, "snapshot", "shop", "--where", "id > 1")
    assert isinstance(unknown.exception, SnapshotRequestError)


def test_the_doctor_tells_whether_a_slot_survives_a_fail_over(database: Any, capture: Any) -> None:
    if database.connection.info.server_version < 170000:
        pytest.skip("failover slots came with Postgres 17")
    database.run(ORDERS)
    shop = Postgres("shop", database.dsn, tables=["orders"], slot="tailrace_test_shop")
    with capture(tables=["orders"]) as running:
        running.copied()
    assert {f.check: f.state for f in examine(shop)}["failover"] == "good"
    database.drop_slot()
    database.run("SELECT pg_create_logical_replication_slot('tailrace_test_shop', 'pgoutput')")
    (finding,) = [f for f in examine(shop) if f.check == "failover"]
    assert finding.state == "warning"
    assert "pg_drop_replication_slot('tailrace_test_shop')" in finding.hint
    assert "max_slot_wal_keep_size" in " ".join(f.hint + f.message for f in examine(shop))


def test_an_unreachable_database_is_the_first_finding() -> None:
    dead = Postgres("dead", "host=/nowhere dbname=x")
    (finding,) = examine(dead)
    assert finding.state == "bad"
    assert finding.check == "connection"


def test_a_sqlite_file_is_examined_too(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "x.db"
    (missing,) = examine(SQLite("x", str(path)))
    assert missing.state == "bad"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    states = {f.check: f.state for f in examine(SQLite("x", str(path)))}
    assert states["journal-mode"] == "warning"
    assert states["no-key"] == "warning"


def test_a_heartbeat_measures_the_way_and_the_slot_is_watched(database: Any, capture: Any) -> None:
    database.run(ORDERS)
    with capture(tables=["orders"], heartbeat="50 ms") as running:
        running.copied()
        running.until(lambda: "wal_retained_bytes" in running.part._facts)
        assert running.part._facts["wal_state"] == "ok"
    with capture(
        tables=["orders"], heartbeat="50 ms", wal_warning="0", wal_critical="100 GiB"
    ) as running:
        running.until(lambda: running.part._facts.get("wal_state") == "warning")


def test_the_slot_is_confirmed_only_behind_the_log(database: Any, capture: Any) -> None:
    """The server may forget nothing that the log has not committed."""
    database.run(ORDERS)
    with capture(tables=["orders"]) as running:
        running.copied()
        for i in range(30):
            database.run(f"INSERT INTO orders VALUES ({i}, 'x')")
            (row,) = database.rows(
                "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots "
                "WHERE database = current_database()"
            )
            confirmed = f"pg:shop:{int(row[0]):016X}"
            assert confirmed <= running.written.position()
        wanted = database.position()
        running.reach(wanted)

        def moved() -> bool:
            (row,) = database.rows(
                "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots "
                "WHERE database = current_database()"
            )
            return f"pg:shop:{int(row[0]):016X}" >= wanted

        running.until(moved)


def test_a_relative_path_is_the_projects_wherever_the_command_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (home / "pipelines").mkdir(parents=True)
    elsewhere.mkdir()
    (home / "tailrace.toml").write_text('[project]\nname = "lite"\n')
    (home / "pipelines" / "lite.py").write_text(
        'from tailrace import sources\nlite = sources.SQLite("lite", "lite.db", tables=["t"])\n'
    )
    with closing(sqlite3.connect(home / "lite.db")) as database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    monkeypatch.chdir(elsewhere)
    for arguments in (
        ["doctor", "lite"],
        ["snapshot", "lite", "--table", "t"],
        ["alter", "lite", "ALTER TABLE t DROP COLUMN n"],
        ["drop", "lite", "--yes"],
    ):
        found = CliRunner().invoke(source, [*arguments, "--log", str(home)])
        assert found.exit_code == 0, (arguments, found.output, found.exception)
    assert not list(elsewhere.iterdir())
    assert Path.cwd() == elsewhere
