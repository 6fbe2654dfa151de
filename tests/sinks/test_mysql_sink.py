from __future__ import annotations

import itertools

import pytest

from servers.certificates import self_signed
from tailrace.sinks import MySQL
from tailrace.sinks.base import Shape
from tailrace.sinks.errors import (
    SinkDeclarationError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import Target
from tailrace.testing.table_contract import TableContract

_numbers = itertools.count()
SHAPE = Shape((("id", "BIGINT"), ("name", "STRING")), ("id",))
contract = TableContract()


class MariaDBTarget(Target):
    def __init__(self, directory, server):
        super().__init__(directory)
        self.server = server
        self.database = f"copies{next(_numbers)}"
        self.dsn = server.create_database(self.database)

    def declare(self, view, **options):
        return MySQL(self.dsn, table=view, **options)

    def take_down(self):
        self.server.stop()

    def bring_up(self):
        self.server.start()

    def refused_row(self):
        return {"id": 100, "name": "forbidden"}

    def prepare_refusal(self, copy):
        self.server.execute(
            "CREATE TABLE v (id BIGINT PRIMARY KEY, name TEXT CHECK (name <> 'forbidden'))",
            self.database,
        )

    def execute(self, statement):
        self.server.execute(statement, self.database)

    def close(self):
        self.server.execute(f"DROP DATABASE {self.database}")


class Contract(TableContract):
    """What the sink promises on either server."""

    kill_lines = range(3, 800, 200)
    switch_kills = range(330, 900, 190)
    whole_kills = range(80, 400, 160)

    def test_keys_that_differ_in_case_or_blanks_stay_apart(self, place):
        writer = self._simple()
        writer.declare("v", ["k"], [("k", "STRING"), ("n", "INT")])
        keys = ["a", "A", "a ", "ä"]
        writer.tick({"v": [({"k": k}, {"k": k, "n": i}) for i, k in enumerate(keys)]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_row_larger_than_a_packet_is_put_aside(self, place):
        place.server.execute("SET GLOBAL max_allowed_packet = 2097152")
        try:
            writer = self._simple()
            rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b" * 3_000_000}]
            writer.tick({"v": [({"id": row["id"]}, row) for row in rows]})
            copy = self.copy(place, "v")
            delivery = self.deliver(place, copy, writer)
            (letter,) = delivery._dead_letters.letters.values()
            assert letter.row["id"] == 2
            assert "2097152" in letter.error["detail"]
            del writer.contents["v"][b'{"id":2}']
            self.assert_in_step(place, copy, writer)
        finally:
            place.server.execute("SET GLOBAL max_allowed_packet = 67108864")

    def test_a_server_that_is_read_only_is_told_apart_from_one_that_is_down(self, place):
        place.server.execute("CREATE USER IF NOT EXISTS plain IDENTIFIED BY 'x'")
        place.server.execute(f"GRANT ALL ON {place.database}.* TO plain")
        place.dsn = f"mysql://plain:x@127.0.0.1:{place.server.port}/{place.database}"
        place.server.execute("SET GLOBAL read_only = 1")
        try:
            with pytest.raises(TargetRefusedError) as caught:
                self.deliver(place, self.copy(place, "totals"), random_project(1, 1))
            assert "read" in caught.value.detail
            assert caught.value.hint
        finally:
            place.server.execute("SET GLOBAL read_only = 0")

    def test_wrong_credentials_are_an_error_that_says_so(self, place):
        place.dsn = f"mysql://nobody:wrong@127.0.0.1:{place.server.port}/{place.database}"
        with pytest.raises(TargetRefusedError) as caught:
            self.deliver(place, self.copy(place, "totals"), random_project(1, 1))
        assert "Access denied" in caught.value.detail

    def test_an_address_without_a_database_is_refused(self, place):
        place.dsn = "mysql://root@127.0.0.1"
        with pytest.raises(SinkDeclarationError):
            self.deliver(place, self.copy(place, "totals"), random_project(1, 1))


class TestMariaDB(Contract):
    @pytest.fixture
    def place(self, tmp_path, mariadb_server):
        made = MariaDBTarget(tmp_path, mariadb_server)
        yield made
        made.close()


@pytest.mark.thorough
class TestMySQL(Contract):
    @pytest.fixture
    def place(self, tmp_path, mysql_server):
        made = MariaDBTarget(tmp_path, mysql_server)
        yield made
        made.close()


@pytest.mark.parametrize(
    ("query", "encrypted"),
    [
        ("", False),
        ("?ssl-mode=DISABLED", False),
        ("?ssl-mode=required", True),
        ("?ssl-ca=DIRECTORY/localhost.pem", True),
        ("?ssl-mode=VERIFY_CA&ssl-ca=DIRECTORY/localhost.pem", True),
        ("?ssl-ca=DIRECTORY/stranger.pem", None),
        ("?ssl-mode=VERIFY_IDENTITY", None),  # no authority of this machine signed it
    ],
)
def test_the_connection_is_as_safe_as_the_address_asks(tmp_path, mariadb_server, query, encrypted):
    place = MariaDBTarget(tmp_path, mariadb_server)
    place.dsn += query.replace("DIRECTORY", str(self_signed()))
    copy = contract.copy(place, "v")
    sink = make_sink(copy, Surroundings(tmp_path))
    try:
        if encrypted is None:
            with pytest.raises(TargetUnavailableError):
                sink.open(SHAPE)
        else:
            sink.open(SHAPE)
            with sink._connection.cursor() as cursor:
                cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
                assert bool(cursor.fetchone()[1]) is encrypted
    finally:
        sink.close()
        place.close()


@pytest.mark.parametrize(
    "query", ["?ssl=true", "?ssl-mode=MAYBE", "?ssl-ca=/nowhere.pem", "?charset=latin1"]
)
def test_an_option_that_nobody_knows_is_not_ignored(tmp_path, query):
    copy = Copy("c", "v", "v", "view", ("id",), MySQL(f"mysql://u@127.0.0.1:1/d{query}", table="v"))
    with pytest.raises(SinkDeclarationError):
        make_sink(copy, Surroundings(tmp_path)).open(SHAPE)
