from __future__ import annotations

import itertools

import pytest

from tailrace.sinks import MySQL
from tailrace.sinks.errors import SinkDeclarationError, TargetRefusedError
from tailrace.testing.changelogs import random_project
from tailrace.testing.crash import kill_at_line
from tailrace.testing.sink_contract import SinkContract, Target

_numbers = itertools.count()


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

    def close(self):
        self.server.execute(f"DROP DATABASE {self.database}")


class TestMySQLSink(SinkContract):
    kill_lines = range(3, 800, 200)

    @pytest.fixture
    def place(self, tmp_path, mariadb_server):
        made = MariaDBTarget(tmp_path, mariadb_server)
        yield made
        made.close()

    def test_keys_that_differ_in_case_or_blanks_stay_apart(self, place):
        writer = self._simple()
        writer.declare("v", ["k"], [("k", "STRING"), ("n", "INT")])
        keys = ["a", "A", "a ", "ä"]
        writer.tick({"v": [({"k": k}, {"k": k, "n": i}) for i, k in enumerate(keys)]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_switch_killed_anywhere_is_finished_or_undone(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "one"})]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        for generation, line in enumerate(range(330, 900, 95), 2):
            columns = [("id", "BIGINT"), ("name", "STRING")]
            writer.declare("v", ["id"], columns, generation=generation)
            writer.tick({"v": [({"id": generation}, {"id": generation, "name": "new"})]})
            kill_at_line(lambda: self.deliver(place, copy, writer), ["tailrace/sinks/"], line)
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

    def test_wrong_credentials_are_an_error_that_says_so(self, place):
        place.dsn = f"mysql://nobody:wrong@127.0.0.1:{place.server.port}/{place.database}"
        with pytest.raises(TargetRefusedError) as caught:
            self.deliver(place, self.copy(place, "totals"), random_project(1, 1))
        assert "Access denied" in caught.value.detail

    def test_an_address_without_a_database_is_refused(self, place):
        place.dsn = "mysql://root@127.0.0.1"
        with pytest.raises(SinkDeclarationError):
            self.deliver(place, self.copy(place, "totals"), random_project(1, 1))
