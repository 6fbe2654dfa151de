"""What a binlog leaves out, packs or takes away: nothing is lost, and nothing told twice."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace

import orjson
import pymysql
import pytest

from servers.binlog import SMALL_MYSQL, MySQLCase
from servers.capture import Running
from tailrace.sources import MySQL
from tailrace.sources.doctor import examine
from tailrace.sources.errors import (
    BinlogSettingsError,
    PrivilegeError,
    ReplicationRefusedError,
    ServerUnreachableError,
)
from tailrace.sources.mysql.address import parse_address
from tailrace.sources.mysql.server import Server, connect
from tailrace.sources.mysql.stream import BinlogStream

Make = Callable[..., MySQLCase]
ITEMS = "CREATE TABLE items (id INT PRIMARY KEY, name TEXT, amount INT)"


def settle(case: MySQLCase, running: Running) -> None:
    running.reach(case.position())
    running.until(lambda: not running.part._facts.get("copying"))
    running.reach(case.position())


def same(case: MySQLCase, running: Running, *tables: str) -> None:
    """Every table, rebuilt from its topic, is the table."""
    for table in tables or ("items",):
        names = case.columns(table)
        expected = {tuple(row) for row in case.rows(f"SELECT * FROM {table}")}
        found = running.written.table(f"{case.schema}.{table}")
        assert {tuple(row.get(name) for name in names) for row in found} == expected
        assert len(found) == len(expected)
    running.written.check()


def until_same(case: MySQLCase, running: Running, *tables: str) -> None:
    def equal() -> bool:
        try:
            same(case, running, *tables)
        except AssertionError:
            return False
        return True

    running.until(equal)
    same(case, running, *tables)


def many(first: int, count: int) -> str:
    rows = ", ".join(f"({i}, 'row {i} of a transaction', {i})" for i in range(first, first + count))
    return f"INSERT INTO items VALUES {rows}"


def test_large_and_packed_transactions_are_whole_over_restarts(binlog_case: Make) -> None:
    case = binlog_case("items")
    case.execute(ITEMS)
    if case.server.mariadb:
        case.execute("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
    else:
        case.execute("SET SESSION binlog_transaction_compression = ON")
    for attempt in range(4):
        try:
            with case.capture(fail_after=2 + attempt) as running:
                statements = "; ".join(many(1000 * attempt + 100 * n, 100) for n in range(9))
                case.execute(f"BEGIN; {statements}; COMMIT", "UPDATE items SET amount = amount + 1")
                settle(case, running)
        except ConnectionError:
            continue
    with case.capture() as running:
        settle(case, running)
    if case.server.mariadb:
        case.execute("SET GLOBAL log_bin_compress = OFF")
    same(case, running)


def test_truncate_rename_and_tables_made_anew(binlog_case: Make) -> None:
    case = binlog_case("items")
    case.execute(ITEMS, many(1, 150))
    with case.capture() as running:
        running.copied()
        case.execute("TRUNCATE TABLE items", many(100, 20))
        settle(case, running)
        same(case, running)
        case.execute(
            "CREATE TABLE next LIKE items", "INSERT INTO next VALUES (1, 'other', 2), (100, 'x', 0)",
            "RENAME TABLE items TO old, next TO items", "INSERT INTO items VALUES (7, 'new', 1)",
        )  # fmt: skip
        until_same(case, running)
        case.execute("DROP TABLE items", ITEMS, many(5, 5))
        until_same(case, running)
        case.execute("ALTER TABLE items ADD COLUMN note INT DEFAULT 4, ALGORITHM=COPY")
        until_same(case, running)
        case.execute(
            "ALTER TABLE items MODIFY COLUMN note BIGINT FIRST", "UPDATE items SET note = 1"
        )
        until_same(case, running)
    assert running.written.notes("TRUNCATE")[0]["table"] == f"{case.schema}.items"


def test_what_sessions_leave_out_of_the_binlog_is_read_again(binlog_case: Make) -> None:
    case = binlog_case("items")
    case.execute(ITEMS, many(1, 150))
    with case.capture() as running:
        running.copied()
        case.execute("SET SESSION binlog_row_image = MINIMAL")
        case.execute(
            "UPDATE items SET amount = -1 WHERE id < 20", "DELETE FROM items WHERE id > 140"
        )
        until_same(case, running)
        case.execute(
            "SET SESSION binlog_row_image = NOBLOB", "UPDATE items SET amount = 9 WHERE id = 3"
        )
        until_same(case, running)
        case.execute("SET SESSION binlog_row_image = FULL", "SET SESSION binlog_format = STATEMENT")
        case.execute("UPDATE items SET name = 'by statement' WHERE id < 50")
        until_same(case, running)
        running.until(lambda: "binlog-statement" in running.part._facts.get("alarms", ()))
        case.execute(
            "SET SESSION binlog_format = ROW", "UPDATE items SET name = 'row' WHERE id < 9"
        )
        until_same(case, running)


def test_a_prepared_transaction_counts_when_it_is_committed(binlog_case: Make) -> None:
    case = binlog_case("items")
    case.execute(ITEMS)
    with case.capture() as running:
        running.copied()
        case.execute("XA START 'a'", many(1, 5), "XA END 'a'", "XA PREPARE 'a'")
        with case.beside() as other:
            other.execute("INSERT INTO items VALUES (100, 'meanwhile', 1)")
        settle(case, running)
        assert len(running.written.table(f"{case.schema}.items")) == 1
    with case.capture() as running:
        settle(case, running)
        case.execute("XA COMMIT 'a'")
        case.execute("XA START 'b'", many(50, 5), "XA END 'b'", "XA PREPARE 'b'", "XA ROLLBACK 'b'")
        settle(case, running)
        same(case, running)
        assert len(running.written.table(f"{case.schema}.items")) == 6


def test_rows_that_foreign_keys_change_arrive(binlog_case: Make) -> None:
    case = binlog_case("items", "children", "grandchildren")
    case.execute(
        "CREATE TABLE parents (id INT PRIMARY KEY)",
        ITEMS.replace("items", "items").replace(
            "amount INT",
            "amount INT, FOREIGN KEY (amount) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE",
        ),
        "CREATE TABLE children (id INT PRIMARY KEY, item INT, FOREIGN KEY (item) REFERENCES items (id) ON DELETE CASCADE)",
        "CREATE TABLE grandchildren (id INT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES children (id) ON DELETE SET NULL)",
        "INSERT INTO parents VALUES (1), (2), (3)",
        "INSERT INTO items VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        "INSERT INTO children VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO grandchildren VALUES (1, 1), (2, 2), (3, 3)",
    )
    tables = ("items", "children", "grandchildren")
    with case.capture() as running:
        running.copied()
        case.execute("DELETE FROM items WHERE id = 1")
        until_same(case, running, *tables)
        case.execute("DELETE FROM parents WHERE id = 2", "UPDATE parents SET id = 9 WHERE id = 3")
        until_same(case, running, *tables)


def test_a_purged_binlog_is_followed_by_a_comparison(binlog_case: Make) -> None:
    case = binlog_case("items")
    case.execute(ITEMS, many(1, 150))
    with case.capture() as running:
        settle(case, running)
    case.execute("DELETE FROM items WHERE id < 10", "UPDATE items SET amount = 0 WHERE id = 20")
    case.execute("FLUSH BINARY LOGS")
    last = case.rows("SHOW BINARY LOGS")[-1][0]
    while case.rows("SHOW BINARY LOGS")[0][0] != last:  # the server may not have noticed yet
        case.execute(f"PURGE BINARY LOGS TO '{last}'")
        time.sleep(0.05)
    with case.capture() as running:
        until_same(case, running)
        case.execute(many(1, 5))
        until_same(case, running)
    assert {cut["epoch"] for cut in running.written.notes("CUT")} == {1, 2}


def test_masks_columns_outbox_and_copies_that_were_asked_for(binlog_case: Make) -> None:
    from tailrace.sources import Outbox
    from tailrace.sources.control import ask_for_snapshot

    case = binlog_case(
        "items", "outbox", columns={"items": ["name"]}, mask={"items": {"name": "redact"}},
        outbox=Outbox("outbox", type="kind", key="entity", payload="body"),
    )  # fmt: skip
    case.execute(
        ITEMS, many(1, 3),
        "CREATE TABLE outbox (id INT PRIMARY KEY, kind TEXT, entity TEXT, body TEXT)",
    )  # fmt: skip
    with case.capture() as running:
        running.copied()
        case.execute("INSERT INTO outbox VALUES (1, 'order', '17', 'payload')", many(4, 1))
        settle(case, running)
        ask_for_snapshot(case.source, "items", None, [2, "99"])
        settle(case, running)
        ask_for_snapshot(case.source, "items", "id = 3")
        settle(case, running)
    table = running.written.table(f"{case.schema}.items")
    assert table == [{"id": n, "name": "***"} for n in (1, 2, 3, 4)]
    assert running.written.shared.values("order.events") == [b"payload"]


def test_settings_that_lose_something_are_refused_and_repaired_by_the_doctor(
    binlog_case: Make,
) -> None:
    case = binlog_case("items")
    case.execute(ITEMS)
    weak = "NO_LOG" if case.server.mariadb else "MINIMAL"
    case.execute(f"SET GLOBAL binlog_row_metadata = '{weak}'")
    try:
        with pytest.raises(BinlogSettingsError) as refused, case.capture() as running:
            running.copied()
        findings = [finding for finding in examine(case.source) if finding.state == "bad"]
        assert [finding.hint for finding in findings] == [refused.value.hint]
        case.execute(str(refused.value.hint).rstrip(";"))
    finally:
        case.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
    assert not [finding for finding in examine(case.source) if finding.state == "bad"]


DOCUMENTS = """CREATE TABLE documents (id INT PRIMARY KEY, doc JSON, n INT, other JSON)"""
CHANGES = (
    "doc = JSON_SET(doc, '$.a', 5)", "doc = JSON_SET(doc, '$.bb', JSON_OBJECT('x', 1.50))",
    "doc = JSON_REPLACE(doc, '$.list[1]', 'zwölf')", "doc = JSON_REMOVE(doc, '$.list[0]')",
    "doc = JSON_SET(doc, '$.\"a b\"', CAST('null' AS JSON)), n = n + 1",
    "doc = JSON_ARRAY_INSERT(doc, '$.list[1]', TRUE)", "doc = JSON_REMOVE(doc, '$.bb.x')",
    "doc = JSON_REMOVE(doc, '$.a'), other = JSON_SET(other, '$[0].z', 1, '$[0].y', 2)",
    "other = JSON_SET(other, '$.gone', 1)", "doc = NULL", "doc = '{}', other = doc",
)  # fmt: skip


def test_json_that_is_told_by_its_changes_is_patched(binlog_case: Make) -> None:
    case = binlog_case("documents")
    if case.server.mariadb:
        pytest.skip("MariaDB has no partial updates of JSON")
    case.execute(DOCUMENTS)
    # Only values that are long beside their change are told by it.
    pad = "p" * 200
    document = f'{{"list": ["{pad}", "ä", {{"deep": 1}}], "a": "{pad}", "long": "{pad}{pad}"}}'
    for number in (1, 2):
        case.execute(f"INSERT INTO documents VALUES ({number}, '{document}', 1, '[{document}]')")
    with case.capture() as running:
        running.copied()
        case.execute("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
        for change in CHANGES:
            case.execute(f"UPDATE documents SET {change}")
            settle(case, running)
            expected = {
                row[0]: [None if one is None else orjson.loads(one) for one in row[1:]]
                for row in case.rows(
                    "SELECT id, CAST(doc AS CHAR), CAST(other AS CHAR) FROM documents"
                )
            }
            found = running.written.table(f"{case.schema}.documents")
            assert {row["id"]: [row["doc"], row["other"]] for row in found} == expected, change
        assert not running.part._facts.get("alarms")
    running.written.check()
    [(file, *_)] = case.rows("SHOW BINARY LOG STATUS")
    told = [row[2] for row in case.rows(f"SHOW BINLOG EVENTS IN '{file}'")]
    assert told.count("Update_rows_partial") >= 8


def test_a_number_that_another_replica_takes_is_named(binlog_case: Make) -> None:
    case = binlog_case("items", server_id=987_654)
    case.execute(ITEMS, many(1, 10))
    with case.capture() as running:
        running.copied()
        other = Server.ask(connect(parse_address("other", case.address), 0))
        file, position = other.end()
        known = other.state_at(file, position) if other.mariadb else other.executed()
        name = f"{running.part.project}/{case.source.name}"  # MySQL tells replicas apart by it
        thief = BinlogStream(other, 987_654, name, file, position, known, 1.0)
        with pytest.raises(ReplicationRefusedError) as told:
            running.until(lambda: False)
        thief.close()
        running.error = None
    assert "server_id=" in told.value.hint
    assert told.value.detail


def test_a_server_that_was_reset_is_compared(binlog_case: Make) -> None:
    case = binlog_case("items")
    case.execute(ITEMS, many(1, 150))
    with case.capture() as running:
        running.copied()
    case.execute("DELETE FROM items WHERE id < 20")
    case.execute("RESET MASTER" if case.server.mariadb else "RESET BINARY LOGS AND GTIDS")
    case.execute("INSERT INTO items VALUES (1000, 'after', 1)")
    with case.capture() as running:
        until_same(case, running)
        case.execute("UPDATE items SET amount = 0 WHERE id > 100")
        until_same(case, running)


@pytest.mark.thorough
def test_a_row_larger_than_a_packet_arrives(binlog_case: Make) -> None:
    case = binlog_case("blobs")
    case.execute("SET GLOBAL max_allowed_packet = 67108864")
    case.connection.close()
    case.connection = case.server.connect(case.schema)  # it has the limit of its beginning
    case.execute("CREATE TABLE blobs (id INT PRIMARY KEY, data LONGTEXT)")
    with case.capture() as running:
        running.copied()
        for size in ((1 << 24) - 100, (1 << 24) + 10, 33_600_000):
            case.execute(f"REPLACE INTO blobs VALUES (1, REPEAT('x', {size}))")
            settle(case, running)
            [row] = running.written.table(f"{case.schema}.blobs")
            assert len(row["data"]) == size


@pytest.mark.parametrize("granted", ["SELECT", "SELECT, REPLICATION CLIENT"])
def test_a_user_who_may_not_read_the_binlog_is_told_the_grant(binlog_case: Make, granted: str) -> None:  # fmt: skip
    case = binlog_case("items")
    case.execute(ITEMS)
    user = f"u{len(granted)}_{case.schema}"
    if case.server.mariadb:
        granted = granted.replace("CLIENT", "CLIENT, BINLOG MONITOR")
    case.execute(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'word'")
    case.execute(f"GRANT {granted} ON *.* TO {user}@'127.0.0.1'")
    case.address = case.address.replace("root@", f"{user}:word@")
    with case.capture() as running:
        with pytest.raises(PrivilegeError) as told:
            running.until(lambda: False)
        running.error = None
    assert "REPLICATION SLAVE" in told.value.hint
    assert user in told.value.detail or "privilege" in told.value.detail.lower()
    case.execute(f"DROP USER {user}@'127.0.0.1'")


def test_a_commit_that_is_streamed_before_it_is_seen_is_not_overwritten_by_the_copy(binlog_case: Make) -> None:  # fmt: skip
    """Semi-synchronous replication makes the moment between the binlog and visibility long: the
    first copy reads the old row, and the new one is in the log all the same."""
    case = binlog_case("items")
    word = "master" if case.server.mariadb else "source"
    if not case.server.mariadb:
        try:
            case.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
        except pymysql.MySQLError:
            pytest.skip("this MySQL came without its plugin for semi-synchronous replication")
    case.execute(ITEMS, many(1, 150))
    with closing(case.server.connect(case.schema)) as other:
        for setting in (f"{word}_timeout = 60000", f"{word}_wait_point = AFTER_SYNC", f"{word}_enabled = ON"):  # fmt: skip
            case.execute(f"SET GLOBAL rpl_semi_sync_{setting}")
        change = "UPDATE items SET name = 'new' WHERE id = 5"
        waiting = threading.Thread(target=lambda: other.cursor().execute(change))
        waiting.start()
        try:
            stuck = f"SELECT count(*) FROM information_schema.processlist WHERE info = \"{change}\" AND state LIKE '%semi%'"  # fmt: skip
            deadline = time.monotonic() + 20
            while not case.rows(stuck)[0][0]:
                assert time.monotonic() < deadline, case.rows("SHOW FULL PROCESSLIST")
                time.sleep(0.02)
            with case.capture() as running:
                time.sleep(1)  # the copy reads; that it may not end before the commit is no fault
                assert case.rows("SELECT name FROM items WHERE id = 5") != [("new",)]
                case.execute(f"SET GLOBAL rpl_semi_sync_{word}_enabled = OFF")
                waiting.join(30)
                assert not waiting.is_alive()
                running.copied()
                until_same(case, running)
        finally:
            case.execute(f"SET GLOBAL rpl_semi_sync_{word}_enabled = OFF")
            waiting.join(60)


@pytest.mark.thorough
def test_a_connection_whose_other_end_is_gone_is_noticed(binlog_case: Make) -> None:
    """A machine in between forgets the connection: nothing comes any more, not even an end."""
    case = binlog_case("items")
    case.execute(ITEMS, many(1, 10))
    silent, pairs = threading.Event(), []

    def carry(taken: socket.socket, given: socket.socket) -> None:
        with suppress(OSError):
            while data := taken.recv(65536):
                if not silent.is_set():
                    given.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                here, _ = listening.accept()
                there = socket.create_connection(("127.0.0.1", case.server.port))
                pairs.append((here, there))
                for ends in ((here, there), (there, here)):
                    threading.Thread(target=carry, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        port = listening.getsockname()[1]
        source = MySQL(
            "shop", case.address.replace(f":{case.server.port}", f":{port}"), tables="items"
        )
        settings = replace(SMALL_MYSQL, silence_seconds=5.0, look_seconds=600.0)
        with Running(source, case.shared, case.directory, settings) as running:
            running.copied()
            silent.set()
            case.execute("INSERT INTO items VALUES (99, 'unheard', 0)")
            with pytest.raises(ServerUnreachableError, match="silent") as told:
                running.until(lambda: False)
            running.error = None
        listening.shutdown(socket.SHUT_RDWR)
    for each in [end for pair in pairs for end in pair]:
        each.close()
    assert told.value.hint
    with case.capture() as running:
        until_same(case, running)
