"""SQLite files by triggers: values, REPLACE, schema changes, several processes, restarts."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.capture import SMALL_SQLITE, Running
from tailrace.sources import SQLite, snapshot
from tailrace.sources.errors import ServerUnreachableError, SnapshotRequestError
from tailrace.sources.sqlite import change_table
from tailrace.sources.sqlite.change_table import alter
from tailrace.sources.sqlite.settings import SQLiteSettings
from tailrace.sources.sqlite.values import freeze, thaw, to_json
from tailrace.telemetry.part import read_reports
from tailrace.testing.bags import bag_of, rebuild_bag

ORDERS = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount REAL)"


class File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=20)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def position(self) -> str:
        found = self.rows("SELECT seq FROM sqlite_sequence WHERE name = '_tailrace_changes'")
        return f"sqlite:shop:{found[0][0] if found else 0:016X}"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    made = File(tmp_path / "shop.db")
    yield made
    made.connection.close()


@pytest.fixture
def capture(file: File, shared: Any, tmp_path: Path) -> Callable[..., Running]:
    def start(settings: SQLiteSettings = SMALL_SQLITE, **parameters: Any) -> Running:
        fail_after = parameters.pop("fail_after", None)
        source = SQLite("shop", str(file.path), **parameters)
        return Running(source, shared, tmp_path, settings, fail_after)

    return start


def table(file: File, running: Running, name: str = "orders") -> None:
    cursor = file.connection.execute(f"SELECT * FROM {name}")
    columns = [column[0] for column in cursor.description]
    there = [dict(zip(columns, row, strict=True)) for row in cursor]
    written = running.written.table(f"main.{name}")
    assert sorted(written, key=repr) == sorted(there, key=repr)


def test_a_file_that_is_not_there_is_never_made(tmp_path: Path) -> None:
    path = tmp_path / "shpo.db"
    with pytest.raises(ServerUnreachableError, match=r"there is no file .*shpo\.db"):
        change_table.connect(str(path))
    assert not path.exists()


def test_changes_arrive_with_what_was_before(file: File, capture: Any) -> None:
    file.run(ORDERS, "INSERT INTO orders VALUES (1, 'copied', 1)")
    with capture() as running:
        running.copied()
        file.run(
            "BEGIN", "INSERT INTO orders VALUES (2, 'b', 0.1)", "UPDATE orders SET customer = 'x'",
            "DELETE FROM orders WHERE id = 1", "UPDATE orders SET id = 9", "COMMIT",
        )  # fmt: skip
        running.reach(file.position())
        table(file, running)
    events = running.written.events("main.orders")
    assert [e["op"] for e in events] == ["r", "c", "u", "u", "d", "d", "c"]
    assert events[2]["before"] == {"id": 1, "customer": "copied", "amount": 1.0}
    assert events[1]["source"]["connector"] == "sqlite"
    running.written.check()


def test_every_value_is_kept_exactly(file: File, capture: Any) -> None:
    file.run("CREATE TABLE v (id INTEGER PRIMARY KEY, x)")
    values = [
        0.1 + 0.2, 1e300, 5e-324, -0.0, 2**63 - 1, -(2**63), "é☃😀\n\"", "", b"\x00\xff", b"", None,
        1.0, 12345678901234567.0, float("inf"),
    ]  # fmt: skip
    with capture() as running:
        running.copied()
        for i, value in enumerate(values):
            file.connection.execute("INSERT INTO v VALUES (?, ?)", [i, value])
        running.reach(file.position())
    found = {row["id"]: row["x"] for row in running.written.table("main.v")}
    assert found[0] == 0.1 + 0.2
    assert [type(found[i]) for i in (0, 4, 6, 8, 10)] == [float, int, str, str, type(None)]
    assert found[8] == "AP8="
    assert found[13] == "Infinity"
    for i in (1, 2, 3, 4, 5, 6, 7, 11, 12):
        assert found[i] == values[i]


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
def test_replace_deletes_what_was_in_its_way(file: File, capture: Any, recursive: str) -> None:
    # With recursive triggers the delete triggers fire, too; neither may be told twice.
    file.run(f"PRAGMA recursive_triggers = {recursive}")
    file.run("CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT UNIQUE, name TEXT)")
    with capture() as running:
        running.copied()
        file.run(
            "INSERT INTO users VALUES (1, 'a', 'A'), (2, 'b', 'B'), (3, 'c', 'C')",
            "INSERT OR REPLACE INTO users VALUES (1, 'a', 'A2')",
            "INSERT OR REPLACE INTO users VALUES (4, 'b', 'takes the place of 2')",
            "INSERT OR IGNORE INTO users VALUES (5, 'c', 'ignored')",
            "UPDATE OR REPLACE users SET email = 'c' WHERE id = 1",
            "INSERT OR REPLACE INTO users VALUES (2, 'c', 'back again')",
            "REPLACE INTO users VALUES (9, 'c', 'last')",
        )
        running.reach(file.position())
        table(file, running, "users")
    running.written.check()


def test_rows_written_right_after_an_added_column_are_whole(file: File, capture: Any) -> None:
    file.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 2)")
    with capture() as running:
        running.copied()
        file.run(
            "BEGIN", "ALTER TABLE orders ADD COLUMN note TEXT",
            "INSERT INTO orders VALUES (3, 'c', 3, 'new')",
            "UPDATE orders SET note = 'changed' WHERE id = 1", "COMMIT",
        )  # fmt: skip
        running.until(lambda: running.written.table("main.orders")[-1].get("note") == "new")
        file.run("UPDATE orders SET note = 'later' WHERE id = 2")
        running.reach(file.position())
    rows = {row["id"]: row.get("note") for row in running.written.table("main.orders")}
    assert rows == {1: "changed", 2: "later", 3: "new"}
    running.written.check()


def test_a_column_can_be_dropped_and_renamed(file: File, capture: Any, shared: Any) -> None:
    file.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture() as running:
        running.copied()
        alter(str(file.path), "ALTER TABLE orders DROP COLUMN amount", "orders")
        file.run("INSERT INTO orders (id, customer) VALUES (2, 'b')")
        alter(str(file.path), "ALTER TABLE orders RENAME COLUMN customer TO who", "orders")
        file.run("INSERT INTO orders (id, who) VALUES (3, 'c')")
        running.reach(file.position())
    assert [e["after"] for e in running.written.events("main.orders")] == [
        {"id": 1, "customer": "a", "amount": 1.0}, {"id": 2, "customer": "b"}, {"id": 3, "who": "c"},
    ]  # fmt: skip
    versions = [orjson.loads(v)["version"] for v in shared.values("shop.schemas")]
    assert versions == [1, 2, 3]
    running.written.check()


def test_given_keys_are_copied_again_and_absent_ones_deleted(
    file: File, capture: Any, shared: Any
) -> None:
    file.run(ORDERS, *[f"INSERT INTO orders VALUES ({i}, 'x', 1)" for i in range(200)])
    with capture() as running:
        running.copied()
        before = len(running.written.events("main.orders"))
        snapshot(SQLite("shop", str(file.path)), "orders", keys=[5, "150", 999])
        running.until(lambda: len(running.written.events("main.orders")) == before + 3)
    news = running.written.events("main.orders")[before:]
    assert [(e["op"], (e["after"] or e["before"])["id"]) for e in news] == [
        ("r", 5), ("r", 150), ("d", 999),
    ]  # fmt: skip
    running.written.check()


def test_a_changed_declaration_is_noticed_and_the_table_read_again(
    file: File, capture: Any
) -> None:
    file.run(ORDERS, *[f"INSERT INTO orders VALUES ({i}, 'x', 1)" for i in range(150)])
    with capture() as running:
        running.copied()
    with capture(mask={"orders": {"customer": "redact"}}) as running:
        running.until(
            lambda: {r["customer"] for r in running.written.table("main.orders")} == {"***"}
        )
    assert len(running.written.events("main.orders")) == 300
    running.written.check()


def test_a_column_renamed_in_the_users_own_way(file: File, capture: Any, shared: Any) -> None:
    file.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture() as running:
        running.copied()
        file.run(
            "ALTER TABLE orders RENAME COLUMN customer TO who",
            "INSERT INTO orders (id, who) VALUES (2, 'b')", "UPDATE orders SET who = 'z'",
        )  # fmt: skip
        running.until(lambda: {r.get("who") for r in running.written.table("main.orders")} == {"z"})
        file.run("DELETE FROM orders WHERE id = 1")
        running.reach(file.position())
        table(file, running)
    running.written.check()


def test_a_column_is_dropped_on_the_command_line(file: File, capture: Any, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from tailrace.cli.source import source
    from tailrace.sources.errors import SourceDeclarationError

    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.py").write_text(
        f"from tailrace import sources\nshop = sources.SQLite('shop', {str(file.path)!r})\n"
    )

    def call(statement: str) -> Any:
        return CliRunner().invoke(source, ["alter", "shop", statement, "--log", str(tmp_path)])

    file.run(ORDERS, "INSERT INTO orders VALUES (1, 'a', 1)")
    with capture() as running:
        running.copied()
        with pytest.raises(sqlite3.OperationalError):
            file.run("ALTER TABLE orders DROP COLUMN amount")
        assert call('alter table "Orders" drop column amount').exit_code == 0
        file.run("INSERT INTO orders (id, customer) VALUES (2, 'b')")
        running.reach(file.position())
        assert running.written.events("main.orders")[-1]["after"] == {"id": 2, "customer": "b"}
        for wrong in ("DELETE FROM orders", "ALTER TABLE orders DROP COLUMN nothing"):
            assert isinstance(call(wrong).exception, SourceDeclarationError)
        file.run("INSERT INTO orders (id, customer) VALUES (3, 'c')")
        running.reach(file.position())
        assert running.written.events("main.orders")[-1]["after"] == {"id": 3, "customer": "c"}
    running.written.check()


def test_a_new_table_is_captured(file: File, capture: Any) -> None:
    file.run(ORDERS)
    with capture(exclude=["secret"]) as running:
        running.copied()
        file.run(
            "CREATE TABLE later (id INTEGER PRIMARY KEY)", "INSERT INTO later VALUES (1)",
            "CREATE TABLE secret (id INTEGER PRIMARY KEY)", "INSERT INTO secret VALUES (1)",
        )  # fmt: skip
        running.until(lambda: len(running.written.events("main.later")) == 1)
        file.run("INSERT INTO later VALUES (2)")
        running.until(lambda: len(running.written.events("main.later")) == 2)
    assert running.written.events("main.secret") == []
    running.written.check()


@pytest.mark.parametrize("running_then", [True, False], ids=["while running", "while stopped"])
def test_a_table_made_anew_under_its_name_is_compared_with_the_log(
    file: File, capture: Any, running_then: bool
) -> None:
    """The way SQLite's own documentation changes a table: build another, swap the two."""
    file.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT)",
        # Its triggers must not be taken for those of the other.
        "CREATE TABLE orders_lines (id INTEGER PRIMARY KEY)",
        "INSERT INTO orders VALUES (1, 'same'), (2, 'changes'), (3, 'goes')",
    )
    swap = (
        "BEGIN", "CREATE TABLE made (id INTEGER PRIMARY KEY, customer TEXT, amount REAL)",
        "INSERT INTO made VALUES (1, 'same', NULL), (2, 'changed', 2), (7, 'comes', 7)",
        "DROP TABLE orders", "ALTER TABLE made RENAME TO orders", "COMMIT",
    )  # fmt: skip

    def compared() -> bool:
        return {r["id"] for r in running.written.table("main.orders")} == {1, 2, 7}

    with capture() as running:
        running.copied()
        if running_then:
            file.run(*swap)
            running.until(compared)
    if not running_then:
        file.run(*swap)
    with capture() as running:
        running.until(compared)
        file.run("INSERT INTO orders VALUES (8, 'streamed', 8)", "DELETE FROM orders WHERE id = 1")
        running.reach(file.position())
    table(file, running)
    running.written.check()


def test_a_renamed_table_goes_on_under_its_new_name_alone(file: File, capture: Any) -> None:
    file.run(ORDERS, "INSERT INTO orders VALUES (1, 'x', 1)")
    with capture() as running:
        running.copied()
        file.run("ALTER TABLE orders RENAME TO sales")
        running.until(lambda: len(running.written.events("main.sales")) == 1)
        file.run("INSERT INTO sales VALUES (2, 'y', 2)")
        running.reach(file.position())
        running.until(lambda: len(running.written.events("main.sales")) == 2)
    assert len(running.written.events("main.orders")) == 1
    table(file, running, "sales")
    running.written.check()


def test_a_dropped_table_is_told_and_the_others_go_on(file: File, capture: Any) -> None:
    file.run(ORDERS, "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    for statement in ("DROP TABLE orders", "INSERT INTO notes VALUES (2)"):
        with capture(tables=["orders", "notes"]) as running:
            running.copied()
            file.run(statement, "INSERT INTO notes (id) SELECT 10 + count(*) FROM notes")
            running.until(lambda: told(running) == ("lagging", "table-missing"))
            running.reach(file.position())
    table(file, running, "notes")


def told(running: Running) -> tuple[object, object]:
    """State and error code that the source reports."""
    (report,) = read_reports(running.part.directory)
    error = report["error"]
    return report["state"], error["code"] if isinstance(error, dict) else error


def test_tables_that_belong_to_a_virtual_one_are_left_alone(file: File, capture: Any) -> None:
    """A trigger on one of them crashes the application that writes."""
    try:
        file.run("CREATE VIRTUAL TABLE words USING fts5(body)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no full-text search")
    file.run(ORDERS, "INSERT INTO words VALUES ('one')")
    # As an earlier version left it.
    change_table.prepare(file.connection)
    file.run("CREATE TRIGGER _tailrace_words_data_delete AFTER DELETE ON words_data BEGIN SELECT 1; END")  # fmt: skip
    with capture() as running:
        running.copied()
        file.run("INSERT INTO words VALUES ('two')", "INSERT INTO orders VALUES (1, 'x', 1)")
        running.reach(file.position())
    assert file.rows("SELECT body FROM words WHERE words MATCH 'two'") == [("two",)]
    assert file.rows("SELECT 1 FROM sqlite_schema WHERE tbl_name LIKE 'words%' AND type = 'trigger'") == []  # fmt: skip
    assert [t for t in running.written.shared.topics if "words" in t] == []


def test_several_processes_write(file: File, capture: Any) -> None:
    file.run(ORDERS)
    script = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)\n"
        "for i in range(60):\n"
        "    c.execute('BEGIN IMMEDIATE')\n"
        "    c.execute('INSERT INTO orders VALUES (?, ?, ?)', [int(sys.argv[2]) * 1000 + i, 'p', i])\n"
        "    c.execute('UPDATE orders SET amount = amount + 1 WHERE id % 7 = ?', [i % 7])\n"
        "    c.execute('COMMIT')\n"
    )
    with capture() as running:
        running.copied()
        writers = [
            subprocess.Popen([sys.executable, "-c", script, str(file.path), str(n)])
            for n in range(3)
        ]
        assert [writer.wait(60) for writer in writers] == [0, 0, 0]
        running.reach(file.position())
        table(file, running)
    running.written.check()


def test_the_change_table_is_trimmed(file: File, capture: Any) -> None:
    file.run(ORDERS)
    with capture() as running:
        running.copied()
        file.run(*[f"INSERT INTO orders VALUES ({i}, 'x', 1)" for i in range(200)])
        running.reach(file.position())
        running.until(lambda: file.rows("SELECT count(*) FROM _tailrace_changes") == [(0,)])
    with capture() as running:
        file.run("INSERT INTO orders VALUES (1000, 'x', 1)")
        running.reach(file.position())
        table(file, running)
    running.written.check()


def test_a_large_transaction_is_split_and_goes_on_after_a_crash(
    file: File, capture: Any, shared: Any
) -> None:
    file.run(ORDERS)
    with capture() as running:
        running.copied()
    file.run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
             "INSERT INTO orders SELECT i, 'big', i FROM n")  # fmt: skip
    for _ in range(2):
        # Each run ends at its second commit, inside the transaction.
        running = capture(fail_after=2)
        with pytest.raises(ConnectionError):
            running.until(lambda: False)
        running.stop()
    assert running.written.notes()[-1]["status"] == "PART"
    with capture() as running:
        running.reach(file.position())
        table(file, running)
    running.written.check()


def test_rows_told_during_a_first_copy_that_a_backup_lacks_are_deleted(
    file: File, capture: Any, tmp_path: Path
) -> None:
    def partly() -> Running:
        running: Running = capture(replace(SMALL_SQLITE, chunk_rows=2), fail_after=5)
        with pytest.raises(ConnectionError):
            running.until(lambda: False)
        running.stop()
        return running

    rows = ", ".join(f"({i}, 'x', 1)" for i in range(400))
    file.run(ORDERS, f"INSERT INTO orders VALUES {rows}")
    partly()
    backup = sqlite3.connect(tmp_path / "backup.db")
    file.connection.backup(backup)
    file.run("INSERT INTO orders VALUES (999, 'y', 1)")
    told = {row["id"] for row in partly().written.table("main.orders")}
    assert 999 in told
    assert len(told) < 401
    backup.backup(file.connection)
    backup.close()
    with capture() as running:
        running.until(lambda: running.written.notes("CUT")[-1]["epoch"] == 2)
        running.copied()
        table(file, running)
    running.written.check()


def test_a_file_put_back_from_a_backup_is_compared(
    file: File, capture: Any, tmp_path: Path
) -> None:
    file.run(ORDERS, *[f"INSERT INTO orders VALUES ({i}, 'x', 1)" for i in range(250)])
    with capture() as running:
        running.copied()
    backup = sqlite3.connect(tmp_path / "backup.db")
    file.connection.backup(backup)
    backup.close()
    with capture() as running:
        file.run("DELETE FROM orders WHERE id < 5", "INSERT INTO orders VALUES (999, 'y', 1)",
                 "UPDATE orders SET customer = 'z' WHERE id = 100")  # fmt: skip
        running.reach(file.position())
    before = len(running.written.events("main.orders"))
    restored = sqlite3.connect(tmp_path / "backup.db")
    restored.backup(file.connection)
    restored.close()
    with capture() as running:
        running.until(lambda: running.written.notes("CUT")[-1]["epoch"] == 2)
        running.until(lambda: len(running.written.table("main.orders")) == 250)
        file.run("INSERT INTO orders VALUES (5000, 'after', 1)")
        running.reach(file.position())
        table(file, running)
    assert len(running.written.events("main.orders")) - before == 8
    running.written.check()


def test_a_table_without_key_has_no_record_keys(file: File, capture: Any, shared: Any) -> None:
    file.run("CREATE TABLE lines (at INT, what TEXT)", "INSERT INTO lines VALUES (1, 'old')")
    with capture() as running:
        running.copied()
        file.run("INSERT INTO lines VALUES (2, 'new')", "DELETE FROM lines WHERE at = 1")
        running.reach(file.position())
    assert {r.key for r in shared.records("shop.main.lines")} == {None}
    assert [e["op"] for e in running.written.events("main.lines")] == ["r", "c", "d"]


def bag(file: File, shared: Any, table: str) -> None:
    """The topic of a table without a key alone gives its rows."""
    cursor = file.connection.execute(f"SELECT * FROM {table}")
    columns = [column[0] for column in cursor.description]
    rows = bag_of(dict(zip(columns, row, strict=True)) for row in cursor)
    assert rebuild_bag(shared.topics[f"shop.main.{table}"][0]) == rows


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.parametrize("hidden", [False, True])
def test_replace_in_a_table_without_key(
    file: File, capture: Any, shared: Any, recursive: str, hidden: bool
) -> None:
    numbered = ", rowid INT, oid INT, _rowid_ INT" if hidden else ""
    file.run(
        f"CREATE TABLE lines (a INT, b TEXT COLLATE NOCASE, c TEXT{numbered}, UNIQUE (a), UNIQUE (b, c))",
        "INSERT INTO lines (a, b, c) VALUES (1, 'x', 'old'), (2, 'y', 'old'), (3, 'z', 'old'), (NULL, 'n', 'n')",
        f"PRAGMA recursive_triggers = {recursive}",
    )
    with capture() as running:
        running.copied()
        file.run(
            "REPLACE INTO lines (a, b, c) VALUES (1, 'new', 'x')",
            "INSERT OR IGNORE INTO lines (a, b, c) VALUES (2, 'ignored', 'x')",
            "INSERT INTO lines (a, b, c) VALUES (3, 'z', 'x') ON CONFLICT (a) DO UPDATE SET c = 'updated'",
            "REPLACE INTO lines (a, b, c) VALUES (NULL, 'n', 'n')",
            "REPLACE INTO lines (a, b, c) VALUES (4, 'Y', 'OLD')",
        )
        running.reach(file.position())
        bag(file, shared, "lines")
        file.run(
            "BEGIN",
            "INSERT OR IGNORE INTO lines (a, b, c) VALUES (4, 'no', 'x')",
            "REPLACE INTO lines (a, b, c) VALUES (4, 'one', 'x'), (4, 'two', 'x')",
            "UPDATE OR REPLACE lines SET a = 4 WHERE a = 3",
            "UPDATE OR IGNORE lines SET a = 4 WHERE a = 1",
            "UPDATE lines SET c = 'same' WHERE a = 4",
            "REPLACE INTO lines (a, b, c) VALUES (4, 'Z', 'same')",
            "COMMIT",
            "REPLACE INTO lines (a, b, c) VALUES (NULL, 'Q', 'Q'), (NULL, 'q', 'Q')",
        )
        running.reach(file.position())
        bag(file, shared, "lines")


def test_a_key_that_differs_by_case_alone_is_another_key(file: File, capture: Any) -> None:
    file.run(
        "CREATE TABLE words (w TEXT COLLATE NOCASE PRIMARY KEY, n INT)",
        "INSERT INTO words VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4)",
    )
    with capture() as running:
        running.copied()
        file.run(
            "REPLACE INTO words VALUES ('A', 10)",
            "INSERT OR IGNORE INTO words VALUES ('B', 20)",
            "INSERT INTO words VALUES ('C', 30) ON CONFLICT (w) DO UPDATE SET n = 31",
            "REPLACE INTO words VALUES ('d', 40)",
            "UPDATE words SET w = 'D' WHERE w = 'd'",
        )
        running.reach(file.position())
        table(file, running, "words")


def test_triggers_of_an_earlier_version_are_completed(
    file: File, capture: Any, shared: Any
) -> None:
    file.run("CREATE TABLE lines (a INT UNIQUE, b TEXT)", "INSERT INTO lines VALUES (1, 'x')")
    with capture() as running:
        running.copied()
    file.run("DROP TRIGGER _tailrace_lines_replace", "DROP TRIGGER _tailrace_lines_replace_update")
    with capture() as running:
        running.until(lambda: bool(file.rows("SELECT 1 FROM sqlite_schema WHERE name = '_tailrace_lines_replace'")))  # fmt: skip
        file.run("REPLACE INTO lines VALUES (1, 'y')")
        running.reach(file.position())
    bag(file, shared, "lines")


def test_an_altered_table_without_key_is_copied_with_what_changed_meanwhile(
    file: File, capture: Any, shared: Any
) -> None:
    """Between an ALTER TABLE and the renewal of its triggers rows are told without the column:
    nobody may see them without the copy."""
    file.run(
        "CREATE TABLE lines (a INT, b TEXT)",
        "INSERT INTO lines VALUES (1, 'x'), (1, 'x'), (2, 'y')",
    )
    with capture() as running:
        running.copied()
    file.run(
        "ALTER TABLE lines ADD COLUMN c INT DEFAULT 7",
        "UPDATE lines SET c = 8 WHERE a = 2",
        "INSERT INTO lines VALUES (3, 'z', 9)",
        "DELETE FROM lines WHERE rowid = 1",
    )
    with capture() as running:
        running.reach(file.position())
        running.until(lambda: "t" in [e["op"] for e in running.written.events("main.lines")])
        file.run("ALTER TABLE lines RENAME COLUMN b TO d", "DELETE FROM lines WHERE a = 2")
        running.until(lambda: [e["op"] for e in running.written.events("main.lines")].count("t") == 2)  # fmt: skip
        running.reach(file.position())
    bag(file, shared, "lines")


def test_a_condition_for_a_table_without_key_is_refused(file: File, capture: Any) -> None:
    file.run("CREATE TABLE lines (a INT)")
    with capture() as running:
        running.copied()
        with pytest.raises(SnapshotRequestError, match="no primary key"):
            snapshot(SQLite("shop", str(file.path)), "lines", where="a > 1")


@given(
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.none()
)
def test_values_round_trip_through_json(value: Any) -> None:
    found = orjson.loads(to_json(value))
    assert found == value
    assert type(found) is type(value)


@given(st.lists(st.integers() | st.text() | st.binary()))
def test_keys_round_trip_through_the_progress_record(values: list[Any]) -> None:
    assert thaw(
        orjson.loads(
            orjson.dumps(freeze([v for v in values if not isinstance(v, int) or abs(v) < 2**63]))
        )
    ) == [v for v in values if not isinstance(v, int) or abs(v) < 2**63]


def test_the_time_from_a_commit_to_the_log_is_measured(file: File, capture: Any) -> None:
    file.run(ORDERS)
    told: list[int] = []

    def measured() -> bool:
        file.run("INSERT INTO orders (customer) VALUES ('a')")
        told.extend(report["freshness_ms"] for report in read_reports(running.part.directory))
        return any(told)

    with capture() as running:
        running.copied()
        running.until(measured)
        running.reach(file.position())
        # nothing comes any more: nothing is late
        running.until(lambda: read_reports(running.part.directory)[0]["freshness_ms"] == 0)
