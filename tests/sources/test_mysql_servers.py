"""Two servers of one replication group: capture goes on with the other one by GTID."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.binlog import BinlogServer, MySQLCase, mariadb_program
from tailrace.sources.errors import GtidAheadError
from tailrace.testing.source_log import SharedLog

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


@pytest.fixture(params=["mariadb", "mysql"])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[BinlogServer, BinlogServer]]:
    mariadb = request.param == "mariadb"
    if mariadb and mariadb_program() is None:
        pytest.skip("needs mariadbd (Debian: apt install mariadb-server)")
    more = ["--log-slave-updates"] if mariadb else []
    with tempfile.TemporaryDirectory(prefix="tailrace-pair-") as directory:
        made: list[BinlogServer] = []
        for number in (1, 2):
            place = Path(directory) / str(number)
            place.mkdir()
            made.append(BinlogServer(place, mariadb=mariadb, number=number, more=more))
        yield made[0], made[1]
        for server in made:
            server.stop()


def follow(server: BinlogServer, first: BinlogServer) -> None:
    if server.mariadb:
        server.execute(
            f"CHANGE MASTER TO master_host='127.0.0.1', master_port={first.port}, "
            "master_user='root', master_use_gtid=slave_pos"
        )
        server.execute("START SLAVE")
    else:
        server.execute(
            f"CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port={first.port}, "
            "source_user='root', source_auto_position=1, get_source_public_key=1"
        )
        server.execute("START REPLICA")


def _has(server: BinlogServer) -> bool:
    return bool(server.execute("SHOW DATABASES LIKE 'shop'"))


def test_another_server_is_taken_when_it_has_everything(
    servers: tuple[BinlogServer, BinlogServer], tmp_path: Path
) -> None:
    first, second = servers
    shared = SharedLog()
    case = MySQLCase(first, "shop", shared, tmp_path, "items")
    case.execute("CREATE TABLE items (id INT PRIMARY KEY, amount INT)")
    case.execute("INSERT INTO items VALUES (1, 1), (2, 2), (3, 3)")
    case.address = f"mysql://root@127.0.0.1:{first.port},127.0.0.1:{second.port}/shop"
    follow(second, first)
    while not second.execute("SHOW TABLES FROM shop LIKE 'items'" if _has(second) else "DO 0"):
        time.sleep(0.1)
    with case.capture() as running:
        running.copied()
        case.execute("UPDATE items SET amount = 10 WHERE id = 1", "DELETE FROM items WHERE id = 3")
        running.reach(case.position())
    other = MySQLCase(second, "shop", shared, tmp_path, "items", create=False)
    deadline = time.monotonic() + 60
    while other.rows("SELECT count(*), max(amount) FROM items") != [(2, 10)]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    stop = "STOP SLAVE" if first.mariadb else "STOP REPLICA"
    second.execute(stop)
    case.execute("INSERT INTO items VALUES (50, 50)")
    with case.capture() as running:
        running.reach(case.position())
    # The first one goes away, and the second lacks a transaction that the log has.
    first.stop()
    with pytest.raises(GtidAheadError) as refused, case.capture() as running:
        running.until(lambda: False)
    assert "lacks" in refused.value.detail
    first.start()
    second.execute("START SLAVE" if first.mariadb else "START REPLICA")
    while other.rows("SELECT count(*) FROM items") != [(3,)]:
        assert time.monotonic() < deadline + 60
        time.sleep(0.1)
    second.execute(stop)
    first.stop()
    before = len(shared.records("shop.shop.items"))
    other.execute("INSERT INTO items VALUES (60, 60)", "UPDATE items SET amount = 11 WHERE id = 1")
    with case.capture() as running:
        running.until(lambda: len(shared.records("shop.shop.items")) == before + 2)
        expected = [
            {"id": i, "amount": a} for i, a in other.rows("SELECT * FROM items ORDER BY id")
        ]
        assert sorted(running.written.table("shop.items"), key=lambda row: row["id"]) == expected
        running.written.check()
    assert running.written.notes("CUT")[-1]["epoch"] == 2
    case.connection.close()
    other.connection.close()
