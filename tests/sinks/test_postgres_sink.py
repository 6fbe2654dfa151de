from __future__ import annotations

import itertools

import psycopg
import pytest

from tailrace.sinks import Postgres
from tailrace.sinks.errors import ShapeError, TargetRefusedError
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import Target
from tailrace.testing.table_contract import TableContract

_numbers = itertools.count()


class PostgresTarget(Target):
    def __init__(self, directory, server):
        super().__init__(directory)
        self.server = server
        self.database = f"copies{next(_numbers)}"
        self.dsn = server.create_database(self.database)
        self.down = False

    def declare(self, view, **options):
        return Postgres(self.dsn, table=f"reporting.{view}", **options)

    def take_down(self):
        self.server.stop()

    def bring_up(self):
        self.server.start()

    def refused_row(self):
        return {"id": 100, "name": "nul \0 in text"}

    def execute(self, statement):
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS reporting")
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def close(self):
        self.server.drop_database(self.database)


class TestPostgresSink(TableContract):
    kill_lines = range(3, 1000, 90)

    @pytest.fixture
    def place(self, tmp_path, postgres_server):
        made = PostgresTarget(tmp_path, postgres_server)
        yield made
        made.close()

    def test_columns_have_the_types_of_the_view(self, place):
        writer = random_project(1, 2)
        self.deliver(place, self.copy(place, "totals"), writer)
        types = dict(
            place.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = 'reporting.totals'::regclass AND attnum > 0"
            )
        )
        assert types == {"country": "text", "orders": "bigint", "value": "numeric(12,2)"}

    def test_integers_are_widened_when_the_view_widens_if_that_is_asked_for(self, place):
        writer = self._simple()
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "INT")])
        writer.tick({"v": [({"id": 1}, {"id": 1, "n": 5})]})
        copy = self.copy(place, "v", schema_change="widen")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
        writer.tick({"v": [({"id": 2}, {"id": 2, "n": 5_000_000_000})]})
        assert self.deliver(place, copy, writer).refused == 0
        self.assert_in_step(place, copy, writer)

    def test_a_sink_told_to_park_does_not_touch_the_table(self, place):
        writer = random_project(1, 2)
        place.execute("CREATE TABLE reporting.totals (country text PRIMARY KEY)")
        with pytest.raises(ShapeError) as caught:
            self.deliver(place, self.copy(place, "totals", schema_change="park"), writer)
        assert "'orders'" in caught.value.message
        assert place.execute("SELECT count(*) FROM reporting.totals") == [(0,)]

    def test_a_table_without_the_key_is_refused(self, place):
        place.execute("CREATE TABLE reporting.totals (country text, orders bigint, value numeric)")
        with pytest.raises(ShapeError) as caught:
            self.deliver(place, self.copy(place, "totals"), random_project(1, 2))
        assert "ADD UNIQUE" in caught.value.hint

    def test_other_columns_and_rows_of_the_users_stay(self, place):
        place.execute(
            "CREATE TABLE reporting.totals (country text PRIMARY KEY, orders bigint, "
            "value numeric, remark text DEFAULT 'mine')"
        )
        place.execute("INSERT INTO reporting.totals VALUES ('Atlantis', 0, 0)")
        writer = random_project(1, 5)
        self.deliver(place, self.copy(place, "totals"), writer)
        rows = place.execute("SELECT country, remark FROM reporting.totals")
        assert ("Atlantis", "mine") in rows
        assert len(rows) == len(writer.contents["totals"]) + 1

    def test_a_role_without_rights_is_an_error_that_says_so(self, place):
        place.execute("DROP ROLE IF EXISTS guest")
        place.execute("CREATE ROLE guest LOGIN")
        place.dsn = place.server.dsn(place.database, user="guest")
        with pytest.raises(TargetRefusedError) as caught:
            self.deliver(place, self.copy(place, "totals"), random_project(1, 2))
        assert "permission denied" in caught.value.detail
        place.dsn = place.server.dsn(place.database)
        place.execute("DROP ROLE guest")

    def test_a_database_that_is_read_only_is_told_apart_from_one_that_is_down(self, place):
        copy = self.copy(place, "totals")
        writer = random_project(1, 2)
        place.execute(f"ALTER DATABASE {place.database} SET default_transaction_read_only = on")
        with pytest.raises(TargetRefusedError) as caught:
            self.deliver(place, copy, writer)
        assert "read-only" in caught.value.detail
        assert caught.value.hint
        with psycopg.connect(place.dsn, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(
                f"ALTER DATABASE {place.database} RESET default_transaction_read_only"
            )
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_an_unknown_database_is_an_error_that_says_so(self, place):
        place.dsn = place.server.dsn("nowhere")
        with pytest.raises(TargetRefusedError):
            self.deliver(place, self.copy(place, "totals"), random_project(1, 2))
